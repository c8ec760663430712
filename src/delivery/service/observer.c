/* A pipeline seen by somebody who is beside it: an audit, a trace, a replay. Nothing of it is shared with the pipeline, so that
 * reading for an hour stops nobody; only the DuckDB file is, and a rebuild waits until nobody observes. */
#include <string.h>

#include "base/core/error.h"
#include "base/thread/inside.h"
#include "delivery/service/internal.h"
#include "delivery/sources/file.h"

enum {
    DECLARATION_BYTES_MAX = 4 << 20,
    FETCH_MESSAGES = 5000,
    FETCH_BYTES = 16 << 20,
    WAIT_NS = 500 * NS_PER_MS,
    EMPTY_MAX = 2, /* fetches of a broker in a row, each of which has waited: there is no more */
};

pawl_status pawl__delivery_enter_file(struct pawl_delivery *delivery, pawl_error *reterr)
{
    pawl__lock(&delivery->lock);
    bool is_rebuilding = delivery->is_rebuilding;
    delivery->observers += is_rebuilding ? 0 : 1;
    pawl__unlock(&delivery->lock);
    return is_rebuilding
               ? pawl__fail(reterr, PAWL_BUSY, "the DuckDB file is being rebuilt: try again later")
               : PAWL_OK;
}

void pawl__delivery_leave_file(struct pawl_delivery *delivery)
{
    pawl__lock(&delivery->lock);
    delivery->observers--;
    pawl__unlock(&delivery->lock);
}

static pawl_status copy_declared(const struct delivery_declared *declared,
                                 struct delivery_declared *ret_copy,
                                 pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(DECLARATION_BYTES_MAX);

    pawl__delivery_declared_write(declared, &json);
    TRY(pawl__buf_check(&json, "a declaration", reterr));
    return pawl__delivery_declared_read(pawl__buf_view(&json), ret_copy, reterr);
}

static pawl_status copy_found(struct delivery_observer *observer,
                              const char *name,
                              pawl_error *reterr)
{
    struct delivery_runner *runner = NULL;

    pawl__lock(&observer->delivery->manage);
    pawl_status status = pawl__delivery_find(observer->delivery, name, &runner, reterr);
    if (status == PAWL_OK) {
        status = copy_declared(&runner->declared, &observer->declared, reterr);
    }
    pawl__unlock(&observer->delivery->manage);
    return status;
}

pawl_status pawl__delivery_observe(struct pawl_delivery *delivery,
                                   const char *name,
                                   struct delivery_observer *observer,
                                   pawl_error *reterr)
{
    *observer = (struct delivery_observer){ .delivery = delivery };
    TRY(copy_found(observer, name, reterr));
    TRY(pawl__delivery_enter_file(delivery, reterr));
    observer->is_open = true;
    return pawl__delivery_open_sink(delivery, &observer->declared, &observer->opened.sink, reterr);
}

void pawl__delivery_observer_done(struct delivery_observer *observer)
{
    struct pawl_delivery *delivery = observer->delivery;

    pawl__delivery_close_opened(&observer->opened);
    pawl__delivery_declared_done(&observer->declared);
    if (observer->is_open) {
        pawl__delivery_leave_file(delivery);
    }
    *observer = (struct delivery_observer){ .delivery = NULL };
}

pawl_status pawl__delivery_names(struct pawl_delivery *delivery,
                                 struct pawl__arena *arena,
                                 const char ***ret_names,
                                 size_t *ret_count,
                                 pawl_error *reterr)
{
    size_t count = 0;

    pawl__lock(&delivery->lock);
    const char **names = pawl__arena_take(arena, (delivery->runner_count + 1) * sizeof(*names));
    bool fits = names != NULL;
    for (struct delivery_runner *runner = delivery->runners; fits && runner != NULL;
         runner = runner->next) {
        pawl_view name = runner->declared.is.name;
        fits = pawl__arena_copy(arena, name, &name);
        names[count++] = name.data;
    }
    pawl__unlock(&delivery->lock);
    if (!fits) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for names of pipelines");
    }
    *ret_names = names;
    *ret_count = count;
    return PAWL_OK;
}

/* --- the source --- */

static pawl_status check_open(struct pawl_delivery *delivery, pawl_error *reterr)
{
    pawl__lock(&delivery->lock);
    bool is_closing = delivery->is_closing;
    pawl__unlock(&delivery->lock);
    return is_closing ? pawl__fail(reterr, PAWL_CLOSED, "closed meanwhile") : PAWL_OK;
}

