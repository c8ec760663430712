/* Is it alive, is it ready, how is it. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "server/node_internal.h"
#include "server/work/work.h"

enum { METRICS_BYTES_MAX = 64 << 20 };

void pawl__serve_livez(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(64);

    (void)context;
    pawl__buf_add_text(&body, "{\"alive\":true}\n");
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}

/* Why a partition takes no commands now; NULL: it does. */
static const char *why_not(pawl_app *app, uint16_t partition)
{
    pawl_sequencer_status of;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl_app_get_status(app, partition, &of, &error) != PAWL_OK) {
        return pawl_status_name(error.status);
    }
    if (of.last_error.status != PAWL_OK) { /* soon too much waits to be written, if not now */
        return pawl_status_name(of.last_error.status);
    }
    return of.actualizing || of.next_offset == 0 ? "ACTUALIZING" : NULL;
}

void pawl__serve_add_not_open(struct pawl__buf *body,
                              const char *before,
                              const struct node_app_state *state)
{
    pawl__buf_add_format(body,
                         "%s{\"app\":\"%s\",\"why\":\"%s\"}",
                         before,
                         state->name,
                         state->opening ? "OPENING" : pawl_status_name(state->why));
}

/* What is not ready, as JSON. `waiting`: the node is not ready without it. `degraded`: applications that are
 * not open, which is no reason to take the others away from everybody. */
struct report {
    struct pawl__buf *body;
    size_t waiting;
};

static const char *comma(struct report *report)
{
    return report->waiting++ == 0 ? "" : ",";
}

static void add_open(struct report *report, const struct node_app_state *state)
{
    pawl_status says = pawl__serve_probe_status(state->probe);

    if (says != PAWL_OK) {
        pawl__buf_add_format(report->body,
                             "%s{\"app\":\"%s\",\"why\":\"%s\"}",
                             comma(report),
                             state->name,
                             pawl_status_name(says));
        return;
    }
    for (uint16_t p = 0; p < pawl_app_get_descriptor(state->app)->partitions; p++) {
        const char *why = why_not(state->app, p);

        if (why != NULL) {
            pawl__buf_add_format(report->body,
                                 "%s{\"app\":\"%s\",\"partition\":%u,\"why\":\"%s\"}",
                                 comma(report),
                                 state->name,
                                 p,
                                 why);
        }
    }
}

/* A node of which no application is open is not ready: it may be the one that waits for another node to
 * end. */
static bool is_degraded(const struct node_app_state *state, bool any_open)
{
    return state->app == NULL && !state->opening && any_open;
}

static void add_apps(struct report *report, const struct node_app_state *apps, size_t count)
{
    const char *before = "";
    bool any_open = false;

    for (size_t i = 0; i < count; i++) {
        any_open = any_open || apps[i].app != NULL;
    }
    pawl__buf_add_text(report->body, "{\"degraded\":[");
    for (size_t i = 0; i < count; i++) {
        if (is_degraded(&apps[i], any_open)) {
            pawl__serve_add_not_open(report->body, before, &apps[i]);
            before = ",";
        }
    }
    pawl__buf_add_text(report->body, "],\"waiting\":[");
    for (size_t i = 0; i < count; i++) {
        if (apps[i].app != NULL) {
            add_open(report, &apps[i]);
        } else if (!is_degraded(&apps[i], any_open)) {
            pawl__serve_add_not_open(report->body, comma(report), &apps[i]);
        }
    }
}

/* Begins the answer: {"degraded": [...], "waiting": [...] without the end. Whether it is ready. Nothing
 * here waits for a store: each is asked on a thread of its own, and this is what it said. Without
 * memory the buffer is broken: nobody knows. */
static bool write_report(struct pawl__serve_node *node, struct pawl__buf *body)
{
    size_t count = 0;
    struct node_app_state *apps = pawl__serve_app_states(node, false, &count);
    struct report report = { .body = body };

    if (apps == NULL) {
        body->broken = true;
        body->nomem = true;
        return false;
    }
    add_apps(&report, apps, count);
    free(apps);
    pawl_status health = pawl__serve_work_health(node->work);
    if (health != PAWL_OK) {
        pawl__buf_add_format(body,
                             "%s{\"store\":\"work\",\"why\":\"%s\"}",
                             comma(&report),
                             pawl_status_name(health));
    }
    pawl__buf_add_text(body, "]");
    return report.waiting == 0;
}

void pawl__serve_readyz(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(METRICS_BYTES_MAX);
    bool ready = write_report(context, &body);

    pawl__buf_add_format(&body, ",\"ready\":%s}\n", ready ? "true" : "false");
    if (!ready) {
        pawl__http_set_header(request, "Retry-After", "1");
    }
    pawl__http_answer_buf(request, ready ? 200 : 503, HTTP_JSON, &body);
}

void pawl__serve_healthz(struct pawl__http_request *request, void *context)
{
    struct pawl__serve_node *node = context;
    struct pawl__buf body = BUF_INIT(METRICS_BYTES_MAX);
    int64_t up_ns = pawl__monotonic_ns(node->clock) - node->started_ns;
    bool ready = write_report(node, &body);

    pawl__buf_add_format(&body,
                         ",\"status\":\"%s\",\"version\":\"%s\",\"apps\":%zu,"
                         "\"up_seconds\":%lld}\n",
                         ready ? "ok" : "waiting",
                         pawl_version(),
                         pawl__serve_app_count(node),
                         (long long)(up_ns / NS_PER_S));
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}

static pawl_status write_own_metrics(struct pawl__serve_node *node,
                                     struct pawl__buf *out,
                                     pawl_error *reterr)
{
    TRY(pawl__serve_gauges_update(node, reterr));
    return pawl__metrics_write(node->metrics, out, reterr);
}

void pawl__serve_metrics(struct pawl__http_request *request, void *context)
{
    struct pawl__serve_node *node = context;
    struct pawl__buf body = BUF_INIT(METRICS_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf own = BUF_INIT(METRICS_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf commits = BUF_INIT(METRICS_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    AUTO(pawl__text_free) char *work = pawl__serve_work_metrics(node->work);
    pawl_status status = write_own_metrics(node, &own, &error);

    if (status == PAWL_OK) {
        status = pawl__serve_commits_add(node, &commits, &error);
    }
    if (status != PAWL_OK) {
        pawl__http_fail(request, &error);
        return;
    }
    const pawl_view texts[] = { pawl__buf_view(&own),
                                pawl__buf_view(&commits),
                                pawl_view_of(work == NULL ? "" : work) };
    pawl__metrics_join(texts, COUNT_OF(texts), &body);
    pawl__http_answer_buf(request, 200, HTTP_TEXT, &body);
}
