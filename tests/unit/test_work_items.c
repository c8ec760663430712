/* Items on every backend: claimed in order, held by a token, ended once. */
#include "lib/work_fixture.h"

#include <stdio.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "work/items/item.h"

static void test_claims_go_by_priority_then_submission(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_submission same[3];
    static const char *const ids[] = { "z", "x", "y" };

    make_task(f, "T");
    submit(f, "old", "T", 0);
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        same[i] = (pawl_submission)PAWL_SUBMISSION_INIT;
        same[i].work_item_id = pawl_view_of(ids[i]);
        same[i].task_id = pawl_view_of("T");
        same[i].work_type = pawl_view_of("t");
    }
    assert_ok(pawl_work_submit(f->work, same, COUNT_OF(same), NULL, &f->err), &f->err);
    work_pass(f, 1);
    submit(f, "high", "T", 5);
    submit(f, "low", "T", -5);
    claim.holder = pawl_view_of("w");
    claim.count_max = 4;
    assert_string_equal(claim_ids(f, &claim), "high old z x ");
    assert_string_equal(claim_ids(f, &claim), "y low ");
    assert_string_equal(claim_ids(f, &claim), "");
}

static void test_the_same_output_in_another_spelling_is_the_same(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    pawl_lease lease = lease_of("a", claim_it(f, "w", "a"));
    assert_ok(pawl_work_complete(f->work, &lease, pawl_view_of("{\"a\":1,\"b\":[2]}"), &f->err),
              &f->err);
    assert_ok(
        pawl_work_complete(f->work, &lease, pawl_view_of("{ \"b\": [ 2 ], \"a\": 1.0 }"), &f->err),
        &f->err);
    assert_status(pawl_work_complete(f->work, &lease, pawl_view_of("{\"a\":1}"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
}

static void test_claims_take_what_the_filter_says(void **state)
{
    struct work_fixture *f = *state;
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_view types[] = { pawl_view_of("a"), pawl_view_of("b"), pawl_view_of("a") };
    static const struct {
        const char *id;
        const char *task;
        const char *type;
        int32_t priority;
    } rows[] = {
        { "1", "S", "a", 0 }, { "2", "S", "b", 9 }, { "3", "T", "a", 1 },
        { "4", "T", "b", 2 }, { "5", "T", "c", 8 },
    };

    make_task(f, "S");
    make_task(f, "T");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        submission.work_item_id = pawl_view_of(rows[i].id);
        submission.task_id = pawl_view_of(rows[i].task);
        submission.work_type = pawl_view_of(rows[i].type);
        submission.priority = rows[i].priority;
        assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
    }
    pawl_claim claim = PAWL_CLAIM_INIT;
    claim.holder = pawl_view_of("w");
    claim.count_max = 2;
    claim.work_types = types;
    claim.work_type_count = COUNT_OF(types);
    assert_string_equal(claim_ids(f, &claim), "2 4 ");
    claim.task_id = pawl_view_of("S");
    assert_string_equal(claim_ids(f, &claim), "1 ");
    claim.task_id = pawl_view_of("T");
    claim.work_type_count = 1;
    assert_string_equal(claim_ids(f, &claim), "3 ");
    claim.work_type_count = 0;
    assert_string_equal(claim_ids(f, &claim), "5 ");
}

static void test_an_item_goes_from_submit_to_complete(void **state)
{
    struct work_fixture *f = *state;
    pawl_item *item;

    make_task(f, "T");
    assert_task(f, "T", "pending w0 p0 r0 c0 f0");
    submit(f, "a", "T", 0);
    assert_task(f, "T", "pending w0 p1 r0 c0 f0");
    uint64_t token = claim_it(f, "w", "a");
    assert_int_equal(token, 1);
    assert_item(f, "a", "in_progress 0/3 token 1 attempts 1 ''");
    assert_task(f, "T", "running w0 p0 r1 c0 f0");
    assert_ok(complete(f, "a", token), &f->err);
    assert_item(f, "a", "completed 0/3 token 1 attempts 1 ''");
    assert_task(f, "T", "succeeded w0 p0 r0 c1 f0");
    assert_history(f, "a", ">pending 0|pending>in_progress 1 by w|in_progress>completed 1 by w");
    assert_ok(pawl_work_get(f->work, pawl_view_of("a"), &item, &f->err), &f->err);
    assert_true(pawl__view_is(item->output_data, "{\"ok\":true}"));
    assert_int_equal(item->lease_holder.len, 0);
    assert_int_equal(item->lease_expires_at_us, 0);
    assert_true(item->started_at_us >= item->created_at_us);
    assert_true(item->completed_at_us >= item->started_at_us);
    pawl_item_free(item);
    submit(f, "b", "T", 0);
    assert_task(f, "T", "running w0 p1 r0 c1 f0");
}

static void test_the_same_end_by_the_same_token_is_answered_again(void **state)
{
    struct work_fixture *f = *state;
    pawl_item_status status = PAWL_ITEM_PENDING;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    pawl_lease first = lease_of("a", token);
    assert_ok(complete(f, "a", token), &f->err);
    assert_ok(complete(f, "a", token), &f->err);
    assert_status(pawl_work_complete(f->work, &first, pawl_view_of("{\"other\":1}"), &f->err),
                  PAWL_LEASE_LOST,
                  &f->err);
    assert_message(&f->err, "item 'a': it is completed");
    assert_status(complete(f, "a", token + 1), PAWL_LEASE_LOST, &f->err);
    assert_status(complete(f, "a", 0), PAWL_LEASE_LOST, &f->err);
    assert_status(fail_with(f, "a", token, "x", true), PAWL_LEASE_LOST, &f->err);

    submit(f, "b", "T", 0);
    pawl_lease lease = lease_of("b", claim_it(f, "w", "b"));
    for (int i = 0; i < 2; i++) {
        assert_ok(pawl_work_fail(f->work,
                                 &lease,
                                 pawl_view_of("boom"),
                                 (pawl_view){ NULL, 0 },
                                 true,
                                 &status,
                                 &f->err),
                  &f->err);
        assert_int_equal(status, PAWL_ITEM_WAITING);
        assert_item(f, "b", "waiting 1/3 token 1 attempts 1 'boom'");
    }
    assert_status(complete(f, "b", 1), PAWL_LEASE_LOST, &f->err);

    submit(f, "c", "T", 0);
    lease = lease_of("c", claim_it(f, "w", "c"));
    assert_ok(pawl_work_release(f->work, &lease, &f->err), &f->err);
    assert_ok(pawl_work_release(f->work, &lease, &f->err), &f->err);
    assert_item(f, "c", "pending 0/3 token 1 attempts 1 ''");
    assert_int_equal(claim_it(f, "w", "c"), 2);
    assert_status(pawl_work_release(f->work, &lease, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_item(f, "c", "in_progress 0/3 token 2 attempts 2 ''");
}

static void test_a_token_of_the_past_or_of_another_item_changes_nothing(void **state)
{
    struct work_fixture *f = *state;
    pawl_lease lease;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "b", "T", 0);
    uint64_t first = claim_it(f, "w", "a");
    lease = lease_of("a", first);
    assert_ok(pawl_work_release(f->work, &lease, &f->err), &f->err);
    uint64_t second = claim_it(f, "v", "a");
    assert_int_equal(second, first + 1);
    (void)claim_it(f, "v", "b");

    assert_status(complete(f, "a", first), PAWL_LEASE_LOST, &f->err);
    assert_message(&f->err, "token 1 is not the newest, which is 2");
    assert_status(fail_with(f, "a", first, "x", true), PAWL_LEASE_LOST, &f->err);
    assert_status(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_status(complete(f, "b", second), PAWL_LEASE_LOST, &f->err);
    assert_status(complete(f, "none", 1), PAWL_NOT_FOUND, &f->err);
    assert_message(&f->err, "no item 'none'");
    assert_item(f, "a", "in_progress 0/3 token 2 attempts 2 ''");
    assert_item(f, "b", "in_progress 0/3 token 1 attempts 1 ''");
}

static void test_a_lease_that_ran_out_is_lost_though_nobody_took_it(void **state)
{
    struct work_fixture *f = *state;
    pawl_lease lease;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    lease = lease_of("a", claim_it(f, "w", "a"));
    work_pass(f, 299000);
    assert_ok(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), &f->err);
    work_pass(f, 299000);
    /* Never back: a short heartbeat takes nothing away. */
    assert_ok(pawl_work_heartbeat(f->work, &lease, 600000, NULL, &f->err), &f->err);
    assert_ok(pawl_work_heartbeat(f->work, &lease, 1, NULL, &f->err), &f->err);
    work_pass(f, 599000);
    assert_ok(pawl_work_heartbeat(f->work, &lease, 1000, NULL, &f->err), &f->err);
    work_pass(f, 1000);
    assert_status(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_message(&f->err, "has run out");
    assert_status(complete(f, "a", lease.token), PAWL_LEASE_LOST, &f->err);
    assert_status(fail_with(f, "a", lease.token, "x", true), PAWL_LEASE_LOST, &f->err);
    assert_status(pawl_work_release(f->work, &lease, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_true(nothing_to_claim(f)); /* that is the watchdog's */
    assert_item(f, "a", "in_progress 0/3 token 1 attempts 1 ''");
}

/* The task's newest checkpoint says that the item's lease ran out. */
static void assert_boundary(struct work_fixture *f, const char *task_id, const char *id)
{
    static const pawl_checkpoint_type type = PAWL_CHECKPOINT_ERROR_BOUNDARY;
    pawl_checkpoint *checkpoint;

    if (work_is(f, "model")) {
        return;
    }
    assert_ok(
        pawl_checkpoint_latest(f->work, pawl_view_of(task_id), &type, true, &checkpoint, &f->err),
        &f->err);
    assert_int_equal(checkpoint->sequence_number, 1);
    assert_true(pawl__view_is(checkpoint->work_item_id, id));
    assert_true(pawl__view_is(checkpoint->snapshot_data,
                              "{\"error\":\"Lease expired - no heartbeat received\","
                              "\"work_item_id\":\"a\",\"lease_holder\":\"w\",\"token\":1,"
                              "\"attempts\":1,\"retry_count\":0,\"max_retries\":3}"));
    pawl_checkpoint_free(checkpoint);
}

static void test_the_watchdog_takes_back_what_ran_out_and_nothing_else(void **state)
{
    struct work_fixture *f = *state;
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;
    pawl_lease lease;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "b", "T", 0);
    (void)claim_it(f, "w", "a");
    lease = lease_of("b", claim_it(f, "w", "b"));
    work_pass(f, 200000);
    assert_ok(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), &f->err);
    work_pass(f, 100000);
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.expired, 1);
    assert_int_equal(report.retried, 1);
    assert_int_equal(report.failed, 0);
    assert_item(f, "a", "pending 1/3 token 1 attempts 1 'Lease expired - no heartbeat received'");
    assert_item(f, "b", "in_progress 0/3 token 1 attempts 1 ''");
    assert_boundary(f, "T", "a");
    assert_history(f,
                   "a",
                   ">pending 0|pending>in_progress 1 by w|in_progress>expired 1 by w 'Lease "
                   "expired - no heartbeat received'|expired>pending 1 'Lease expired - no "
                   "heartbeat received'");
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.expired, 0);
    assert_int_equal(claim_it(f, "w", "a"), 2);
}

static void test_max_retries_3_is_four_executions(void **state)
{
    struct work_fixture *f = *state;
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    for (int i = 0; i < 3; i++) {
        assert_ok(fail_with(f, "a", claim_it(f, "w", "a"), "boom", true), &f->err);
        assert_true(nothing_to_claim(f));
        work_pass(f, 300000);
    }
    assert_int_equal(claim_it(f, "w", "a"), 4);
    work_pass(f, 300000);
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.failed, 1);
    assert_item(f, "a", "failed 3/3 token 4 attempts 4 'Lease expired - no heartbeat received'");
    assert_task(f, "T", "failed w0 p0 r0 c0 f1");
    assert_true(nothing_to_claim(f));
}

static void test_backoff_doubles_between_its_bounds(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    for (int i = 0; i < 3; i++) {
        pawl_item *item;
        int64_t ceiling_us = (INT64_C(1000000)) << i;
        assert_ok(fail_with(f, "a", claim_it(f, "w", "a"), "boom", true), &f->err);
        assert_ok(pawl_work_get(f->work, pawl_view_of("a"), &item, &f->err), &f->err);
        int64_t wait_us = item->due_at_us - item->updated_at_us;
        assert_true(wait_us >= ceiling_us / 2 - 1 && wait_us <= ceiling_us);
        pawl_item_free(item);
        work_pass(f, ceiling_us / 1000);
    }
    assert_ok(fail_with(f, "a", claim_it(f, "w", "a"), "boom", true), &f->err);
    assert_item(f, "a", "failed 3/3 token 4 attempts 4 'boom'");
}

static void test_a_permanent_failure_ends_it_at_once(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    assert_ok(fail_with(f, "a", token, "no such file", false), &f->err);
    assert_item(f, "a", "failed 0/3 token 1 attempts 1 'no such file'");
    assert_status(fail_with(f, "a", token, "another", false), PAWL_LEASE_LOST, &f->err);
    assert_status(complete(f, "a", token), PAWL_LEASE_LOST, &f->err);
    assert_history(
        f, "a", ">pending 0|pending>in_progress 1 by w|in_progress>failed 1 by w 'no such file'");
}

static void test_the_same_submission_again_is_a_duplicate_another_a_conflict(void **state)
{
    struct work_fixture *f = *state;
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_submit_result result = { .size = sizeof(pawl_submit_result), .duplicate = true };

    make_task(f, "T");
    make_task(f, "S");
    submission.work_item_id = pawl_view_of("a");
    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of("t");
    submission.input_data = pawl_view_of("{\"a\":1,\"b\":[2]}");
    assert_ok(pawl_work_submit(f->work, &submission, 1, &result, &f->err), &f->err);
    assert_false(result.duplicate);
    submission.input_data = pawl_view_of(" {\"b\": [2], \"a\": 1.0}");
    submission.max_retries = 3;
    assert_ok(pawl_work_submit(f->work, &submission, 1, &result, &f->err), &f->err);
    assert_true(result.duplicate);
    assert_string_equal(result.work_item_id, "a");

    pawl_submission others[5];
    static const char *const fields[] = {
        "input_data", "max_retries", "priority", "work_type", "task_id"
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        others[i] = submission;
    }
    others[0].input_data = pawl_view_of("{}");
    others[1].max_retries = 2;
    others[2].priority = 1;
    others[3].work_type = pawl_view_of("u");
    others[4].task_id = pawl_view_of("S");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_status(
            pawl_work_submit(f->work, &others[i], 1, &result, &f->err), PAWL_CONFLICT, &f->err);
        assert_message(&f->err, fields[i]);
    }
    assert_item(f, "a", "pending 0/3 token 0 attempts 0 ''");
    assert_history(f, "a", ">pending 0");
}

