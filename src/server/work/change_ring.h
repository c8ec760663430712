/* The latest changes of the work store, as the events that are sent to followers. Plain memory: the caller has the lock. */
#ifndef PAWL_SERVER_WORK_CHANGE_RING_H
#define PAWL_SERVER_WORK_CHANGE_RING_H

#include <pawl/work.h>

#include "base/core/buf.h"

enum {
    RING_MAX = 4096,     /* changes that are kept for followers, ... */
    RING_BYTES = 4 << 20 /* ... and bytes of them */
};
#define EVENT_BYTES_MAX ((size_t)1 << 20)

struct ring_entry {
    pawl_work_position position;
    pawl_item_status to;
    char *task_id; /* and then the others: one allocation */
    char *work_type;
    char *event;
    size_t event_len;
};

struct change_ring {
    struct ring_entry entries[RING_MAX];
    size_t first; /* of the entries, and how many there are */
    size_t count;
    size_t bytes;
    bool reading;            /* it is valid: it has all changes between these two */
    pawl_work_position from; /* the last that is not in it any more */
    pawl_work_position to;   /* the last that was read */
};

/* Whether `a` comes before `b` in the feed. */
bool pawl__serve_position_is_before(const pawl_work_position *a, const pawl_work_position *b);

/* Adds a change as an event; on failure `buf` is broken. */
void pawl__serve_change_write(const pawl_work_change *change, struct pawl__buf *buf);

/* False: no memory. An entry that is not added is freed. */
bool pawl__serve_ring_entry_make(const pawl_work_change *change, struct ring_entry *ret_entry);
void pawl__serve_ring_entry_free(struct ring_entry *entry);

/* An empty ring that has all changes after `end`. */
void pawl__serve_ring_begin(struct change_ring *ring, const pawl_work_position *end);
/* Not valid any more, until it begins again. */
void pawl__serve_ring_end(struct change_ring *ring);

/* Adds the next change, which is the ring's from here on, and drops the oldest when it is full. */
void pawl__serve_ring_add(struct change_ring *ring, const struct ring_entry *entry);

/* The index of the first entry after a position: `count` when there is none. */
size_t pawl__serve_ring_find(const struct change_ring *ring, const pawl_work_position *after);
const struct ring_entry *pawl__serve_ring_at(const struct change_ring *ring, size_t index);

#endif
