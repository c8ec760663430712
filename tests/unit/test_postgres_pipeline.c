/* Pipelines of the PostgreSQL wrapper: order, all or nothing, and no deadlock. */
#include "lib/pg_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "store/postgres/internal.h"

enum { ADD, ECHO, KILL_ME, MEASURE, SLEEP };

static const struct pawl__pg_statement statements[] = {
    [ADD] = { "INSERT INTO item (id, body) VALUES ($1, $2) RETURNING id", "it", "i" },
    [ECHO] = { "SELECT $1::bigint, $2::bytea", "ix", "ix" },
    [KILL_ME] = { "SELECT pg_terminate_backend(pg_backend_pid())", NULL, "b" },
    [MEASURE] = { "SELECT octet_length($1::bytea)::bigint", "x", "i" },
    [SLEEP] = { "SELECT true FROM pg_sleep($1)", "d", "b" },
};

enum { WAIT_MS_MAX = 10000 };

static const struct pawl__pg_options usual = { .statements = statements,
                                               .statement_count = COUNT_OF(statements) };

static struct pawl__pg *connect_to_items(struct pg_fixture *f)
{
    pg_admin(f,
             "DROP TABLE IF EXISTS item;"
             "CREATE TABLE item (id bigint CONSTRAINT item_id_once PRIMARY KEY, body text)");
    return pg_connect(f, &usual);
}

static pawl_status add(struct pawl__pg *pg, int64_t id, pawl_error *reterr)
{
    return pawl__pg_pipeline_add(
        pg, ADD, PG_ARGS(pawl__pg_i64(id), pawl__pg_text(pawl_view_of("body"))), reterr);
}

static int64_t count(struct pg_fixture *f)
{
    return pg_number(f, "SELECT count(*) FROM item");
}

/* Sees every statement's rows and refuses to see them out of order. */
struct seen {
    size_t next;
    size_t bytes;
    size_t refuse_at; /* 0: never */
};

static pawl_status see_id(void *context,
                          size_t index,
                          const struct pawl__pg_rows *rows,
                          pawl_error *reterr)
{
    struct seen *seen = context;

    if (index != seen->next || rows->count != 1 || pawl__pg_get_i64(rows, 0, 0) != (int64_t)index) {
        return pawl__fail(reterr, PAWL_FAILED, "out of order at %zu", index);
    }
    seen->next++;
    if (rows->columns[1] == 'x') {
        seen->bytes += pawl__pg_get_bytes(rows, 0, 1).len;
    }
    return seen->next == seen->refuse_at ? pawl__fail(reterr, PAWL_INVALID, "refused") : PAWL_OK;
}

static void test_batches_around_the_window_arrive_whole_and_in_order(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    static const size_t sizes[] = {
        0, 1, PG_WINDOW / 2, PG_WINDOW - 1, PG_WINDOW, PG_WINDOW + 1, 3 * PG_WINDOW + 5
    };

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct seen seen = { 0 };
        pg_admin(f, "TRUNCATE item");
        assert_ok(pawl__pg_pipeline_begin(pg, see_id, &seen, &f->err), &f->err);
        for (size_t id = 0; id < sizes[i]; id++) {
            assert_ok(add(pg, (int64_t)id, &f->err), &f->err);
        }
        assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
        assert_int_equal(seen.next, sizes[i]);
        assert_int_equal(count(f), sizes[i]);
    }
    pawl__pg_close(pg);
}

static void test_ten_thousand_large_rows_both_ways_do_not_deadlock(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct seen seen = { 0 };
    enum { ROWS = 10000, BYTES = 8000 };
    char *body = calloc(1, BYTES);

    assert_non_null(body);
    assert_ok(pawl__pg_pipeline_begin(pg, see_id, &seen, &f->err), &f->err);
    for (int64_t id = 0; id < ROWS; id++) {
        assert_ok(pawl__pg_pipeline_add(
                      pg,
                      ECHO,
                      PG_ARGS(pawl__pg_i64(id), pawl__pg_bytes((pawl_view){ body, BYTES })),
                      &f->err),
                  &f->err);
    }
    assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
    assert_int_equal(seen.next, ROWS);
    assert_int_equal(seen.bytes, (size_t)ROWS * BYTES);
    free(body);
    pawl__pg_close(pg);
}

