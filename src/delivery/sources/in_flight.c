#include "delivery/sources/in_flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/grow.h"

enum {
    COMPACT_AT = 1024,  /* acknowledged items at the front, before the rest moves down */
    SEQUENCE_BITS = 40, /* of a handle; above them which start of the source it is from */
};
#define SEQUENCE_MASK ((UINT64_C(1) << SEQUENCE_BITS) - 1)

struct delivery_in_flight_item {
    struct delivery_message message; /* points into what follows */
    bool is_out;                     /* handed out, and neither answered for nor due again */
    bool is_acked;
    int64_t again_ns;
    struct delivery_header headers[];
};

static pawl_view copy_text(char **at, pawl_view text)
{
    pawl_view copy = { *at, text.len };

    if (text.len > 0) {
        memcpy(*at, text.data, text.len);
        *at = &(*at)[text.len];
    }
    return copy;
}

static size_t text_bytes(const struct delivery_message *message)
{
    size_t bytes = message->subject.len + message->payload.len;

    for (size_t i = 0; i < message->header_count; i++) {
        bytes += message->headers[i].name.len + message->headers[i].value.len;
    }
    return bytes;
}

static struct delivery_in_flight_item *item_new(const struct delivery_message *message)
{
    size_t fixed = sizeof(struct delivery_in_flight_item)
                   + message->header_count * sizeof(struct delivery_header);
    struct delivery_in_flight_item *item = malloc(fixed + text_bytes(message) + 1);

    if (item == NULL) {
        return NULL;
    }
    char *at = (char *)&item->headers[message->header_count];
    *item = (struct delivery_in_flight_item){ .message = *message, .is_out = true };
    for (size_t i = 0; i < message->header_count; i++) {
        item->headers[i].name = copy_text(&at, message->headers[i].name);
        item->headers[i].value = copy_text(&at, message->headers[i].value);
    }
    item->message.headers = item->headers;
    item->message.subject = copy_text(&at, message->subject);
    item->message.payload = copy_text(&at, message->payload);
    return item;
}

static void clear(struct delivery_in_flight *in_flight)
{
    for (size_t i = in_flight->first; i < in_flight->count; i++) {
        free(in_flight->items[i]);
    }
    in_flight->first = 0;
    in_flight->count = 0;
    in_flight->batch_count = 0;
}

static uint64_t handle_of(const struct delivery_in_flight *in_flight, uint64_t sequence)
{
    return in_flight->starts << SEQUENCE_BITS | (sequence & SEQUENCE_MASK);
}

void pawl__delivery_in_flight_done(struct delivery_in_flight *in_flight)
{
    clear(in_flight);
    free(in_flight->items);
    free(in_flight->batch);
    *in_flight = (struct delivery_in_flight){ .items = NULL };
}

void pawl__delivery_in_flight_restart(struct delivery_in_flight *in_flight, uint64_t sequence)
{
    clear(in_flight);
    in_flight->starts++;
    in_flight->handed_out = sequence;
    in_flight->highest_acked = 0;
}

void pawl__delivery_in_flight_pass(struct delivery_in_flight *in_flight, uint64_t sequence)
{
    in_flight->handed_out = MAX(in_flight->handed_out, sequence);
}

/* --- a batch --- */

void pawl__delivery_in_flight_begin(struct delivery_in_flight *in_flight)
{
    in_flight->batch_count = 0;
    in_flight->batch_bytes = 0;
}

bool pawl__delivery_in_flight_is_full(const struct delivery_in_flight *in_flight,
                                      const struct delivery_fetch *limits)
{
    return in_flight->batch_count >= limits->messages_max
           || in_flight->batch_bytes >= limits->bytes_max;
}

static pawl_status add_to_batch(struct delivery_in_flight *in_flight,
                                const struct delivery_in_flight_item *item,
                                pawl_error *reterr)
{
    struct delivery_message *batch = pawl__grow(
        in_flight->batch, in_flight->batch_count, &in_flight->batch_room, sizeof(*batch));

    TRY(pawl__check_memory(batch, "a batch", reterr));
    in_flight->batch = batch;
    batch[in_flight->batch_count++] = item->message;
    in_flight->batch_bytes += item->message.payload.len;
    return PAWL_OK;
}

