/* GET .../failed/export: all failed events as lines of JSON, however many there are. A thread reads them a page at a time and
 * waits while the client has not taken what is there; the connection itself costs none. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "net/http/stream.h"
#include "server/delivery/delivery.h"

enum { AHEAD_BYTES = 1 << 20 };
#define LINE_BYTES_MAX ((size_t)256 << 20)

struct exporting {
    struct node_delivery *node;
    struct node_export *slot;
    pawl_delivery *delivery;
    struct node_pipeline_name pipeline;
    pawl_failed_filter filter;
    pawl_page page;
    struct pawl__arena arena; /* of the filter's texts */
    struct pawl__http_stream *stream;

    struct pawl__lock lock; /* covers the rest */
    struct pawl__cond changed;
    struct pawl__buf ahead;
    size_t taken; /* of it */
    bool has_ended;
    bool is_closed; /* the client left */
    unsigned users; /* the thread and the stream */
};

static void leave(struct exporting *exporting)
{
    pawl__lock(&exporting->lock);
    bool is_last = --exporting->users == 0;
    pawl__unlock(&exporting->lock);
    if (!is_last) {
        return;
    }
    pawl__http_stream_release(exporting->stream);
    pawl__buf_done(&exporting->ahead);
    pawl__arena_done(&exporting->arena);
    pawl__lock_cond_done(&exporting->lock, &exporting->changed);
    free(exporting);
}

/* --- the thread --- */

static bool add_line(void *context, const pawl_failed_event *event)
{
    struct exporting *exporting = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (pawl_failed_to_json(event, &json, &len, NULL) != PAWL_OK) {
        return false;
    }
    pawl__lock(&exporting->lock);
    while (exporting->ahead.len - exporting->taken > AHEAD_BYTES && !exporting->is_closed) {
        pawl__cond_wait(&exporting->changed, &exporting->lock);
    }
    pawl__buf_add(&exporting->ahead, (pawl_view){ json, len });
    pawl__buf_add_char(&exporting->ahead, '\n');
    bool goes_on = !exporting->is_closed && !exporting->ahead.broken;
    pawl__unlock(&exporting->lock);
    pawl__http_stream_wake(exporting->stream);
    return goes_on;
}

static void run(void *context)
{
    struct exporting *exporting = context;
    struct node_delivery *node = exporting->node;
    struct node_export *slot = exporting->slot;

    (void)!pawl_failed_list(exporting->delivery,
                            exporting->pipeline.text,
                            &exporting->filter,
                            &exporting->page,
                            add_line,
                            exporting,
                            NULL);
    pawl__lock(&exporting->lock);
    exporting->has_ended = true;
    pawl__unlock(&exporting->lock);
    pawl__http_stream_wake(exporting->stream);
    leave(exporting);
    pawl__lock(&node->lock);
    slot->has_ended = true;
    pawl__cond_broadcast(&node->changed);
    pawl__unlock(&node->lock);
}

/* --- the stream --- */

static size_t read_some(void *context, char *to, size_t size, bool *ret_ended)
{
    struct exporting *exporting = context;

    pawl__lock(&exporting->lock);
    size_t count = MIN(size, exporting->ahead.len - exporting->taken);
    if (count > 0) {
        memcpy(to, &exporting->ahead.data[exporting->taken], count);
        exporting->taken += count;
    }
    if (exporting->taken == exporting->ahead.len) {
        pawl__buf_clear(&exporting->ahead);
        exporting->taken = 0;
        *ret_ended = exporting->has_ended && count == 0;
    }
    pawl__cond_broadcast(&exporting->changed);
    pawl__unlock(&exporting->lock);
    return count;
}

static void close_stream(void *context)
{
    struct exporting *exporting = context;

    pawl__lock(&exporting->lock);
    exporting->is_closed = true;
    pawl__cond_broadcast(&exporting->changed);
    pawl__unlock(&exporting->lock);
    leave(exporting);
}

/* --- the route --- */

/* A slot whose thread has ended is joined, which does not wait. */
static struct node_export *find_slot(struct node_delivery *node, pawl_error *reterr)
{
    struct node_export *found = NULL;

    pawl__lock(&node->lock);
    for (size_t i = 0; i < NODE_EXPORTS_MAX && found == NULL && !node->is_stopping; i++) {
        struct node_export *slot = &node->exports[i];
        found = !slot->is_used || slot->has_ended ? slot : NULL;
    }
    if (found != NULL) {
        pawl__thread_join(&found->thread);
        *found = (struct node_export){ .is_used = true };
    }
    pawl__unlock(&node->lock);
    if (found == NULL) {
        (void)pawl__fail(reterr, PAWL_BUSY, "%d exports run already", NODE_EXPORTS_MAX);
    }
    return found;
}

