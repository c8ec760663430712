/* Tasks in PostgreSQL.
 *
 * Two nodes that end the last two items of a task at the same moment do not see each other's change.
 * So a status is derived after the commit: whoever commits last sees all items ended. A look comes
 * with the commit itself; only when it finds a status that is not what it should be does a
 * transaction of its own lock the task, look again and set it. What is left behind by a node that
 * died in between is found by the sweep. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/log/log.h"
#include "work/items/decide.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum { SETTLE_MAX = 1000, SETTLE_TRIES = 3 };

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for tasks");
}

/* --- loading and setting --- */

static void read_task(const struct pawl__pg_rows *rows, size_t index, pawl_task *ret_task)
{
    *ret_task = (pawl_task){
        .task_id = pawl__pg_get_text(rows, index, 0),
        .title = pawl__pg_get_text(rows, index, 1),
        .set_by_user = pawl__view_is(pawl__pg_get_text(rows, index, 3), "user"),
        .created_at_us = pawl__pg_get_time(rows, index, 4),
        .updated_at_us = pawl__pg_get_time(rows, index, 5),
        .metadata = pawl__pg_get_text(rows, index, 6),
    };
    (void)!pawl__work_task_status_parse(pawl__pg_get_text(rows, index, 2), &ret_task->status);
}

struct task_load {
    const pawl_view *ids; /* ascending, as the rows are */
    size_t count;
    struct pawl__arena *arena;
    struct work_task *tasks;
};

static pawl_status keep_tasks(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    const struct task_load *load = context;
    size_t at = 0;

    for (size_t i = 0; i < rows->count; i++) {
        pawl_task task;
        read_task(rows, i, &task);
        while (at < load->count && !pawl__view_equal(load->ids[at], task.task_id)) {
            at++;
        }
        REQUIRE(at < load->count);
        task.task_id = load->ids[at];
        if (!pawl__arena_copy(load->arena, task.title, &task.title)
            || !pawl__arena_copy(load->arena, task.metadata, &task.metadata)) {
            return no_memory(reterr);
        }
        load->tasks[at] = (struct work_task){ .task = task, .known = true };
    }
    return PAWL_OK;
}

pawl_status pawl__work_pg_tasks(struct work_backend *base,
                                const pawl_view *ids,
                                size_t count,
                                struct pawl__arena *arena,
                                struct work_task *ret_tasks,
                                pawl_error *reterr)
{
    struct task_load load = { .ids = ids, .count = count, .arena = arena, .tasks = ret_tasks };

    for (size_t i = 0; i < count; i++) {
        ret_tasks[i].known = false;
    }
    return pawl__work_pg_ask(of(base),
                             WORK_PG_TASK_LOAD,
                             PG_ARGS(pawl__work_pg_ids(of(base), 0, ids, count)),
                             keep_tasks,
                             &load,
                             reterr);
}

pawl_status pawl__work_pg_task_insert(struct work_backend *base,
                                      const struct work_now *now,
                                      const pawl_task *task,
                                      pawl_error *reterr)
{
    const char *by = task->set_by_user ? "user" : "items";

    return pawl__work_pg_ask(
        of(base),
        WORK_PG_TASK_INSERT,
        PG_ARGS(pawl__pg_text(task->task_id),
                pawl__work_pg_optional(task->title),
                pawl__pg_text(pawl_view_of(pawl__work_task_status_text(task->status))),
                pawl__pg_text(pawl_view_of(by)),
                pawl__pg_time(now->wall_us),
                pawl__work_pg_optional(task->metadata)),
        NULL,
        NULL,
        reterr);
}

pawl_status pawl__work_pg_task_set(struct work_backend *base,
                                   const struct work_now *now,
                                   pawl_view task_id,
                                   pawl_task_status status,
                                   bool by_user,
                                   pawl_error *reterr)
{
    return pawl__work_pg_ask(
        of(base),
        WORK_PG_TASK_SET,
        PG_ARGS(pawl__pg_text(task_id),
                pawl__pg_text(pawl_view_of(pawl__work_task_status_text(status))),
                pawl__pg_text(pawl_view_of(by_user ? "user" : "items")),
                pawl__pg_time(now->wall_us)),
        NULL,
        NULL,
        reterr);
}

