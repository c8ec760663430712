/* A request to stop: a flag and a wake-up, never pthread_cancel.
 *
 * Code that may have to stop is handed a token and checks it between steps; code that waits, waits on
 * the token as well. Cancelling is final and costs the canceller no wait for anybody.
 *
 * A token may have a parent: cancelling the parent cancels its children, never the other way. What
 * blocks elsewhere (a queue, a condition, a socket's wake-up pipe) links a function that wakes it.
 *
 * Threads: everything but init and done may be called from any thread, not from a signal handler.
 * Lock order: a parent's lock before its child's, and a token's lock before whatever a linked
 * function takes. So never link, unlink or cancel while holding a lock that a linked function
 * takes. */
#ifndef PAWL_BASE_THREAD_CANCEL_H
#define PAWL_BASE_THREAD_CANCEL_H

#include <stdatomic.h>

#include "base/thread/thread.h"

struct pawl__cancel;

/* Belongs to the one who links; lives from link to unlink. */
struct pawl__cancel_link {
    void (*wake)(void *context);
    void *context;
    struct pawl__cancel_link *next;
    struct pawl__cancel_link *before;
};

struct pawl__cancel {
    struct pawl__lock lock; /* covers links, and cancelled against cond */
    struct pawl__cond cond;
    atomic_bool cancelled; /* set once, under the lock; read without */
    struct pawl__cancel_link *links;
    struct pawl__cancel *parent;
    struct pawl__cancel_link in_parent;
};

/* `parent` may be NULL; it must outlive the child. A child of a cancelled parent is born so. */
void pawl__cancel_init(struct pawl__cancel *cancel, struct pawl__cancel *parent);

/* Nobody may wait on the token, be linked to it or be its child any more. */
void pawl__cancel_done(struct pawl__cancel *cancel);

/* Sets the flag, wakes who waits and calls every linked function once, on this thread. The second
 * time does nothing. */
void pawl__cancel_now(struct pawl__cancel *cancel);

/* One atomic load. NULL is a token that is never cancelled. */
bool pawl__cancelled(const struct pawl__cancel *cancel);

/* A pause that cancelling ends: true when cancelled, false when the monotonic deadline passed. */
bool pawl__cancel_wait_until(struct pawl__cancel *cancel, int64_t deadline_ns);

/* Calls wake(context) when the token is cancelled, at once if it is already. It runs under the
 * token's lock: it wakes somebody and returns. */
void pawl__cancel_link(struct pawl__cancel *cancel,
                       struct pawl__cancel_link *link,
                       void (*wake)(void *context),
                       void *context);

/* After this `wake` does not run and will not. A link that was never made is fine. */
void pawl__cancel_unlink(struct pawl__cancel *cancel, struct pawl__cancel_link *link);

#endif
