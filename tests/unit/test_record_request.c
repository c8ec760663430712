/* Field maps of requests: lists, nested records, parameters out of texts, what starts from a value of its own. */
#include "lib/check.h"

#include "base/core/macros.h"
#include "base/record/record.h"

enum size { SMALL, LARGE };
static const char *const sizes[] = { "small", "large", NULL };

struct parcel {
    pawl_view to;
    int32_t weight;
    char code[8];
    double price;
};

struct order {
    const struct parcel *parcels;
    size_t parcel_count;
    const struct parcel *gift;
    const pawl_view *tags;
    size_t tag_count;
    pawl_view note;
    pawl_view extra;
    pawl_view secret;
    unsigned size;
    int64_t limit;
    int64_t wait_ms;
    bool urgent;
};

static const struct parcel parcel_start = { .weight = 7 };
static const struct pawl__field parcel_fields[] = {
    { FIELD(struct parcel, to, FIELD_TEXT), .flags = FIELD_REQUIRED },
    { FIELD(struct parcel, weight, FIELD_INT32), .min = 1, .max = 100 },
};
static const struct pawl__record parcel_record =
    RECORD_FROM("Parcel", struct parcel, parcel_fields, &parcel_start);

static const struct order order_start = { .size = FIELD_ENUM_NONE, .limit = 10 };
static const struct pawl__field order_fields[] = {
    { FIELD(struct order, parcels, FIELD_RECORDS),
      .flags = FIELD_REQUIRED | FIELD_OR_ONE,
      .min = 1,
      .max = 2,
      .record = &parcel_record,
      .count_offset = offsetof(struct order, parcel_count) },
    { FIELD(struct order, gift, FIELD_RECORD), .record = &parcel_record },
    { FIELD(struct order, tags, FIELD_TEXTS),
      .min = 1,
      .max = 2,
      .count_offset = offsetof(struct order, tag_count) },
    { FIELD(struct order, note, FIELD_TEXT), .flags = FIELD_BLANK, .max = 4 },
    { FIELD(struct order, extra, FIELD_JSON), .flags = FIELD_OBJECT },
    { FIELD(struct order, secret, FIELD_JSON), .refused = "not taken here" },
    { FIELD(struct order, size, FIELD_ENUM), .names = sizes },
    { FIELD(struct order, limit, FIELD_INT64), .min = 1, .max = 1000 },
    { FIELD_AS("wait", struct order, wait_ms, FIELD_DURATION), .max = 60000 },
    { FIELD(struct order, urgent, FIELD_BOOL) },
};
static const struct pawl__record order_record =
    RECORD_FROM("Order", struct order, order_fields, &order_start);

struct reading {
    struct pawl__arena arena;
    json_t *json;
    struct order order;
    pawl_error error;
};

static void reading_done(struct reading *reading)
{
    json_decref(reading->json);
    pawl__arena_done(&reading->arena);
}

static pawl_status read_order(const char *text, struct reading *reading)
{
    pawl__record_start(&order_record, &reading->order);
    TRY(pawl__json_parse(pawl_view_of(text), 4096, &reading->json, &reading->error));
    return pawl__record_read(&order_record,
                             pawl__json_root(reading->json, ""),
                             &reading->arena,
                             &reading->order,
                             &reading->error);
}

static void test_lists_and_records_inside_are_read(void **state)
{
    AUTO(reading_done) struct reading reading = { .json = NULL };

    (void)state;
    assert_ok(read_order("{\"parcels\":[{\"to\":\"ada\"},{\"to\":\"bob\",\"weight\":2}],"
                         "\"gift\":{\"to\":\"eve\"},\"tags\":[\"a\",\"b\"],\"note\":\"\","
                         "\"extra\":{\"x\":1},\"size\":\"large\",\"wait\":\"2s\",\"urgent\":true}",
                         &reading),
              &reading.error);
    assert_int_equal(reading.order.parcel_count, 2);
    assert_int_equal(reading.order.parcels[0].weight, 7); /* what a parcel starts with */
    assert_int_equal(reading.order.parcels[1].weight, 2);
    assert_int_equal(reading.order.gift->weight, 7);
    assert_int_equal(reading.order.tag_count, 2);
    assert_true(pawl__view_is(reading.order.tags[1], "b"));
    assert_non_null(reading.order.note.data); /* given, and empty */
    assert_true(pawl__view_is(reading.order.extra, "{\"x\":1}"));
    assert_int_equal(reading.order.size, LARGE);
    assert_int_equal(reading.order.wait_ms, 2000);
    assert_true(reading.order.urgent);
    assert_int_equal(reading.order.limit, 10);
}

