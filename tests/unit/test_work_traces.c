/* Leases, sweeps and answers of idempotency keys, told as they happen on the virtual clock. Each test
 * reads as the rule it is about; nothing but decide.c and keys/decide.c is behind it. */
#include "lib/check.h"

#include "base/core/macros.h"
#include "lib/trace.h"
#include "work/items/decide.h"
#include "work/items/item.h"
#include "work/keys/decide.h"

#define LEASE_NS (30 * NS_PER_S)

struct story {
    struct trace trace;
    struct work_row item;
    struct work_key_row key;
};

static int start(void **state)
{
    struct story *story = test_calloc(1, sizeof(*story));

    story->trace = trace_start();
    story->item = (struct work_row){
        .item = { .work_item_id = { "a", 1 }, .status = PAWL_ITEM_PENDING, .max_retries = 1 },
        .home = WORK_IN_ITEMS,
        .due_ns = INT64_MIN,
    };
    story->key = (struct work_key_row){ .key = { "pay", 3 } };
    *state = story;
    return 0;
}

static int end(void **state)
{
    struct story *story = *state;

    trace_done(&story->trace);
    test_free(story);
    return 0;
}

static struct work_now now_of(struct story *story, int64_t at)
{
    trace_at(&story->trace, at);
    return (struct work_now){ .wall_us = trace_now_ns(&story->trace) / NS_PER_US,
                              .ns = trace_now_ns(&story->trace) };
}

static const char *result_of(pawl_status status, bool changed)
{
    return status == PAWL_OK           ? changed ? "ok" : "ok, as before"
           : status == PAWL_LEASE_LOST ? "lease lost"
                                       : pawl_status_name(status);
}

/* --- items --- */

static void claims(struct story *story, int64_t at, const char *who)
{
    struct work_now now = now_of(story, at);
    struct work_row *row = &story->item;
    pawl_error error = PAWL_ERROR_INIT;

    if (row->item.status == PAWL_ITEM_WAITING) {
        (void)pawl__work_decide_due(row, &now);
    }
    if (row->item.status != PAWL_ITEM_PENDING) {
        trace_add(&story->trace,
                  "%s claims -> nothing, it is %s",
                  who,
                  pawl__work_item_status_text(row->item.status));
        return;
    }
    assert_ok(pawl__work_decide_claim(row, pawl_view_of(who), LEASE_NS, &now, &error), &error);
    trace_add(&story->trace,
              "%s claims -> token %llu, until %lld",
              who,
              (unsigned long long)row->item.token,
              (long long)(row->deadline_ns / NS_PER_S));
}

static void calls(struct story *story,
                  int64_t at,
                  const char *what,
                  uint64_t token,
                  enum work_command_kind kind,
                  bool retryable)
{
    struct work_now now = now_of(story, at);
    struct work_command command = {
        .kind = kind,
        .token = token,
        .lease_ns = LEASE_NS,
        .output_data = pawl_view_of(kind == WORK_COMPLETE ? "1" : ""),
        .error_message = pawl_view_of(kind == WORK_FAIL ? "no" : ""),
        .retryable = retryable,
        .backoff = { 20 * NS_PER_S, 20 * NS_PER_S },
        .random = 0, /* half of it */
    };
    bool changed = false;
    pawl_status status = pawl__work_decide_leased(&story->item, &command, &now, &changed, NULL);

    trace_add(&story->trace,
              "token %llu %s -> %s, %s",
              (unsigned long long)token,
              what,
              result_of(status, changed),
              pawl__work_item_status_text(story->item.item.status));
}

static void beats(struct story *story, int64_t at, uint64_t token)
{
    calls(story, at, "beats", token, WORK_HEARTBEAT, false);
}

static void completes(struct story *story, int64_t at, uint64_t token)
{
    calls(story, at, "completes", token, WORK_COMPLETE, false);
}

static void fails(struct story *story, int64_t at, uint64_t token)
{
    calls(story, at, "fails", token, WORK_FAIL, true);
}

static void releases(struct story *story, int64_t at, uint64_t token)
{
    calls(story, at, "releases", token, WORK_RELEASE, false);
}

