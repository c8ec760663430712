/* Turns, told as they happen: who begins, who is too late, what readers of complete turns see. Each test
 * reads as the rule it is about. The ledger is in memory, so nothing but plan.c decides. */
#include "lib/check.h"

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "lib/trace.h"

struct story {
    struct trace trace;
    pawl_ledger *ledger;
    pawl_turn *turn[2]; /* ada's and bob's handle */
};

enum who { ADA, BOB };
static const char *const names[] = { "ada", "bob" };

static int start(void **state)
{
    struct story *story = test_calloc(1, sizeof(*story));
    pawl_error error = PAWL_ERROR_INIT;

    story->trace = trace_start();
    assert_ok(pawl_ledger_open("memory:", NULL, &story->ledger, &error), &error);
    *state = story;
    return 0;
}

static int end(void **state)
{
    struct story *story = *state;

    pawl_turn_free(story->turn[ADA]);
    pawl_turn_free(story->turn[BOB]);
    pawl_ledger_close(story->ledger, 0, NULL);
    trace_done(&story->trace);
    test_free(story);
    return 0;
}

static const char *result_of(pawl_status status)
{
    return status == PAWL_OK ? "ok" : pawl_status_name(status);
}

static void begins(struct story *story, int64_t at, enum who who)
{
    pawl_error error = PAWL_ERROR_INIT;

    trace_at(&story->trace, at);
    pawl_turn_free(story->turn[who]);
    story->turn[who] = NULL;
    assert_ok(pawl_turn_begin(story->ledger, pawl_view_of("night"), 1, &story->turn[who], &error),
              &error);
    trace_add(&story->trace,
              "%s begins the turn -> attempt %u",
              names[who],
              pawl_turn_attempt(story->turn[who]));
}

static void says(struct story *story, int64_t at, enum who who, const char *payload)
{
    pawl_event event = { .size = sizeof(pawl_event) };
    pawl_append_result result = { .size = sizeof(pawl_append_result) };
    pawl_error error = PAWL_ERROR_INIT;

    event.actor = pawl_view_of(names[who]);
    event.kind = pawl_view_of("say");
    event.payload = pawl_view_of(payload);
    trace_at(&story->trace, at);
    pawl_status status = pawl_turn_append(story->turn[who], &event, 1, &result, &error);
    if (status == PAWL_OK) {
        trace_add(&story->trace,
                  "%s says %s -> offset %llu%s",
                  names[who],
                  payload,
                  (unsigned long long)result.offset,
                  result.duplicate ? ", a duplicate" : "");
        return;
    }
    trace_add(&story->trace, "%s says %s -> %s", names[who], payload, result_of(status));
}

static void commits(struct story *story, int64_t at, enum who who)
{
    pawl_error error = PAWL_ERROR_INIT;

    trace_at(&story->trace, at);
    pawl_status status = pawl_turn_commit(story->turn[who], &error);
    trace_add(&story->trace, "%s commits -> %s", names[who], result_of(status));
}

static void abandons(struct story *story, int64_t at, enum who who)
{
    pawl_error error = PAWL_ERROR_INIT;

    trace_at(&story->trace, at);
    pawl_status status = pawl_turn_abandon(story->turn[who], pawl_view_of("gave up"), &error);
    trace_add(&story->trace, "%s abandons -> %s", names[who], result_of(status));
}

/* The process dies with the turn open; another one resumes the attempt it knows by number. */
static void resumes(struct story *story, int64_t at, enum who who, uint32_t attempt)
{
    pawl_error error = PAWL_ERROR_INIT;

    trace_at(&story->trace, at);
    pawl_turn_free(story->turn[who]);
    story->turn[who] = NULL;
    assert_ok(pawl_turn_resume(
                  story->ledger, pawl_view_of("night"), 1, attempt, 0, &story->turn[who], &error),
              &error);
    trace_add(&story->trace, "%s resumes attempt %u", names[who], attempt);
}

static void readers_see(struct story *story, int64_t at)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 12);
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    const pawl_event *event = NULL;

    options.complete_turns = true;
    trace_at(&story->trace, at);
    assert_ok(pawl_reader_open(story->ledger, &options, &reader, &error), &error);
    while (pawl_reader_next(reader, &event, &error) == PAWL_OK) {
        if (pawl__view_equal(event->kind, pawl_view_of("say"))) {
            pawl__buf_add_format(&text, " %.*s", (int)event->payload.len, event->payload.data);
        }
    }
    pawl_reader_free(reader);
    trace_add(&story->trace,
              "readers of complete turns see%.*s",
              text.len == 0 ? 8 : (int)text.len,
              text.len == 0 ? " nothing" : text.data);
}

