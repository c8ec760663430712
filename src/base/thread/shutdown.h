/* Stopping a set of threads in bounded time, whatever they are stuck in.
 *
 * A thread that does not come back is left running and named. It cannot be ended from outside: it
 * may hold locks or be in the middle of a write. So everything that it can reach (its context, its
 * stores, the cancel token) must stay where it is: the caller reports, frees nothing of it, and
 * ends the process. What was acknowledged is on disk, and the rest is what recovery is for. */
#ifndef PAWL_BASE_THREAD_SHUTDOWN_H
#define PAWL_BASE_THREAD_SHUTDOWN_H

#include "base/thread/cancel.h"

struct pawl__stop {
    const char *name; /* for the message */
    struct pawl__thread *thread;
};

/* Cancels, then waits for each thread. PAWL_OK: all have ended and are joined (also those that were
 * never started). TIMEOUT at the monotonic deadline: the message names who still runs; thread->
 * started tells them apart, and the call may be repeated with a later deadline. `cancel` may be
 * NULL when the threads were told otherwise. */
PAWL_MUST_USE pawl_status pawl__stop_threads(struct pawl__cancel *cancel,
                                             const struct pawl__stop *threads,
                                             size_t count,
                                             int64_t deadline_ns,
                                             pawl_error *reterr);

#endif
