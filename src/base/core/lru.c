/* Entries stand in one array and are linked, by number, from the last used to the longest unused;
 * those that were removed are linked, too, behind `free`, and those from `fresh` on were never used: memory
 * that nothing needs is not touched, so that the system need not give it. An index of slots (open addressing, linear probing,
 * at most half full; see map.c) leads from a key to its entry. */
#include "base/core/lru.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hash.h"

#define NONE UINT32_MAX

enum { LINE_BYTES = 64 };

struct node {
    struct pawl__lru_key key;
    uint64_t value;
    uint32_t newer;
    uint32_t older; /* in the list of unused nodes: the next one */
};

/* Two in a line, none across two. */
_Static_assert(sizeof(struct node) == LINE_BYTES / 2, "half a cache line");

struct slot {
    uint32_t tag;  /* low half of the hash: tells most other keys apart, and where home is */
    uint32_t node; /* its number plus one; 0: empty */
};

struct pawl__lru {
    struct pawl__hash_seed seed;
    struct node *nodes;
    struct slot *slots;
    uint32_t mask;
    uint32_t capacity;
    uint32_t count;
    uint32_t newest;
    uint32_t oldest;
    uint32_t free;
    uint32_t fresh;
};

pawl_status pawl__lru_new(size_t capacity, struct pawl__lru **ret_lru, pawl_error *reterr)
{
    if (capacity < 1 || capacity > PAWL__LRU_CAPACITY_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "a cache holds 1 to %d entries, not %zu",
                          PAWL__LRU_CAPACITY_MAX,
                          capacity);
    }
    AUTO(pawl__lru_free_p) struct pawl__lru *lru = calloc(1, sizeof(*lru));
    size_t slots = 2;
    while (slots < 2 * capacity) {
        slots *= 2;
    }
    if (lru != NULL) {
        lru->nodes = aligned_alloc(LINE_BYTES, (capacity + 1) / 2 * LINE_BYTES);
        lru->slots = calloc(slots, sizeof(*lru->slots));
    }
    if (lru == NULL || lru->nodes == NULL || lru->slots == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a cache of %zu entries", capacity);
    }
    lru->mask = (uint32_t)(slots - 1);
    lru->capacity = (uint32_t)capacity;
    pawl__lru_clear(lru);
    TRY(pawl__hash_seed(&lru->seed, reterr));
    *ret_lru = STEAL(lru);
    return PAWL_OK;
}

void pawl__lru_free(struct pawl__lru *lru)
{
    if (lru != NULL) {
        free(lru->nodes);
        free(lru->slots);
        free(lru);
    }
}

void pawl__lru_clear(struct pawl__lru *lru)
{
    if (lru->count > 0) { /* without entries all slots are empty */
        memset(lru->slots, 0, ((size_t)lru->mask + 1) * sizeof(*lru->slots));
    }
    lru->free = NONE;
    lru->fresh = 0;
    lru->count = 0;
    lru->newest = NONE;
    lru->oldest = NONE;
}

size_t pawl__lru_count(const struct pawl__lru *lru)
{
    return lru->count;
}

static uint64_t hash_of(const struct pawl__lru *lru, struct pawl__lru_key key)
{
    return pawl__hash_beside(&lru->seed, key.a, key.b);
}

/* The slot of the key, or the empty one where it would be put. */
static uint32_t find(const struct pawl__lru *lru, uint64_t hash, struct pawl__lru_key key)
{
    uint32_t tag = (uint32_t)hash;
    uint32_t i = tag & lru->mask;

    for (; lru->slots[i].node != 0; i = (i + 1) & lru->mask) {
        if (lru->slots[i].tag == tag) {
            const struct node *node = &lru->nodes[lru->slots[i].node - 1];
            if (node->key.a == key.a && node->key.b == key.b) {
                break;
            }
        }
    }
    return i;
}

static void unlink_node(struct pawl__lru *lru, uint32_t number)
{
    const struct node *node = &lru->nodes[number];

    if (node->newer == NONE) {
        lru->newest = node->older;
    } else {
        lru->nodes[node->newer].older = node->older;
    }
    if (node->older == NONE) {
        lru->oldest = node->newer;
    } else {
        lru->nodes[node->older].newer = node->newer;
    }
}

