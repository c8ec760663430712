#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/macros.h"
#include "base/json/json.h"
#include "lib/fault.h"

enum { BYTES_MAX = 4096 };

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__json_parse(pawl_view_of(text), BYTES_MAX, &json, &error), &error);
    assert_ok(pawl__json_check(pawl_view_of(text), BYTES_MAX, &error), &error);
    return json;
}

static void assert_refused(pawl_view text, const char *message)
{
    json_t *json = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_status(pawl__json_parse(text, BYTES_MAX, &json, &error), PAWL_INVALID, &error);
    assert_message(&error, message);
    assert_null(json);
    pawl_error checked = PAWL_ERROR_INIT;
    assert_status(pawl__json_check(text, BYTES_MAX, &checked), PAWL_INVALID, &checked);
    assert_string_equal(checked.message, error.message);
}

/* An object with `count` keys, a10 and so on, the last one written as `last`. */
static void add_object(struct pawl__buf *text, int count, const char *last)
{
    pawl__buf_add_char(text, '{');
    for (int i = 0; i < count - 1; i++) {
        pawl__buf_add_format(text, "\"a%d\":%d,", 10 + i, i);
    }
    pawl__buf_add_format(text, "\"%s\":0}", last);
}

static void test_a_key_that_comes_twice_is_found_however_many_there_are(void **state)
{
    (void)state;
    struct pawl__buf text = BUF_INIT(BYTES_MAX);

    for (int count = 2; count < 80; count++) {
        static const char *const last[] = { "a10", "\\u0061\\u0031\\u0030" };
        for (size_t i = 0; i < COUNT_OF(last); i++) {
            pawl__buf_clear(&text);
            add_object(&text, count, last[i]);
            assert_refused(pawl__buf_view(&text), "the same key again in one object");
        }
        pawl__buf_clear(&text);
        add_object(&text, count, "b");
        json_decref(parse(text.data));
        pawl__buf_clear(&text);
        add_object(&text, count, "\\u0062");
        json_decref(parse(text.data));
    }
    json_decref(parse("{\"a\":{\"a\":{\"a\":1},\"b\":2},\"b\":{\"\\u0061\":1}}"));
    assert_refused(pawl_view_of("{\"\\n\":1,\"\\u000a\":2}"), "the same key again");
    assert_refused(pawl_view_of("{\"\":1,\"\":2}"), "the same key again");
    assert_refused(pawl_view_of("{\"\\n\":{\"\\t\":1,\"\\t\":1}}"), "column 15: the same key");
    pawl__buf_done(&text);
}

static void test_every_type_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        json_type type;
    } rows[] = {
        { "{}", JSON_OBJECT },
        { "[]", JSON_ARRAY },
        { "\"\"", JSON_STRING },
        { "0", JSON_INTEGER },
        { "0.5", JSON_REAL },
        { "true", JSON_TRUE },
        { " false ", JSON_FALSE },
        { "\n\tnull\r", JSON_NULL },
        { "-1e-400", JSON_REAL },
        { "9223372036854775807", JSON_INTEGER },
        { "\"\\ud83d\\udc27\"", JSON_STRING },
        { "-9223372036854775808", JSON_INTEGER },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_auto_t *json = parse(rows[i].text);
        assert_int_equal(json_typeof(json), rows[i].type);
    }
}

