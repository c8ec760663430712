/* Items in SQLite: what the committer loads and stores. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sqlite/backend.h"

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

/* --- loading --- */

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

static enum work_reason reason_of(pawl_view text)
{
    return pawl__view_is(text, "backoff")      ? WORK_BACKOFF
           : pawl__view_is(text, "dependency") ? WORK_DEPENDENCY
                                               : WORK_DELAY;
}

static void read_lease(struct pawl__sqlite_stmt *stmt, pawl_item *item)
{
    item->lease_holder = pawl__sqlite_text(stmt, 9);
    item->completed_at_us = pawl__work_time(stmt, 15);
    item->lease_acquired_at_us = pawl__work_time(stmt, 17);
    item->lease_expires_at_us = pawl__work_time(stmt, 18);
    item->heartbeat_at_us = pawl__work_time(stmt, 19);
}

void pawl__work_sqlite_row(const struct work_sqlite *backend,
                           const struct work_now *now,
                           struct pawl__sqlite_stmt *stmt,
                           struct work_row *ret_row)
{
    struct work_row row = {
        .item = { .work_item_id = pawl__sqlite_text(stmt, 0),
                  .task_id = pawl__sqlite_text(stmt, 1),
                  .work_type = pawl__sqlite_text(stmt, 2),
                  .priority = (int32_t)pawl__sqlite_i64(stmt, 4),
                  .retry_count = (int32_t)pawl__sqlite_i64(stmt, 5),
                  .max_retries = (int32_t)pawl__sqlite_i64(stmt, 6),
                  .attempts = pawl__sqlite_i64(stmt, 7),
                  .token = (uint64_t)pawl__sqlite_i64(stmt, 8),
                  .input_data = pawl__sqlite_text(stmt, 10),
                  .output_data = pawl__sqlite_text(stmt, 11),
                  .error_message = pawl__sqlite_text(stmt, 12),
                  .created_at_us = pawl__work_time(stmt, 13),
                  .started_at_us = pawl__work_time(stmt, 14),
                  .updated_at_us = pawl__work_time(stmt, 16) },
        .home = WORK_IN_ITEMS,
        .entries = pawl__sqlite_i64(stmt, 22),
        .submission = pawl__sqlite_i64(stmt, 26),
        .due_ns = INT64_MIN,
    };
    pawl_view boot_id = pawl__sqlite_text(stmt, 20);
    int64_t deadline_ns = pawl__sqlite_i64(stmt, 21);

    if (!pawl__work_item_status_parse(pawl__sqlite_text(stmt, 3), &row.item.status)) {
        row.item.status = PAWL_ITEM_FAILED; /* no other text passes the table's check */
    }
    if (row.item.status != PAWL_ITEM_WAITING) {
        read_lease(stmt, &row.item);
        row.deadline_ns = row.item.status != PAWL_ITEM_IN_PROGRESS
                              ? 0
                              : pawl__work_sqlite_deadline(
                                  backend, now, boot_id, deadline_ns, row.item.lease_expires_at_us);
    } else {
        row.home = WORK_IN_WAITING;
        row.reason = reason_of(pawl__sqlite_text(stmt, 24));
        row.waits_for = pawl__sqlite_i64(stmt, 25);
        row.item.due_at_us = pawl__work_time(stmt, 23);
        if (row.item.due_at_us != 0) {
            /* The clock of another boot says nothing: the wall decides then. */
            pawl_view boot =
                pawl__view_is(boot_id, backend->boot_id) ? boot_id : (pawl_view){ NULL, 0 };
            row.due_ns =
                pawl__work_sqlite_deadline(backend, now, boot, deadline_ns, row.item.due_at_us);
        }
    }
    *ret_row = row;
}