static void test_values_larger_than_any_buffer_pass(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct seen seen = { 0 };
    enum { ROWS = 12, BYTES = 3 << 20 };
    char *body = calloc(1, BYTES);

    assert_non_null(body);
    assert_ok(pawl__pg_pipeline_begin(pg, see_id, &seen, &f->err), &f->err);
    for (int64_t id = 0; id < ROWS; id++) {
        assert_ok(pawl__pg_pipeline_add(
                      pg,
                      ECHO,
                      PG_ARGS(pawl__pg_i64(id), pawl__pg_bytes((pawl_view){ body, BYTES })),
                      &f->err),
                  &f->err);
    }
    assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
    assert_int_equal(seen.bytes, (size_t)ROWS * BYTES);
    free(body);
    pawl__pg_close(pg);
}

/* Adds 0 .. 199 with number 120 twice; returns how the whole ended. */
static pawl_status add_with_a_duplicate(struct pawl__pg *pg, pawl_error *reterr)
{
    pawl_status status = pawl__pg_pipeline_begin(pg, NULL, NULL, reterr);

    for (int64_t i = 0; i < 200 && status == PAWL_OK; i++) {
        status = add(pg, i == 150 ? 120 : i, reterr);
    }
    return pawl__pg_pipeline_end(pg, reterr);
}

/* The server takes the last bytes of a statement between two looks at the socket, owes no answer
 * before it is asked for one, and waits for us: so we must not wait for it. */
static void test_output_that_goes_out_at_the_last_moment_is_not_waited_for(void **state)
{
    enum { BYTES = 16 << 20, ROUNDS = 8 };
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    char *body = calloc(1, BYTES);

    assert_non_null(body);
    assert_ok(pawl__failpoint_set("postgres.pipeline.wait=delay:20", &f->err), &f->err);
    pawl__pg_set_deadline(pg, pawl__monotonic_ns(pawl__clock_real()) + WAIT_MS_MAX * NS_PER_MS);
    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
    for (int i = 0; i < ROUNDS; i++) {
        pawl_view value = { body, BYTES };
        assert_ok(pawl__pg_pipeline_add(pg, MEASURE, PG_ARGS(pawl__pg_bytes(value)), &f->err),
                  &f->err);
    }
    assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    free(body);
    pawl__pg_close(pg);
}

static void test_an_error_in_the_middle_leaves_nothing(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_status(add_with_a_duplicate(pg, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "statement 151: constraint 'item_id_once'");
    assert_string_equal(f->err.sqlstate, "23505");
    assert_int_equal(count(f), 0);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_status(add_with_a_duplicate(pg, &f->err), PAWL_CONFLICT, &f->err);
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_FAILED, &f->err);
    assert_int_equal(count(f), 0);

    /* The connection is fine, and a transaction takes two pipelines. */
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    for (int64_t i = 0; i < 2; i++) {
        assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
        assert_ok(add(pg, i, &f->err), &f->err);
        assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
        assert_int_equal(count(f), 0); /* its end is not the transaction's */
    }
    assert_ok(pawl__pg_commit(pg, &f->err), &f->err);
    assert_int_equal(count(f), 2);
    pawl__pg_close(pg);
}

static void test_a_failure_on_our_side_takes_back_what_was_sent(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    for (int in_transaction = 0; in_transaction < 2; in_transaction++) {
        if (in_transaction) {
            assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
        }
        assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
        assert_ok(add(pg, 1, &f->err), &f->err);
        assert_status(
            pawl__pg_pipeline_add(pg,
                                  ADD,
                                  PG_ARGS(pawl__pg_i64(2), pawl__pg_text((pawl_view){ "a\0b", 3 })),
                                  &f->err),
            PAWL_INVALID,
            &f->err);
        assert_message(&f->err, "statement 2: parameter 2");
        assert_status(add(pg, 3, &f->err), PAWL_INVALID, &f->err); /* it has failed already */
        assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_INVALID, &f->err);
        assert_message(&f->err, "statement 2: parameter 2");
        if (in_transaction) {
            assert_status(pawl__pg_commit(pg, &f->err), PAWL_FAILED, &f->err);
        }
        assert_int_equal(count(f), 0);
    }
    pawl__pg_close(pg);
}

