/* Turns on every backend: attempts, the fence, derived ids, resuming. */
#include "lib/ledger_fixture.h"

#include <stdio.h>

static void test_a_turn_is_events_between_its_begin_and_its_commit(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = begin_turn(f, "r", 7);

    assert_int_equal(pawl_turn_attempt(turn), 1);
    turn_says(f, turn, "1 2");
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    assert_reads(f,
                 NULL,
                 "1 r/7 turn.begin {\"attempt\":1}\n"
                 "2 r/7 k 1\n"
                 "3 r/7 k 2\n"
                 "4 r/7 turn.commit {\"attempt\":1}\n"
                 "at 4\n");
}

static void test_a_new_attempt_abandons_the_one_that_was_left_open(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *first = begin_turn(f, "r", 1);

    turn_says(f, first, "\"half\"");
    pawl_turn_free(first); /* as after a crash */
    pawl_turn *second = begin_turn(f, "r", 1);
    assert_int_equal(pawl_turn_attempt(second), 2);
    turn_says(f, second, "\"whole\"");
    assert_ok(pawl_turn_commit(second, &f->err), &f->err);
    pawl_turn_free(second);
    assert_reads(f,
                 NULL,
                 "1 r/1 turn.begin {\"attempt\":1}\n"
                 "2 r/1 k \"half\"\n"
                 "3 r/1 turn.abandon {\"attempt\":1,\"reason\":\"a new attempt began\"}\n"
                 "4 r/1 turn.begin {\"attempt\":2}\n"
                 "5 r/1 k \"whole\"\n"
                 "6 r/1 turn.commit {\"attempt\":2}\n"
                 "at 6\n");
}

