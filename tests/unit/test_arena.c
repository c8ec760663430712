#include "lib/check.h"

#include "base/core/arena.h"
#include "base/core/macros.h"
#include "lib/fault.h"

static void test_pieces_stay_where_they_are_while_it_grows(void **state)
{
    (void)state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    uint64_t *pieces[10000];

    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        pieces[i] = pawl__arena_take(&arena, 1 + i % 100);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % sizeof(uint64_t), 0);
        *(uint8_t *)pieces[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        assert_int_equal(*(uint8_t *)pieces[i], (uint8_t)i);
    }
}

static void test_a_cleared_arena_is_filled_again_without_allocating(void **state)
{
    (void)state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;

    assert_non_null(pawl__arena_take(&arena, 100000));
    for (int round = 0; round < 10; round++) {
        pawl__arena_clear(&arena);
        fault_arm(1); /* the next allocation would fail */
        assert_non_null(pawl__arena_take(&arena, 50000));
        assert_non_null(pawl__arena_take(&arena, 49000));
        assert_false(fault_fired());
        fault_disarm();
    }
}

static void test_a_copy_ends_in_a_nul_and_an_empty_one_is_there(void **state)
{
    (void)state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view copy;

    assert_true(pawl__arena_copy(&arena, pawl_view_of("abc"), &copy));
    assert_string_equal(copy.data, "abc");
    assert_int_equal(copy.len, 3);
    assert_true(pawl__arena_copy(&arena, (pawl_view){ NULL, 0 }, &copy));
    assert_string_equal(copy.data, "");
}

static void test_running_out_of_memory_leaves_it_usable(void **state)
{
    (void)state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view copy = { "before", 6 };

    fault_arm(1);
    assert_false(pawl__arena_copy(&arena, pawl_view_of("x"), &copy));
    fault_disarm();
    assert_string_equal(copy.data, "before");
    assert_true(pawl__arena_copy(&arena, pawl_view_of("x"), &copy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_stay_where_they_are_while_it_grows),
        cmocka_unit_test(test_a_cleared_arena_is_filled_again_without_allocating),
        cmocka_unit_test(test_a_copy_ends_in_a_nul_and_an_empty_one_is_there),
        cmocka_unit_test(test_running_out_of_memory_leaves_it_usable),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
