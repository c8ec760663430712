/* Randomness, handed in like a clock so that a test can bring its own.
 *
 *   struct pawl__random  bytes nobody can guess: ids, seeds, tokens
 *   struct pawl__prng    numbers that a seed repeats: jitter, simulation, property tests */
#ifndef PAWL_BASE_CORE_RANDOM_H
#define PAWL_BASE_CORE_RANDOM_H

#include <pawl/pawl.h>

struct pawl__random {
    pawl_status (*bytes)(struct pawl__random *random,
                         void *ret_bytes,
                         size_t len,
                         pawl_error *reterr);
};

/* The kernel's, by getrandom; nothing is kept in the process, so a fork repeats nothing. Static;
 * any thread. */
struct pawl__random *pawl__random_real(void);

/* Fails only where the kernel refuses getrandom. */
PAWL_MUST_USE pawl_status pawl__random_bytes(struct pawl__random *random,
                                             void *ret_bytes,
                                             size_t len,
                                             pawl_error *reterr);

/* xoshiro256**, state by value: a copy continues where the original stood. Not for secrets. One
 * thread at a time. */
struct pawl__prng {
    uint64_t state[4];
};

struct pawl__prng pawl__prng_seeded(uint64_t seed);
uint64_t pawl__prng_next(struct pawl__prng *prng);

/* 0 .. bound - 1, each equally likely; bound must not be 0. */
uint64_t pawl__prng_below(struct pawl__prng *prng, uint64_t bound);

/* low .. high, both included, each equally likely; low <= high. */
int64_t pawl__prng_between(struct pawl__prng *prng, int64_t low, int64_t high);

/* A pawl__random that a seed repeats, for tests. One thread at a time. */
struct pawl__random_seeded {
    struct pawl__random base;
    struct pawl__prng prng;
};

struct pawl__random_seeded pawl__random_seeded_with(uint64_t seed);

#endif
