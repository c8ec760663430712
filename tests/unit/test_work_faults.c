/* Memory runs out at every place of a transaction: the call says so, and nothing has happened. The
 * committer's part is run on the test's own thread, where allocations can be made to fail. */
#include "lib/work_fixture.h"

#include <stdio.h>

#include "base/core/macros.h"
#include "lib/fault.h"
#include "work/core/group.h"
#include "work/core/internal.h"

/* What the committer does with one request; its answer. */
static pawl_status carry_out(struct work_fixture *f, struct work_request *request)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct work_group *group = NULL;
    bool wake;
    pawl_status status = pawl__work_group_new(f->work->backend, &f->options, &group, &error);

    if (status == PAWL_OK) {
        status = pawl__work_group_run(group, &request, 1, &wake, &error);
    }
    pawl__work_group_free(group);
    return status == PAWL_OK ? request->item.outcome.status : status;
}

static pawl_status run_submit(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    pawl_view after = pawl_view_of("b");
    pawl_submission submissions[2] = { PAWL_SUBMISSION_INIT, PAWL_SUBMISSION_INIT };

    for (size_t i = 0; i < COUNT_OF(submissions); i++) {
        submissions[i].task_id = pawl_view_of("T");
        submissions[i].work_type = pawl_view_of("t");
        submissions[i].input_data = pawl_view_of("{}");
    }
    submissions[0].work_item_id = pawl_view_of("c");
    submissions[0].after = &after;
    submissions[0].after_count = 1;
    submissions[1].work_item_id = pawl_view_of("b");
    return pawl__work_tx_submit(
        tx, request, submissions, NULL, COUNT_OF(submissions), NULL, reterr);
}

static void test_a_submit_without_memory_leaves_nothing(void **state)
{
    struct work_fixture *f = *state;
    int failed = 0;

    make_task(f, "T");
    FAULT_WALK (walk) {
        struct work_request request = { .kind = WORK_RUN, .run = run_submit };
        pawl_status status = carry_out(f, &request);
        bool fired = fault_fired();
        fault_disarm();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        assert_task(f, "T", fired ? "pending w0 p0 r0 c0 f0" : "pending w1 p1 r0 c0 f0");
        failed += fired;
    }
    assert_true(failed > 0);
}

static void test_a_claim_without_memory_leaves_the_item(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    FAULT_WALK (walk) {
        struct work_claiming claiming = { .request.kind = WORK_CLAIM, .claim = PAWL_CLAIM_INIT };
        claiming.claim.holder = pawl_view_of("w");
        claiming.claim.lease_ms = 1000;
        pawl_status status = carry_out(f, &claiming.request);
        bool fired = fault_fired();
        fault_disarm();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        assert_true((claiming.claimed == NULL) == fired);
        pawl_claimed_free(claiming.claimed);
        assert_item(f,
                    "a",
                    fired ? "pending 0/3 token 0 attempts 0 ''"
                          : "in_progress 0/3 token 1 attempts 1 ''");
    }
    assert_history(f, "a", ">pending 0|pending>in_progress 1 by w");
}

static void test_an_end_without_memory_leaves_the_lease_and_those_behind(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "c", "T", "b"), &f->err);
    uint64_t token = claim_it(f, "w", "a");
    FAULT_WALK (walk) {
        struct work_leased call = {
            .request.kind = WORK_LEASED,
            .lease = lease_of("a", token),
            .command = { .kind = WORK_FAIL,
                         .token = token,
                         .error_message = pawl_view_of("x"),
                         .backoff = { .first_ns = 1, .max_ns = 1 } },
        };
        pawl_status status = carry_out(f, &call.request);
        bool fired = fault_fired();
        fault_disarm();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        assert_task(f, "T", fired ? "running w2 p0 r1 c0 f0" : "failed w0 p0 r0 c0 f3");
    }
}

