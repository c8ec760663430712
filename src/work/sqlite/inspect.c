/* Items in SQLite: what readers see. */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sqlite/backend.h"

static struct work_sqlite *of(struct work_backend *base)
{
    return pawl__work_sqlite_of(base);
}

static pawl_status walk_rows(struct work_sqlite *backend,
                             struct pawl__sqlite_stmt *stmt,
                             work_row_visit visit,
                             void *context,
                             uint64_t *ret_seen,
                             pawl_error *reterr)
{
    struct work_now now = { .wall_us = pawl__wall_us(backend->clock),
                            .ns = pawl__boot_ns(backend->clock) };

    *ret_seen = 0;
    for (;;) {
        struct work_row row;
        bool more = false;
        pawl_status status = pawl__sqlite_next(stmt, &more, reterr);
        if (status != PAWL_OK || !more) {
            return status;
        }
        pawl__work_sqlite_row(backend, &now, stmt, &row);
        (*ret_seen)++;
        if (!visit(context, &row)) {
            return PAWL_OK;
        }
    }
}

static pawl_status get_from(struct work_sqlite *backend,
                            struct pawl__sqlite *db,
                            size_t statement,
                            pawl_view id,
                            work_row_visit visit,
                            void *context,
                            uint64_t *ret_seen,
                            pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, statement);

    pawl__sqlite_bind_text(&stmt, 1, id);
    return walk_rows(backend, &stmt, visit, context, ret_seen, reterr);
}

/* Both homes of one moment: an item that moves between two looks would be in neither. */
static pawl_status get_in(struct work_sqlite *backend,
                          struct pawl__sqlite *db,
                          pawl_view id,
                          work_row_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    uint64_t seen = 0;
    pawl_status status = pawl__sqlite_begin(db, PAWL__SQLITE_DEFERRED, reterr);

    if (status == PAWL_OK) {
        status = get_from(backend, db, WORK_SQL_ITEM_LOAD, id, visit, context, &seen, reterr);
    }
    if (status == PAWL_OK && seen == 0) {
        status = get_from(backend, db, WORK_SQL_WAITING_LOAD, id, visit, context, &seen, reterr);
    }
    pawl__sqlite_rollback(db);
    return status == PAWL_OK && seen == 0
               ? pawl__fail(reterr, PAWL_NOT_FOUND, "no item '%.*s'", VIEW_ARGS(id))
               : status;
}

pawl_status pawl__work_sqlite_get(struct work_backend *base,
                                  pawl_view id,
                                  work_row_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return get_in(of(base), reader.db, id, visit, context, reterr);
}

/* Without ended items one that looks at the others alone, however many have ended. */
static size_t list_statement(const pawl_item_filter *filter)
{
    if (filter->by_id) {
        return filter->task_id.len > 0             ? WORK_SQL_PAGE_TASK
               : pawl__work_filter_is_busy(filter) ? WORK_SQL_PAGE_BUSY
                                                   : WORK_SQL_PAGE;
    }
    if (filter->task_id.len > 0) {
        return WORK_SQL_LIST_TASK;
    }
    return pawl__work_filter_is_open(filter) ? WORK_SQL_LIST_OPEN : WORK_SQL_LIST;
}

static pawl_status list_in(struct work_sqlite *backend,
                           struct pawl__sqlite *db,
                           const pawl_item_filter *filter,
                           work_row_visit visit,
                           void *context,
                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, list_statement(filter));
    uint64_t seen;

    pawl__work_bind_optional(&stmt, 1, filter->task_id);
    pawl__work_bind_optional(&stmt, 2, filter->work_type);
    pawl__work_bind_optional(&stmt, 3, filter->lease_holder);
    pawl__sqlite_bind_i64(&stmt, 4, filter->statuses == 0 ? -1 : (int64_t)filter->statuses);
    pawl__sqlite_bind_i64(
        &stmt, 5, filter->limit == 0 || filter->limit > INT64_MAX ? -1 : (int64_t)filter->limit);
    if (filter->by_id) {
        pawl__sqlite_bind_text(
            &stmt, 6, filter->from_id.len == 0 ? pawl_view_of("") : filter->from_id);
    }
    return walk_rows(backend, &stmt, visit, context, &seen, reterr);
}

pawl_status pawl__work_sqlite_list(struct work_backend *base,
                                   const pawl_item_filter *filter,
                                   work_row_visit visit,
                                   void *context,
                                   pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return list_in(of(base), reader.db, filter, visit, context, reterr);
}

/* A status of the history as a text that outlives the statement. */
static const char *status_text(pawl_view text)
{
    pawl_item_status status;

    return pawl__work_item_status_parse(text, &status) ? pawl__work_item_status_text(status) : "";
}

static pawl_status history_in(struct pawl__sqlite *db,
                              pawl_view id,
                              pawl_item_event_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, WORK_SQL_HISTORY);

    pawl__sqlite_bind_text(&stmt, 1, id);
    for (;;) {
        bool row = false;
        pawl_status status = pawl__sqlite_next(&stmt, &row, reterr);
        if (status != PAWL_OK || !row) {
            return status;
        }
        pawl_item_event event = {
            .seq = (uint64_t)pawl__sqlite_i64(&stmt, 0),
            .from = status_text(pawl__sqlite_text(&stmt, 1)),
            .to = status_text(pawl__sqlite_text(&stmt, 2)),
            .token = (uint64_t)pawl__sqlite_i64(&stmt, 3),
            .lease_holder = pawl__sqlite_text(&stmt, 4),
            .retry_count = (int32_t)pawl__sqlite_i64(&stmt, 5),
            .message = pawl__sqlite_text(&stmt, 6),
            .at_us = pawl__work_time(&stmt, 7),
        };
        if (!visit(context, &event)) {
            return PAWL_OK;
        }
    }
}

pawl_status pawl__work_sqlite_history(struct work_backend *base,
                                      pawl_view id,
                                      pawl_item_event_visit visit,
                                      void *context,
                                      pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&of(base)->pool, &reader, reterr));
    return history_in(reader.db, id, visit, context, reterr);
}
