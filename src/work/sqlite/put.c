/* Items in SQLite: how a row gets where it belongs. */
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sqlite/backend.h"

struct work_sqlite_times {
    char text[8][PAWL__TIME_SIZE];
    size_t used;
};

/* Like pawl__work_bind_time, without an allocation: the text lives until the reset. */
static void bind_time(struct pawl__sqlite_stmt *stmt,
                      int parameter,
                      int64_t wall_us,
                      struct work_sqlite_times *times)
{
    if (wall_us == 0) {
        pawl__sqlite_bind_null(stmt, parameter);
        return;
    }
    REQUIRE(times->used < COUNT_OF(times->text));
    char *text = times->text[times->used++];
    pawl__time_store(wall_us, text);
    pawl__sqlite_bind_text(stmt, parameter, pawl_view_of(text));
}

static void bind_status(struct pawl__sqlite_stmt *stmt, int parameter, pawl_item_status status)
{
    pawl__sqlite_bind_text(stmt, parameter, pawl_view_of(pawl__work_item_status_text(status)));
}

/* What both tables begin with: ?1 to ?15. */
static void bind_common(struct pawl__sqlite_stmt *stmt,
                        const struct work_row *row,
                        struct work_sqlite_times *times)
{
    const pawl_item *item = &row->item;

    pawl__sqlite_bind_text(stmt, 1, item->work_item_id);
    pawl__sqlite_bind_text(stmt, 2, item->task_id);
    pawl__sqlite_bind_text(stmt, 3, item->work_type);
    pawl__sqlite_bind_i64(stmt, 4, item->priority);
    pawl__sqlite_bind_i64(stmt, 5, item->retry_count);
    pawl__sqlite_bind_i64(stmt, 6, item->max_retries);
    pawl__sqlite_bind_i64(stmt, 7, item->attempts);
    pawl__sqlite_bind_i64(stmt, 8, (int64_t)item->token);
    pawl__sqlite_bind_i64(stmt, 9, row->entries);
    pawl__work_bind_optional(stmt, 10, item->input_data);
    pawl__work_bind_optional(stmt, 11, item->error_message);
    bind_time(stmt, 12, item->created_at_us, times);
    bind_time(stmt, 13, item->started_at_us, times);
    bind_time(stmt, 14, item->updated_at_us, times);
    pawl__sqlite_bind_i64(stmt, 15, row->submission);
}

/* ITEM_INSERT and STAGE_NEW have the same parameters. */
static pawl_status insert_item(struct work_sqlite *backend,
                               size_t statement,
                               const struct work_row *row,
                               pawl_error *reterr)
{
    struct work_sqlite_times times = { .used = 0 };
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    bind_common(&stmt, row, &times);
    return pawl__sqlite_run(&stmt, reterr);
}

/* ITEM_UPDATE and STAGE have the same parameters. */
static pawl_status write_item(struct work_sqlite *backend,
                              size_t statement,
                              const struct work_row *row,
                              pawl_item_status status,
                              pawl_error *reterr)
{
    const pawl_item *item = &row->item;
    struct work_sqlite_times times = { .used = 0 };
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    pawl__sqlite_bind_text(&stmt, 1, item->work_item_id);
    bind_status(&stmt, 2, status);
    pawl__sqlite_bind_i64(&stmt, 3, item->retry_count);
    pawl__sqlite_bind_i64(&stmt, 4, item->attempts);
    pawl__sqlite_bind_i64(&stmt, 5, (int64_t)item->token);
    pawl__work_bind_optional(&stmt, 6, item->lease_holder);
    pawl__work_bind_optional(&stmt, 7, item->output_data);
    pawl__work_bind_optional(&stmt, 8, item->error_message);
    bind_time(&stmt, 9, item->started_at_us, &times);
    bind_time(&stmt, 10, item->completed_at_us, &times);
    bind_time(&stmt, 11, item->updated_at_us, &times);
    bind_time(&stmt, 12, item->lease_acquired_at_us, &times);
    bind_time(&stmt, 13, item->lease_expires_at_us, &times);
    bind_time(&stmt, 14, item->heartbeat_at_us, &times);
    if (status == PAWL_ITEM_IN_PROGRESS) {
        pawl__sqlite_bind_text(&stmt, 15, pawl_view_of(backend->boot_id));
        pawl__sqlite_bind_i64(&stmt, 16, row->deadline_ns);
    }
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status update_item(struct work_sqlite *backend,
                               const struct work_row *row,
                               pawl_item_status status,
                               pawl_error *reterr)
{
    return write_item(backend, WORK_SQL_ITEM_UPDATE, row, status, reterr);
}

static const char *reason_text(enum work_reason reason)
{
    return reason == WORK_BACKOFF ? "backoff" : reason == WORK_DEPENDENCY ? "dependency" : "delay";
}

static pawl_status insert_waiting(struct work_sqlite *backend,
                                  const struct work_row *row,
                                  pawl_error *reterr)
{
    struct work_sqlite_times times = { .used = 0 };
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_WAITING_INSERT);

    bind_common(&stmt, row, &times);
    pawl__sqlite_bind_text(&stmt, 16, pawl_view_of(reason_text(row->reason)));
    if (row->due_ns != INT64_MIN) {
        pawl__sqlite_bind_text(&stmt, 17, pawl_view_of(backend->boot_id));
        pawl__sqlite_bind_i64(&stmt, 18, row->due_ns);
    }
    bind_time(&stmt, 19, row->item.due_at_us, &times);
    pawl__sqlite_bind_i64(&stmt, 20, row->waits_for);
    return pawl__sqlite_run(&stmt, reterr);
}

