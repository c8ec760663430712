#include "lib/check.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "base/json/json.h"
#include "lib/fault.h"

enum { BYTES_MAX = 1 << 20 };

static json_t *parse(pawl_view text)
{
    json_t *json = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__json_parse(text, BYTES_MAX, &json, &error), &error);
    return json;
}

static void assert_canonical(const char *text, const char *expected)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(BYTES_MAX);
    json_auto_t *json = parse(pawl_view_of(text));
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__json_canonical(json, &buf, &error), &error);
    assert_string_equal(buf.data, expected);
}

static void test_white_space_order_and_spelling_do_not_matter(void **state)
{
    (void)state;

    assert_canonical(" { \"b\" : [ 1 , true ] ,\n \"a\" : null } ", "{\"a\":null,\"b\":[1,true]}");
    assert_canonical("{\"a\":null,\"b\":[1,true]}", "{\"a\":null,\"b\":[1,true]}");
    assert_canonical("{}", "{}");
    assert_canonical("[[],{},\"\"]", "[[],{},\"\"]");
    assert_canonical("\"\\u00e9\\u20ac\\ud83d\\udc27\\/\\u0041\"", "\"é€\xF0\x9F\x90\xA7/A\"");
    assert_canonical("[1.0,1e0,1,10e-1,-0,-0.0,0e5]", "[1,1,1,1,0,0,0]");
}

static void test_control_characters_have_one_escape_each(void **state)
{
    (void)state;

    assert_canonical("\"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0022\\u005c\"",
                     "\"\\b\\t\\n\\f\\r\\\"\\\\\"");
    assert_canonical("\"\\u0001\\u001F\\u007f\\u0080\"", "\"\\u0001\\u001f\x7F\xC2\x80\"");
    assert_canonical("{\"\\n\":1,\"a\\\"b\":2}", "{\"\\n\":1,\"a\\\"b\":2}");
}

/* The example of RFC 8785, section 3.2.3. */
static void test_keys_are_sorted_by_utf16_code_units(void **state)
{
    (void)state;

    assert_canonical("{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\","
                     "\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\"1\":\"One\","
                     "\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
                     "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
                     "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\","
                     "\"\xC3\xB6\":\"Latin Small Letter O With Diaeresis\","
                     "\"\xE2\x82\xAC\":\"Euro Sign\","
                     "\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\","
                     "\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}");
    assert_canonical("{\"aa\":1,\"a\":2,\"\":3,\"B\":4}", "{\"\":3,\"B\":4,\"a\":2,\"aa\":1}");
}

static void test_integers_stay_exact(void **state)
{
    (void)state;

    assert_canonical("[9007199254740993,9223372036854775807,-9223372036854775808]",
                     "[9007199254740993,9223372036854775807,-9223372036854775808]");
    /* A real from 2^53 on is never written like an integer. */
    assert_canonical("[9007199254740991.0,9007199254740992.0,1e20,-1e20,123456789012345678901.0]",
                     "[9007199254740991,9.007199254740992e+15,1e+20,-1e+20,"
                     "1.2345678901234568e+20]");
}

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Mostly the samples of RFC 8785, appendix B. */
static void test_reals_are_written_as_ecmascript_does(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        const char *text;
    } rows[] = {
        { 0x0000000000000000, "0" },
        { 0x8000000000000000, "0" },
        { 0x0000000000000001, "5e-324" },
        { 0x8000000000000001, "-5e-324" },
        { 0x000FFFFFFFFFFFFF, "2.225073858507201e-308" },
        { 0x0010000000000000, "2.2250738585072014e-308" },
        { 0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308" },
        { 0xFFEFFFFFFFFFFFFF, "-1.7976931348623157e+308" },
        { 0x44B52D02C7E14AF5, "9.999999999999997e+22" },
        { 0x44B52D02C7E14AF6, "1e+23" },
        { 0x44B52D02C7E14AF7, "1.0000000000000001e+23" },
        { 0x444B1AE4D6E2EF50, "1e+21" },
        { 0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7" },
        { 0x3EB0C6F7A0B5ED8D, "0.000001" },
        { 0x41B3DE4355555553, "333333333.3333332" },
        { 0x41B3DE4355555554, "333333333.33333325" },
        { 0x41B3DE4355555555, "333333333.3333333" },
        { 0x41B3DE4355555556, "333333333.3333334" },
        { 0x41B3DE4355555557, "333333333.33333343" },
        { 0xBECBF647612F3696, "-0.0000033333333333333333" },
        { 0x43143FF3C1CB0959, "1424953923781206.2" },
        { 0x3D30000000000000, "5.684341886080802e-14" }, /* 2^-44: the nearest misses */
        { 0x3FB999999999999A, "0.1" },
        { 0x3FD3333333333334, "0.30000000000000004" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(64);
        json_auto_t *json = json_real(double_of(rows[i].bits));
        pawl_error error = PAWL_ERROR_INIT;
        assert_ok(pawl__json_canonical(json, &buf, &error), &error);
        assert_string_equal(buf.data, rows[i].text);
    }
}

static void test_the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE" };
    bool found = false;

    for (size_t i = 0; i < COUNT_OF(names) && !found; i++) {
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    }
    /* Without such a locale installed it is only the C locale that is tried. */
    assert_canonical("[0.5,1e-7,1.25e30]", "[0.5,1e-7,1.25e+30]");
    setlocale(LC_NUMERIC, "C");
}

static void test_dump_keeps_order_and_shows_reals(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(BYTES_MAX);
    json_auto_t *json = parse(pawl_view_of("{\"b\": 1.0, \"a\": [1, 0.1, -0.0, 1e20, \"\\n\"]}"));
    pawl_error error = PAWL_ERROR_INIT;

    pawl__buf_add_text(&buf, "> ");
    assert_ok(pawl__json_dump(json, &buf, &error), &error);
    assert_string_equal(buf.data, "> {\"b\":1.0,\"a\":[1,0.1,-0.0,1e+20,\"\\n\"]}");
    json_auto_t *again = parse((pawl_view){ buf.data + 2, buf.len - 2 });
    assert_true(json_equal(json, again));
}

static void test_what_does_not_fit_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(10);
    json_auto_t *json = parse(pawl_view_of("[1,2,3,4]"));
    pawl_error error = PAWL_ERROR_INIT;

    pawl__buf_add_text(&buf, "x");
    assert_ok(pawl__json_canonical(json, &buf, &error), &error); /* 1 + 9 bytes */
    assert_string_equal(buf.data, "x[1,2,3,4]");
    pawl__buf_cut(&buf, 1);
    pawl__buf_add_text(&buf, "y");
    assert_status(pawl__json_canonical(json, &buf, &error), PAWL_INVALID, &error);
    assert_message(&error, "JSON over 10 bytes");
    assert_string_equal(buf.data, "xy");
    pawl__buf_add_text(&buf, "123456789");
    assert_true(buf.broken);
    assert_status(pawl__json_canonical(json, &buf, &error), PAWL_INVALID, &error);
    assert_true(buf.broken); /* still: what broke it is not forgotten */
}

