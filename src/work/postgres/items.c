/* Items in PostgreSQL: what the committer loads and picks. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

enum { LOAD_TRIES = 3 };
#define DUE_LOCKED_US (10 * (NS_PER_MS / NS_PER_US)) /* when others hold what is due: look again */

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

/* --- loading --- */

static int by_row_id(const void *a, const void *b)
{
    return pawl__work_view_order((*(struct work_row *const *)a)->item.work_item_id,
                                 (*(struct work_row *const *)b)->item.work_item_id);
}

static struct work_row *find_row(struct work_row **rows, size_t count, pawl_view id)
{
    struct work_row key = { .item.work_item_id = id };
    const struct work_row *wanted = &key;
    struct work_row **found = bsearch(&wanted, rows, count, sizeof(*rows), by_row_id);

    return found == NULL ? NULL : *found;
}

/* Puts rows that were loaded, in the order of their ids, to the ids they belong to. */
static void place_rows(const pawl_view *ids,
                       size_t count,
                       struct work_row **found,
                       size_t found_count,
                       struct work_row **ret_rows)
{
    for (size_t i = 0; i < count; i++) {
        if (ret_rows[i] == NULL) {
            ret_rows[i] = find_row(found, found_count, ids[i]);
        }
    }
}

static size_t list_missing(const pawl_view *ids,
                           size_t count,
                           struct work_row *const *rows,
                           pawl_view *ret_missing)
{
    size_t missing = 0;

    for (size_t i = 0; i < count; i++) {
        if (rows[i] == NULL) {
            ret_missing[missing++] = ids[i];
        }
    }
    return missing;
}

/* Those that are still missing, from one of the homes. */
static pawl_status load_from(struct work_postgres *backend,
                             size_t statement,
                             const pawl_view *ids,
                             size_t count,
                             struct pawl__arena *arena,
                             struct work_row **ret_rows,
                             size_t *ret_missing,
                             pawl_error *reterr)
{
    pawl_view *missing = pawl__arena_take(arena, count * sizeof(*missing));
    struct work_pg_kept kept = {
        .arena = arena,
        .rows = pawl__arena_take(arena, count * sizeof(struct work_row *)),
        .room = count,
    };

    if (missing == NULL || kept.rows == NULL) {
        return no_memory(reterr);
    }
    *ret_missing = list_missing(ids, count, ret_rows, missing);
    if (*ret_missing == 0) {
        return PAWL_OK;
    }
    TRY(pawl__work_pg_ask_and_clock(backend,
                                    statement,
                                    PG_ARGS(pawl__work_pg_ids(backend, 0, missing, *ret_missing)),
                                    pawl__work_pg_keep,
                                    &kept,
                                    reterr));
    place_rows(ids, count, kept.rows, kept.count, ret_rows);
    *ret_missing -= kept.count;
    return PAWL_OK;
}

pawl_status pawl__work_pg_load(struct work_backend *base,
                               const pawl_view *ids,
                               size_t count,
                               struct pawl__arena *arena,
                               struct work_row **ret_rows,
                               pawl_error *reterr)
{
    struct work_pg_brought *brought = &of(base)->brought;
    size_t missing = count;
    pawl_status status = PAWL_OK;

    memset(ret_rows, 0, count * sizeof(*ret_rows));
    if (brought->loaded && pawl__work_pg_was_wished(of(base), ids, count)) {
        place_rows(ids, count, brought->rows, brought->row_count, ret_rows);
        brought->loaded = false; /* what is loaded again may have been changed meanwhile */
    }
    /* An item that moves between two looks is found by the third. */
    for (int i = 0; i < LOAD_TRIES && missing > 0 && status == PAWL_OK; i++) {
        status = load_from(of(base), WORK_PG_LOAD, ids, count, arena, ret_rows, &missing, reterr);
        if (status == PAWL_OK && missing > 0) {
            size_t before = missing;
            status = load_from(
                of(base), WORK_PG_LOAD_WAITING, ids, count, arena, ret_rows, &missing, reterr);
            if (i > 0 && missing == before) {
                break;
            }
        }
    }
    return status;
}

/* --- picking --- */

pawl_status pawl__work_pg_add_pick(struct work_pg_trip *trip,
                                   const struct work_filter *filter,
                                   size_t count,
                                   work_pg_on_rows *on_rows,
                                   void *context,
                                   pawl_error *reterr)
{
    struct work_postgres *backend = trip->backend;
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
            pawl__work_pg_ids(backend, 0, filter->work_types, filter->work_type_count);
    }
    return pawl__work_pg_trip_add(trip, statement, values, value_count, on_rows, context, reterr);
}

