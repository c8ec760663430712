#include "base/thread/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/core/error.h"
#include "base/os/clock.h"

void pawl__lock_init(struct pawl__lock *lock)
{
    REQUIRE(pthread_mutex_init(&lock->mutex, NULL) == 0);
}

void pawl__lock_done(struct pawl__lock *lock)
{
    REQUIRE(pthread_mutex_destroy(&lock->mutex) == 0);
}

void pawl__lock(struct pawl__lock *lock) NO_LOCK_ANALYSIS
{
    REQUIRE(pthread_mutex_lock(&lock->mutex) == 0);
}

void pawl__unlock(struct pawl__lock *lock) NO_LOCK_ANALYSIS
{
    REQUIRE(pthread_mutex_unlock(&lock->mutex) == 0);
}

void pawl__cond_init(struct pawl__cond *cond)
{
    pthread_condattr_t attributes;

    REQUIRE(pthread_condattr_init(&attributes) == 0);
    REQUIRE(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    REQUIRE(pthread_cond_init(&cond->cond, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
}

void pawl__cond_done(struct pawl__cond *cond)
{
    REQUIRE(pthread_cond_destroy(&cond->cond) == 0);
}

void pawl__lock_cond_init(struct pawl__lock *lock, struct pawl__cond *cond)
{
    pawl__lock_init(lock);
    pawl__cond_init(cond);
}

void pawl__lock_cond_done(struct pawl__lock *lock, struct pawl__cond *cond)
{
    pawl__cond_done(cond);
    pawl__lock_done(lock);
}

void pawl__cond_signal(struct pawl__cond *cond)
{
    REQUIRE(pthread_cond_signal(&cond->cond) == 0);
}

void pawl__cond_broadcast(struct pawl__cond *cond)
{
    REQUIRE(pthread_cond_broadcast(&cond->cond) == 0);
}

void pawl__cond_wait(struct pawl__cond *cond, struct pawl__lock *lock)
{
    REQUIRE(pthread_cond_wait(&cond->cond, &lock->mutex) == 0);
}

static struct timespec timespec_of(int64_t ns)
{
    ns = MAX(ns, 0);
    return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

bool pawl__cond_wait_until(struct pawl__cond *cond, struct pawl__lock *lock, int64_t deadline_ns)
{
    struct timespec deadline = timespec_of(deadline_ns);
    int error = pthread_cond_timedwait(&cond->cond, &lock->mutex, &deadline);

    REQUIRE(error == 0 || error == ETIMEDOUT);
    return error == 0;
}

void pawl__cond_wait_on(struct pawl__clock *clock,
                        struct pawl__cond *cond,
                        struct pawl__lock *lock,
                        int64_t until_ns)
{
    if (clock->ops->wait_until != NULL) {
        clock->ops->wait_until(clock, cond, lock, until_ns);
    } else {
        (void)pawl__cond_wait_until(cond, lock, until_ns);
    }
}

_Thread_local uint64_t pawl__thread_number_mine;

uint64_t pawl__thread_number_new(void)
{
    static atomic_uint_fast64_t last;

    pawl__thread_number_mine = atomic_fetch_add(&last, 1) + 1;
    return pawl__thread_number_mine;
}

struct start {
    void (*run)(void *context);
    void *context;
};

static void *thread_main(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    start.run(start.context);
    return NULL;
}

/* A thread inherits the mask of its creator, so blocking around the creation leaves no moment in
 * which it could take a signal. */
static int create_with_signals_blocked(pthread_t *id, struct start *start)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error == 0) {
        error = pthread_create(id, NULL, thread_main, start);
        REQUIRE(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    }
    return error;
}

pawl_status pawl__thread_start(struct pawl__thread *thread,
                               const char *name,
                               void (*run)(void *context),
                               void *context,
                               pawl_error *reterr)
{
    struct start *start = malloc(sizeof(*start));

    REQUIRE(!thread->started);
    if (start == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for thread '%s'", name);
    }
    *start = (struct start){ run, context };
    int error = create_with_signals_blocked(&thread->id, start);
    if (error != 0) {
        free(start);
        return pawl__fail_errno(reterr, error, "start thread '%s'", name);
    }
    thread->started = true;
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(thread->id, short_name); /* only for people; failing changes nothing */
    return PAWL_OK;
}

void pawl__thread_join(struct pawl__thread *thread)
{
    if (thread->started) {
        REQUIRE(pthread_join(thread->id, NULL) == 0);
        thread->started = false;
    }
}

/* ThreadSanitizer of gcc 12 and clang 14 does not know pthread_clockjoin_np and would report what a
 * joined thread did as a race. Its builds use the wall-clock form, which it knows; a step of the
 * wall clock only moves the deadline there. */
#if defined(__SANITIZE_THREAD__)
#define JOIN_IS_TIMED_BY_WALL 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define JOIN_IS_TIMED_BY_WALL 1
#endif
#endif

static int join_until(pthread_t id, int64_t deadline_ns)
{
#ifdef JOIN_IS_TIMED_BY_WALL
    struct pawl__clock *clock = pawl__clock_or_real(NULL);
    int64_t left_ns = MAX(deadline_ns - pawl__monotonic_ns(clock), 0);
    int64_t wall_ns = pawl__wall_us(clock) * NS_PER_US;
    struct timespec deadline = timespec_of(wall_ns + MIN(left_ns, INT64_MAX - wall_ns));
    return pthread_timedjoin_np(id, NULL, &deadline);
#else
    struct timespec deadline = timespec_of(deadline_ns);
    return pthread_clockjoin_np(id, NULL, CLOCK_MONOTONIC, &deadline);
#endif
}

bool pawl__thread_join_until(struct pawl__thread *thread, int64_t deadline_ns)
{
    if (!thread->started) {
        return true;
    }
    if (pthread_equal(thread->id, pthread_self())) {
        return false;
    }
    int error = join_until(thread->id, deadline_ns);
    REQUIRE(error == 0 || error == ETIMEDOUT);
    thread->started = error != 0;
    return error == 0;
}
