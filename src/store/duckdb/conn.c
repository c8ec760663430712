#include <stdlib.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "store/duckdb/internal.h"

pawl_status pawl__duck_connect(struct pawl__duck *db,
                               struct pawl__duck_conn **ret_conn,
                               pawl_error *reterr)
{
    struct pawl__duck_conn *conn = calloc(1, sizeof(*conn));

    TRY(pawl__check_memory(conn, "a connection", reterr));
    conn->db = db;
    if (duckdb_connect(db->native, &conn->native) != DuckDBSuccess) {
        free(conn);
        return pawl__fail(reterr, PAWL_FAILED, "DuckDB gives no connection");
    }
    pawl__duck_watch_add(conn);
    *ret_conn = conn;
    return PAWL_OK;
}

static void free_statements(struct duck_source *statements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        duckdb_destroy_prepare(&statements[i].kept);
    }
    free(statements);
}

void pawl__duck_disconnect(struct pawl__duck_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    pawl__duck_rollback(conn);
    pawl__duck_kill_rows(conn); /* those of a query outside a transaction */
    pawl__duck_watch_remove(conn);
    free_statements(conn->statements, conn->statement_count);
    duckdb_disconnect(&conn->native);
    free(conn);
}

static pawl_status prepare_one(struct pawl__duck_conn *conn,
                               struct duck_source *source,
                               pawl_error *reterr)
{
    duckdb_prepared_statement statement = NULL;
    pawl_status status = pawl__duck_plan(conn, source, &statement, reterr);

    if (status == PAWL_OK && duckdb_nparams(statement) > 0) {
        source->kept = statement;
    } else {
        duckdb_destroy_prepare(&statement); /* see exec.c */
    }
    return status;
}

pawl_status pawl__duck_prepare(struct pawl__duck_conn *conn,
                               const char *const *statements,
                               size_t count,
                               pawl_error *reterr)
{
    struct duck_source *sources = calloc(MAX(count, (size_t)1), sizeof(sources[0]));

    if (sources == NULL) {
        return pawl__duck_note(
            conn, pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu statements", count), reterr);
    }
    for (size_t i = 0; i < count; i++) {
        sources[i].sql = statements[i];
        pawl_status status = prepare_one(conn, &sources[i], reterr);
        if (status != PAWL_OK) {
            free_statements(sources, count);
            return pawl__fail_context(reterr, status, "prepare statement %zu", i);
        }
    }
    free_statements(conn->statements, conn->statement_count);
    conn->statements = sources;
    conn->statement_count = count;
    return PAWL_OK;
}

pawl_status pawl__duck_run(struct pawl__duck_conn *conn,
                           size_t statement,
                           const struct pawl__duck_value *values,
                           size_t value_count,
                           int64_t *ret_changed,
                           pawl_error *reterr)
{
    struct duck_exec exec;

    REQUIRE(statement < conn->statement_count);
    TRY(pawl__duck_exec(
        conn, &conn->statements[statement], values, value_count, false, &exec, reterr));
    if (ret_changed != NULL) {
        *ret_changed = (int64_t)duckdb_rows_changed(&exec.result);
    }
    pawl__duck_exec_end(conn, &exec);
    return PAWL_OK;
}

static pawl_status run_script(struct pawl__duck_conn *conn,
                              duckdb_extracted_statements script,
                              idx_t count,
                              pawl_error *reterr)
{
    for (idx_t i = 0; i < count; i++) {
        const struct duck_source source = { .script = script, .index = i };
        struct duck_exec exec;
        pawl_status status = pawl__duck_exec(conn, &source, DUCK_NO_ARGS, false, &exec, reterr);

        if (status != PAWL_OK) {
            return pawl__fail_context(reterr,
                                      status,
                                      "statement %llu of %llu",
                                      (unsigned long long)i + 1,
                                      (unsigned long long)count);
        }
        pawl__duck_exec_end(conn, &exec);
    }
    return PAWL_OK;
}

pawl_status pawl__duck_script(struct pawl__duck_conn *conn, const char *sql, pawl_error *reterr)
{
    duckdb_extracted_statements script = NULL;
    idx_t count = duckdb_extract_statements(conn->native, sql, &script);
    const char *text = duckdb_extract_statements_error(script);
    pawl_status status = count == 0 && text != NULL
                             ? pawl__duck_conn_fail(conn, DUCKDB_ERROR_INVALID, text, reterr)
                             : run_script(conn, script, count, reterr);

    duckdb_destroy_extracted(&script);
    return status;
}

bool pawl__duck_in_transaction(const struct pawl__duck_conn *conn)
{
    return conn->in_transaction;
}

pawl_status pawl__duck_begin(struct pawl__duck_conn *conn,
                             enum pawl__duck_mode mode,
                             pawl_error *reterr)
{
    REQUIRE(!conn->in_transaction);
    REQUIRE(conn->rows == NULL);
    pawl_status status = pawl__duck_command(
        conn, mode == PAWL__DUCK_READ_ONLY ? "BEGIN TRANSACTION READ ONLY" : "BEGIN", reterr);
    if (status != PAWL_OK) {
        pawl__duck_run_quietly(conn, "ROLLBACK"); /* an interrupt may come when it has begun */
        return status;
    }
    conn->in_transaction = true;
    conn->mode = mode;
    conn->failure.status = PAWL_OK;
    return PAWL_OK;
}

static pawl_status commit_native(struct pawl__duck_conn *conn, pawl_error *reterr)
{
    if (conn->failure.status != PAWL_OK) {
        return pawl__fail(
            reterr, conn->failure.status, "rolled back, since: %s", conn->failure.message);
    }
    if (conn->mode == PAWL__DUCK_READ_ONLY) {
        return pawl__duck_command(conn, "COMMIT", reterr);
    }
    TRY(pawl__duck_finish_appenders(conn, reterr));
    FAILPOINT("duckdb.commit.before", reterr);
    TRY(pawl__duck_command(conn, "COMMIT", reterr));
    conn->in_transaction = false; /* from here on there is nothing to roll back */
    return pawl__duck_after_commit(conn->db, reterr);
}

pawl_status pawl__duck_commit(struct pawl__duck_conn *conn, pawl_error *reterr)
{
    REQUIRE(conn->in_transaction);
    REQUIRE(conn->rows == NULL);
    pawl_status status = commit_native(conn, reterr);
    if (status == PAWL_OK) {
        conn->in_transaction = false;
    }
    pawl__duck_rollback(conn);
    return status;
}

void pawl__duck_rollback(struct pawl__duck_conn *conn)
{
    duckdb_result result;

    if (conn == NULL || !conn->in_transaction) {
        return;
    }
    pawl__duck_kill_rows(conn);
    pawl__duck_kill_appenders(conn);
    /* It fails only when a failed COMMIT has ended the transaction already. */
    (void)duckdb_query(conn->native, "ROLLBACK", &result);
    duckdb_destroy_result(&result);
    conn->in_transaction = false;
}
