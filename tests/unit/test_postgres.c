/* Statements, values, errors and transactions of the PostgreSQL wrapper on a real server. */
#include "lib/pg_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/os/failpoint.h"
#include "lib/fault.h"

enum { ECHO_I, ECHO_D, ECHO_T, ECHO_X, ECHO_B, ECHO_Z, NARROW, JSON, ADD, COUNT_ROWS, SLEEP, LOCK };

static const struct pawl__pg_statement statements[] = {
    [ECHO_I] = { "SELECT $1::bigint, $1::text", "i", "it" },
    [ECHO_D] = { "SELECT $1::double precision", "d", "d" },
    [ECHO_T] = { "SELECT $1::text, octet_length($1)", "t", "ti" },
    [ECHO_X] = { "SELECT $1::bytea, octet_length($1)", "x", "xi" },
    [ECHO_B] = { "SELECT $1::boolean, $1::text", "b", "bt" },
    [ECHO_Z] = { "SELECT $1::timestamptz, $1::text", "z", "zt" },
    [NARROW] = { "SELECT (-7)::smallint, (-70000)::integer, 0.5::real, 'ab'::varchar(9), 'n'::name,"
                 " '00112233-4455-6677-8899-aabbccddeeff'::uuid, 'x'::char(3)",
                 NULL,
                 "iidttxt" },
    [JSON] = { "SELECT $1::jsonb, $1::json, NULL::jsonb", "t", "ttt" },
    [ADD] = { "INSERT INTO item (id, body) VALUES ($1, $2)", "tx", NULL },
    [COUNT_ROWS] = { "SELECT count(*) FROM item", NULL, "i" },
    [SLEEP] = { "SELECT true FROM pg_sleep($1)", "d", "b" },
    [LOCK] = { "LOCK TABLE item IN ACCESS EXCLUSIVE MODE", NULL, NULL },
};

static const struct pawl__pg_options usual = { .statements = statements,
                                               .statement_count = COUNT_OF(statements) };

static struct pawl__pg *connect_to_items(struct pg_fixture *f)
{
    pg_admin(f,
             "DROP TABLE IF EXISTS item;"
             "CREATE TABLE item (id text CONSTRAINT item_id_once PRIMARY KEY,"
             " body bytea CONSTRAINT item_body_there NOT NULL)");
    return pg_connect(f, &usual);
}

static pawl_status add(struct pawl__pg *pg, const char *id, pawl_error *reterr)
{
    return pawl__pg_exec(
        pg,
        ADD,
        PG_ARGS(pawl__pg_text(pawl_view_of(id)), pawl__pg_bytes(pawl_view_of("body"))),
        NULL,
        reterr);
}

static int64_t count(struct pg_fixture *f)
{
    return pg_number(f, "SELECT count(*) FROM item");
}

