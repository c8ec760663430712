/* Replay, rebuild, trace and audit through <pawl/delivery.h>, on real stores: a file, RocksDB, DuckDB. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pawl/delivery.h>
#include <pawl/publisher.h>

#include "base/core/macros.h"
#include "lib/file.h"
#include "lib/tempdir.h"
#include "store/duckdb/duckdb.h"

enum { WAIT_MS = 240000, LINES = 50 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char lines[TEMPDIR_SIZE + 16];
    char file[TEMPDIR_SIZE + 32];
    pawl_delivery *delivery;
    pawl_audit_report report;
    pawl_replay_result replayed;
    pawl_rebuild_result rebuilt;
    pawl_rebuilt last; /* without its views */
    char said[512];    /* the last finding, or the error of the last pipeline */
    size_t count;
    pawl_trace_step steps[16];
    char texts[16][4][128]; /* of each step: pipeline, transaction_id, state, detail */
    uint64_t skipped;
    pawl_error error;
};

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' has no '%s'", text, part);
    }
}

static void open_delivery(struct fixture *f)
{
    assert_ok(pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), &f->error);
}

static void close_delivery(struct fixture *f)
{
    assert_ok(pawl_delivery_close(STEAL(f->delivery), 0, &f->error), &f->error);
}

static void write_lines(struct fixture *f, int count)
{
    FILE *file = fopen(f->lines, "w");

    assert_non_null(file);
    for (int i = 1; i <= count; i++) {
        fprintf(file, i == 7 ? "seven\n" : "{\"id\":\"e%d\",\"n\":%d}\n", i, i);
    }
    assert_int_equal(fclose(file), 0);
}

static void deliver(struct fixture *f)
{
    assert_ok(pawl_pipeline_start(f->delivery, "orders", &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, "orders", WAIT_MS, NULL, &f->error), &f->error);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char json[2048];

    *state = f;
    assert_ok(tempdir_make(f->dir, "acts", &f->error), &f->error);
    snprintf(f->lines, sizeof(f->lines), "%s/events.jsonl", f->dir);
    snprintf(f->file, sizeof(f->file), "%s/analytics.duckdb", f->dir);
    f->report = (pawl_audit_report)PAWL_AUDIT_REPORT_INIT;
    f->replayed = (pawl_replay_result)PAWL_REPLAY_RESULT_INIT;
    f->rebuilt = (pawl_rebuild_result)PAWL_REBUILD_RESULT_INIT;
    write_lines(f, LINES);
    open_delivery(f);
    snprintf(json,
             sizeof(json),
             "{\"name\": \"orders\", \"from\": \"file:%s\", \"into\": \"orders\", \"id_field\": "
             "\"id\", \"filter\": \"payload->>'n' <> '9'\"}",
             f->lines);
    assert_ok(pawl_pipeline_add(f->delivery, pawl_view_of(json), &f->error), &f->error);
    deliver(f);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->delivery != NULL) {
        close_delivery(f);
    }
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

/* What somebody does to the file behind our back. The directory is closed for it. */
static void run_sql(struct fixture *f, const char *sql)
{
    struct pawl__duck_options options = { .memory_bytes_max = UINT64_C(64) << 20 };
    struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;

    close_delivery(f);
    assert_ok(pawl__duck_open(f->file, &options, &db, &f->error), &f->error);
    assert_ok(pawl__duck_connect(db, &conn, &f->error), &f->error);
    assert_ok(pawl__duck_script(conn, sql, &f->error), &f->error);
    pawl__duck_disconnect(conn);
    pawl__duck_close(db);
    open_delivery(f);
}

/* --- audit --- */

static bool see_finding(void *context, const pawl_audit_finding *finding)
{
    struct fixture *f = context;

    f->count++;
    snprintf(f->said,
             sizeof(f->said),
             "%s %.*s %llu %.*s",
             pawl_audit_fault_name(finding->fault),
             (int)finding->transaction_id.len,
             finding->transaction_id.data,
             (unsigned long long)finding->sequence,
             (int)finding->what.len,
             finding->what.data);
    return true;
}

