#include "server/work/records.h"

#include "base/core/macros.h"
#include "server/page.h"

/* --- addresses --- */

#define TASK_FIELD(type)                                         \
    {                                                            \
        FIELD(type, task, FIELD_TEXT), .about = "The task's id." \
    }
#define FROM_FIELD(type)                                                                      \
    {                                                                                         \
        FIELD(type, from, FIELD_TEXT), .max = PAWL_WORK_NAME_BYTES_MAX, .flags = FIELD_BLANK, \
                                       .about = PAGE_FROM_ABOUT                               \
    }
#define TYPE_FIELD(type_)                                                          \
    {                                                                              \
        FIELD(type_, type, FIELD_ENUM), .names = pawl__checkpoint_type_names,      \
                                        .about = "Checkpoints of this type alone." \
    }

static const struct pawl__field item_path_fields[] = {
    { FIELD(struct item_path, item, FIELD_TEXT), .about = "The item's id." },
};
const struct pawl__record pawl__serve_item_path_record =
    RECORD("ItemPath", struct item_path, item_path_fields);

static const struct pawl__field task_path_fields[] = { TASK_FIELD(struct task_path) };
const struct pawl__record pawl__serve_task_path_record =
    RECORD("TaskPath", struct task_path, task_path_fields);

static const struct task_list task_list_start = { .limit = PAGE_LIMIT_DEFAULT,
                                                  .status = FIELD_ENUM_NONE };
static const struct pawl__field task_list_fields[] = {
    FROM_FIELD(struct task_list),
    PAGE_LIMIT_FIELD(struct task_list),
    { FIELD(struct task_list, status, FIELD_ENUM),
      .names = pawl__task_status_names,
      .about = "Tasks in this status alone." },
};
const struct pawl__record pawl__serve_task_list_record =
    RECORD_FROM("TaskList", struct task_list, task_list_fields, &task_list_start);

static const struct item_list item_list_start = { .limit = PAGE_LIMIT_DEFAULT,
                                                  .status = FIELD_ENUM_NONE };
static const struct pawl__field item_list_fields[] = {
    FROM_FIELD(struct item_list),
    PAGE_LIMIT_FIELD(struct item_list),
    { FIELD(struct item_list, status, FIELD_ENUM),
      .names = pawl__item_status_names,
      .about = "Items in this status alone." },
    { FIELD(struct item_list, task, FIELD_TEXT),
      .max = PAWL_WORK_NAME_BYTES_MAX,
      .about = "Items of this task alone." },
    { FIELD(struct item_list, type, FIELD_TEXT),
      .max = PAWL_WORK_NAME_BYTES_MAX,
      .about = "Items of this work type alone." },
};
const struct pawl__record pawl__serve_item_list_record =
    RECORD_FROM("ItemList", struct item_list, item_list_fields, &item_list_start);

static const struct pawl__field change_list_fields[] = {
    { FIELD(struct change_list, from, FIELD_TEXT),
      .max = PAWL_WORK_POSITION_SIZE,
      .about =
          "`end`: what changes from now on; `start`: all that is kept; or the id of an event." },
    { FIELD(struct change_list, status, FIELD_TEXT),
      .max = PAWL_WORK_NAME_BYTES_MAX,
      .about = "Changes to this status alone; several with commas." },
    { FIELD(struct change_list, task, FIELD_TEXT),
      .max = PAWL_WORK_NAME_BYTES_MAX,
      .about = "Changes of this task's items alone." },
    { FIELD(struct change_list, type, FIELD_TEXT),
      .max = PAWL_WORK_NAME_BYTES_MAX,
      .about = "Changes of items of this work type alone." },
};
const struct pawl__record pawl__serve_change_list_record =
    RECORD("ChangeList", struct change_list, change_list_fields);

static const struct checkpoint_list checkpoint_list_start = { .limit = PAGE_LIMIT_DEFAULT,
                                                              .type = FIELD_ENUM_NONE };