static void test_every_i64_comes_back(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };
    static const int64_t values[] = { 0, 1, -1, 255, INT32_MAX, INT64_MAX, INT64_MIN };

    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char text[32];
        snprintf(text, sizeof(text), "%lld", (long long)values[i]);
        assert_ok(pawl__pg_exec(pg, ECHO_I, PG_ARGS(pawl__pg_i64(values[i])), &rows, &f->err),
                  &f->err);
        assert_int_equal(rows.count, 1);
        assert_int_equal(pawl__pg_get_i64(&rows, 0, 0), values[i]);
        assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 1), text));
    }
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_every_double_comes_back_bit_by_bit(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };
    static const double values[] = { 0.0, -0.0, 0.1, 1e308, 5e-324, HUGE_VAL, -HUGE_VAL };

    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_ok(pawl__pg_exec(pg, ECHO_D, PG_ARGS(pawl__pg_double(values[i])), &rows, &f->err),
                  &f->err);
        double got = pawl__pg_get_double(&rows, 0, 0);
        assert_memory_equal(&got, &values[i], sizeof(got));
    }
    assert_ok(
        pawl__pg_exec(pg, ECHO_D, PG_ARGS(pawl__pg_double(__builtin_nan(""))), &rows, &f->err),
        &f->err);
    assert_true(isnan(pawl__pg_get_double(&rows, 0, 0)));
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_text_comes_back_and_a_nul_in_it_is_refused(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };
    static const char *const values[] = {
        "", "plain", "'quoted' \"twice\" \\", "\xC3\xA9\xE2\x82\xAC"
    };

    for (size_t i = 0; i < COUNT_OF(values); i++) {
        pawl_view view = pawl_view_of(values[i]);
        assert_ok(pawl__pg_exec(pg, ECHO_T, PG_ARGS(pawl__pg_text(view)), &rows, &f->err), &f->err);
        assert_true(pawl__view_equal(pawl__pg_get_text(&rows, 0, 0), view));
        assert_int_equal(pawl__pg_get_i64(&rows, 0, 1), view.len);
        assert_false(pawl__pg_is_null(&rows, 0, 0));
    }
    /* Not NUL-terminated: a part of a longer text. */
    pawl_view part = { "abcdef", 3 };
    assert_ok(pawl__pg_exec(pg, ECHO_T, PG_ARGS(pawl__pg_text(part)), &rows, &f->err), &f->err);
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 0), "abc"));

    pawl_view nul = { "a\0b", 3 };
    assert_status(pawl__pg_exec(pg, ECHO_T, PG_ARGS(pawl__pg_text(nul)), &rows, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "parameter 1: text in PostgreSQL cannot hold a NUL");
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 0), "abc")); /* outputs left alone */
    pawl_view broken = { "\xFF\xFE", 2 };
    assert_status(pawl__pg_exec(pg, ECHO_T, PG_ARGS(pawl__pg_text(broken)), &rows, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_string_equal(f->err.sqlstate, "22021");
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_bytes_come_back_with_every_value(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };
    char all[256];

    for (size_t i = 0; i < sizeof(all); i++) {
        all[i] = (char)i;
    }
    pawl_view view = { all, sizeof(all) };
    assert_ok(pawl__pg_exec(pg, ECHO_X, PG_ARGS(pawl__pg_bytes(view)), &rows, &f->err), &f->err);
    assert_true(pawl__view_equal(pawl__pg_get_bytes(&rows, 0, 0), view));
    view = (pawl_view){ NULL, 0 };
    assert_ok(pawl__pg_exec(pg, ECHO_X, PG_ARGS(pawl__pg_bytes(view)), &rows, &f->err), &f->err);
    assert_false(pawl__pg_is_null(&rows, 0, 0)); /* empty is not null */
    assert_int_equal(pawl__pg_get_i64(&rows, 0, 1), 0);
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_a_value_at_the_limit_passes_and_one_more_byte_does_not(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };
    pawl_view view = { calloc(1, PAWL__PG_VALUE_BYTES_MAX + 1), PAWL__PG_VALUE_BYTES_MAX };

    assert_non_null(view.data);
    assert_ok(pawl__pg_exec(pg, ECHO_X, PG_ARGS(pawl__pg_bytes(view)), &rows, &f->err), &f->err);
    assert_true(pawl__view_equal(pawl__pg_get_bytes(&rows, 0, 0), view));
    view.len++;
    assert_status(pawl__pg_exec(pg, ECHO_X, PG_ARGS(pawl__pg_bytes(view)), &rows, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "parameter 1 has 67108865 bytes, the limit is 67108864");
    free((void *)(uintptr_t)view.data);
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_times_are_utc_microseconds_with_both_infinities(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        { 0, "1970-01-01 00:00:00+00" },
        { -1, "1969-12-31 23:59:59.999999+00" },
        { INT64_C(1769682030123456), "2026-01-29 10:20:30.123456+00" },
        { PAWL__PG_TIME_INFINITY, "infinity" },
        { PAWL__PG_TIME_MINUS_INFINITY, "-infinity" },
        { INT64_C(-210866803200000000), "4714-11-24 00:00:00+00 BC" }, /* PostgreSQL's first */
        { INT64_MAX - 1, "294247-01-10 04:00:54.775806+00" },          /* and our last */
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_ok(pawl__pg_exec(pg, ECHO_Z, PG_ARGS(pawl__pg_time(cases[i].us)), &rows, &f->err),
                  &f->err);
        assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 1), cases[i].text));
        assert_int_equal(pawl__pg_get_time(&rows, 0, 0), cases[i].us);
    }
    assert_status(
        pawl__pg_exec(
            pg, ECHO_Z, PG_ARGS(pawl__pg_time(INT64_C(-210866803200000001))), NULL, &f->err),
        PAWL_INVALID,
        &f->err);
    assert_string_equal(f->err.sqlstate, "22008");
    assert_status(pawl__pg_exec(pg, ECHO_Z, PG_ARGS(pawl__pg_time(INT64_MIN + 1)), NULL, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "time out of range");
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_nulls_and_booleans_come_back(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };

    for (size_t i = ECHO_I; i <= ECHO_Z; i++) {
        assert_ok(pawl__pg_exec(pg, i, PG_ARGS(pawl__pg_null()), &rows, &f->err), &f->err);
        assert_true(pawl__pg_is_null(&rows, 0, 0));
    }
    assert_int_equal(pawl__pg_get_time(&rows, 0, 0), 0);
    assert_ok(pawl__pg_exec(pg, ECHO_B, PG_ARGS(pawl__pg_bool(true)), &rows, &f->err), &f->err);
    assert_true(pawl__pg_get_bool(&rows, 0, 0));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 1), "true"));
    assert_ok(pawl__pg_exec(pg, ECHO_B, PG_ARGS(pawl__pg_bool(false)), &rows, &f->err), &f->err);
    assert_false(pawl__pg_get_bool(&rows, 0, 0));
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_narrower_and_kindred_column_types_are_read(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };

    assert_ok(pawl__pg_exec(pg, NARROW, PG_NO_ARGS, &rows, &f->err), &f->err);
    assert_int_equal(pawl__pg_get_i64(&rows, 0, 0), -7);
    assert_int_equal(pawl__pg_get_i64(&rows, 0, 1), -70000);
    assert_true(pawl__pg_get_double(&rows, 0, 2) == 0.5);
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 3), "ab"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 4), "n"));
    assert_int_equal(pawl__pg_get_bytes(&rows, 0, 5).len, 16);
    assert_memory_equal(pawl__pg_get_bytes(&rows, 0, 5).data, "\x00\x11\x22\x33", 4);
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 6), "x  "));
    assert_ok(
        pawl__pg_exec(pg, JSON, PG_ARGS(pawl__pg_text(pawl_view_of("{\"a\":1}"))), &rows, &f->err),
        &f->err);
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 0), "{\"a\": 1}"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 1), "{\"a\":1}"));
    assert_int_equal(pawl__pg_get_text(&rows, 0, 2).len, 0);
    assert_status(
        pawl__pg_exec(pg, JSON, PG_ARGS(pawl__pg_text(pawl_view_of("{"))), &rows, &f->err),
        PAWL_INVALID,
        &f->err);
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_a_conflict_names_the_constraint_and_no_values(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct pawl__pg_rows rows = { 0 };

    assert_ok(pawl__pg_exec(pg,
                            ADD,
                            PG_ARGS(pawl__pg_text(pawl_view_of("secret-id")),
                                    pawl__pg_bytes(pawl_view_of("b"))),
                            &rows,
                            &f->err),
              &f->err);
    assert_int_equal(rows.affected, 1);
    pawl__pg_rows_done(&rows);
    assert_status(add(pg, "secret-id", &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "constraint 'item_id_once'");
    assert_string_equal(f->err.sqlstate, "23505");
    assert_null(strstr(f->err.message, "secret-id"));
    assert_false(f->err.retryable);
    assert_status(
        pawl__pg_exec(
            pg, ADD, PG_ARGS(pawl__pg_text(pawl_view_of("c")), pawl__pg_null()), NULL, &f->err),
        PAWL_CONFLICT,
        &f->err);
    assert_int_equal(count(f), 1);
    pawl__pg_close(pg);
}

static void test_a_table_that_does_not_fit_the_schema_fails_at_open(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *untouched = NULL;
    static const struct {
        struct pawl__pg_statement statement;
        pawl_status status;
        const char *message;
    } cases[] = {
        { { "SELEC 1", NULL, NULL }, PAWL_FAILED, "statement 1 'SELEC 1': syntax error" },
        { { "SELECT x FROM nowhere", NULL, "i" },
          PAWL_CORRUPT,
          "relation \"nowhere\" does not exist" },
        { { "SELECT nothing FROM pg_class", NULL, "i" },
          PAWL_CORRUPT,
          "\"nothing\" does not exist" },
        { { "SELECT 'a'::text", NULL, "i" },
          PAWL_FAILED,
          "column 'text' has type 25, which is not 'i'" },
        { { "SELECT 1::bigint", NULL, "ii" },
          PAWL_FAILED,
          "it returns 1 columns, the table names 2" },
        { { "SELECT $2::bigint", "i", "i" },
          PAWL_FAILED,
          "it has 2 parameters, the table names 1" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct pawl__pg_statement table[] = { { "SELECT 1::bigint", NULL, "i" },
                                                    cases[i].statement,
                                                    { "SELECT 2::bigint", NULL, "i" } };
        assert_status(
            pawl__pg_open(pg_server_url(f->server),
                          &(struct pawl__pg_options){ .statements = table, .statement_count = 3 },
                          &untouched,
                          &f->err),
            cases[i].status,
            &f->err);
        assert_message(&f->err, cases[i].message);
        assert_null(untouched);
    }
}

static void test_a_session_is_set_up_safely(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const struct pawl__pg_statement show = {
        "SELECT current_setting('search_path'), current_setting('TimeZone'),"
        " current_setting('application_name'), current_setting('statement_timeout'),"
        " current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')",
        NULL,
        "tttttt"
    };
    struct pawl__pg_rows rows = { 0 };
    struct pawl__pg *pg =
        pg_connect(f, &(struct pawl__pg_options){ .statements = &show, .statement_count = 1 });

    assert_ok(pawl__pg_exec(pg, 0, PG_NO_ARGS, &rows, &f->err), &f->err);
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 0), "pawl, pg_temp"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 1), "UTC"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 2), "pawl"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 3), "1min"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 4), "10s"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 5), "5min"));
    pawl__pg_close(pg);
    pg = pg_connect(f,
                    &(struct pawl__pg_options){ .namespace = "a\"b, public",
                                                .application_name = "probe 'x'",
                                                .statement_ms_max = 1234,
                                                .statements = &show,
                                                .statement_count = 1 });
    assert_ok(pawl__pg_exec(pg, 0, PG_NO_ARGS, &rows, &f->err), &f->err);
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 0), "\"a\"\"b, public\", pg_temp"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 2), "probe 'x'"));
    assert_true(pawl__view_is(pawl__pg_get_text(&rows, 0, 3), "1234ms"));
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
}

