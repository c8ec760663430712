/* The maintenance thread of the node's work store: takes back expired leases and fires schedules. Any number of
 * nodes and runs may do so at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "server/periodic.h"
#include "server/work/work.h"

#define MINUTE_NS (60 * NS_PER_S)
#define AGAIN_NS (2 * NS_PER_S) /* until a failed store is tried again: /readyz waits for it */

struct node_maintenance {
    struct node_periodic periodic;
    struct node_work *work;
    struct pawl__clock *clock;
    int64_t sweep_ns;
    int64_t sweep_at_ns;
    char unfired[PAWL_ERROR_MESSAGE_SIZE]; /* the last logged failure of a schedule; the thread's */
};

static void sweep(pawl_work *store, pawl_error *error)
{
    pawl_sweep_report report = { .size = sizeof(pawl_sweep_report) };

    if (pawl_work_sweep(store, &report, error) == PAWL_OK && report.expired > 0) {
        LOG_INFO("leases ran out and were taken back",
                 LOG_NATURAL("expired", report.expired),
                 LOG_NATURAL("retried", report.retried),
                 LOG_NATURAL("failed", report.failed));
    }
}

/* A schedule that cannot fire is no failure of the store, and the other schedules fired. Logged once, until the
 * message changes. */
static void fire(struct node_maintenance *maintenance, pawl_work *store, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t fired = 0;
    pawl_status status = pawl_schedule_fire(store, &fired, &error);

    if (status != PAWL_OK && pawl__http_problem_of_error(&error)->http >= 500) {
        *reterr = error;
        return;
    }
    if (status != PAWL_OK && strcmp(error.message, maintenance->unfired) != 0) {
        LOG_WARNING("a schedule cannot fire", LOG_TEXT("error", error.message));
    }
    (void)snprintf(maintenance->unfired,
                   sizeof(maintenance->unfired),
                   "%s",
                   status == PAWL_OK ? "" : error.message);
    if (fired > 0) {
        LOG_DEBUG("schedules fired", LOG_NATURAL("count", fired));
    }
}

/* May take as long as the store does. */
static void maintain(struct node_maintenance *maintenance, bool sweeps)
{
    struct node_work *work = maintenance->work;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;

    if (pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, &error) == PAWL_OK) {
        if (sweeps) {
            sweep(store, &error);
        }
        if (error.status == PAWL_OK) {
            fire(maintenance, store, &error);
        }
    }
    pawl__serve_work_log_outcome(work, &error);
}

/* Slots of schedules begin with minutes of the wall clock. */
static int64_t until_next_minute_ns(struct pawl__clock *clock)
{
    return MINUTE_NS - pawl__wall_us(clock) % (60 * US_PER_S) * NS_PER_US;
}

static int64_t run(void *context)
{
    struct node_maintenance *maintenance = context;
    bool sweeps = pawl__monotonic_ns(maintenance->clock) >= maintenance->sweep_at_ns;

    maintain(maintenance, sweeps);
    int64_t now_ns = pawl__monotonic_ns(maintenance->clock);
    if (sweeps) {
        maintenance->sweep_at_ns = now_ns + maintenance->sweep_ns;
    }
    if (pawl__serve_work_health(maintenance->work) != PAWL_OK) {
        maintenance->sweep_at_ns = MIN(maintenance->sweep_at_ns, now_ns + AGAIN_NS);
    }
    return MIN(maintenance->sweep_at_ns, now_ns + until_next_minute_ns(maintenance->clock));
}

pawl_status pawl__serve_maintenance_start(struct node_work *work,
                                          struct pawl__clock *clock,
                                          uint32_t sweep_ms,
                                          struct node_maintenance **ret_maintenance,
                                          pawl_error *reterr)
{
    AUTO(pawl__serve_maintenance_free_p)
    struct node_maintenance *maintenance = calloc(1, sizeof(*maintenance));

    if (maintenance == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a thread");
    }
    maintenance->periodic = (struct node_periodic){ .name = "the maintenance of the work store",
                                                    .run = run,
                                                    .context = maintenance };
    maintenance->work = work;
    maintenance->clock = clock;
    maintenance->sweep_ns = sweep_ms * NS_PER_MS;
    TRY(pawl__serve_periodic_start(&maintenance->periodic, "pawl-work-maintenance", reterr));
    *ret_maintenance = STEAL(maintenance);
    return PAWL_OK;
}

pawl_status pawl__serve_maintenance_stop(struct node_maintenance *maintenance,
                                         int64_t deadline_ns,
                                         pawl_error *reterr)
{
    return maintenance == NULL
               ? PAWL_OK
               : pawl__serve_periodic_stop(&maintenance->periodic, deadline_ns, reterr);
}

void pawl__serve_maintenance_free(struct node_maintenance *maintenance)
{
    if (maintenance != NULL) {
        pawl__serve_periodic_done(&maintenance->periodic);
        free(maintenance);
    }
}
