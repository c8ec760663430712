/* Routes of items: submit, show, cancel. */
#include <stdlib.h>

#include "base/core/arena.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

/* --- submitting --- */

struct batch {
    json_t *json;
    struct pawl__arena arena;
    pawl_submission *items;
    pawl_submit_result *results;
    size_t count;
};

static void batch_done(struct batch *batch)
{
    json_decref(batch->json);
    pawl__arena_done(&batch->arena);
    free(batch->items);
    free(batch->results);
}

static pawl_status read_after(struct batch *batch,
                              const struct pawl__json_node *object,
                              pawl_submission *item,
                              pawl_error *reterr)
{
    struct pawl__json_node given = pawl__json_optional(object, "after");
    struct pawl__json_node list = { .value = NULL };

    TRY(pawl__json_array(given, &list, reterr));
    size_t count = list.value != NULL ? pawl__json_count(&list) : 0;
    if (count == 0) {
        return PAWL_OK;
    }
    if (count > PAWL_WORK_AFTER_MAX) {
        return pawl__json_fail(&given, reterr, "more than %d items", PAWL_WORK_AFTER_MAX);
    }
    pawl_view *after = pawl__arena_take(&batch->arena, count * sizeof(*after));
    if (after == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
    }
    for (size_t i = 0; i < count; i++) {
        after[i] = (pawl_view){ NULL, 0 };
        TRY(pawl__serve_work_read_name(pawl__json_item(&list, i), &after[i], reterr));
    }
    item->after = after;
    item->after_count = count;
    return PAWL_OK;
}

static pawl_status read_input(struct batch *batch,
                              const struct pawl__json_node *object,
                              pawl_submission *item,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(SIZE_MAX / 2);
    pawl_view input;

    TRY(pawl__serve_work_read_json(object, "input_data", &text, &input, reterr));
    return input.len > 0 && !pawl__arena_copy(&batch->arena, input, &item->input_data)
               ? pawl__fail(reterr, PAWL_NOMEM, "no memory for items")
               : PAWL_OK;
}

static pawl_status read_numbers(const struct pawl__json_node *object,
                                pawl_submission *item,
                                pawl_error *reterr)
{
    static const int64_t delays[2] = { 0, NODE_DELAY_MS_MAX };
    int64_t priority = 0;
    int64_t retries = -1;

    TRY(pawl__json_int(pawl__json_optional(object, "priority"),
                       PAWL_WORK_PRIORITY_MIN,
                       PAWL_WORK_PRIORITY_MAX,
                       &priority,
                       reterr));
    TRY(pawl__json_int(
        pawl__json_optional(object, "max_retries"), 0, PAWL_WORK_RETRIES_MAX, &retries, reterr));
    item->priority = (int32_t)priority;
    item->max_retries = (int32_t)retries;
    return pawl__serve_work_read_ms(object, "delay", delays, &item->delay_ms, reterr);
}

