/* How SQLite runs the statements that both databases have, and its own. */
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/sqlite/backend.h"

/* --- columns --- */

static struct pawl__sqlite_stmt *stmt_of(const struct work_columns *row)
{
    return *(struct pawl__sqlite_stmt *const *)row->result;
}

/* Text that is no time reads as 0, as NULL does. */
static int64_t time_of(pawl_view text)
{
    int64_t wall_us = 0;

    return text.len > 0 && pawl__time_parse(text, &wall_us, NULL) == PAWL_OK ? wall_us : 0;
}

static union work_cell sqlite_cell(const struct work_columns *row,
                                   size_t column,
                                   enum work_cell_kind kind)
{
    struct pawl__sqlite_stmt *stmt = stmt_of(row);
    int at = (int)column;

    switch (kind) {
    case WORK_CELL_TEXT:
        return (union work_cell){ .text = pawl__sqlite_text(stmt, at) };
    case WORK_CELL_INT:
        return (union work_cell){ .number = pawl__sqlite_i64(stmt, at) };
    case WORK_CELL_BOOL:
        return (union work_cell){ .truth = pawl__sqlite_i64(stmt, at) != 0 };
    case WORK_CELL_REAL:
        return (union work_cell){ .real = pawl__sqlite_double(stmt, at) };
    case WORK_CELL_TIME:
        return (union work_cell){ .number = time_of(pawl__sqlite_text(stmt, at)) };
    case WORK_CELL_IS_NULL:
        break;
    }
    return (union work_cell){ .truth = pawl__sqlite_is_null(stmt, at) };
}

static int64_t sqlite_deadline(const struct work_sql_backend *sql,
                               const struct work_now *now,
                               const struct work_columns *row,
                               size_t column,
                               int64_t wall_us,
                               bool by_wall)
{
    pawl_view boot_id = col_text(row, column);
    int64_t ns;

    if (pawl__view_is(boot_id, sql->boot_id)) {
        return col_int(row, column + 1);
    }
    if (boot_id.len > 0 && !by_wall) {
        return INT64_MIN;
    }
    if (__builtin_mul_overflow(wall_us - now->wall_us, NS_PER_US, &ns)
        || __builtin_add_overflow(ns, now->ns, &ns)) {
        return wall_us > now->wall_us ? INT64_MAX : INT64_MIN;
    }
    return ns;
}

/* --- values --- */

/* Texts of times: bound without a copy, they live as long as the statement is in use. */
struct times {
    char text[8][PAWL__TIME_SIZE];
    size_t used;
};

static void bind(struct pawl__sqlite_stmt *stmt,
                 int parameter,
                 const struct work_value *value,
                 size_t element,
                 struct times *times)
{
    switch (value->kind) {
    case WORK_VALUE_NULL:
        pawl__sqlite_bind_null(stmt, parameter);
        return;
    case WORK_VALUE_TEXT:
        pawl__sqlite_bind_text(stmt, parameter, value->text);
        return;
    case WORK_VALUE_INT:
    case WORK_VALUE_BOOL:
        pawl__sqlite_bind_i64(stmt, parameter, value->number);
        return;
    case WORK_VALUE_TIME:
        REQUIRE(times->used < COUNT_OF(times->text));
        pawl__time_store(value->number, times->text[times->used]);
        pawl__sqlite_bind_text(stmt, parameter, pawl_view_of(times->text[times->used++]));
        return;
    case WORK_VALUE_TEXTS:
        pawl__sqlite_bind_text(stmt, parameter, pawl__work_value_at(value, element));
        return;
    }
}

/* How often the statement runs: once per element of the texts, all of which have as many. */
static size_t count_runs(const struct work_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind == WORK_VALUE_TEXTS) {
            return values[i].count;
        }
    }
    return 1;
}

/* --- statements --- */

/* *ret_stopped: on_row wants no more rows. */
static pawl_status run_once(struct pawl__sqlite *db,
                            size_t statement,
                            const struct work_step *step,
                            size_t element,
                            bool *ret_stopped,
                            pawl_error *reterr)
{
    struct times times = { .used = 0 };
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, statement);
    struct pawl__sqlite_stmt *const in_use = &stmt;
    const struct work_columns row = { .cell = sqlite_cell, .result = &in_use };

    for (size_t i = 0; i < step->value_count; i++) {
        bind(&stmt, (int)i + 1, &step->values[i], element, &times);
    }
    for (;;) {
        bool more = false;
        TRY(pawl__sqlite_next(&stmt, &more, reterr));
        if (!more) {
            return PAWL_OK;
        }
        pawl_status status =
            step->on_row == NULL ? PAWL_OK : step->on_row(step->context, &row, reterr);
        *ret_stopped = status == PAWL_CANCELLED;
        if (status != PAWL_OK) {
            return *ret_stopped ? PAWL_OK : status;
        }
    }
}

static pawl_status run_step(struct pawl__sqlite *db,
                            size_t statement,
                            const struct work_step *step,
                            pawl_error *reterr)
{
    size_t runs = count_runs(step->values, step->value_count);
    bool stopped = false;

    for (size_t i = 0; i < runs && !stopped; i++) {
        TRY(run_once(db, statement, step, i, &stopped, reterr));
        if (step->changed != NULL) {
            *step->changed += (uint64_t)pawl__sqlite_changes(db);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_sqlite_run(struct pawl__sqlite *db,
                                  size_t statement,
                                  const struct work_value *values,
                                  size_t value_count,
                                  work_on_row *on_row,
                                  void *context,
                                  pawl_error *reterr)
{
    const struct work_step step = {
        .values = values, .value_count = value_count, .on_row = on_row, .context = context
    };

    return run_step(db, statement, &step, reterr);
}

#define STATEMENT(name) [WORK_STMT_##name] = WORK_SQL_##name,
static const size_t statements[WORK_STMT_COUNT] = { WORK_STATEMENTS(STATEMENT) };

static pawl_status run_steps(struct pawl__sqlite *db,
                             const struct work_step *steps,
                             size_t count,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(run_step(db, statements[steps[i].statement], &steps[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status sqlite_run(struct work_sql_backend *sql,
                              const struct work_step *steps,
                              size_t count,
                              pawl_error *reterr)
{
    return run_steps(pawl__work_sqlite_of(&sql->base)->writer, steps, count, reterr);
}

static pawl_status sqlite_read(struct work_sql_backend *sql,
                               const struct work_step *steps,
                               size_t count,
                               pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    TRY(pawl__sqlite_borrow(&pawl__work_sqlite_of(&sql->base)->pool, &reader, reterr));
    if (count == 1) {
        return run_steps(reader.db, steps, count, reterr);
    }
    TRY(pawl__sqlite_begin(reader.db, PAWL__SQLITE_DEFERRED, reterr));
    pawl_status status = run_steps(reader.db, steps, count, reterr);
    pawl__sqlite_rollback(reader.db);
    return status;
}

const struct work_sql_ops pawl__work_sqlite_sql = {
    .run = sqlite_run,
    .read = sqlite_read,
    .deadline = sqlite_deadline,
    .load_tries = 1, /* nobody else moves an item while the write lock is held */
};
