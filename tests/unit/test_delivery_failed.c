/* The life of failed events: what people do about them, on stores in memory and on DuckDB with RocksDB. The argument
 * says which. */
#include "lib/sink_fixture.h"
#include "lib/wal_fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/random.h"
#include "base/json/json.h"
#include "base/os/failpoint.h"
#include "delivery/memory/source.h"
#include "delivery/pipeline/failed.h"
#include "lib/child.h"
#include "lib/file.h"
#include "lib/virtual_clock.h"

#define OPEN_STATUSES (1U << DELIVERY_FAILED_PENDING | 1U << DELIVERY_FAILED_RETRYING)

static bool on_disk;

struct fixture {
    struct pawl__clock_virtual clock;
    struct pawl__random_seeded random;
    struct delivery_memory_source source;
    struct wal_fixture wal;
    struct sink_fixture *sink;
    struct delivery_settings settings;
    struct delivery_pipeline pipeline;
    struct delivery_failed_page page;
    struct delivery_failed_result result;
    pawl_error error;
};

static void open_pipeline(struct fixture *f)
{
    const struct delivery_parts parts = {
        &f->source.base, f->wal.wal, f->sink->sink, &f->clock.base, &f->random.base
    };

    pawl__delivery_pipeline_close(&f->pipeline);
    assert_ok(pawl__delivery_pipeline_open(&f->pipeline, &f->settings, &parts, &f->error),
              &f->error);
}

static int set_up(void **state)
{
    static struct fixture f;
    void *sink = NULL;

    f = (struct fixture){
        .clock = pawl__clock_virtual_at(INT64_C(1769682030000000), NS_PER_S),
        .random = pawl__random_seeded_with(1),
        .settings = pawl__delivery_settings_default(),
    };
    if (sink_fixture_open(&sink) != 0) {
        return -1;
    }
    f.sink = sink;
    f.sink->memory.now_us = pawl__wall_us(&f.clock.base);
    wal_fixture_open(&f.wal, !on_disk);
    f.source = pawl__delivery_memory_source(&f.clock.base, 1, 30 * NS_PER_S);
    f.settings.identity =
        (struct delivery_identity_rule){ pawl_view_of("shop"), pawl_view_of("S"), { NULL, 0 } };
    f.settings.checkpoint_age_ns = 0;
    open_pipeline(&f);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    void *sink = f->sink;

    pawl__delivery_pipeline_close(&f->pipeline);
    pawl__delivery_failed_page_done(&f->page);
    pawl__delivery_memory_source_done(&f->source);
    wal_fixture_close(&f->wal);
    return sink_fixture_close(&sink);
}

/* --- events --- */

static void publish(struct fixture *f, const char *id, pawl_view payload)
{
    struct delivery_header headers[] = {
        { pawl_view_of("Nats-Msg-Id"), pawl_view_of(id) },
        { pawl_view_of("X-Trace"), { "\xff\x01", 2 } }, /* no text */
    };
    struct delivery_message message = {
        .place = { .stored_ns = (int64_t)f->source.last + 100 },
        .subject = pawl_view_of("orders.new"),
        .headers = headers,
        .header_count = COUNT_OF(headers),
        .payload = payload,
    };
    uint64_t sequence = 0;

    assert_ok(pawl__delivery_memory_publish(&f->source, &message, &sequence, &f->error), &f->error);
}

static void apply_all(struct fixture *f)
{
    size_t moved = 1;

    while (moved > 0) {
        assert_ok(pawl__delivery_apply(&f->pipeline, &moved, &f->error), &f->error);
    }
}

static void take_in(struct fixture *f)
{
    size_t moved = 1;

    while (moved > 0) {
        assert_ok(pawl__delivery_intake(&f->pipeline, &moved, &f->error), &f->error);
    }
    apply_all(f);
}

static void maintain(struct fixture *f)
{
    assert_ok(pawl__delivery_maintain(&f->pipeline, &f->error), &f->error);
}

/* Events order-1 .. order-n whose payload is no JSON. */
static void fail_events(struct fixture *f, int count)
{
    char id[32];

    for (int i = 1; i <= count; i++) {
        snprintf(id, sizeof(id), "order-%d", i);
        publish(f, id, pawl_view_of("{broken"));
    }
    take_in(f);
}

/* "accepted delivered filtered failed pending" */
static const char *counts(struct fixture *f)
{
    static char text[64];
    struct delivery_counters c = sink_cursor(f->sink).counters;

    snprintf(text,
             sizeof(text),
             "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
             c.accepted,
             c.delivered,
             c.filtered,
             c.failed,
             pawl__delivery_pending(&c));
    return text;
}

static const struct delivery_failed_page *read_failed(struct fixture *f,
                                                      struct delivery_failed_query query)
{
    struct delivery_sink *sink = f->sink->sink;

    query.rows_max = query.rows_max == 0 ? 100 : query.rows_max;
    query.bytes_max = query.bytes_max == 0 ? SIZE_MAX : query.bytes_max;
    assert_ok(sink->ops->read_failed(sink, &query, &f->page, &f->error), &f->error);
    return &f->page;
}

