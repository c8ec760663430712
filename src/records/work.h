/* The records of <pawl/work.h>. */
#ifndef PAWL_RECORDS_WORK_H
#define PAWL_RECORDS_WORK_H

#include <pawl/work.h>

#include "base/record/record.h"

/* By value, NULL after the last. */
extern const char *const pawl__item_status_names[];
extern const char *const pawl__task_status_names[];
extern const char *const pawl__checkpoint_type_names[];
extern const char *const pawl__evidence_kind_names[];
extern const char *const pawl__idem_answer_names[];

extern const struct pawl__record pawl__item_record;
extern const struct pawl__record pawl__item_event_record;
extern const struct pawl__record pawl__work_change_record; /* without its position */
extern const struct pawl__record pawl__task_record;
extern const struct pawl__record pawl__evidence_record;
extern const struct pawl__record pawl__checkpoint_record;
extern const struct pawl__record pawl__schedule_record;
extern const struct pawl__record
    pawl__idem_record; /* without answer and token: the token is for NEW alone */
extern const struct pawl__record pawl__recovery_record; /* without the answers of its keys */

#endif
