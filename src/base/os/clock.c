#include "base/os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "base/os/fs.h"

static int64_t read_ns(clockid_t id)
{
    struct timespec now;

    REQUIRE(clock_gettime(id, &now) == 0);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t real_wall_us(struct pawl__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME) / NS_PER_US;
}

static int64_t real_monotonic_ns(struct pawl__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_MONOTONIC);
}

static int64_t real_boot_ns(struct pawl__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_BOOTTIME);
}

static void real_sleep_until(struct pawl__clock *clock, int64_t until_ns)
{
    struct timespec until = { .tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S };

    (void)clock;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

struct pawl__clock *pawl__clock_real(void)
{
    static const struct pawl__clock_ops ops = {
        .wall_us = real_wall_us,
        .monotonic_ns = real_monotonic_ns,
        .boot_ns = real_boot_ns,
        .sleep_until = real_sleep_until,
    };
    static struct pawl__clock clock = { &ops };

    return &clock;
}

struct pawl__clock *pawl__clock_or_real(struct pawl__clock *clock)
{
    return clock != NULL ? clock : pawl__clock_real();
}

bool pawl__clock_is_real(const struct pawl__clock *clock)
{
    return clock == pawl__clock_real();
}

int64_t pawl__wall_us(struct pawl__clock *clock)
{
    return clock->ops->wall_us(clock);
}

int64_t pawl__monotonic_ns(struct pawl__clock *clock)
{
    return clock->ops->monotonic_ns(clock);
}

int64_t pawl__boot_ns(struct pawl__clock *clock)
{
    return clock->ops->boot_ns(clock);
}

void pawl__sleep_until(struct pawl__clock *clock, int64_t monotonic_until_ns)
{
    clock->ops->sleep_until(clock, monotonic_until_ns);
}

pawl_status pawl__clock_boot_id(char ret_id[PAWL__BOOT_ID_SIZE], pawl_error *reterr)
{
    char text[PAWL__BOOT_ID_SIZE + 1];
    size_t len;

    TRY(pawl__fs_read_small("/proc/sys/kernel/random/boot_id", text, sizeof(text), &len, reterr));
    if (len < PAWL__BOOT_ID_SIZE - 1) {
        return pawl__fail(reterr, PAWL_FAILED, "the kernel's boot id is cut: '%s'", text);
    }
    memcpy(ret_id, text, PAWL__BOOT_ID_SIZE - 1);
    ret_id[PAWL__BOOT_ID_SIZE - 1] = '\0';
    return PAWL_OK;
}
