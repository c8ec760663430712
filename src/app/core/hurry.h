/* Closing an application whose store does not answer: after a while its calls are ended, so that what
 * waits for them ends in time. */
#ifndef PAWL_APP_CORE_HURRY_H
#define PAWL_APP_CORE_HURRY_H

#include "app/core/backend.h"
#include "base/thread/cancel.h"
#include "base/thread/thread.h"

struct app_hurry {
    struct app_store *store;
    int64_t at_ns;
    struct pawl__cancel in_time;
    struct pawl__thread thread;
};

/* Interrupts the store at a monotonic time unless _stop comes first. A store that cannot be interrupted,
 * or a thread that cannot be started, is none of its business: closing has its own limit. */
void pawl__app_hurry_start(struct app_hurry *hurry, struct app_store *store, int64_t at_ns);
void pawl__app_hurry_stop(struct app_hurry *hurry);

#endif
