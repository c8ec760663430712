/* The status of tasks in SQLite. It is derived in the transaction that changed an item: with the write
 * lock held there is nobody else to be seen. */
#include "base/core/error.h"
#include "work/sqlite/backend.h"

enum { SETTLE_MAX = 1000 };

struct derivation {
    pawl_task_status status;
    bool changes;
};

static pawl_status decide(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct derivation *derivation = context;

    (void)reterr;
    derivation->changes = pawl__work_sql_task_changes(row, &derivation->status);
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_derive(struct work_backend *base,
                                     const struct work_now *now,
                                     const pawl_view *task_ids,
                                     size_t count,
                                     pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct derivation derivation = { .changes = false };
        TRY(pawl__work_sql_ask(base,
                               SQL_STEP(WORK_STMT_TASK_FACTS, sql_text(task_ids[i])),
                               decide,
                               &derivation,
                               reterr));
        if (derivation.changes) {
            TRY(pawl__work_sql_task_set(base, now, task_ids[i], derivation.status, false, reterr));
        }
    }
    return PAWL_OK;
}

/* Only foreign SQL leaves a task with the wrong status: what we change is derived with the change. */
pawl_status pawl__work_sqlite_settle(struct work_backend *base,
                                     const struct work_now *now,
                                     size_t count,
                                     uint64_t *ret_settled,
                                     pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view ids[SETTLE_MAX];
    struct work_ids found = { .arena = &arena, .ids = ids, .room = MIN(count, COUNT_OF(ids)) };

    TRY(pawl__work_sql_ask(base,
                           SQL_STEP(WORK_STMT_TASKS_UNSETTLED, sql_int((int64_t)found.room)),
                           pawl__work_sql_add_id,
                           &found,
                           reterr));
    *ret_settled = found.count;
    return pawl__work_sqlite_derive(base, now, ids, found.count, reterr);
}
