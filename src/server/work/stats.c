/* GET /v1/work/stats: counts and health. */
#include "base/core/error.h"
#include "base/core/grow.h"
#include "server/work/records.h"
#include "server/work/work.h"

/* Rows of a list, with their texts in the arena. */
struct rows {
    const struct pawl__record *record;
    struct pawl__arena *arena;
    char *rows;
    size_t count;
    size_t room;
    bool nomem;
};

static bool add_row(struct rows *rows, const void *row)
{
    char *grown = pawl__grow(rows->rows, rows->count, &rows->room, rows->record->size);

    rows->rows = grown == NULL ? rows->rows : grown;
    rows->nomem =
        grown == NULL
        || !pawl__record_copy(
            rows->record, rows->arena, row, rows->rows + rows->count * rows->record->size);
    rows->count += rows->nomem ? 0 : 1;
    return !rows->nomem;
}

static bool add_type(void *context, const pawl_type_stats *stats)
{
    return add_row(context, stats);
}

static bool add_growth(void *context, const pawl_checkpoint_growth *growth)
{
    return add_row(context, growth);
}

static void rows_done(struct rows *rows)
{
    free(rows->rows);
}

/* Without a store all counts are 0. */
pawl_status pawl__serve_work_stats(struct pawl__serve_call *call, pawl_error *reterr)
{
    AUTO(rows_done)
    struct rows types = { .record = &pawl__serve_type_stats_record, .arena = &call->arena };
    AUTO(rows_done)
    struct rows tasks = { .record = &pawl__serve_growth_record, .arena = &call->arena };
    struct work_stats answer = { .of = PAWL_WORK_STATS_INIT };
    pawl_work *store = NULL;
    pawl_status status = pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr);

    TRY(status == PAWL_NOT_FOUND ? PAWL_OK : status);
    if (status == PAWL_OK) {
        TRY(pawl_work_get_stats(store, &answer.of, reterr));
        TRY(pawl_work_type_stats(store, add_type, &types, reterr));
        TRY(pawl_work_checkpoint_growth(store, add_growth, &tasks, reterr));
    }
    if (types.nomem || tasks.nomem) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for numbers");
    }
    answer.types = (const pawl_type_stats *)(void *)types.rows;
    answer.type_count = types.count;
    answer.tasks = (const pawl_checkpoint_growth *)(void *)tasks.rows;
    answer.task_count = tasks.count;
    pawl__serve_answer(call, 200, &answer);
    return PAWL_OK;
}
