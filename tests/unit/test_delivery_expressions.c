/* Filters and computed columns: what DuckDB's expressions make of events, in a sink, in a pipeline and on trial. */
#include "lib/sink_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "delivery/duckdb/dry_run.h"
#include "delivery/duckdb/expressions.h"

static const struct delivery_column columns[] = {
    { .name = "event_id", DELIVERY_VARCHAR, DELIVERY_FROM_EVENT_ID },
    { .name = "kind", DELIVERY_VARCHAR, .path = "$.kind", .is_required = true },
    { .name = "euros",
      DELIVERY_DOUBLE,
      DELIVERY_FROM_EXPRESSION,
      .expression = "(payload->>'cents')::BIGINT / 100" },
    { .name = "day",
      DELIVERY_TIMESTAMP,
      DELIVERY_FROM_EXPRESSION,
      .expression = "date_trunc('day', (payload->>'at')::TIMESTAMP)" },
    { .name = "is_large",
      DELIVERY_BOOLEAN,
      DELIVERY_FROM_EXPRESSION,
      .expression = "(payload->>'cents')::BIGINT > 1000 -- more than ten" },
    { .name = "items",
      DELIVERY_BIGINT,
      DELIVERY_FROM_EXPRESSION,
      .expression = "json_array_length(payload, '$.items')" },
    { .name = "payload",
      DELIVERY_JSON,
      DELIVERY_FROM_EXPRESSION,
      .expression = "json_merge_patch(payload, '{\"email\": null}')" },
    { .name = "place",
      DELIVERY_VARCHAR,
      DELIVERY_FROM_EXPRESSION,
      .expression = "subject || '/' || source || '/' || (headers->0->>1)" },
};
static const struct delivery_mapping mapping = {
    .table = "sales",
    .columns = columns,
    .count = COUNT_OF(columns),
    .filter = "payload->>'kind' <> 'test'",
};

/* Opens the sink of the fixture again with another mapping. */
static void use(struct sink_fixture *f, const struct delivery_mapping *other)
{
    sink_close(f);
    f->mapping = other;
    sink_open(f);
}

static int set_up(void **state)
{
    sink_fixture_choose("duckdb");
    if (sink_fixture_open(state) != 0) {
        return -1;
    }
    use(*state, &mapping);
    return 0;
}

static const struct delivery_header headers[] = {
    { { "Nats-Msg-Id", 11 }, { "a", 1 } },
};

/* Judges what was added, all at once, and gives the outcomes those kinds. */
static const struct delivery_verdict *judge(struct sink_fixture *f)
{
    static struct delivery_verdict verdicts[SINK_ENTRIES_MAX];

    for (size_t i = 0; i < f->transaction.count; i++) {
        f->entries[i].headers = headers;
        f->entries[i].header_count = 1;
    }
    assert_ok(
        f->sink->ops->validate(f->sink, f->entries, f->transaction.count, verdicts, &f->error),
        &f->error);
    for (size_t i = 0; i < f->transaction.count; i++) {
        f->outcomes[i].kind = verdicts[i].kind;
        f->outcomes[i].reason = verdicts[i].reason;
        f->outcomes[i].error = verdicts[i].error;
    }
    return verdicts;
}

#define GOOD                                                                                     \
    "{\"kind\":\"sale\",\"cents\":1234,\"at\":\"2026-01-29T10:20:30\",\"items\":[1,2,3],\"email" \
    "\":\"a@b\"}"

static void test_columns_are_computed(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, GOOD);
    assert_int_equal(judge(f)[0].kind, DELIVERY_ROW);
    sink_commit(f);
    assert_string_equal(sink_sql(f, "SELECT euros FROM sales"), "12.34");
    assert_string_equal(sink_sql(f, "SELECT day FROM sales"), "2026-01-29 00:00:00");
    assert_string_equal(sink_sql(f, "SELECT is_large FROM sales"), "true");
    assert_string_equal(sink_sql(f, "SELECT items FROM sales"), "3");
    assert_string_equal(sink_sql(f, "SELECT place FROM sales"), "orders.new/shop/a");
    assert_string_equal(sink_sql(f, "SELECT typeof(payload) FROM sales"), "JSON");
    assert_string_equal(
        sink_sql(f, "SELECT payload FROM sales"),
        "{\"kind\":\"sale\",\"cents\":1234,\"at\":\"2026-01-29T10:20:30\",\"items\":[1,2,3]}");
}

