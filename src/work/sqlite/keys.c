/* Idempotency keys in SQLite. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/keys/backend.h"
#include "work/sqlite/backend.h"

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

/* When a key is past its TTL, on this boot's clock: the clock of another boot says nothing, and then
 * the date decides. */
static int64_t over_of(const struct work_sqlite *backend,
                       const struct work_now *now,
                       struct pawl__sqlite_stmt *stmt,
                       int64_t expires_at_us)
{
    pawl_view boot = pawl__sqlite_text(stmt, 14);

    if (expires_at_us == 0) {
        return INT64_MAX;
    }
    return pawl__work_sqlite_deadline(
        backend,
        now,
        pawl__view_is(boot, backend->boot_id) ? boot : (pawl_view){ NULL, 0 },
        pawl__sqlite_i64(stmt, 15),
        expires_at_us);
}

static pawl_status read_row(const struct work_sqlite *backend,
                            const struct work_now *now,
                            struct pawl__sqlite_stmt *stmt,
                            struct work_key_row *ret_row,
                            pawl_error *reterr)
{
    struct work_key_row row = {
        .known = true,
        .key = pawl__sqlite_text(stmt, 0),
        .request_hash = pawl__sqlite_text(stmt, 1),
        .task_id = pawl__sqlite_text(stmt, 2),
        .work_item_id = pawl__sqlite_text(stmt, 3),
        .response = pawl__sqlite_text(stmt, 5),
        .owner = pawl__sqlite_text(stmt, 6),
        .owner_token = (uint64_t)pawl__sqlite_i64(stmt, 7),
        .leased = !pawl__sqlite_is_null(stmt, 9) || !pawl__sqlite_is_null(stmt, 10),
        .lease_expires_at_us = pawl__work_time(stmt, 10),
        .created_at_us = pawl__work_time(stmt, 11),
        .completed_at_us = pawl__work_time(stmt, 12),
        .expires_at_us = pawl__work_time(stmt, 13),
    };

    row.deadline_ns = pawl__work_sqlite_deadline(backend,
                                                 now,
                                                 pawl__sqlite_text(stmt, 8),
                                                 pawl__sqlite_i64(stmt, 9),
                                                 row.lease_expires_at_us);
    row.over_ns = over_of(backend, now, stmt, row.expires_at_us);
    if (!pawl__work_key_state_parse(pawl__sqlite_text(stmt, 4), &row.state)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "key '%.*s' has no status", VIEW_ARGS(row.key));
    }
    *ret_row = row;
    return PAWL_OK;
}

static pawl_status read_floor(struct work_sqlite *backend, uint64_t *ret_floor, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_KEY_FLOOR);
    bool row = false;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    *ret_floor = row ? (uint64_t)pawl__sqlite_i64(&stmt, 0) : 0;
    return PAWL_OK;
}

static pawl_status sqlite_load(struct work_backend *base,
                               const struct work_now *now,
                               pawl_view key,
                               struct pawl__arena *arena,
                               struct work_key_row *ret_row,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_KEY_GET);
    struct work_key_row row;
    bool more = false;

    pawl__sqlite_bind_text(&stmt, 1, key);
    pawl_status status = pawl__sqlite_next(&stmt, &more, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (!more) {
        *ret_row = (struct work_key_row){ .key = key };
        return read_floor(of(base), &ret_row->owner_token, reterr);
    }
    status = read_row(of(base), now, &stmt, &row, reterr);
    return status == PAWL_OK && !pawl__work_copy_key(arena, &row, ret_row)
               ? pawl__fail(reterr, PAWL_NOMEM, "key")
               : status;
}

/* A key that somebody has begun takes the place of whatever was there. */
static pawl_status take(struct work_sqlite *backend,
                        const struct work_key_row *row,
                        pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_KEY_TAKE);

    pawl__sqlite_bind_text(&stmt, 1, row->key);
    pawl__sqlite_bind_text(&stmt, 2, row->request_hash);
    pawl__work_bind_optional(&stmt, 3, row->task_id);
    pawl__work_bind_optional(&stmt, 4, row->work_item_id);
    pawl__work_bind_optional(&stmt, 5, row->owner);
    pawl__sqlite_bind_i64(&stmt, 6, (int64_t)row->owner_token);
    pawl__sqlite_bind_text(&stmt, 7, pawl_view_of(backend->boot_id));
    pawl__sqlite_bind_i64(&stmt, 8, row->deadline_ns);
    pawl__work_bind_time(&stmt, 9, row->lease_expires_at_us);
    pawl__work_bind_time(&stmt, 10, row->created_at_us);
    pawl__work_bind_time(&stmt, 11, row->expires_at_us);
    pawl__sqlite_bind_i64(&stmt, 12, row->over_ns);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status end(struct work_sqlite *backend,
                       const struct work_key_row *row,
                       pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_KEY_END);

    pawl__sqlite_bind_text(&stmt, 1, row->key);
    pawl__sqlite_bind_text(&stmt, 2, pawl_view_of(pawl__work_key_state_text(row->state)));
    pawl__work_bind_optional(&stmt, 3, row->response);
    pawl__work_bind_time(&stmt, 4, row->completed_at_us);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status sqlite_put(struct work_backend *base,
                              const struct work_now *now,
                              const struct work_key_row *row,
                              pawl_error *reterr)
{
    (void)now;
    return row->state == WORK_KEY_PENDING && row->leased ? take(of(base), row, reterr)
                                                         : end(of(base), row, reterr);
}

