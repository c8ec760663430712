/* The example of playback events: its mapping, its DDL and its sample belong together. */
#include "lib/sink_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/random.h"
#include "delivery/memory/source.h"
#include "delivery/memory/wal.h"
#include "delivery/pipeline/pipeline.h"
#include "delivery/service/declaration.h"
#include "lib/file.h"
#include "lib/virtual_clock.h"

struct fixture {
    struct sink_fixture *sink;
    struct delivery_declared declared;
};

static char *read_example(const char *name)
{
    const char *source = getenv("PAWL_SOURCE");
    char path[1024];
    size_t size = 0;

    snprintf(
        path, sizeof(path), "%s/examples/playback_events/%s", source == NULL ? "." : source, name);
    char *bytes = file_read(path, &size);
    char *text = pawl__view_dup((pawl_view){ bytes, size });
    free(bytes);
    assert_non_null(text);
    return text;
}

static int set_up(void **state)
{
    static struct fixture f;
    pawl_error error = PAWL_ERROR_INIT;
    char *text = read_example("pipeline.json");
    void *sink = NULL;

    memset(&f, 0, sizeof(f));
    assert_ok(pawl__delivery_declare(pawl_view_of(text), &f.declared, &error), &error);
    free(text);
    sink_fixture_choose("duckdb");
    if (sink_fixture_open(&sink) != 0) {
        return -1;
    }
    f.sink = sink;
    sink_close(f.sink);
    f.sink->mapping = &f.declared.mapping;
    sink_open(f.sink);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    void *sink = f->sink;

    int status = sink_fixture_close(&sink);
    pawl__delivery_declared_done(&f->declared);
    return status;
}

#define COLUMNS                                                                            \
    "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index) FROM " \
    "duckdb_columns() WHERE table_name = 'playback_events'"
#define INDEXES                                                                            \
    "SELECT string_agg(index_name || ' ' || is_unique, ', ') FROM duckdb_indexes() WHERE " \
    "table_name = 'playback_events'"

static void test_the_ddl_is_what_the_pipeline_makes(void **state)
{
    struct fixture *f = *state;
    struct sink_fixture *sink = f->sink;
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;
    struct pawl__duck_rows *rows = NULL;
    char columns[4096];
    char indexes[256];
    char *ddl = read_example("schema.sql");

    snprintf(columns, sizeof(columns), "%s", sink_sql(sink, COLUMNS));
    snprintf(indexes, sizeof(indexes), "%s", sink_sql(sink, INDEXES));
    assert_string_equal(indexes, "playback_events_transaction_id true");
    assert_ok(pawl__duck_open_memory(NULL, &db, &sink->error), &sink->error);
    assert_ok(pawl__duck_connect(db, &conn, &sink->error), &sink->error);
    assert_ok(pawl__duck_script(conn, ddl, &sink->error), &sink->error);
    free(ddl);
    static const char *const queries[] = { COLUMNS, INDEXES };
    const char *const expected[] = { columns, indexes };
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        assert_ok(pawl__duck_query_text(conn, queries[i], DUCK_NO_ARGS, &rows, &sink->error),
                  &sink->error);
        assert_ok(pawl__duck_next(rows, &sink->error), &sink->error);
        assert_true(pawl__view_is(pawl__duck_get_text(rows, 0), expected[i]));
        pawl__duck_rows_free(STEAL(rows));
    }
    pawl__duck_disconnect(conn);
}

static void publish_lines(struct delivery_memory_source *source, pawl_view text, pawl_error *error)
{
    pawl_view line;
    uint64_t sequence = 0;

    while (pawl__view_split(&text, '\n', &line)) {
        struct delivery_message message = {
            .place = { .stored_ns = (int64_t)source->last + 100 },
            .subject = pawl_view_of("media.playback.tv"),
            .payload = line,
        };
        assert_ok(pawl__delivery_memory_publish(source, &message, &sequence, error), error);
    }
}

static void deliver_sample(struct fixture *f, struct delivery_counters *ret_counters)
{
    struct sink_fixture *sink = f->sink;
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(0, NS_PER_S);
    struct pawl__random_seeded random = pawl__random_seeded_with(1);
    struct delivery_memory_source source =
        pawl__delivery_memory_source(&clock.base, 1, 30 * NS_PER_S);
    struct delivery_memory_wal wal = pawl__delivery_memory_wal();
    struct delivery_settings settings = pawl__delivery_settings_default();
    static struct delivery_pipeline pipeline;
    size_t moved = 0;
    char *sample = read_example("sample.jsonl");

    settings.identity = f->declared.identity;
    const struct delivery_parts parts = {
        &source.base, &wal.base, sink->sink, &clock.base, &random.base
    };
    publish_lines(&source, pawl_view_of(sample), &sink->error);
    assert_ok(pawl__delivery_pipeline_open(&pipeline, &settings, &parts, &sink->error),
              &sink->error);
    assert_ok(pawl__delivery_intake(&pipeline, &moved, &sink->error), &sink->error);
    assert_int_equal(moved, 7);
    assert_ok(pawl__delivery_apply(&pipeline, &moved, &sink->error), &sink->error);
    *ret_counters = pawl__delivery_pipeline_counters(&pipeline);
    assert_int_equal(pipeline.shared.totals.duplicates, 1);
    pawl__delivery_pipeline_close(&pipeline);
    pawl__delivery_memory_source_done(&source);
    pawl__delivery_memory_wal_done(&wal);
    free(sample);
}

static void test_the_sample_ends_as_the_readme_says(void **state)
{
    struct fixture *f = *state;
    struct delivery_counters counters;

    deliver_sample(f, &counters);
    assert_int_equal(counters.accepted, 6);
    assert_int_equal(counters.delivered, 3);
    assert_int_equal(counters.filtered, 1);
    assert_int_equal(counters.failed, 2);
    assert_string_equal(
        sink_sql(f->sink,
                 "SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM playback_events"),
        "p-1 p-3 p-6");
    assert_string_equal(
        sink_sql(f->sink,
                 "SELECT percent_complete || ' ' || network || ' ' || username || ' ' "
                 "|| occurred_at FROM playback_events WHERE event_id = 'p-3'"),
        "50.0 192.0.2.0 kim 2026-01-29 20:37:00");
    assert_string_equal(sink_sql(f->sink,
                                 "SELECT count(*) FROM playback_events WHERE payload::TEXT "
                                 "LIKE '%192.0.2.17%'"),
                        "0");
    assert_string_equal(
        sink_sql(f->sink,
                 "SELECT string_agg(event_id || ' ' || failure_reason, ', ' ORDER BY "
                 "event_id) FROM failed_events"),
        "p-4 unmappable, p-5 unmappable");
    assert_string_equal(sink_sql(f->sink, "SELECT transaction_id FROM delivery_filtered"),
                        "media:p-2:0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_ddl_is_what_the_pipeline_makes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_sample_ends_as_the_readme_says, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("delivery_playback", tests, NULL, NULL);
}
