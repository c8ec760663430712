#include "lib/check.h"

#include "base/os/clock.h"
#include "work/schedules/cron.h"

static struct work_cron parsed(const char *text)
{
    struct work_cron cron;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__work_cron_parse(pawl_view_of(text), &cron, &error), &error);
    return cron;
}

static int64_t at(const char *text)
{
    int64_t wall_us = 0;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__time_parse(pawl_view_of(text), &wall_us, &error), &error);
    return wall_us;
}

static void assert_next(const char *expression, const char *after, const char *expected)
{
    struct work_cron cron = parsed(expression);
    int64_t slot_us = 0;
    char text[PAWL__TIME_SIZE];

    assert_true(pawl__work_cron_next(&cron, at(after), &slot_us));
    pawl__time_store(slot_us, text);
    assert_string_equal(text, expected);
}

static void assert_refused(const char *expression, const char *message)
{
    struct work_cron cron = { .minutes = 42 };
    pawl_error error = PAWL_ERROR_INIT;

    assert_status(
        pawl__work_cron_parse(pawl_view_of(expression), &cron, &error), PAWL_INVALID, &error);
    assert_message(&error, message);
    assert_int_equal(cron.minutes, 42); /* a failed call leaves its outputs alone */
}

static void test_the_next_slot_is_after_the_moment_itself(void **state)
{
    (void)state;
    assert_next("* * * * *", "2026-01-29 10:20:30", "2026-01-29 10:21:00.000000");
    assert_next("* * * * *", "2026-01-29 10:20:00", "2026-01-29 10:21:00.000000");
    assert_next("20 10 * * *", "2026-01-29 10:19:59.999999", "2026-01-29 10:20:00.000000");
    assert_next("20 10 * * *", "2026-01-29 10:20:00", "2026-01-30 10:20:00.000000");
    assert_next("*/15 * * * *", "2026-12-31 23:45:00", "2027-01-01 00:00:00.000000");
    assert_next("0 0 1 1 *", "1960-06-01 00:00:00", "1961-01-01 00:00:00.000000");
}

static void test_lists_ranges_steps_and_names_are_read(void **state)
{
    (void)state;
    assert_next("5,35 9-17/4 * * *", "2026-01-29 09:05:00", "2026-01-29 09:35:00.000000");
    assert_next("5,35 9-17/4 * * *", "2026-01-29 09:35:00", "2026-01-29 13:05:00.000000");
    assert_next("5,35 9-17/4 * * *", "2026-01-29 17:35:00", "2026-01-30 09:05:00.000000");
    assert_next("50/5 * * * *", "2026-01-29 10:51:00", "2026-01-29 10:55:00.000000");
    assert_next("50/5 * * * *", "2026-01-29 10:55:00", "2026-01-29 11:50:00.000000");
    assert_next("0 12 * MAR-may Mon", "2026-01-29 00:00:00", "2026-03-02 12:00:00.000000");
    assert_next("  0\t0 * * 7 ", "2026-01-29 00:00:00", "2026-02-01 00:00:00.000000");
    assert_next("0 0 * * 5-7", "2026-01-31 00:00:00", "2026-02-01 00:00:00.000000");
}

static void test_nicknames_stand_for_what_they_say(void **state)
{
    (void)state;
    assert_next("@hourly", "2026-01-29 10:20:30", "2026-01-29 11:00:00.000000");
    assert_next("@daily", "2026-01-29 10:20:30", "2026-01-30 00:00:00.000000");
    assert_next("@midnight", "2026-01-29 10:20:30", "2026-01-30 00:00:00.000000");
    assert_next("@weekly", "2026-01-29 10:20:30", "2026-02-01 00:00:00.000000");
    assert_next("@monthly", "2026-01-29 10:20:30", "2026-02-01 00:00:00.000000");
    assert_next("@yearly", "2026-01-29 10:20:30", "2027-01-01 00:00:00.000000");
    assert_next("@annually", "2026-01-29 10:20:30", "2027-01-01 00:00:00.000000");
}

/* The 13th or a Friday; but with a star in one of the two fields it must be both. */
static void test_the_two_day_fields_mean_either_unless_one_has_a_star(void **state)
{
    (void)state;
    assert_next("0 0 13 * 5", "2026-01-29 00:00:00", "2026-01-30 00:00:00.000000");
    assert_next("0 0 13 * 5", "2026-02-06 00:00:00", "2026-02-13 00:00:00.000000");
    assert_next("0 0 13 * *", "2026-01-29 00:00:00", "2026-02-13 00:00:00.000000");
    assert_next("0 0 * * 5", "2026-01-30 00:00:00", "2026-02-06 00:00:00.000000");
    assert_next("0 0 */2 * 1", "2026-02-01 00:00:00", "2026-02-09 00:00:00.000000");
}

static void test_leap_years_are_those_of_the_calendar(void **state)
{
    (void)state;
    assert_next("0 0 29 2 *", "2026-01-29 00:00:00", "2028-02-29 00:00:00.000000");
    assert_next("0 0 29 2 *", "2096-02-29 00:00:00", "2104-02-29 00:00:00.000000");
    assert_next("0 0 29 2 *", "1999-01-01 00:00:00", "2000-02-29 00:00:00.000000");
    assert_next("0 0 31 * *", "2026-03-31 00:00:00", "2026-05-31 00:00:00.000000");
    /* A leap day on a Sunday, over a century without one. */
    assert_next("0 0 29 2 */7", "2088-02-29 00:00:00", "2128-02-29 00:00:00.000000");
}

