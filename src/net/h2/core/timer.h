/* Many timers, the earliest first: a heap. Pure; one thread. */
#ifndef PAWL_NET_H2_CORE_TIMER_H
#define PAWL_NET_H2_CORE_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Belongs to what it is about, and lives until it is removed. */
struct pawl__h2_timer {
    int64_t at_ns;
    size_t slot; /* in the heap, from 1 on; 0: not in it */
    void (*fire)(struct pawl__h2_timer *timer, int64_t now_ns); /* it is out of the heap then */
};

struct pawl__h2_timers {
    struct pawl__h2_timer **heap; /* from 1 on */
    size_t count;
    size_t room;
};

void pawl__h2_timers_done(struct pawl__h2_timers *timers);

/* Room for so many; false without memory. After this, setting that many cannot fail. */
bool pawl__h2_timers_reserve(struct pawl__h2_timers *timers, size_t count);

/* Sets it or moves it. INT64_MAX removes it. There must be room (reserve). */
void pawl__h2_timer_set(struct pawl__h2_timers *timers,
                        struct pawl__h2_timer *timer,
                        int64_t at_ns);
void pawl__h2_timer_remove(struct pawl__h2_timers *timers, struct pawl__h2_timer *timer);

/* INT64_MAX: there is none. */
int64_t pawl__h2_timers_next(const struct pawl__h2_timers *timers);

/* Takes out the earliest one that is due; NULL: none is. */
struct pawl__h2_timer *pawl__h2_timers_pop(struct pawl__h2_timers *timers, int64_t now_ns);

#endif