static void sweeps(struct story *story, int64_t at)
{
    struct work_now now = now_of(story, at);
    struct work_row *row = &story->item;

    if (!pawl__work_decide_expire(row, &now)) {
        trace_add(
            &story->trace, "sweep -> nothing, %s", pawl__work_item_status_text(row->item.status));
        return;
    }
    pawl__work_decide_after_expiry(row, &now);
    trace_add(&story->trace,
              "sweep -> expired, then %s, retries %d of %d",
              pawl__work_item_status_text(row->item.status),
              row->item.retry_count,
              row->item.max_retries);
}

static void cancels(struct story *story, int64_t at)
{
    struct work_now now = now_of(story, at);
    bool done = pawl__work_decide_cancel(&story->item, pawl_view_of("cancelled"), &now);

    trace_add(&story->trace,
              "cancel -> %s%s",
              done ? "" : "nothing, ",
              pawl__work_item_status_text(story->item.item.status));
}

static void test_a_lease_lasts_until_its_deadline_and_a_heartbeat_moves_it(void **state)
{
    struct story *story = *state;

    claims(story, 0, "ann");
    claims(story, 1, "bob");
    beats(story, 20, 1);
    completes(story, 49, 1);
    completes(story, 60, 1);
    beats(story, 61, 1);
    assert_trace(&story->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[  1] bob claims -> nothing, it is in_progress\n"
                 "[ 20] token 1 beats -> ok, in_progress\n"
                 "[ 49] token 1 completes -> ok, completed\n"
                 "[ 60] token 1 completes -> ok, as before, completed\n"
                 "[ 61] token 1 beats -> lease lost, completed\n");
}

static void test_who_comes_back_too_late_changes_nothing(void **state)
{
    struct story *story = *state;

    claims(story, 0, "ann");
    completes(story, 30, 1);
    sweeps(story, 30);
    claims(story, 31, "bob");
    completes(story, 32, 1);
    fails(story, 33, 1);
    releases(story, 34, 1);
    beats(story, 35, 1);
    completes(story, 36, 2);
    assert_trace(&story->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[ 30] token 1 completes -> lease lost, in_progress\n"
                 "[ 30] sweep -> expired, then pending, retries 1 of 1\n"
                 "[ 31] bob claims -> token 2, until 61\n"
                 "[ 32] token 1 completes -> lease lost, in_progress\n"
                 "[ 33] token 1 fails -> lease lost, in_progress\n"
                 "[ 34] token 1 releases -> lease lost, in_progress\n"
                 "[ 35] token 1 beats -> lease lost, in_progress\n"
                 "[ 36] token 2 completes -> ok, completed\n");
}

static void test_a_heartbeat_in_time_wins_over_the_sweep(void **state)
{
    struct story *story = *state;

    claims(story, 0, "ann");
    sweeps(story, 29);
    beats(story, 29, 1);
    sweeps(story, 30);
    sweeps(story, 58);
    sweeps(story, 59);
    claims(story, 59, "bob");
    sweeps(story, 89);
    claims(story, 90, "eve");
    assert_trace(&story->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[ 29] sweep -> nothing, in_progress\n"
                 "[ 29] token 1 beats -> ok, in_progress\n"
                 "[ 30] sweep -> nothing, in_progress\n"
                 "[ 58] sweep -> nothing, in_progress\n"
                 "[ 59] sweep -> expired, then pending, retries 1 of 1\n"
                 "[ 59] bob claims -> token 2, until 89\n"
                 "[ 89] sweep -> expired, then failed, retries 1 of 1\n"
                 "[ 90] eve claims -> nothing, it is failed\n");
}