/* The one with this event id, which has to be there. */
static const struct delivery_failed_row *row_of(struct fixture *f, const char *event_id)
{
    const struct delivery_failed_page *page =
        read_failed(f, (struct delivery_failed_query){ .id = NULL });

    for (size_t i = 0; i < page->count; i++) {
        if (pawl__view_is(page->rows[i].event_id, event_id)) {
            return &page->rows[i];
        }
    }
    fail_msg("no failed event '%s'", event_id);
    return NULL;
}

static const char *status_of(struct fixture *f, const char *event_id)
{
    return pawl__delivery_failed_status_name(row_of(f, event_id)->status);
}

static pawl_status act(struct fixture *f,
                       enum delivery_failed_action action,
                       const char *event_id,
                       const char *edited)
{
    struct delivery_uuid id = row_of(f, event_id)->id;
    const struct delivery_failed_request request = {
        .action = action,
        .query = { .id = &id },
        .who = pawl_view_of("kim"),
        .notes = pawl_view_of("checked with sales"),
        .edited_payload = pawl_view_of(edited),
    };

    return pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error);
}

static pawl_status act_on_all(struct fixture *f,
                              enum delivery_failed_action action,
                              uint64_t expected)
{
    const struct delivery_failed_request request = {
        .action = action,
        .expected = expected,
        .who = pawl_view_of("kim"),
    };

    return pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error);
}

/* How often the table has the event, from the sink itself. */
static int rows_of(struct fixture *f, const char *event_id)
{
    int count = 0;
    char sql[128];

    if (on_disk) {
        pawl__delivery_pipeline_close(&f->pipeline);
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM events WHERE event_id = '%s'", event_id);
        count = (int)strtol(sink_sql(f->sink, sql), NULL, 10);
        open_pipeline(f);
        return count;
    }
    for (size_t i = 0; i < f->sink->memory.count; i++) {
        const struct delivery_memory_row *row = &f->sink->memory.rows[i];
        count += row->kind == DELIVERY_ROW && pawl__view_is(row->stored->entry.event_id, event_id);
    }
    return count;
}

static enum delivery_entry_state wal_state(struct fixture *f, delivery_lsn lsn)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    const struct delivery_range range = { lsn, lsn, DELIVERY_STATES_ALL, 1, SIZE_MAX };

    assert_ok(f->wal.wal->ops->read(f->wal.wal, &range, &page, &f->error), &f->error);
    assert_int_equal(page.count, 1);
    return page.entries[0].fate.state;
}

static size_t decisions(struct fixture *f)
{
    delivery_lsn lsns[64];
    size_t count = 0;

    assert_ok(f->wal.wal->ops->decided(f->wal.wal, 0, lsns, 64, &count, &f->error), &f->error);
    return count;
}

/* --- reading --- */

static void test_failed_events_are_listed_in_pages_in_either_order(void **state)
{
    struct fixture *f = *state;
    const struct delivery_failed_page *page;

    fail_events(f, 5);
    page = read_failed(f, (struct delivery_failed_query){ .rows_max = 2 });
    assert_int_equal(page->count, 2);
    assert_true(pawl__view_is(page->rows[0].event_id, "order-1"));
    page = read_failed(f, (struct delivery_failed_query){ .after = page->rows[1].lsn });
    assert_int_equal(page->count, 3);
    assert_true(pawl__view_is(page->rows[2].event_id, "order-5"));
    page = read_failed(f, (struct delivery_failed_query){ .newest_first = true, .rows_max = 2 });
    assert_true(pawl__view_is(page->rows[0].event_id, "order-5"));
    page = read_failed(
        f, (struct delivery_failed_query){ .newest_first = true, .after = page->rows[1].lsn });
    assert_int_equal(page->count, 3);
    assert_true(pawl__view_is(page->rows[0].event_id, "order-3"));
    page = read_failed(f, (struct delivery_failed_query){ .bytes_max = 1 });
    assert_int_equal(page->count, 1); /* one row in any case */
}

static void test_filters_narrow_the_list_and_the_count(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;

    publish(f, "order-1", pawl_view_of("{}"));
    publish(f, "order-1", pawl_view_of("[]")); /* a conflict */
    publish(f, "order-2", pawl_view_of("{broken"));
    take_in(f);
    const struct delivery_failed_query conflicts = { .reason = pawl_view_of("conflict") };
    assert_int_equal(read_failed(f, conflicts)->count, 1);
    assert_true(pawl__view_is(f->page.rows[0].layer, "validation"));
    assert_int_equal(
        read_failed(f, (struct delivery_failed_query){ .source = pawl_view_of("shop") })->count, 2);
    assert_int_equal(
        read_failed(f, (struct delivery_failed_query){ .source = pawl_view_of("x") })->count, 0);
    const struct delivery_failed_query one = { .transaction_id = pawl_view_of("shop:order-2:0") };
    assert_int_equal(read_failed(f, one)->count, 1);
    int64_t at_us = f->page.rows[0].failed_us;
    struct delivery_uuid id = f->page.rows[0].id;
    assert_int_equal(read_failed(f, (struct delivery_failed_query){ .id = &id })->count, 1);
    assert_int_equal(
        read_failed(f, (struct delivery_failed_query){ .since_us = at_us + 3600 * US_PER_S })
            ->count,
        0);
    assert_int_equal(
        read_failed(f, (struct delivery_failed_query){ .until_us = at_us - 3600 * US_PER_S })
            ->count,
        0);
    assert_int_equal(
        read_failed(f, (struct delivery_failed_query){ .statuses = 1U << DELIVERY_FAILED_RESOLVED })
            ->count,
        0);
    assert_ok(pawl__delivery_failed_count(
                  f->sink->sink, DELIVERY_FAILED_RETRY, &conflicts, &count, &f->error),
              &f->error);
    assert_int_equal(count, 1);
}

