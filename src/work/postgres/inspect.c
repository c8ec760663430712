/* Items in PostgreSQL: what readers see, each question on a connection of the pool. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/postgres/backend.h"

struct walk {
    work_pg_visit *visit;
    void *context;
    bool stopped;
};

static pawl_status on_row(void *context,
                          size_t index,
                          const struct pawl__pg_rows *rows,
                          pawl_error *reterr)
{
    struct walk *walk = context;

    (void)index;
    (void)reterr;
    walk->stopped = !walk->visit(walk->context, rows);
    return walk->stopped ? PAWL_CANCELLED : PAWL_OK;
}

pawl_status pawl__work_pg_walk(struct work_backend *base,
                               size_t statement,
                               const struct pawl__pg_value *values,
                               size_t value_count,
                               work_pg_visit *visit,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    struct walk walk = { .visit = visit, .context = context };
    pawl_status status = pawl__work_pg_borrow(base, &borrowed, reterr);

    if (status == PAWL_OK) {
        status = pawl__pg_each(borrowed.pg, statement, values, value_count, on_row, &walk, reterr);
    }
    return walk.stopped ? PAWL_OK : status;
}

/* --- items --- */

struct item_walk {
    work_row_visit visit;
    void *context;
    uint64_t seen;
};

static bool show_item(void *context, const struct pawl__pg_rows *rows)
{
    struct item_walk *walk = context;
    struct work_row row;

    pawl__work_pg_row(rows, 0, &row);
    walk->seen++;
    return walk->visit(walk->context, &row);
}

/* Both homes in one statement, of one moment: an item that moves between two looks would be in
 * neither. */
pawl_status pawl__work_pg_get(struct work_backend *base,
                              pawl_view id,
                              work_row_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    struct item_walk walk = { .visit = visit, .context = context };
    pawl_status status =
        pawl__work_pg_walk(base, WORK_PG_GET, PG_ARGS(pawl__pg_text(id)), show_item, &walk, reterr);

    return status == PAWL_OK && walk.seen == 0
               ? pawl__fail(reterr, PAWL_NOT_FOUND, "no item '%.*s'", VIEW_ARGS(id))
               : status;
}

static size_t list_statement(const pawl_item_filter *filter)
{
    if (filter->by_id) {
        return filter->task_id.len > 0             ? WORK_PG_PAGE_TASK
               : pawl__work_filter_is_busy(filter) ? WORK_PG_PAGE_BUSY
                                                   : WORK_PG_PAGE;
    }
    if (filter->task_id.len > 0) {
        return WORK_PG_LIST_TASK;
    }
    return pawl__work_filter_is_open(filter) ? WORK_PG_LIST_OPEN : WORK_PG_LIST;
}

pawl_status pawl__work_pg_list(struct work_backend *base,
                               const pawl_item_filter *filter,
                               work_row_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    struct item_walk walk = { .visit = visit, .context = context };
    bool limited = filter->limit > 0 && filter->limit <= INT64_MAX;
    const struct pawl__pg_value values[] = {
        pawl__work_pg_optional(filter->task_id),
        pawl__work_pg_optional(filter->work_type),
        pawl__work_pg_optional(filter->lease_holder),
        pawl__pg_i64(filter->statuses == 0 ? -1 : (int64_t)filter->statuses),
        limited ? pawl__pg_i64((int64_t)filter->limit) : pawl__pg_null(),
        pawl__pg_text(filter->from_id), /* of pages alone */
    };

    return pawl__work_pg_walk(base,
                              list_statement(filter),
                              values,
                              COUNT_OF(values) - (filter->by_id ? 0 : 1),
                              show_item,
                              &walk,
                              reterr);
}

/* --- history --- */

struct event_walk {
    pawl_item_event_visit visit;
    void *context;
};

/* A status of the history as a text that outlives the row. */
static const char *status_text(pawl_view text)
{
    pawl_item_status status;

    return pawl__work_item_status_parse(text, &status) ? pawl__work_item_status_text(status) : "";
}

static bool show_event(void *context, const struct pawl__pg_rows *rows)
{
    const struct event_walk *walk = context;
    pawl_item_event event = {
        .seq = (uint64_t)pawl__pg_get_i64(rows, 0, 0),
        .from = status_text(pawl__pg_get_text(rows, 0, 1)),
        .to = status_text(pawl__pg_get_text(rows, 0, 2)),
        .token = (uint64_t)pawl__pg_get_i64(rows, 0, 3),
        .lease_holder = pawl__pg_get_text(rows, 0, 4),
        .retry_count = (int32_t)pawl__pg_get_i64(rows, 0, 5),
        .message = pawl__pg_get_text(rows, 0, 6),
        .at_us = pawl__pg_get_time(rows, 0, 7),
    };

    return walk->visit(walk->context, &event);
}

pawl_status pawl__work_pg_history(struct work_backend *base,
                                  pawl_view id,
                                  pawl_item_event_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    struct event_walk walk = { .visit = visit, .context = context };

    return pawl__work_pg_walk(
        base, WORK_PG_HISTORY, PG_ARGS(pawl__pg_text(id)), show_event, &walk, reterr);
}
