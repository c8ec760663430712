/* Items of both databases: rows, and how the committer finds them. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/items/item.h"
#include "work/sql/sql.h"

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

/* --- rows --- */

static const char *const reasons[] = {
    [WORK_DELAY] = "delay",
    [WORK_BACKOFF] = "backoff",
    [WORK_DEPENDENCY] = "dependency",
};

static const char *reason_text(enum work_reason reason)
{
    return reasons[reason == WORK_REASON_NONE ? WORK_DELAY : reason];
}

static enum work_reason parse_reason(pawl_view text)
{
    return pawl__view_is(text, reasons[WORK_BACKOFF])      ? WORK_BACKOFF
           : pawl__view_is(text, reasons[WORK_DEPENDENCY]) ? WORK_DEPENDENCY
                                                           : WORK_DELAY;
}

/* SQLite's boot id and boot clock of a deadline. */
enum { COLUMN_BOOT = 25 };

void pawl__work_sql_item(const struct work_sql_backend *sql,
                         const struct work_now *now,
                         const struct work_columns *row,
                         struct work_row *ret_row)
{
    *ret_row = (struct work_row){
        .item = { .work_item_id = col_text(row, 0),
                  .task_id = col_text(row, 1),
                  .work_type = col_text(row, 2),
                  .priority = (int32_t)col_int(row, 4),
                  .retry_count = (int32_t)col_int(row, 5),
                  .max_retries = (int32_t)col_int(row, 6),
                  .attempts = col_int(row, 7),
                  .token = col_count(row, 8),
                  .lease_holder = col_text(row, 9),
                  .input_data = col_text(row, 10),
                  .output_data = col_text(row, 11),
                  .error_message = col_text(row, 12),
                  .created_at_us = col_time(row, 13),
                  .started_at_us = col_time(row, 14),
                  .completed_at_us = col_time(row, 15),
                  .updated_at_us = col_time(row, 16),
                  .lease_acquired_at_us = col_time(row, 17),
                  .lease_expires_at_us = col_time(row, 18),
                  .heartbeat_at_us = col_time(row, 19),
                  .due_at_us = col_time(row, 21) },
        .home = WORK_IN_ITEMS,
        .entries = col_int(row, 20),
        .submission = col_int(row, 24),
        .due_ns = INT64_MIN,
    };
    pawl_item *item = &ret_row->item;

    if (!pawl__work_item_status_parse(col_text(row, 3), &item->status)) {
        item->status = PAWL_ITEM_FAILED; /* no other text passes the table's check */
    }
    if (item->status == PAWL_ITEM_IN_PROGRESS) {
        ret_row->deadline_ns =
            sql->ops->deadline(sql, now, row, COLUMN_BOOT, item->lease_expires_at_us, false);
    } else if (item->status == PAWL_ITEM_WAITING) {
        ret_row->home = WORK_IN_WAITING;
        ret_row->reason = parse_reason(col_text(row, 22));
        ret_row->waits_for = col_int(row, 23);
        if (!col_is_null(row, 21)) {
            ret_row->due_ns = sql->ops->deadline(sql, now, row, COLUMN_BOOT, item->due_at_us, true);
        }
    }
}

struct work_row *pawl__work_sql_copy_item(const struct work_sql_backend *sql,
                                          const struct work_columns *row,
                                          struct pawl__arena *arena)
{
    struct work_row *copy = pawl__arena_take(arena, sizeof(*copy));

    if (copy == NULL) {
        return NULL;
    }
    pawl__work_sql_item(sql, &sql->now, row, copy);
    return pawl__work_copy_item(arena, &copy->item, &copy->item) ? copy : NULL;
}

pawl_status pawl__work_sql_add_item(void *context,
                                    const struct work_columns *row,
                                    pawl_error *reterr)
{
    struct work_found *found = context;
    struct work_rows *rows = found->rows;

    if (rows->count == rows->room) {
        return PAWL_CANCELLED;
    }
    rows->rows[rows->count] = pawl__work_sql_copy_item(found->sql, row, rows->arena);
    if (rows->rows[rows->count] == NULL) {
        return no_memory(reterr);
    }
    rows->count++;
    return PAWL_OK;
}

/* --- values --- */

void pawl__work_sql_insert_values(const struct work_row *row, struct work_value *ret_values)
{
    const pawl_item *item = &row->item;

    REQUIRE(item->work_item_id.len > 0 && item->task_id.len > 0 && item->token <= INT64_MAX);
    const struct work_value values[WORK_INSERT_VALUES] = {
        sql_text(item->work_item_id),
        sql_text(item->task_id),
        sql_text(item->work_type),
        sql_int(item->priority),
        sql_int(item->retry_count),
        sql_int(item->max_retries),
        sql_int(item->attempts),
        sql_int((int64_t)item->token),
        sql_int(row->entries),
        sql_optional(item->input_data),
        sql_optional(item->error_message),
        sql_optional_time(item->created_at_us),
        sql_optional_time(item->started_at_us),
        sql_optional_time(item->updated_at_us),
        sql_int(row->submission),
    };

    memcpy(ret_values, values, sizeof(values));
}

