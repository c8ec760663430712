#include "lib/check.h"

#include <string.h>

#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/os/clock.h"

static int64_t duration_of(const char *text)
{
    pawl_error error = PAWL_ERROR_INIT;
    int64_t ns = -1;

    assert_ok(pawl__duration_parse(pawl_view_of(text), &ns, &error), &error);
    return ns;
}

static uint64_t size_of(const char *text)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t bytes = 1;

    assert_ok(pawl__size_parse(pawl_view_of(text), &bytes, &error), &error);
    return bytes;
}

static int64_t integer_of(const char *text)
{
    pawl_error error = PAWL_ERROR_INIT;
    int64_t value = 1;

    assert_ok(pawl__integer_parse(pawl_view_of(text), &value, &error), &error);
    return value;
}

static void test_durations_are_read_in_every_unit(void **state)
{
    (void)state;
    assert_int_equal(duration_of("0"), 0);
    assert_int_equal(duration_of("0s"), 0);
    assert_int_equal(duration_of("7ns"), 7);
    assert_int_equal(duration_of("7us"), 7 * NS_PER_US);
    assert_int_equal(duration_of("500ms"), 500 * NS_PER_MS);
    assert_int_equal(duration_of("30s"), 30 * NS_PER_S);
    assert_int_equal(duration_of("5m"), 300 * NS_PER_S);
    assert_int_equal(duration_of("2h"), 7200 * NS_PER_S);
    assert_int_equal(duration_of("7d"), 604800 * NS_PER_S);
    assert_int_equal(duration_of("1h30m"), 5400 * NS_PER_S);
    assert_int_equal(duration_of("1d0h0m1s500ms"), 86401 * NS_PER_S + 500 * NS_PER_MS);
    assert_int_equal(duration_of("9223372036854775807ns"), INT64_MAX);
}

static void test_what_is_no_duration_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        { "", "is no duration; write 500ms" },
        { "s", "is no duration" },
        { "30", "has no unit; write 500ms" },
        { "00", "has no unit" },
        { "-1s", "is no duration" },
        { "+1s", "is no duration" },
        { "1.5s", "is no duration" },
        { " 1s", "is no duration" },
        { "1s ", "is no duration" },
        { "1 s", "is no duration" },
        { "1S", "is no duration" },
        { "1w", "is no duration" },
        { "1m1h", "is no duration" }, /* from the largest down */
        { "1s1s", "is no duration" },
        { "1h30", "is no duration" },
        { "9223372036854775808ns", "is too large" },
        { "18446744073709551616ns", "is too large" },
        { "106752d", "is too large" },
        { "106751d24h", "is too large" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t ns = 42;

        assert_status(
            pawl__duration_parse(pawl_view_of(bad[i].text), &ns, &error), PAWL_INVALID, &error);
        assert_message(&error, bad[i].message);
        assert_int_equal(ns, 42);
    }
}

static void test_sizes_are_read_in_thousands_and_in_1024s(void **state)
{
    (void)state;
    assert_true(size_of("0") == 0);
    assert_true(size_of("16777216") == 16777216);
    assert_true(size_of("12B") == 12);
    assert_true(size_of("16MiB") == 16777216);
    assert_true(size_of("64MB") == 64000000);
    assert_true(size_of("1kB") == 1000);
    assert_true(size_of("1KB") == 1000);
    assert_true(size_of("1KiB") == 1024);
    assert_true(size_of("3GiB") == UINT64_C(3) << 30);
    assert_true(size_of("2TB") == UINT64_C(2000000000000));
    assert_true(size_of("15EiB") == UINT64_C(15) << 60);
    assert_true(size_of("18EB") == UINT64_C(18000000000000000000));
    assert_true(size_of("18446744073709551615") == UINT64_MAX);
}

static void test_what_is_no_size_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        { "", "is no size; write 16777216, 64MB" },
        { "MiB", "is no size" },
        { "16M", "is no size" }, /* thousands or 1,024s? */
        { "16mb", "is no size" },
        { "16 MiB", "is no size" },
        { "1.5GiB", "is no size" },
        { "-1", "is no size" },
        { "0x10", "is no size" },
        { "1KiB1B", "is no size" },
        { "18446744073709551616", "is too large" },
        { "16EiB", "is too large" },
        { "19EB", "is too large" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        uint64_t bytes = 42;

        assert_status(
            pawl__size_parse(pawl_view_of(bad[i].text), &bytes, &error), PAWL_INVALID, &error);
        assert_message(&error, bad[i].message);
        assert_true(bytes == 42);
    }
}

