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
    SIZED_RECORD("PipelineRecovery", pawl_pipeline_recovery, recovery_fields);

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
    SIZED_RECORD("PipelineStatus", pawl_pipeline_status, status_fields);

/* --- failed events --- */

const char *const pawl__failed_status_names[] = {
    [PAWL_FAILED_PENDING] = "pending",   [PAWL_FAILED_RETRYING] = "retrying",
    [PAWL_FAILED_RESOLVED] = "resolved", [PAWL_FAILED_ABANDONED] = "abandoned",
    [PAWL_FAILED_ABANDONED + 1] = NULL,
};

static const struct pawl__field failed_fields[] = {
    { FIELD(pawl_failed_event, pipeline, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_failed_event, id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_failed_event, lsn, FIELD_UINT64) },
    { FIELD(pawl_failed_event, transaction_id, FIELD_TEXT) },
    { FIELD(pawl_failed_event, event_id, FIELD_TEXT) },
    { FIELD(pawl_failed_event, source, FIELD_TEXT) },
    { FIELD(pawl_failed_event, subject, FIELD_TEXT) },
    { FIELD(pawl_failed_event, session_key, FIELD_TEXT) },
    { FIELD(pawl_failed_event, correlation_key, FIELD_TEXT) },
    { FIELD(pawl_failed_event, status, FIELD_ENUM), .names = pawl__failed_status_names },
    { FIELD(pawl_failed_event, failure_reason, FIELD_TEXT) },
    { FIELD(pawl_failed_event, failure_layer, FIELD_TEXT) },
    { FIELD(pawl_failed_event, last_error, FIELD_TEXT) },
    { FIELD(pawl_failed_event, retry_count, FIELD_INT32) },
    { FIELD(pawl_failed_event, max_retries_exceeded, FIELD_BOOL) },
    { FIELD_AS("received_at", pawl_failed_event, received_at_us, FIELD_TIME) },
    { FIELD_AS("failed_at", pawl_failed_event, failed_at_us, FIELD_TIME) },
    { FIELD_AS("last_retry_at", pawl_failed_event, last_retry_at_us, FIELD_TIME) },
    { FIELD(pawl_failed_event, resolution, FIELD_TEXT) },
    { FIELD_AS("resolved_at", pawl_failed_event, resolved_at_us, FIELD_TIME) },
    { FIELD(pawl_failed_event, resolved_by, FIELD_TEXT) },
    { FIELD(pawl_failed_event, resolution_notes, FIELD_TEXT) },
    { FIELD(pawl_failed_event, payload_encoding, FIELD_TEXT) },
    { FIELD(pawl_failed_event, headers, FIELD_JSON) },
    { FIELD(pawl_failed_event, event_payload, FIELD_JSON) },
    { FIELD(pawl_failed_event, edited_payload, FIELD_JSON) },
};
const struct pawl__record pawl__failed_event_record =
    SIZED_RECORD("FailedEvent", pawl_failed_event, failed_fields);

static const struct pawl__field failed_result_fields[] = {
    { FIELD(pawl_failed_result, matched, FIELD_UINT64) },
    { FIELD(pawl_failed_result, delivered, FIELD_UINT64) },
    { FIELD(pawl_failed_result, filtered, FIELD_UINT64) },
    { FIELD(pawl_failed_result, refused, FIELD_UINT64) },
    { FIELD(pawl_failed_result, closed, FIELD_UINT64) },
    { FIELD(pawl_failed_result, error, FIELD_CHARS) },
};
const struct pawl__record pawl__failed_result_record =
    SIZED_RECORD("FailedResult", pawl_failed_result, failed_result_fields);

const char *const pawl__wal_state_names[] = {
    [PAWL_WAL_PENDING] = "pending",
    [PAWL_WAL_CONFIRMED] = "confirmed",
    [PAWL_WAL_FAILED] = "failed",
    [PAWL_WAL_FAILED + 1] = NULL,
};

static const struct pawl__field wal_status_fields[] = {
    { FIELD(pawl_wal_status, first_lsn, FIELD_UINT64) },
    { FIELD(pawl_wal_status, last_lsn, FIELD_UINT64) },
    { FIELD(pawl_wal_status, pending, FIELD_UINT64) },
    { FIELD(pawl_wal_status, confirmed, FIELD_UINT64) },
    { FIELD(pawl_wal_status, failed, FIELD_UINT64) },
    { FIELD(pawl_wal_status, pending_bytes, FIELD_UINT64) },
    { FIELD(pawl_wal_status, confirmed_bytes, FIELD_UINT64) },
    { FIELD(pawl_wal_status, failed_bytes, FIELD_UINT64) },
    { FIELD(pawl_wal_status, index_entries, FIELD_UINT64) },
    { FIELD(pawl_wal_status, index_bytes, FIELD_UINT64) },
    { FIELD(pawl_wal_status, epoch, FIELD_UINT64) },
    { FIELD(pawl_wal_status, fence, FIELD_UINT64) },
    { FIELD(pawl_wal_status, lease_holder, FIELD_CHARS) },
    { FIELD_AS("lease_until", pawl_wal_status, lease_until_us, FIELD_TIME) },
};
const struct pawl__record pawl__wal_status_record =
    SIZED_RECORD("WalStatus", pawl_wal_status, wal_status_fields);

static const struct pawl__field wal_entry_fields[] = {
    { FIELD(pawl_wal_entry, lsn, FIELD_UINT64) },
    { FIELD(pawl_wal_entry, state, FIELD_ENUM), .names = pawl__wal_state_names },
    { FIELD(pawl_wal_entry, transaction_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_wal_entry, source, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_wal_entry, event_id, FIELD_TEXT) },
    { FIELD_AS("nats_subject", pawl_wal_entry, subject, FIELD_TEXT) },
    { FIELD_AS("nats_message_id", pawl_wal_entry, message_id, FIELD_TEXT) },
    { FIELD(pawl_wal_entry, sequence, FIELD_UINT64) },
    { FIELD_AS("attempts", pawl_wal_entry, attempts, FIELD_INT32) },
    { FIELD_AS("created_at", pawl_wal_entry, created_at_us, FIELD_TIME) },
    { FIELD_AS("last_attempt_at", pawl_wal_entry, last_attempt_at_us, FIELD_TIME) },
    { FIELD_AS("ended_at", pawl_wal_entry, ended_at_us, FIELD_TIME) },
    { FIELD(pawl_wal_entry, last_error, FIELD_TEXT) },
    { FIELD(pawl_wal_entry, failure_reason, FIELD_TEXT) },
    { FIELD_AS("event_payload", pawl_wal_entry, payload, FIELD_JSON) },
};
const struct pawl__record pawl__wal_entry_record =
    SIZED_RECORD("WalEntry", pawl_wal_entry, wal_entry_fields);
