/* The data types, and a row as it travels. */
#include "lib/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/core/page.h"
#include "telemetry/core/row.h"
#include "telemetry/core/wire.h"

static struct telemetry_values sample(enum telemetry_type type)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);
    struct telemetry_values row = { .at = { { .as = { .i64 = 0 } } } };

    for (size_t i = 0; i < info->column_count; i++) {
        switch (info->columns[i].kind) {
        case 'z':
            row.at[i].as.i64 = INT64_C(1769682030123456);
            break;
        case 'd':
            row.at[i].as.real = 12.5;
            break;
        case 'b':
            row.at[i].as.flag = true;
            break;
        case 't':
            row.at[i].as.text = pawl_view_of(info->columns[i].name);
            break;
        case 'm':
            row.at[i].as.text = pawl_view_of("{\"k\\u0001\":\"v\",\"region\":\"north\"}");
            break;
        case 'l':
            row.at[i].as.text = pawl_view_of("[\"main\",\"run\",\"main\"]");
            break;
        default:
            row.at[i].as.i64 = -404;
        }
    }
    return row;
}

static void assert_row(enum telemetry_type type,
                       const struct telemetry_values *a,
                       const struct telemetry_values *b)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    for (size_t i = 0; i < info->column_count; i++) {
        if (strchr("tml", info->columns[i].kind) != NULL) {
            assert_int_equal(a->at[i].as.text.len, b->at[i].as.text.len);
            assert_memory_equal(a->at[i].as.text.data, b->at[i].as.text.data, b->at[i].as.text.len);
        } else if (info->columns[i].kind == 'd') {
            assert_true(a->at[i].as.real == b->at[i].as.real);
        } else if (info->columns[i].kind == 'b') {
            assert_true(a->at[i].as.flag == b->at[i].as.flag);
        } else {
            assert_true(a->at[i].as.i64 == b->at[i].as.i64);
        }
    }
}

static void test_a_row_of_every_type_comes_back_as_it_was(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1 << 20);
        AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
        struct telemetry_values row = sample((enum telemetry_type)t);
        struct telemetry_values again;
        uint64_t seq_id = 0;
        assert_ok(pawl__telemetry_row_check((enum telemetry_type)t, &row, &error), &error);
        assert_ok(pawl__telemetry_row_encode((enum telemetry_type)t, 77, &row, &buf, &error),
                  &error);
        assert_ok(
            pawl__telemetry_row_decode(
                (enum telemetry_type)t, pawl__buf_view(&buf), &arena, &seq_id, &again, &error),
            &error);
        assert_int_equal(seq_id, 77);
        assert_row((enum telemetry_type)t, &again, &row);
        seq_id = 0;
        assert_true(pawl__telemetry_row_seq((enum telemetry_type)t, pawl__buf_view(&buf), &seq_id));
        assert_int_equal(seq_id, 77);
    }
}

static void test_what_cannot_be_stored_is_refused_with_its_column(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct telemetry_values row = sample(TELEMETRY_SPANS);

    (void)state;
    row.at[5].as.real = (double)NAN;
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    assert_message(&error, "duration_ms");
    row = sample(TELEMETRY_SPANS);
    row.at[5].as.real = (double)INFINITY;
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    row = sample(TELEMETRY_SPANS);
    row.at[0].as.i64 = INT64_MAX;
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    assert_message(&error, "timestamp");
    row = sample(TELEMETRY_SPANS);
    row.at[3].as.text = (pawl_view){ "a\0b", 3 };
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    assert_message(&error, "service_name");
    row.at[3].as.text = pawl_view_of("\xc3(");
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    row = sample(TELEMETRY_SPANS);
    row.at[10].as.text = pawl_view_of("{\"n\":1}");
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    assert_message(&error, "attributes");
}

static void test_a_row_has_at_most_8_mib(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct telemetry_values row = sample(TELEMETRY_SPANS);
    char *text = malloc(TELEMETRY_ROW_BYTES_MAX);

    (void)state;
    assert_non_null(text);
    memset(text, 'x', TELEMETRY_ROW_BYTES_MAX);
    row.at[9].as.text = (pawl_view){ text, TELEMETRY_ROW_BYTES_MAX - 1000 };
    assert_ok(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), &error);
    row.at[9].as.text.len = TELEMETRY_ROW_BYTES_MAX;
    assert_status(pawl__telemetry_row_check(TELEMETRY_SPANS, &row, &error), PAWL_INVALID, &error);
    assert_message(&error, "8 MiB");
    free(text);
}

static pawl_status decode(pawl_view bytes, pawl_error *error)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct telemetry_values row;
    uint64_t seq_id = 0;

    return pawl__telemetry_row_decode(TELEMETRY_SPANS, bytes, &arena, &seq_id, &row, error);
}

