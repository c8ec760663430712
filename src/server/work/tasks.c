/* Routes of tasks: create, show, cancel. */
#include "base/core/error.h"
#include "server/work/records.h"
#include "server/work/work.h"

static pawl_status answer_task(struct pawl__serve_call *call,
                               pawl_work *store,
                               pawl_view task_id,
                               unsigned code,
                               pawl_error *reterr)
{
    AUTO(pawl_task_free_p) pawl_task *task = NULL;

    TRY(pawl_task_get(store, task_id, &task, reterr));
    pawl__serve_answer(call, code, task);
    return PAWL_OK;
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

pawl_status pawl__serve_work_task_create(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct new_task *body = call->body;
    const pawl_task task = { .size = sizeof(pawl_task),
                             .task_id = body->task_id,
                             .title = body->title.data == NULL ? body->task_id : body->title,
                             .metadata = body->metadata };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_work *store = NULL;
    bool created = false;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_TO_CREATE, &store, reterr));
    TRY(is_new(store, task.task_id, &created, reterr));
    TRY(pawl_task_create(store, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, reterr));
    return answer_task(call, store, pawl_view_of(id), created ? 201 : 200, reterr);
}

pawl_status pawl__serve_work_task(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct task_path *path = call->parameters;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    return answer_task(call, store, path->task, 200, reterr);
}

pawl_status pawl__serve_work_task_cancel(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct task_path *path = call->parameters;
    struct task_cancelled answer = { .task_id = path->task };
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_task_cancel(store, path->task, &answer.failed_items, reterr));
    pawl__serve_answer(call, 200, &answer);
    return PAWL_OK;
}