static pawl_status update_waiting(struct work_sqlite *backend,
                                  const struct work_row *row,
                                  pawl_error *reterr)
{
    struct work_sqlite_times times = { .used = 0 };
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_WAITING_UPDATE);

    pawl__sqlite_bind_text(&stmt, 1, row->item.work_item_id);
    bind_time(&stmt, 2, row->item.updated_at_us, &times);
    pawl__sqlite_bind_text(&stmt, 3, pawl_view_of(reason_text(row->reason)));
    pawl__sqlite_bind_i64(&stmt, 4, row->waits_for);
    return pawl__sqlite_run(&stmt, reterr);
}

/* Runs a statement whose one parameter is the id. */
static pawl_status run_by_id(struct work_sqlite *backend,
                             size_t statement,
                             const struct work_row *row,
                             pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    pawl__sqlite_bind_text(&stmt, 1, row->item.work_item_id);
    return pawl__sqlite_run(&stmt, reterr);
}

/* Moves: there first, then gone here, so that the DELETE finds the item's token (0003_numbers.sql). */
static pawl_status move_out(struct work_sqlite *backend,
                            const struct work_row *row,
                            pawl_error *reterr)
{
    TRY(update_item(backend, row, PAWL_ITEM_PENDING, reterr));
    TRY(insert_waiting(backend, row, reterr));
    return run_by_id(backend, WORK_SQL_ITEM_DELETE, row, reterr);
}

static pawl_status move_in(struct work_sqlite *backend, struct work_row *row, pawl_error *reterr)
{
    row->entries++;
    pawl_status status = insert_item(backend, WORK_SQL_ITEM_INSERT, row, reterr);

    if (status == PAWL_OK) {
        status = run_by_id(backend, WORK_SQL_WAITING_DELETE, row, reterr);
    }
    if (status == PAWL_OK) {
        status = run_by_id(backend, WORK_SQL_RELINK_CHECKPOINTS, row, reterr);
    }
    if (status == PAWL_OK) {
        status = run_by_id(backend, WORK_SQL_RELINK_KEYS, row, reterr);
    }
    if (status == PAWL_OK && row->item.status != PAWL_ITEM_PENDING) {
        /* A store notes a change by a time that differs from the one before. */
        row->item.updated_at_us++;
        status = update_item(backend, row, row->item.status, reterr);
    }
    return status;
}

static pawl_status put_one(struct work_sqlite *backend, struct work_row *row, pawl_error *reterr)
{
    bool waits = row->item.status == PAWL_ITEM_WAITING;
    enum work_home home = row->home;

    row->home = waits ? WORK_IN_WAITING : WORK_IN_ITEMS;
    switch (home) {
    case WORK_NOWHERE:
        return waits ? insert_waiting(backend, row, reterr)
                     : insert_item(backend, WORK_SQL_ITEM_INSERT, row, reterr);
    case WORK_IN_ITEMS:
        return waits ? move_out(backend, row, reterr)
                     : update_item(backend, row, row->item.status, reterr);
    case WORK_IN_WAITING:
        break;
    }
    return waits ? update_waiting(backend, row, reterr) : move_in(backend, row, reterr);
}

static pawl_status run_plain(struct work_sqlite *backend, size_t statement, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, statement);

    return pawl__sqlite_run(&stmt, reterr);
}

