#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "store/duckdb/internal.h"

struct duck_column {
    duckdb_type type;
    const void *data;         /* of the chunk */
    const uint64_t *validity; /* one bit a row; NULL: no NULLs in this chunk */
};

struct pawl__duck_rows {
    struct pawl__duck_conn *conn; /* NULL: it, or the transaction, has ended */
    struct duck_exec exec;
    duckdb_data_chunk chunk;
    idx_t row;
    idx_t row_count; /* of the chunk; 0: no row */
    size_t column_count;
    struct duck_column columns[];
};

static pawl_status rows_new(struct pawl__duck_conn *conn,
                            struct duck_exec *exec,
                            struct pawl__duck_rows **ret_rows,
                            pawl_error *reterr)
{
    size_t count = duckdb_column_count(&exec->result);

    if (count > PAWL__DUCK_COLUMNS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the result has %zu columns, the limit is %d",
                          count,
                          PAWL__DUCK_COLUMNS_MAX);
    }
    struct pawl__duck_rows *rows = calloc(1, sizeof(*rows) + count * sizeof(rows->columns[0]));
    if (rows == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu columns", count);
    }
    rows->conn = conn;
    rows->exec = *exec;
    rows->column_count = count;
    for (size_t i = 0; i < count; i++) {
        rows->columns[i].type = duckdb_column_type(&rows->exec.result, i);
    }
    *ret_rows = rows;
    return PAWL_OK;
}

static pawl_status query(struct pawl__duck_conn *conn,
                         const struct duck_source *source,
                         const struct pawl__duck_value *values,
                         size_t value_count,
                         struct pawl__duck_rows **ret_rows,
                         pawl_error *reterr)
{
    struct duck_exec exec;

    TRY(pawl__duck_exec(conn, source, values, value_count, true, &exec, reterr));
    pawl_status status = rows_new(conn, &exec, ret_rows, reterr);
    if (status != PAWL_OK) {
        pawl__duck_exec_end(conn, &exec);
        return pawl__duck_note(conn, status, reterr);
    }
    conn->rows = *ret_rows;
    return PAWL_OK;
}

pawl_status pawl__duck_query(struct pawl__duck_conn *conn,
                             size_t statement,
                             const struct pawl__duck_value *values,
                             size_t value_count,
                             struct pawl__duck_rows **ret_rows,
                             pawl_error *reterr)
{
    REQUIRE(statement < conn->statement_count);
    return query(conn, &conn->statements[statement], values, value_count, ret_rows, reterr);
}

pawl_status pawl__duck_query_text(struct pawl__duck_conn *conn,
                                  const char *sql,
                                  const struct pawl__duck_value *values,
                                  size_t value_count,
                                  struct pawl__duck_rows **ret_rows,
                                  pawl_error *reterr)
{
    const struct duck_source source = { .sql = sql };

    return query(conn, &source, values, value_count, ret_rows, reterr);
}

static void end_native(struct pawl__duck_rows *rows)
{
    if (rows->conn == NULL) {
        return;
    }
    if (rows->chunk != NULL) {
        duckdb_destroy_data_chunk(&rows->chunk);
    }
    pawl__duck_exec_end(rows->conn, &rows->exec);
    rows->row_count = 0;
    rows->conn->rows = NULL;
    rows->conn = NULL;
}

void pawl__duck_kill_rows(struct pawl__duck_conn *conn)
{
    if (conn->rows != NULL) {
        end_native(conn->rows);
    }
}

void pawl__duck_rows_free(struct pawl__duck_rows *rows)
{
    if (rows != NULL) {
        end_native(rows);
        free(rows);
    }
}

/* DuckDB gives no chunk at the end and after an error alike. */
static pawl_status fetch_chunk(struct pawl__duck_rows *rows, pawl_error *reterr)
{
    if (rows->chunk != NULL) {
        duckdb_destroy_data_chunk(&rows->chunk);
    }
    rows->row = 0;
    rows->row_count = 0;
    TRY(pawl__duck_enter(rows->conn, reterr));
    rows->chunk = duckdb_fetch_chunk(rows->exec.result);
    pawl__duck_leave(rows->conn);
    rows->exec.at_end = rows->chunk == NULL;
    if (rows->exec.at_end) {
        const char *text = duckdb_result_error(&rows->exec.result);

        return text == NULL || text[0] == '\0'
                   ? PAWL_OK
                   : pawl__duck_conn_fail(
                       rows->conn, duckdb_result_error_type(&rows->exec.result), text, reterr);
    }
    rows->row_count = duckdb_data_chunk_get_size(rows->chunk);
    for (size_t i = 0; i < rows->column_count; i++) {
        duckdb_vector vector = duckdb_data_chunk_get_vector(rows->chunk, i);

        rows->columns[i].data = duckdb_vector_get_data(vector);
        rows->columns[i].validity = duckdb_vector_get_validity(vector);
    }
    return PAWL_OK;
}

pawl_status pawl__duck_next(struct pawl__duck_rows *rows, pawl_error *reterr)
{
    if (rows->conn == NULL) {
        return pawl__fail(reterr, PAWL_CLOSED, "the transaction of these rows has ended");
    }
    if (rows->row + 1 < rows->row_count) {
        rows->row++;
        return PAWL_OK;
    }
    TRY(fetch_chunk(rows, reterr));
    while (rows->chunk != NULL && rows->row_count == 0) {
        TRY(fetch_chunk(rows, reterr));
    }
    return PAWL_OK;
}

