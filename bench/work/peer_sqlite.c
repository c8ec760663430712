/* One run of the work queue that one writes by hand on SQLite.
 *
 *   work_sqlite PATH ITEMS
 *
 * prints {"enqueue_s":…,"drain_s":…}. WAL with synchronous=FULL, one table, one index, one process:
 * items go in by the thousand; each comes out in a transaction that claims it and one that ends it,
 * because work that starts before its claim is durable may run twice. */
#include "bench.h"

#include <stdlib.h>

#include <sqlite3.h>

enum { BATCH = 1000 };

static sqlite3 *db;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "work_sqlite: %s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static void run_sql(const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        die(sql);
    }
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        die(sql);
    }
    return stmt;
}

static void open_queue(const char *path)
{
    if (sqlite3_open_v2(
            path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL)
        != SQLITE_OK) {
        die(path);
    }
    run_sql("PRAGMA journal_mode=WAL");
    run_sql("PRAGMA synchronous=FULL");
    run_sql("CREATE TABLE job (id INTEGER PRIMARY KEY, status TEXT NOT NULL DEFAULT 'pending',"
            " priority INTEGER NOT NULL DEFAULT 0, input TEXT NOT NULL)");
    run_sql("CREATE INDEX job_pending ON job (priority DESC, id) WHERE status = 'pending'");
}

static void enqueue(long items)
{
    sqlite3_stmt *insert = prepare("INSERT INTO job (input) VALUES ('{}')");

    for (long from = 0; from < items; from += BATCH) {
        run_sql("BEGIN IMMEDIATE");
        for (long i = from; i < items && i < from + BATCH; i++) {
            if (sqlite3_step(insert) != SQLITE_DONE) {
                die("insert");
            }
            sqlite3_reset(insert);
        }
        run_sql("COMMIT");
    }
    sqlite3_finalize(insert);
}

static long drain(void)
{
    sqlite3_stmt *claim =
        prepare("UPDATE job SET status = 'in_progress' WHERE id = (SELECT id FROM job"
                " WHERE status = 'pending' ORDER BY priority DESC, id LIMIT 1) RETURNING id");
    sqlite3_stmt *complete = prepare("UPDATE job SET status = 'completed' WHERE id = ?1");
    long count = 0;

    while (sqlite3_step(claim) == SQLITE_ROW) {
        sqlite3_bind_int64(complete, 1, sqlite3_column_int64(claim, 0));
        if (sqlite3_step(claim) != SQLITE_DONE || sqlite3_reset(claim) != SQLITE_OK
            || sqlite3_step(complete) != SQLITE_DONE) {
            die("claim and complete");
        }
        sqlite3_reset(complete);
        count++;
    }
    sqlite3_finalize(claim);
    sqlite3_finalize(complete);
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: work_sqlite PATH ITEMS\n", stderr);
        return 2;
    }
    long items = strtol(argv[2], NULL, 10);

    open_queue(argv[1]);
    double start = bench_now_s();
    enqueue(items);
    double enqueued = bench_now_s();
    long drained = drain();
    double end = bench_now_s();
    if (drained != items) {
        die("the drain ended early");
    }
    sqlite3_close(db);
    printf("{\"enqueue_s\":%.6f,\"drain_s\":%.6f}\n", enqueued - start, end - enqueued);
    return 0;
}