static void test_a_submit_is_all_or_nothing_and_names_what_is_wrong(void **state)
{
    struct work_fixture *f = *state;
    char name[PAWL_WORK_NAME_BYTES_MAX + 2];
    pawl_submission good = PAWL_SUBMISSION_INIT;
    pawl_submission pair[2];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    make_task(f, "T");
    good.task_id = pawl_view_of("T");
    good.work_type = pawl_view_of("t");
    pawl_submission bad[12];
    static const struct {
        pawl_status status;
        const char *message;
    } expected[] = {
        { PAWL_INVALID, "item 1: priority: is 1000001, must be -1000000 to 1000000" },
        { PAWL_INVALID, "item 1: priority: is -1000001" },
        { PAWL_INVALID, "item 1: max_retries: is 1000001, the limit is 1000000" },
        { PAWL_INVALID, "item 1: input_data: " },
        { PAWL_INVALID, "item 1: work_type: is empty" },
        { PAWL_INVALID, "item 1: work_item_id: has 201 bytes, the limit is 200" },
        { PAWL_INVALID, "item 1: delay_ms: is -1" },
        { PAWL_INVALID, "item 1: work_type: is not UTF-8" },
        { PAWL_INVALID, "item 1: work_type: has a control character" },
        { PAWL_NOT_FOUND, "item 1: no task 'none'" },
        { PAWL_NOT_FOUND, "item 1: after: no item 'gone'" },
        { PAWL_INVALID, "item 1: task_id: is empty" },
    };
    pawl_view gone = pawl_view_of("gone");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bad[i] = good;
    }
    bad[0].priority = PAWL_WORK_PRIORITY_MAX + 1;
    bad[1].priority = PAWL_WORK_PRIORITY_MIN - 1;
    bad[2].max_retries = PAWL_WORK_RETRIES_MAX + 1;
    bad[3].input_data = pawl_view_of("{\"a\":}");
    bad[4].work_type = pawl_view_of("");
    bad[5].work_item_id = pawl_view_of(name);
    bad[6].delay_ms = -1;
    bad[7].work_type = pawl_view_of("\xff");
    bad[8].work_type = pawl_view_of("a\nb");
    bad[9].task_id = pawl_view_of("none");
    bad[10].after = &gone;
    bad[10].after_count = 1;
    bad[11].task_id = pawl_view_of("");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pair[0] = good;
        pair[1] = bad[i];
        assert_status(
            pawl_work_submit(f->work, pair, 2, NULL, &f->err), expected[i].status, &f->err);
        assert_message(&f->err, expected[i].message);
        assert_int_equal(f->err.index, 1);
    }
    assert_task(f, "T", "pending w0 p0 r0 c0 f0");

    pair[0].priority = PAWL_WORK_PRIORITY_MAX;
    pair[0].max_retries = PAWL_WORK_RETRIES_MAX;
    pair[1] = good;
    pair[1].priority = PAWL_WORK_PRIORITY_MIN;
    name[PAWL_WORK_NAME_BYTES_MAX] = '\0';
    pair[1].work_item_id = pawl_view_of(name);
    assert_ok(pawl_work_submit(f->work, pair, 2, NULL, &f->err), &f->err);
    assert_task(f, "T", "pending w0 p2 r0 c0 f0");
}

