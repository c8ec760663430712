#include "lib/check.h"

#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "base/thread/shutdown.h"

enum { ROUNDS = 200 };

static int64_t in_seconds(int64_t seconds)
{
    return pawl__monotonic_ns(pawl__clock_real()) + seconds * NS_PER_S;
}

static void test_cancelling_is_seen_and_final(void **state)
{
    (void)state;
    struct pawl__cancel cancel;

    pawl__cancel_init(&cancel, NULL);
    assert_false(pawl__cancelled(&cancel));
    assert_false(pawl__cancel_wait_until(&cancel, 0)); /* a deadline in the past is a look */
    pawl__cancel_now(&cancel);
    pawl__cancel_now(&cancel);
    assert_true(pawl__cancelled(&cancel));
    assert_true(pawl__cancel_wait_until(&cancel, INT64_MAX));
    pawl__cancel_done(&cancel);
    assert_false(pawl__cancelled(NULL));
}

static void count_wake(void *context)
{
    (*(int *)context)++;
}

static void test_a_parent_cancels_its_children_and_not_the_other_way(void **state)
{
    (void)state;
    struct pawl__cancel parent;
    struct pawl__cancel first;
    struct pawl__cancel second;
    struct pawl__cancel late;

    pawl__cancel_init(&parent, NULL);
    pawl__cancel_init(&first, &parent);
    pawl__cancel_init(&second, &parent);
    pawl__cancel_now(&first);
    assert_true(pawl__cancelled(&first));
    assert_false(pawl__cancelled(&parent));
    assert_false(pawl__cancelled(&second));
    pawl__cancel_done(&first);
    pawl__cancel_now(&parent);
    assert_true(pawl__cancelled(&second));
    pawl__cancel_init(&late, &parent);
    assert_true(pawl__cancelled(&late));
    pawl__cancel_done(&late);
    pawl__cancel_done(&second);
    pawl__cancel_done(&parent);
}

static void test_a_link_is_called_once_and_not_after_its_end(void **state)
{
    (void)state;
    struct pawl__cancel cancel;
    struct pawl__cancel_link links[3] = { 0 };
    struct pawl__cancel_link never = { 0 };
    int calls[3] = { 0 };

    pawl__cancel_init(&cancel, NULL);
    for (int i = 0; i < 3; i++) {
        pawl__cancel_link(&cancel, &links[i], count_wake, &calls[i]);
    }
    pawl__cancel_unlink(&cancel, &links[1]); /* from the middle */
    pawl__cancel_unlink(&cancel, &never);
    pawl__cancel_now(&cancel);
    pawl__cancel_now(&cancel);
    assert_int_equal(calls[0], 1);
    assert_int_equal(calls[1], 0);
    assert_int_equal(calls[2], 1);
    pawl__cancel_link(&cancel, &links[1], count_wake, &calls[1]); /* too late: called at once */
    assert_int_equal(calls[1], 1);
    for (int i = 0; i < 3; i++) {
        pawl__cancel_unlink(&cancel, &links[i]);
        pawl__cancel_unlink(&cancel, &links[i]);
    }
    pawl__cancel_done(&cancel);
}

struct waiter {
    struct pawl__cancel *cancel;
    bool cancelled;
};

static void wait_for_cancel(void *context)
{
    struct waiter *waiter = context;

    waiter->cancelled = pawl__cancel_wait_until(waiter->cancel, in_seconds(60));
}

static void test_who_waits_wakes_up(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    for (int round = 0; round < ROUNDS; round++) {
        struct pawl__cancel parent;
        struct pawl__cancel child;
        pawl__cancel_init(&parent, NULL);
        pawl__cancel_init(&child, &parent);
        struct waiter waiters[2] = { { .cancel = &parent }, { .cancel = &child } };
        struct pawl__thread threads[2] = { 0 };
        for (int i = 0; i < 2; i++) {
            assert_ok(
                pawl__thread_start(&threads[i], "waiter", wait_for_cancel, &waiters[i], &error),
                &error);
        }
        pawl__cancel_now(&parent);
        for (int i = 0; i < 2; i++) {
            assert_true(pawl__thread_join_until(&threads[i], in_seconds(30)));
            assert_true(waiters[i].cancelled);
        }
        pawl__cancel_done(&child);
        pawl__cancel_done(&parent);
    }
}

/* A thread that does not look at its token: what a hanging disk looks like from outside. */
static void hang(void *context)
{
    pawl__cancel_wait_until(context, INT64_MAX);
}

static void test_shutdown_names_who_does_not_stop_and_keeps_its_deadline(void **state)
{
    (void)state;
    struct pawl__cancel cancel;
    struct pawl__cancel disk;
    struct pawl__thread threads[4] = { 0 };
    const struct pawl__stop stop[] = {
        { "flusher", &threads[0] },
        { "poller", &threads[1] },
        { "writer", &threads[2] },
        { "never started", &threads[3] },
    };
    pawl_error error = PAWL_ERROR_INIT;

    pawl__cancel_init(&cancel, NULL);
    pawl__cancel_init(&disk, NULL);
    struct waiter polite = { .cancel = &cancel };
    assert_ok(pawl__thread_start(&threads[0], "flusher", hang, &disk, &error), &error);
    assert_ok(pawl__thread_start(&threads[1], "poller", wait_for_cancel, &polite, &error), &error);
    assert_ok(pawl__thread_start(&threads[2], "writer", hang, &disk, &error), &error);

    /* The polite one must not be blamed for the time that the first one took, so its end is waited
     * for before the deadline that has already passed. */
    pawl__cancel_now(&cancel);
    assert_true(pawl__thread_join_until(&threads[1], in_seconds(30)));
    assert_status(pawl__stop_threads(&cancel, stop, 4, 0, &error), PAWL_TIMEOUT, &error);
    assert_message(&error, "2 of 4 threads did not stop: 'flusher', 'writer'");
    assert_true(threads[0].started);
    assert_false(threads[1].started);

    pawl__cancel_now(&disk); /* it comes back after all: the same call collects it */
    assert_ok(pawl__stop_threads(&cancel, stop, 4, in_seconds(30), &error), &error);
    assert_false(threads[2].started);
    pawl__cancel_done(&disk);
    pawl__cancel_done(&cancel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelling_is_seen_and_final),
        cmocka_unit_test(test_a_parent_cancels_its_children_and_not_the_other_way),
        cmocka_unit_test(test_a_link_is_called_once_and_not_after_its_end),
        cmocka_unit_test(test_who_waits_wakes_up),
        cmocka_unit_test(test_shutdown_names_who_does_not_stop_and_keeps_its_deadline),
    };
    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