static void test_one_record_stands_for_a_list_of_one(void **state)
{
    AUTO(reading_done) struct reading reading = { .json = NULL };

    (void)state;
    assert_ok(read_order("{\"to\":\"ada\"}", &reading), &reading.error);
    assert_int_equal(reading.order.parcel_count, 1);
    assert_true(pawl__view_is(reading.order.parcels[0].to, "ada"));
    assert_int_equal(reading.order.size, FIELD_ENUM_NONE);
}

static void test_what_is_wrong_inside_is_named(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        { "{\"parcels\":[]}", "parcels: has 0 items, 1 to 2 are allowed" },
        { "{\"parcels\":[{\"to\":\"a\",\"weight\":0}]}", "parcels[0].weight: 0 is not within" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"gift\":{}}", "gift.to: missing" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"tags\":[]}", "tags: is empty: leave it out" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"tags\":[\"\"]}", "tags[0]: is empty" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"tags\":\"a\"}", "tags: expected an array" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"note\":\"12345\"}", "note: has 5 bytes" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"extra\":[]}", "extra: expected an object" },
        { "{\"parcels\":[{\"to\":\"a\"}],\"secret\":1}", "secret: not taken here" },
        { "{\"weight\":1}", "to: missing" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        AUTO(reading_done) struct reading reading = { .json = NULL };

        assert_status(read_order(bad[i].text, &reading), PAWL_INVALID, &reading.error);
        assert_message(&reading.error, bad[i].says);
    }
}

static void test_parameters_are_read_out_of_texts(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        const char *says; /* NULL: it is fine */
    } rows[] = {
        { "limit", "1000", NULL },
        { "limit", "1001", "'limit' is not a whole number from 1 to 1000" },
        { "limit", "", "'limit' is not a whole number" },
        { "limit", "1x", "'limit' is not a whole number" },
        { "limit", "99999999999999999999", "'limit' is not a whole number" },
        { "size", "large", NULL },
        { "size", "huge", "size: is none of small, large" },
        { "wait", "90s", "wait: not within" },
        { "wait", "30s", NULL },
        { "urgent", "false", NULL },
        { "urgent", "yes", "urgent: is neither true nor false" },
        { "note", "", NULL },
        { "note", "12345", "note: has 5 bytes, the limit is 4" },
    };
    struct order order = order_start;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct pawl__field *field = pawl__record_field(&order_record, rows[i].name);
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status =
            pawl__record_read_text(field, pawl_view_of(rows[i].text), &order, &error);

        assert_status(status, rows[i].says == NULL ? PAWL_OK : PAWL_INVALID, &error);
        if (rows[i].says != NULL) {
            assert_message(&error, rows[i].says);
        }
    }
    assert_int_equal(order.limit, 1000);
    assert_int_equal(order.size, LARGE);
    assert_int_equal(order.wait_ms, 30000);
}

static void test_negative_parameters_have_a_range_too(void **state)
{
    const struct pawl__field field = { .name = "n", .kind = FIELD_INT64, .min = -5, .max = 5 };
    int64_t number = 0;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__record_read_text(&field, pawl_view_of("-5"), &number, &error), &error);
    assert_int_equal(number, -5);
    assert_status(
        pawl__record_read_text(&field, pawl_view_of("-6"), &number, &error), PAWL_INVALID, &error);
    assert_status(
        pawl__record_read_text(&field, pawl_view_of("-"), &number, &error), PAWL_INVALID, &error);
}

/* --- written --- */

static const struct pawl__field shown_fields[] = {
    { FIELD(struct parcel, to, FIELD_TEXT), .flags = FIELD_OMITTED },
    { FIELD(struct parcel, weight, FIELD_INT32), .flags = FIELD_OMITTED },
    { FIELD(struct parcel, code, FIELD_CHARS) },
    { FIELD(struct parcel, price, FIELD_REAL) },
};
static const struct pawl__record shown_record = RECORD("Shown", struct parcel, shown_fields);