static void test_a_row_has_everything_that_arrived(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    const pawl_view bytes = { "\0\xff{x", 4 };
    struct delivery_entry entry;

    publish(f, "order-1", bytes);
    take_in(f);
    const struct delivery_failed_row *row = row_of(f, "order-1");
    assert_true(pawl__view_is(row->encoding, "base64"));
    assert_true(pawl__view_is(row->payload, "{\"base64\":\"AP97eA==\"}"));
    assert_true(pawl__view_is(row->reason, "not_json"));
    assert_true(row->last_error.len > 0);
    assert_int_equal(row->lsn, 1);
    assert_int_equal(row->received_us, pawl__wall_us(&f->clock.base));
    assert_ok(pawl__delivery_failed_entry(row, &arena, &entry, &f->error), &f->error);
    assert_true(pawl__view_equal(entry.payload, bytes));
    assert_true(pawl__view_is(entry.subject, "orders.new"));
    assert_true(pawl__view_is(entry.transaction_id, "shop:order-1:0"));
    assert_int_equal(entry.header_count, 2);
    assert_true(pawl__view_is(entry.headers[0].value, "order-1"));
    assert_true(pawl__view_equal(entry.headers[1].value, (pawl_view){ "\xff\x01", 2 }));
}

static pawl_status add_line(void *context, pawl_view line, pawl_error *reterr)
{
    json_auto_t *json = NULL;
    size_t *count = context;

    TRY(pawl__json_parse(line, line.len, &json, reterr));
    assert_true(json_is_object(json_object_get(json, "event_payload")));
    assert_string_equal(json_string_value(json_object_get(json, "payload_encoding")), "base64");
    assert_string_equal(json_string_value(json_object_get(json, "status")), "pending");
    ++*count;
    return PAWL_OK;
}

static void test_an_export_has_every_row_as_a_line_of_json(void **state)
{
    struct fixture *f = *state;
    const struct delivery_failed_query all = { .id = NULL };
    size_t count = 0;

    fail_events(f, 300); /* more than a page */
    assert_ok(pawl__delivery_failed_export(f->sink->sink, &all, add_line, &count, &f->error),
              &f->error);
    assert_int_equal(count, 300);
}

/* --- retry --- */

static void test_an_edited_retry_makes_one_row_and_keeps_the_original(void **state)
{
    struct fixture *f = *state;

    fail_events(f, 2);
    assert_string_equal(counts(f), "2 0 0 2 0");
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", "{\"total\":7}"), &f->error);
    assert_int_equal(f->result.delivered, 1);
    const struct delivery_failed_row *row = row_of(f, "order-1");
    assert_int_equal(row->status, DELIVERY_FAILED_RESOLVED);
    assert_int_equal(row->resolution, DELIVERY_RESOLVED_DELIVERED);
    assert_true(pawl__view_is(row->payload, "{\"base64\":\"e2Jyb2tlbg==\"}"));
    assert_true(pawl__view_is(row->edited_payload, "{\"total\":7}"));
    assert_true(pawl__view_is(row->resolved_by, "kim"));
    assert_true(pawl__view_is(row->notes, "checked with sales"));
    assert_int_equal(row->resolved_us, pawl__wall_us(&f->clock.base));
    assert_int_equal(row->retry_count, 1);
    assert_string_equal(counts(f), "2 1 0 1 0");
    assert_int_equal(wal_state(f, 1), DELIVERY_CONFIRMED);
    assert_int_equal(wal_state(f, 2), DELIVERY_FAILED);
    assert_int_equal(rows_of(f, "order-1"), 1);
    assert_string_equal(counts(f), "2 1 0 1 0"); /* across the start that rows_of made */
    if (on_disk) {
        assert_string_equal(sink_sql(f->sink, "SELECT payload FROM events"), "{\"total\":7}");
    }
}

static void test_the_message_of_a_retried_event_stays_a_duplicate(void **state)
{
    struct fixture *f = *state;

    fail_events(f, 1);
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", "{}"), &f->error);
    publish(f, "order-1", pawl_view_of("{broken"));
    take_in(f);
    assert_int_equal(f->pipeline.shared.totals.duplicates, 1);
    assert_string_equal(counts(f), "1 1 0 0 0");
}

static void test_a_retry_that_is_refused_is_pending_again(void **state)
{
    struct fixture *f = *state;

    fail_events(f, 1);
    for (uint32_t i = 1; i <= 2; i++) {
        assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", ""), &f->error);
        assert_int_equal(f->result.refused, 1);
        assert_true(f->result.error[0] != '\0');
        const struct delivery_failed_row *row = row_of(f, "order-1");
        assert_int_equal(row->status, DELIVERY_FAILED_PENDING);
        assert_int_equal(row->retry_count, i);
        assert_int_equal(row->last_retry_us, pawl__wall_us(&f->clock.base));
        assert_true(pawl__view_is(row->last_error, f->result.error));
        assert_int_equal(row->resolved_by.len, 0);
    }
    assert_string_equal(counts(f), "1 0 0 1 0");
    assert_int_equal(wal_state(f, 1), DELIVERY_FAILED);
    assert_int_equal(decisions(f), 0);
}