static void test_bytes_that_are_no_row_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        { "\xff", 1 }, /* a tag that is cut off */
        { "\x0a\x05"
          "ab",
          4 },                                                  /* bytes that are cut off */
        { "\x0b", 1 },                                          /* a group */
        { "\x00\x00", 2 },                                      /* field 0 */
        { "\x12\x02\xc3\x28", 4 },                              /* not UTF-8 */
        { "\x12\x01\x00", 3 },                                  /* a NUL */
        { "\x10\x01", 2 },                                      /* a number where a text belongs */
        { "\x31\x00\x00\x00\x00\x00\x00\xf0\x7f", 9 },          /* an infinite duration */
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11 }, /* more than 64 bits */
        { "\x5a\x03\x0a\x05"
          "a",
          5 }, /* an attribute that is cut off */
    };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(
            decode((pawl_view){ bad[i].bytes, bad[i].len }, &error), PAWL_INVALID, &error);
    }
    error = (pawl_error)PAWL_ERROR_INIT;
    const pawl_view unknown = { "\xfa\x07\x02hi", 5 };
    assert_ok(decode(unknown, &error), &error);
}

static void test_every_cut_of_a_row_is_refused_or_a_row(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf buf = BUF_INIT(1 << 20);
    struct telemetry_values row = sample(TELEMETRY_SPANS);
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__telemetry_row_encode(TELEMETRY_SPANS, 1, &row, &buf, &error), &error);
    for (size_t len = 0; len < buf.len; len++) {
        pawl_status status = decode((pawl_view){ buf.data, len }, &error);
        assert_true(status == PAWL_OK || status == PAWL_INVALID);
    }
}

static void test_names_tell_rows_apart(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct telemetry_values a = sample(TELEMETRY_SPANS);
    struct telemetry_values b = a;
    struct telemetry_row_key keys[2];
    bool has_key = false;

    (void)state;
    b.at[5].as.real = 99; /* not part of its name */
    assert_ok(pawl__telemetry_row_key(TELEMETRY_SPANS, &a, &keys[0], &has_key, &error), &error);
    assert_ok(pawl__telemetry_row_key(TELEMETRY_SPANS, &b, &keys[1], &has_key, &error), &error);
    assert_true(has_key);
    assert_memory_equal(&keys[0], &keys[1], sizeof(keys[0]));
    b.at[4].as.text = pawl_view_of("client");
    assert_ok(pawl__telemetry_row_key(TELEMETRY_SPANS, &b, &keys[1], &has_key, &error), &error);
    assert_memory_not_equal(&keys[0], &keys[1], sizeof(keys[0]));
    a = sample(TELEMETRY_CPU_PROFILE);
    assert_ok(pawl__telemetry_row_key(TELEMETRY_CPU_PROFILE, &a, &keys[0], &has_key, &error),
              &error);
    assert_false(has_key);
}

/* --- types --- */

static char *read_source(const char *name)
{
    char path[512];
    const char *root = getenv("PAWL_SOURCE");

    snprintf(path, sizeof(path), "%s/%s", root == NULL ? "." : root, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 18);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    return text;
}

static void assert_has(const char *text, const char *after, const char *what)
{
    const char *start = strstr(text, after);

    if (start == NULL) {
        fail_msg("'%s' is not there", after);
    }
    const char *end = strchr(start, '}') != NULL ? strchr(start, '}') : start + strlen(start);
    const char *found = strstr(start, what);
    if (found == NULL || (found > end && strstr(after, "message") != NULL)) {
        fail_msg("'%s' does not follow '%s'", what, after);
    }
}

static void test_the_proto_file_has_the_fields_of_the_table(void **state)
{
    static const char *const messages[TELEMETRY_TYPE_COUNT] = {
        "message TelemetrySpan {",    "message EbpfHttpMetric {",      "message EbpfGrpcMetric {",
        "message EbpfSqlMetric {",    "message EbpfTraceSpan {",       "message SystemMetric {",
        "message CPUProfileSample {", "message MemoryProfileSample {",
    };
    char *proto = read_source("proto/pawl/telemetry/v1/agent.proto");

    (void)state;
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        const struct telemetry_type_info *info = pawl__telemetry_type((enum telemetry_type)t);
        char field[64];
        for (size_t i = 0; i < info->column_count; i++) {
            snprintf(
                field, sizeof(field), " %s = %u;", info->columns[i].name, info->columns[i].field);
            assert_has(proto, messages[t], field);
        }
        snprintf(field, sizeof(field), " seq_id = %u;", info->seq_field);
        assert_has(proto, messages[t], field);
    }
    free(proto);
}

