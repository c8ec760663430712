/* What the sink on DuckDB does beyond the contract: its tables, faults of events, answers that are lost, damage. */
#include "lib/sink_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/failpoint.h"
#include "delivery/core/apply.h"
#include "lib/fault.h"

static void test_a_row_has_everything_about_its_event(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_header header = { pawl_view_of("Trace"), pawl_view_of("t1") };

    sink_add(f,
             1,
             DELIVERY_ROW,
             "{\"n\":0.10000000000000000000001,\"session_key\":\"s\",\"correlation_key\":\"c\","
             "\"event_time\":\"2026-01-29T10:00:00Z\"}");
    f->entries[0].headers = &header;
    f->entries[0].header_count = 1;
    sink_commit(f);
    assert_string_equal(
        sink_sql(f,
                 "SELECT concat_ws('|', transaction_id, source, event_id, subject, session_key,"
                 " correlation_key, headers, event_time, received_at) FROM events"),
        "shop:order-1:0|shop|order|orders.new|s|c|[[\"Trace\",\"t1\"]]|2026-01-29 10:00:00|"
        "2026-01-29 10:20:30.123456");
    assert_string_equal(sink_sql(f, "SELECT payload[1:31] FROM events"),
                        "{\"n\":0.10000000000000000000001,");
    assert_string_equal(sink_sql(f, "SELECT octet_length(payload_hash) FROM events"), "16");
}

static void test_a_failed_event_is_kept_with_its_reason(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_outcome *outcome =
        sink_add(f, 9, DELIVERY_TO_FAILED, "{\"session_key\":\"s\"}");

    outcome->layer = DELIVERY_LAYER_INSERT;
    outcome->reason = "max_retries_exceeded";
    outcome->error = "no such column";
    outcome->retries_exceeded = true;
    outcome->exception.attempts = 101;
    sink_commit(f);
    assert_string_equal(
        sink_sql(
            f,
            "SELECT concat_ws('|', transaction_id, event_id, session_key, correlation_key,"
            " source, event_payload, failure_reason, failure_layer, last_error, retry_count,"
            " max_retries_exceeded, status, pipeline, lsn, payload_encoding) FROM failed_events"),
        "shop:order-9:0|order|s|shop|{\"session_key\":\"s\"}|max_retries_exceeded|duckdb_insert|"
        "no such column|101|true|pending|orders|9|json");
    assert_string_equal(sink_sql(f,
                                 "SELECT count(*) FROM failed_events WHERE failed_at > '2026-01-01'"
                                 " AND last_retry_at = failed_at AND resolved_at IS NULL"),
                        "1");
    char expected[64];
    struct delivery_uuid id;
    assert_ok(pawl__delivery_entry_id(&f->cursor.wal_id, 9, &id, &f->error), &f->error);
    for (size_t i = 0; i < 16; i++) {
        snprintf(&expected[2 * i], 3, "%02x", id.bytes[i]);
    }
    assert_string_equal(sink_sql(f, "SELECT replace(id::TEXT, '-', '') FROM failed_events"),
                        expected);
}

static void test_poison_ends_in_failed_events_byte_for_byte(void **state)
{
    struct sink_fixture *f = *state;
    char *large = malloc(DELIVERY_PAYLOAD_BYTES_MAX + 1);
    const struct {
        pawl_view bytes;
        const char *reason;
    } poison[] = {
        { { "not json", 8 }, "not_json" },
        { { "\"\xc3\x28\"", 4 }, "not_json" },
        { { "\"\0\"", 3 }, "not_json" },
        { { "[1e999]", 7 }, "not_json" },
        { { large, DELIVERY_PAYLOAD_BYTES_MAX + 1 }, "too_large" },
    };

    assert_non_null(large);
    memset(large, ' ', DELIVERY_PAYLOAD_BYTES_MAX + 1);
    large[0] = '7';
    for (uint64_t n = 0; n < COUNT_OF(poison); n++) {
        struct delivery_verdict verdict = sink_judge(f, poison[n].bytes);
        assert_int_equal(verdict.kind, DELIVERY_TO_FAILED);
        assert_string_equal(verdict.reason, poison[n].reason);
    }
    for (uint64_t n = 0; n < COUNT_OF(poison); n++) {
        sink_add_bytes(f, n + 1, DELIVERY_TO_FAILED, poison[n].bytes);
    }
    f->entries[0].event_id = (pawl_view){ "a\0\xff", 3 };
    f->outcomes[0].error = "bytes \xff of an error";
    sink_add(f, 50, DELIVERY_ROW, "{}");
    sink_commit(f);
    free(large);
    assert_string_equal(
        sink_sql(f, "SELECT payload_encoding || event_payload FROM failed_events WHERE lsn = 3"),
        "base64{\"base64\":\"IgAi\"}");
    assert_string_equal(sink_sql(f, "SELECT event_id FROM failed_events WHERE lsn = 1"),
                        "a\xef\xbf\xbd\xef\xbf\xbd");
    assert_string_equal(
        sink_sql(
            f, "SELECT payload_encoding || length(event_payload) FROM failed_events WHERE lsn = 5"),
        "json16777217");
    assert_string_equal(sink_sql(f, "SELECT count(*) FROM failed_events"), "5");
}

