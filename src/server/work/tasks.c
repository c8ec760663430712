/* Routes of tasks: create, show, cancel. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/json/object.h"
#include "server/node_internal.h"
#include "server/work/work.h"

static pawl_status answer_task(struct pawl__http_request *request,
                               pawl_work *store,
                               pawl_view task_id,
                               unsigned code,
                               pawl_error *reterr)
{
    AUTO(pawl_task_free_p) pawl_task *task = NULL;
    char *json = NULL;
    size_t len = 0;

    TRY(pawl_task_get(store, task_id, &task, reterr));
    TRY(pawl_task_to_json(task, &json, &len, reterr));
    pawl__http_answer_json(request, code, json, len);
    return PAWL_OK;
}

/* --- creating one --- */

static pawl_status read_task(const struct pawl__json_node *root,
                             struct pawl__buf *metadata,
                             pawl_task *task,
                             pawl_error *reterr)
{
    TRY(pawl__serve_work_read_name(pawl__json_optional(root, "task_id"), &task->task_id, reterr));
    task->title = task->task_id;
    TRY(pawl__json_text(pawl__json_optional(root, "title"), &task->title, reterr));
    return pawl__serve_work_read_json(root, "metadata", metadata, &task->metadata, reterr);
}

/* Two requests that create it at the same time may both get 201. */
static pawl_status is_new(pawl_work *store, pawl_view task_id, bool *ret_new, pawl_error *reterr)
{
    AUTO(pawl_task_free_p) pawl_task *there = NULL;
    pawl_status status =
        task_id.len == 0 ? PAWL_NOT_FOUND : pawl_task_get(store, task_id, &there, reterr);

    *ret_new = status == PAWL_NOT_FOUND;
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static pawl_status create(struct pawl__http_request *request,
                          struct node_work *work,
                          pawl_error *reterr)
{
    static const char *const names[] = { "metadata", "task_id", "title" };
    AUTO(pawl__serve_work_body_done) struct node_body body = { .json = NULL };
    AUTO(pawl__buf_done) struct pawl__buf metadata = BUF_INIT(SIZE_MAX / 2);
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_work *store = NULL;
    pawl_task task = { .set_by_user = false };
    bool created = false;

    TRY(pawl__serve_work_body(request, names, COUNT_OF(names), &body, reterr));
    TRY(read_task(&body.root, &metadata, &task, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_TO_CREATE, &store, reterr));
    TRY(is_new(store, task.task_id, &created, reterr));
    TRY(pawl_task_create(store, &task, id, reterr));
    return answer_task(request, store, pawl_view_of(id), created ? 201 : 200, reterr);
}
DEFINE_HANDLER(pawl__serve_work_task_create, create)

/* --- one task --- */

static pawl_status show(struct pawl__http_request *request,
                        struct node_work *work,
                        pawl_error *reterr)
{
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    return answer_task(request, store, pawl__http_part(request, "task"), 200, reterr);
}
DEFINE_HANDLER(pawl__serve_work_task, show)

static pawl_status cancel(struct pawl__http_request *request,
                          struct node_work *work,
                          pawl_error *reterr)
{
    struct pawl__buf body = BUF_INIT(NODE_SHORT_ANSWER);
    pawl_view task_id = pawl__http_part(request, "task");
    pawl_work *store = NULL;
    uint64_t failed = 0;

    TRY(pawl__serve_work_empty_body(request, reterr));
    TRY(pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_task_cancel(store, task_id, &failed, reterr));
    struct pawl__object object = pawl__object_start(&body);
    pawl__object_text(&object, "task_id", task_id);
    pawl__object_integer(&object, "failed_items", (int64_t)failed);
    pawl__object_end(&object);
    pawl__buf_add_char(&body, '\n');
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
    return PAWL_OK;
}
DEFINE_HANDLER(pawl__serve_work_task_cancel, cancel)
