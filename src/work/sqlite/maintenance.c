/* Statistics and retention in SQLite. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/backend_maintenance.h"
#include "work/items/item.h"
#include "work/keys/decide.h"
#include "work/sqlite/backend.h"

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

/* --- Inside of a transaction --- */

static pawl_status remove_item(struct pawl__sqlite *db,
                               pawl_view id,
                               int64_t ended_before_us,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_OLD_ITEM_REMOVE);

    pawl__sqlite_bind_text(&stmt, 1, id);
    pawl__work_bind_time(&stmt, 2, ended_before_us);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status remove_history(struct pawl__sqlite *db, pawl_view id, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_OLD_HISTORY_REMOVE);

    pawl__sqlite_bind_text(&stmt, 1, id);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_remove_items(struct work_backend *base,
                                       int64_t ended_before_us,
                                       const pawl_view *ids,
                                       size_t count,
                                       uint64_t *ret_items,
                                       uint64_t *ret_history,
                                       pawl_error *reterr)
{
    struct pawl__sqlite *db = of(base)->writer;
    uint64_t items = 0;
    uint64_t history = 0;

    for (size_t i = 0; i < count; i++) {
        pawl_status status = remove_item(db, ids[i], ended_before_us, reterr);
        bool removed = status == PAWL_OK && pawl__sqlite_changes(db) > 0;
        if (removed) {
            items++;
            status = remove_history(db, ids[i], reterr);
            history += status == PAWL_OK ? (uint64_t)pawl__sqlite_changes(db) : 0;
        }
        if (status != PAWL_OK) {
            return status;
        }
    }
    *ret_items = items;
    *ret_history = history;
    return PAWL_OK;
}

static pawl_status sqlite_give_back(struct work_backend *base,
                                    size_t pages,
                                    uint64_t *ret_bytes,
                                    pawl_error *reterr)
{
    return pawl__sqlite_give_back(of(base)->writer, (int)pages, ret_bytes, reterr);
}

/* --- Reading --- */

typedef void (*count_row)(pawl_work_stats *stats, struct pawl__sqlite_stmt *stmt);

static void count_items(pawl_work_stats *stats, struct pawl__sqlite_stmt *stmt)
{
    uint64_t *const counts[] = {
        [PAWL_ITEM_PENDING] = &stats->pending,     [PAWL_ITEM_IN_PROGRESS] = &stats->in_progress,
        [PAWL_ITEM_COMPLETED] = &stats->completed, [PAWL_ITEM_FAILED] = &stats->failed,
        [PAWL_ITEM_EXPIRED] = &stats->pending,     [PAWL_ITEM_WAITING] = &stats->waiting,
    };
    pawl_item_status status;

    if (pawl__work_item_status_parse(pawl__sqlite_text(stmt, 0), &status)) {
        *counts[status] += (uint64_t)pawl__sqlite_i64(stmt, 1);
    }
}

static void count_leases(pawl_work_stats *stats, struct pawl__sqlite_stmt *stmt)
{
    stats->active_leases = (uint64_t)pawl__sqlite_i64(stmt, 0);
    stats->stale_leases = (uint64_t)pawl__sqlite_i64(stmt, 1);
    stats->avg_minutes_since_heartbeat = pawl__sqlite_double(stmt, 2);
}

static void count_oldest(pawl_work_stats *stats, struct pawl__sqlite_stmt *stmt)
{
    stats->oldest_pending_us = pawl__work_time(stmt, 0);
}

static void count_checkpoints(pawl_work_stats *stats, struct pawl__sqlite_stmt *stmt)
{
    stats->checkpoints = (uint64_t)pawl__sqlite_i64(stmt, 0);
}

static void count_keys(pawl_work_stats *stats, struct pawl__sqlite_stmt *stmt)
{
    uint64_t *const counts[] = {
        [WORK_KEY_PENDING] = &stats->keys_pending,
        [WORK_KEY_COMPLETED] = &stats->keys_completed,
        [WORK_KEY_FAILED] = &stats->keys_failed,
    };
    enum work_key_state state;

    if (pawl__work_key_state_parse(pawl__sqlite_text(stmt, 0), &state)) {
        *counts[state] += (uint64_t)pawl__sqlite_i64(stmt, 1);
    }
}

static pawl_status count_all(struct pawl__sqlite *db,
                             size_t statement,
                             count_row count,
                             const struct work_stats_at *at,
                             pawl_work_stats *stats,
                             pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, statement);

    if (statement == WORK_SQL_STATS_LEASES) {
        pawl__work_bind_time(&stmt, 1, at->wall_us);
        pawl__work_bind_time(&stmt, 2, at->stale_before_us);
    }
    for (;;) {
        bool more = false;
        pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        count(stats, &stmt);
    }
}

