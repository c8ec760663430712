#include "delivery/sources/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "delivery/core/identity.h"
#include "delivery/sources/in_flight.h"

enum { CREATED = 1, WAIT_MS_MAX = 600000 };

struct ledger_source {
    struct delivery_source base;
    struct delivery_ledger_options options;
    struct pawl__clock *clock;
    pawl_reader *reader;
    bool is_placed; /* restart_at has said where we are: until then there is no consumer */
    struct pawl__cancel_link cancel_link; /* from the token to the reader */
    struct delivery_in_flight in_flight;
};

static struct ledger_source *as_ledger(struct delivery_source *base)
{
    return (struct ledger_source *)base; /* base is its first member */
}

static int64_t stored_of(const pawl_event *event)
{
    pawl_view bytes = { (const char *)event->hash, sizeof(event->hash) };
    uint64_t number = 0;

    REQUIRE(pawl__view_take_u64be(&bytes, &number));
    return (int64_t)MAX(number >> 1, UINT64_C(1)); /* 0 means that nothing is known */
}

static void cancel_reader(void *context)
{
    pawl_reader_cancel(context);
}

static void close_reader(struct ledger_source *source)
{
    if (source->options.cancel != NULL) {
        pawl__cancel_unlink(source->options.cancel, &source->cancel_link);
    }
    pawl_reader_free(STEAL(source->reader));
}

static pawl_status open_reader(struct ledger_source *source, uint64_t from, pawl_error *reterr)
{
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader = NULL;

    options.from = from;
    options.complete_turns = source->options.complete_turns;
    TRY(pawl_reader_open(source->options.ledger, &options, &reader, reterr));
    close_reader(source);
    source->reader = reader;
    if (source->options.cancel != NULL) {
        pawl__cancel_link(source->options.cancel, &source->cancel_link, cancel_reader, reader);
    }
    pawl__delivery_in_flight_restart(&source->in_flight, from);
    return PAWL_OK;
}

/* --- fetch --- */

static pawl_status add_event(struct ledger_source *source,
                             const pawl_event *event,
                             pawl_error *reterr)
{
    char turn[24];
    snprintf(turn, sizeof(turn), "%lld", (long long)event->turn);
    const struct delivery_header headers[] = {
        { pawl_view_of(DELIVERY_HEADER_MESSAGE_ID), event->id },
        { pawl_view_of(DELIVERY_HEADER_RUN), event->run_id },
        { pawl_view_of(DELIVERY_HEADER_TURN), pawl_view_of(turn) },
        { pawl_view_of(DELIVERY_HEADER_ACTOR), event->actor },
    };
    struct delivery_message message = {
        .place = { CREATED, event->offset, stored_of(event) },
        .subject = event->kind,
        .headers = headers,
        .header_count = COUNT_OF(headers),
        .payload = event->payload,
    };

    return pawl__delivery_in_flight_add(&source->in_flight, &message, reterr);
}

static bool is_own_kind(pawl_view kind)
{
    static const pawl_view own = { "pawl.", 5 };
    pawl_view start = { kind.data, MIN(kind.len, own.len) };

    return pawl__view_equal(start, own);
}

