#include "base/json/keys.h"

#include "base/core/buf.h"

void pawl__json_keys_init(struct pawl__json_keys *keys)
{
    keys->few_count = 0; /* the array behind it need not be cleared: one of these for each object */
    keys->many = NULL;
}

void pawl__json_keys_done(struct pawl__json_keys *keys)
{
    pawl__map_free(keys->many);
}

bool pawl__json_keys_has(const struct pawl__json_keys *keys, pawl_view key)
{
    if (keys->many != NULL) {
        return pawl__map_get(keys->many, key) != NULL;
    }
    for (size_t i = 0; i < keys->few_count; i++) {
        if (pawl__view_equal(keys->few[i], key)) {
            return true;
        }
    }
    return false;
}

static bool put(struct pawl__json_keys *keys, pawl_view key)
{
    return pawl__map_put(keys->many, key, keys, NULL, NULL) == PAWL_OK; /* any value but NULL */
}

static bool move_to_map(struct pawl__json_keys *keys)
{
    bool good = pawl__map_new(SIZE_MAX / 64, &keys->many, NULL) == PAWL_OK;

    for (size_t i = 0; i < keys->few_count && good; i++) {
        good = put(keys, keys->few[i]);
    }
    return good;
}

bool pawl__json_keys_add(struct pawl__json_keys *keys, pawl_view key, bool stays)
{
    if (keys->many == NULL && stays && keys->few_count < PAWL__JSON_KEYS_FEW) {
        keys->few[keys->few_count++] = key;
        return true;
    }
    /* The map copies its keys. */
    return (keys->many != NULL || move_to_map(keys)) && put(keys, key);
}