static void test_a_retry_succeeds_once_its_cause_is_gone(void **state)
{
    struct fixture *f = *state;

    f->settings.payload_bytes_max = 4;
    open_pipeline(f);
    publish(f, "order-1", pawl_view_of("[1,2,3]"));
    take_in(f);
    assert_true(pawl__view_is(row_of(f, "order-1")->reason, "too_large"));
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", ""), &f->error);
    assert_int_equal(f->result.refused, 1);
    f->settings.payload_bytes_max = 100;
    open_pipeline(f);
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", ""), &f->error);
    assert_int_equal(f->result.delivered, 1);
    assert_int_equal(rows_of(f, "order-1"), 1);
}

static void test_a_conflict_never_doubles_a_row(void **state)
{
    struct fixture *f = *state;

    publish(f, "order-1", pawl_view_of("{}"));
    publish(f, "order-1", pawl_view_of("[]"));
    take_in(f);
    assert_string_equal(counts(f), "2 1 0 1 0");
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", ""), &f->error);
    assert_int_equal(f->result.refused, 1);
    assert_non_null(strstr(f->result.error, "in the table already"));
    assert_string_equal(status_of(f, "order-1"), "pending");
    assert_int_equal(rows_of(f, "order-1"), 1);
}

static void test_of_two_failed_payloads_of_one_id_one_gets_in(void **state)
{
    struct fixture *f = *state;

    publish(f, "order-1", pawl_view_of("{broken"));
    publish(f, "order-1", pawl_view_of("[]")); /* a conflict with it */
    take_in(f);
    assert_string_equal(counts(f), "2 0 0 2 0");
    struct delivery_uuid first =
        read_failed(f, (struct delivery_failed_query){ .id = NULL })->rows[0].id;
    struct delivery_uuid second = f->page.rows[1].id;
    struct delivery_failed_request request = { .query = { .id = &second },
                                               .who = pawl_view_of("kim") };
    assert_ok(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error), &f->error);
    assert_int_equal(f->result.delivered, 1);
    request.query.id = &first;
    request.edited_payload = pawl_view_of("{}");
    assert_ok(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error), &f->error);
    assert_int_equal(f->result.refused, 1);
    assert_string_equal(counts(f), "2 1 0 1 0");
    assert_int_equal(rows_of(f, "order-1"), 1);
}

/* --- resolve and abandon --- */

static void test_resolved_and_abandoned_events_say_who_and_why(void **state)
{
    struct fixture *f = *state;

    fail_events(f, 3);
    assert_ok(act(f, DELIVERY_FAILED_RESOLVE, "order-1", ""), &f->error);
    assert_int_equal(f->result.closed, 1);
    assert_ok(act(f, DELIVERY_FAILED_ABANDON, "order-2", ""), &f->error);
    const struct delivery_failed_row *row = row_of(f, "order-1");
    assert_int_equal(row->status, DELIVERY_FAILED_RESOLVED);
    assert_int_equal(row->resolution, DELIVERY_RESOLVED_BY_HAND);
    assert_true(pawl__view_is(row->resolved_by, "kim"));
    assert_true(pawl__view_is(row->notes, "checked with sales"));
    assert_int_equal(row->retry_count, 0);
    assert_string_equal(status_of(f, "order-2"), "abandoned");
    assert_int_equal(row_of(f, "order-2")->resolution, DELIVERY_NOT_RESOLVED);
    assert_string_equal(status_of(f, "order-3"), "pending");
    assert_string_equal(counts(f), "3 0 0 3 0"); /* nothing was delivered */
    assert_status(act(f, DELIVERY_FAILED_RETRY, "order-1", "{}"), PAWL_CONFLICT, &f->error);
    assert_status(act(f, DELIVERY_FAILED_ABANDON, "order-1", ""), PAWL_CONFLICT, &f->error);
    assert_status(act(f, DELIVERY_FAILED_ABANDON, "order-2", ""), PAWL_CONFLICT, &f->error);
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-2", "{}"), &f->error); /* on second thoughts */
    assert_string_equal(counts(f), "3 1 0 2 0");
}

static void test_bulk_actions_count_first(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;
    const struct delivery_failed_query all = { .id = NULL };

    fail_events(f, 300); /* more than a page */
    assert_ok(act(f, DELIVERY_FAILED_ABANDON, "order-7", ""), &f->error);
    assert_ok(pawl__delivery_failed_count(
                  f->sink->sink, DELIVERY_FAILED_ABANDON, &all, &count, &f->error),
              &f->error);
    assert_int_equal(count, 299);
    assert_status(act_on_all(f, DELIVERY_FAILED_ABANDON, 300), PAWL_CONFLICT, &f->error);
    assert_int_equal(f->result.matched, 299);
    assert_int_equal(f->result.closed, 0);
    assert_ok(act_on_all(f, DELIVERY_FAILED_ABANDON, 299), &f->error);
    assert_int_equal(f->result.closed, 299);
    assert_ok(act_on_all(f, DELIVERY_FAILED_ABANDON, 0), &f->error);
    assert_int_equal(f->result.matched, 0);
    assert_ok(act_on_all(f, DELIVERY_FAILED_RESOLVE, 300), &f->error);
    assert_int_equal(f->result.closed, 300);
    assert_int_equal(wal_state(f, 300), DELIVERY_CONFIRMED);
}