/* A walk for several types locks more than it takes, and others may have passed over the rest. */
void pawl__work_pg_note_rest(struct work_postgres *backend,
                             const struct work_filter *filter,
                             size_t count,
                             size_t found)
{
    backend->notify |= filter->work_type_count > 1 && filter->task_id.len == 0 && found == count;
}

static bool is_wished_filter(const struct work_postgres *backend,
                             const struct work_filter *filter,
                             size_t count)
{
    const struct work_prefetch_plan *wish = backend->brought.wish;

    return backend->brought.picked && wish->filter == filter && wish->pick_count == count;
}

static pawl_status pg_pick(struct work_backend *base,
                           const struct work_filter *filter,
                           size_t count,
                           struct pawl__arena *arena,
                           struct work_row **ret_rows,
                           size_t *ret_count,
                           pawl_error *reterr)
{
    struct work_pg_brought *brought = &of(base)->brought;
    struct work_pg_kept kept = { .arena = arena, .rows = ret_rows, .room = count };
    struct work_pg_trip trip;

    if (is_wished_filter(of(base), filter, count)) {
        memcpy(ret_rows, brought->picks, brought->pick_count * sizeof(*ret_rows));
        *ret_count = brought->pick_count;
        brought->picked = false;
        return PAWL_OK;
    }
    pawl_status status = pawl__work_pg_trip_start(&trip, of(base), reterr);
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_pick(&trip, filter, count, pawl__work_pg_keep, &kept, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_clock(&trip, reterr);
    }
    status = pawl__work_pg_trip_end(&trip, status, reterr);
    if (status == PAWL_OK) {
        pawl__work_pg_note_rest(of(base), filter, count, kept.count);
        pawl__work_pg_walked(of(base), filter, count, ret_rows, kept.count);
        *ret_count = kept.count;
    }
    return status;
}

static pawl_status pg_expired(struct work_backend *base,
                              const struct work_now *now,
                              size_t count,
                              struct pawl__arena *arena,
                              struct work_row **ret_rows,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    struct work_pg_kept kept = { .arena = arena, .rows = ret_rows, .room = count };
    pawl_status status = pawl__work_pg_ask_and_clock(
        of(base),
        WORK_PG_EXPIRED,
        PG_ARGS(pawl__pg_i64((int64_t)count), pawl__pg_time(now->wall_us)),
        pawl__work_pg_keep,
        &kept,
        reterr);

    if (status == PAWL_OK && kept.count < count) { /* and what foreign SQL left so */
        status = pawl__work_pg_ask(of(base),
                                   WORK_PG_LEFT_EXPIRED,
                                   PG_ARGS(pawl__pg_i64((int64_t)(count - kept.count))),
                                   pawl__work_pg_keep,
                                   &kept,
                                   reterr);
    }
    *ret_count = kept.count;
    return status;
}

/* --- what waits --- */

static pawl_status on_next_due(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    int64_t *next_us = context;

    (void)reterr;
    *next_us = rows->count == 1 ? pawl__pg_get_time(rows, 0, 0) : INT64_MAX;
    return PAWL_OK;
}

static pawl_status pg_due(struct work_backend *base,
                          const struct work_now *now,
                          size_t count,
                          struct pawl__arena *arena,
                          struct work_row **ret_rows,
                          size_t *ret_count,
                          int64_t *ret_next_ns,
                          pawl_error *reterr)
{
    struct work_pg_brought *brought = &of(base)->brought;
    struct work_pg_kept kept = { .arena = arena, .rows = ret_rows, .room = count };
    int64_t next_us = brought->next_due_us;
    bool waits = brought->next_due_known && next_us > now->wall_us;
    struct work_pg_trip trip;

    *ret_count = 0;
    brought->next_due_known = false;
    if (!waits) {
        brought->picked = false; /* what is let in may be claimed at once */
        pawl_status status = pawl__work_pg_trip_start(&trip, of(base), reterr);
        if (status == PAWL_OK) {
            status = pawl__work_pg_trip_add(
                &trip,
                WORK_PG_DUE,
                PG_ARGS(pawl__pg_i64((int64_t)count), pawl__pg_time(now->wall_us)),
                pawl__work_pg_keep,
                &kept,
                reterr);
        }
        if (status == PAWL_OK) {
            status = pawl__work_pg_trip_add(&trip,
                                            WORK_PG_NEXT_DUE,
                                            PG_ARGS(pawl__pg_time(now->wall_us)),
                                            on_next_due,
                                            &next_us,
                                            reterr);
        }
        status = pawl__work_pg_trip_end(&trip, status, reterr);
        if (status != PAWL_OK) {
            return status;
        }
        if (kept.count == 0 && brought->next_due_us <= now->wall_us) {
            next_us = MIN(next_us, now->wall_us + DUE_LOCKED_US);
        }
        *ret_count = kept.count;
    }
    *ret_next_ns = next_us == INT64_MAX ? INT64_MAX : pawl__work_pg_ns(next_us);
    return PAWL_OK;
}