static void test_bad_text_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        { "", "line 1, column 1: the text is empty" },
        { "   ", "line 1, column 4: the text ends here" },
        { "{\n  \"a\": 1,\n  \"a\": 2}", "line 3, column 3: the same key again" },
        { "{\"x\": {\"a\": 1, \"\\u0061\": 1}}", "line 1, column 16: the same key again" },
        { "{\"\": 1, \"\": 1}", "line 1, column 9: the same key again" },
        { "[1, 2", "line 1, column 6: the text ends here" },
        { "[1,]", "line 1, column 4: expected a value" },
        { "[,1]", "line 1, column 2: expected a value" },
        { "[1 2]", "line 1, column 4: expected ',' or ']'" },
        { "[1}", "line 1, column 3: expected ',' or ']'" },
        { "{\"a\"}", "line 1, column 5: expected ':'" },
        { "{\"a\":}", "line 1, column 6: expected a value" },
        { "{\"a\":1", "line 1, column 7: the text ends here" },
        { "{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}'" },
        { "{\"a\":1,}", "line 1, column 8: expected a key in double quotes" },
        { "{a: 1}", "line 1, column 2: expected a key in double quotes" },
        { "{1: 1}", "line 1, column 2: expected a key in double quotes" },
        { "[1]]", "line 1, column 4: nothing expected after the value" },
        { "1 2", "line 1, column 3: nothing expected after the value" },
        { "\"a", "line 1, column 3: the text ends here" },
        { "\"a\\", "line 1, column 4: the text ends here" },
        { "\"é€\x01\"", "line 1, column 4: control character in a string" },
        { "\"a\\nb\n\"", "line 1, column 6: control character in a string" },
        { "\"\\x\"", "line 1, column 3: no such escape" },
        { "\"\\u12g4\"", "line 1, column 6: expected four hex digits" },
        { "\"\\u12", "line 1, column 6: the text ends here" },
        { "\"\\u0000\"", "line 1, column 2: \\u0000 is not allowed" },
        { "{\"\\u0000\": 1}", "line 1, column 3: \\u0000 is not allowed" },
        { "\"\\ud800\"", "line 1, column 2: half a surrogate pair" },
        { "\"\\udc00\"", "line 1, column 2: half a surrogate pair" },
        { "\"\\ud800\\u0041\"", "line 1, column 2: half a surrogate pair" },
        { "\"\\ud800\\n\"", "line 1, column 2: half a surrogate pair" },
        { "\"\\ud800\\ud800\"", "line 1, column 2: half a surrogate pair" },
        { "\"\xFF\"", "line 1, column 2: not UTF-8" },
        { "\"\xC0\xAF\"", "line 1, column 2: not UTF-8" },
        { "[1,\n\"\xED\xA0\x80\"]", "line 2, column 2: not UTF-8" },
        { "\xEF\xBB\xBF{}", "line 1, column 1: a byte order mark is not allowed" },
        { "01", "line 1, column 1: a number starts with 0 only before a point" },
        { "-01", "line 1, column 1: a number starts with 0" },
        { "+1", "line 1, column 1: expected a value" },
        { ".5", "line 1, column 1: expected a value" },
        { "[1.]", "line 1, column 4: expected a digit" },
        { "1.e1", "line 1, column 3: expected a digit" },
        { "[1e]", "line 1, column 4: expected a digit" },
        { "[1e+-1]", "line 1, column 5: expected a digit" },
        { "[-]", "line 1, column 3: expected a digit" },
        { "0x10", "line 1, column 2: nothing expected after the value" },
        { "NaN", "line 1, column 1: expected a value" },
        { "-Infinity", "line 1, column 2: expected a digit" },
        { "nul", "line 1, column 1: expected a value" },
        { "True", "line 1, column 1: expected a value" },
        { "truefalse", "line 1, column 5: nothing expected after the value" },
        { "'a'", "line 1, column 1: expected a value" },
        { "// c\n1", "line 1, column 1: expected a value" },
        { "\f1", "line 1, column 1: expected a value" },
        { "9223372036854775808", "line 1, column 1: integer out of range" },
        { "-9223372036854775809", "line 1, column 1: integer out of range" },
        { "99999999999999999999999", "line 1, column 1: integer out of range" },
        { "1e400", "line 1, column 1: real number out of range" },
        { "-1e99999999999999999999", "line 1, column 1: real number out of range" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_refused(pawl_view_of(rows[i].text), rows[i].message);
    }
    assert_refused((pawl_view){ NULL, 0 }, "line 1, column 1: the text is empty");
    assert_refused((pawl_view){ "\"a\0b\"", 5 }, "line 1, column 3: NUL byte");
    assert_refused((pawl_view){ "\"a\\\0\"", 5 }, "line 1, column 4: NUL byte");
    assert_refused((pawl_view){ "{\"a\0\": 1}", 9 }, "line 1, column 4: NUL byte");
    assert_refused((pawl_view){ "1\0", 2 }, "line 1, column 2: NUL byte");
    assert_refused((pawl_view){ "{}\n\0{}", 6 }, "line 2, column 1: NUL byte");
}

static void test_the_limit_of_bytes_holds_and_one_past_it_is_refused(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    json_t *json = NULL;

    assert_ok(pawl__json_parse(pawl_view_of("[1,2]"), 5, &json, &error), &error);
    json_decref(json);
    json = NULL;
    assert_status(pawl__json_parse(pawl_view_of("[1,2]"), 4, &json, &error), PAWL_INVALID, &error);
    assert_message(&error, "5 bytes of JSON, the limit is 4");
    assert_null(json);
}