static void test_a_built_value_has_the_same_limit_of_depth(void **state)
{
    (void)state;
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(BYTES_MAX);
    json_auto_t *json = json_true();
    pawl_error error = PAWL_ERROR_INIT;

    for (int depth = 1; depth <= PAWL__JSON_DEPTH_MAX; depth++) {
        json_t *outer = json_array();
        assert_int_equal(json_array_append_new(outer, json), 0);
        json = outer;
    }
    assert_ok(pawl__json_canonical(json, &buf, &error), &error);
    pawl__buf_clear(&buf);
    json_t *outer = json_object();
    assert_int_equal(json_object_set_new(outer, "a", json), 0);
    json = outer;
    assert_status(pawl__json_canonical(json, &buf, &error), PAWL_INVALID, &error);
    assert_message(&error, "more than 64 levels");
    assert_int_equal(buf.len, 0);
}

static json_t *random_string(struct pawl__prng *prng)
{
    /* Pieces whose order differs between bytes and UTF-16, and what must be escaped. */
    static const char *const pieces[] = {
        "a",
        "b",
        "\"",
        "\\",
        "\n",
        "\x01",
        "é",
        "€",
        "\xEE\x80\x80",
        "\xEF\xBF\xBD",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF",
        "\xED\x9F\xBF",
        "/",
    };
    char text[64] = "";
    size_t count = pawl__prng_below(prng, 6);

    for (size_t i = 0; i < count; i++) {
        strcat(text, pieces[pawl__prng_below(prng, COUNT_OF(pieces))]);
    }
    return json_string(text);
}

static json_t *random_number(struct pawl__prng *prng)
{
    switch (pawl__prng_below(prng, 4)) {
    case 0:
        return json_integer((json_int_t)pawl__prng_next(prng));
    case 1:
        return json_integer(pawl__prng_between(prng, -1000, 1000));
    case 2: /* integers around 2^53, as reals */
        return json_real((double)(pawl__prng_next(prng) >> pawl__prng_below(prng, 20)));
    default: {
        double value = double_of(pawl__prng_next(prng));
        return json_real(isfinite(value) ? value : 0.1);
    }
    }
}

static json_t *random_json(struct pawl__prng *prng, int depth)
{
    uint64_t kind = pawl__prng_below(prng, depth == 0 ? 5 : 7);
    size_t count = pawl__prng_below(prng, pawl__prng_below(prng, 20) == 0 ? 40 : 6);
    json_t *json;

    switch (kind) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(pawl__prng_below(prng, 2) == 0);
    case 2:
        return random_string(prng);
    case 3:
    case 4:
        return random_number(prng);
    case 5:
        json = json_array();
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(json, random_json(prng, depth - 1));
        }
        return json;
    default:
        json = json_object();
        for (size_t i = 0; i < count; i++) {
            json_auto_t *key = random_string(prng);
            json_object_set_new(json, json_string_value(key), random_json(prng, depth - 1));
        }
        return json;
    }
}