/* The row that `stmt` stands on, kept in the arena. */
static pawl_status keep_row(struct work_sqlite *backend,
                            struct pawl__sqlite_stmt *stmt,
                            struct pawl__arena *arena,
                            struct work_row **ret_row,
                            pawl_error *reterr)
{
    struct work_row *row = pawl__arena_take(arena, sizeof(*row));

    if (row == NULL) {
        return no_memory(reterr);
    }
    pawl__work_sqlite_row(backend, &backend->now, stmt, row);
    pawl_view *texts[] = {
        &row->item.work_item_id,  &row->item.task_id,    &row->item.work_type,
        &row->item.lease_holder,  &row->item.input_data, &row->item.output_data,
        &row->item.error_message,
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (texts[i]->len > 0 && !pawl__arena_copy(arena, *texts[i], texts[i])) {
            return no_memory(reterr);
        }
    }
    *ret_row = row;
    return PAWL_OK;
}

/* All rows of a statement, up to `room`. */
static pawl_status keep_rows(struct work_sqlite *backend,
                             struct pawl__sqlite_stmt *stmt,
                             struct pawl__arena *arena,
                             struct work_row **ret_rows,
                             size_t room,
                             size_t *ret_count,
                             pawl_error *reterr)
{
    size_t count = 0;
    bool row = true;

    while (count < room) {
        TRY(pawl__sqlite_next(stmt, &row, reterr));
        if (!row) {
            break;
        }
        TRY(keep_row(backend, stmt, arena, &ret_rows[count], reterr));
        count++;
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status load_one(struct work_sqlite *backend,
                            size_t statement,
                            pawl_view id,
                            struct pawl__arena *arena,
                            struct work_row **ret_row,
                            pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);
    size_t count = 0;

    pawl__sqlite_bind_text(&stmt, 1, id);
    return keep_rows(backend, &stmt, arena, ret_row, 1, &count, reterr);
}

static pawl_status sqlite_load(struct work_backend *base,
                               const pawl_view *ids,
                               size_t count,
                               struct pawl__arena *arena,
                               struct work_row **ret_rows,
                               pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        ret_rows[i] = NULL;
        TRY(load_one(of(base), WORK_SQL_ITEM_LOAD, ids[i], arena, &ret_rows[i], reterr));
        if (ret_rows[i] == NULL) {
            TRY(load_one(of(base), WORK_SQL_WAITING_LOAD, ids[i], arena, &ret_rows[i], reterr));
        }
    }
    return PAWL_OK;
}

/* --- picking --- */

static int by_claim_order(const void *a, const void *b)
{
    return pawl__work_claim_order(*(struct work_row *const *)a, *(struct work_row *const *)b);
}

static pawl_status pick_walk(struct work_sqlite *backend,
                             const struct work_filter *filter,
                             const pawl_view *work_type,
                             size_t wanted,
                             struct pawl__arena *arena,
                             struct work_row **ret_rows,
                             size_t *ret_count,
                             pawl_error *reterr)
{
    bool by_task = filter->task_id.len > 0;
    size_t statement = by_task ? work_type != NULL ? WORK_SQL_PICK_TASK_TYPE : WORK_SQL_PICK_TASK
                       : work_type != NULL ? WORK_SQL_PICK_TYPE
                                           : WORK_SQL_PICK;
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)wanted);
    if (work_type != NULL) {
        pawl__sqlite_bind_text(&stmt, 2, *work_type);
    }
    if (by_task) {
        pawl__sqlite_bind_text(&stmt, 3, filter->task_id);
    }
    return keep_rows(backend, &stmt, arena, ret_rows, wanted, ret_count, reterr);
}

static bool named_before(const struct work_filter *filter, size_t type)
{
    for (size_t i = 0; i < type; i++) {
        if (pawl__view_equal(filter->work_types[i], filter->work_types[type])) {
            return true;
        }
    }
    return false;
}

/* A walk for each type, and the best of what they found. */
static pawl_status pick_types(struct work_sqlite *backend,
                              const struct work_filter *filter,
                              size_t wanted,
                              struct pawl__arena *arena,
                              struct work_row **ret_rows,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    struct work_row **found = pawl__arena_take(arena, 2 * wanted * sizeof(struct work_row *));
    size_t kept = 0;

    if (found == NULL) {
        return no_memory(reterr);
    }
    for (size_t i = 0; i < filter->work_type_count; i++) {
        size_t more = 0;
        if (named_before(filter, i)) {
            continue;
        }
        TRY(pick_walk(
            backend, filter, &filter->work_types[i], wanted, arena, found + kept, &more, reterr));
        qsort(found, kept + more, sizeof(*found), by_claim_order);
        kept = MIN(kept + more, wanted);
    }
    memcpy(ret_rows, found, kept * sizeof(*found));
    *ret_count = kept;
    return PAWL_OK;
}

