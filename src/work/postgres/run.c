/* How PostgreSQL runs the statements that both databases have. */
#include <string.h>

#include "base/core/error.h"
#include "work/postgres/backend.h"

/* --- columns --- */

union work_cell pawl__work_pg_cell(const struct work_columns *row,
                                   size_t column,
                                   enum work_cell_kind kind)
{
    const struct pawl__pg_rows *rows = row->result;

    switch (kind) {
    case WORK_CELL_TEXT:
        return (union work_cell){ .text = pawl__pg_get_text(rows, row->index, column) };
    case WORK_CELL_INT:
        return (union work_cell){ .number = pawl__pg_get_i64(rows, row->index, column) };
    case WORK_CELL_BOOL:
        return (union work_cell){ .truth = pawl__pg_get_bool(rows, row->index, column) };
    case WORK_CELL_REAL:
        return (union work_cell){ .real = pawl__pg_get_double(rows, row->index, column) };
    case WORK_CELL_TIME:
        return (union work_cell){ .number = pawl__pg_get_time(rows, row->index, column) };
    case WORK_CELL_IS_NULL:
        break;
    }
    return (union work_cell){ .truth = pawl__pg_is_null(rows, row->index, column) };
}

/* The server's clock decides, and is what people see. */
static int64_t pg_deadline(const struct work_sql_backend *sql,
                           const struct work_now *now,
                           const struct work_columns *row,
                           size_t column,
                           int64_t wall_us,
                           bool by_wall)
{
    (void)sql;
    (void)now;
    (void)row;
    (void)column;
    (void)by_wall;
    return pawl__work_pg_ns(wall_us);
}