static void test_a_bulk_retry_says_what_became_of_each(void **state)
{
    struct fixture *f = *state;

    f->settings.payload_bytes_max = 8;
    open_pipeline(f);
    publish(f, "order-1", pawl_view_of("[1,2,3,4,5]"));
    publish(f, "order-2", pawl_view_of("{broken"));
    publish(f, "order-3", pawl_view_of("[5,4,3,2,1]"));
    take_in(f);
    f->settings.payload_bytes_max = 100;
    open_pipeline(f);
    assert_ok(act_on_all(f, DELIVERY_FAILED_RETRY, 3), &f->error);
    assert_int_equal(f->result.delivered, 2);
    assert_int_equal(f->result.refused, 1);
    assert_string_equal(counts(f), "3 2 0 1 0");
}

static void test_bad_requests_are_refused_before_anything_happens(void **state)
{
    struct fixture *f = *state;
    static char long_text[DELIVERY_NOTES_BYTES_MAX + 1];
    const struct delivery_uuid nobody = { { 1 } };
    struct delivery_failed_request request = { .action = DELIVERY_FAILED_RESOLVE, .expected = 1 };

    memset(long_text, 'x', sizeof(long_text));
    fail_events(f, 1);
    assert_status(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_non_null(strstr(f->error.message, "who"));
    request.who = (pawl_view){ long_text, DELIVERY_WHO_BYTES_MAX + 1 };
    assert_status(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error),
                  PAWL_INVALID,
                  &f->error);
    request.who = (pawl_view){ "k\0m", 3 };
    assert_status(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error),
                  PAWL_INVALID,
                  &f->error);
    request.who = (pawl_view){ long_text, DELIVERY_WHO_BYTES_MAX };
    request.notes = (pawl_view){ long_text, sizeof(long_text) };
    assert_status(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error),
                  PAWL_INVALID,
                  &f->error);
    request.notes = (pawl_view){ NULL, 0 };
    request.edited_payload = pawl_view_of("{}"); /* of whom? */
    assert_status(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_status(act(f, DELIVERY_FAILED_RETRY, "order-1", "{"), PAWL_INVALID, &f->error);
    request.edited_payload = (pawl_view){ NULL, 0 };
    request.query.id = &nobody;
    assert_status(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_string_equal(status_of(f, "order-1"), "pending");
    assert_int_equal(row_of(f, "order-1")->retry_count, 0);
    request.query.id = NULL;
    request.notes = (pawl_view){ long_text, DELIVERY_NOTES_BYTES_MAX };
    assert_ok(pawl__delivery_failed_act(&f->pipeline, &request, &f->result, &f->error), &f->error);
}

static void test_ids_are_uuids(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "",
        "x",
        "0198f0a0-5c2e-8000-8000-00000000000",
        "0198f0a0-5c2e-8000-8000-0000000000000",
        "0198f0a005c2e-8000-8000-000000000000",
        "0198f0a0-5c2e-8000-8000-00000000000g",
    };
    struct delivery_uuid id;
    char text[37];

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(pawl__delivery_failed_id_parse(pawl_view_of(bad[i]), &id, &f->error),
                      PAWL_INVALID,
                      &f->error);
    }
    assert_ok(pawl__delivery_failed_id_parse(
                  pawl_view_of("0198F0a0-5c2e-8000-8000-0000000000ff"), &id, &f->error),
              &f->error);
    pawl__delivery_failed_id_text(&id, text);
    assert_string_equal(text, "0198f0a0-5c2e-8000-8000-0000000000ff");
}

/* --- what is lost, and found again --- */

