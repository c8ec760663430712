#include "net/h2/core/timer.h"

#include <stdlib.h>

#include "base/core/macros.h"

void pawl__h2_timers_done(struct pawl__h2_timers *timers)
{
    free(timers->heap);
    *timers = (struct pawl__h2_timers){ 0 };
}

bool pawl__h2_timers_reserve(struct pawl__h2_timers *timers, size_t count)
{
    if (count < timers->room) {
        return true;
    }
    size_t room = MAX(count + 1, MAX(timers->room * 2, (size_t)16));
    struct pawl__h2_timer **heap = realloc(timers->heap, room * sizeof(struct pawl__h2_timer *));
    if (heap == NULL) {
        return false;
    }
    timers->heap = heap;
    timers->room = room;
    return true;
}

static void put(struct pawl__h2_timers *timers, size_t slot, struct pawl__h2_timer *timer)
{
    timers->heap[slot] = timer;
    timer->slot = slot;
}

static void rise(struct pawl__h2_timers *timers, size_t slot, struct pawl__h2_timer *timer)
{
    while (slot > 1 && timers->heap[slot / 2]->at_ns > timer->at_ns) {
        put(timers, slot, timers->heap[slot / 2]);
        slot /= 2;
    }
    put(timers, slot, timer);
}

static void sink(struct pawl__h2_timers *timers, size_t slot, struct pawl__h2_timer *timer)
{
    for (;;) {
        size_t child = slot * 2;
        if (child > timers->count) {
            break;
        }
        if (child < timers->count && timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns) {
            child++;
        }
        if (timers->heap[child]->at_ns >= timer->at_ns) {
            break;
        }
        put(timers, slot, timers->heap[child]);
        slot = child;
    }
    put(timers, slot, timer);
}

void pawl__h2_timer_remove(struct pawl__h2_timers *timers, struct pawl__h2_timer *timer)
{
    size_t slot = timer->slot;

    if (slot == 0) {
        return;
    }
    struct pawl__h2_timer *last = timers->heap[timers->count--];
    timer->slot = 0;
    if (last == timer) {
        return;
    }
    if (slot > 1 && timers->heap[slot / 2]->at_ns > last->at_ns) {
        rise(timers, slot, last);
    } else {
        sink(timers, slot, last);
    }
}

void pawl__h2_timer_set(struct pawl__h2_timers *timers, struct pawl__h2_timer *timer, int64_t at_ns)
{
    if (timer->slot != 0 && timer->at_ns == at_ns) {
        return;
    }
    pawl__h2_timer_remove(timers, timer);
    timer->at_ns = at_ns;
    if (at_ns == INT64_MAX) {
        return;
    }
    REQUIRE(timers->count + 1 < timers->room);
    rise(timers, ++timers->count, timer);
}

int64_t pawl__h2_timers_next(const struct pawl__h2_timers *timers)
{
    return timers->count == 0 ? INT64_MAX : timers->heap[1]->at_ns;
}

struct pawl__h2_timer *pawl__h2_timers_pop(struct pawl__h2_timers *timers, int64_t now_ns)
{
    if (timers->count == 0 || timers->heap[1]->at_ns > now_ns) {
        return NULL;
    }
    struct pawl__h2_timer *first = timers->heap[1];
    pawl__h2_timer_remove(timers, first);
    return first;
}
