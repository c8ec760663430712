#include "lib/check.h"

#include <locale.h>
#include <string.h>

#include "base/terminal/display.h"

static void assert_added(pawl_view text, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);

    pawl__display_add(&buf, text);
    assert_string_equal(buf.data == NULL ? "" : buf.data, expected);
}

static void test_what_a_terminal_would_act_on_is_escaped(void **state)
{
    (void)state;
    assert_added(pawl_view_of("plain, é, 中, \xF0\x9F\x90\xA7"), "plain, é, 中, \xF0\x9F\x90\xA7");
    assert_added(pawl_view_of("\x1b]0;title\x07\x1b[2J"), "\\x1B]0;title\\x07\\x1B[2J");
    assert_added(pawl_view_of("a\nb\rc\td\\"), "a\\nb\\rc\\td\\\\");
    assert_added((pawl_view){ "a\0b", 3 }, "a\\x00b");
    assert_added(pawl_view_of("\x7F"), "\\x7F");
    assert_added(pawl_view_of("\xC2\x9B"
                              "2J"),
                 "\\u{009B}2J"); /* one-byte CSI */
    assert_added(pawl_view_of("a\xE2\x80\xAE"
                              "b"),
                 "a\\u{202E}b"); /* right to left */
    assert_added(pawl_view_of("a\xE2\x80\xA8"
                              "b"),
                 "a\\u{2028}b");                                   /* line separator */
    assert_added(pawl_view_of("ok\xFF\xC3"), "ok\\xFF\\xC3");      /* not UTF-8 */
    assert_added(pawl_view_of("\xED\xA0\x80"), "\\xED\\xA0\\x80"); /* half a pair */
}

static void test_a_message_keeps_its_backslashes(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);

    (void)state;
    pawl__display_add_message(&buf, (pawl_view){ "a\0b\\n\xC2\x9B\xFF\n\xE2\x80\xAE", 12 });
    assert_string_equal(buf.data, "a\\x00b\\n\\u{009B}\\xFF\\n\\u{202E}");
}

static void test_json_strings_are_harmless_and_always_utf8(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);

    (void)state;
    pawl__display_add_json(&buf, pawl_view_of("a\"\\/\n\t\x1b\x7F\xC2\x9B\xE2\x80\xAE 中\xFF"));
    assert_string_equal(buf.data,
                        "\"a\\\"\\\\/\\n\\u0009\\u001b\\u007f\\u009b\\u202e 中\xEF\xBF\xBD\"");
}

static void test_a_json_value_stays_one_and_becomes_harmless(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);

    (void)state;
    pawl__display_add_json_value(
        &buf, pawl_view_of("{\"a\\n\":\r\n\t\"\x7F\xC2\x9B\xE2\x80\xAE 中\xFF\\\"\"}"));
    assert_string_equal(buf.data, "{\"a\\n\":   \"\\u007f\\u009b\\u202e 中\xEF\xBF\xBD\\\"\"}");
}

static void test_width_is_counted_in_columns(void **state)
{
    (void)state;
    assert_int_equal(pawl__display_width(pawl_view_of("")), 0);
    assert_int_equal(pawl__display_width(pawl_view_of("abc")), 3);
    assert_int_equal(pawl__display_width(pawl_view_of("é€")), 2);
    assert_int_equal(pawl__display_width(pawl_view_of("中文")), 4);
    assert_int_equal(pawl__display_width(pawl_view_of("e\xCC\x81x")), 2); /* e, acute, x */
    assert_int_equal(pawl__display_width(pawl_view_of("\xF0\x9F\x90\xA7")), 2);
    assert_int_equal(pawl__display_width(pawl_view_of("a\xFF")), 2);
}

/* The program's locale is its own affair: "C" here, as in a program that never calls setlocale. */
static void test_width_leaves_the_locale_alone(void **state)
{
    (void)state;
    locale_t before = uselocale((locale_t)0);

    assert_string_equal(setlocale(LC_CTYPE, NULL), "C");
    assert_int_equal(pawl__display_width(pawl_view_of("中")), 2);
    assert_true(uselocale((locale_t)0) == before);
    assert_string_equal(setlocale(LC_CTYPE, NULL), "C");
}

static void assert_cut(const char *text, size_t columns, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);

    pawl__display_add_cut(&buf, pawl_view_of(text), columns);
    assert_string_equal(buf.data == NULL ? "" : buf.data, expected);
}

static void test_cutting_keeps_characters_whole(void **state)
{
    (void)state;
    assert_cut("abcdef", 6, "abcdef");
    assert_cut("abcdef", 5, "abcd…");
    assert_cut("abcdef", 1, "…");
    assert_cut("abcdef", 0, "");
    assert_cut("", 0, "");
    assert_cut("中文字", 6, "中文字");
    assert_cut("中文字", 5, "中文…");
    assert_cut("中文字", 4, "中…"); /* half a character is none */
    assert_cut("abe\xCC\x81"
               "def",
               4,
               "abe\xCC\x81…");
    assert_cut("abe\xCC\x81", 3, "abe\xCC\x81");
}

static void test_a_quoted_text_fits_a_message(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1000);
    char text[2000];

    (void)state;
    pawl__display_add_quoted(&buf, pawl_view_of("a'b\n"));
    assert_string_equal(buf.data, "'a'b\\n'");
    pawl__buf_clear(&buf);
    memset(text, '\x01', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    pawl__display_add_quoted(&buf, pawl_view_of(text));
    assert_int_equal(pawl__display_width(pawl__buf_view(&buf)), 62);
    assert_memory_equal(buf.data + buf.len - 4, "…'", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_terminal_would_act_on_is_escaped),
        cmocka_unit_test(test_a_message_keeps_its_backslashes),
        cmocka_unit_test(test_json_strings_are_harmless_and_always_utf8),
        cmocka_unit_test(test_a_json_value_stays_one_and_becomes_harmless),
        cmocka_unit_test(test_width_is_counted_in_columns),
        cmocka_unit_test(test_width_leaves_the_locale_alone),
        cmocka_unit_test(test_cutting_keeps_characters_whole),
        cmocka_unit_test(test_a_quoted_text_fits_a_message),
    };
    return cmocka_run_group_tests_name("display", tests, NULL, NULL);
}