static const struct delivery_column typed[] = {
    { .name = "n", .type = DELIVERY_INTEGER, .path = "$.n", .is_required = true },
    { .name = "big", .type = DELIVERY_BIGINT, .path = "$.big" },
    { .name = "share", .type = DELIVERY_DOUBLE, .path = "$.share" },
    { .name = "ok", .type = DELIVERY_BOOLEAN, .path = "$.ok" },
    { .name = "who", .type = DELIVERY_VARCHAR, .path = "$.user.name" },
    { .name = "at", .type = DELIVERY_TIMESTAMP, .path = "$.at" },
    { .name = "rest", .type = DELIVERY_JSON, .path = "$.rest" },
    { .name = "later", .type = DELIVERY_BIGINT, .path = "$.later" },
};

static void use_mapping(struct sink_fixture *f, const struct delivery_mapping *mapping)
{
    sink_close(f);
    f->mapping = mapping;
    sink_open(f);
}

static void test_typed_columns_hold_values_at_their_limits(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_mapping mapping = { .table = "plays", .columns = typed, .count = 7 };

    use_mapping(f, &mapping);
    sink_add(f,
             1,
             DELIVERY_ROW,
             "{\"n\":-2147483648,\"big\":9223372036854775807,\"share\":0.1,\"ok\":true,"
             "\"user\":{\"name\":\"Zo\\u00eb\"},\"at\":\"9999-12-31T23:59:59.999999Z\","
             "\"rest\":[1, {\"a\": 1.50}]}");
    sink_add(f, 2, DELIVERY_ROW, "{\"n\":1}");
    sink_commit(f);
    assert_string_equal(
        sink_sql(f,
                 "SELECT concat_ws('|', n, big, share, ok, who, \"at\", rest) FROM plays"
                 " WHERE transaction_id = 'shop:order-1:0'"),
        "-2147483648|9223372036854775807|0.1|true|Zo\xc3\xab|"
        "9999-12-31 23:59:59.999999|[1, {\"a\": 1.50}]");
    assert_string_equal(
        sink_sql(f, "SELECT count(*) FROM plays WHERE n = 1 AND big IS NULL AND rest IS NULL"),
        "1");
    assert_int_equal(sink_count_keys(f), 2);
    struct delivery_verdict verdict = sink_judge(f, pawl_view_of("{\"n\":2147483648}"));
    assert_int_equal(verdict.kind, DELIVERY_TO_FAILED);
    assert_string_equal(verdict.reason, "unmappable");
}