static void test_a_retry_that_broke_off_is_pending_after_a_start(void **state)
{
    struct fixture *f = *state;

    fail_events(f, 1);
    assert_ok(pawl__failpoint_set("delivery.failed.row.before=error:CLOSED", &f->error), &f->error);
    assert_status(act(f, DELIVERY_FAILED_RETRY, "order-1", "{}"), PAWL_CLOSED, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_string_equal(status_of(f, "order-1"), "retrying");
    open_pipeline(f);
    assert_string_equal(status_of(f, "order-1"), "pending");
    assert_int_equal(row_of(f, "order-1")->retry_count, 1);
    assert_int_equal(rows_of(f, "order-1"), 0);
}

static void test_a_decision_that_the_wal_missed_is_copied_on_start(void **state)
{
    struct fixture *f = *state;

    fail_events(f, 3);
    maintain(f);
    assert_ok(pawl__failpoint_set("delivery.failed.row.after=error:CLOSED", &f->error), &f->error);
    assert_status(act(f, DELIVERY_FAILED_RETRY, "order-1", "[7]"), PAWL_CLOSED, &f->error);
    assert_ok(pawl__failpoint_set("delivery.failed.close.after=error:CLOSED", &f->error),
              &f->error);
    assert_status(act(f, DELIVERY_FAILED_ABANDON, "order-2", ""), PAWL_CLOSED, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_int_equal(decisions(f), 0);
    assert_int_equal(wal_state(f, 2), DELIVERY_FAILED);
    open_pipeline(f);
    f->settings.checkpoint_bytes = UINT64_MAX; /* nothing is cleaned up yet */
    assert_ok(pawl__delivery_restore_decisions(&f->pipeline, &f->error), &f->error);
    assert_int_equal(decisions(f), 2);
    assert_int_equal(wal_state(f, 1), DELIVERY_CONFIRMED);
    assert_int_equal(wal_state(f, 2), DELIVERY_CONFIRMED);
    assert_int_equal(wal_state(f, 3), DELIVERY_FAILED);
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct delivery_decision decision;
    bool is_found = false;
    assert_ok(
        f->wal.wal->ops->read_decision(f->wal.wal, 1, &arena, &decision, &is_found, &f->error),
        &f->error);
    assert_true(is_found);
    assert_int_equal(decision.resolution, DELIVERY_RESOLVED_DELIVERED);
    assert_true(pawl__view_is(decision.edited_payload, "[7]"));
    assert_true(pawl__view_is(decision.who, "kim"));
}

/* A new, empty sink in place of the one there was. */
static void lose_sink(struct fixture *f)
{
    const struct delivery_uuid other = { { 9, 9 } };
    char log[TEMPDIR_SIZE + 24];

    pawl__delivery_pipeline_close(&f->pipeline);
    sink_close(f->sink);
    pawl__delivery_memory_sink_done(&f->sink->memory);
    f->sink->memory = pawl__delivery_memory_sink(&other, NULL);
    snprintf(log, sizeof(log), "%s.wal", f->sink->path);
    (void)unlink(f->sink->path);
    (void)unlink(log);
    sink_open(f->sink);
    open_pipeline(f);
}

static void test_failed_events_and_decisions_survive_the_loss_of_the_sink(void **state)
{
    struct fixture *f = *state;
    struct delivery_uuid id;

    publish(f, "order-0", pawl_view_of("{}"));
    fail_events(f, 4);
    id = row_of(f, "order-4")->id;
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", "{\"total\":7}"), &f->error);
    assert_ok(act(f, DELIVERY_FAILED_RESOLVE, "order-2", ""), &f->error);
    assert_ok(act(f, DELIVERY_FAILED_ABANDON, "order-3", ""), &f->error);
    int64_t decided_us = row_of(f, "order-3")->resolved_us;
    assert_string_equal(counts(f), "5 2 0 3 0");
    pawl__clock_step_wall(&f->clock, 5000000);
    lose_sink(f);
    assert_int_equal(f->pipeline.pairing, DELIVERY_REBUILD);
    maintain(f); /* too early: nothing is applied yet */
    assert_int_equal(decisions(f), 3);
    apply_all(f);
    maintain(f);
    assert_string_equal(counts(f), "5 2 0 3 0");
    assert_string_equal(status_of(f, "order-1"), "resolved");
    assert_true(pawl__view_is(row_of(f, "order-1")->edited_payload, "{\"total\":7}"));
    assert_string_equal(status_of(f, "order-2"), "resolved");
    assert_string_equal(status_of(f, "order-3"), "abandoned");
    assert_int_equal(row_of(f, "order-3")->resolved_us, decided_us);
    assert_true(pawl__view_is(row_of(f, "order-3")->resolved_by, "kim"));
    assert_true(pawl__view_is(row_of(f, "order-3")->notes, "checked with sales"));
    assert_string_equal(status_of(f, "order-4"), "pending");
    assert_memory_equal(&row_of(f, "order-4")->id, &id, sizeof(id));
    assert_int_equal(rows_of(f, "order-0"), 1);
    assert_int_equal(rows_of(f, "order-1"), 1);
}

static void test_an_older_copy_of_the_sink_learns_what_was_decided(void **state)
{
    struct fixture *f = *state;
    struct delivery_memory_sink copy = pawl__delivery_memory_sink(&f->sink->memory.sink_id, NULL);
    struct delivery_cursor cursor;
    char log[TEMPDIR_SIZE + 24];
    size_t size = 0;
    char *bytes = NULL;

    fail_events(f, 2);
    assert_ok(f->sink->sink->ops->checkpoint(f->sink->sink, &cursor, &f->error), &f->error);
    if (on_disk) {
        bytes = file_read(f->sink->path, &size);
    } else {
        assert_ok(pawl__delivery_memory_sink_copy(&copy, &f->sink->memory, &f->error), &f->error);
    }
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", "{}"), &f->error);
    assert_ok(act(f, DELIVERY_FAILED_ABANDON, "order-2", ""), &f->error);
    assert_ok(act(f, DELIVERY_FAILED_RESOLVE, "order-2", ""), &f->error);
    pawl__delivery_pipeline_close(&f->pipeline);
    sink_close(f->sink);
    if (on_disk) {
        snprintf(log, sizeof(log), "%s.wal", f->sink->path);
        (void)unlink(log);
        file_write(f->sink->path, bytes, size);
        free(bytes);
    } else {
        assert_ok(pawl__delivery_memory_sink_copy(&f->sink->memory, &copy, &f->error), &f->error);
    }
    pawl__delivery_memory_sink_done(&copy);
    sink_open(f->sink);
    assert_string_equal(status_of(f, "order-1"), "pending");
    open_pipeline(f);
    apply_all(f);
    maintain(f);
    assert_string_equal(status_of(f, "order-1"), "resolved");
    assert_string_equal(status_of(f, "order-2"), "resolved");
    assert_string_equal(counts(f), "2 1 0 1 0");
    assert_int_equal(rows_of(f, "order-1"), 1);
}

static void test_a_lost_wal_leaves_enough_for_a_retry(void **state)
{
    struct fixture *f = *state;

    f->settings.payload_bytes_max = 4;
    open_pipeline(f);
    publish(f, "order-1", pawl_view_of("[1,2,3]"));
    take_in(f);
    f->settings.payload_bytes_max = 100;
    pawl__delivery_pipeline_close(&f->pipeline);
    wal_fixture_close(&f->wal);
    wal_fixture_open(&f->wal, !on_disk);
    open_pipeline(f);
    assert_int_equal(f->pipeline.pairing, DELIVERY_ADOPT);
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-1", ""), &f->error);
    assert_int_equal(f->result.delivered, 1);
    assert_int_equal(rows_of(f, "order-1"), 1);
    if (on_disk) {
        assert_string_equal(sink_sql(f->sink, "SELECT payload FROM events"), "[1,2,3]");
        assert_string_equal(sink_sql(f->sink, "SELECT subject FROM events"), "orders.new");
        assert_string_equal(sink_sql(f->sink, "SELECT headers->0->>1 FROM events"), "order-1");
    }
}

static void test_a_decided_event_leaves_the_wal_behind_a_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct delivery_wal_stats stats;

    fail_events(f, 3);
    assert_ok(act(f, DELIVERY_FAILED_RESOLVE, "order-1", ""), &f->error);
    assert_ok(act(f, DELIVERY_FAILED_ABANDON, "order-3", ""), &f->error);
    assert_int_equal(decisions(f), 2);
    maintain(f);
    assert_int_equal(decisions(f), 0);
    assert_ok(f->wal.wal->ops->stats(f->wal.wal, &stats, &f->error), &f->error);
    assert_int_equal(stats.entries[DELIVERY_FAILED], 1);
    assert_int_equal(stats.entries[DELIVERY_CONFIRMED], 0);
    assert_int_equal(wal_state(f, 2), DELIVERY_FAILED); /* the one that nobody looked at */
    if (on_disk) {
        assert_ok(pawl__delivery_rocksdb_wal_verify(f->wal.wal, &f->error), &f->error);
    }
    assert_ok(act(f, DELIVERY_FAILED_RETRY, "order-3", "{}"), &f->error); /* from its row */
    assert_int_equal(rows_of(f, "order-3"), 1);
}

