/* Columns out of payloads: paths, types at their limits and one past, and what is not JSON. */
#include "lib/check.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "delivery/mapping/mapping.h"
#include "delivery/mapping/path.h"
#include "lib/fault.h"

struct fixture {
    struct pawl__arena arena;
    struct delivery_value value;
    pawl_error error;
};

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .arena = ARENA_INIT };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    pawl__arena_done(&((struct fixture *)*state)->arena);
    return 0;
}

static struct delivery_entry entry_of(pawl_view payload)
{
    return (struct delivery_entry){
        .lsn = 1,
        .transaction_id = pawl_view_of("shop:a:0"),
        .source = pawl_view_of("shop"),
        .event_id = pawl_view_of("a"),
        .payload = payload,
    };
}

/* The column $.v of {"v": TOKEN}. */
static pawl_status read_token(struct fixture *f, enum delivery_type type, const char *token)
{
    const struct delivery_column column = { .name = "v", .type = type, .path = "$.v" };
    char payload[256];

    snprintf(payload, sizeof(payload), "{\"v\":%s}", token);
    assert_ok(pawl__json_check(pawl_view_of(payload), sizeof(payload), &f->error), &f->error);
    struct delivery_entry entry = entry_of(pawl_view_of(payload));
    pawl_status status = pawl__delivery_map_value(&column, &entry, &f->arena, &f->value, &f->error);
    if (status == PAWL_OK && type == DELIVERY_JSON && !f->value.is_null) {
        assert_true(pawl__arena_copy(&f->arena, f->value.as.text, &f->value.as.text));
    }
    return status;
}

static void assert_refused(struct fixture *f, enum delivery_type type, const char *token)
{
    if (read_token(f, type, token) != PAWL_INVALID) {
        fail_msg("%s is taken for a %s", token, pawl__delivery_type_name(type));
    }
    assert_message(&f->error, pawl__delivery_type_name(type));
    f->error = (pawl_error)PAWL_ERROR_INIT;
}

static void assert_whole(struct fixture *f,
                         enum delivery_type type,
                         const char *token,
                         int64_t expected)
{
    assert_ok(read_token(f, type, token), &f->error);
    assert_false(f->value.is_null);
    assert_true(f->value.as.i64 == expected);
}

static void test_integers_keep_their_range(void **state)
{
    struct fixture *f = *state;

    assert_whole(f, DELIVERY_BIGINT, "9223372036854775807", INT64_MAX);
    assert_whole(f, DELIVERY_BIGINT, "-9223372036854775808", INT64_MIN);
    assert_whole(f, DELIVERY_BIGINT, "9007199254740993", INT64_C(9007199254740993));
    assert_whole(f, DELIVERY_INTEGER, "2147483647", INT32_MAX);
    assert_whole(f, DELIVERY_INTEGER, "-2147483648", INT32_MIN);
    assert_refused(f, DELIVERY_INTEGER, "2147483648");
    assert_refused(f, DELIVERY_INTEGER, "-2147483649");
    assert_refused(f, DELIVERY_BIGINT, "1.0");
    assert_refused(f, DELIVERY_BIGINT, "1e3");
    assert_refused(f, DELIVERY_BIGINT, "\"7\"");
    assert_refused(f, DELIVERY_BIGINT, "true");
    assert_refused(f, DELIVERY_BIGINT, "[1]");
}

/* One past int64 is refused with the whole payload: JSON itself has no limit, our reader has. */
static void test_a_number_past_every_integer_fails_the_event(void **state)
{
    struct fixture *f = *state;
    struct delivery_verdict verdict;
    struct delivery_entry entry = entry_of(pawl_view_of("{\"v\":9223372036854775808}"));

    assert_ok(
        pawl__delivery_map_verdict(pawl__delivery_default_mapping(), &entry, &verdict, &f->error),
        &f->error);
    assert_int_equal(verdict.kind, DELIVERY_TO_FAILED);
    assert_string_equal(verdict.reason, "not_json");
}

static void test_a_double_holds_what_it_can_hold_exactly(void **state)
{
    struct fixture *f = *state;

    assert_ok(read_token(f, DELIVERY_DOUBLE, "0.1"), &f->error);
    assert_true(f->value.as.real == 0.1);
    assert_ok(read_token(f, DELIVERY_DOUBLE, "-1.7976931348623157e308"), &f->error);
    assert_ok(read_token(f, DELIVERY_DOUBLE, "9007199254740992"), &f->error);
    assert_true(f->value.as.real == 9007199254740992.0);
    assert_ok(read_token(f, DELIVERY_DOUBLE, "-9223372036854775808"), &f->error);
    assert_refused(f, DELIVERY_DOUBLE, "9007199254740993");
    assert_refused(f, DELIVERY_DOUBLE, "9223372036854775807");
    assert_refused(f, DELIVERY_DOUBLE, "\"0.1\"");
}

