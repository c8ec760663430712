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

pawl_status pawl__serve_delivery_alone(const struct pawl__serve_options *options,
                                       struct pawl__serve_node **ret_node,
                                       pawl_error *reterr)
{
    static const struct pawl__serve_part *const parts[] = { &pawl__serve_delivery_part, NULL };
    struct pawl__serve_options alone = *options;

    alone.parts = parts;
    alone.http.listen = NULL;
    return pawl__serve_node_open(&alone, ret_node, reterr);
}
