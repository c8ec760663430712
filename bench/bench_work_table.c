/* What the work store does when much has piled up in it, on SQLite and on PostgreSQL.
 *
 *   claim         p50 and p99 of claiming one item, in a store with 10,000 … 10 M finished items against
 *                 one with 1,000; their claims alternate, so that the disk disturbs both alike
 *   sweep         1,000 and 100,000 leases that ran out, against submitting as many
 *
 * `bench_work_table 100000` stops at so many finished items: 10 M take minutes to put in. */
#include "bench.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>
#include <sqlite3.h>

#include <pawl/work.h>

#include "base/core/macros.h"
#include "lib/pg_server.h"
#include "lib/tempdir.h"

enum {
    SMALL = 1000,
    LARGE_FIRST = 10000,
    LARGE_LAST = 10000000,
    CLAIMS = 1000,
    BATCH = 1000,
    CLAIM_BATCH = 10000,
    LOCATION_SIZE = 256,
};

#define MUST(call)                                                              \
    do {                                                                        \
        pawl_error error_ = PAWL_ERROR_INIT;                                    \
        pawl_error *err = &error_;                                              \
        if ((call) != PAWL_OK) {                                                \
            fprintf(stderr, "bench_work_table: %s: %s\n", #call, err->message); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_work_table: %s: %s\n", what, detail);
    exit(1);
}

struct store {
    char location[LOCATION_SIZE];
    bool postgres;
    pawl_work *work;
    long finished; /* items that were put in by SQL */
};

static pawl_view task_id(void)
{
    return pawl_view_of("bench");
}

static void open_store(struct store *store)
{
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = task_id(),
                       .title = pawl_view_of("what piles up") };

    store->postgres = strncmp(store->location, "postgres", strlen("postgres")) == 0;
    MUST(pawl_work_open(store->location, NULL, &store->work, err));
    MUST(pawl_task_create(store->work, &task, NULL, 0, err));
}

static void close_store(struct store *store)
{
    pawl_work_close(store->work, 0, NULL);
    store->work = NULL;
}

/* --- finished items, in bulk by SQL --- */

/* A finished item has a past that the triggers guard and record: here they are off. */
static void sqlite_run(const struct store *store, const char *sql)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(store->location, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK
        || sqlite3_busy_timeout(db, 60000) != SQLITE_OK
        || sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) != SQLITE_OK
        || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        die(sql, sqlite3_errmsg(db));
    }
    sqlite3_close(db);
}

static void postgres_run(const struct store *store, const char *sql)
{
    PGconn *conn = PQconnectdb(store->location);
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        die(sql, PQerrorMessage(conn));
    }
    PQclear(result);
    PQfinish(conn);
}

static void fill_to(struct store *store, long finished)
{
    static const char sqlite[] =
        "WITH RECURSIVE n(i) AS (VALUES (%ld) UNION ALL SELECT i + 1 FROM n WHERE i < %ld)"
        " INSERT INTO work_items (work_item_id, task_id, work_type, status, input_data, created_at,"
        " started_at, completed_at, token, attempts) SELECT printf('0000-%%012d', i), 'bench',"
        " 'noop', 'completed', '{}', '2026-01-01 00:00:00', '2026-01-01 00:00:01',"
        " '2026-01-01 00:00:02', 1, 1 FROM n";
    static const char postgres[] =
        "SET session_replication_role = replica;"
        "INSERT INTO pawl.work_items (work_item_id, task_id, work_type, status, input_data,"
        " created_at, started_at, completed_at, token, attempts)"
        " SELECT '0000-' || lpad(i::text, 12, '0'), 'bench', 'noop', 'completed', '{}',"
        " '2026-01-01', '2026-01-01 00:00:01', '2026-01-01 00:00:02', 1, 1"
        " FROM generate_series(%ld, %ld) AS i";
    char sql[1024];

    snprintf(sql,
             sizeof(sql),
             store->postgres ? postgres : sqlite, /* NOLINT(clang-diagnostic-format-nonliteral) */
             store->finished + 1,
             finished);
    if (store->postgres) {
        postgres_run(store, sql);
        postgres_run(store, "VACUUM (ANALYZE) pawl.work_items");
        postgres_run(store, "CHECKPOINT");
    } else {
        sqlite_run(store, sql);
        sqlite_run(store, "PRAGMA wal_checkpoint(TRUNCATE)"); /* no claim shall pay for it */
    }
    store->finished = finished;
}

/* What the claims of one size left behind, so that the small store stays small. */
static void remove_ended_claims(const struct store *store)
{
    if (store->postgres) {
        postgres_run(store, "DELETE FROM pawl.work_items WHERE work_type = 'claimed'");
        postgres_run(store, "VACUUM pawl.work_items");
    } else {
        sqlite_run(store, "DELETE FROM work_items WHERE work_type = 'claimed'");
    }
}

/* --- claims --- */

