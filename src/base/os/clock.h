/* Where time comes from. Code that decides by time is handed a clock, so that a test or a
 * simulation can give its own.
 *
 *   wall       UTC microseconds since 1970. For people and for stored timestamps; it may step, so
 *              it decides nothing.
 *   monotonic  nanoseconds, never steps, stops while the machine sleeps: waits and backoff.
 *   boot       nanoseconds since boot, also while the machine sleeps: leases. Two processes of
 *              one boot may compare it; pawl__clock_boot_id tells boots apart. */
#ifndef PAWL_BASE_OS_CLOCK_H
#define PAWL_BASE_OS_CLOCK_H

#include <pawl/pawl.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define US_PER_S INT64_C(1000000)

struct pawl__clock;
struct pawl__cond;
struct pawl__lock;

struct pawl__clock_ops {
    int64_t (*wall_us)(struct pawl__clock *clock);
    int64_t (*monotonic_ns)(struct pawl__clock *clock);
    int64_t (*boot_ns)(struct pawl__clock *clock);
    /* Returns when monotonic_ns has reached `until_ns`. A virtual clock jumps there. */
    void (*sleep_until)(struct pawl__clock *clock, int64_t until_ns);
    /* Waits for the condition until then: see pawl__cond_wait_on. NULL: the clock runs as the machine's
     * monotonic one does. */
    void (*wait_until)(struct pawl__clock *clock,
                       struct pawl__cond *cond,
                       struct pawl__lock *lock,
                       int64_t until_ns);
};

struct pawl__clock {
    const struct pawl__clock_ops *ops;
};

struct pawl__clock *pawl__clock_real(void); /* static; any thread */

/* The one default: the clock that options brought, or the real one for NULL. What belongs to no handle (log
 * lines, ids, waits of threads) passes NULL, and so do the public functions that open one. */
struct pawl__clock *pawl__clock_or_real(struct pawl__clock *clock);
bool pawl__clock_is_real(const struct pawl__clock *clock);

int64_t pawl__wall_us(struct pawl__clock *clock);
int64_t pawl__monotonic_ns(struct pawl__clock *clock);
int64_t pawl__boot_ns(struct pawl__clock *clock);
void pawl__sleep_until(struct pawl__clock *clock, int64_t monotonic_until_ns);

/* This boot's identity, 36 characters and a NUL. */
#define PAWL__BOOT_ID_SIZE 37
PAWL_MUST_USE pawl_status pawl__clock_boot_id(char ret_id[PAWL__BOOT_ID_SIZE], pawl_error *reterr);

/* Stored and shown forms of a wall time. All are UTC with microseconds.
 *
 *   store   2026-01-29 10:20:30.123456       SQLite columns; SQLite's own date functions read it
 *   rfc3339 2026-01-29T10:20:30.123456Z      everything that leaves the process
 *
 * Parsing takes either form, 0 to 9 decimals (cut to microseconds) and, in the second, a numeric
 * offset as well as Z. Years 0001 to 9999. */
#define PAWL__TIME_SIZE 28
#define PAWL__WALL_US_MIN (INT64_C(-62135596800) * US_PER_S)     /* 0001-01-01 */
#define PAWL__WALL_US_MAX (INT64_C(253402300800) * US_PER_S - 1) /* the end of 9999 */
void pawl__time_store(int64_t wall_us, char ret_text[PAWL__TIME_SIZE]);
void pawl__time_rfc3339(int64_t wall_us, char ret_text[PAWL__TIME_SIZE]);
PAWL_MUST_USE pawl_status pawl__time_parse(pawl_view text,
                                           int64_t *ret_wall_us,
                                           pawl_error *reterr);

/* The date, in the proleptic Gregorian calendar, so many days after 1970-01-01. Months and days count
 * from 1. */
void pawl__date_of_days(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day);

#endif
