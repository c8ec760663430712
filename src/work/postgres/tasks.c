/* The status of tasks in PostgreSQL.
 *
 * Two nodes that end the last two items of a task at the same moment do not see each other's change.
 * So a status is derived after the commit: the node that commits last sees all items ended. A check comes
 * with the commit itself. Only when it finds a status that is not what it should be, a transaction of its
 * own locks the task, checks again and sets it. The sweep finds the tasks of a node that died in
 * between. */
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

pawl_status pawl__work_pg_check_tasks(void *context,
                                      const struct pawl__pg_rows *rows,
                                      pawl_error *reterr)
{
    struct work_pg_task_check *check = context;
    struct work_columns row = { .cell = pawl__work_pg_cell, .result = rows };

    (void)reterr;
    check->answered = true;
    for (; row.index < rows->count; row.index++) {
        pawl_task_status status;
        check->changes |= pawl__work_sql_task_changes(&row, &status);
    }
    return PAWL_OK;
}

struct settling {
    struct work_postgres *backend;
    size_t changes;
};

/* Tasks whose status changes, as two arrays. */
static pawl_status on_facts(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct settling *settling = context;
    struct pawl__pg_array *arrays = settling->backend->arrays;
    struct work_columns row = { .cell = pawl__work_pg_cell, .result = rows };
    pawl_task_status status;

    (void)reterr;
    settling->changes = 0;
    for (; row.index < rows->count; row.index++) {
        settling->changes += pawl__work_sql_task_changes(&row, &status);
    }
    pawl__pg_array_start(&arrays[0], 'T', settling->changes);
    pawl__pg_array_start(&arrays[1], 'T', settling->changes);
    for (row.index = 0; row.index < rows->count; row.index++) {
        if (pawl__work_sql_task_changes(&row, &status)) {
            pawl__pg_array_add_view(&arrays[0], col_text(&row, 0));
            pawl__pg_array_add_view(&arrays[1], pawl_view_of(pawl__work_task_status_text(status)));
        }
    }
    return PAWL_OK;
}

/* While the tasks are locked nobody submits to them, and this second check sees all that was committed
 * before. */
static pawl_status lock_and_set(struct work_postgres *backend, pawl_error *reterr)
{
    struct settling settling = { .backend = backend };
    struct work_pg_trip trip;

    pawl__work_pg_trip_start(&trip, backend, reterr);
    struct pawl__pg_value ids =
        pawl__work_pg_list(backend, 0, backend->touched, backend->touched_count);
    pawl__work_pg_trip_add(&trip, WORK_PG_TASK_LOCK, PG_ARGS(ids), NULL, NULL);
    pawl__work_pg_trip_add(&trip, WORK_PG_TASK_FACTS, PG_ARGS(ids), on_facts, &settling);
    pawl__work_pg_trip_add_clock(&trip);
    TRY(pawl__work_pg_trip_end(&trip));
    if (settling.changes > 0) {
        TRY(pawl__pg_exec(backend->pg.writer,
                          WORK_PG_TASKS_SETTLE,
                          PG_ARGS(pawl__pg_array_value(&backend->arrays[0]),
                                  pawl__pg_array_value(&backend->arrays[1]),
                                  pawl__pg_time(backend->sql.now.wall_us)),
                          NULL,
                          reterr));
    }
    return pawl__pg_commit(backend->pg.writer, reterr);
}

static pawl_status settle_now(struct work_postgres *backend, pawl_error *reterr)
{
    pawl_status status = lock_and_set(backend, reterr);

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

static pawl_status touch_found(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct settling *settling = context;
    pawl_view id = col_text(row, 0);

    settling->changes++;
    return pawl__work_pg_touch(settling->backend, &id, 1, reterr);
}

pawl_status pawl__work_pg_settle(struct work_backend *base,
                                 const struct work_now *now,
                                 size_t count,
                                 uint64_t *ret_settled,
                                 pawl_error *reterr)
{
    struct settling settling = { .backend = of(base) };

    (void)now;
    TRY(pawl__work_sql_ask(
        base,
        SQL_STEP(WORK_STMT_TASKS_UNSETTLED, sql_int((int64_t)MIN(count, (size_t)SETTLE_MAX))),
        touch_found,
        &settling,
        reterr));
    *ret_settled = settling.changes;
    return PAWL_OK;
}
