/* A clock that moves only when told to, for what has threads of its own: a sequencer, an application.
 *
 *     struct shared_clock clock;
 *     shared_clock_init(&clock, 2);                two threads will wait on it
 *     ... pawl__sequencer_new_at(&options, &clock.base, ...) ...
 *     shared_clock_advance(&clock, 5 * NS_PER_S);  returns when both have done what was due, and wait again */
#ifndef TESTS_SHARED_CLOCK_H
#define TESTS_SHARED_CLOCK_H

#include "base/os/clock.h"
#include "base/thread/thread.h"

struct shared_clock_waiter;

struct shared_clock {
    struct pawl__clock base;
    struct pawl__lock lock; /* covers all below; taken after that of a waiter */
    struct pawl__cond changed;
    int64_t now_ns; /* since 1970, too */
    size_t threads;
    uint64_t waits; /* that have begun so far */
    struct shared_clock_waiter *waiters;
};

void shared_clock_init(struct shared_clock *clock, size_t threads); /* at 0 */
void shared_clock_done(struct shared_clock *clock);

/* Fails the test when the threads do not come to rest within a minute of real time. */
void shared_clock_advance(struct shared_clock *clock, int64_t by_ns);

#endif
