#include "lib/check.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"

static void test_numbers_come_back_in_both_byte_orders(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(64);
    uint32_t small = 0;
    uint64_t large = 0;
    uint16_t two = 0;
    uint8_t byte = 0;

    pawl__buf_add_u8(&buf, 0xFE);
    pawl__buf_add_u32le(&buf, 0x01020304);
    pawl__buf_add_u64be(&buf, 0x0102030405060708);
    pawl__buf_add_u16be(&buf, 0x0A0B);
    pawl__buf_add_u32be(&buf, 7);
    pawl__buf_add_u64le(&buf, UINT64_MAX);
    assert_false(buf.broken);
    assert_memory_equal(buf.data, "\xFE\x04\x03\x02\x01\x01\x02", 7);

    pawl_view in = pawl__buf_view(&buf);
    assert_true(pawl__view_take_u8(&in, &byte));
    assert_int_equal(byte, 0xFE);
    assert_true(pawl__view_take_u32le(&in, &small));
    assert_int_equal(small, 0x01020304);
    assert_true(pawl__view_take_u64be(&in, &large));
    assert_true(large == 0x0102030405060708);
    assert_true(pawl__view_take_u16be(&in, &two));
    assert_int_equal(two, 0x0A0B);
    assert_true(pawl__view_take_u32be(&in, &small));
    assert_int_equal(small, 7);
    assert_true(pawl__view_take_u64le(&in, &large));
    assert_true(large == UINT64_MAX);
    assert_int_equal(in.len, 0);
}

static void test_a_short_input_leaves_the_view_unmoved(void **state)
{
    (void)state;
    pawl_view in = { "abc", 3 };
    uint32_t value = 42;

    assert_false(pawl__view_take_u32le(&in, &value));
    assert_int_equal(value, 42);
    assert_int_equal(in.len, 3);
    assert_memory_equal(in.data, "abc", 3);
}

static void test_the_ceiling_holds_and_one_past_it_breaks(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(5);
    pawl_error error = PAWL_ERROR_INIT;

    pawl__buf_add_text(&buf, "12345");
    assert_ok(pawl__buf_check(&buf, "frame", &error), &error);
    pawl__buf_add_char(&buf, '6');
    assert_status(pawl__buf_check(&buf, "frame", &error), PAWL_INVALID, &error);
    assert_message(&error, "frame over 5 bytes");
    assert_string_equal(buf.data, "12345"); /* what did not fit left nothing behind */
    pawl__buf_clear(&buf);
    pawl__buf_add_format(&buf, "%d", 99999);
    assert_false(buf.broken);
    pawl__buf_clear(&buf);
    pawl__buf_add_format(&buf, "%d", 100000);
    assert_true(buf.broken);
}

static void test_steal_gives_a_string_even_when_empty(void **state)
{
    (void)state;
    struct pawl__buf buf = BUF_INIT(16);
    char *text = pawl__buf_steal(&buf);

    assert_string_equal(text, "");
    free(text);
    pawl__buf_add_text(&buf, "abc");
    text = pawl__buf_steal(&buf);
    assert_string_equal(text, "abc");
    assert_null(buf.data);
    free(text);
}

static void test_split_walks_the_parts(void **state)
{
    (void)state;
    pawl_view in = pawl_view_of("a,,b");
    pawl_view part;

    assert_true(pawl__view_split(&in, ',', &part));
    assert_true(pawl__view_is(part, "a"));
    assert_true(pawl__view_split(&in, ',', &part));
    assert_int_equal(part.len, 0);
    assert_true(pawl__view_split(&in, ',', &part));
    assert_true(pawl__view_is(part, "b"));
    assert_false(pawl__view_split(&in, ',', &part));
}

