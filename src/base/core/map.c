/* Open addressing with linear probing: an entry stands in the first free slot from its home on, and
 * no slot between the two is ever empty. Removing moves the followers up instead of leaving a mark,
 * so that a map that lives long does not slow down. */
#include "base/core/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hash.h"

enum { FIRST_SLOTS = 16 }; /* a power of two, as all sizes */

struct entry {
    void *value;
    size_t key_len;
    char key[];
};

struct slot {
    uint64_t hash; /* most keys that differ are told apart without looking at them */
    struct entry *entry;
};

struct pawl__map {
    struct pawl__hash_seed seed;
    struct slot *slots;
    size_t mask; /* number of slots - 1; at most three quarters of them are in use */
    size_t count;
    size_t count_max;
};

pawl_status pawl__map_new(size_t count_max, struct pawl__map **ret_map, pawl_error *reterr)
{
    AUTO(pawl__map_free_p) struct pawl__map *map = calloc(1, sizeof(*map));

    if (map != NULL) {
        map->slots = calloc(FIRST_SLOTS, sizeof(*map->slots));
    }
    if (map == NULL || map->slots == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a map");
    }
    map->mask = FIRST_SLOTS - 1;
    map->count_max = count_max;
    TRY(pawl__hash_seed(&map->seed, reterr));
    *ret_map = STEAL(map);
    return PAWL_OK;
}

void pawl__map_free(struct pawl__map *map)
{
    if (map == NULL) {
        return;
    }
    for (size_t i = 0; map->slots != NULL && i <= map->mask; i++) {
        free(map->slots[i].entry);
    }
    free(map->slots);
    free(map);
}

size_t pawl__map_count(const struct pawl__map *map)
{
    return map->count;
}

static bool has_key(const struct slot *slot, uint64_t hash, pawl_view key)
{
    return slot->hash == hash && slot->entry->key_len == key.len
           && (key.len == 0 || memcmp(slot->entry->key, key.data, key.len) == 0);
}

/* Where the key stands, or the empty slot where it would be put. */
static size_t find(const struct pawl__map *map, uint64_t hash, pawl_view key)
{
    size_t i = hash & map->mask;

    while (map->slots[i].entry != NULL && !has_key(&map->slots[i], hash, key)) {
        i = (i + 1) & map->mask;
    }
    return i;
}

void *pawl__map_get(const struct pawl__map *map, pawl_view key)
{
    const struct entry *entry = map->slots[find(map, pawl__hash_bytes(&map->seed, key), key)].entry;

    return entry == NULL ? NULL : entry->value;
}

static bool is_crowded(const struct pawl__map *map)
{
    return map->count + 1 > (map->mask + 1) / 4 * 3;
}

static pawl_status grow(struct pawl__map *map, pawl_error *reterr)
{
    size_t mask = (map->mask + 1) * 2 - 1;
    struct slot *slots = calloc(mask + 1, sizeof(*slots));

    if (slots == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a map of %zu entries", map->count + 1);
    }
    for (size_t i = 0; i <= map->mask; i++) {
        if (map->slots[i].entry != NULL) {
            size_t to = map->slots[i].hash & mask;
            while (slots[to].entry != NULL) {
                to = (to + 1) & mask;
            }
            slots[to] = map->slots[i];
        }
    }
    free(map->slots);
    map->slots = slots;
    map->mask = mask;
    return PAWL_OK;
}

static struct entry *new_entry(pawl_view key, void *value)
{
    struct entry *entry = malloc(sizeof(*entry) + key.len);

    if (entry != NULL) {
        entry->value = value;
        entry->key_len = key.len;
        if (key.len > 0) {
            memcpy(entry->key, key.data, key.len);
        }
    }
    return entry;
}

static pawl_status insert(
    struct pawl__map *map, uint64_t hash, pawl_view key, void *value, pawl_error *reterr)
{
    if (map->count == map->count_max) {
        return pawl__fail(reterr, PAWL_NO_SPACE, "the map is full: %zu entries", map->count_max);
    }
    if (is_crowded(map)) {
        TRY(grow(map, reterr));
    }
    struct entry *entry = new_entry(key, value);
    if (entry == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a key of %zu bytes", key.len);
    }
    map->slots[find(map, hash, key)] = (struct slot){ hash, entry };
    map->count++;
    return PAWL_OK;
}

pawl_status pawl__map_put(
    struct pawl__map *map, pawl_view key, void *value, void **ret_old, pawl_error *reterr)
{
    uint64_t hash = pawl__hash_bytes(&map->seed, key);
    struct entry *entry = map->slots[find(map, hash, key)].entry;
    void *old = NULL;

    REQUIRE(value != NULL);
    if (entry != NULL) {
        old = entry->value;
        entry->value = value;
    } else {
        TRY(insert(map, hash, key, value, reterr));
    }
    if (ret_old != NULL) {
        *ret_old = old;
    }
    return PAWL_OK;
}

/* Fills the hole with the next entry that may stand there, and so on, up to an empty slot. An entry
 * may when the hole is not before its home, counted around the end. */
static void close_hole(struct pawl__map *map, size_t hole)
{
    for (size_t i = (hole + 1) & map->mask; map->slots[i].entry != NULL; i = (i + 1) & map->mask) {
        size_t home = map->slots[i].hash & map->mask;
        if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].entry = NULL;
}

void *pawl__map_remove(struct pawl__map *map, pawl_view key)
{
    size_t i = find(map, pawl__hash_bytes(&map->seed, key), key);
    struct entry *entry = map->slots[i].entry;

    if (entry == NULL) {
        return NULL;
    }
    void *value = entry->value;
    free(entry);
    close_hole(map, i);
    map->count--;
    return value;
}

bool pawl__map_next(const struct pawl__map *map,
                    size_t *cursor,
                    pawl_view *ret_key,
                    void **ret_value)
{
    while (*cursor <= map->mask) {
        const struct entry *entry = map->slots[(*cursor)++].entry;
        if (entry != NULL) {
            if (ret_key != NULL) {
                *ret_key = (pawl_view){ entry->key, entry->key_len };
            }
            *ret_value = entry->value;
            return true;
        }
    }
    return false;
}
