#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/hash.h"
#include "base/core/map.h"
#include "base/core/random.h"
#include "lib/fault.h"

static struct pawl__map *new_map(size_t count_max)
{
    struct pawl__map *map = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__map_new(count_max, &map, &error), &error);
    return map;
}

static void *put(struct pawl__map *map, pawl_view key, void *value)
{
    void *old = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__map_put(map, key, value, &old, &error), &error);
    return old;
}

static void test_keys_are_bytes_of_any_length(void **state)
{
    (void)state;
    AUTO(pawl__map_free_p) struct pawl__map *map = new_map(100);
    static const pawl_view keys[] = {
        { NULL, 0 }, { "\0", 1 },  { "\0\0", 2 },
        { "a", 1 },  { "a\0", 2 }, { "abcdefghijklmnop", 16 },
    };
    int values[COUNT_OF(keys)];

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        assert_null(put(map, keys[i], &values[i]));
    }
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        assert_ptr_equal(pawl__map_get(map, keys[i]), &values[i]);
    }
    assert_null(pawl__map_get(map, pawl_view_of("b")));
    assert_int_equal(pawl__map_count(map), COUNT_OF(keys));
}

static void test_a_key_is_copied_and_a_second_put_returns_the_old_value(void **state)
{
    (void)state;
    AUTO(pawl__map_free_p) struct pawl__map *map = new_map(100);
    char key[] = "key";
    int first;
    int second;

    assert_null(put(map, pawl_view_of(key), &first));
    memset(key, 'x', 3);
    assert_ptr_equal(put(map, pawl_view_of("key"), &second), &first);
    assert_ptr_equal(pawl__map_get(map, pawl_view_of("key")), &second);
    assert_int_equal(pawl__map_count(map), 1);
    assert_ptr_equal(pawl__map_remove(map, pawl_view_of("key")), &second);
    assert_null(pawl__map_remove(map, pawl_view_of("key")));
    assert_int_equal(pawl__map_count(map), 0);
}

static void test_a_full_map_takes_known_keys_only(void **state)
{
    (void)state;
    AUTO(pawl__map_free_p) struct pawl__map *map = new_map(2);
    pawl_error error = PAWL_ERROR_INIT;
    int value;
    void *old = &error;

    put(map, pawl_view_of("a"), &value);
    put(map, pawl_view_of("b"), &value);
    assert_status(
        pawl__map_put(map, pawl_view_of("c"), &value, &old, &error), PAWL_NO_SPACE, &error);
    assert_message(&error, "the map is full: 2 entries");
    assert_ptr_equal(old, &error); /* a failed call leaves its outputs alone */
    assert_ptr_equal(put(map, pawl_view_of("b"), &value), &value);
    pawl__map_remove(map, pawl_view_of("a"));
    put(map, pawl_view_of("c"), &value);
    assert_int_equal(pawl__map_count(map), 2);
}

enum { MODEL_KEYS = 200 };

static pawl_view model_key(char *text, size_t size, size_t i)
{
    return (pawl_view){ text, (size_t)snprintf(text, size, "%0*zu", (int)(i % 20), i) };
}

/* Everything the map says, a plain array says too. */
static void assert_like_model(const struct pawl__map *map, int *const *model)
{
    size_t count = 0;
    size_t walked = 0;
    char text[32];

    for (size_t i = 0; i < MODEL_KEYS; i++) {
        assert_ptr_equal(pawl__map_get(map, model_key(text, sizeof(text), i)), model[i]);
        count += model[i] != NULL;
    }
    assert_int_equal(pawl__map_count(map), count);
    size_t cursor = 0;
    pawl_view key;
    void *value;
    while (pawl__map_next(map, &cursor, &key, &value)) {
        char key_text[32];
        snprintf(key_text, sizeof(key_text), "%.*s", (int)key.len, key.data);
        size_t i = strtoul(key_text, NULL, 10);
        assert_true(i < MODEL_KEYS);
        assert_ptr_equal(model[i], value);
        walked++;
    }
    assert_int_equal(walked, count);
}

static void test_random_operations_match_a_plain_array(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(11);
    AUTO(pawl__map_free_p) struct pawl__map *map = new_map(MODEL_KEYS);
    int *model[MODEL_KEYS] = { NULL };
    int values[16];
    char text[32];

    for (int round = 0; round < 30000; round++) {
        size_t i = pawl__prng_below(&prng, MODEL_KEYS);
        pawl_view key = model_key(text, sizeof(text), i);
        /* Phases that fill and phases that empty it. */
        if (pawl__prng_below(&prng, 10) < (round / 2000 % 2 == 0 ? 7U : 2U)) {
            int *value = &values[pawl__prng_below(&prng, COUNT_OF(values))];
            assert_ptr_equal(put(map, key, value), model[i]);
            model[i] = value;
        } else {
            assert_ptr_equal(pawl__map_remove(map, key), model[i]);
            model[i] = NULL;
        }
        if (round % 50 == 0) {
            assert_like_model(map, model);
        }
    }
}

