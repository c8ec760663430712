/* The applications of the node: which there are, opening them on threads of their own.
 *
 * The node listens before they are open. An application that cannot be opened is listed with the reason and stops none
 * of the others. One that another process has, or whose store is away, is retried until it opens. A damaged one is not:
 * its repair needs it closed, and then the node is started again. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/shutdown.h"
#include "server/apps/apps.h"

enum {
    OPENERS = 4,
    RETRY_MS = 1000,
    UNUSED_MS_MAX = 30000, /* for those who use an application to end */
    LOOK_MS = 50           /* between two looks at whether it was cancelled */
};

/* One of them: what clients see of it, and when it is opened next. */
struct node_app {
    struct node_apps *all;
    char name[PAWL_APP_NAME_BYTES_MAX + 1]; /* that of its directory */
    pawl_app *app;                          /* NULL: it is not open */
    bool opening;                           /* somebody does that now */
    bool given_up;                          /* it is not tried again */
    pawl_status why;                        /* of the last attempt; PAWL_OK: there was none */
    int64_t retry_ns;                       /* when to try, unless it is given up */
    struct node_probe *probe;
    unsigned uses;         /* by whoever has a state of it */
    struct node_app *next; /* of those that were removed while somebody had one */
};

struct node_apps {
    struct pawl__lock lock; /* covers the rest but the threads */
    struct pawl__cond changed;
    struct apps_part *part;
    struct node_app **apps; /* in the order in which they were found or created */
    size_t count;
    /* Handles of applications that another process has taken over. Somebody may still be in a call of one,
     * so they are closed when the node ends. */
    struct node_app_state *lost;
    size_t lost_count;
    size_t lost_room;
    struct node_app *removed;
    bool stop;
    struct pawl__thread openers[OPENERS];
};

static int64_t now_ns(const struct node_apps *apps)
{
    return pawl__monotonic_ns(apps->part->clock);
}

/* --- finding --- */

static struct node_app *find_locked(struct node_apps *apps, pawl_view name)
    REQUIRES_LOCK(apps->lock)
{
    for (size_t i = 0; i < apps->count; i++) {
        if (pawl__view_is(name, apps->apps[i]->name)) {
            return apps->apps[i];
        }
    }
    return NULL;
}

/* Whether it is on its way, so that somebody who waits a moment finds it. */
static bool is_pending(const struct node_app *app)
{
    return app->app == NULL && app->why == PAWL_OK;
}

static struct node_app_state state_of(const struct node_app *app)
{
    struct node_app_state state = {
        .app = app->app,
        .why = app->why,
        .opening = is_pending(app),
        .probe = app->probe,
    };

    memcpy(state.name, app->name, sizeof(state.name));
    return state;
}

/* One that is open stays so until it is released. With the lock of the applications. */
static struct node_app_state hold(struct node_app *app)
{
    struct node_app_state state = state_of(app);

    if (app->app != NULL) {
        app->uses++;
        state.held = app;
    }
    return state;
}

void pawl__serve_app_release(struct node_app *held)
{
    if (held != NULL) {
        pawl__lock(&held->all->lock);
        REQUIRE(held->uses > 0);
        if (--held->uses == 0) {
            pawl__cond_broadcast(&held->all->changed);
        }
        pawl__unlock(&held->all->lock);
    }
}

bool pawl__serve_app_find(struct apps_part *part, pawl_view name, struct node_app_state *ret_state)
{
    struct node_apps *apps = part->apps;

    pawl__lock(&apps->lock);
    struct node_app *found = find_locked(apps, name);
    if (found != NULL) {
        *ret_state = hold(found);
    }
    pawl__unlock(&apps->lock);
    return found != NULL;
}

struct node_app_state *pawl__serve_app_states(struct apps_part *part,
                                              bool to_close,
                                              size_t *ret_count)
{
    struct node_apps *apps = part->apps;
    size_t count = 0;

    pawl__lock(&apps->lock);
    struct node_app_state *states = calloc(apps->count + apps->lost_count + 1, sizeof(*states));
    for (size_t i = 0; states != NULL && i < apps->count; i++) {
        if (!to_close || apps->apps[i]->app != NULL) {
            states[count++] = hold(apps->apps[i]);
        }
    }
    for (size_t i = 0; states != NULL && to_close && i < apps->lost_count; i++) {
        states[count++] = apps->lost[i];
    }
    pawl__unlock(&apps->lock);
    *ret_count = count;
    return states;
}

void pawl__serve_app_states_free(struct node_app_state *states, size_t count)
{
    for (size_t i = 0; states != NULL && i < count; i++) {
        pawl__serve_app_release(states[i].held);
    }
    free(states);
}

