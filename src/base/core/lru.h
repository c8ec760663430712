/* A cache of numbers, keyed by a pair of numbers, that forgets what was not used for longest.
 *
 * All memory is taken at creation; nothing after that allocates or fails, and every operation takes
 * the same short time however full it is. One thread at a time. */
#ifndef PAWL_BASE_CORE_LRU_H
#define PAWL_BASE_CORE_LRU_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

enum { PAWL__LRU_CAPACITY_MAX = 1 << 28 };

struct pawl__lru;

struct pawl__lru_key {
    uint64_t a; /* a workspace, say */
    uint64_t b; /* and a sequence in it */
};

struct pawl__lru_entry {
    struct pawl__lru_key key;
    uint64_t value;
};

/* capacity is 1 .. PAWL__LRU_CAPACITY_MAX, else INVALID. */
PAWL_MUST_USE pawl_status pawl__lru_new(size_t capacity,
                                        struct pawl__lru **ret_lru,
                                        pawl_error *reterr);
DEFINE_AUTO(struct pawl__lru *, pawl__lru_free)

size_t pawl__lru_count(const struct pawl__lru *lru);

/* The value, to read and to change in place, now the last used; NULL when it is not there. It stays
 * where it is until the entry is removed or forgotten. */
uint64_t *pawl__lru_get(struct pawl__lru *lru, struct pawl__lru_key key);

/* The same without counting as a use. */
const uint64_t *pawl__lru_peek(const struct pawl__lru *lru, struct pawl__lru_key key);

/* The key, or one with the same `a`, will be asked for soon: its place comes into the processor's
 * cache meanwhile. */
void pawl__lru_expect(const struct pawl__lru *lru, struct pawl__lru_key key);

/* A moment after that: its entry comes, too. */
void pawl__lru_fetch(const struct pawl__lru *lru, struct pawl__lru_key key);

/* Sets a value, now the last used. True when another entry had to be forgotten for it; that one is
 * in *ret_forgotten, unless that is NULL. */
bool pawl__lru_put(struct pawl__lru *lru,
                   struct pawl__lru_key key,
                   uint64_t value,
                   struct pawl__lru_entry *ret_forgotten);

bool pawl__lru_remove(struct pawl__lru *lru, struct pawl__lru_key key); /* false: was not there */
void pawl__lru_clear(struct pawl__lru *lru);

#endif
