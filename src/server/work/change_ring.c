#include "server/work/change_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "net/http/events.h"

bool pawl__serve_position_is_before(const pawl_work_position *a, const pawl_work_position *b)
{
    return a->transaction != b->transaction ? a->transaction < b->transaction : a->seq < b->seq;
}

/* --- entries --- */

void pawl__serve_change_write(const pawl_work_change *change, struct pawl__buf *buf)
{
    char id[PAWL_WORK_POSITION_SIZE];
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (pawl_work_change_to_json(change, &json, &len, NULL) != PAWL_OK
        || pawl_work_position_format(&change->position, id, sizeof(id), NULL) != PAWL_OK) {
        buf->broken = true;
        return;
    }
    pawl__http_event_write(
        pawl_view_of(id), pawl_view_of(change->to), (pawl_view){ json, len }, buf);
}

static char *put_text(char **at, const char *text, size_t len)
{
    char *put = *at;

    if (len > 0) {
        memcpy(put, text, len);
    }
    put[len] = '\0';
    *at += len + 1;
    return put;
}

bool pawl__serve_ring_entry_make(const pawl_work_change *change, struct ring_entry *ret_entry)
{
    AUTO(pawl__buf_done) struct pawl__buf event = BUF_INIT(EVENT_BYTES_MAX);

    pawl__serve_change_write(change, &event);
    char *at =
        event.broken ? NULL : malloc(change->task_id.len + change->work_type.len + event.len + 3);
    if (at == NULL) {
        return false;
    }
    *ret_entry = (struct ring_entry){ .position = change->position, .event_len = event.len };
    (void)!pawl_item_status_parse(pawl_view_of(change->to), &ret_entry->to, NULL);
    ret_entry->task_id = put_text(&at, change->task_id.data, change->task_id.len);
    ret_entry->work_type = put_text(&at, change->work_type.data, change->work_type.len);
    ret_entry->event = put_text(&at, event.data, event.len);
    return true;
}

void pawl__serve_ring_entry_free(struct ring_entry *entry)
{
    free(entry->task_id);
}

/* --- the ring --- */

const struct ring_entry *pawl__serve_ring_at(const struct change_ring *ring, size_t index)
{
    return &ring->entries[(ring->first + index) % RING_MAX];
}

static void drop_oldest(struct change_ring *ring)
{
    struct ring_entry *entry = &ring->entries[ring->first];

    REQUIRE(ring->count > 0);
    ring->from = entry->position;
    ring->bytes -= entry->event_len;
    pawl__serve_ring_entry_free(entry);
    ring->first = (ring->first + 1) % RING_MAX;
    ring->count--;
}

void pawl__serve_ring_begin(struct change_ring *ring, const pawl_work_position *end)
{
    REQUIRE(ring->count == 0);
    ring->reading = true;
    ring->from = *end;
    ring->to = *end;
}

void pawl__serve_ring_end(struct change_ring *ring)
{
    while (ring->count > 0) {
        drop_oldest(ring);
    }
    ring->reading = false;
}

void pawl__serve_ring_add(struct change_ring *ring, const struct ring_entry *entry)
{
    while (ring->count == RING_MAX
           || (ring->count > 0 && ring->bytes + entry->event_len > RING_BYTES)) {
        drop_oldest(ring);
    }
    ring->entries[(ring->first + ring->count++) % RING_MAX] = *entry;
    ring->bytes += entry->event_len;
    ring->to = entry->position;
}

size_t pawl__serve_ring_find(const struct change_ring *ring, const pawl_work_position *after)
{
    size_t low = 0;
    size_t high = ring->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pawl__serve_position_is_before(after, &pawl__serve_ring_at(ring, middle)->position)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}
