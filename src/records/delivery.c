#include "records/delivery.h"

#include "base/core/macros.h"

const char *const pawl__pipeline_state_names[] = {
    [PAWL_PIPELINE_STOPPED] = "stopped",   [PAWL_PIPELINE_PAUSED] = "paused",
    [PAWL_PIPELINE_STARTING] = "starting", [PAWL_PIPELINE_RUNNING] = "running",
    [PAWL_PIPELINE_FAILED] = "failed",     [PAWL_PIPELINE_FAILED + 1] = NULL,
};

static const struct pawl__field recovery_fields[] = {
    { FIELD(pawl_pipeline_recovery, pairing, FIELD_NAME), .flags = FIELD_SET },
    { FIELD(pawl_pipeline_recovery, total_pending, FIELD_UINT64) },
    { FIELD(pawl_pipeline_recovery, already_committed, FIELD_UINT64) },
    { FIELD(pawl_pipeline_recovery, recovered, FIELD_UINT64) },
    { FIELD(pawl_pipeline_recovery, expired, FIELD_UINT64) },
    { FIELD(pawl_pipeline_recovery, failed, FIELD_UINT64) },
    { FIELD(pawl_pipeline_recovery, skipped, FIELD_UINT64) },
    { FIELD(pawl_pipeline_recovery, duration_us, FIELD_INT64) },
};
const struct pawl__record pawl__pipeline_recovery_record =
    RECORD("PipelineRecovery", pawl_pipeline_recovery, recovery_fields);

static const struct pawl__field status_fields[] = {
    { FIELD(pawl_pipeline_status, name, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_pipeline_status, state, FIELD_ENUM), .names = pawl__pipeline_state_names },
    { FIELD(pawl_pipeline_status, from, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_pipeline_status, into, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_pipeline_status, source, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_pipeline_status, generation, FIELD_TEXT) },
    { FIELD(pawl_pipeline_status, accepted, FIELD_UINT64),
      .about = "delivered + filtered + failed + pending." },
    { FIELD(pawl_pipeline_status, delivered, FIELD_UINT64), .about = "Rows of the table." },
    { FIELD(pawl_pipeline_status, filtered, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, failed, FIELD_UINT64), .about = "Rows of failed_events." },
    { FIELD(pawl_pipeline_status, pending, FIELD_UINT64), .about = "Only in the write-ahead log." },
    { FIELD(pawl_pipeline_status, sequence, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, applied_lsn, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, duplicates, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, conflicts, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, retries, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, losses, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, outages, FIELD_UINT64) },
    { FIELD(pawl_pipeline_status, breaker_is_open, FIELD_BOOL) },
    { FIELD(pawl_pipeline_status, last_error, FIELD_TEXT) },
    { FIELD(pawl_pipeline_status, recovery, FIELD_RECORD),
      .record = &pawl__pipeline_recovery_record },
};
const struct pawl__record pawl__pipeline_status_record =
    RECORD("PipelineStatus", pawl_pipeline_status, status_fields);