static void test_a_failure_waits_for_its_backoff_and_a_release_does_not(void **state)
{
    struct story *story = *state;

    claims(story, 0, "ann");
    releases(story, 1, 1);
    releases(story, 2, 1);
    claims(story, 2, "ann");
    fails(story, 3, 2);
    fails(story, 4, 2);
    claims(story, 12, "ann");
    claims(story, 13, "ann");
    fails(story, 14, 3);
    fails(story, 15, 3);
    assert_trace(&story->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[  1] token 1 releases -> ok, pending\n"
                 "[  2] token 1 releases -> ok, as before, pending\n"
                 "[  2] ann claims -> token 2, until 32\n"
                 "[  3] token 2 fails -> ok, waiting\n"
                 "[  4] token 2 fails -> ok, as before, waiting\n"
                 "[ 12] ann claims -> nothing, it is waiting\n"
                 "[ 13] ann claims -> token 3, until 43\n"
                 "[ 14] token 3 fails -> ok, failed\n"
                 "[ 15] token 3 fails -> ok, as before, failed\n");
}

static void test_a_cancelled_item_is_lost_to_its_holder(void **state)
{
    struct story *story = *state;

    claims(story, 0, "ann");
    cancels(story, 1);
    completes(story, 2, 1);
    fails(story, 3, 1);
    cancels(story, 4);
    sweeps(story, 40);
    assert_trace(&story->trace,
                 "[  0] ann claims -> token 1, until 30\n"
                 "[  1] cancel -> failed\n"
                 "[  2] token 1 completes -> lease lost, failed\n"
                 "[  3] token 1 fails -> lease lost, failed\n"
                 "[  4] cancel -> nothing, failed\n"
                 "[ 40] sweep -> nothing, failed\n");
}

/* --- keys --- */

static const char *answer_text(pawl_idem_answer answer)
{
    static const char *const texts[] = {
        [PAWL_IDEM_NEW] = "new",
        [PAWL_IDEM_IN_FLIGHT] = "in flight",
        [PAWL_IDEM_DONE] = "done",
        [PAWL_IDEM_FAILED] = "failed",
        [PAWL_IDEM_HASH_CONFLICT] = "another request",
        [PAWL_IDEM_IN_DOUBT] = "in doubt",
    };

    return texts[answer];
}

/* `wall_step_us`: the wall clock was set by so much. */
static void begins_after_step(
    struct story *story, int64_t at, const char *hash, bool take_over, int64_t wall_step_us)
{
    struct work_now now = now_of(story, at);
    struct work_key_begin wish = {
        .key = pawl_view_of("pay"),
        .request_hash = pawl_view_of(hash),
        .lease_ns = LEASE_NS,
        .ttl_us = 100 * US_PER_S,
        .take_over = take_over,
    };
    pawl_idem_answer answer = PAWL_IDEM_NEW;
    pawl_error error = PAWL_ERROR_INIT;

    now.wall_us += wall_step_us;
    assert_ok(pawl__work_key_decide_begin(&story->key, &wish, &now, &answer, &error), &error);
    if (answer == PAWL_IDEM_NEW) {
        story->key.known = true; /* as the store would have it */
        trace_add(&story->trace,
                  "begin %s%s -> new, token %llu",
                  hash,
                  take_over ? ", take over" : "",
                  (unsigned long long)story->key.owner_token);
    } else {
        trace_add(&story->trace,
                  "begin %s%s -> %s",
                  hash,
                  take_over ? ", take over" : "",
                  answer_text(answer));
    }
}

static void begins(struct story *story, int64_t at, const char *hash)
{
    begins_after_step(story, at, hash, false, 0);
}

static void ends(struct story *story,
                 int64_t at,
                 uint64_t token,
                 enum work_key_state state,
                 const char *response)
{
    struct work_now now = now_of(story, at);
    bool changed = false;
    pawl_status status = pawl__work_key_decide_end(
        &story->key, token, state, pawl_view_of(response), &now, &changed, NULL);

    trace_add(&story->trace,
              "token %llu %s %s -> %s",
              (unsigned long long)token,
              state == WORK_KEY_COMPLETED ? "completes" : "fails",
              response,
              result_of(status, changed));
}

static void gives_up(struct story *story, int64_t at, uint64_t token)
{
    bool changed = false;

    (void)now_of(story, at);
    pawl_status status = pawl__work_key_decide_release(&story->key, token, &changed, NULL);
    trace_add(&story->trace,
              "token %llu gives up -> %s",
              (unsigned long long)token,
              result_of(status, changed));
}