static void test_an_old_attempt_can_do_nothing_any_more(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *zombie = begin_turn(f, "r", 1);
    pawl_turn *living = begin_turn(f, "r", 1);
    pawl_event event = { .size = sizeof(pawl_event),
                         .kind = pawl_view_of("k"),
                         .actor = pawl_view_of("a"),
                         .payload = pawl_view_of("0") };
    uint64_t before = latest_offset(f);

    assert_status(pawl_turn_append(zombie, &event, 1, NULL, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_message(&f->err, "attempt 1 at turn 1 of run 'r' is over: attempt 2 is open");
    assert_status(pawl_turn_commit(zombie, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_status(
        pawl_turn_abandon(zombie, pawl_view_of("why"), &f->err), PAWL_LEASE_LOST, &f->err);
    assert_ok(pawl_turn_commit(living, &f->err), &f->err);
    assert_status(pawl_turn_commit(zombie, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_message(&f->err, "attempt 2 was committed");
    assert_int_equal(latest_offset(f), before + 1);
    pawl_turn_free(zombie);
    pawl_turn_free(living);
}

static void test_what_ended_stays_ended(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *kept = NULL;
    pawl_turn *turn = begin_turn(f, "r", 1);
    pawl_event event = event_of("x", 1, "0");

    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err); /* the answer was lost */
    assert_status(pawl_turn_abandon(turn, pawl_view_of(""), &f->err), PAWL_LEASE_LOST, &f->err);
    assert_status(pawl_turn_append(turn, &event, 1, NULL, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_status(
        pawl_turn_begin(f->ledger, pawl_view_of("r"), 1, &kept, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "turn 1 of run 'r' is committed already");
    assert_int_equal(f->err.detail, PAWL_DETAIL_TURN_COMMITTED);
    assert_null(kept);
    pawl_turn_free(turn);

    turn = begin_turn(f, "r", 2);
    assert_ok(pawl_turn_abandon(turn, pawl_view_of("no \"mood\""), &f->err), &f->err);
    assert_ok(pawl_turn_abandon(turn, pawl_view_of("other"), &f->err), &f->err);
    assert_status(pawl_turn_commit(turn, &f->err), PAWL_LEASE_LOST, &f->err);
    pawl_turn_free(turn);
    turn = begin_turn(f, "r", 2);
    assert_int_equal(pawl_turn_attempt(turn), 2);
    pawl_turn_free(turn);
    assert_reads(f,
                 NULL,
                 "1 r/1 turn.begin {\"attempt\":1}\n"
                 "2 r/1 turn.commit {\"attempt\":1}\n"
                 "3 r/2 turn.begin {\"attempt\":1}\n"
                 "4 r/2 turn.abandon {\"attempt\":1,\"reason\":\"no \\\"mood\\\"\"}\n"
                 "5 r/2 turn.begin {\"attempt\":2}\n"
                 "at 5\n");
}

/* Ids of one call: actor and kind by letters, "ax ax bx" is three events. */
static void append_derived(struct ledger_fixture *f,
                           pawl_turn *turn,
                           const char *pairs,
                           pawl_append_result *ret_results)
{
    pawl_event events[8];
    size_t count = 0;

    for (const char *pair = pairs; *pair != '\0'; pair += 2 + (pair[2] == ' ')) {
        assert_true(count < COUNT_OF(events));
        events[count++] = (pawl_event){ .size = sizeof(pawl_event),
                                        .actor = { &pair[0], 1 },
                                        .kind = { &pair[1], 1 },
                                        .payload = { "0", 1 } };
    }
    ret_results->size = sizeof(*ret_results);
    assert_ok(pawl_turn_append(turn, events, count, ret_results, &f->err), &f->err);
}

static void test_ids_follow_from_run_turn_attempt_actor_kind_and_ordinal(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_append_result results[16] = { PAWL_APPEND_RESULT_INIT };
    pawl_turn *turn = begin_turn(f, "r", 1);

    append_derived(f, turn, "ax ax bx ay", &results[0]);
    append_derived(f, turn, "ax", &results[4]);
    pawl_turn *again = begin_turn(f, "r", 1);
    append_derived(f, again, "ax", &results[5]);
    pawl_turn *other_turn = begin_turn(f, "r", 2);
    append_derived(f, other_turn, "ax", &results[6]);
    pawl_turn *other_run = begin_turn(f, "r2", 1);
    append_derived(f, other_run, "ax", &results[7]);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(strlen(results[i].derived_id), 34);
        assert_false(results[i].duplicate);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(results[i].derived_id, results[j].derived_id);
        }
    }
    /* Computed apart from this code: what was stored yesterday must be found today. */
    assert_string_equal(results[0].derived_id, "t-fe9e4319c60378434e468228e62d9fc3");
    assert_string_equal(results[4].derived_id, "t-c8d67974fc1cb507addaa79e73353e8e");
    pawl_turn_free(turn);
    pawl_turn_free(again);
    pawl_turn_free(other_turn);
    pawl_turn_free(other_run);
}

static void test_an_append_that_failed_moves_no_ordinal(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_append_result first[2] = { PAWL_APPEND_RESULT_INIT };
    pawl_append_result second[2] = { { .size = sizeof(pawl_append_result), .offset = 99 } };
    pawl_turn *turn = begin_turn(f, "r", 1);
    pawl_event events[] = {
        { .size = sizeof(pawl_event),
          .actor = { "a", 1 },
          .kind = { "k", 1 },
          .payload = { "1", 1 } },
        { .size = sizeof(pawl_event),
          .id = { "taken", 5 },
          .actor = { "a", 1 },
          .kind = { "k", 1 },
          .payload = { "1", 1 } },
    };

    append_one(f, "taken", 0, "\"by another\"");
    assert_status(pawl_turn_append(turn, events, 2, second, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "event 1: id 'taken'");
    assert_int_equal(second[0].offset, 99);
    events[1].payload.len = 0;
    assert_status(pawl_turn_append(turn, events, 2, second, &f->err), PAWL_INVALID, &f->err);

    assert_ok(pawl_turn_append(turn, events, 1, first, &f->err), &f->err);
    assert_false(first[0].duplicate);
    pawl_turn *fresh = begin_turn(f, "fresh", 1);
    pawl_turn_free(turn);
    turn = begin_turn(f, "r", 1);
    assert_ok(pawl_turn_append(turn, events, 1, second, &f->err), &f->err);
    assert_string_equal(first[0].derived_id,
                        "t-106264466b3dceeb5e80c75cd7989d9c"); /* ordinal 0 of attempt 1 */
    pawl_turn_free(turn);
    pawl_turn_free(fresh);
}

static void test_an_event_may_bring_its_own_id_into_a_turn(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = begin_turn(f, "r", 4);
    pawl_event event = event_of("mine", 99, "0");
    pawl_append_result result = PAWL_APPEND_RESULT_INIT;

    event.run_id = (pawl_view){ NULL, 0 };
    assert_ok(pawl_turn_append(turn, &event, 1, &result, &f->err), &f->err);
    assert_string_equal(result.derived_id, "");
    assert_ok(pawl_turn_append(turn, &event, 1, &result, &f->err), &f->err);
    assert_true(result.duplicate);
    assert_int_equal(result.offset, 2);
    event.run_id = pawl_view_of("r"); /* the handle's own is fine */
    assert_ok(pawl_turn_append(turn, &event, 1, &result, &f->err), &f->err);
    event.run_id = pawl_view_of("q");
    assert_status(pawl_turn_append(turn, &event, 1, &result, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "run_id: is not 'r'");
    event.run_id = (pawl_view){ NULL, 0 };
    event.kind = pawl_view_of("pawl.turn.commit");
    assert_status(pawl_turn_append(turn, &event, 1, &result, &f->err), PAWL_INVALID, &f->err);
    assert_ok(pawl_turn_append(turn, NULL, 0, NULL, &f->err), &f->err);
    pawl_turn_free(turn);
    assert_reads(f, NULL, "1 r/4 turn.begin {\"attempt\":1}\n2 r/4 k 0\nat 2\n");
}

static void test_bad_arguments_of_turns_are_refused(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *kept = NULL;
    char text[201];
    const struct {
        pawl_view run_id;
        int64_t turn;
        const char *message;
    } bad[] = {
        { { NULL, 0 }, 1, "run_id: missing" },
        { { text, sizeof(text) }, 1, "run_id: has 201 bytes" },
        { { "a\0", 2 }, 1, "run_id: has a NUL byte" },
        { { "\xFF", 1 }, 1, "run_id: is not UTF-8" },
        { { "r", 1 }, -1, "turn: is -1" },
    };

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(pawl_turn_begin(f->ledger, bad[i].run_id, bad[i].turn, &kept, &f->err),
                      PAWL_INVALID,
                      &f->err);
        assert_message(&f->err, bad[i].message);
        assert_null(kept);
    }
    kept = begin_turn(f, "r", 0);
    assert_status(
        pawl_turn_abandon(kept, (pawl_view){ text, 201 }, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "reason: has 201 bytes");
    assert_status(pawl_turn_abandon(kept, (pawl_view){ "\0", 1 }, &f->err), PAWL_INVALID, &f->err);
    assert_ok(pawl_turn_abandon(kept, (pawl_view){ text, 200 }, &f->err), &f->err);
    pawl_turn_free(kept);
    pawl_turn_free(NULL);
    assert_int_equal(latest_offset(f), 2);
}

static int64_t last_complete(struct ledger_fixture *f, const char *run_id)
{
    int64_t turn = -7;
    pawl_status status =
        pawl_ledger_last_complete_turn(f->ledger, pawl_view_of(run_id), &turn, &f->err);

    assert_true(status == PAWL_OK || status == PAWL_NOT_FOUND);
    assert_true((status == PAWL_OK) == (turn != -7));
    return turn;
}

static void test_a_conductor_resumes_behind_the_last_complete_turn(void **state)
{
    struct ledger_fixture *f = *state;

    assert_int_equal(last_complete(f, "r"), -7);
    for (int64_t i = 0; i < 3; i++) {
        pawl_turn *turn = begin_turn(f, "r", i);
        if (i < 2) {
            assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
        }
        pawl_turn_free(turn);
    }
    append_one(f, "outside", 50, "0");
    assert_int_equal(last_complete(f, "r"), 1);
    assert_int_equal(last_complete(f, "q"), -7);
    assert_status(
        pawl_ledger_last_complete_turn(f->ledger, (pawl_view){ NULL, 0 }, &(int64_t){ 0 }, &f->err),
        PAWL_INVALID,
        &f->err);
}

static bool add_turn(void *context, const pawl_turn_info *info)
{
    static const char *const states[] = { "open", "committed", "abandoned" };
    struct pawl__buf *text = context;

    pawl__buf_add_format(text,
                         "%.*s/%lld #%u %s %llu-%llu\n",
                         VIEW_ARGS(info->run_id),
                         (long long)info->turn,
                         info->attempt,
                         states[info->state],
                         (unsigned long long)info->begin_offset,
                         (unsigned long long)info->end_offset);
    return text->len < 4000;
}

static bool add_one_turn(void *context, const pawl_turn_info *info)
{
    add_turn(context, info);
    return false;
}

static void test_attempts_are_listed_in_the_order_in_which_they_began(void **state)
{
    struct ledger_fixture *f = *state;
    struct pawl__buf text = BUF_INIT(4096);
    pawl_view all = { NULL, 0 };

    pawl_turn_free(begin_turn(f, "b", 2));
    pawl_turn *a = begin_turn(f, "a", 1);
    pawl_turn *b = begin_turn(f, "b", 2);
    assert_ok(pawl_turn_commit(b, &f->err), &f->err);
    assert_ok(pawl_turn_abandon(a, pawl_view_of("x"), &f->err), &f->err);
    pawl_turn_free(begin_turn(f, "a", 1));
    pawl_turn_free(a);
    pawl_turn_free(b);

    assert_ok(pawl_ledger_turns(f->ledger, all, NULL, add_turn, &text, &f->err), &f->err);
    assert_text(&text,
                "b/2 #1 abandoned 1-3\n"
                "a/1 #1 abandoned 2-6\n"
                "b/2 #2 committed 4-5\n"
                "a/1 #2 open 7-0\n");
    pawl__buf_clear(&text);
    assert_ok(pawl_ledger_turns(f->ledger, pawl_view_of("a"), NULL, add_turn, &text, &f->err),
              &f->err);
    assert_text(&text, "a/1 #1 abandoned 2-6\na/1 #2 open 7-0\n");
    pawl__buf_clear(&text);
    assert_ok(pawl_ledger_turns(f->ledger, all, NULL, add_one_turn, &text, &f->err), &f->err);
    assert_text(&text, "b/2 #1 abandoned 1-3\n");
    pawl__buf_clear(&text);
    pawl_page page = PAWL_PAGE_INIT;
    page.limit = 3;
    assert_ok(pawl_ledger_turns(f->ledger, all, &page, add_turn, &text, &f->err), &f->err);
    assert_true(page.more);
    assert_int_equal(page.from, 7);
    pawl__buf_clear(&text);
    assert_ok(pawl_ledger_turns(f->ledger, all, &page, add_turn, &text, &f->err), &f->err);
    assert_false(page.more);
    assert_text(&text, "a/1 #2 open 7-0\n");
    pawl__buf_clear(&text);
    page.from = UINT64_MAX;
    assert_ok(pawl_ledger_turns(f->ledger, all, &page, add_turn, &text, &f->err), &f->err);
    assert_text(&text, "");
    assert_ok(pawl_ledger_turns(f->ledger, pawl_view_of("c"), NULL, add_turn, &text, &f->err),
              &f->err);
    assert_text(&text, "");
    pawl__buf_done(&text);
}

static void test_a_turn_is_resumed_by_its_attempt(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = begin_turn(f, "r", 1);
    pawl_turn *again = NULL;
    pawl_event event = event_of("", 0, "1");
    pawl_append_result first = PAWL_APPEND_RESULT_INIT;
    pawl_append_result result = PAWL_APPEND_RESULT_INIT;

    assert_ok(pawl_turn_append(turn, &event, 1, &first, &f->err), &f->err);
    pawl_turn_free(turn); /* the process is gone, the turn is open */
    assert_ok(pawl_turn_resume(f->ledger, pawl_view_of("r"), 1, 1, 0, &again, &f->err), &f->err);
    assert_ok(pawl_turn_append(again, &event, 1, &result, &f->err), &f->err);
    assert_true(result.duplicate); /* its first event, once more */
    assert_string_equal(result.derived_id, first.derived_id);
    pawl_turn_free(again);
    assert_ok(pawl_turn_resume(f->ledger, pawl_view_of("r"), 1, 1, 1, &again, &f->err), &f->err);
    assert_ok(pawl_turn_append(again, &event, 1, &result, &f->err), &f->err);
    assert_false(result.duplicate); /* the second one */
    turn = begin_turn(f, "r", 1);
    assert_status(pawl_turn_append(again, &event, 1, &result, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_status(pawl_turn_commit(again, &f->err), PAWL_LEASE_LOST, &f->err);
    pawl_turn_free(again);
    pawl_turn_free(turn);
    again = NULL;
    assert_status(pawl_turn_resume(f->ledger, pawl_view_of("r"), 1, 0, 0, &again, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_status(pawl_turn_resume(f->ledger, pawl_view_of(""), 1, 1, 0, &again, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_null(again);
}

static pawl_turn *resume(struct ledger_fixture *f, uint64_t ordinal)
{
    pawl_turn *turn = NULL;

    assert_ok(pawl_turn_resume(f->ledger, pawl_view_of("r"), 1, 1, ordinal, &turn, &f->err),
              &f->err);
    return turn;
}

/* Appends events of actor "a" and kind "k" through a new handle, one for each digit, each handle's
 * first as `ordinal`. The answer: "+" new, "=" duplicate, "!" refused. */
static const char *resumed(struct ledger_fixture *f, uint64_t ordinal, const char *digits)
{
    static char answer[8];
    pawl_event events[7];
    pawl_append_result results[7] = { { .size = sizeof(pawl_append_result) } };
    size_t count = strlen(digits);
    pawl_turn *turn = resume(f, ordinal);

    for (size_t i = 0; i < count; i++) {
        events[i] = event_of("", 0, "");
        events[i].payload = (pawl_view){ &digits[i], 1 };
    }
    pawl_status status = pawl_turn_append(turn, events, count, results, &f->err);
    pawl_turn_free(turn);
    if (status != PAWL_OK) {
        assert_status(status, PAWL_CONFLICT, &f->err);
        return "!";
    }
    for (size_t i = 0; i < count; i++) {
        answer[i] = results[i].duplicate ? '=' : '+';
    }
    answer[count] = '\0';
    return answer;
}

static void test_an_ordinal_must_fit_what_the_attempt_has(void **state)
{
    struct ledger_fixture *f = *state;

    pawl_turn_free(begin_turn(f, "r", 1));
    assert_string_equal(resumed(f, 1, "1"), "!"); /* something is missing before it */
    assert_message(&f->err, "ordinal: is 1, but the next of actor 'a' and kind 'k'");
    assert_string_equal(resumed(f, PAWL_ORDINAL_FIRST, "12"), "++");
    assert_string_equal(resumed(f, PAWL_ORDINAL_FIRST, "3"), "!"); /* the second call */
    assert_message(&f->err, "ordinal: missing");
    assert_message(&f->err, "in attempt 1 at turn 1 is 2");
    assert_string_equal(resumed(f, PAWL_ORDINAL_FIRST, "12"), "!"); /* who knows what is meant? */
    assert_string_equal(resumed(f, 0, "12"), "==");                 /* a lost answer */
    assert_string_equal(resumed(f, 1, "2"), "=");
    assert_string_equal(resumed(f, 0, "19"), "!"); /* other content */
    assert_message(&f->err, "payload");
    assert_string_equal(resumed(f, 3, "4"), "!");
    assert_message(&f->err, "ordinal: is 3");
    assert_string_equal(resumed(f, 2, "3"), "+");
    assert_string_equal(resumed(f, 1, "234"), "==+"); /* half of it was stored */
    assert_string_equal(resumed(f, 9, "5"), "!");
    assert_message(&f->err, "turn 1 is 4");
    assert_reads(f,
                 NULL,
                 "1 r/1 turn.begin {\"attempt\":1}\n2 r/1 k 1\n3 r/1 k 2\n4 r/1 k 3\n"
                 "5 r/1 k 4\nat 5\n");
}

static void test_ordinals_of_other_actors_and_kinds_are_their_own(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_append_result results[4] = { PAWL_APPEND_RESULT_INIT };

    pawl_turn_free(begin_turn(f, "r", 1));
    pawl_turn *turn = resume(f, PAWL_ORDINAL_FIRST);
    append_derived(f, turn, "ax ax", results);
    append_derived(f, turn, "ax bx", results); /* this handle knows, and bx is new */
    assert_false(results[0].duplicate);
    pawl_turn_free(turn);
    turn = resume(f, PAWL_ORDINAL_FIRST);
    append_derived(f, turn, "ay by", results);
    pawl_event events[] = {
        { .size = sizeof(pawl_event),
          .actor = { "c", 1 },
          .kind = { "x", 1 },
          .payload = { "0", 1 } },
        { .size = sizeof(pawl_event),
          .actor = { "a", 1 },
          .kind = { "x", 1 },
          .payload = { "0", 1 } },
    };
    assert_status(pawl_turn_append(turn, events, 2, results, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "event 1: ordinal: missing");
    assert_message(&f->err, "turn 1 is 3");
    assert_ok(pawl_turn_append(turn, events, 1, results, &f->err), &f->err);
    assert_false(results[0].duplicate);
    pawl_turn_free(turn);
    assert_int_equal(latest_offset(f), 8);
}

static void test_the_next_ordinal_is_found_among_many(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_turn *turn = begin_turn(f, "r", 1);

    for (int count = 1; count <= 40; count++) {
        char expected[32];
        turn_says(f, turn, "0");
        snprintf(expected, sizeof(expected), "turn 1 is %d;", count);
        assert_string_equal(resumed(f, PAWL_ORDINAL_FIRST, "0"), "!");
        assert_message(&f->err, expected);
        assert_string_equal(resumed(f, (uint64_t)count + 1, "0"), "!");
        assert_message(&f->err, expected);
        assert_string_equal(resumed(f, UINT64_MAX - 1, "0"), "!");
        assert_message(&f->err, expected);
    }
    pawl_turn_free(turn);
    assert_int_equal(latest_offset(f), 41);
}

static void test_an_append_to_an_open_turn_must_name_its_attempt(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("inside", 1, "0");
    pawl_event batch[] = { event_of("x", 2, "0"), event };
    pawl_append_result result = PAWL_APPEND_RESULT_INIT;

    append_one(f, "before", 1, "0");
    pawl_turn *turn = begin_turn(f, "r", 1);
    for (int i = 0; i < 2; i++) { /* also by a ledger that did not see it begin */
        assert_status(
            pawl_ledger_append(f->ledger, &event, &result, &f->err), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, "turn 1 of run 'r' is open");
        assert_message(&f->err, "attempt, which is 1");
        assert_status(
            pawl_ledger_append_many(f->ledger, batch, 2, NULL, &f->err), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, "event 1: turn 1 of run 'r' is open");
        assert_int_equal(f->err.detail, PAWL_DETAIL_TURN_OPEN);
        assert_int_equal(f->err.index, 1);
        if (ledger_fixture_close(f)) {
            ledger_fixture_open(f, NULL);
        }
    }
    assert_int_equal(append_one(f, "before", 1, "0"), 1); /* a duplicate adds nothing */
    append_one(f, "other", 2, "0");
    pawl_event elsewhere = event_of("elsewhere", 1, "0");
    elsewhere.run_id = pawl_view_of("q");
    assert_ok(pawl_ledger_append(f->ledger, &elsewhere, &result, &f->err), &f->err);
    pawl_turn_free(turn);
    turn = begin_turn(f, "r", 1);
    assert_status(pawl_ledger_append(f->ledger, &event, &result, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "which is 2");
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    assert_int_equal(append_one(f, "after", 1, "0"), 8);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_a_turn_is_events_between_its_begin_and_its_commit),
        LEDGER_TEST(test_a_new_attempt_abandons_the_one_that_was_left_open),
        LEDGER_TEST(test_an_old_attempt_can_do_nothing_any_more),
        LEDGER_TEST(test_what_ended_stays_ended),
        LEDGER_TEST(test_ids_follow_from_run_turn_attempt_actor_kind_and_ordinal),
        LEDGER_TEST(test_an_append_that_failed_moves_no_ordinal),
        LEDGER_TEST(test_an_event_may_bring_its_own_id_into_a_turn),
        LEDGER_TEST(test_bad_arguments_of_turns_are_refused),
        LEDGER_TEST(test_a_conductor_resumes_behind_the_last_complete_turn),
        LEDGER_TEST(test_a_turn_is_resumed_by_its_attempt),
        LEDGER_TEST(test_an_ordinal_must_fit_what_the_attempt_has),
        LEDGER_TEST(test_ordinals_of_other_actors_and_kinds_are_their_own),
        LEDGER_TEST(test_the_next_ordinal_is_found_among_many),
        LEDGER_TEST(test_an_append_to_an_open_turn_must_name_its_attempt),
        LEDGER_TEST(test_attempts_are_listed_in_the_order_in_which_they_began),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
