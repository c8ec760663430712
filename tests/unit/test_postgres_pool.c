/* Many threads over a few connections, and processes that migrate one database at the same time. */
#include "lib/pg_fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "lib/fault.h"
#include "store/postgres/pool.h"

enum { WAIT_MS = 30000, THREADS = 8, ROUNDS = 25, POOL = 3 };

enum { ADD, MY_PID };

static const struct pawl__pg_statement statements[] = {
    [ADD] = { "INSERT INTO item (id) VALUES ($1)", "i", NULL },
    [MY_PID] = { "SELECT pg_backend_pid()", NULL, "i" },
};

static const struct pawl__pg_options usual = { .statements = statements,
                                               .statement_count = COUNT_OF(statements) };

static struct pawl__pg_pool *pool_of_items(struct pg_fixture *f, size_t size)
{
    struct pawl__pg_pool *pool = NULL;

    pg_admin(f, "DROP TABLE IF EXISTS item; CREATE TABLE item (id bigint PRIMARY KEY)");
    assert_ok(pawl__pg_pool_open(pg_server_url(f->server), &usual, size, &pool, &f->err), &f->err);
    return pool;
}

static int64_t count(struct pg_fixture *f)
{
    return pg_number(f, "SELECT count(*) FROM item");
}

static struct pawl__pg *take(struct pg_fixture *f, struct pawl__pg_pool *pool)
{
    struct pawl__pg *pg = NULL;

    assert_ok(pawl__pg_pool_borrow(pool, in_ms(WAIT_MS), &pg, &f->err), &f->err);
    return pg;
}

static pawl_status add(struct pawl__pg *pg, int64_t id, pawl_error *reterr)
{
    return pawl__pg_exec(pg, ADD, PG_ARGS(pawl__pg_i64(id)), NULL, reterr);
}

struct worker {
    struct pawl__thread thread;
    struct pawl__pg_pool *pool;
    int64_t first;
    pawl_status status;
    pawl_error err;
};

static atomic_int in_use;
static atomic_bool too_many;

static pawl_status add_one(struct worker *worker, int64_t id)
{
    struct pawl__pg *pg = NULL;
    pawl_status status = pawl__pg_pool_borrow(worker->pool, in_ms(WAIT_MS), &pg, &worker->err);

    if (status == PAWL_OK) {
        if (atomic_fetch_add(&in_use, 1) >= POOL) {
            atomic_store(&too_many, true);
        }
        status = add(pg, id, &worker->err);
        atomic_fetch_sub(&in_use, 1);
        pawl__pg_pool_return(worker->pool, pg);
    }
    return status;
}

static void work(void *context)
{
    struct worker *worker = context;

    for (int64_t i = 0; i < ROUNDS && worker->status == PAWL_OK; i++) {
        worker->status = add_one(worker, worker->first + i);
    }
}

static void test_many_threads_share_a_few_connections(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_pool *pool = pool_of_items(f, POOL);
    struct worker workers[THREADS] = { 0 };

    for (size_t i = 0; i < THREADS; i++) {
        workers[i].pool = pool;
        workers[i].first = (int64_t)i * ROUNDS;
        assert_ok(pawl__thread_start(&workers[i].thread, "worker", work, &workers[i], &f->err),
                  &f->err);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&workers[i].thread);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_ok(workers[i].status, &workers[i].err);
    }
    assert_false(atomic_load(&too_many));
    assert_int_equal(count(f), THREADS * ROUNDS);
    pawl__pg_pool_close(pool);
}

