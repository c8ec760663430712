/* Commits that fail, and commits whose answer is lost: the caller tries again, and each event is
 * there once. On SQLite, whose commit has failpoints on both sides. */
#include "lib/ledger_fixture.h"

#include "base/os/failpoint.h"

/* False in a build without failpoints. */
static bool fail_at(struct ledger_fixture *f, const char *specification)
{
    pawl_status status = pawl__failpoint_set(specification, &f->err);

    if (status == PAWL_UNSUPPORTED) {
        return false;
    }
    assert_ok(status, &f->err);
    return true;
}

static int teardown(void **state)
{
    (void)!pawl__failpoint_set(NULL, NULL);
    return ledger_fixture_teardown(state);
}

static void test_a_commit_that_fails_leaves_nothing(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event events[] = { event_of("1", 0, "1"), event_of("2", 0, "2") };
    pawl_append_result results[2] = { { .size = sizeof(pawl_append_result), .offset = 99 } };

    if (!fail_at(f, "sqlite.commit.before=error:NO_SPACE*1")) {
        return;
    }
    assert_status(
        pawl_ledger_append_many(f->ledger, events, 2, results, &f->err), PAWL_NO_SPACE, &f->err);
    assert_int_equal(results[0].offset, 99);
    assert_int_equal(latest_offset(f), 0);
    assert_ok(pawl_ledger_append_many(f->ledger, events, 2, results, &f->err), &f->err);
    assert_int_equal(results[0].offset, 1);
    assert_false(results[0].duplicate);
}

static void test_a_lost_answer_is_found_by_appending_again(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("1", 0, "1");
    pawl_append_result result = { .size = sizeof(pawl_append_result), .offset = 99 };

    if (!fail_at(f, "sqlite.commit.after=error:TIMEOUT*1")) {
        return;
    }
    assert_status(pawl_ledger_append(f->ledger, &event, &result, &f->err), PAWL_TIMEOUT, &f->err);
    assert_true(f->err.retryable);
    assert_int_equal(result.offset, 99);
    assert_ok(pawl_ledger_append(f->ledger, &event, &result, &f->err), &f->err);
    assert_int_equal(result.offset, 1);
    assert_true(result.duplicate);
    assert_reads(f, NULL, "1 r/0 k 1\nat 1\n");
}

static void test_a_turn_that_lost_its_answers_says_everything_once(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = begin_turn(f, "r", 1);
    pawl_event events[] = {
        { .size = sizeof(pawl_event),
          .kind = { "k", 1 },
          .actor = { "a", 1 },
          .payload = { "1", 1 } },
        { .size = sizeof(pawl_event),
          .kind = { "k", 1 },
          .actor = { "a", 1 },
          .payload = { "2", 1 } },
    };
    pawl_append_result results[2] = { { .size = sizeof(pawl_append_result), .offset = 99 } };

    if (!fail_at(f, "sqlite.commit.after=error:TIMEOUT*1")) {
        pawl_turn_free(turn);
        return;
    }
    assert_status(pawl_turn_append(turn, events, 2, results, &f->err), PAWL_TIMEOUT, &f->err);
    assert_ok(pawl_turn_append(turn, events, 2, results, &f->err), &f->err);
    assert_true(results[0].duplicate);
    assert_int_equal(results[1].offset, 3);

    assert_true(fail_at(f, "sqlite.commit.after=error:TIMEOUT*1"));
    events[0].payload = pawl_view_of("3");
    assert_status(pawl_turn_append(turn, events, 1, results, &f->err), PAWL_TIMEOUT, &f->err);
    events[0].payload = pawl_view_of("4"); /* something else instead: it is found out */
    assert_status(pawl_turn_append(turn, events, 1, results, &f->err), PAWL_CONFLICT, &f->err);
    events[0].payload = pawl_view_of("3");
    assert_ok(pawl_turn_append(turn, events, 1, results, &f->err), &f->err);
    events[0].payload = pawl_view_of("4");
    assert_ok(pawl_turn_append(turn, events, 1, results, &f->err), &f->err);
    assert_false(results[0].duplicate);

    assert_true(fail_at(f, "sqlite.commit.after=error:TIMEOUT*1"));
    assert_status(pawl_turn_commit(turn, &f->err), PAWL_TIMEOUT, &f->err);
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    assert_reads(f,
                 NULL,
                 "1 r/1 turn.begin {\"attempt\":1}\n2 r/1 k 1\n3 r/1 k 2\n4 r/1 k 3\n5 r/1 k 4\n"
                 "6 r/1 turn.commit {\"attempt\":1}\nat 6\n");
}

static void test_a_begin_that_lost_its_answer_is_abandoned_by_the_next(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = NULL;

    if (!fail_at(f, "sqlite.commit.after=error:TIMEOUT*1")) {
        return;
    }
    assert_status(
        pawl_turn_begin(f->ledger, pawl_view_of("r"), 1, &turn, &f->err), PAWL_TIMEOUT, &f->err);
    assert_null(turn);
    turn = begin_turn(f, "r", 1);
    assert_int_equal(pawl_turn_attempt(turn), 2);
    pawl_turn_free(turn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_commit_that_fails_leaves_nothing, ledger_fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_lost_answer_is_found_by_appending_again, ledger_fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_turn_that_lost_its_answers_says_everything_once, ledger_fixture_setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_begin_that_lost_its_answer_is_abandoned_by_the_next,
                                        ledger_fixture_setup,
                                        teardown),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