static void test_booleans_and_texts_are_nothing_else(void **state)
{
    struct fixture *f = *state;

    assert_ok(read_token(f, DELIVERY_BOOLEAN, "true"), &f->error);
    assert_true(f->value.as.boolean);
    assert_ok(read_token(f, DELIVERY_BOOLEAN, "false"), &f->error);
    assert_false(f->value.as.boolean);
    assert_refused(f, DELIVERY_BOOLEAN, "1");
    assert_refused(f, DELIVERY_BOOLEAN, "\"true\"");
    assert_ok(read_token(f, DELIVERY_VARCHAR, "\"a\\n\\u00e9\\\"\""), &f->error);
    assert_true(pawl__view_is(f->value.as.text, "a\n\xc3\xa9\""));
    assert_ok(read_token(f, DELIVERY_VARCHAR, "\"\""), &f->error);
    assert_false(f->value.is_null);
    assert_int_equal(f->value.as.text.len, 0);
    assert_refused(f, DELIVERY_VARCHAR, "7");
    assert_refused(f, DELIVERY_VARCHAR, "{}");
}

static void test_times_keep_microseconds_and_no_less(void **state)
{
    struct fixture *f = *state;

    assert_whole(
        f, DELIVERY_TIMESTAMP, "\"2026-01-29T10:20:30.123456Z\"", INT64_C(1769682030123456));
    assert_whole(f,
                 DELIVERY_TIMESTAMP,
                 "\"2026-01-29T11:20:30.123456000+01:00\"",
                 INT64_C(1769682030123456));
    assert_ok(read_token(f, DELIVERY_TIMESTAMP, "\"0001-01-01T00:00:00Z\""), &f->error);
    assert_ok(read_token(f, DELIVERY_TIMESTAMP, "\"9999-12-31T23:59:59.999999Z\""), &f->error);
    assert_refused(f, DELIVERY_TIMESTAMP, "\"2026-01-29T10:20:30.1234567Z\"");
    assert_refused(f, DELIVERY_TIMESTAMP, "\"0000-12-31T23:59:59Z\"");
    assert_refused(f, DELIVERY_TIMESTAMP, "\"10000-01-01T00:00:00Z\"");
    assert_refused(f, DELIVERY_TIMESTAMP, "\"2026-02-30T00:00:00Z\"");
    assert_refused(f, DELIVERY_TIMESTAMP, "1769682030");
}

static void test_json_is_kept_byte_for_byte(void **state)
{
    struct fixture *f = *state;

    assert_ok(read_token(f, DELIVERY_JSON, "{ \"a\" : 0.10000000000000000000001, \"}\": [ ] }"),
              &f->error);
    assert_true(
        pawl__view_is(f->value.as.text, "{ \"a\" : 0.10000000000000000000001, \"}\": [ ] }"));
    assert_ok(read_token(f, DELIVERY_JSON, "null"), &f->error);
    assert_true(f->value.is_null);
}

