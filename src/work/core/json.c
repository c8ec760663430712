/* Tasks, items, checkpoints and what recovery finds, as JSON: one form for the command line and the node. */
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/json/object.h"
#include "work/checkpoints/checkpoint.h"
#include "work/checkpoints/evidence.h"
#include "work/core/copy.h"
#include "work/items/item.h"

#define JSON_BYTES_MAX (SIZE_MAX / 2)

/* --- names --- */

const char *pawl_item_status_name(pawl_item_status status)
{
    return (size_t)status <= PAWL_ITEM_WAITING ? pawl__work_item_status_text(status) : "unknown";
}

const char *pawl_task_status_name(pawl_task_status status)
{
    return (size_t)status <= PAWL_TASK_CANCELLED ? pawl__work_task_status_text(status) : "unknown";
}

const char *pawl_checkpoint_type_name(pawl_checkpoint_type type)
{
    return (size_t)type <= PAWL_CHECKPOINT_ERROR_BOUNDARY ? pawl__work_checkpoint_type_text(type)
                                                          : "unknown";
}

static const char *evidence_kind_name(pawl_evidence_kind kind)
{
    return (size_t)kind <= PAWL_EVIDENCE_ROW_EXISTS ? pawl__work_evidence_kind_text(kind)
                                                    : "unknown";
}

pawl_status pawl_item_status_parse(pawl_view name, pawl_item_status *ret_status, pawl_error *reterr)
{
    NEED(ret_status, reterr);
    NEED_VIEW(name, reterr);
    return pawl__work_item_status_parse(name, ret_status)
               ? PAWL_OK
               : pawl__fail(
                   reterr,
                   PAWL_INVALID,
                   "not a status: pending, in_progress, completed, failed, expired or waiting");
}

pawl_status pawl_task_status_parse(pawl_view name, pawl_task_status *ret_status, pawl_error *reterr)
{
    NEED(ret_status, reterr);
    NEED_VIEW(name, reterr);
    return pawl__work_task_status_parse(name, ret_status)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "not a status: pending, running, succeeded, failed or cancelled");
}

pawl_status pawl_checkpoint_type_parse(pawl_view name,
                                       pawl_checkpoint_type *ret_type,
                                       pawl_error *reterr)
{
    NEED(ret_type, reterr);
    NEED_VIEW(name, reterr);
#define NAME_(name_, text) " " #text
    return pawl__work_checkpoint_type_parse(name, ret_type)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "not a type of checkpoint: one of" PAWL_CHECKPOINT_TYPES(NAME_));
#undef NAME_
}

/* --- objects --- */

static void add_item_fields(struct pawl__object *object, const pawl_item *item)
{
    pawl__object_text(object, "work_item_id", item->work_item_id);
    pawl__object_text(object, "task_id", item->task_id);
    pawl__object_text(object, "work_type", item->work_type);
    pawl__object_text(object, "status", pawl_view_of(pawl_item_status_name(item->status)));
    pawl__object_integer(object, "priority", item->priority);
    pawl__object_integer(object, "retry_count", item->retry_count);
    pawl__object_integer(object, "max_retries", item->max_retries);
    pawl__object_integer(object, "attempts", item->attempts);
    pawl__object_integer(object, "token", (int64_t)item->token);
    pawl__object_text(object, "lease_holder", item->lease_holder);
    pawl__object_json(object, "input_data", item->input_data);
    pawl__object_json(object, "output_data", item->output_data);
    pawl__object_text(object, "error_message", item->error_message);
    pawl__object_time(object, "created_at", item->created_at_us);
    pawl__object_time(object, "started_at", item->started_at_us);
    pawl__object_time(object, "completed_at", item->completed_at_us);
    pawl__object_time(object, "updated_at", item->updated_at_us);
    pawl__object_time(object, "lease_acquired_at", item->lease_acquired_at_us);
    pawl__object_time(object, "lease_expires_at", item->lease_expires_at_us);
    pawl__object_time(object, "heartbeat_at", item->heartbeat_at_us);
    pawl__object_time(object, "due_at", item->due_at_us);
}

static void add_item(struct pawl__buf *buf, const void *record)
{
    const pawl_item *item = record;
    struct pawl__object object = pawl__object_start(buf);

    add_item_fields(&object, item);
    pawl__object_end(&object);
}

struct events {
    struct pawl__buf *buf;
    bool any;
};

static bool add_event(void *context, const pawl_item_event *event)
{
    struct events *events = context;

    pawl__buf_add_text(events->buf, events->any ? "," : "");
    events->any = true;
    struct pawl__object object = pawl__object_start(events->buf);
    pawl__object_time(&object, "at", event->at_us);
    pawl__object_text(&object, "from", pawl_view_of(event->from));
    pawl__object_text(&object, "to", pawl_view_of(event->to));
    pawl__object_integer(&object, "token", (int64_t)event->token);
    pawl__object_integer(&object, "retry_count", event->retry_count);
    pawl__object_text(&object, "lease_holder", event->lease_holder);
    pawl__object_text(&object, "message", event->message);
    pawl__object_end(&object);
    return !events->buf->broken;
}

