#include "records/work.h"

#include "base/core/macros.h"

const char *const pawl__item_status_names[] = {
    [PAWL_ITEM_PENDING] = "pending",     [PAWL_ITEM_IN_PROGRESS] = "in_progress",
    [PAWL_ITEM_COMPLETED] = "completed", [PAWL_ITEM_FAILED] = "failed",
    [PAWL_ITEM_EXPIRED] = "expired",     [PAWL_ITEM_WAITING] = "waiting",
    [PAWL_ITEM_WAITING + 1] = NULL,
};

const char *const pawl__task_status_names[] = {
    [PAWL_TASK_PENDING] = "pending",     [PAWL_TASK_RUNNING] = "running",
    [PAWL_TASK_SUCCEEDED] = "succeeded", [PAWL_TASK_FAILED] = "failed",
    [PAWL_TASK_CANCELLED] = "cancelled", [PAWL_TASK_CANCELLED + 1] = NULL,
};

#define NAME(constant, text) #text,
const char *const pawl__checkpoint_type_names[] = { PAWL_CHECKPOINT_TYPES(NAME) NULL };
#undef NAME

const char *const pawl__evidence_kind_names[] = {
    [PAWL_EVIDENCE_FILE_EXISTS] = "file_exists",   [PAWL_EVIDENCE_FILE_SHA256] = "file_sha256",
    [PAWL_EVIDENCE_COMMAND_EXIT] = "command_exit", [PAWL_EVIDENCE_ROW_EXISTS] = "row_exists",
    [PAWL_EVIDENCE_ROW_EXISTS + 1] = NULL,
};

static const struct pawl__field item_fields[] = {
    { FIELD(pawl_item, work_item_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_item, task_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_item, work_type, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_item, status, FIELD_ENUM), .names = pawl__item_status_names },
    { FIELD(pawl_item, priority, FIELD_INT32), .about = "Higher ones are claimed first." },
    { FIELD(pawl_item, retry_count, FIELD_INT32), .about = "Retries so far." },
    { FIELD(pawl_item, max_retries, FIELD_INT32) },
    { FIELD(pawl_item, attempts, FIELD_INT64), .about = "Claims so far." },
    { FIELD(pawl_item, token, FIELD_UINT64), .about = "Of the newest lease; 0: never leased." },
    { FIELD(pawl_item, lease_holder, FIELD_TEXT) },
    { FIELD(pawl_item, input_data, FIELD_JSON) },
    { FIELD(pawl_item, output_data, FIELD_JSON) },
    { FIELD(pawl_item, error_message, FIELD_TEXT) },
    { FIELD_AS("created_at", pawl_item, created_at_us, FIELD_TIME), .flags = FIELD_SET },
    { FIELD_AS("started_at", pawl_item, started_at_us, FIELD_TIME) },
    { FIELD_AS("completed_at", pawl_item, completed_at_us, FIELD_TIME) },
    { FIELD_AS("updated_at", pawl_item, updated_at_us, FIELD_TIME) },
    { FIELD_AS("lease_acquired_at", pawl_item, lease_acquired_at_us, FIELD_TIME) },
    { FIELD_AS("lease_expires_at", pawl_item, lease_expires_at_us, FIELD_TIME) },
    { FIELD_AS("heartbeat_at", pawl_item, heartbeat_at_us, FIELD_TIME) },
    { FIELD_AS("due_at", pawl_item, due_at_us, FIELD_TIME),
      .about = "When an item that waits for a delay or a retry becomes pending." },
};
const struct pawl__record pawl__item_record = SIZED_RECORD("Item", pawl_item, item_fields);

static const struct pawl__field item_event_fields[] = {
    { FIELD_AS("at", pawl_item_event, at_us, FIELD_TIME), .flags = FIELD_SET },
    { FIELD(pawl_item_event, from, FIELD_NAME), .about = "Missing: it was submitted." },
    { FIELD(pawl_item_event, to, FIELD_NAME), .flags = FIELD_SET },
    { FIELD(pawl_item_event, token, FIELD_UINT64) },
    { FIELD(pawl_item_event, retry_count, FIELD_INT32) },
    { FIELD(pawl_item_event, lease_holder, FIELD_TEXT) },
    { FIELD(pawl_item_event, message, FIELD_TEXT) },
};
const struct pawl__record pawl__item_event_record =
    SIZED_RECORD("ItemEvent", pawl_item_event, item_event_fields);

static const struct pawl__field work_change_fields[] = {
    { FIELD(pawl_work_change, work_item_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_work_change, task_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_work_change, work_type, FIELD_TEXT) },
    { FIELD(pawl_work_change, from, FIELD_NAME), .about = "Missing: it was submitted." },
    { FIELD(pawl_work_change, to, FIELD_NAME), .flags = FIELD_SET },
    { FIELD(pawl_work_change, token, FIELD_UINT64) },
    { FIELD(pawl_work_change, retry_count, FIELD_INT32) },
    { FIELD(pawl_work_change, lease_holder, FIELD_TEXT) },
    { FIELD(pawl_work_change, message, FIELD_TEXT) },
    { FIELD_AS("at", pawl_work_change, at_us, FIELD_TIME), .flags = FIELD_SET },
};
const struct pawl__record pawl__work_change_record =
    RECORD("WorkChange", pawl_work_change, work_change_fields);

