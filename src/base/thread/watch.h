/* How those who wait for news learn of it: a counter that changes. A thread waits for it, or somebody
 * without a thread subscribes, with a function or an eventfd.
 *
 * The counter is a futex and not a condition behind a lock, because they are also woken from
 * signal handlers (pawl_reader_cancel), where taking a lock may wait for the very thread that was
 * interrupted. It wraps around: only whether it differs says anything.
 *
 * Subscribers are told by one thread of the watch, however many there are: a signal handler can wake
 * it, but could not call them.
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

/* Belongs to the one who subscribes; lives until it has unsubscribed. */
struct pawl__watch_subscriber {
    struct pawl__watch *watch; /* NULL: not subscribed */
    void (*notify)(void *context);
    void *context;
    int fd;
    struct pawl__watch_subscriber *next;
    struct pawl__watch_subscriber *before;
};

struct pawl__watch {
    struct pawl__lock lock; /* covers `started` and `thread`, and all of the subscribers */
    bool started;
    struct pawl__thread thread;
    _Atomic uint32_t generation;
    pawl__watch_fn outside; /* NULL: nobody else can change anything */
    void *context;
    struct pawl__cancel cancel; /* ends the threads */

    struct pawl__watch_subscriber *subscribers;
    struct pawl__watch_subscriber *upcoming; /* the next one to be told of the change at hand */
    struct pawl__watch_subscriber *told;     /* the one whose function runs; NULL: none does */
    struct pawl__cond told_one;              /* it has returned */
    uint32_t told_generation;                /* the notifier's, from its start on */
    struct pawl__thread notifier;
};

/* `outside` may be NULL. */
void pawl__watch_init(struct pawl__watch *watch, pawl__watch_fn outside, void *context);

/* Whether somebody is subscribed. */
bool pawl__watch_has_subscribers(struct pawl__watch *watch);

/* Ends the threads; nobody may wait or be subscribed any more. */
void pawl__watch_done(struct pawl__watch *watch);

/* There is news, or waiting threads have to read again. Also from a signal handler. */
void pawl__watch_bump(struct pawl__watch *watch);

/* Read it, read the store, then wait for it to change: nothing slips through in between. */
uint32_t pawl__watch_generation(struct pawl__watch *watch);

/* Other processes' commits count from now on, too. The second time does nothing. */
PAWL_MUST_USE pawl_status pawl__watch_outside(struct pawl__watch *watch, pawl_error *reterr);

/* False when the monotonic deadline passed while nothing changed. */
bool pawl__watch_wait(struct pawl__watch *watch, uint32_t generation, int64_t deadline_ns);

/* Calls notify(context) soon after every change from now on; several changes may be one call. It runs
 * on a thread of the watch, which serves all subscribers: it wakes somebody and returns. It may
 * subscribe and unsubscribe, also itself. */
PAWL_MUST_USE pawl_status pawl__watch_subscribe(struct pawl__watch *watch,
                                                struct pawl__watch_subscriber *subscriber,
                                                void (*notify)(void *context),
                                                void *context,
                                                pawl_error *reterr);

/* The same with an eventfd, which becomes readable. It stays the caller's, and must not block
 * (EFD_NONBLOCK). */
PAWL_MUST_USE pawl_status pawl__watch_subscribe_fd(struct pawl__watch *watch,
                                                   struct pawl__watch_subscriber *subscriber,
                                                   int fd,
                                                   pawl_error *reterr);

/* After this `notify` does not run and will not, unless this is called from within it: then it is the
 * last time. Never while holding a lock that `notify` takes. One that is not subscribed is fine. */
void pawl__watch_unsubscribe(struct pawl__watch_subscriber *subscriber);

#endif
