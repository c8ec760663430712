/* Tasks in memory. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/backend.h"
#include "work/core/copy.h"
#include "work/items/decide.h"
#include "work/items/item.h"

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a task");
}

struct task_step {
    struct work_undo base;
    struct work_model *backend;
    pawl_task *old; /* NULL: there was none */
    pawl_task *new;
};

static void undo_task(struct work_undo *base)
{
    struct task_step *step = (struct task_step *)base;

    if (step->old == NULL) {
        (void)pawl__map_remove(step->backend->tasks, step->new->task_id);
    } else {
        /* The key is there: putting another value under it needs no memory. */
        pawl_status status =
            pawl__map_put(step->backend->tasks, step->new->task_id, step->old, NULL, NULL);
        REQUIRE(status == PAWL_OK);
    }
    pawl_task_free(step->new);
    free(step);
}

static void forget_task(struct work_undo *base)
{
    struct task_step *step = (struct task_step *)base;

    pawl_task_free(step->old);
    free(step);
}

static pawl_status replace(struct work_model *backend, const pawl_task *task, pawl_error *reterr)
{
    struct task_step *step = calloc(1, sizeof(*step));
    pawl_task *copy = NULL;
    void *old = NULL;
    pawl_status status =
        step == NULL ? no_memory(reterr) : pawl__work_copy_out_task(task, &copy, reterr);

    if (status == PAWL_OK) {
        status = pawl__map_put(backend->tasks, copy->task_id, copy, &old, reterr);
    }
    if (status != PAWL_OK) {
        pawl_task_free(copy);
        free(step);
        return status;
    }
    *step = (struct task_step){
        .base = { .undo = undo_task, .forget = forget_task },
        .backend = backend,
        .old = old,
        .new = copy,
    };
    work_model_remember(backend, &step->base);
    return PAWL_OK;
}

pawl_status work_model_tasks(struct work_backend *base,
                             const pawl_view *ids,
                             size_t count,
                             struct pawl__arena *arena,
                             struct work_task *ret_tasks,
                             pawl_error *reterr)
{
    (void)arena;
    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        const pawl_task *task = pawl__map_get(of(base)->tasks, ids[i]);
        ret_tasks[i].known = task != NULL;
        if (task != NULL) {
            ret_tasks[i].task = *task; /* texts stay until the transaction ends */
        }
    }
    return PAWL_OK;
}

pawl_status work_model_task_insert(struct work_backend *base,
                                   const struct work_now *now,
                                   const pawl_task *task,
                                   pawl_error *reterr)
{
    pawl_task stored = *task;

    stored.created_at_us = now->wall_us;
    stored.updated_at_us = now->wall_us;
    return replace(of(base), &stored, reterr);
}

pawl_status work_model_task_set(struct work_backend *base,
                                const struct work_now *now,
                                pawl_view task_id,
                                pawl_task_status status,
                                bool by_user,
                                pawl_error *reterr)
{
    const pawl_task *task = pawl__map_get(of(base)->tasks, task_id);

    if (task == NULL) {
        return PAWL_OK;
    }
    pawl_task changed = *task;
    changed.status = status;
    changed.set_by_user = by_user;
    changed.updated_at_us = now->wall_us;
    return replace(of(base), &changed, reterr);
}

/* --- from its items --- */

/* Counts the items of a task into it; true when one was ever claimed. */
static bool count_items(const struct work_model *backend, pawl_task *task)
{
    size_t cursor = 0;
    bool started = false;
    void *item;

    task->waiting = task->pending = task->in_progress = task->completed = task->failed = 0;
    while (pawl__map_next(backend->items, &cursor, NULL, &item)) {
        const struct work_row *row = &((struct work_model_item *)item)->row;
        uint64_t *counts[] = {
            [PAWL_ITEM_PENDING] = &task->pending,     [PAWL_ITEM_IN_PROGRESS] = &task->in_progress,
            [PAWL_ITEM_COMPLETED] = &task->completed, [PAWL_ITEM_FAILED] = &task->failed,
            [PAWL_ITEM_EXPIRED] = &task->pending,     [PAWL_ITEM_WAITING] = &task->waiting,
        };
        if (pawl__view_equal(row->item.task_id, task->task_id)) {
            ++*counts[row->item.status];
            started |= row->item.attempts > 0 || pawl__work_item_has_ended(row->item.status);
        }
    }
    return started;
}