pawl_status pawl__work_pg_each_row(const struct pawl__pg_rows *rows,
                                   work_on_row *on_row,
                                   void *context,
                                   pawl_error *reterr)
{
    struct work_columns row = { .cell = pawl__work_pg_cell, .result = rows };

    for (row.index = 0; row.index < rows->count; row.index++) {
        pawl_status status = on_row(context, &row, reterr);
        if (status != PAWL_OK) {
            return status == PAWL_CANCELLED ? PAWL_OK : status;
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_pg_add_items(void *context,
                                    const struct pawl__pg_rows *rows,
                                    pawl_error *reterr)
{
    return pawl__work_pg_each_row(rows, pawl__work_sql_add_item, context, reterr);
}

/* --- values --- */

struct pawl__pg_value pawl__work_pg_list(struct work_postgres *backend,
                                         size_t which,
                                         const pawl_view *texts,
                                         size_t count)
{
    REQUIRE(which < WORK_PG_LISTS);
    struct pawl__pg_array *array = &backend->lists[which];
    pawl__pg_array_start(array, 'T', count);
    for (size_t i = 0; i < count; i++) {
        pawl__pg_array_add_view(array, texts[i]);
    }
    return pawl__pg_array_value(array);
}

void pawl__work_pg_add_row(struct pawl__pg_array *arrays,
                           const struct work_value *values,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        switch (values[i].kind) {
        case WORK_VALUE_TEXT:
            pawl__pg_array_add_view(&arrays[i], values[i].text);
            break;
        case WORK_VALUE_INT:
            pawl__pg_array_add_i64(&arrays[i], values[i].number);
            break;
        case WORK_VALUE_TIME:
            pawl__pg_array_add_time(&arrays[i], values[i].number);
            break;
        case WORK_VALUE_NULL:
        case WORK_VALUE_BOOL:
        case WORK_VALUE_TEXTS:
            REQUIRE(values[i].kind == WORK_VALUE_NULL);
            pawl__pg_array_add_null(&arrays[i]);
            break;
        }
    }
}

static struct pawl__pg_value list_of(struct pawl__pg_array *array, const struct work_value *value)
{
    pawl__pg_array_start(array, 'T', value->count);
    for (size_t i = 0; i < value->count; i++) {
        pawl__pg_array_add_view(array, pawl__work_value_at(value, i));
    }
    return pawl__pg_array_value(array);
}

/* `lists` are the committer's; a reader has no texts. */
static struct pawl__pg_value value_of(const struct work_value *value, struct pawl__pg_array **lists)
{
    switch (value->kind) {
    case WORK_VALUE_TEXT:
        return pawl__pg_text(value->text);
    case WORK_VALUE_INT:
        return pawl__pg_i64(value->number);
    case WORK_VALUE_BOOL:
        return pawl__pg_bool(value->number != 0);
    case WORK_VALUE_TIME:
        return pawl__pg_time(value->number);
    case WORK_VALUE_TEXTS:
        REQUIRE(*lists != NULL);
        return list_of((*lists)++, value);
    case WORK_VALUE_NULL:
        break;
    }
    return pawl__pg_null();
}

struct bound {
    size_t statement;
    struct pawl__pg_value values[WORK_PG_VALUES];
    size_t count;
};

#define STATEMENT(name) [WORK_STMT_##name] = WORK_PG_##name,
static const size_t statements[WORK_STMT_COUNT] = { WORK_STATEMENTS(STATEMENT) };

static struct bound bind(const struct work_step *step, struct pawl__pg_array *lists)
{
    struct bound bound = { .statement = statements[step->statement] };
    const char *params = pawl__work_pg_statements[bound.statement].params;

    bound.count = params == NULL ? 0 : strlen(params);
    REQUIRE(bound.count <= step->value_count && bound.count <= WORK_PG_VALUES);
    for (size_t i = 0; i < bound.count; i++) {
        bound.values[i] = value_of(&step->values[i], &lists);
    }
    return bound;
}

/* A step whose rows are read. */
struct reading {
    const struct work_step *step;
    bool stopped; /* by the step, which wants no more rows */
};

/* --- inside of a transaction --- */

static pawl_status on_step_rows(void *context, const struct pawl__pg_rows *rows, pawl_error *reterr)
{
    const struct work_step *step = ((const struct reading *)context)->step;

    if (step->changed != NULL) {
        *step->changed += (uint64_t)rows->affected;
    }
    return step->on_row == NULL ? PAWL_OK
                                : pawl__work_pg_each_row(rows, step->on_row, step->context, reterr);
}

static pawl_status pg_run(struct work_sql_backend *sql,
                          const struct work_step *steps,
                          size_t count,
                          pawl_error *reterr)
{
    struct work_postgres *backend = pawl__work_pg_of(&sql->base);
    struct reading reading[WORK_PG_STEPS_MAX];
    struct work_pg_trip trip;
    bool locks = false;

    REQUIRE(count < WORK_PG_STEPS_MAX);
    pawl__work_pg_trip_start(&trip, backend, reterr);
    for (size_t i = 0; i < count; i++) {
        struct bound bound = bind(&steps[i], backend->lists);
        reading[i] = (struct reading){ .step = &steps[i] };
        pawl__work_pg_trip_add(
            &trip, bound.statement, bound.values, bound.count, on_step_rows, &reading[i]);
        locks |= steps[i].locks;
    }
    if (locks) {
        pawl__work_pg_trip_add_clock(&trip);
    }
    return pawl__work_pg_trip_end(&trip);
}

/* --- reading --- */

static pawl_status on_read_row(void *context,
                               size_t index,
                               const struct pawl__pg_rows *rows,
                               pawl_error *reterr)
{
    struct reading *reading = context;
    const struct work_columns row = { .cell = pawl__work_pg_cell, .result = rows };
    pawl_status status = reading->step->on_row(reading->step->context, &row, reterr);

    (void)index;
    reading->stopped = status == PAWL_CANCELLED;
    return status;
}

static pawl_status read_steps(struct pawl__pg *pg,
                              const struct work_step *steps,
                              size_t count,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct reading reading = { .step = &steps[i] };
        struct bound bound = bind(&steps[i], NULL);
        pawl_status status = pawl__pg_each(
            pg, bound.statement, bound.values, bound.count, on_read_row, &reading, reterr);
        TRY(reading.stopped ? PAWL_OK : status);
    }
    return PAWL_OK;
}

static pawl_status pg_read(struct work_sql_backend *sql,
                           const struct work_step *steps,
                           size_t count,
                           pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__work_pg_borrow(&sql->base, &borrowed, reterr));
    if (count == 1) {
        return read_steps(borrowed.pg, steps, count, reterr);
    }
    TRY(pawl__pg_begin(borrowed.pg, PAWL__PG_READ_ONLY, reterr));
    pawl_status status = read_steps(borrowed.pg, steps, count, reterr);
    pawl__pg_rollback(borrowed.pg);
    return status;
}

const struct work_sql_ops pawl__work_pg_sql = {
    .run = pg_run,
    .read = pg_read,
    .deadline = pg_deadline,
    .load_tries = 3, /* another node may move an item between two statements */
};
