/* The end of the applications: all at once, so that those whose stores hang do not add up. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/shutdown.h"
#include "server/apps/apps.h"

enum {
    GRACE_MS = 500 /* for a store that is closed after the last command */
};

struct closing {
    struct pawl__thread thread;
    struct node_app_state state;
    struct pawl__clock *clock;
    uint32_t timeout_ms;
    pawl_error error;
};

static void close_app(void *context)
{
    struct closing *closing = context;
    struct pawl__clock *clock = closing->clock;
    int64_t deadline_ns = pawl__monotonic_ns(clock) + closing->timeout_ms * NS_PER_MS;

    /* One whose probe hangs in the store is not closed below it. */
    if (pawl__serve_probe_stop(closing->state.probe, deadline_ns, &closing->error) == PAWL_OK) {
        int64_t left_ms = MAX((deadline_ns - pawl__monotonic_ns(clock)) / NS_PER_MS, 1);

        if (pawl_app_close(closing->state.app, (uint32_t)left_ms, &closing->error) == PAWL_OK) {
            pawl__serve_probe_free(closing->state.probe); /* its commands are answered */
        }
    }
}

/* Names all that did not end. */
static pawl_status report_late(const struct closing *closings, size_t count, pawl_error *reterr)
{
    const struct closing *first = NULL;
    AUTO(pawl__buf_done) struct pawl__buf names = BUF_INIT(PAWL_ERROR_MESSAGE_SIZE / 2);

    for (size_t i = 0; i < count; i++) {
        if (closings[i].error.status != PAWL_OK) {
            pawl__buf_add_format(&names, first == NULL ? "'%s'" : ", '%s'", closings[i].state.name);
            first = first == NULL ? &closings[i] : first;
        }
    }
    return first == NULL ? PAWL_OK
                         : pawl__fail(reterr,
                                      first->error.status,
                                      "not closed: %.*s%s: %s",
                                      VIEW_ARGS(pawl__buf_view(&names)),
                                      names.broken ? ", ..." : "",
                                      first->error.message);
}

static void start_closing_all(struct apps_part *part,
                              const struct node_app_state *states,
                              struct closing *closings,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl__serve_probe_cancel(states[i].probe);
    }
    for (size_t i = 0; i < count; i++) {
        closings[i] = (struct closing){ .state = states[i],
                                        .clock = part->clock,
                                        .timeout_ms = part->options->app.close_ms_max };
        if (pawl__thread_start(&closings[i].thread, "pawl-app-end", close_app, &closings[i], NULL)
            != PAWL_OK) {
            close_app(&closings[i]);
        }
    }
}

pawl_status pawl__serve_apps_close(struct apps_part *part, pawl_error *reterr)
{
    if (part->apps == NULL) {
        return PAWL_OK;
    }
    size_t count = 0;
    struct node_app_state *states = pawl__serve_app_states(part, true, &count);
    struct closing *closings = calloc(count + 1, sizeof(*closings));
    struct pawl__stop *stops = calloc(count + 1, sizeof(*stops));
    int64_t deadline_ns =
        pawl__monotonic_ns(part->clock) + (part->options->app.close_ms_max + GRACE_MS) * NS_PER_MS;

    if (states == NULL || closings == NULL || stops == NULL) {
        pawl__serve_app_states_free(states, count);
        free(closings);
        free(stops);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to end in order");
    }
    start_closing_all(part, states, closings, count);
    pawl__serve_app_states_free(states, count);
    for (size_t i = 0; i < count; i++) {
        stops[i] = (struct pawl__stop){ closings[i].state.name, &closings[i].thread };
    }
    pawl_status status = pawl__stop_threads(NULL, stops, count, deadline_ns, reterr);
    free(stops);
    if (status != PAWL_OK) {
        return status; /* a thread hangs in a store, with what it uses */
    }
    status = report_late(closings, count, reterr);
    free(closings);
    return status;
}