/* The same value with its keys set in another order. */
static json_t *shuffled(struct pawl__prng *prng, json_t *json)
{
    if (json_is_array(json)) {
        json_t *copy = json_array();
        for (size_t i = 0; i < json_array_size(json); i++) {
            json_array_append_new(copy, shuffled(prng, json_array_get(json, i)));
        }
        return copy;
    }
    if (!json_is_object(json)) {
        return json_incref(json);
    }
    json_t *copy = json_object();
    json_auto_t *rest = json_copy(json);
    while (json_object_size(rest) > 0) {
        void *at = json_object_iter(rest);
        for (size_t skip = pawl__prng_below(prng, json_object_size(rest)); skip > 0; skip--) {
            at = json_object_iter_next(rest, at);
        }
        char *key = strdup(json_object_iter_key(at));
        json_object_set_new(copy, key, shuffled(prng, json_object_iter_value(at)));
        json_object_del(rest, key);
        free(key);
    }
    return copy;
}

static void test_canonical_is_idempotent_and_blind_to_order(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(2026);
    AUTO(pawl__buf_done) struct pawl__buf first = BUF_INIT(BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf second = BUF_INIT(BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;

    for (int round = 0; round < 3000; round++) {
        json_auto_t *json = random_json(&prng, 4);
        json_auto_t *other = shuffled(&prng, json);
        pawl__buf_clear(&first);
        pawl__buf_clear(&second);
        assert_ok(pawl__json_canonical(json, &first, &error), &error);
        assert_ok(pawl__json_canonical(other, &second, &error), &error);
        assert_string_equal(first.data, second.data);

        json_auto_t *read = parse(pawl__buf_view(&first));
        pawl__buf_clear(&second);
        assert_ok(pawl__json_canonical(read, &second, &error), &error);
        assert_string_equal(first.data, second.data);

        /* The plain form goes round without losing a bit. */
        pawl__buf_clear(&second);
        assert_ok(pawl__json_dump(json, &second, &error), &error);
        json_auto_t *same = parse(pawl__buf_view(&second));
        assert_true(json_equal(json, same));
    }
}

/* Reals that differ in their last bit have different texts, and each reads back. */
static void test_every_real_reads_back_and_none_is_longer_than_needed(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(7);
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(64);
    pawl_error error = PAWL_ERROR_INIT;

    for (int round = 0; round < 20000; round++) {
        uint64_t bits = pawl__prng_next(&prng);
        if (round % 4 == 0) {
            bits &= ~UINT64_C(0) << 52; /* powers of two: the uneven gaps */
        }
        double value = double_of(bits);
        if (!isfinite(value)) {
            continue;
        }
        json_auto_t *json = json_real(value);
        pawl__buf_clear(&buf);
        assert_ok(pawl__json_canonical(json, &buf, &error), &error);
        assert_true(strtod(buf.data, NULL) == value);
        char plain[64];
        snprintf(plain, sizeof(plain), "%.16e", value);
        assert_true(fabs(value) < 1e16 || buf.len <= strlen(plain));
    }
}

static void test_writing_survives_every_failed_allocation(void **state)
{
    (void)state;
    struct pawl__prng prng = pawl__prng_seeded(3);
    json_auto_t *json = json_object();

    for (int i = 0; i < 40; i++) { /* more keys than are sorted on the stack */
        char key[16];
        snprintf(key, sizeof(key), "key %d", i);
        json_object_set_new(json, key, random_json(&prng, 2));
    }
    FAULT_WALK (walk) {
        struct pawl__buf buf = BUF_INIT(BYTES_MAX);
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__json_canonical(json, &buf, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        assert_true(status == PAWL_OK || buf.len == 0);
        pawl__buf_done(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_white_space_order_and_spelling_do_not_matter),
        cmocka_unit_test(test_control_characters_have_one_escape_each),
        cmocka_unit_test(test_keys_are_sorted_by_utf16_code_units),
        cmocka_unit_test(test_integers_stay_exact),
        cmocka_unit_test(test_reals_are_written_as_ecmascript_does),
        cmocka_unit_test(test_the_locale_does_not_matter),
        cmocka_unit_test(test_dump_keeps_order_and_shows_reals),
        cmocka_unit_test(test_what_does_not_fit_leaves_the_buffer_as_it_was),
        cmocka_unit_test(test_a_built_value_has_the_same_limit_of_depth),
        cmocka_unit_test(test_canonical_is_idempotent_and_blind_to_order),
        cmocka_unit_test(test_every_real_reads_back_and_none_is_longer_than_needed),
        cmocka_unit_test(test_writing_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("json canonical", tests, NULL, NULL);
}