struct id_list {
    struct pawl__arena *arena;
    pawl_view *ids;
    size_t room;
    size_t count;
};

static pawl_status keep_ids(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct id_list *list = context;

    for (size_t i = 0; i < rows->count && list->count < list->room; i++) {
        if (!pawl__arena_copy(
                list->arena, pawl__pg_get_text(rows, i, 0), &list->ids[list->count++])) {
            return no_memory(reterr);
        }
    }
    return PAWL_OK;
}

/* One look at both homes gives the ids, whose rows are then loaded wherever they are by then. */
static pawl_status pg_unfinished(struct work_backend *base,
                                 pawl_view task_id,
                                 size_t count,
                                 struct pawl__arena *arena,
                                 struct work_row **ret_rows,
                                 size_t *ret_count,
                                 pawl_error *reterr)
{
    struct id_list list = {
        .arena = arena,
        .ids = pawl__arena_take(arena, count * sizeof(pawl_view)),
        .room = count,
    };
    size_t unfinished = 0;

    if (list.ids == NULL) {
        return no_memory(reterr);
    }
    do {
        list.count = 0;
        pawl_status status =
            pawl__work_pg_ask(of(base),
                              WORK_PG_UNFINISHED,
                              PG_ARGS(pawl__pg_text(task_id), pawl__pg_i64((int64_t)count)),
                              keep_ids,
                              &list,
                              reterr);
        if (status == PAWL_OK) {
            status = pawl__work_pg_load(base, list.ids, list.count, arena, ret_rows, reterr);
        }
        if (status != PAWL_OK) {
            return status;
        }
        for (size_t i = 0; i < list.count; i++) {
            if (ret_rows[i] != NULL && !pawl__work_item_has_ended(ret_rows[i]->item.status)) {
                ret_rows[unfinished++] = ret_rows[i]; /* unfinished <= i */
            }
        }
    } while (unfinished == 0 && list.count > 0);
    *ret_count = unfinished;
    return PAWL_OK;
}

/* --- boundaries --- */

static pawl_status pg_boundaries(struct work_backend *base,
                                 const struct work_now *now,
                                 struct work_row *const *rows,
                                 const pawl_view *ids,
                                 const pawl_view *snapshots,
                                 size_t count,
                                 pawl_error *reterr)
{
    struct pawl__pg_array *a = of(base)->arrays;
    struct work_pg_trip trip;

    if (count == 0) {
        return PAWL_OK;
    }
    pawl_status status = pawl__work_pg_trip_start(&trip, of(base), reterr);
    for (size_t i = 0; i < 4; i++) {
        pawl__pg_array_start(&a[i], 'T', count);
    }
    for (size_t i = 0; i < count; i++) {
        pawl__pg_array_add_view(&a[0], ids[i]);
        pawl__pg_array_add_view(&a[1], rows[i]->item.task_id);
        pawl__pg_array_add_view(&a[2], rows[i]->item.work_item_id);
        pawl__pg_array_add_view(&a[3], snapshots[i]);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(&trip,
                                        WORK_PG_BOUNDARY,
                                        PG_ARGS(pawl__pg_array_value(&a[0]),
                                                pawl__pg_array_value(&a[1]),
                                                pawl__pg_array_value(&a[2]),
                                                pawl__pg_array_value(&a[3]),
                                                pawl__pg_time(now->wall_us)),
                                        NULL,
                                        NULL,
                                        reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

const struct work_item_ops pawl__work_pg_items = {
    .load = pawl__work_pg_load,
    .pick = pg_pick,
    .expired = pg_expired,
    .due = pg_due,
    .unfinished = pg_unfinished,
    .put = pawl__work_pg_put,
    .edges = pawl__work_pg_edges,
    .add_edges = pawl__work_pg_add_edges,
    .boundaries = pg_boundaries,
    .tasks = pawl__work_pg_tasks,
    .task_insert = pawl__work_pg_task_insert,
    .task_set = pawl__work_pg_task_set,
    .derive = pawl__work_pg_derive,
    .settle = pawl__work_pg_settle,
    .get = pawl__work_pg_get,
    .list = pawl__work_pg_list,
    .history = pawl__work_pg_history,
    .task_read = pawl__work_pg_task_read,
    .comes_after = pawl__work_pg_comes_after,
    .orphans = pawl__work_pg_orphans,
};
