/* What a group asks for first, brought with its BEGIN. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

static pawl_status on_brought_rows(void *context,
                                   const struct pawl__pg_rows *rows,
                                   pawl_error *reterr)
{
    struct work_postgres *backend = context;
    struct work_pg_kept kept = {
        .arena = &backend->arena,
        .rows = pawl__arena_take(&backend->arena, rows->count * sizeof(struct work_row *)),
        .room = rows->count,
    };

    if (kept.rows == NULL && rows->count > 0) {
        return no_memory(reterr);
    }
    pawl_status status = pawl__work_pg_keep(&kept, rows, reterr);
    backend->brought.loaded = status == PAWL_OK;
    backend->brought.rows = kept.rows;
    backend->brought.row_count = kept.count;
    return status;
}

static pawl_status on_brought_edges(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr)
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
    backend->brought.edges = edges;
    backend->brought.edge_count = rows->count;
    backend->brought.edges_known = true;
    return PAWL_OK;
}

static pawl_status on_brought_picks(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr)
{
    struct work_postgres *backend = context;
    const struct work_prefetch_plan *wish = backend->brought.wish;
    struct work_pg_kept kept = {
        .arena = &backend->arena,
        .rows = pawl__arena_take(&backend->arena, rows->count * sizeof(struct work_row *)),
        .room = MIN(rows->count, wish->pick_count),
    };

    if (kept.rows == NULL && rows->count > 0) {
        return no_memory(reterr);
    }
    pawl_status status = pawl__work_pg_keep(&kept, rows, reterr);
    backend->brought.picked = status == PAWL_OK;
    backend->brought.picks = kept.rows;
    backend->brought.pick_count = kept.count;
    pawl__work_pg_note_rest(backend, wish->filter, wish->pick_count, kept.count);
    pawl__work_pg_walked(backend, wish->filter, wish->pick_count, kept.rows, kept.count);
    return status;
}

static pawl_status on_brought_clock(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr)
{
    struct work_postgres *backend = context;

    (void)reterr;
    if (rows->count == 1) {
        backend->now = pawl__work_pg_now(pawl__pg_get_time(rows, 0, 0));
        backend->brought.next_due_us =
            pawl__pg_is_null(rows, 0, 1) ? INT64_MAX : pawl__pg_get_time(rows, 0, 1);
        backend->brought.next_due_known = true;
    }
    return PAWL_OK;
}

static int by_view(const void *a, const void *b)
{
    return pawl__work_view_order(*(const pawl_view *)a, *(const pawl_view *)b);
}

/* In order, to be found. */
static bool keep_ids(struct work_postgres *backend, const struct work_prefetch_plan *wish)
{
    pawl_view *ids = pawl__arena_take(&backend->arena, wish->id_count * sizeof(*ids));

    if (ids == NULL) {
        return false;
    }
    memcpy(ids, wish->ids, wish->id_count * sizeof(*ids));
    qsort(ids, wish->id_count, sizeof(*ids), by_view);
    backend->brought.ids = ids;
    backend->brought.id_count = wish->id_count;
    return true;
}

static pawl_status add_wished_ids(struct work_pg_trip *trip,
                                  const struct work_prefetch_plan *wish,
                                  pawl_error *reterr)
{
    struct work_postgres *backend = trip->backend;
    struct pawl__pg_value ids = pawl__work_pg_ids(backend, 0, wish->ids, wish->id_count);

    if (!keep_ids(backend, wish)) {
        return no_memory(reterr);
    }
    TRY(pawl__work_pg_trip_add(trip, WORK_PG_LOAD, PG_ARGS(ids), on_brought_rows, backend, reterr));
    /* A statement of its own, behind the locks: who comes after an item that is locked stays so. */
    return pawl__work_pg_trip_add(
        trip, WORK_PG_EDGES, PG_ARGS(ids), on_brought_edges, backend, reterr);
}

pawl_status pawl__work_pg_add_wish(struct work_pg_trip *trip, pawl_error *reterr)
{
    struct work_postgres *backend = trip->backend;
    const struct work_prefetch_plan *wish = backend->brought.wish;
    pawl_status status = PAWL_OK;

    if (wish == NULL) {
        return pawl__work_pg_add_clock(trip, reterr);
    }
    if (wish->id_count > 0) {
        status = add_wished_ids(trip, wish, reterr);
    }
    if (wish->pick_count == 0) {
        return status == PAWL_OK ? pawl__work_pg_add_clock(trip, reterr) : status;
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_pick(
            trip, wish->filter, wish->pick_count, on_brought_picks, backend, reterr);
    }
    return status == PAWL_OK ? pawl__work_pg_trip_add(trip,
                                                      WORK_PG_CLOCK_AND_DUE,
                                                      PG_ARGS(pawl__work_pg_given_time(backend)),
                                                      on_brought_clock,
                                                      backend,
                                                      reterr)
                             : status;
}

bool pawl__work_pg_was_wished(const struct work_postgres *backend,
                              const pawl_view *ids,
                              size_t count)
{
    const struct work_pg_brought *brought = &backend->brought;

    for (size_t i = 0; i < count; i++) {
        if (bsearch(&ids[i], brought->ids, brought->id_count, sizeof(*ids), by_view) == NULL) {
            return false;
        }
    }
    return true;
}
