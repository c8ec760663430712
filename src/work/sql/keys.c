/* Idempotency keys of both databases. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/sql/sql.h"

/* SQLite's boot id and boot clock of the lease, and of the key's end. */
enum { COLUMN_LEASE_BOOT = 13, COLUMN_EXPIRY_BOOT = 15 };

static pawl_status read_key(const struct work_sql_backend *sql,
                            const struct work_now *now,
                            const struct work_columns *row,
                            struct work_key_row *ret_row,
                            pawl_error *reterr)
{
    struct work_key_row key = {
        .known = true,
        .key = col_text(row, 0),
        .request_hash = col_text(row, 1),
        .task_id = col_text(row, 2),
        .work_item_id = col_text(row, 3),
        .response = col_text(row, 5),
        .owner = col_text(row, 6),
        .owner_token = col_count(row, 7),
        .lease_expires_at_us = col_time(row, 8),
        .created_at_us = col_time(row, 9),
        .completed_at_us = col_time(row, 10),
        .expires_at_us = col_time(row, 11),
        .leased = col_bool(row, 12),
        .over_ns = INT64_MAX,
    };

    key.deadline_ns =
        sql->ops->deadline(sql, now, row, COLUMN_LEASE_BOOT, key.lease_expires_at_us, false);
    if (key.expires_at_us != 0) {
        key.over_ns =
            sql->ops->deadline(sql, now, row, COLUMN_EXPIRY_BOOT, key.expires_at_us, true);
    }
    if (!pawl__work_key_state_parse(col_text(row, 4), &key.state)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "key '%.*s' has no status", VIEW_ARGS(key.key));
    }
    *ret_row = key;
    return PAWL_OK;
}

/* --- Inside of a transaction --- */

struct key_load {
    const struct work_sql_backend *sql;
    const struct work_now *now;
    struct pawl__arena *arena;
    struct work_key_row *row;
};

static pawl_status load_key(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct key_load *load = context;
    struct work_key_row key;

    TRY(read_key(load->sql, load->now, row, &key, reterr));
    return pawl__work_copy_key(load->arena, &key, load->row)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a key");
}

static pawl_status load_floor(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct key_load *load = context;

    (void)reterr;
    if (!load->row->known) {
        load->row->owner_token = col_count(row, 0);
    }
    return PAWL_OK;
}

/* The floor is read after the row: whatever removes a key has raised it by then. */
static pawl_status sql_load(struct work_backend *base,
                            const struct work_now *now,
                            pawl_view key,
                            struct pawl__arena *arena,
                            struct work_key_row *ret_row,
                            pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct key_load load = { .sql = sql, .now = now, .arena = arena, .row = ret_row };

    *ret_row = (struct work_key_row){ .key = key };
    struct work_step steps[] = { SQL_STEP(WORK_STMT_KEY_LOAD, sql_text(key)),
                                 SQL_STEP_ALONE(WORK_STMT_KEY_FLOOR) };
    steps[0].locks = true;
    steps[0].on_row = load_key;
    steps[1].on_row = load_floor;
    steps[0].context = steps[1].context = &load;
    return sql->ops->run(sql, steps, COUNT_OF(steps), reterr);
}

/* A key that is begun replaces what was stored under it. */
static pawl_status store_begun(struct work_backend *base,
                               const struct work_key_row *row,
                               pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(row->known ? WORK_STMT_KEY_REPLACE : WORK_STMT_KEY_INSERT,
                                       sql_text(row->key),
                                       sql_text(row->request_hash),
                                       sql_optional(row->task_id),
                                       sql_optional(row->work_item_id),
                                       sql_optional(row->owner),
                                       sql_int((int64_t)row->owner_token),
                                       sql_optional_time(row->lease_expires_at_us),
                                       sql_optional_time(row->created_at_us),
                                       sql_optional_time(row->expires_at_us),
                                       sql_name(pawl__work_sql_of(base)->boot_id),
                                       sql_int(row->deadline_ns),
                                       sql_int(row->over_ns)),
                              reterr);
}