static void test_integers_reach_both_ends_and_not_further(void **state)
{
    static const char *const bad[] = {
        "",
        "-",
        "--1",
        "+1",
        "1 ",
        "0x1",
        "1e3",
        "1.0",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999",
    };
    (void)state;
    assert_int_equal(integer_of("0"), 0);
    assert_int_equal(integer_of("-0"), 0);
    assert_int_equal(integer_of("007"), 7);
    assert_true(integer_of("9223372036854775807") == INT64_MAX);
    assert_true(integer_of("-9223372036854775808") == INT64_MIN);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t value = 42;

        assert_status(
            pawl__integer_parse(pawl_view_of(bad[i]), &value, &error), PAWL_INVALID, &error);
        assert_int_equal(value, 42);
    }
}

static void test_what_is_formatted_reads_back_the_same(void **state)
{
    char text[PAWL__QUANTITY_SIZE];
    uint64_t walk = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        walk = walk * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t value = walk >> (walk & 63);

        pawl__size_format(value, text);
        assert_true(size_of(text) == value);
        pawl__duration_format((int64_t)(value >> 1), text);
        assert_true(duration_of(text) == (int64_t)(value >> 1));
    }
}

static void test_the_form_is_the_one_a_person_would_write(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        { 0, "0B" },
        { 1536, "1536B" },
        { 1000, "1kB" },
        { 1024, "1KiB" },
        { 16777216, "16MiB" },
        { 64000000, "64MB" },
        { UINT64_MAX, "18446744073709551615B" },
    };
    static const struct {
        int64_t ns;
        const char *text;
    } durations[] = {
        { 0, "0s" },
        { 90 * NS_PER_S, "90s" },
        { 3600 * NS_PER_S, "1h" },
        { 1500 * NS_PER_MS, "1500ms" },
        { 604800 * NS_PER_S, "7d" },
        { INT64_MAX, "9223372036854775807ns" },
    };
    char text[PAWL__QUANTITY_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        pawl__size_format(sizes[i].bytes, text);
        assert_string_equal(text, sizes[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        pawl__duration_format(durations[i].ns, text);
        assert_string_equal(text, durations[i].text);
    }
}

static void assert_human(void (*format)(double, char *), double value, const char *expected)
{
    char text[PAWL__QUANTITY_SIZE];

    format(value, text);
    assert_string_equal(text, expected);
}

static void test_numbers_for_people_watching_are_short(void **state)
{
    char text[PAWL__QUANTITY_SIZE];

    (void)state;
    assert_human(pawl__size_human, 0, "0 B");
    assert_human(pawl__size_human, 1023, "1023 B");
    assert_human(pawl__size_human, 1024, "1.0 KiB");
    assert_human(pawl__size_human, 1.5 * (1 << 30), "1.5 GiB");
    assert_human(pawl__size_human, -1, "0 B");
    assert_human(pawl__count_human, 7, "7");
    assert_human(pawl__count_human, 7.25, "7.2");
    assert_human(pawl__count_human, 999.96, "1.0 k");
    assert_human(pawl__count_human, 12345, "12.3 k");
    assert_human(pawl__count_human, 1e30, "0");
    pawl__duration_human(42 * NS_PER_S, text);
    assert_string_equal(text, "0:42");
    pawl__duration_human(11109 * NS_PER_S, text);
    assert_string_equal(text, "3:05:09");
    pawl__duration_human(INT64_MAX, text);
    assert_string_equal(text, "106751 d");
    pawl__duration_human(-5, text);
    assert_string_equal(text, "0:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations_are_read_in_every_unit),
        cmocka_unit_test(test_what_is_no_duration_is_refused),
        cmocka_unit_test(test_sizes_are_read_in_thousands_and_in_1024s),
        cmocka_unit_test(test_what_is_no_size_is_refused),
        cmocka_unit_test(test_integers_reach_both_ends_and_not_further),
        cmocka_unit_test(test_what_is_formatted_reads_back_the_same),
        cmocka_unit_test(test_the_form_is_the_one_a_person_would_write),
        cmocka_unit_test(test_numbers_for_people_watching_are_short),
    };
    return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