size_t pawl__serve_apps_count(struct apps_part *part)
{
    pawl__lock(&part->apps->lock);
    size_t count = part->apps->count;
    pawl__unlock(&part->apps->lock);
    return count;
}

size_t pawl__serve_apps_open_count(struct apps_part *part)
{
    struct node_apps *apps = part->apps;
    size_t count = 0;

    pawl__lock(&apps->lock);
    for (size_t i = 0; i < apps->count; i++) {
        count += apps->apps[i]->app != NULL;
    }
    pawl__unlock(&apps->lock);
    return count;
}

/* --- room --- */

static pawl_status check_room_locked(struct node_apps *apps,
                                     unsigned partitions,
                                     pawl_status refusal,
                                     pawl_error *reterr) REQUIRES_LOCK(apps->lock)
{
    uint32_t most = apps->part->options->partitions_max;
    unsigned there = 0;

    for (size_t i = 0; i < apps->count; i++) {
        const pawl_app *app = apps->apps[i]->app;

        there += app == NULL ? 0 : pawl_app_get_descriptor(app)->partitions;
    }
    return there + partitions <= most
               ? PAWL_OK
               : pawl__fail(reterr,
                            refusal,
                            "a node has %u partitions at the most (server.partitions_max): with "
                            "the %u of this application there would be %u",
                            most,
                            partitions,
                            there + partitions);
}

pawl_status pawl__serve_apps_check_room(struct apps_part *part,
                                        unsigned partitions,
                                        pawl_error *reterr)
{
    struct node_apps *apps = part->apps;

    pawl__lock(&apps->lock);
    pawl_status status =
        apps->count < NODE_APPS_MAX
            ? check_room_locked(apps, partitions, PAWL_CONFLICT, reterr)
            : pawl__fail(
                reterr, PAWL_CONFLICT, "a node has %d applications at the most", NODE_APPS_MAX);
    pawl__unlock(&apps->lock);
    return status;
}

/* --- adding --- */

static pawl_status add_locked(struct node_apps *apps,
                              const char *name,
                              struct node_app **ret_app,
                              pawl_error *reterr) REQUIRES_LOCK(apps->lock)
{
    struct node_app *app = calloc(1, sizeof(*app));

    if (app == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an application");
    }
    if (apps->count >= NODE_APPS_MAX || strlen(name) >= sizeof(app->name)) {
        free(app);
        return pawl__fail(
            reterr, PAWL_INVALID, "a node has %d applications at the most", NODE_APPS_MAX);
    }
    memcpy(app->name, name, strlen(name) + 1);
    app->all = apps;
    apps->apps[apps->count++] = app;
    *ret_app = app;
    return PAWL_OK;
}

static void remove_locked(struct node_apps *apps, struct node_app *app) REQUIRES_LOCK(apps->lock)
{
    size_t at = 0;

    while (apps->apps[at] != app) {
        at++;
    }
    apps->count--;
    memmove(&apps->apps[at], &apps->apps[at + 1], (apps->count - at) * sizeof(apps->apps[0]));
    if (app->uses == 0) {
        free(app);
    } else { /* a handle that was lost is still in a call */
        app->next = apps->removed;
        apps->removed = app;
    }
}

static bool ignore_record(void *context, const pawl_app_record *record)
{
    (void)context;
    (void)record;
    return true;
}

/* False: no memory. */
static bool remember_lost_locked(struct node_apps *apps, const struct node_app *app)
    REQUIRES_LOCK(apps->lock)
{
    struct node_app_state *lost =
        pawl__grow(apps->lost, apps->lost_count, &apps->lost_room, sizeof(*lost));

    if (lost == NULL) {
        return false;
    }
    apps->lost = lost;
    apps->lost[apps->lost_count++] = state_of(app);
    return true;
}

/* Another process has it now, and the handle is good for nothing: it is opened again when that process gives
 * it back. Without memory for that the probe, which continues, comes here again. */
static void mark_lost(struct node_app *app, pawl_app *lost)
{
    struct node_apps *apps = app->all;

    pawl__lock(&apps->lock);
    if (app->app == lost && remember_lost_locked(apps, app)) {
        pawl__serve_probe_cancel(app->probe);
        app->app = NULL;
        app->probe = NULL;
        app->why = PAWL_LEASE_LOST;
        app->retry_ns = now_ns(apps) + RETRY_MS * NS_PER_MS;
        pawl__cond_broadcast(&apps->changed);
        LOG_WARNING("another process has taken the application over; it is opened again when it is "
                    "free",
                    LOG_TEXT("app", app->name));
    }
    pawl__unlock(&apps->lock);
}

