/* Items in SQLite: how a row gets where it belongs. */
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/sqlite/backend.h"

static pawl_status run(struct work_sqlite *backend,
                       size_t statement,
                       const struct work_value *values,
                       size_t value_count,
                       pawl_error *reterr)
{
    return pawl__work_sqlite_run(
        backend->writer, statement, values, value_count, NULL, NULL, reterr);
}

/* ITEM_INSERT and STAGE_NEW have the same parameters. */
static pawl_status insert_item(struct work_sqlite *backend,
                               size_t statement,
                               const struct work_row *row,
                               pawl_error *reterr)
{
    struct work_value values[WORK_INSERT_VALUES];

    pawl__work_sql_insert_values(row, values);
    return run(backend, statement, values, COUNT_OF(values), reterr);
}

/* The boot id and the boot clock of a deadline; both NULL without one. */
static void add_deadline(const struct work_sqlite *backend,
                         bool any,
                         int64_t deadline_ns,
                         struct work_value *ret_values)
{
    ret_values[0] = any ? sql_name(backend->sql.boot_id) : sql_null();
    ret_values[1] = any ? sql_int(deadline_ns) : sql_null();
}

/* ITEM_UPDATE and STAGE have the same parameters. */
static pawl_status write_item(struct work_sqlite *backend,
                              size_t statement,
                              const struct work_row *row,
                              pawl_item_status status,
                              pawl_error *reterr)
{
    struct work_value values[WORK_UPDATE_VALUES + 2];

    pawl__work_sql_update_values(&row->item, status, values);
    add_deadline(
        backend, status == PAWL_ITEM_IN_PROGRESS, row->deadline_ns, &values[WORK_UPDATE_VALUES]);
    return run(backend, statement, values, COUNT_OF(values), reterr);
}

static pawl_status update_item(struct work_sqlite *backend,
                               const struct work_row *row,
                               pawl_item_status status,
                               pawl_error *reterr)
{
    return write_item(backend, WORK_SQL_ITEM_UPDATE, row, status, reterr);
}

static pawl_status insert_waiting(struct work_sqlite *backend,
                                  const struct work_row *row,
                                  pawl_error *reterr)
{
    struct work_value values[WORK_INSERT_WAITING_VALUES + 2];

    pawl__work_sql_insert_waiting_values(row, values);
    add_deadline(
        backend, row->due_ns != INT64_MIN, row->due_ns, &values[WORK_INSERT_WAITING_VALUES]);
    return run(backend, WORK_SQL_WAITING_INSERT, values, COUNT_OF(values), reterr);
}

static pawl_status update_waiting(struct work_sqlite *backend,
                                  const struct work_row *row,
                                  pawl_error *reterr)
{
    struct work_value values[WORK_UPDATE_WAITING_VALUES];

    pawl__work_sql_update_waiting_values(row, values);
    return run(backend, WORK_SQL_WAITING_UPDATE, values, COUNT_OF(values), reterr);
}

/* Runs a statement whose one parameter is the id. */
static pawl_status run_by_id(struct work_sqlite *backend,
                             size_t statement,
                             const struct work_row *row,
                             pawl_error *reterr)
{
    return run(backend, statement, SQL_ARGS(sql_text(row->item.work_item_id)), reterr);
}

/* An item that moves is in the other table before it leaves the one, so that the DELETE finds its token
 * there (0003_numbers.sql). */
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
    TRY(insert_item(backend, WORK_SQL_ITEM_INSERT, row, reterr));
    TRY(run_by_id(backend, WORK_SQL_WAITING_DELETE, row, reterr));
    TRY(run_by_id(backend, WORK_SQL_RELINK_CHECKPOINTS, row, reterr));
    TRY(run_by_id(backend, WORK_SQL_RELINK_KEYS, row, reterr));
    if (row->item.status == PAWL_ITEM_PENDING) {
        return PAWL_OK;
    }
    /* A store notes a change by a time that differs from the one before. */
    row->item.updated_at_us++;
    return update_item(backend, row, row->item.status, reterr);
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

/* Nearly all rows are new, or stay where they are: a submit, a claim, a completion. One statement writes
 * those of a group: for each statement with triggers SQLite copies every page that it
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
    bool (*fits)(const struct work_row *row);
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
        if (bulk->fits(rows[i])) {
            TRY(bulk->stage(backend, rows[i], reterr));
        }
    }
    TRY(run(backend, bulk->write, SQL_NO_ARGS, reterr));
    return run(backend, bulk->unstage, SQL_NO_ARGS, reterr);
}

/* Staging one row costs more than it saves. */
static bool is_worth_it(const struct bulk *bulk, struct work_row *const *rows, size_t count)
{
    size_t fitting = 0;

    for (size_t i = 0; i < count && fitting < 2; i++) {
        fitting += bulk->fits(rows[i]);
    }
    return fitting > 1;
}

/* The last number given, read once in a transaction and stored at its commit. */
static pawl_status load_submissions(struct work_sqlite *backend, pawl_error *reterr)
{
    int64_t last = -1;

    TRY(pawl__work_sqlite_run(backend->writer,
                              WORK_SQL_SUBMISSIONS,
                              SQL_NO_ARGS,
                              pawl__work_sql_read_int,
                              &last,
                              reterr));
    if (last < 0) {
        return pawl__fail(reterr, PAWL_CORRUPT, "work_counters has no row");
    }
    backend->submissions = last;
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
    return backend->numbers ? run(
               backend, WORK_SQL_SUBMISSIONS_SET, SQL_ARGS(sql_int(backend->submissions)), reterr)
                            : PAWL_OK;
}

pawl_status pawl__work_sqlite_put(struct work_backend *base,
                                  struct work_row *const *rows,
                                  size_t count,
                                  pawl_error *reterr)
{
    struct work_sqlite *backend = pawl__work_sqlite_of(base);
    bool bulky[COUNT_OF(bulks)];
    pawl_status status = number_rows(backend, rows, count, reterr);

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
