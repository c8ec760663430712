/* Who comes after whom, in PostgreSQL. */
#include "work/postgres/backend.h"

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

struct edge_walk {
    void (*visit)(void *context, const struct work_edge *edge);
    void *context;
};

static pawl_status show_edges(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    const struct edge_walk *walk = context;

    (void)reterr;
    for (size_t i = 0; i < rows->count; i++) {
        struct work_edge edge = { .work_item_id = pawl__pg_get_text(rows, i, 0),
                                  .after_id = pawl__pg_get_text(rows, i, 1) };
        walk->visit(walk->context, &edge);
    }
    return PAWL_OK;
}

pawl_status pawl__work_pg_edges(struct work_backend *base,
                                const pawl_view *after_ids,
                                size_t count,
                                void (*visit)(void *context, const struct work_edge *edge),
                                void *context,
                                pawl_error *reterr)
{
    const struct work_pg_brought *brought = &of(base)->brought;
    struct edge_walk walk = { .visit = visit, .context = context };

    if (brought->edges_known && pawl__work_pg_was_wished(of(base), after_ids, count)) {
        for (size_t i = 0; i < brought->edge_count; i++) {
            visit(context, &brought->edges[i]);
        }
        return PAWL_OK;
    }
    return pawl__work_pg_ask(of(base),
                             WORK_PG_EDGES,
                             PG_ARGS(pawl__work_pg_ids(of(base), 0, after_ids, count)),
                             show_edges,
                             &walk,
                             reterr);
}

pawl_status pawl__work_pg_add_edges(struct work_backend *base,
                                    const struct work_edge *edges,
                                    size_t count,
                                    pawl_error *reterr)
{
    struct work_postgres *backend = of(base);
    struct work_pg_trip trip;
    pawl_status status = pawl__work_pg_trip_start(&trip, backend, reterr);

    backend->brought.edges_known = false;
    pawl__pg_array_start(&backend->arrays[0], 'T', count);
    pawl__pg_array_start(&backend->arrays[1], 'T', count);
    for (size_t i = 0; i < count; i++) {
        pawl__pg_array_add_view(&backend->arrays[0], edges[i].work_item_id);
        pawl__pg_array_add_view(&backend->arrays[1], edges[i].after_id);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(&trip,
                                        WORK_PG_EDGE_INSERT,
                                        PG_ARGS(pawl__pg_array_value(&backend->arrays[0]),
                                                pawl__pg_array_value(&backend->arrays[1])),
                                        NULL,
                                        NULL,
                                        reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}
