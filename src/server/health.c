/* Is it alive, is it ready, how is it. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/node_internal.h"
#include "server/work.h"

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

/* As its newest attempt said: a store that hangs holds up nobody who asks how the node is. */
static size_t add_work(struct pawl__node *node, const char *before, struct pawl__buf *body)
{
    pawl_status health = pawl__node_work_health(node->work);

    if (health == PAWL_OK) {
        return 0;
    }
    pawl__buf_add_format(
        body, "%s{\"store\":\"work\",\"why\":\"%s\"}", before, pawl_status_name(health));
    return 1;
}

/* Adds what is not ready, as items; how many. Without memory the buffer is broken: nobody knows. */
static size_t add_waiting(struct pawl__node *node, struct pawl__buf *body)
{
    pawl_app **apps = calloc(NODE_APPS_MAX, sizeof(apps[0]));
    size_t count = apps == NULL ? 0 : pawl__node_apps(node, apps, NODE_APPS_MAX);
    size_t waiting = 0;

    if (apps == NULL) {
        body->broken = true;
        body->nomem = true;
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        const pawl_app_descriptor *descriptor = pawl_app_get_descriptor(apps[i]);

        for (uint16_t p = 0; p < descriptor->partitions; p++) {
            const char *why = why_not(apps[i], p);

            if (why != NULL) {
                pawl__buf_add_format(body,
                                     "%s{\"app\":\"%s\",\"partition\":%u,\"why\":\"%s\"}",
                                     waiting++ == 0 ? "" : ",",
                                     descriptor->name,
                                     p,
                                     why);
            }
        }
    }
    free(apps);
    return waiting + add_work(node, waiting == 0 ? "" : ",", body);
}

void pawl__serve_readyz(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(METRICS_BYTES_MAX);

    pawl__buf_add_text(&body, "{\"waiting\":[");
    bool ready = add_waiting(context, &body) == 0;
    pawl__buf_add_format(&body, "],\"ready\":%s}\n", ready ? "true" : "false");
    if (!ready) {
        pawl__http_set_header(request, "Retry-After", "1");
    }
    pawl__http_answer_buf(request, ready ? 200 : 503, HTTP_JSON, &body);
}

void pawl__serve_healthz(struct pawl__http_request *request, void *context)
{
    struct pawl__node *node = context;
    struct pawl__buf body = BUF_INIT(METRICS_BYTES_MAX);
    int64_t up_ns = pawl__monotonic_ns(pawl__clock_real()) - node->started_ns;

    pawl__buf_add_text(&body, "{\"waiting\":[");
    bool ready = add_waiting(node, &body) == 0;
    pawl__buf_add_format(&body,
                         "],\"status\":\"%s\",\"version\":\"%s\",\"apps\":%zu,"
                         "\"up_seconds\":%lld}\n",
                         ready ? "ok" : "waiting",
                         pawl_version(),
                         pawl__node_app_count(node),
                         (long long)(up_ns / NS_PER_S));
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}

void pawl__serve_metrics(struct pawl__http_request *request, void *context)
{
    struct pawl__node *node = context;
    struct pawl__buf body = BUF_INIT(METRICS_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    AUTO(pawl__text_free) char *work = pawl__node_work_metrics(node->work);
    pawl_status status = pawl__node_gauges_update(node, &error);

    if (status == PAWL_OK) {
        status = pawl__metrics_write(node->metrics, &body, &error);
    }
    pawl__buf_add_text(&body, work == NULL ? "" : work);
    if (status != PAWL_OK) {
        pawl__buf_done(&body);
        pawl__http_fail(request, &error);
        return;
    }
    pawl__http_answer_buf(request, 200, HTTP_TEXT, &body);
}