void pawl__work_sql_insert_waiting_values(const struct work_row *row, struct work_value *ret_values)
{
    REQUIRE(row->item.status == PAWL_ITEM_WAITING && row->waits_for >= 0);
    pawl__work_sql_insert_values(row, ret_values);
    ret_values[WORK_INSERT_VALUES] = sql_name(reason_text(row->reason));
    ret_values[WORK_INSERT_VALUES + 1] = sql_optional_time(row->item.due_at_us);
    ret_values[WORK_INSERT_VALUES + 2] = sql_int(row->waits_for);
}

void pawl__work_sql_update_values(const pawl_item *item,
                                  pawl_item_status status,
                                  struct work_value *ret_values)
{
    REQUIRE(item->work_item_id.len > 0 && status != PAWL_ITEM_WAITING);
    const struct work_value values[WORK_UPDATE_VALUES] = {
        sql_text(item->work_item_id),
        sql_name(pawl__work_item_status_text(status)),
        sql_int(item->retry_count),
        sql_int(item->attempts),
        sql_int((int64_t)item->token),
        sql_optional(item->lease_holder),
        sql_optional(item->output_data),
        sql_optional(item->error_message),
        sql_optional_time(item->started_at_us),
        sql_optional_time(item->completed_at_us),
        sql_optional_time(item->updated_at_us),
        sql_optional_time(item->lease_acquired_at_us),
        sql_optional_time(item->lease_expires_at_us),
        sql_optional_time(item->heartbeat_at_us),
    };

    memcpy(ret_values, values, sizeof(values));
}

void pawl__work_sql_update_waiting_values(const struct work_row *row, struct work_value *ret_values)
{
    ret_values[0] = sql_text(row->item.work_item_id);
    ret_values[1] = sql_optional_time(row->item.updated_at_us);
    ret_values[2] = sql_name(reason_text(row->reason));
    ret_values[3] = sql_int(row->waits_for);
}

/* --- loading --- */

static int by_row_id(const void *a, const void *b)
{
    return pawl__work_view_order((*(struct work_row *const *)a)->item.work_item_id,
                                 (*(struct work_row *const *)b)->item.work_item_id);
}