static const struct pawl__field task_fields[] = {
    { FIELD(pawl_task, task_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_task, title, FIELD_TEXT) },
    { FIELD(pawl_task, status, FIELD_ENUM), .names = pawl__task_status_names },
    { FIELD(pawl_task, set_by_user, FIELD_BOOL),
      .about = "Its status was set, and does not follow from its items." },
    { FIELD(pawl_task, waiting, FIELD_UINT64) },
    { FIELD(pawl_task, pending, FIELD_UINT64) },
    { FIELD(pawl_task, in_progress, FIELD_UINT64) },
    { FIELD(pawl_task, completed, FIELD_UINT64) },
    { FIELD(pawl_task, failed, FIELD_UINT64) },
    { FIELD(pawl_task, metadata, FIELD_JSON) },
    { FIELD_AS("created_at", pawl_task, created_at_us, FIELD_TIME), .flags = FIELD_SET },
    { FIELD_AS("updated_at", pawl_task, updated_at_us, FIELD_TIME) },
};
const struct pawl__record pawl__task_record = SIZED_RECORD("Task", pawl_task, task_fields);

static const struct pawl__field evidence_fields[] = {
    { FIELD(pawl_evidence, kind, FIELD_ENUM), .names = pawl__evidence_kind_names },
    { FIELD(pawl_evidence, subject, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_evidence, expected, FIELD_TEXT) },
};
const struct pawl__record pawl__evidence_record =
    SIZED_RECORD("Evidence", pawl_evidence, evidence_fields);

static const struct pawl__field checkpoint_fields[] = {
    { FIELD(pawl_checkpoint, checkpoint_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_checkpoint, task_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_checkpoint, work_item_id, FIELD_TEXT) },
    { FIELD_AS("checkpoint_type", pawl_checkpoint, type, FIELD_ENUM),
      .names = pawl__checkpoint_type_names },
    { FIELD(pawl_checkpoint, sequence_number, FIELD_INT64),
      .about = "1, 2, 3, ... within the task." },
    { FIELD(pawl_checkpoint, snapshot_data, FIELD_JSON) },
    { FIELD(pawl_checkpoint, metadata, FIELD_JSON) },
    { FIELD(pawl_checkpoint, verified, FIELD_BOOL),
      .about = "Its evidence held when it was last looked at." },
    { FIELD(pawl_checkpoint, evidence, FIELD_RECORDS),
      .record = &pawl__evidence_record,
      .count_offset = offsetof(pawl_checkpoint, evidence_count) },
    { FIELD_AS("created_at", pawl_checkpoint, created_at_us, FIELD_TIME), .flags = FIELD_SET },
};
const struct pawl__record pawl__checkpoint_record =
    SIZED_RECORD("Checkpoint", pawl_checkpoint, checkpoint_fields);

static const struct pawl__field schedule_fields[] = {
    { FIELD(pawl_schedule, schedule_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_schedule, cron, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_schedule, work_type, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_schedule, task_id, FIELD_TEXT),
      .about = "Missing: every slot makes a task of its own." },
    { FIELD(pawl_schedule, input_data, FIELD_JSON) },
    { FIELD(pawl_schedule, priority, FIELD_INT32) },
    { FIELD(pawl_schedule, max_retries, FIELD_INT32) },
    { FIELD_AS("next_slot", pawl_schedule, next_slot_us, FIELD_TIME) },
    { FIELD_AS("last_slot", pawl_schedule, last_slot_us, FIELD_TIME) },
};
const struct pawl__record pawl__schedule_record =
    SIZED_RECORD("Schedule", pawl_schedule, schedule_fields);

const char *const pawl__idem_answer_names[] = {
    [PAWL_IDEM_NEW] = "new",
    [PAWL_IDEM_IN_FLIGHT] = "in_flight",
    [PAWL_IDEM_DONE] = "done",
    [PAWL_IDEM_FAILED] = "failed",
    [PAWL_IDEM_HASH_CONFLICT] = "hash_conflict",
    [PAWL_IDEM_IN_DOUBT] = "in_doubt",
    [PAWL_IDEM_IN_DOUBT + 1] = NULL,
};

static const struct pawl__field idem_fields[] = {
    { FIELD(pawl_idem, owner, FIELD_TEXT) },
    { FIELD(pawl_idem, request_hash, FIELD_TEXT) },
    { FIELD(pawl_idem, response, FIELD_JSON) },
    { FIELD_AS("created_at", pawl_idem, created_at_us, FIELD_TIME) },
    { FIELD_AS("completed_at", pawl_idem, completed_at_us, FIELD_TIME) },
    { FIELD_AS("lease_expires_at", pawl_idem, lease_expires_at_us, FIELD_TIME) },
    { FIELD_AS("expires_at", pawl_idem, expires_at_us, FIELD_TIME) },
};
const struct pawl__record pawl__idem_record = SIZED_RECORD("Idem", pawl_idem, idem_fields);

/* Without the answers of its keys, which are two lists. */
static const struct pawl__field recovery_fields[] = {
    { FIELD(pawl_recovery, task, FIELD_RECORD), .record = &pawl__task_record, .flags = FIELD_SET },
    { FIELD(pawl_recovery, resume, FIELD_RECORD), .record = &pawl__checkpoint_record },
    { FIELD(pawl_recovery, iteration_end, FIELD_RECORD), .record = &pawl__checkpoint_record },
    { FIELD(pawl_recovery, passed_over, FIELD_UINT64),
      .about = "Newer checkpoints whose evidence does not hold." },
    { FIELD(pawl_recovery, items, FIELD_RECORDS),
      .record = &pawl__item_record,
      .count_offset = offsetof(pawl_recovery, item_count) },
    { FIELD(pawl_recovery, more, FIELD_BOOL),
      .about = "There are more unfinished items or keys than were asked for." },
};
const struct pawl__record pawl__recovery_record =
    SIZED_RECORD("Recovery", pawl_recovery, recovery_fields);