static void test_null_and_nothing_are_null_unless_required(void **state)
{
    struct fixture *f = *state;
    struct delivery_column column = { .name = "v", .type = DELIVERY_BIGINT, .path = "$.v" };
    struct delivery_entry none = entry_of(pawl_view_of("{}"));

    for (int type = DELIVERY_BIGINT; type <= DELIVERY_JSON; type++) {
        assert_ok(read_token(f, (enum delivery_type)type, "null"), &f->error);
        assert_true(f->value.is_null);
    }
    assert_ok(pawl__delivery_map_value(&column, &none, &f->arena, &f->value, &f->error), &f->error);
    assert_true(f->value.is_null);
    column.is_required = true;
    assert_status(pawl__delivery_map_value(&column, &none, &f->arena, &f->value, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "$.v: missing");
}

static void test_paths_find_what_they_name(void **state)
{
    static const struct {
        const char *json;
        const char *path;
        const char *value; /* NULL: none */
    } cases[] = {
        { " {\"a\":1} ", "$", "{\"a\":1}" },
        { "{\"b\":{\"a\":2},\"a\":1}", "$.a", "1" },
        { "{\"a\":{\"b\":[10,{\"c\":\"x\"}]}}", "$.a.b[1].c", "\"x\"" },
        { "{\"a\":[1,[2,3],4]}", "$.a[1][0]", "2" },
        { "{\"a\":[1,[2,3],4]}", "$.a[2]", "4" },
        { "{\"a\":[1]}", "$.a[1]", NULL },
        { "{\"a\":[]}", "$.a[0]", NULL },
        { "[]", "$.a", NULL },
        { "{}", "$.a", NULL },
        { "{\"aa\":1}", "$.a", NULL },
        { "{\"a\\u0062\":1}", "$.ab", "1" },
        { "{\"\\\"}\":{\"]\":\"[\"},\"k\":true}", "$.k", "true" },
        { "{\"odd key.\":7}", "$.\"odd key.\"", "7" },
        { "{ \"a\" : [ 1 , 2 ] , \"b\" : null }", "$.b", "null" },
        { "{\"\xc3\xa9\":5}", "$.\xc3\xa9", "5" },
        { "7", "$", "7" },
        { "7", "$[0]", NULL },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pawl_view value = { NULL, 0 };
        bool is_found = false;
        assert_ok(pawl__delivery_path_check(cases[i].path, &f->error), &f->error);
        assert_ok(pawl__delivery_path_find(
                      pawl_view_of(cases[i].json), cases[i].path, &is_found, &value, &f->error),
                  &f->error);
        if (is_found != (cases[i].value != NULL)
            || (is_found && !pawl__view_is(value, cases[i].value))) {
            fail_msg("%s of %s is %.*s", cases[i].path, cases[i].json, VIEW_ARGS(value));
        }
    }
}

static void test_what_is_no_path_is_refused(void **state)
{
    static const char *const bad[] = { "",      "a",    "$a",    "$.",           "$..a", "$[x]",
                                       "$[-1]", "$.a[", "$.\"a", "$.a b",        "$[1",  "$.a.",
                                       "$.$",   "$[]",  "$.a]",  "$[1234567890]" };
    struct fixture *f = *state;
    char deep[64] = "$";
    char longest[DELIVERY_PATH_BYTES_MAX + 2];

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (pawl__delivery_path_check(bad[i], &f->error) != PAWL_INVALID) {
            fail_msg("'%s' is taken for a path", bad[i]);
        }
    }
    f->error = (pawl_error)PAWL_ERROR_INIT;
    for (int i = 0; i < DELIVERY_PATHS_DEPTH_MAX; i++) {
        strcat(deep, ".a");
    }
    assert_ok(pawl__delivery_path_check(deep, &f->error), &f->error);
    assert_status(
        pawl__delivery_path_check(strcat(deep, ".a"), &f->error), PAWL_INVALID, &f->error);
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "$.", 2);
    longest[DELIVERY_PATH_BYTES_MAX] = '\0';
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl__delivery_path_check(longest, &f->error), &f->error);
    longest[DELIVERY_PATH_BYTES_MAX] = 'a';
    longest[DELIVERY_PATH_BYTES_MAX + 1] = '\0';
    assert_status(pawl__delivery_path_check(longest, &f->error), PAWL_INVALID, &f->error);
}

/* Every beginning of a JSON text: the finder is handed only JSON, and yet it must not read past the end. */
static void test_the_finder_stays_inside_whatever_it_is_given(void **state)
{
    static const char json[] = "{\"a\":{\"b\":[1,\"x\\\"\",{\"c\":null}]},\"d\":[[]]}";
    struct fixture *f = *state;

    for (size_t len = 0; len < sizeof(json); len++) {
        char *copy = test_malloc(len + 1);
        pawl_view value;
        bool is_found;
        memcpy(copy, json, len);
        assert_ok(pawl__delivery_path_find(
                      (pawl_view){ copy, len }, "$.a.b[2].c", &is_found, &value, &f->error),
                  &f->error);
        assert_ok(pawl__delivery_path_find(
                      (pawl_view){ copy, len }, "$.d[0]", &is_found, &value, &f->error),
                  &f->error);
        test_free(copy);
    }
}

