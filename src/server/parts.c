/* What a node of `pawl serve` consists of. */
#include "server/apps/apps.h"
#include "server/delivery/delivery.h"
#include "server/jobs/part.h"
#include "server/work/work.h"

const struct pawl__serve_part *const pawl__serve_parts[] = {
    &pawl__serve_apps_part,
    &pawl__serve_work_part,
    &pawl__serve_delivery_part,
    &pawl__serve_jobs_part,
    NULL,
};
