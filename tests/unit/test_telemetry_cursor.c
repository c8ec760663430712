/* Which database an answer comes from, what a cursor passes, and what becomes of gaps. */
#include "lib/check.h"
#include "lib/trace.h"

#include <inttypes.h>
#include <stdio.h>

#include "telemetry/core/cursor.h"
#include "telemetry/core/epochs.h"
#include "telemetry/core/retention.h"

/* A cursor, the next answer, and a trace of what was decided. */
struct story {
    struct trace trace;
    struct telemetry_cursor cursor;
    struct telemetry_page page;
    struct telemetry_gaps gaps;
    pawl_error error;
};

static struct telemetry_id id_of(const char *text)
{
    struct telemetry_id id = { "" };

    snprintf(id.text, sizeof(id.text), "%s", text);
    return id;
}

static struct story begin(void)
{
    struct story story = { .trace = trace_start(), .error = PAWL_ERROR_INIT };
    struct telemetry_id session = id_of("S");

    assert_ok(pawl__telemetry_cursor_begin(&story.cursor, &session, &story.error), &story.error);
    return story;
}

static void end(struct story *story, const char *expected)
{
    assert_trace(&story->trace, expected);
    trace_done(&story->trace);
    pawl__telemetry_cursor_done(&story->cursor);
    pawl__telemetry_gaps_done(&story->gaps);
    pawl__telemetry_page_done(&story->page);
}

static void answer(struct story *story, uint64_t min_available, uint64_t high_water)
{
    pawl__telemetry_page_clear(&story->page);
    story->page.session = id_of("S");
    story->page.min_available = min_available;
    story->page.high_water = high_water;
    story->page.scanned_to = high_water;
}

static void epoch(struct story *story, const char *id, uint64_t first)
{
    const struct telemetry_epoch epoch = { id_of(id), first };

    assert_ok(pawl__telemetry_page_add_epoch(&story->page, &epoch, &story->error), &story->error);
}

static void rows(struct story *story, uint64_t from, uint64_t to)
{
    bool fits = true;

    for (uint64_t seq_id = from; seq_id <= to; seq_id++) {
        assert_ok(
            pawl__telemetry_page_add(&story->page, seq_id, pawl_view_of("x"), &fits, &story->error),
            &story->error);
    }
}

static void tell_gaps(struct story *story)
{
    for (size_t i = 0; i < story->gaps.count; i++) {
        const struct telemetry_gap *gap = &story->gaps.at[i];
        trace_add(&story->trace,
                  "  %s %" PRIu64 "-%" PRIu64 " in '%s' (%s)",
                  pawl__telemetry_gap_status_name(gap->status),
                  gap->start,
                  gap->end,
                  gap->generation.text,
                  pawl__telemetry_gap_reason_name(gap->reason));
    }
    story->gaps.count = 0;
}

/* What a poll does with the answer. */
static void receive(struct story *story)
{
    static const char *const names[] = { "same", "other session", "fork" };
    const struct telemetry_gap like = { .session = story->cursor.session };
    enum telemetry_identity identity = TELEMETRY_SAME;
    pawl_status status = pawl__telemetry_identify(
        &story->cursor, &story->page, &like, &identity, &story->gaps, &story->error);

    if (status == PAWL_OK && identity == TELEMETRY_SAME) {
        status = pawl__telemetry_receive(
            &story->cursor, &story->page, 0, story->page.count, &like, &story->gaps, &story->error);
    }
    if (status != PAWL_OK) {
        trace_add(&story->trace, "refused: %s", story->error.message);
        story->error = (pawl_error)PAWL_ERROR_INIT;
    } else {
        const struct telemetry_generation *at = pawl__telemetry_current(&story->cursor);
        trace_add(&story->trace, "%s: '%s' at %" PRIu64, names[identity], at->id.text, at->last);
    }
    tell_gaps(story);
}

/* --- holes --- */

