/* A watch: who waits for a change, by a thread, a function or an eventfd. */
#include "base/thread/watch.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/fs.h"
#include "lib/check.h"

enum { PATIENCE_S = 30, MANY = 20, ROUNDS = 300 };

static int64_t patience_ns(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + PATIENCE_S * NS_PER_S;
}

static void await(sem_t *called)
{
    struct timespec until;

    assert_int_equal(clock_gettime(CLOCK_REALTIME, &until), 0);
    until.tv_sec += PATIENCE_S;
    assert_int_equal(sem_timedwait(called, &until), 0);
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd polled = { .fd = fd, .events = POLLIN };

    return poll(&polled, 1, timeout_ms) == 1;
}

static void empty(int fd)
{
    uint64_t count;

    assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
}

static int new_eventfd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_true(fd >= 0);
    return fd;
}

static void setup(struct pawl__watch *watch)
{
    pawl__watch_init(watch, NULL, NULL);
}

static void count_call(void *context)
{
    assert_int_equal(sem_post(context), 0);
}

/* --- one thing changes --- */

static void test_a_change_wakes_a_thread_a_function_and_an_eventfd(void **state)
{
    AUTO(pawl__fs_close) int fd = new_eventfd();
    struct pawl__watch_subscriber function;
    struct pawl__watch_subscriber file;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__watch watch;
    sem_t called;

    (void)state;
    setup(&watch);
    assert_int_equal(sem_init(&called, 0, 0), 0);
    assert_ok(pawl__watch_subscribe(&watch, &function, count_call, &called, &error), &error);
    assert_ok(pawl__watch_subscribe_fd(&watch, &file, fd, &error), &error);
    assert_false(is_readable(fd, 0)); /* nothing has changed yet */
    for (int i = 0; i < MANY; i++) {
        uint32_t generation = pawl__watch_generation(&watch);
        assert_false(pawl__watch_wait(&watch, generation, 0));
        pawl__watch_bump(&watch);
        assert_true(pawl__watch_wait(&watch, generation, patience_ns()));
        await(&called);
        assert_true(is_readable(fd, PATIENCE_S * 1000));
        empty(fd);
    }
    pawl__watch_unsubscribe(&function);
    pawl__watch_unsubscribe(&function); /* twice is fine */
    pawl__watch_unsubscribe(&file);
    pawl__watch_done(&watch);
    sem_destroy(&called);
}

static struct pawl__watch *bumped_by_signal;

static void bump_in_handler(int signal)
{
    (void)signal;
    pawl__watch_bump(bumped_by_signal);
}

