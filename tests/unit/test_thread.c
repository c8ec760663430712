#include "lib/check.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "lib/fault.h"

enum { THREADS = 4, ROUNDS = 10000 };

/* A gate that threads wait at until the test opens it. */
struct gate {
    struct pawl__lock lock; /* covers everything below */
    struct pawl__cond changed;
    bool open;
    int waiting;
    int passed;
};

static void gate_init(struct gate *gate)
{
    *gate = (struct gate){ .open = false };
    pawl__lock_init(&gate->lock);
    pawl__cond_init(&gate->changed);
}

static void gate_done(struct gate *gate)
{
    pawl__cond_done(&gate->changed);
    pawl__lock_done(&gate->lock);
}

static void gate_open(struct gate *gate)
{
    pawl__lock(&gate->lock);
    gate->open = true;
    pawl__cond_broadcast(&gate->changed);
    pawl__unlock(&gate->lock);
}

static void wait_at_gate(void *context)
{
    struct gate *gate = context;

    pawl__lock(&gate->lock);
    gate->waiting++;
    pawl__cond_broadcast(&gate->changed);
    while (!gate->open) {
        pawl__cond_wait(&gate->changed, &gate->lock);
    }
    gate->passed++;
    pawl__unlock(&gate->lock);
}

static int64_t ns_from_now(int64_t ns)
{
    return pawl__monotonic_ns(pawl__clock_real()) + ns;
}

static void start(struct pawl__thread *thread, void (*run)(void *), void *context)
{
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__thread_start(thread, "a long name of a thread", run, context, &error), &error);
}

static void test_a_broadcast_wakes_all_who_wait(void **state)
{
    (void)state;
    struct pawl__thread threads[THREADS] = { 0 };
    struct gate gate;

    gate_init(&gate);
    for (size_t i = 0; i < THREADS; i++) {
        start(&threads[i], wait_at_gate, &gate);
    }
    pawl__lock(&gate.lock);
    while (gate.waiting < THREADS) {
        pawl__cond_wait(&gate.changed, &gate.lock);
    }
    assert_int_equal(gate.passed, 0);
    pawl__unlock(&gate.lock);
    gate_open(&gate);
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&threads[i]);
        assert_false(threads[i].started);
    }
    assert_int_equal(gate.passed, THREADS);
    gate_done(&gate);
}

struct counter {
    struct pawl__lock lock;
    int count;
};

static void count_up(void *context)
{
    struct counter *counter = context;

    for (int i = 0; i < ROUNDS; i++) {
        pawl__lock(&counter->lock);
        counter->count++;
        pawl__unlock(&counter->lock);
    }
}

static void test_a_lock_lets_one_in_at_a_time(void **state)
{
    (void)state;
    struct pawl__thread threads[THREADS] = { 0 };
    struct counter counter = { .count = 0 };

    pawl__lock_init(&counter.lock);
    for (size_t i = 0; i < THREADS; i++) {
        start(&threads[i], count_up, &counter);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&threads[i]);
    }
    assert_int_equal(counter.count, THREADS * ROUNDS);
    pawl__lock_done(&counter.lock);
}

static void test_a_wait_ends_at_its_deadline_and_holds_the_lock_again(void **state)
{
    (void)state;
    struct gate gate;
    int64_t deadline_ns = ns_from_now(5 * NS_PER_MS);

    gate_init(&gate);
    pawl__lock(&gate.lock);
    while (pawl__cond_wait_until(&gate.changed, &gate.lock, deadline_ns)) {
        /* A spurious wake-up: nobody signals here. */
    }
    assert_true(pawl__monotonic_ns(pawl__clock_real()) >= deadline_ns);
    /* A deadline that has passed long ago, or was never reachable, ends at once. */
    assert_false(pawl__cond_wait_until(&gate.changed, &gate.lock, 0));
    assert_false(pawl__cond_wait_until(&gate.changed, &gate.lock, INT64_MIN));
    pawl__unlock(&gate.lock);
    gate_done(&gate);
}

static void open_gate(void *context)
{
    gate_open(context);
}

static void test_a_signal_comes_before_a_far_deadline(void **state)
{
    (void)state;
    struct pawl__thread thread = { 0 };
    struct gate gate;
    bool in_time = true;

    gate_init(&gate);
    pawl__lock(&gate.lock);
    start(&thread, open_gate, &gate); /* it must wait for our lock, so the wake-up is not missed */
    while (!gate.open && in_time) {
        in_time = pawl__cond_wait_until(&gate.changed, &gate.lock, INT64_MAX);
    }
    assert_true(in_time);
    pawl__unlock(&gate.lock);
    pawl__thread_join(&thread);
    gate_done(&gate);
}

static void test_joining_with_a_deadline_gives_up_and_can_be_repeated(void **state)
{
    (void)state;
    struct pawl__thread thread = { 0 };
    struct gate gate;

    gate_init(&gate);
    assert_true(pawl__thread_join_until(&thread, 0)); /* never started: nothing to wait for */
    start(&thread, wait_at_gate, &gate);
    assert_false(pawl__thread_join_until(&thread, ns_from_now(2 * NS_PER_MS)));
    assert_true(thread.started);
    assert_false(pawl__thread_join_until(&thread, 0));
    gate_open(&gate);
    assert_true(pawl__thread_join_until(&thread, ns_from_now(60 * NS_PER_S)));
    assert_false(thread.started);
    pawl__thread_join(&thread); /* does nothing now */
    assert_int_equal(gate.passed, 1);
    gate_done(&gate);
}

struct view_of_thread {
    char name[32];
    bool every_signal_blocked;
    struct gate gate;
};

static void look_around(void *context)
{
    struct view_of_thread *view = context;
    sigset_t blocked;

    wait_at_gate(&view->gate); /* the name is set by the starter, after the start */
    pthread_getname_np(pthread_self(), view->name, sizeof(view->name));
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    view->every_signal_blocked =
        sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGINT) == 1
        && sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGCHLD) == 1;
}

static void test_a_thread_takes_no_signals_and_has_a_name(void **state)
{
    (void)state;
    struct pawl__thread thread = { 0 };
    struct view_of_thread view = { .every_signal_blocked = false };
    sigset_t before;
    sigset_t after;

    gate_init(&view.gate);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    start(&thread, look_around, &view);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    gate_open(&view.gate);
    pawl__thread_join(&thread);
    assert_true(view.every_signal_blocked);
    assert_string_equal(view.name, "a long name of "); /* 15 bytes are kept */
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
    gate_done(&view.gate);
}

static void set_flag(void *context)
{
    atomic_bool *flag = context;
    atomic_store(flag, true);
}

static void test_a_thread_that_cannot_start_says_so(void **state)
{
    (void)state;

    FAULT_WALK (walk) {
        struct pawl__thread thread = { 0 };
        atomic_bool ran = false;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__thread_start(&thread, "walk", set_flag, &ran, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_true(thread.started == (status == PAWL_OK));
        pawl__thread_join(&thread);
        assert_true(atomic_load(&ran) == (status == PAWL_OK));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_broadcast_wakes_all_who_wait),
        cmocka_unit_test(test_a_lock_lets_one_in_at_a_time),
        cmocka_unit_test(test_a_wait_ends_at_its_deadline_and_holds_the_lock_again),
        cmocka_unit_test(test_a_signal_comes_before_a_far_deadline),
        cmocka_unit_test(test_joining_with_a_deadline_gives_up_and_can_be_repeated),
        cmocka_unit_test(test_a_thread_takes_no_signals_and_has_a_name),
        cmocka_unit_test(test_a_thread_that_cannot_start_says_so),
    };
    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
