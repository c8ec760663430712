/* Appending: checked on the caller's thread, so that many check at once, written by the committer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/os/clock.h"
#include "base/thread/inside.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"

enum { ROW_BYTES = 256 }; /* about what an event costs beside its payload */

pawl_status pawl__ledger_batch_init(struct ledger_batch *batch,
                                    const pawl_event *events,
                                    size_t count,
                                    pawl_error *reterr)
{
    *batch = (struct ledger_batch){ .count = count };
    if (count > PAWL_LEDGER_BATCH_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a batch of %zu events, the limit is %d",
                          count,
                          PAWL_LEDGER_BATCH_MAX);
    }
    if (count <= 1) {
        batch->events = &batch->one_event;
        batch->results = &batch->one_result;
    } else {
        batch->events = malloc(count * sizeof(*batch->events));
        batch->results = calloc(count, sizeof(*batch->results));
    }
    if (batch->events == NULL || batch->results == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch of %zu events", count);
    }
    if (count > 0) {
        static const pawl_event defaults = PAWL_EVENT_INIT;
        NEED(events, reterr);
        TRY(pawl__take_sized_array(
            "event", events, count, &defaults, batch->events, sizeof(*events), reterr));
    }
    return PAWL_OK;
}

void pawl__ledger_batch_done(struct ledger_batch *batch)
{
    if (batch->events != &batch->one_event) {
        free(batch->events);
        free(batch->results);
    }
}

/* Of a copy the ledger's own kinds must be as the ledger writes them; others may not use these kinds. */
static pawl_status check_one(uint32_t payload_bytes_max,
                             const pawl_event *event,
                             bool is_copy,
                             pawl_error *reterr)
{
    uint32_t attempt;

    if (!is_copy) {
        TRY(pawl__ledger_event_check_kind(event, reterr));
    }
    TRY(pawl__ledger_event_check(event, payload_bytes_max, reterr));
    return is_copy && pawl__ledger_event_is_reserved(event)
               ? pawl__ledger_event_turn_attempt(event, &attempt, reterr)
               : PAWL_OK;
}

static pawl_status check_all(const pawl_ledger *ledger,
                             const struct ledger_batch *batch,
                             bool is_copy,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < batch->count; i++) {
        pawl_status status =
            check_one(ledger->options.payload_bytes_max, &batch->events[i], is_copy, reterr);
        if (status != PAWL_OK) {
            return pawl__ledger_event_name(reterr, batch->count, i, status);
        }
    }
    return PAWL_OK;
}

/* What the caller left out. */
static void fill_in(pawl_event *event, int64_t now_us)
{
    if (event->created_at_us == 0) {
        event->created_at_us = now_us;
    }
    if (event->schema_version == 0) {
        event->schema_version = 1;
    }
}

pawl_status pawl__ledger_batch_check(const pawl_ledger *ledger,
                                     struct ledger_batch *batch,
                                     pawl_error *reterr)
{
    int64_t now_us = pawl__wall_us(ledger->engine.clock);

    for (size_t i = 0; i < batch->count; i++) {
        fill_in(&batch->events[i], now_us);
    }
    return check_all(ledger, batch, false, reterr);
}

static void fill_request(const struct ledger_batch *batch, struct ledger_request *request)
{
    size_t bytes = 0;

    for (size_t i = 0; i < batch->count; i++) {
        bytes += batch->events[i].payload.len + ROW_BYTES;
    }
    request->events = batch->events;
    request->results = batch->results;
    request->count = batch->count;
    request->item.bytes = MIN(bytes, LEDGER_GROUP_BYTES_MAX);
}

pawl_status pawl__ledger_batch_submit(pawl_ledger *ledger,
                                      struct ledger_batch *batch,
                                      struct ledger_request *request,
                                      pawl_append_result *ret_results,
                                      pawl_error *reterr)
{
    if (batch->count == 0) {
        return PAWL_OK;
    }
    fill_request(batch, request);
    TRY(pawl__ledger_submit(ledger, request, reterr));
    pawl__give_sized_array(batch->results, batch->count, sizeof(*batch->results), ret_results);
    return PAWL_OK;
}

pawl_status pawl_ledger_append_many(pawl_ledger *ledger,
                                    const pawl_event *events,
                                    size_t count,
                                    pawl_append_result *ret_results,
                                    pawl_error *reterr)
{
    AUTO(pawl__ledger_batch_done) struct ledger_batch batch = { 0 };
    struct ledger_request request = { .kind = LEDGER_APPEND };

    NEED(ledger, reterr);
    TRY(pawl__check_sized("ret_results", ret_results, reterr));
    TRY(pawl__ledger_batch_init(&batch, events, count, reterr));
    TRY(pawl__ledger_batch_check(ledger, &batch, reterr));
    return pawl__ledger_batch_submit(ledger, &batch, &request, ret_results, reterr);
}

