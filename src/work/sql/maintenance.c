/* Statistics and retention of both databases. */
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sql/sql.h"

/* The history first: its statement looks at the items that the second one removes. */
static pawl_status sql_remove_items(struct work_backend *base,
                                    int64_t ended_before_us,
                                    const pawl_view *ids,
                                    size_t count,
                                    uint64_t *ret_items,
                                    uint64_t *ret_history,
                                    pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct work_step steps[] = {
        SQL_STEP(WORK_STMT_OLD_HISTORY_REMOVE, sql_texts(ids, count), sql_time(ended_before_us)),
        SQL_STEP(WORK_STMT_OLD_ITEMS_REMOVE, sql_texts(ids, count), sql_time(ended_before_us)),
    };

    *ret_items = 0;
    *ret_history = 0;
    steps[0].changed = ret_history;
    steps[1].changed = ret_items;
    return sql->ops->run(sql, steps, COUNT_OF(steps), reterr);
}

/* --- Statistics --- */

static pawl_status count_items(void *context, const struct work_columns *row, pawl_error *reterr)
{
    pawl_work_stats *stats = context;
    uint64_t *const counts[] = {
        [PAWL_ITEM_PENDING] = &stats->pending,     [PAWL_ITEM_IN_PROGRESS] = &stats->in_progress,
        [PAWL_ITEM_COMPLETED] = &stats->completed, [PAWL_ITEM_FAILED] = &stats->failed,
        [PAWL_ITEM_EXPIRED] = &stats->pending,     [PAWL_ITEM_WAITING] = &stats->waiting,
    };
    pawl_item_status status;

    (void)reterr;
    if (pawl__work_item_status_parse(col_text(row, 0), &status)) {
        *counts[status] += col_count(row, 1);
    }
    return PAWL_OK;
}

static pawl_status count_leases(void *context, const struct work_columns *row, pawl_error *reterr)
{
    pawl_work_stats *stats = context;

    (void)reterr;
    stats->active_leases = col_count(row, 0);
    stats->stale_leases = col_count(row, 1);
    stats->avg_minutes_since_heartbeat = col_real(row, 2);
    stats->oldest_pending_us = col_time(row, 3);
    stats->checkpoints = col_count(row, 4);
    return PAWL_OK;
}

static pawl_status count_keys(void *context, const struct work_columns *row, pawl_error *reterr)
{
    pawl_work_stats *stats = context;
    uint64_t *const counts[] = {
        [WORK_KEY_PENDING] = &stats->keys_pending,
        [WORK_KEY_COMPLETED] = &stats->keys_completed,
        [WORK_KEY_FAILED] = &stats->keys_failed,
    };
    enum work_key_state state;

    (void)reterr;
    if (pawl__work_key_state_parse(col_text(row, 0), &state)) {
        *counts[state] += col_count(row, 1);
    }
    return PAWL_OK;
}

static pawl_status sql_stats(struct work_backend *base,
                             const struct work_stats_at *at,
                             pawl_work_stats *ret_stats,
                             pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    pawl_work_stats stats = { .size = sizeof(pawl_work_stats) };
    struct work_step steps[] = {
        SQL_STEP_ALONE(WORK_STMT_STATS_ITEMS),
        SQL_STEP(WORK_STMT_STATS_LEASES, sql_time(at->wall_us), sql_time(at->stale_before_us)),
        SQL_STEP_ALONE(WORK_STMT_STATS_KEYS),
    };
    work_on_row *const counts[] = { count_items, count_leases, count_keys };

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        steps[i].on_row = counts[i];
        steps[i].context = &stats;
    }
    TRY(sql->ops->read(sql, steps, COUNT_OF(steps), reterr));
    *ret_stats = stats;
    return PAWL_OK;
}

/* --- Walks --- */

static pawl_status show_type(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    pawl_type_stats stats = {
        .size = sizeof(pawl_type_stats),
        .work_type = col_text(row, 0),
        .count = col_count(row, 2),
        .avg_age_hours = col_real(row, 3),
    };

    (void)reterr;
    return pawl__work_go_on(!pawl__work_item_status_parse(col_text(row, 1), &stats.status)
                            || walk->visit.type_stats(walk->context, &stats));
}

static pawl_status sql_type_stats(struct work_backend *base,
                                  const struct work_now *now,
                                  pawl_type_stats_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    struct work_walk walk = { .visit.type_stats = visit, .context = context };

    return pawl__work_sql_read(
        base, SQL_STEP(WORK_STMT_STATS_TYPES, sql_time(now->wall_us)), show_type, &walk, reterr);
}

static pawl_status show_growth(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    const pawl_checkpoint_growth growth = {
        .size = sizeof(pawl_checkpoint_growth),
        .task_id = col_text(row, 0),
        .checkpoint_count = col_count(row, 1),
        .max_sequence = col_int(row, 2),
        .first_at_us = col_time(row, 3),
        .last_at_us = col_time(row, 4),
    };

    (void)reterr;
    return pawl__work_go_on(walk->visit.growth(walk->context, &growth));
}

static pawl_status sql_growth(struct work_backend *base,
                              pawl_checkpoint_growth_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    struct work_walk walk = { .visit.growth = visit, .context = context };

    return pawl__work_sql_read(
        base, SQL_STEP_ALONE(WORK_STMT_STATS_GROWTH), show_growth, &walk, reterr);
}

static pawl_status sql_old_items(struct work_backend *base,
                                 int64_t ended_before_us,
                                 pawl_view after_id,
                                 size_t count,
                                 work_count_visit *visit,
                                 void *context,
                                 pawl_error *reterr)
{
    struct work_walk walk = { .visit.count = visit, .context = context };

    return pawl__work_sql_read(base,
                               SQL_STEP(WORK_STMT_OLD_ITEMS,
                                        sql_text(after_id),
                                        sql_time(ended_before_us),
                                        sql_int((int64_t)count)),
                               pawl__work_sql_show_count,
                               &walk,
                               reterr);
}

const struct work_maintenance_ops pawl__work_sql_maintenance = {
    .remove_items = sql_remove_items,
    .stats = sql_stats,
    .type_stats = sql_type_stats,
    .growth = sql_growth,
    .old_items = sql_old_items,
};