static pawl_status audit(struct fixture *f)
{
    f->count = 0;
    return pawl_delivery_audit(f->delivery, NULL, NULL, see_finding, f, &f->report, &f->error);
}

static void assert_clean(struct fixture *f, uint64_t rows)
{
    pawl_status status = audit(f);

    if (status != PAWL_OK) {
        print_message("audit: %s; %s\n", f->error.message, f->said);
    }
    assert_int_equal(status, PAWL_OK);
    assert_int_equal(f->report.rows, rows);
    assert_int_equal(f->report.lost + f->report.duplicated + f->report.miscounted, 0);
}

static void test_audit_of_a_pipeline_that_runs_finds_nothing_wrong(void **state)
{
    struct fixture *f = *state;

    assert_clean(f, LINES - 2);
    assert_int_equal(f->report.pipelines, 1);
    assert_int_equal(f->report.source_events, LINES);
    assert_int_equal(f->report.filtered, 1);
    assert_int_equal(f->report.failed, 1);
    assert_int_equal(f->report.pending, 0);
    assert_int_equal(f->report.recorded, 0);
}

static void test_audit_names_the_row_that_is_lost(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "DELETE FROM orders WHERE transaction_id = 'orders:e21:0'");
    assert_int_equal(audit(f), PAWL_CORRUPT);
    assert_int_equal(f->report.lost, 1);
    assert_int_equal(f->report.duplicated, 0);
    assert_int_equal(f->report.miscounted, 1);
    assert_has(f->said, "lost orders:e21:0 21 the source has it");
    assert_has(f->error.message, "lost 1, duplicated 0");
}

static void test_audit_names_the_row_that_is_there_twice(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "INSERT INTO orders SELECT * FROM orders WHERE transaction_id = 'orders:e21:0'");
    assert_int_equal(audit(f), PAWL_CORRUPT);
    assert_int_equal(f->report.lost, 0);
    assert_int_equal(f->report.duplicated, 1);
}

static void test_audit_finds_a_failed_event_that_somebody_removed(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "DELETE FROM failed_events");
    assert_int_equal(audit(f), PAWL_CORRUPT);
    assert_true(f->report.lost >= 1); /* the source has it, and so has the log */
    assert_has(f->said, " 7 the source has it");
}

static void test_audit_of_a_source_that_is_away_could_not_be_done(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(unlink(f->lines), 0);
    assert_int_equal(audit(f), PAWL_NOT_FOUND);
    assert_has(f->error.message, "events.jsonl");
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return false;
}

static void test_audit_is_cancelled_by_its_watch(void **state)
{
    struct fixture *f = *state;
    pawl_watch watch = PAWL_WATCH_INIT;

    watch.progress = stop_at_once;
    assert_int_equal(
        pawl_delivery_audit(f->delivery, "orders", &watch, NULL, NULL, &f->report, &f->error),
        PAWL_CANCELLED);
}

/* --- replay --- */

static pawl_status replay(struct fixture *f, pawl_replay_by by, uint64_t from, uint64_t to)
{
    pawl_replay_range range = PAWL_REPLAY_RANGE_INIT;

    range.by = by;
    range.from = from;
    range.to = to;
    return pawl_pipeline_replay(f->delivery, "orders", &range, NULL, &f->replayed, &f->error);
}

static void test_replay_of_what_is_there_delivers_nothing_twice(void **state)
{
    struct fixture *f = *state;

    assert_ok(replay(f, PAWL_REPLAY_SEQUENCE, 0, 0), &f->error);
    assert_int_equal(f->replayed.from_source, LINES);
    assert_int_equal(f->replayed.delivered + f->replayed.filtered + f->replayed.failed, 0);
    assert_clean(f, LINES - 2);
}

