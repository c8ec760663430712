/* What the DuckDB wrapper promises, on the real engine: statements, values, rows, limits of SQL. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "lib/duck_fixture.h"
#include "lib/fault.h"
#include "test_schemas.h"

enum { SQL_INSERT, SQL_ALL, SQL_COUNT_ROWS, SQL_COUNT };

static const char *const sql_text[SQL_COUNT] = {
    [SQL_INSERT] = "INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?)",
    [SQL_ALL] = "SELECT * FROM kinds ORDER BY i",
    [SQL_COUNT_ROWS] = "SELECT count(*) FROM kinds",
};

static pawl_view text(const char *value)
{
    return pawl_view_of(value);
}

static int setup(void **state)
{
    if (duck_setup(state) != 0) {
        return -1;
    }
    struct duck_fixture *f = *state;
    duck_script(f,
                f->conn,
                "CREATE TABLE kinds (i BIGINT, u UBIGINT, d DOUBLE, b BOOLEAN, t TEXT, x BLOB,"
                " z TIMESTAMP)");
    assert_ok(pawl__duck_prepare(f->conn, sql_text, SQL_COUNT, &f->error), &f->error);
    return 0;
}

static void test_every_kind_of_value_comes_back(void **state)
{
    struct duck_fixture *f = *state;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    const pawl_view bytes = { "\0\xff\x01", 3 };
    int64_t changed = 0;

    assert_ok(pawl__duck_run(f->conn,
                             SQL_INSERT,
                             DUCK_ARGS(pawl__duck_i64(INT64_MIN),
                                       pawl__duck_u64(UINT64_MAX),
                                       pawl__duck_double(0.1),
                                       pawl__duck_bool(true),
                                       pawl__duck_text(text("a text of more than twelve bytes é")),
                                       pawl__duck_bytes(bytes),
                                       pawl__duck_time(INT64_C(1769682030123456))),
                             &changed,
                             &f->error),
              &f->error);
    assert_int_equal(changed, 1);
    assert_ok(pawl__duck_query(f->conn, SQL_ALL, DUCK_NO_ARGS, &rows, &f->error), &f->error);
    assert_int_equal(pawl__duck_column_count(rows), 7);
    assert_string_equal(pawl__duck_column_name(rows, 6), "z");
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(pawl__duck_column_type(rows, i), "iudbtxz"[i]);
    }
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    assert_int_equal(pawl__duck_get_i64(rows, 0), INT64_MIN);
    assert_true(pawl__duck_get_u64(rows, 1) == UINT64_MAX);
    assert_true(pawl__duck_get_double(rows, 2) == 0.1);
    assert_true(pawl__duck_get_bool(rows, 3));
    assert_true(pawl__view_is(pawl__duck_get_text(rows, 4), "a text of more than twelve bytes é"));
    assert_true(pawl__view_equal(pawl__duck_get_bytes(rows, 5), bytes));
    assert_int_equal(pawl__duck_get_time(rows, 6), INT64_C(1769682030123456));
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    assert_false(pawl__duck_has_row(rows));
}

static void test_nulls_read_as_nothing_and_say_so(void **state)
{
    struct duck_fixture *f = *state;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    const struct pawl__duck_value nulls[7] = { { 0 } };

    assert_ok(pawl__duck_run(f->conn, SQL_INSERT, nulls, 7, NULL, &f->error), &f->error);
    assert_ok(pawl__duck_query(f->conn, SQL_ALL, DUCK_NO_ARGS, &rows, &f->error), &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    for (size_t i = 0; i < 7; i++) {
        assert_true(pawl__duck_is_null(rows, i));
    }
    assert_int_equal(pawl__duck_get_i64(rows, 0), 0);
    assert_int_equal(pawl__duck_get_text(rows, 4).len, 0);
}

static void test_small_integers_widen_and_short_texts_stay_in_place(void **state)
{
    struct duck_fixture *f = *state;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    assert_ok(pawl__duck_query_text(f->conn,
                                    "SELECT (-1)::TINYINT, (-2)::SMALLINT, (-3)::INTEGER,"
                                    " 4::UTINYINT, 5::USMALLINT, 6::UINTEGER, 0.5::FLOAT,"
                                    " 'twelve bytes', '', sum(1) FROM range(2)",
                                    DUCK_NO_ARGS,
                                    &rows,
                                    &f->error),
              &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(pawl__duck_get_i64(rows, (size_t)i), -1 - i);
        assert_int_equal(pawl__duck_get_u64(rows, (size_t)i + 3), 4 + i);
    }
    assert_true(pawl__duck_get_double(rows, 6) == 0.5);
    assert_true(pawl__view_is(pawl__duck_get_text(rows, 7), "twelve bytes"));
    assert_true(pawl__view_is(pawl__duck_get_text(rows, 8), ""));
    assert_int_equal(pawl__duck_column_type(rows, 9), '?'); /* HUGEINT: cast it in SQL */
}

