/* Appending: checked on the caller's thread, so that many check at once, written by the committer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/os/clock.h"
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
        NEED(events, reterr);
        memcpy(batch->events, events, count * sizeof(*events));
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
static pawl_status check_one(const pawl_ledger *ledger,
                             const pawl_event *event,
                             bool is_copy,
                             pawl_error *reterr)
{
    uint32_t attempt;

    if (!is_copy) {
        TRY(pawl__ledger_event_check_kind(event, reterr));
    }
    TRY(pawl__ledger_event_check(event, ledger->options.payload_bytes_max, reterr));
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
        pawl_status status = check_one(ledger, &batch->events[i], is_copy, reterr);
        if (status != PAWL_OK) {
            return pawl__ledger_event_name(reterr, batch->count, i, status);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__ledger_batch_check(const pawl_ledger *ledger,
                                     struct ledger_batch *batch,
                                     pawl_error *reterr)
{
    int64_t now_us = pawl__wall_us(ledger->engine.clock);

    for (size_t i = 0; i < batch->count; i++) {
        pawl_event *event = &batch->events[i];
        if (event->created_at_us == 0) {
            event->created_at_us = now_us;
        }
        if (event->schema_version == 0) {
            event->schema_version = 1;
        }
    }
    return check_all(ledger, batch, false, reterr);
}

pawl_status pawl__ledger_batch_submit(pawl_ledger *ledger,
                                      struct ledger_batch *batch,
                                      struct ledger_request *request,
                                      pawl_append_result *ret_results,
                                      pawl_error *reterr)
{
    size_t bytes = 0;

    if (batch->count == 0) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < batch->count; i++) {
        bytes += batch->events[i].payload.len + ROW_BYTES;
    }
    request->events = batch->events;
    request->results = batch->results;
    request->count = batch->count;
    request->item.bytes = MIN(bytes, LEDGER_GROUP_BYTES_MAX);
    TRY(pawl__ledger_submit(ledger, request, reterr));
    if (ret_results != NULL) {
        memcpy(ret_results, batch->results, batch->count * sizeof(*ret_results));
    }
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