static pawl_status store_ended(struct work_backend *base,
                               const struct work_key_row *row,
                               pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_KEY_END,
                                       sql_text(row->key),
                                       sql_name(pawl__work_key_state_text(row->state)),
                                       sql_optional(row->response),
                                       sql_optional_time(row->completed_at_us)),
                              reterr);
}

static pawl_status sql_put(struct work_backend *base,
                           const struct work_key_row *row,
                           pawl_error *reterr)
{
    return row->state == WORK_KEY_PENDING && row->leased ? store_begun(base, row, reterr)
                                                         : store_ended(base, row, reterr);
}

static pawl_status sql_prune(struct work_backend *base,
                             const struct work_now *now,
                             int64_t completed_before_us,
                             size_t count,
                             uint64_t *ret_removed,
                             pawl_error *reterr)
{
    const char *boot_id = pawl__work_sql_of(base)->boot_id;
    struct work_step over = SQL_STEP(WORK_STMT_KEY_PRUNE_OVER,
                                     sql_time(now->wall_us),
                                     sql_int((int64_t)count),
                                     sql_name(boot_id),
                                     sql_int(now->ns));

    *ret_removed = 0;
    over.changed = ret_removed;
    TRY(pawl__work_sql_run(base, over, reterr));
    if (*ret_removed >= count) {
        return PAWL_OK;
    }
    struct work_step old = SQL_STEP(WORK_STMT_KEY_PRUNE_OLD,
                                    sql_int((int64_t)(count - *ret_removed)),
                                    sql_time(completed_before_us));
    old.changed = ret_removed;
    return pawl__work_sql_run(base, old, reterr);
}

/* --- Reading --- */

struct key_walk {
    const struct work_sql_backend *sql;
    const struct work_now *now;
    work_key_visit visit;
    void *context;
    bool any;
};

static pawl_status show_key(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct key_walk *walk = context;
    struct work_key_row key;

    walk->any = true;
    TRY(read_key(walk->sql, walk->now, row, &key, reterr));
    return pawl__work_go_on(walk->visit(walk->context, &key));
}

static pawl_status sql_get(struct work_backend *base,
                           const struct work_now *now,
                           pawl_view key,
                           work_key_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    struct key_walk walk = { pawl__work_sql_of(base), now, visit, context, false };

    TRY(pawl__work_sql_read(
        base, SQL_STEP(WORK_STMT_KEY_GET, sql_text(key)), show_key, &walk, reterr));
    return walk.any ? PAWL_OK : pawl__fail(reterr, PAWL_NOT_FOUND, "no key '%.*s'", VIEW_ARGS(key));
}

static pawl_status sql_cached(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view task_id,
                              work_key_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    struct key_walk walk = { pawl__work_sql_of(base), now, visit, context, false };

    return pawl__work_sql_read(base,
                               SQL_STEP(WORK_STMT_KEY_CACHED,
                                        sql_text(task_id),
                                        sql_time(now->wall_us),
                                        sql_name(walk.sql->boot_id),
                                        sql_int(now->ns)),
                               show_key,
                               &walk,
                               reterr);
}

static pawl_status sql_prunable(struct work_backend *base,
                                const struct work_now *now,
                                int64_t completed_before_us,
                                uint64_t *ret_count,
                                pawl_error *reterr)
{
    int64_t count = 0;

    TRY(pawl__work_sql_read(base,
                            SQL_STEP(WORK_STMT_KEY_PRUNABLE,
                                     sql_time(now->wall_us),
                                     sql_time(completed_before_us),
                                     sql_name(pawl__work_sql_of(base)->boot_id),
                                     sql_int(now->ns)),
                            pawl__work_sql_read_int,
                            &count,
                            reterr));
    *ret_count = (uint64_t)count;
    return PAWL_OK;
}

const struct work_key_ops pawl__work_sql_keys = {
    .load = sql_load,
    .put = sql_put,
    .prune = sql_prune,
    .get = sql_get,
    .cached = sql_cached,
    .prunable = sql_prunable,
};