static void test_commits_stay_synchronous_unless_unsafe_says_otherwise(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, NULL);

    assert_true(pawl__pg_server_of(pg)->fsync);
    assert_true(pawl__pg_server_of(pg)->full_page_writes);
    assert_false(pawl__pg_server_of(pg)->read_only);
    assert_true(pawl__pg_server_of(pg)->version >= 140000);
    assert_string_equal(pawl__pg_server_of(pg)->synchronous_commit, "on");
    pawl__pg_close(pg);

    pg_admin(f, "ALTER ROLE pawl SET synchronous_commit = off");
    pg = pg_connect(f, NULL);
    assert_string_equal(pawl__pg_server_of(pg)->default_commit, "off");
    assert_string_equal(pawl__pg_server_of(pg)->synchronous_commit, "on");
    pawl__pg_close(pg);
    pg_admin(f, "ALTER ROLE pawl SET synchronous_commit = remote_apply");
    pg = pg_connect(f, NULL);
    assert_string_equal(pawl__pg_server_of(pg)->synchronous_commit, "remote_apply");
    pawl__pg_close(pg);
    pg_admin(f, "ALTER ROLE pawl RESET synchronous_commit");
    pg = pg_connect(f, &(struct pawl__pg_options){ .unsafe_async_commit = true });
    assert_string_equal(pawl__pg_server_of(pg)->synchronous_commit, "off");
    pawl__pg_close(pg);
}