struct tracked {
    struct parcel parcel;
    const pawl_view *stops;
    size_t stop_count;
};
static const struct pawl__field tracked_fields[] = {
    { FIELD(struct tracked, stops, FIELD_TEXTS),
      .count_offset = offsetof(struct tracked, stop_count) },
};
static const struct pawl__record tracked_record = {
    .name = "Tracked",
    .size = sizeof(struct tracked),
    .extends = &shown_record,
    .fields = tracked_fields,
    .count = COUNT_OF(tracked_fields),
};

static void assert_written(const void *value, const char *text)
{
    struct pawl__buf buf = BUF_INIT(4096);

    pawl__record_write(&tracked_record, value, &buf);
    assert_string_equal(buf.data, text);
    pawl__buf_done(&buf);
}

static void test_a_record_has_the_fields_of_the_one_it_extends(void **state)
{
    const pawl_view stops[] = { pawl_view_of("hub"), pawl_view_of("a \"door\"") };
    struct tracked tracked = { .parcel = { .weight = -1, .code = "X1", .price = 2.5 } };

    (void)state;
    assert_written(&tracked, "{\"code\":\"X1\",\"price\":2.5,\"stops\":[]}");
    tracked.parcel.to = pawl_view_of("ada");
    tracked.parcel.weight = 0;
    tracked.stops = stops;
    tracked.stop_count = COUNT_OF(stops);
    assert_written(&tracked,
                   "{\"to\":\"ada\",\"weight\":0,\"code\":\"X1\",\"price\":2.5,"
                   "\"stops\":[\"hub\",\"a \\\"door\\\"\"]}");
}

static void test_a_copy_has_its_own_list_of_texts(void **state)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    char hub[] = "hub";
    const pawl_view stops[] = { pawl_view_of(hub) };
    const struct tracked tracked = { .stops = stops, .stop_count = 1 };
    struct tracked copy;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_true(pawl__record_copy(&tracked_record, &arena, &tracked, &copy));
    hub[0] = 'p';
    assert_true(pawl__view_is(copy.stops[0], "hub"));
    copy.stops = NULL;
    assert_status(pawl__record_check(&tracked_record, &copy, &error), PAWL_INVALID, &error);
    assert_message(&error, "stops: is NULL");
}

static void test_schemas_say_lists_defaults_and_what_is_left_out(void **state)
{
    struct pawl__buf buf = BUF_INIT(16384);

    (void)state;
    pawl__record_schema(&tracked_record, RECORD_WRITTEN, &buf);
    assert_string_equal(buf.data,
                        "{\"type\":\"object\",\"properties\":{\"to\":{\"type\":\"string\"},"
                        "\"weight\":{\"type\":\"integer\"},\"code\":{\"type\":\"string\"},"
                        "\"price\":{\"type\":\"number\"},"
                        "\"stops\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
                        "\"required\":[\"code\",\"price\",\"stops\"]}");
    pawl__buf_clear(&buf);
    pawl__record_schema(&order_record, RECORD_READ, &buf);
    assert_non_null(strstr(buf.data, "{\"anyOf\":[{\"type\":\"object\""));
    assert_non_null(strstr(buf.data, "{\"$ref\":\"#/components/schemas/ParcelInput\"}]}"));
    assert_non_null(strstr(buf.data, "\"minItems\":1,\"maxItems\":2"));
    assert_non_null(strstr(buf.data, "\"default\":10"));
    assert_null(strstr(buf.data, "secret"));
    pawl__buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_and_records_inside_are_read),
        cmocka_unit_test(test_one_record_stands_for_a_list_of_one),
        cmocka_unit_test(test_what_is_wrong_inside_is_named),
        cmocka_unit_test(test_parameters_are_read_out_of_texts),
        cmocka_unit_test(test_negative_parameters_have_a_range_too),
        cmocka_unit_test(test_a_record_has_the_fields_of_the_one_it_extends),
        cmocka_unit_test(test_a_copy_has_its_own_list_of_texts),
        cmocka_unit_test(test_schemas_say_lists_defaults_and_what_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