static void test_a_reader_that_refuses_a_row_fails_the_whole(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    enum { MANY = 5 * PG_WINDOW };
    static const size_t refuse_at[] = { 1, 100, MANY };

    for (size_t i = 0; i < COUNT_OF(refuse_at); i++) {
        struct seen seen = { .refuse_at = refuse_at[i] };
        pawl_status status = pawl__pg_pipeline_begin(pg, see_id, &seen, &f->err);
        for (int64_t id = 0; id < MANY && status == PAWL_OK; id++) {
            status = add(pg, id, &f->err);
        }
        status = pawl__pg_pipeline_end(pg, &f->err);
        assert_status(status, PAWL_INVALID, &f->err);
        assert_message(&f->err, "refused");
        assert_int_equal(seen.next, refuse_at[i]);
        assert_int_equal(count(f), 0);
    }
    pawl__pg_close(pg);
}

static void test_an_abandoned_pipeline_leaves_nothing(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    pawl__pg_pipeline_abandon(pg);
    pawl__pg_pipeline_abandon(pg); /* once more does nothing */
    assert_int_equal(count(f), 0);

    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    pawl__pg_rollback(pg); /* closes the pipeline, too */
    assert_false(pawl__pg_is_broken(pg));
    assert_int_equal(count(f), 0);
    pawl__pg_close(pg);
}

static void test_a_link_lost_in_the_middle_is_told(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_add(pg, KILL_ME, PG_NO_ARGS, &f->err), &f->err);
    pawl_status status = PAWL_OK;
    for (int64_t i = 2; i < 20000 && status == PAWL_OK; i++) {
        status = add(pg, i, &f->err);
    }
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_not_equal(f->err.sqlstate, "08007"); /* the commit never left us */
    assert_true(pawl__pg_is_broken(pg));
    assert_int_equal(count(f), 0);

    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err); /* a new link */
    assert_ok(pawl__pg_pipeline_add(pg, KILL_ME, PG_NO_ARGS, &f->err), &f->err);
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_equal(f->err.sqlstate, "08007"); /* this one did */
    assert_message(&f->err, "whether the pipeline was stored is not known");

    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
    assert_int_equal(count(f), 1);
    pawl__pg_close(pg);
}

static void test_a_deadline_stops_a_pipeline_and_takes_it_back(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    pawl__pg_set_deadline(pg, in_ms(100));
    assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_add(pg, SLEEP, PG_ARGS(pawl__pg_double(60)), &f->err), &f->err);
    assert_ok(add(pg, 2, &f->err), &f->err);
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_TIMEOUT, &f->err);
    assert_false(pawl__pg_is_broken(pg));
    pawl__pg_set_deadline(pg, 0);
    assert_int_equal(count(f), 0);
    pawl__pg_close(pg);
}

static void test_failpoints_stand_before_and_after_the_end(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    static const struct {
        const char *point;
        int64_t stored;
    } cases[] = { { "postgres.pipeline.before=error:IO", 0 },
                  { "postgres.pipeline.after=error:IO", 1 } };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_ok(pawl__failpoint_set(cases[i].point, &f->err), &f->err);
        assert_ok(pawl__pg_pipeline_begin(pg, NULL, NULL, &f->err), &f->err);
        assert_ok(add(pg, 1, &f->err), &f->err);
        assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_IO, &f->err);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        assert_int_equal(count(f), cases[i].stored);
    }
    pawl__pg_close(pg);
}

/* --- transactions that begin and end in pipelines --- */

