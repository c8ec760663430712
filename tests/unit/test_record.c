/* Field maps: what follows from one table of fields. */
#include "lib/check.h"

#include <stdlib.h>

#include "base/core/macros.h"
#include "base/record/record.h"

enum colour { RED, GREEN };
static const char *const colours[] = { "red", "green", NULL };

struct part {
    pawl_view name;
    uint64_t weight;
};

struct thing {
    pawl_view id;
    pawl_view data;
    bool ready;
    int32_t priority;
    int64_t balance;
    uint64_t token;
    int64_t lease_ms;
    int64_t created_at_us;
    enum colour colour;
    const struct part *main_part;
    const struct part *parts;
    size_t part_count;
};

static const struct pawl__field part_fields[] = {
    { FIELD(struct part, name, FIELD_TEXT), .flags = FIELD_REQUIRED | FIELD_SET, .max = 8 },
    { FIELD(struct part, weight, FIELD_UINT64) },
};
static const struct pawl__record part_record = RECORD("Part", struct part, part_fields);

static const struct pawl__field thing_fields[] = {
    { FIELD(struct thing, id, FIELD_TEXT),
      .flags = FIELD_REQUIRED | FIELD_SET,
      .max = 16,
      .about = "Its \"name\"" },
    { FIELD(struct thing, data, FIELD_JSON) },
    { FIELD(struct thing, ready, FIELD_BOOL) },
    { FIELD(struct thing, priority, FIELD_INT32), .min = -5, .max = 5 },
    { FIELD(struct thing, balance, FIELD_INT64) },
    { FIELD(struct thing, token, FIELD_UINT64) },
    { FIELD_AS("lease", struct thing, lease_ms, FIELD_DURATION), .min = 1000, .max = 60000 },
    { FIELD(struct thing, colour, FIELD_ENUM), .names = colours },
    { FIELD(struct thing, parts, FIELD_RECORDS),
      .record = &part_record,
      .count_offset = offsetof(struct thing, part_count),
      .max = 2 },
};
static const struct pawl__record thing_record = RECORD("Thing", struct thing, thing_fields);

/* The same with what is only written. */
static const struct pawl__field shown_fields[] = {
    { FIELD(struct thing, id, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct thing, data, FIELD_JSON) },
    { FIELD_AS("created_at", struct thing, created_at_us, FIELD_TIME) },
    { FIELD(struct thing, colour, FIELD_ENUM), .names = colours },
    { FIELD(struct thing, main_part, FIELD_RECORD), .record = &part_record },
    { FIELD(struct thing, parts, FIELD_RECORDS),
      .record = &part_record,
      .count_offset = offsetof(struct thing, part_count) },
};
static const struct pawl__record shown_record = RECORD("Shown", struct thing, shown_fields);

static pawl_status read_thing(const char *text,
                              struct pawl__arena *arena,
                              json_t **ret_json,
                              struct thing *ret_thing,
                              pawl_error *reterr)
{
    TRY(pawl__json_parse(pawl_view_of(text), 4096, ret_json, reterr));
    return pawl__record_read(
        &thing_record, pawl__json_root(*ret_json, ""), arena, ret_thing, reterr);
}

static void assert_written(const struct pawl__record *record, const void *value, const char *text)
{
    struct pawl__buf buf = BUF_INIT(4096);

    pawl__record_write(record, value, &buf);
    assert_false(buf.broken);
    assert_string_equal(buf.data, text);
    pawl__buf_done(&buf);
}

/* --- tests --- */

static void test_what_is_read_is_written_the_same(void **state)
{
    static const char text[] =
        "{\"id\":\"a\",\"data\":{\"x\":[1,2]},\"ready\":true,\"priority\":-5,\"balance\":-7,"
        "\"token\":9,\"lease\":\"30s\",\"colour\":\"green\",\"parts\":[{\"name\":\"p\",\"weight\":"
        "3},"
        "{\"name\":\"q\",\"weight\":0}]}";
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    json_auto_t *json = NULL;
    struct thing thing = { .ready = false };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(read_thing(text, &arena, &json, &thing, &error), &error);
    assert_int_equal(thing.priority, -5);
    assert_int_equal(thing.lease_ms, 30000);
    assert_int_equal(thing.part_count, 2);
    assert_written(&thing_record, &thing, text);
}

