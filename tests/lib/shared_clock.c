#include "lib/shared_clock.h"

#include "lib/check.h"

#include "base/core/macros.h"

enum { WAITERS_MAX = 16, PATIENCE_S = 60 };

/* On the stack of the thread that waits. */
struct shared_clock_waiter {
    struct shared_clock_waiter *next;
    struct pawl__cond *cond;
    struct pawl__lock *lock;
    uint64_t number; /* of the wait */
};

static struct shared_clock *of(struct pawl__clock *base)
{
    return (struct shared_clock *)base; /* its first member */
}

static int64_t shared_now_ns(struct pawl__clock *base)
{
    struct shared_clock *clock = of(base);

    pawl__lock(&clock->lock);
    int64_t now_ns = clock->now_ns;
    pawl__unlock(&clock->lock);
    return now_ns;
}

static int64_t shared_wall_us(struct pawl__clock *base)
{
    return shared_now_ns(base) / NS_PER_US;
}

static void shared_sleep_until(struct pawl__clock *base, int64_t until_ns)
{
    (void)base;
    (void)until_ns;
    REQUIRE(false); /* it would sleep for ever: nobody moves the clock for it */
}

/* Under the caller's lock, so that no wake-up is lost between its last look at the time and the wait. */
static void shared_wait_until(struct pawl__clock *base,
                              struct pawl__cond *cond,
                              struct pawl__lock *lock,
                              int64_t until_ns) NO_LOCK_ANALYSIS
{
    struct shared_clock *clock = of(base);
    struct shared_clock_waiter me = { .cond = cond, .lock = lock };

    pawl__lock(&clock->lock);
    if (clock->now_ns >= until_ns) {
        pawl__unlock(&clock->lock);
        return;
    }
    me.number = clock->waits++;
    me.next = clock->waiters;
    clock->waiters = &me;
    pawl__cond_broadcast(&clock->changed);
    pawl__unlock(&clock->lock);
    pawl__cond_wait(cond, lock);
    pawl__lock(&clock->lock);
    struct shared_clock_waiter **at = &clock->waiters;
    while (*at != &me) {
        at = &(*at)->next;
    }
    *at = me.next;
    pawl__unlock(&clock->lock);
}

void shared_clock_init(struct shared_clock *clock, size_t threads)
{
    static const struct pawl__clock_ops ops = {
        .wall_us = shared_wall_us,
        .monotonic_ns = shared_now_ns,
        .boot_ns = shared_now_ns,
        .sleep_until = shared_sleep_until,
        .wait_until = shared_wait_until,
    };

    REQUIRE(threads <= WAITERS_MAX);
    *clock = (struct shared_clock){ .base = { &ops }, .threads = threads };
    pawl__lock_cond_init(&clock->lock, &clock->changed);
}

void shared_clock_done(struct shared_clock *clock)
{
    pawl__lock_cond_done(&clock->lock, &clock->changed);
}

/* Whether all threads wait, each since a wait of this number or a later one. */
static bool all_wait_locked(const struct shared_clock *clock, uint64_t since)
    REQUIRES_LOCK(clock->lock)
{
    size_t count = 0;

    for (const struct shared_clock_waiter *w = clock->waiters; w != NULL; w = w->next) {
        count += w->number >= since;
    }
    return count == clock->threads;
}

static bool await_rest_locked(struct shared_clock *clock, uint64_t since) REQUIRES_LOCK(clock->lock)
{
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + PATIENCE_S * NS_PER_S;
    bool in_time = true;

    while (!all_wait_locked(clock, since) && in_time) {
        in_time = pawl__cond_wait_until(&clock->changed, &clock->lock, deadline_ns);
    }
    return all_wait_locked(clock, since);
}

static void wake(const struct shared_clock_waiter *waiter)
{
    pawl__lock(waiter->lock);
    pawl__cond_broadcast(waiter->cond);
    pawl__unlock(waiter->lock);
}

/* Moves the clock and has every thread look at it. */
static bool step(struct shared_clock *clock, int64_t by_ns)
{
    struct shared_clock_waiter waiters[WAITERS_MAX];
    size_t count = 0;

    pawl__lock(&clock->lock);
    bool rests = await_rest_locked(clock, 0);
    uint64_t since = clock->waits;
    clock->now_ns += by_ns;
    for (struct shared_clock_waiter *w = clock->waiters; rests && w != NULL; w = w->next) {
        waiters[count++] = *w;
    }
    pawl__unlock(&clock->lock);
    for (size_t i = 0; i < count; i++) {
        wake(&waiters[i]);
    }
    pawl__lock(&clock->lock);
    rests = rests && await_rest_locked(clock, since);
    pawl__unlock(&clock->lock);
    return rests;
}

void shared_clock_advance(struct shared_clock *clock, int64_t by_ns)
{
    assert_true(step(clock, by_ns));
    assert_true(step(clock, 0)); /* what one thread did may have given another something to do */
}
