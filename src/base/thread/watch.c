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

void pawl__watch_init(struct pawl__watch *watch, pawl__watch_fn outside, void *context)
{
    *watch = (struct pawl__watch){ .outside = outside, .context = context };
    pawl__lock_cond_init(&watch->lock, &watch->told_one);
    pawl__cancel_init(&watch->cancel, NULL);
}

bool pawl__watch_has_subscribers(struct pawl__watch *watch)
{
    pawl__lock(&watch->lock);
    bool any = watch->subscribers != NULL;
    pawl__unlock(&watch->lock);
    return any;
}

void pawl__watch_done(struct pawl__watch *watch)
{
    REQUIRE(watch->subscribers == NULL);
    pawl__cancel_now(&watch->cancel);
    pawl__watch_bump(watch); /* for the notifier, which waits for nothing else */
    pawl__thread_join(&watch->thread);
    pawl__thread_join(&watch->notifier);
    pawl__cancel_done(&watch->cancel);
    pawl__lock_cond_done(&watch->lock, &watch->told_one);
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
    struct pawl__clock *clock = pawl__clock_or_real(NULL);

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

/* --- subscribers --- */

static void write_eventfd(void *context)
{
    const struct pawl__watch_subscriber *subscriber = context;
    uint64_t one = 1;

    /* Failing means that the counter is full: a thread that polls it wakes all the same. */
    (void)!write(subscriber->fd, &one, sizeof(one));
}

/* The subscriber may be gone when its function has returned: only the watch is looked at then. */
static void tell_all_locked(struct pawl__watch *watch) REQUIRES_LOCK(watch->lock)
{
    watch->upcoming = watch->subscribers;
    while (watch->upcoming != NULL) {
        struct pawl__watch_subscriber *subscriber = watch->upcoming;
        void (*notify)(void *context) = subscriber->notify;
        void *context = subscriber->context;

        watch->told = subscriber;
        watch->upcoming = subscriber->next;
        pawl__unlock(&watch->lock);
        notify(context);
        pawl__lock(&watch->lock);
        watch->told = NULL;
        pawl__cond_broadcast(&watch->told_one);
    }
}

static void notify_main(void *context)
{
    struct pawl__watch *watch = context;

    for (;;) {
        pawl__watch_wait(watch, watch->told_generation, INT64_MAX);
        watch->told_generation = pawl__watch_generation(watch);
        if (pawl__cancelled(&watch->cancel)) {
            return;
        }
        pawl__lock(&watch->lock);
        tell_all_locked(watch);
        pawl__unlock(&watch->lock);
    }
}

static pawl_status link_locked(struct pawl__watch *watch,
                               struct pawl__watch_subscriber *subscriber,
                               pawl_error *reterr) REQUIRES_LOCK(watch->lock)
{
    if (!watch->notifier.started) {
        watch->told_generation = pawl__watch_generation(watch);
        TRY(pawl__thread_start(&watch->notifier, "pawl-notify", notify_main, watch, reterr));
    }
    subscriber->watch = watch;
    subscriber->before = NULL;
    subscriber->next = watch->subscribers;
    if (subscriber->next != NULL) {
        subscriber->next->before = subscriber;
    }
    watch->subscribers = subscriber;
    return PAWL_OK;
}

pawl_status pawl__watch_subscribe(struct pawl__watch *watch,
                                  struct pawl__watch_subscriber *subscriber,
                                  void (*notify)(void *context),
                                  void *context,
                                  pawl_error *reterr)
{
    *subscriber = (struct pawl__watch_subscriber){ .notify = notify, .context = context, .fd = -1 };
    pawl__lock(&watch->lock);
    pawl_status status = link_locked(watch, subscriber, reterr);
    pawl__unlock(&watch->lock);
    return status;
}

pawl_status pawl__watch_subscribe_fd(struct pawl__watch *watch,
                                     struct pawl__watch_subscriber *subscriber,
                                     int fd,
                                     pawl_error *reterr)
{
    *subscriber =
        (struct pawl__watch_subscriber){ .notify = write_eventfd, .context = subscriber, .fd = fd };
    pawl__lock(&watch->lock);
    pawl_status status = link_locked(watch, subscriber, reterr);
    pawl__unlock(&watch->lock);
    return status;
}

static void unlink_locked(struct pawl__watch *watch, struct pawl__watch_subscriber *subscriber)
    REQUIRES_LOCK(watch->lock)
{
    if (subscriber->next != NULL) {
        subscriber->next->before = subscriber->before;
    }
    if (subscriber->before != NULL) {
        subscriber->before->next = subscriber->next;
    } else {
        watch->subscribers = subscriber->next;
    }
    if (watch->upcoming == subscriber) {
        watch->upcoming = subscriber->next;
    }
}

void pawl__watch_unsubscribe(struct pawl__watch_subscriber *subscriber)
{
    struct pawl__watch *watch = subscriber->watch;

    if (watch == NULL) {
        return;
    }
    pawl__lock(&watch->lock);
    unlink_locked(watch, subscriber);
    bool within = pthread_equal(watch->notifier.id, pthread_self());
    while (watch->told == subscriber && !within) {
        pawl__cond_wait(&watch->told_one, &watch->lock);
    }
    pawl__unlock(&watch->lock);
    subscriber->watch = NULL;
}