static void test_what_is_left_out_keeps_its_default(void **state)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    json_auto_t *json = NULL;
    struct thing thing = { .priority = 3, .lease_ms = 5000, .colour = GREEN, .token = 1 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(
        read_thing("{\"id\":\"a\",\"token\":null,\"parts\":null}", &arena, &json, &thing, &error),
        &error);
    assert_int_equal(thing.priority, 3);
    assert_int_equal(thing.lease_ms, 5000);
    assert_int_equal(thing.colour, GREEN);
    assert_int_equal(thing.token, 1);
    assert_int_equal(thing.part_count, 0);
}

static void test_what_does_not_fit_is_refused_by_name(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        { "[]", "expected an object" },
        { "{}", "id: missing" },
        { "{\"id\":7}", "id: expected a string" },
        { "{\"id\":\"\"}", "id: is empty" },
        { "{\"id\":\"12345678901234567\"}", "id: has 17 bytes, the limit is 16" },
        { "{\"id\":\"a\",\"idd\":1}", "idd" },
        { "{\"id\":\"a\",\"priority\":6}", "priority" },
        { "{\"id\":\"a\",\"priority\":1.0}", "priority" },
        { "{\"id\":\"a\",\"token\":-1}", "token" },
        { "{\"id\":\"a\",\"lease\":\"1h\"}", "lease: not within 1s and 1m" },
        { "{\"id\":\"a\",\"lease\":\"soon\"}", "lease: " },
        { "{\"id\":\"a\",\"colour\":\"blue\"}", "colour: is none of red, green" },
        { "{\"id\":\"a\",\"ready\":1}", "ready: expected" },
        { "{\"id\":\"a\",\"parts\":[{}]}", "parts[0].name: missing" },
        { "{\"id\":\"a\",\"parts\":[{\"name\":\"p\"},{\"name\":\"p\"},{\"name\":\"p\"}]}",
          "parts: has 3 items, 0 to 2 are allowed" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
        json_auto_t *json = NULL;
        struct thing thing = { .ready = false };
        pawl_error error = PAWL_ERROR_INIT;

        assert_status(read_thing(bad[i].text, &arena, &json, &thing, &error), PAWL_INVALID, &error);
        assert_message(&error, bad[i].says);
    }
}

static void test_what_is_missing_is_null(void **state)
{
    struct thing thing = { .colour = (enum colour)7 };

    (void)state;
    assert_written(&shown_record,
                   &thing,
                   "{\"id\":null,\"data\":null,\"created_at\":null,\"colour\":\"unknown\","
                   "\"main_part\":null,\"parts\":[]}");
    thing = (struct thing){ .id = pawl_view_of("a"),
                            .data = pawl_view_of("no json"),
                            .created_at_us = 1,
                            .main_part = &(struct part){ .name = pawl_view_of("p") } };
    assert_written(
        &shown_record,
        &thing,
        "{\"id\":\"a\",\"data\":\"no json\",\"created_at\":\"1970-01-01T00:00:00.000001Z\","
        "\"colour\":\"red\",\"main_part\":{\"name\":\"p\",\"weight\":0},\"parts\":[]}");
    assert_written(&shown_record, NULL, "null");
}

static void test_a_copy_shares_nothing(void **state)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    char id[] = "a";
    struct part parts[] = { { pawl_view_of(id), 1 }, { { NULL, 0 }, 2 } };
    struct thing thing = {
        .id = pawl_view_of(id), .main_part = parts, .parts = parts, .part_count = COUNT_OF(parts)
    };
    struct thing copy;

    (void)state;
    assert_true(pawl__record_copy(&shown_record, &arena, &thing, &copy));
    id[0] = 'b';
    parts[0].weight = 9;
    assert_written(&shown_record,
                   &copy,
                   "{\"id\":\"a\",\"data\":null,\"created_at\":null,\"colour\":\"red\","
                   "\"main_part\":{\"name\":\"a\",\"weight\":1},"
                   "\"parts\":[{\"name\":\"a\",\"weight\":1},{\"name\":null,\"weight\":2}]}");
    assert_string_equal(copy.data.data, ""); /* no NULL for whoever prints it */
}