static void test_the_limit_of_depth_holds_and_one_past_it_is_refused(void **state)
{
    (void)state;
    char text[2 * PAWL__JSON_DEPTH_MAX + 16];
    size_t len = 0;

    text[len++] = '\n';
    for (size_t i = 0; i < PAWL__JSON_DEPTH_MAX; i++) {
        text[len++] = '[';
    }
    for (const char *c = "\"[\\\"[[{\""; *c != '\0'; c++) { /* in a string they open nothing */
        text[len++] = *c;
    }
    for (size_t i = 0; i < PAWL__JSON_DEPTH_MAX; i++) {
        text[len++] = ']';
    }
    text[len] = '\0';
    json_auto_t *json = parse(text);
    assert_non_null(json);

    memset(text, '[', PAWL__JSON_DEPTH_MAX + 1);
    text[0] = '\n';
    text[PAWL__JSON_DEPTH_MAX + 1] = '{';
    text[PAWL__JSON_DEPTH_MAX + 2] = '\0';
    assert_refused(pawl_view_of(text), "line 2, column 65: more than 64 levels");
    assert_refused(pawl_view_of("]]]]"), "line 1, column 1: expected a value");
}

static void test_wide_is_not_deep(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(BYTES_MAX);

    for (size_t i = 0; i < 200; i++) {
        pawl__buf_add_text(&buf, i == 0 ? "[[]" : ",[]");
    }
    pawl__buf_add_char(&buf, ']');
    json_auto_t *json = parse(buf.data);
    assert_int_equal(json_array_size(json), 200);
}

static void test_values_are_read_by_their_names(void **state)
{
    (void)state;
    json_auto_t *json = parse("{\"id\": \"x\", \"n\": 7, \"r\": 2.5, \"yes\": true,"
                              " \"items\": [{\"id\": \"é\"}], \"nothing\": null}");
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__json_node root = pawl__json_root(json, "");
    struct pawl__json_node items;
    struct pawl__json_node item;
    pawl_view text = { NULL, 0 };
    int64_t number = 0;
    double real = 0;
    bool yes = false;

    assert_ok(pawl__json_object(root, &root, &error), &error);
    assert_ok(pawl__json_text(pawl__json_key(&root, "id"), &text, &error), &error);
    assert_true(pawl__view_is(text, "x"));
    assert_ok(pawl__json_int(pawl__json_key(&root, "n"), 7, 7, &number, &error), &error);
    assert_int_equal(number, 7);
    assert_ok(pawl__json_real(pawl__json_key(&root, "r"), &real, &error), &error);
    assert_true(real == 2.5);
    assert_ok(pawl__json_real(pawl__json_key(&root, "n"), &real, &error), &error);
    assert_true(real == 7);
    assert_ok(pawl__json_bool(pawl__json_key(&root, "yes"), &yes, &error), &error);
    assert_true(yes);
    assert_ok(pawl__json_array(pawl__json_key(&root, "items"), &items, &error), &error);
    assert_int_equal(pawl__json_count(&items), 1);
    assert_ok(pawl__json_object(pawl__json_item(&items, 0), &item, &error), &error);
    assert_ok(pawl__json_text(pawl__json_key(&item, "id"), &text, &error), &error);
    assert_true(pawl__view_is(text, "é"));
}

static void test_an_optional_value_keeps_its_default_when_absent_or_null(void **state)
{
    (void)state;
    json_auto_t *json = parse("{\"nothing\": null, \"wrong\": []}");
    struct pawl__json_node root = pawl__json_root(json, "");
    static const char *const keys[] = { "absent", "nothing" };
    pawl_error error = PAWL_ERROR_INIT;

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct pawl__json_node node = pawl__json_optional(&root, keys[i]);
        struct pawl__json_node object = { 0 };
        pawl_view text = pawl_view_of("default");
        int64_t number = 42;
        double real = 0.5;
        bool yes = true;
        assert_ok(pawl__json_text(node, &text, &error), &error);
        assert_ok(pawl__json_int(node, 0, 1, &number, &error), &error);
        assert_ok(pawl__json_real(node, &real, &error), &error);
        assert_ok(pawl__json_bool(node, &yes, &error), &error);
        assert_ok(pawl__json_object(node, &object, &error), &error);
        assert_ok(pawl__json_array(node, &object, &error), &error);
        assert_true(pawl__view_is(text, "default") && number == 42 && real == 0.5 && yes);
        assert_null(object.value);
    }
    pawl_view text = pawl_view_of("default");
    assert_status(
        pawl__json_text(pawl__json_optional(&root, "wrong"), &text, &error), PAWL_INVALID, &error);
    assert_true(pawl__view_is(text, "default"));
}