bool pawl__duck_has_row(const struct pawl__duck_rows *rows)
{
    return rows->row < rows->row_count;
}

size_t pawl__duck_column_count(const struct pawl__duck_rows *rows)
{
    return rows->column_count;
}

const char *pawl__duck_column_name(const struct pawl__duck_rows *rows, size_t column)
{
    /* The engine's function does not take a const pointer, and changes nothing. */
    duckdb_result result = rows->exec.result;

    REQUIRE(column < rows->column_count);
    return duckdb_column_name(&result, column);
}

static char letter_of(duckdb_type type)
{
    switch (type) {
    case DUCKDB_TYPE_TINYINT:
    case DUCKDB_TYPE_SMALLINT:
    case DUCKDB_TYPE_INTEGER:
    case DUCKDB_TYPE_BIGINT:
        return 'i';
    case DUCKDB_TYPE_UTINYINT:
    case DUCKDB_TYPE_USMALLINT:
    case DUCKDB_TYPE_UINTEGER:
    case DUCKDB_TYPE_UBIGINT:
        return 'u';
    case DUCKDB_TYPE_FLOAT:
    case DUCKDB_TYPE_DOUBLE:
        return 'd';
    case DUCKDB_TYPE_BOOLEAN:
        return 'b';
    case DUCKDB_TYPE_VARCHAR:
        return 't';
    case DUCKDB_TYPE_BLOB:
        return 'x';
    case DUCKDB_TYPE_TIMESTAMP:
    case DUCKDB_TYPE_TIMESTAMP_TZ:
        return 'z';
    default:
        return '?';
    }
}

char pawl__duck_column_type(const struct pawl__duck_rows *rows, size_t column)
{
    REQUIRE(column < rows->column_count);
    return letter_of(rows->columns[column].type);
}

bool pawl__duck_is_null(const struct pawl__duck_rows *rows, size_t column)
{
    REQUIRE(column < rows->column_count);
    REQUIRE(rows->row < rows->row_count);
    const uint64_t *validity = rows->columns[column].validity;
    return validity != NULL && (validity[rows->row / 64] >> (rows->row % 64) & 1) == 0;
}

/* The column, or NULL for a NULL value. */
static const struct duck_column *value_at(const struct pawl__duck_rows *rows,
                                          size_t column,
                                          char letter)
{
    bool is_null = pawl__duck_is_null(rows, column);

    REQUIRE(letter_of(rows->columns[column].type) == letter);
    return is_null ? NULL : &rows->columns[column];
}

#define VALUE(c_type) (((const c_type *)values->data)[rows->row])

int64_t pawl__duck_get_i64(const struct pawl__duck_rows *rows, size_t column)
{
    const struct duck_column *values = value_at(rows, column, 'i');

    return values == NULL                         ? 0
           : values->type == DUCKDB_TYPE_TINYINT  ? VALUE(int8_t)
           : values->type == DUCKDB_TYPE_SMALLINT ? VALUE(int16_t)
           : values->type == DUCKDB_TYPE_INTEGER  ? VALUE(int32_t)
                                                  : VALUE(int64_t);
}

uint64_t pawl__duck_get_u64(const struct pawl__duck_rows *rows, size_t column)
{
    const struct duck_column *values = value_at(rows, column, 'u');

    return values == NULL                          ? 0
           : values->type == DUCKDB_TYPE_UTINYINT  ? VALUE(uint8_t)
           : values->type == DUCKDB_TYPE_USMALLINT ? VALUE(uint16_t)
           : values->type == DUCKDB_TYPE_UINTEGER  ? VALUE(uint32_t)
                                                   : VALUE(uint64_t);
}

double pawl__duck_get_double(const struct pawl__duck_rows *rows, size_t column)
{
    const struct duck_column *values = value_at(rows, column, 'd');

    return values == NULL                      ? 0
           : values->type == DUCKDB_TYPE_FLOAT ? (double)VALUE(float)
                                               : VALUE(double);
}

bool pawl__duck_get_bool(const struct pawl__duck_rows *rows, size_t column)
{
    const struct duck_column *values = value_at(rows, column, 'b');

    return values != NULL && VALUE(bool);
}

int64_t pawl__duck_get_time(const struct pawl__duck_rows *rows, size_t column)
{
    const struct duck_column *values = value_at(rows, column, 'z');

    return values == NULL ? 0 : VALUE(duckdb_timestamp).micros;
}

static pawl_view get_string(const struct pawl__duck_rows *rows, size_t column, char letter)
{
    enum { INLINED_MAX = 12 };
    const struct duck_column *values = value_at(rows, column, letter);

    if (values == NULL) {
        return (pawl_view){ 0 };
    }
    /* Short ones lie in the vector itself: the view must point there, not into a copy. */
    const duckdb_string_t *string = &VALUE(duckdb_string_t);
    uint32_t len = string->value.inlined.length;
    return (pawl_view){
        .data = len <= INLINED_MAX ? string->value.inlined.inlined : string->value.pointer.ptr,
        .len = len,
    };
}

pawl_view pawl__duck_get_text(const struct pawl__duck_rows *rows, size_t column)
{
    return get_string(rows, column, 't');
}

pawl_view pawl__duck_get_bytes(const struct pawl__duck_rows *rows, size_t column)
{
    return get_string(rows, column, 'x');
}
