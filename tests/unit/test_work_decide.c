/* What becomes of an item and of a task, without a store; cycles in a graph. */
#include "lib/check.h"

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "work/items/dag.h"
#include "work/items/decide.h"

#define LEASE_NS (300 * NS_PER_S)

static struct work_row pending(void)
{
    return (struct work_row){
        .item = { .work_item_id = { "a", 1 }, .status = PAWL_ITEM_PENDING, .max_retries = 3 },
        .home = WORK_IN_ITEMS,
        .due_ns = INT64_MIN,
    };
}

static struct work_row claimed(const struct work_now *now)
{
    struct work_row row = pending();
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__work_decide_claim(&row, pawl_view_of("w"), LEASE_NS, now, &error), &error);
    return row;
}

static void test_a_lease_ends_at_its_deadline_and_not_before(void **state)
{
    (void)state;
    struct work_now now = { .wall_us = 5, .ns = 1000 };
    struct work_row row = claimed(&now);

    now.ns = 1000 + LEASE_NS - 1;
    assert_int_equal(pawl__work_decide_held(&row, 1, &now, NULL), PAWL_OK);
    assert_false(pawl__work_decide_expire(&row, &now));
    now.ns++;
    assert_int_equal(pawl__work_decide_held(&row, 1, &now, NULL), PAWL_LEASE_LOST);
    assert_true(pawl__work_decide_expire(&row, &now));
    assert_int_equal(row.item.status, PAWL_ITEM_EXPIRED);
    pawl__work_decide_after_expiry(&row, &now);
    assert_int_equal(row.item.status, PAWL_ITEM_PENDING);
    assert_int_equal(row.item.retry_count, 1);
}

static void test_a_deadline_beyond_the_clock_is_its_last_moment(void **state)
{
    (void)state;
    struct work_now now = { .wall_us = 5, .ns = INT64_MAX - 10 };
    struct work_row row = claimed(&now);

    assert_int_equal(row.deadline_ns, INT64_MAX);
    assert_true(row.item.lease_expires_at_us >= now.wall_us);
}

static void test_every_change_has_a_time_of_its_own(void **state)
{
    (void)state;
    struct work_now now = { .wall_us = 7, .ns = 1 };
    struct work_row row = pending();

    row.item.updated_at_us = 7;
    assert_true(pawl__work_decide_cancel(&row, pawl_view_of("x"), &now));
    assert_int_equal(row.item.updated_at_us, 8);
    assert_false(pawl__work_decide_cancel(&row, pawl_view_of("y"), &now));
    assert_true(pawl__view_is(row.item.error_message, "x"));
}

static void test_used_up_tokens_are_not_given_out(void **state)
{
    (void)state;
    struct work_now now = { .wall_us = 7, .ns = 1 };
    struct work_row row = pending();

    row.item.token = INT64_MAX;
    assert_int_equal(pawl__work_decide_claim(&row, pawl_view_of("w"), LEASE_NS, &now, NULL),
                     PAWL_FAILED);
    assert_int_equal(row.item.status, PAWL_ITEM_PENDING);
}

static void test_a_task_follows_its_items(void **state)
{
    (void)state;
    static const struct {
        pawl_task_status before;
        struct work_task_facts facts; /* any, unfinished, started, failed */
        pawl_task_status after;
    } rows[] = {
        { PAWL_TASK_PENDING, { false, false, false, false }, PAWL_TASK_PENDING },
        { PAWL_TASK_PENDING, { true, true, false, false }, PAWL_TASK_PENDING },
        { PAWL_TASK_PENDING, { true, true, true, false }, PAWL_TASK_RUNNING },
        { PAWL_TASK_RUNNING, { true, true, false, false }, PAWL_TASK_RUNNING },
        { PAWL_TASK_RUNNING, { true, false, true, false }, PAWL_TASK_SUCCEEDED },
        { PAWL_TASK_RUNNING, { true, false, true, true }, PAWL_TASK_FAILED },
        { PAWL_TASK_SUCCEEDED, { true, true, false, false }, PAWL_TASK_RUNNING },
        { PAWL_TASK_FAILED, { true, true, false, true }, PAWL_TASK_RUNNING },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(pawl__work_decide_task(rows[i].before, &rows[i].facts), rows[i].after);
    }
}

static void test_a_cycle_is_found_and_a_node_of_it_named(void **state)
{
    (void)state;
    size_t scratch[3 * 5 + 1];
    struct work_arrow none[] = { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 }, { 3, 4 } };
    /* 0 -> 1 -> 2 -> 1, and 3, 4 behind it: they wait, but are not on it. */
    struct work_arrow ring[] = { { 0, 1 }, { 1, 2 }, { 2, 1 }, { 2, 3 }, { 3, 4 } };
    struct work_arrow self[] = { { 4, 4 } };

    assert_int_equal(pawl__work_dag_cycle(5, none, COUNT_OF(none), scratch), 5);
    assert_int_equal(pawl__work_dag_cycle(5, none, 0, scratch), 5);
    size_t node = pawl__work_dag_cycle(5, ring, COUNT_OF(ring), scratch);
    assert_true(node == 1 || node == 2);
    assert_int_equal(pawl__work_dag_cycle(5, self, COUNT_OF(self), scratch), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lease_ends_at_its_deadline_and_not_before),
        cmocka_unit_test(test_a_deadline_beyond_the_clock_is_its_last_moment),
        cmocka_unit_test(test_every_change_has_a_time_of_its_own),
        cmocka_unit_test(test_used_up_tokens_are_not_given_out),
        cmocka_unit_test(test_a_task_follows_its_items),
        cmocka_unit_test(test_a_cycle_is_found_and_a_node_of_it_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
