/* An application with its numbers made anew from its logs: closed when nobody uses it, and opened again. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/thread/cancel.h"
#include "server/apps/registry.h"

enum {
    UNUSED_MS_MAX = 30000, /* for those who use an application to end */
    LOOK_MS = 50           /* between two looks at whether it was cancelled */
};

/* False: it was cancelled, or somebody uses it for too long. */
static bool await_unused_locked(struct node_apps *apps,
                                const struct node_app *app,
                                struct pawl__cancel *cancel) REQUIRES_LOCK(apps->lock)
{
    int64_t deadline_ns = pawl__serve_apps_now_ns(apps) + UNUSED_MS_MAX * NS_PER_MS;

    while (app->uses > 0 && !pawl__cancelled(cancel)
           && pawl__serve_apps_now_ns(apps) < deadline_ns) {
        (void)pawl__cond_wait_until(
            &apps->changed, &apps->lock, pawl__serve_apps_now_ns(apps) + LOOK_MS * NS_PER_MS);
    }
    return app->uses == 0;
}

/* Takes its handle away from everybody, to be closed by the next open: requests are answered that it is being opened.
 * NULL: it is not open, or in use. */
static struct node_app *withdraw(struct node_apps *apps,
                                 pawl_view name,
                                 struct pawl__cancel *cancel,
                                 pawl_error *reterr)
{
    pawl__lock(&apps->lock);
    struct node_app *app = pawl__serve_app_find_locked(apps, name);
    bool open = app != NULL && app->app != NULL;
    bool unused = false;
    if (open) {
        struct node_app_state state = pawl__serve_app_state_of(app);

        app->app = NULL;
        app->opening = true;
        unused = await_unused_locked(apps, app, cancel);
        app->opening = unused;
        if (unused) {
            app->unclosed = state;
            app->probe = NULL;
        } else {
            app->app = state.app;
        }
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

static pawl_status open_rebuilt(struct node_app *app, pawl_error *reterr)
{
    pawl_app_options options = app->all->part->options->app;

    options.rebuild = true;
    return pawl__serve_app_open_handle(app, &options, reterr);
}

pawl_status pawl__serve_app_rebuild(struct apps_part *part,
                                    pawl_view name,
                                    struct pawl__cancel *cancel,
                                    pawl_error *reterr)
{
    struct node_apps *apps = part->apps;
    struct node_app *app = withdraw(apps, name, cancel, reterr);

    if (app == NULL) {
        return reterr->status;
    }
    pawl_status status = open_rebuilt(app, reterr);
    pawl__lock(&apps->lock);
    app->opening = false;
    app->why = PAWL_OK;
    app->retry_ns = 0; /* one that could not be rebuilt is opened as it was */
    pawl__cond_broadcast(&apps->changed);
    pawl__unlock(&apps->lock);
    return status;
}
