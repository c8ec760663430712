/* A world for simulations: one thread, a clock that jumps from event to event, one seeded source of chance, and a
 * trace. Everything that happens in it is a function of the seed, so the same seed twice gives the same trace hash.
 *
 * A capability is simulated by running its real code on stores that are models: they crash, forget what was not
 * synced and lose answers when the world says so. */
#ifndef PAWL_SIM_WORLD_H
#define PAWL_SIM_WORLD_H

#include "base/core/buf.h"
#include "base/core/random.h"
#include "base/os/clock.h"

struct sim_event {
    int64_t at_ns;
    uint64_t order; /* of two at one moment: the one that was planned first */
    int kind;
    uint64_t number;
};

enum { SIM_EVENTS_MAX = 4096 };

struct sim_world {
    struct pawl__clock clock; /* first, so that a clock is its world */
    int64_t now_ns;
    int64_t wall_offset_us;
    bool monotonic_steps; /* a defect: the clock for waits is the wall's */
    struct pawl__prng prng;
    struct pawl__random random; /* the same chance, for code that wants bytes */
    bool is_quiet;              /* no more faults: what is left must settle */

    struct sim_event events[SIM_EVENTS_MAX]; /* a heap */
    size_t event_count;
    uint64_t planned;

    uint64_t hash;
    struct pawl__buf *text; /* of the trace; NULL: only its hash */
};

void pawl__sim_world_init(struct sim_world *world, uint64_t seed, struct pawl__buf *text);

/* Chance. */
bool pawl__sim_happens(struct sim_world *world, unsigned per_mille); /* never once it is quiet */
bool pawl__sim_coin(struct sim_world *world, unsigned per_mille);    /* also then */
uint64_t pawl__sim_below(struct sim_world *world, uint64_t bound);
int64_t pawl__sim_ms(struct sim_world *world, int64_t low_ms, int64_t high_ms); /* in nanoseconds */

/* Events. Planning one too many is our mistake. */
void pawl__sim_plan(struct sim_world *world, int64_t in_ns, int kind, uint64_t number);
bool pawl__sim_next(struct sim_world *world,
                    struct sim_event *ret_event); /* moves the clock to it */
void pawl__sim_step_wall(struct sim_world *world, int64_t by_us);

/* One line of the trace. The words are part of the hash, and so is the time. */
void pawl__sim_trace(struct sim_world *world, const char *what, uint64_t a, uint64_t b);

#endif