static pawl_status add_events(struct ledger_source *source,
                              const struct delivery_fetch *limits,
                              pawl_error *reterr)
{
    while (!pawl__delivery_in_flight_is_full(&source->in_flight, limits)) {
        const pawl_event *event = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl_reader_next(source->reader, &event, &error);
        if (status == PAWL_NOT_FOUND) {
            pawl__delivery_in_flight_pass(&source->in_flight, pawl_reader_position(source->reader));
            return PAWL_OK;
        }
        if (status != PAWL_OK) {
            return source->in_flight.batch_count > 0 ? PAWL_OK
                                                     : pawl__fail_with(reterr, status, &error);
        }
        if (is_own_kind(event->kind)) {
            pawl__delivery_in_flight_pass(&source->in_flight, event->offset);
        } else {
            TRY(add_event(source, event, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status fetch_now(struct ledger_source *source,
                             const struct delivery_fetch *limits,
                             pawl_error *reterr)
{
    pawl__delivery_in_flight_begin(&source->in_flight);
    TRY(pawl__delivery_in_flight_add_due(
        &source->in_flight, limits, pawl__monotonic_ns(source->clock), reterr));
    return add_events(source, limits, reterr);
}

static pawl_status fetch(struct delivery_source *base,
                         const struct delivery_fetch *limits,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr)
{
    struct ledger_source *source = as_ledger(base);
    int64_t until_ns = pawl__monotonic_ns(source->clock) + limits->wait_ns;

    TRY(fetch_now(source, limits, reterr));
    while (source->in_flight.batch_count == 0 && pawl__monotonic_ns(source->clock) < until_ns) {
        int64_t left_ms = (until_ns - pawl__monotonic_ns(source->clock)) / NS_PER_MS + 1;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl_reader_wait(
            source->reader, (uint32_t)MIN(MAX(left_ms, INT64_C(1)), (int64_t)WAIT_MS_MAX), &error);
        if (status == PAWL_TIMEOUT) {
            break;
        }
        if (status != PAWL_OK) {
            return pawl__fail_with(reterr, status, &error);
        }
        TRY(fetch_now(source, limits, reterr));
    }
    *ret_batch = pawl__delivery_in_flight_batch(&source->in_flight);
    return PAWL_OK;
}

static pawl_status ack(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr)
{
    (void)reterr;
    pawl__delivery_in_flight_ack(&as_ledger(base)->in_flight, messages, count);
    return PAWL_OK;
}

static pawl_status nak(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr)
{
    struct ledger_source *source = as_ledger(base);

    (void)reterr;
    pawl__delivery_in_flight_nak(
        &source->in_flight, messages, count, pawl__monotonic_ns(source->clock) + delay_ns);
    return PAWL_OK;
}

/* --- state --- */

static pawl_status add_probe(struct ledger_source *source,
                             uint64_t probe,
                             struct delivery_stream_state *state,
                             pawl_error *reterr)
{
    pawl_event *event = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (probe == 0 || probe > state->last) {
        return PAWL_OK;
    }
    pawl_status status =
        pawl_ledger_get(source->options.ledger, pawl_view_of(""), probe, &event, &error);
    if (status != PAWL_OK) {
        return status == PAWL_NOT_FOUND ? PAWL_OK : pawl__fail_with(reterr, status, &error);
    }
    state->probe_found = true;
    state->probe_stored_ns = stored_of(event);
    pawl_event_free(event);
    return PAWL_OK;
}

static pawl_status state(struct delivery_source *base,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr)
{
    struct ledger_source *source = as_ledger(base);
    struct delivery_stream_state now = {
        .created_ns = CREATED,
        .first = 1,
        .consumer_found = source->is_placed,
        .consumer_created_ns = CREATED,
        .delivered = source->in_flight.handed_out,
        .acked_to = pawl__delivery_in_flight_acked_to(&source->in_flight),
    };

    TRY(pawl_ledger_latest_offset(source->options.ledger, &now.last, reterr));
    TRY(add_probe(source, probe, &now, reterr));
    *ret_state = now;
    return PAWL_OK;
}

static pawl_status restart_at(struct delivery_source *base, uint64_t sequence, pawl_error *reterr)
{
    struct ledger_source *source = as_ledger(base);

    TRY(open_reader(source, MAX(sequence, UINT64_C(1)) - 1, reterr));
    source->is_placed = true;
    return PAWL_OK;
}

/* --- open and close --- */

static void close_ledger(struct delivery_source *base)
{
    struct ledger_source *source = as_ledger(base);

    close_reader(source);
    pawl__delivery_in_flight_done(&source->in_flight);
    free(source);
}

static void close_p(struct ledger_source **source)
{
    if (*source != NULL) {
        close_ledger(&(*source)->base);
    }
}

pawl_status pawl__delivery_ledger_open(const struct delivery_ledger_options *options,
                                       struct delivery_source **ret_source,
                                       pawl_error *reterr)
{
    static const struct delivery_source_ops ops = {
        .fetch = fetch,
        .ack = ack,
        .nak = nak,
        .state = state,
        .restart_at = restart_at,
        .close = close_ledger,
    };
    AUTO(close_p) struct ledger_source *source = NULL;

    NEED(options, reterr);
    NEED(options->ledger, reterr);
    NEED(ret_source, reterr);
    source = calloc(1, sizeof(*source));
    TRY(pawl__check_memory(source, "a source", reterr));
    source->base = (struct delivery_source){ .ops = &ops, .may_skip = true }; /* its own kinds */
    source->options = *options;
    source->clock = pawl__clock_or_real(options->clock);
    TRY(open_reader(source, 0, reterr));
    *ret_source = &STEAL(source)->base;
    return PAWL_OK;
}