static void test_replay_delivers_what_the_table_lacks_in_the_range(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "DELETE FROM orders WHERE CAST(payload->>'n' AS INTEGER) BETWEEN 11 AND 40");
    assert_ok(replay(f, PAWL_REPLAY_SEQUENCE, 21, 30), &f->error);
    assert_int_equal(f->replayed.from_source, 10);
    assert_int_equal(f->replayed.delivered, 10);
    assert_int_equal(audit(f), PAWL_CORRUPT);
    assert_int_equal(f->report.lost, 20);
    assert_ok(replay(f, PAWL_REPLAY_SEQUENCE, 0, 0), &f->error);
    assert_int_equal(f->replayed.delivered, 20);
    assert_clean(f, LINES - 2);
}

static void test_replay_brings_back_filtered_and_failed_events(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "DELETE FROM failed_events; DELETE FROM delivery_filtered");
    assert_ok(replay(f, PAWL_REPLAY_SEQUENCE, 0, 0), &f->error);
    assert_int_equal(f->replayed.delivered, 0);
    assert_int_equal(f->replayed.filtered, 1);
    assert_int_equal(f->replayed.failed, 1);
    assert_clean(f, LINES - 2);
}

static void test_replay_by_lsn_takes_what_the_log_has_and_says_what_is_gone(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "DELETE FROM failed_events"); /* the log keeps the entries of failed events */
    assert_ok(replay(f, PAWL_REPLAY_LSN, 1, 10), &f->error);
    assert_int_equal(f->replayed.from_source, 0);
    assert_int_equal(f->replayed.failed, 1);
    assert_int_equal(f->replayed.from_wal + f->replayed.gone, 10);
    assert_clean(f, LINES - 2);
}

static void test_replay_of_a_running_pipeline_stops_it_and_starts_it_again(void **state)
{
    struct fixture *f = *state;

    assert_ok(replay(f, PAWL_REPLAY_SEQUENCE, 0, 0), &f->error);
    write_lines(f, LINES + 5);
    assert_ok(pawl_pipeline_drain(f->delivery, "orders", WAIT_MS, NULL, &f->error), &f->error);
    assert_clean(f, LINES + 3);
}

static void test_replay_refuses_a_range_that_is_upside_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(replay(f, PAWL_REPLAY_SEQUENCE, 5, 3), PAWL_INVALID);
    assert_int_equal(replay(f, (pawl_replay_by)9, 1, 3), PAWL_INVALID);
}

/* An event that was replayed has one entry in the log: a table that is made anew from it has it once. */
static void test_replay_and_then_a_lost_file_has_each_event_once(void **state)
{
    struct fixture *f = *state;

    run_sql(f, "DELETE FROM orders; DELETE FROM failed_events");
    assert_ok(replay(f, PAWL_REPLAY_SEQUENCE, 0, 0), &f->error);
    assert_int_equal(f->replayed.delivered, LINES - 2);
    close_delivery(f);
    assert_int_equal(unlink(f->file), 0);
    open_delivery(f);
    deliver(f);
    assert_clean(f, LINES - 2);
}

/* --- rebuild --- */

static bool see_rebuilt(void *context, const pawl_rebuilt *rebuilt)
{
    struct fixture *f = context;

    f->last = *rebuilt;
    snprintf(f->said, sizeof(f->said), "%.*s", (int)rebuilt->error.len, rebuilt->error.data);
    return true;
}

static pawl_status rebuild(struct fixture *f, bool replace)
{
    return pawl_delivery_rebuild(
        f->delivery, replace, NULL, see_rebuilt, f, &f->rebuilt, &f->error);
}

static void test_rebuild_makes_a_lost_file_anew(void **state)
{
    struct fixture *f = *state;

    close_delivery(f);
    assert_int_equal(unlink(f->file), 0);
    open_delivery(f);
    assert_ok(rebuild(f, false), &f->error);
    assert_true(f->rebuilt.file_was_missing);
    assert_false(f->rebuilt.file_was_damaged);
    assert_int_equal(f->last.delivered, LINES - 2);
    assert_int_equal(f->last.failed, 1);
    assert_int_equal(f->last.losses, 0);
    assert_clean(f, LINES - 2);
}