static void test_filtered_events_leave_their_id_and_hash(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, "{\"kind\":\"test\",\"cents\":\"no number\"}");
    sink_add(f, 2, DELIVERY_ROW, GOOD);
    sink_add(f,
             3,
             DELIVERY_ROW,
             "{\"cents\":1}"); /* NULL is not true; kind is required, but not of these */
    const struct delivery_verdict *verdicts = judge(f);
    assert_int_equal(verdicts[0].kind, DELIVERY_FILTERED);
    assert_int_equal(verdicts[1].kind, DELIVERY_ROW);
    assert_int_equal(verdicts[2].kind, DELIVERY_FILTERED);
    sink_commit(f);
    assert_int_equal(sink_find(f, 1).kind, DELIVERY_FILTERED);
    assert_int_equal(sink_find(f, 3).kind, DELIVERY_FILTERED);
    assert_int_equal(f->cursor.counters.filtered, 2);
    assert_string_equal(sink_sql(f, "SELECT count(*) FROM sales"), "1");
    assert_string_equal(
        sink_sql(f, "SELECT string_agg(transaction_id, ',' ORDER BY 1) FROM delivery_filtered"),
        "shop:order-1:0,shop:order-3:0");
    assert_string_equal(
        sink_sql(f, "SELECT count(*) FROM delivery_filtered WHERE octet_length(payload_hash) = 16"),
        "2");
}

static void test_an_event_whose_expression_fails_is_found_among_the_others(void **state)
{
    struct sink_fixture *f = *state;

    for (uint64_t n = 1; n <= 1000; n++) {
        sink_add(f,
                 n,
                 DELIVERY_ROW,
                 n == 77    ? "{\"kind\":\"sale\",\"cents\":\"many\"}"
                 : n == 500 ? "{\"kind\":\"sale\",\"at\":\"yesterday\"}"
                 : n == 501 ? "not json"
                 : n == 502 ? "{\"kind\":7}" /* a path does not fit */
                            : GOOD);
    }
    const struct delivery_verdict *verdicts = judge(f);
    for (size_t i = 0; i < 1000; i++) {
        bool is_bad = i == 76 || (i >= 499 && i <= 501);
        assert_int_equal(verdicts[i].kind, is_bad ? DELIVERY_TO_FAILED : DELIVERY_ROW);
    }
    assert_string_equal(verdicts[76].reason, "unmappable");
    assert_non_null(strstr(verdicts[76].error, "many"));
    assert_string_equal(verdicts[499].reason, "unmappable");
    assert_string_equal(verdicts[500].reason, "not_json");
    assert_string_equal(verdicts[501].reason, "unmappable");
    sink_commit(f);
    assert_string_equal(sink_sql(f, "SELECT count(*) FROM sales WHERE euros = 12.34"), "996");
    assert_string_equal(sink_sql(f, "SELECT count(*) FROM failed_events"), "4");
}

static void test_the_value_belongs_to_the_payload_that_is_applied(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, GOOD);
    (void)judge(f);
    sink_clear(f);
    sink_add(f, 1, DELIVERY_ROW, "{\"kind\":\"sale\",\"cents\":5}"); /* edited: the same LSN */
    sink_commit(f);                                                  /* and nobody judged it */
    assert_string_equal(sink_sql(f, "SELECT euros FROM sales"), "0.05");
    sink_add(f, 2, DELIVERY_ROW, "{\"kind\":\"sale\",\"cents\":\"many\"}");
    assert_status(sink_try(f), PAWL_INVALID, &f->error);
}

static void test_an_expression_has_a_time_limit(void **state)
{
    struct sink_fixture *f = *state;
    static const struct delivery_column slow_columns[] = {
        { .name = "sum",
          DELIVERY_DOUBLE,
          DELIVERY_FROM_EXPRESSION,
          .expression =
              "(SELECT sum(sqrt(a.range * b.range)) FROM range((payload->>'n')::BIGINT) a, "
              "range((payload->>'n')::BIGINT) b)" },
    };
    static const struct delivery_mapping slow = {
        .table = "slow", .columns = slow_columns, .count = 1, .expression_ms_max = 300
    };

    sink_close(f);
    f->mapping = &slow;
    assert_ok(pawl__delivery_duckdb_open(&f->options, &f->file, &f->opened, &f->error), &f->error);
    assert_ok(pawl__delivery_duckdb_sink(f->file, "slow", &slow, &f->sink, &f->error), &f->error);
    sink_add(f, 1, DELIVERY_ROW, "{\"n\":3}");
    sink_add(f, 2, DELIVERY_ROW, "{\"n\":10000000}");
    sink_add(f, 3, DELIVERY_ROW, "{\"n\":2}");
    const struct delivery_verdict *verdicts = judge(f);
    assert_int_equal(verdicts[1].kind, DELIVERY_TO_FAILED);
    assert_string_equal(verdicts[1].reason, "unmappable");
    assert_non_null(strstr(verdicts[1].error, "deadline"));
    sink_clear(f);
}

