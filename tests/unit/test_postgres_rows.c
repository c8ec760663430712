/* Arrays as parameters, and rows that are shown as they arrive. */
#include "lib/pg_fixture.h"

#include "base/core/error.h"

enum { ECHO_ALL, COUNT_ANY, SERIES, FAILS_LATER, WIDE };

static const struct pawl__pg_statement statements[] = {
    [ECHO_ALL] = { "SELECT i, t, x, z FROM unnest($1, $2, $3, $4) AS u (i, t, x, z)",
                   "ITXZ",
                   "itxz" },
    [COUNT_ANY] = { "SELECT count(*) FROM unnest($1) AS u (t) WHERE t = ANY ($2)", "TT", "i" },
    [SERIES] = { "SELECT n FROM generate_series(1, $1) AS s (n)", "i", "i" },
    [FAILS_LATER] = { "SELECT (CASE n WHEN 1 THEN '5' WHEN 2 THEN '10' ELSE 'x' END)::bigint"
                      " FROM generate_series(1, $1) AS s (n)",
                      "i",
                      "i" },
    [WIDE] = { "SELECT n, repeat('x', 100000) FROM generate_series(1, $1) AS s (n)", "i", "it" },
};

static const struct pawl__pg_options usual = { .statements = statements,
                                               .statement_count = COUNT_OF(statements) };

static void test_arrays_arrive_as_they_were_sent(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    struct pawl__pg_array arrays[4] = {
        PG_ARRAY_INIT, PG_ARRAY_INIT, PG_ARRAY_INIT, PG_ARRAY_INIT
    };
    struct pawl__pg_rows rows = { 0 };
    static const int64_t numbers[] = { INT64_MIN, -1, INT64_MAX };
    static const char *const texts[] = { "", "{\"a,b\\", "\xC3\xA4" };

    for (size_t again = 0; again < 2; again++) { /* started twice: nothing of the first is left */
        for (size_t i = 0; i < COUNT_OF(arrays); i++) {
            pawl__pg_array_start(&arrays[i], "ITXZ"[i], COUNT_OF(numbers));
        }
        for (size_t i = 0; i < COUNT_OF(numbers); i++) {
            pawl__pg_array_add_i64(&arrays[0], numbers[i]);
            pawl__pg_array_add_view(&arrays[1], pawl_view_of(texts[i]));
            pawl__pg_array_add_view(&arrays[2], (pawl_view){ "\0\1", i });
            pawl__pg_array_add_time(&arrays[3], (int64_t)i - 1);
        }
        assert_ok(pawl__pg_exec(pg,
                                ECHO_ALL,
                                PG_ARGS(pawl__pg_array_value(&arrays[0]),
                                        pawl__pg_array_value(&arrays[1]),
                                        pawl__pg_array_value(&arrays[2]),
                                        pawl__pg_array_value(&arrays[3])),
                                &rows,
                                &f->err),
                  &f->err);
    }
    assert_int_equal(rows.count, COUNT_OF(numbers));
    for (size_t i = 0; i < rows.count; i++) {
        assert_int_equal(pawl__pg_get_i64(&rows, i, 0), numbers[i]);
        assert_true(pawl__view_is(pawl__pg_get_text(&rows, i, 1), texts[i]));
        assert_int_equal(pawl__pg_get_bytes(&rows, i, 2).len, i);
        assert_int_equal(pawl__pg_get_time(&rows, i, 3), (int64_t)i - 1);
    }
    pawl__pg_rows_done(&rows);
    for (size_t i = 0; i < COUNT_OF(arrays); i++) {
        pawl__pg_array_done(&arrays[i]);
    }
    pawl__pg_close(pg);
}