/* --- deriving --- */

pawl_status pawl__work_pg_touch(struct work_postgres *backend,
                                const pawl_view *task_ids,
                                size_t count,
                                pawl_error *reterr)
{
    if (backend->touched_count + count > backend->touched_room) {
        size_t room = 2 * (backend->touched_count + count);
        pawl_view *touched = realloc(backend->touched, room * sizeof(*touched));
        if (touched == NULL) {
            return no_memory(reterr);
        }
        backend->touched = touched;
        backend->touched_room = room;
    }
    for (size_t i = 0; i < count; i++) {
        pawl_view *at = &backend->touched[backend->touched_count];
        if (!pawl__arena_copy(&backend->touched_arena, task_ids[i], at)) {
            return no_memory(reterr);
        }
        backend->touched_count++;
    }
    return PAWL_OK;
}

void pawl__work_pg_forget_touched(struct work_postgres *backend)
{
    backend->touched_count = 0;
    pawl__arena_clear(&backend->touched_arena);
}

pawl_status pawl__work_pg_derive(struct work_backend *base,
                                 const struct work_now *now,
                                 const pawl_view *task_ids,
                                 size_t count,
                                 pawl_error *reterr)
{
    (void)now;
    return pawl__work_pg_touch(of(base), task_ids, count, reterr);
}

/* What the task of row `index` should be; true when it is not. */
static bool should_change(const struct pawl__pg_rows *rows,
                          size_t index,
                          pawl_task_status *ret_status)
{
    struct work_task_facts facts = {
        .unfinished = pawl__pg_get_bool(rows, index, 2),
        .started = pawl__pg_get_bool(rows, index, 3),
        .failed = pawl__pg_get_bool(rows, index, 4),
        .any = pawl__pg_get_bool(rows, index, 5),
    };
    pawl_task_status status;

    if (!pawl__work_task_status_parse(pawl__pg_get_text(rows, index, 1), &status)) {
        return false;
    }
    *ret_status = pawl__work_decide_task(status, &facts);
    return *ret_status != status;
}

pawl_status pawl__work_pg_saw_tasks(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr)
{
    struct work_pg_look *look = context;

    (void)reterr;
    look->seen = true;
    for (size_t i = 0; i < rows->count; i++) {
        pawl_task_status status;
        look->changes |= should_change(rows, i, &status);
    }
    return PAWL_OK;
}

/* Rows of tasks whose status is to be set, as two arrays. */
static void add_changes(struct work_postgres *backend,
                        const struct pawl__pg_rows *rows,
                        size_t count)
{
    pawl__pg_array_start(&backend->arrays[0], 'T', count);
    pawl__pg_array_start(&backend->arrays[1], 'T', count);
    for (size_t i = 0; i < rows->count; i++) {
        pawl_task_status status;
        if (should_change(rows, i, &status)) {
            pawl__pg_array_add_view(&backend->arrays[0], pawl__pg_get_text(rows, i, 0));
            pawl__pg_array_add_view(&backend->arrays[1],
                                    pawl_view_of(pawl__work_task_status_text(status)));
        }
    }
}

struct settling {
    struct work_postgres *backend;
    size_t changes;
};

static pawl_status on_facts(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct settling *settling = context;

    (void)reterr;
    settling->changes = 0;
    for (size_t i = 0; i < rows->count; i++) {
        pawl_task_status status;
        settling->changes += should_change(rows, i, &status);
    }
    add_changes(settling->backend, rows, settling->changes);
    return PAWL_OK;
}

/* Behind the tasks' locks nobody submits to them, and a second look sees all that was committed
 * before. */