static void test_rebuild_quarantines_a_file_that_does_not_open(void **state)
{
    struct fixture *f = *state;

    close_delivery(f);
    file_write(f->file, "no database at all", 18);
    open_delivery(f);
    assert_int_equal(pawl_pipeline_start(f->delivery, "orders", &f->error), PAWL_CORRUPT);
    assert_has(f->error.message, "pawl rebuild");
    assert_ok(rebuild(f, false), &f->error);
    assert_true(f->rebuilt.file_was_damaged);
    assert_int_equal(access(f->rebuilt.quarantined, F_OK), 0);
    assert_clean(f, LINES - 2);
}

static void test_rebuild_replaces_a_file_of_pipelines_that_run(void **state)
{
    struct fixture *f = *state;

    assert_ok(rebuild(f, true), &f->error);
    assert_true(f->rebuilt.quarantined[0] != '\0');
    assert_clean(f, LINES - 2);
    write_lines(f, LINES + 5); /* and it runs again */
    assert_ok(pawl_pipeline_drain(f->delivery, "orders", WAIT_MS, NULL, &f->error), &f->error);
    assert_clean(f, LINES + 3);
}

static void test_rebuild_without_its_source_takes_the_log_and_says_so(void **state)
{
    struct fixture *f = *state;
    char aside[TEMPDIR_SIZE + 32];

    close_delivery(f);
    assert_int_equal(unlink(f->file), 0);
    snprintf(aside, sizeof(aside), "%s.aside", f->lines);
    assert_int_equal(rename(f->lines, aside), 0);
    open_delivery(f);
    assert_int_equal(rebuild(f, false), PAWL_UNAVAILABLE);
    assert_int_equal(f->rebuilt.incomplete, 1);
    assert_has(f->said, "events.jsonl");
    assert_int_equal(f->last.failed, 1); /* consumer:failed: keeps it until somebody decides */
    assert_int_equal(rename(aside, f->lines), 0);
    deliver(f);
    assert_clean(f, LINES - 2);
}

/* --- trace --- */

static bool see_failed(void *context, const pawl_failed_event *event)
{
    struct fixture *f = context;

    snprintf(f->said,
             sizeof(f->said),
             "%.*s",
             (int)event->transaction_id.len,
             event->transaction_id.data);
    return true;
}

static bool see_step(void *context, const pawl_trace_step *step)
{
    struct fixture *f = context;
    const pawl_view views[] = { step->pipeline, step->transaction_id, step->state, step->detail };

    f->steps[f->count] = *step;
    for (size_t i = 0; i < COUNT_OF(views); i++) {
        snprintf(f->texts[f->count][i],
                 sizeof(f->texts[0][0]),
                 "%.*s",
                 (int)views[i].len,
                 views[i].data);
    }
    return ++f->count < COUNT_OF(f->steps);
}

static pawl_status trace(struct fixture *f, const char *id)
{
    f->count = 0;
    return pawl_delivery_trace(
        f->delivery, pawl_view_of(id), NULL, see_step, f, &f->skipped, &f->error);
}

static void test_trace_follows_a_row_from_its_line_to_the_table(void **state)
{
    struct fixture *f = *state;
    static const char *const ids[] = { "e21", "orders:e21:0" };

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_ok(trace(f, ids[i]), &f->error);
        assert_int_equal(f->count, 3);
        assert_int_equal(f->steps[0].place, PAWL_TRACE_SOURCE);
        assert_int_equal(f->steps[0].sequence, 21);
        assert_int_equal(f->steps[1].place, PAWL_TRACE_WAL);
        assert_int_equal(f->steps[1].lsn, 21);
        assert_true(f->steps[1].at_us > 0);
        assert_int_equal(f->steps[2].place, PAWL_TRACE_TABLE);
        assert_string_equal(f->texts[2][0], "orders");
        assert_string_equal(f->texts[2][1], "orders:e21:0");
        assert_string_equal(f->texts[2][3], "orders");
    }
}

