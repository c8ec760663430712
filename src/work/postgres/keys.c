/* Idempotency keys in PostgreSQL. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/keys/backend.h"
#include "work/postgres/backend.h"

static struct work_postgres *of(struct work_backend *base)
{
    return pawl__work_pg_of(base);
}

static pawl_status read_row(const struct pawl__pg_rows *rows,
                            struct work_key_row *ret_row,
                            pawl_error *reterr)
{
    struct work_key_row row = {
        .known = true,
        .key = pawl__pg_get_text(rows, 0, 0),
        .request_hash = pawl__pg_get_text(rows, 0, 1),
        .task_id = pawl__pg_get_text(rows, 0, 2),
        .work_item_id = pawl__pg_get_text(rows, 0, 3),
        .response = pawl__pg_get_text(rows, 0, 5),
        .owner = pawl__pg_get_text(rows, 0, 6),
        .owner_token = (uint64_t)pawl__pg_get_i64(rows, 0, 7),
        .leased = !pawl__pg_is_null(rows, 0, 8),
        .lease_expires_at_us = pawl__pg_get_time(rows, 0, 8),
        .created_at_us = pawl__pg_get_time(rows, 0, 9),
        .completed_at_us = pawl__pg_get_time(rows, 0, 10),
        .expires_at_us = pawl__pg_get_time(rows, 0, 11),
    };

    row.deadline_ns = pawl__work_pg_ns(row.lease_expires_at_us);
    row.over_ns = row.expires_at_us == 0 ? INT64_MAX : pawl__work_pg_ns(row.expires_at_us);
    if (!pawl__work_key_state_parse(pawl__pg_get_text(rows, 0, 4), &row.state)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "key '%.*s' has no status", VIEW_ARGS(row.key));
    }
    *ret_row = row;
    return PAWL_OK;
}

struct key_load {
    struct pawl__arena *arena;
    struct work_key_row *row;
};

static pawl_status keep_key(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    const struct key_load *load = context;
    struct work_key_row row;

    if (rows->count == 0) {
        return PAWL_OK;
    }
    pawl_status status = read_row(rows, &row, reterr);
    return status == PAWL_OK && !pawl__work_copy_key(load->arena, &row, load->row)
               ? pawl__fail(reterr, PAWL_NOMEM, "key")
               : status;
}

static pawl_status keep_floor(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    const struct key_load *load = context;

    (void)reterr;
    if (!load->row->known && rows->count == 1) {
        load->row->owner_token = (uint64_t)pawl__pg_get_i64(rows, 0, 0);
    }
    return PAWL_OK;
}

/* The floor is read after the row: whoever removes a key has raised it by then. */
static pawl_status pg_load(struct work_backend *base,
                           const struct work_now *now,
                           pawl_view key,
                           struct pawl__arena *arena,
                           struct work_key_row *ret_row,
                           pawl_error *reterr)
{
    struct key_load load = { .arena = arena, .row = ret_row };
    struct work_pg_trip trip;

    (void)now;
    *ret_row = (struct work_key_row){ .key = key };
    pawl_status status = pawl__work_pg_trip_start(&trip, of(base), reterr);
    if (status == PAWL_OK) {
        status = pawl__work_pg_trip_add(
            &trip, WORK_PG_KEY_LOAD, PG_ARGS(pawl__pg_text(key)), keep_key, &load, reterr);
    }
    if (status == PAWL_OK) {
        status =
            pawl__work_pg_trip_add(&trip, WORK_PG_KEY_FLOOR, PG_NO_ARGS, keep_floor, &load, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__work_pg_add_clock(&trip, reterr);
    }
    return pawl__work_pg_trip_end(&trip, status, reterr);
}

/* A key that somebody has begun takes the place of whatever was there. */
static pawl_status take(struct work_postgres *backend,
                        const struct work_key_row *row,
                        pawl_error *reterr)
{
    return pawl__work_pg_ask(backend,
                             row->known ? WORK_PG_KEY_TAKE : WORK_PG_KEY_INSERT,
                             PG_ARGS(pawl__pg_text(row->key),
                                     pawl__pg_text(row->request_hash),
                                     pawl__work_pg_optional(row->task_id),
                                     pawl__work_pg_optional(row->work_item_id),
                                     pawl__work_pg_optional(row->owner),
                                     pawl__pg_i64((int64_t)row->owner_token),
                                     pawl__work_pg_time(row->lease_expires_at_us),
                                     pawl__work_pg_time(row->created_at_us),
                                     pawl__work_pg_time(row->expires_at_us)),
                             NULL,
                             NULL,
                             reterr);
}

static pawl_status end(struct work_postgres *backend,
                       const struct work_key_row *row,
                       pawl_error *reterr)
{
    return pawl__work_pg_ask(
        backend,
        WORK_PG_KEY_END,
        PG_ARGS(pawl__pg_text(row->key),
                pawl__pg_text(pawl_view_of(pawl__work_key_state_text(row->state))),
                pawl__work_pg_optional(row->response),
                pawl__work_pg_time(row->completed_at_us)),
        NULL,
        NULL,
        reterr);
}

static pawl_status pg_put(struct work_backend *base,
                          const struct work_now *now,
                          const struct work_key_row *row,
                          pawl_error *reterr)
{
    (void)now;
    return row->state == WORK_KEY_PENDING && row->leased ? take(of(base), row, reterr)
                                                         : end(of(base), row, reterr);
}

static pawl_status add_affected(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    uint64_t *removed = context;

    (void)reterr;
    *removed += (uint64_t)rows->affected;
    return PAWL_OK;
}

static pawl_status pg_prune(struct work_backend *base,
                            const struct work_now *now,
                            int64_t completed_before_us,
                            size_t count,
                            uint64_t *ret_removed,
                            pawl_error *reterr)
{
    uint64_t removed = 0;

    TRY(pawl__work_pg_ask(of(base),
                          WORK_PG_KEY_PRUNE_OVER,
                          PG_ARGS(pawl__pg_time(now->wall_us), pawl__pg_i64((int64_t)count)),
                          add_affected,
                          &removed,
                          reterr));
    if (removed < count) {
        TRY(pawl__work_pg_ask(
            of(base),
            WORK_PG_KEY_PRUNE_OLD,
            PG_ARGS(pawl__pg_i64((int64_t)(count - removed)), pawl__pg_time(completed_before_us)),
            add_affected,
            &removed,
            reterr));
    }
    *ret_removed = removed;
    return PAWL_OK;
}

/* --- Reading --- */

struct key_walk {
    work_key_visit visit;
    void *context;
    bool any;
    pawl_status status;
    pawl_error *reterr;
};

static bool show_key(void *context, const struct pawl__pg_rows *rows)
{
    struct key_walk *walk = context;
    struct work_key_row row;

    walk->any = true;
    walk->status = read_row(rows, &row, walk->reterr);
    return walk->status == PAWL_OK && walk->visit(walk->context, &row);
}

static pawl_status pg_get(struct work_backend *base,
                          const struct work_now *now,
                          pawl_view key,
                          work_key_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    struct key_walk walk = { .visit = visit, .context = context, .reterr = reterr };
    pawl_status status = pawl__work_pg_walk(
        base, WORK_PG_KEY_GET, PG_ARGS(pawl__pg_text(key)), show_key, &walk, reterr);

    (void)now;
    if (status != PAWL_OK || walk.status != PAWL_OK) {
        return status != PAWL_OK ? status : walk.status;
    }
    return walk.any ? PAWL_OK : pawl__fail(reterr, PAWL_NOT_FOUND, "no key '%.*s'", VIEW_ARGS(key));
}

static pawl_status pg_cached(struct work_backend *base,
                             const struct work_now *now,
                             pawl_view task_id,
                             work_key_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    struct key_walk walk = { .visit = visit, .context = context, .reterr = reterr };
    pawl_status status =
        pawl__work_pg_walk(base,
                           WORK_PG_KEY_CACHED,
                           PG_ARGS(pawl__pg_text(task_id), pawl__pg_time(now->wall_us)),
                           show_key,
                           &walk,
                           reterr);

    return status == PAWL_OK ? walk.status : status;
}

static bool read_count(void *context, const struct pawl__pg_rows *rows)
{
    uint64_t *count = context;

    *count = (uint64_t)pawl__pg_get_i64(rows, 0, 0);
    return true;
}

static pawl_status pg_prunable(struct work_backend *base,
                               const struct work_now *now,
                               int64_t completed_before_us,
                               uint64_t *ret_count,
                               pawl_error *reterr)
{
    return pawl__work_pg_walk(
        base,
        WORK_PG_KEY_PRUNABLE,
        PG_ARGS(pawl__pg_time(now->wall_us), pawl__pg_time(completed_before_us)),
        read_count,
        ret_count,
        reterr);
}

const struct work_key_ops pawl__work_pg_keys = {
    .load = pg_load,
    .put = pg_put,
    .prune = pg_prune,
    .get = pg_get,
    .cached = pg_cached,
    .prunable = pg_prunable,
};