static void test_a_gap_at_4_of_1_2_3_5_6_is_recorded(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 6);
    epoch(&story, "E1", 1);
    rows(&story, 1, 3);
    rows(&story, 5, 6);
    receive(&story);
    end(&story, "[  0] same: '' at 6\n[  0]   suspected 4-4 in '' (hole)\n");
}

static void test_continuous_ids_make_no_gap(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 5);
    epoch(&story, "E1", 1);
    rows(&story, 1, 5);
    receive(&story);
    end(&story, "[  0] same: '' at 5\n");
}

static void test_a_gap_between_the_checkpoint_and_the_first_row_and_across_batches_is_recorded(
    void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 9);
    epoch(&story, "E1", 1);
    rows(&story, 3, 5);
    receive(&story);
    answer(&story, 1, 9);
    rows(&story, 8, 9);
    receive(&story);
    end(&story,
        "[  0] same: '' at 5\n[  0]   suspected 1-2 in '' (hole)\n"
        "[  0] same: '' at 9\n[  0]   suspected 6-7 in '' (hole)\n");
}

static void test_what_retention_took_is_permanent_at_once(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 6, 9);
    epoch(&story, "E1", 1);
    rows(&story, 6, 9);
    receive(&story);
    answer(&story, 21, 20); /* everything is gone */
    receive(&story);
    end(&story,
        "[  0] same: '' at 9\n[  0]   permanent 1-5 in '' (retention)\n"
        "[  0] same: '' at 20\n[  0]   permanent 10-20 in '' (retention)\n");
}

static void test_an_empty_page_below_the_mark_is_refused(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, UINT64_C(1000000000000000));
    epoch(&story, "E1", 1);
    receive(&story);
    end(&story,
        "[  0] refused: the agent sent no row after 0, and says that it has given "
        "1000000000000000\n");
}

/* --- which database --- */

static void test_a_restart_continues(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 3);
    epoch(&story, "E1", 1);
    rows(&story, 1, 3);
    receive(&story);
    answer(&story, 1, 5);
    epoch(&story, "E2", 4);
    rows(&story, 4, 5);
    receive(&story);
    end(&story, "[  0] same: '' at 3\n[  0] same: '' at 5\n");
}

static void test_a_restored_copy_begins_a_generation(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 12);
    epoch(&story, "E1", 1);
    rows(&story, 1, 10); /* 11 and 12 are known, and never came */
    receive(&story);
    answer(&story, 1, 9);
    epoch(&story, "F", 8); /* the copy had 7 rows */
    receive(&story);
    answer(&story, 1, 9);
    rows(&story, 8, 9);
    receive(&story);
    end(&story,
        "[  0] same: '' at 10\n"
        "[  0] fork: 'F' at 7\n[  0]   permanent 11-12 in '' (fork)\n"
        "[  0] same: 'F' at 9\n");
}

static void test_rows_below_a_fork_are_still_owed_to_the_old_generation(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 12);
    epoch(&story, "E1", 1);
    rows(&story, 1, 3);
    receive(&story);
    answer(&story, 1, 9);
    epoch(&story, "F", 8);
    receive(&story);
    struct telemetry_id first = id_of("");
    assert_int_equal(pawl__telemetry_reach(&story.cursor, &first), 7);
    end(&story,
        "[  0] same: '' at 3\n"
        "[  0] fork: 'F' at 7\n[  0]   detected 4-7 in '' (fork)\n[  0]   permanent 8-12 in '' "
        "(fork)\n");
}

static void test_two_opens_between_polls_after_a_restore_are_one_generation(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 10);
    epoch(&story, "E1", 1);
    rows(&story, 1, 10);
    receive(&story);
    answer(&story, 1, 20);
    epoch(&story, "F", 6);
    epoch(&story, "G", 13);
    receive(&story);
    answer(&story, 1, 20);
    rows(&story, 6, 20);
    receive(&story);
    end(&story, "[  0] same: '' at 10\n[  0] fork: 'F' at 5\n[  0] same: 'F' at 20\n");
}