void pawl__work_sql_match_rows(const pawl_view *ids,
                               size_t count,
                               const struct work_rows *found,
                               struct work_row **ret_rows)
{
    for (size_t i = 0; i < count; i++) {
        struct work_row key = { .item.work_item_id = ids[i] };
        const struct work_row *wanted = &key;
        struct work_row **at =
            ret_rows[i] != NULL
                ? NULL
                : bsearch(&wanted, found->rows, found->count, sizeof(*at), by_row_id);
        if (at != NULL) {
            ret_rows[i] = *at;
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

struct loading {
    struct work_sql_backend *sql;
    const pawl_view *ids;
    size_t count;
    struct pawl__arena *arena;
    struct work_row **rows; /* NULL where one is still missing */
};

/* Those that are still missing, from one of the homes. */
static pawl_status load_from(struct loading *loading,
                             enum work_statement statement,
                             size_t *ret_missing,
                             pawl_error *reterr)
{
    struct pawl__arena *arena = loading->arena;
    pawl_view *missing = pawl__arena_take(arena, loading->count * sizeof(*missing));
    struct work_rows loaded = {
        .arena = arena,
        .rows = pawl__arena_take(arena, loading->count * sizeof(struct work_row *)),
        .room = loading->count,
    };

    if (missing == NULL || loaded.rows == NULL) {
        return no_memory(reterr);
    }
    *ret_missing = list_missing(loading->ids, loading->count, loading->rows, missing);
    if (*ret_missing == 0) {
        return PAWL_OK;
    }
    struct work_found found = { .sql = loading->sql, .rows = &loaded };
    TRY(pawl__work_sql_lock(&loading->sql->base,
                            SQL_STEP(statement, sql_texts(missing, *ret_missing)),
                            pawl__work_sql_add_item,
                            &found,
                            reterr));
    pawl__work_sql_match_rows(loading->ids, loading->count, &loaded, loading->rows);
    *ret_missing -= loaded.count;
    return PAWL_OK;
}

pawl_status pawl__work_sql_load_missing(struct work_backend *base,
                                        const pawl_view *ids,
                                        size_t count,
                                        struct pawl__arena *arena,
                                        struct work_row **ret_rows,
                                        pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct loading loading = { sql, ids, count, arena, ret_rows };
    size_t missing = count;

    /* An item that moves from one home to the other between two statements is found by the third. */
    for (int i = 0; i < sql->ops->load_tries && missing > 0; i++) {
        TRY(load_from(&loading, WORK_STMT_LOAD, &missing, reterr));
        size_t before = missing;
        if (missing > 0) {
            TRY(load_from(&loading, WORK_STMT_LOAD_WAITING, &missing, reterr));
        }
        if (i > 0 && missing == before) {
            break;
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_sql_load(struct work_backend *base,
                                const pawl_view *ids,
                                size_t count,
                                struct pawl__arena *arena,
                                struct work_row **ret_rows,
                                pawl_error *reterr)
{
    memset(ret_rows, 0, count * sizeof(*ret_rows));
    return pawl__work_sql_load_missing(base, ids, count, arena, ret_rows, reterr);
}

pawl_status pawl__work_sql_expired(struct work_backend *base,
                                   const struct work_now *now,
                                   struct work_rows *found,
                                   pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct work_found context = { .sql = sql, .rows = found };

    TRY(pawl__work_sql_lock(base,
                            SQL_STEP(WORK_STMT_EXPIRED,
                                     sql_int((int64_t)found->room),
                                     sql_time(now->wall_us),
                                     sql_name(sql->boot_id),
                                     sql_int(now->ns)),
                            pawl__work_sql_add_item,
                            &context,
                            reterr));
    if (found->count == found->room) {
        return PAWL_OK;
    }
    return pawl__work_sql_ask(
        base,
        SQL_STEP(WORK_STMT_LEFT_EXPIRED, sql_int((int64_t)(found->room - found->count))),
        pawl__work_sql_add_item,
        &context,
        reterr);
}

pawl_status pawl__work_sql_add_id(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct work_ids *found = context;

    if (found->count == found->room) {
        return PAWL_CANCELLED;
    }
    if (!pawl__arena_copy(found->arena, col_text(row, 0), &found->ids[found->count])) {
        return no_memory(reterr);
    }
    found->count++;
    return PAWL_OK;
}

/* One statement over both homes gives the ids; their rows are then loaded wherever they are by then. */
pawl_status pawl__work_sql_unfinished(struct work_backend *base,
                                      pawl_view task_id,
                                      struct work_rows *found,
                                      pawl_error *reterr)
{
    struct work_ids ids = {
        .arena = found->arena,
        .ids = pawl__arena_take(found->arena, found->room * sizeof(pawl_view)),
        .room = found->room,
    };

    if (ids.ids == NULL) {
        return no_memory(reterr);
    }
    do {
        ids.count = 0;
        TRY(pawl__work_sql_ask(
            base,
            SQL_STEP(WORK_STMT_UNFINISHED, sql_text(task_id), sql_int((int64_t)found->room)),
            pawl__work_sql_add_id,
            &ids,
            reterr));
        TRY(base->items->load(base, ids.ids, ids.count, found->arena, found->rows, reterr));
        for (size_t i = 0; i < ids.count; i++) {
            struct work_row *row = found->rows[i];
            if (row != NULL && !pawl__work_item_has_ended(row->item.status)) {
                found->rows[found->count++] = row; /* found->count <= i */
            }
        }
    } while (found->count == 0 && ids.count > 0);
    return PAWL_OK;
}

/* --- who comes after whom --- */

static pawl_status show_edge(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    const struct work_edge edge = { .work_item_id = col_text(row, 0),
                                    .after_id = col_text(row, 1) };

    (void)reterr;
    walk->visit.edge(walk->context, &edge);
    return PAWL_OK;
}

pawl_status pawl__work_sql_edges(struct work_backend *base,
                                 const pawl_view *after_ids,
                                 size_t count,
                                 work_edge_visit *visit,
                                 void *context,
                                 pawl_error *reterr)
{
    struct work_walk walk = { .visit.edge = visit, .context = context };

    return pawl__work_sql_ask(
        base, SQL_STEP(WORK_STMT_EDGES, sql_texts(after_ids, count)), show_edge, &walk, reterr);
}

pawl_status pawl__work_sql_add_edges(struct work_backend *base,
                                     const struct work_edge *edges,
                                     size_t count,
                                     pawl_error *reterr)
{
    return pawl__work_sql_run(base,
                              SQL_STEP(WORK_STMT_EDGE_INSERT,
                                       sql_field_of(&edges->work_item_id, sizeof(*edges), count),
                                       sql_field_of(&edges->after_id, sizeof(*edges), count)),
                              reterr);
}

pawl_status pawl__work_sql_comes_after(struct work_backend *base,
                                       pawl_view id,
                                       struct work_ids *found,
                                       pawl_error *reterr)
{
    return pawl__work_sql_ask(
        base, SQL_STEP(WORK_STMT_COMES_AFTER, sql_text(id)), pawl__work_sql_add_id, found, reterr);
}

pawl_status pawl__work_sql_orphans(struct work_backend *base,
                                   struct work_ids *found,
                                   pawl_error *reterr)
{
    return pawl__work_sql_read(base,
                               SQL_STEP(WORK_STMT_ORPHANS, sql_int((int64_t)found->room)),
                               pawl__work_sql_add_id,
                               found,
                               reterr);
}