static void test_a_sink_that_is_out_is_said_to_be(void **state)
{
    struct fixture *f = *state;

    if (!on_disk) {
        return; /* the sink in memory is never out */
    }
    fail_events(f, 1);
    assert_ok(pawl__failpoint_set("duckdb.commit.before=error:IO", &f->error), &f->error);
    assert_int_not_equal(act(f, DELIVERY_FAILED_RESOLVE, "order-1", ""), PAWL_OK);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_status(act(f, DELIVERY_FAILED_RESOLVE, "order-1", ""), PAWL_UNAVAILABLE, &f->error);
    pawl__clock_advance(&f->clock, 30 * NS_PER_S);
    assert_ok(act(f, DELIVERY_FAILED_RESOLVE, "order-1", ""), &f->error);
    assert_string_equal(status_of(f, "order-1"), "resolved");
}

/* --- killed between two steps --- */

/* In the child: opens what is in the directory and acts; a failpoint kills it on the way. */
static int run_child(char **argv)
{
    static struct fixture f;
    static struct sink_fixture sink;
    const struct delivery_parts parts = {
        &f.source.base, NULL, NULL, &f.clock.base, &f.random.base
    };

    on_disk = true;
    sink = (struct sink_fixture){
        .is_duckdb = true,
        .options = { .path = argv[2], .duck = { .threads = 1, .memory_bytes_max = 256 << 20 } }
    };
    f = (struct fixture){ .clock = pawl__clock_virtual_at(0, NS_PER_S),
                          .random = pawl__random_seeded_with(2),
                          .sink = &sink,
                          .settings = pawl__delivery_settings_default() };
    f.source = pawl__delivery_memory_source(&f.clock.base, 1, 30 * NS_PER_S);
    f.settings.identity =
        (struct delivery_identity_rule){ pawl_view_of("shop"), pawl_view_of("S"), { NULL, 0 } };
    sink_open(&sink);
    struct delivery_parts all = parts;
    all.sink = sink.sink;
    if (pawl__delivery_rocksdb_wal_open(argv[3], &wal_options, &all.wal, &f.error) != PAWL_OK
        || pawl__delivery_pipeline_open(&f.pipeline, &f.settings, &all, &f.error) != PAWL_OK
        || pawl__failpoint_set(argv[4], &f.error) != PAWL_OK) {
        child_say("%s", f.error.message);
        return 1;
    }
    pawl_status status = strcmp(argv[5], "retry") == 0
                             ? act(&f, DELIVERY_FAILED_RETRY, "order-1", "{\"total\":7}")
                             : act(&f, DELIVERY_FAILED_ABANDON, "order-1", "");
    if (status != PAWL_OK) {
        child_say("%s", f.error.message);
        return 1;
    }
    child_say("done");
    return 0;
}