static void test_what_is_no_expression_is_refused_by_name(void **state)
{
    struct sink_fixture *f = *state;
    static const char *const bad[] = {
        "payload->>",
        "no_such_column",
        "no_such_function(payload)",
        "1), (2",
        "1) FROM input; DROP TABLE input; SELECT (1",
        "count(*)",
        "read_text('/etc/passwd')",
        "(SELECT content FROM read_text('/etc/hostname'))",
        "getenv('HOME')",
    };
    struct delivery_column column = { .name = "bad", DELIVERY_VARCHAR, DELIVERY_FROM_EXPRESSION };
    struct delivery_mapping tried = { .table = "tried", .columns = &column, .count = 1 };
    struct delivery_expressions *expressions = NULL;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        column.expression = bad[i];
        assert_status(pawl__delivery_expressions_open(
                          &tried, pawl__clock_or_real(NULL), &expressions, &f->error),
                      PAWL_INVALID,
                      &f->error);
        assert_non_null(strstr(f->error.message, "'bad'"));
    }
    tried.filter = "payload->>";
    column.expression = "1";
    assert_status(
        pawl__delivery_expressions_open(&tried, pawl__clock_or_real(NULL), &expressions, &f->error),
        PAWL_INVALID,
        &f->error);
    assert_non_null(strstr(f->error.message, "'filter'"));
}

static void test_the_length_of_an_expression_has_a_limit(void **state)
{
    struct sink_fixture *f = *state;
    static char text[DELIVERY_EXPRESSION_BYTES_MAX + 2];
    const struct delivery_column column = {
        .name = "x", DELIVERY_VARCHAR, DELIVERY_FROM_EXPRESSION, .expression = text
    };
    struct delivery_mapping tried = { .table = "tried", .columns = &column, .count = 1 };

    assert_status(pawl__delivery_mapping_check(&tried, &f->error), PAWL_INVALID, &f->error);
    memset(text, '1', DELIVERY_EXPRESSION_BYTES_MAX);
    assert_ok(pawl__delivery_mapping_check(&tried, &f->error), &f->error);
    text[DELIVERY_EXPRESSION_BYTES_MAX] = '1';
    assert_status(pawl__delivery_mapping_check(&tried, &f->error), PAWL_INVALID, &f->error);
    text[1] = '\0';
    tried.expression_ms_max = DELIVERY_EXPRESSION_MS_MAX;
    assert_ok(pawl__delivery_mapping_check(&tried, &f->error), &f->error);
    tried.expression_ms_max++;
    assert_status(pawl__delivery_mapping_check(&tried, &f->error), PAWL_INVALID, &f->error);
}