static void test_a_key_is_new_once_and_done_until_its_ttl(void **state)
{
    struct story *story = *state;

    begins(story, 0, "A");
    begins(story, 1, "A");
    begins(story, 2, "B");
    ends(story, 3, 1, WORK_KEY_COMPLETED, "{\"n\":1}");
    ends(story, 4, 1, WORK_KEY_COMPLETED, "{ \"n\": 1 }");
    ends(story, 5, 1, WORK_KEY_COMPLETED, "2");
    begins(story, 99, "A");
    begins_after_step(story, 99, "A", false, 3600 * US_PER_S);
    begins_after_step(story, 99, "A", false, -3600 * US_PER_S);
    begins(story, 100, "B");
    ends(story, 101, 1, WORK_KEY_COMPLETED, "{\"n\":1}");
    assert_trace(&story->trace,
                 "[  0] begin A -> new, token 1\n"
                 "[  1] begin A -> in flight\n"
                 "[  2] begin B -> another request\n"
                 "[  3] token 1 completes {\"n\":1} -> ok\n"
                 "[  4] token 1 completes { \"n\": 1 } -> ok, as before\n"
                 "[  5] token 1 completes 2 -> lease lost\n"
                 "[ 99] begin A -> done\n"
                 "[ 99] begin A -> done\n"
                 "[ 99] begin A -> done\n"
                 "[100] begin B -> new, token 2\n"
                 "[101] token 1 completes {\"n\":1} -> lease lost\n");
}

static void test_a_key_whose_owner_is_gone_is_in_doubt_until_somebody_decides(void **state)
{
    struct story *story = *state;

    begins(story, 0, "A");
    begins(story, 30, "A");
    begins_after_step(story, 31, "A", true, 0);
    ends(story, 32, 1, WORK_KEY_COMPLETED, "1");
    ends(story, 33, 2, WORK_KEY_FAILED, "\"no\"");
    begins(story, 34, "A");
    begins_after_step(story, 35, "A", true, 0);
    assert_trace(&story->trace,
                 "[  0] begin A -> new, token 1\n"
                 "[ 30] begin A -> in doubt\n"
                 "[ 31] begin A, take over -> new, token 2\n"
                 "[ 32] token 1 completes 1 -> lease lost\n"
                 "[ 33] token 2 fails \"no\" -> ok\n"
                 "[ 34] begin A -> failed\n"
                 "[ 35] begin A, take over -> new, token 3\n");
}

static void test_a_key_that_was_given_up_is_new_for_any_request(void **state)
{
    struct story *story = *state;

    begins(story, 0, "A");
    gives_up(story, 1, 1);
    gives_up(story, 2, 1);
    begins(story, 3, "B");
    gives_up(story, 4, 1);
    ends(story, 5, 2, WORK_KEY_COMPLETED, "1");
    gives_up(story, 6, 2);
    begins(story, 7, "A");
    assert_trace(&story->trace,
                 "[  0] begin A -> new, token 1\n"
                 "[  1] token 1 gives up -> ok\n"
                 "[  2] token 1 gives up -> ok, as before\n"
                 "[  3] begin B -> new, token 2\n"
                 "[  4] token 1 gives up -> lease lost\n"
                 "[  5] token 2 completes 1 -> ok\n"
                 "[  6] token 2 gives up -> lease lost\n"
                 "[  7] begin A -> another request\n");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_a_lease_lasts_until_its_deadline_and_a_heartbeat_moves_it),
        STORY(test_who_comes_back_too_late_changes_nothing),
        STORY(test_a_heartbeat_in_time_wins_over_the_sweep),
        STORY(test_a_failure_waits_for_its_backoff_and_a_release_does_not),
        STORY(test_a_cancelled_item_is_lost_to_its_holder),
        STORY(test_a_key_is_new_once_and_done_until_its_ttl),
        STORY(test_a_key_whose_owner_is_gone_is_in_doubt_until_somebody_decides),
        STORY(test_a_key_that_was_given_up_is_new_for_any_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
