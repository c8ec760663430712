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

static pawl_view get_text(const struct work_columns *row, size_t column)
{
    return pawl__sqlite_text(stmt_of(row), (int)column);
}

static int64_t get_number(const struct work_columns *row, size_t column)
{
    return pawl__sqlite_i64(stmt_of(row), (int)column);
}

static bool get_boolean(const struct work_columns *row, size_t column)
{
    return pawl__sqlite_i64(stmt_of(row), (int)column) != 0;
}

static double get_real(const struct work_columns *row, size_t column)
{
    return pawl__sqlite_double(stmt_of(row), (int)column);
}

/* Text that is no time reads as 0, as NULL does. */
static int64_t get_time(const struct work_columns *row, size_t column)
{
    int64_t wall_us = 0;
    pawl_view text = get_text(row, column);

    return text.len > 0 && pawl__time_parse(text, &wall_us, NULL) == PAWL_OK ? wall_us : 0;
}

static bool get_is_null(const struct work_columns *row, size_t column)
{
    return pawl__sqlite_is_null(stmt_of(row), (int)column);
}

static const struct work_column_ops columns = {
    .text = get_text,
    .number = get_number,
    .boolean = get_boolean,
    .real = get_real,
    .time = get_time,
    .is_null = get_is_null,
};

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

struct run {
    struct pawl__sqlite *db;
    size_t statement;
    const struct work_value *values;
    size_t value_count;
    work_on_row *on_row;
    void *context;
    bool stopped; /* on_row wants no more */
};

static pawl_status run_once(struct run *run, size_t element, pawl_error *reterr)
{
    struct times times = { .used = 0 };
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(run->db, run->statement);
    struct pawl__sqlite_stmt *const in_use = &stmt;
    const struct work_columns row = { .ops = &columns, .result = &in_use };

    for (size_t i = 0; i < run->value_count; i++) {
        bind(&stmt, (int)i + 1, &run->values[i], element, &times);
    }
    for (;;) {
        bool more = false;
        TRY(pawl__sqlite_next(&stmt, &more, reterr));
        if (!more) {
            return PAWL_OK;
        }
        pawl_status status =
            run->on_row == NULL ? PAWL_OK : run->on_row(run->context, &row, reterr);
        if (status == PAWL_CANCELLED) {
            run->stopped = true;
            return PAWL_OK;
        }
        TRY(status);
    }
}

static pawl_status run_step(struct pawl__sqlite *db,
                            size_t statement,
                            const struct work_step *step,
                            pawl_error *reterr)
{
    struct run run = { db,           statement,     step->values, step->value_count,
                       step->on_row, step->context, false };
    size_t runs = count_runs(step->values, step->value_count);

    for (size_t i = 0; i < runs && !run.stopped; i++) {
        TRY(run_once(&run, i, reterr));
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

static pawl_status sqlite_row_exists(struct work_sql_backend *sql,
                                     pawl_view select,
                                     int64_t ms_max,
                                     bool *ret_exists,
                                     pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = pawl__view_dup(select);
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed reader = { NULL, NULL };

    if (text == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for evidence");
    }
    TRY(pawl__sqlite_borrow(&pawl__work_sqlite_of(&sql->base)->pool, &reader, reterr));
    return pawl__sqlite_row_exists(reader.db, text, ms_max, ret_exists, reterr);
}

const struct work_sql_ops pawl__work_sqlite_sql = {
    .run = sqlite_run,
    .read = sqlite_read,
    .deadline = sqlite_deadline,
    .load_tries = 1, /* nobody else moves an item while the write lock is held */
    .row_exists = sqlite_row_exists,
};