static void test_a_copy_of_an_abandoned_line_is_recognised(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 10);
    epoch(&story, "E1", 1);
    rows(&story, 1, 10);
    receive(&story);
    answer(&story, 1, 7); /* restored at 5 */
    epoch(&story, "F", 6);
    receive(&story);
    answer(&story, 1, 7);
    rows(&story, 6, 7);
    receive(&story);
    answer(
        &story, 1, 14); /* and the line of E1 comes back, with 12 rows: the agent does not know F */
    epoch(&story, "E1", 1);
    epoch(&story, "G", 13);
    receive(&story);
    end(&story,
        "[  0] same: '' at 10\n[  0] fork: 'F' at 5\n[  0] same: 'F' at 7\n"
        "[  0] fork: 'G' at 12\n[  0]   detected 11-12 in '' (fork)\n");
}

static void test_a_sequence_that_goes_back_without_an_epoch_is_refused(void **state)
{
    struct story story = begin();

    (void)state;
    answer(&story, 1, 10);
    epoch(&story, "E1", 1);
    rows(&story, 1, 10);
    receive(&story);
    answer(&story, 1, 4);
    receive(&story);
    end(&story,
        "[  0] same: '' at 10\n"
        "[  0] refused: the agent's sequence went back from 10 to 4 without a new epoch\n");
}

static void test_the_end_of_a_session_loses_what_was_known(void **state)
{
    struct story story = begin();
    const struct telemetry_gap like = { .session = id_of("S") };

    (void)state;
    answer(&story, 1, 12);
    epoch(&story, "E1", 1);
    rows(&story, 1, 10);
    receive(&story);
    answer(&story, 1, 2);
    story.page.session = id_of("T");
    receive(&story);
    assert_ok(pawl__telemetry_end_session(&story.cursor, &like, &story.gaps, &story.error),
              &story.error);
    tell_gaps(&story);
    end(&story,
        "[  0] same: '' at 10\n[  0] other session: '' at 10\n[  0]   permanent 11-12 in '' "
        "(session)\n");
}

/* --- lies --- */

static void expect_lie(struct story *story, const struct telemetry_query *query, const char *what)
{
    assert_status(pawl__telemetry_page_check(query, &story->page, &story->error),
                  PAWL_INVALID,
                  &story->error);
    assert_message(&story->error, what);
    story->error = (pawl_error)PAWL_ERROR_INIT;
}

static void test_an_agent_that_lies_is_found_out(void **state)
{
    struct story story = begin();
    struct telemetry_query query = { .type = TELEMETRY_SPANS, .start = 3, .rows_max = 10 };

    (void)state;
    answer(&story, 1, 9);
    rows(&story, 4, 6);
    assert_ok(pawl__telemetry_page_check(&query, &story.page, &story.error), &story.error);
    story.page.session = id_of("");
    expect_lie(&story, &query, "names no session");
    answer(&story, 1, 9);
    rows(&story, 3, 4);
    expect_lie(&story, &query, "at or below start_seq_id");
    answer(&story, 1, 9);
    rows(&story, 5, 6);
    rows(&story, 5, 5);
    expect_lie(&story, &query, "out of order");
    answer(&story, 1, 9);
    rows(&story, 9, 10);
    story.page.scanned_to = 10;
    expect_lie(&story, &query, "outside of what the agent says");
    answer(&story, 1, UINT64_MAX);
    expect_lie(&story, &query, "above 2^63");
    answer(&story, 0, 9);
    expect_lie(&story, &query, "min_available_seq_id");
    answer(&story, 1, 9);
    epoch(&story, "E2", 5);
    epoch(&story, "E3", 4);
    expect_lie(&story, &query, "an epoch begins before");
    query.end = 5;
    answer(&story, 1, 9);
    rows(&story, 5, 6);
    expect_lie(&story, &query, "above end_seq_id");
    end(&story, "");
}

/* --- the life of a gap --- */

static const struct telemetry_gap_rules rules = {
    .run = 7, .run_began_ns = 0, .grace_ns = 10 * NS_PER_S, .attempts_max = 3
};

