/* Tasks in SQLite. Their status is derived in the transaction that changed an item: with the write
 * lock held there is nobody else to be seen. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/decide.h"
#include "work/items/item.h"
#include "work/sqlite/backend.h"

enum { SETTLE_MAX = 1000 };

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

/* The task that `stmt` stands on; texts until the next step. */
static void read_task(struct pawl__sqlite_stmt *stmt, pawl_task *ret_task)
{
    *ret_task = (pawl_task){
        .task_id = pawl__sqlite_text(stmt, 0),
        .title = pawl__sqlite_text(stmt, 1),
        .set_by_user = pawl__view_is(pawl__sqlite_text(stmt, 3), "user"),
        .created_at_us = pawl__work_time(stmt, 4),
        .updated_at_us = pawl__work_time(stmt, 5),
        .metadata = pawl__sqlite_text(stmt, 6),
    };
    (void)!pawl__work_task_status_parse(pawl__sqlite_text(stmt, 2), &ret_task->status);
}

static pawl_status load_task(struct work_sqlite *backend,
                             pawl_view id,
                             struct pawl__arena *arena,
                             struct work_task *ret_task,
                             pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_TASK_LOAD);
    bool row = false;

    ret_task->known = false;
    pawl__sqlite_bind_text(&stmt, 1, id);
    pawl_status status = pawl__sqlite_next(&stmt, &row, reterr);
    if (status != PAWL_OK || !row) {
        return status;
    }
    read_task(&stmt, &ret_task->task);
    ret_task->task.task_id = id;
    if (!pawl__arena_copy(arena, ret_task->task.title, &ret_task->task.title)
        || !pawl__arena_copy(arena, ret_task->task.metadata, &ret_task->task.metadata)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a task");
    }
    ret_task->known = true;
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_tasks(struct work_backend *base,
                                    const pawl_view *ids,
                                    size_t count,
                                    struct pawl__arena *arena,
                                    struct work_task *ret_tasks,
                                    pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(load_task(of(base), ids[i], arena, &ret_tasks[i], reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_task_insert(struct work_backend *base,
                                          const struct work_now *now,
                                          const pawl_task *task,
                                          pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_TASK_INSERT);

    pawl__sqlite_bind_text(&stmt, 1, task->task_id);
    pawl__work_bind_optional(&stmt, 2, task->title);
    pawl__sqlite_bind_text(&stmt, 3, pawl_view_of(pawl__work_task_status_text(task->status)));
    pawl__sqlite_bind_text(&stmt, 4, pawl_view_of(task->set_by_user ? "user" : "items"));
    pawl__work_bind_time(&stmt, 5, now->wall_us);
    pawl__work_bind_optional(&stmt, 6, task->metadata);
    return pawl__sqlite_run(&stmt, reterr);
}

pawl_status pawl__work_sqlite_task_set(struct work_backend *base,
                                       const struct work_now *now,
                                       pawl_view task_id,
                                       pawl_task_status status,
                                       bool by_user,
                                       pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_TASK_SET);

    pawl__sqlite_bind_text(&stmt, 1, task_id);
    pawl__sqlite_bind_text(&stmt, 2, pawl_view_of(pawl__work_task_status_text(status)));
    pawl__sqlite_bind_text(&stmt, 3, pawl_view_of(by_user ? "user" : "items"));
    pawl__work_bind_time(&stmt, 4, now->wall_us);
    return pawl__sqlite_run(&stmt, reterr);
}

/* --- deriving --- */

/* A statement about a task that gives up to two truths. */
static pawl_status ask(struct work_sqlite *backend,
                       size_t statement,
                       pawl_view task_id,
                       bool *ret_first,
                       bool *ret_second,
                       pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);
    bool row = false;

    pawl__sqlite_bind_text(&stmt, 1, task_id);
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    if (row) {
        *ret_first = pawl__sqlite_i64(&stmt, 0) != 0;
        if (ret_second != NULL) {
            *ret_second = pawl__sqlite_i64(&stmt, 1) != 0;
        }
    }
    return PAWL_OK;
}

/* Asks only what the answer depends on. */
static pawl_status look_at_items(struct work_sqlite *backend,
                                 const pawl_task *task,
                                 struct work_task_facts *ret_facts,
                                 pawl_error *reterr)
{
    struct work_task_facts facts = { .any = true };
    pawl_status status =
        ask(backend, WORK_SQL_TASK_UNFINISHED, task->task_id, &facts.unfinished, NULL, reterr);

    if (status == PAWL_OK && facts.unfinished && task->status == PAWL_TASK_PENDING) {
        status = ask(backend, WORK_SQL_TASK_STARTED, task->task_id, &facts.started, NULL, reterr);
    }
    if (status == PAWL_OK && !facts.unfinished) {
        status = ask(backend, WORK_SQL_TASK_ENDS, task->task_id, &facts.failed, &facts.any, reterr);
    }
    *ret_facts = facts;
    return status;
}

/* Its status, and whether it is ours to derive. */
static pawl_status read_status(struct work_sqlite *backend,
                               pawl_task *task,
                               bool *ret_ours,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_TASK_LOAD);
    bool row = false;

    pawl__sqlite_bind_text(&stmt, 1, task->task_id);
    pawl_status status = pawl__sqlite_next(&stmt, &row, reterr);
    *ret_ours = status == PAWL_OK && row
                && pawl__work_task_status_parse(pawl__sqlite_text(&stmt, 2), &task->status)
                && !pawl__view_is(pawl__sqlite_text(&stmt, 3), "user");
    return status;
}

