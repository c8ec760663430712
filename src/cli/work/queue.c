#include "cli/work/queue.h"

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/uuid.h"
#include "cli/work/work.h"

/* The one of --task, or a new one. */
pawl_status pawl__cli_queue_name_task(struct work_queue *queue, pawl_error *reterr)
{
    struct pawl__uuid uuid;

    if (queue->task_id[0] != '\0') {
        return PAWL_OK;
    }
    TRY(pawl__uuid_next(pawl__uuid_process(), &uuid, reterr));
    pawl__uuid_text(&uuid, queue->task_id);
    return PAWL_OK;
}

/* Refuses items that cannot be in a new task: an item that exists already belongs to another one. */
static pawl_status check_ids(struct work_queue *queue,
                             const pawl_submission *item,
                             pawl_error *reterr)
{
    pawl_item *found = NULL;

    if (item->work_item_id.len > 0) {
        pawl_status status = pawl_work_get(queue->work, item->work_item_id, &found, reterr);
        pawl_item_free(found);
        if (status != PAWL_NOT_FOUND) {
            return status != PAWL_OK ? status
                                     : pawl__fail(reterr,
                                                  PAWL_CONFLICT,
                                                  "'%.*s' is there with another task",
                                                  VIEW_ARGS(item->work_item_id));
        }
    }
    if (item->after_count == 0) {
        return PAWL_OK;
    }
    pawl_status status = pawl_work_get(queue->work, item->after[0], &found, reterr);
    pawl_item_free(found);
    return status != PAWL_OK ? pawl__fail_context(reterr, status, "after")
                             : pawl__fail(reterr,
                                          PAWL_INVALID,
                                          "after: '%.*s' is an item of another task",
                                          VIEW_ARGS(item->after[0]));
}

static pawl_status make_task(struct work_queue *queue, pawl_error *reterr)
{
    const pawl_task task = {
        .size = sizeof(pawl_task),
        .task_id = pawl_view_of(queue->task_id),
        .title = queue->title.len > 0 ? queue->title : pawl_view_of(queue->task_id),
    };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];

    return pawl_task_create(queue->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, reterr);
}

static pawl_status put(struct work_queue *queue, const struct work_batch *batch, pawl_error *reterr)
{
    return pawl_work_submit(queue->work, batch->items, batch->count, batch->results, reterr);
}

/* The task does not exist, or did not a moment ago. It is created only if that is all the store objects to:
 * refused items leave no empty task. */
static pawl_status put_in_new_task(struct work_queue *queue,
                                   const struct work_batch *batch,
                                   pawl_error *reterr)
{
    pawl_status status = put(queue, batch, reterr);

    if (status != PAWL_NOT_FOUND) {
        return status;
    }
    TRY(check_ids(queue, &batch->items[0], reterr));
    TRY(make_task(queue, reterr));
    return put(queue, batch, reterr);
}

pawl_status pawl__cli_queue_add(struct work_queue *queue,
                                const struct work_batch *batch,
                                pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    if (!queue->task_is_there) {
        status = pawl__cli_work_check_task(queue->work, pawl_view_of(queue->task_id), reterr);
    }
    if (status == PAWL_OK) {
        status = put(queue, batch, reterr);
    } else if (status == PAWL_NOT_FOUND) {
        status = put_in_new_task(queue, batch, reterr);
    }
    queue->task_is_there = queue->task_is_there || status == PAWL_OK;
    return status;
}