static void test_errors_name_the_path(void **state)
{
    (void)state;
    json_auto_t *json = parse("{\"items\": [1, 2, 3, {\"id\": 5, \"n\": 1.5, \"big\": 70000,"
                              " \"t\": \"x\", \"z\": null, \"f\": true}]}");
    struct pawl__json_node root = pawl__json_root(json, "payload");
    struct pawl__json_node items;
    struct pawl__json_node item;
    struct pawl__json_node node;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view text = { NULL, 0 };
    int64_t number = 42;
    double real = 1;
    bool yes = false;

    assert_ok(pawl__json_array(pawl__json_key(&root, "items"), &items, &error), &error);
    assert_ok(pawl__json_object(pawl__json_item(&items, 3), &item, &error), &error);
#define REFUSED(call, expected)                       \
    do {                                              \
        assert_status(call, PAWL_INVALID, &error);    \
        assert_string_equal(error.message, expected); \
    } while (0)
    REFUSED(pawl__json_text(pawl__json_key(&item, "id"), &text, &error),
            "payload.items[3].id: expected a string, found a number");
    REFUSED(pawl__json_text(pawl__json_key(&item, "no"), &text, &error),
            "payload.items[3].no: missing, expected a string");
    REFUSED(pawl__json_int(pawl__json_key(&item, "n"), 0, 9, &number, &error),
            "payload.items[3].n: expected an integer without point and exponent, found 1.5");
    REFUSED(pawl__json_int(pawl__json_key(&item, "big"), 0, 65535, &number, &error),
            "payload.items[3].big: 70000 is not within 0 to 65535");
    REFUSED(pawl__json_int(pawl__json_key(&item, "t"), 0, 9, &number, &error),
            "payload.items[3].t: expected an integer, found a string");
    REFUSED(pawl__json_real(pawl__json_key(&item, "z"), &real, &error),
            "payload.items[3].z: expected a number, found null");
    REFUSED(pawl__json_bool(pawl__json_key(&item, "t"), &yes, &error),
            "payload.items[3].t: expected a boolean, found a string");
    REFUSED(pawl__json_object(pawl__json_item(&items, 0), &node, &error),
            "payload.items[0]: expected an object, found a number");
    REFUSED(pawl__json_array(pawl__json_key(&item, "f"), &node, &error),
            "payload.items[3].f: expected an array, found a boolean");
    REFUSED(pawl__json_array(pawl__json_root(json, ""), &node, &error),
            "expected an array, found an object");
    REFUSED(pawl__json_fail(&item, &error, "too late by %d s", 5),
            "payload.items[3]: too late by 5 s");
#undef REFUSED
    assert_int_equal(number, 42);
}

static void test_a_number_with_a_point_or_an_exponent_is_no_integer(void **state)
{
    (void)state;
    /* The first five round to an integer when they are read. */
    json_auto_t *json =
        parse("[0.99999999999999999999, -0.99999999999999999999, 1e-400, 9007199254740990.9999,"
              " 100000000000000000001e-20, 1.0, 1e0, -0.0, 9007199254740992.0, 1e300, -1e19]");
    struct pawl__json_node root = pawl__json_root(json, "");
    pawl_error error = PAWL_ERROR_INIT;
    int64_t number = 42;

    for (size_t i = 0; i < pawl__json_count(&root); i++) {
        assert_status(
            pawl__json_int(pawl__json_item(&root, i), INT64_MIN, INT64_MAX, &number, &error),
            PAWL_INVALID,
            &error);
        assert_message(&error, "expected an integer without point and exponent, found ");
        assert_int_equal(number, 42);
    }
}

static void test_unknown_keys_are_refused_with_the_nearest_or_all_known(void **state)
{
    (void)state;
    static const char *const names[] = { "limit", "after" };
    json_auto_t *good = parse("{\"after\": 1}");
    json_auto_t *near = parse("{\"after\": 1, \"limti\": 2}");
    json_auto_t *far = parse("{\"colour\": 2}");
    struct pawl__json_node node = pawl__json_root(good, "query");
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__json_only(&node, names, COUNT_OF(names), &error), &error);
    node.value = near;
    assert_status(pawl__json_only(&node, names, COUNT_OF(names), &error), PAWL_INVALID, &error);
    assert_string_equal(error.message, "query.limti: unknown key; did you mean 'limit'?");
    node.value = far;
    assert_status(pawl__json_only(&node, names, COUNT_OF(names), &error), PAWL_INVALID, &error);
    assert_string_equal(error.message, "query.colour: unknown key; known: limit, after");
}