static void test_trace_of_a_failed_event_says_why_and_when(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl_failed_list(f->delivery, "orders", NULL, NULL, see_failed, f, &f->error),
              &f->error);
    char id[sizeof(f->said)];
    memcpy(id, f->said, sizeof(id));
    assert_ok(trace(f, id), &f->error);
    assert_int_equal(f->count, 3);
    assert_int_equal(f->steps[0].sequence, 7);
    assert_int_equal(f->steps[2].place, PAWL_TRACE_FAILED);
    assert_true(f->steps[2].at_us > 0);
    assert_string_equal(f->texts[2][2], "pending");
    assert_has(f->texts[2][3], "not_json");
}

static void test_trace_of_a_filtered_event(void **state)
{
    struct fixture *f = *state;

    assert_ok(trace(f, "e9"), &f->error);
    assert_int_equal(f->steps[f->count - 1].place, PAWL_TRACE_FILTERED);
}

static void test_trace_finds_an_event_that_waits_in_the_outbox(void **state)
{
    struct fixture *f = *state;
    pawl_publisher_options options = PAWL_PUBLISHER_OPTIONS_INIT;
    pawl_outgoing event = PAWL_OUTGOING_INIT;
    pawl_publisher *publisher = NULL;
    char dir[TEMPDIR_SIZE + 32];

    snprintf(dir, sizeof(dir), "%s/wal/producer", f->dir);
    options.source = "shop";
    options.free_space_min = 0;
    assert_ok(pawl_publisher_open(dir, &options, &publisher, &f->error), &f->error);
    event.subject = pawl_view_of("paid");
    event.event_id = pawl_view_of("o-1");
    event.payload = pawl_view_of("{}");
    assert_ok(pawl_publisher_publish(publisher, &event, 1, NULL, &f->error), &f->error);
    assert_ok(pawl_publisher_close(publisher, 0, &f->error), &f->error);
    assert_ok(trace(f, "shop:o-1:0"), &f->error);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->steps[0].place, PAWL_TRACE_OUTBOX);
    assert_int_equal(f->steps[0].number, 1);
    assert_true(f->steps[0].at_us > 0);
    assert_string_equal(f->texts[0][2], "pending");
    assert_string_equal(f->texts[0][3], "paid");
}

static void test_trace_of_an_id_that_nobody_knows_is_not_found(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(trace(f, "e999"), PAWL_NOT_FOUND);
    assert_int_equal(trace(f, ""), PAWL_INVALID);
}

#define acts_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        acts_test(test_audit_of_a_pipeline_that_runs_finds_nothing_wrong),
        acts_test(test_audit_names_the_row_that_is_lost),
        acts_test(test_audit_names_the_row_that_is_there_twice),
        acts_test(test_audit_finds_a_failed_event_that_somebody_removed),
        acts_test(test_audit_of_a_source_that_is_away_could_not_be_done),
        acts_test(test_audit_is_cancelled_by_its_watch),
        acts_test(test_replay_of_what_is_there_delivers_nothing_twice),
        acts_test(test_replay_delivers_what_the_table_lacks_in_the_range),
        acts_test(test_replay_brings_back_filtered_and_failed_events),
        acts_test(test_replay_by_lsn_takes_what_the_log_has_and_says_what_is_gone),
        acts_test(test_replay_of_a_running_pipeline_stops_it_and_starts_it_again),
        acts_test(test_replay_refuses_a_range_that_is_upside_down),
        acts_test(test_replay_and_then_a_lost_file_has_each_event_once),
        acts_test(test_rebuild_makes_a_lost_file_anew),
        acts_test(test_rebuild_quarantines_a_file_that_does_not_open),
        acts_test(test_rebuild_replaces_a_file_of_pipelines_that_run),
        acts_test(test_rebuild_without_its_source_takes_the_log_and_says_so),
        acts_test(test_trace_follows_a_row_from_its_line_to_the_table),
        acts_test(test_trace_of_a_failed_event_says_why_and_when),
        acts_test(test_trace_of_a_filtered_event),
        acts_test(test_trace_finds_an_event_that_waits_in_the_outbox),
        acts_test(test_trace_of_an_id_that_nobody_knows_is_not_found),
    };

    return cmocka_run_group_tests_name("delivery_acts", tests, NULL, NULL);
}
