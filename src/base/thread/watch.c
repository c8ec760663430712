#include "base/thread/watch.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"

/* A store that fails (a server that is away) is asked again after this; who waits polls meanwhile.
 */
#define RETRY_NS (200 * NS_PER_MS)
#define WATCH_NS (1 * NS_PER_S)

pawl_status pawl__watch_init(struct pawl__watch *watch,
                             pawl__watch_fn outside,
                             void *context,
                             pawl_error *reterr)
{
    *watch = (struct pawl__watch){ .outside = outside, .context = context };
    pawl_status status = pawl__lock_init(&watch->lock, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    status = pawl__cancel_init(&watch->cancel, NULL, reterr);
    if (status != PAWL_OK) {
        pawl__lock_done(&watch->lock);
    }
    return status;
}

void pawl__watch_done(struct pawl__watch *watch)
{
    pawl__cancel_now(&watch->cancel);
    pawl__thread_join(&watch->thread);
    pawl__cancel_done(&watch->cancel);
    pawl__lock_done(&watch->lock);
}

void pawl__watch_bump(struct pawl__watch *watch)
{
    int before = errno; /* a signal handler's caller has its own */

    atomic_fetch_add(&watch->generation, 1);
    syscall(SYS_futex, &watch->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = before;
}

uint32_t pawl__watch_generation(struct pawl__watch *watch)
{
    return atomic_load(&watch->generation);
}

static void watch_main(void *context)
{
    struct pawl__watch *watch = context;
    struct pawl__clock *clock = pawl__clock_real();

    while (!pawl__cancelled(&watch->cancel)) {
        int64_t now_ns = pawl__monotonic_ns(clock);
        pawl_status status =
            watch->outside(watch->context, now_ns + WATCH_NS, &watch->cancel, NULL);
        if (status != PAWL_OK) {
            pawl__cancel_wait_until(&watch->cancel, now_ns + RETRY_NS);
        }
        /* Also after an error and at the deadline: looking once a second is the safety net. */
        pawl__watch_bump(watch);
    }
}

pawl_status pawl__watch_outside(struct pawl__watch *watch, pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    pawl__lock(&watch->lock);
    if (!watch->started && watch->outside != NULL) {
        status = pawl__thread_start(&watch->thread, "pawl-watch", watch_main, watch, reterr);
        watch->started = status == PAWL_OK;
    }
    pawl__unlock(&watch->lock);
    return status;
}

bool pawl__watch_wait(struct pawl__watch *watch, uint32_t generation, int64_t deadline_ns)
{
    deadline_ns = MAX(deadline_ns, INT64_C(0)); /* the past, however far */
    struct timespec deadline = { deadline_ns / NS_PER_S, deadline_ns % NS_PER_S };

    while (atomic_load(&watch->generation) == generation) {
        /* Sleeps only if the generation is still the same; until a monotonic time, not for a while.
         * Whatever else it returns for, the generation says. */
        long rc = syscall(SYS_futex,
                          &watch->generation,
                          FUTEX_WAIT_BITSET_PRIVATE,
                          generation,
                          &deadline,
                          NULL,
                          FUTEX_BITSET_MATCH_ANY);
        if (rc != 0 && errno == ETIMEDOUT) {
            return atomic_load(&watch->generation) != generation;
        }
    }
    return true;
}