static void free_slot(struct node_delivery *node, struct node_export *slot)
{
    pawl__lock(&node->lock);
    *slot = (struct node_export){ .is_used = false };
    pawl__unlock(&node->lock);
}

pawl_status pawl__serve_delivery_join_exports(struct node_delivery *node,
                                              int64_t deadline_ns,
                                              pawl_error *reterr)
{
    for (size_t i = 0; i < NODE_EXPORTS_MAX; i++) {
        if (!pawl__thread_join_until(&node->exports[i].thread, deadline_ns)) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "an export does not end");
        }
    }
    return PAWL_OK;
}

static pawl_status copy_filter(struct exporting *exporting,
                               const struct failed_list *asked,
                               pawl_error *reterr)
{
    pawl_failed_filter *filter = &exporting->filter;

    *filter = (pawl_failed_filter)PAWL_FAILED_FILTER_INIT;
    exporting->page = (pawl_page)PAWL_PAGE_INIT;
    exporting->page.from = asked->from;
    TRY(pawl__serve_failed_filter(asked, filter, reterr));
    bool is_copied =
        pawl__arena_copy(&exporting->arena, filter->reason, &filter->reason)
        && pawl__arena_copy(&exporting->arena, filter->source, &filter->source)
        && pawl__arena_copy(&exporting->arena, filter->transaction_id, &filter->transaction_id);
    return is_copied ? PAWL_OK : pawl__fail(reterr, PAWL_NOMEM, "no memory for an export");
}

static void free_unstarted(struct exporting *exporting)
{
    if (exporting->stream != NULL) {
        pawl__http_stream_release(exporting->stream);
    }
    pawl__arena_done(&exporting->arena);
    pawl__lock_cond_done(&exporting->lock, &exporting->changed);
    free(exporting);
}

static bool see_nothing(void *context, const pawl_failed_event *event)
{
    (void)context;
    (void)event;
    return false;
}

static pawl_status prepare(struct exporting *exporting,
                           struct pawl__serve_call *call,
                           pawl_error *reterr)
{
    const struct failed_list *asked = call->parameters;

    exporting->pipeline = pawl__serve_pipeline_name(asked->pipeline);
    TRY(copy_filter(exporting, asked, reterr));
    TRY(pawl__serve_delivery_find(
        call->part, NODE_DELIVERY_THAT_EXISTS, &exporting->delivery, reterr));
    /* What is wrong is the answer; once lines are sent nothing can be said any more. */
    TRY(pawl_failed_list(exporting->delivery,
                         exporting->pipeline.text,
                         &exporting->filter,
                         NULL,
                         see_nothing,
                         NULL,
                         reterr));
    exporting->stream = pawl__http_stream_new(call->request);
    return pawl__check_memory(exporting->stream, "a stream", reterr);
}

static pawl_status start(struct exporting *exporting,
                         struct pawl__serve_call *call,
                         pawl_error *reterr)
{
    const struct pawl__http_source source = { .read = read_some,
                                              .close = close_stream,
                                              .context = exporting };

    exporting->users = 2;
    TRY(pawl__thread_start(&exporting->slot->thread, "pawl-export", run, exporting, reterr));
    pawl__http_answer_stream(call->request, "application/x-ndjson", &source, exporting->stream);
    pawl__serve_resume(call, NULL);
    return PAWL_OK;
}

static pawl_status begin(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct node_delivery *node = call->part;
    struct exporting *exporting = calloc(1, sizeof(*exporting));

    TRY(pawl__check_memory(exporting, "an export", reterr));
    exporting->node = node;
    exporting->ahead = (struct pawl__buf)BUF_INIT(LINE_BYTES_MAX);
    pawl__lock_cond_init(&exporting->lock, &exporting->changed);
    pawl_status status = prepare(exporting, call, reterr);
    if (status == PAWL_OK) {
        exporting->slot = find_slot(node, reterr);
        status = exporting->slot == NULL ? PAWL_BUSY : start(exporting, call, reterr);
    }
    if (status != PAWL_OK) {
        if (exporting->slot != NULL) {
            free_slot(node, exporting->slot);
        }
        free_unstarted(exporting);
    }
    return status;
}

pawl_status pawl__serve_failed_export(struct pawl__serve_call *call, pawl_error *reterr)
{
    (void)reterr;
    pawl__serve_hand_over(call, begin);
    return PAWL_OK;
}