static void test_a_transaction_is_all_or_nothing(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_true(pawl__pg_in_transaction(pg));
    assert_ok(add(pg, "a", &f->err), &f->err);
    assert_int_equal(count(f), 0); /* nobody else sees it */
    assert_ok(pawl__pg_commit(pg, &f->err), &f->err);
    assert_false(pawl__pg_in_transaction(pg));
    assert_int_equal(count(f), 1);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_SERIALIZABLE, &f->err), &f->err);
    assert_ok(add(pg, "b", &f->err), &f->err);
    pawl__pg_rollback(pg);
    pawl__pg_rollback(pg); /* once more does nothing */
    assert_int_equal(count(f), 1);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_ONLY, &f->err), &f->err);
    assert_status(add(pg, "c", &f->err), PAWL_DENIED, &f->err);
    pawl__pg_rollback(pg);
    pawl__pg_close(pg);
}

static void test_commit_after_a_failed_statement_is_no_silent_rollback(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(add(pg, "a", &f->err), &f->err);
    assert_status(add(pg, "a", &f->err), PAWL_CONFLICT, &f->err);
    assert_status(add(pg, "b", &f->err), PAWL_FAILED, &f->err);
    assert_string_equal(f->err.sqlstate, "25P02");
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_FAILED, &f->err);
    assert_message(&f->err, "nothing is stored");
    assert_int_equal(count(f), 0);
    assert_ok(add(pg, "c", &f->err), &f->err); /* the connection is fine */
    pawl__pg_close(pg);
}