static void test_a_turn_counts_for_readers_when_it_is_committed(void **state)
{
    struct story *story = *state;

    begins(story, 0, ADA);
    says(story, 1, ADA, "1");
    readers_see(story, 2);
    says(story, 3, ADA, "2");
    commits(story, 4, ADA);
    readers_see(story, 5);
    assert_trace(&story->trace,
                 "[  0] ada begins the turn -> attempt 1\n"
                 "[  1] ada says 1 -> offset 2\n"
                 "[  2] readers of complete turns see nothing\n"
                 "[  3] ada says 2 -> offset 3\n"
                 "[  4] ada commits -> ok\n"
                 "[  5] readers of complete turns see 1 2\n");
}

static void test_a_second_attempt_shuts_out_the_first(void **state)
{
    struct story *story = *state;

    begins(story, 0, ADA);
    says(story, 1, ADA, "1");
    begins(story, 60, BOB);
    says(story, 61, ADA, "2");
    commits(story, 62, ADA);
    says(story, 63, BOB, "3");
    commits(story, 64, BOB);
    readers_see(story, 65);
    assert_trace(&story->trace,
                 "[  0] ada begins the turn -> attempt 1\n"
                 "[  1] ada says 1 -> offset 2\n"
                 "[ 60] bob begins the turn -> attempt 2\n"
                 "[ 61] ada says 2 -> LEASE_LOST\n"
                 "[ 62] ada commits -> LEASE_LOST\n"
                 "[ 63] bob says 3 -> offset 5\n"
                 "[ 64] bob commits -> ok\n"
                 "[ 65] readers of complete turns see 3\n");
}

static void test_an_abandoned_attempt_is_never_seen_and_the_turn_can_begin_again(void **state)
{
    struct story *story = *state;

    begins(story, 0, ADA);
    says(story, 1, ADA, "1");
    abandons(story, 2, ADA);
    says(story, 3, ADA, "2");
    readers_see(story, 4);
    begins(story, 5, BOB);
    says(story, 6, BOB, "3");
    commits(story, 7, BOB);
    readers_see(story, 8);
    assert_trace(&story->trace,
                 "[  0] ada begins the turn -> attempt 1\n"
                 "[  1] ada says 1 -> offset 2\n"
                 "[  2] ada abandons -> ok\n"
                 "[  3] ada says 2 -> LEASE_LOST\n"
                 "[  4] readers of complete turns see nothing\n"
                 "[  5] bob begins the turn -> attempt 2\n"
                 "[  6] bob says 3 -> offset 5\n"
                 "[  7] bob commits -> ok\n"
                 "[  8] readers of complete turns see 3\n");
}

/* Ids of events without one come from run, turn, attempt, actor, kind and ordinal: a worker that
 * repeats what it said before it died repeats the ids too. */
static void test_a_worker_that_resumes_repeats_itself_without_a_second_event(void **state)
{
    struct story *story = *state;

    begins(story, 0, ADA);
    says(story, 1, ADA, "1");
    says(story, 2, ADA, "2");
    resumes(story, 60, ADA, 1);
    says(story, 61, ADA, "1");
    says(story, 62, ADA, "2");
    says(story, 63, ADA, "3");
    commits(story, 64, ADA);
    commits(story, 65, ADA);
    readers_see(story, 66);
    assert_trace(&story->trace,
                 "[  0] ada begins the turn -> attempt 1\n"
                 "[  1] ada says 1 -> offset 2\n"
                 "[  2] ada says 2 -> offset 3\n"
                 "[ 60] ada resumes attempt 1\n"
                 "[ 61] ada says 1 -> offset 2, a duplicate\n"
                 "[ 62] ada says 2 -> offset 3, a duplicate\n"
                 "[ 63] ada says 3 -> offset 4\n"
                 "[ 64] ada commits -> ok\n"
                 "[ 65] ada commits -> ok\n"
                 "[ 66] readers of complete turns see 1 2 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_turn_counts_for_readers_when_it_is_committed, start, end),
        cmocka_unit_test_setup_teardown(test_a_second_attempt_shuts_out_the_first, start, end),
        cmocka_unit_test_setup_teardown(
            test_an_abandoned_attempt_is_never_seen_and_the_turn_can_begin_again, start, end),
        cmocka_unit_test_setup_teardown(
            test_a_worker_that_resumes_repeats_itself_without_a_second_event, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
