#include "base/thread/queue.h"

#include <stdlib.h>

#include "base/core/error.h"

struct pawl__queue {
    struct pawl__lock lock; /* covers everything below */
    struct pawl__cond not_empty;
    struct pawl__cond not_full;
    bool closed;
    size_t first; /* index of the oldest item */
    size_t count;
    size_t capacity;
    void *items[];
};

pawl_status pawl__queue_new(size_t capacity, struct pawl__queue **ret_queue, pawl_error *reterr)
{
    REQUIRE(capacity >= 1);
    REQUIRE(capacity <= PAWL__QUEUE_CAPACITY_MAX);
    struct pawl__queue *queue = calloc(1, sizeof(*queue) + capacity * sizeof(queue->items[0]));
    if (queue == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a queue of %zu items", capacity);
    }
    pawl__lock_cond_init(&queue->lock, &queue->not_empty);
    pawl__cond_init(&queue->not_full);
    queue->capacity = capacity;
    *ret_queue = queue;
    return PAWL_OK;
}

void pawl__queue_free(struct pawl__queue *queue)
{
    if (queue != NULL) {
        pawl__cond_done(&queue->not_full);
        pawl__lock_cond_done(&queue->lock, &queue->not_empty);
        free(queue);
    }
}

static void wake_all(void *context)
{
    struct pawl__queue *queue = context;

    pawl__lock(&queue->lock);
    pawl__cond_broadcast(&queue->not_empty);
    pawl__cond_broadcast(&queue->not_full);
    pawl__unlock(&queue->lock);
}

static bool has_room_locked(const struct pawl__queue *queue)
{
    return queue->count < queue->capacity;
}

static void put_locked(struct pawl__queue *queue, void **item)
{
    queue->items[(queue->first + queue->count) % queue->capacity] = *item;
    queue->count++;
    pawl__cond_signal(&queue->not_empty);
}

static bool has_item_locked(const struct pawl__queue *queue)
{
    return queue->count > 0;
}

static void take_locked(struct pawl__queue *queue, void **item)
{
    *item = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
    pawl__cond_signal(&queue->not_full);
}

/* What a push and a pop differ in. The functions are called with the lock held; clang cannot check
 * that through a pointer. */
struct side {
    bool (*ready_locked)(const struct pawl__queue *queue);
    void (*move_locked)(struct pawl__queue *queue, void **item);
    struct pawl__cond *cond; /* signalled when this side may have become ready */
    bool closed_ends; /* a push fails as soon as the queue is closed, a pop drains it first */
    const char *timeout;
};

static pawl_status wait_locked(struct pawl__queue *queue,
                               const struct side *side,
                               int64_t deadline_ns,
                               const struct pawl__cancel *cancel,
                               pawl_error *reterr) REQUIRES_LOCK(queue->lock)
{
    for (bool in_time = true;;) {
        bool ready = side->ready_locked(queue);
        if (pawl__cancelled(cancel)) {
            /* If this used up a wake-up that another could have had: wake_all wakes them all. */
            return pawl__fail(reterr, PAWL_CANCELLED, "cancelled");
        }
        if (queue->closed && (side->closed_ends || !ready)) {
            return pawl__fail(reterr, PAWL_CLOSED, "the queue is closed");
        }
        if (ready) {
            return PAWL_OK;
        }
        if (!in_time) {
            return pawl__fail(reterr, PAWL_TIMEOUT, "%s", side->timeout);
        }
        in_time = pawl__cond_wait_until(side->cond, &queue->lock, deadline_ns);
    }
}

static pawl_status move(struct pawl__queue *queue,
                        const struct side *side,
                        int64_t deadline_ns,
                        struct pawl__cancel *cancel,
                        void **item,
                        pawl_error *reterr)
{
    struct pawl__cancel_link link = { 0 };

    pawl__lock(&queue->lock);
    if (cancel != NULL && !side->ready_locked(queue)) {
        /* Only who has to wait links to the token, and never under the lock that wake_all takes. */
        pawl__unlock(&queue->lock);
        pawl__cancel_link(cancel, &link, wake_all, queue);
        pawl__lock(&queue->lock);
    }
    pawl_status status = wait_locked(queue, side, deadline_ns, cancel, reterr);
    if (status == PAWL_OK) {
        side->move_locked(queue, item);
    }
    pawl__unlock(&queue->lock);
    if (cancel != NULL) {
        pawl__cancel_unlink(cancel, &link);
    }
    return status;
}

pawl_status pawl__queue_push(struct pawl__queue *queue,
                             void *item,
                             int64_t deadline_ns,
                             struct pawl__cancel *cancel,
                             pawl_error *reterr)
{
    const struct side side = {
        has_room_locked, put_locked, &queue->not_full, true, "the queue stayed full"
    };

    REQUIRE(item != NULL);
    return move(queue, &side, deadline_ns, cancel, &item, reterr);
}

pawl_status pawl__queue_pop(struct pawl__queue *queue,
                            int64_t deadline_ns,
                            struct pawl__cancel *cancel,
                            void **ret_item,
                            pawl_error *reterr)
{
    const struct side side = {
        has_item_locked, take_locked, &queue->not_empty, false, "the queue stayed empty"
    };

    return move(queue, &side, deadline_ns, cancel, ret_item, reterr);
}

void pawl__queue_close(struct pawl__queue *queue)
{
    pawl__lock(&queue->lock);
    queue->closed = true;
    pawl__unlock(&queue->lock);
    wake_all(queue);
}