static void test_a_deferred_constraint_fails_the_commit(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_script(pg,
                              "ALTER TABLE item DROP CONSTRAINT item_id_once, ADD CONSTRAINT later"
                              " UNIQUE (id) DEFERRABLE INITIALLY DEFERRED",
                              &f->err),
              &f->err);
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(add(pg, "a", &f->err), &f->err);
    assert_ok(add(pg, "a", &f->err), &f->err);
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "'later'");
    assert_false(pawl__pg_in_transaction(pg));
    assert_int_equal(count(f), 0);
    pawl__pg_close(pg);
}

static void test_concurrent_writers_get_busy_and_may_retry(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *first = connect_to_items(f);
    struct pawl__pg *second = pg_connect(f, &usual);
    struct pawl__pg_rows rows = { 0 };

    /* Both read what the other writes: one of them must lose. */
    assert_ok(pawl__pg_begin(first, PAWL__PG_SERIALIZABLE, &f->err), &f->err);
    assert_ok(pawl__pg_begin(second, PAWL__PG_SERIALIZABLE, &f->err), &f->err);
    assert_ok(pawl__pg_exec(first, COUNT_ROWS, PG_NO_ARGS, &rows, &f->err), &f->err);
    assert_ok(pawl__pg_exec(second, COUNT_ROWS, PG_NO_ARGS, &rows, &f->err), &f->err);
    pawl__pg_rows_done(&rows);
    assert_ok(add(first, "a", &f->err), &f->err);
    assert_ok(add(second, "b", &f->err), &f->err);
    assert_ok(pawl__pg_commit(first, &f->err), &f->err);
    assert_status(pawl__pg_commit(second, &f->err), PAWL_BUSY, &f->err);
    assert_string_equal(f->err.sqlstate, "40001");
    assert_true(f->err.retryable);
    assert_int_equal(count(f), 1);
    pawl__pg_close(first);
    pawl__pg_close(second);
}

