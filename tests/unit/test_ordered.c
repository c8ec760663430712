/* Keys in order, against a plain sorted array. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/memory/ordered.h"
#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/core/random.h"

enum { KEYS = 300, STEPS = 20000 };

static pawl_view key_of(int number, char space[8])
{
    /* Of several lengths, so that one is the beginning of another. */
    int len =
        snprintf(space, 8, "%c%c%.*s", 'a' + number % 17, 'a' + number / 17, number % 3, "zz");

    return (pawl_view){ space, (size_t)len };
}

static void put(struct app_ordered *ordered, int key, uint64_t value)
{
    char space[8];
    struct app_ordered_cell *cell = pawl__app_ordered_cell(
        ordered, key_of(key, space), (pawl_view){ (const char *)&value, sizeof(value) });

    assert_non_null(cell);
    pawl__app_ordered_put(ordered, cell);
}

/* Both ways through all, and the same as the model says. */
static void expect_same(struct app_ordered *ordered, const uint64_t *values)
{
    struct app_ordered_cell *before = NULL;
    size_t count = 0;
    char space[8];

    for (struct app_ordered_cell *cell = ordered->first[0]; cell != NULL; cell = cell->after[0]) {
        assert_ptr_equal(cell->before, before);
        assert_true(before == NULL || pawl__app_ordered_compare(before->key, cell->key) < 0);
        before = cell;
        count++;
    }
    assert_ptr_equal(ordered->last, before);
    assert_int_equal(ordered->count, count);
    for (int key = 0; key < KEYS; key++) {
        const struct app_ordered_cell *cell = pawl__app_ordered_find(ordered, key_of(key, space));
        assert_int_equal(cell != NULL, values[key] != 0);
        if (cell != NULL) {
            assert_memory_equal(cell->value.data, &values[key], sizeof(values[key]));
            count--;
        }
    }
    assert_int_equal(count, 0);
}

static void test_any_puts_and_deletes_leave_what_a_plain_array_has(void **state)
{
    struct pawl__prng random = pawl__prng_seeded(7);
    uint64_t values[KEYS] = { 0 };
    struct app_ordered ordered;
    char space[8];

    (void)state;
    pawl__app_ordered_init(&ordered);
    for (uint64_t step = 1; step <= STEPS; step++) {
        int key = (int)pawl__prng_below(&random, KEYS);
        if (pawl__prng_below(&random, 3) == 0) {
            pawl__app_ordered_delete(&ordered, key_of(key, space));
            values[key] = 0;
        } else {
            put(&ordered, key, step);
            values[key] = step;
        }
        if (step % 500 == 0) {
            expect_same(&ordered, values);
        }
    }
    pawl__app_ordered_done(&ordered);
}

static void test_from_finds_the_first_key_that_is_not_below(void **state)
{
    struct app_ordered ordered;

    (void)state;
    pawl__app_ordered_init(&ordered);
    assert_null(pawl__app_ordered_from(&ordered, pawl_view_of("")));
    static const char *const keys[] = { "b", "d", "" };
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct app_ordered_cell *cell =
            pawl__app_ordered_cell(&ordered, pawl_view_of(keys[i]), (pawl_view){ NULL, 0 });
        assert_non_null(cell);
        pawl__app_ordered_put(&ordered, cell);
    }
    assert_int_equal(pawl__app_ordered_from(&ordered, pawl_view_of(""))->key.len, 0);
    assert_true(pawl__view_is(pawl__app_ordered_from(&ordered, pawl_view_of("a"))->key, "b"));
    assert_true(pawl__view_is(pawl__app_ordered_from(&ordered, pawl_view_of("b"))->key, "b"));
    assert_true(pawl__view_is(pawl__app_ordered_from(&ordered, pawl_view_of("bb"))->key, "d"));
    assert_null(pawl__app_ordered_from(&ordered, pawl_view_of("e")));
    pawl__app_ordered_done(&ordered);
}

static uint64_t work_of(uint64_t keys, uint64_t step)
{
    struct app_ordered ordered;

    pawl__app_ordered_init(&ordered);
    for (uint64_t i = 0; i < keys; i++) {
        uint64_t number = __builtin_bswap64(1 + i * step % keys);
        pawl_view key = { (const char *)&number, sizeof(number) };
        assert_null(pawl__app_ordered_find(&ordered, key));
        struct app_ordered_cell *cell = pawl__app_ordered_cell(&ordered, key, pawl_view_of("x"));
        assert_non_null(cell);
        pawl__app_ordered_put(&ordered, cell);
    }
    uint64_t compared = ordered.compared;
    pawl__app_ordered_done(&ordered);
    return compared;
}

/* Counted in compared keys, which no machine changes: ten times the keys may cost ten times the work and a
 * little more, in any order of keys. */
static void test_inserts_stay_cheap(void **state)
{
    static const uint64_t steps[] = { 1, 7, 7919 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        uint64_t few = work_of(3000, steps[i]);
        uint64_t many = work_of(30000, steps[i]);
        assert_true(many < 20 * few);
        assert_true(many < UINT64_C(30000) * 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inserts_stay_cheap),
        cmocka_unit_test(test_any_puts_and_deletes_leave_what_a_plain_array_has),
        cmocka_unit_test(test_from_finds_the_first_key_that_is_not_below),
    };
    return cmocka_run_group_tests_name("ordered", tests, NULL, NULL);
}
