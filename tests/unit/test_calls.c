/* Calls under way on a handle, and closing it in bounded time. */
#include "engine/calls.h"

#include "base/thread/inside.h"
#include "lib/check.h"
#include "lib/virtual_clock.h"

/* --- what close does, told on a virtual clock --- */

struct store {
    struct pawl__clock_virtual clock;
    int64_t hangs_until_ns;
    bool ends_when_interrupted;
    int interrupts;
    int stops;
    bool drained[2];
};

static bool stop_store(void *context, bool drain, int64_t deadline_ns)
{
    struct store *store = context;

    assert_true(store->stops < 2);
    store->drained[store->stops++] = drain;
    int64_t until_ns = store->hangs_until_ns;
    pawl__sleep_until(&store->clock.base, until_ns < deadline_ns ? until_ns : deadline_ns);
    return until_ns <= deadline_ns;
}

static void interrupt_store(void *context)
{
    struct store *store = context;

    store->interrupts++;
    if (store->ends_when_interrupted) {
        store->hangs_until_ns = pawl__monotonic_ns(&store->clock.base) + NS_PER_S;
    }
}

static bool close_store(struct store *store, bool can_interrupt)
{
    const struct pawl__closing closing = { .stop = stop_store,
                                           .interrupt = can_interrupt ? interrupt_store : NULL,
                                           .context = store,
                                           PAWL__CLOSING_DEFAULT };

    store->clock = pawl__clock_virtual_at(0, 0);
    return pawl__close_bounded(&closing, &store->clock.base);
}

static void test_a_close_drains_first_and_interrupts_nobody_in_time(void **state)
{
    struct store store = { .hangs_until_ns = 4 * NS_PER_S };

    (void)state;
    assert_true(close_store(&store, true));
    assert_int_equal(store.stops, 1);
    assert_true(store.drained[0]);
    assert_int_equal(store.interrupts, 0);
    assert_int_equal(store.clock.now_ns, 4 * NS_PER_S);
}

static void test_a_close_interrupts_a_store_that_hangs(void **state)
{
    struct store store = { .hangs_until_ns = INT64_MAX, .ends_when_interrupted = true };

    (void)state;
    assert_true(close_store(&store, true));
    assert_int_equal(store.stops, 2);
    assert_false(store.drained[1]);
    assert_int_equal(store.interrupts, 1);
    assert_int_equal(store.clock.now_ns, 6 * NS_PER_S);
}

static void test_a_close_leaves_a_store_behind_that_ignores_the_interrupt(void **state)
{
    struct store store = { .hangs_until_ns = INT64_MAX };

    (void)state;
    assert_false(close_store(&store, true));
    assert_int_equal(store.interrupts, 1);
    assert_int_equal(store.clock.now_ns, 10 * NS_PER_S);
}

static void test_a_store_that_cannot_be_interrupted_drains_the_whole_time(void **state)
{
    struct store store = { .hangs_until_ns = 9 * NS_PER_S };

    (void)state;
    assert_true(close_store(&store, false));
    assert_int_equal(store.stops, 1);
    assert_int_equal(store.interrupts, 0);
    assert_int_equal(store.clock.now_ns, 9 * NS_PER_S);
}

static void test_a_close_inside_a_callback_is_refused(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__inside inside;
    int handle = 0;
    int other = 0;

    (void)state;
    assert_ok(pawl__calls_check_outside(&handle, "the ledger", &error), &error);
    pawl__inside_enter(&inside, &handle);
    assert_detail(
        pawl__calls_check_outside(&handle, "the ledger", &error), PAWL_DETAIL_WRONG_THREAD, &error);
    assert_string_equal(error.message, "the ledger cannot be closed from within its own callback");
    assert_ok(pawl__calls_check_outside(&other, "the ledger", &error), &error);
    pawl__inside_leave(&inside);
    assert_ok(pawl__calls_check_outside(&handle, "the ledger", &error), &error);
}

/* --- calls of threads --- */

enum { CALLERS = 4, CALLS = 2000 };

static void call_often(void *context)
{
    struct pawl__calls *calls = context;

    for (int i = 0; i < CALLS; i++) {
        pawl__calls_enter(calls);
        pawl__calls_leave(calls);
    }
    pawl__calls_leave(calls); /* the one that the test has entered */
}

static void test_a_close_waits_for_the_calls_of_all_threads(void **state)
{
    struct pawl__thread threads[CALLERS] = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__calls calls;

    (void)state;
    pawl__calls_init(&calls, NULL);
    for (size_t i = 0; i < CALLERS; i++) {
        pawl__calls_enter(&calls);
    }
    assert_false(pawl__calls_await(&calls, 0));
    for (size_t i = 0; i < CALLERS; i++) {
        assert_ok(pawl__thread_start(&threads[i], "caller", call_often, &calls, &error), &error);
    }
    assert_true(pawl__calls_await(&calls, INT64_MAX));
    pawl__calls_done(&calls); /* at once: whoever left does not touch it any more */
    for (size_t i = 0; i < CALLERS; i++) {
        pawl__thread_join(&threads[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_close_drains_first_and_interrupts_nobody_in_time),
        cmocka_unit_test(test_a_close_interrupts_a_store_that_hangs),
        cmocka_unit_test(test_a_close_leaves_a_store_behind_that_ignores_the_interrupt),
        cmocka_unit_test(test_a_store_that_cannot_be_interrupted_drains_the_whole_time),
        cmocka_unit_test(test_a_close_inside_a_callback_is_refused),
        cmocka_unit_test(test_a_close_waits_for_the_calls_of_all_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