struct walk {
    struct delivery_observer *observer;
    uint64_t from;
    uint64_t to;
    delivery_messages_visitor *visitor;
    void *context;
    unsigned empty; /* fetches in a row */
    bool is_over;
};

/* Those of the range; a source may hand out others, and some of them twice. */
static pawl_status visit_batch(struct walk *walk,
                               const struct delivery_batch *batch,
                               pawl_error *reterr)
{
    size_t first = 0;

    while (first < batch->count && batch->messages[first].place.sequence < walk->from) {
        first++;
    }
    size_t end = first;
    while (end < batch->count && batch->messages[end].place.sequence <= walk->to) {
        end++;
    }
    if (end > first) {
        walk->from = batch->messages[end - 1].place.sequence + 1;
        TRY(walk->visitor(
            walk->context, &batch->messages[first], end - first, &walk->is_over, reterr));
    }
    walk->is_over |= end < batch->count || walk->from > walk->to;
    return PAWL_OK;
}

static void note_empty(struct walk *walk)
{
    const struct delivery_observer *observer = walk->observer;
    size_t rest = 0;

    switch (observer->declared.kind) {
    case DELIVERY_KIND_FILE:
    case DELIVERY_KIND_STDIN:
        walk->is_over = pawl__delivery_file_is_at_end(observer->opened.source, &rest);
        break;
    case DELIVERY_KIND_LEDGER:
    case DELIVERY_KIND_HTTP:
        walk->is_over = true;
        break;
    case DELIVERY_KIND_NATS:
        walk->is_over = ++walk->empty >= EMPTY_MAX;
        break;
    }
}

static pawl_status walk_on(struct walk *walk, pawl_error *reterr)
{
    const struct delivery_fetch fetch = {
        .messages_max = FETCH_MESSAGES,
        .bytes_max = FETCH_BYTES,
        .wait_ns = walk->observer->declared.kind == DELIVERY_KIND_NATS ? (int64_t)WAIT_NS : 0,
    };
    struct delivery_source *source = walk->observer->opened.source;
    struct delivery_batch batch = { .count = 0 };

    TRY(check_open(walk->observer->delivery, reterr));
    TRY(source->ops->fetch(source, &fetch, &batch, reterr));
    if (batch.count == 0) {
        note_empty(walk);
        return PAWL_OK;
    }
    walk->empty = 0;
    TRY(visit_batch(walk, &batch, reterr));
    return source->ops->ack(source, batch.messages, batch.count, reterr);
}

pawl_status pawl__delivery_walk_source(struct delivery_observer *observer,
                                       int64_t created_ns,
                                       uint64_t from,
                                       uint64_t to,
                                       delivery_messages_visitor *visitor,
                                       void *context,
                                       struct delivery_stream_state *ret_state,
                                       pawl_error *reterr)
{
    struct walk walk = {
        .observer = observer, .from = from, .to = to, .visitor = visitor, .context = context
    };

    TRY(pawl__delivery_open_to_read(
        observer->delivery, &observer->declared, &observer->opened, reterr));
    struct delivery_source *source = observer->opened.source;
    TRY(source->ops->state(source, 0, ret_state, reterr));
    if (from > to || (created_ns != 0 && ret_state->created_ns != created_ns)) {
        return PAWL_OK;
    }
    if (observer->declared.kind == DELIVERY_KIND_NATS) {
        if (ret_state->first > to || ret_state->first > ret_state->last) {
            return PAWL_OK; /* it has forgotten all of them */
        }
        walk.from = MAX(from, ret_state->first);
        walk.to = MIN(to, ret_state->last);
    }
    TRY(source->ops->restart_at(source, walk.from, reterr));
    while (!walk.is_over) {
        TRY(walk_on(&walk, reterr));
    }
    return source->ops->state(source, 0, ret_state, reterr);
}

pawl_status pawl__delivery_show_progress(struct pawl_delivery *delivery,
                                         const pawl_watch *watch,
                                         uint64_t done,
                                         uint64_t total,
                                         pawl_error *reterr)
{
    if (watch == NULL || watch->progress == NULL) {
        return PAWL_OK;
    }
    INSIDE(delivery);
    return watch->progress(watch->context, done, total)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_CANCELLED, "interrupted");
}
