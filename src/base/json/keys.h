/* The keys of one object, to find the one that comes twice. Most objects have a few, which are
 * compared one by one; from there on a map is faster, however many there are. */
#ifndef PAWL_BASE_JSON_KEYS_H
#define PAWL_BASE_JSON_KEYS_H

#include "base/core/map.h"

enum { PAWL__JSON_KEYS_FEW = 16 };

struct pawl__json_keys {
    pawl_view few[PAWL__JSON_KEYS_FEW];
    size_t few_count;
    struct pawl__map *many; /* all of them, once they are more than a few */
};

void pawl__json_keys_init(struct pawl__json_keys *keys);
void pawl__json_keys_done(struct pawl__json_keys *keys);
bool pawl__json_keys_has(const struct pawl__json_keys *keys, pawl_view key);

/* `stays`: the bytes live as long as this. Others are copied. False without memory. */
PAWL_MUST_USE bool pawl__json_keys_add(struct pawl__json_keys *keys, pawl_view key, bool stays);

#endif
