/* Appending: checked on the caller's thread, so that many check at once, written by the committer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "ledger/event.h"
#include "ledger/ledger_internal.h"

static void fill_in(const pawl_event *given, int64_t now_us, pawl_event *ret_event)
{
    *ret_event = *given;
    if (ret_event->created_at_us == 0) {
        ret_event->created_at_us = now_us;
    }
    if (ret_event->schema_version == 0) {
        ret_event->schema_version = 1;
    }
}

pawl_status pawl__ledger_prepare(const pawl_ledger *ledger,
                                 const pawl_event *given,
                                 size_t count,
                                 int64_t now_us,
                                 pawl_event *ret_events,
                                 size_t *ret_bytes,
                                 pawl_error *reterr)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        fill_in(&given[i], now_us, &ret_events[i]);
        pawl_status status =
            pawl__event_check(&ret_events[i], ledger->options.payload_bytes_max, reterr);
        if (status == PAWL_OK) {
            status = pawl__event_check_kind(&ret_events[i], reterr);
        }
        if (status != PAWL_OK) {
            return count == 1 ? status : pawl__fail_context(reterr, status, "event %zu", i);
        }
        bytes += ret_events[i].payload.len + 256;
    }
    *ret_bytes = MIN(bytes, (size_t)LEDGER_GROUP_BYTES_MAX);
    return PAWL_OK;
}

/* What one call needs while it waits: the events with their defaults, and answers that reach the
 * caller only when all of it is durable. A single event needs no allocation. */
struct append {
    pawl_event *events;
    pawl_append_result *results;
    pawl_event one_event;
    pawl_append_result one_result;
};

static void append_done(struct append *append)
{
    if (append->events != &append->one_event) {
        free(append->events);
        free(append->results);
    }
}

static pawl_status append_init(struct append *append, size_t count, pawl_error *reterr)
{
    append->events = &append->one_event;
    append->results = &append->one_result;
    if (count > 1) {
        append->events = calloc(count, sizeof(*append->events));
        append->results = calloc(count, sizeof(*append->results));
        if (append->events == NULL || append->results == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch of %zu events", count);
        }
    }
    return PAWL_OK;
}

pawl_status pawl_ledger_append_many(pawl_ledger *ledger,
                                    const pawl_event *events,
                                    size_t count,
                                    pawl_append_result *ret_results,
                                    pawl_error *reterr)
{
    if (ledger == NULL || (events == NULL && count > 0)) {
        return pawl__fail(reterr, PAWL_INVALID, "ledger or events: is NULL");
    }
    if (count > PAWL_LEDGER_BATCH_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a batch of %zu events, the limit is %d",
                          count,
                          PAWL_LEDGER_BATCH_MAX);
    }
    if (count == 0) {
        return PAWL_OK;
    }
    AUTO(append_done) struct append append = { NULL, NULL, { 0 }, { 0 } };
    struct ledger_request request = { .kind = LEDGER_APPEND, .count = count };
    pawl_status status = append_init(&append, count, reterr);
    if (status == PAWL_OK) {
        status = pawl__ledger_prepare(ledger,
                                      events,
                                      count,
                                      pawl__wall_us(pawl__clock_real()),
                                      append.events,
                                      &request.item.bytes,
                                      reterr);
    }
    request.events = append.events;
    request.results = append.results;
    if (status == PAWL_OK) {
        status = pawl__ledger_submit(ledger, &request, reterr);
    }
    if (status == PAWL_OK && ret_results != NULL) {
        memcpy(ret_results, append.results, count * sizeof(*ret_results));
    }
    return status;
}

pawl_status pawl_ledger_append(pawl_ledger *ledger,
                               const pawl_event *event,
                               pawl_append_result *ret_result,
                               pawl_error *reterr)
{
    return pawl_ledger_append_many(ledger, event, 1, ret_result, reterr);
}