static void add_task(struct pawl__buf *buf, const void *record)
{
    const pawl_task *task = record;
    struct pawl__object object = pawl__object_start(buf);

    pawl__object_text(&object, "task_id", task->task_id);
    pawl__object_text(&object, "title", task->title);
    pawl__object_text(&object, "status", pawl_view_of(pawl_task_status_name(task->status)));
    pawl__object_bool(&object, "set_by_user", task->set_by_user);
    pawl__object_integer(&object, "waiting", (int64_t)task->waiting);
    pawl__object_integer(&object, "pending", (int64_t)task->pending);
    pawl__object_integer(&object, "in_progress", (int64_t)task->in_progress);
    pawl__object_integer(&object, "completed", (int64_t)task->completed);
    pawl__object_integer(&object, "failed", (int64_t)task->failed);
    pawl__object_json(&object, "metadata", task->metadata);
    pawl__object_time(&object, "created_at", task->created_at_us);
    pawl__object_time(&object, "updated_at", task->updated_at_us);
    pawl__object_end(&object);
}

typedef void add_nth(struct pawl__buf *buf, const void *owner, size_t index);

static void add_list(struct pawl__buf *buf, add_nth *add, const void *owner, size_t count)
{
    pawl__buf_add_char(buf, '[');
    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_text(buf, i == 0 ? "" : ",");
        add(buf, owner, i);
    }
    pawl__buf_add_char(buf, ']');
}

static void add_evidence(struct pawl__buf *buf, const void *checkpoint, size_t index)
{
    const pawl_evidence *evidence = &((const pawl_checkpoint *)checkpoint)->evidence[index];
    struct pawl__object object = pawl__object_start(buf);

    pawl__object_text(&object, "kind", pawl_view_of(evidence_kind_name(evidence->kind)));
    pawl__object_text(&object, "subject", evidence->subject);
    pawl__object_text(&object, "expected", evidence->expected);
    pawl__object_end(&object);
}

static void add_checkpoint(struct pawl__buf *buf, const void *record)
{
    const pawl_checkpoint *checkpoint = record;

    if (checkpoint == NULL) {
        pawl__buf_add_text(buf, "null");
        return;
    }
    struct pawl__object object = pawl__object_start(buf);
    pawl__object_text(&object, "checkpoint_id", checkpoint->checkpoint_id);
    pawl__object_text(&object, "task_id", checkpoint->task_id);
    pawl__object_text(&object, "work_item_id", checkpoint->work_item_id);
    pawl__object_text(
        &object, "checkpoint_type", pawl_view_of(pawl_checkpoint_type_name(checkpoint->type)));
    pawl__object_integer(&object, "sequence_number", checkpoint->sequence_number);
    pawl__object_json(&object, "snapshot_data", checkpoint->snapshot_data);
    pawl__object_json(&object, "metadata", checkpoint->metadata);
    pawl__object_bool(&object, "verified", checkpoint->verified);
    pawl__object_key(&object, "evidence");
    add_list(buf, add_evidence, checkpoint, checkpoint->evidence_count);
    pawl__object_time(&object, "created_at", checkpoint->created_at_us);
    pawl__object_end(&object);
}

static void add_recovered_item(struct pawl__buf *buf, const void *recovery, size_t index)
{
    add_item(buf, &((const pawl_recovery *)recovery)->items[index]);
}

static void add_answer(struct pawl__buf *buf, const void *owner, size_t index)
{
    const pawl_recovery *recovery = owner;
    struct pawl__object object = pawl__object_start(buf);

    pawl__object_text(&object, "idempotency_key", recovery->keys[index]);
    pawl__object_json(&object, "response", recovery->responses[index]);
    pawl__object_end(&object);
}

static void add_recovery(struct pawl__buf *buf, const void *record)
{
    const pawl_recovery *recovery = record;
    struct pawl__object object = pawl__object_start(buf);

    pawl__object_key(&object, "task");
    add_task(buf, recovery->task);
    pawl__object_key(&object, "resume");
    add_checkpoint(buf, recovery->resume);
    pawl__object_key(&object, "iteration_end");
    add_checkpoint(buf, recovery->iteration_end);
    pawl__object_integer(&object, "passed_over", (int64_t)recovery->passed_over);
    pawl__object_key(&object, "items");
    add_list(buf, add_recovered_item, recovery, recovery->item_count);
    pawl__object_key(&object, "answers");
    add_list(buf, add_answer, recovery, recovery->key_count);
    pawl__object_bool(&object, "more", recovery->more);
    pawl__object_end(&object);
}

/* --- checking what a caller gives --- */

