/* Asks a store now and then whether it answers, so that /readyz knows without waiting for one that does not. Each
 * store has a thread of its own for that: one that hangs delays no other. */
#include "server/probe.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "server/periodic.h"

enum {
    PERIOD_MS = 1000,
    ANSWER_MS_MAX = 3000, /* and /readyz is wrong for the sum of both at the longest, ... */
    WRONG_MS_MAX = 5000   /* ... which is promised not to be longer than this */
};

_Static_assert(PERIOD_MS + ANSWER_MS_MAX <= WRONG_MS_MAX, "/readyz notices in time");

struct node_probe {
    struct node_periodic periodic;
    struct pawl__clock *clock;
    node_probe_ask *ask;
    void *context;
    atomic_int_least64_t asked_ns; /* INT64_MAX: it is not being asked */
    _Atomic(pawl_status) last;

    /* What others ask for. */
    atomic_size_t under_way;
    atomic_int_least64_t moved_ns; /* when the first of them began, or the newest ended */
};

static void log_change(const struct node_probe *probe, pawl_status before, const pawl_error *error)
{
    if (before == PAWL_OK && error->status != PAWL_OK) {
        LOG_WARNING("a store does not answer: the node is not ready",
                    LOG_TEXT("store", probe->periodic.name),
                    LOG_TEXT("error", error->message));
    } else if (before != PAWL_OK && error->status == PAWL_OK) {
        LOG_INFO("a store answers again", LOG_TEXT("store", probe->periodic.name));
    }
}

static int64_t ask(void *context)
{
    struct node_probe *probe = context;
    pawl_error error = PAWL_ERROR_INIT;

    atomic_store(&probe->asked_ns, pawl__monotonic_ns(probe->clock));
    error.status = probe->ask(probe->context, &error);
    log_change(probe, atomic_load(&probe->last), &error);
    atomic_store(&probe->last, error.status);
    atomic_store(&probe->asked_ns, INT64_MAX); /* after the answer is there */
    return pawl__monotonic_ns(probe->clock) + PERIOD_MS * NS_PER_MS;
}

pawl_status pawl__serve_probe_start(const char *name,
                                    struct pawl__clock *clock,
                                    node_probe_ask *asks,
                                    void *context,
                                    struct node_probe **ret_probe,
                                    pawl_error *reterr)
{
    AUTO(pawl__serve_probe_free_p) struct node_probe *probe = calloc(1, sizeof(*probe));

    if (probe == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a probe");
    }
    probe->periodic = (struct node_periodic){ .name = name, .run = ask, .context = probe };
    probe->clock = clock;
    probe->ask = asks;
    probe->context = context;
    atomic_store(&probe->asked_ns, INT64_MAX);
    TRY(pawl__serve_periodic_start(&probe->periodic, "pawl-probe", reterr));
    *ret_probe = STEAL(probe);
    return PAWL_OK;
}

pawl_status pawl__serve_probe_status(struct node_probe *probe)
{
    if (probe == NULL) {
        return PAWL_OK;
    }
    int64_t late_ns = pawl__monotonic_ns(probe->clock) - ANSWER_MS_MAX * NS_PER_MS;
    bool stuck = atomic_load(&probe->under_way) > 0 && atomic_load(&probe->moved_ns) < late_ns;

    return stuck || atomic_load(&probe->asked_ns) < late_ns ? PAWL_TIMEOUT
                                                            : atomic_load(&probe->last);
}

void pawl__serve_probe_begins(struct node_probe *probe)
{
    if (atomic_load(&probe->under_way) == 0) { /* before it counts */
        atomic_store(&probe->moved_ns, pawl__monotonic_ns(probe->clock));
    }
    atomic_fetch_add(&probe->under_way, 1);
}

void pawl__serve_probe_ends(struct node_probe *probe)
{
    atomic_store(&probe->moved_ns, pawl__monotonic_ns(probe->clock));
    atomic_fetch_sub(&probe->under_way, 1);
}

void pawl__serve_probe_cancel(struct node_probe *probe)
{
    if (probe != NULL) {
        pawl__serve_periodic_cancel(&probe->periodic);
    }
}

pawl_status pawl__serve_probe_stop(struct node_probe *probe,
                                   int64_t deadline_ns,
                                   pawl_error *reterr)
{
    return probe == NULL ? PAWL_OK
                         : pawl__serve_periodic_stop(&probe->periodic, deadline_ns, reterr);
}

void pawl__serve_probe_free(struct node_probe *probe)
{
    if (probe != NULL) {
        pawl__serve_periodic_done(&probe->periodic);
        free(probe);
    }
}