/* Reads one record that is probably not there. */
static pawl_status probe_app(void *context, pawl_error *reterr)
{
    struct node_app *app = context;
    struct node_apps *apps = app->all;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__lock(&apps->lock);
    pawl_app *opened = app->app;
    pawl__unlock(&apps->lock);
    if (opened == NULL) { /* it is not admitted yet */
        return PAWL_OK;
    }
    pawl_status status =
        pawl_app_read_record(opened, 1, PAWL_APP_SINGLETON_ID_MIN, ignore_record, NULL, &error);
    if (status == PAWL_LEASE_LOST) {
        mark_lost(app, opened);
    }
    if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
        *reterr = error;
        return status;
    }
    return PAWL_OK;
}

/* It is the node's from here on, or closed. */
static pawl_status admit(struct node_apps *apps,
                         struct node_app *app,
                         pawl_app *opened,
                         pawl_status refusal,
                         pawl_error *reterr)
{
    struct node_probe *probe = NULL;
    pawl_status status =
        pawl__serve_probe_start(app->name, apps->part->clock, probe_app, app, &probe, reterr);

    pawl__lock(&apps->lock);
    if (status == PAWL_OK) {
        status =
            check_room_locked(apps, pawl_app_get_descriptor(opened)->partitions, refusal, reterr);
    }
    if (status == PAWL_OK) {
        app->app = opened;
        app->probe = STEAL(probe);
    }
    pawl__unlock(&apps->lock);
    if (status != PAWL_OK) {
        (void)!pawl__serve_probe_stop(probe, INT64_MAX, NULL); /* a read, which ends */
        pawl__serve_probe_free(probe);
        pawl_app_close(opened, 0, NULL);
    }
    return status;
}

pawl_status pawl__serve_app_add(struct apps_part *part,
                                const char *name,
                                pawl_app *opened,
                                pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    struct node_app *app = NULL;

    pawl__lock(&apps->lock);
    pawl_status status = add_locked(apps, name, &app, reterr);
    if (status == PAWL_OK) {
        app->opening = true; /* nobody else touches it */
    }
    pawl__unlock(&apps->lock);
    if (status != PAWL_OK) {
        pawl_app_close(opened, 0, NULL);
        return status;
    }
    status = admit(apps, app, opened, PAWL_CONFLICT, reterr);
    pawl__lock(&apps->lock);
    app->opening = false;
    if (status != PAWL_OK) {
        remove_locked(apps, app);
    }
    pawl__unlock(&apps->lock);
    return status;
}

/* --- opening --- */

/* Our own word for it, not that a file or a database is missing. */
static bool is_no_application(const pawl_error *error)
{
    return error->status == PAWL_NOT_FOUND && error->native == 0 && error->sqlstate[0] == '\0';
}

/* Whether it may be better in a moment, without anybody who mends it. */
static bool may_pass(const pawl_error *error)
{
    switch (error->status) {
    case PAWL_LEASE_LOST:
    case PAWL_CANCELLED:
    case PAWL_NO_SPACE:
    case PAWL_NOMEM:
        return true;
    default:
        return error->retryable || pawl__status_may_pass(error->status);
    }
}

static pawl_status open_one(struct node_apps *apps, struct node_app *app, pawl_error *reterr)
{
    struct apps_part *part = apps->part;
    AUTO(pawl__text_free) char *location = NULL;
    pawl_app *opened = NULL;

    FAILPOINT("node.app.open.before", reterr);
    TRY(pawl_app_locate(part->location, app->name, &location, reterr));
    TRY(pawl_app_open(location, NULL, &part->options->app, &opened, reterr));
    return admit(apps, app, opened, PAWL_INVALID, reterr);
}

/* What is new is said once: one that is tried again and again says the same. */
static void log_change(const struct node_app *app, pawl_status before, const pawl_error *error)
{
    if (error->status == PAWL_OK && before != PAWL_OK) {
        LOG_INFO("the application is open now", LOG_TEXT("app", app->name));
    } else if (error->status == before) {
        return;
    } else if (app->given_up) {
        LOG_ERROR("an application cannot be opened and is not served; the others are. Mend it and "
                  "start the node again",
                  LOG_TEXT("app", app->name),
                  LOG_TEXT("status", pawl_status_name(error->status)),
                  LOG_TEXT("error", error->message));
    } else if (error->status != PAWL_OK) {
        LOG_WARNING("an application cannot be opened yet; it is tried again",
                    LOG_TEXT("app", app->name),
                    LOG_TEXT("status", pawl_status_name(error->status)),
                    LOG_TEXT("error", error->message));
    }
}