static pawl_status check_texts(const struct work_texts *texts,
                               const void *record,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < texts->count; i++) {
        const struct work_text *text = &texts->texts[i];
        const pawl_view *view = (const pawl_view *)((const char *)record + text->offset);
        TRY(pawl__check_view(*view, text->name, reterr));
    }
    return PAWL_OK;
}

static pawl_status check_item(const void *record, pawl_error *reterr)
{
    const pawl_item *item = record;

    NEED(item, reterr);
    return check_texts(&pawl__work_item_texts, item, reterr);
}

static pawl_status check_task(const void *record, pawl_error *reterr)
{
    const pawl_task *task = record;

    NEED(task, reterr);
    return check_texts(&pawl__work_task_texts, task, reterr);
}

static pawl_status check_checkpoint(const void *record, pawl_error *reterr)
{
    const pawl_checkpoint *checkpoint = record;

    NEED(checkpoint, reterr);
    TRY(check_texts(&pawl__work_checkpoint_texts, checkpoint, reterr));
    if (checkpoint->evidence_count > 0) {
        NEED(checkpoint->evidence, reterr);
    }
    for (size_t i = 0; i < checkpoint->evidence_count; i++) {
        TRY(check_texts(&pawl__work_evidence_texts, &checkpoint->evidence[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status check_keys(const pawl_recovery *recovery, pawl_error *reterr)
{
    if (recovery->key_count > 0) {
        NEED(recovery->keys, reterr);
        NEED(recovery->responses, reterr);
    }
    for (size_t i = 0; i < recovery->key_count; i++) {
        TRY(pawl__check_view(recovery->keys[i], "key", reterr));
        TRY(pawl__check_view(recovery->responses[i], "response", reterr));
    }
    return PAWL_OK;
}

static pawl_status check_recovery(const void *record, pawl_error *reterr)
{
    const pawl_recovery *recovery = record;

    NEED(recovery, reterr);
    TRY(check_task(recovery->task, reterr));
    if (recovery->resume != NULL) {
        TRY(check_checkpoint(recovery->resume, reterr));
    }
    if (recovery->iteration_end != NULL) {
        TRY(check_checkpoint(recovery->iteration_end, reterr));
    }
    if (recovery->item_count > 0) {
        NEED(recovery->items, reterr);
    }
    for (size_t i = 0; i < recovery->item_count; i++) {
        TRY(check_item(&recovery->items[i], reterr));
    }
    return check_keys(recovery, reterr);
}

/* --- the calls --- */

typedef pawl_status check_record(const void *record, pawl_error *reterr);
typedef void add_record(struct pawl__buf *buf, const void *record);

static pawl_status to_json(check_record *check,
                           add_record *add,
                           const void *record,
                           char **ret_json,
                           size_t *ret_len,
                           pawl_error *reterr)
{
    NEED(ret_json, reterr);
    TRY(check(record, reterr));
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);
    add(&buf, record);
    return pawl__buf_hand_out(&buf, "the JSON", ret_json, ret_len, reterr);
}

pawl_status pawl_item_to_json(const pawl_item *item,
                              char **ret_json,
                              size_t *ret_len,
                              pawl_error *reterr)
{
    return to_json(check_item, add_item, item, ret_json, ret_len, reterr);
}

pawl_status pawl_task_to_json(const pawl_task *task,
                              char **ret_json,
                              size_t *ret_len,
                              pawl_error *reterr)
{
    return to_json(check_task, add_task, task, ret_json, ret_len, reterr);
}

pawl_status pawl_checkpoint_to_json(const pawl_checkpoint *checkpoint,
                                    char **ret_json,
                                    size_t *ret_len,
                                    pawl_error *reterr)
{
    return to_json(check_checkpoint, add_checkpoint, checkpoint, ret_json, ret_len, reterr);
}

pawl_status pawl_recovery_to_json(const pawl_recovery *recovery,
                                  char **ret_json,
                                  size_t *ret_len,
                                  pawl_error *reterr)
{
    return to_json(check_recovery, add_recovery, recovery, ret_json, ret_len, reterr);
}

pawl_status pawl_work_show_json(
    pawl_work *work, pawl_view work_item_id, char **ret_json, size_t *ret_len, pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(ret_json, reterr);
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);
    struct events events = { .buf = &buf };
    pawl_item *item = NULL;
    TRY(pawl_work_get(work, work_item_id, &item, reterr));
    struct pawl__object object = pawl__object_start(&buf);
    add_item_fields(&object, item);
    pawl_item_free(item);
    pawl__object_key(&object, "history");
    pawl__buf_add_char(&buf, '[');
    TRY(pawl_work_history(work, work_item_id, add_event, &events, reterr));
    pawl__buf_add_char(&buf, ']');
    pawl__object_end(&object);
    return pawl__buf_hand_out(&buf, "the JSON", ret_json, ret_len, reterr);
}
