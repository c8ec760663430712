#include "delivery/sources/jetstream.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/grow.h"
#include "net/nats/fetch.h"
#include "net/nats/stream.h"
#include "net/nats/truth.h"

/* A message that was handed out and not yet answered for: its handle is its slot, and above HANDLE_BITS which
 * consumer it came from. The batch it was in may be gone by then. */
struct held {
    char *reply; /* NULL: free */
    uint64_t sequence;
    size_t next_free;
};

enum { HANDLE_BITS = 32 };
#define HELD_NONE SIZE_MAX

struct jetstream {
    struct delivery_source base;
    struct delivery_jetstream_options options;
    struct pawl__nats_consumer_need need;
    struct pawl__clock *clock;
    struct pawl__nats *nats;
    struct pawl__nats_fetcher *fetcher; /* NULL: opened by the next fetch */
    int64_t created_ns;                 /* of the stream, when it was last looked at */

    struct pawl__nats_batch native;
    struct delivery_message *messages;
    size_t message_room;
    struct delivery_header *headers; /* of all messages of the batch */
    size_t header_count;
    size_t header_room;

    struct held *held;
    size_t held_count; /* slots, used and free */
    size_t held_room;
    size_t held_used;
    size_t free_slot; /* HELD_NONE: none */
    uint64_t incarnation;
};

static struct jetstream *as_jetstream(struct delivery_source *base)
{
    return (struct jetstream *)base; /* base is its first member */
}

/* --- handles --- */

static void forget_held(struct jetstream *source)
{
    for (size_t i = 0; i < source->held_count; i++) {
        free(source->held[i].reply);
    }
    source->held_count = 0;
    source->held_used = 0;
    source->free_slot = HELD_NONE;
    source->incarnation++;
}

static pawl_status hold(struct jetstream *source,
                        const struct pawl__nats_message *message,
                        uint64_t *ret_handle,
                        pawl_error *reterr)
{
    size_t slot = source->free_slot;
    char *reply = strdup(message->reply);

    TRY(pawl__check_memory(reply, "a message", reterr));
    if (slot == HELD_NONE) {
        struct held *held =
            pawl__grow(source->held, source->held_count, &source->held_room, sizeof(*held));
        if (held == NULL) {
            free(reply);
            return pawl__check_memory(held, "a message", reterr);
        }
        source->held = held;
        slot = source->held_count++;
    } else {
        source->free_slot = source->held[slot].next_free;
    }
    source->held[slot] = (struct held){ .reply = reply, .sequence = message->sequence };
    source->held_used++;
    *ret_handle = source->incarnation << HANDLE_BITS | slot;
    return PAWL_OK;
}

/* NULL: answered for before, or of a consumer that is gone. */
static struct held *held_of(struct jetstream *source, uint64_t handle)
{
    size_t slot = handle & UINT32_MAX;
    bool is_ours = handle >> HANDLE_BITS == (source->incarnation & UINT32_MAX)
                   && slot < source->held_count && source->held[slot].reply != NULL;

    return is_ours ? &source->held[slot] : NULL;
}

static void release(struct jetstream *source, struct held *held)
{
    free(held->reply);
    *held = (struct held){ .next_free = source->free_slot };
    source->free_slot = (size_t)(held - source->held);
    source->held_used--;
}

/* --- the connection --- */

/* One that was closed for good, because the server refused us, is opened again: somebody may have mended that. */
static pawl_status ensure_connected(struct jetstream *source, pawl_error *reterr)
{
    struct pawl__nats *nats = NULL;

    if (source->nats != NULL && pawl__nats_state(source->nats) != PAWL__NATS_CLOSED) {
        return PAWL_OK;
    }
    TRY(pawl__nats_open(source->options.url, source->options.connection, &nats, reterr));
    pawl__nats_fetcher_close(STEAL(source->fetcher));
    pawl__nats_batch_done(&source->native);
    pawl__nats_close(source->nats);
    source->nats = nats;
    forget_held(source);
    return PAWL_OK;
}