/* All of one moment. */
static pawl_status stats_in(struct pawl__sqlite *db,
                            const struct work_stats_at *at,
                            pawl_work_stats *stats,
                            pawl_error *reterr)
{
    static const struct {
        size_t statement;
        count_row count;
    } parts[] = {
        { WORK_SQL_STATS_ITEMS, count_items },   { WORK_SQL_STATS_LEASES, count_leases },
        { WORK_SQL_STATS_OLDEST, count_oldest }, { WORK_SQL_STATS_CHECKPOINTS, count_checkpoints },
        { WORK_SQL_STATS_KEYS, count_keys },
    };
    pawl_status status = pawl__sqlite_begin(db, PAWL__SQLITE_DEFERRED, reterr);

    for (size_t i = 0; i < COUNT_OF(parts) && status == PAWL_OK; i++) {
        status = count_all(db, parts[i].statement, parts[i].count, at, stats, reterr);
    }
    pawl__sqlite_rollback(db);
    return status;
}

static pawl_status sqlite_stats(struct work_backend *base,
                                const struct work_stats_at *at,
                                pawl_work_stats *ret_stats,
                                pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };
    pawl_work_stats stats = { 0 };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    TRY(stats_in(reader.db, at, &stats, reterr));
    *ret_stats = stats;
    return PAWL_OK;
}

static pawl_status type_stats_in(struct pawl__sqlite *db,
                                 const struct work_now *now,
                                 pawl_type_stats_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_STATS_TYPES);

    pawl__work_bind_time(&stmt, 1, now->wall_us);
    for (;;) {
        bool more = false;
        pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        pawl_type_stats row = {
            .work_type = pawl__sqlite_text(&stmt, 0),
            .count = (uint64_t)pawl__sqlite_i64(&stmt, 2),
            .avg_age_hours = pawl__sqlite_double(&stmt, 3),
        };
        if (pawl__work_item_status_parse(pawl__sqlite_text(&stmt, 1), &row.status)
            && !visit(context, &row)) {
            return PAWL_OK;
        }
    }
}

static pawl_status sqlite_type_stats(struct work_backend *base,
                                     const struct work_now *now,
                                     pawl_type_stats_visit visit,
                                     void *context,
                                     pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return type_stats_in(reader.db, now, visit, context, reterr);
}

static pawl_status growth_in(struct pawl__sqlite *db,
                             pawl_checkpoint_growth_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_STATS_GROWTH);

    for (;;) {
        bool more = false;
        pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        pawl_checkpoint_growth row = {
            .task_id = pawl__sqlite_text(&stmt, 0),
            .checkpoint_count = (uint64_t)pawl__sqlite_i64(&stmt, 1),
            .max_sequence = pawl__sqlite_i64(&stmt, 2),
            .first_at_us = pawl__work_time(&stmt, 3),
            .last_at_us = pawl__work_time(&stmt, 4),
        };
        if (!visit(context, &row)) {
            return PAWL_OK;
        }
    }
}

static pawl_status sqlite_growth(struct work_backend *base,
                                 pawl_checkpoint_growth_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return growth_in(reader.db, visit, context, reterr);
}

static pawl_status old_items_in(struct pawl__sqlite_stmt *stmt,
                                bool (*visit)(void *context, pawl_view id, uint64_t history),
                                void *context,
                                pawl_error *reterr)
{
    for (;;) {
        bool more = false;
        pawl_status status = pawl__sqlite_next(stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        if (!visit(context, pawl__sqlite_text(stmt, 0), (uint64_t)pawl__sqlite_i64(stmt, 1))) {
            return PAWL_OK;
        }
    }
}

static pawl_status sqlite_old_items(struct work_backend *base,
                                    int64_t ended_before_us,
                                    pawl_view after_id,
                                    size_t count,
                                    bool (*visit)(void *context, pawl_view id, uint64_t history),
                                    void *context,
                                    pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(reader.db, WORK_SQL_OLD_ITEMS);
    pawl__sqlite_bind_text(&stmt, 1, after_id);
    pawl__work_bind_time(&stmt, 2, ended_before_us);
    pawl__sqlite_bind_i64(&stmt, 3, (int64_t)count);
    return old_items_in(&stmt, visit, context, reterr);
}

static pawl_status sqlite_free_bytes(struct work_backend *base,
                                     uint64_t *ret_bytes,
                                     pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return pawl__sqlite_free_bytes(reader.db, ret_bytes, reterr);
}

const struct work_maintenance_ops pawl__work_sqlite_maintenance = {
    .remove_items = sqlite_remove_items,
    .give_back = sqlite_give_back,
    .stats = sqlite_stats,
    .type_stats = sqlite_type_stats,
    .growth = sqlite_growth,
    .old_items = sqlite_old_items,
    .free_bytes = sqlite_free_bytes,
};
