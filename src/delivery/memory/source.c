#include "delivery/memory/source.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/grow.h"

static struct delivery_memory_source *as_memory(struct delivery_source *source)
{
    return (struct delivery_memory_source *)source; /* base is its first member */
}

enum { SEQUENCE_BITS = 40 }; /* of a handle; above them the incarnation */

static struct delivery_memory_message *message_at(const struct delivery_memory_source *source,
                                                  uint64_t sequence)
{
    bool is_there = sequence >= source->first && sequence <= source->last && sequence > 0;

    return is_there ? &source->messages[sequence - 1] : NULL;
}

const struct delivery_entry *pawl__delivery_memory_at(const struct delivery_memory_source *source,
                                                      uint64_t sequence)
{
    const struct delivery_memory_message *message = message_at(source, sequence);

    return message == NULL ? NULL : &message->stored->entry;
}

static struct delivery_message as_message(const struct delivery_memory_source *source,
                                          const struct delivery_entry *entry)
{
    return (struct delivery_message){
        .place = entry->place,
        .subject = entry->subject,
        .headers = entry->headers,
        .header_count = entry->header_count,
        .payload = entry->payload,
        .handle = source->incarnation << SEQUENCE_BITS | entry->place.sequence,
    };
}

/* --- the consumer --- */

/* A message is sent for the first time in the order of the stream, and never below what was delivered before: a
 * stream that lost its tail and grew again has messages there that this consumer does not see. */
static bool is_due(const struct delivery_memory_source *source, uint64_t sequence, int64_t now_ns)
{
    const struct delivery_memory_message *message = &source->messages[sequence - 1];

    return message->is_sent ? !message->is_acked && now_ns >= message->again_ns
                            : sequence > source->delivered;
}

static pawl_status add_to_batch(struct delivery_memory_source *source,
                                size_t count,
                                uint64_t sequence,
                                pawl_error *reterr)
{
    struct delivery_message *batch =
        pawl__grow(source->batch, count, &source->batch_room, sizeof(*batch));

    TRY(pawl__check_memory(batch, "a batch", reterr));
    source->batch = batch;
    batch[count] = as_message(source, &source->messages[sequence - 1].stored->entry);
    return PAWL_OK;
}

static pawl_status fetch(struct delivery_source *base,
                         const struct delivery_fetch *limits,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr)
{
    struct delivery_memory_source *source = as_memory(base);
    int64_t now_ns = pawl__monotonic_ns(source->clock);
    size_t bytes = 0;
    size_t count = 0;

    if (!source->has_consumer) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "the consumer is gone");
    }
    for (uint64_t s = MAX(source->first, UINT64_C(1)); s <= source->last; s++) {
        if (count == limits->messages_max || bytes >= limits->bytes_max) {
            break;
        }
        if (is_due(source, s, now_ns)) {
            struct delivery_memory_message *message = &source->messages[s - 1];
            TRY(add_to_batch(source, count++, s, reterr));
            bytes += message->stored->entry.payload.len;
            message->is_sent = true;
            message->again_ns = now_ns + source->ack_wait_ns;
            source->delivered = MAX(source->delivered, s);
        }
    }
    *ret_batch = (struct delivery_batch){ source->batch, count };
    return PAWL_OK;
}

static struct delivery_memory_message *of_handle(struct delivery_memory_source *source,
                                                 uint64_t handle)
{
    if (handle >> SEQUENCE_BITS != source->incarnation) {
        return NULL;
    }
    return message_at(source, handle & ((UINT64_C(1) << SEQUENCE_BITS) - 1));
}

static pawl_status ack(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr)
{
    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        struct delivery_memory_message *message = of_handle(as_memory(base), messages[i].handle);
        if (message != NULL) {
            message->is_acked = true;
        }
    }
    return PAWL_OK;
}

static pawl_status nak(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr)
{
    struct delivery_memory_source *source = as_memory(base);

    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        struct delivery_memory_message *message = of_handle(source, messages[i].handle);
        if (message != NULL && !message->is_acked) {
            message->again_ns = pawl__monotonic_ns(source->clock) + delay_ns;
        }
    }
    return PAWL_OK;
}

