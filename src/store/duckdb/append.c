#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "store/duckdb/internal.h"

/* A chunk of DuckDB's: only the end of its last row does more than count. */
enum { CHUNK_ROWS = 2048 };

struct pawl__duck_appender {
    struct pawl__duck_conn *conn;
    uint64_t rows;
    struct pawl__duck_appender *next;
    duckdb_appender native; /* NULL: finished, or dead with its transaction */
    pawl_error failure;     /* the first of a value in this row; PAWL_OK: none */
};

static pawl_status native_fail(struct pawl__duck_conn *conn,
                               duckdb_appender native,
                               pawl_error *reterr)
{
    duckdb_error_data data = duckdb_appender_error_data(native);
    pawl_status status = pawl__duck_conn_fail(
        conn, duckdb_error_data_error_type(data), duckdb_error_data_message(data), reterr);

    duckdb_destroy_error_data(&data);
    return status;
}

static void unlink_appender(struct pawl__duck_appender *appender)
{
    struct pawl__duck_appender **link = &appender->conn->appenders;

    while (*link != NULL && *link != appender) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = appender->next;
    }
}

/* Ends the native one. What it still buffers goes into the open transaction, which the caller has
 * failed unless the buffer is empty. */
static void end_native(struct pawl__duck_appender *appender)
{
    if (appender->native != NULL) {
        REQUIRE(appender->conn->in_transaction);
        (void)duckdb_appender_destroy(&appender->native);
        appender->native = NULL;
        unlink_appender(appender);
    }
}

/* A dead appender takes the transaction with it. */
static pawl_status die(struct pawl__duck_appender *appender, pawl_status status, pawl_error *reterr)
{
    pawl__duck_note(appender->conn, status, reterr);
    end_native(appender);
    return status;
}

static struct pawl__duck_appender *appender_new(struct pawl__duck_conn *conn)
{
    struct pawl__duck_appender *appender = calloc(1, sizeof(*appender));

    REQUIRE(conn->in_transaction);
    REQUIRE(conn->rows == NULL);
    if (appender != NULL) {
        appender->conn = conn;
    }
    return appender;
}

static pawl_status appender_ready(struct pawl__duck_appender *appender,
                                  duckdb_state state,
                                  struct pawl__duck_appender **ret_appender,
                                  pawl_error *reterr)
{
    struct pawl__duck_conn *conn = appender->conn;

    if (state != DuckDBSuccess) {
        pawl_status status = native_fail(conn, appender->native, reterr);
        (void)duckdb_appender_destroy(&appender->native);
        free(appender);
        return status;
    }
    appender->next = conn->appenders;
    conn->appenders = appender;
    *ret_appender = appender;
    return PAWL_OK;
}

pawl_status pawl__duck_appender_open(struct pawl__duck_conn *conn,
                                     const char *table,
                                     struct pawl__duck_appender **ret_appender,
                                     pawl_error *reterr)
{
    struct pawl__duck_appender *appender = appender_new(conn);

    if (appender == NULL) {
        return pawl__duck_note(
            conn, pawl__fail(reterr, PAWL_NOMEM, "no memory for an appender"), reterr);
    }
    duckdb_state state = duckdb_appender_create(conn->native, NULL, table, &appender->native);
    return appender_ready(appender, state, ret_appender, reterr);
}

static duckdb_type type_of_letter(char letter)
{
    switch (letter) {
    case 'i':
        return DUCKDB_TYPE_BIGINT;
    case 'u':
        return DUCKDB_TYPE_UBIGINT;
    case 'd':
        return DUCKDB_TYPE_DOUBLE;
    case 'b':
        return DUCKDB_TYPE_BOOLEAN;
    case 't':
        return DUCKDB_TYPE_VARCHAR;
    case 'x':
        return DUCKDB_TYPE_BLOB;
    default:
        REQUIRE(letter == 'z'); /* no other is left */
        return DUCKDB_TYPE_TIMESTAMP;
    }
}

pawl_status pawl__duck_appender_open_query(struct pawl__duck_conn *conn,
                                           const char *sql,
                                           const struct pawl__duck_column *columns,
                                           size_t column_count,
                                           struct pawl__duck_appender **ret_appender,
                                           pawl_error *reterr)
{
    struct pawl__duck_appender *appender = appender_new(conn);
    duckdb_logical_type types[PAWL__DUCK_APPEND_COLUMNS_MAX];
    const char *names[PAWL__DUCK_APPEND_COLUMNS_MAX];

    if (appender == NULL) {
        return pawl__duck_note(
            conn, pawl__fail(reterr, PAWL_NOMEM, "no memory for an appender"), reterr);
    }
    REQUIRE(column_count > 0);
    REQUIRE(column_count <= PAWL__DUCK_APPEND_COLUMNS_MAX);
    for (size_t i = 0; i < column_count; i++) {
        types[i] = duckdb_create_logical_type(type_of_letter(columns[i].type));
        names[i] = columns[i].name;
    }
    duckdb_state state = duckdb_appender_create_query(
        conn->native, sql, column_count, types, "appended", names, &appender->native);
    for (size_t i = 0; i < column_count; i++) {
        duckdb_destroy_logical_type(&types[i]);
    }
    return appender_ready(appender, state, ret_appender, reterr);
}

