/* The end of the applications: all at once, so that those whose stores hang do not add up. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/shutdown.h"
#include "server/node_internal.h"

enum {
    GRACE_MS = 500 /* for a store that is closed behind the last command */
};

struct ending {
    struct pawl__thread thread;
    struct node_app_state state;
    uint32_t timeout_ms;
    pawl_error error;
};

static void end_app(void *context)
{
    struct ending *ending = context;
    struct pawl__clock *clock = pawl__clock_real();
    int64_t deadline_ns = pawl__monotonic_ns(clock) + ending->timeout_ms * NS_PER_MS;

    /* One whose probe hangs in the store is not closed below it. */
    if (pawl__serve_probe_stop(ending->state.probe, deadline_ns, &ending->error) == PAWL_OK) {
        int64_t left_ms = MAX((deadline_ns - pawl__monotonic_ns(clock)) / NS_PER_MS, 1);

        if (pawl_app_close_within(ending->state.app, (uint32_t)left_ms, &ending->error)
            == PAWL_OK) {
            pawl__serve_probe_free(ending->state.probe); /* its commands are answered */
        }
    }
}

static void begin(struct ending *ending, const struct node_app_state *state, uint32_t timeout_ms)
{
    ending->state = *state;
    ending->timeout_ms = timeout_ms;
    if (pawl__thread_start(&ending->thread, "pawl-app-end", end_app, ending, NULL) != PAWL_OK) {
        end_app(ending);
    }
}

/* Names all that did not end. */
static pawl_status name_late(const struct ending *endings, size_t count, pawl_error *reterr)
{
    const struct ending *first = NULL;
    AUTO(pawl__buf_done) struct pawl__buf names = BUF_INIT(PAWL_ERROR_MESSAGE_SIZE / 2);

    for (size_t i = 0; i < count; i++) {
        if (endings[i].error.status != PAWL_OK) {
            pawl__buf_add_format(&names, first == NULL ? "'%s'" : ", '%s'", endings[i].state.name);
            first = first == NULL ? &endings[i] : first;
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

static void begin_all(struct pawl__serve_node *node,
                      const struct node_app_state *states,
                      struct ending *endings,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl__serve_probe_cancel(states[i].probe);
    }
    for (size_t i = 0; i < count; i++) {
        begin(&endings[i], &states[i], node->options.app.close_ms_max);
    }
}

pawl_status pawl__serve_apps_close(struct pawl__serve_node *node, pawl_error *reterr)
{
    if (node->apps == NULL) {
        return PAWL_OK;
    }
    size_t count = 0;
    struct node_app_state *states = pawl__serve_app_handles(node, &count);
    struct ending *endings = calloc(count + 1, sizeof(*endings));
    struct pawl__stop *stops = calloc(count + 1, sizeof(*stops));
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real())
                          + (node->options.app.close_ms_max + GRACE_MS) * NS_PER_MS;

    if (states == NULL || endings == NULL || stops == NULL) {
        free(states);
        free(endings);
        free(stops);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to end in order");
    }
    begin_all(node, states, endings, count);
    free(states);
    for (size_t i = 0; i < count; i++) {
        stops[i] = (struct pawl__stop){ endings[i].state.name, &endings[i].thread };
    }
    pawl_status status = pawl__stop_threads(NULL, stops, count, deadline_ns, reterr);
    free(stops);
    if (status != PAWL_OK) {
        return status; /* a thread hangs in a store, with what it uses */
    }
    status = name_late(endings, count, reterr);
    free(endings);
    return status;
}
