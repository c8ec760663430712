/* Items as PostgreSQL has them. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

static enum work_reason reason_of(pawl_view text)
{
    return pawl__view_is(text, "backoff")      ? WORK_BACKOFF
           : pawl__view_is(text, "dependency") ? WORK_DEPENDENCY
                                               : WORK_DELAY;
}

void pawl__work_pg_row(const struct pawl__pg_rows *rows, size_t index, struct work_row *ret_row)
{
    struct work_row row = {
        .item = { .work_item_id = pawl__pg_get_text(rows, index, 0),
                  .task_id = pawl__pg_get_text(rows, index, 1),
                  .work_type = pawl__pg_get_text(rows, index, 2),
                  .priority = (int32_t)pawl__pg_get_i64(rows, index, 4),
                  .retry_count = (int32_t)pawl__pg_get_i64(rows, index, 5),
                  .max_retries = (int32_t)pawl__pg_get_i64(rows, index, 6),
                  .attempts = pawl__pg_get_i64(rows, index, 7),
                  .token = (uint64_t)pawl__pg_get_i64(rows, index, 8),
                  .lease_holder = pawl__pg_get_text(rows, index, 9),
                  .input_data = pawl__pg_get_text(rows, index, 10),
                  .output_data = pawl__pg_get_text(rows, index, 11),
                  .error_message = pawl__pg_get_text(rows, index, 12),
                  .created_at_us = pawl__pg_get_time(rows, index, 13),
                  .started_at_us = pawl__pg_get_time(rows, index, 14),
                  .completed_at_us = pawl__pg_get_time(rows, index, 15),
                  .updated_at_us = pawl__pg_get_time(rows, index, 16),
                  .lease_acquired_at_us = pawl__pg_get_time(rows, index, 17),
                  .lease_expires_at_us = pawl__pg_get_time(rows, index, 18),
                  .heartbeat_at_us = pawl__pg_get_time(rows, index, 19),
                  .due_at_us = pawl__pg_get_time(rows, index, 21) },
        .home = WORK_IN_ITEMS,
        .entries = pawl__pg_get_i64(rows, index, 20),
        .submission = pawl__pg_get_i64(rows, index, 24),
        .due_ns = INT64_MIN,
    };

    if (!pawl__work_item_status_parse(pawl__pg_get_text(rows, index, 3), &row.item.status)) {
        row.item.status = PAWL_ITEM_FAILED; /* no other text passes the table's check */
    }
    if (row.item.status == PAWL_ITEM_IN_PROGRESS) {
        row.deadline_ns = pawl__work_pg_ns(row.item.lease_expires_at_us);
    } else if (row.item.status == PAWL_ITEM_WAITING) {
        row.home = WORK_IN_WAITING;
        row.reason = reason_of(pawl__pg_get_text(rows, index, 22));
        row.waits_for = pawl__pg_get_i64(rows, index, 23);
        if (!pawl__pg_is_null(rows, index, 21)) {
            row.due_ns = pawl__work_pg_ns(row.item.due_at_us);
        }
    }
    *ret_row = row;
}

struct work_row *pawl__work_pg_keep_row(struct pawl__arena *arena,
                                        const struct pawl__pg_rows *rows,
                                        size_t index)
{
    struct work_row *row = pawl__arena_take(arena, sizeof(*row));

    if (row == NULL) {
        return NULL;
    }
    pawl__work_pg_row(rows, index, row);
    pawl_view *texts[] = {
        &row->item.work_item_id,  &row->item.task_id,    &row->item.work_type,
        &row->item.lease_holder,  &row->item.input_data, &row->item.output_data,
        &row->item.error_message,
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (texts[i]->len > 0 && !pawl__arena_copy(arena, *texts[i], texts[i])) {
            return NULL;
        }
    }
    return row;
}

pawl_status pawl__work_pg_keep(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    struct work_pg_kept *kept = context;

    for (size_t i = 0; i < rows->count && kept->count < kept->room; i++) {
        struct work_row *row = pawl__work_pg_keep_row(kept->arena, rows, i);
        if (row == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
        }
        kept->rows[kept->count++] = row;
    }
    return PAWL_OK;
}