static void finish_attempt_locked(struct node_apps *apps,
                                  struct node_app *app,
                                  const pawl_error *error) REQUIRES_LOCK(apps->lock)
{
    pawl_status before = app->why;

    app->opening = false;
    pawl__cond_broadcast(&apps->changed);
    if (is_no_application(error)) { /* what an interrupted creation leaves */
        LOG_WARNING("there is no application in this directory", LOG_TEXT("name", app->name));
        remove_locked(apps, app);
        return;
    }
    app->why = error->status;
    app->given_up = error->status != PAWL_OK && !may_pass(error);
    app->retry_ns = now_ns(apps) + RETRY_MS * NS_PER_MS;
    log_change(app, before, error);
}

/* The next one to open; NULL: none is, before *ret_ns. */
static struct node_app *next_locked(struct node_apps *apps, int64_t *ret_ns)
    REQUIRES_LOCK(apps->lock)
{
    int64_t now = now_ns(apps);

    *ret_ns = INT64_MAX;
    for (size_t i = 0; i < apps->count; i++) {
        struct node_app *app = apps->apps[i];

        if (app->app != NULL || app->opening || app->given_up) {
            continue;
        }
        if (app->retry_ns <= now) {
            return app;
        }
        *ret_ns = MIN(*ret_ns, app->retry_ns);
    }
    return NULL;
}

/* --- with its numbers made anew --- */

/* False: it was cancelled, or somebody uses it for too long. */
static bool await_unused_locked(struct node_apps *apps,
                                const struct node_app *app,
                                struct pawl__cancel *cancel) REQUIRES_LOCK(apps->lock)
{
    int64_t deadline_ns = now_ns(apps) + UNUSED_MS_MAX * NS_PER_MS;

    while (app->uses > 0 && !pawl__cancelled(cancel) && now_ns(apps) < deadline_ns) {
        (void)pawl__cond_wait_until(
            &apps->changed, &apps->lock, now_ns(apps) + LOOK_MS * NS_PER_MS);
    }
    return app->uses == 0;
}

/* Takes its handle away from everybody: requests are answered that it is being opened. NULL: it is not open, or in use. */
static struct node_app *withdraw(struct node_apps *apps,
                                 pawl_view name,
                                 struct pawl__cancel *cancel,
                                 struct node_app_state *ret_state,
                                 pawl_error *reterr)
{
    pawl__lock(&apps->lock);
    struct node_app *app = find_locked(apps, name);
    bool open = app != NULL && app->app != NULL;
    bool unused = false;
    if (open) {
        *ret_state = state_of(app);
        app->app = NULL;
        app->opening = true;
        unused = await_unused_locked(apps, app, cancel);
        app->opening = unused;
        app->app = unused ? NULL : ret_state->app;
        app->probe = unused ? NULL : app->probe;
    }
    pawl__unlock(&apps->lock);
    if (unused) {
        return app;
    }
    (void)pawl__fail(reterr,
                     pawl__cancelled(cancel) ? PAWL_CANCELLED : PAWL_BUSY,
                     open ? "application '%.*s' is in use" : "application '%.*s' is not open",
                     VIEW_ARGS(name));
    return NULL;
}

static pawl_status open_rebuilt(struct node_apps *apps, struct node_app *app, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_app_options options = apps->part->options->app;
    pawl_app *opened = NULL;

    options.rebuild = true;
    TRY(pawl_app_locate(apps->part->location, app->name, &location, reterr));
    TRY(pawl_app_open(location, NULL, &options, &opened, reterr));
    return admit(apps, app, opened, PAWL_INVALID, reterr);
}

/* Nobody uses it. What does not close stays, and is closed with the node. */
static pawl_status close_handle(struct node_apps *apps,
                                const struct node_app_state *state,
                                pawl_error *reterr)
{
    int64_t close_ms = apps->part->options->app.close_ms_max;

    pawl__serve_probe_cancel(state->probe);
    TRY(pawl__serve_probe_stop(state->probe, now_ns(apps) + close_ms * NS_PER_MS, reterr));
    TRY(pawl_app_close(state->app, (uint32_t)close_ms, reterr));
    pawl__serve_probe_free(state->probe);
    return PAWL_OK;
}