static pawl_status derive_one(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view task_id,
                              pawl_error *reterr)
{
    pawl_task task = { .task_id = task_id };
    struct work_task_facts facts;
    bool ours = false;
    pawl_status status = read_status(of(base), &task, &ours, reterr);

    if (status != PAWL_OK || !ours) {
        return status;
    }
    status = look_at_items(of(base), &task, &facts, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    pawl_task_status derived = pawl__work_decide_task(task.status, &facts);
    return derived == task.status
               ? PAWL_OK
               : pawl__work_sqlite_task_set(base, now, task_id, derived, false, reterr);
}

pawl_status pawl__work_sqlite_derive(struct work_backend *base,
                                     const struct work_now *now,
                                     const pawl_view *task_ids,
                                     size_t count,
                                     pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(derive_one(base, now, task_ids[i], reterr));
    }
    return PAWL_OK;
}

/* Only foreign SQL leaves a task behind: what we change is derived with the change. */
pawl_status pawl__work_sqlite_settle(struct work_backend *base,
                                     const struct work_now *now,
                                     size_t count,
                                     uint64_t *ret_settled,
                                     pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view ids[SETTLE_MAX];
    size_t found = 0;
    bool row = true;

    {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt =
            pawl__sqlite_use(of(base)->writer, WORK_SQL_TASKS_UNSETTLED);
        pawl__sqlite_bind_i64(&stmt, 1, (int64_t)MIN(count, (size_t)SETTLE_MAX));
        while (row && found < SETTLE_MAX) {
            pawl_status status = pawl__sqlite_next(&stmt, &row, reterr);
            if (status != PAWL_OK) {
                return status;
            }
            if (row && !pawl__arena_copy(&arena, pawl__sqlite_text(&stmt, 0), &ids[found++])) {
                return pawl__fail(reterr, PAWL_NOMEM, "no memory for tasks");
            }
        }
    }
    *ret_settled = found;
    return pawl__work_sqlite_derive(base, now, ids, found, reterr);
}

/* --- reading --- */

static pawl_status count_items(struct pawl__sqlite *db, pawl_task *task, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_TASK_COUNTS);
    bool row = true;

    pawl__sqlite_bind_text(&stmt, 1, task->task_id);
    while (row) {
        pawl_status status = pawl__sqlite_next(&stmt, &row, reterr);
        pawl_item_status of_status;
        if (status != PAWL_OK) {
            return status;
        }
        if (!row || !pawl__work_item_status_parse(pawl__sqlite_text(&stmt, 0), &of_status)) {
            continue;
        }
        uint64_t *counts[] = {
            [PAWL_ITEM_PENDING] = &task->pending,     [PAWL_ITEM_IN_PROGRESS] = &task->in_progress,
            [PAWL_ITEM_COMPLETED] = &task->completed, [PAWL_ITEM_FAILED] = &task->failed,
            [PAWL_ITEM_EXPIRED] = &task->pending,     [PAWL_ITEM_WAITING] = &task->waiting,
        };
        *counts[of_status] += (uint64_t)pawl__sqlite_i64(&stmt, 1);
    }
    return PAWL_OK;
}

static pawl_status walk_tasks(struct pawl__sqlite *db,
                              struct pawl__sqlite_stmt *stmt,
                              pawl_task_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    for (;;) {
        pawl_task task;
        bool row = false;
        pawl_status status = pawl__sqlite_next(stmt, &row, reterr);
        if (status != PAWL_OK || !row) {
            return status;
        }
        read_task(stmt, &task);
        status = count_items(db, &task, reterr);
        if (status != PAWL_OK || !visit(context, &task)) {
            return status;
        }
    }
}

static size_t read_statement(const struct work_task_query *query)
{
    if (query->id.len > 0) {
        return WORK_SQL_TASK_LOAD;
    }
    return query->by_id ? WORK_SQL_TASKS_PAGE : WORK_SQL_TASKS;
}

static void bind_query(struct pawl__sqlite_stmt *stmt, const struct work_task_query *query)
{
    bool limited = query->limit > 0 && query->limit <= INT64_MAX;

    if (query->id.len > 0) {
        pawl__sqlite_bind_text(stmt, 1, query->id);
        return;
    }
    if (query->status != NULL) {
        pawl__sqlite_bind_text(stmt, 1, pawl_view_of(pawl__work_task_status_text(*query->status)));
    }
    if (query->by_id) {
        pawl__sqlite_bind_text(
            stmt, 2, query->from_id.len == 0 ? pawl_view_of("") : query->from_id);
        pawl__sqlite_bind_i64(stmt, 3, limited ? (int64_t)query->limit : -1);
    }
}

pawl_status pawl__work_sqlite_task_read(struct work_backend *base,
                                        const struct work_task_query *query,
                                        pawl_task_visit visit,
                                        void *context,
                                        pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(reader.db, read_statement(query));
    bind_query(&stmt, query);
    return walk_tasks(reader.db, &stmt, visit, context, reterr);
}