static const struct pawl__field checkpoint_list_fields[] = {
    TASK_FIELD(struct checkpoint_list),
    { FIELD(struct checkpoint_list, from, FIELD_UINT64),
      .min = 0,
      .max = INT64_MAX,
      .about = PAGE_FROM_ABOUT },
    PAGE_LIMIT_FIELD(struct checkpoint_list),
    TYPE_FIELD(struct checkpoint_list),
};
const struct pawl__record pawl__serve_checkpoint_list_record = RECORD_FROM(
    "CheckpointList", struct checkpoint_list, checkpoint_list_fields, &checkpoint_list_start);

static const struct checkpoint_latest checkpoint_latest_start = { .type = FIELD_ENUM_NONE };
static const struct pawl__field checkpoint_latest_fields[] = {
    TASK_FIELD(struct checkpoint_latest),
    TYPE_FIELD(struct checkpoint_latest),
};
const struct pawl__record pawl__serve_checkpoint_latest_record =
    RECORD_FROM("CheckpointLatest",
                struct checkpoint_latest,
                checkpoint_latest_fields,
                &checkpoint_latest_start);

/* --- bodies --- */

#define TOKEN_FIELD(type)                                                                      \
    {                                                                                          \
        FIELD(type, token, FIELD_UINT64), .flags = FIELD_REQUIRED, .min = 1, .max = INT64_MAX, \
                                          .about = "Of the lease, as the claim answered it."   \
    }
#define LEASE_FIELD(type)                                                         \
    {                                                                             \
        FIELD_AS("lease", type, lease_ms, FIELD_DURATION),                        \
            .min = 1, .max = WORK_MS_MAX,                                         \
            .about = "How long, as in 90s; left out: as long as work.lease says." \
    }

static const struct pawl__field new_task_fields[] = {
    { FIELD(struct new_task, metadata, FIELD_JSON), .about = "An object." },
    { FIELD(struct new_task, task_id, FIELD_TEXT), .about = "Left out: a new one." },
    { FIELD(struct new_task, title, FIELD_TEXT),
      .flags = FIELD_BLANK,
      .about = "Left out: its id." },
};
const struct pawl__record pawl__serve_new_task_record =
    RECORD("NewTask", struct new_task, new_task_fields);

static const pawl_submission submission_start = PAWL_SUBMISSION_INIT;
static const struct pawl__field submission_fields[] = {
    { FIELD(pawl_submission, after, FIELD_TEXTS),
      .max = PAWL_WORK_AFTER_MAX,
      .count_offset = offsetof(pawl_submission, after_count),
      .about = "Ids of items of the same task that must complete first." },
    { FIELD_AS("delay", pawl_submission, delay_ms, FIELD_DURATION),
      .max = WORK_DELAY_MS_MAX,
      .about = "Delay before the item can be claimed, as in 90s." },
    { FIELD(pawl_submission, input_data, FIELD_JSON) },
    { FIELD(pawl_submission, max_retries, FIELD_INT32),
      .max = PAWL_WORK_RETRIES_MAX,
      .about = "Retries after the first try; left out: 3." },
    { FIELD(pawl_submission, priority, FIELD_INT32),
      .min = PAWL_WORK_PRIORITY_MIN,
      .max = PAWL_WORK_PRIORITY_MAX,
      .about = "Higher ones are claimed first." },
    { FIELD(pawl_submission, task_id, FIELD_TEXT), .flags = FIELD_REQUIRED },
    { FIELD(pawl_submission, work_item_id, FIELD_TEXT),
      .about = "Makes the submission repeatable; left out: a new one." },
    { FIELD(pawl_submission, work_type, FIELD_TEXT), .flags = FIELD_REQUIRED },
};
const struct pawl__record pawl__serve_submission_record =
    RECORD_FROM("Submission", pawl_submission, submission_fields, &submission_start);

