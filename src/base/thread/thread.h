/* Threads, locks and conditions, with clang's thread-safety analysis told who holds what.
 *
 * The rule stands at the type: a handle belongs to one thread at a time; the few shared structs
 * keep their lock first and say what it covers; functions that need it held end in _locked and
 * carry REQUIRES_LOCK. Nothing sleeps to wait: wait for the event, with a deadline. */
#ifndef PAWL_BASE_THREAD_THREAD_H
#define PAWL_BASE_THREAD_THREAD_H

#include <pthread.h>

#include <pawl/pawl.h>

#if defined(__clang__)
#define LOCK_CAPABILITY __attribute__((capability("mutex")))
#define ACQUIRES_LOCK(lock) __attribute__((acquire_capability(lock)))
#define RELEASES_LOCK(lock) __attribute__((release_capability(lock)))
#define REQUIRES_LOCK(lock) __attribute__((requires_capability(lock)))
#define NO_LOCK_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define LOCK_CAPABILITY
#define ACQUIRES_LOCK(lock)
#define RELEASES_LOCK(lock)
#define REQUIRES_LOCK(lock)
#define NO_LOCK_ANALYSIS
#endif

struct pawl__clock;

struct LOCK_CAPABILITY pawl__lock {
    pthread_mutex_t mutex;
};

struct pawl__cond {
    pthread_cond_t cond; /* waits on CLOCK_MONOTONIC */
};

/* Neither glibc nor musl fails to make one of these. */
void pawl__lock_init(struct pawl__lock *lock);
void pawl__lock_done(struct pawl__lock *lock);
void pawl__lock(struct pawl__lock *lock) ACQUIRES_LOCK(*lock);
void pawl__unlock(struct pawl__lock *lock) RELEASES_LOCK(*lock);

void pawl__cond_init(struct pawl__cond *cond);
void pawl__cond_done(struct pawl__cond *cond);

/* A lock and the condition that is waited for with it. */
void pawl__lock_cond_init(struct pawl__lock *lock, struct pawl__cond *cond);
void pawl__lock_cond_done(struct pawl__lock *lock, struct pawl__cond *cond);

void pawl__cond_signal(struct pawl__cond *cond);
void pawl__cond_broadcast(struct pawl__cond *cond);
void pawl__cond_wait(struct pawl__cond *cond, struct pawl__lock *lock) REQUIRES_LOCK(*lock);

/* False when the monotonic deadline passed first. Spurious wake-ups happen: check the state. */
bool pawl__cond_wait_until(struct pawl__cond *cond, struct pawl__lock *lock, int64_t deadline_ns)
    REQUIRES_LOCK(*lock);

/* The same until a time of `clock`: a thread that does something at a time decided by a given clock waits
 * with this. One that a test or a simulation moves wakes it. */
void pawl__cond_wait_on(struct pawl__clock *clock,
                        struct pawl__cond *cond,
                        struct pawl__lock *lock,
                        int64_t until_ns) REQUIRES_LOCK(*lock);

/* The number of the calling thread: no other thread of the process has it, has had it or will have it. The
 * address of a thread-local is no such thing: the next thread gets the same one. Never 0. */
uint64_t pawl__thread_number_new(void);
extern _Thread_local uint64_t pawl__thread_number_mine __attribute__((visibility("hidden")));

static inline uint64_t pawl__thread_number(void)
{
    return pawl__thread_number_mine != 0 ? pawl__thread_number_mine : pawl__thread_number_new();
}

struct pawl__thread {
    pthread_t id;
    bool started;
};

/* Starts a thread with all signals blocked: they belong to the program, not to the library. `name`
 * (15 bytes at most are kept) is what `top -H` shows. */
PAWL_MUST_USE pawl_status pawl__thread_start(struct pawl__thread *thread,
                                             const char *name,
                                             void (*run)(void *context),
                                             void *context,
                                             pawl_error *reterr);

void pawl__thread_join(struct pawl__thread *thread); /* does nothing when it was not started */

/* False when the thread still runs at the deadline, as it does when it is the caller; it is then still to
 * be joined. */
PAWL_MUST_USE bool pawl__thread_join_until(struct pawl__thread *thread, int64_t deadline_ns);

#endif
