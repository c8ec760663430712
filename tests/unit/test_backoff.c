#include "lib/check.h"

#include "base/decide/backoff.h"
#include "base/os/clock.h"

/* Delivery's retry: 5 s ... 5 min. */
static const struct pawl__backoff retry = { 5 * NS_PER_S, 300 * NS_PER_S };

static void test_the_ceiling_doubles_and_stops_at_the_maximum(void **state)
{
    (void)state;
    static const int64_t seconds[] = { 5, 10, 20, 40, 80, 160, 300, 300 };

    for (uint64_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        assert_int_equal(pawl__backoff_ceiling_ns(&retry, i + 1), seconds[i] * NS_PER_S);
    }
    assert_int_equal(pawl__backoff_ceiling_ns(&retry, 0), 5 * NS_PER_S);
}

static void test_a_wait_lies_between_half_the_ceiling_and_all_of_it(void **state)
{
    (void)state;
    static const uint64_t randoms[] = { 0, 1, 12345678901234567, UINT64_MAX / 2, UINT64_MAX };

    for (uint64_t attempt = 1; attempt < 12; attempt++) {
        int64_t ceiling = pawl__backoff_ceiling_ns(&retry, attempt);
        for (size_t i = 0; i < sizeof(randoms) / sizeof(randoms[0]); i++) {
            int64_t wait = pawl__backoff_ns(&retry, attempt, randoms[i]);
            assert_true(wait >= ceiling / 2);
            assert_true(wait <= ceiling);
        }
    }
}

static void test_both_ends_of_the_range_are_drawn(void **state)
{
    (void)state;
    static const struct pawl__backoff small = { 8, 8 };
    unsigned drawn = 0;

    for (uint64_t random = 0; random < 5; random++) {
        drawn |= 1U << pawl__backoff_ns(&small, 1, random);
    }
    assert_int_equal(drawn, 1U << 4 | 1U << 5 | 1U << 6 | 1U << 7 | 1U << 8);
}

static void test_no_attempt_number_and_no_maximum_overflows(void **state)
{
    (void)state;
    static const struct pawl__backoff widest = { 1, INT64_MAX };
    static const struct pawl__backoff narrowest = { 1, 1 };
    static const uint64_t attempts[] = { 0, 1, 62, 63, 64, 65, 1000, UINT64_MAX - 1, UINT64_MAX };

    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        int64_t ceiling = pawl__backoff_ceiling_ns(&widest, attempts[i]);
        assert_true(ceiling >= 1);
        assert_true(pawl__backoff_ns(&widest, attempts[i], UINT64_MAX) <= ceiling);
        assert_true(pawl__backoff_ns(&widest, attempts[i], 0) >= 1);
        assert_int_equal(pawl__backoff_ns(&narrowest, attempts[i], UINT64_MAX), 1);
    }
    assert_int_equal(pawl__backoff_ceiling_ns(&widest, 63), INT64_C(1) << 62);
    assert_int_equal(pawl__backoff_ceiling_ns(&widest, 64), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ceiling_doubles_and_stops_at_the_maximum),
        cmocka_unit_test(test_a_wait_lies_between_half_the_ceiling_and_all_of_it),
        cmocka_unit_test(test_both_ends_of_the_range_are_drawn),
        cmocka_unit_test(test_no_attempt_number_and_no_maximum_overflows),
    };
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
