/* The handle of an application that is open: admitted with a probe, lost to another process, closed. */
#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/failpoint.h"
#include "server/apps/registry.h"

/* --- the probe, and what it finds --- */

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
    apps->lost[apps->lost_count++] = pawl__serve_app_state_of(app);
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
        app->retry_ns = pawl__serve_apps_now_ns(apps) + APPS_RETRY_MS * NS_PER_MS;
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

    FAILPOINT("node.app.probe.before", reterr);
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

/* --- opening and closing --- */

pawl_status pawl__serve_app_admit(struct node_app *app,
                                  pawl_app *opened,
                                  pawl_status refusal,
                                  pawl_error *reterr)
{
    struct node_apps *apps = app->all;
    struct node_probe *probe = NULL;
    pawl_status status =
        pawl__serve_probe_start(app->name, apps->part->clock, probe_app, app, &probe, reterr);

    pawl__lock(&apps->lock);
    if (status == PAWL_OK) {
        status = pawl__serve_apps_check_room_locked(
            apps, pawl_app_get_descriptor(opened)->partitions, refusal, reterr);
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
    pawl_status status = pawl__serve_app_add_locked(apps, name, &app, reterr);
    if (status == PAWL_OK) {
        app->opening = true; /* nobody else touches it */
    }
    pawl__unlock(&apps->lock);
    if (status != PAWL_OK) {
        pawl_app_close(opened, 0, NULL);
        return status;
    }
    status = pawl__serve_app_admit(app, opened, PAWL_CONFLICT, reterr);
    pawl__lock(&apps->lock);
    app->opening = false;
    if (status != PAWL_OK) {
        pawl__serve_app_remove_locked(apps, app);
    }
    pawl__unlock(&apps->lock);
    return status;
}

/* TIMEOUT: its probe hangs in the store, and the handle stays until the next attempt. A handle whose closing fails
 * is gone. */
static pawl_status close_previous(struct node_app *app, pawl_error *reterr)
{
    struct node_apps *apps = app->all;
    int64_t close_ms = apps->part->options->app.close_ms_max;

    pawl__lock(&apps->lock);
    struct node_app_state state = app->unclosed;
    pawl__unlock(&apps->lock);
    if (state.app == NULL) {
        return PAWL_OK;
    }
    pawl__serve_probe_cancel(state.probe);
    TRY(pawl__serve_probe_stop(
        state.probe, pawl__serve_apps_now_ns(apps) + close_ms * NS_PER_MS, reterr));
    pawl__lock(&apps->lock);
    app->unclosed = (struct node_app_state){ .app = NULL };
    pawl__unlock(&apps->lock);
    TRY(pawl_app_close(state.app, (uint32_t)close_ms, reterr));
    pawl__serve_probe_free(state.probe);
    return PAWL_OK;
}

pawl_status pawl__serve_app_open_handle(struct node_app *app,
                                        const pawl_app_options *options,
                                        pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_app *opened = NULL;

    TRY(close_previous(app, reterr));
    TRY(pawl_app_locate(app->all->part->location, app->name, &location, reterr));
    TRY(pawl_app_open(location, NULL, options, &opened, reterr));
    return pawl__serve_app_admit(app, opened, PAWL_INVALID, reterr);
}
