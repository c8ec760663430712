/* Tasks: making, showing and cancelling them. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

static struct node_work *work_of(void *context)
{
    return ((struct pawl__serve_node *)context)->work;
}

static void answer_task(struct pawl__http_request *request,
                        pawl_work *store,
                        pawl_view task_id,
                        unsigned code)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_task *task = NULL;
    char *json = NULL;
    size_t len = 0;
    pawl_status status = pawl_task_get(store, task_id, &task, &error);

    if (status == PAWL_OK) {
        status = pawl_task_to_json(task, &json, &len, &error);
    }
    pawl_task_free(task);
    if (status == PAWL_OK) {
        pawl__http_answer_json(request, code, json, len);
    } else {
        pawl__serve_work_fail(request, &error);
    }
}

/* --- making one --- */

static pawl_status read_task(const struct pawl__json_node *root,
                             struct pawl__buf *metadata,
                             pawl_task *task,
                             pawl_error *reterr)
{
    pawl_status status =
        pawl__serve_work_read_name(pawl__json_optional(root, "task_id"), &task->task_id, reterr);

    task->title = task->task_id;
    if (status == PAWL_OK) {
        status = pawl__json_text(pawl__json_optional(root, "title"), &task->title, reterr);
    }
    return status == PAWL_OK
               ? pawl__serve_work_read_json(root, "metadata", metadata, &task->metadata, reterr)
               : status;
}

/* Two who make it at the same time are both told that it is new. */
static pawl_status create(pawl_work *store,
                          const pawl_task *task,
                          char ret_id[PAWL_WORK_NAME_BYTES_MAX + 1],
                          bool *ret_new,
                          pawl_error *reterr)
{
    pawl_task *there = NULL;
    pawl_status status = task->task_id.len == 0
                             ? PAWL_NOT_FOUND
                             : pawl_task_get(store, task->task_id, &there, reterr);

    *ret_new = status == PAWL_NOT_FOUND;
    pawl_task_free(there);
    return status == PAWL_OK || status == PAWL_NOT_FOUND
               ? pawl_task_create(store, task, ret_id, reterr)
               : status;
}

void pawl__serve_work_task_create(struct pawl__http_request *request, void *context)
{
    static const char *const names[] = { "metadata", "task_id", "title" };
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };
    AUTO(pawl__buf_done) struct pawl__buf metadata = BUF_INIT(SIZE_MAX / 2);
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;
    pawl_task task = { .set_by_user = false };
    bool is_new = false;
    pawl_status status = pawl__serve_work_body(request, names, COUNT_OF(names), &body, &error);

    if (status == PAWL_OK) {
        status = read_task(&body.root, &metadata, &task, &error);
    }
    if (status == PAWL_OK) {
        status = pawl__serve_work_find(work_of(context), NODE_WORK_TO_CREATE, &store, &error);
    }
    if (status == PAWL_OK) {
        status = create(store, &task, id, &is_new, &error);
    }
    if (status == PAWL_OK) {
        answer_task(request, store, pawl_view_of(id), is_new ? 201 : 200);
    } else {
        pawl__serve_work_fail(request, &error);
    }
}

/* --- one task --- */

void pawl__serve_work_task(struct pawl__http_request *request, void *context)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;

    if (pawl__serve_work_find(work_of(context), NODE_WORK_THAT_EXISTS, &store, &error) == PAWL_OK) {
        answer_task(request, store, pawl__http_part(request, "task"), 200);
    } else {
        pawl__serve_work_fail(request, &error);
    }
}

void pawl__serve_work_task_cancel(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(NODE_SHORT_ANSWER);
    pawl_view task_id = pawl__http_part(request, "task");
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;
    uint64_t failed = 0;
    pawl_status status = pawl__serve_work_empty_body(request, &error);

    if (status == PAWL_OK) {
        status = pawl__serve_work_find(work_of(context), NODE_WORK_THAT_EXISTS, &store, &error);
    }
    if (status == PAWL_OK) {
        status = pawl_task_cancel(store, task_id, &failed, &error);
    }
    if (status != PAWL_OK) {
        pawl__serve_work_fail(request, &error);
        return;
    }
    struct pawl__object object = pawl__object_start(&body);
    pawl__object_text(&object, "task_id", task_id);
    pawl__object_integer(&object, "failed_items", (int64_t)failed);
    pawl__object_end(&object);
    pawl__buf_add_char(&body, '\n');
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}