static void link_as_newest(struct pawl__lru *lru, uint32_t number)
{
    lru->nodes[number].newer = NONE;
    lru->nodes[number].older = lru->newest;
    if (lru->newest == NONE) {
        lru->oldest = number;
    } else {
        lru->nodes[lru->newest].newer = number;
    }
    lru->newest = number;
}

static struct node *use(struct pawl__lru *lru, uint32_t number)
{
    if (number != lru->newest) {
        unlink_node(lru, number);
        link_as_newest(lru, number);
    }
    return &lru->nodes[number];
}

uint64_t *pawl__lru_get(struct pawl__lru *lru, struct pawl__lru_key key)
{
    uint32_t number = lru->slots[find(lru, hash_of(lru, key), key)].node;

    return number == 0 ? NULL : &use(lru, number - 1)->value;
}

const uint64_t *pawl__lru_peek(const struct pawl__lru *lru, struct pawl__lru_key key)
{
    uint32_t number = lru->slots[find(lru, hash_of(lru, key), key)].node;

    return number == 0 ? NULL : &lru->nodes[number - 1].value;
}

void pawl__lru_expect(const struct pawl__lru *lru, struct pawl__lru_key key)
{
    __builtin_prefetch(&lru->slots[hash_of(lru, key) & lru->mask]);
}

/* By tag alone, so that it waits for no entry; a wrong one does no harm. */
void pawl__lru_fetch(const struct pawl__lru *lru, struct pawl__lru_key key)
{
    uint32_t tag = (uint32_t)hash_of(lru, key);
    uint32_t i = tag & lru->mask;

    while (lru->slots[i].node != 0 && lru->slots[i].tag != tag) {
        i = (i + 1) & lru->mask;
    }
    if (lru->slots[i].node != 0) {
        __builtin_prefetch(&lru->nodes[lru->slots[i].node - 1], 1);
    }
}

/* As in map.c: followers move up, so that no key stands behind an empty slot. */
static void close_hole(struct pawl__lru *lru, uint32_t hole)
{
    for (uint32_t i = (hole + 1) & lru->mask; lru->slots[i].node != 0; i = (i + 1) & lru->mask) {
        uint32_t home = lru->slots[i].tag & lru->mask;
        if (((i - home) & lru->mask) >= ((i - hole) & lru->mask)) {
            lru->slots[hole] = lru->slots[i];
            hole = i;
        }
    }
    lru->slots[hole].node = 0;
}

bool pawl__lru_remove(struct pawl__lru *lru, struct pawl__lru_key key)
{
    uint32_t slot = find(lru, hash_of(lru, key), key);

    if (lru->slots[slot].node == 0) {
        return false;
    }
    uint32_t number = lru->slots[slot].node - 1;
    close_hole(lru, slot);
    unlink_node(lru, number);
    lru->nodes[number].older = lru->free;
    lru->free = number;
    lru->count--;
    return true;
}

static uint32_t take_node(struct pawl__lru *lru)
{
    uint32_t number = lru->free;

    if (number == NONE) {
        REQUIRE(lru->fresh < lru->capacity);
        return lru->fresh++;
    }
    lru->free = lru->nodes[number].older;
    return number;
}

bool pawl__lru_put(struct pawl__lru *lru,
                   struct pawl__lru_key key,
                   uint64_t value,
                   struct pawl__lru_entry *ret_forgotten)
{
    uint64_t hash = hash_of(lru, key);
    uint32_t slot = find(lru, hash, key);
    bool forgets = false;

    if (lru->slots[slot].node != 0) {
        use(lru, lru->slots[slot].node - 1)->value = value;
        return false;
    }
    if (lru->count == lru->capacity) {
        const struct node *oldest = &lru->nodes[lru->oldest];
        if (ret_forgotten != NULL) {
            *ret_forgotten = (struct pawl__lru_entry){ oldest->key, oldest->value };
        }
        forgets = pawl__lru_remove(lru, oldest->key);
        slot = find(lru, hash, key); /* the removal may have moved the empty slot */
    }
    uint32_t number = take_node(lru);
    lru->nodes[number].key = key;
    lru->nodes[number].value = value;
    link_as_newest(lru, number);
    lru->slots[slot] = (struct slot){ (uint32_t)hash, number + 1 };
    lru->count++;
    return forgets;
}