/* Nearly all rows are new, or stay where they are: a submit, a claim, an end. Those of a group are
 * written by one statement: for each statement with triggers SQLite copies every page that it
 * touches, in case it fails half way, and rows of one group share most of their pages. */
static bool is_new(const struct work_row *row)
{
    return row->home == WORK_NOWHERE && row->item.status != PAWL_ITEM_WAITING;
}

static bool stays(const struct work_row *row)
{
    return row->home == WORK_IN_ITEMS && row->item.status != PAWL_ITEM_WAITING;
}

struct bulk {
    bool (*takes)(const struct work_row *row);
    pawl_status (*stage)(struct work_sqlite *backend,
                         const struct work_row *row,
                         pawl_error *reterr);
    size_t write;
    size_t unstage;
};

static pawl_status stage_new(struct work_sqlite *backend,
                             const struct work_row *row,
                             pawl_error *reterr)
{
    return insert_item(backend, WORK_SQL_STAGE_NEW, row, reterr);
}

static pawl_status stage_staying(struct work_sqlite *backend,
                                 const struct work_row *row,
                                 pawl_error *reterr)
{
    return write_item(backend, WORK_SQL_STAGE, row, row->item.status, reterr);
}

static const struct bulk bulks[] = {
    { is_new, stage_new, WORK_SQL_ITEMS_INSERT, WORK_SQL_UNSTAGE_NEW },
    { stays, stage_staying, WORK_SQL_ITEMS_UPDATE, WORK_SQL_UNSTAGE },
};

static pawl_status put_bulk(struct work_sqlite *backend,
                            const struct bulk *bulk,
                            struct work_row *const *rows,
                            size_t count,
                            pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (bulk->takes(rows[i])) {
            TRY(bulk->stage(backend, rows[i], reterr));
        }
    }
    TRY(run_plain(backend, bulk->write, reterr));
    return run_plain(backend, bulk->unstage, reterr);
}

/* One row is not worth the detour. */
static bool is_worth_it(const struct bulk *bulk, struct work_row *const *rows, size_t count)
{
    size_t taken = 0;

    for (size_t i = 0; i < count && taken < 2; i++) {
        taken += bulk->takes(rows[i]);
    }
    return taken > 1;
}

/* The last number given, read once in a transaction and stored at its commit. */
static pawl_status load_submissions(struct work_sqlite *backend, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_SUBMISSIONS);
    bool row = false;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    if (!row) {
        return pawl__fail(reterr, PAWL_CORRUPT, "work_counters has no row");
    }
    backend->submissions = pawl__sqlite_i64(&stmt, 0);
    backend->numbers = true;
    return PAWL_OK;
}

static pawl_status number_rows(struct work_sqlite *backend,
                               struct work_row *const *rows,
                               size_t count,
                               pawl_error *reterr)
{
    bool any = false;

    for (size_t i = 0; i < count && !any; i++) {
        any = rows[i]->home == WORK_NOWHERE;
    }
    if (!any) {
        return PAWL_OK;
    }
    TRY(backend->numbers ? PAWL_OK : load_submissions(backend, reterr));
    backend->submissions = pawl__work_number_rows(rows, count, backend->submissions);
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_store_numbers(struct work_sqlite *backend, pawl_error *reterr)
{
    if (!backend->numbers) {
        return PAWL_OK;
    }
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(backend->writer, WORK_SQL_SUBMISSIONS_SET);

    pawl__sqlite_bind_i64(&stmt, 1, backend->submissions);
    return pawl__sqlite_run(&stmt, reterr);
}

pawl_status pawl__work_sqlite_put(struct work_backend *base,
                                  const struct work_now *now,
                                  struct work_row *const *rows,
                                  size_t count,
                                  pawl_error *reterr)
{
    struct work_sqlite *backend = pawl__work_sqlite_of(base);
    bool bulky[COUNT_OF(bulks)];
    pawl_status status = number_rows(backend, rows, count, reterr);

    (void)now;
    for (size_t i = 0; i < COUNT_OF(bulks); i++) {
        bulky[i] = is_worth_it(&bulks[i], rows, count);
        if (bulky[i] && status == PAWL_OK) {
            status = put_bulk(backend, &bulks[i], rows, count, reterr);
        }
    }
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        if ((bulky[0] && is_new(rows[i])) || (bulky[1] && stays(rows[i]))) {
            rows[i]->home = WORK_IN_ITEMS;
        } else {
            status = put_one(backend, rows[i], reterr);
        }
    }
    return status;
}