static void test_rows_come_in_chunks_and_all_of_them(void **state)
{
    struct duck_fixture *f = *state;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    int64_t expected = 0;
    pawl_status status = pawl__duck_query_text(f->conn,
                                               "SELECT range, CASE WHEN range % 3 = 0 THEN NULL"
                                               " ELSE range::TEXT END FROM range(10000)",
                                               DUCK_NO_ARGS,
                                               &rows,
                                               &f->error);

    while (status == PAWL_OK && (status = pawl__duck_next(rows, &f->error)) == PAWL_OK
           && pawl__duck_has_row(rows)) {
        char digits[24];

        snprintf(digits, sizeof(digits), "%lld", (long long)expected);
        assert_int_equal(pawl__duck_get_i64(rows, 0), expected);
        assert_int_equal(pawl__duck_is_null(rows, 1), expected % 3 == 0);
        assert_true(expected % 3 == 0 || pawl__view_is(pawl__duck_get_text(rows, 1), digits));
        expected++;
    }
    assert_ok(status, &f->error);
    assert_int_equal(expected, 10000);
}

static void test_an_error_in_the_middle_is_not_an_end(void **state)
{
    struct duck_fixture *f = *state;

    /* One thread: the rows before it are already handed out when it fails. */
    assert_status(duck_drain(f,
                             f->conn,
                             "SELECT CASE WHEN range = 900000 THEN error('boom') ELSE '' END"
                             " FROM range(1000000)"),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "boom");
    assert_int_equal(duck_number(f, f->conn, "SELECT 7::BIGINT"),
                     7); /* and the connection goes on */
}