static struct telemetry_gap judge(struct story *story, struct telemetry_gap gap)
{
    assert_ok(pawl__telemetry_gap_judge(&gap, &story->page, &rules, &story->gaps, &story->error),
              &story->error);
    struct telemetry_gap first = story->gaps.at[0];
    tell_gaps(story);
    return first;
}

static void test_a_gap_is_asked_for_after_its_grace_then_three_times(void **state)
{
    struct story story = begin();
    struct telemetry_gap gap = { .id = 4, .start = 4, .end = 6, .run = 7 };

    (void)state;
    gap.seen_ns = trace_now_ns(&story.trace);
    answer(&story, 1, 9);
    trace_at(&story.trace, 9);
    assert_false(pawl__telemetry_gap_grace_is_over(&gap, &rules, trace_now_ns(&story.trace)));
    trace_at(&story.trace, 10);
    assert_true(pawl__telemetry_gap_grace_is_over(&gap, &rules, trace_now_ns(&story.trace)));
    gap = judge(&story, gap);
    assert_int_equal(gap.attempts, 0);
    for (int64_t round = 1; round <= 3; round++) {
        trace_at(&story.trace, round * 300);
        gap = judge(&story, gap);
    }
    end(&story,
        "[ 10]   detected 4-6 in '' (hole)\n[300]   detected 4-6 in '' (hole)\n"
        "[600]   detected 4-6 in '' (hole)\n[900]   permanent 4-6 in '' (attempts)\n");
}

static void test_progress_shrinks_a_gap_and_gives_it_new_attempts(void **state)
{
    struct story story = begin();
    struct telemetry_gap gap = {
        .id = 4, .start = 4, .end = 9, .status = TELEMETRY_GAP_DETECTED, .attempts = 2
    };

    (void)state;
    answer(&story, 1, 20);
    rows(&story, 4, 6);
    gap = judge(&story, gap);
    assert_int_equal(gap.attempts, 0);
    assert_int_equal(gap.id, 4);
    answer(&story, 1, 20);
    rows(&story, 8, 8);
    gap = judge(&story, gap);
    assert_int_equal(gap.id, 4);
    answer(&story, 1, 20);
    rows(&story, 7, 7);
    gap = judge(&story, gap);
    end(&story,
        "[  0]   detected 7-9 in '' (hole)\n"
        "[  0]   detected 7-7 in '' (hole)\n[  0]   detected 9-9 in '' (hole)\n"
        "[  0]   recovered 7-7 in '' (hole)\n");
}

static void test_a_gap_below_min_available_is_permanent_at_once(void **state)
{
    struct story story = begin();
    struct telemetry_gap gap = { .id = 4, .start = 4, .end = 9, .status = TELEMETRY_GAP_DETECTED };

    (void)state;
    answer(&story, 7, 20);
    rows(&story, 7, 9);
    judge(&story, gap);
    end(&story, "[  0]   permanent 4-6 in '' (retention)\n");
}

static void test_a_gap_that_an_earlier_run_saw_gets_its_grace_from_the_start_of_this_run(
    void **state)
{
    const struct telemetry_gap gap = { .run = 6, .seen_ns = 1 };
    struct telemetry_gap_rules later = rules;

    (void)state;
    later.run_began_ns = 100 * NS_PER_S;
    assert_false(pawl__telemetry_gap_grace_is_over(&gap, &later, 109 * NS_PER_S));
    assert_true(pawl__telemetry_gap_grace_is_over(&gap, &later, 110 * NS_PER_S));
}

static void test_a_round_is_shared_between_agents(void **state)
{
    const size_t waiting[] = { 500, 1, 500 };
    size_t shares[3];

    (void)state;
    pawl__telemetry_share(waiting, 3, 0, 100, shares);
    assert_int_equal(shares[1], 1);
    assert_int_equal(shares[0] + shares[1] + shares[2], 100);
    assert_true(shares[0] == 50 && shares[2] == 49);
    pawl__telemetry_share(waiting, 3, 2, 1, shares);
    assert_true(shares[0] == 0 && shares[1] == 0 && shares[2] == 1);
    pawl__telemetry_share(waiting, 0, 0, 100, shares);
}

