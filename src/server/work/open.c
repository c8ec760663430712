/* The work store of the node: opening, health, metrics, closing. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "server/probe.h"
#include "server/work/work.h"

enum {
    OPENING_MS_MAX = 5000,    /* how long others wait for the request that opens it */
    COUNTING_MS_MAX = 2000,   /* and for the one that reads its metrics */
    STOP_MS_MAX = 3000,       /* for calls under way to return when the node stops */
    INTERRUPTED_MS_MAX = 5000 /* and after the store was interrupted, which takes about 2 s */
};

struct node_work {
    struct pawl__lock lock; /* covers opening, counting, stopping and health */
    struct pawl__cond changed;
    bool ready;                 /* lock and condition */
    _Atomic(pawl_work *) store; /* NULL: not open; set once. Any thread may use it */
    bool opening;
    bool counting; /* a request reads its metrics */
    bool stopping;
    pawl_status health; /* of the latest use */
    char *location;     /* NULL: this node has no work store */
    pawl_work_options options;
    uint32_t wait_ms_max;
    struct node_maintenance *maintenance; /* NULL: off */
    struct node_changes *changes;
    struct node_probe *probe;
    struct pawl__series *up;
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs */
};

static const struct pawl__metric_def up_def = {
    .name = "pawl_work_up",
    .help = "1 when there is a work store and it could be read.",
    .type = PAWL__GAUGE,
};

/* --- starting and stopping --- */

static pawl_status health_of(const pawl_error *error)
{
    return error->status == PAWL_NOT_FOUND ? PAWL_OK : error->status;
}

static void set_health(struct node_work *work, const pawl_error *error)
{
    pawl_status health = health_of(error);

    pawl__lock(&work->lock);
    bool new = health != PAWL_OK && work->health == PAWL_OK;
    work->health = health;
    pawl__unlock(&work->lock);
    if (new) {
        LOG_WARNING(health == PAWL_IO ? "the work store cannot be used; if its file was moved or "
                                        "replaced, not until the node is started again"
                                      : "the work store cannot be used",
                    LOG_TEXT("error", error->message));
    }
}

/* A heartbeat of a lease that cannot exist: it changes nothing, but needs the write lock as every write does, so
 * it fails on a locked or replaced file. */
static pawl_status try_to_write(pawl_work *store, pawl_error *reterr)
{
    const pawl_lease nobodys = { sizeof(pawl_lease), pawl_view_of("pawl-probe"), INT64_MAX };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_work_heartbeat(store, &nobodys, 0, NULL, &error);

    return status == PAWL_NOT_FOUND || status == PAWL_LEASE_LOST
               ? PAWL_OK
               : pawl__fail_with(reterr, status, &error);
}

/* Reads one item that does not exist, then tries to write. The outcome is the store's health; the probe itself
 * only reports that the store does not answer. */
static pawl_status ask(void *context, pawl_error *reterr)
{
    struct node_work *work = context;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;
    pawl_item *item = NULL;

    (void)reterr;
    if (pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, &error) == PAWL_OK) {
        error.status = pawl_work_get(store, pawl_view_of("pawl-probe"), &item, &error);
        pawl_item_free(item);
        if (error.status == PAWL_OK || error.status == PAWL_NOT_FOUND) {
            error = (pawl_error)PAWL_ERROR_INIT;
            error.status = try_to_write(store, &error);
        }
    }
    set_health(work, &error);
    return PAWL_OK;
}

