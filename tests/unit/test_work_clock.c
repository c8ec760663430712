/* Which clock decides: the boot clock, whatever the wall clock shows; another boot is another clock. */
#include "lib/work_fixture.h"

#include <stdio.h>

#include "base/core/macros.h"

#define HOUR_US (INT64_C(3600) * US_PER_S)
#define OTHER_BOOT "22222222-2222-4222-8222-222222222222"

static void walk_with_step(struct work_fixture *f, const char *task_id, int64_t step_us)
{
    pawl_submission submission = PAWL_SUBMISSION_INIT;
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;
    char running[16];
    char delayed[16];

    make_task(f, task_id);
    snprintf(running, sizeof(running), "%s-run", task_id);
    snprintf(delayed, sizeof(delayed), "%s-later", task_id);
    submit(f, running, task_id, 0);
    pawl_lease lease = lease_of(running, claim_it(f, "w", running));
    submission.work_item_id = pawl_view_of(delayed);
    submission.task_id = pawl_view_of(task_id);
    submission.work_type = pawl_view_of("t");
    submission.delay_ms = 600000;
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);

    pawl__clock_step_wall(&f->clock, step_us);
    assert_true(nothing_to_claim(f));
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.expired, 0);
    assert_int_equal(report.due, 0);
    assert_ok(pawl_work_heartbeat(f->work, &lease, 0, NULL, &f->err), &f->err);
    work_pass(f, 299999);
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.expired, 0);
    work_pass(f, 1);
    assert_status(complete(f, running, lease.token), PAWL_LEASE_LOST, &f->err);
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.expired, 1);
    assert_ok(complete(f, running, claim_it(f, "w", running)), &f->err);
    assert_true(nothing_to_claim(f));
    work_pass(f, 300000);
    assert_ok(complete(f, delayed, claim_it(f, "w", delayed)), &f->err);
}

static void test_a_step_of_the_wall_clock_changes_nothing(void **state)
{
    struct work_fixture *f = *state;

    walk_with_step(f, "forward", HOUR_US);
    walk_with_step(f, "back", -HOUR_US);
    walk_with_step(f, "again", -HOUR_US);
}

static void test_a_lease_of_another_boot_has_run_out(void **state)
{
    struct work_fixture *f = *state;
    pawl_sweep_report report = PAWL_SWEEP_REPORT_INIT;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    uint64_t token = claim_it(f, "w", "a");
    if (!work_reopen(f, OTHER_BOOT)) {
        return;
    }
    assert_status(complete(f, "a", token), PAWL_LEASE_LOST, &f->err);
    assert_ok(pawl_work_sweep(f->work, &report, &f->err), &f->err);
    assert_int_equal(report.expired, 1);
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
}

static void test_a_delay_outlives_a_boot_by_the_wall_clock(void **state)
{
    struct work_fixture *f = *state;
    pawl_submission submission = PAWL_SUBMISSION_INIT;

    make_task(f, "T");
    submission.work_item_id = pawl_view_of("a");
    submission.task_id = pawl_view_of("T");
    submission.work_type = pawl_view_of("t");
    submission.delay_ms = 600000;
    assert_ok(pawl_work_submit(f->work, &submission, 1, NULL, &f->err), &f->err);
    f->clock.now_ns -= 900 * NS_PER_S; /* a boot clock begins anew, the wall clock goes on */
    f->clock.wall_offset_us += 900 * US_PER_S;
    if (!work_reopen(f, OTHER_BOOT)) {
        return;
    }
    work_pass(f, 599999);
    assert_true(nothing_to_claim(f));
    work_pass(f, 1);
    assert_int_equal(claim_it(f, "w", "a"), 1);
}

#define DAY_US (24 * HOUR_US)

static uint64_t count_removed(struct work_fixture *f)
{
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = PAWL_RETENTION_REPORT_INIT;

    assert_ok(pawl_work_retention(f->work, &retention, &report, &f->err), &f->err);
    return report.items + report.keys;
}

