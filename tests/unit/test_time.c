#include "lib/check.h"

#include <stdio.h>
#include <time.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "base/os/clock.h"

#define FIRST_US (INT64_C(-62135596800) * US_PER_S)    /* 0001-01-01 00:00:00 */
#define LAST_US (INT64_C(253402300800) * US_PER_S - 1) /* 9999-12-31 23:59:59.999999 */

static int64_t parse(const char *text)
{
    int64_t wall_us = 0;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__time_parse(pawl_view_of(text), &wall_us, &error), &error);
    return wall_us;
}

static void test_known_moments_have_their_texts(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_us;
        const char *store;
        const char *rfc3339;
    } rows[] = {
        { 0, "1970-01-01 00:00:00.000000", "1970-01-01T00:00:00.000000Z" },
        { -1, "1969-12-31 23:59:59.999999", "1969-12-31T23:59:59.999999Z" },
        { 1769682030123456, "2026-01-29 10:20:30.123456", "2026-01-29T10:20:30.123456Z" },
        { 951782400000000, "2000-02-29 00:00:00.000000", "2000-02-29T00:00:00.000000Z" },
        { 4107542400000000, "2100-03-01 00:00:00.000000", "2100-03-01T00:00:00.000000Z" },
        { FIRST_US, "0001-01-01 00:00:00.000000", "0001-01-01T00:00:00.000000Z" },
        { LAST_US, "9999-12-31 23:59:59.999999", "9999-12-31T23:59:59.999999Z" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[PAWL__TIME_SIZE];
        pawl__time_store(rows[i].wall_us, text);
        assert_string_equal(text, rows[i].store);
        pawl__time_rfc3339(rows[i].wall_us, text);
        assert_string_equal(text, rows[i].rfc3339);
        assert_true(parse(rows[i].store) == rows[i].wall_us);
        assert_true(parse(rows[i].rfc3339) == rows[i].wall_us);
    }
}