void pawl__duck_appender_free(struct pawl__duck_appender *appender)
{
    if (appender == NULL) {
        return;
    }
    if (appender->native != NULL) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__fail(&error, PAWL_FAILED, "an appender was not finished");

        die(appender, status, &error);
    }
    free(appender);
}

void pawl__duck_kill_appenders(struct pawl__duck_conn *conn)
{
    while (conn->appenders != NULL) {
        end_native(conn->appenders);
    }
}

/* Appending after the end is a mistake of the program, unless a failure it was told of ended it. */
static bool can_append(const struct pawl__duck_appender *appender)
{
    return appender->native != NULL && appender->failure.status == PAWL_OK;
}

static void check_state(struct pawl__duck_appender *appender, duckdb_state state)
{
    if (state != DuckDBSuccess) {
        (void)native_fail(appender->conn, appender->native, &appender->failure);
    }
}

void pawl__duck_append_null(struct pawl__duck_appender *appender)
{
    if (can_append(appender)) {
        check_state(appender, duckdb_append_null(appender->native));
    }
}

void pawl__duck_append_default(struct pawl__duck_appender *appender)
{
    if (can_append(appender)) {
        check_state(appender, duckdb_append_default(appender->native));
    }
}

#define DEFINE_APPEND(name, c_type, append, native_value)                  \
    void name(struct pawl__duck_appender *appender, c_type value)          \
    {                                                                      \
        if (can_append(appender)) {                                        \
            check_state(appender, append(appender->native, native_value)); \
        }                                                                  \
    }

DEFINE_APPEND(pawl__duck_append_i64, int64_t, duckdb_append_int64, value)
DEFINE_APPEND(pawl__duck_append_u64, uint64_t, duckdb_append_uint64, value)
DEFINE_APPEND(pawl__duck_append_double, double, duckdb_append_double, value)
DEFINE_APPEND(pawl__duck_append_bool, bool, duckdb_append_bool, value)
DEFINE_APPEND(pawl__duck_append_time, int64_t, duckdb_append_timestamp, (duckdb_timestamp){ value })

void pawl__duck_append_text(struct pawl__duck_appender *appender, pawl_view value)
{
    if (can_append(appender) && pawl__duck_check_text(value, &appender->failure) == PAWL_OK) {
        const char *data = value.len == 0 ? "" : value.data;

        check_state(appender, duckdb_append_varchar_length(appender->native, data, value.len));
    }
}

void pawl__duck_append_bytes(struct pawl__duck_appender *appender, pawl_view value)
{
    if (can_append(appender) && pawl__duck_check_size(value, &appender->failure) == PAWL_OK) {
        const char *data = value.len == 0 ? "" : value.data;

        check_state(appender, duckdb_append_blob(appender->native, data, value.len));
    }
}

static pawl_status refuse_dead(struct pawl__duck_appender *appender, pawl_error *reterr)
{
    return pawl__duck_note(
        appender->conn, pawl__fail(reterr, PAWL_CLOSED, "the appender has ended"), reterr);
}

/* A flush, of many rows or of the rest, may take long. */
static pawl_status call_native(struct pawl__duck_appender *appender,
                               duckdb_state (*call)(duckdb_appender),
                               pawl_error *reterr)
{
    struct pawl__duck_conn *conn = appender->conn;

    TRY(pawl__duck_enter(conn, reterr));
    duckdb_state state = call(appender->native);
    pawl__duck_leave(conn);
    return state == DuckDBSuccess ? PAWL_OK : native_fail(conn, appender->native, reterr);
}

pawl_status pawl__duck_append_row_end(struct pawl__duck_appender *appender, pawl_error *reterr)
{
    if (appender->native == NULL) {
        return refuse_dead(appender, reterr);
    }
    if (appender->failure.status != PAWL_OK) {
        if (reterr != NULL) {
            *reterr = appender->failure;
        }
        return die(appender, appender->failure.status, &appender->failure);
    }
    if (++appender->rows % CHUNK_ROWS != 0) {
        return duckdb_appender_end_row(appender->native) == DuckDBSuccess
                   ? PAWL_OK
                   : die(appender, native_fail(appender->conn, appender->native, reterr), reterr);
    }
    pawl_status status = call_native(appender, duckdb_appender_end_row, reterr);
    return status == PAWL_OK ? PAWL_OK : die(appender, status, reterr);
}

pawl_status pawl__duck_appender_finish(struct pawl__duck_appender *appender, pawl_error *reterr)
{
    if (appender->native == NULL) {
        return refuse_dead(appender, reterr);
    }
    pawl_status status = call_native(appender, duckdb_appender_close, reterr);
    if (status != PAWL_OK) {
        return die(appender, status, reterr);
    }
    end_native(appender);
    return PAWL_OK;
}

pawl_status pawl__duck_finish_appenders(struct pawl__duck_conn *conn, pawl_error *reterr)
{
    while (conn->appenders != NULL) {
        TRY(pawl__duck_appender_finish(conn->appenders, reterr));
    }
    return PAWL_OK;
}
