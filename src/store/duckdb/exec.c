/* One way to execute a statement.
 *
 * DuckDB 1.4 plans a prepared statement with what the statistics say about the tables at that
 * moment: a filter that nothing passed is dropped together with its scan, a column whose numbers
 * fitted a byte is sorted as bytes. It plans again at every execution when there are parameters,
 * but a statement without them keeps its plan for ever, and after the table has grown gives wrong
 * rows without an error. So such a statement is planned when it is executed, and inside the
 * transaction that executes it: what the statistics say then covers what the snapshot sees. */
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "store/duckdb/internal.h"

pawl_status pawl__duck_command(struct pawl__duck_conn *conn, const char *sql, pawl_error *reterr)
{
    duckdb_result result;

    TRY(pawl__duck_enter(conn, reterr));
    duckdb_state state = duckdb_query(conn->native, sql, &result);
    pawl__duck_leave(conn);
    pawl_status status =
        state == DuckDBSuccess
            ? PAWL_OK
            : pawl__duck_conn_fail(
                conn, duckdb_result_error_type(&result), duckdb_result_error(&result), reterr);
    duckdb_destroy_result(&result);
    return status;
}

void pawl__duck_run_quietly(struct pawl__duck_conn *conn, const char *sql)
{
    duckdb_result result;

    (void)duckdb_query(conn->native, sql, &result);
    duckdb_destroy_result(&result);
}

pawl_status pawl__duck_plan(struct pawl__duck_conn *conn,
                            const struct duck_source *source,
                            duckdb_prepared_statement *ret_statement,
                            pawl_error *reterr)
{
    duckdb_prepared_statement statement = NULL;
    pawl_status status = PAWL_OK;
    duckdb_state state = source->script != NULL
                             ? duckdb_prepare_extracted_statement(
                                 conn->native, source->script, source->index, &statement)
                             : duckdb_prepare(conn->native, source->sql, &statement);

    if (state != DuckDBSuccess) {
        status = pawl__duck_fail(DUCKDB_ERROR_INVALID, duckdb_prepare_error(statement), reterr);
    } else if (duckdb_prepared_statement_type(statement) == DUCKDB_STATEMENT_TYPE_TRANSACTION) {
        status = pawl__fail(
            reterr, PAWL_INVALID, "BEGIN, COMMIT and ROLLBACK are not for SQL text here");
    }
    if (status != PAWL_OK) {
        duckdb_destroy_prepare(&statement);
        return pawl__duck_note(conn, status, reterr);
    }
    *ret_statement = statement;
    return PAWL_OK;
}

pawl_status pawl__duck_check_size(pawl_view value, pawl_error *reterr)
{
    return value.len <= PAWL__DUCK_VALUE_BYTES_MAX
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "value has %zu bytes, the limit is %zu",
                            value.len,
                            PAWL__DUCK_VALUE_BYTES_MAX);
}

pawl_status pawl__duck_check_text(pawl_view text, pawl_error *reterr)
{
    TRY(pawl__duck_check_size(text, reterr));
    if (pawl__view_is_plain(text)) {
        return PAWL_OK;
    }
    if (memchr(text.data, '\0', text.len) != NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "text has a NUL inside");
    }
    if (!pawl__view_is_utf8(text)) {
        return pawl__fail(reterr, PAWL_INVALID, "text is not UTF-8");
    }
    return PAWL_OK;
}

static pawl_status check_value(const struct pawl__duck_value *value, pawl_error *reterr)
{
    return value->type == 't'   ? pawl__duck_check_text(value->as.view, reterr)
           : value->type == 'x' ? pawl__duck_check_size(value->as.view, reterr)
                                : PAWL_OK;
}

static duckdb_state bind_value(duckdb_prepared_statement statement,
                               idx_t number,
                               const struct pawl__duck_value *value)
{
    pawl_view view = value->as.view; /* only read where it is one */

    switch (value->type) {
    case 0:
        return duckdb_bind_null(statement, number);
    case 'i':
        return duckdb_bind_int64(statement, number, value->as.i64);
    case 'u':
        return duckdb_bind_uint64(statement, number, value->as.u64);
    case 'd':
        return duckdb_bind_double(statement, number, value->as.d);
    case 'b':
        return duckdb_bind_boolean(statement, number, value->as.b);
    case 't':
        return duckdb_bind_varchar_length(
            statement, number, view.len == 0 ? "" : view.data, view.len);
    case 'x':
        return duckdb_bind_blob(statement, number, view.len == 0 ? "" : view.data, view.len);
    default:
        REQUIRE(value->type == 'z'); /* no other letter is left */
        return duckdb_bind_timestamp(
            statement, number, (duckdb_timestamp){ .micros = value->as.i64 });
    }
}

static pawl_status bind_values(duckdb_prepared_statement statement,
                               const struct pawl__duck_value *values,
                               size_t value_count,
                               pawl_error *reterr)
{
    if (duckdb_nparams(statement) != value_count) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the statement has %llu parameters, %zu values were given",
                          (unsigned long long)duckdb_nparams(statement),
                          value_count);
    }
    for (size_t i = 0; i < value_count; i++) {
        pawl_status status = check_value(&values[i], reterr);

        if (status == PAWL_OK && bind_value(statement, i + 1, &values[i]) != DuckDBSuccess) {
            status = pawl__fail(reterr, PAWL_INVALID, "DuckDB does not take it");
        }
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "parameter %zu", i + 1);
        }
    }
    return PAWL_OK;
}

