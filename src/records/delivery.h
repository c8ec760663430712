/* The records of <pawl/delivery.h>. */
#ifndef PAWL_RECORDS_DELIVERY_H
#define PAWL_RECORDS_DELIVERY_H

#include <pawl/delivery.h>

#include "base/record/record.h"

extern const struct pawl__record pawl__pipeline_recovery_record;
extern const struct pawl__record pawl__pipeline_status_record;

extern const struct pawl__record pawl__failed_event_record;
extern const struct pawl__record pawl__failed_result_record;

extern const char *const pawl__failed_status_names[]; /* ended by NULL */

extern const struct pawl__record pawl__wal_status_record;
extern const struct pawl__record pawl__wal_entry_record;

extern const char *const pawl__wal_state_names[];      /* ended by NULL */
extern const char *const pawl__pipeline_state_names[]; /* ended by NULL */

#endif