static void test_an_empty_array_holds_nothing(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    struct pawl__pg_array empty = PG_ARRAY_INIT;
    struct pawl__pg_array one = PG_ARRAY_INIT;
    struct pawl__pg_rows rows = { 0 };

    pawl__pg_array_start(&empty, 'T', 0);
    pawl__pg_array_start(&one, 'T', 1);
    pawl__pg_array_add_view(&one, pawl_view_of("a"));
    const struct {
        const struct pawl__pg_array *where;
        int64_t found;
    } cases[] = { { &empty, 0 }, { &one, 1 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_ok(
            pawl__pg_exec(pg,
                          COUNT_ANY,
                          PG_ARGS(pawl__pg_array_value(&one), pawl__pg_array_value(cases[i].where)),
                          &rows,
                          &f->err),
            &f->err);
        assert_int_equal(pawl__pg_get_i64(&rows, 0, 0), cases[i].found);
    }
    pawl__pg_rows_done(&rows);
    pawl__pg_array_done(&empty);
    pawl__pg_array_done(&one);
    pawl__pg_close(pg);
}

static void test_an_array_ends_at_its_limit(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    struct pawl__pg_array small = { .bytes = BUF_INIT(40) };

    pawl__pg_array_start(&small, 'T', 1);
    pawl__pg_array_add_view(&small, pawl_view_of("0123456789abcdef")); /* 20 + 4 + 16 */
    assert_false(small.bytes.broken);
    pawl__pg_array_start(&small, 'T', 1);
    pawl__pg_array_add_view(&small, pawl_view_of("0123456789abcdefg"));
    assert_status(pawl__pg_exec(pg,
                                COUNT_ANY,
                                PG_ARGS(pawl__pg_array_value(&small), pawl__pg_array_value(&small)),
                                NULL,
                                &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "parameter 1");
    pawl__pg_array_done(&small);
    pawl__pg_close(pg);
}

struct seen {
    int64_t last;
    int64_t stop_at;
};

static pawl_status see(void *context,
                       size_t index,
                       const struct pawl__pg_rows *rows,
                       pawl_error *reterr)
{
    struct seen *seen = context;

    if (rows->count != 1 || (int64_t)index != seen->last) {
        return pawl__fail(reterr, PAWL_FAILED, "row %zu has come out of order", index);
    }
    seen->last++;
    if (seen->last == seen->stop_at) {
        return pawl__fail(reterr, PAWL_CANCELLED, "enough");
    }
    return PAWL_OK;
}

static pawl_status walk(
    struct pg_fixture *f, struct pawl__pg *pg, size_t statement, int64_t rows, struct seen *seen)
{
    return pawl__pg_each(pg, statement, PG_ARGS(pawl__pg_i64(rows)), see, seen, &f->err);
}

static void test_rows_are_shown_one_by_one_in_order(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    struct seen seen = { 0 };

    assert_ok(walk(f, pg, SERIES, 5000, &seen), &f->err);
    assert_int_equal(seen.last, 5000);
    seen.last = 0;
    assert_ok(walk(f, pg, SERIES, 0, &seen), &f->err);
    assert_int_equal(seen.last, 0);
    pawl__pg_close(pg);
}

/* A short rest is read away; one of gigabytes is cancelled. The connection goes on either way. */
static void test_who_has_seen_enough_stops_the_statement(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    static const struct {
        size_t statement;
        int64_t rows;
    } cases[] = { { SERIES, 100 }, { WIDE, 50000 } };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct seen seen = { .stop_at = 3 };
        assert_status(
            walk(f, pg, cases[i].statement, cases[i].rows, &seen), PAWL_CANCELLED, &f->err);
        assert_message(&f->err, "enough");
        assert_int_equal(seen.last, 3);
        assert_false(pawl__pg_is_broken(pg));
        seen = (struct seen){ 0 };
        assert_ok(walk(f, pg, SERIES, 10, &seen), &f->err);
        assert_int_equal(seen.last, 10);
    }
    pawl__pg_close(pg);
}

static void test_a_statement_that_fails_midway_says_so_after_its_rows(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    struct seen seen = { 0 };

    assert_status(walk(f, pg, FAILS_LATER, 5, &seen), PAWL_INVALID, &f->err);
    assert_message(&f->err, "invalid input syntax");
    assert_int_equal(seen.last, 2);
    seen.last = 0;
    assert_ok(walk(f, pg, SERIES, 10, &seen), &f->err);
    pawl__pg_close(pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_arrive_as_they_were_sent),
        cmocka_unit_test(test_an_empty_array_holds_nothing),
        cmocka_unit_test(test_an_array_ends_at_its_limit),
        cmocka_unit_test(test_rows_are_shown_one_by_one_in_order),
        cmocka_unit_test(test_who_has_seen_enough_stops_the_statement),
        cmocka_unit_test(test_a_statement_that_fails_midway_says_so_after_its_rows),
    };
    return cmocka_run_group_tests(tests, pg_fixture_start, pg_fixture_stop);
}
