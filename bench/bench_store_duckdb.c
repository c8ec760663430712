/* The appender through the wrapper against the bare C interface: what text checks, tracking of
 * failures and the sync of the log's name cost. Twelve columns, transactions of 10,000 rows, both
 * with DuckDB's own checkpoints off and one of ours every tenth. */
#include "bench.h"

#include <duckdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "lib/tempdir.h"
#include "store/duckdb/duckdb.h"

enum { ROWS = 10000, ROUNDS = 60, CHECKPOINT_EVERY = 10 };

static const char table_sql[] = "CREATE TABLE e (id TEXT, stream TEXT, seq BIGINT, kind TEXT,"
                                " service TEXT, level TEXT, code INTEGER, value DOUBLE, ok BOOLEAN,"
                                " seen TIMESTAMP, message TEXT, attributes TEXT)";
static const char message[] = "a request took longer than it should have and was tried again";
static const char attributes[] =
    "{\"region\":\"eu-1\",\"host\":\"node-17\",\"attempt\":2,\"cached\":false}";

#define TEXT(literal) ((pawl_view){ (literal), sizeof(literal) - 1 })

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(pawl_status status, const pawl_error *error)
{
    if (status != PAWL_OK) {
        stop(pawl_status_name(status), error->message);
    }
}

static pawl_view make_id(char id[40], long n)
{
    return (pawl_view){ id, (size_t)snprintf(id, 40, "0198c0de-0000-7000-8000-%012ld", n) };
}

static void append_ours(struct pawl__duck_appender *appender, long n)
{
    pawl_error error = PAWL_ERROR_INIT;
    char id[40];

    pawl__duck_append_text(appender, make_id(id, n));
    pawl__duck_append_text(appender, TEXT("orders"));
    pawl__duck_append_i64(appender, n);
    pawl__duck_append_text(appender, TEXT("request"));
    pawl__duck_append_text(appender, TEXT("checkout"));
    pawl__duck_append_text(appender, TEXT("warn"));
    pawl__duck_append_i64(appender, n % 600);
    pawl__duck_append_double(appender, (double)n / 7);
    pawl__duck_append_bool(appender, n % 3 == 0);
    pawl__duck_append_time(appender, INT64_C(1769682030123456) + n);
    pawl__duck_append_text(appender, TEXT(message));
    pawl__duck_append_text(appender, TEXT(attributes));
    check(pawl__duck_append_row_end(appender, &error), &error);
}

static double run_wrapper(struct pawl__duck_conn *conn)
{
    struct pawl__duck_appender *appender = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    double start = bench_now_s();

    check(pawl__duck_begin(conn, PAWL__DUCK_WRITE, &error), &error);
    check(pawl__duck_appender_open(conn, "e", &appender, &error), &error);
    for (long n = 0; n < ROWS; n++) {
        append_ours(appender, n);
    }
    check(pawl__duck_appender_finish(appender, &error), &error);
    pawl__duck_appender_free(appender);
    check(pawl__duck_commit(conn, &error), &error);
    return bench_now_s() - start;
}

static void raw_command(duckdb_connection conn, const char *sql)
{
    duckdb_result result;

    if (duckdb_query(conn, sql, &result) != DuckDBSuccess) {
        stop(sql, duckdb_result_error(&result));
    }
    duckdb_destroy_result(&result);
}

static void append_raw(duckdb_appender appender, long n)
{
    char id[40];
    pawl_view view = make_id(id, n);

    duckdb_append_varchar_length(appender, view.data, view.len);
    duckdb_append_varchar_length(appender, "orders", 6);
    duckdb_append_int64(appender, n);
    duckdb_append_varchar_length(appender, "request", 7);
    duckdb_append_varchar_length(appender, "checkout", 8);
    duckdb_append_varchar_length(appender, "warn", 4);
    duckdb_append_int64(appender, n % 600);
    duckdb_append_double(appender, (double)n / 7);
    duckdb_append_bool(appender, n % 3 == 0);
    duckdb_append_timestamp(appender, (duckdb_timestamp){ INT64_C(1769682030123456) + n });
    duckdb_append_varchar_length(appender, message, sizeof(message) - 1);
    duckdb_append_varchar_length(appender, attributes, sizeof(attributes) - 1);
    if (duckdb_appender_end_row(appender) != DuckDBSuccess) {
        stop("append", duckdb_appender_error(appender));
    }
}