static pawl_status read_item(struct batch *batch,
                             struct pawl__json_node node,
                             pawl_submission *item,
                             pawl_error *reterr)
{
    static const char *const names[] = { "after",    "delay",   "input_data",   "max_retries",
                                         "priority", "task_id", "work_item_id", "work_type" };
    struct pawl__json_node object;

    *item = (pawl_submission)PAWL_SUBMISSION_INIT;
    TRY(pawl__json_object(node, &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(pawl__serve_work_read_name(pawl__json_key(&object, "task_id"), &item->task_id, reterr));
    TRY(pawl__serve_work_read_name(pawl__json_key(&object, "work_type"), &item->work_type, reterr));
    TRY(pawl__serve_work_read_name(
        pawl__json_optional(&object, "work_item_id"), &item->work_item_id, reterr));
    TRY(read_numbers(&object, item, reterr));
    TRY(read_input(batch, &object, item, reterr));
    return read_after(batch, &object, item, reterr);
}

static pawl_status make_room(struct batch *batch, size_t count, pawl_error *reterr)
{
    batch->count = count;
    batch->items = calloc(count + 1, sizeof(*batch->items));
    batch->results = calloc(count + 1, sizeof(*batch->results));
    return batch->items == NULL || batch->results == NULL
               ? pawl__fail(reterr, PAWL_NOMEM, "no memory for items")
               : PAWL_OK;
}

static pawl_status read_list(struct batch *batch,
                             const struct pawl__json_node *root,
                             pawl_error *reterr)
{
    static const char *const names[] = { "items" };
    struct pawl__json_node list = { .value = NULL };
    struct pawl__json_node given = pawl__json_key(root, "items");

    TRY(pawl__json_only(root, names, COUNT_OF(names), reterr));
    TRY(pawl__json_array(given, &list, reterr));
    size_t count = pawl__json_count(&list);
    if (count == 0 || count > PAWL_WORK_BATCH_MAX) {
        return pawl__json_fail(
            &given, reterr, "%zu items, 1 to %d are allowed", count, PAWL_WORK_BATCH_MAX);
    }
    TRY(make_room(batch, count, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(read_item(batch, pawl__json_item(&list, i), &batch->items[i], reterr));
    }
    return PAWL_OK;
}

/* One item, or {"items": [...]}. */
static pawl_status read_batch(const struct pawl__http_request *request,
                              struct batch *batch,
                              pawl_error *reterr)
{
    struct pawl__json_node root;

    TRY(pawl__json_parse(pawl__http_body(request), SIZE_MAX / 2, &batch->json, reterr));
    TRY(pawl__json_object(pawl__json_root(batch->json, ""), &root, reterr));
    if (pawl__json_optional(&root, "items").value != NULL) {
        return read_list(batch, &root, reterr);
    }
    TRY(make_room(batch, 1, reterr));
    return read_item(batch, root, &batch->items[0], reterr);
}

static void answer_batch(struct pawl__http_request *request, const struct batch *batch)
{
    struct pawl__buf body = BUF_INIT(SIZE_MAX / 2);
    bool any_new = false;

    pawl__buf_add_text(&body, "{\"items\":[");
    for (size_t i = 0; i < batch->count; i++) {
        pawl__buf_add_text(&body, i == 0 ? "" : ",");
        struct pawl__object object = pawl__object_start(&body);
        pawl__object_text(&object, "work_item_id", pawl_view_of(batch->results[i].work_item_id));
        pawl__object_bool(&object, "duplicate", batch->results[i].duplicate);
        pawl__object_end(&object);
        any_new = any_new || !batch->results[i].duplicate;
    }
    pawl__buf_add_text(&body, "]}\n");
    pawl__http_answer_buf(request, any_new ? 201 : 200, HTTP_JSON, &body);
}

static pawl_status submit(struct pawl__http_request *request,
                          struct node_work *work,
                          pawl_error *reterr)
{
    AUTO(batch_done) struct batch batch = { .arena = ARENA_INIT };
    pawl_work *store = NULL;

    TRY(read_batch(request, &batch, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_TO_CREATE, &store, reterr));
    TRY(pawl_work_submit(store, batch.items, batch.count, batch.results, reterr));
    answer_batch(request, &batch);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_submit, submit)

/* --- one item --- */

static pawl_status show(struct pawl__http_request *request,
                        struct node_work *work,
                        pawl_error *reterr)
{
    pawl_work *store = NULL;
    char *json = NULL;
    size_t len = 0;

    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_show_json(store, pawl__http_part(request, "item"), &json, &len, reterr));
    pawl__http_answer_json(request, 200, json, len);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_item, show)

static pawl_status cancel(struct pawl__http_request *request,
                          struct node_work *work,
                          pawl_error *reterr)
{
    pawl_work *store = NULL;

    TRY(pawl__serve_work_empty_body(request, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_cancel(store, pawl__http_part(request, "item"), reterr));
    pawl__serve_work_status(request, PAWL_ITEM_FAILED);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_cancel, cancel)
