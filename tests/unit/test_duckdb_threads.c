/* One DuckDB database, a connection a thread; interrupts from outside. */
#include "lib/duck_fixture.h"

#include <stdatomic.h>

#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"

enum { WRITERS = 3, TRANSACTIONS = 25, ROWS = 40 };

struct world {
    struct pawl__duck *db;
    atomic_int committed;
    atomic_bool stop;
};

struct worker {
    struct world *world;
    int number;
    struct pawl__thread thread;
    pawl_status status;
    pawl_error error;
    int busy;
};

/* Appends rows and moves one shared counter in the same transaction, so that writers collide. */
static pawl_status write_once(struct worker *worker, struct pawl__duck_conn *conn)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = conn;
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;
    pawl_status status = pawl__duck_begin(guard, PAWL__DUCK_WRITE, &worker->error);

    if (status == PAWL_OK) {
        status = pawl__duck_run(conn, 0, DUCK_ARGS(pawl__duck_i64(ROWS)), NULL, &worker->error);
    }
    if (status == PAWL_OK) {
        status = pawl__duck_appender_open(conn, "events", &appender, &worker->error);
    }
    for (int i = 0; i < ROWS && status == PAWL_OK; i++) {
        pawl__duck_append_i64(appender, worker->number);
        pawl__duck_append_text(appender, pawl_view_of("an event of some length"));
        status = pawl__duck_append_row_end(appender, &worker->error);
    }
    return status == PAWL_OK ? pawl__duck_commit(conn, &worker->error) : status;
}

static void write_many(void *context)
{
    struct worker *worker = context;
    static const char *const sql[] = { "UPDATE counter SET n = n + ?" };
    struct pawl__duck_conn *conn = NULL;

    worker->status = pawl__duck_connect(worker->world->db, &conn, &worker->error);
    if (worker->status == PAWL_OK) {
        worker->status = pawl__duck_prepare(conn, sql, 1, &worker->error);
    }
    for (int done = 0; done < TRANSACTIONS && worker->status == PAWL_OK;) {
        worker->status = write_once(worker, conn);
        if (worker->status == PAWL_BUSY) {
            worker->status = PAWL_OK; /* roll back and try again: that is the contract */
            worker->busy++;
        } else if (worker->status == PAWL_OK) {
            done++;
            atomic_fetch_add(&worker->world->committed, 1);
        }
    }
    pawl__duck_disconnect(conn);
}

/* The counter and the rows belong together in every snapshot; checkpoints go on all the while. */
static void read_all_the_time(void *context)
{
    struct worker *worker = context;
    struct pawl__duck_conn *conn = NULL;

    worker->status = pawl__duck_connect(worker->world->db, &conn, &worker->error);
    while (worker->status == PAWL_OK && !atomic_load(&worker->world->stop)) {
        struct pawl__duck_rows *rows = NULL;

        worker->status =
            pawl__duck_query_text(conn,
                                  "SELECT n - (SELECT count(*) FROM events) FROM counter",
                                  DUCK_NO_ARGS,
                                  &rows,
                                  &worker->error);
        if (worker->status == PAWL_OK) {
            worker->status = pawl__duck_next(rows, &worker->error);
        }
        if (worker->status == PAWL_OK && pawl__duck_get_i64(rows, 0) != 0) {
            worker->status = PAWL_CORRUPT;
        }
        pawl__duck_rows_free(rows);
        pawl_status status =
            pawl__duck_checkpoint(worker->world->db, PAWL__DUCK_CHECKPOINT_TRY, &worker->error);
        if (status != PAWL_OK && status != PAWL_BUSY) {
            worker->status = status;
        }
    }
    pawl__duck_disconnect(conn);
}

static void start(struct worker *worker, struct world *world, int number, void (*run)(void *))
{
    pawl_error error = PAWL_ERROR_INIT; /* the worker's own belongs to its thread from now on */

    *worker = (struct worker){ .world = world, .number = number };
    assert_ok(pawl__thread_start(&worker->thread, "duck", run, worker, &error), &error);
}

