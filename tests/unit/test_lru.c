#include "lib/check.h"

#include <stdlib.h>

#include "base/core/lru.h"
#include "base/core/random.h"
#include "lib/fault.h"

static struct pawl__lru *new_lru(size_t capacity)
{
    struct pawl__lru *lru = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__lru_new(capacity, &lru, &error), &error);
    return lru;
}

static struct pawl__lru_key key(uint64_t a, uint64_t b)
{
    return (struct pawl__lru_key){ a, b };
}

static void test_what_was_not_used_for_longest_is_forgotten(void **state)
{
    (void)state;
    AUTO(pawl__lru_free_p) struct pawl__lru *lru = new_lru(3);
    struct pawl__lru_entry forgotten = { 0 };

    assert_false(pawl__lru_put(lru, key(1, 0), 10, &forgotten));
    assert_false(pawl__lru_put(lru, key(2, 0), 20, &forgotten));
    assert_false(pawl__lru_put(lru, key(3, 0), 30, &forgotten));
    assert_int_equal(*pawl__lru_get(lru, key(1, 0)), 10);  /* a use: 2 is the oldest now */
    assert_int_equal(*pawl__lru_peek(lru, key(2, 0)), 20); /* no use */
    assert_true(pawl__lru_put(lru, key(4, 0), 40, &forgotten));
    assert_int_equal(forgotten.key.a, 2);
    assert_int_equal(forgotten.value, 20);
    assert_null(pawl__lru_get(lru, key(2, 0)));
    assert_false(pawl__lru_put(lru, key(3, 0), 31, NULL)); /* known: a use, nothing forgotten */
    assert_true(pawl__lru_put(lru, key(5, 0), 50, &forgotten));
    assert_int_equal(forgotten.key.a, 1);
    assert_int_equal(pawl__lru_count(lru), 3);
}

static void test_both_halves_of_the_key_count(void **state)
{
    (void)state;
    AUTO(pawl__lru_free_p) struct pawl__lru *lru = new_lru(10);

    pawl__lru_put(lru, key(1, 2), 12, NULL);
    pawl__lru_put(lru, key(2, 1), 21, NULL);
    pawl__lru_put(lru, key(0, UINT64_MAX), 3, NULL);
    assert_int_equal(*pawl__lru_get(lru, key(1, 2)), 12);
    assert_int_equal(*pawl__lru_get(lru, key(2, 1)), 21);
    assert_int_equal(*pawl__lru_get(lru, key(0, UINT64_MAX)), 3);
    assert_null(pawl__lru_get(lru, key(1, 1)));
}

static void test_a_value_changes_in_place(void **state)
{
    (void)state;
    AUTO(pawl__lru_free_p) struct pawl__lru *lru = new_lru(1);

    pawl__lru_put(lru, key(7, 7), 1, NULL);
    ++*pawl__lru_get(lru, key(7, 7));
    assert_int_equal(*pawl__lru_peek(lru, key(7, 7)), 2);
    assert_true(pawl__lru_put(lru, key(8, 8), 1, NULL)); /* a capacity of one works, too */
    assert_null(pawl__lru_peek(lru, key(7, 7)));
}

static void test_remove_and_clear_make_room(void **state)
{
    (void)state;
    AUTO(pawl__lru_free_p) struct pawl__lru *lru = new_lru(2);

    pawl__lru_put(lru, key(1, 0), 1, NULL);
    pawl__lru_put(lru, key(2, 0), 2, NULL);
    assert_true(pawl__lru_remove(lru, key(1, 0)));
    assert_false(pawl__lru_remove(lru, key(1, 0)));
    assert_false(pawl__lru_put(lru, key(3, 0), 3, NULL));
    assert_int_equal(pawl__lru_count(lru), 2);
    pawl__lru_clear(lru);
    assert_int_equal(pawl__lru_count(lru), 0);
    assert_null(pawl__lru_get(lru, key(2, 0)));
    assert_false(pawl__lru_put(lru, key(4, 0), 4, NULL));
    assert_false(pawl__lru_put(lru, key(5, 0), 5, NULL));
    assert_true(pawl__lru_put(lru, key(6, 0), 6, NULL));
}

static void test_the_capacity_has_limits(void **state)
{
    (void)state;
    struct pawl__lru *lru = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_status(pawl__lru_new(0, &lru, &error), PAWL_INVALID, &error);
    assert_message(&error, "a cache holds 1 to 268435456 entries, not 0");
    assert_status(
        pawl__lru_new((size_t)PAWL__LRU_CAPACITY_MAX + 1, &lru, &error), PAWL_INVALID, &error);
    assert_null(lru);
}

/* The naive one: a list with the last used in front, searched from end to end. */
struct model {
    struct pawl__lru_entry entries[64];
    size_t count;
    size_t capacity;
};

