/* Tasks, items, checkpoints and what recovery finds, as JSON: one form for the command line and the node. */
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "records/work.h"
#include "work/core/copy.h"

#define JSON_BYTES_MAX (SIZE_MAX / 2)

/* --- what recovery finds --- */

static pawl_status check_recovery(const pawl_recovery *recovery, pawl_error *reterr)
{
    NEED(recovery->task, reterr);
    TRY(pawl__record_check(&pawl__recovery_record, recovery, reterr));
    if (recovery->key_count > 0) {
        NEED(recovery->keys, recovery->responses, reterr);
    }
    for (size_t i = 0; i < recovery->key_count; i++) {
        TRY(pawl__check_view(recovery->keys[i], "key", reterr));
        TRY(pawl__check_view(recovery->responses[i], "response", reterr));
    }
    return PAWL_OK;
}

static void add_answers(const pawl_recovery *recovery, struct pawl__object *object)
{
    pawl__object_key(object, "answers");
    pawl__buf_add_char(object->buf, '[');
    for (size_t i = 0; i < recovery->key_count; i++) {
        pawl__buf_add_text(object->buf, i == 0 ? "" : ",");
        struct pawl__object answer = pawl__object_start(object->buf);
        pawl__object_text(&answer, "idempotency_key", recovery->keys[i]);
        pawl__object_json(&answer, "response", recovery->responses[i]);
        pawl__object_end(&answer);
    }
    pawl__buf_add_char(object->buf, ']');
}

pawl_status pawl_recovery_to_json(const pawl_recovery *recovery,
                                  char **ret_json,
                                  size_t *ret_len,
                                  pawl_error *reterr)
{
    NEED(ret_json, recovery, reterr);
    pawl_recovery whole = { .size = sizeof(whole) };
    TRY(pawl__take_sized("recovery", recovery, &whole, sizeof(whole), reterr));
    TRY(check_recovery(&whole, reterr));
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);
    struct pawl__object object = pawl__object_start(&buf);
    pawl__record_write_fields(&pawl__recovery_record, &whole, &object);
    add_answers(&whole, &object);
    pawl__object_end(&object);
    return pawl__buf_hand_out(&buf, "the JSON", ret_json, ret_len, reterr);
}

/* --- one record --- */

static pawl_status to_json(const struct pawl__record *record,
                           const void *value,
                           char **ret_json,
                           size_t *ret_len,
                           pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);

    NEED(ret_json, reterr);
    TRY(pawl__record_check(record, value, reterr));
    pawl__record_write(record, value, &buf);
    return pawl__buf_hand_out(&buf, "the JSON", ret_json, ret_len, reterr);
}

pawl_status pawl_item_to_json(const pawl_item *item,
                              char **ret_json,
                              size_t *ret_len,
                              pawl_error *reterr)
{
    pawl_item whole = { .size = sizeof(whole) };

    NEED(item, reterr);
    TRY(pawl__take_sized("item", item, &whole, sizeof(whole), reterr));
    return to_json(&pawl__item_record, &whole, ret_json, ret_len, reterr);
}

pawl_status pawl_task_to_json(const pawl_task *task,
                              char **ret_json,
                              size_t *ret_len,
                              pawl_error *reterr)
{
    pawl_task whole = { .size = sizeof(whole) };

    NEED(task, reterr);
    TRY(pawl__take_sized("task", task, &whole, sizeof(whole), reterr));
    return to_json(&pawl__task_record, &whole, ret_json, ret_len, reterr);
}

pawl_status pawl_checkpoint_to_json(const pawl_checkpoint *checkpoint,
                                    char **ret_json,
                                    size_t *ret_len,
                                    pawl_error *reterr)
{
    pawl_checkpoint whole = { .size = sizeof(whole) };

    NEED(checkpoint, reterr);
    TRY(pawl__take_sized("checkpoint", checkpoint, &whole, sizeof(whole), reterr));
    return to_json(&pawl__checkpoint_record, &whole, ret_json, ret_len, reterr);
}

pawl_status pawl_work_change_to_json(const pawl_work_change *change,
                                     char **ret_json,
                                     size_t *ret_len,
                                     pawl_error *reterr)
{
    pawl_work_change whole = { .size = sizeof(whole) };

    NEED(change, reterr);
    TRY(pawl__take_sized("change", change, &whole, sizeof(whole), reterr));
    return to_json(&pawl__work_change_record, &whole, ret_json, ret_len, reterr);
}

/* --- an item with its history --- */

struct events {
    struct pawl__buf *buf;
    bool any;
};

static bool add_event(void *context, const pawl_item_event *event)
{
    struct events *events = context;

    pawl__buf_add_text(events->buf, events->any ? "," : "");
    events->any = true;
    pawl__record_write(&pawl__item_event_record, event, events->buf);
    return !events->buf->broken;
}

pawl_status pawl_work_show_json(
    pawl_work *work, pawl_view work_item_id, char **ret_json, size_t *ret_len, pawl_error *reterr)
{
    NEED(work, ret_json, reterr);
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(JSON_BYTES_MAX);
    struct events events = { .buf = &buf };
    pawl_item *item = NULL;
    TRY(pawl_work_get(work, work_item_id, &item, reterr));
    struct pawl__object object = pawl__object_start(&buf);
    pawl__record_write_fields(&pawl__item_record, item, &object);
    pawl_item_free(item);
    pawl__object_key(&object, "history");
    pawl__buf_add_char(&buf, '[');
    TRY(pawl_work_history(work, work_item_id, NULL, add_event, &events, reterr));
    pawl__buf_add_char(&buf, ']');
    pawl__object_end(&object);
    return pawl__buf_hand_out(&buf, "the JSON", ret_json, ret_len, reterr);
}
