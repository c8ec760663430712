#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"

static const struct pawl__setting a_bool = { "t.bool", PAWL__SETTING_BOOL, "true", 0, 0, NULL, NULL,
                                             "" };
static const struct pawl__setting an_integer = {
    "t.integer", PAWL__SETTING_INTEGER, "5", -3, 10, NULL, NULL, ""
};
static const struct pawl__setting a_duration = {
    "t.duration", PAWL__SETTING_DURATION, "1s", NS_PER_MS, NS_PER_S, NULL, NULL, ""
};
static const struct pawl__setting a_size = {
    "t.size", PAWL__SETTING_SIZE, "1KiB", 0, INT64_MAX, NULL, NULL, ""
};
static const struct pawl__setting a_choice = {
    "t.choice", PAWL__SETTING_CHOICE, "a", 0, 0, "a|bc", NULL, ""
};
static const struct pawl__setting a_text = {
    "t.text", PAWL__SETTING_TEXT, "x", 0, 0, NULL, NULL, ""
};
static const struct pawl__setting a_path = {
    "t.path", PAWL__SETTING_PATH, "x", 0, 0, NULL, NULL, ""
};
static const struct pawl__setting a_url = { "t.url", PAWL__SETTING_URL, "",   0,
                                            0,       "nats|tls",        NULL, "" };
static const struct pawl__setting a_secret = {
    "t.secret", PAWL__SETTING_SECRET, "", 0, 0, NULL, NULL, ""
};

static void test_every_row_of_the_table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        const struct pawl__setting *row = &pawl__settings[i];
        pawl_error error = PAWL_ERROR_INIT;
        int64_t number;

        assert_ok(pawl__setting_parse(row, pawl_view_of(row->text), &number, &error), &error);
        assert_int_equal(strspn(row->key, "abcdefghijklmnopqrstuvwxyz0123456789_."),
                         strlen(row->key));
        assert_true(strlen(row->key) + sizeof("PAWL_") < PAWL__SETTING_NAME_SIZE);
        assert_true(strlen(row->help) > 10 && row->help[strlen(row->help) - 1] == '.');
        if (row->type == PAWL__SETTING_CHOICE || row->type == PAWL__SETTING_URL) {
            assert_non_null(row->one_of);
        }
        if (row->type == PAWL__SETTING_DURATION || row->type == PAWL__SETTING_SIZE) {
            assert_true(row->min >= 0);
        }
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(row->key, pawl__settings[j].key);
        }
    }
}

/* The schema takes a section for what stands together: one that comes again would be lost. */
static void test_rows_of_one_section_stand_together(void **state)
{
    (void)state;
    for (size_t i = 1; i < PAWL__SETTING_COUNT; i++) {
        const char *key = pawl__settings[i].key;
        size_t section = strcspn(key, ".");
        bool left = false;

        for (size_t j = i; key[section] == '.' && j-- > 0;) {
            bool same = strncmp(pawl__settings[j].key, key, section + 1) == 0;
            assert_false(same && left);
            left = left || !same;
        }
    }
}

static void test_names_follow_from_the_key(void **state)
{
    char name[PAWL__SETTING_NAME_SIZE];

    (void)state;
    pawl__setting_variable(&pawl__settings[PAWL__STORE_BUSY_TIMEOUT], name);
    assert_string_equal(name, "PAWL_STORE_BUSY_TIMEOUT");
    pawl__setting_flag(&pawl__settings[PAWL__STORE_BUSY_TIMEOUT], name);
    assert_string_equal(name, "--store-busy-timeout");
}

