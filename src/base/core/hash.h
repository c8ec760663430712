/* Hashes for tables in memory. They are keyed with a random seed, so that nobody can choose keys
 * that fall together; the values mean nothing outside the process. */
#ifndef PAWL_BASE_CORE_HASH_H
#define PAWL_BASE_CORE_HASH_H

#include <pawl/pawl.h>

struct pawl__hash_seed {
    uint64_t words[2];
};

/* From the kernel's randomness. */
PAWL_MUST_USE pawl_status pawl__hash_seed(struct pawl__hash_seed *ret_seed, pawl_error *reterr);

/* SipHash-1-3. */
uint64_t pawl__hash_bytes(const struct pawl__hash_seed *seed, pawl_view bytes);

/* The 128 bits of a product, its halves folded. */
static inline uint64_t pawl__hash_fold(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two numbers at once, in a few instructions. */
static inline uint64_t pawl__hash_pair(const struct pawl__hash_seed *seed, uint64_t a, uint64_t b)
{
    uint64_t first = pawl__hash_fold(a ^ seed->words[0], 0x9E3779B97F4A7C15);

    return pawl__hash_fold(first ^ b ^ seed->words[1], 0xD6E8FEB86659FD93);
}

/* For tables that probe the next slot: keys with the same `a` and consecutive `b` stand side by side,
 * so that the second one is found in the cache line of the first. `b` is nothing that a stranger may
 * choose. */
static inline uint64_t pawl__hash_beside(const struct pawl__hash_seed *seed, uint64_t a, uint64_t b)
{
    return pawl__hash_pair(seed, a, 0) + b;
}

#endif
