/* Calls under way on a handle, and closing it in bounded time. All capabilities close the same way:
 *
 *   inside a callback   of the handle, close is refused with WRONG_THREAD and the handle stays open:
 *                       the caller's caller still uses it
 *   drain               calls under way end, and what was submitted is committed; for a while
 *   interrupt           then the store is told to end its calls, and gets a while to do so
 *   leave               a store that still hangs keeps everything that its threads use. What was
 *                       acknowledged is durable */
#ifndef PAWL_ENGINE_CALLS_H
#define PAWL_ENGINE_CALLS_H

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"

struct pawl__calls {
    struct pawl__lock lock;
    struct pawl__cond gone;
    size_t count;
    bool ready;
    struct pawl__clock *clock;
};

/* `clock` is the one that waits and deadlines of the handle count by, so one that runs. NULL: the real one. */
void pawl__calls_init(struct pawl__calls *calls, struct pawl__clock *clock);
void pawl__calls_done(struct pawl__calls *calls); /* also when it was never initialized, but zero */

int64_t pawl__calls_now_ns(const struct pawl__calls *calls); /* monotonic */

/* Around a call that close waits for. */
void pawl__calls_enter(struct pawl__calls *calls);
void pawl__calls_leave(struct pawl__calls *calls);

/* True: no call is under way; false: the monotonic deadline passed. */
bool pawl__calls_await(struct pawl__calls *calls, int64_t deadline_ns);

/* WRONG_THREAD when this thread is inside a callback of the handle (base/thread/inside.h). `what` names
 * it in the message: "the ledger". */
PAWL_MUST_USE pawl_status pawl__calls_check_outside(const void *handle,
                                                    const char *what,
                                                    pawl_error *reterr);

struct pawl__closing {
    /* Ends what runs, by the monotonic deadline; with `drain` what was submitted is committed first.
     * True: nothing uses the handle any more. Called again after the interrupt. */
    bool (*stop)(void *context, bool drain, int64_t deadline_ns);
    void (*interrupt)(void *context); /* NULL: the store cannot be interrupted, it only drains */
    void *context;
    int64_t drain_ns;
    int64_t interrupted_ns;
};

#define PAWL__CLOSING_DEFAULT \
    .drain_ns = 5 * NS_PER_S, .interrupted_ns = 5 * NS_PER_S /* as the public headers promise */

/* False: the store hangs, and everything that its threads use must be left as it is. */
PAWL_MUST_USE bool pawl__close_bounded(const struct pawl__closing *closing,
                                       struct pawl__clock *clock);

#endif
