/* Items that wait: for time, for others, for nothing any more. Tasks that are cancelled. */
#include "lib/work_fixture.h"

#include <stdio.h>

#include "base/core/macros.h"

static void test_an_item_comes_after_those_it_names(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "b", "T", 0);
    assert_ok(submit_after(f, "c", "T", "a b a"), &f->err);
    assert_ok(submit_after(f, "d", "T", "c"), &f->err);
    assert_history(f, "c", ">pending 0 'dependency'");
    assert_task(f, "T", "pending w2 p2 r0 c0 f0");
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    uint64_t token = claim_it(f, "w", "b");
    assert_true(nothing_to_claim(f));
    assert_ok(complete(f, "b", token), &f->err);
    assert_task(f, "T", "running w1 p1 r0 c2 f0");
    assert_ok(complete(f, "c", claim_it(f, "w", "c")), &f->err);
    assert_ok(complete(f, "d", claim_it(f, "w", "d")), &f->err);
    assert_task(f, "T", "succeeded w0 p0 r0 c4 f0");
    assert_history(
        f, "d", ">pending 0 'dependency'|pending>in_progress 1 by w|in_progress>completed 1 by w");
}

/* The same again is a duplicate; after something else it is another item, and maybe a cycle. */
static void test_what_comes_again_comes_after_the_same(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "x", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "b", "T", "a a"), &f->err);
    assert_status(submit_after(f, "b", "T", "a x"), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "'b' is there, and does not come after 'x'");
    assert_status(submit_after(f, "a", "T", "b"), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "'a' is there, and does not come after 'b'");
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err); /* also when it is free */
    assert_task(f, "T", "running w0 p2 r0 c1 f0");
}

static void test_a_failure_takes_along_what_comes_after_it(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(submit_after(f, "c", "T", "b a"), &f->err);
    uint64_t token = claim_it(f, "w", "a");
    /* A retry is no end. */
    assert_ok(fail_with(f, "a", token, "boom", true), &f->err);
    assert_item(f, "b", "waiting 0/3 token 0 attempts 0 ''");
    work_pass(f, 1000);
    token = claim_it(f, "w", "a");
    assert_ok(fail_with(f, "a", token, "boom", false), &f->err);
    assert_item(f, "b", "failed 0/3 token 0 attempts 0 'item 'a', which it comes after, failed'");
    assert_item(f, "c", "failed 0/3 token 0 attempts 0 'item 'a', which it comes after, failed'");
    assert_history(
        f,
        "b",
        ">pending 0 'dependency'|pending>failed 0 'item 'a', which it comes after, failed'");
    assert_task(f, "T", "failed w0 p0 r0 c0 f3");
    assert_true(nothing_to_claim(f));
}

static void test_what_has_ended_before_decides_at_once(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "good", "T", 0);
    assert_ok(complete(f, "good", claim_it(f, "w", "good")), &f->err);
    submit(f, "bad", "T", 0);
    assert_ok(fail_with(f, "bad", claim_it(f, "w", "bad"), "x", false), &f->err);
    assert_ok(submit_after(f, "b", "T", "good"), &f->err);
    assert_item(f, "b", "pending 0/3 token 0 attempts 0 ''");
    assert_ok(submit_after(f, "c", "T", "good bad"), &f->err);
    assert_item(f, "c", "failed 0/3 token 0 attempts 0 'item 'bad', which it comes after, failed'");
    assert_int_equal(claim_it(f, "w", "b"), 1);
}

