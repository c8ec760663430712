/* What the node does for its work store by itself: leases that ran out are taken back, and schedules
 * fire. Any number of nodes and runs may do so at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/thread/shutdown.h"
#include "base/thread/thread.h"
#include "server/work/work.h"

#define MINUTE_NS (60 * NS_PER_S)
#define AGAIN_NS (2 * NS_PER_S) /* a store that fails is tried again: /readyz waits for it */

struct node_maintenance {
    struct pawl__lock lock; /* covers stop */
    struct pawl__cond changed;
    bool stop;
    struct node_work *work;
    int64_t sweep_ns;
    char unfired[PAWL_ERROR_MESSAGE_SIZE]; /* what was said of a schedule last; the thread's */
    struct pawl__thread thread;
};

static void sweep(pawl_work *store, pawl_error *error)
{
    pawl_sweep_report report = { 0 };

    if (pawl_work_sweep(store, &report, error) == PAWL_OK && report.expired > 0) {
        LOG_INFO("leases ran out and were taken back",
                 LOG_NATURAL("expired", report.expired),
                 LOG_NATURAL("retried", report.retried),
                 LOG_NATURAL("failed", report.failed));
    }
}

/* A schedule that cannot fire is nothing that the store could help; the others did. Said once, until
 * something else is to be said. */
static void fire(struct node_maintenance *care, pawl_work *store, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t fired = 0;
    pawl_status status = pawl_schedule_fire(store, &fired, &error);

    if (status != PAWL_OK && pawl__http_problem_of_error(&error)->http >= 500) {
        *reterr = error;
        return;
    }
    if (status != PAWL_OK && strcmp(error.message, care->unfired) != 0) {
        LOG_WARNING("a schedule cannot fire", LOG_TEXT("error", error.message));
    }
    (void)snprintf(
        care->unfired, sizeof(care->unfired), "%s", status == PAWL_OK ? "" : error.message);
    if (fired > 0) {
        LOG_DEBUG("schedules fired", LOG_NATURAL("count", fired));
    }
}

/* Takes as long as the store does. */
static void look_after(struct node_maintenance *care, bool sweeps)
{
    struct node_work *work = care->work;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;

    if (pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, &error) == PAWL_OK) {
        if (sweeps) {
            sweep(store, &error);
        }
        if (error.status == PAWL_OK) {
            fire(care, store, &error);
        }
    }
    pawl__serve_work_log_outcome(work, &error);
}

/* Slots of schedules begin with minutes of the wall clock. */
static int64_t until_next_minute_ns(void)
{
    return MINUTE_NS - pawl__wall_us(pawl__clock_real()) % (60 * US_PER_S) * NS_PER_US;
}

static void run(void *context)
{
    struct node_maintenance *care = context;
    int64_t sweep_at_ns = 0;

    pawl__lock(&care->lock);
    while (!care->stop) {
        bool sweeps = pawl__monotonic_ns(pawl__clock_real()) >= sweep_at_ns;

        pawl__unlock(&care->lock);
        look_after(care, sweeps);
        int64_t now_ns = pawl__monotonic_ns(pawl__clock_real());
        sweep_at_ns = sweeps ? now_ns + care->sweep_ns : sweep_at_ns;
        if (pawl__serve_work_health(care->work) != PAWL_OK) {
            sweep_at_ns = MIN(sweep_at_ns, now_ns + AGAIN_NS);
        }
        int64_t next_ns = MIN(sweep_at_ns, now_ns + until_next_minute_ns());
        pawl__lock(&care->lock);
        if (!care->stop) {
            (void)pawl__cond_wait_until(&care->changed, &care->lock, next_ns);
        }
    }
    pawl__unlock(&care->lock);
}

static pawl_status start(struct node_maintenance *care, pawl_error *reterr)
{
    TRY(pawl__lock_init(&care->lock, reterr));
    pawl_status status = pawl__cond_init(&care->changed, reterr);
    if (status != PAWL_OK) {
        pawl__lock_done(&care->lock);
        return status;
    }
    status = pawl__thread_start(&care->thread, "pawl-work-care", run, care, reterr);
    if (status != PAWL_OK) {
        pawl__cond_done(&care->changed);
        pawl__lock_done(&care->lock);
    }
    return status;
}

pawl_status pawl__serve_maintenance_start(struct node_work *work,
                                          uint32_t sweep_ms,
                                          struct node_maintenance **ret_care,
                                          pawl_error *reterr)
{
    struct node_maintenance *care = calloc(1, sizeof(*care));

    if (care == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a thread");
    }
    care->work = work;
    care->sweep_ns = sweep_ms * NS_PER_MS;
    pawl_status status = start(care, reterr);
    if (status != PAWL_OK) {
        free(care);
        return status;
    }
    *ret_care = care;
    return PAWL_OK;
}

pawl_status pawl__serve_maintenance_stop(struct node_maintenance *care,
                                         int64_t deadline_ns,
                                         pawl_error *reterr)
{
    if (care == NULL) {
        return PAWL_OK;
    }
    const struct pawl__stop stop = { "the care of the work store", &care->thread };

    pawl__lock(&care->lock);
    care->stop = true;
    pawl__cond_broadcast(&care->changed);
    pawl__unlock(&care->lock);
    return pawl__stop_threads(NULL, &stop, 1, deadline_ns, reterr);
}

void pawl__serve_maintenance_free(struct node_maintenance *care)
{
    if (care != NULL) {
        pawl__cond_done(&care->changed);
        pawl__lock_done(&care->lock);
        free(care);
    }
}
