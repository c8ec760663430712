/* Statistics and retention in PostgreSQL. Space is given back by autovacuum. */
#include "base/core/error.h"
#include "work/core/backend_maintenance.h"
#include "work/items/item.h"
#include "work/keys/decide.h"
#include "work/postgres/backend.h"

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

/* --- Inside of a transaction --- */

struct removed {
    uint64_t items;
    uint64_t history;
};

static pawl_status on_removed(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct removed *removed = context;

    (void)reterr;
    if (rows->count == 1) {
        removed->items = (uint64_t)pawl__pg_get_i64(rows, 0, 0);
        removed->history = (uint64_t)pawl__pg_get_i64(rows, 0, 1);
    }
    return PAWL_OK;
}

static pawl_status pg_remove_items(struct work_backend *base,
                                   int64_t ended_before_us,
                                   const pawl_view *ids,
                                   size_t count,
                                   uint64_t *ret_items,
                                   uint64_t *ret_history,
                                   pawl_error *reterr)
{
    struct removed removed = { 0 };

    TRY(pawl__work_pg_ask(
        of(base),
        WORK_PG_OLD_ITEMS_REMOVE,
        PG_ARGS(pawl__work_pg_ids(of(base), 0, ids, count), pawl__pg_time(ended_before_us)),
        on_removed,
        &removed,
        reterr));
    *ret_items = removed.items;
    *ret_history = removed.history;
    return PAWL_OK;
}

/* --- Reading --- */

static void count_items(pawl_work_stats *stats, const struct pawl__pg_rows *rows, size_t index)
{
    uint64_t *const counts[] = {
        [PAWL_ITEM_PENDING] = &stats->pending,     [PAWL_ITEM_IN_PROGRESS] = &stats->in_progress,
        [PAWL_ITEM_COMPLETED] = &stats->completed, [PAWL_ITEM_FAILED] = &stats->failed,
        [PAWL_ITEM_EXPIRED] = &stats->pending,     [PAWL_ITEM_WAITING] = &stats->waiting,
    };
    pawl_item_status status;

    if (pawl__work_item_status_parse(pawl__pg_get_text(rows, index, 0), &status)) {
        *counts[status] += (uint64_t)pawl__pg_get_i64(rows, index, 1);
    }
}

static void count_rest(pawl_work_stats *stats, const struct pawl__pg_rows *rows, size_t index)
{
    stats->active_leases = (uint64_t)pawl__pg_get_i64(rows, index, 0);
    stats->stale_leases = (uint64_t)pawl__pg_get_i64(rows, index, 1);
    stats->avg_minutes_since_heartbeat = pawl__pg_get_double(rows, index, 2);
    stats->oldest_pending_us = pawl__pg_get_time(rows, index, 3);
    stats->checkpoints = (uint64_t)pawl__pg_get_i64(rows, index, 4);
}

static void count_keys(pawl_work_stats *stats, const struct pawl__pg_rows *rows, size_t index)
{
    uint64_t *const counts[] = {
        [WORK_KEY_PENDING] = &stats->keys_pending,
        [WORK_KEY_COMPLETED] = &stats->keys_completed,
        [WORK_KEY_FAILED] = &stats->keys_failed,
    };
    enum work_key_state state;

    if (pawl__work_key_state_parse(pawl__pg_get_text(rows, index, 0), &state)) {
        *counts[state] += (uint64_t)pawl__pg_get_i64(rows, index, 1);
    }
}

typedef void (*count_row)(pawl_work_stats *stats, const struct pawl__pg_rows *rows, size_t index);

static pawl_status count_all(struct pawl__pg *pg,
                             size_t statement,
                             count_row count,
                             const struct work_stats_at *at,
                             pawl_work_stats *stats,
                             pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct pawl__pg_value values[] = { pawl__pg_time(at->wall_us),
                                       pawl__pg_time(at->stale_before_us) };
    size_t value_count = statement == WORK_PG_STATS_LEASES ? COUNT_OF(values) : 0;

    TRY(pawl__pg_exec(pg, statement, values, value_count, &rows, reterr));
    for (size_t i = 0; i < rows.count; i++) {
        count(stats, &rows, i);
    }
    return PAWL_OK;
}

