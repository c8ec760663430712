/* A hash map from bytes to pointers.
 *
 * Keys are copied into the map, values stay the caller's. One thread at a time. */
#ifndef PAWL_BASE_CORE_MAP_H
#define PAWL_BASE_CORE_MAP_H

#include <pawl/pawl.h>

#include "base/core/macros.h"

struct pawl__map;

/* An empty map that holds at most `count_max` entries. */
PAWL_MUST_USE pawl_status pawl__map_new(size_t count_max,
                                        struct pawl__map **ret_map,
                                        pawl_error *reterr);
DEFINE_AUTO(struct pawl__map *, pawl__map_free)

size_t pawl__map_count(const struct pawl__map *map);

/* The value; NULL when the key is not there. */
void *pawl__map_get(const struct pawl__map *map, pawl_view key);

/* Sets the value (not NULL) of a key. *ret_old, unless ret_old is NULL, becomes the value it had or
 * NULL. NO_SPACE when the map is full and the key new. */
PAWL_MUST_USE pawl_status pawl__map_put(
    struct pawl__map *map, pawl_view key, void *value, void **ret_old, pawl_error *reterr);

/* Takes the key out and returns its value; NULL when it was not there. */
void *pawl__map_remove(struct pawl__map *map, pawl_view key);

/* Walks all entries, in no order. Start with *cursor = 0; false at the end. The map must not change
 * on the way, but the values may. Key (may be NULL) and value are the map's. */
bool pawl__map_next(const struct pawl__map *map,
                    size_t *cursor,
                    pawl_view *ret_key,
                    void **ret_value);

#endif
