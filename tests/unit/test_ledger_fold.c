/* Folding on every backend: what counts, how far it covers, and the past. */
#include "lib/ledger_fixture.h"

#include "base/core/error.h"
#include "base/os/clock.h"

static pawl_status add_payload(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)reterr;
    pawl__buf_add(context, event->payload);
    pawl__buf_add_char(context, ' ');
    return PAWL_OK;
}

/* "payloads| covered" */
static void assert_folds(struct ledger_fixture *f,
                         const pawl_fold_options *options,
                         const char *expected)
{
    struct pawl__buf text = BUF_INIT(4096);
    uint64_t covered = 0;

    assert_ok(pawl_ledger_fold(f->ledger, options, add_payload, &text, &covered, &f->err), &f->err);
    pawl__buf_add_format(&text, "| %llu", (unsigned long long)covered);
    assert_text(&text, expected);
    pawl__buf_done(&text);
}

static void commit(struct ledger_fixture *f, pawl_turn *turn)
{
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
}

/* Offsets 1 .. 10: 1 outside, 2-5 abandoned attempt, 6-9 committed one, 10 outside. */
static void make_history(struct ledger_fixture *f)
{
    append_one(f, "out1", 0, "1");
    pawl_turn *turn = begin_turn(f, "r", 1);
    turn_says(f, turn, "3 4");
    pawl_turn_free(turn);
    turn = begin_turn(f, "r", 1); /* 5 abandons, 6 begins */
    turn_says(f, turn, "7 8");
    commit(f, turn);
    append_one(f, "out2", 1, "10"); /* of the same turn, but behind its end */
}

static void test_a_fold_leaves_abandoned_attempts_and_own_kinds_out(void **state)
{
    struct ledger_fixture *f = *state;

    assert_folds(f, NULL, "| 0");
    make_history(f);
    assert_folds(f, NULL, "1 7 8 10 | 10");
}

static void test_a_fold_goes_on_from_what_it_covered(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;

    make_history(f);
    pawl_turn *turn = begin_turn(f, "r", 2);
    turn_says(f, turn, "12");
    append_one(f, "out3", 0, "13");
    assert_folds(f, NULL, "1 7 8 10 | 10"); /* before the open turn, all of it */
    options.from = 10;
    assert_folds(f, &options, "| 10");
    commit(f, turn);
    assert_folds(f, &options, "12 13 | 14");
    options.from = 14;
    assert_folds(f, &options, "| 14");
}

static void test_a_fold_from_after_the_end_is_refused(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;
    struct pawl__buf text = BUF_INIT(4096);

    make_history(f);
    options.from = 11; /* the projection of another ledger, or of a longer one */
    assert_status(pawl_ledger_fold(f->ledger, &options, add_payload, &text, NULL, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "from: is 11, but the ledger ends at offset 10");
    assert_int_equal(text.len, 0);
}

static pawl_status fail_without_a_word(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)event;
    (void)reterr;
    return *(pawl_status *)context;
}

static void test_a_step_that_fails_without_a_word_is_given_one(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_status statuses[] = { PAWL_NOT_FOUND, PAWL_CANCELLED, PAWL_FAILED };
    pawl_status none[] = { (pawl_status)9999, (pawl_status)-1 };

    make_history(f);
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        assert_status(
            pawl_ledger_fold(f->ledger, NULL, fail_without_a_word, &statuses[i], NULL, &f->err),
            statuses[i],
            &f->err);
        assert_message(&f->err, "the step of the fold returned");
        assert_message(&f->err, pawl_status_name(statuses[i]));
    }
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        assert_status(
            pawl_ledger_fold(f->ledger, NULL, fail_without_a_word, &none[i], NULL, &f->err),
            PAWL_FAILED,
            &f->err);
        assert_message(&f->err, "which is no pawl_status");
    }
}

static void test_the_past_is_what_was_complete_at_that_offset(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;
    static const char *const expected[] = {
        "",
        "1 | 1", /* the attempt that begins at 2 ... */
        "1 | 1", /* ... is open, as far as one knew */
        "1 | 1",
        "1 | 1",
        "1 | 5", /* abandoned */
        "1 | 5", /* the second is open */
        "1 | 5",
        "1 | 5",
        "1 7 8 | 9", /* committed */
        "1 7 8 10 | 10",
        "1 7 8 10 | 10" /* beyond the end is now */
    };

    make_history(f);
    for (size_t i = 1; i < COUNT_OF(expected); i++) {
        options.up_to = i;
        assert_folds(f, &options, expected[i]);
    }
}

