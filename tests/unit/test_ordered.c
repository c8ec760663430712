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

static void put(struct ordered *ordered, int key, uint64_t value)
{
    char space[8];
    struct ordered_cell *cell = pawl__ordered_cell(
        ordered, key_of(key, space), (pawl_view){ (const char *)&value, sizeof(value) });

    assert_non_null(cell);
    pawl__ordered_put(ordered, cell);
}

/* Both ways through all, and the same as the model says. */
static void expect_same(struct ordered *ordered, const uint64_t *values)
{
    struct ordered_cell *before = NULL;
    size_t count = 0;
    char space[8];

    for (struct ordered_cell *cell = ordered->first[0]; cell != NULL; cell = cell->after[0]) {
        assert_ptr_equal(cell->before, before);
        assert_true(before == NULL || pawl__ordered_compare(before->key, cell->key) < 0);
        before = cell;
        count++;
    }
    assert_ptr_equal(ordered->last, before);
    assert_int_equal(ordered->count, count);
    for (int key = 0; key < KEYS; key++) {
        const struct ordered_cell *cell = pawl__ordered_find(ordered, key_of(key, space));
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
    struct ordered ordered;
    char space[8];

    (void)state;
    pawl__ordered_init(&ordered);
    for (uint64_t step = 1; step <= STEPS; step++) {
        int key = (int)pawl__prng_below(&random, KEYS);
        if (pawl__prng_below(&random, 3) == 0) {
            pawl__ordered_delete(&ordered, key_of(key, space));
            values[key] = 0;
        } else {
            put(&ordered, key, step);
            values[key] = step;
        }
        if (step % 500 == 0) {
            expect_same(&ordered, values);
        }
    }
    pawl__ordered_done(&ordered);
}

static void test_from_finds_the_first_key_that_is_not_below(void **state)
{
    struct ordered ordered;

    (void)state;
    pawl__ordered_init(&ordered);
    assert_null(pawl__ordered_from(&ordered, pawl_view_of("")));
    static const char *const keys[] = { "b", "d", "" };
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct ordered_cell *cell =
            pawl__ordered_cell(&ordered, pawl_view_of(keys[i]), (pawl_view){ NULL, 0 });
        assert_non_null(cell);
        pawl__ordered_put(&ordered, cell);
    }
    assert_int_equal(pawl__ordered_from(&ordered, pawl_view_of(""))->key.len, 0);
    assert_true(pawl__view_is(pawl__ordered_from(&ordered, pawl_view_of("a"))->key, "b"));
    assert_true(pawl__view_is(pawl__ordered_from(&ordered, pawl_view_of("b"))->key, "b"));
    assert_true(pawl__view_is(pawl__ordered_from(&ordered, pawl_view_of("bb"))->key, "d"));
    assert_null(pawl__ordered_from(&ordered, pawl_view_of("e")));
    pawl__ordered_done(&ordered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_puts_and_deletes_leave_what_a_plain_array_has),
        cmocka_unit_test(test_from_finds_the_first_key_that_is_not_below),
    };
    return cmocka_run_group_tests_name("ordered", tests, NULL, NULL);
}
