/* A bounded queue of pointers for many producers and many consumers.
 *
 * An item changes owner: it is the producer's until push returns PAWL_OK, the queue's until pop
 * hands it out, the consumer's afterwards. No item is lost and none handed out twice: a call that
 * fails has moved nothing.
 *
 * `deadline_ns` is monotonic: 0 tries once, INT64_MAX waits for ever. `cancel` may be NULL; a
 * cancelled token wins over items that are there, so that a worker stops instead of draining.
 *
 * Threads: any, but for free. */
#ifndef PAWL_BASE_THREAD_QUEUE_H
#define PAWL_BASE_THREAD_QUEUE_H

#include "base/core/macros.h"
#include "base/thread/cancel.h"

#define PAWL__QUEUE_CAPACITY_MAX ((size_t)1 << 24)

struct pawl__queue;

/* `capacity` is 1 to PAWL__QUEUE_CAPACITY_MAX. */
PAWL_MUST_USE pawl_status pawl__queue_new(size_t capacity,
                                          struct pawl__queue **ret_queue,
                                          pawl_error *reterr);

/* Nobody may be using it. The items in it are not freed: pop them first. */
DEFINE_AUTO(struct pawl__queue *, pawl__queue_free)

/* Appends `item` (not NULL). TIMEOUT when it stayed full, CANCELLED, or CLOSED. */
PAWL_MUST_USE pawl_status pawl__queue_push(struct pawl__queue *queue,
                                           void *item,
                                           int64_t deadline_ns,
                                           struct pawl__cancel *cancel,
                                           pawl_error *reterr);

/* Takes the oldest item. TIMEOUT when it stayed empty, CANCELLED, or CLOSED once it is closed and
 * empty. */
PAWL_MUST_USE pawl_status pawl__queue_pop(struct pawl__queue *queue,
                                          int64_t deadline_ns,
                                          struct pawl__cancel *cancel,
                                          void **ret_item,
                                          pawl_error *reterr);

/* No more pushes; pops drain what is there. Wakes everybody who waits. */
void pawl__queue_close(struct pawl__queue *queue);

#endif
