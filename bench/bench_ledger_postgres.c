/* Appending to a ledger on PostgreSQL against bare libpq: batches of 1,000, in one transaction
 * each, with fsync on. The bare side prepares one insert and sends it 1,000 times in a pipeline,
 * binary values, into a table with the same columns and indexes. */
#include "bench.h"

#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "ledger_events.h"
#include "lib/pg_server.h"

enum { ROUNDS = 8, BATCHES_A_ROUND = 10, PARAMETERS = 10 };

static PGconn *connect_bare(const char *url)
{
    static const Oid types[PARAMETERS] = { 20, 25, 25, 20, 25, 25, 114, 1184, 23, 17 };
    PGconn *conn = PQconnectdb(url);

    PQclear(PQexec(
        conn, "CREATE SCHEMA bare; CREATE TABLE bare.events (LIKE pawl.events INCLUDING ALL)"));
    PGresult *result = PQprepare(conn,
                                 "insert",
                                 "INSERT INTO bare.events VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)",
                                 PARAMETERS,
                                 types);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        events_stop("prepare", PQerrorMessage(conn));
    }
    PQclear(result);
    return conn;
}

static void send_event(PGconn *conn, const pawl_event *event, uint64_t offset)
{
    static const char hash[PAWL_LEDGER_HASH_BYTES] = { 1 };
    static const int formats[PARAMETERS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const int64_t since_2000 = pawl__wall_us(pawl__clock_real()) - INT64_C(946684800000000);
    const uint64_t number = htobe64(offset);
    const uint64_t turn = htobe64((uint64_t)event->turn);
    const uint64_t at = htobe64((uint64_t)since_2000);
    const uint32_t version = htobe32(1);
    const char *const values[PARAMETERS] = {
        (const char *)&number,  event->id.data,
        event->run_id.data,     (const char *)&turn,
        event->kind.data,       event->actor.data,
        event->payload.data,    (const char *)&at,
        (const char *)&version, hash,
    };
    const int lengths[PARAMETERS] = {
        8,
        (int)event->id.len,
        (int)event->run_id.len,
        8,
        (int)event->kind.len,
        (int)event->actor.len,
        (int)event->payload.len,
        8,
        4,
        sizeof(hash),
    };

    if (PQsendQueryPrepared(conn, "insert", PARAMETERS, values, lengths, formats, 1) != 1) {
        events_stop("send", PQerrorMessage(conn));
    }
}

static void append_bare(PGconn *conn, const pawl_event *events, uint64_t first_offset)
{
    PQenterPipelineMode(conn);
    for (uint64_t i = 0; i < EVENTS_BATCH; i++) {
        send_event(conn, &events[i], first_offset + i);
    }
    PQpipelineSync(conn); /* ends the one transaction that all of it is */
    for (bool synced = false; !synced;) {
        PGresult *result = PQgetResult(conn);
        ExecStatusType kind = PQresultStatus(result);
        synced = kind == PGRES_PIPELINE_SYNC;
        if (result != NULL && !synced && kind != PGRES_COMMAND_OK) {
            events_stop("insert", PQerrorMessage(conn));
        }
        PQclear(result);
    }
    PQexitPipelineMode(conn);
}

static double run_bare(PGconn *conn, uint64_t number)
{
    double start = bench_now_s();

    for (int i = 0; i < BATCHES_A_ROUND; i++) {
        append_bare(conn, events_batch(number), number + 1);
        number += EVENTS_BATCH;
    }
    return bench_now_s() - start;
}

static double run_ours(pawl_ledger *ledger, uint64_t number)
{
    pawl_error error = PAWL_ERROR_INIT;
    double start = bench_now_s();

    for (int i = 0; i < BATCHES_A_ROUND; i++) {
        const pawl_event *events = events_batch(number + (uint64_t)i * EVENTS_BATCH);
        events_check(pawl_ledger_append_many(ledger, events, EVENTS_BATCH, NULL, &error), &error);
    }
    return bench_now_s() - start;
}

int main(void)
{
    const double measured = (double)EVENTS_BATCH * BATCHES_A_ROUND * (ROUNDS - 1);
    struct pg_server *server = NULL;
    pawl_ledger *ledger = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    double ours_s = 0;
    double bare_s = 0;

    events_check(pg_server_start(&(struct pg_server_options){ .settings = NULL }, &server, &error),
                 &error);
    events_check(pawl_ledger_open(pg_server_url(server), NULL, &ledger, &error), &error);
    PGconn *conn = connect_bare(pg_server_url(server));
    for (int half = 0; half < 2 * ROUNDS; half++) {
        bool is_ours = (half + half / 2) % 2 == 0; /* ours first, then theirs first, ... */
        uint64_t number = (uint64_t)(half / 2) * BATCHES_A_ROUND * EVENTS_BATCH;
        double took = is_ours ? run_ours(ledger, number) : run_bare(conn, number);
        if (half >= 2) { /* the first round warms both up */
            *(is_ours ? &ours_s : &bare_s) += took;
        }
    }
    bench_report("ledger/postgres-batch",
                 "events/s",
                 measured / ours_s,
                 "libpq, 1,000 pipelined inserts",
                 measured / bare_s,
                 0);
    PQfinish(conn);
    pawl_ledger_close(ledger, 0, NULL);
    pg_server_free(server);
    return 0;
}
