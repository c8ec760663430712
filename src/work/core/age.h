/* Ages that steps of the wall clock do not change.
 *
 * The wall clock minus the boot clock stays the same during a boot, until the wall clock is set. Its lowest value in a boot, plus the boot clock, is a wall time that no step forward can put
 * ahead: ages are measured by it. If the clock was set back during this boot, ages are measured from that
 * lower value until the next boot, and retention removes later. After a reboot the wall clock decides. */
#ifndef PAWL_WORK_CORE_AGE_H
#define PAWL_WORK_CORE_AGE_H

#include <stdatomic.h>

#include "work/core/backend.h"

#define WORK_AGE_UNKNOWN INT64_MAX /* no difference was seen yet */

/* Reads the time, and updates the lowest difference seen. Any thread. */
static inline struct work_now pawl__work_now(struct pawl__clock *clock, _Atomic int64_t *lowest_us)
{
    struct work_now now = { .wall_us = pawl__wall_us(clock), .ns = pawl__boot_ns(clock) };
    int64_t difference_us = now.wall_us - now.ns / NS_PER_US;
    int64_t lowest = atomic_load(lowest_us);

    while (difference_us < lowest
           && !atomic_compare_exchange_weak(lowest_us, &lowest, difference_us)) {
    }
    now.age_us = MIN(difference_us, lowest) + now.ns / NS_PER_US;
    return now;
}

#endif
