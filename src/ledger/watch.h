/* How readers learn that the log grew: a counter that changes, and a way to wait for it.
 *
 * The counter is a futex and not a condition behind a lock, because readers are also woken from
 * signal handlers (pawl_reader_cancel), where taking a lock may wait for the very thread that was
 * interrupted. It wraps around: only whether it differs says anything.
 *
 * Commits of this process bump it at once. Those of others are found by a watcher thread that the
 * first waiting reader starts; it sits in the backend's own `watch` and bumps when that returns. */
#ifndef PAWL_LEDGER_WATCH_H
#define PAWL_LEDGER_WATCH_H

#include <stdatomic.h>

#include "base/cancel.h"
#include "base/thread.h"
#include "ledger/backend.h"

struct ledger_watch {
    struct pawl__lock lock; /* covers `started` and `thread` */
    bool started;
    struct pawl__thread thread;
    _Atomic uint32_t generation;
    struct ledger_backend *backend;
    struct pawl__cancel cancel; /* ends the thread */
};

PAWL_MUST_USE pawl_status pawl__watch_init(struct ledger_watch *watch,
                                           struct ledger_backend *backend,
                                           pawl_error *reterr);

/* Ends the watcher thread; nobody may wait any more. */
void pawl__watch_done(struct ledger_watch *watch);

/* The log grew, or somebody has to look again. Also from a signal handler. */
void pawl__watch_bump(struct ledger_watch *watch);

/* Read it, look at the log, then wait for it to change: nothing slips through in between. */
uint32_t pawl__watch_generation(struct ledger_watch *watch);

/* Other processes' commits count from now on, too. The second time does nothing. */
PAWL_MUST_USE pawl_status pawl__watch_outside(struct ledger_watch *watch, pawl_error *reterr);

/* False when the monotonic deadline passed while nothing changed. */
bool pawl__watch_wait(struct ledger_watch *watch, uint32_t generation, int64_t deadline_ns);

#endif