pawl_status pawl_ledger_append(pawl_ledger *ledger,
                               const pawl_event *event,
                               pawl_append_result *ret_result,
                               pawl_error *reterr)
{
    NEED(event, reterr);
    return pawl_ledger_append_many(ledger, event, 1, ret_result, reterr);
}

pawl_status pawl__ledger_copy(pawl_ledger *ledger,
                              const pawl_event *events,
                              size_t count,
                              pawl_append_result *ret_results,
                              pawl_error *reterr)
{
    AUTO(pawl__ledger_batch_done) struct ledger_batch batch = { 0 };
    struct ledger_request request = { .kind = LEDGER_COPY };

    TRY(pawl__ledger_batch_init(&batch, events, count, reterr));
    TRY(check_all(ledger, &batch, true, reterr));
    for (size_t i = 0; i < count; i++) {
        request.turn_events += pawl__ledger_event_is_reserved(&batch.events[i]);
    }
    return pawl__ledger_batch_submit(ledger, &batch, &request, ret_results, reterr);
}

/* --- without waiting --- */

struct async_append {
    struct ledger_request request;
    struct ledger_batch batch;
    struct pawl__arena texts;
    const struct pawl__commit *commit; /* whose thread answers */
    pawl_append_done done;
    void *context;
};

static void async_free(struct async_append *async)
{
    pawl__ledger_batch_done(&async->batch);
    pawl__arena_done(&async->texts);
    free(async);
}

static void answer_async(struct pawl__commit_item *item)
{
    struct async_append *async =
        (struct async_append *)((char *)item - offsetof(struct async_append, request.item));
    bool appended = item->outcome.status == PAWL_OK;
    INSIDE(async->commit);

    async->done(async->context,
                appended ? async->batch.results : NULL,
                appended ? async->batch.count : 0,
                &item->outcome);
    async_free(async);
}

/* The caller's texts end with its call. */
static pawl_status keep_texts(struct async_append *async, pawl_error *reterr)
{
    for (size_t i = 0; i < async->batch.count; i++) {
        pawl_event event = async->batch.events[i];

        if (!pawl__ledger_event_copy(&async->texts, &event, &async->batch.events[i])) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
        }
    }
    return PAWL_OK;
}

static pawl_status send_async(pawl_ledger *ledger,
                              struct async_append *async,
                              const pawl_event *events,
                              size_t count,
                              pawl_error *reterr)
{
    TRY(pawl__ledger_batch_init(&async->batch, events, count, reterr));
    TRY(pawl__ledger_batch_check(ledger, &async->batch, reterr));
    TRY(keep_texts(async, reterr));
    fill_request(&async->batch, &async->request);
    return pawl__engine_submit_async(&ledger->engine, &async->request.item, reterr);
}

pawl_status pawl_ledger_append_async(pawl_ledger *ledger,
                                     const pawl_event *events,
                                     size_t count,
                                     pawl_append_done done,
                                     void *context,
                                     pawl_error *reterr)
{
    NEED(ledger, events, done, reterr);
    if (count == 0) {
        return pawl__fail_detail(
            reterr, PAWL_INVALID, PAWL_DETAIL_OUT_OF_RANGE, "count: is 0, must be 1 or more");
    }
    struct async_append *async = calloc(1, sizeof(*async));
    if (async == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an append");
    }
    async->request.kind = LEDGER_APPEND;
    async->request.item.done = answer_async;
    async->request.item.outcome = (pawl_error)PAWL_ERROR_INIT;
    async->texts = (struct pawl__arena)ARENA_INIT;
    async->commit = ledger->engine.commit;
    async->done = done;
    async->context = context;
    pawl_status status = send_async(ledger, async, events, count, reterr);
    if (status != PAWL_OK) {
        async_free(async);
    }
    return status;
}

/* --- without a ledger --- */

pawl_status pawl_event_check(const pawl_event *event,
                             const pawl_ledger_options *options,
                             pawl_error *reterr)
{
    pawl_ledger_options read;
    pawl_event filled = PAWL_EVENT_INIT;

    NEED(event, reterr);
    TRY(pawl__take_sized("event", event, &filled, sizeof(filled), reterr));
    TRY(pawl__ledger_read_options(options, &read, reterr));
    fill_in(&filled, 0); /* any now is in range */
    return check_one(read.payload_bytes_max, &filled, false, reterr);
}
