/* How long to wait before trying again.
 *
 * The ceiling doubles with every attempt until it reaches the maximum; the wait is drawn between
 * half of it and all of it ("equal jitter"). Full jitter (from zero) spreads a herd a little wider,
 * but its short draws ask a store that has just failed again at once, and break the promise that a
 * configuration makes with "backoff 5 s ... 5 min". Half a ceiling is wide enough to part a herd.
 */
#ifndef PAWL_BASE_DECIDE_BACKOFF_H
#define PAWL_BASE_DECIDE_BACKOFF_H

#include <pawl/pawl.h>

struct pawl__backoff {
    int64_t first_ns; /* ceiling of the first wait, at least 1 */
    int64_t max_ns;   /* no wait is longer; at least first_ns */
};

/* The longest wait before attempt `attempt` + 1, where 1 is the first attempt that failed (0 counts
 * as 1). Defined for every number: it stays at the maximum once it is there. */
int64_t pawl__backoff_ceiling_ns(const struct pawl__backoff *backoff, uint64_t attempt);

/* The wait itself. `random` is any 64 random bits; the same bits give the same wait. */
int64_t pawl__backoff_ns(const struct pawl__backoff *backoff, uint64_t attempt, uint64_t random);

#endif
