#include "lib/check.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/macros.h"
#include "lib/fault.h"

enum { BYTES_MAX = 4096 };

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__json_parse(pawl_view_of(text), BYTES_MAX, &json, &error), &error);
    return json;
}

static void assert_refused(pawl_view text, const char *message)
{
    json_t *json = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_status(pawl__json_parse(text, BYTES_MAX, &json, &error), PAWL_INVALID, &error);
    assert_message(&error, message);
    assert_null(json);
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
        { "", "line 1, column 0: " },
        { "   ", "line 1, column 3: " },
        { "{\n  \"a\": 1,\n  \"a\": 2}", "line 3, column 5: duplicate object key" },
        { "{\"x\": {\"a\": 1, \"a\": 1}}", "duplicate object key" },
        { "[1, 2", "line 1, column 5: " },
        { "[1,]", "line 1, column 4: " },
        { "[1 2]", "line 1, column 4: " },
        { "{\"a\"}", "':' expected" },
        { "{a: 1}", "string or '}' expected" },
        { "[1]]", "end of file expected" },
        { "1 2", "end of file expected" },
        { "\"a", "premature end of input" },
        { "\"\x01\"", "control character 0x1" },
        { "\"\\x\"", "invalid escape" },
        { "\"\\u0000\"", "\\u0000 is not allowed" },
        { "\"\\ud800\"", "invalid Unicode '\\uD800'" },
        { "\"\\udc00\"", "invalid Unicode '\\uDC00'" },
        { "\"\\ud800\\u0041\"", "invalid Unicode '\\uD800\\u0041'" },
        { "\"\xFF\"", "unable to decode byte 0xff" },
        { "\"\xC0\xAF\"", "unable to decode byte 0xc0" },
        { "\"\xED\xA0\x80\"", "unable to decode byte 0xed" },
        { "{\"\\u0000\": 1}", "NUL byte in object key" },
        { "01", "invalid token" },
        { "+1", "invalid token" },
        { ".5", "invalid token" },
        { "1.", "invalid token" },
        { "1e", "invalid token" },
        { "NaN", "invalid token" },
        { "-Infinity", "invalid token" },
        { "nul", "invalid token" },
        { "'a'", "invalid token" },
        { "// c\n1", "invalid token" },
        { "9223372036854775808", "too big integer" },
        { "-9223372036854775809", "too big negative integer" },
        { "1e400", "real number overflow" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_refused(pawl_view_of(rows[i].text), rows[i].message);
    }
    assert_refused((pawl_view){ NULL, 0 }, "line 1");
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
    memcpy(text + len, "\"[\\\"[[{\"", 8); /* brackets in a string open nothing */
    len += 8;
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
    assert_refused(pawl_view_of("]]]]"), "line 1"); /* more closed than open */
}

static void test_wide_is_not_deep(void **state)
{
    (void)state;
    char text[602];

    for (size_t i = 0; i < 200; i++) {
        memcpy(text + 3 * i, i == 0 ? "[[]" : ",[]", 3);
    }
    memcpy(text + 600, "]", 2);
    json_auto_t *json = parse(text);
    assert_int_equal(json_array_size(json), 200);
}

static void test_values_are_read_by_their_names(void **state)
{
    (void)state;
    json_auto_t *json = parse("{\"id\": \"x\", \"n\": 7, \"whole\": 3.0, \"r\": 2.5, \"yes\": true,"
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
    assert_ok(pawl__json_int(pawl__json_key(&root, "whole"), 0, 9, &number, &error), &error);
    assert_int_equal(number, 3);
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
            "payload.items[3].n: expected an integer, found 1.5");
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

static void test_reals_beyond_the_exact_ones_are_no_integers(void **state)
{
    (void)state;
    json_auto_t *json = parse("[9007199254740991.0, 9007199254740992.0, 1e300, -1e19]");
    struct pawl__json_node root = pawl__json_root(json, "");
    pawl_error error = PAWL_ERROR_INIT;
    int64_t number = 0;

    assert_ok(pawl__json_int(pawl__json_item(&root, 0), INT64_MIN, INT64_MAX, &number, &error),
              &error);
    assert_true(number == 9007199254740991);
    for (size_t i = 1; i < pawl__json_count(&root); i++) {
        assert_status(
            pawl__json_int(pawl__json_item(&root, i), INT64_MIN, INT64_MAX, &number, &error),
            PAWL_INVALID,
            &error);
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

    memset(text, 'k', sizeof(text));
    memcpy(text, "{\"", 2);
    memcpy(text + 1190, "\":1}", 5);
    json_auto_t *json = parse(text);
    struct pawl__json_node root = pawl__json_root(json, "payload");
    assert_status(pawl__json_only(&root, NULL, 0, &error), PAWL_INVALID, &error);
    assert_string_equal(error.message, "payload....: unknown key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_is_read),
        cmocka_unit_test(test_bad_text_is_refused_with_its_place),
        cmocka_unit_test(test_the_limit_of_bytes_holds_and_one_past_it_is_refused),
        cmocka_unit_test(test_the_limit_of_depth_holds_and_one_past_it_is_refused),
        cmocka_unit_test(test_wide_is_not_deep),
        cmocka_unit_test(test_values_are_read_by_their_names),
        cmocka_unit_test(test_an_optional_value_keeps_its_default_when_absent_or_null),
        cmocka_unit_test(test_errors_name_the_path),
        cmocka_unit_test(test_reals_beyond_the_exact_ones_are_no_integers),
        cmocka_unit_test(test_unknown_keys_are_refused_with_the_nearest_or_all_known),
        cmocka_unit_test(test_a_key_longer_than_a_message_is_cut),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