static void test_a_computed_column_is_added_and_a_changed_type_refused(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_column more[COUNT_OF(columns) + 1];
    struct delivery_mapping wider = mapping;

    memcpy(more, columns, sizeof(columns));
    more[COUNT_OF(columns)] = (struct delivery_column){
        .name = "vat", DELIVERY_DOUBLE, DELIVERY_FROM_EXPRESSION, .expression = "0.19"
    };
    wider.columns = more;
    wider.count++;
    sink_add(f, 1, DELIVERY_ROW, GOOD);
    (void)judge(f);
    sink_commit(f);
    use(f, &wider);
    sink_add(f, 2, DELIVERY_ROW, GOOD);
    (void)judge(f);
    sink_commit(f);
    assert_string_equal(sink_sql(f,
                                 "SELECT string_agg(coalesce(vat::TEXT, '-'), ' ' ORDER BY "
                                 "transaction_id) FROM sales"),
                        "- 0.19");
    sink_close(f);
    more[COUNT_OF(columns)].type = DELIVERY_BIGINT;
    assert_ok(pawl__delivery_duckdb_open(&f->options, &f->file, &f->opened, &f->error), &f->error);
    assert_status(pawl__delivery_duckdb_sink(f->file, "orders", &wider, &f->sink, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_non_null(strstr(f->error.message, "rebuild into a new table"));
}

static void test_a_lenient_column_is_null_where_it_does_not_fit(void **state)
{
    struct sink_fixture *f = *state;
    static const struct delivery_column lenient_columns[] = {
        { .name = "n",
          DELIVERY_BIGINT,
          DELIVERY_FROM_EXPRESSION,
          .is_lenient = true,
          .expression = "payload->>'n'" },
        { .name = "m",
          DELIVERY_BIGINT,
          DELIVERY_FROM_EXPRESSION,
          .is_required = true,
          .expression = "payload->>'m'" },
    };
    static const struct delivery_mapping lenient = { .table = "lenient",
                                                     .columns = lenient_columns,
                                                     .count = 2 };

    use(f, &lenient);
    sink_add(f, 1, DELIVERY_ROW, "{\"n\":\"x\",\"m\":1}");
    sink_add(f, 2, DELIVERY_ROW, "{\"n\":1}");
    const struct delivery_verdict *verdicts = judge(f);
    assert_int_equal(verdicts[0].kind, DELIVERY_ROW);
    assert_int_equal(verdicts[1].kind, DELIVERY_TO_FAILED);
    assert_non_null(strstr(verdicts[1].error, "m: is NULL"));
    sink_commit(f);
    assert_string_equal(sink_sql(f, "SELECT coalesce(n, -1) FROM lenient"), "-1");
}

/* --- on trial --- */

static pawl_status note(void *context,
                        const struct delivery_entry *entry,
                        const struct delivery_verdict *verdict,
                        pawl_view row,
                        pawl_error *reterr)
{
    static const char *const names[] = { "row", "filtered", "failed" };
    struct pawl__buf *text = context;

    (void)reterr;
    pawl__buf_add_format(text,
                         "%llu %s %.*s%s\n",
                         (unsigned long long)entry->lsn,
                         names[verdict->kind],
                         VIEW_ARGS(row),
                         verdict->kind == DELIVERY_TO_FAILED ? verdict->reason : "");
    return PAWL_OK;
}

static void test_a_dry_run_shows_what_a_mapping_makes_of_a_sample(void **state)
{
    struct sink_fixture *f = *state;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 20);

    sink_add(f, 1, DELIVERY_ROW, GOOD);
    sink_add(f, 2, DELIVERY_ROW, "{\"kind\":\"test\"}");
    sink_add(f, 3, DELIVERY_ROW, "{\"kind\":\"sale\",\"cents\":\"many\"}");
    sink_add(f, 4, DELIVERY_ROW, "{\"kind\":\"sale\"}");
    assert_ok(pawl__delivery_dry_run(&mapping, NULL, f->entries, 4, note, &text, &f->error),
              &f->error);
    pawl__buf_add_char(&text, '\0');
    assert_string_equal(
        text.data,
        "1 row {\"event_id\":\"order\",\"kind\":\"sale\",\"euros\":12.34,"
        "\"day\":\"2026-01-29T00:00:00.000000Z\",\"is_large\":true,\"items\":3,"
        "\"payload\":{\"kind\":\"sale\",\"cents\":1234,\"at\":\"2026-01-29T10:20:30\",\"items\":[1,"
        "2,3]},\"place\":null}\n"
        "2 filtered \n"
        "3 failed unmappable\n"
        "4 row {\"event_id\":\"order\",\"kind\":\"sale\",\"euros\":null,\"day\":null,"
        "\"is_large\":null,\"items\":null,\"payload\":{\"kind\":\"sale\"},\"place\":null}\n");
    assert_string_equal(sink_sql(f, "SELECT count(*) FROM sales"), "0");
    pawl__buf_clear(&text);
    assert_ok(pawl__delivery_dry_run(NULL, NULL, f->entries, 1, note, &text, &f->error), &f->error);
    pawl__buf_add_char(&text, '\0');
    assert_non_null(strstr(text.data, "\"subject\":\"orders.new\""));
}

#define expression_test(function) \
    cmocka_unit_test_setup_teardown(function, set_up, sink_fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        expression_test(test_columns_are_computed),
        expression_test(test_filtered_events_leave_their_id_and_hash),
        expression_test(test_an_event_whose_expression_fails_is_found_among_the_others),
        expression_test(test_the_value_belongs_to_the_payload_that_is_applied),
        expression_test(test_an_expression_has_a_time_limit),
        expression_test(test_what_is_no_expression_is_refused_by_name),
        expression_test(test_the_length_of_an_expression_has_a_limit),
        expression_test(test_a_computed_column_is_added_and_a_changed_type_refused),
        expression_test(test_a_lenient_column_is_null_where_it_does_not_fit),
        expression_test(test_a_dry_run_shows_what_a_mapping_makes_of_a_sample),
    };

    return cmocka_run_group_tests_name("delivery_expressions", tests, NULL, NULL);
}
