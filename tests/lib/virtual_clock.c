#include "lib/virtual_clock.h"

#include "base/core/macros.h"

static struct pawl__clock_virtual *as_virtual(struct pawl__clock *clock)
{
    return (struct pawl__clock_virtual *)clock; /* base is its first member */
}

static int64_t virtual_wall_us(struct pawl__clock *clock)
{
    return as_virtual(clock)->wall_offset_us + as_virtual(clock)->now_ns / NS_PER_US;
}

static int64_t virtual_now_ns(struct pawl__clock *clock)
{
    return as_virtual(clock)->now_ns;
}

static void virtual_sleep_until(struct pawl__clock *clock, int64_t until_ns)
{
    as_virtual(clock)->now_ns = MAX(as_virtual(clock)->now_ns, until_ns);
}

struct pawl__clock_virtual pawl__clock_virtual_at(int64_t wall_us, int64_t monotonic_ns)
{
    static const struct pawl__clock_ops ops = {
        .wall_us = virtual_wall_us,
        .monotonic_ns = virtual_now_ns,
        .boot_ns = virtual_now_ns,
        .sleep_until = virtual_sleep_until,
    };
    return (struct pawl__clock_virtual){
        .base = { &ops },
        .wall_offset_us = wall_us - monotonic_ns / NS_PER_US,
        .now_ns = monotonic_ns,
    };
}

void pawl__clock_advance(struct pawl__clock_virtual *clock, int64_t by_ns)
{
    REQUIRE(by_ns >= 0);
    clock->now_ns += by_ns;
}

void pawl__clock_step_wall(struct pawl__clock_virtual *clock, int64_t by_us)
{
    clock->wall_offset_us += by_us;
}