static pawl_status sqlite_pick(struct work_backend *base,
                               const struct work_filter *filter,
                               size_t count,
                               struct pawl__arena *arena,
                               struct work_row **ret_rows,
                               size_t *ret_count,
                               pawl_error *reterr)
{
    if (filter->work_type_count > 1) {
        return pick_types(of(base), filter, count, arena, ret_rows, ret_count, reterr);
    }
    return pick_walk(of(base),
                     filter,
                     filter->work_type_count == 1 ? &filter->work_types[0] : NULL,
                     count,
                     arena,
                     ret_rows,
                     ret_count,
                     reterr);
}

/* Up to `count` rows that foreign SQL left expired. */
static pawl_status left_expired(struct work_sqlite *backend,
                                size_t count,
                                struct pawl__arena *arena,
                                struct work_row **ret_rows,
                                size_t *ret_count,
                                pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_LEFT_EXPIRED);

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)count);
    return keep_rows(backend, &stmt, arena, ret_rows, count, ret_count, reterr);
}

static pawl_status sqlite_expired(struct work_backend *base,
                                  const struct work_now *now,
                                  size_t count,
                                  struct pawl__arena *arena,
                                  struct work_row **ret_rows,
                                  size_t *ret_count,
                                  pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_EXPIRED);
    size_t left = 0;

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)count);
    pawl__sqlite_bind_text(&stmt, 2, pawl_view_of(of(base)->boot_id));
    pawl__sqlite_bind_i64(&stmt, 3, now->ns);
    pawl__work_bind_time(&stmt, 4, now->wall_us);
    pawl_status status = keep_rows(of(base), &stmt, arena, ret_rows, count, ret_count, reterr);
    if (status == PAWL_OK && *ret_count < count) {
        status =
            left_expired(of(base), count - *ret_count, arena, ret_rows + *ret_count, &left, reterr);
        *ret_count += left;
    }
    return status;
}

static pawl_status due_walk(struct work_sqlite *backend,
                            size_t statement,
                            const struct work_now *now,
                            size_t wanted,
                            struct pawl__arena *arena,
                            struct work_row **ret_rows,
                            size_t *ret_count,
                            pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    pawl__sqlite_bind_i64(&stmt, 1, (int64_t)wanted);
    pawl__sqlite_bind_text(&stmt, 2, pawl_view_of(backend->boot_id));
    if (statement == WORK_SQL_DUE) {
        pawl__sqlite_bind_i64(&stmt, 3, now->ns);
    } else {
        pawl__work_bind_time(&stmt, 3, now->wall_us);
    }
    return keep_rows(backend, &stmt, arena, ret_rows, wanted, ret_count, reterr);
}

/* When the next one comes, on this boot's clock. */
static pawl_status next_due(struct work_sqlite *backend,
                            const struct work_now *now,
                            int64_t *ret_next_ns,
                            pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt ours = pawl__sqlite_use(backend->writer, WORK_SQL_NEXT_DUE);
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt wall = pawl__sqlite_use(backend->writer, WORK_SQL_NEXT_DUE_WALL);
    int64_t next_ns = INT64_MAX;
    bool row = false;

    pawl__sqlite_bind_text(&ours, 1, pawl_view_of(backend->boot_id));
    pawl__sqlite_bind_text(&wall, 1, pawl_view_of(backend->boot_id));
    pawl_status status = pawl__sqlite_next(&ours, &row, reterr);
    if (status == PAWL_OK && row) {
        next_ns = pawl__sqlite_i64(&ours, 0);
    }
    if (status == PAWL_OK) {
        status = pawl__sqlite_next(&wall, &row, reterr);
    }
    if (status == PAWL_OK && row) {
        int64_t due_ns = pawl__work_sqlite_deadline(
            backend, now, (pawl_view){ NULL, 0 }, 0, pawl__work_time(&wall, 0));
        next_ns = MIN(next_ns, due_ns);
    }
    *ret_next_ns = next_ns;
    return status;
}