static void test_retention_removes_nothing_on_account_of_a_step(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    submit(f, "a", "T", 0);
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    pawl__clock_step_wall(&f->clock, 400 * DAY_US);
    assert_int_equal(count_removed(f), 0);
    if (work_reopen(f, WORK_BOOT)) { /* another process of this boot knows of the step */
        assert_int_equal(count_removed(f), 0);
    }
    work_pass(f, 29 * DAY_US / 1000);
    assert_int_equal(count_removed(f), 0);
    work_pass(f, 2 * DAY_US / 1000);
    assert_int_equal(count_removed(f), 1);
}

static void test_a_clock_that_was_behind_makes_nothing_old(void **state)
{
    struct work_fixture *f = *state;

    make_task(f, "T");
    pawl__clock_step_wall(&f->clock, -400 * DAY_US);
    submit(f, "a", "T", 0);
    assert_ok(complete(f, "a", claim_it(f, "w", "a")), &f->err);
    pawl__clock_step_wall(&f->clock, 400 * DAY_US);
    assert_int_equal(count_removed(f), 0);
    if (work_reopen(f, OTHER_BOOT)) { /* what another boot saw is not known any more */
        assert_int_equal(count_removed(f), 1);
    }
}

static void put_hourly(struct work_fixture *f)
{
    const pawl_schedule schedule = {
        .size = sizeof(pawl_schedule),
        .schedule_id = pawl_view_of("hourly"),
        .cron = pawl_view_of("0 * * * *"),
        .work_type = pawl_view_of("t"),
        .task_id = pawl_view_of("T"),
    };

    make_task(f, "T");
    assert_ok(pawl_schedule_put(f->work, &schedule, &f->err), &f->err);
}

static uint64_t count_fired(struct work_fixture *f)
{
    uint64_t fired = 0;

    assert_ok(pawl_schedule_fire(f->work, &fired, &f->err), &f->err);
    return fired;
}

static void test_a_step_forward_fires_the_newest_missed_slot_alone(void **state)
{
    struct work_fixture *f = *state;

    put_hourly(f);
    assert_int_equal(count_fired(f), 0);
    pawl__clock_step_wall(&f->clock, 30 * HOUR_US);
    assert_int_equal(count_fired(f), 1);
    assert_int_equal(count_fired(f), 0);
    work_pass(f, HOUR_US / 1000);
    assert_int_equal(count_fired(f), 1);
}

static void test_a_step_back_fires_no_slot_twice(void **state)
{
    struct work_fixture *f = *state;

    put_hourly(f);
    for (int i = 0; i < 3; i++) {
        work_pass(f, HOUR_US / 1000);
        assert_int_equal(count_fired(f), 1);
    }
    pawl__clock_step_wall(&f->clock, -3 * HOUR_US);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_fired(f), 0);
        work_pass(f, HOUR_US / 1000);
    }
    assert_int_equal(count_fired(f), 0);
    work_pass(f, HOUR_US / 1000);
    assert_int_equal(count_fired(f), 1);
    /* Neither does a step that is far enough for everything to look forgotten. */
    pawl__clock_step_wall(&f->clock, 1000 * DAY_US);
    assert_int_equal(count_fired(f), 1);
    assert_int_equal(count_removed(f), 0);
    pawl__clock_step_wall(&f->clock, -1000 * DAY_US - 2 * HOUR_US);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(count_fired(f), 0);
        work_pass(f, HOUR_US / 1000);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        work_test(test_a_step_of_the_wall_clock_changes_nothing),
        work_test(test_a_lease_of_another_boot_has_run_out),
        work_test(test_a_delay_outlives_a_boot_by_the_wall_clock),
        work_test(test_retention_removes_nothing_on_account_of_a_step),
        work_test(test_a_clock_that_was_behind_makes_nothing_old),
        work_test(test_a_step_forward_fires_the_newest_missed_slot_alone),
        work_test(test_a_step_back_fires_no_slot_twice),
    };

    return work_suite(argc, argv, tests, COUNT_OF(tests));
}