static pawl_status init(struct node_work *work,
                        const struct pawl__serve_options *options,
                        struct pawl__metrics *metrics,
                        pawl_error *reterr)
{
    struct pawl__metric *up = NULL;
    uint32_t answer_ms = options->http.answer_ms_max;

    work->options = options->work_options;
    work->clock = pawl__clock_or_real(options->http.clock);
    work->wait_ms_max = answer_ms - MIN(answer_ms / 4, 1000);
    pawl__lock_cond_init(&work->lock, &work->changed);
    work->ready = true;
    TRY(pawl__metrics_register(metrics, &up_def, &up, reterr));
    TRY(pawl__metric_series(up, NULL, &work->up, reterr));
    TRY(pawl__serve_changes_new(work, work->clock, &work->changes, reterr));
    if (options->work == NULL) {
        return PAWL_OK;
    }
    work->location = strdup(options->work);
    if (work->location == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a path");
    }
    TRY(pawl__serve_probe_start("work", work->clock, ask, work, &work->probe, reterr));
    return options->work_sweep_ms > 0 ? pawl__serve_maintenance_start(
               work, work->clock, options->work_sweep_ms, &work->maintenance, reterr)
                                      : PAWL_OK;
}

pawl_status pawl__serve_work_new(const struct pawl__serve_options *options,
                                 struct pawl__metrics *metrics,
                                 struct node_work **ret_work,
                                 pawl_error *reterr)
{
    struct node_work *work = calloc(1, sizeof(*work));

    if (work == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a work store");
    }
    pawl_status status = init(work, options, metrics, reterr);
    if (status != PAWL_OK) {
        (void)!pawl__serve_work_close(work, NULL);
        return status;
    }
    *ret_work = work;
    return PAWL_OK;
}

void pawl__serve_work_cancel_waits(struct node_work *work)
{
    if (work == NULL) {
        return;
    }
    pawl__lock(&work->lock);
    work->stopping = true; /* first: claims that are refused from here on learn why */
    pawl_work *store = atomic_load(&work->store);
    pawl__unlock(&work->lock);
    pawl__serve_probe_cancel(work->probe);
    if (store != NULL) {
        pawl_work_cancel_waits(store);
    }
}

void pawl__serve_work_interrupt(struct node_work *work)
{
    if (work != NULL) {
        pawl_work_interrupt(atomic_load(&work->store));
    }
}

/* Waits for all threads that use the store. */
static pawl_status stop_threads(struct node_work *work, int64_t wait_ms, pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(work->clock) + wait_ms * NS_PER_MS;

    TRY(pawl__serve_changes_stop(work->changes, deadline_ns, reterr));
    TRY(pawl__serve_maintenance_stop(work->maintenance, deadline_ns, reterr));
    return pawl__serve_probe_stop(work->probe, deadline_ns, reterr);
}