static uint64_t acked_to(const struct delivery_memory_source *source)
{
    uint64_t to = source->first - 1;

    while (to < source->delivered && to < source->last && source->messages[to].is_acked) {
        to++;
    }
    return to;
}

static pawl_status state(struct delivery_source *base,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr)
{
    struct delivery_memory_source *source = as_memory(base);
    const struct delivery_entry *probed = pawl__delivery_memory_at(source, probe);

    (void)reterr;
    *ret_state = (struct delivery_stream_state){
        .created_ns = source->created_ns,
        .first = source->first,
        .last = source->last,
        .probe_found = probed != NULL,
        .probe_stored_ns = probed == NULL ? 0 : probed->place.stored_ns,
        .consumer_found = source->has_consumer,
        .consumer_created_ns = (int64_t)source->incarnation,
        .delivered = source->delivered,
        .acked_to = acked_to(source),
    };
    return PAWL_OK;
}

static pawl_status restart_at(struct delivery_source *base, uint64_t sequence, pawl_error *reterr)
{
    struct delivery_memory_source *source = as_memory(base);

    (void)reterr;
    for (uint64_t s = 1; s <= source->last; s++) {
        source->messages[s - 1].is_sent = s < sequence;
        source->messages[s - 1].is_acked = s < sequence;
    }
    source->has_consumer = true;
    source->delivered = MAX(sequence, UINT64_C(1)) - 1;
    source->incarnation++;
    return PAWL_OK;
}

static void close_nothing(struct delivery_source *base)
{
    (void)base;
}

/* --- the stream --- */

struct delivery_memory_source pawl__delivery_memory_source(struct pawl__clock *clock,
                                                           int64_t created_ns,
                                                           int64_t ack_wait_ns)
{
    static const struct delivery_source_ops ops = {
        .fetch = fetch,
        .ack = ack,
        .nak = nak,
        .state = state,
        .restart_at = restart_at,
        .close = close_nothing,
    };
    return (struct delivery_memory_source){
        .base = { .ops = &ops },
        .clock = clock,
        .ack_wait_ns = ack_wait_ns,
        .created_ns = created_ns,
        .first = 1,
    };
}

void pawl__delivery_memory_source_done(struct delivery_memory_source *source)
{
    for (uint64_t s = 1; s <= source->last; s++) {
        pawl__delivery_stored_drop(source->messages[s - 1].stored);
    }
    free(source->messages);
    free(source->batch);
    *source = pawl__delivery_memory_source(source->clock, source->created_ns, source->ack_wait_ns);
}

pawl_status pawl__delivery_memory_publish(struct delivery_memory_source *source,
                                          const struct delivery_message *message,
                                          uint64_t *ret_sequence,
                                          pawl_error *reterr)
{
    struct delivery_memory_message *messages =
        pawl__grow(source->messages, source->last, &source->room, sizeof(*messages));
    struct delivery_entry entry = {
        .place = { source->created_ns, source->last + 1, message->place.stored_ns },
        .subject = message->subject,
        .headers = message->headers,
        .header_count = message->header_count,
        .payload = message->payload,
    };

    TRY(pawl__check_memory(messages, "a message", reterr));
    source->messages = messages;
    messages[source->last] = (struct delivery_memory_message){ .is_sent = false };
    TRY(pawl__delivery_stored_new(&entry, &messages[source->last].stored, reterr));
    source->last++;
    *ret_sequence = source->last;
    return PAWL_OK;
}

void pawl__delivery_memory_purge(struct delivery_memory_source *source, uint64_t to)
{
    source->first = MAX(source->first, MIN(to, source->last) + 1);
}

void pawl__delivery_memory_roll_back(struct delivery_memory_source *source,
                                     uint64_t to,
                                     bool with_consumer)
{
    while (source->last > to) {
        pawl__delivery_stored_drop(source->messages[--source->last].stored);
    }
    source->first = MIN(source->first, source->last + 1);
    source->incarnation++;
    if (with_consumer) {
        source->delivered = MIN(source->delivered, to);
    }
}

void pawl__delivery_memory_recreate(struct delivery_memory_source *source, int64_t created_ns)
{
    pawl__delivery_memory_roll_back(source, 0, true);
    source->created_ns = created_ns;
    source->first = 1;
    source->has_consumer = false;
}
