#ifndef PAWL_TESTS_VIRTUAL_CLOCK_H
#define PAWL_TESTS_VIRTUAL_CLOCK_H

#include "base/os/clock.h"

/* A clock that moves only when told to, or when somebody sleeps on it. Not for several threads.
 * Wall, monotonic and boot move together; a wall step moves the wall alone. */
struct pawl__clock_virtual {
    struct pawl__clock base;
    int64_t wall_offset_us;
    int64_t now_ns;
};

struct pawl__clock_virtual pawl__clock_virtual_at(int64_t wall_us, int64_t monotonic_ns);
void pawl__clock_advance(struct pawl__clock_virtual *clock, int64_t by_ns);
void pawl__clock_step_wall(struct pawl__clock_virtual *clock, int64_t by_us);

#endif