/* The seed's numbers, which others may have compiled in. */
static void test_the_seeds_field_numbers_are_kept(void **state)
{
    static const struct {
        const char *message;
        const char *field;
    } fields[] = {
        { "message QueryTelemetryRequest {", "int64 start_time = 1;" },
        { "message QueryTelemetryRequest {", "int64 end_time = 2;" },
        { "message QueryTelemetryRequest {", "repeated string service_names = 3;" },
        { "message QueryTelemetryRequest {", "uint64 start_seq_id = 4;" },
        { "message QueryTelemetryRequest {", "int32 max_records = 5;" },
        { "message QueryTelemetryResponse {", "repeated TelemetrySpan spans = 1;" },
        { "message QueryTelemetryResponse {", "int32 total_spans = 2;" },
        { "message QueryTelemetryResponse {", "uint64 max_seq_id = 3;" },
        { "message QueryTelemetryResponse {", "string session_id = 4;" },
        { "message TelemetrySpan {", "int32 http_status = 8;" },
        { "message TelemetrySpan {", "map<string, string> attributes = 11;" },
        { "message TelemetrySpan {", "uint64 seq_id = 12;" },
    };
    char *proto = read_source("proto/pawl/telemetry/v1/agent.proto");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        assert_has(proto, fields[i].message, fields[i].field);
    }
    free(proto);
}

static void test_max_records_has_a_default_and_a_limit(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    uint32_t rows = 0;

    (void)state;
    assert_ok(pawl__telemetry_batch(TELEMETRY_SPANS, 0, &rows, &error), &error);
    assert_int_equal(rows, 10000);
    assert_ok(pawl__telemetry_batch(TELEMETRY_BEYLA_TRACES, 0, &rows, &error), &error);
    assert_int_equal(rows, 1000);
    assert_ok(pawl__telemetry_batch(TELEMETRY_SPANS, 60000, &rows, &error), &error);
    assert_int_equal(rows, 50000);
    assert_ok(pawl__telemetry_batch(TELEMETRY_CPU_PROFILE, 60000, &rows, &error), &error);
    assert_int_equal(rows, 5000);
    assert_status(pawl__telemetry_batch(TELEMETRY_SPANS, -1, &rows, &error), PAWL_INVALID, &error);
    assert_message(&error, "max_records is -1");
}

static void test_data_types_are_known_by_their_names(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    enum telemetry_type type;

    (void)state;
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        assert_ok(
            pawl__telemetry_type_parse(
                pawl_view_of(pawl__telemetry_type((enum telemetry_type)t)->name), &type, &error),
            &error);
        assert_int_equal(type, t);
    }
    assert_status(
        pawl__telemetry_type_parse(pawl_view_of("spans"), &type, &error), PAWL_INVALID, &error);
    assert_message(&error, "'spans'");
}

static void test_a_page_is_cut_at_15_mib(void **state)
{
    struct telemetry_page page = { .count = 0 };
    pawl_error error = PAWL_ERROR_INIT;
    size_t len = 4 << 20;
    char *bytes = calloc(1, len);
    bool fits = true;

    (void)state;
    assert_non_null(bytes);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_ok(pawl__telemetry_page_add(&page, i, (pawl_view){ bytes, len }, &fits, &error),
                  &error);
        assert_true(fits);
    }
    assert_ok(pawl__telemetry_page_add(&page, 4, (pawl_view){ bytes, len }, &fits, &error), &error);
    assert_false(fits);
    assert_int_equal(page.count, 3);
    assert_true(page.bytes <= TELEMETRY_PAGE_BYTES_MAX);
    free(bytes);
    pawl__telemetry_page_done(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_of_every_type_comes_back_as_it_was),
        cmocka_unit_test(test_what_cannot_be_stored_is_refused_with_its_column),
        cmocka_unit_test(test_a_row_has_at_most_8_mib),
        cmocka_unit_test(test_bytes_that_are_no_row_are_refused),
        cmocka_unit_test(test_every_cut_of_a_row_is_refused_or_a_row),
        cmocka_unit_test(test_names_tell_rows_apart),
        cmocka_unit_test(test_the_proto_file_has_the_fields_of_the_table),
        cmocka_unit_test(test_the_seeds_field_numbers_are_kept),
        cmocka_unit_test(test_max_records_has_a_default_and_a_limit),
        cmocka_unit_test(test_data_types_are_known_by_their_names),
        cmocka_unit_test(test_a_page_is_cut_at_15_mib),
    };

    return cmocka_run_group_tests_name("telemetry_row", tests, NULL, NULL);
}
