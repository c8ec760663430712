/* Appenders: values, duplicates, and that none of them ever commits on its own. */
#include "lib/duck_fixture.h"

#include <stdio.h>

#include "base/core/buf.h"
#include "base/os/clock.h"

static int setup(void **state)
{
    if (duck_setup(state) != 0) {
        return -1;
    }
    struct duck_fixture *f = *state;
    duck_script(f,
                f->conn,
                "CREATE TABLE keyed (id BIGINT PRIMARY KEY, v TEXT);"
                "INSERT INTO keyed VALUES (1, 'one');"
                "CREATE TABLE kinds (i BIGINT, u UBIGINT, d DOUBLE, b BOOLEAN, t TEXT, x BLOB,"
                " z TIMESTAMP, n INTEGER DEFAULT 42, j JSON)");
    return 0;
}

static struct pawl__duck_appender *appender_of(struct duck_fixture *f, const char *table)
{
    struct pawl__duck_appender *appender = NULL;

    assert_ok(pawl__duck_appender_open(f->conn, table, &appender, &f->error), &f->error);
    return appender;
}

static pawl_status append(struct duck_fixture *f, struct pawl__duck_appender *appender, int64_t id)
{
    pawl__duck_append_i64(appender, id);
    pawl__duck_append_text(appender, pawl_view_of("appended"));
    return pawl__duck_append_row_end(appender, &f->error);
}

static int64_t count(struct duck_fixture *f)
{
    return duck_number(f, f->other, "SELECT count(*) FROM keyed");
}

static void test_every_kind_of_value_is_appended(void **state)
{
    struct duck_fixture *f = *state;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    const pawl_view bytes = { "\0\xff\x01", 3 };

    duck_begin(f, f->conn);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = appender_of(f, "kinds");
    pawl__duck_append_i64(appender, INT64_MIN);
    pawl__duck_append_u64(appender, UINT64_MAX);
    pawl__duck_append_double(appender, 0.1);
    pawl__duck_append_bool(appender, true);
    pawl__duck_append_text(appender, pawl_view_of("a text of more than twelve bytes é"));
    pawl__duck_append_bytes(appender, bytes);
    pawl__duck_append_time(appender, INT64_C(1769682030123456));
    pawl__duck_append_default(appender);
    pawl__duck_append_null(appender);
    assert_ok(pawl__duck_append_row_end(appender, &f->error), &f->error);
    assert_ok(pawl__duck_appender_finish(appender, &f->error), &f->error);
    duck_commit(f, f->conn);
    assert_ok(
        pawl__duck_query_text(f->other, "SELECT * FROM kinds", DUCK_NO_ARGS, &rows, &f->error),
        &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    assert_int_equal(pawl__duck_get_i64(rows, 0), INT64_MIN);
    assert_true(pawl__duck_get_u64(rows, 1) == UINT64_MAX);
    assert_true(pawl__duck_get_double(rows, 2) == 0.1);
    assert_true(pawl__duck_get_bool(rows, 3));
    assert_true(pawl__view_is(pawl__duck_get_text(rows, 4), "a text of more than twelve bytes é"));
    assert_true(pawl__view_equal(pawl__duck_get_bytes(rows, 5), bytes));
    assert_int_equal(pawl__duck_get_time(rows, 6), INT64_C(1769682030123456));
    assert_int_equal(pawl__duck_get_i64(rows, 7), 42);
    assert_true(pawl__duck_is_null(rows, 8));
}

static void test_a_commit_flushes_what_is_left(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    duck_commit(f, f->conn);
    assert_int_equal(count(f), 2);
    assert_status(append(f, appender, 3), PAWL_CLOSED, &f->error); /* it ended with its work */
    assert_int_equal(count(f), 2);
}

static void test_a_duplicate_is_a_conflict_and_kills_the_appender(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    assert_ok(append(f, appender, 1), &f->error); /* not seen before the flush */
    assert_status(pawl__duck_appender_finish(appender, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "Duplicate key");
    assert_status(append(f, appender, 3), PAWL_CLOSED, &f->error);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "Duplicate key");
    assert_int_equal(count(f), 1);
}

static void test_a_duplicate_found_at_the_commit_is_a_conflict(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    assert_ok(append(f, appender, 2), &f->error);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_CONFLICT, &f->error);
    assert_int_equal(count(f), 1);
}

/* DuckDB flushes by itself after 204,800 rows, and outside a transaction that is a commit. */
static void test_many_rows_stay_in_the_transaction(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = appender_of(f, "keyed");
    for (int64_t i = 0; i < 250000; i++) {
        assert_ok(append(f, appender, 10 + i), &f->error);
    }
    assert_int_equal(count(f), 1);
    pawl__duck_rollback(f->conn);
    assert_int_equal(count(f), 1);
}