static void submit(pawl_work *work, const char *type, size_t items)
{
    static pawl_submission batch[BATCH];

    for (size_t i = 0; i < BATCH; i++) {
        batch[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        batch[i].task_id = task_id();
        batch[i].work_type = pawl_view_of(type);
    }
    for (size_t done = 0; done < items; done += BATCH) {
        MUST(pawl_work_submit(work, batch, items - done < BATCH ? items - done : BATCH, NULL, err));
    }
}

/* One item claimed, in seconds; then completed, outside the measurement. */
static double claim_one(pawl_work *work)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    claim.holder = pawl_view_of("bench");
    double start = bench_now_s();
    MUST(pawl_work_claim(work, &claim, &claimed, err));
    double seconds = bench_now_s() - start;
    pawl_lease lease = { sizeof(pawl_lease),
                         claimed->items[0].work_item_id,
                         claimed->items[0].token };
    MUST(pawl_work_complete(work, &lease, (pawl_view){ NULL, 0 }, err));
    pawl_claimed_free(claimed);
    return seconds;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static void report_claims(const struct store *large, double *seconds[2], int percentile)
{
    char name[64];
    size_t at = (size_t)CLAIMS * (size_t)percentile / 100;

    snprintf(name,
             sizeof(name),
             "work: %s, claim p%d, %ld finished",
             large->postgres ? "postgres" : "sqlite",
             percentile,
             large->finished);
    bench_report(name,
                 "1/s",
                 1 / seconds[1][at],
                 "1,000 finished",
                 1 / seconds[0][at],
                 percentile == 99 ? 0.5 : 0);
}

static void measure_claims(struct store *small, struct store *large)
{
    static double small_s[CLAIMS];
    static double large_s[CLAIMS];
    double *seconds[2] = { small_s, large_s };
    struct store *stores[2] = { small, large };

    for (int which = 0; which < 2; which++) {
        submit(stores[which]->work, "claimed", CLAIMS);
    }
    for (int i = 0; i < CLAIMS; i++) {
        for (int turn = 0; turn < 2; turn++) {
            int which = (turn + i) % 2;
            seconds[which][i] = claim_one(stores[which]->work);
        }
    }
    for (int which = 0; which < 2; which++) {
        qsort(seconds[which], CLAIMS, sizeof(double), compare_doubles);
        remove_ended_claims(stores[which]);
    }
    report_claims(large, seconds, 50);
    report_claims(large, seconds, 99);
}

/* --- the sweep --- */

static void lease_all(pawl_work *work, size_t items)
{
    pawl_claim claim = PAWL_CLAIM_INIT;

    claim.holder = pawl_view_of("gone");
    claim.count_max = CLAIM_BATCH;
    claim.lease_ms = 1; /* run out before the sweep comes */
    for (size_t leased = 0; leased < items;) {
        pawl_claimed *claimed = NULL;

        MUST(pawl_work_claim(work, &claim, &claimed, err));
        leased += claimed->count;
        pawl_claimed_free(claimed);
    }
    poll(NULL, 0, 10);
}

static void measure_sweep(const struct store *store, size_t items)
{
    char name[64];
    pawl_sweep_report report = { .size = sizeof(pawl_sweep_report) };
    double start = bench_now_s();

    submit(store->work, "swept", items);
    double submit_s = bench_now_s() - start;
    lease_all(store->work, items);
    start = bench_now_s();
    MUST(pawl_work_sweep(store->work, &report, err));
    double sweep_s = bench_now_s() - start;
    if (report.expired != items || report.retried != items) {
        die("the sweep left some", store->location);
    }
    snprintf(name,
             sizeof(name),
             "work: %s, sweep of %zu leases",
             store->postgres ? "postgres" : "sqlite",
             items);
    bench_report(name,
                 "leases/s",
                 (double)items / sweep_s,
                 "submitting them by 1,000",
                 (double)items / submit_s,
                 0);
}

/* --- the stores --- */

static void measure(struct store *small, struct store *large, struct store *other, long last)
{
    open_store(small);
    open_store(large);
    fill_to(small, SMALL);
    for (long finished = LARGE_FIRST; finished <= last; finished *= 10) {
        fill_to(large, finished);
        measure_claims(small, large);
    }
    close_store(small);
    close_store(large);
    open_store(other);
    measure_sweep(other, 1000);
    measure_sweep(other, 100000);
    close_store(other);
}

static void on_sqlite(long last)
{
    static const char *const names[3] = { "small", "large", "other" };
    struct store stores[3] = { 0 };
    char dir[TEMPDIR_SIZE];

    MUST(tempdir_make(dir, "pawl-bench-work", err));
    for (int i = 0; i < 3; i++) {
        snprintf(stores[i].location, LOCATION_SIZE, "%s/%s.sqlite", dir, names[i]);
    }
    measure(&stores[0], &stores[1], &stores[2], last);
    tempdir_remove(dir);
}

static void on_postgres(long last)
{
    static const char *const names[3] = { "small", "large", "other" };
    struct pg_server_options options = { 0 };
    struct pg_server *server = NULL;
    struct store stores[3] = { 0 };
    struct store whole = { .postgres = true };
    char sql[64];

    MUST(pg_server_start(&options, &server, err));
    snprintf(whole.location, LOCATION_SIZE, "%s", pg_server_url(server));
    for (int i = 0; i < 3; i++) {
        snprintf(sql, sizeof(sql), "CREATE DATABASE %s", names[i]);
        postgres_run(&whole, sql);
        snprintf(stores[i].location,
                 LOCATION_SIZE,
                 "postgresql://pawl@127.0.0.1:%d/%s?sslmode=disable",
                 pg_server_port(server),
                 names[i]);
    }
    measure(&stores[0], &stores[1], &stores[2], last);
    pg_server_free(server);
}

int main(int argc, char **argv)
{
    long last = argc > 1 ? strtol(argv[1], NULL, 10) : LARGE_LAST;

    if (last < LARGE_FIRST) {
        fputs("usage: bench_work_table [FINISHED_ITEMS, at least 10000]\n", stderr);
        return 2;
    }
    on_sqlite(last);
    on_postgres(last);
    return 0;
}