static void test_writing_stops_at_the_ends_of_four_digits(void **state)
{
    (void)state;
    char text[PAWL__TIME_SIZE];

    pawl__time_store(FIRST_US - 1, text);
    assert_string_equal(text, "0001-01-01 00:00:00.000000");
    pawl__time_store(INT64_MIN, text);
    assert_string_equal(text, "0001-01-01 00:00:00.000000");
    pawl__time_rfc3339(LAST_US + 1, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
    pawl__time_rfc3339(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
}

static void test_zero_to_nine_decimals_are_cut_to_microseconds(void **state)
{
    (void)state;
    static const struct {
        const char *decimals;
        int64_t us;
    } rows[] = {
        { "", 0 },
        { ".1", 100000 },
        { ".12", 120000 },
        { ".123", 123000 },
        { ".1234", 123400 },
        { ".12345", 123450 },
        { ".123456", 123456 },
        { ".1234567", 123456 },
        { ".12345678", 123456 },
        { ".123456789", 123456 },
        { ".999999999", 999999 },
        { ".000000999", 0 },
        { ".0", 0 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[64];
        snprintf(text, sizeof(text), "1970-01-01 00:00:00%s", rows[i].decimals);
        assert_true(parse(text) == rows[i].us);
        snprintf(text, sizeof(text), "1970-01-01T00:00:00%sZ", rows[i].decimals);
        assert_true(parse(text) == rows[i].us);
        snprintf(text, sizeof(text), "1970-01-01T01:00:00%s+01:00", rows[i].decimals);
        assert_true(parse(text) == rows[i].us);
    }
}

static void test_offsets_lead_to_utc(void **state)
{
    (void)state;
    int64_t noon_us = 43200 * US_PER_S;

    assert_true(parse("1970-01-01T12:00:00Z") == noon_us);
    assert_true(parse("1970-01-01t12:00:00z") == noon_us);
    assert_true(parse("1970-01-01T14:00:00+02:00") == noon_us);
    assert_true(parse("1970-01-01T06:30:00-05:30") == noon_us);
    assert_true(parse("1970-01-02T11:59:00+23:59") == noon_us);
    assert_true(parse("1969-12-31T12:01:00-23:59") == noon_us);
    assert_true(parse("1970-01-01T12:00:00-00:00") == noon_us);
    assert_true(parse("1970-01-01 12:00:00Z") == noon_us);
    assert_true(parse("1970-01-01 13:00:00+01:00") == noon_us);
    /* The first and the last moment, from elsewhere. */
    assert_true(parse("0001-01-01T01:00:00+01:00") == FIRST_US);
    assert_true(parse("9999-12-31T22:59:59.999999-01:00") == LAST_US);
}

static void test_leap_days_are_those_of_the_calendar(void **state)
{
    (void)state;
    static const int leap[] = { 4, 400, 1600, 1996, 2000, 2024, 2400, 9996 };
    static const int plain[] = { 1, 100, 1700, 1900, 2023, 2100, 2200, 9999 };

    for (size_t i = 0; i < COUNT_OF(leap); i++) {
        char text[64];
        int64_t wall_us = 42;
        snprintf(text, sizeof(text), "%04d-02-29 00:00:00", leap[i]);
        int64_t day_us = parse(text);
        snprintf(text, sizeof(text), "%04d-03-01 00:00:00", leap[i]);
        assert_true(parse(text) - day_us == 86400 * US_PER_S);
        snprintf(text, sizeof(text), "%04d-02-29 00:00:00", plain[i]);
        assert_int_equal(pawl__time_parse(pawl_view_of(text), &wall_us, NULL), PAWL_INVALID);
        assert_true(wall_us == 42);
    }
}

static void test_bad_text_is_refused_and_quoted(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "now",
        "2026",
        "2026-01-29",
        "2026-01-29T10:20:30",   /* T needs a zone */
        "2026-01-29T10:20Z",     /* no seconds */
        "2026-01-29T10:20:30.Z", /* a point without decimals */
        "2026-01-29 10:20:30.",
        "2026-01-29T10:20:30.1234567890Z", /* ten */
        "2026-01-29T10:20:30,5Z",
        "2026-01-29T10:20:30ZZ",
        "2026-01-29T10:20:30Z ",
        " 2026-01-29T10:20:30Z",
        "2026-01-29  10:20:30",
        "2026-01-29_10:20:30Z",
        "2026-1-29T10:20:30Z",
        "26-01-29T10:20:30Z",
        "02026-01-29T10:20:30Z",
        "-2026-01-29T10:20:30Z",
        "+2026-01-29T10:20:30Z",
        "2026/01/29T10:20:30Z",
        "20260129T102030Z",
        "0000-12-31T23:59:59Z",
        "2026-00-29T10:20:30Z",
        "2026-13-29T10:20:30Z",
        "2026-01-00T10:20:30Z",
        "2026-01-32T10:20:30Z",
        "2026-04-31T10:20:30Z",
        "2026-01-29T24:00:00Z",
        "2026-01-29T10:60:00Z",
        "2026-06-30T23:59:60Z", /* a leap second has no microsecond of its own here */
        "2026-01-29T10:20:30+2:00",
        "2026-01-29T10:20:30+0200",
        "2026-01-29T10:20:30+02",
        "2026-01-29T10:20:30+24:00",
        "2026-01-29T10:20:30+02:60",
        "2026-01-29T10:20:30 +02:00",
        "2026-01-29T1a:20:30Z",
        "2026-01-29T10:20:3\xC2\xB2Z",
        "0001-01-01T00:00:00+00:01", /* before the first */
        "9999-12-31T23:59:59-00:01", /* behind the last */
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t wall_us = 42;
        pawl_error error = PAWL_ERROR_INIT;
        assert_status(
            pawl__time_parse(pawl_view_of(bad[i]), &wall_us, &error), PAWL_INVALID, &error);
        assert_message(&error, bad[i]);
        assert_message(&error, "is no time; write 2026-01-29T10:20:30Z");
        assert_true(wall_us == 42);
    }
    int64_t wall_us = 42;
    assert_int_equal(pawl__time_parse((pawl_view){ NULL, 0 }, &wall_us, NULL), PAWL_INVALID);
    assert_int_equal(pawl__time_parse((pawl_view){ "1970-01-01 00:00:00\0", 20 }, &wall_us, NULL),
                     PAWL_INVALID);
}

static void assert_like_gmtime(int64_t wall_us, const char *text)
{
    time_t seconds = (time_t)(wall_us / US_PER_S - (wall_us % US_PER_S < 0));
    struct tm parts;
    char expected[64];

    assert_non_null(gmtime_r(&seconds, &parts));
    snprintf(expected,
             sizeof(expected),
             "%04d-%02d-%02d %02d:%02d:%02d.%06d",
             parts.tm_year + 1900,
             parts.tm_mon + 1,
             parts.tm_mday,
             parts.tm_hour,
             parts.tm_min,
             parts.tm_sec,
             (int)(wall_us - (int64_t)seconds * US_PER_S));
    assert_string_equal(text, expected);
}

static void test_random_moments_come_back_and_agree_with_the_c_library(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(4);
    int64_t last_us = 0;
    char last_text[PAWL__TIME_SIZE] = "";

    for (int i = 0; i < 50000; i++) {
        int64_t wall_us = pawl__prng_between(&prng, FIRST_US, LAST_US);
        char text[PAWL__TIME_SIZE];
        pawl__time_rfc3339(wall_us, text);
        assert_true(parse(text) == wall_us);
        pawl__time_store(wall_us, text);
        assert_true(parse(text) == wall_us);
        assert_like_gmtime(wall_us, text);
        /* The texts sort as the times do: stores compare them. */
        assert_true(i == 0 || (strcmp(last_text, text) < 0) == (last_us < wall_us));
        last_us = wall_us;
        memcpy(last_text, text, sizeof(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_moments_have_their_texts),
        cmocka_unit_test(test_writing_stops_at_the_ends_of_four_digits),
        cmocka_unit_test(test_zero_to_nine_decimals_are_cut_to_microseconds),
        cmocka_unit_test(test_offsets_lead_to_utc),
        cmocka_unit_test(test_leap_days_are_those_of_the_calendar),
        cmocka_unit_test(test_bad_text_is_refused_and_quoted),
        cmocka_unit_test(test_random_moments_come_back_and_agree_with_the_c_library),
    };
    return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
