/* The example of playback events: its mapping, its DDL and its sample belong together. */
#include "lib/sink_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/random.h"
#include "base/json/json.h"
#include "delivery/memory/source.h"
#include "delivery/memory/wal.h"
#include "delivery/pipeline/pipeline.h"
#include "lib/file.h"
#include "lib/virtual_clock.h"

struct fixture {
    struct sink_fixture *sink;
    json_t *pipeline;
    struct delivery_column columns[DELIVERY_COLUMNS_MAX];
    char paths[DELIVERY_COLUMNS_MAX][DELIVERY_PATH_BYTES_MAX];
    struct delivery_mapping mapping;
};

static char *read_example(const char *name, size_t *ret_size)
{
    const char *source = getenv("PAWL_SOURCE");
    char path[1024];

    snprintf(
        path, sizeof(path), "%s/examples/playback_events/%s", source == NULL ? "." : source, name);
    return file_read(path, ret_size);
}

static const char *text_of(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static enum delivery_type type_of(const char *name)
{
    int type = DELIVERY_BIGINT;

    while (type < DELIVERY_BLOB
           && strcmp(pawl__delivery_type_name((enum delivery_type)type), name) != 0) {
        type++;
    }
    assert_true(type < DELIVERY_BLOB);
    return (enum delivery_type)type;
}

static enum delivery_from from_of(const char *name)
{
    static const struct {
        const char *name;
        enum delivery_from from;
    } all[] = {
        { "path", DELIVERY_FROM_PATH },         { "transaction_id", DELIVERY_FROM_TRANSACTION_ID },
        { "source", DELIVERY_FROM_SOURCE },     { "event_id", DELIVERY_FROM_EVENT_ID },
        { "received", DELIVERY_FROM_RECEIVED }, { "expression", DELIVERY_FROM_EXPRESSION },
    };
    size_t i = 0;

    while (i < COUNT_OF(all) && strcmp(all[i].name, name) != 0) {
        i++;
    }
    assert_true(i < COUNT_OF(all));
    return all[i].from;
}

static void read_column(struct fixture *f, size_t i, json_t *given)
{
    const char *type = text_of(given, "type");
    const char *from = text_of(given, "from");
    const char *path = text_of(given, "path");

    snprintf(f->paths[i], sizeof(f->paths[i]), "$.%s", text_of(given, "name"));
    f->columns[i] = (struct delivery_column){
        .name = text_of(given, "name"),
        .type = type_of(type == NULL ? "VARCHAR" : type),
        .from = from_of(from == NULL ? "path" : from),
        .path = path == NULL ? f->paths[i] : path,
        .is_required = json_is_true(json_object_get(given, "required")),
        .expression = text_of(given, "expression"),
    };
}

static int set_up(void **state)
{
    static struct fixture f;
    pawl_error error = PAWL_ERROR_INIT;
    size_t size = 0;
    char *text = read_example("pipeline.json", &size);
    void *sink = NULL;

    memset(&f, 0, sizeof(f));
    assert_ok(pawl__json_parse((pawl_view){ text, size }, size, &f.pipeline, &error), &error);
    free(text);
    json_t *columns = json_object_get(f.pipeline, "columns");
    for (size_t i = 0; i < json_array_size(columns); i++) {
        read_column(&f, i, json_array_get(columns, i));
    }
    f.mapping = (struct delivery_mapping){
        .table = text_of(f.pipeline, "into"),
        .columns = f.columns,
        .count = json_array_size(columns),
        .has_unique_index = json_is_true(json_object_get(f.pipeline, "unique_index")),
        .filter = text_of(f.pipeline, "filter"),
    };
    sink_fixture_choose("duckdb");
    if (sink_fixture_open(&sink) != 0) {
        return -1;
    }
    f.sink = sink;
    sink_close(f.sink);
    f.sink->mapping = &f.mapping;
    sink_open(f.sink);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    void *sink = f->sink;

    json_decref(f->pipeline);
    return sink_fixture_close(&sink);
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
    size_t size = 0;
    char *ddl = read_example("schema.sql", &size);

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
    size_t size = 0;
    size_t moved = 0;
    char *sample = read_example("sample.jsonl", &size);

    settings.identity =
        (struct delivery_identity_rule){ pawl_view_of(text_of(f->pipeline, "source")),
                                         pawl_view_of(text_of(f->pipeline, "stream")),
                                         pawl_view_of(text_of(f->pipeline, "id_field")) };
    const struct delivery_parts parts = {
        &source.base, &wal.base, sink->sink, &clock.base, &random.base
    };
    publish_lines(&source, (pawl_view){ sample, size }, &sink->error);
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