static const struct pawl__field submission_batch_fields[] = {
    { FIELD(struct submission_batch, items, FIELD_RECORDS),
      .flags = FIELD_REQUIRED | FIELD_OR_ONE,
      .min = 1,
      .max = PAWL_WORK_BATCH_MAX,
      .record = &pawl__serve_submission_record,
      .count_offset = offsetof(struct submission_batch, count) },
};
const struct pawl__record pawl__serve_submission_batch_record =
    RECORD("SubmissionBatch", struct submission_batch, submission_batch_fields);

static const struct claim_body claim_start = { .count = 1 };
static const struct pawl__field claim_fields[] = {
    { FIELD(struct claim_body, count, FIELD_INT64),
      .min = 1,
      .max = WORK_CLAIM_COUNT_MAX,
      .about = "At most so many items." },
    { FIELD(struct claim_body, holder, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .about = "Who works on them: shown to people." },
    LEASE_FIELD(struct claim_body),
    { FIELD(struct claim_body, task, FIELD_TEXT), .about = "Items of this task alone." },
    { FIELD(struct claim_body, types, FIELD_TEXTS),
      .min = 1,
      .max = WORK_CLAIM_TYPES_MAX,
      .count_offset = offsetof(struct claim_body, type_count),
      .about = "Items of these work types alone." },
    { FIELD_AS("wait", struct claim_body, wait_ms, FIELD_DURATION),
      .max = WORK_MS_MAX,
      .about = "How long to wait for the first item, as in 20s; left out: not at all." },
};
const struct pawl__record pawl__serve_claim_record =
    RECORD_FROM("Claim", struct claim_body, claim_fields, &claim_start);

static const struct pawl__field heartbeat_fields[] = {
    LEASE_FIELD(struct heartbeat_body),
    TOKEN_FIELD(struct heartbeat_body),
};
const struct pawl__record pawl__serve_heartbeat_record =
    RECORD("Heartbeat", struct heartbeat_body, heartbeat_fields);

static const struct pawl__field complete_fields[] = {
    { FIELD(struct complete_body, output_data, FIELD_JSON) },
    TOKEN_FIELD(struct complete_body),
};
const struct pawl__record pawl__serve_complete_record =
    RECORD("Complete", struct complete_body, complete_fields);

static const struct pawl__field fail_fields[] = {
    { FIELD(struct fail_body, error_message, FIELD_TEXT), .flags = FIELD_REQUIRED },
    { FIELD(struct fail_body, output_data, FIELD_JSON) },
    { FIELD(struct fail_body, permanent, FIELD_BOOL), .about = "No retry would help." },
    TOKEN_FIELD(struct fail_body),
};
const struct pawl__record pawl__serve_fail_record = RECORD("Fail", struct fail_body, fail_fields);

static const struct pawl__field release_fields[] = { TOKEN_FIELD(struct release_body) };
const struct pawl__record pawl__serve_release_record =
    RECORD("Release", struct release_body, release_fields);

/* Checking evidence runs commands and reads files with the rights of the node, which its clients need not
 * have. */
static const struct new_checkpoint new_checkpoint_start = { .type =
                                                                PAWL_CHECKPOINT_MANUAL_CHECKPOINT };
static const struct pawl__field new_checkpoint_fields[] = {
    { FIELD(struct new_checkpoint, checkpoint_id, FIELD_TEXT), .about = "Left out: a new one." },
    { FIELD_AS("checkpoint_type", struct new_checkpoint, type, FIELD_ENUM),
      .names = pawl__checkpoint_type_names },
    { FIELD(struct new_checkpoint, evidence, FIELD_JSON),
      .refused = "not taken over HTTP: add it with 'pawl work'" },
    { FIELD(struct new_checkpoint, metadata, FIELD_JSON) },
    { FIELD(struct new_checkpoint, snapshot_data, FIELD_JSON), .flags = FIELD_REQUIRED },
    { FIELD(struct new_checkpoint, token, FIELD_UINT64),
      .min = 1,
      .max = INT64_MAX,
      .about = "Of the item's lease; goes with work_item_id." },
    { FIELD(struct new_checkpoint, work_item_id, FIELD_TEXT),
      .about = "Of an item that you hold; goes with token." },
};
const struct pawl__record pawl__serve_new_checkpoint_record = RECORD_FROM(
    "NewCheckpoint", struct new_checkpoint, new_checkpoint_fields, &new_checkpoint_start);

/* --- answers --- */

static const struct pawl__field submitted_fields[] = {
    { FIELD(pawl_submit_result, work_item_id, FIELD_CHARS) },
    { FIELD(pawl_submit_result, duplicate, FIELD_BOOL),
      .about = "It was there already, with the same content." },
};
const struct pawl__record pawl__serve_submitted_record =
    RECORD("Submitted", pawl_submit_result, submitted_fields);

static const struct pawl__field submit_fields[] = {
    { FIELD(struct submit_answer, items, FIELD_RECORDS),
      .record = &pawl__serve_submitted_record,
      .count_offset = offsetof(struct submit_answer, count) },
};
const struct pawl__record pawl__serve_submit_record =
    RECORD("SubmittedBatch", struct submit_answer, submit_fields);

struct claimed_shape {
    const pawl_item *items;
    size_t count;
};
static const struct pawl__field claimed_fields[] = {
    { FIELD(struct claimed_shape, items, FIELD_RECORDS),
      .record = &pawl__item_record,
      .count_offset = offsetof(struct claimed_shape, count),
      .about = "Empty: there was nothing to lease." },
};
const struct pawl__record pawl__serve_claimed_record =
    RECORD("Claimed", struct claimed_shape, claimed_fields);

struct item_detail_shape {
    pawl_item item;
    const pawl_item_event *history;
    size_t count;
};
static const struct pawl__field item_detail_fields[] = {
    { FIELD(struct item_detail_shape, history, FIELD_RECORDS),
      .record = &pawl__item_event_record,
      .count_offset = offsetof(struct item_detail_shape, count) },
};
const struct pawl__record pawl__serve_item_detail_record = {
    .name = "ItemDetail",
    .size = sizeof(struct item_detail_shape),
    .extends = &pawl__item_record,
    .fields = item_detail_fields,
    .count = COUNT_OF(item_detail_fields),
};

static const struct pawl__field item_status_fields[] = {
    { FIELD(struct item_status, work_item_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct item_status, status, FIELD_ENUM), .names = pawl__item_status_names },
};
const struct pawl__record pawl__serve_item_status_record =
    RECORD("ItemStatus", struct item_status, item_status_fields);

static const struct pawl__field lease_fields[] = {
    { FIELD(struct lease_end, work_item_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD_AS("lease_expires_at", struct lease_end, expires_at_us, FIELD_TIME),
      .flags = FIELD_SET },
};
const struct pawl__record pawl__serve_lease_record =
    RECORD("Lease", struct lease_end, lease_fields);

static const struct pawl__field task_cancelled_fields[] = {
    { FIELD(struct task_cancelled, task_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct task_cancelled, failed_items, FIELD_UINT64),
      .about = "Items that had not ended, and are failed now." },
};
const struct pawl__record pawl__serve_task_cancelled_record =
    RECORD("TaskCancelled", struct task_cancelled, task_cancelled_fields);

static const struct pawl__field checkpoint_added_fields[] = {
    { FIELD(struct checkpoint_added, checkpoint_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct checkpoint_added, sequence_number, FIELD_INT64) },
};
const struct pawl__record pawl__serve_checkpoint_added_record =
    RECORD("CheckpointAdded", struct checkpoint_added, checkpoint_added_fields);

struct cached_answer_shape {
    pawl_view idempotency_key;
    pawl_view response;
};
static const struct pawl__field cached_answer_fields[] = {
    { FIELD(struct cached_answer_shape, idempotency_key, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct cached_answer_shape, response, FIELD_JSON) },
};
const struct pawl__record pawl__serve_cached_answer_record =
    RECORD("CachedAnswer", struct cached_answer_shape, cached_answer_fields);

struct recovery_shape {
    pawl_recovery recovery;
    const struct cached_answer_shape *answers;
    size_t count;
};
static const struct pawl__field recovery_fields[] = {
    { FIELD(struct recovery_shape, answers, FIELD_RECORDS),
      .record = &pawl__serve_cached_answer_record,
      .count_offset = offsetof(struct recovery_shape, count),
      .about = "Of idempotency keys that completed." },
};
const struct pawl__record pawl__serve_recovery_record = {
    .name = "TaskRecovery",
    .size = sizeof(struct recovery_shape),
    .extends = &pawl__recovery_record,
    .fields = recovery_fields,
    .count = COUNT_OF(recovery_fields),
};

static const struct pawl__field type_stats_fields[] = {
    { FIELD(pawl_type_stats, work_type, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_type_stats, status, FIELD_ENUM), .names = pawl__item_status_names },
    { FIELD(pawl_type_stats, count, FIELD_UINT64) },
    { FIELD(pawl_type_stats, avg_age_hours, FIELD_REAL) },
};
const struct pawl__record pawl__serve_type_stats_record =
    RECORD("TypeStats", pawl_type_stats, type_stats_fields);

static const struct pawl__field growth_fields[] = {
    { FIELD(pawl_checkpoint_growth, task_id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(pawl_checkpoint_growth, checkpoint_count, FIELD_UINT64) },
    { FIELD(pawl_checkpoint_growth, max_sequence, FIELD_INT64) },
    { FIELD_AS("first_at", pawl_checkpoint_growth, first_at_us, FIELD_TIME) },
    { FIELD_AS("last_at", pawl_checkpoint_growth, last_at_us, FIELD_TIME) },
};
const struct pawl__record pawl__serve_growth_record =
    RECORD("CheckpointGrowth", pawl_checkpoint_growth, growth_fields);

#define COUNT_FIELD(member)                                           \
    {                                                                 \
        FIELD_AS(#member, struct work_stats, of.member, FIELD_UINT64) \
    }
static const struct pawl__field stats_fields[] = {
    COUNT_FIELD(waiting),
    COUNT_FIELD(pending),
    COUNT_FIELD(in_progress),
    COUNT_FIELD(completed),
    COUNT_FIELD(failed),
    COUNT_FIELD(active_leases),
    COUNT_FIELD(stale_leases),
    { FIELD_AS("avg_minutes_since_heartbeat",
               struct work_stats,
               of.avg_minutes_since_heartbeat,
               FIELD_REAL) },
    COUNT_FIELD(checkpoints),
    COUNT_FIELD(keys_pending),
    COUNT_FIELD(keys_completed),
    COUNT_FIELD(keys_failed),
    { FIELD_AS("oldest_pending_at", struct work_stats, of.oldest_pending_us, FIELD_TIME) },
    { FIELD(struct work_stats, types, FIELD_RECORDS),
      .record = &pawl__serve_type_stats_record,
      .count_offset = offsetof(struct work_stats, type_count) },
    { FIELD_AS("checkpoints_of_tasks", struct work_stats, tasks, FIELD_RECORDS),
      .record = &pawl__serve_growth_record,
      .count_offset = offsetof(struct work_stats, task_count),
      .about = "The tasks with the most checkpoints." },
};
const struct pawl__record pawl__serve_stats_record =
    RECORD("WorkStats", struct work_stats, stats_fields);

static const struct pawl__field task_page_fields[] = PAGE_FIELDS(&pawl__task_record);
const struct pawl__record pawl__serve_task_page_record =
    RECORD("TaskPage", struct pawl__serve_page_shape, task_page_fields);
static const struct pawl__field item_page_fields[] = PAGE_FIELDS(&pawl__item_record);
const struct pawl__record pawl__serve_item_page_record =
    RECORD("ItemPage", struct pawl__serve_page_shape, item_page_fields);
static const struct pawl__field checkpoint_page_fields[] = PAGE_FIELDS(&pawl__checkpoint_record);
const struct pawl__record pawl__serve_checkpoint_page_record =
    RECORD("CheckpointPage", struct pawl__serve_page_shape, checkpoint_page_fields);