static void test_a_large_map_keeps_all(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    AUTO(pawl__map_free_p) struct pawl__map *map = new_map(COUNT);
    static char values[COUNT];

    for (uint32_t i = 0; i < COUNT; i++) {
        put(map, (pawl_view){ (const char *)&i, sizeof(i) }, &values[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_ptr_equal(pawl__map_get(map, (pawl_view){ (const char *)&i, sizeof(i) }),
                         &values[i]);
    }
}

static void test_a_map_survives_every_failed_allocation(void **state)
{
    (void)state;
    int value;

    FAULT_WALK (walk) {
        struct pawl__map *map = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__map_new(100, &map, &error);
        size_t put_count = 0;
        for (uint32_t i = 0; status == PAWL_OK && i < 40; i++) { /* it grows twice */
            pawl_view key = { (const char *)&i, sizeof(i) };
            status = pawl__map_put(map, key, &value, NULL, &error);
            put_count += status == PAWL_OK;
        }
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        for (uint32_t i = 0; i < put_count; i++) { /* what was put before is still there */
            assert_ptr_equal(pawl__map_get(map, (pawl_view){ (const char *)&i, sizeof(i) }),
                             &value);
        }
        assert_int_equal(map == NULL ? 0 : pawl__map_count(map), put_count);
        pawl__map_free(map);
    }
}

static int bits_of(uint64_t value)
{
    return __builtin_popcountll(value);
}

static void test_hashes_depend_on_every_bit_and_on_the_seed(void **state)
{
    (void)state;
    struct pawl__hash_seed seed;
    struct pawl__hash_seed other;
    pawl_error error = PAWL_ERROR_INIT;
    char bytes[24] = { 0 };
    int flipped = 0;
    int flips = 0;

    assert_ok(pawl__hash_seed(&seed, &error), &error);
    assert_ok(pawl__hash_seed(&other, &error), &error);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        uint64_t hash = pawl__hash_bytes(&seed, (pawl_view){ bytes, len });
        assert_true(hash != pawl__hash_bytes(&other, (pawl_view){ bytes, len }));
        assert_true(len == 0 || hash != pawl__hash_bytes(&seed, (pawl_view){ bytes, len - 1 }));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            bytes[bit / 8] = (char)(1U << bit % 8);
            flipped += bits_of(hash ^ pawl__hash_bytes(&seed, (pawl_view){ bytes, len }));
            flips++;
            bytes[bit / 8] = 0;
        }
    }
    assert_in_range(flipped / flips, 31, 33); /* half of 64 on average */
    flipped = 0;
    for (unsigned bit = 0; bit < 128; bit++) {
        uint64_t a = bit < 64 ? UINT64_C(1) << bit : 0;
        uint64_t b = bit < 64 ? 0 : UINT64_C(1) << (bit - 64);
        flipped += bits_of(pawl__hash_pair(&seed, 0, 0) ^ pawl__hash_pair(&seed, a, b));
    }
    assert_in_range(flipped / 128, 24, 40);
}

static void test_keys_beside_each_other_differ_by_one_and_others_by_much(void **state)
{
    const struct pawl__hash_seed seed = { { 1, 2 } };
    int flipped = 0;

    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t a = UINT64_C(1) << bit;
        uint64_t first = pawl__hash_beside(&seed, a, 1);
        assert_true(pawl__hash_beside(&seed, a, 2) == first + 1);
        flipped += bits_of(first ^ pawl__hash_beside(&seed, 0, 1));
    }
    assert_in_range(flipped / 64, 24, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_bytes_of_any_length),
        cmocka_unit_test(test_a_key_is_copied_and_a_second_put_returns_the_old_value),
        cmocka_unit_test(test_a_full_map_takes_known_keys_only),
        cmocka_unit_test(test_random_operations_match_a_plain_array),
        cmocka_unit_test(test_a_large_map_keeps_all),
        cmocka_unit_test(test_a_map_survives_every_failed_allocation),
        cmocka_unit_test(test_hashes_depend_on_every_bit_and_on_the_seed),
        cmocka_unit_test(test_keys_beside_each_other_differ_by_one_and_others_by_much),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