static void test_good_values_of_every_type_become_numbers(void **state)
{
    static const struct {
        const struct pawl__setting *setting;
        const char *text;
        int64_t number;
    } good[] = {
        { &a_bool, "true", 1 },
        { &a_bool, "off", 0 },
        { &a_bool, "no", 0 },
        { &a_bool, "on", 1 },
        { &an_integer, "-3", -3 },
        { &an_integer, "10", 10 },
        { &a_duration, "1ms", 1000000 },
        { &a_duration, "1s", NS_PER_S },
        { &a_size, "64MB", 64000000 },
        { &a_size, "9223372036854775807", INT64_MAX },
        { &a_choice, "a", 0 },
        { &a_choice, "bc", 1 },
        { &a_text, "héllo wörld", 0 },
        { &a_path, "/a b/c", 0 },
        { &a_url, "nats://h:4222", 0 },
        { &a_url, "", 0 },
        { &a_url, "tls://", 0 },
        { &a_secret, "s3cret", 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t number = 77;

        assert_ok(pawl__setting_parse(good[i].setting, pawl_view_of(good[i].text), &number, &error),
                  &error);
        assert_true(number == good[i].number || good[i].text[0] == '\0');
    }
}

static void test_bad_values_are_refused_with_what_is_allowed(void **state)
{
    static const struct {
        const struct pawl__setting *setting;
        const char *text;
        const char *message;
    } bad[] = {
        { &a_bool, "maybe", "'maybe' is neither; allowed: true or false" },
        { &a_bool, "TRUE", "allowed: true or false" },
        { &a_bool, "", "the value is empty; allowed: true or false" },
        { &an_integer,
          "eleven",
          "'eleven' is no whole number; allowed: a whole number from -3 to 10" },
        { &an_integer, "11", "'11' is out of range; allowed: a whole number from -3 to 10" },
        { &an_integer, "-4", "is out of range" },
        { &a_duration, "5", "'5' has no unit; write 500ms" },
        { &a_duration, "1001ms", "'1001ms' is out of range; allowed: a duration from 1ms to 1s" },
        { &a_duration, "999us", "is out of range" },
        { &a_size, "16M", "'16M' is no size" },
        { &a_size, "9223372036854775808", "is out of range; allowed: a size" },
        { &a_choice, "b", "'b' is unknown; allowed: one of a, bc" },
        { &a_choice, "a|bc", "is unknown" },
        { &a_text, "a\tb", "'a\\tb' has a control character in it; allowed: a text" },
        { &a_text, "a\xFF", "'a\\xFF' is not UTF-8" },
        { &a_path, "", "is empty; allowed: a path" },
        { &a_path, "\x1b[2J", "'\\x1B[2J' has a control character" },
        { &a_url, "host", "the value is no URL; allowed: a URL (scheme nats, tls)" },
        { &a_url, "nats:/h", "is no URL" },
        { &a_url, "nats://a b", "is no URL" },
        { &a_url, "http://h", "has another scheme; allowed: a URL (scheme nats, tls)" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t number = 77;

        assert_status(
            pawl__setting_parse(bad[i].setting, pawl_view_of(bad[i].text), &number, &error),
            PAWL_INVALID,
            &error);
        assert_message(&error, bad[i].message);
        assert_int_equal(number, 77);
    }
}

static void test_a_value_is_taken_up_to_its_limit_and_no_further(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    char *text = calloc(1, PAWL__SETTING_VALUE_BYTES_MAX + 2);
    int64_t number;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', PAWL__SETTING_VALUE_BYTES_MAX);
    assert_ok(pawl__setting_parse(&a_text, pawl_view_of(text), &number, &error), &error);
    text[PAWL__SETTING_VALUE_BYTES_MAX] = 'x';
    assert_status(
        pawl__setting_parse(&a_text, pawl_view_of(text), &number, &error), PAWL_INVALID, &error);
    assert_message(&error, "xxx…' is longer than 4096 bytes");
    free(text);
}

static void test_a_secret_or_url_is_never_in_a_message(void **state)
{
    static const char *const values[] = {
        "hunter2\x01", "nats:hunter2", "hunter2://x", "nats://u:hunter2@h /x", "hunter2\xFF"
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t number;

        assert_status(pawl__setting_parse(&a_url, pawl_view_of(values[i]), &number, &error),
                      PAWL_INVALID,
                      &error);
        assert_null(strstr(error.message, "hunter2"));
    }
    pawl_error error = PAWL_ERROR_INIT;
    int64_t number;
    assert_status(pawl__setting_parse(&a_secret, pawl_view_of("hunter2\x01"), &number, &error),
                  PAWL_INVALID,
                  &error);
    assert_null(strstr(error.message, "hunter2"));
}

static void assert_shown(const struct pawl__setting *setting,
                         const char *text,
                         const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);

    pawl__setting_add_shown(setting, pawl_view_of(text), &buf);
    assert_string_equal(buf.data == NULL ? "" : buf.data, expected);
}

static void test_what_is_shown_hides_secrets_and_escapes(void **state)
{
    (void)state;
    assert_shown(&a_secret, "hunter2", "********");
    assert_shown(&a_secret, "", "");
    assert_shown(&a_text, "a\x1b[2Jb", "a\\x1B[2Jb");
    assert_shown(&a_url, "postgresql://h/db", "postgresql://h/db");
    assert_shown(&a_url, "postgresql:///db", "postgresql:///db");
    assert_shown(&a_url, "postgresql://", "postgresql://");
    assert_shown(&a_url, "postgresql://u@h:5432/db", "postgresql://u@h:5432/db");
    assert_shown(&a_url, "postgresql://u:pw@h:5432/db", "postgresql://u:***@h:5432/db");
    assert_shown(&a_url, "postgresql://u:p@w@h/db", "postgresql://u:***@h/db");
    assert_shown(&a_url, "postgresql://u:p/w?x@h/db", "postgresql://u:***@h/db");
    assert_shown(&a_url, "postgresql://u:@h/db", "postgresql://u:***@h/db");
    assert_shown(&a_url, "postgresql://:pw@h/db", "postgresql://:***@h/db");
    assert_shown(&a_url,
                 "postgresql:///db?host=/run&password=pw&user=u",
                 "postgresql:///db?host=/run&password=***&user=u");
    assert_shown(&a_url, "postgresql:///db?sslpassword=pw", "postgresql:///db?sslpassword=***");
    assert_shown(&a_url, "postgresql:///db?password=a@b", "postgresql://***@b");
    assert_shown(&a_url, "u:pw@h/db", "***");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_of_the_table_is_sound),
        cmocka_unit_test(test_rows_of_one_section_stand_together),
        cmocka_unit_test(test_names_follow_from_the_key),
        cmocka_unit_test(test_good_values_of_every_type_become_numbers),
        cmocka_unit_test(test_bad_values_are_refused_with_what_is_allowed),
        cmocka_unit_test(test_a_value_is_taken_up_to_its_limit_and_no_further),
        cmocka_unit_test(test_a_secret_or_url_is_never_in_a_message),
        cmocka_unit_test(test_what_is_shown_hides_secrets_and_escapes),
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
