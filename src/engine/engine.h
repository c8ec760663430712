/* What an open handle is made of, whatever its capability: a clock, the calls under way, a committer and
 * its watch, and the way to end all of it.
 *
 *     init, then open the store with &engine->interrupted, then watch, then start
 *     close, done, then close the store
 *
 * Each step may be left out, and _done ends what there is. */
#ifndef PAWL_ENGINE_ENGINE_H
#define PAWL_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "base/thread/watch.h"
#include "engine/calls.h"
#include "engine/committer.h"

struct pawl__engine {
    const char *name; /* "the ledger": in messages */
    /* What is stamped and decided by time. A test or a simulation gives its own; waits and deadlines of
     * callers are on that of `calls`, which runs. */
    struct pawl__clock *clock;
    struct pawl__calls calls;
    struct pawl__commit *commit; /* NULL: opened to read only */
    struct pawl__watch watch;    /* changes with each commit, also of other processes */
    bool watch_ready;
    atomic_bool interrupted; /* calls on the store end soon */
};

/* `clock` NULL: the real one. Ended with _done, also when it failed. */
void pawl__engine_init(struct pawl__engine *engine, const char *name, struct pawl__clock *clock);
void pawl__engine_done(struct pawl__engine *engine);

/* `outside` (base/thread/watch.h) finds the commits of other processes; NULL: there are none. */
void pawl__engine_watch(struct pawl__engine *engine, pawl__watch_fn outside, void *context);

/* Starts the committer. */
PAWL_MUST_USE pawl_status pawl__engine_start(struct pawl__engine *engine,
                                             const struct pawl__commit_options *options,
                                             pawl_error *reterr);

/* pawl__commit_submit without a deadline: the committer's own waits have bounds (busy_ms_max, the
 * server's timeouts). DENIED when the handle only reads. */
PAWL_MUST_USE pawl_status pawl__engine_submit(struct pawl__engine *engine,
                                              struct pawl__commit_item *item,
                                              pawl_error *reterr);

/* pawl__commit_submit_async. DENIED when the handle only reads. */
PAWL_MUST_USE pawl_status pawl__engine_submit_async(struct pawl__engine *engine,
                                                    struct pawl__commit_item *item,
                                                    pawl_error *reterr);

/* Calls on the store end soon, and threads that wait for a commit read again. Also from a signal handler. */
void pawl__engine_interrupt(struct pawl__engine *engine);

/* Waits for the calls under way, then ends the committer, as calls.h says, in `timeout_ms` (0: 10 seconds).
 * `calls_ended` (NULL: nothing) runs in between, and again after an interrupt. TIMEOUT: the store hangs, and the
 * handle with everything that its threads use must be left as it is. */
PAWL_MUST_USE pawl_status pawl__engine_close(struct pawl__engine *engine,
                                             uint32_t timeout_ms,
                                             void (*calls_ended)(void *context),
                                             void *context,
                                             pawl_error *reterr);

#endif