/* What source.h calls a connection that is gone: the pipeline looks at the stream before it fetches again. */
static pawl_status gone(pawl_status status, pawl_error *reterr)
{
    return status == PAWL_NOT_FOUND
               ? pawl__fail_context(reterr, PAWL_UNAVAILABLE, "the consumer is gone")
               : status;
}

static pawl_status ensure_fetcher(struct jetstream *source, pawl_error *reterr)
{
    TRY(ensure_connected(source, reterr));
    return source->fetcher != NULL ? PAWL_OK
                                   : gone(pawl__nats_fetcher_open(source->nats,
                                                                  source->options.stream,
                                                                  source->options.consumer,
                                                                  &source->fetcher,
                                                                  reterr),
                                          reterr);
}

/* --- fetch --- */

static pawl_status add_header(void *context, pawl_view name, pawl_view value, pawl_error *reterr)
{
    struct jetstream *source = context;
    struct delivery_header *headers =
        pawl__grow(source->headers, source->header_count, &source->header_room, sizeof(*headers));

    TRY(pawl__check_memory(headers, "headers", reterr));
    source->headers = headers;
    headers[source->header_count++] = (struct delivery_header){ name, value };
    return PAWL_OK;
}

/* Headers that cannot be read are none: the payload is what counts, and it must not stop the pipeline. More than
 * DELIVERY_HEADERS_MAX are cut. */
static pawl_status add_message(struct jetstream *source, size_t index, pawl_error *reterr)
{
    const struct pawl__nats_message *native = &source->native.messages[index];
    struct delivery_message *messages =
        pawl__grow(source->messages, index, &source->message_room, sizeof(*messages));
    size_t first_header = source->header_count;

    TRY(pawl__check_memory(messages, "a batch", reterr));
    source->messages = messages;
    messages[index] = (struct delivery_message){
        .place = { source->created_ns, native->sequence, native->stored_ns },
        .subject = native->subject,
        .payload = native->payload,
    };
    if (!native->headers_unreadable) {
        TRY(pawl__nats_message_headers(native, add_header, source, reterr));
    }
    messages[index].header_count =
        MIN(source->header_count - first_header, (size_t)DELIVERY_HEADERS_MAX);
    source->header_count = first_header + messages[index].header_count;
    return hold(source, native, &messages[index].handle, reterr);
}

/* The array of headers may have moved while it grew. */
static void point_to_headers(struct jetstream *source)
{
    size_t at = 0;

    for (size_t i = 0; i < source->native.count; i++) {
        source->messages[i].headers =
            source->messages[i].header_count == 0 ? NULL : &source->headers[at];
        at += source->messages[i].header_count;
    }
}

static pawl_status hand_out(struct jetstream *source,
                            struct delivery_batch *ret_batch,
                            pawl_error *reterr)
{
    source->header_count = 0;
    for (size_t i = 0; i < source->native.count; i++) {
        TRY(add_message(source, i, reterr));
    }
    point_to_headers(source);
    *ret_batch = (struct delivery_batch){ source->messages, source->native.count };
    return PAWL_OK;
}

/* How many more the server would send. Messages that nobody answered for come again and are held twice: when we seem
 * to be full, the server says how many it waits for. Forgetting them all is safe: those come again. */
static pawl_status find_room(struct jetstream *source, size_t *ret_room, pawl_error *reterr)
{
    size_t max = (size_t)source->need.max_ack_pending;
    struct pawl__nats_consumer consumer;

    if (source->held_used >= max) {
        TRY(gone(
            pawl__nats_consumer_info(
                source->nats, source->options.stream, source->options.consumer, &consumer, reterr),
            reterr));
        if (consumer.ack_pending < (int64_t)source->held_used) {
            forget_held(source);
        }
    }
    *ret_room = max - MIN(source->held_used, max);
    return PAWL_OK;
}

