/* How those who wait for news learn of it: a counter that changes, and a way to wait for it.
 *
 * The counter is a futex and not a condition behind a lock, because they are also woken from
 * signal handlers (pawl_reader_cancel), where taking a lock may wait for the very thread that was
 * interrupted. It wraps around: only whether it differs says anything.
 *
 * Commits of this process bump it at once. Those of others are found by a watcher thread that the
 * first one who waits starts; it sits in a function of the store and bumps when that returns. */
#ifndef PAWL_BASE_THREAD_WATCH_H
#define PAWL_BASE_THREAD_WATCH_H

#include <stdatomic.h>

#include "base/thread/cancel.h"
#include "base/thread/thread.h"

/* Returns when another process has changed something, at the monotonic deadline, or when `cancel` is
 * cancelled; sooner does no harm. On the watcher's thread alone. */
typedef pawl_status (*pawl__watch_fn)(void *context,
                                      int64_t deadline_ns,
                                      struct pawl__cancel *cancel,
                                      pawl_error *reterr);

struct pawl__watch {
    struct pawl__lock lock; /* covers `started` and `thread` */
    bool started;
    struct pawl__thread thread;
    _Atomic uint32_t generation;
    pawl__watch_fn outside; /* NULL: nobody else can change anything */
    void *context;
    struct pawl__cancel cancel; /* ends the thread */
};

/* `outside` may be NULL. */
PAWL_MUST_USE pawl_status pawl__watch_init(struct pawl__watch *watch,
                                           pawl__watch_fn outside,
                                           void *context,
                                           pawl_error *reterr);

/* Ends the watcher thread; nobody may wait any more. */
void pawl__watch_done(struct pawl__watch *watch);

/* There is news, or somebody has to look again. Also from a signal handler. */
void pawl__watch_bump(struct pawl__watch *watch);

/* Read it, look at the store, then wait for it to change: nothing slips through in between. */
uint32_t pawl__watch_generation(struct pawl__watch *watch);

/* Other processes' commits count from now on, too. The second time does nothing. */
PAWL_MUST_USE pawl_status pawl__watch_outside(struct pawl__watch *watch, pawl_error *reterr);

/* False when the monotonic deadline passed while nothing changed. */
bool pawl__watch_wait(struct pawl__watch *watch, uint32_t generation, int64_t deadline_ns);

#endif