static pawl_status derive_one(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view task_id,
                              uint64_t *derived,
                              pawl_error *reterr)
{
    const pawl_task *stored = pawl__map_get(of(base)->tasks, task_id);

    if (stored == NULL || stored->set_by_user) {
        return PAWL_OK;
    }
    pawl_task task = *stored;
    struct work_task_facts facts = { .started = count_items(of(base), &task) };
    facts.unfinished = task.waiting + task.pending + task.in_progress > 0;
    facts.any = facts.unfinished || task.completed + task.failed > 0;
    facts.failed = task.failed > 0;
    pawl_task_status status = pawl__work_decide_task(task.status, &facts);
    if (status == task.status) {
        return PAWL_OK;
    }
    ++*derived;
    return work_model_task_set(base, now, task_id, status, false, reterr);
}

pawl_status work_model_derive(struct work_backend *base,
                              const struct work_now *now,
                              const pawl_view *task_ids,
                              size_t count,
                              pawl_error *reterr)
{
    uint64_t derived = 0;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = derive_one(base, now, task_ids[i], &derived, reterr);
    }
    return status;
}

pawl_status work_model_settle(struct work_backend *base,
                              const struct work_now *now,
                              size_t count,
                              uint64_t *ret_settled,
                              pawl_error *reterr)
{
    size_t cursor = 0;
    void *task;
    pawl_status status = PAWL_OK;

    *ret_settled = 0;
    while (status == PAWL_OK && *ret_settled < count
           && pawl__map_next(of(base)->tasks, &cursor, NULL, &task)) {
        status = derive_one(base, now, ((pawl_task *)task)->task_id, ret_settled, reterr);
    }
    return status;
}

/* --- reading --- */

static int by_creation(const void *a, const void *b)
{
    const pawl_task *one = *(pawl_task *const *)a;
    const pawl_task *other = *(pawl_task *const *)b;

    if (one->created_at_us != other->created_at_us) {
        return one->created_at_us < other->created_at_us ? -1 : 1;
    }
    return pawl__work_view_order(one->task_id, other->task_id);
}

static int by_id(const void *a, const void *b)
{
    return pawl__work_view_order((*(pawl_task *const *)a)->task_id,
                                 (*(pawl_task *const *)b)->task_id);
}

static bool is_asked_for(const struct work_task_query *query, const pawl_task *task)
{
    return (query->id.len == 0 || pawl__view_equal(query->id, task->task_id))
           && (query->status == NULL || *query->status == task->status)
           && (!query->by_id || pawl__work_view_order(query->from_id, task->task_id) <= 0);
}

/* Copies, so that `visit` may call whatever it likes. */
static pawl_status copy_tasks(struct work_model *backend,
                              const struct work_task_query *query,
                              pawl_task ***ret_tasks,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    pawl_task **copies = calloc(pawl__map_count(backend->tasks) + 1, sizeof(*copies));
    pawl_status result = copies == NULL ? no_memory(reterr) : PAWL_OK;
    size_t count = 0;
    size_t cursor = 0;
    void *found;

    while (result == PAWL_OK && pawl__map_next(backend->tasks, &cursor, NULL, &found)) {
        pawl_task task = *(pawl_task *)found;
        if (!is_asked_for(query, &task)) {
            continue;
        }
        (void)count_items(backend, &task);
        result = pawl__work_copy_out_task(&task, &copies[count], reterr);
        count += result == PAWL_OK;
    }
    *ret_tasks = copies;
    *ret_count = count;
    return result;
}

pawl_status work_model_task_read(struct work_backend *base,
                                 const struct work_task_query *query,
                                 pawl_task_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    pawl_task **tasks = NULL;
    size_t count = 0;

    pawl__lock(&of(base)->lock);
    pawl_status result = copy_tasks(of(base), query, &tasks, &count, reterr);
    pawl__unlock(&of(base)->lock);
    bool more = result == PAWL_OK;
    if (count > 1) {
        qsort(tasks, count, sizeof(*tasks), query->by_id ? by_id : by_creation);
    }
    for (size_t i = 0; i < count; i++) {
        more = more && (query->limit == 0 || i < query->limit) && visit(context, tasks[i]);
        pawl_task_free(tasks[i]);
    }
    free(tasks);
    return result;
}
