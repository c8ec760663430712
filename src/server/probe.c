/* Asks a store now and then whether it answers, so that /readyz knows without being held up by one that
 * does not. Each store has a thread of its own for that: one that hangs holds up no other. */
#include "server/probe.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/thread/shutdown.h"
#include "base/thread/thread.h"

enum {
    PERIOD_MS = 1000,
    ANSWER_MS_MAX = 3000, /* and /readyz is wrong for the sum of both at the longest, ... */
    WRONG_MS_MAX = 5000   /* ... which is promised not to be longer than this */
};

_Static_assert(PERIOD_MS + ANSWER_MS_MAX <= WRONG_MS_MAX, "/readyz notices in time");

struct node_probe {
    struct pawl__lock lock; /* covers stop, asked_ns and last */
    struct pawl__cond changed;
    bool stop;
    int64_t asked_ns; /* INT64_MAX: it is not being asked */
    pawl_status last;
    const char *name;
    pawl_status (*ask)(void *context, pawl_error *reterr);
    void *context;
    struct pawl__thread thread;

    /* What others ask for. */
    atomic_size_t under_way;
    atomic_int_least64_t moved_ns; /* when the first of them began, or the newest ended */
};

static int64_t now_ns(void)
{
    return pawl__monotonic_ns(pawl__clock_real());
}

static void log_change(const struct node_probe *probe, pawl_status before, const pawl_error *error)
{
    if (before == PAWL_OK && error->status != PAWL_OK) {
        LOG_WARNING("a store does not answer: the node is not ready",
                    LOG_TEXT("store", probe->name),
                    LOG_TEXT("error", error->message));
    } else if (before != PAWL_OK && error->status == PAWL_OK) {
        LOG_INFO("a store answers again", LOG_TEXT("store", probe->name));
    }
}

static void run(void *context)
{
    struct node_probe *probe = context;

    pawl__lock(&probe->lock);
    while (!probe->stop) {
        pawl_error error = PAWL_ERROR_INIT;

        probe->asked_ns = now_ns();
        pawl__unlock(&probe->lock);
        error.status = probe->ask(probe->context, &error);
        pawl__lock(&probe->lock);
        log_change(probe, probe->last, &error);
        probe->last = error.status;
        probe->asked_ns = INT64_MAX;
        int64_t next_ns = now_ns() + PERIOD_MS * NS_PER_MS;
        while (!probe->stop && pawl__cond_wait_until(&probe->changed, &probe->lock, next_ns)) {
        }
    }
    pawl__unlock(&probe->lock);
}

static pawl_status start(struct node_probe *probe, pawl_error *reterr)
{
    pawl__lock_cond_init(&probe->lock, &probe->changed);
    pawl_status status = pawl__thread_start(&probe->thread, "pawl-probe", run, probe, reterr);
    if (status != PAWL_OK) {
        pawl__lock_cond_done(&probe->lock, &probe->changed);
    }
    return status;
}

pawl_status pawl__serve_probe_start(const char *name,
                                    pawl_status (*ask)(void *context, pawl_error *reterr),
                                    void *context,
                                    struct node_probe **ret_probe,
                                    pawl_error *reterr)
{
    struct node_probe *probe = calloc(1, sizeof(*probe));

    if (probe == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a probe");
    }
    probe->name = name;
    probe->ask = ask;
    probe->context = context;
    probe->asked_ns = INT64_MAX;
    pawl_status status = start(probe, reterr);
    if (status != PAWL_OK) {
        free(probe);
        return status;
    }
    *ret_probe = probe;
    return PAWL_OK;
}

pawl_status pawl__serve_probe_status(struct node_probe *probe)
{
    if (probe == NULL) {
        return PAWL_OK;
    }
    int64_t late_ns = now_ns() - ANSWER_MS_MAX * NS_PER_MS;
    bool stuck = atomic_load(&probe->under_way) > 0 && atomic_load(&probe->moved_ns) < late_ns;
    pawl__lock(&probe->lock);
    pawl_status status = stuck || probe->asked_ns < late_ns ? PAWL_TIMEOUT : probe->last;
    pawl__unlock(&probe->lock);
    return status;
}

void pawl__serve_probe_begins(struct node_probe *probe)
{
    if (atomic_load(&probe->under_way) == 0) { /* before it counts */
        atomic_store(&probe->moved_ns, now_ns());
    }
    atomic_fetch_add(&probe->under_way, 1);
}

void pawl__serve_probe_ends(struct node_probe *probe)
{
    atomic_store(&probe->moved_ns, now_ns());
    atomic_fetch_sub(&probe->under_way, 1);
}

void pawl__serve_probe_cancel(struct node_probe *probe)
{
    if (probe != NULL) {
        pawl__lock(&probe->lock);
        probe->stop = true;
        pawl__cond_broadcast(&probe->changed);
        pawl__unlock(&probe->lock);
    }
}

pawl_status pawl__serve_probe_stop(struct node_probe *probe,
                                   int64_t deadline_ns,
                                   pawl_error *reterr)
{
    if (probe == NULL) {
        return PAWL_OK;
    }
    const struct pawl__stop stop = { probe->name, &probe->thread };

    pawl__serve_probe_cancel(probe);
    return pawl__stop_threads(NULL, &stop, 1, deadline_ns, reterr);
}

void pawl__serve_probe_free(struct node_probe *probe)
{
    if (probe != NULL) {
        pawl__cond_done(&probe->changed);
        pawl__lock_done(&probe->lock);
        free(probe);
    }
}