/* All of one moment. */
static pawl_status pg_stats(struct work_backend *base,
                            const struct work_stats_at *at,
                            pawl_work_stats *ret_stats,
                            pawl_error *reterr)
{
    static const struct {
        size_t statement;
        count_row count;
    } parts[] = {
        { WORK_PG_STATS_ITEMS, count_items },
        { WORK_PG_STATS_LEASES, count_rest },
        { WORK_PG_STATS_KEYS, count_keys },
    };
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    pawl_work_stats stats = { 0 };
    pawl_status status = pawl__work_pg_borrow(base, &borrowed, reterr);

    if (status == PAWL_OK) {
        status = pawl__pg_begin(borrowed.pg, PAWL__PG_READ_ONLY, reterr);
    }
    for (size_t i = 0; i < COUNT_OF(parts) && status == PAWL_OK; i++) {
        status = count_all(borrowed.pg, parts[i].statement, parts[i].count, at, &stats, reterr);
    }
    pawl__pg_rollback(borrowed.pg);
    if (status == PAWL_OK) {
        *ret_stats = stats;
    }
    return status;
}

struct type_walk {
    pawl_type_stats_visit visit;
    void *context;
};

static bool show_type(void *context, const struct pawl__pg_rows *rows)
{
    const struct type_walk *walk = context;
    pawl_type_stats row = {
        .work_type = pawl__pg_get_text(rows, 0, 0),
        .count = (uint64_t)pawl__pg_get_i64(rows, 0, 2),
        .avg_age_hours = pawl__pg_get_double(rows, 0, 3),
    };

    return !pawl__work_item_status_parse(pawl__pg_get_text(rows, 0, 1), &row.status)
           || walk->visit(walk->context, &row);
}

static pawl_status pg_type_stats(struct work_backend *base,
                                 const struct work_now *now,
                                 pawl_type_stats_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    struct type_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_walk(
        base, WORK_PG_STATS_TYPES, PG_ARGS(pawl__pg_time(now->wall_us)), show_type, &walk, reterr);
}

struct growth_walk {
    pawl_checkpoint_growth_visit visit;
    void *context;
};

static bool show_growth(void *context, const struct pawl__pg_rows *rows)
{
    const struct growth_walk *walk = context;
    pawl_checkpoint_growth row = {
        .task_id = pawl__pg_get_text(rows, 0, 0),
        .checkpoint_count = (uint64_t)pawl__pg_get_i64(rows, 0, 1),
        .max_sequence = pawl__pg_get_i64(rows, 0, 2),
        .first_at_us = pawl__pg_get_time(rows, 0, 3),
        .last_at_us = pawl__pg_get_time(rows, 0, 4),
    };

    return walk->visit(walk->context, &row);
}

static pawl_status pg_growth(struct work_backend *base,
                             pawl_checkpoint_growth_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    struct growth_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_walk(base, WORK_PG_STATS_GROWTH, PG_NO_ARGS, show_growth, &walk, reterr);
}

struct old_walk {
    bool (*visit)(void *context, pawl_view id, uint64_t history);
    void *context;
};

static bool show_old(void *context, const struct pawl__pg_rows *rows)
{
    const struct old_walk *walk = context;

    return walk->visit(
        walk->context, pawl__pg_get_text(rows, 0, 0), (uint64_t)pawl__pg_get_i64(rows, 0, 1));
}

static pawl_status pg_old_items(struct work_backend *base,
                                int64_t ended_before_us,
                                pawl_view after_id,
                                size_t count,
                                bool (*visit)(void *context, pawl_view id, uint64_t history),
                                void *context,
                                pawl_error *reterr)
{
    struct old_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_walk(base,
                              WORK_PG_OLD_ITEMS,
                              PG_ARGS(pawl__pg_text(after_id),
                                      pawl__pg_time(ended_before_us),
                                      pawl__pg_i64((int64_t)count)),
                              show_old,
                              &walk,
                              reterr);
}

const struct work_maintenance_ops pawl__work_pg_maintenance = {
    .remove_items = pg_remove_items,
    .stats = pg_stats,
    .type_stats = pg_type_stats,
    .growth = pg_growth,
    .old_items = pg_old_items,
};