pawl_status pawl__delivery_in_flight_add_due(struct delivery_in_flight *in_flight,
                                             const struct delivery_fetch *limits,
                                             int64_t now_ns,
                                             pawl_error *reterr)
{
    for (size_t i = in_flight->first;
         i < in_flight->count && !pawl__delivery_in_flight_is_full(in_flight, limits);
         i++) {
        struct delivery_in_flight_item *item = in_flight->items[i];
        if (!item->is_out && !item->is_acked && now_ns >= item->again_ns) {
            TRY(add_to_batch(in_flight, item, reterr));
            item->is_out = true;
        }
    }
    return PAWL_OK;
}

/* Moves the rest down when much of the array is free. */
static void compact(struct delivery_in_flight *in_flight)
{
    if (in_flight->first < COMPACT_AT || in_flight->first < in_flight->count / 2) {
        return;
    }
    in_flight->count -= in_flight->first;
    memmove(in_flight->items,
            &in_flight->items[in_flight->first],
            in_flight->count * sizeof(struct delivery_in_flight_item *));
    in_flight->first = 0;
}

pawl_status pawl__delivery_in_flight_add(struct delivery_in_flight *in_flight,
                                         const struct delivery_message *message,
                                         pawl_error *reterr)
{
    REQUIRE(message->place.sequence > in_flight->handed_out);
    compact(in_flight);
    struct delivery_in_flight_item **items =
        pawl__grow((void *)in_flight->items, in_flight->count, &in_flight->room, sizeof(*items));
    TRY(pawl__check_memory((void *)items, "a message", reterr));
    in_flight->items = items;
    struct delivery_in_flight_item *item = item_new(message);
    TRY(pawl__check_memory(item, "a message", reterr));
    item->message.handle = handle_of(in_flight, message->place.sequence);
    pawl_status status = add_to_batch(in_flight, item, reterr);
    if (status != PAWL_OK) {
        free(item);
        return status;
    }
    items[in_flight->count++] = item;
    in_flight->handed_out = message->place.sequence;
    return PAWL_OK;
}

struct delivery_batch pawl__delivery_in_flight_batch(const struct delivery_in_flight *in_flight)
{
    return (struct delivery_batch){ in_flight->batch, in_flight->batch_count };
}

/* --- answers --- */

/* NULL: acknowledged before, or from before a restart. */
static struct delivery_in_flight_item *find(const struct delivery_in_flight *in_flight,
                                            uint64_t handle)
{
    uint64_t sequence = handle & SEQUENCE_MASK;
    size_t low = in_flight->first;
    size_t high = in_flight->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in_flight->items[middle]->message.place.sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < in_flight->count && in_flight->items[low]->message.handle == handle
               ? in_flight->items[low]
               : NULL;
}

void pawl__delivery_in_flight_ack(struct delivery_in_flight *in_flight,
                                  const struct delivery_message *messages,
                                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct delivery_in_flight_item *item = find(in_flight, messages[i].handle);
        if (item != NULL) {
            item->is_acked = true;
            in_flight->highest_acked = MAX(in_flight->highest_acked, item->message.place.sequence);
        }
    }
    while (in_flight->first < in_flight->count && in_flight->items[in_flight->first]->is_acked) {
        free(in_flight->items[in_flight->first++]);
    }
}

void pawl__delivery_in_flight_nak(struct delivery_in_flight *in_flight,
                                  const struct delivery_message *messages,
                                  size_t count,
                                  int64_t again_ns)
{
    for (size_t i = 0; i < count; i++) {
        struct delivery_in_flight_item *item = find(in_flight, messages[i].handle);
        if (item != NULL) {
            item->is_out = false;
            item->again_ns = again_ns;
        }
    }
}

bool pawl__delivery_in_flight_repeat(struct delivery_in_flight *in_flight, uint64_t sequence)
{
    if (in_flight->highest_acked >= sequence) {
        return false;
    }
    while (in_flight->first < in_flight->count
           && in_flight->items[in_flight->first]->message.place.sequence < sequence) {
        free(in_flight->items[in_flight->first++]);
    }
    in_flight->starts++;
    for (size_t i = in_flight->first; i < in_flight->count; i++) {
        struct delivery_in_flight_item *item = in_flight->items[i];
        item->message.handle = handle_of(in_flight, item->message.place.sequence);
        item->is_out = false;
        item->again_ns = INT64_MIN;
    }
    return true;
}

uint64_t pawl__delivery_in_flight_acked_to(const struct delivery_in_flight *in_flight)
{
    return in_flight->first < in_flight->count
               ? in_flight->items[in_flight->first]->message.place.sequence - 1
               : in_flight->handed_out;
}