static struct work_leased completing(pawl_view id, uint64_t token)
{
    return (struct work_leased){
        .request.kind = WORK_LEASED,
        .lease = { .work_item_id = id, .token = token },
        .command = { .kind = WORK_COMPLETE, .token = token },
    };
}

enum { LARGE = 100000 }; /* bytes of input: more than an arena has at hand */

static void submit_large(struct work_fixture *f, const char *id)
{
    static char input[LARGE];
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    memset(input, 'x', sizeof(input));
    input[0] = input[LARGE - 1] = '"';
    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of("t");
    submission.input_data = (pawl_view){ input, sizeof(input) };
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
}

/* One item, leased by the handle itself, so that there is more to lease where it came from. */
static pawl_claimed *lease_one_of_many(struct work_fixture *f, long round)
{
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    for (int letter = 'a'; letter <= 'c'; letter++) {
        char id[16];
        snprintf(id, sizeof(id), "i%05ld%c", round, letter);
        submit_large(f, id);
        work_pass(f, 1);
    }
    claim.holder = pawl_view_of("w");
    assert_ok(pawl_work_claim(f->work, &claim, &claimed, &f->err), &f->err);
    return claimed;
}

static void assert_is(struct work_fixture *f, const pawl_item *item, pawl_item_status status)
{
    pawl_item *now = NULL;

    assert_ok(pawl_work_get(f->work, item->work_item_id, &now, &f->err), &f->err);
    assert_int_equal(now->status, status);
    assert_int_equal(now->token, item->token);
    pawl_item_free(now);
}

/* A store that has done it by its fast path says so, though there is no memory for the rest. */
static void walk_completions(struct work_fixture *f, bool claims)
{
    int failed = 0;

    make_task(f, "T");
    FAULT_WALK (walk) {
        fault_disarm();
        pawl_claimed *mine = lease_one_of_many(f, walk.next);
        struct work_claiming next = { .request.kind = WORK_CLAIM, .claim = PAWL_CLAIM_INIT };
        struct work_leased call = completing(mine->items[0].work_item_id, mine->items[0].token);
        next.claim.holder = pawl_view_of("w");
        next.claim.lease_ms = 1000;
        call.next = claims ? &next : NULL;
        fault_arm(walk.next);
        pawl_status status = carry_out(f, &call.request);
        bool fired = fault_fired();
        fault_disarm();
        assert_true(status == PAWL_OK || (fired && status == PAWL_NOMEM));
        assert_is(
            f, &mine->items[0], status == PAWL_OK ? PAWL_ITEM_COMPLETED : PAWL_ITEM_IN_PROGRESS);
        assert_true(fired || !claims || next.claimed != NULL);
        if (next.claimed != NULL) {
            assert_is(f, &next.claimed->items[0], PAWL_ITEM_IN_PROGRESS);
        }
        pawl_claimed_free(next.claimed);
        pawl_claimed_free(mine);
        failed += fired;
    }
    assert_true(failed > 0);
}

static void test_a_completion_without_memory_is_told_or_has_not_happened(void **state)
{
    walk_completions(*state, false);
}

static void test_so_is_one_that_claims_the_next_item(void **state)
{
    walk_completions(*state, true);
}

static void test_opening_survives_every_failed_allocation(void **state)
{
    struct work_fixture *f = *state;

    FAULT_WALK (walk) {
        pawl_work *work = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl_work_open(f->location, NULL, &work, &error);
        bool fired = fault_fired();
        fault_disarm();
        assert_true(status == PAWL_OK || (fired && status == PAWL_NOMEM));
        assert_true((status == PAWL_OK) == (work != NULL));
        pawl_work_close(work, 0, NULL);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_a_submit_without_memory_leaves_nothing),
        work_test(test_a_claim_without_memory_leaves_the_item),
        work_test(test_an_end_without_memory_leaves_the_lease_and_those_behind),
        work_test(test_a_completion_without_memory_is_told_or_has_not_happened),
        work_test(test_so_is_one_that_claims_the_next_item),
        work_test(test_opening_survives_every_failed_allocation),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