static pawl_status settle_now(struct work_postgres *backend, pawl_error *reterr)
{
    struct settling settling = { .backend = backend };
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);
    struct pawl__pg_value ids =
        pawl__work_pg_ids(backend, 0, backend->touched, backend->touched_count);

    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(&trip, WORK_PG_TASK_LOCK, PG_ARGS(ids), NULL, NULL, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(
            &trip, WORK_PG_TASK_FACTS, PG_ARGS(ids), on_facts, &settling, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_clock(&trip, reterr);
    }
    status = pawl__work_pg_trip_end(&trip, status, reterr);
    if (status == PAWL_OK && settling.changes > 0) {
        status = pawl__pg_exec(backend->pg.writer,
                               WORK_PG_TASKS_SETTLE,
                               PG_ARGS(pawl__pg_array_value(&backend->arrays[0]),
                                       pawl__pg_array_value(&backend->arrays[1]),
                                       pawl__pg_time(backend->now.wall_us)),
                               NULL,
                               reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__pg_commit(backend->pg.writer, reterr);
    }
    if (status != PAWL_OK) {
        pawl__pg_rollback(backend->pg.writer);
    }
    return pawl__work_pg_outcome(status, reterr);
}

void pawl__work_pg_settle_touched(struct work_postgres *backend)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_CONFLICT;

    for (int i = 0; i < SETTLE_TRIES && status == PAWL_CONFLICT; i++) {
        status = settle_now(backend, &error);
    }
    if (status == PAWL_OK) {
        pawl__work_pg_forget_touched(backend);
    } else {
        LOG_DEBUG("the status of tasks is not up to date yet", LOG_TEXT("error", error.message));
    }
}

static pawl_status touch_found(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct settling *settling = context;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < rows->count && status == PAWL_OK; i++) {
        pawl_view id = pawl__pg_get_text(rows, i, 0);
        status = pawl__work_pg_touch(settling->backend, &id, 1, reterr);
    }
    settling->changes = rows->count;
    return status;
}

pawl_status pawl__work_pg_settle(struct work_backend *base,
                                 const struct work_now *now,
                                 size_t count,
                                 uint64_t *ret_settled,
                                 pawl_error *reterr)
{
    struct settling settling = { .backend = of(base) };
    pawl_status status =
        pawl__work_pg_ask(of(base),
                          WORK_PG_TASKS_UNSETTLED,
                          PG_ARGS(pawl__pg_i64((int64_t)MIN(count, (size_t)SETTLE_MAX))),
                          touch_found,
                          &settling,
                          reterr);

    (void)now;
    *ret_settled = settling.changes;
    return status;
}

/* --- reading --- */

struct task_walk {
    pawl_task_visit visit;
    void *context;
};

static bool show_task(void *context, const struct pawl__pg_rows *rows)
{
    const struct task_walk *walk = context;
    pawl_task task;

    read_task(rows, 0, &task);
    task.pending = (uint64_t)pawl__pg_get_i64(rows, 0, 7);
    task.in_progress = (uint64_t)pawl__pg_get_i64(rows, 0, 8);
    task.completed = (uint64_t)pawl__pg_get_i64(rows, 0, 9);
    task.failed = (uint64_t)pawl__pg_get_i64(rows, 0, 10);
    task.waiting = (uint64_t)pawl__pg_get_i64(rows, 0, 11);
    return walk->visit(walk->context, &task);
}

pawl_status pawl__work_pg_task_read(struct work_backend *base,
                                    const struct work_task_query *query,
                                    pawl_task_visit visit,
                                    void *context,
                                    pawl_error *reterr)
{
    struct task_walk walk = { .visit = visit, .context = context };
    const char *text = query->status == NULL ? "" : pawl__work_task_status_text(*query->status);
    bool limited = query->limit > 0 && query->limit <= INT64_MAX;

    if (query->by_id) {
        return pawl__work_pg_walk(
            base,
            WORK_PG_TASKS_PAGE,
            PG_ARGS(pawl__pg_text(query->from_id),
                    pawl__work_pg_optional(pawl_view_of(text)),
                    limited ? pawl__pg_i64((int64_t)query->limit) : pawl__pg_null()),
            show_task,
            &walk,
            reterr);
    }
    return pawl__work_pg_walk(
        base,
        WORK_PG_TASKS,
        PG_ARGS(pawl__work_pg_optional(query->id), pawl__work_pg_optional(pawl_view_of(text))),
        show_task,
        &walk,
        reterr);
}
