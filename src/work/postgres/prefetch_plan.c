/* The prefetch plan: the trip that begins a transaction also asks what the group will ask first, and so
 * saves a group that the fast path does not serve one round trip. With the fast path switched off a drain
 * on a loopback connection takes 1.13 times as long without it (bench/work/README.md); on a network the
 * trips that it saves cost more. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

/* Copies the rows of a statement into the transaction's arena. */
static pawl_status prefetch_rows(struct work_postgres *backend,
                                 const struct pawl__pg_rows *rows,
                                 size_t room,
                                 struct work_rows *ret_rows,
                                 pawl_error *reterr)
{
    struct work_found found = { .sql = &backend->sql, .rows = ret_rows };

    *ret_rows = (struct work_rows){
        .arena = &backend->arena,
        .rows = pawl__arena_take(&backend->arena, room * sizeof(struct work_row *)),
        .room = room,
    };
    return ret_rows->rows == NULL && room > 0 ? no_memory(reterr)
                                              : pawl__work_pg_add_items(&found, rows, reterr);
}

static pawl_status on_loaded(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct work_postgres *backend = context;

    TRY(prefetch_rows(backend, rows, rows->count, &backend->prefetched.rows, reterr));
    backend->prefetched.loaded = true;
    return PAWL_OK;
}

static pawl_status on_edges(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct work_postgres *backend = context;
    struct work_edge *edges =
        pawl__arena_take(&backend->arena, rows->count * sizeof(struct work_edge));

    if (edges == NULL && rows->count > 0) {
        return no_memory(reterr);
    }
    for (size_t i = 0; i < rows->count; i++) {
        if (!pawl__arena_copy(
                &backend->arena, pawl__pg_get_text(rows, i, 0), &edges[i].work_item_id)
            || !pawl__arena_copy(
                &backend->arena, pawl__pg_get_text(rows, i, 1), &edges[i].after_id)) {
            return no_memory(reterr);
        }
    }
    backend->prefetched.edges = edges;
    backend->prefetched.edge_count = rows->count;
    backend->prefetched.edges_known = true;
    return PAWL_OK;
}

static pawl_status on_picked(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct work_postgres *backend = context;
    struct work_pg_prefetched *prefetched = &backend->prefetched;
    const struct work_prefetch_plan *plan = prefetched->plan;
    size_t room = MIN(rows->count, plan->pick_count);

    TRY(prefetch_rows(backend, rows, room, &prefetched->picks, reterr));
    prefetched->picked = true;
    pawl__work_pg_walked(backend, plan->filter, plan->pick_count, &prefetched->picks);
    return PAWL_OK;
}

static pawl_status on_clock_and_due(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr)
{
    struct work_postgres *backend = context;

    (void)reterr;
    if (rows->count == 1) {
        backend->sql.now = pawl__work_pg_now(pawl__pg_get_time(rows, 0, 0));
        backend->prefetched.next_due_us =
            pawl__pg_is_null(rows, 0, 1) ? INT64_MAX : pawl__pg_get_time(rows, 0, 1);
        backend->prefetched.next_due_known = true;
    }
    return PAWL_OK;
}

static int by_view(const void *a, const void *b)
{
    return pawl__work_view_order(*(const pawl_view *)a, *(const pawl_view *)b);
}

/* Sorts them for pawl__work_pg_was_planned. */
static bool remember_ids(struct work_postgres *backend, const struct work_prefetch_plan *plan)
{
    pawl_view *ids = pawl__arena_take(&backend->arena, plan->id_count * sizeof(*ids));

    if (ids == NULL) {
        return false;
    }
    memcpy(ids, plan->ids, plan->id_count * sizeof(*ids));
    qsort(ids, plan->id_count, sizeof(*ids), by_view);
    backend->prefetched.ids = ids;
    backend->prefetched.id_count = plan->id_count;
    return true;
}

static void add_ids(struct work_pg_trip *trip, const struct work_prefetch_plan *plan)
{
    struct work_postgres *backend = trip->backend;
    struct pawl__pg_value ids = pawl__work_pg_list(backend, 0, plan->ids, plan->id_count);

    if (trip->status == PAWL_OK && !remember_ids(backend, plan)) {
        trip->status = no_memory(trip->reterr);
    }
    pawl__work_pg_trip_add(trip, WORK_PG_LOAD, PG_ARGS(ids), on_loaded, backend);
    /* A statement of its own, after the locks: who comes after an item that is locked stays so. */
    pawl__work_pg_trip_add(trip, WORK_PG_EDGES, PG_ARGS(ids), on_edges, backend);
}

void pawl__work_pg_add_plan(struct work_pg_trip *trip)
{
    struct work_postgres *backend = trip->backend;
    const struct work_prefetch_plan *plan = backend->prefetched.plan;

    if (plan != NULL && plan->id_count > 0) {
        add_ids(trip, plan);
    }
    if (plan == NULL || plan->pick_count == 0) {
        pawl__work_pg_trip_add_clock(trip);
        return;
    }
    pawl__work_pg_add_pick(trip, plan->filter, plan->pick_count, on_picked, backend);
    pawl__work_pg_trip_add(trip,
                           WORK_PG_CLOCK_AND_DUE,
                           PG_ARGS(pawl__work_pg_given_time(backend)),
                           on_clock_and_due,
                           backend);
}

bool pawl__work_pg_was_planned(const struct work_postgres *backend,
                               const pawl_view *ids,
                               size_t count)
{
    const struct work_pg_prefetched *prefetched = &backend->prefetched;

    for (size_t i = 0; i < count; i++) {
        if (bsearch(&ids[i], prefetched->ids, prefetched->id_count, sizeof(*ids), by_view)
            == NULL) {
            return false;
        }
    }
    return true;
}