static void test_texts_move_into_one_block(void **state)
{
    struct thing thing = { .id = pawl_view_of("abc"), .data = pawl_view_of("1") };
    size_t bytes = pawl__record_text_bytes(&thing_record, &thing);
    char block[16];

    (void)state;
    assert_int_equal(bytes, sizeof("abc") + sizeof("1"));
    assert_ptr_equal(pawl__record_move_texts(&thing_record, &thing, block), block + bytes);
    assert_ptr_equal(thing.id.data, block);
    assert_string_equal(thing.id.data, "abc");
    assert_string_equal(thing.data.data, "1");
}

static void test_a_text_without_bytes_is_named(void **state)
{
    struct part part = { .name = { NULL, 5 } };
    struct thing thing = { .parts = &part, .part_count = 1 };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_status(pawl__record_check(&shown_record, &thing, &error), PAWL_INVALID, &error);
    assert_message(&error, "name");
    thing.parts = NULL;
    assert_status(pawl__record_check(&shown_record, &thing, &error), PAWL_INVALID, &error);
    assert_message(&error, "parts: is NULL");
    thing.part_count = 0;
    assert_ok(pawl__record_check(&shown_record, &thing, &error), &error);
}

static void test_a_field_is_a_cell(void **state)
{
    struct thing thing = { .id = pawl_view_of("a"), .data = pawl_view_of("{"), .created_at_us = 1 };
    char time[PAWL__TIME_SIZE];

    (void)state;
    assert_null(pawl__record_field(&shown_record, "nothing"));
    struct pawl__cell cell =
        pawl__record_cell(pawl__record_field(&shown_record, "data"), &thing, time);
    assert_int_equal(cell.kind, PAWL__CELL_TEXT); /* it is no JSON */
    thing.data = pawl_view_of("{}");
    cell = pawl__record_cell(pawl__record_field(&shown_record, "data"), &thing, time);
    assert_int_equal(cell.kind, PAWL__CELL_JSON);
    cell = pawl__record_cell(pawl__record_field(&shown_record, "created_at"), &thing, time);
    assert_int_equal(cell.kind, PAWL__CELL_TEXT);
    assert_int_equal(cell.text.len, strlen("1970-01-01T00:00:00.000001Z"));
    thing.created_at_us = 0;
    cell = pawl__record_cell(pawl__record_field(&shown_record, "created_at"), &thing, time);
    assert_int_equal(cell.kind, PAWL__CELL_NONE);
}

static void test_the_schema_says_what_is_read_and_written(void **state)
{
    struct pawl__buf buf = BUF_INIT(16384);
    pawl_error error = PAWL_ERROR_INIT;
    json_auto_t *json = NULL;

    (void)state;
    pawl__record_schema(&part_record, RECORD_READ, &buf);
    assert_string_equal(buf.data,
                        "{\"type\":\"object\",\"properties\":{"
                        "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8},"
                        "\"weight\":{\"type\":[\"integer\",\"null\"]}},"
                        "\"required\":[\"name\"],\"additionalProperties\":false}");
    pawl__buf_clear(&buf);
    pawl__record_schema(&shown_record, RECORD_WRITTEN, &buf);
    assert_string_equal(
        buf.data,
        "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},\"data\":{},"
        "\"created_at\":{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"},"
        "\"colour\":{\"enum\":[\"red\",\"green\"]},"
        "\"main_part\":{\"anyOf\":[{\"$ref\":\"#/components/schemas/Part\"},{\"type\":\"null\"}]},"
        "\"parts\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Part\"}}},"
        "\"required\":[\"id\",\"data\",\"created_at\",\"colour\",\"main_part\",\"parts\"]}");
    pawl__buf_clear(&buf);
    pawl__record_schema(&thing_record, RECORD_READ, &buf);
    assert_ok(pawl__json_parse(pawl__buf_view(&buf), 16384, &json, &error), &error);
    pawl__buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_is_written_the_same),
        cmocka_unit_test(test_what_is_left_out_keeps_its_default),
        cmocka_unit_test(test_what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(test_what_is_missing_is_null),
        cmocka_unit_test(test_a_copy_shares_nothing),
        cmocka_unit_test(test_texts_move_into_one_block),
        cmocka_unit_test(test_a_text_without_bytes_is_named),
        cmocka_unit_test(test_a_field_is_a_cell),
        cmocka_unit_test(test_the_schema_says_what_is_read_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
