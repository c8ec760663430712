#include "delivery/sources/window.h"

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

struct delivery_window_item {
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

static struct delivery_window_item *item_new(const struct delivery_message *message)
{
    size_t fixed = sizeof(struct delivery_window_item)
                   + message->header_count * sizeof(struct delivery_header);
    struct delivery_window_item *item = malloc(fixed + text_bytes(message) + 1);

    if (item == NULL) {
        return NULL;
    }
    char *at = (char *)&item->headers[message->header_count];
    *item = (struct delivery_window_item){ .message = *message, .is_out = true };
    for (size_t i = 0; i < message->header_count; i++) {
        item->headers[i].name = copy_text(&at, message->headers[i].name);
        item->headers[i].value = copy_text(&at, message->headers[i].value);
    }
    item->message.headers = item->headers;
    item->message.subject = copy_text(&at, message->subject);
    item->message.payload = copy_text(&at, message->payload);
    return item;
}

static void clear(struct delivery_window *window)
{
    for (size_t i = window->first; i < window->count; i++) {
        free(window->items[i]);
    }
    window->first = 0;
    window->count = 0;
    window->batch_count = 0;
}

static uint64_t handle_of(const struct delivery_window *window, uint64_t sequence)
{
    return window->starts << SEQUENCE_BITS | (sequence & SEQUENCE_MASK);
}

void pawl__delivery_window_done(struct delivery_window *window)
{
    clear(window);
    free(window->items);
    free(window->batch);
    *window = (struct delivery_window){ .items = NULL };
}

void pawl__delivery_window_restart(struct delivery_window *window, uint64_t sequence)
{
    clear(window);
    window->starts++;
    window->handed_out = sequence;
    window->highest_acked = 0;
}

void pawl__delivery_window_pass(struct delivery_window *window, uint64_t sequence)
{
    window->handed_out = MAX(window->handed_out, sequence);
}

/* --- a batch --- */

void pawl__delivery_window_begin(struct delivery_window *window)
{
    window->batch_count = 0;
    window->batch_bytes = 0;
}

bool pawl__delivery_window_is_full(const struct delivery_window *window,
                                   const struct delivery_fetch *limits)
{
    return window->batch_count >= limits->messages_max || window->batch_bytes >= limits->bytes_max;
}

static pawl_status add_to_batch(struct delivery_window *window,
                                const struct delivery_window_item *item,
                                pawl_error *reterr)
{
    struct delivery_message *batch =
        pawl__grow(window->batch, window->batch_count, &window->batch_room, sizeof(*batch));

    TRY(pawl__check_memory(batch, "a batch", reterr));
    window->batch = batch;
    batch[window->batch_count++] = item->message;
    window->batch_bytes += item->message.payload.len;
    return PAWL_OK;
}

pawl_status pawl__delivery_window_add_due(struct delivery_window *window,
                                          const struct delivery_fetch *limits,
                                          int64_t now_ns,
                                          pawl_error *reterr)
{
    for (size_t i = window->first;
         i < window->count && !pawl__delivery_window_is_full(window, limits);
         i++) {
        struct delivery_window_item *item = window->items[i];
        if (!item->is_out && !item->is_acked && now_ns >= item->again_ns) {
            TRY(add_to_batch(window, item, reterr));
            item->is_out = true;
        }
    }
    return PAWL_OK;
}

/* Moves the rest down when much of the array is free. */
static void compact(struct delivery_window *window)
{
    if (window->first < COMPACT_AT || window->first < window->count / 2) {
        return;
    }
    window->count -= window->first;
    memmove(window->items,
            &window->items[window->first],
            window->count * sizeof(struct delivery_window_item *));
    window->first = 0;
}

pawl_status pawl__delivery_window_add(struct delivery_window *window,
                                      const struct delivery_message *message,
                                      pawl_error *reterr)
{
    REQUIRE(message->place.sequence > window->handed_out);
    compact(window);
    struct delivery_window_item **items =
        pawl__grow((void *)window->items, window->count, &window->room, sizeof(*items));
    TRY(pawl__check_memory((void *)items, "a message", reterr));
    window->items = items;
    struct delivery_window_item *item = item_new(message);
    TRY(pawl__check_memory(item, "a message", reterr));
    item->message.handle = handle_of(window, message->place.sequence);
    pawl_status status = add_to_batch(window, item, reterr);
    if (status != PAWL_OK) {
        free(item);
        return status;
    }
    items[window->count++] = item;
    window->handed_out = message->place.sequence;
    return PAWL_OK;
}

struct delivery_batch pawl__delivery_window_batch(const struct delivery_window *window)
{
    return (struct delivery_batch){ window->batch, window->batch_count };
}

/* --- answers --- */

/* NULL: acknowledged before, or from before a restart. */
static struct delivery_window_item *find(const struct delivery_window *window, uint64_t handle)
{
    uint64_t sequence = handle & SEQUENCE_MASK;
    size_t low = window->first;
    size_t high = window->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (window->items[middle]->message.place.sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < window->count && window->items[low]->message.handle == handle ? window->items[low]
                                                                               : NULL;
}

void pawl__delivery_window_ack(struct delivery_window *window,
                               const struct delivery_message *messages,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct delivery_window_item *item = find(window, messages[i].handle);
        if (item != NULL) {
            item->is_acked = true;
            window->highest_acked = MAX(window->highest_acked, item->message.place.sequence);
        }
    }
    while (window->first < window->count && window->items[window->first]->is_acked) {
        free(window->items[window->first++]);
    }
}

void pawl__delivery_window_nak(struct delivery_window *window,
                               const struct delivery_message *messages,
                               size_t count,
                               int64_t again_ns)
{
    for (size_t i = 0; i < count; i++) {
        struct delivery_window_item *item = find(window, messages[i].handle);
        if (item != NULL) {
            item->is_out = false;
            item->again_ns = again_ns;
        }
    }
}

bool pawl__delivery_window_repeat(struct delivery_window *window, uint64_t sequence)
{
    if (window->highest_acked >= sequence) {
        return false;
    }
    while (window->first < window->count
           && window->items[window->first]->message.place.sequence < sequence) {
        free(window->items[window->first++]);
    }
    window->starts++;
    for (size_t i = window->first; i < window->count; i++) {
        struct delivery_window_item *item = window->items[i];
        item->message.handle = handle_of(window, item->message.place.sequence);
        item->is_out = false;
        item->again_ns = INT64_MIN;
    }
    return true;
}

uint64_t pawl__delivery_window_acked_to(const struct delivery_window *window)
{
    return window->first < window->count ? window->items[window->first]->message.place.sequence - 1
                                         : window->handed_out;
}
