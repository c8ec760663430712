/* Items in PostgreSQL: what is claimed next, what is due, and what the prefetch plan knows already. */
#include <string.h>

#include "base/core/error.h"
#include "work/postgres/backend.h"

#define DUE_LOCKED_US \
    (10 * (NS_PER_MS / NS_PER_US)) /* others hold what is due: ask again after this */

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

/* --- loading --- */

static pawl_status pg_load(struct work_backend *base,
                           const pawl_view *ids,
                           size_t count,
                           struct pawl__arena *arena,
                           struct work_row **ret_rows,
                           pawl_error *reterr)
{
    struct work_pg_prefetched *prefetched = &of(base)->prefetched;

    memset(ret_rows, 0, count * sizeof(*ret_rows));
    if (prefetched->loaded && pawl__work_pg_was_planned(of(base), ids, count)) {
        pawl__work_sql_match_rows(ids, count, &prefetched->rows, ret_rows);
        prefetched->loaded = false; /* a row that is loaded again may have been changed meanwhile */
    }
    return pawl__work_sql_load_missing(base, ids, count, arena, ret_rows, reterr);
}

static pawl_status pg_edges(struct work_backend *base,
                            const pawl_view *after_ids,
                            size_t count,
                            work_edge_visit *visit,
                            void *context,
                            pawl_error *reterr)
{
    const struct work_pg_prefetched *prefetched = &of(base)->prefetched;

    if (!prefetched->edges_known || !pawl__work_pg_was_planned(of(base), after_ids, count)) {
        return pawl__work_sql_edges(base, after_ids, count, visit, context, reterr);
    }
    for (size_t i = 0; i < prefetched->edge_count; i++) {
        visit(context, &prefetched->edges[i]);
    }
    return PAWL_OK;
}

static pawl_status pg_add_edges(struct work_backend *base,
                                const struct work_edge *edges,
                                size_t count,
                                pawl_error *reterr)
{
    of(base)->prefetched.edges_known = false;
    return pawl__work_sql_add_edges(base, edges, count, reterr);
}

/* --- picking --- */

void pawl__work_pg_add_pick(struct work_pg_trip *trip,
                            const struct work_filter *filter,
                            size_t count,
                            work_pg_on_rows *on_rows,
                            void *context)
{
    struct pawl__pg_value values[3] = { pawl__pg_i64((int64_t)count) };
    bool by_task = filter->task_id.len > 0;
    size_t statement = WORK_PG_PICK;
    size_t value_count = 1;

    if (by_task) {
        statement = WORK_PG_PICK_TASK;
        values[value_count++] = pawl__pg_text(filter->task_id);
    }
    if (filter->work_type_count == 1 && !by_task) {
        statement = WORK_PG_PICK_TYPE;
        values[value_count++] = pawl__pg_text(filter->work_types[0]);
    } else if (filter->work_type_count > 0) {
        statement = by_task ? WORK_PG_PICK_TASK_TYPES : WORK_PG_PICK_TYPES;
        values[value_count++] =
            pawl__work_pg_list(trip->backend, 0, filter->work_types, filter->work_type_count);
    }
    pawl__work_pg_trip_add(trip, statement, values, value_count, on_rows, context);
}

static bool is_planned_pick(const struct work_pg_prefetched *prefetched,
                            const struct work_filter *filter,
                            size_t count)
{
    const struct work_prefetch_plan *plan = prefetched->plan;

    return prefetched->picked && plan->filter == filter && plan->pick_count == count;
}

static pawl_status pg_pick(struct work_backend *base,
                           const struct work_filter *filter,
                           struct work_rows *found,
                           pawl_error *reterr)
{
    struct work_pg_prefetched *prefetched = &of(base)->prefetched;
    struct work_found context = { .sql = &of(base)->sql, .rows = found };
    struct work_pg_trip trip;

    if (is_planned_pick(prefetched, filter, found->room)) {
        found->count = prefetched->picks.count;
        memcpy(found->rows, prefetched->picks.rows, found->count * sizeof(struct work_row *));
        prefetched->picked = false;
        return PAWL_OK;
    }
    pawl__work_pg_trip_start(&trip, of(base), reterr);
    pawl__work_pg_add_pick(&trip, filter, found->room, pawl__work_pg_add_items, &context);
    pawl__work_pg_trip_add_clock(&trip);
    TRY(pawl__work_pg_trip_end(&trip));
    pawl__work_pg_walked(of(base), filter, found->room, found);
    return PAWL_OK;
}

/* --- what is due --- */

static pawl_status on_next_due(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    int64_t *next_us = context;

    (void)reterr;
    *next_us = rows->count == 1 ? pawl__pg_get_time(rows, 0, 0) : INT64_MAX;
    return PAWL_OK;
}

static pawl_status find_due(struct work_postgres *backend,
                            const struct work_now *now,
                            struct work_rows *found,
                            int64_t *ret_next_us,
                            pawl_error *reterr)
{
    struct work_found context = { .sql = &backend->sql, .rows = found };
    struct work_pg_trip trip;

    pawl__work_pg_trip_start(&trip, backend, reterr);
    pawl__work_pg_trip_add(&trip,
                           WORK_PG_DUE,
                           PG_ARGS(pawl__pg_i64((int64_t)found->room), pawl__pg_time(now->wall_us)),
                           pawl__work_pg_add_items,
                           &context);
    pawl__work_pg_trip_add(
        &trip, WORK_PG_NEXT_DUE, PG_ARGS(pawl__pg_time(now->wall_us)), on_next_due, ret_next_us);
    return pawl__work_pg_trip_end(&trip);
}

static pawl_status pg_due(struct work_backend *base,
                          const struct work_now *now,
                          struct work_rows *found,
                          int64_t *ret_next_ns,
                          pawl_error *reterr)
{
    struct work_pg_prefetched *prefetched = &of(base)->prefetched;
    int64_t next_us = prefetched->next_due_us;
    bool none_yet = prefetched->next_due_known && next_us > now->wall_us;

    prefetched->next_due_known = false;
    if (!none_yet) {
        prefetched->picked = false; /* an item that comes in may be claimed at once */
        TRY(find_due(of(base), now, found, &next_us, reterr));
        if (found->count == 0 && prefetched->next_due_us <= now->wall_us) {
            next_us = MIN(next_us, now->wall_us + DUE_LOCKED_US);
        }
    }
    *ret_next_ns = next_us == INT64_MAX ? INT64_MAX : pawl__work_pg_ns(next_us);
    return PAWL_OK;
}

const struct work_item_ops pawl__work_pg_items = {
    WORK_SQL_ITEM_OPS,
    .load = pg_load,
    .pick = pg_pick,
    .due = pg_due,
    .put = pawl__work_pg_put,
    .edges = pg_edges,
    .add_edges = pg_add_edges,
    .derive = pawl__work_pg_derive,
    .settle = pawl__work_pg_settle,
};