static size_t model_find(const struct model *model, struct pawl__lru_key wanted)
{
    size_t i = 0;

    while (i < model->count
           && (model->entries[i].key.a != wanted.a || model->entries[i].key.b != wanted.b)) {
        i++;
    }
    return i;
}

static void model_remove_at(struct model *model, size_t at)
{
    model->count--;
    memmove(&model->entries[at],
            &model->entries[at + 1],
            (model->count - at) * sizeof(model->entries[0]));
}

static void model_push(struct model *model, struct pawl__lru_entry entry)
{
    memmove(&model->entries[1], &model->entries[0], model->count * sizeof(model->entries[0]));
    model->entries[0] = entry;
    model->count++;
}

static void check_get(struct pawl__lru *lru, struct model *model, struct pawl__lru_key wanted)
{
    size_t at = model_find(model, wanted);
    uint64_t *value = pawl__lru_get(lru, wanted);

    assert_true((value != NULL) == (at < model->count));
    if (value != NULL) {
        struct pawl__lru_entry entry = model->entries[at];
        assert_true(*value == entry.value);
        model_remove_at(model, at);
        model_push(model, entry);
    }
}

static void check_put(struct pawl__lru *lru, struct model *model, struct pawl__lru_entry entry)
{
    struct pawl__lru_entry forgotten = { 0 };
    size_t at = model_find(model, entry.key);
    bool forgets = pawl__lru_put(lru, entry.key, entry.value, &forgotten);

    assert_true(forgets == (at == model->count && model->count == model->capacity));
    if (forgets) {
        at = model->count - 1;
        assert_memory_equal(&forgotten, &model->entries[at], sizeof(forgotten));
    }
    if (at < model->count) {
        model_remove_at(model, at);
    }
    model_push(model, entry);
}

static void check_remove(struct pawl__lru *lru, struct model *model, struct pawl__lru_key wanted)
{
    size_t at = model_find(model, wanted);
    bool there = at < model->count;

    assert_true(pawl__lru_remove(lru, wanted) == there);
    if (there) {
        model_remove_at(model, at);
    }
}

static void test_random_operations_match_a_naive_list(void **state)
{
    (void)state;
    static const size_t capacities[] = { 1, 2, 3, 7, 32, 63 };
    struct pawl__prng prng = pawl__prng_seeded(13);

    for (size_t i = 0; i < COUNT_OF(capacities); i++) {
        AUTO(pawl__lru_free_p) struct pawl__lru *lru = new_lru(capacities[i]);
        struct model model = { .capacity = capacities[i] };
        for (int round = 0; round < 20000; round++) {
            struct pawl__lru_key wanted =
                key(pawl__prng_below(&prng, capacities[i] + 3), pawl__prng_below(&prng, 2));
            pawl__lru_expect(lru, wanted); /* neither counts as a use */
            pawl__lru_fetch(lru, wanted);
            switch (pawl__prng_below(&prng, 8)) {
            case 0:
                check_remove(lru, &model, wanted);
                break;
            case 1:
            case 2:
            case 3:
                check_get(lru, &model, wanted);
                break;
            default:
                check_put(lru, &model, (struct pawl__lru_entry){ wanted, pawl__prng_next(&prng) });
                break;
            }
            assert_int_equal(pawl__lru_count(lru), model.count);
        }
    }
}

static void test_only_creation_allocates(void **state)
{
    (void)state;
    AUTO(pawl__lru_free_p) struct pawl__lru *lru = new_lru(100);

    fault_arm(1); /* would fail the first */
    for (uint64_t i = 0; i < 1000; i++) {
        pawl__lru_put(lru, key(i, i % 7), i, NULL);
        pawl__lru_get(lru, key(i / 2, i / 2 % 7));
        pawl__lru_remove(lru, key(i - 3, (i - 3) % 7));
    }
    fault_disarm();
    assert_false(fault_fired());
}

static void test_creation_survives_every_failed_allocation(void **state)
{
    (void)state;

    FAULT_WALK (walk) {
        struct pawl__lru *lru = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__lru_new(10, &lru, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_true((lru != NULL) == (status == PAWL_OK));
        pawl__lru_free(lru);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_not_used_for_longest_is_forgotten),
        cmocka_unit_test(test_both_halves_of_the_key_count),
        cmocka_unit_test(test_a_value_changes_in_place),
        cmocka_unit_test(test_remove_and_clear_make_room),
        cmocka_unit_test(test_the_capacity_has_limits),
        cmocka_unit_test(test_random_operations_match_a_naive_list),
        cmocka_unit_test(test_only_creation_allocates),
        cmocka_unit_test(test_creation_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("lru", tests, NULL, NULL);
}