static void check_bad(struct fixture *f,
                      const struct delivery_mapping *mapping,
                      const char *message)
{
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_status(pawl__delivery_mapping_check(mapping, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, message);
}

static void test_a_mapping_is_checked_before_it_is_used(void **state)
{
    struct fixture *f = *state;
    struct delivery_column columns[DELIVERY_COLUMNS_MAX] = {
        { .name = "user_id", .type = DELIVERY_BIGINT, .path = "$.user.id" },
        { .name = "b", .type = DELIVERY_JSON, .path = "$.b" },
    };
    struct delivery_mapping mapping = { .table = "plays", .columns = columns, .count = 2 };

    assert_ok(pawl__delivery_mapping_check(pawl__delivery_default_mapping(), &f->error), &f->error);
    assert_ok(pawl__delivery_mapping_check(&mapping, &f->error), &f->error);
    mapping.table = "x\"; DROP TABLE events; --";
    check_bad(f, &mapping, "lower-case letters");
    mapping.table = "failed_events";
    check_bad(f, &mapping, "pawl's own");
    mapping.table = "delivery_cursors";
    check_bad(f, &mapping, "pawl's own");
    mapping.table = "plays";
    columns[1].name = "user_id";
    check_bad(f, &mapping, "twice");
    columns[1].name = "event_key";
    check_bad(f, &mapping, "pawl's own");
    columns[1].name = "b";
    columns[1].type = DELIVERY_BLOB;
    check_bad(f, &mapping, "cannot be BLOB");
    columns[1].type = DELIVERY_JSON;
    columns[1].path = NULL;
    check_bad(f, &mapping, "no path");
    columns[1].path = "b";
    check_bad(f, &mapping, "is not a path");
    columns[1].path = "$.b";
    mapping.payload_bytes_max = DELIVERY_PAYLOAD_BYTES_MAX + 1;
    check_bad(f, &mapping, "the limit is");
    mapping.payload_bytes_max = DELIVERY_PAYLOAD_BYTES_MAX;
    mapping.count = DELIVERY_COLUMNS_MAX;
    check_bad(f, &mapping, "the limit is 125");
}

static struct delivery_verdict judge(struct fixture *f,
                                     const struct delivery_mapping *mapping,
                                     const struct delivery_entry *entry)
{
    struct delivery_verdict verdict;

    assert_ok(pawl__delivery_map_verdict(mapping, entry, &verdict, &f->error), &f->error);
    return verdict;
}

static void test_a_verdict_names_its_reason(void **state)
{
    struct fixture *f = *state;
    const struct delivery_column columns[] = {
        { .name = "n", .type = DELIVERY_INTEGER, .path = "$.n", .is_required = true },
    };
    const struct delivery_mapping mapping = {
        .table = "t", .columns = columns, .count = 1, .payload_bytes_max = 10
    };
    struct delivery_entry entry = entry_of(pawl_view_of("{\"n\": 123}"));

    assert_int_equal(judge(f, &mapping, &entry).kind, DELIVERY_ROW);
    entry.payload = pawl_view_of("{\"n\": 1234}");
    assert_string_equal(judge(f, &mapping, &entry).reason, "too_large");
    entry.payload = pawl_view_of("{\"n\":");
    assert_string_equal(judge(f, &mapping, &entry).reason, "not_json");
    entry.payload = pawl_view_of("{\"n\":1.5}");
    assert_string_equal(judge(f, &mapping, &entry).reason, "unmappable");
    assert_non_null(strstr(judge(f, &mapping, &entry).error, "$.n: 1.5 is no INTEGER"));
    entry.payload = pawl_view_of("{}");
    assert_string_equal(judge(f, &mapping, &entry).reason, "unmappable");
    entry = entry_of(pawl_view_of("{\"n\":1}"));
    entry.transaction_id = (pawl_view){ "a\0b", 3 };
    assert_string_equal(judge(f, &mapping, &entry).reason, "unmappable");
    entry = entry_of(pawl_view_of("{}"));
    entry.subject = (pawl_view){ "\xff", 1 };
    assert_string_equal(judge(f, pawl__delivery_default_mapping(), &entry).reason, "unmappable");
}

static void test_the_default_table_takes_any_json(void **state)
{
    struct fixture *f = *state;
    struct delivery_header headers[] = {
        { pawl_view_of("Trace"), pawl_view_of("a\"b") },
        { pawl_view_of("Raw"), { "\0\xff", 2 } },
    };
    struct delivery_entry entry =
        entry_of(pawl_view_of("{\"session_key\":7,\"event_time\":\"soon\"}"));
    const struct delivery_mapping *mapping = pawl__delivery_default_mapping();

    entry.headers = headers;
    entry.header_count = 2;
    assert_int_equal(judge(f, mapping, &entry).kind, DELIVERY_ROW);
    for (size_t i = 0; i < mapping->count; i++) {
        const struct delivery_column *column = &mapping->columns[i];
        assert_ok(pawl__delivery_map_value(column, &entry, &f->arena, &f->value, &f->error),
                  &f->error);
        if (column->is_lenient) {
            assert_true(f->value.is_null);
        }
        if (strcmp(column->name, "headers") == 0) {
            assert_true(pawl__view_is(f->value.as.text,
                                      "[[\"Trace\",\"a\\\"b\"],[\"Raw\",{\"base64\":\"AP8=\"}]]"));
        }
    }
}

static void test_what_is_not_json_becomes_base64(void **state)
{
    static const struct {
        pawl_view bytes;
        const char *json;
    } cases[] = {
        { { "", 0 }, "{\"base64\":\"\"}" },
        { { "f", 1 }, "{\"base64\":\"Zg==\"}" },
        { { "fo", 2 }, "{\"base64\":\"Zm8=\"}" },
        { { "foo", 3 }, "{\"base64\":\"Zm9v\"}" },
        { { "\xff\xfe\x00\xfb", 4 }, "{\"base64\":\"//4A+w==\"}" },
    };
    struct fixture *f = *state;
    enum delivery_encoding encoding = DELIVERY_AS_JSON;
    pawl_view json;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_ok(
            pawl__delivery_payload_json(cases[i].bytes, &f->arena, &encoding, &json, &f->error),
            &f->error);
        assert_true(pawl__view_is(json, cases[i].json));
        assert_int_equal(encoding, DELIVERY_AS_BASE64);
    }
    assert_ok(pawl__delivery_payload_json(
                  pawl_view_of("{\"base64\":1}"), &f->arena, &encoding, &json, &f->error),
              &f->error);
    assert_int_equal(encoding, DELIVERY_AS_JSON);
}

