/* What readers see of items. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sql/sql.h"

struct item_walk {
    const struct work_sql_backend *sql;
    struct work_now now;
    work_row_visit visit;
    void *context;
    uint64_t seen;
};

static struct item_walk walk_of(struct work_backend *base, work_row_visit visit, void *context)
{
    const struct work_sql_backend *sql = pawl__work_sql_of(base);

    return (struct item_walk){
        .sql = sql,
        .now = { .wall_us = pawl__wall_us(sql->clock), .ns = pawl__boot_ns(sql->clock) },
        .visit = visit,
        .context = context,
    };
}

static pawl_status show_item(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct item_walk *walk = context;
    struct work_row item;

    (void)reterr;
    pawl__work_sql_item(walk->sql, &walk->now, row, &item);
    walk->seen++;
    return pawl__work_go_on(walk->visit(walk->context, &item));
}

/* Both homes in one statement: an item that moves between two statements would be in neither. */
pawl_status pawl__work_sql_get(struct work_backend *base,
                               pawl_view id,
                               work_row_visit visit,
                               void *context,
                               pawl_error *reterr)
{
    struct item_walk walk = walk_of(base, visit, context);

    TRY(pawl__work_sql_read(base, SQL_STEP(WORK_STMT_GET, sql_text(id)), show_item, &walk, reterr));
    return walk.seen > 0 ? PAWL_OK
                         : pawl__fail(reterr, PAWL_NOT_FOUND, "no item '%.*s'", VIEW_ARGS(id));
}

/* A list without ended items has a statement that does not read them, however many there are. */
static enum work_statement list_statement(const pawl_item_filter *filter)
{
    if (filter->by_id) {
        return filter->task_id.len > 0             ? WORK_STMT_PAGE_TASK
               : pawl__work_filter_is_busy(filter) ? WORK_STMT_PAGE_BUSY
                                                   : WORK_STMT_PAGE;
    }
    if (filter->task_id.len > 0) {
        return WORK_STMT_LIST_TASK;
    }
    return pawl__work_filter_is_open(filter) ? WORK_STMT_LIST_OPEN : WORK_STMT_LIST;
}

pawl_status pawl__work_sql_list(struct work_backend *base,
                                const struct work_item_query *query,
                                work_row_visit visit,
                                void *context,
                                pawl_error *reterr)
{
    struct item_walk walk = walk_of(base, visit, context);
    const pawl_item_filter *filter = &query->filter;
    const struct work_value values[] = {
        sql_optional(filter->task_id),
        sql_optional(filter->work_type),
        sql_optional(filter->lease_holder),
        sql_int(filter->statuses == 0 ? -1 : (int64_t)filter->statuses),
        sql_limit(query->limit),
        sql_text(query->from_id), /* of pages alone */
    };

    return pawl__work_sql_read(
        base,
        pawl__work_step(list_statement(filter), values, COUNT_OF(values) - (filter->by_id ? 0 : 1)),
        show_item,
        &walk,
        reterr);
}

/* --- history --- */

/* A status of the history as a text that outlives the row. */
static const char *status_text(pawl_view text)
{
    pawl_item_status status;

    return pawl__work_item_status_parse(text, &status) ? pawl__work_item_status_text(status) : "";
}

static pawl_status show_event(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    const pawl_item_event event = {
        .size = sizeof(pawl_item_event),
        .seq = col_count(row, 0),
        .from = status_text(col_text(row, 1)),
        .to = status_text(col_text(row, 2)),
        .token = col_count(row, 3),
        .lease_holder = col_text(row, 4),
        .retry_count = (int32_t)col_int(row, 5),
        .message = col_text(row, 6),
        .at_us = col_time(row, 7),
    };

    (void)reterr;
    return pawl__work_go_on(walk->visit.event(walk->context, &event));
}

pawl_status pawl__work_sql_history(struct work_backend *base,
                                   pawl_view id,
                                   pawl_item_event_visit visit,
                                   void *context,
                                   pawl_error *reterr)
{
    struct work_walk walk = { .visit.event = visit, .context = context };

    return pawl__work_sql_read(
        base, SQL_STEP(WORK_STMT_HISTORY, sql_text(id)), show_event, &walk, reterr);
}

/* --- changes --- */

static pawl_status read_bounds(void *context, const struct work_columns *row, pawl_error *reterr)
{
    struct work_changes_bounds *bounds = context;

    (void)reterr;
    bounds->floor = (pawl_work_position){ col_count(row, 0), col_count(row, 1) };
    bounds->end = (pawl_work_position){ col_count(row, 2), col_count(row, 3) };
    return PAWL_OK;
}

static pawl_status show_change(void *context, const struct work_columns *row, pawl_error *reterr)
{
    const struct work_walk *walk = context;
    const pawl_work_change change = {
        .size = sizeof(change),
        .position = { col_count(row, 0), col_count(row, 1) },
        .work_item_id = col_text(row, 2),
        .task_id = col_text(row, 3),
        .work_type = col_text(row, 4),
        .from = status_text(col_text(row, 5)),
        .to = status_text(col_text(row, 6)),
        .token = col_count(row, 7),
        .lease_holder = col_text(row, 8),
        .retry_count = (int32_t)col_int(row, 9),
        .message = col_text(row, 10),
        .at_us = col_time(row, 11),
    };

    (void)reterr;
    return pawl__work_go_on(walk->visit.change(walk->context, &change));
}

pawl_status pawl__work_sql_changes(struct work_backend *base,
                                   const pawl_work_position *after,
                                   uint64_t limit,
                                   struct work_changes_bounds *ret_bounds,
                                   pawl_work_change_visit visit,
                                   void *context,
                                   pawl_error *reterr)
{
    struct work_sql_backend *sql = pawl__work_sql_of(base);
    struct work_walk walk = { .visit.change = visit, .context = context };
    struct work_step steps[] = {
        SQL_STEP_ALONE(WORK_STMT_CHANGES_BOUNDS),
        SQL_STEP(WORK_STMT_CHANGES,
                 sql_int((int64_t)after->transaction),
                 sql_int((int64_t)after->seq),
                 sql_limit(limit)),
    };

    steps[0].on_row = read_bounds;
    steps[0].context = ret_bounds;
    steps[1].on_row = show_change;
    steps[1].context = &walk;
    return sql->ops->read(sql, steps, COUNT_OF(steps), reterr);
}