static pawl_status fetch(struct delivery_source *base,
                         const struct delivery_fetch *limits,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr)
{
    struct jetstream *source = as_jetstream(base);
    int64_t wait_ms =
        MIN((limits->wait_ns + NS_PER_MS - 1) / NS_PER_MS, (int64_t)PAWL__NATS_EXPIRES_MS_MAX);
    size_t room = 0;

    pawl__nats_batch_done(&source->native);
    TRY(ensure_fetcher(source, reterr));
    TRY(find_room(source, &room, reterr));
    struct pawl__nats_request request = {
        .batch_max = (int)MIN(MIN(limits->messages_max, room), (size_t)PAWL__NATS_BATCH_MAX),
        .bytes_max = (int64_t)MIN(limits->bytes_max, (size_t)INT64_MAX),
        .expires_ms = (int)MAX(wait_ms, INT64_C(0)),
        .cancel = source->options.cancel,
    };
    if (request.batch_max > 0) {
        TRY(gone(pawl__nats_fetch(source->fetcher, &request, &source->native, reterr), reterr));
    }
    return hand_out(source, ret_batch, reterr);
}

/* --- ack, nak --- */

struct answer {
    bool is_ack;
    int64_t delay_ns;
};

static pawl_status answer_all(struct jetstream *source,
                              const struct delivery_message *messages,
                              size_t count,
                              struct answer answer,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct held *held = held_of(source, messages[i].handle);
        if (held == NULL || source->fetcher == NULL) {
            continue;
        }
        struct pawl__nats_message message = { .reply = held->reply, .sequence = held->sequence };
        pawl_status status =
            answer.is_ack ? pawl__nats_ack(source->fetcher, &message, reterr)
                          : pawl__nats_nak(source->fetcher, &message, answer.delay_ns, reterr);
        release(source, held);
        TRY(status);
    }
    return PAWL_OK;
}

static pawl_status ack(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr)
{
    return answer_all(
        as_jetstream(base), messages, count, (struct answer){ .is_ack = true }, reterr);
}

static pawl_status nak(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr)
{
    return answer_all(
        as_jetstream(base), messages, count, (struct answer){ .delay_ns = delay_ns }, reterr);
}

/* --- state --- */

static pawl_status add_probe(struct jetstream *source,
                             uint64_t probe,
                             struct delivery_stream_state *state,
                             pawl_error *reterr)
{
    struct pawl__nats_stored stored = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    if (probe < MAX(state->first, UINT64_C(1)) || probe > state->last) {
        return PAWL_OK;
    }
    pawl_status status =
        pawl__nats_stream_get(source->nats, source->options.stream, probe, &stored, &error);
    state->probe_found = status == PAWL_OK;
    state->probe_stored_ns = stored.stored_ns;
    pawl__nats_stored_done(&stored);
    /* Deleted alone, or since we asked: not there. */
    return status == PAWL_OK || status == PAWL_NOT_FOUND ? PAWL_OK
                                                         : pawl__fail_with(reterr, status, &error);
}

static pawl_status add_consumer(struct jetstream *source,
                                struct delivery_stream_state *state,
                                pawl_error *reterr)
{
    struct pawl__nats_consumer consumer;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__nats_consumer_info(
        source->nats, source->options.stream, source->options.consumer, &consumer, &error);

    if (status == PAWL_NOT_FOUND) {
        return PAWL_OK;
    }
    if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    struct pawl__nats_differences found = pawl__nats_compare_consumer(&consumer, &source->need);
    TRY(pawl__nats_refuse(&found, "consumer", source->options.consumer, reterr));
    state->consumer_found = true;
    state->consumer_created_ns = consumer.created_ns;
    state->delivered = consumer.delivered_seq;
    state->acked_to = consumer.ack_pending == 0 ? consumer.delivered_seq : consumer.ack_floor_seq;
    return PAWL_OK;
}

