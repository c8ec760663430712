/* The end of the applications: all at once, so that those whose stores hang do not add up. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/shutdown.h"
#include "server/node_internal.h"

enum { GRACE_MS = 500 }; /* for a store that is closed behind the last command */

struct ending {
    struct pawl__thread thread;
    pawl_app *app;
    char name[PAWL_APP_NAME_BYTES_MAX + 1]; /* the application's is gone with it */
    uint32_t timeout_ms;
    pawl_error error;
};

static void end_app(void *context)
{
    struct ending *ending = context;

    (void)!pawl_app_close_within(ending->app, ending->timeout_ms, &ending->error);
}

static void begin(struct ending *ending, pawl_app *app, uint32_t timeout_ms)
{
    ending->app = app;
    ending->timeout_ms = timeout_ms;
    (void)snprintf(ending->name, sizeof(ending->name), "%s", pawl_app_get_descriptor(app)->name);
    if (pawl__thread_start(&ending->thread, "pawl-app-end", end_app, ending, NULL) != PAWL_OK) {
        end_app(ending);
    }
}

/* The first that did not end; the log has all. */
static pawl_status first_late(const struct ending *endings, size_t count, pawl_error *reterr)
{
    const struct ending *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (endings[i].error.status != PAWL_OK) {
            LOG_WARNING("an application was not closed: what it answered is on disk",
                        LOG_TEXT("app", endings[i].name),
                        LOG_TEXT("error", endings[i].error.message));
            first = first == NULL ? &endings[i] : first;
        }
    }
    if (first == NULL) {
        return PAWL_OK;
    }
    if (reterr != NULL) {
        *reterr = first->error;
    }
    return first->error.status;
}

pawl_status pawl__node_close_apps(struct pawl__node *node, pawl_error *reterr)
{
    uint32_t timeout_ms = node->options.app.close_ms_max;
    size_t count = node->app_count;
    struct ending *endings = calloc(count + 1, sizeof(*endings));
    struct pawl__stop *stops = calloc(count + 1, sizeof(*stops));
    int64_t deadline_ns =
        pawl__monotonic_ns(pawl__clock_real()) + (timeout_ms + GRACE_MS) * NS_PER_MS;

    if (endings == NULL || stops == NULL) { /* one behind the other, then */
        for (size_t i = 0; i < count; i++) {
            pawl_app_close(node->apps[i]);
        }
        free(endings);
        free(stops);
        return PAWL_OK;
    }
    for (size_t i = 0; i < count; i++) {
        begin(&endings[i], node->apps[i], timeout_ms);
        stops[i] = (struct pawl__stop){ endings[i].name, &endings[i].thread };
    }
    pawl_status status = pawl__stop_threads(NULL, stops, count, deadline_ns, reterr);
    free(stops);
    if (status != PAWL_OK) {
        return status; /* a thread hangs in a store, with what it uses */
    }
    status = first_late(endings, count, reterr);
    free(endings);
    return status;
}
