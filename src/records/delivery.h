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

extern const struct pawl__record pawl__replay_result_record;
extern const struct pawl__record pawl__rebuilt_record;
extern const struct pawl__record pawl__rebuild_result_record;
extern const struct pawl__record pawl__trace_step_record;
extern const struct pawl__record pawl__audit_finding_record;
extern const struct pawl__record pawl__audit_report_record;

extern const char *const pawl__replay_by_names[]; /* this and the next ones, ended by NULL */
extern const char *const pawl__trace_place_names[];
extern const char *const pawl__audit_fault_names[];
extern const char *const pawl__wal_state_names[];      /* ended by NULL */
extern const char *const pawl__pipeline_state_names[]; /* ended by NULL */

#endif