/* --- the agent's epochs --- */

static void open_epoch(struct telemetry_epochs *epochs, const char *id, uint64_t counter)
{
    uint64_t counters[TELEMETRY_TYPE_COUNT] = { counter };
    pawl_error error = PAWL_ERROR_INIT;
    struct telemetry_id name = id_of(id);

    assert_ok(pawl__telemetry_epochs_open(epochs, &name, counters, &error), &error);
}

static void test_epochs_without_rows_leave_the_list(void **state)
{
    struct telemetry_epochs epochs = { .at = NULL };
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);
    struct telemetry_epochs again = { .at = NULL };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    open_epoch(&epochs, "E1", 0);
    open_epoch(&epochs, "E2", 0);
    assert_int_equal(epochs.count, 1); /* nothing was given in E1 */
    open_epoch(&epochs, "E3", 5);
    assert_int_equal(epochs.count, 2);
    open_epoch(&epochs, "E4", 9);
    assert_int_equal(epochs.count, 3);
    assert_string_equal(epochs.at[0].id.text, "E2");
    pawl__telemetry_epochs_write(&epochs, &text);
    assert_ok(pawl__telemetry_epochs_read(pawl__buf_view(&text), &again, &error), &error);
    assert_int_equal(again.count, 3);
    assert_string_equal(again.at[2].id.text, "E4");
    assert_memory_equal(again.at[2].first, epochs.at[2].first, sizeof(epochs.at[2].first));
    pawl__telemetry_epochs_done(&again);
    assert_status(pawl__telemetry_epochs_read(pawl_view_of("E1 1 2\n"), &again, &error),
                  PAWL_CORRUPT,
                  &error);
    pawl__telemetry_epochs_done(&epochs);
}

static void test_an_acknowledgement_counts_only_for_epochs_that_the_colony_knows(void **state)
{
    struct telemetry_epochs epochs = { .at = NULL };
    struct telemetry_id known = id_of("E1");
    struct telemetry_id stranger = id_of("X");

    (void)state;
    open_epoch(&epochs, "E1", 0);
    assert_int_equal(pawl__telemetry_accept_ack(&epochs, TELEMETRY_SPANS, &known, 8, 10), 8);
    assert_int_equal(pawl__telemetry_accept_ack(&epochs, TELEMETRY_SPANS, &known, 80, 10), 10);
    open_epoch(&epochs, "F", 5); /* restored at 5; the colony has 8 rows of another line */
    assert_int_equal(pawl__telemetry_accept_ack(&epochs, TELEMETRY_SPANS, &known, 8, 10), 5);
    assert_int_equal(pawl__telemetry_accept_ack(&epochs, TELEMETRY_SPANS, &stranger, 8, 10), 0);
    pawl__telemetry_epochs_done(&epochs);
}

/* --- retention --- */

static void test_age_removes_whole_groups_of_acknowledged_rows(void **state)
{
    const struct telemetry_retention retention = { .age_ns = 3600 * NS_PER_S, .group_rows = 10 };
    struct telemetry_kept kept = { .removed = 0, .counter = 100, .acked = 100, .aged = 47 };

    (void)state;
    assert_int_equal(pawl__telemetry_remove_by_age(&retention, &kept), 40);
    kept.acked = 25;
    assert_int_equal(pawl__telemetry_remove_by_age(&retention, &kept), 20);
    kept.acked = 0;
    assert_int_equal(pawl__telemetry_remove_by_age(&retention, &kept), 0);
}