pawl_status pawl__serve_app_rebuild(struct apps_part *part,
                                    pawl_view name,
                                    struct pawl__cancel *cancel,
                                    pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    struct node_app_state state;
    struct node_app *app = withdraw(apps, name, cancel, &state, reterr);

    if (app == NULL) {
        return reterr->status;
    }
    pawl_status status = close_handle(apps, &state, reterr);
    if (status == PAWL_OK) {
        status = open_rebuilt(apps, app, reterr);
    }
    pawl__lock(&apps->lock);
    app->opening = false;
    app->why = PAWL_OK;
    app->retry_ns = 0; /* one that could not be rebuilt is opened as it was */
    pawl__cond_broadcast(&apps->changed);
    pawl__unlock(&apps->lock);
    return status;
}

static void run_opener(void *context)
{
    struct node_apps *apps = context;
    int64_t next_ns = 0;

    pawl__lock(&apps->lock);
    while (!apps->stop) {
        struct node_app *app = next_locked(apps, &next_ns);

        if (app == NULL) {
            (void)pawl__cond_wait_until(&apps->changed, &apps->lock, next_ns);
            continue;
        }
        app->opening = true;
        pawl__unlock(&apps->lock);
        pawl_error error = PAWL_ERROR_INIT;
        error.status = open_one(apps, app, &error);
        pawl__lock(&apps->lock);
        finish_attempt_locked(apps, app, &error);
    }
    pawl__unlock(&apps->lock);
}

struct finding {
    struct node_apps *apps;
    pawl_error error; /* PAWL_OK: all could be added */
};

static bool add_found(void *context, const char *name)
{
    struct finding *finding = context;
    struct node_app *app = NULL;

    pawl__lock(&finding->apps->lock);
    pawl_status status = add_locked(finding->apps, name, &app, &finding->error);
    pawl__unlock(&finding->apps->lock);
    return status == PAWL_OK;
}

void pawl__serve_apps_await(struct apps_part *part, int64_t deadline_ns)
{
    struct node_apps *apps = part->apps;
    bool pending = true;
    bool in_time = true;

    pawl__lock(&apps->lock);
    while (pending && in_time) {
        pending = false;
        for (size_t i = 0; i < apps->count; i++) {
            pending = pending || is_pending(apps->apps[i]);
        }
        in_time = !pending || pawl__cond_wait_until(&apps->changed, &apps->lock, deadline_ns);
    }
    pawl__unlock(&apps->lock);
}

/* --- beginning and end --- */

pawl_status pawl__serve_apps_new(struct apps_part *part, pawl_error *reterr)
{
    struct node_apps *apps = calloc(1, sizeof(*apps));
    struct node_app **list = calloc(NODE_APPS_MAX, sizeof(list[0]));

    if (apps == NULL || list == NULL) {
        free(list);
        free(apps);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for applications");
    }
    pawl__lock_cond_init(&apps->lock, &apps->changed);
    apps->apps = list;
    apps->part = part;
    part->apps = apps;
    return PAWL_OK;
}

pawl_status pawl__serve_apps_list(struct apps_part *part, pawl_error *reterr)
{
    struct finding finding = { part->apps, PAWL_ERROR_INIT };

    TRY(pawl_app_list(part->location, add_found, &finding, reterr));
    return finding.error.status == PAWL_OK
               ? PAWL_OK
               : pawl__fail_with(reterr, finding.error.status, &finding.error);
}

pawl_status pawl__serve_apps_start(struct apps_part *part, pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    size_t threads = MIN(MAX(pawl__serve_apps_count(part), 1), OPENERS);

    for (size_t i = 0; i < threads; i++) {
        TRY(pawl__thread_start(&apps->openers[i], "pawl-app-open", run_opener, apps, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__serve_apps_stop(struct apps_part *part, int64_t deadline_ns, pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    struct pawl__stop stops[OPENERS];

    if (apps == NULL) {
        return PAWL_OK;
    }
    pawl__lock(&apps->lock);
    apps->stop = true;
    pawl__cond_broadcast(&apps->changed);
    pawl__unlock(&apps->lock);
    for (size_t i = 0; i < OPENERS; i++) {
        stops[i] = (struct pawl__stop){ "an application that is being opened", &apps->openers[i] };
    }
    return pawl__stop_threads(NULL, stops, OPENERS, deadline_ns, reterr);
}

void pawl__serve_apps_free(struct apps_part *part)
{
    struct node_apps *apps = part->apps;

    if (apps == NULL) {
        return;
    }
    for (size_t i = 0; i < apps->count; i++) {
        free(apps->apps[i]);
    }
    while (apps->removed != NULL) {
        struct node_app *app = apps->removed;

        apps->removed = app->next;
        free(app);
    }
    pawl__cond_done(&apps->changed);
    pawl__lock_done(&apps->lock);
    free(apps->lost);
    free(apps->apps);
    free(apps);
    part->apps = NULL;
}
