/* Opening the applications of the node, on threads of their own.
 *
 * The node listens before they are open. An application that cannot be opened is listed with the reason and stops none
 * of the others. One that another process has, or whose store is away, is retried until it opens. A damaged one is not:
 * its repair needs it closed, and then the node is started again. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/failpoint.h"
#include "base/thread/shutdown.h"
#include "server/apps/registry.h"

/* --- one attempt --- */

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

static pawl_status open_one(struct node_app *app, pawl_error *reterr)
{
    FAILPOINT("node.app.open.before", reterr);
    return pawl__serve_app_open_handle(app, &app->all->part->options->app, reterr);
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
        pawl__serve_app_remove_locked(apps, app);
        return;
    }
    app->why = error->status;
    app->given_up = error->status != PAWL_OK && !may_pass(error);
    app->retry_ns = pawl__serve_apps_now_ns(apps) + APPS_RETRY_MS * NS_PER_MS;
    log_change(app, before, error);
}

/* The next one to open; NULL: none is, before *ret_ns. */
static struct node_app *next_locked(struct node_apps *apps, int64_t *ret_ns)
    REQUIRES_LOCK(apps->lock)
{
    int64_t now = pawl__serve_apps_now_ns(apps);

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

/* --- the threads --- */

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
        error.status = open_one(app, &error);
        pawl__lock(&apps->lock);
        finish_attempt_locked(apps, app, &error);
    }
    pawl__unlock(&apps->lock);
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
            pending = pending || pawl__serve_app_is_pending(apps->apps[i]);
        }
        in_time = !pending || pawl__cond_wait_until(&apps->changed, &apps->lock, deadline_ns);
    }
    pawl__unlock(&apps->lock);
}

pawl_status pawl__serve_apps_start(struct apps_part *part, pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    size_t threads = MIN(MAX(pawl__serve_apps_count(part), 1), APPS_OPENERS);

    for (size_t i = 0; i < threads; i++) {
        TRY(pawl__thread_start(&apps->openers[i], "pawl-app-open", run_opener, apps, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__serve_apps_stop(struct apps_part *part, int64_t deadline_ns, pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    struct pawl__stop stops[APPS_OPENERS];

    if (apps == NULL) {
        return PAWL_OK;
    }
    pawl__lock(&apps->lock);
    apps->stop = true;
    pawl__cond_broadcast(&apps->changed);
    pawl__unlock(&apps->lock);
    for (size_t i = 0; i < APPS_OPENERS; i++) {
        stops[i] = (struct pawl__stop){ "an application that is being opened", &apps->openers[i] };
    }
    return pawl__stop_threads(NULL, stops, APPS_OPENERS, deadline_ns, reterr);
}

/* --- which there are --- */

struct finding {
    struct node_apps *apps;
    pawl_error error; /* PAWL_OK: all could be added */
};

static bool add_found(void *context, const pawl_app_entry *entry)
{
    struct finding *finding = context;
    struct node_app *app = NULL;

    pawl__lock(&finding->apps->lock);
    pawl_status status =
        pawl__serve_app_add_locked(finding->apps, entry->name.data, &app, &finding->error);
    pawl__unlock(&finding->apps->lock);
    return status == PAWL_OK;
}

pawl_status pawl__serve_apps_list(struct apps_part *part, pawl_error *reterr)
{
    struct finding finding = { part->apps, PAWL_ERROR_INIT };

    TRY(pawl_app_list(part->location, NULL, add_found, &finding, reterr));
    return finding.error.status == PAWL_OK
               ? PAWL_OK
               : pawl__fail_with(reterr, finding.error.status, &finding.error);
}