static void test_a_lock_that_is_not_given_is_busy(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *holder = connect_to_items(f);
    struct pawl__pg_options impatient = usual;

    impatient.lock_ms_max = 50;
    struct pawl__pg *pg = pg_connect(f, &impatient);
    assert_ok(pawl__pg_begin(holder, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(pawl__pg_exec(holder, LOCK, PG_NO_ARGS, NULL, &f->err), &f->err);
    assert_status(add(pg, "a", &f->err), PAWL_BUSY, &f->err);
    assert_string_equal(f->err.sqlstate, "55P03");
    pawl__pg_close(holder);
    pawl__pg_close(pg);
}

static void test_a_slow_statement_ends_by_the_servers_or_by_our_deadline(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_options quick = usual;

    quick.statement_ms_max = 50;
    pawl__pg_close(connect_to_items(f));
    struct pawl__pg *pg = pg_connect(f, &quick);
    assert_status(pawl__pg_exec(pg, SLEEP, PG_ARGS(pawl__pg_double(60)), NULL, &f->err),
                  PAWL_TIMEOUT,
                  &f->err);
    assert_string_equal(f->err.sqlstate, "57014");
    assert_true(f->err.retryable);
    pawl__pg_close(pg);

    pg = pg_connect(f, &usual);
    pawl__pg_set_deadline(pg, in_ms(50));
    assert_status(pawl__pg_exec(pg, SLEEP, PG_ARGS(pawl__pg_double(60)), NULL, &f->err),
                  PAWL_TIMEOUT,
                  &f->err);
    assert_status(add(pg, "late", &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "the deadline has passed");
    pawl__pg_set_deadline(pg, 0);
    assert_ok(add(pg, "a", &f->err), &f->err); /* cancelled, not disconnected */
    assert_int_equal(count(f), 1);
    pawl__pg_close(pg);
}

static void test_an_interrupt_before_a_call_stops_it_until_resume(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pawl__pg_interrupt(pg);
    assert_status(add(pg, "a", &f->err), PAWL_CANCELLED, &f->err);
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_CANCELLED, &f->err);
    assert_false(pawl__pg_in_transaction(pg));
    assert_false(pawl__pg_is_broken(pg)); /* the rollback got through */
    pawl__pg_resume(pg);
    assert_ok(add(pg, "a", &f->err), &f->err);
    pawl__pg_close(pg);
}

static void test_failpoints_stand_before_and_after_the_commit(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    static const struct {
        const char *point;
        int64_t stored;
    } cases[] = { { "postgres.commit.before=error:IO", 0 },
                  { "postgres.commit.after=error:IO", 1 } };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_ok(pawl__failpoint_set(cases[i].point, &f->err), &f->err);
        assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
        assert_ok(add(pg, "a", &f->err), &f->err);
        assert_status(pawl__pg_commit(pg, &f->err), PAWL_IO, &f->err);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        assert_false(pawl__pg_in_transaction(pg));
        assert_int_equal(count(f), cases[i].stored);
    }
    pawl__pg_close(pg);
}

static void keep_text(void *context, const pawl_log_event *event)
{
    char *text = context;

    for (size_t i = 0; i < event->field_count; i++) {
        if (strcmp(event->fields[i].key, "text") == 0 && event->level == PAWL_LOG_DEBUG) {
            snprintf(text, 64, "%.*s", VIEW_ARGS(event->fields[i].value.text));
        }
    }
}

static void test_a_notice_goes_to_the_log(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    char text[64] = "";

    pawl_set_log_sink(keep_text, text, PAWL_LOG_DEBUG);
    pawl_status status =
        pawl__pg_script(pg, "DO $$ BEGIN RAISE NOTICE 'for the log'; END $$", &f->err);
    pawl_set_log_sink(NULL, NULL, PAWL_LOG_DEBUG);
    assert_ok(status, &f->err);
    assert_string_equal(text, "for the log");
    pawl__pg_close(pg);
}

static void test_a_script_runs_whole_or_not_at_all(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_status(
        pawl__pg_script(pg,
                        "INSERT INTO item VALUES ('a', ''); INSERT INTO item VALUES ('b', '');"
                        "INSERT INTO item VALUES ('a', '')",
                        &f->err),
        PAWL_CONFLICT,
        &f->err);
    assert_int_equal(count(f), 0);
    assert_status(pawl__pg_script(pg, "COPY item FROM STDIN", &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_ok(add(pg, "c", &f->err), &f->err);
    pawl__pg_close(pg);
}

static void test_open_survives_every_failed_allocation(void **state)
{
    struct pg_fixture *f = pg_fixture(state);

    pawl__pg_close(connect_to_items(f));
    FAULT_WALK (walk) {
        struct pawl__pg *pg = NULL;
        pawl_status status = pawl__pg_open(pg_server_url(f->server), &usual, &pg, &f->err);
        if (status == PAWL_OK) {
            status = pawl__pg_listen(pg, "channel", &f->err);
        }
        bool hit = fault_fired();
        fault_disarm();
        assert_status(status, hit ? PAWL_NOMEM : PAWL_OK, &f->err);
        pawl__pg_close(pg);
        if (!hit) {
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_i64_comes_back),
        cmocka_unit_test(test_every_double_comes_back_bit_by_bit),
        cmocka_unit_test(test_text_comes_back_and_a_nul_in_it_is_refused),
        cmocka_unit_test(test_bytes_come_back_with_every_value),
        cmocka_unit_test(test_a_value_at_the_limit_passes_and_one_more_byte_does_not),
        cmocka_unit_test(test_times_are_utc_microseconds_with_both_infinities),
        cmocka_unit_test(test_nulls_and_booleans_come_back),
        cmocka_unit_test(test_narrower_and_kindred_column_types_are_read),
        cmocka_unit_test(test_a_conflict_names_the_constraint_and_no_values),
        cmocka_unit_test(test_a_table_that_does_not_fit_the_schema_fails_at_open),
        cmocka_unit_test(test_a_session_is_set_up_safely),
        cmocka_unit_test(test_commits_stay_synchronous_unless_unsafe_says_otherwise),
        cmocka_unit_test(test_a_transaction_is_all_or_nothing),
        cmocka_unit_test(test_commit_after_a_failed_statement_is_no_silent_rollback),
        cmocka_unit_test(test_a_deferred_constraint_fails_the_commit),
        cmocka_unit_test(test_concurrent_writers_get_busy_and_may_retry),
        cmocka_unit_test(test_a_lock_that_is_not_given_is_busy),
        cmocka_unit_test(test_a_slow_statement_ends_by_the_servers_or_by_our_deadline),
        cmocka_unit_test(test_an_interrupt_before_a_call_stops_it_until_resume),
        cmocka_unit_test(test_failpoints_stand_before_and_after_the_commit),
        cmocka_unit_test(test_a_notice_goes_to_the_log),
        cmocka_unit_test(test_a_script_runs_whole_or_not_at_all),
        cmocka_unit_test(test_open_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("postgres", tests, pg_fixture_start, pg_fixture_stop);
}
