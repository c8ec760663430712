/* Where DuckDB surprises, the wrapper must not: transactions, writers beside snapshots,
 * checkpoints, plans that outlive their table. */
#include "lib/duck_fixture.h"

#include <sys/stat.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"

static int setup(void **state)
{
    if (duck_setup(state) != 0) {
        return -1;
    }
    struct duck_fixture *f = *state;
    duck_script(f,
                f->conn,
                "CREATE TABLE keyed (id BIGINT PRIMARY KEY, v TEXT);"
                "CREATE TABLE plain (id BIGINT, v BIGINT);"
                "INSERT INTO keyed VALUES (1, 'one'), (2, 'two');"
                "INSERT INTO plain VALUES (1, 1)");
    return 0;
}

static void test_a_commit_after_a_failed_call_returns_that_failure(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    duck_script(f, f->conn, "INSERT INTO keyed VALUES (3, 'three')");
    assert_status(pawl__duck_script(f->conn, "INSERT INTO keyed VALUES (1, 'again')", &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    /* What comes behind it fails as well, and must not hide the reason. */
    assert_status(duck_drain(f, f->conn, "SELECT 1"), PAWL_FAILED, &f->error);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "rolled back");
    assert_message(&f->error, "Duplicate key \"id: 1\"");
    assert_false(pawl__duck_in_transaction(f->conn));
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed"), 2);
}

/* A wrong text does not abort DuckDB's transaction, so half of the work would be committed. */
static void test_a_failure_that_duckdb_forgives_fails_the_transaction_too(void **state)
{
    struct duck_fixture *f = *state;
    static const char *const wrong[] = { "SELEC 1", "SELECT colour FROM keyed", "COMMIT" };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        duck_begin(f, f->conn);
        duck_script(f, f->conn, "INSERT INTO keyed VALUES (3, 'three')");
        assert_status(pawl__duck_script(f->conn, wrong[i], &f->error), PAWL_INVALID, &f->error);
        assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_INVALID, &f->error);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed"), 2);
    }
}

static void test_rows_that_fail_on_the_way_fail_the_transaction(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    duck_script(f, f->conn, "INSERT INTO keyed VALUES (3, 'three')");
    assert_status(duck_drain(f,
                             f->conn,
                             "SELECT CASE WHEN range = 900000 THEN error('boom') ELSE '' END"
                             " FROM range(1000000)"),
                  PAWL_INVALID,
                  &f->error);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_INVALID, &f->error);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed"), 2);
}

static void test_a_transaction_goes_on_after_it_was_rolled_back(void **state)
{
    struct duck_fixture *f = *state;

    pawl__duck_rollback(f->conn); /* nothing to do */
    duck_begin(f, f->conn);
    duck_script(f, f->conn, "DELETE FROM keyed");
    pawl__duck_rollback(f->conn);
    duck_begin(f, f->conn);
    duck_script(f, f->conn, "INSERT INTO keyed VALUES (3, 'three')");
    duck_commit(f, f->conn);
    assert_int_equal(duck_number(f, f->other, "SELECT count(*) FROM keyed"), 3);
}

static void test_two_writers_of_a_row_are_busy_and_may_try_again(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    duck_begin(f, f->other);
    duck_script(f, f->conn, "UPDATE plain SET v = 2");
    assert_status(
        pawl__duck_script(f->other, "UPDATE plain SET v = 3", &f->error), PAWL_BUSY, &f->error);
    assert_true(f->error.retryable);
    assert_status(pawl__duck_commit(f->other, &f->error), PAWL_BUSY, &f->error);
    assert_true(f->error.retryable);
    duck_commit(f, f->conn);
    duck_begin(f, f->other);
    duck_script(f, f->other, "UPDATE plain SET v = 3");
    duck_commit(f, f->other);
    assert_int_equal(duck_number(f, f->conn, "SELECT v FROM plain"), 3);
}