static bool only_reads(duckdb_prepared_statement statement)
{
    duckdb_statement_type type = duckdb_prepared_statement_type(statement);

    return type == DUCKDB_STATEMENT_TYPE_SELECT || type == DUCKDB_STATEMENT_TYPE_EXPLAIN;
}

/* The point lets a test interrupt what has not begun. */
static pawl_status enter_execution(struct pawl__duck_conn *conn, pawl_error *reterr)
{
    TRY(pawl__duck_enter(conn, reterr));
    FAILPOINT("duckdb.execute.before", reterr);
    return PAWL_OK;
}

static pawl_status execute_native(struct pawl__duck_conn *conn,
                                  struct duck_exec *exec,
                                  bool stream,
                                  pawl_error *reterr)
{
    pawl_status status = enter_execution(conn, reterr);
    if (status != PAWL_OK) {
        pawl__duck_leave(conn);
        return status;
    }
    duckdb_state state = stream ? duckdb_execute_prepared_streaming(exec->statement, &exec->result)
                                : duckdb_execute_prepared(exec->statement, &exec->result);
    pawl__duck_leave(conn);
    exec->has_result = true;
    exec->streams = stream && state == DuckDBSuccess;
    if (exec->streams) {
        atomic_fetch_add(&conn->db->streams, 1);
    }
    return state == DuckDBSuccess ? PAWL_OK
                                  : pawl__duck_conn_fail(conn,
                                                         duckdb_result_error_type(&exec->result),
                                                         duckdb_result_error(&exec->result),
                                                         reterr);
}

pawl_status pawl__duck_after_commit(struct pawl__duck *db, pawl_error *reterr)
{
    TRY(pawl__duck_sync_wal_name(db, reterr));
    FAILPOINT("duckdb.commit.after", reterr);
    return PAWL_OK;
}

/* A statement that writes and stands outside a transaction: it is a commit. */
static pawl_status execute_and_commit(struct pawl__duck_conn *conn,
                                      struct duck_exec *exec,
                                      pawl_error *reterr)
{
    FAILPOINT("duckdb.commit.before", reterr);
    pawl_status status = execute_native(conn, exec, false, reterr);
    if (status == PAWL_OK && exec->alone) {
        status = pawl__duck_command(conn, "COMMIT", reterr);
        exec->alone = status != PAWL_OK;
    }
    return status == PAWL_OK ? pawl__duck_after_commit(conn->db, reterr) : status;
}

static pawl_status exec_steps(struct pawl__duck_conn *conn,
                              const struct duck_source *source,
                              const struct pawl__duck_value *values,
                              size_t value_count,
                              bool stream,
                              struct duck_exec *exec,
                              pawl_error *reterr)
{
    if (!conn->in_transaction && value_count == 0) {
        exec->alone = true; /* also when it fails: an interrupt may come when it has begun */
        TRY(pawl__duck_command(conn, "BEGIN", reterr));
    }
    exec->statement = source->kept;
    if (source->kept == NULL) {
        TRY(pawl__duck_plan(conn, source, &exec->statement, reterr));
        exec->owns_statement = true;
    }
    TRY(bind_values(exec->statement, values, value_count, reterr));
    if (conn->in_transaction || only_reads(exec->statement)) {
        return execute_native(conn, exec, stream, reterr);
    }
    return execute_and_commit(conn, exec, reterr);
}

pawl_status pawl__duck_exec(struct pawl__duck_conn *conn,
                            const struct duck_source *source,
                            const struct pawl__duck_value *values,
                            size_t value_count,
                            bool stream,
                            struct duck_exec *ret_exec,
                            pawl_error *reterr)
{
    struct duck_exec exec = { 0 };

    REQUIRE(conn->rows == NULL); /* another statement would end their query */
    pawl_status status = exec_steps(conn, source, values, value_count, stream, &exec, reterr);
    if (status != PAWL_OK) {
        pawl__duck_exec_end(conn, &exec);
        return pawl__duck_note(conn, status, reterr);
    }
    *ret_exec = exec;
    return PAWL_OK;
}

void pawl__duck_exec_end(struct pawl__duck_conn *conn, struct duck_exec *exec)
{
    if (exec->has_result) {
        duckdb_destroy_result(&exec->result);
    }
    if (exec->owns_statement) {
        duckdb_destroy_prepare(&exec->statement);
    }
    if (exec->alone) {
        /* It only read, or it failed; a COMMIT that failed has ended it already. */
        pawl__duck_run_quietly(conn, "ROLLBACK");
    } else if (exec->streams && !exec->at_end) {
        /* A query that was not read to its end keeps its locks, destroyed or not, until the
         * connection runs another one. */
        pawl__duck_run_quietly(conn, "SELECT 1");
    }
    if (exec->streams) {
        atomic_fetch_sub(&conn->db->streams, 1);
    }
    *exec = (struct duck_exec){ 0 };
}
