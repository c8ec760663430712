#include "lib/check.h"

#include "base/core/macros.h"
#include "base/core/random.h"

static void test_kernel_bytes_differ_and_fill_the_whole_range(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    uint8_t first[1000] = { 0 };
    uint8_t second[1000] = { 0 };
    bool seen[256] = { false };

    assert_ok(pawl__random_bytes(pawl__random_real(), first, sizeof(first), &error), &error);
    assert_ok(pawl__random_bytes(pawl__random_real(), second, 999, &error), &error);
    assert_memory_not_equal(first, second, sizeof(first));
    assert_int_equal(second[999], 0); /* not one byte more than asked for */
    for (size_t i = 0; i < sizeof(first); i++) {
        seen[first[i]] = true;
    }
    size_t values = 0;
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        values += seen[i];
    }
    assert_true(values > 200); /* about 251 are expected */
    assert_ok(pawl__random_bytes(pawl__random_real(), NULL, 0, &error), &error);
}

static void test_a_seed_repeats_and_another_does_not(void **state)
{
    (void)state;
    struct pawl__prng a = pawl__prng_seeded(7);
    struct pawl__prng b = pawl__prng_seeded(7);
    struct pawl__prng other = pawl__prng_seeded(8);

    for (int i = 0; i < 100; i++) {
        uint64_t drawn = pawl__prng_next(&a);
        assert_true(drawn == pawl__prng_next(&b));
        assert_true(drawn != pawl__prng_next(&other));
    }
}

/* The published reference values: splitmix64 from seed 0 and, from state 1, 2, 3, 4, xoshiro256**.
 */
static void test_the_generators_are_the_published_ones(void **state)
{
    (void)state;
    struct pawl__prng seeded = pawl__prng_seeded(0);
    struct pawl__prng prng = { { 1, 2, 3, 4 } };
    static const uint64_t expected[] = { 11520, 0, 1509978240, 1215971899390074240 };

    assert_true(seeded.state[0] == 0xE220A8397B1DCDAF);
    assert_true(seeded.state[1] == 0x6E789E6AA1B965F4);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_true(pawl__prng_next(&prng) == expected[i]);
    }
}

static void test_below_is_uniform_and_stays_below(void **state)
{
    (void)state;
    enum { BOUND = 10, DRAWS = 100000 };
    struct pawl__prng prng = pawl__prng_seeded(42);
    size_t counts[BOUND] = { 0 };

    for (int i = 0; i < DRAWS; i++) {
        uint64_t drawn = pawl__prng_below(&prng, BOUND);
        assert_true(drawn < BOUND);
        counts[drawn]++;
    }
    for (size_t i = 0; i < BOUND; i++) { /* the deviation is about 95 */
        assert_in_range(counts[i], DRAWS / BOUND - 500, DRAWS / BOUND + 500);
    }
    /* Two thirds of the range: taking the rest would make the lower half twice as likely. */
    uint64_t bound = UINT64_MAX / 3 * 2;
    size_t low = 0;
    for (int i = 0; i < DRAWS; i++) {
        low += pawl__prng_below(&prng, bound) < bound / 2;
    }
    assert_in_range(low, DRAWS / 2 - 1000, DRAWS / 2 + 1000);
    assert_true(pawl__prng_below(&prng, 1) == 0);
}

static void test_between_reaches_both_ends(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(1);
    bool seen[5] = { false };

    for (int i = 0; i < 1000; i++) {
        int64_t drawn = pawl__prng_between(&prng, -2, 2);
        assert_true(drawn >= -2 && drawn <= 2);
        seen[drawn + 2] = true;
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        assert_true(seen[i]);
    }
    assert_true(pawl__prng_between(&prng, INT64_MAX, INT64_MAX) == INT64_MAX);
    bool negative = false;
    bool positive = false;
    for (int i = 0; i < 100; i++) {
        int64_t drawn = pawl__prng_between(&prng, INT64_MIN, INT64_MAX);
        negative |= drawn < 0;
        positive |= drawn > 0;
    }
    assert_true(negative && positive);
}

static void test_seeded_bytes_repeat_at_any_length(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    for (size_t len = 0; len < 40; len++) {
        struct pawl__random_seeded a = pawl__random_seeded_with(3);
        struct pawl__random_seeded b = pawl__random_seeded_with(3);
        uint8_t first[41] = { 0 };
        uint8_t second[41] = { 0 };
        assert_ok(pawl__random_bytes(&a.base, first, len, &error), &error);
        assert_ok(pawl__random_bytes(&b.base, second, len, &error), &error);
        assert_memory_equal(first, second, sizeof(first));
        assert_int_equal(first[len], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_bytes_differ_and_fill_the_whole_range),
        cmocka_unit_test(test_a_seed_repeats_and_another_does_not),
        cmocka_unit_test(test_the_generators_are_the_published_ones),
        cmocka_unit_test(test_below_is_uniform_and_stays_below),
        cmocka_unit_test(test_between_reaches_both_ends),
        cmocka_unit_test(test_seeded_bytes_repeat_at_any_length),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