static void test_an_empty_pool_is_waited_for_until_the_deadline(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_pool *pool = pool_of_items(f, 2);
    struct pawl__pg *first = take(f, pool);
    struct pawl__pg *second = take(f, pool);
    struct pawl__pg *third = NULL;

    assert_status(pawl__pg_pool_borrow(pool, in_ms(20), &third, &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "all 2 connections of the pool are in use");
    assert_null(third);
    pawl__pg_pool_return(pool, second);
    third = take(f, pool);
    assert_ptr_equal(third, second);
    pawl__pg_pool_return(pool, first);
    pawl__pg_pool_return(pool, third);
    pawl__pg_pool_return(pool, NULL);
    pawl__pg_pool_close(pool);
}

static void test_what_comes_back_is_clean_and_works(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_pool *pool = pool_of_items(f, 1);
    struct pawl__pg *pg = take(f, pool);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    pawl__pg_set_deadline(pg, in_ms(-1));
    pawl__pg_interrupt(pg);
    pawl__pg_pool_return(pool, pg);
    assert_int_equal(count(f), 0);
    pg = take(f, pool);
    assert_false(pawl__pg_in_transaction(pg));
    assert_ok(add(pg, 1, &f->err), &f->err);
    pawl__pg_pool_return(pool, pg);

    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    pg = take(f, pool);
    assert_ok(add(pg, 2, &f->err), &f->err);
    pawl__pg_pool_return(pool, pg);
    pawl__pg_pool_close(pool);
}

static void test_a_pool_survives_every_failed_allocation(void **state)
{
    struct pg_fixture *f = pg_fixture(state);

    pawl__pg_pool_close(pool_of_items(f, 1));
    FAULT_WALK (walk) {
        struct pawl__pg_pool *pool = NULL;
        pawl_status status =
            pawl__pg_pool_open(pg_server_url(f->server), &usual, 2, &pool, &f->err);
        bool hit = fault_fired();
        assert_status(status, hit ? PAWL_NOMEM : PAWL_OK, &f->err);
        pawl__pg_pool_close(pool);
    }
}

static const struct pawl__migration migrations[] = {
    { 1, "0.1.0", "first", "CREATE TABLE thing (id bigint); INSERT INTO thing VALUES (1)" },
    { 2, "0.2.0", "second", "ALTER TABLE thing ADD name text; INSERT INTO thing VALUES (2)" },
    { 3, "0.3.0", "broken", "INSERT INTO thing VALUES (3); SELECT nonsense" },
};
static const struct pawl__schema first_only = { .component = "probe",
                                                .migrations = migrations,
                                                .count = 1 };
static const struct pawl__schema both = { .component = "probe",
                                          .migrations = migrations,
                                          .count = 2 };
static const struct pawl__schema with_broken = { .component = "probe",
                                                 .migrations = migrations,
                                                 .count = 3 };

static pawl_status open_migrated(const char *url,
                                 const struct pawl__schema *schema,
                                 pawl_error *reterr)
{
    struct pawl__pg *pg = NULL;
    pawl_status status =
        pawl__pg_open(url,
                      &(struct pawl__pg_options){ .namespace = "Probe's own", .schema = schema },
                      &pg,
                      reterr);

    pawl__pg_close(pg);
    return status;
}

static int64_t things(struct pg_fixture *f)
{
    return pg_number(f, "SELECT count(*) FROM \"Probe's own\".thing");
}

struct migrator {
    struct pawl__thread thread;
    const char *url;
    pawl_status status;
    pawl_error err;
};

static void migrate(void *context)
{
    struct migrator *migrator = context;

    migrator->status = open_migrated(migrator->url, &both, &migrator->err);
}

static void test_processes_that_migrate_at_once_take_turns(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct migrator migrators[6] = { 0 };

    pg_admin(f, "DROP SCHEMA IF EXISTS \"Probe's own\" CASCADE");
    for (size_t i = 0; i < COUNT_OF(migrators); i++) {
        migrators[i].url = pg_server_url(f->server);
        assert_ok(
            pawl__thread_start(&migrators[i].thread, "migrate", migrate, &migrators[i], &f->err),
            &f->err);
    }
    for (size_t i = 0; i < COUNT_OF(migrators); i++) {
        pawl__thread_join(&migrators[i].thread);
    }
    for (size_t i = 0; i < COUNT_OF(migrators); i++) {
        assert_ok(migrators[i].status, &migrators[i].err);
    }
    assert_int_equal(things(f), 2);
    assert_int_equal(pg_number(f, "SELECT count(*) FROM \"Probe's own\".schema_version"), 2);
}

static void test_a_migration_that_fails_leaves_the_old_schema(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    const char *url = pg_server_url(f->server);

    pg_admin(f, "DROP SCHEMA IF EXISTS \"Probe's own\" CASCADE");
    assert_status(open_migrated(url, &with_broken, &f->err), PAWL_FAILED, &f->err);
    assert_message(&f->err, "migration 3 'broken': column \"nonsense\" does not exist");
    assert_int_equal(pg_number(f, "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'Probe%'"),
                     0);
    assert_ok(open_migrated(url, &first_only, &f->err), &f->err);
    assert_status(open_migrated(url, &with_broken, &f->err), PAWL_FAILED, &f->err);
    assert_int_equal(things(f), 1);
    assert_ok(open_migrated(url, &both, &f->err), &f->err);
    assert_int_equal(things(f), 2);
}

static void test_a_newer_schema_is_refused_and_not_touched(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    const char *url = pg_server_url(f->server);

    pg_admin(f, "DROP SCHEMA IF EXISTS \"Probe's own\" CASCADE");
    assert_ok(open_migrated(url, &both, &f->err), &f->err);
    assert_status(open_migrated(url, &first_only, &f->err), PAWL_UNSUPPORTED, &f->err);
    assert_message(&f->err, "0.2.0");
    assert_message(&f->err, "0.1.0");
    assert_int_equal(things(f), 2);
}

static void test_a_schema_made_by_the_administrator_is_enough(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    char url[256];

    snprintf(url,
             sizeof(url),
             "postgresql://guarded:s3cret%%20pass%%25word@127.0.0.1:%d/postgres",
             pg_server_port(f->server));
    pg_admin(f, "DROP SCHEMA IF EXISTS \"Probe's own\" CASCADE");
    assert_status(open_migrated(url, &both, &f->err), PAWL_DENIED, &f->err);
    assert_message(&f->err, "schema 'Probe's own': permission denied");
    pg_admin(f, "CREATE SCHEMA \"Probe's own\" AUTHORIZATION guarded");
    assert_ok(open_migrated(url, &both, &f->err), &f->err);
    assert_int_equal(things(f), 2);
}

static void test_a_migration_in_progress_is_busy_after_the_lock_timeout(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *holder = pg_connect(f, NULL);
    struct pawl__pg *pg = NULL;

    pg_admin(f, "DROP SCHEMA IF EXISTS \"Probe's own\" CASCADE");
    assert_ok(pawl__pg_migrate_ops.begin(holder, &f->err), &f->err);
    assert_status(pawl__pg_open(pg_server_url(f->server),
                                &(struct pawl__pg_options){ .namespace = "Probe's own",
                                                            .schema = &both,
                                                            .lock_ms_max = 50 },
                                &pg,
                                &f->err),
                  PAWL_BUSY,
                  &f->err);
    assert_message(&f->err, "another process is migrating this database");
    pawl__pg_close(holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads_share_a_few_connections),
        cmocka_unit_test(test_an_empty_pool_is_waited_for_until_the_deadline),
        cmocka_unit_test(test_what_comes_back_is_clean_and_works),
        cmocka_unit_test(test_a_pool_survives_every_failed_allocation),
        cmocka_unit_test(test_processes_that_migrate_at_once_take_turns),
        cmocka_unit_test(test_a_migration_that_fails_leaves_the_old_schema),
        cmocka_unit_test(test_a_newer_schema_is_refused_and_not_touched),
        cmocka_unit_test(test_a_schema_made_by_the_administrator_is_enough),
        cmocka_unit_test(test_a_migration_in_progress_is_busy_after_the_lock_timeout),
    };
    return cmocka_run_group_tests_name("postgres_pool", tests, pg_fixture_start, pg_fixture_stop);
}