static pawl_status state(struct delivery_source *base,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr)
{
    struct jetstream *source = as_jetstream(base);
    struct pawl__nats_stream stream;
    struct delivery_stream_state now = { 0 };

    TRY(ensure_connected(source, reterr));
    TRY(pawl__nats_stream_info(source->nats, source->options.stream, &stream, reterr));
    now.created_ns = stream.created_ns;
    now.last = stream.last_seq;
    now.first = stream.messages == 0 ? stream.last_seq + 1 : stream.first_seq;
    now.age_max_ns = MAX(stream.max_age_ns, INT64_C(0));
    now.oldest_age_ns =
        stream.messages == 0
            ? 0
            : MAX(pawl__wall_us(source->clock) * NS_PER_US - stream.first_ns, INT64_C(1));
    TRY(add_probe(source, probe, &now, reterr));
    TRY(add_consumer(source, &now, reterr));
    source->created_ns = stream.created_ns;
    *ret_state = now;
    return PAWL_OK;
}

static pawl_status restart_at(struct delivery_source *base, uint64_t sequence, pawl_error *reterr)
{
    struct jetstream *source = as_jetstream(base);

    TRY(ensure_connected(source, reterr));
    /* Messages of the consumer that was are still on their way to its fetcher. */
    pawl__nats_fetcher_close(STEAL(source->fetcher));
    forget_held(source);
    return pawl__nats_consumer_recreate(
        source->nats, source->options.stream, &source->need, sequence, NULL, reterr);
}

/* --- open and close --- */

static void close_jetstream(struct delivery_source *base)
{
    struct jetstream *source = as_jetstream(base);

    pawl__nats_batch_done(&source->native);
    pawl__nats_fetcher_close(source->fetcher);
    if (source->options.is_temporary && source->nats != NULL) {
        /* Else the next reader of its kind takes it over. */
        (void)!pawl__nats_consumer_delete(
            source->nats, source->options.stream, source->options.consumer, NULL);
    }
    pawl__nats_close(source->nats);
    forget_held(source);
    free(source->held);
    free(source->messages);
    free(source->headers);
    free(source);
}

static void close_p(struct jetstream **source)
{
    if (*source != NULL) {
        close_jetstream(&(*source)->base);
    }
}

static pawl_status bind_stream(struct jetstream *source, pawl_error *reterr)
{
    const struct delivery_jetstream_options *options = &source->options;
    struct pawl__nats_stream stream;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__nats_stream_info(source->nats, options->stream, &stream, &error);

    if (status == PAWL_NOT_FOUND && options->create_stream) {
        struct pawl__nats_stream_options made = { .subjects = options->subjects,
                                                  .subject_count = options->subject_count };
        TRY(pawl__nats_stream_create(source->nats, options->stream, &made, &stream, reterr));
    } else if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    struct pawl__nats_differences found = pawl__nats_check_stream(&stream);
    return pawl__nats_refuse(&found, "stream", options->stream, reterr);
}

pawl_status pawl__delivery_jetstream_open(const struct delivery_jetstream_options *options,
                                          struct delivery_source **ret_source,
                                          pawl_error *reterr)
{
    static const struct delivery_source_ops ops = {
        .fetch = fetch,
        .ack = ack,
        .nak = nak,
        .state = state,
        .restart_at = restart_at,
        .close = close_jetstream,
    };
    AUTO(close_p) struct jetstream *source = NULL;
    struct delivery_stream_state seen;

    NEED(options, reterr);
    NEED(ret_source, reterr);
    source = calloc(1, sizeof(*source));
    TRY(pawl__check_memory(source, "a source", reterr));
    /* Messages can be deleted alone, and a filter leaves some out. */
    source->base = (struct delivery_source){ .ops = &ops, .may_skip = true };
    source->options = *options;
    source->clock = pawl__clock_or_real(options->clock);
    source->free_slot = HELD_NONE;
    source->need = (struct pawl__nats_consumer_need){
        .name = options->consumer,
        .filter = options->filter,
        .max_ack_pending =
            options->max_ack_pending == 0 ? PAWL__NATS_ACK_PENDING_MAX : options->max_ack_pending,
    };
    TRY(ensure_connected(source, reterr));
    TRY(bind_stream(source, reterr));
    TRY(state(&source->base, 0, &seen, reterr));
    *ret_source = &STEAL(source)->base;
    return PAWL_OK;
}