static void test_a_statement_that_does_not_fit_fails_when_it_is_prepared(void **state)
{
    struct duck_fixture *f = *state;
    static const char *const wrong[] = { "SELECT 1", "SELECT colour FROM kinds" };

    assert_status(pawl__duck_prepare(f->conn, wrong, 2, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "prepare statement 1");
    assert_message(&f->error, "colour");
    assert_null(strchr(f->error.message, '\n'));
    /* The table that was there is still there. */
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    assert_ok(pawl__duck_query(f->conn, SQL_COUNT_ROWS, DUCK_NO_ARGS, &rows, &f->error), &f->error);
}

static void test_values_must_match_the_parameters(void **state)
{
    struct duck_fixture *f = *state;

    assert_status(
        pawl__duck_run(f->conn, SQL_INSERT, DUCK_ARGS(pawl__duck_i64(1)), NULL, &f->error),
        PAWL_INVALID,
        &f->error);
    assert_message(&f->error, "7 parameters, 1 values");
}

static void assert_text_refused(struct duck_fixture *f, pawl_view value, const char *why)
{
    struct pawl__duck_value values[7] = { [4] = pawl__duck_text(value) };

    assert_status(
        pawl__duck_run(f->conn, SQL_INSERT, values, 7, NULL, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "parameter 5");
    assert_message(&f->error, why);
}

static void test_text_that_is_none_never_reaches_the_engine(void **state)
{
    struct duck_fixture *f = *state;

    assert_text_refused(f, (pawl_view){ "a\xff", 2 }, "not UTF-8");
    assert_text_refused(f, (pawl_view){ "a\0b", 3 }, "NUL inside");
    assert_text_refused(f, (pawl_view){ "\xed\xa0\x80", 3 }, "not UTF-8"); /* a surrogate */
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM kinds"), 0);
}

static void test_a_value_has_a_limit(void **state)
{
    struct duck_fixture *f = *state;
    char *value = malloc(PAWL__DUCK_VALUE_BYTES_MAX + 1);

    memset(value, 'x', PAWL__DUCK_VALUE_BYTES_MAX + 1);
    assert_ok(pawl__duck_check_text((pawl_view){ value, PAWL__DUCK_VALUE_BYTES_MAX }, &f->error),
              &f->error);
    assert_text_refused(f, (pawl_view){ value, PAWL__DUCK_VALUE_BYTES_MAX + 1 }, "the limit is");
    free(value);
}

static void test_a_json_column_refuses_what_is_no_json(void **state)
{
    struct duck_fixture *f = *state;

    duck_script(f, f->conn, "CREATE TABLE j (doc JSON)");
    assert_status(pawl__duck_script(f->conn, "INSERT INTO j VALUES ('{no')", &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "Malformed JSON");
    duck_script(f, f->conn, "INSERT INTO j VALUES ('{\"yes\": 1}')");
    assert_int_equal(duck_number(f, f->conn, "SELECT (doc->>'yes')::BIGINT FROM j"), 1);
}

static void test_a_script_stops_at_its_first_error_and_names_it(void **state)
{
    struct duck_fixture *f = *state;

    duck_script(f, f->conn, "  ; -- nothing\n");
    assert_status(pawl__duck_script(f->conn,
                                    "CREATE TABLE a (n INTEGER); INSERT INTO nowhere VALUES (1);"
                                    " CREATE TABLE b (n INTEGER)",
                                    &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "statement 2 of 3");
    assert_int_equal(
        duck_number(
            f, f->conn, "SELECT count(*) FROM duckdb_tables() WHERE table_name IN ('a','b')"),
        1);
    assert_status(pawl__duck_script(f->conn, "SELEC 1", &f->error), PAWL_INVALID, &f->error);
}

static void test_words_of_transactions_are_not_for_sql_text(void **state)
{
    struct duck_fixture *f = *state;
    static const char *const words[] = { "BEGIN", "COMMIT", "ROLLBACK" };

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        assert_status(pawl__duck_script(f->conn, words[i], &f->error), PAWL_INVALID, &f->error);
        assert_status(duck_drain(f, f->conn, words[i]), PAWL_INVALID, &f->error);
        assert_status(
            pawl__duck_prepare(f->conn, &words[i], 1, &f->error), PAWL_INVALID, &f->error);
    }
}

static void test_sql_reaches_no_file_and_no_setting(void **state)
{
    struct duck_fixture *f = *state;
    static const char *const forbidden[] = {
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/pawl-must-not-be-there.csv'",
        "ATTACH '/tmp/pawl-must-not-be-there.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET checkpoint_threshold = '1KB'",
        "SET threads = 1",
        "SELECT * FROM read_text('/etc/hostname')",
        "EXPORT DATABASE '/tmp/pawl-must-not-be-there'",
    };

    for (size_t i = 0; i < COUNT_OF(forbidden); i++) {
        pawl_status status = duck_drain(f, f->conn, forbidden[i]);

        if (status != PAWL_DENIED && status != PAWL_INVALID) {
            fail_msg("%s: %s", forbidden[i], pawl_status_name(status));
        }
    }
    assert_int_not_equal(access("/tmp/pawl-must-not-be-there.csv", F_OK), 0);
}

static void test_sql_reaches_the_directories_it_may(void **state)
{
    struct duck_fixture *f = *state;
    char quoted[TEMPDIR_SIZE + 16];
    char statement[TEMPDIR_SIZE + 64];
    const char *allowed[] = { quoted };

    snprintf(quoted, sizeof(quoted), "%s/it's", f->dir); /* a quote in a path is no way out */
    assert_int_equal(mkdir(quoted, 0700), 0);
    duck_close(f);
    f->options.allowed_dirs = allowed;
    f->options.allowed_dir_count = 1;
    duck_open(f);
    snprintf(statement, sizeof(statement), "COPY (SELECT 1) TO '%s/it''s/one.csv'", f->dir);
    duck_script(f, f->conn, statement);
    snprintf(statement, sizeof(statement), "COPY (SELECT 1) TO '%s/one.csv'", f->dir);
    assert_status(duck_drain(f, f->conn, statement), PAWL_DENIED, &f->error);
    duck_close(f);
    allowed[0] = "relative";
    assert_status(
        pawl__duck_open(f->path, &f->options, &f->db, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "'relative' is not an absolute path");
}

static void test_work_beyond_the_memory_limit_uses_files_or_fails(void **state)
{
    struct duck_fixture *f = *state;

    duck_close(f);
    f->options.memory_bytes_max = 32 << 20;
    duck_open(f);
    assert_int_equal(duck_number(f,
                                 f->conn,
                                 "SELECT count(*) FROM (SELECT hash(range) h FROM range(4000000)"
                                 " ORDER BY h)"),
                     4000000);
    assert_status(
        duck_drain(f, f->conn, "SELECT list(range) FROM range(10000000)"), PAWL_NOMEM, &f->error);
}

static void test_a_deadline_ends_a_statement(void **state)
{
    struct duck_fixture *f = *state;
    static const char endless[] = "SELECT count(*) FROM range(100000000000) a, range(1000) b";
    int64_t now_ns = pawl__monotonic_ns(pawl__clock_real());

    pawl__duck_set_deadline(f->conn, now_ns + 50 * NS_PER_MS);
    assert_status(duck_drain(f, f->conn, endless), PAWL_TIMEOUT, &f->error);
    assert_true(f->error.retryable);
    assert_status(
        duck_drain(f, f->conn, "SELECT 1"), PAWL_TIMEOUT, &f->error); /* it has passed for all */
    pawl__duck_set_deadline(f->conn, 0);
    assert_int_equal(duck_number(f, f->conn, "SELECT 1::BIGINT"), 1);
}

static void test_a_deadline_ends_rows_that_are_still_coming(void **state)
{
    struct duck_fixture *f = *state;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    pawl_status status = pawl__duck_query_text(
        f->conn, "SELECT range FROM range(100000000000)", DUCK_NO_ARGS, &rows, &f->error);

    assert_ok(status, &f->error);
    pawl__duck_set_deadline(f->conn, pawl__monotonic_ns(pawl__clock_real()) + 50 * NS_PER_MS);
    do {
        status = pawl__duck_next(rows, &f->error);
    } while (status == PAWL_OK);
    assert_status(status, PAWL_TIMEOUT, &f->error);
    pawl__duck_set_deadline(f->conn, 0);
}

static void test_a_read_only_database_only_reads(void **state)
{
    struct duck_fixture *f = *state;

    duck_script(f, f->conn, "INSERT INTO kinds (i) VALUES (1)");
    duck_close(f);
    f->options.read_only = true;
    duck_open(f);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM kinds"),
                     1); /* from the log: no checkpoint yet */
    assert_status(
        pawl__duck_script(f->conn, "DELETE FROM kinds", &f->error), PAWL_DENIED, &f->error);
    duck_close(f);
    unlink(f->path);
    assert_status(
        pawl__duck_open(f->path, &f->options, &f->db, &f->error), PAWL_NOT_FOUND, &f->error);
}

static void test_a_read_only_transaction_refuses_to_write(void **state)
{
    struct duck_fixture *f = *state;

    assert_ok(pawl__duck_begin(f->conn, PAWL__DUCK_READ_ONLY, &f->error), &f->error);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM kinds"), 0);
    assert_ok(pawl__duck_commit(f->conn, &f->error), &f->error);
    assert_ok(pawl__duck_begin(f->conn, PAWL__DUCK_READ_ONLY, &f->error), &f->error);
    assert_status(pawl__duck_script(f->conn, "INSERT INTO kinds (i) VALUES (1)", &f->error),
                  PAWL_DENIED,
                  &f->error);
    assert_message(&f->error, "read-only");
    pawl__duck_rollback(f->conn);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM kinds"), 0);
}

static void test_migrations_run_once_and_survive(void **state)
{
    struct duck_fixture *f = *state;
    size_t pending = 0;

    assert_ok(
        pawl__migrate_pending(
            &pawl__duck_migrate_ops, f->conn, &pawl__schema_duckdb_probe, &pending, &f->error),
        &f->error);
    assert_int_equal(pending, 2);
    for (int i = 0; i < 2; i++) {
        assert_ok(
            pawl__migrate(&pawl__duck_migrate_ops, f->conn, &pawl__schema_duckdb_probe, &f->error),
            &f->error);
        duck_close(f);
        duck_open(f);
    }
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM schema_version"), 2);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM probe"), 1);
}

static void test_a_failed_migration_leaves_nothing(void **state)
{
    struct duck_fixture *f = *state;
    static const struct pawl__migration steps[] = {
        { .number = 1, .version = "1", .name = "good", .sql = "CREATE TABLE half (n INTEGER)" },
        { .number = 2, .version = "2", .name = "bad", .sql = "INSERT INTO nowhere VALUES (1)" },
    };
    const struct pawl__schema schema = { .component = "half", .migrations = steps, .count = 2 };

    assert_status(pawl__migrate(&pawl__duck_migrate_ops, f->conn, &schema, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_int_equal(duck_number(f,
                                 f->conn,
                                 "SELECT count(*) FROM duckdb_tables()"
                                 " WHERE table_name IN ('half', 'schema_version')"),
                     0);
    assert_false(pawl__duck_in_transaction(f->conn));
}

static void test_every_allocation_of_ours_may_fail(void **state)
{
    struct duck_fixture *f = *state;
    char path[TEMPDIR_SIZE + 32];

    snprintf(path, sizeof(path), "%s/walk.duckdb", f->dir);
    FAULT_WALK (walk) {
        AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
        AUTO(pawl__duck_disconnect_p) struct pawl__duck_conn *conn = NULL;
        struct pawl__duck_rows *rows = NULL;
        struct pawl__duck_appender *appender = NULL;
        static const char *const table[] = { "SELECT 1" };

        pawl_status status = pawl__duck_open(path, NULL, &db, &f->error);
        if (status == PAWL_OK) {
            status = pawl__duck_connect(db, &conn, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__duck_prepare(conn, table, 1, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__duck_query(conn, 0, DUCK_NO_ARGS, &rows, &f->error);
            pawl__duck_rows_free(rows);
        }
        if (status == PAWL_OK) {
            status =
                pawl__migrate(&pawl__duck_migrate_ops, conn, &pawl__schema_duckdb_probe, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__duck_begin(conn, PAWL__DUCK_WRITE, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__duck_appender_open(conn, "probe", &appender, &f->error);
            pawl__duck_appender_free(appender);
        }
        assert_status(status, fault_fired() ? PAWL_NOMEM : PAWL_OK, &f->error);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, duck_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_every_kind_of_value_comes_back),
        TEST(test_nulls_read_as_nothing_and_say_so),
        TEST(test_small_integers_widen_and_short_texts_stay_in_place),
        TEST(test_rows_come_in_chunks_and_all_of_them),
        TEST(test_an_error_in_the_middle_is_not_an_end),
        TEST(test_a_statement_that_does_not_fit_fails_when_it_is_prepared),
        TEST(test_values_must_match_the_parameters),
        TEST(test_text_that_is_none_never_reaches_the_engine),
        TEST(test_a_value_has_a_limit),
        TEST(test_a_json_column_refuses_what_is_no_json),
        TEST(test_a_script_stops_at_its_first_error_and_names_it),
        TEST(test_words_of_transactions_are_not_for_sql_text),
        TEST(test_sql_reaches_no_file_and_no_setting),
        TEST(test_sql_reaches_the_directories_it_may),
        TEST(test_work_beyond_the_memory_limit_uses_files_or_fails),
        TEST(test_a_deadline_ends_a_statement),
        TEST(test_a_deadline_ends_rows_that_are_still_coming),
        TEST(test_a_read_only_database_only_reads),
        TEST(test_a_read_only_transaction_refuses_to_write),
        TEST(test_migrations_run_once_and_survive),
        TEST(test_a_failed_migration_leaves_nothing),
        TEST(test_every_allocation_of_ours_may_fail),
    };
    return cmocka_run_group_tests_name("duckdb", tests, NULL, NULL);
}