static void test_a_signal_handler_wakes_subscribers(void **state)
{
    AUTO(pawl__fs_close) int fd = new_eventfd();
    struct sigaction before;
    const struct sigaction action = { .sa_handler = bump_in_handler };
    struct pawl__watch_subscriber function;
    struct pawl__watch_subscriber file;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__watch watch;
    sem_t called;

    (void)state;
    setup(&watch);
    bumped_by_signal = &watch;
    assert_int_equal(sem_init(&called, 0, 0), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_ok(pawl__watch_subscribe(&watch, &function, count_call, &called, &error), &error);
    assert_ok(pawl__watch_subscribe_fd(&watch, &file, fd, &error), &error);
    pawl__lock(&watch.lock); /* the handler must not need it */
    uint32_t generation = pawl__watch_generation(&watch);
    assert_int_equal(raise(SIGUSR1), 0);
    pawl__unlock(&watch.lock);
    assert_true(pawl__watch_wait(&watch, generation, patience_ns()));
    await(&called);
    assert_true(is_readable(fd, PATIENCE_S * 1000));
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    pawl__watch_unsubscribe(&function);
    pawl__watch_unsubscribe(&file);
    pawl__watch_done(&watch);
    sem_destroy(&called);
}

/* --- unsubscribing --- */

struct slow {
    sem_t begun;
    sem_t may_end;
    atomic_bool ended;
    struct pawl__watch_subscriber subscriber;
};

static void take_long(void *context)
{
    struct slow *slow = context;

    sem_post(&slow->begun);
    while (sem_wait(&slow->may_end) != 0) {
    }
    atomic_store(&slow->ended, true);
}

static void let_it_end(void *context)
{
    struct slow *slow = context;

    sem_post(&slow->may_end);
}

static void test_unsubscribing_waits_for_the_call_under_way(void **state)
{
    struct pawl__thread helper = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__watch watch;
    struct slow slow = { 0 };

    (void)state;
    setup(&watch);
    assert_int_equal(sem_init(&slow.begun, 0, 0), 0);
    assert_int_equal(sem_init(&slow.may_end, 0, 0), 0);
    assert_ok(pawl__watch_subscribe(&watch, &slow.subscriber, take_long, &slow, &error), &error);
    pawl__watch_bump(&watch);
    await(&slow.begun);
    assert_ok(pawl__thread_start(&helper, "helper", let_it_end, &slow, &error), &error);
    pawl__watch_unsubscribe(&slow.subscriber);
    assert_true(atomic_load(&slow.ended));
    pawl__thread_join(&helper);

    /* Changes are not told any more, to it; another one that was told shows that they were. */
    struct pawl__watch_subscriber other;
    sem_t called;
    assert_int_equal(sem_init(&called, 0, 0), 0);
    assert_ok(pawl__watch_subscribe(&watch, &other, count_call, &called, &error), &error);
    pawl__watch_bump(&watch);
    await(&called);
    assert_int_not_equal(sem_trywait(&slow.begun), 0);
    pawl__watch_unsubscribe(&other);
    pawl__watch_done(&watch);
}

struct once {
    struct pawl__watch_subscriber own;
    struct pawl__watch_subscriber *other;
    sem_t called;
};

static void unsubscribe_both(void *context)
{
    struct once *once = context;

    pawl__watch_unsubscribe(&once->own);
    pawl__watch_unsubscribe(once->other);
    sem_post(&once->called);
}

static void test_a_function_may_unsubscribe_itself_and_the_next_one(void **state)
{
    struct pawl__watch_subscriber next;
    struct pawl__watch_subscriber last;
    struct once once = { .other = &next };
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__watch watch;
    sem_t next_called;
    sem_t last_called;

    (void)state;
    setup(&watch);
    assert_int_equal(sem_init(&once.called, 0, 0), 0);
    assert_int_equal(sem_init(&next_called, 0, 0), 0);
    assert_int_equal(sem_init(&last_called, 0, 0), 0);
    /* Who subscribed last is told first. */
    assert_ok(pawl__watch_subscribe(&watch, &last, count_call, &last_called, &error), &error);
    assert_ok(pawl__watch_subscribe(&watch, &next, count_call, &next_called, &error), &error);
    assert_ok(pawl__watch_subscribe(&watch, &once.own, unsubscribe_both, &once, &error), &error);
    pawl__watch_bump(&watch);
    await(&once.called);
    await(&last_called);
    pawl__watch_bump(&watch);
    await(&last_called);
    assert_int_not_equal(sem_trywait(&once.called), 0);
    assert_int_not_equal(sem_trywait(&next_called), 0);
    pawl__watch_unsubscribe(&last);
    pawl__watch_done(&watch);
}

/* --- threads that come and go --- */

static void come_and_go(void *context)
{
    struct pawl__watch *watch = context;
    sem_t called;

    assert_int_equal(sem_init(&called, 0, 0), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct pawl__watch_subscriber subscriber;
        pawl_error error = PAWL_ERROR_INIT;

        assert_ok(pawl__watch_subscribe(watch, &subscriber, count_call, &called, &error), &error);
        pawl__watch_bump(watch);
        await(&called); /* whoever changes something after it has subscribed is told */
        pawl__watch_unsubscribe(&subscriber);
        while (sem_trywait(&called) == 0) {
        }
    }
    sem_destroy(&called);
}

static void test_every_change_after_subscribing_is_told_whoever_comes_and_goes(void **state)
{
    struct pawl__thread threads[4] = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__watch watch;

    (void)state;
    setup(&watch);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_ok(pawl__thread_start(&threads[i], "goer", come_and_go, &watch, &error), &error);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pawl__thread_join(&threads[i]);
    }
    pawl__watch_done(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change_wakes_a_thread_a_function_and_an_eventfd),
        cmocka_unit_test(test_a_signal_handler_wakes_subscribers),
        cmocka_unit_test(test_unsubscribing_waits_for_the_call_under_way),
        cmocka_unit_test(test_a_function_may_unsubscribe_itself_and_the_next_one),
        cmocka_unit_test(test_every_change_after_subscribing_is_told_whoever_comes_and_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