static void test_a_claim_that_makes_no_sense_is_refused_by_name(void **state)
{
    struct work_fixture *f = *state;
    pawl_claim claim = PAWL_CLAIM_INIT;
    pawl_claimed *claimed = NULL;

    assert_status(pawl_work_claim(f->work, &claim, &claimed, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "holder: is empty");
    claim.holder = pawl_view_of("w");
    claim.count_max = 0;
    assert_status(pawl_work_claim(f->work, &claim, &claimed, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "count_max: is 0, must be 1 to 10000");
    claim.count_max = PAWL_WORK_BATCH_MAX + 1;
    assert_status(pawl_work_claim(f->work, &claim, &claimed, &f->err), PAWL_INVALID, &f->err);
    claim.count_max = PAWL_WORK_BATCH_MAX;
    claim.size = 3;
    assert_status(pawl_work_claim(f->work, &claim, &claimed, &f->err), PAWL_INVALID, &f->err);
    claim.size = sizeof(claim);
    assert_status(pawl_work_claim(f->work, &claim, &claimed, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_null(claimed);
}

static void test_an_output_that_is_no_json_leaves_the_lease(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    pawl_lease lease = lease_of("a", claim_it(f, "w", "a"));
    assert_status(
        pawl_work_complete(f->work, &lease, pawl_view_of("{"), &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "output_data: ");
    assert_ok(complete(f, "a", lease.token), &f->err);
}

static bool add_id(void *context, const pawl_item *item)
{
    struct pawl__buf *text = context;

    pawl__buf_add(text, item->work_item_id);
    pawl__buf_add_char(text, ' ');
    return true;
}

static const char *list(struct work_fixture *f, const pawl_item_filter *filter)
{
    struct pawl__buf text = BUF_OVER(f->text);

    f->text[0] = '\0';
    assert_ok(pawl_work_list(f->work, filter, NULL, add_id, &text, &f->err), &f->err);
    return f->text;
}

static void test_lists_are_in_order_of_creation_and_filtered(void **state)
{
    struct work_fixture *f = *state;
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;

    make_task(f, "S");
    make_task(f, "T");
    submit(f, "d", "S", 0);
    submit(f, "c", "T", 0);
    submit(f, "b", "T", 9);
    submit(f, "a", "T", 0);
    assert_ok(complete(f, "b", claim_it(f, "w", "b")), &f->err);
    assert_ok(fail_with(f, "d", claim_it(f, "v", "d"), "x", true), &f->err);
    (void)claim_it(f, "w", "c");
    assert_string_equal(list(f, NULL), "d c b a ");
    filter.task_id = pawl_view_of("T");
    assert_string_equal(list(f, &filter), "c b a ");
    filter.statuses = 1U << PAWL_ITEM_PENDING | 1U << PAWL_ITEM_COMPLETED;
    assert_string_equal(list(f, &filter), "b a ");
    filter = (pawl_item_filter)PAWL_ITEM_FILTER_INIT;
    filter.statuses = 1U << PAWL_ITEM_WAITING;
    assert_string_equal(list(f, &filter), "d ");
    filter.statuses = 0;
    filter.lease_holder = pawl_view_of("w");
    assert_string_equal(list(f, &filter), "c ");
    filter.lease_holder = pawl_view_of("");
    filter.work_type = pawl_view_of("none");
    assert_string_equal(list(f, &filter), "");
    filter.statuses = 64;
    assert_status(
        pawl_work_list(f->work, &filter, NULL, add_id, NULL, &f->err), PAWL_INVALID, &f->err);
}

static const char *list_page(struct work_fixture *f,
                             const pawl_item_filter *filter,
                             pawl_page *page)
{
    struct pawl__buf text = BUF_OVER(f->text);

    f->text[0] = '\0';
    assert_ok(pawl_work_list(f->work, filter, page, add_id, &text, &f->err), &f->err);
    return f->text;
}

static bool add_first(void *context, const pawl_item *item)
{
    (void)add_id(context, item);
    return false;
}

static void test_a_page_says_where_the_next_one_begins(void **state)
{
    struct work_fixture *f = *state;
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    struct pawl__buf text = BUF_OVER(f->text);

    make_task(f, "T");
    submit(f, "d", "T", 0);
    submit(f, "c", "T", 0);
    submit(f, "b", "T", 0);
    submit(f, "a", "T", 0);
    filter.by_id = true;
    page.limit = 2;
    assert_string_equal(list_page(f, &filter, &page), "a b ");
    assert_true(page.more);
    assert_string_equal(page.from_id, "c");
    assert_string_equal(list_page(f, &filter, &page), "c d ");
    assert_false(page.more);
    assert_string_equal(page.from_id, "");
    f->text[0] = '\0';
    assert_ok(pawl_work_list(f->work, &filter, &page, add_first, &text, &f->err), &f->err);
    assert_string_equal(f->text, "a ");
    assert_true(page.more);
    assert_string_equal(page.from_id, "b");
    filter.by_id = false;
    page = (pawl_page)PAWL_PAGE_INIT;
    page.limit = 3;
    assert_string_equal(list_page(f, &filter, &page), "d c b ");
    assert_true(page.more);
    assert_string_equal(page.from_id, ""); /* in order of creation nothing says where to go on */
    page.limit = 4;
    assert_string_equal(list_page(f, &filter, &page), "d c b a ");
    assert_false(page.more);
}

static bool add_task_id(void *context, const pawl_task *task)
{
    pawl__buf_add(context, task->task_id);
    pawl__buf_add_char(context, ' ');
    return true;
}

static void test_tasks_are_listed_in_pages(void **state)
{
    struct work_fixture *f = *state;
    pawl_page page = PAWL_PAGE_INIT;
    struct pawl__buf text = BUF_OVER(f->text);

    make_task(f, "c");
    make_task(f, "a");
    make_task(f, "b");
    f->text[0] = '\0';
    page.limit = 1;
    do {
        assert_ok(pawl_task_list(f->work, NULL, &page, add_task_id, &text, &f->err), &f->err);
        pawl__buf_add_char(&text, '|');
    } while (page.more);
    assert_string_equal(f->text, "a |b |c |");
    pawl__buf_clear(&text);
    assert_ok(pawl_task_list(f->work, NULL, NULL, add_task_id, &text, &f->err), &f->err);
    assert_string_equal(f->text, "a b c "); /* all at once: they are of one moment */
}

static void test_what_was_stored_is_there_again(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    submit(f, "b", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    assert_ok(fail_with(f, "b", claim_it(f, "w", "b"), "x", true), &f->err);
    if (!work_reopen(f, WORK_BOOT)) {
        return;
    }
    assert_item(f, "a", "in_progress 0/3 token 1 attempts 1 ''");
    assert_item(f, "b", "waiting 1/3 token 1 attempts 1 'x'");
    assert_true(nothing_to_claim(f));
    assert_ok(complete(f, "a", token), &f->err);
    work_pass(f, 1000);
    assert_int_equal(claim_it(f, "w", "b"), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_claims_go_by_priority_then_submission),
        work_test(test_claims_take_what_the_filter_says),
        work_test(test_the_same_output_in_another_spelling_is_the_same),
        work_test(test_an_item_goes_from_submit_to_complete),
        work_test(test_the_same_end_by_the_same_token_is_answered_again),
        work_test(test_a_token_of_the_past_or_of_another_item_changes_nothing),
        work_test(test_a_lease_that_ran_out_is_lost_though_nobody_took_it),
        work_test(test_the_watchdog_takes_back_what_ran_out_and_nothing_else),
        work_test(test_max_retries_3_is_four_executions),
        work_test(test_backoff_doubles_between_its_bounds),
        work_test(test_a_permanent_failure_ends_it_at_once),
        work_test(test_the_same_submission_again_is_a_duplicate_another_a_conflict),
        work_test(test_a_submit_is_all_or_nothing_and_names_what_is_wrong),
        work_test(test_a_claim_that_makes_no_sense_is_refused_by_name),
        work_test(test_an_output_that_is_no_json_leaves_the_lease),
        work_test(test_lists_are_in_order_of_creation_and_filtered),
        work_test(test_a_page_says_where_the_next_one_begins),
        work_test(test_tasks_are_listed_in_pages),
        work_test(test_what_was_stored_is_there_again),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