static void test_text_is_cleaned_and_not_refused(void **state)
{
    struct fixture *f = *state;
    pawl_view text;

    assert_ok(pawl__delivery_clean_text((pawl_view){ "a\0\xc3\xa9\xff"
                                                     "b",
                                                     6 },
                                        &f->arena,
                                        &text,
                                        &f->error),
              &f->error);
    assert_true(pawl__view_is(text,
                              "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd"
                              "b"));
}

static void test_missing_memory_is_no_fault_of_the_event(void **state)
{
    struct fixture *f = *state;
    const struct delivery_column columns[] = {
        { .name = "v", .type = DELIVERY_VARCHAR, .path = "$.v" },
        { .name = "headers", .type = DELIVERY_JSON, .from = DELIVERY_FROM_HEADERS },
    };
    const struct delivery_mapping mapping = { .table = "t", .columns = columns, .count = 2 };
    struct delivery_header header = { pawl_view_of("a"), { "\xff", 1 } };
    struct delivery_entry entry = entry_of(pawl_view_of("{\"\\u0062\":1,\"v\":\"x\"}"));
    struct delivery_verdict verdict;

    entry.headers = &header;
    entry.header_count = 1;
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl__delivery_map_verdict(&mapping, &entry, &verdict, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl__arena_done(&f->arena);
        pawl_status status =
            pawl__delivery_map_value(&columns[1], &entry, &f->arena, &f->value, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    assert_int_equal(verdict.kind, DELIVERY_ROW);
}

#define mapping_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        mapping_test(test_integers_keep_their_range),
        mapping_test(test_a_number_past_every_integer_fails_the_event),
        mapping_test(test_a_double_holds_what_it_can_hold_exactly),
        mapping_test(test_booleans_and_texts_are_nothing_else),
        mapping_test(test_times_keep_microseconds_and_no_less),
        mapping_test(test_json_is_kept_byte_for_byte),
        mapping_test(test_null_and_nothing_are_null_unless_required),
        mapping_test(test_paths_find_what_they_name),
        mapping_test(test_what_is_no_path_is_refused),
        mapping_test(test_the_finder_stays_inside_whatever_it_is_given),
        mapping_test(test_a_mapping_is_checked_before_it_is_used),
        mapping_test(test_a_verdict_names_its_reason),
        mapping_test(test_the_default_table_takes_any_json),
        mapping_test(test_what_is_not_json_becomes_base64),
        mapping_test(test_text_is_cleaned_and_not_refused),
        mapping_test(test_missing_memory_is_no_fault_of_the_event),
    };

    return cmocka_run_group_tests_name("delivery_mapping", tests, NULL, NULL);
}