static void test_a_filter_narrows_a_fold(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;

    make_history(f);
    pawl_turn *open = begin_turn(f, "q", 1);
    append_one(f, "out3", 5, "12");
    options.filter = &filter;
    filter.turn_min = 1;
    assert_folds(f, &options, "7 8 10 | 10");
    filter.run_id = pawl_view_of("r");
    assert_folds(f, &options, "7 8 10 12 | 12");
    pawl_turn_free(open);
}

static void append_at(struct ledger_fixture *f, const char *payload, int64_t second)
{
    pawl_event event = event_of(payload, 0, payload);

    event.created_at_us = second * US_PER_S;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
}

static void test_the_past_is_what_was_not_later_than_a_time(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;

    append_at(f, "1", 10);
    append_at(f, "2", 20);
    append_at(f, "3", 30);
    append_at(f, "4", 15); /* times need not be in order */
    options.up_to_time_us = 20 * US_PER_S;
    assert_folds(f, &options, "1 2 4 | 2");
    options.up_to_time_us = 20 * US_PER_S - 1;
    assert_folds(f, &options, "1 4 | 1");
    options.up_to_time_us = 5 * US_PER_S;
    assert_folds(f, &options, "| 0");
    options.up_to_time_us = 30 * US_PER_S;
    assert_folds(f, &options, "1 2 3 4 | 4");
    options.from = 2;
    options.up_to = 3;
    assert_folds(f, &options, "3 | 3");
}

static void test_a_turn_counts_from_the_time_of_its_commit(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_fold_options options = PAWL_FOLD_OPTIONS_INIT;
    pawl_event event = { .size = sizeof(pawl_event),
                         .kind = { "k", 1 },
                         .actor = { "a", 1 },
                         .payload = { "3", 1 },
                         .created_at_us = 20 * US_PER_S };

    append_at(f, "1", 10);
    pawl_turn *turn = begin_turn(f, "r", 1);
    assert_ok(pawl_turn_append(turn, &event, 1, NULL, &f->err), &f->err);
    commit(f, turn); /* now, long after 1970 */
    append_at(f, "5", 30);
    options.up_to_time_us = 40 * US_PER_S;
    assert_folds(f, &options, "1 5 | 1");
    options.up_to_time_us = INT64_MAX - 1;
    assert_folds(f, &options, "1 3 5 | 5");
}

struct stopping {
    int left;
    pawl_status with;
};

static pawl_status stop_later(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct stopping *stopping = context;

    (void)event;
    return stopping->left-- > 0 ? PAWL_OK : pawl__fail(reterr, stopping->with, "enough");
}

static void test_a_step_that_fails_ends_the_fold_with_its_status(void **state)
{
    struct ledger_fixture *f = *state;
    static const pawl_status statuses[] = { PAWL_CANCELLED, PAWL_NOT_FOUND, PAWL_INVALID };

    make_history(f);
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        struct stopping stopping = { 2, statuses[i] };
        uint64_t covered = 77;
        assert_status(pawl_ledger_fold(f->ledger, NULL, stop_later, &stopping, &covered, &f->err),
                      statuses[i],
                      &f->err);
        assert_int_equal(covered, 77);
        assert_int_equal(stopping.left, -1);
    }
    assert_status(
        pawl_ledger_fold(f->ledger, NULL, NULL, NULL, NULL, &f->err), PAWL_INVALID, &f->err);
    struct stopping never = { 100, PAWL_OK };
    assert_ok(pawl_ledger_fold(f->ledger, NULL, stop_later, &never, NULL, &f->err), &f->err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_a_fold_leaves_abandoned_attempts_and_own_kinds_out),
        LEDGER_TEST(test_a_fold_goes_on_from_what_it_covered),
        LEDGER_TEST(test_a_fold_from_after_the_end_is_refused),
        LEDGER_TEST(test_a_step_that_fails_without_a_word_is_given_one),
        LEDGER_TEST(test_the_past_is_what_was_complete_at_that_offset),
        LEDGER_TEST(test_a_filter_narrows_a_fold),
        LEDGER_TEST(test_the_past_is_what_was_not_later_than_a_time),
        LEDGER_TEST(test_a_turn_counts_from_the_time_of_its_commit),
        LEDGER_TEST(test_a_step_that_fails_ends_the_fold_with_its_status),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
