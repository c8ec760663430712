#include "sim/world.h"

#include <inttypes.h>
#include <string.h>

#define HASH_START UINT64_C(14695981039346656037) /* FNV-1a */
#define HASH_STEP UINT64_C(1099511628211)
#define WALL_START_US (INT64_C(1767225600) * US_PER_S) /* 2026 */

static struct sim_world *world_of(struct pawl__clock *clock)
{
    return (struct sim_world *)clock; /* clock is its first member */
}

static int64_t wall_us(struct pawl__clock *clock)
{
    return WALL_START_US + world_of(clock)->wall_offset_us + world_of(clock)->now_ns / NS_PER_US;
}

static int64_t now_ns(struct pawl__clock *clock)
{
    const struct sim_world *world = world_of(clock);

    return world->now_ns + (world->monotonic_steps ? world->wall_offset_us * NS_PER_US : 0);
}

static void sleep_until(struct pawl__clock *clock, int64_t until_ns)
{
    world_of(clock)->now_ns = MAX(world_of(clock)->now_ns, until_ns);
}

static pawl_status random_bytes(struct pawl__random *random,
                                void *ret_bytes,
                                size_t len,
                                pawl_error *reterr)
{
    struct sim_world *world =
        (struct sim_world *)(void *)((char *)random - offsetof(struct sim_world, random));
    unsigned char *bytes = ret_bytes;

    (void)reterr;
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (unsigned char)pawl__prng_next(&world->prng);
    }
    return PAWL_OK;
}

void pawl__sim_world_init(struct sim_world *world, uint64_t seed, struct pawl__buf *text)
{
    static const struct pawl__clock_ops ops = {
        .wall_us = wall_us,
        .monotonic_ns = now_ns,
        .boot_ns = now_ns,
        .sleep_until = sleep_until,
    };

    world->clock = (struct pawl__clock){ &ops };
    world->now_ns = NS_PER_S;
    world->wall_offset_us = 0;
    world->monotonic_steps = false;
    world->prng = pawl__prng_seeded(seed);
    world->random = (struct pawl__random){ random_bytes };
    world->is_quiet = false;
    world->event_count = 0;
    world->planned = 0;
    world->hash = HASH_START;
    world->text = text;
}

/* --- chance --- */

bool pawl__sim_coin(struct sim_world *world, unsigned per_mille)
{
    return pawl__prng_below(&world->prng, 1000) < per_mille;
}

bool pawl__sim_happens(struct sim_world *world, unsigned per_mille)
{
    return !world->is_quiet && pawl__sim_coin(world, per_mille);
}

uint64_t pawl__sim_below(struct sim_world *world, uint64_t bound)
{
    return pawl__prng_below(&world->prng, bound);
}

int64_t pawl__sim_ms(struct sim_world *world, int64_t low_ms, int64_t high_ms)
{
    return pawl__prng_between(&world->prng, low_ms, high_ms) * NS_PER_MS;
}

/* --- events --- */

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event kept = *a;

    *a = *b;
    *b = kept;
}

void pawl__sim_plan(struct sim_world *world, int64_t in_ns, int kind, uint64_t number)
{
    size_t i = world->event_count++;

    REQUIRE(i < SIM_EVENTS_MAX);
    world->events[i] = (struct sim_event){ world->now_ns + in_ns, world->planned++, kind, number };
    while (i > 0 && is_before(&world->events[i], &world->events[(i - 1) / 2])) {
        swap(&world->events[i], &world->events[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

bool pawl__sim_next(struct sim_world *world, struct sim_event *ret_event)
{
    if (world->event_count == 0) {
        return false;
    }
    struct sim_event *events = world->events;
    *ret_event = events[0];
    events[0] = events[--world->event_count];
    for (size_t i = 0;;) {
        size_t first = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < world->event_count; child++) {
            first = is_before(&events[child], &events[first]) ? child : first;
        }
        if (first == i) {
            break;
        }
        swap(&events[i], &events[first]);
        i = first;
    }
    world->now_ns = MAX(world->now_ns, ret_event->at_ns);
    return true;
}

void pawl__sim_step_wall(struct sim_world *world, int64_t by_us)
{
    world->wall_offset_us += by_us;
    pawl__sim_trace(world, "the wall clock steps", 0, (uint64_t)by_us);
}

/* --- the trace --- */

static void mix(struct sim_world *world, uint64_t word)
{
    world->hash = (world->hash ^ word) * HASH_STEP;
}

void pawl__sim_trace(struct sim_world *world, const char *what, uint64_t a, uint64_t b)
{
    for (const char *c = what; *c != '\0'; c++) {
        mix(world, (unsigned char)*c);
    }
    mix(world, a);
    mix(world, b);
    mix(world, (uint64_t)world->now_ns);
    if (world->text != NULL) {
        pawl__buf_add_format(world->text,
                             "[%8.3f] %-28s %" PRIu64 " %" PRId64 "\n",
                             (double)world->now_ns / (double)NS_PER_S,
                             what,
                             a,
                             (int64_t)b);
    }
}
