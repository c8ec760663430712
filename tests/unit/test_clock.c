#include "lib/check.h"

#include "lib/virtual_clock.h"

static void test_the_virtual_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(1000000, 5 * NS_PER_S);

    assert_true(pawl__wall_us(&clock.base) == 1000000);
    assert_true(pawl__monotonic_ns(&clock.base) == 5 * NS_PER_S);
    assert_true(pawl__boot_ns(&clock.base) == 5 * NS_PER_S);
    pawl__clock_advance(&clock, 1500);
    assert_true(pawl__wall_us(&clock.base) == 1000001);
    assert_true(pawl__monotonic_ns(&clock.base) == 5 * NS_PER_S + 1500);
    pawl__clock_advance(&clock, 500); /* what was below a microsecond is not lost */
    assert_true(pawl__wall_us(&clock.base) == 1000002);
    pawl__clock_advance(&clock, 0);
    assert_true(pawl__monotonic_ns(&clock.base) == 5 * NS_PER_S + 2000);
}

static void test_a_step_of_the_wall_moves_the_wall_alone(void **state)
{
    (void)state;
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(0, 0);

    pawl__clock_step_wall(&clock, -3600 * US_PER_S);
    assert_true(pawl__wall_us(&clock.base) == -3600 * US_PER_S);
    assert_true(pawl__monotonic_ns(&clock.base) == 0);
    pawl__clock_advance(&clock, NS_PER_S);
    assert_true(pawl__wall_us(&clock.base) == -3599 * US_PER_S);
    pawl__clock_step_wall(&clock, 7200 * US_PER_S);
    assert_true(pawl__wall_us(&clock.base) == 3601 * US_PER_S);
    assert_true(pawl__boot_ns(&clock.base) == NS_PER_S);
}

static void test_sleeping_on_the_virtual_clock_jumps_and_never_back(void **state)
{
    (void)state;
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(0, 0);

    pawl__sleep_until(&clock.base, 30 * NS_PER_S);
    assert_true(pawl__monotonic_ns(&clock.base) == 30 * NS_PER_S);
    assert_true(pawl__wall_us(&clock.base) == 30 * US_PER_S);
    pawl__sleep_until(&clock.base, 10 * NS_PER_S);
    assert_true(pawl__monotonic_ns(&clock.base) == 30 * NS_PER_S);
}

static void test_the_real_clock_never_runs_back(void **state)
{
    (void)state;
    struct pawl__clock *clock = pawl__clock_real();
    int64_t monotonic_ns = pawl__monotonic_ns(clock);
    int64_t boot_ns = pawl__boot_ns(clock);

    assert_true(boot_ns >= monotonic_ns); /* boot counts sleep, too, and was read later */
    for (int i = 0; i < 10000; i++) {
        int64_t next_ns = pawl__monotonic_ns(clock);
        assert_true(next_ns >= monotonic_ns);
        monotonic_ns = next_ns;
        next_ns = pawl__boot_ns(clock);
        assert_true(next_ns >= boot_ns);
        boot_ns = next_ns;
    }
    assert_true(pawl__wall_us(clock) > INT64_C(1735689600) * US_PER_S); /* 2025 */
}

static void test_the_real_sleep_ends_at_or_after_its_time(void **state)
{
    (void)state;
    struct pawl__clock *clock = pawl__clock_real();
    int64_t until_ns = pawl__monotonic_ns(clock) + 2 * NS_PER_MS;

    pawl__sleep_until(clock, until_ns);
    assert_true(pawl__monotonic_ns(clock) >= until_ns);
    pawl__sleep_until(clock, 0); /* long past: returns at once */
    pawl__sleep_until(clock, -NS_PER_S - 1);
}

static void test_the_boot_id_is_a_uuid_and_stays(void **state)
{
    (void)state;
    char first[PAWL__BOOT_ID_SIZE];
    char second[PAWL__BOOT_ID_SIZE];
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__clock_boot_id(first, &error), &error);
    assert_ok(pawl__clock_boot_id(second, &error), &error);
    assert_int_equal(strlen(first), 36);
    assert_int_equal(first[8], '-');
    assert_string_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_virtual_clock_moves_only_when_told),
        cmocka_unit_test(test_a_step_of_the_wall_moves_the_wall_alone),
        cmocka_unit_test(test_sleeping_on_the_virtual_clock_jumps_and_never_back),
        cmocka_unit_test(test_the_real_clock_never_runs_back),
        cmocka_unit_test(test_the_real_sleep_ends_at_or_after_its_time),
        cmocka_unit_test(test_the_boot_id_is_a_uuid_and_stays),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
