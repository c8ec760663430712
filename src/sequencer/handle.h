/* A sequencer with its threads: what sequencer.c and background.c share. */
#ifndef PAWL_SEQUENCER_HANDLE_H
#define PAWL_SEQUENCER_HANDLE_H

#include <stdatomic.h>

#include "base/core/random.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "sequencer/core.h"
#include "sequencer/internal.h"
#include "sequencer/storage_call.h"

struct pawl_sequencer {
    struct pawl__clock *clock; /* decides when numbers are stored and failures are retried */
    struct pawl__clock
        *wait_clock;      /* of callers' deadlines; it runs, whatever the other one does */
    struct seq_core core; /* its shared half under the lock */
    pawl_seq_storage storage;
    pawl_sequencer_options options;
    /* The number of the thread whose transaction is open; NOBODY: none is; THE_STORAGE: its own storage is
     * being asked, and must not come back to it */
    atomic_uint_fast64_t owner;
    atomic_bool closed;

    struct pawl__lock lock; /* covers all below */
    struct pawl__cond changed;
    bool closing;
    bool abandoned; /* nobody waits for the threads any more, and the storage may be gone soon */
    bool flush_wanted;
    bool actualize_wanted;
    bool cleaning; /* no write may begin: what waits is about to be forgotten */
    bool writing;
    int64_t retry_ns;     /* not before, after a write that failed */
    pawl_error log_error; /* what is wrong with the log; PAWL_OK: nothing */
    struct pawl__prng random;
    pawl_sequencer_status status; /* counts and the last error */
    int users;                    /* the handle and the threads; the last one out frees */

    struct pawl__lock joining; /* a thread is joined by one thread only; covers all below */
    bool close_timed_out;
    struct pawl__thread flusher;
    struct pawl__thread actualizer;
};

/* On the clock that decides. */
static inline int64_t pawl__seq_from_now(const struct pawl_sequencer *seq, uint32_t ms)
{
    return pawl__monotonic_ns(seq->clock) + ms * NS_PER_MS;
}

/* Of a wait. */
static inline int64_t pawl__seq_deadline(const struct pawl_sequencer *seq, uint32_t ms)
{
    return pawl__monotonic_ns(seq->wait_clock) + ms * NS_PER_MS;
}

static inline struct seq_storage_of pawl__seq_storage_of(const struct pawl_sequencer *seq)
{
    return (struct seq_storage_of){ .storage = &seq->storage, .sequencer = seq };
}

/* Starts both threads, and the first actualization. */
PAWL_MUST_USE pawl_status pawl__seq_start_threads(struct pawl_sequencer *seq, pawl_error *reterr);

/* The flusher writes what waits, now; the actualizer drops all numbers and reads the log. */
void pawl__seq_want_flush_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock);
void pawl__seq_want_actualization_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock);

/* One user less; the last one frees it. */
void pawl__seq_leave(struct pawl_sequencer *seq);

#endif