static void bind_prune(struct work_sqlite *backend,
                       const struct work_now *now,
                       int64_t completed_before_us,
                       struct pawl__sqlite_stmt *stmt)
{
    pawl__work_bind_time(stmt, 1, now->wall_us);
    pawl__sqlite_bind_text(stmt, 2, pawl_view_of(backend->boot_id));
    pawl__sqlite_bind_i64(stmt, 3, now->ns);
    pawl__work_bind_time(stmt, 4, completed_before_us);
}

static pawl_status prune_by(struct work_sqlite *backend,
                            size_t statement,
                            const struct work_now *now,
                            int64_t completed_before_us,
                            uint64_t count,
                            uint64_t *removed,
                            pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    if (statement == WORK_SQL_KEY_PRUNE_OLD) {
        pawl__work_bind_time(&stmt, 4, completed_before_us);
    } else {
        bind_prune(backend, now, completed_before_us, &stmt);
    }
    pawl__sqlite_bind_i64(&stmt, 5, (int64_t)count);
    TRY(pawl__sqlite_run(&stmt, reterr));
    *removed += (uint64_t)pawl__sqlite_changes(backend->writer);
    return PAWL_OK;
}

static pawl_status sqlite_prune(struct work_backend *base,
                                const struct work_now *now,
                                int64_t completed_before_us,
                                size_t count,
                                uint64_t *ret_removed,
                                pawl_error *reterr)
{
    static const size_t statements[] = {
        WORK_SQL_KEY_PRUNE_OVER,
        WORK_SQL_KEY_PRUNE_OVER_WALL,
        WORK_SQL_KEY_PRUNE_OLD,
    };
    uint64_t removed = 0;
    for (size_t i = 0; i < COUNT_OF(statements) && removed < count; i++) {
        TRY(prune_by(
            of(base), statements[i], now, completed_before_us, count - removed, &removed, reterr));
    }
    *ret_removed = removed;
    return PAWL_OK;
}

/* --- Reading --- */

static pawl_status walk_rows(struct work_sqlite *backend,
                             const struct work_now *now,
                             struct pawl__sqlite_stmt *stmt,
                             work_key_visit visit,
                             void *context,
                             bool *ret_any,
                             pawl_error *reterr)
{
    for (;;) {
        struct work_key_row row;
        bool more = false;
        pawl_status status = pawl__sqlite_next(stmt, &more, reterr);
        if (status == PAWL_OK && more) {
            status = read_row(backend, now, stmt, &row, reterr);
        }
        if (status != PAWL_OK || !more) {
            return status;
        }
        *ret_any = true;
        if (!visit(context, &row)) {
            return PAWL_OK;
        }
    }
}

static pawl_status get_in(struct work_sqlite *backend,
                          struct pawl__sqlite *db,
                          const struct work_now *now,
                          pawl_view key,
                          work_key_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_KEY_GET);
    bool any = false;

    pawl__sqlite_bind_text(&stmt, 1, key);
    pawl_status status = walk_rows(backend, now, &stmt, visit, context, &any, reterr);
    return status == PAWL_OK && !any
               ? pawl__fail(reterr, PAWL_NOT_FOUND, "no key '%.*s'", VIEW_ARGS(key))
               : status;
}

static pawl_status sqlite_get(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view key,
                              work_key_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return get_in(of(base), reader.db, now, key, visit, context, reterr);
}

static pawl_status cached_in(struct work_sqlite *backend,
                             struct pawl__sqlite *db,
                             const struct work_now *now,
                             pawl_view task_id,
                             work_key_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_KEY_CACHED);
    bool any = false;

    pawl__sqlite_bind_text(&stmt, 1, task_id);
    pawl__work_bind_time(&stmt, 2, now->wall_us);
    pawl__sqlite_bind_text(&stmt, 3, pawl_view_of(backend->boot_id));
    pawl__sqlite_bind_i64(&stmt, 4, now->ns);
    return walk_rows(backend, now, &stmt, visit, context, &any, reterr);
}

static pawl_status sqlite_cached(struct work_backend *base,
                                 const struct work_now *now,
                                 pawl_view task_id,
                                 work_key_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return cached_in(of(base), reader.db, now, task_id, visit, context, reterr);
}

static pawl_status prunable_in(struct work_sqlite *backend,
                               struct pawl__sqlite *db,
                               const struct work_now *now,
                               int64_t completed_before_us,
                               uint64_t *ret_count,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_KEY_PRUNABLE);
    bool row = false;

    bind_prune(backend, now, completed_before_us, &stmt);
    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    *ret_count = (uint64_t)pawl__sqlite_i64(&stmt, 0);
    return PAWL_OK;
}

static pawl_status sqlite_prunable(struct work_backend *base,
                                   const struct work_now *now,
                                   int64_t completed_before_us,
                                   uint64_t *ret_count,
                                   pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return prunable_in(of(base), reader.db, now, completed_before_us, ret_count, reterr);
}

const struct work_key_ops pawl__work_sqlite_keys = {
    .load = sqlite_load,
    .put = sqlite_put,
    .prune = sqlite_prune,
    .get = sqlite_get,
    .cached = sqlite_cached,
    .prunable = sqlite_prunable,
};