static void test_a_new_optional_column_is_added_and_a_changed_type_refused(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_column changed[COUNT_OF(typed)];
    struct delivery_mapping mapping = { .table = "plays", .columns = typed, .count = 7 };
    struct delivery_sink *sink = NULL;

    use_mapping(f, &mapping);
    sink_add(f, 1, DELIVERY_ROW, "{\"n\":1,\"later\":5}");
    sink_commit(f);
    mapping.count = 8;
    use_mapping(f, &mapping);
    sink_add(f, 2, DELIVERY_ROW, "{\"n\":2,\"later\":6}");
    sink_commit(f);
    assert_string_equal(
        sink_sql(f, "SELECT string_agg(coalesce(later::TEXT, '-'), ',' ORDER BY n) FROM plays"),
        "-,6");
    f->sink->ops->close(STEAL(f->sink));
    memcpy(changed, typed, sizeof(typed));
    changed[7].type = DELIVERY_VARCHAR;
    mapping.columns = changed;
    assert_status(pawl__delivery_duckdb_sink(f->file, "orders", &mapping, &sink, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error,
                   "column 'later' of table 'plays' is BIGINT, the mapping says VARCHAR");
    memcpy(changed, typed, sizeof(typed));
    changed[7].name = "needed";
    changed[7].is_required = true;
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_status(pawl__delivery_duckdb_sink(f->file, "orders", &mapping, &sink, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "only an optional one");
}

static void test_a_table_has_one_pipeline(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_mapping other = { .table = "plays", .columns = typed, .count = 7 };
    struct delivery_sink *sink = NULL;

    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_status(pawl__delivery_duckdb_sink(f->file, "invoices", NULL, &sink, &f->error),
                  PAWL_CONFLICT,
                  &f->error);
    assert_message(&f->error, "pipeline 'orders' writes to table 'events'");
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl__delivery_duckdb_sink(f->file, "invoices", &other, &sink, &f->error), &f->error);
    struct delivery_sink *orders = f->sink;
    f->sink = sink; /* its cursor, keys and exceptions are its own */
    assert_int_equal(sink_cursor(f).version, 0);
    assert_int_equal(sink_count_keys(f), 0);
    struct delivery_cursor cursor = f->cursor;
    f->cursor = (struct delivery_cursor){ .fence = 1 };
    sink_add(f, 7, DELIVERY_TO_FAILED, "{}");
    sink_add(f, 8, DELIVERY_DEFERRED, "{}");
    sink_commit(f);
    assert_int_equal(sink_count_keys(f), 1);
    f->sink = orders;
    f->cursor = cursor;
    assert_int_equal(sink_count_keys(f), 1);
    assert_false(sink_find(f, 7).found);
    sink->ops->close(sink);
}

static void drop_table(struct sink_fixture *f, const char *sql)
{
    struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;

    assert_ok(pawl__duck_open(f->path, &f->options.duck, &db, &f->error), &f->error);
    assert_ok(pawl__duck_connect(db, &conn, &f->error), &f->error);
    assert_ok(pawl__duck_script(conn, sql, &f->error), &f->error);
    pawl__duck_disconnect(conn);
    pawl__duck_close(db);
}

static void test_a_table_that_is_gone_is_not_made_again_in_silence(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_sink *sink = NULL;

    sink_close(f); /* nothing was delivered into it: a new one will do */
    drop_table(f, "DROP TABLE events");
    sink_open(f);
    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    sink_close(f);
    drop_table(f, "DROP TABLE events");
    assert_ok(pawl__delivery_duckdb_open(&f->options, &f->file, &f->opened, &f->error), &f->error);
    assert_status(pawl__delivery_duckdb_sink(f->file, "orders", NULL, &sink, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    assert_message(&f->error, "table 'events' is gone");
}

static void test_a_sink_that_is_out_of_order_blames_no_event(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_loss loss = { 100, 5, 9, DELIVERY_LOSS_PURGED, 0 };

    sink_close(f);
    drop_table(f, "ALTER TABLE delivery_losses DROP COLUMN seen_at");
    sink_open(f);
    f->transaction.losses = &loss;
    f->transaction.loss_count = 1;
    sink_add(f, 1, DELIVERY_ROW, "{}");
    assert_int_equal(pawl__delivery_blame(sink_try(f)), DELIVERY_BLAME_OUTAGE);
    assert_int_equal(sink_count_keys(f), 0);
    f->transaction.loss_count = 0;
    sink_commit(f);
    assert_int_equal(sink_count_keys(f), 1);
}

static void test_a_loss_is_a_row(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_loss losses[] = {
        { 100, 5, 9, DELIVERY_LOSS_PURGED, INT64_C(1769682030000000) },
        { 100, 10, DELIVERY_LOSS_OPEN, DELIVERY_LOSS_ROLLED_BACK, INT64_C(1769682030000000) },
    };

    f->transaction.losses = losses;
    f->transaction.loss_count = 2;
    sink_commit(f);
    assert_string_equal(
        sink_sql(f,
                 "SELECT string_agg(concat_ws('|', pipeline, stream_created_ns, first_sequence,"
                 " coalesce(last_sequence::TEXT, 'open'), reason, seen_at), ';' ORDER BY"
                 " first_sequence) FROM delivery_losses"),
        "orders|100|5|9|purged|2026-01-29 10:20:30;orders|100|10|open|rolled_back|2026-01-29 "
        "10:20:30");
}

static void test_a_duplicate_under_a_unique_index_is_its_events_fault(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_mapping mapping = *pawl__delivery_default_mapping();

    mapping.has_unique_index = true;
    use_mapping(f, &mapping);
    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    sink_add(f, 2, DELIVERY_ROW, "{}");
    sink_add(f, 1, DELIVERY_ROW, "{\"again\":1}");
    assert_status(sink_try(f), PAWL_CONFLICT, &f->error);
    assert_int_equal(pawl__delivery_blame(PAWL_CONFLICT), DELIVERY_BLAME_EVENT);
    assert_int_equal(sink_cursor(f).applied, 1); /* nothing of it is there */
    assert_int_equal(sink_count_keys(f), 1);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    sink_clear(f);
    sink_add(f, 2, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_int_equal(sink_count_keys(f), 2);
    use_mapping(f, NULL);
    use_mapping(f, &mapping); /* the index is there already */
}

static void lose(struct sink_fixture *f, const char *point, bool is_committed)
{
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl__failpoint_set(point, &f->error), &f->error);
    struct delivery_cursor before = f->cursor;
    sink_add(f, before.applied + 1, DELIVERY_ROW, "{}");
    pawl_status status = sink_try(f);
    assert_int_equal(pawl__delivery_blame(status), DELIVERY_BLAME_OUTAGE);
    assert_true(pawl__delivery_commit_in_doubt(pawl__delivery_blame(status)));
    assert_ok(pawl__failpoint_set(NULL, NULL), &f->error);
    struct delivery_cursor stored = sink_cursor(f);
    assert_int_equal(stored.version, before.version + (is_committed ? 1 : 0));
    assert_int_equal(sink_count_keys(f), stored.applied);
    f->cursor = stored;
    sink_clear(f);
    sink_add(f, stored.applied + 1, DELIVERY_ROW, "{}");
    f->error = (pawl_error)PAWL_ERROR_INIT;
    sink_commit(f);
}

static void test_after_a_lost_answer_the_cursor_row_tells(void **state)
{
    struct sink_fixture *f = *state;

    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    lose(f, "duckdb.commit.before=error:IO", false);
    lose(f, "duckdb.commit.after=error:IO*1", true);
    lose(f, "duckdb.commit.after=error:FAILED*1", true);
    lose(f, "duckdb.execute.before=error:IO@2", false);
    lose(f, "duckdb.execute.before=error:NOMEM@2", false);
    sink_close(f);
    sink_open(f);
    assert_int_equal(sink_count_keys(f), f->cursor.applied);
}

static void test_all_sinks_of_a_file_survive_its_reopening(void **state)
{
    struct sink_fixture *f = *state;
    const struct delivery_mapping other = { .table = "plays", .columns = typed, .count = 7 };
    struct delivery_sink *orders = f->sink;
    struct delivery_sink *plays = NULL;

    assert_ok(pawl__delivery_duckdb_sink(f->file, "plays", &other, &plays, &f->error), &f->error);
    f->sink = plays;
    sink_add(f, 1, DELIVERY_ROW, "{\"n\":1}");
    sink_commit(f);
    struct delivery_cursor cursor = f->cursor;
    f->sink = orders;
    f->cursor = (struct delivery_cursor){ .fence = 1 };
    lose(f, "duckdb.commit.after=error:IO*1", true);
    f->sink = plays;
    f->cursor = cursor;
    assert_int_equal(sink_count_keys(f), 1);
    sink_add(f, 2, DELIVERY_ROW, "{\"n\":2}");
    sink_commit(f);
    plays->ops->close(plays);
    f->sink = orders;
    assert_int_equal(sink_count_keys(f), 2);
}

static void test_missing_memory_costs_no_event_an_attempt(void **state)
{
    struct sink_fixture *f = *state;
    uint64_t first = 0;

    FAULT_WALK (walk) {
        static const enum delivery_outcome_kind kinds[] = {
            DELIVERY_ROW, DELIVERY_FILTERED, DELIVERY_TO_FAILED, DELIVERY_DEFERRED
        };
        first += COUNT_OF(kinds);
        f->error = (pawl_error)PAWL_ERROR_INIT;
        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            sink_add(f, first + i, kinds[i], "{\"session_key\":\"s\",\"\\u0061\":1}");
        }
        f->entries[2].payload = (pawl_view){ "\xff", 1 };
        uint64_t version = f->cursor.version;
        pawl_status status = sink_try(f);
        bool has_fired = fault_fired();
        fault_disarm();
        sink_clear(f);
        assert_int_equal(status == PAWL_OK, !has_fired);
        assert_true(status == PAWL_OK || pawl__delivery_blame(status) == DELIVERY_BLAME_OUTAGE);
        assert_int_equal(sink_cursor(f).version, version + (status == PAWL_OK ? 1 : 0));
        assert_int_equal(sink_count_keys(f), 3 * (version + (status == PAWL_OK ? 1 : 0)));
    }
}

static void test_a_checkpoint_that_fails_loses_nothing(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_cursor cursor;

    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_ok(pawl__failpoint_set("duckdb.checkpoint.before=error:IO", &f->error), &f->error);
    assert_status(f->sink->ops->checkpoint(f->sink, &cursor, &f->error), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set(NULL, NULL), &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    sink_add(f, 2, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_ok(f->sink->ops->checkpoint(f->sink, &cursor, &f->error), &f->error);
    assert_int_equal(cursor.applied, 2);
}

static void test_a_file_that_does_not_open_is_set_aside_only_when_asked(void **state)
{
    struct sink_fixture *f = *state;
    struct delivery_cursor before;
    struct delivery_cursor after;
    bool is_found = true;

    assert_true(f->opened.is_new);
    assert_ok(f->sink->ops->read_cursor(f->sink, &before, &is_found, &f->error), &f->error);
    sink_add(f, 1, DELIVERY_ROW, "{}");
    sink_commit(f);
    assert_ok(f->sink->ops->checkpoint(f->sink, &after, &f->error), &f->error);
    sink_close(f);
    FILE *file = fopen(f->path, "r+");
    assert_non_null(file);
    for (int i = 0; i < 4096 * 3; i++) {
        fputc('x', file);
    }
    fclose(file);
    assert_status(pawl__delivery_duckdb_open(&f->options, &f->file, &f->opened, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    f->options.quarantine = true;
    f->error = (pawl_error)PAWL_ERROR_INIT;
    sink_open(f);
    assert_int_equal(f->opened.quarantined, 1);
    assert_int_equal(f->opened.why.status, PAWL_CORRUPT);
    assert_true(f->opened.is_new);
    assert_ok(f->sink->ops->read_cursor(f->sink, &after, &is_found, &f->error), &f->error);
    assert_false(is_found); /* and the WAL sees that it is another file */
    assert_memory_not_equal(&before.sink_id, &after.sink_id, sizeof(before.sink_id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        sink_test(test_a_row_has_everything_about_its_event),
        sink_test(test_a_failed_event_is_kept_with_its_reason),
        sink_test(test_poison_ends_in_failed_events_byte_for_byte),
        sink_test(test_typed_columns_hold_values_at_their_limits),
        sink_test(test_a_new_optional_column_is_added_and_a_changed_type_refused),
        sink_test(test_a_table_has_one_pipeline),
        sink_test(test_a_table_that_is_gone_is_not_made_again_in_silence),
        sink_test(test_a_sink_that_is_out_of_order_blames_no_event),
        sink_test(test_a_loss_is_a_row),
        sink_test(test_a_duplicate_under_a_unique_index_is_its_events_fault),
        sink_test(test_after_a_lost_answer_the_cursor_row_tells),
        sink_test(test_all_sinks_of_a_file_survive_its_reopening),
        sink_test(test_missing_memory_costs_no_event_an_attempt),
        sink_test(test_a_checkpoint_that_fails_loses_nothing),
        sink_test(test_a_file_that_does_not_open_is_set_aside_only_when_asked),
    };

    sink_fixture_choose("duckdb");
    return cmocka_run_group_tests_name("delivery_duckdb", tests, NULL, NULL);
}
