/* Pipelined inserts through the wrapper against the same inserts through bare libpq: what types,
 * checks and the bounded window cost. Both prepare the same statement, send binary values and
 * commit once a batch, with fsync on. */
#include "bench.h"

#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "lib/pg_server.h"
#include "store/postgres/postgres.h"

enum { ROWS = 20000, ROUNDS = 9, BODY_BYTES = 300 };

#define INSERT_SQL "INSERT INTO event (id, name, body, at) VALUES ($1, $2, $3, $4)"

static const struct pawl__pg_statement statements[] = { { INSERT_SQL, "itxz", NULL } };

static char body[BODY_BYTES];

static void stop(const char *what, const char *message)
{
    fprintf(stderr, "%s: %s\n", what, message);
    exit(1);
}

static void check(pawl_status status, const pawl_error *error)
{
    if (status != PAWL_OK) {
        stop(pawl_status_name(status), error->message);
    }
}

static void name_of(int row, char ret_name[40])
{
    snprintf(ret_name, 40, "0198c0de-0000-7000-8000-%012d", row);
}

static double run_wrapper(struct pawl__pg *pg)
{
    pawl_error error = PAWL_ERROR_INIT;
    double start = bench_now_s();

    check(pawl__pg_pipeline_begin(pg, NULL, NULL, &error), &error);
    for (int i = 0; i < ROWS; i++) {
        char name[40];
        name_of(i, name);
        check(pawl__pg_pipeline_add(pg,
                                    0,
                                    PG_ARGS(pawl__pg_i64(i),
                                            pawl__pg_text(pawl_view_of(name)),
                                            pawl__pg_bytes((pawl_view){ body, BODY_BYTES }),
                                            pawl__pg_time(INT64_C(1769682030123456) + i)),
                                    &error),
              &error);
    }
    check(pawl__pg_pipeline_end(pg, &error), &error);
    return bench_now_s() - start;
}

static void send_row(PGconn *conn, int row)
{
    char name[40];
    uint64_t id = htobe64((uint64_t)row);
    uint64_t at = htobe64((uint64_t)(INT64_C(822997230123456) + row)); /* since 2000 */
    const char *values[] = { (const char *)&id, name, body, (const char *)&at };
    const int formats[] = { 1, 1, 1, 1 };

    name_of(row, name);
    const int lengths[] = { 8, (int)strlen(name), BODY_BYTES, 8 };
    if (PQsendQueryPrepared(conn, "insert", 4, values, lengths, formats, 1) != 1) {
        stop("send", PQerrorMessage(conn));
    }
}

static double run_libpq(PGconn *conn)
{
    double start = bench_now_s();

    PQenterPipelineMode(conn);
    for (int i = 0; i < ROWS; i++) {
        send_row(conn, i);
    }
    PQpipelineSync(conn);
    for (bool synced = false; !synced;) {
        PGresult *result = PQgetResult(conn);
        ExecStatusType kind = PQresultStatus(result);
        synced = kind == PGRES_PIPELINE_SYNC;
        if (result != NULL && !synced && kind != PGRES_COMMAND_OK) {
            stop("insert", PQerrorMessage(conn));
        }
        PQclear(result);
    }
    PQexitPipelineMode(conn);
    return bench_now_s() - start;
}

static PGconn *connect_libpq(const char *url)
{
    static const Oid types[] = { 20, 25, 17, 1184 };
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK) {
        stop("connect", PQerrorMessage(conn));
    }
    PQclear(PQexec(conn, "SET search_path = pawl"));
    PQclear(PQprepare(conn, "insert", INSERT_SQL, 4, types));
    return conn;
}

static struct pawl__pg *connect_wrapper(const char *url)
{
    struct pawl__pg *pg = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    check(pawl__pg_open(url, NULL, &pg, &error), &error);
    check(pawl__pg_script(pg,
                          "CREATE SCHEMA pawl; CREATE TABLE event (id bigint PRIMARY KEY,"
                          " name text NOT NULL, body bytea NOT NULL, at timestamptz NOT NULL)",
                          &error),
          &error);
    pawl__pg_close(pg);
    check(
        pawl__pg_open(url,
                      &(struct pawl__pg_options){ .statements = statements, .statement_count = 1 },
                      &pg,
                      &error),
        &error);
    return pg;
}

int main(void)
{
    struct pg_server *server = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    double ours = 0;
    double theirs = 0;

    check(pg_server_start(&(struct pg_server_options){ .settings = NULL }, &server, &error),
          &error);
    struct pawl__pg *pg = connect_wrapper(pg_server_url(server));
    PGconn *conn = connect_libpq(pg_server_url(server));
    memset(body, 'b', sizeof(body));
    for (int half = 0; half < 2 * ROUNDS; half++) {
        bool is_ours = (half + half / 2) % 2 == 0; /* ours first, then theirs first, ... */
        check(pawl__pg_script(pg, "TRUNCATE event; CHECKPOINT", &error), &error);
        double took = is_ours ? run_wrapper(pg) : run_libpq(conn);
        if (half >= 2) { /* the first round warms both up */
            *(is_ours ? &ours : &theirs) += took;
        }
    }
    bench_report("postgres: pipelined inserts, 20,000 a commit",
                 "rows/s",
                 ROWS * (double)(ROUNDS - 1) / ours,
                 "bare libpq pipeline",
                 ROWS * (double)(ROUNDS - 1) / theirs,
                 0.95);
    PQfinish(conn);
    pawl__pg_close(pg);
    pg_server_free(server);
    return 0;
}