static pawl_status sqlite_due(struct work_backend *base,
                              const struct work_now *now,
                              size_t count,
                              struct pawl__arena *arena,
                              struct work_row **ret_rows,
                              size_t *ret_count,
                              int64_t *ret_next_ns,
                              pawl_error *reterr)
{
    size_t ours = 0;
    size_t others = 0;
    int64_t next_ns = INT64_MAX;
    pawl_status status = next_due(of(base), now, &next_ns, reterr);

    *ret_count = 0;
    *ret_next_ns = next_ns;
    if (status != PAWL_OK || next_ns > now->ns) {
        return status; /* the usual case */
    }
    status = due_walk(of(base), WORK_SQL_DUE, now, count, arena, ret_rows, &ours, reterr);
    if (status == PAWL_OK && ours < count) {
        status = due_walk(of(base),
                          WORK_SQL_DUE_WALL,
                          now,
                          count - ours,
                          arena,
                          ret_rows + ours,
                          &others,
                          reterr);
    }
    *ret_count = ours + others;
    return status;
}

static pawl_status sqlite_unfinished(struct work_backend *base,
                                     pawl_view task_id,
                                     size_t count,
                                     struct pawl__arena *arena,
                                     struct work_row **ret_rows,
                                     size_t *ret_count,
                                     pawl_error *reterr)
{
    static const size_t statements[] = { WORK_SQL_UNFINISHED, WORK_SQL_UNFINISHED_WAITING };
    size_t found = 0;

    for (size_t i = 0; i < COUNT_OF(statements) && found < count; i++) {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, statements[i]);
        size_t more = 0;
        pawl__sqlite_bind_text(&stmt, 1, task_id);
        pawl__sqlite_bind_i64(&stmt, 2, (int64_t)(count - found));
        TRY(keep_rows(of(base), &stmt, arena, ret_rows + found, count - found, &more, reterr));
        found += more;
    }
    *ret_count = found;
    return PAWL_OK;
}

/* --- checkpoints --- */

static pawl_status sqlite_boundaries(struct work_backend *base,
                                     const struct work_now *now,
                                     struct work_row *const *rows,
                                     const pawl_view *ids,
                                     const pawl_view *snapshots,
                                     size_t count,
                                     pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, WORK_SQL_BOUNDARY);
        pawl__sqlite_bind_text(&stmt, 1, ids[i]);
        pawl__sqlite_bind_text(&stmt, 2, rows[i]->item.task_id);
        pawl__sqlite_bind_text(&stmt, 3, rows[i]->item.work_item_id);
        pawl__sqlite_bind_text(&stmt, 4, snapshots[i]);
        pawl__work_bind_time(&stmt, 5, now->wall_us);
        TRY(pawl__sqlite_run(&stmt, reterr));
    }
    return PAWL_OK;
}

const struct work_item_ops pawl__work_sqlite_items = {
    .load = sqlite_load,
    .pick = sqlite_pick,
    .expired = sqlite_expired,
    .due = sqlite_due,
    .unfinished = sqlite_unfinished,
    .put = pawl__work_sqlite_put,
    .edges = pawl__work_sqlite_edges,
    .add_edges = pawl__work_sqlite_add_edges,
    .boundaries = sqlite_boundaries,
    .tasks = pawl__work_sqlite_tasks,
    .task_insert = pawl__work_sqlite_task_insert,
    .task_set = pawl__work_sqlite_task_set,
    .derive = pawl__work_sqlite_derive,
    .settle = pawl__work_sqlite_settle,
    .get = pawl__work_sqlite_get,
    .list = pawl__work_sqlite_list,
    .history = pawl__work_sqlite_history,
    .task_read = pawl__work_sqlite_task_read,
    .comes_after = pawl__work_sqlite_comes_after,
    .orphans = pawl__work_sqlite_orphans,
};