static void test_utf8_is_told_from_what_only_looks_like_it(void **state)
{
    (void)state;
    static const char *const good[] = {
        "", "plain", "é", "€", "\xF0\x9F\x90\xA7", "\xF4\x8F\xBF\xBF"
    };
    static const char *const bad[] = {
        "\x80",             /* a tail without a head */
        "\xC3",             /* cut */
        "\xC0\xAF",         /* overlong '/' */
        "\xE0\x80\x80",     /* overlong */
        "\xED\xA0\x80",     /* surrogate */
        "\xF4\x90\x80\x80", /* above U+10FFFF */
        "\xFF",
    };

    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(pawl__view_is_utf8(pawl_view_of(good[i])));
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(pawl__view_is_utf8(pawl_view_of(bad[i])));
    }
}

static void test_a_buffer_over_an_array_ends_where_the_array_does(void **state)
{
    (void)state;
    char array[6];
    struct pawl__buf buf = BUF_OVER(array);

    pawl__buf_add_text(&buf, "12345");
    assert_false(buf.broken);
    assert_ptr_equal(buf.data, array);
    pawl__buf_add_char(&buf, '6');
    assert_true(buf.broken);
    pawl__buf_cut(&buf, 3);
    assert_false(buf.broken);
    pawl__buf_add_text(&buf, "ab");
    assert_string_equal(array, "123ab");
}

static void test_a_real_is_short_and_reads_back(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(64);
    static const double values[] = {
        0.1, 1e300, -2.5e-7, 1.0 / 3, DBL_MAX, DBL_TRUE_MIN, 12345678
    };

    for (size_t i = 0; i < COUNT_OF(values); i++) {
        pawl__buf_clear(&buf);
        pawl__buf_add_real(&buf, values[i]);
        assert_true(strtod(buf.data, NULL) == values[i]);
    }
    assert_string_equal(buf.data, "12345678");
    pawl__buf_clear(&buf);
    pawl__buf_add_real(&buf, 0.1);
    assert_string_equal(buf.data, "0.1");
}

static void test_code_points_are_taken_one_by_one(void **state)
{
    (void)state;
    pawl_view in = pawl_view_of("a€\xF0\x9F\x90\xA7\xFF");
    uint32_t code = 0;

    assert_true(pawl__view_take_utf8(&in, &code));
    assert_int_equal(code, 'a');
    assert_true(pawl__view_take_utf8(&in, &code));
    assert_int_equal(code, 0x20AC);
    assert_true(pawl__view_take_utf8(&in, &code));
    assert_int_equal(code, 0x1F427);
    assert_false(pawl__view_take_utf8(&in, &code));
    assert_int_equal(code, 0x1F427);
    assert_int_equal(in.len, 1);
}

static void test_plain_is_ascii_without_nul_at_every_place(void **state)
{
    (void)state;
    char text[20];

    for (size_t len = 0; len <= sizeof(text); len++) {
        memset(text, 'a', sizeof(text));
        assert_true(pawl__view_is_plain((pawl_view){ text, len }));
        for (size_t at = 0; at < sizeof(text); at++) {
            static const char others[] = { '\0', (char)0x80, (char)0xFF };

            for (size_t i = 0; i < COUNT_OF(others); i++) {
                text[at] = others[i];
                assert_int_equal(pawl__view_is_plain((pawl_view){ text, len }), at >= len);
            }
            text[at] = (char)(at % 2 == 0 ? 0x7F : 0x01);
            assert_true(pawl__view_is_plain((pawl_view){ text, len }));
        }
    }
    assert_true(pawl__view_is_plain((pawl_view){ NULL, 0 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_come_back_in_both_byte_orders),
        cmocka_unit_test(test_a_short_input_leaves_the_view_unmoved),
        cmocka_unit_test(test_the_ceiling_holds_and_one_past_it_breaks),
        cmocka_unit_test(test_steal_gives_a_string_even_when_empty),
        cmocka_unit_test(test_split_walks_the_parts),
        cmocka_unit_test(test_utf8_is_told_from_what_only_looks_like_it),
        cmocka_unit_test(test_a_buffer_over_an_array_ends_where_the_array_does),
        cmocka_unit_test(test_a_real_is_short_and_reads_back),
        cmocka_unit_test(test_code_points_are_taken_one_by_one),
        cmocka_unit_test(test_plain_is_ascii_without_nul_at_every_place),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
