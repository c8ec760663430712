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

/* --- replay, rebuild, trace, audit --- */

const char *const pawl__replay_by_names[] = {
    [PAWL_REPLAY_LSN] = "lsn",
    [PAWL_REPLAY_SEQUENCE] = "sequence",
    [PAWL_REPLAY_TIME] = "time",
    [PAWL_REPLAY_TIME + 1] = NULL,
};

static const struct pawl__field replay_result_fields[] = {
    { FIELD(pawl_replay_result, from_wal, FIELD_UINT64) },
    { FIELD(pawl_replay_result, from_source, FIELD_UINT64) },
    { FIELD(pawl_replay_result, present, FIELD_UINT64) },
    { FIELD(pawl_replay_result, delivered, FIELD_UINT64),
      .about = "Were missing, and are rows now." },
    { FIELD(pawl_replay_result, filtered, FIELD_UINT64) },
    { FIELD(pawl_replay_result, failed, FIELD_UINT64) },
    { FIELD(pawl_replay_result, pending, FIELD_UINT64) },
    { FIELD(pawl_replay_result, gone, FIELD_UINT64),
      .about = "LSNs or sequences of the range that nobody holds any more." },
};
const struct pawl__record pawl__replay_result_record =
    SIZED_RECORD("ReplayResult", pawl_replay_result, replay_result_fields);

static const struct pawl__field rebuilt_fields[] = {
    { FIELD(pawl_rebuilt, pipeline, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_rebuilt, delivered, FIELD_UINT64) },
    { FIELD(pawl_rebuilt, filtered, FIELD_UINT64) },
    { FIELD(pawl_rebuilt, failed, FIELD_UINT64) },
    { FIELD(pawl_rebuilt, pending, FIELD_UINT64) },
    { FIELD(pawl_rebuilt, losses, FIELD_UINT64),
      .about = "Rows of delivery_losses that this rebuild added." },
    { FIELD(pawl_rebuilt, error, FIELD_TEXT),
      .about = "Why it is not complete; missing when it is." },
};
const struct pawl__record pawl__rebuilt_record =
    SIZED_RECORD("RebuiltPipeline", pawl_rebuilt, rebuilt_fields);

static const struct pawl__field rebuild_result_fields[] = {
    { FIELD(pawl_rebuild_result, file_was_missing, FIELD_BOOL) },
    { FIELD(pawl_rebuild_result, file_was_damaged, FIELD_BOOL) },
    { FIELD(pawl_rebuild_result, quarantined, FIELD_CHARS) },
    { FIELD(pawl_rebuild_result, pipelines, FIELD_UINT64) },
    { FIELD(pawl_rebuild_result, incomplete, FIELD_UINT64) },
};
const struct pawl__record pawl__rebuild_result_record =
    SIZED_RECORD("RebuildResult", pawl_rebuild_result, rebuild_result_fields);

const char *const pawl__trace_place_names[] = {
    [PAWL_TRACE_OUTBOX] = "outbox",     [PAWL_TRACE_SOURCE] = "source",
    [PAWL_TRACE_WAL] = "wal",           [PAWL_TRACE_TABLE] = "table",
    [PAWL_TRACE_FILTERED] = "filtered", [PAWL_TRACE_FAILED] = "failed",
    [PAWL_TRACE_FAILED + 1] = NULL,
};

static const struct pawl__field trace_step_fields[] = {
    { FIELD(pawl_trace_step, place, FIELD_ENUM), .names = pawl__trace_place_names },
    { FIELD(pawl_trace_step, pipeline, FIELD_TEXT) },
    { FIELD(pawl_trace_step, transaction_id, FIELD_TEXT) },
    { FIELD(pawl_trace_step, state, FIELD_TEXT) },
    { FIELD(pawl_trace_step, number, FIELD_UINT64) },
    { FIELD(pawl_trace_step, sequence, FIELD_UINT64) },
    { FIELD(pawl_trace_step, lsn, FIELD_UINT64) },
    { FIELD_AS("at", pawl_trace_step, at_us, FIELD_TIME) },
    { FIELD(pawl_trace_step, detail, FIELD_TEXT) },
};
const struct pawl__record pawl__trace_step_record =
    SIZED_RECORD("TraceStep", pawl_trace_step, trace_step_fields);

const char *const pawl__audit_fault_names[] = {
    [PAWL_AUDIT_LOST] = "lost",
    [PAWL_AUDIT_DUPLICATED] = "duplicated",
    [PAWL_AUDIT_MISCOUNTED] = "miscounted",
    [PAWL_AUDIT_MISCOUNTED + 1] = NULL,
};

static const struct pawl__field audit_finding_fields[] = {
    { FIELD(pawl_audit_finding, fault, FIELD_ENUM), .names = pawl__audit_fault_names },
    { FIELD(pawl_audit_finding, pipeline, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_audit_finding, transaction_id, FIELD_TEXT) },
    { FIELD(pawl_audit_finding, sequence, FIELD_UINT64) },
    { FIELD(pawl_audit_finding, lsn, FIELD_UINT64) },
    { FIELD(pawl_audit_finding, what, FIELD_TEXT) },
};
const struct pawl__record pawl__audit_finding_record =
    SIZED_RECORD("AuditFinding", pawl_audit_finding, audit_finding_fields);

static const struct pawl__field audit_report_fields[] = {
    { FIELD(pawl_audit_report, pipelines, FIELD_UINT64) },
    { FIELD(pawl_audit_report, source_events, FIELD_UINT64) },
    { FIELD(pawl_audit_report, waiting, FIELD_UINT64) },
    { FIELD(pawl_audit_report, log_entries, FIELD_UINT64) },
    { FIELD(pawl_audit_report, rows, FIELD_UINT64) },
    { FIELD(pawl_audit_report, filtered, FIELD_UINT64) },
    { FIELD(pawl_audit_report, failed, FIELD_UINT64) },
    { FIELD(pawl_audit_report, pending, FIELD_UINT64) },
    { FIELD(pawl_audit_report, recorded, FIELD_UINT64),
      .about = "Rows of delivery_losses: what the sources lost, on record." },
    { FIELD(pawl_audit_report, unread_sources, FIELD_UINT64) },
    { FIELD(pawl_audit_report, lost, FIELD_UINT64) },
    { FIELD(pawl_audit_report, duplicated, FIELD_UINT64) },
    { FIELD(pawl_audit_report, miscounted, FIELD_UINT64) },
};
const struct pawl__record pawl__audit_report_record =
    SIZED_RECORD("AuditReport", pawl_audit_report, audit_report_fields);