static void test_what_never_comes_is_refused(void **state)
{
    (void)state;
    assert_refused("0 0 30 2 *", "day-of-month: '0 0 30 2 *' never comes");
    assert_refused("0 0 31 4,6,9,11 *", "never comes");
    assert_next("0 0 30 2 1", "2026-02-01 00:00:00", "2026-02-02 00:00:00.000000");
}

static void test_an_error_names_the_field(void **state)
{
    (void)state;
    assert_refused("60 * * * *", "minute: 60 is not within 0 to 59");
    assert_refused("* 24 * * *", "hour: 24");
    assert_refused("* * 0 * *", "day-of-month: 0 is not within 1 to 31");
    assert_refused("* * * 13 *", "month: 13");
    assert_refused("* * * * 8", "day-of-week: 8");
    assert_refused("* * * foo *", "month: 'foo' is not a number or a name");
    assert_refused("x * * * *", "minute: 'x' is not a number");
    assert_refused("1- * * * *", "minute: '' is not a number");
    assert_refused("-1 * * * *", "minute: '' is not a number");
    assert_refused("5-1 * * * *", "minute: the range '5-1' ends before it starts");
    assert_refused("*/0 * * * *", "minute: the step '0'");
    assert_refused("*/ * * * *", "minute: the step ''");
    assert_refused("*/60 * * * *", "minute: the step '60'");
    assert_refused("/5 * * * *", "minute: nothing before '/'");
    assert_refused("1,, * * * *", "minute: an empty part");
    assert_refused("1, * * * *", "minute: an empty part");
    assert_refused(",1 * * * *", "minute: an empty part");
    assert_refused("** * * * *", "minute: '**'");
    assert_refused("1 2 3 4", "day-of-week: missing");
    assert_refused("", "minute: missing");
    assert_refused("   ", "minute: missing");
    assert_refused("1 2 3 4 5 6", "'6' follows the fifth field");
    assert_refused("@reboot", "'@reboot' is none of @yearly");
    assert_refused("@daily @daily", "none of @yearly");
    assert_refused("99999999999999999999 * * * *", "minute: '99999999999999999999'");
}

static void test_an_expression_has_a_limit(void **state)
{
    char text[CRON_BYTES_MAX + 2];
    struct work_cron cron;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    memset(text, ' ', sizeof(text));
    memcpy(text,
           "* * * * * ",
           sizeof("* * * * * ") - 1); /* NOLINT(bugprone-not-null-terminated-result) */
    assert_ok(pawl__work_cron_parse((pawl_view){ text, CRON_BYTES_MAX }, &cron, &error), &error);
    assert_status(pawl__work_cron_parse((pawl_view){ text, CRON_BYTES_MAX + 1 }, &cron, &error),
                  PAWL_INVALID,
                  &error);
    assert_message(&error, "1001 bytes, the limit is 1000");
}

static void test_time_ends_with_the_year_9999(void **state)
{
    struct work_cron cron = parsed("@yearly");
    int64_t slot_us = 42;

    (void)state;
    assert_false(pawl__work_cron_next(&cron, at("9999-01-01 00:00:00"), &slot_us));
    assert_false(pawl__work_cron_next(&cron, INT64_MAX, &slot_us));
    assert_int_equal(slot_us, 42);
    assert_true(pawl__work_cron_next(&cron, INT64_MIN, &slot_us));
}

static void test_the_newest_slot_agrees_with_the_next_one(void **state)
{
    static const char *const expressions[] = { "*/7 3-5 * * *", "0 0 13 * 5", "@monthly" };
    int64_t from_us = at("2027-12-20 00:00:00");
    int64_t until_us = at("2028-03-02 04:11:30");
    int64_t newest_us = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
        struct work_cron cron = parsed(expressions[i]);
        int64_t walked_us = from_us - 1;
        int64_t slot_us = walked_us;
        while (slot_us <= until_us) {
            walked_us = slot_us;
            assert_true(pawl__work_cron_next(&cron, walked_us, &slot_us));
        }
        assert_true(pawl__work_cron_newest(&cron, from_us, until_us, &newest_us));
        assert_int_equal(newest_us, walked_us);
        assert_true(pawl__work_cron_newest(&cron, newest_us, newest_us, &newest_us));
        assert_int_equal(newest_us, walked_us);
        assert_false(pawl__work_cron_newest(&cron, newest_us + 1, until_us, &newest_us));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_next_slot_is_after_the_moment_itself),
        cmocka_unit_test(test_lists_ranges_steps_and_names_are_read),
        cmocka_unit_test(test_nicknames_stand_for_what_they_say),
        cmocka_unit_test(test_the_two_day_fields_mean_either_unless_one_has_a_star),
        cmocka_unit_test(test_leap_years_are_those_of_the_calendar),
        cmocka_unit_test(test_what_never_comes_is_refused),
        cmocka_unit_test(test_an_error_names_the_field),
        cmocka_unit_test(test_an_expression_has_a_limit),
        cmocka_unit_test(test_time_ends_with_the_year_9999),
        cmocka_unit_test(test_the_newest_slot_agrees_with_the_next_one),
    };

    return cmocka_run_group_tests_name("work_cron", tests, NULL, NULL);
}