static void test_size_removes_acknowledged_rows_first_and_then_any(void **state)
{
    const struct telemetry_retention retention = { .used_max = 1000, .group_rows = 10 };
    struct telemetry_kept kept[TELEMETRY_TYPE_COUNT] = { { .counter = 0 } };
    enum telemetry_type type = TELEMETRY_CPU_PROFILE;
    uint64_t up_to = 0;

    (void)state;
    kept[TELEMETRY_SPANS] = (struct telemetry_kept){ .counter = 500 };
    kept[TELEMETRY_BEYLA_SQL] = (struct telemetry_kept){ .counter = 50, .acked = 30 };
    assert_false(pawl__telemetry_remove_by_size(&retention, kept, 1000, &type, &up_to));
    assert_true(pawl__telemetry_remove_by_size(&retention, kept, 1001, &type, &up_to));
    assert_int_equal(type, TELEMETRY_BEYLA_SQL);
    assert_int_equal(up_to, 10);
    kept[TELEMETRY_BEYLA_SQL].removed = 30;
    assert_true(pawl__telemetry_remove_by_size(&retention, kept, 1001, &type, &up_to));
    assert_int_equal(type, TELEMETRY_SPANS);
    assert_int_equal(up_to, 10);
}

static void test_arrivals_are_joined_to_the_later_one(void **state)
{
    static struct telemetry_arrivals arrivals;

    (void)state;
    arrivals.count = 0;
    for (int64_t i = 1; i <= 2000; i++) {
        pawl__telemetry_arrived(&arrivals, (uint64_t)i, i);
    }
    assert_true(arrivals.count <= TELEMETRY_ARRIVALS_MAX);
    for (int64_t t = 1; t <= 2000; t++) {
        assert_true(pawl__telemetry_arrived_by(&arrivals, t) <= (uint64_t)t); /* never early */
    }
    assert_int_equal(pawl__telemetry_arrived_by(&arrivals, 2000), 2000);
    pawl__telemetry_arrivals_forget(&arrivals, 2000);
    assert_int_equal(arrivals.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gap_at_4_of_1_2_3_5_6_is_recorded),
        cmocka_unit_test(test_continuous_ids_make_no_gap),
        cmocka_unit_test(
            test_a_gap_between_the_checkpoint_and_the_first_row_and_across_batches_is_recorded),
        cmocka_unit_test(test_what_retention_took_is_permanent_at_once),
        cmocka_unit_test(test_an_empty_page_below_the_mark_is_refused),
        cmocka_unit_test(test_a_restart_continues),
        cmocka_unit_test(test_a_restored_copy_begins_a_generation),
        cmocka_unit_test(test_rows_below_a_fork_are_still_owed_to_the_old_generation),
        cmocka_unit_test(test_two_opens_between_polls_after_a_restore_are_one_generation),
        cmocka_unit_test(test_a_copy_of_an_abandoned_line_is_recognised),
        cmocka_unit_test(test_a_sequence_that_goes_back_without_an_epoch_is_refused),
        cmocka_unit_test(test_the_end_of_a_session_loses_what_was_known),
        cmocka_unit_test(test_an_agent_that_lies_is_found_out),
        cmocka_unit_test(test_a_gap_is_asked_for_after_its_grace_then_three_times),
        cmocka_unit_test(test_progress_shrinks_a_gap_and_gives_it_new_attempts),
        cmocka_unit_test(test_a_gap_below_min_available_is_permanent_at_once),
        cmocka_unit_test(
            test_a_gap_that_an_earlier_run_saw_gets_its_grace_from_the_start_of_this_run),
        cmocka_unit_test(test_a_round_is_shared_between_agents),
        cmocka_unit_test(test_epochs_without_rows_leave_the_list),
        cmocka_unit_test(test_an_acknowledgement_counts_only_for_epochs_that_the_colony_knows),
        cmocka_unit_test(test_age_removes_whole_groups_of_acknowledged_rows),
        cmocka_unit_test(test_size_removes_acknowledged_rows_first_and_then_any),
        cmocka_unit_test(test_arrivals_are_joined_to_the_later_one),
    };

    return cmocka_run_group_tests_name("telemetry_cursor", tests, NULL, NULL);
}