/* DuckDB would flush an appender that is destroyed after ROLLBACK, and commit that. */
static void test_a_rollback_takes_the_buffered_rows_along(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    pawl__duck_rollback(f->conn);
    pawl__duck_appender_free(STEAL(appender));
    assert_int_equal(count(f), 1);
}

static void test_an_appender_freed_before_it_is_finished_fails_the_transaction(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    pawl__duck_appender_free(appender);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_FAILED, &f->error);
    assert_message(&f->error, "not finished");
    assert_int_equal(count(f), 1);
}

static void assert_bad_text(struct duck_fixture *f, pawl_view value, const char *why)
{
    duck_begin(f, f->conn);
    struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    pawl__duck_append_i64(appender, 3);
    pawl__duck_append_text(appender, value);
    assert_status(pawl__duck_append_row_end(appender, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, why);
    pawl__duck_appender_free(appender);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, why);
    assert_int_equal(count(f), 1);
}

static void test_a_value_that_is_no_text_is_refused_before_duckdb_sees_it(void **state)
{
    struct duck_fixture *f = *state;

    assert_bad_text(f, (pawl_view){ "a\xff", 2 }, "not UTF-8");
    assert_bad_text(f, (pawl_view){ "a\0b", 3 }, "NUL inside");
}

static void test_a_row_that_does_not_fit_its_table_is_invalid(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    struct pawl__duck_appender *appender = appender_of(f, "keyed");
    pawl__duck_append_i64(appender, 2); /* and no second value */
    assert_status(pawl__duck_append_row_end(appender, &f->error), PAWL_INVALID, &f->error);
    pawl__duck_appender_free(appender);
    pawl__duck_rollback(f->conn);

    duck_begin(f, f->conn);
    appender = appender_of(f, "keyed");
    pawl__duck_append_text(appender, pawl_view_of("no number"));
    pawl__duck_append_text(appender, pawl_view_of("v"));
    assert_status(pawl__duck_append_row_end(appender, &f->error), PAWL_INVALID, &f->error);
    pawl__duck_appender_free(appender);
    pawl__duck_rollback(f->conn);
    assert_int_equal(count(f), 1);
}

static void test_a_table_that_is_not_there_is_invalid(void **state)
{
    struct duck_fixture *f = *state;
    struct pawl__duck_appender *appender = NULL;

    duck_begin(f, f->conn);
    assert_status(pawl__duck_appender_open(f->conn, "nowhere", &appender, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "nowhere");
    assert_null(appender);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_INVALID, &f->error);
}

static void test_rows_handed_to_a_query_are_upserted(void **state)
{
    struct duck_fixture *f = *state;
    static const struct pawl__duck_column columns[] = { { "id", 'i' }, { "v", 't' } };
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    duck_begin(f, f->conn);
    assert_ok(pawl__duck_appender_open_query(
                  f->conn,
                  "INSERT INTO keyed SELECT id, v FROM appended ON CONFLICT DO NOTHING",
                  columns,
                  COUNT_OF(columns),
                  &appender,
                  &f->error),
              &f->error);
    for (int64_t i = 0; i < 5000; i++) {
        assert_ok(append(f, appender, i), &f->error); /* 1 is there already */
    }
    assert_ok(pawl__duck_appender_finish(appender, &f->error), &f->error);
    duck_commit(f, f->conn);
    assert_int_equal(count(f), 5000);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM keyed WHERE v = 'one'"), 1);
}

static void test_an_interrupted_flush_fails_the_transaction(void **state)
{
    struct duck_fixture *f = *state;

    duck_begin(f, f->conn);
    struct pawl__duck_appender *appender = appender_of(f, "keyed");
    assert_ok(append(f, appender, 2), &f->error);
    pawl__duck_interrupt(f->conn);
    assert_status(pawl__duck_commit(f->conn, &f->error), PAWL_CANCELLED, &f->error);
    pawl__duck_appender_free(appender);
    assert_false(pawl__duck_in_transaction(f->conn));
    pawl__duck_resume(f->conn);
    assert_int_equal(count(f), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, duck_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_every_kind_of_value_is_appended),
        TEST(test_a_commit_flushes_what_is_left),
        TEST(test_a_duplicate_is_a_conflict_and_kills_the_appender),
        TEST(test_a_duplicate_found_at_the_commit_is_a_conflict),
        TEST(test_many_rows_stay_in_the_transaction),
        TEST(test_a_rollback_takes_the_buffered_rows_along),
        TEST(test_an_appender_freed_before_it_is_finished_fails_the_transaction),
        TEST(test_a_value_that_is_no_text_is_refused_before_duckdb_sees_it),
        TEST(test_a_row_that_does_not_fit_its_table_is_invalid),
        TEST(test_a_table_that_is_not_there_is_invalid),
        TEST(test_rows_handed_to_a_query_are_upserted),
        TEST(test_an_interrupted_flush_fails_the_transaction),
    };
    return cmocka_run_group_tests_name("duckdb_append", tests, NULL, NULL);
}