static double run_raw(duckdb_connection conn)
{
    duckdb_appender appender = NULL;
    double start = bench_now_s();

    raw_command(conn, "BEGIN");
    if (duckdb_appender_create(conn, NULL, "e", &appender) != DuckDBSuccess) {
        stop("appender", duckdb_appender_error(appender));
    }
    for (long n = 0; n < ROWS; n++) {
        append_raw(appender, n);
    }
    if (duckdb_appender_close(appender) != DuckDBSuccess) {
        stop("close", duckdb_appender_error(appender));
    }
    duckdb_appender_destroy(&appender);
    raw_command(conn, "COMMIT");
    return bench_now_s() - start;
}

/* Keeps both small, and makes the next commit of each begin a new log. */
static void empty_both(struct pawl__duck *db, struct pawl__duck_conn *conn, duckdb_connection raw)
{
    pawl_error error = PAWL_ERROR_INIT;

    check(pawl__duck_script(conn, "DELETE FROM e", &error), &error);
    check(pawl__duck_checkpoint(db, PAWL__DUCK_CHECKPOINT_TRY, &error), &error);
    raw_command(raw, "DELETE FROM e");
    raw_command(raw, "CHECKPOINT");
}

static duckdb_connection connect_raw(const char *path)
{
    duckdb_config config = NULL;
    duckdb_database db = NULL;
    duckdb_connection conn = NULL;
    char *text = NULL;

    if (duckdb_create_config(&config) != DuckDBSuccess
        || duckdb_set_config(config, "checkpoint_threshold", "1000TB") != DuckDBSuccess
        || duckdb_set_config(config, "memory_limit", "1GB") != DuckDBSuccess
        || duckdb_open_ext(path, &db, config, &text) != DuckDBSuccess
        || duckdb_connect(db, &conn) != DuckDBSuccess) {
        stop("open", text != NULL ? text : "no connection");
    }
    duckdb_destroy_config(&config);
    raw_command(conn, table_sql);
    return conn;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Medians: a round that met a stall of the disk says nothing about either. */
static double rows_per_second(double seconds[ROUNDS])
{
    qsort(seconds, ROUNDS, sizeof(seconds[0]), compare);
    return ROWS / seconds[ROUNDS / 2];
}

int main(void)
{
    char dir[TEMPDIR_SIZE];
    char ours_path[TEMPDIR_SIZE + 16];
    char raw_path[TEMPDIR_SIZE + 16];
    struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    double ours[ROUNDS];
    double bare[ROUNDS];

    check(tempdir_make(dir, "pawl-bench", &error), &error);
    snprintf(ours_path, sizeof(ours_path), "%s/ours.duckdb", dir);
    snprintf(raw_path, sizeof(raw_path), "%s/raw.duckdb", dir);
    check(pawl__duck_open(ours_path, NULL, &db, &error), &error);
    check(pawl__duck_connect(db, &conn, &error), &error);
    check(pawl__duck_script(conn, table_sql, &error), &error);
    duckdb_connection raw = connect_raw(raw_path);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == 0) { /* who goes first changes */
            ours[round] = run_wrapper(conn);
            bare[round] = run_raw(raw);
        } else {
            bare[round] = run_raw(raw);
            ours[round] = run_wrapper(conn);
        }
        if (round % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1) {
            empty_both(db, conn, raw);
        }
    }
    bench_report("duckdb, appender, 12 columns",
                 "rows/s",
                 rows_per_second(ours),
                 "duckdb.h",
                 rows_per_second(bare),
                 0.95);
    duckdb_disconnect(&raw);
    pawl__duck_disconnect(conn);
    pawl__duck_close(db);
    tempdir_remove(dir);
    return 0;
}