static void test_two_inserts_of_a_key_are_busy_at_the_commit(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    duck_begin(f, f->other);
    duck_script(f, f->conn, "INSERT INTO keyed VALUES (7, 'conn')");
    duck_script(f, f->other, "INSERT INTO keyed VALUES (7, 'other')");
    duck_commit(f, f->conn);
    assert_status(pawl__duck_commit(f->other, &f->error), PAWL_BUSY, &f->error);
    assert_false(pawl__duck_in_transaction(f->other));
    /* Tried again, it sees what is there now. */
    assert_status(pawl__duck_script(f->other, "INSERT INTO keyed VALUES (7, 'other')", &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    duck_script(f, f->other, "INSERT INTO keyed VALUES (7, 'other') ON CONFLICT DO NOTHING");
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed WHERE v = 'conn'"), 1);
}

static void test_a_key_deleted_under_an_old_snapshot_conflicts_until_it_ends(void **state)
{
    struct duck_fixture *f = *state;

    assert_ok(pawl__duck_begin(f->other, PAWL__DUCK_READ_ONLY, &f->error), &f->error);
    assert_int_equal(duck_number(f, f->other, "SELECT count(*) FROM keyed"), 2);
    duck_script(f, f->conn, "DELETE FROM keyed WHERE id = 1");
    assert_status(pawl__duck_script(f->conn, "INSERT INTO keyed VALUES (1, 'again')", &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_status(pawl__duck_script(f->conn,
                                    "INSERT INTO keyed VALUES (1, 'again') ON CONFLICT DO NOTHING",
                                    &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    /* The ways the header names: both in one transaction, or an update. */
    duck_begin(f, f->conn);
    duck_script(
        f, f->conn, "DELETE FROM keyed WHERE id = 2; INSERT INTO keyed VALUES (2, 'again')");
    duck_commit(f, f->conn);
    duck_script(f, f->conn, "UPDATE keyed SET v = 'updated' WHERE id = 2");
    duck_commit(f, f->other);
    duck_script(f, f->conn, "INSERT INTO keyed VALUES (1, 'again')");
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed"), 2);
}

static int upserts_refused(struct duck_fixture *f, const char *table)
{
    static const char *const sql[] = {
        "INSERT INTO indexed VALUES (1, now()) ON CONFLICT DO UPDATE SET seen = now()",
        "INSERT INTO bare VALUES (1, now()) ON CONFLICT DO UPDATE SET seen = now()",
    };
    const char *upsert = strcmp(table, "indexed") == 0 ? sql[0] : sql[1];
    int refused = 0;

    duck_script(f, f->conn, upsert);
    assert_ok(pawl__duck_begin(f->other, PAWL__DUCK_READ_ONLY, &f->error), &f->error);
    assert_int_equal(duck_number(f, f->other, "SELECT count(*) FROM keyed"), 2);
    for (int i = 0; i < 5; i++) {
        pawl_status status = pawl__duck_script(f->conn, upsert, &f->error);

        refused += status != PAWL_OK;
        assert_true(status == PAWL_OK || status == PAWL_BUSY);
    }
    duck_commit(f, f->other);
    return refused;
}

static void test_an_index_on_an_updated_column_is_busy_under_a_snapshot(void **state)
{
    struct duck_fixture *f = *state;

    duck_script(f,
                f->conn,
                "CREATE TABLE indexed (id BIGINT PRIMARY KEY, seen TIMESTAMP);"
                "CREATE INDEX indexed_seen ON indexed (seen);"
                "CREATE TABLE bare (id BIGINT PRIMARY KEY, seen TIMESTAMP)");
    assert_true(upserts_refused(f, "indexed") > 0);
    assert_int_equal(upserts_refused(f, "bare"), 0);
}

static void test_a_checkpoint_beside_a_writer_is_busy(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->other);
    duck_script(f, f->other, "INSERT INTO plain VALUES (5, 5)");
    assert_status(
        pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), PAWL_BUSY, &f->error);
    assert_true(f->error.retryable);
    duck_commit(f, f->other);
    assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
    assert_int_equal(duck_file_size(f->wal), -1);
    duck_close(f);
    duck_open(f);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM plain"), 2);
}

struct forced {
    struct pawl__duck *db;
    pawl_status status;
    pawl_error error;
};

static void force_checkpoint(void *context)
{
    struct forced *forced = context;

    forced->status = pawl__duck_checkpoint(forced->db, PAWL__DUCK_CHECKPOINT_FORCE, &forced->error);
}

static void test_a_forced_checkpoint_waits_for_the_writer(void **state)
{
    struct duck_fixture *f = *state;
    struct forced forced = { .db = f->db, .status = PAWL_FAILED };
    struct pawl__thread thread = { 0 };

    duck_begin(f, f->other);
    duck_script(f, f->other, "INSERT INTO plain VALUES (5, 5)");
    assert_ok(pawl__thread_start(&thread, "force", force_checkpoint, &forced, &f->error),
              &f->error);
    /* Whether it already waits does not matter: it may not get past this transaction. */
    assert_false(
        pawl__thread_join_until(&thread, pawl__monotonic_ns(pawl__clock_real()) + 50 * NS_PER_MS));
    duck_commit(f, f->other);
    pawl__thread_join(&thread);
    assert_ok(forced.status, &forced.error);
    assert_int_equal(duck_file_size(f->wal), -1);
}

static void test_a_checkpoint_beside_readers_leaves_their_snapshot(void **state)
{
    struct duck_fixture *f = *state;

    assert_ok(pawl__duck_begin(f->other, PAWL__DUCK_READ_ONLY, &f->error), &f->error);
    assert_int_equal(duck_number(f, f->other, "SELECT count(*) FROM plain"), 1);
    duck_script(f, f->conn, "INSERT INTO plain VALUES (2, 2); DELETE FROM plain WHERE id = 1");
    assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
    assert_int_equal(duck_number(f, f->other, "SELECT sum(id)::BIGINT FROM plain"), 1);
    duck_commit(f, f->other);
    assert_int_equal(duck_number(f, f->other, "SELECT sum(id)::BIGINT FROM plain"), 2);
}

/* DuckDB waits without end for a query that somebody began to read and left. */
static void test_a_checkpoint_beside_open_rows_is_busy_and_rows_left_early_are_gone(void **state)
{
    struct duck_fixture *f = *state;
    struct pawl__duck_rows *rows = NULL;

    for (int mode = 0; mode < 3; mode++) {
        if (mode == 1) {
            duck_begin(f, f->other);
        }
        duck_script(f, f->conn, "INSERT INTO plain VALUES (2, 2)");
        assert_ok(mode == 2 ? pawl__duck_query_text(f->other,
                                                    "SELECT id FROM plain WHERE id > ?",
                                                    DUCK_ARGS(pawl__duck_i64(0)),
                                                    &rows,
                                                    &f->error)
                            : pawl__duck_query_text(
                                f->other, "SELECT id FROM plain", DUCK_NO_ARGS, &rows, &f->error),
                  &f->error);
        assert_ok(pawl__duck_next(rows, &f->error), &f->error);
        assert_status(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error),
                      PAWL_BUSY,
                      &f->error);
        pawl__duck_rows_free(rows);
        assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
        if (mode == 1) {
            duck_commit(f, f->other);
        }
    }
}

static void test_only_our_checkpoints_happen(void **state)
{
    struct duck_fixture *f = *state;

    assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
    int64_t size = duck_file_size(f->path);
    /* DuckDB's own limit is 16 MiB of log. Small inserts, so that none goes past the log. */
    for (int i = 0; i < 20; i++) {
        duck_script(f,
                    f->conn,
                    "INSERT INTO keyed SELECT -1 - (SELECT count(*) FROM keyed) - range,"
                    " repeat('x', 1000) FROM range(1000)");
    }
    assert_true(duck_file_size(f->wal) > (17 << 20));
    assert_int_equal(duck_file_size(f->path), size);
    duck_close(f);
    assert_true(duck_file_size(f->wal) > (17 << 20)); /* the close is none either */
    duck_open(f);
    assert_true(duck_file_size(f->wal) > (17 << 20)); /* nor the replay */
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed"), 20002);
    assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
    assert_int_equal(duck_file_size(f->wal), -1);
}

enum { SQL_SORTED, SQL_FILTERED, SQL_GROUPED, SQL_DELETE, SQL_ABOVE, SQL_COUNT };

static const char *const plans[SQL_COUNT] = {
    [SQL_SORTED] = "SELECT i, s FROM grows ORDER BY i DESC",
    [SQL_FILTERED] = "SELECT i, s FROM grows WHERE i > 100",
    [SQL_GROUPED] = "SELECT max(i), s FROM grows GROUP BY s ORDER BY s",
    [SQL_DELETE] = "DELETE FROM grows WHERE i > 100",
    [SQL_ABOVE] = "SELECT i, s FROM grows WHERE i > 100 AND i > ? ORDER BY i",
};

static void assert_row(struct duck_fixture *f,
                       size_t statement,
                       const struct pawl__duck_value *values,
                       size_t value_count)
{
    static const char expected[] = "a text that is longer than twelve bytes";
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    assert_ok(pawl__duck_query(f->conn, statement, values, value_count, &rows, &f->error),
              &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    assert_true(pawl__duck_has_row(rows));
    assert_int_equal(pawl__duck_get_i64(rows, 0), 100000);
    assert_true(pawl__view_is(pawl__duck_get_text(rows, 1), expected));
}

/* Plain prepared statements of 1.4.4 answer all of this wrongly, without an error. */
static void test_a_prepared_statement_sees_a_table_that_has_grown(void **state)
{
    struct duck_fixture *f = *state;

    duck_script(
        f, f->conn, "CREATE TABLE grows (i BIGINT, s TEXT); INSERT INTO grows VALUES (1, '')");
    assert_ok(pawl__duck_prepare(f->conn, plans, SQL_COUNT, &f->error), &f->error);
    for (int round = 0; round < 2; round++) {
        int64_t changed = 0;

        if (round == 1) {
            duck_begin(f, f->conn);
        }
        duck_script(f,
                    f->conn,
                    "INSERT INTO grows VALUES (100000, 'a text that is longer than twelve bytes')");
        assert_row(f, SQL_SORTED, DUCK_NO_ARGS);
        assert_row(f, SQL_FILTERED, DUCK_NO_ARGS);
        assert_row(f, SQL_ABOVE, DUCK_ARGS(pawl__duck_i64(7)));
        duck_script(f, f->conn, "DELETE FROM grows WHERE i = 1");
        assert_row(f, SQL_GROUPED, DUCK_NO_ARGS);
        assert_ok(pawl__duck_run(f->conn, SQL_DELETE, DUCK_NO_ARGS, &changed, &f->error),
                  &f->error);
        assert_int_equal(changed, 1);
        duck_script(f, f->conn, "INSERT INTO grows VALUES (1, '')");
        if (round == 1) {
            duck_commit(f, f->conn);
        }
    }
}

static void test_failpoints_stand_on_both_sides_of_a_commit(void **state)
{
    struct duck_fixture *f = *state;

    for (int alone = 0; alone < 2; alone++) {
        static const char *const points[] = { "duckdb.commit.before=error:IO*1",
                                              "duckdb.commit.after=error:IO*1" };

        for (size_t i = 0; i < COUNT_OF(points); i++) {
            duck_script(f, f->conn, "DELETE FROM plain");
            assert_ok(pawl__failpoint_set(points[i], &f->error), &f->error);
            if (alone == 1) {
                assert_status(
                    pawl__duck_script(f->conn, "INSERT INTO plain VALUES (9, 9)", &f->error),
                    PAWL_IO,
                    &f->error);
            } else {
                duck_begin(f, f->conn);
                duck_script(f, f->conn, "INSERT INTO plain VALUES (9, 9)");
                assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_IO, &f->error);
            }
            assert_false(pawl__duck_in_transaction(f->conn));
            /* Before: rolled back. After: failed for the caller, and yet there. */
            assert_int_equal(duck_number(f, f->other, "SELECT count(*) FROM plain"), i);
        }
    }
    assert_ok(pawl__failpoint_set("duckdb.checkpoint.before=error:IO", &f->error), &f->error);
    assert_status(
        pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), PAWL_IO, &f->error);
}

/* A second sync would succeed, and prove nothing. */
static void test_a_failed_sync_of_the_directory_spoils_the_handle(void **state)
{
    struct duck_fixture *f = *state;

    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        duck_script(f, f->conn, "INSERT INTO plain VALUES (8, 8)");
        assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
        assert_ok(pawl__failpoint_set("duckdb.sync.before=error:IO*1", &f->error), &f->error);
        if (checkpoint == 1) { /* the log has been made anew by the insert above */
            assert_status(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error),
                          PAWL_IO,
                          &f->error);
        } else {
            assert_status(pawl__duck_script(f->conn, "INSERT INTO plain VALUES (9, 9)", &f->error),
                          PAWL_IO,
                          &f->error);
        }
        assert_status(pawl__duck_script(f->other, "INSERT INTO plain VALUES (7, 7)", &f->error),
                      PAWL_IO,
                      &f->error);
        assert_message(&f->error, "close and open it again");
        duck_close(f);
        duck_open(f);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM plain WHERE id = 7"), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, duck_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_commit_after_a_failed_call_returns_that_failure),
        TEST(test_a_failure_that_duckdb_forgives_fails_the_transaction_too),
        TEST(test_rows_that_fail_on_the_way_fail_the_transaction),
        TEST(test_a_transaction_goes_on_after_it_was_rolled_back),
        TEST(test_two_writers_of_a_row_are_busy_and_may_try_again),
        TEST(test_two_inserts_of_a_key_are_busy_at_the_commit),
        TEST(test_a_key_deleted_under_an_old_snapshot_conflicts_until_it_ends),
        TEST(test_an_index_on_an_updated_column_is_busy_under_a_snapshot),
        TEST(test_a_checkpoint_beside_a_writer_is_busy),
        TEST(test_a_forced_checkpoint_waits_for_the_writer),
        TEST(test_a_checkpoint_beside_readers_leaves_their_snapshot),
        TEST(test_a_checkpoint_beside_open_rows_is_busy_and_rows_left_early_are_gone),
        TEST(test_only_our_checkpoints_happen),
        TEST(test_a_prepared_statement_sees_a_table_that_has_grown),
        TEST(test_failpoints_stand_on_both_sides_of_a_commit),
        TEST(test_a_failed_sync_of_the_directory_spoils_the_handle),
    };
    return cmocka_run_group_tests_name("duckdb_traps", tests, NULL, NULL);
}