static void test_cycles_and_strangers_are_refused(void **state)
{
    struct work_fixture *f = *state;
    pawl_submission ring[3];
    pawl_view after[3];
    static const char *const ids[] = { "a", "b", "c" };

    make_task(f, "T");
    make_task(f, "S");
    for (size_t i = 0; i < COUNT_OF(ring); i++) {
        after[i] = pawl_view_of(ids[(i + 1) % COUNT_OF(ids)]);
        ring[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        ring[i].work_item_id = pawl_view_of(ids[i]);
        ring[i].task_id = pawl_view_of("T");
        ring[i].work_type = pawl_view_of("t");
        ring[i].after = &after[i];
        ring[i].after_count = 1;
    }
    assert_status(
        pawl_work_submit(f->work, ring, COUNT_OF(ring), NULL, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "would come after itself");
    assert_int_equal(f->err.detail, PAWL_DETAIL_DEPENDENCY_CYCLE);
    assert_status(submit_after(f, "self", "T", "self"), PAWL_INVALID, &f->err);
    assert_message(&f->err, "'self' would come after itself");
    submit(f, "of-S", "S", 0);
    assert_status(submit_after(f, "x", "T", "of-S"), PAWL_INVALID, &f->err);
    assert_message(&f->err, "'of-S' is an item of another task");
    assert_task(f, "T", "pending w0 p0 r0 c0 f0");

    /* Opened at one place it is a chain, in any order. */
    ring[2].after_count = 0;
    assert_ok(pawl_work_submit(f->work, ring, COUNT_OF(ring), NULL, &f->err), &f->err);
    assert_task(f, "T", "pending w2 p1 r0 c0 f0");
}

static void submit_later(struct work_fixture *f,
                         const char *id,
                         int64_t delay_ms,
                         const char *after)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_view other = pawl_view_of(after);

    submission.work_item_id = pawl_view_of(id);
    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of("t");
    submission.delay_ms = delay_ms;
    submission.after = &other;
    submission.after_count = after != NULL;
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
}

static void test_a_delayed_item_comes_when_it_is_due(void **state)
{
    struct work_fixture *f = *state;
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;

    make_task(f, "T");
    submit_later(f, "a", 5000, NULL);
    submit_later(f, "b", 7000, NULL);
    assert_history(f, "a", ">pending 0 'delay'");
    work_pass(f, 4999);
    assert_true(nothing_to_claim(f));
    work_pass(f, 1);
    assert_int_equal(claim_it(f, "w", "a"), 1);
    assert_true(nothing_to_claim(f));
    work_pass(f, 2000);
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.due, 1);
    assert_item(f, "b", "pending 0/3 token 0 attempts 0 ''");
}

static void test_a_delay_and_a_dependency_both_have_to_pass(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit_later(f, "early", 5000, "a");
    submit_later(f, "late", 60000, "a");
    work_pass(f, 10000);
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    assert_int_equal(claim_it(f, "w", "early"), 1);
    assert_true(nothing_to_claim(f));
    work_pass(f, 50000);
    assert_int_equal(claim_it(f, "w", "late"), 1);
}

static void test_a_cancelled_task_ends_all_of_its_items(void **state)
{
    struct work_fixture *f = *state;
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    uint64_t items = 99;

    make_task(f, "T");
    make_task(f, "S");
    submit(f, "done", "T", 9);
    submit(f, "running", "T", 8);
    submit(f, "pending", "T", 0);
    assert_ok(submit_after(f, "waiting", "T", "pending"), &f->err);
    submit(f, "other", "S", 0);
    assert_ok(complete(f, "done", claim_it(f, "w", "done")), &f->err);
    uint64_t token = claim_it(f, "w", "running");
    assert_ok(pawl_task_cancel(f->work, pawl_view_of("T"), &items, &f->err), &f->err);
    assert_int_equal(items, 3);
    assert_task(f, "T", "cancelled! w0 p0 r0 c1 f3");
    assert_item(f, "waiting", "failed 0/3 token 0 attempts 0 'cancelled'");
    assert_status(complete(f, "running", token), PAWL_LEASE_LOST, &f->err);
    assert_status(fail_with(f, "running", token, "x", true), PAWL_LEASE_LOST, &f->err);
    assert_int_equal(claim_it(f, "w", "other"), 1);
    assert_true(nothing_to_claim(f));

    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of("t");
    assert_status(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "task 'T' is cancelled");
    assert_int_equal(f->err.detail, PAWL_DETAIL_TASK_ENDED);
    assert_ok(pawl_task_cancel(f->work, pawl_view_of("T"), &items, &f->err), &f->err);
    assert_int_equal(items, 0);
    assert_status(pawl_task_set_status(f->work, pawl_view_of("T"), PAWL_TASK_RUNNING, &f->err),
                  PAWL_CONFLICT,
                  &f->err);
    assert_status(
        pawl_task_cancel(f->work, pawl_view_of("none"), NULL, &f->err), PAWL_NOT_FOUND, &f->err);
}