static void begin_with(struct pg_fixture *f, struct pawl__pg *pg, struct seen *seen, int64_t id)
{
    assert_ok(pawl__pg_pipeline_begin_transaction(pg, see_id, seen, &f->err), &f->err);
    assert_ok(add(pg, id, &f->err), &f->err);
}

static void test_a_transaction_begins_and_ends_in_pipelines(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct seen seen = { 0 };

    begin_with(f, pg, &seen, 0);
    assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
    assert_true(pawl__pg_in_transaction(pg));
    assert_int_equal(count(f), 0);
    seen.next = 0;
    assert_ok(pawl__pg_pipeline_begin(pg, see_id, &seen, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_commit(pg, &f->err), &f->err);
    assert_ok(add(pg, 0, NULL), &f->err); /* behind the COMMIT: it fails alone */
    assert_ok(pawl__pg_pipeline_end(pg, &f->err), &f->err);
    assert_false(pawl__pg_in_transaction(pg));
    assert_int_equal(seen.next, 0);
    assert_int_equal(count(f), 1);
    pawl__pg_close(pg);
}

static void test_a_failure_before_its_commit_leaves_nothing(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct seen seen = { 0 };

    begin_with(f, pg, &seen, 0);
    assert_ok(add(pg, 0, &f->err), &f->err); /* the same id again */
    assert_ok(pawl__pg_pipeline_commit(pg, &f->err), &f->err);
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_CONFLICT, &f->err);
    pawl__pg_rollback(pg);
    assert_false(pawl__pg_in_transaction(pg));
    assert_int_equal(count(f), 0);
    pawl__pg_close(pg);
}

static void test_a_reader_that_refuses_a_row_aborts_the_transaction(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    struct seen seen = { .refuse_at = 1 };

    begin_with(f, pg, &seen, 0);
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_INVALID, &f->err);
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_FAILED, &f->err);
    assert_int_equal(count(f), 0);
    pawl__pg_close(pg);
}

static void test_a_link_lost_before_the_answer_to_commit_is_an_unknown_outcome(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(pawl__pg_pipeline_begin_transaction(pg, NULL, NULL, &f->err), &f->err);
    assert_ok(add(pg, 0, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_add(pg, KILL_ME, PG_NO_ARGS, &f->err), &f->err);
    assert_ok(pawl__pg_pipeline_commit(pg, &f->err), &f->err);
    assert_status(pawl__pg_pipeline_end(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_equal(f->err.sqlstate, "08007");
    assert_false(pawl__pg_in_transaction(pg));
    assert_int_equal(count(f), 0);
    pawl__pg_close(pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_around_the_window_arrive_whole_and_in_order),
        cmocka_unit_test(test_ten_thousand_large_rows_both_ways_do_not_deadlock),
        cmocka_unit_test(test_values_larger_than_any_buffer_pass),
        cmocka_unit_test(test_output_that_goes_out_at_the_last_moment_is_not_waited_for),
        cmocka_unit_test(test_an_error_in_the_middle_leaves_nothing),
        cmocka_unit_test(test_a_failure_on_our_side_takes_back_what_was_sent),
        cmocka_unit_test(test_a_reader_that_refuses_a_row_fails_the_whole),
        cmocka_unit_test(test_an_abandoned_pipeline_leaves_nothing),
        cmocka_unit_test(test_a_link_lost_in_the_middle_is_told),
        cmocka_unit_test(test_a_deadline_stops_a_pipeline_and_takes_it_back),
        cmocka_unit_test(test_failpoints_stand_before_and_after_the_end),
        cmocka_unit_test(test_a_transaction_begins_and_ends_in_pipelines),
        cmocka_unit_test(test_a_failure_before_its_commit_leaves_nothing),
        cmocka_unit_test(test_a_reader_that_refuses_a_row_aborts_the_transaction),
        cmocka_unit_test(test_a_link_lost_before_the_answer_to_commit_is_an_unknown_outcome),
    };
    return cmocka_run_group_tests_name(
        "postgres_pipeline", tests, pg_fixture_start, pg_fixture_stop);
}