static void kill_at(struct fixture *f, const char *failpoint, const char *action)
{
    struct child child;
    char line[200];

    pawl__delivery_pipeline_close(&f->pipeline);
    sink_close(f->sink);
    f->wal.wal->ops->close(f->wal.wal);
    child_start(&child, (const char *[]){ f->sink->path, f->wal.path, failpoint, action });
    while (child_line(&child, line, sizeof(line))) {
        fail_msg("%s: the child says %s", failpoint, line);
    }
    int status = child_end(&child, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    sink_open(f->sink);
    assert_ok(pawl__delivery_rocksdb_wal_open(f->wal.path, &wal_options, &f->wal.wal, &f->error),
              &f->error);
    open_pipeline(f);
    assert_ok(pawl__delivery_restore_decisions(&f->pipeline, &f->error), &f->error);
}

static void test_a_kill_between_any_two_steps_loses_and_doubles_nothing(void **state)
{
    static const struct {
        const char *point;
        const char *action;
        const char *status; /* after the next start */
    } kills[] = {
        { "duckdb.commit.before=kill", "retry", "pending" },
        { "duckdb.commit.after=kill", "retry", "pending" },
        { "delivery.failed.row.before=kill", "retry", "pending" },
        { "duckdb.commit.before=kill@2", "retry", "pending" },
        { "duckdb.commit.after=kill@2", "retry", "resolved" },
        { "delivery.failed.row.after=kill", "retry", "resolved" },
        { "delivery.wal.decide.before=kill", "retry", "resolved" },
        { "delivery.wal.mark.before=kill", "retry", "resolved" },
        { "delivery.wal.mark.after=kill", "retry", "resolved" },
        { "delivery.wal.decide.after=kill", "retry", "resolved" },
        { "delivery.failed.close.before=kill", "abandon", "pending" },
        { "duckdb.commit.after=kill", "abandon", "abandoned" },
        { "delivery.failed.close.after=kill", "abandon", "abandoned" },
        { "delivery.wal.mark.after=kill", "abandon", "abandoned" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; on_disk && i < COUNT_OF(kills);
         i++) { /* memory does not outlive a process */
        bool is_retried = strcmp(kills[i].status, "resolved") == 0;
        fail_events(f, 1);
        kill_at(f, kills[i].point, kills[i].action);
        assert_string_equal(status_of(f, "order-1"), kills[i].status);
        assert_int_equal(wal_state(f, 1),
                         strcmp(kills[i].status, "pending") == 0 ? DELIVERY_FAILED
                                                                 : DELIVERY_CONFIRMED);
        assert_int_equal(decisions(f), strcmp(kills[i].status, "pending") == 0 ? 0 : 1);
        assert_string_equal(counts(f), is_retried ? "1 1 0 0 0" : "1 0 0 1 0");
        assert_int_equal(rows_of(f, "order-1"), is_retried ? 1 : 0);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

#define failed_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        failed_test(test_failed_events_are_listed_in_pages_in_either_order),
        failed_test(test_filters_narrow_the_list_and_the_count),
        failed_test(test_a_row_has_everything_that_arrived),
        failed_test(test_an_export_has_every_row_as_a_line_of_json),
        failed_test(test_an_edited_retry_makes_one_row_and_keeps_the_original),
        failed_test(test_the_message_of_a_retried_event_stays_a_duplicate),
        failed_test(test_a_retry_that_is_refused_is_pending_again),
        failed_test(test_a_retry_succeeds_once_its_cause_is_gone),
        failed_test(test_a_conflict_never_doubles_a_row),
        failed_test(test_of_two_failed_payloads_of_one_id_one_gets_in),
        failed_test(test_resolved_and_abandoned_events_say_who_and_why),
        failed_test(test_bulk_actions_count_first),
        failed_test(test_a_bulk_retry_says_what_became_of_each),
        failed_test(test_bad_requests_are_refused_before_anything_happens),
        failed_test(test_ids_are_uuids),
        failed_test(test_a_retry_that_broke_off_is_pending_after_a_start),
        failed_test(test_a_decision_that_the_wal_missed_is_copied_on_start),
        failed_test(test_failed_events_and_decisions_survive_the_loss_of_the_sink),
        failed_test(test_an_older_copy_of_the_sink_learns_what_was_decided),
        failed_test(test_a_lost_wal_leaves_enough_for_a_retry),
        failed_test(test_a_decided_event_leaves_the_wal_behind_a_checkpoint),
        failed_test(test_a_sink_that_is_out_is_said_to_be),
        failed_test(test_a_kill_between_any_two_steps_loses_and_doubles_nothing),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    if (setenv("TZ", "America/New_York", 1) != 0) { /* times are UTC wherever the machine is */
        return 2;
    }
    on_disk = argc > 1 && strcmp(argv[1], "duckdb") == 0;
    sink_fixture_choose(argc > 1 ? argv[1] : "memory");
    return cmocka_run_group_tests_name("delivery_failed", tests, NULL, NULL);
}