static void test_one_item_is_cancelled_whoever_runs_it(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    assert_ok(submit_after(f, "b", "T", "a"), &f->err);
    assert_ok(pawl_work_cancel(f->work, pawl_view_of("a"), &f->err), &f->err);
    assert_item(f, "a", "failed 0/3 token 1 attempts 1 'cancelled'");
    assert_item(f, "b", "failed 0/3 token 0 attempts 0 'item 'a', which it comes after, failed'");
    assert_status(complete(f, "a", token), PAWL_LEASE_LOST, &f->err);
    assert_status(pawl_work_cancel(f->work, pawl_view_of("a"), &f->err), PAWL_CONFLICT, &f->err);
    assert_message(&f->err, "is failed already");
    assert_status(
        pawl_work_cancel(f->work, pawl_view_of("none"), &f->err), PAWL_NOT_FOUND, &f->err);
    assert_task(f, "T", "failed w0 p0 r0 c0 f2");
    assert_status(
        pawl_task_cancel(f->work, pawl_view_of("T"), NULL, &f->err), PAWL_CONFLICT, &f->err);
}

static void test_a_status_of_the_user_is_left_alone(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(pawl_task_set_status(f->work, pawl_view_of("T"), PAWL_TASK_PENDING, &f->err),
              &f->err);
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    assert_task(f, "T", "pending! w0 p0 r0 c1 f0");
    assert_status(pawl_task_set_status(f->work, pawl_view_of("T"), PAWL_TASK_CANCELLED, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_status(pawl_task_set_status(f->work, pawl_view_of("T"), (pawl_task_status)77, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_status(pawl_task_set_status(f->work, pawl_view_of("none"), PAWL_TASK_FAILED, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
}

static void test_a_task_is_made_once(void **state)
{
    struct work_fixture *f = *state;
    pawl_task task = { .size = sizeof(pawl_task),
                       .task_id = pawl_view_of("T"),
                       .title = pawl_view_of("first"),
                       .metadata = pawl_view_of("{\"a\":1}") };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1] = "";
    pawl_task *stored;

    assert_ok(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err), &f->err);
    assert_string_equal(id, "T");
    assert_ok(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err), &f->err);
    task.metadata = pawl_view_of(" { \"a\": 1.0 }"); /* the same, written in another way */
    assert_ok(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err), &f->err);
    task.metadata = pawl_view_of("{\"a\":2}");
    assert_status(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err),
                  PAWL_CONFLICT,
                  &f->err);
    assert_message(&f->err, "another metadata");
    task.metadata = pawl_view_of("{\"a\":1}");
    task.title = pawl_view_of("second");
    assert_status(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err),
                  PAWL_CONFLICT,
                  &f->err);
    assert_message(&f->err, "another title");
    task.title = pawl_view_of("first");
    task.metadata = pawl_view_of("[1]");
    assert_status(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_message(&f->err, "metadata: must be a JSON object");
    task.task_id = pawl_view_of("");
    task.metadata = pawl_view_of("");
    assert_ok(pawl_task_create(f->work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, &f->err), &f->err);
    assert_int_equal(strlen(id), 36);
    assert_ok(pawl_task_get(f->work, pawl_view_of("T"), &stored, &f->err), &f->err);
    assert_memory_equal(stored->title.data, "first", 5);
    assert_memory_equal(stored->metadata.data, "{\"a\":1}", 7);
    pawl_task_free(stored);
    assert_status(
        pawl_task_get(f->work, pawl_view_of("none"), &stored, &f->err), PAWL_NOT_FOUND, &f->err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_an_item_comes_after_those_it_names),
        work_test(test_what_comes_again_comes_after_the_same),
        work_test(test_a_failure_takes_along_what_comes_after_it),
        work_test(test_what_has_ended_before_decides_at_once),
        work_test(test_cycles_and_strangers_are_refused),
        work_test(test_a_delayed_item_comes_when_it_is_due),
        work_test(test_a_delay_and_a_dependency_both_have_to_pass),
        work_test(test_a_cancelled_task_ends_all_of_its_items),
        work_test(test_one_item_is_cancelled_whoever_runs_it),
        work_test(test_a_status_of_the_user_is_left_alone),
        work_test(test_a_task_is_made_once),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