static void test_connections_of_many_threads_share_a_database(void **state)
{
    struct duck_fixture *f = *state;
    struct world world = { .db = f->db };
    struct worker writers[WRITERS];
    struct worker reader;

    duck_script(f,
                f->conn,
                "CREATE TABLE counter (n BIGINT); INSERT INTO counter VALUES (0);"
                "CREATE TABLE events (writer BIGINT, text TEXT)");
    for (int i = 0; i < WRITERS; i++) {
        start(&writers[i], &world, i, write_many);
    }
    start(&reader, &world, 0, read_all_the_time);
    for (int i = 0; i < WRITERS; i++) {
        pawl__thread_join(&writers[i].thread);
        assert_ok(writers[i].status, &writers[i].error);
    }
    atomic_store(&world.stop, true);
    pawl__thread_join(&reader.thread);
    assert_ok(reader.status, &reader.error);
    assert_int_equal(atomic_load(&world.committed), WRITERS * TRANSACTIONS);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM events"),
                     WRITERS * TRANSACTIONS * ROWS);
    duck_close(f);
    duck_open(f);
    assert_int_equal(duck_number(f, f->conn, "SELECT n FROM counter"),
                     WRITERS * TRANSACTIONS * ROWS);
}

struct runner {
    struct duck_fixture *f;
    struct pawl__thread thread;
    pawl_status status;
    pawl_error error;
    atomic_bool began;
};

static void run_endless(void *context)
{
    struct runner *runner = context;
    struct pawl__duck_rows *rows = NULL;

    atomic_store(&runner->began, true);
    runner->status = pawl__duck_query_text(runner->f->other,
                                           "SELECT count(*) FROM range(100000000000) a,"
                                           " range(1000) b",
                                           DUCK_NO_ARGS,
                                           &rows,
                                           &runner->error);
    if (runner->status == PAWL_OK) {
        runner->status = pawl__duck_next(rows, &runner->error);
    }
    pawl__duck_rows_free(rows);
}

/* At once, so that it may come before the statement has begun, in the middle, or while it runs. */
static void test_an_interrupt_ends_a_statement_whenever_it_comes(void **state)
{
    struct duck_fixture *f = *state;

    for (int i = 0; i < 10; i++) {
        struct runner runner = { .f = f };

        assert_ok(pawl__thread_start(&runner.thread, "endless", run_endless, &runner, &f->error),
                  &f->error);
        while (i > 5 && !atomic_load(&runner.began)) {
        }
        pawl__duck_interrupt(f->other);
        pawl__thread_join(&runner.thread);
        assert_status(runner.status, PAWL_CANCELLED, &runner.error);
        assert_status(duck_drain(f, f->other, "SELECT 1"), PAWL_CANCELLED, &f->error);
        pawl__duck_resume(f->other);
        assert_int_equal(duck_number(f, f->other, "SELECT 1::BIGINT"), 1);
    }
}

/* DuckDB forgets an interrupt when a statement begins; here it comes a moment before. */
static void test_an_interrupt_before_the_beginning_is_not_lost(void **state)
{
    struct duck_fixture *f = *state;
    struct runner runner = { .f = f };

    assert_ok(pawl__failpoint_set("duckdb.execute.before=delay:100*1", &f->error), &f->error);
    assert_ok(pawl__thread_start(&runner.thread, "endless", run_endless, &runner, &f->error),
              &f->error);
    while (!atomic_load(&runner.began)) {
    }
    pawl__duck_interrupt(f->other);
    pawl__thread_join(&runner.thread);
    assert_status(runner.status, PAWL_CANCELLED, &runner.error);
}

/* The same for a deadline: it passes while the statement waits to begin. */
static void test_a_deadline_before_the_beginning_is_not_lost(void **state)
{
    struct duck_fixture *f = *state;
    struct runner runner = { .f = f };

    assert_ok(pawl__failpoint_set("duckdb.execute.before=delay:100*1", &f->error), &f->error);
    pawl__duck_set_deadline(f->other, pawl__monotonic_ns(pawl__clock_real()) + 50 * NS_PER_MS);
    assert_ok(pawl__thread_start(&runner.thread, "endless", run_endless, &runner, &f->error),
              &f->error);
    pawl__thread_join(&runner.thread);
    assert_status(runner.status, PAWL_TIMEOUT, &runner.error);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, duck_setup, duck_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_connections_of_many_threads_share_a_database),
        TEST(test_an_interrupt_ends_a_statement_whenever_it_comes),
        TEST(test_an_interrupt_before_the_beginning_is_not_lost),
        TEST(test_a_deadline_before_the_beginning_is_not_lost),
    };
    return cmocka_run_group_tests_name("duckdb_threads", tests, NULL, NULL);
}