static void test_a_key_longer_than_a_message_is_cut(void **state)
{
    (void)state;
    char text[1200];
    pawl_error error = PAWL_ERROR_INIT;

    snprintf(text, sizeof(text), "{\"%01000d\": 1}", 0);
    json_auto_t *json = parse(text);
    struct pawl__json_node root = pawl__json_root(json, "payload");
    assert_status(pawl__json_only(&root, NULL, 0, &error), PAWL_INVALID, &error);
    assert_string_equal(error.message, "payload....: unknown key");
}

static void test_numbers_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {
        { "0.1", 0.1 },
        { "-0.0", -0.0 },
        { "1E5", 1e5 },
        { "1e+5", 1e5 },
        { "123.456e-7", 123.456e-7 },
        { "0.000000000000000000000000000000000000001", 1e-39 },
        { "1.7976931348623157e308", 1.7976931348623157e308 },
        { "4.9e-324", 4.9e-324 },
        { "1e-99999999999999999999", 0 },
        { "0e99999999999999999999", 0 },
        { "9007199254740993.0", 9007199254740993.0 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_auto_t *json = parse(rows[i].text);
        assert_true(json_is_real(json));
        assert_memory_equal(
            &(double){ json_real_value(json) }, &rows[i].value, sizeof(rows[i].value));
    }
}

static void test_escapes_become_what_they_mean(void **state)
{
    (void)state;
    json_auto_t *json = parse("{\"a\\tb\": \"x\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC"
                              "\\ud83d\\udc27y\", \"\\\\\": \"\\\"\"}");

    assert_string_equal(json_string_value(json_object_get(json, "a\tb")),
                        "x\"\\/\b\f\n\r\tAé€\xF0\x9F\x90\xA7y");
    assert_string_equal(json_string_value(json_object_get(json, "\\")), "\"");
}

/* jansson's own allocations fail in turn, too. */
static void *failing_malloc(size_t size)
{
    return malloc(size);
}

static void test_reading_survives_every_failed_allocation(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a long key with an escape \\n\": [1, 2, 3.25, \"a text that is longer than sixteen\","
        " \"\\u20ac and forty more characters to make it grow\", true, {}, []],"
        " \"b\": {\"c\": null, \"d\": {}}, \"e\": 1.2345678901234567890123456789}";
    json_auto_t *expected = parse(text);

    json_set_alloc_funcs(failing_malloc, free);
    FAULT_WALK (walk) {
        json_t *json = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__json_parse(pawl_view_of(text), BYTES_MAX, &json, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_true(status == PAWL_OK ? json_equal(json, expected) : json == NULL);
        json_decref(json);
    }
    json_set_alloc_funcs(malloc, free);
}

static void test_checking_survives_every_failed_allocation(void **state)
{
    (void)state;
    struct pawl__buf text = BUF_INIT(BYTES_MAX);

    add_object(&text, 40, "\\n\\u20ac");
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__json_check(pawl__buf_view(&text), BYTES_MAX, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    pawl__buf_done(&text);
}

static void test_long_numbers_are_in_range_or_not(void **state)
{
    (void)state;
    char digits[340];

    for (size_t len = 290; len < 330; len++) { /* around the largest double */
        memset(digits, '9', len);
        memcpy(&digits[len], ".5", 3);
        if (len <= 308) {
            json_decref(parse(digits));
        } else {
            assert_refused(pawl_view_of(digits), "real number out of range");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_is_read),
        cmocka_unit_test(test_a_key_that_comes_twice_is_found_however_many_there_are),
        cmocka_unit_test(test_checking_survives_every_failed_allocation),
        cmocka_unit_test(test_long_numbers_are_in_range_or_not),
        cmocka_unit_test(test_bad_text_is_refused_with_its_place),
        cmocka_unit_test(test_the_limit_of_bytes_holds_and_one_past_it_is_refused),
        cmocka_unit_test(test_the_limit_of_depth_holds_and_one_past_it_is_refused),
        cmocka_unit_test(test_wide_is_not_deep),
        cmocka_unit_test(test_numbers_are_read_exactly),
        cmocka_unit_test(test_escapes_become_what_they_mean),
        cmocka_unit_test(test_reading_survives_every_failed_allocation),
        cmocka_unit_test(test_values_are_read_by_their_names),
        cmocka_unit_test(test_an_optional_value_keeps_its_default_when_absent_or_null),
        cmocka_unit_test(test_errors_name_the_path),
        cmocka_unit_test(test_a_number_with_a_point_or_an_exponent_is_no_integer),
        cmocka_unit_test(test_unknown_keys_are_refused_with_the_nearest_or_all_known),
        cmocka_unit_test(test_a_key_longer_than_a_message_is_cut),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