pawl_status pawl__serve_work_close(struct node_work *work, pawl_error *reterr)
{
    if (work == NULL) {
        return PAWL_OK;
    }
    pawl_work *store = atomic_load(&work->store);
    pawl_status status = stop_threads(work, STOP_MS_MAX, NULL);
    if (status != PAWL_OK) {
        pawl_work_interrupt(store);
        status = stop_threads(work, INTERRUPTED_MS_MAX, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    pawl__serve_changes_free(work->changes);
    pawl__serve_maintenance_free(work->maintenance);
    pawl__serve_probe_free(work->probe);
    pawl_work_close(store, 0, NULL);
    if (work->ready) {
        pawl__lock_cond_done(&work->lock, &work->changed);
    }
    free(work->location);
    free(work);
    return PAWL_OK;
}

/* --- finding it --- */

pawl_work *pawl__serve_work_open_one(struct node_work *work)
{
    return atomic_load(&work->store);
}

struct node_changes *pawl__serve_work_changes_of(struct node_work *work)
{
    return work->changes;
}

uint32_t pawl__serve_work_wait_ms_max(const struct node_work *work)
{
    return work->wait_ms_max;
}

/* Waits until `busy` is false. False: it is still true after `ms_max`. */
static bool await_locked(struct node_work *work, const bool *busy, int64_t ms_max)
    REQUIRES_LOCK(work->lock)
{
    int64_t deadline_ns = pawl__monotonic_ns(work->clock) + ms_max * NS_PER_MS;
    bool in_time = true;

    while (*busy && in_time) {
        in_time = pawl__cond_wait_until(&work->changed, &work->lock, deadline_ns);
    }
    return !*busy;
}

/* One request opens it, the others wait. True: the caller must open it. */
static bool may_open(struct node_work *work)
{
    pawl__lock(&work->lock);
    bool mine =
        await_locked(work, &work->opening, OPENING_MS_MAX) && atomic_load(&work->store) == NULL;
    work->opening = work->opening || mine;
    pawl__unlock(&work->lock);
    return mine;
}

static void set_opened(struct node_work *work, pawl_work *store)
{
    pawl__lock(&work->lock);
    if (store != NULL) {
        atomic_store(&work->store, store);
        if (work->stopping) {
            pawl_work_cancel_waits(store);
        }
    }
    work->opening = false;
    pawl__cond_broadcast(&work->changed);
    pawl__unlock(&work->lock);
}

/* Clients do not learn where the store is, and a broken store is not their fault. */
static pawl_status explain(enum node_work_access access, pawl_error *error, pawl_error *reterr)
{
    if (error->status == PAWL_NOT_FOUND && access == NODE_WORK_THAT_EXISTS) {
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "there is no work store yet: nothing was submitted");
    }
    if (pawl__http_problem_of(error->status)->http < 500) {
        error->status = PAWL_FAILED;
    }
    pawl_status status = pawl__fail_context(error, error->status, "open the work store");
    if (reterr != NULL) {
        *reterr = *error;
    }
    return status;
}

pawl_status pawl__serve_work_find(struct node_work *work,
                                  enum node_work_access access,
                                  pawl_work **ret_store,
                                  pawl_error *reterr)
{
    pawl_work_options options = work->options;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = atomic_load(&work->store);
    pawl_status status = PAWL_OK;

    if (store == NULL && work->location == NULL) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "this node has no work store: it serves a directory of applications");
    }
    if (store == NULL && may_open(work)) {
        options.must_exist = access == NODE_WORK_THAT_EXISTS;
        status = pawl_work_open(work->location, &options, &store, &error);
        set_opened(work, status == PAWL_OK ? store : NULL);
        set_health(work, &error);
    } else if (store == NULL) {
        store = atomic_load(&work->store);
        status = store != NULL ? PAWL_OK
                               : pawl__fail(&error, PAWL_BUSY, "the work store is being opened");
    }
    if (status != PAWL_OK) {
        return explain(access, &error, reterr);
    }
    *ret_store = store;
    return PAWL_OK;
}

/* --- health --- */

void pawl__serve_work_log_outcome(struct node_work *work, const pawl_error *error)
{
    if (health_of(error) != PAWL_OK) {
        set_health(work, error);
    }
}

pawl_status pawl__serve_work_health(struct node_work *work)
{
    pawl__lock(&work->lock);
    pawl_status health = work->health;
    pawl__unlock(&work->lock);
    return health == PAWL_OK ? pawl__serve_probe_status(work->probe) : health;
}

/* --- metrics --- */

/* One at a time: a store that hangs blocks one request, and the next ones leave its metrics out. */
static bool begin_counting(struct node_work *work)
{
    pawl__lock(&work->lock);
    bool mine = await_locked(work, &work->counting, COUNTING_MS_MAX);
    work->counting = true;
    pawl__unlock(&work->lock);
    return mine;
}

static void end_counting(struct node_work *work)
{
    pawl__lock(&work->lock);
    work->counting = false;
    pawl__cond_broadcast(&work->changed);
    pawl__unlock(&work->lock);
}

char *pawl__serve_work_metrics(struct node_work *work)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;
    char *text = NULL;
    size_t len = 0;

    if (!begin_counting(work)) {
        pawl__gauge_set(work->up, 0);
        return NULL;
    }
    if (pawl__serve_work_find(work, NODE_WORK_THAT_EXISTS, &store, &error) == PAWL_OK) {
        (void)!pawl_work_get_metrics(store, &text, &len, &error);
    }
    end_counting(work);
    pawl__gauge_set(work->up, text != NULL ? 1 : 0);
    pawl__serve_work_log_outcome(work, &error);
    return text;
}
