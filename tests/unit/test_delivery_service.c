/* <pawl/delivery.h> as a program meets it: pipelines on a data directory, from files into DuckDB, stopped, started and
 * declared again, with the rows counted by SQL. */
#include "lib/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pawl/delivery.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "delivery/service/declaration.h"
#include "lib/fault.h"
#include "lib/file.h"
#include "lib/tempdir.h"
#include "store/duckdb/duckdb.h"

enum { WAIT_MS = 240000 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char lines[TEMPDIR_SIZE + 16];
    char duckdb[TEMPDIR_SIZE + 32];
    pawl_delivery *delivery;
    pawl_error error;
    pawl_pipeline_status seen;
    char last_error[256];
    const char *pairing; /* static */
    unsigned visited;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    assert_ok(tempdir_make(f->dir, "deliver", &f->error), &f->error);
    snprintf(f->lines, sizeof(f->lines), "%s/events.jsonl", f->dir);
    snprintf(f->duckdb, sizeof(f->duckdb), "%s/analytics.duckdb", f->dir);
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(pawl_delivery_close(f->delivery, 0, NULL), PAWL_OK);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

/* --- steps --- */

static void open_delivery(struct fixture *f)
{
    assert_ok(pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), &f->error);
}

static void close_delivery(struct fixture *f)
{
    assert_ok(pawl_delivery_close(f->delivery, WAIT_MS, &f->error), &f->error);
    f->delivery = NULL;
}

/* Lines {"n": from} ... {"n": to}. */
static void add_lines(struct fixture *f, int from, int to)
{
    FILE *file = fopen(f->lines, "a");

    assert_non_null(file);
    for (int i = from; i <= to; i++) {
        fprintf(file, "{\"n\": %d}\n", i);
    }
    assert_int_equal(fclose(file), 0);
}

static void add_text(struct fixture *f, const char *text)
{
    FILE *file = fopen(f->lines, "a");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static pawl_status add_json(struct fixture *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static pawl_status add_json(struct fixture *f, const char *format, ...)
{
    char json[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(json, sizeof(json), format, args);
    va_end(args);
    return pawl_pipeline_add(f->delivery, pawl_view_of(json), &f->error);
}

static pawl_status add_file(struct fixture *f, const char *name, const char *more)
{
    return add_json(f,
                    "{\"name\": \"%s\", \"from\": \"file:%s\", \"into\": \"%s\"%s}",
                    name,
                    f->lines,
                    name,
                    more);
}

static void drain(struct fixture *f, const char *name)
{
    assert_ok(pawl_pipeline_start(f->delivery, name, &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, name, WAIT_MS, NULL, &f->error), &f->error);
}

static bool see(void *context, const pawl_pipeline_status *status)
{
    struct fixture *f = context;

    f->seen = *status;
    snprintf(f->last_error, sizeof(f->last_error), "%.*s", VIEW_ARGS(status->last_error));
    f->pairing = status->recovery == NULL ? "" : status->recovery->pairing;
    f->visited++;
    return true;
}

static const pawl_pipeline_status *look(struct fixture *f, const char *name)
{
    assert_ok(pawl_pipeline_get(f->delivery, name, see, f, &f->error), &f->error);
    assert_true(f->seen.accepted
                == f->seen.delivered + f->seen.filtered + f->seen.failed + f->seen.pending);
    return &f->seen;
}

/* Of the file itself, while nobody has it open. */
static int64_t count(struct fixture *f, const char *sql)
{
    struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;
    struct pawl__duck_rows *rows = NULL;

    assert_ok(pawl__duck_open(f->duckdb, NULL, &db, &f->error), &f->error);
    assert_ok(pawl__duck_connect(db, &conn, &f->error), &f->error);
    assert_ok(pawl__duck_query_text(conn, sql, DUCK_NO_ARGS, &rows, &f->error), &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    int64_t number = pawl__duck_get_i64(rows, 0);
    pawl__duck_rows_free(rows);
    pawl__duck_disconnect(conn);
    pawl__duck_close(db);
    return number;
}

/* --- from a file into a table --- */

static void test_every_line_is_a_row_once_however_often_it_runs(void **state)
{
    struct fixture *f = *state;

    add_lines(f, 1, 3000);
    for (int run = 1; run <= 3; run++) {
        open_delivery(f);
        assert_ok(add_file(f, "orders", ""), &f->error);
        drain(f, "orders");
        const pawl_pipeline_status *status = look(f, "orders");
        assert_int_equal(status->accepted, 3000 + 10 * (run - 1));
        assert_int_equal(status->delivered, 3000 + 10 * (run - 1));
        assert_int_equal(status->sequence, 3000 + 10 * (run - 1));
        assert_string_equal(f->pairing, run == 1 ? "first" : "resume");
        close_delivery(f);
        add_lines(f, 3000 + 10 * run - 9, 3000 + 10 * run);
    }
    assert_int_equal(count(f, "SELECT count(*) FROM orders"), 3020);
    assert_int_equal(count(f, "SELECT count(DISTINCT payload->>'n') FROM orders"), 3020);
    assert_int_equal(count(f, "SELECT count(DISTINCT transaction_id) FROM orders"), 3020);
}

static void test_lines_that_are_no_events_are_failed_events(void **state)
{
    struct fixture *f = *state;

    add_text(f, "{\"n\": 1}\nnot json\n\n{\"n\": \"two\"}\n{\"n\": 3}\n");
    open_delivery(f);
    assert_ok(
        add_file(f,
                 "typed",
                 ", \"columns\": [{\"name\": \"n\", \"type\": \"BIGINT\", \"required\": true}]"),
        &f->error);
    drain(f, "typed");
    assert_int_equal(look(f, "typed")->delivered, 2);
    assert_int_equal(f->seen.failed, 2);
    close_delivery(f);
    assert_int_equal(count(f, "SELECT sum(n)::BIGINT FROM typed"), 4);
    assert_int_equal(count(f, "SELECT count(*) FROM failed_events"), 2);
}

static void test_ids_of_the_producer_make_lines_duplicates_and_conflicts(void **state)
{
    struct fixture *f = *state;

    add_text(f,
             "{\"id\": \"a\", \"v\": 1}\n{\"id\": \"a\", \"v\": 1}\n{\"id\": \"a\", \"v\": 2}\n"
             "{\"id\": \"b\", \"v\": 1}\n");
    open_delivery(f);
    assert_ok(add_file(f, "ids", ", \"id_field\": \"id\", \"source\": \"shop\""), &f->error);
    drain(f, "ids");
    assert_int_equal(look(f, "ids")->delivered, 2);
    assert_int_equal(f->seen.failed, 1);
    assert_int_equal(f->seen.duplicates, 1);
    assert_int_equal(f->seen.conflicts, 1);
    close_delivery(f);
    assert_int_equal(count(f, "SELECT count(*) FROM ids WHERE transaction_id = 'shop:a:0'"), 1);
    assert_int_equal(
        count(f, "SELECT count(*) FROM failed_events WHERE failure_reason = 'conflict'"), 1);
}

static void test_a_last_line_without_its_end_is_told_and_delivered_later(void **state)
{
    struct fixture *f = *state;

    add_text(f, "{\"n\": 1}\n{\"n\":");
    open_delivery(f);
    assert_ok(add_file(f, "rest", ""), &f->error);
    assert_ok(pawl_pipeline_start(f->delivery, "rest", &f->error), &f->error);
    assert_status(pawl_pipeline_drain(f->delivery, "rest", WAIT_MS, NULL, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "(5 bytes) has no line feed");
    assert_int_equal(look(f, "rest")->delivered, 1);
    add_text(f, " 2}\n");
    f->error = (pawl_error)PAWL_ERROR_INIT;
    drain(f, "rest"); /* it runs already */
    assert_int_equal(look(f, "rest")->delivered, 2);
}

static void test_a_changed_file_is_refused_until_a_generation_is_named(void **state)
{
    struct fixture *f = *state;

    add_lines(f, 1, 100);
    open_delivery(f);
    assert_ok(add_file(f, "days", ""), &f->error);
    drain(f, "days");
    close_delivery(f);
    file_write(f->lines, "{\"n\": 7}\n", 9);
    open_delivery(f);
    assert_status(pawl_pipeline_start(f->delivery, "days", &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "name another --generation than '1'");
    assert_int_equal(look(f, "days")->state, PAWL_PIPELINE_FAILED);
    assert_int_equal(f->seen.delivered, 100);
    assert_non_null(strstr(f->last_error, "has become shorter"));
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(add_file(f, "days", ", \"generation\": \"2\""), &f->error);
    drain(f, "days");
    assert_int_equal(look(f, "days")->delivered, 101);
    assert_status(add_file(f, "days", ", \"generation\": \"1\""), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "was followed by '2'");
    close_delivery(f);
    assert_int_equal(count(f, "SELECT count(*) FROM delivery_losses"), 0); /* nothing was lost */
}

/* --- declarations --- */

static void test_what_may_not_change_is_a_conflict_once_something_was_delivered(void **state)
{
    struct fixture *f = *state;

    add_lines(f, 1, 2);
    open_delivery(f);
    assert_ok(add_json(f, "{\"name\": \"p\", \"from\": \"nats://127.0.0.1:1\", \"stream\": \"S\"}"),
              &f->error);
    assert_ok(add_json(f, "{\"name\": \"p\", \"from\": \"file:%s\"}", f->lines), &f->error);
    drain(f, "p");
    assert_status(
        add_json(f, "{\"name\": \"p\", \"from\": \"ledger:x.db\"}"), PAWL_CONFLICT, &f->error);
    assert_status(
        add_json(f, "{\"name\": \"p\", \"from\": \"file:%s\", \"source\": \"s\"}", f->lines),
        PAWL_CONFLICT,
        &f->error);
    assert_message(&f->error, "has source 'p', which cannot change");
    assert_status(
        add_json(f, "{\"name\": \"p\", \"from\": \"file:%s\", \"id_field\": \"id\"}", f->lines),
        PAWL_CONFLICT,
        &f->error);
    assert_status(add_json(f, "{\"name\": \"p\", \"from\": \"file:%s.other\"}", f->lines),
                  PAWL_CONFLICT,
                  &f->error);
    assert_message(&f->error, "name another --generation");
    assert_status(add_json(f, "{\"name\": \"q\", \"from\": \"file:%s\"}", f->lines),
                  PAWL_CONFLICT,
                  &f->error); /* the table is p's */
    assert_int_equal(look(f, "p")->state, PAWL_PIPELINE_RUNNING);
}

static void test_a_bad_declaration_is_refused_by_its_field(void **state)
{
    static const struct {
        const char *json;
        const char *says;
    } bad[] = {
        { "", "line 1" },
        { "[]", "expected an object" },
        { "{}", "name: missing" },
        { "{\"name\": \"x\"}", "from: missing" },
        { "{\"name\": \"../x\", \"from\": \"-\", \"source\": \"s\"}", "a pipeline's name has" },
        { "{\"name\": \"x\", \"from\": \"http://x\"}", "from: allowed are" },
        { "{\"name\": \"x\", \"from\": \"file:\"}", "from: allowed are" },
        { "{\"name\": \"x\", \"from\": \"-\"}", "source: missing" },
        { "{\"name\": \"x\", \"from\": \"-\", \"source\": \"a:b\"}", "source" },
        { "{\"name\": \"x\", \"from\": \"nats://h\"}", "stream: missing" },
        { "{\"name\": \"x\", \"from\": \"nats://h\", \"stream\": \"S\", \"create_stream\": true}",
          "subject: missing" },
        { "{\"name\": \"x\", \"from\": \"file:a\", \"stream\": \"S\"}", "stream: only for" },
        { "{\"name\": \"x\", \"from\": \"ledger:a\", \"generation\": \"2\"}",
          "generation: only for" },
        { "{\"name\": \"x\", \"from\": \"file:a\", \"colums\": []}", "colums" },
        { "{\"name\": \"x\", \"from\": \"file:a\", \"columns\": [{\"name\": \"a\", \"type\": "
          "\"INT\"}]}",
          "columns[0].type" },
        { "{\"name\": \"x\", \"from\": \"file:a\", \"into\": \"a b\"}", "a b" },
    };
    struct fixture *f = *state;

    open_delivery(f);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(add_json(f, "%s", bad[i].json), PAWL_INVALID, &f->error);
        assert_message(&f->error, bad[i].says);
    }
    assert_status(
        pawl_pipeline_add(f->delivery, (pawl_view){ NULL, 3 }, &f->error), PAWL_INVALID, &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl_pipeline_list(f->delivery, NULL, see, f, &f->error), &f->error);
    assert_int_equal(f->visited, 0);
}

static void test_declarations_outlive_the_handle_and_damage_is_named(void **state)
{
    struct fixture *f = *state;
    char path[TEMPDIR_SIZE + 64];

    open_delivery(f);
    assert_ok(add_json(f,
                       "{\"name\": \"b\", \"from\": \"nats://u:secret@127.0.0.1:1\", \"stream\": "
                       "\"S\", \"into\": \"b\"}"),
              &f->error);
    assert_ok(add_file(f, "a", ""), &f->error);
    assert_ok(pawl_pipeline_pause(f->delivery, "a", &f->error), &f->error);
    close_delivery(f);
    open_delivery(f);
    assert_int_equal(look(f, "a")->state, PAWL_PIPELINE_PAUSED);
    assert_int_equal(look(f, "b")->state, PAWL_PIPELINE_STOPPED);
    f->visited = 0;
    assert_ok(pawl_pipeline_list(f->delivery, NULL, see, f, &f->error), &f->error);
    assert_int_equal(f->visited, 2);
    pawl_page page = PAWL_PAGE_INIT;
    page.limit = 1;
    f->visited = 0;
    assert_ok(pawl_pipeline_list(f->delivery, &page, see, f, &f->error), &f->error);
    assert_int_equal(f->visited, 1);
    assert_true(page.more);
    assert_string_equal(page.from_id, "b");
    assert_ok(pawl_pipeline_list(f->delivery, &page, see, f, &f->error), &f->error);
    assert_int_equal(f->visited, 2);
    assert_false(page.more);
    close_delivery(f);
    snprintf(path, sizeof(path), "%s/pipelines/a.json", f->dir);
    file_write(path, "{\"version\": 99}", 15);
    assert_status(
        pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), PAWL_UNSUPPORTED, &f->error);
    file_write(path, "{\"version\": 1", 13);
    assert_status(
        pawl_delivery_open(f->dir, NULL, &f->delivery, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "a.json");
    assert_null(f->delivery);
}

static bool see_from(void *context, const pawl_pipeline_status *status)
{
    snprintf(context, 200, "%.*s", VIEW_ARGS(status->from));
    return true;
}

static void test_a_password_is_not_shown(void **state)
{
    struct fixture *f = *state;
    char from[200] = "";

    open_delivery(f);
    assert_ok(add_json(f,
                       "{\"name\": \"b\", \"from\": \"nats://u:secret@127.0.0.1:1\", \"stream\": "
                       "\"S\"}"),
              &f->error);
    assert_ok(pawl_pipeline_get(f->delivery, "b", see_from, from, &f->error), &f->error);
    assert_string_equal(from, "nats://127.0.0.1:1");
}

/* --- running, pausing, removing --- */

static void test_pause_and_resume_while_others_run(void **state)
{
    struct fixture *f = *state;

    add_lines(f, 1, 500);
    open_delivery(f);
    assert_ok(add_file(f, "a", ""), &f->error);
    assert_ok(add_file(f, "b", ""), &f->error);
    assert_ok(pawl_delivery_start(f->delivery, &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, "a", WAIT_MS, NULL, &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, "b", WAIT_MS, NULL, &f->error), &f->error);
    assert_ok(pawl_pipeline_pause(f->delivery, "a", &f->error), &f->error);
    add_lines(f, 501, 600);
    assert_ok(pawl_pipeline_drain(f->delivery, "b", WAIT_MS, NULL, &f->error), &f->error);
    assert_int_equal(look(f, "a")->delivered, 500);
    assert_int_equal(f->seen.state, PAWL_PIPELINE_PAUSED);
    assert_int_equal(look(f, "b")->delivered, 600);
    assert_status(pawl_pipeline_start(f->delivery, "a", &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "is paused");
    assert_status(
        pawl_pipeline_drain(f->delivery, "a", WAIT_MS, NULL, &f->error), PAWL_CONFLICT, &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl_pipeline_resume(f->delivery, "a", &f->error), &f->error);
    assert_ok(pawl_pipeline_drain(f->delivery, "a", WAIT_MS, NULL, &f->error), &f->error);
    assert_int_equal(look(f, "a")->delivered, 600);
}

static void test_one_that_is_removed_and_added_again_delivers_nothing_twice(void **state)
{
    struct fixture *f = *state;

    add_lines(f, 1, 50);
    open_delivery(f);
    assert_ok(add_file(f, "a", ""), &f->error);
    drain(f, "a");
    assert_ok(pawl_pipeline_remove(f->delivery, "a", false, &f->error), &f->error);
    assert_status(
        pawl_pipeline_get(f->delivery, "a", see, f, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_status(
        pawl_pipeline_remove(f->delivery, "a", false, &f->error), PAWL_NOT_FOUND, &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(add_file(f, "a", ""), &f->error);
    drain(f, "a");
    assert_int_equal(look(f, "a")->delivered, 50);
    assert_string_equal(f->pairing, "adopt");
    close_delivery(f);
    assert_int_equal(count(f, "SELECT count(*) FROM a"), 50);
}

static void test_a_pipeline_that_cannot_be_opened_is_tried_again_in_a_node(void **state)
{
    struct fixture *f = *state;

    open_delivery(f);
    assert_ok(add_json(f, "{\"name\": \"n\", \"from\": \"nats://127.0.0.1:1\", \"stream\": \"S\"}"),
              &f->error);
    assert_status(pawl_pipeline_start(f->delivery, "n", &f->error), PAWL_UNAVAILABLE, &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl_delivery_start(f->delivery, &f->error), &f->error);
    do {
        look(f, "n");
    } while (f->last_error[0] == '\0');
    assert_int_equal(f->seen.state, PAWL_PIPELINE_STARTING);
    assert_non_null(strstr(f->last_error, "cannot connect"));
}

static void test_a_directory_has_one_owner(void **state)
{
    struct fixture *f = *state;
    pawl_delivery *second = NULL;

    open_delivery(f);
    assert_status(pawl_delivery_open(f->dir, NULL, &second, &f->error), PAWL_BUSY, &f->error);
    assert_null(second);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    close_delivery(f);
    open_delivery(f);
}

/* --- waiting --- */

static bool stop_watching(void *context, uint64_t done, uint64_t total)
{
    assert_int_equal(done, 0);
    assert_int_equal(total, 0);
    ++*(int *)context;
    return false;
}

static void test_a_drain_ends_by_time_by_its_watcher_and_with_the_handle(void **state)
{
    struct fixture *f = *state;
    int fds[2];
    int watched = 0;
    const pawl_watch watch = { sizeof(pawl_watch), stop_watching, &watched };

    open_delivery(f);
    assert_int_equal(pipe(fds), 0);
    int before = dup(STDIN_FILENO);
    assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO); /* a writer that does not end */
    assert_ok(add_json(f, "{\"name\": \"s\", \"from\": \"-\", \"source\": \"s\"}"), &f->error);
    assert_ok(pawl_pipeline_start(f->delivery, "s", &f->error), &f->error);
    assert_status(
        pawl_pipeline_drain(f->delivery, "s", 50, NULL, &f->error), PAWL_TIMEOUT, &f->error);
    assert_status(
        pawl_pipeline_drain(f->delivery, "s", 0, &watch, &f->error), PAWL_CANCELLED, &f->error);
    assert_int_equal(watched, 1);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    close_delivery(f);
    dup2(before, STDIN_FILENO);
    close(before);
    close(fds[0]);
    close(fds[1]);
}

struct closing {
    pawl_delivery *delivery;
    pawl_status status;
};

static bool close_inside(void *context, const pawl_pipeline_status *status)
{
    struct closing *closing = context;

    (void)status;
    closing->status = pawl_delivery_close(closing->delivery, 1, NULL);
    return true;
}

static void test_a_visitor_cannot_close_but_may_call(void **state)
{
    struct fixture *f = *state;

    open_delivery(f);
    assert_ok(add_file(f, "a", ""), &f->error);
    struct closing closing = { f->delivery, PAWL_OK };
    assert_ok(pawl_pipeline_list(f->delivery, NULL, close_inside, &closing, &f->error), &f->error);
    assert_int_equal(closing.status, PAWL_INVALID);
    look(f, "a");
}

/* --- the log, SQL, a dry run --- */

struct entries {
    uint64_t count;
    uint64_t stop_after;
    char states[16];
};

static bool see_entry(void *context, const pawl_wal_entry *entry)
{
    struct entries *entries = context;

    snprintf(entries->states, sizeof(entries->states), "%s", pawl_wal_state_name(entry->state));
    return ++entries->count != entries->stop_after;
}

static void test_the_log_is_read_while_it_runs_and_after(void **state)
{
    struct fixture *f = *state;
    pawl_wal_status status = PAWL_WAL_STATUS_INIT;
    pawl_wal_filter filter = PAWL_WAL_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    struct entries entries = { .count = 0 };

    add_lines(f, 1, 1200);
    open_delivery(f);
    assert_ok(add_file(f, "a", ""), &f->error);
    assert_ok(pawl_wal_get_status(f->delivery, "a", &status, &f->error), &f->error);
    assert_int_equal(status.last_lsn, 0);
    drain(f, "a");
    assert_ok(pawl_wal_read(f->delivery, "a", NULL, NULL, see_entry, &entries, &f->error),
              &f->error);
    assert_int_equal(entries.count, 1200); /* more than a page */
    assert_string_equal(entries.states, "confirmed");
    entries = (struct entries){ .stop_after = 7 };
    assert_ok(pawl_wal_read(f->delivery, "a", NULL, NULL, see_entry, &entries, &f->error),
              &f->error);
    assert_int_equal(entries.count, 7);
    entries = (struct entries){ .count = 0 };
    page.from = 100;
    filter.to = 109;
    assert_ok(pawl_wal_read(f->delivery, "a", &filter, &page, see_entry, &entries, &f->error),
              &f->error);
    assert_int_equal(entries.count, 10);
    assert_false(page.more);
    entries = (struct entries){ .count = 0 };
    page.from = 100;
    page.limit = 4;
    for (uint64_t pages = 1; pages <= 3; pages++) {
        assert_ok(pawl_wal_read(f->delivery, "a", &filter, &page, see_entry, &entries, &f->error),
                  &f->error);
        assert_int_equal(page.more, pages < 3);
        assert_int_equal(entries.count, MIN(pages * 4, UINT64_C(10)));
    }
    filter = (pawl_wal_filter)PAWL_WAL_FILTER_INIT;
    filter.pending = true;
    entries = (struct entries){ .count = 0 };
    assert_ok(pawl_wal_read(f->delivery, "a", &filter, NULL, see_entry, &entries, &f->error),
              &f->error);
    assert_int_equal(entries.count, 0);
    assert_ok(pawl_wal_get_status(f->delivery, "a", &status, &f->error), &f->error);
    assert_int_equal(status.last_lsn, 1200);
    assert_int_equal(status.confirmed, 1200);
    assert_ok(pawl_pipeline_pause(f->delivery, "a", &f->error), &f->error); /* with a checkpoint */
    assert_ok(pawl_wal_get_status(f->delivery, "a", &status, &f->error), &f->error);
    assert_int_equal(status.confirmed, 0);
    assert_int_equal(status.last_lsn, 1200);
}

static bool see_row(void *context, const pawl_query_row *row)
{
    char *text = context;

    for (size_t i = 0; i < row->count; i++) {
        size_t len = strlen(text);
        snprintf(&text[len], 400 - len, "%s=%.*s ", row->names[i], VIEW_ARGS(row->cells[i].text));
    }
    return true;
}

static void test_sql_reads_within_its_limits(void **state)
{
    struct fixture *f = *state;
    pawl_query_options options = PAWL_QUERY_OPTIONS_INIT;
    char text[400] = "";

    assert_status(pawl_delivery_query(f->dir, "SELECT 1", NULL, see_row, text, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    add_lines(f, 1, 3);
    open_delivery(f);
    assert_ok(add_file(f, "a", ""), &f->error);
    drain(f, "a");
    assert_status(pawl_delivery_query(f->dir, "SELECT 1", NULL, see_row, text, &f->error),
                  PAWL_BUSY,
                  &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    close_delivery(f);
    assert_ok(pawl_delivery_query(f->dir,
                                  "SELECT count(*) AS n, sum((payload->>'n')::INT) AS s FROM a;",
                                  NULL,
                                  see_row,
                                  text,
                                  &f->error),
              &f->error);
    assert_string_equal(text, "n=3 s=6 ");
    options.timeout_ms = 1;
    assert_status(
        pawl_delivery_query(f->dir,
                            "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b",
                            &options,
                            see_row,
                            text,
                            &f->error),
        PAWL_TIMEOUT,
        &f->error);
    assert_status(pawl_delivery_query(f->dir, "DROP TABLE a", NULL, see_row, text, &f->error),
                  PAWL_DENIED,
                  &f->error);
}

static bool see_json(void *context, const pawl_view *json)
{
    char *text = context;

    snprintf(text, 400, "%.*s", VIEW_ARGS(*json));
    return false;
}

static void test_a_preview_shows_rows_and_writes_nothing(void **state)
{
    struct fixture *f = *state;
    char json[400];
    char text[400] = "";

    add_lines(f, 7, 9);
    snprintf(json,
             sizeof(json),
             "{\"name\": \"p\", \"from\": \"file:%s\", \"columns\": [{\"name\": \"n\", \"type\": "
             "\"BIGINT\"}]}",
             f->lines);
    assert_ok(pawl_pipeline_preview(pawl_view_of(json), 10, see_json, text, &f->error), &f->error);
    assert_non_null(strstr(text, "\"verdict\":\"row\",\"row\":{\"n\":7}"));
    assert_int_equal(access(f->duckdb, F_OK), -1);
    assert_status(pawl_pipeline_preview(
                      pawl_view_of("{\"name\": \"p\", \"from\": \"nats://h\", \"stream\": \"S\"}"),
                      10,
                      see_json,
                      text,
                      &f->error),
                  PAWL_UNSUPPORTED,
                  &f->error);
}

/* --- without memory --- */

static void test_a_declaration_without_memory_is_refused_whole(void **state)
{
    static const char json[] =
        "{\"name\": \"a\", \"from\": \"file:/srv/a.jsonl\", \"columns\": [{\"name\": \"n\"}]}";

    (void)state;
    FAULT_WALK (walk) {
        AUTO(pawl__buf_done) struct pawl__buf stored = BUF_INIT(1 << 16);
        struct delivery_declared declared = { .paused = false };
        struct delivery_declared again = { .paused = false };
        pawl_status status = pawl__delivery_declare(pawl_view_of(json), &declared, NULL);
        if (status == PAWL_OK) {
            pawl__delivery_declared_write(&declared, &stored);
            status = pawl__buf_check(&stored, "it", NULL);
        }
        if (status == PAWL_OK) {
            status = pawl__delivery_declared_read(pawl__buf_view(&stored), &again, NULL);
        }
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
        pawl__delivery_declared_done(&declared);
        pawl__delivery_declared_done(&again);
    }
}

/* --- what a caller may do wrong --- */

#define REFUSED(call, words)                         \
    do {                                             \
        pawl_error error = PAWL_ERROR_INIT;          \
        assert_status((call), PAWL_INVALID, &error); \
        assert_message(&error, words);               \
    } while (0)

static void test_a_null_argument_is_invalid_by_its_name(void **state)
{
    struct fixture *f = *state;
    pawl_wal_status status = PAWL_WAL_STATUS_INIT;
    pawl_pipeline_status wrong = { .size = sizeof(wrong), .state = (pawl_pipeline_state)9 };
    pawl_wal_entry entry = { .size = sizeof(entry), .state = (pawl_wal_state)9 };
    pawl_delivery *delivery = NULL;
    char *json = NULL;

    open_delivery(f);
    pawl_delivery *d = f->delivery;
    REFUSED(pawl_delivery_open(NULL, NULL, &delivery, &error), "dir: is NULL");
    REFUSED(pawl_delivery_open("", NULL, &delivery, &error), "dir: is empty");
    REFUSED(pawl_delivery_open(f->dir, NULL, NULL, &error), "ret_delivery: is NULL");
    REFUSED(pawl_delivery_start(NULL, &error), "delivery: is NULL");
    REFUSED(pawl_pipeline_add(NULL, pawl_view_of("{}"), &error), "delivery: is NULL");
    REFUSED(pawl_pipeline_remove(d, NULL, false, &error), "name: is NULL");
    REFUSED(pawl_pipeline_start(d, NULL, &error), "name: is NULL");
    REFUSED(pawl_pipeline_pause(NULL, "a", &error), "delivery: is NULL");
    REFUSED(pawl_pipeline_resume(d, NULL, &error), "name: is NULL");
    REFUSED(pawl_pipeline_drain(d, NULL, 1, NULL, &error), "name: is NULL");
    REFUSED(pawl_pipeline_get(d, "a", NULL, NULL, &error), "visit: is NULL");
    REFUSED(pawl_pipeline_list(d, NULL, NULL, NULL, &error), "visit: is NULL");
    REFUSED(pawl_pipeline_to_json(NULL, &json, NULL, &error), "status: is NULL");
    REFUSED(pawl_pipeline_to_json(&wrong, &json, NULL, &error), "status.state: is 9");
    REFUSED(pawl_pipeline_preview((pawl_view){ NULL, 1 }, 1, see_json, NULL, &error),
            "declaration");
    REFUSED(pawl_pipeline_preview(pawl_view_of("{}"), 0, see_json, NULL, &error), "limit");
    REFUSED(pawl_pipeline_preview(pawl_view_of("{}"), 1, NULL, NULL, &error), "visit: is NULL");
    REFUSED(pawl_wal_get_status(d, NULL, &status, &error), "name: is NULL");
    REFUSED(pawl_wal_get_status(d, "a", NULL, &error), "ret_status: is NULL");
    status.size = 0;
    REFUSED(pawl_wal_get_status(d, "a", &status, &error), "ret_status");
    REFUSED(pawl_wal_read(d, "a", NULL, NULL, NULL, NULL, &error), "visit: is NULL");
    REFUSED(pawl_wal_entry_to_json(NULL, &json, NULL, &error), "entry: is NULL");
    REFUSED(pawl_wal_entry_to_json(&entry, &json, NULL, &error), "entry.state: is 9");
    REFUSED(pawl_delivery_query(NULL, "SELECT 1", NULL, see_row, NULL, &error), "dir: is NULL");
    REFUSED(pawl_delivery_query(f->dir, "", NULL, see_row, NULL, &error), "sql: is empty");
    REFUSED(pawl_delivery_query(f->dir, "SELECT 1", NULL, NULL, NULL, &error), "visit: is NULL");
    assert_string_equal(pawl_pipeline_state_name((pawl_pipeline_state)-1), "unknown");
    assert_string_equal(pawl_wal_state_name((pawl_wal_state)7), "unknown");
    assert_int_equal(pawl_delivery_close(NULL, 0, NULL), PAWL_OK);
}

static void test_options_out_of_range_are_invalid_by_their_name(void **state)
{
    struct fixture *f = *state;
    pawl_delivery_options options = PAWL_DELIVERY_OPTIONS_INIT;

#define WRONG(member, value)                                     \
    options = (pawl_delivery_options)PAWL_DELIVERY_OPTIONS_INIT; \
    options.member = (value);                                    \
    REFUSED(pawl_delivery_open(f->dir, &options, &f->delivery, &error), #member)
    WRONG(close_ms_max, 0);
    WRONG(memory_max, 1);
    WRONG(batch_max, 0);
    WRONG(batch_max, 1000001);
    WRONG(compactors, 1);
    WRONG(memtable_bytes, 1);
    WRONG(blob_file_bytes, 1);
    WRONG(retry_interval_ms, 0);
    WRONG(retry_backoff_ms, 0);
    WRONG(retries_max, 0);
    WRONG(lease_ms, 999);
    WRONG(entry_ttl_ms, 999);
    WRONG(entry_ttl_ms, UINT64_MAX);
    WRONG(pending_bytes_max, 0);
    WRONG(failed_bytes_max, 0);
    options = (pawl_delivery_options)PAWL_DELIVERY_OPTIONS_INIT;
    options.size = 0;
    REFUSED(pawl_delivery_open(f->dir, &options, &f->delivery, &error), "size");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_every_line_is_a_row_once_however_often_it_runs),
        TEST(test_lines_that_are_no_events_are_failed_events),
        TEST(test_ids_of_the_producer_make_lines_duplicates_and_conflicts),
        TEST(test_a_last_line_without_its_end_is_told_and_delivered_later),
        TEST(test_a_changed_file_is_refused_until_a_generation_is_named),
        TEST(test_what_may_not_change_is_a_conflict_once_something_was_delivered),
        TEST(test_a_bad_declaration_is_refused_by_its_field),
        TEST(test_declarations_outlive_the_handle_and_damage_is_named),
        TEST(test_a_password_is_not_shown),
        TEST(test_pause_and_resume_while_others_run),
        TEST(test_one_that_is_removed_and_added_again_delivers_nothing_twice),
        TEST(test_a_pipeline_that_cannot_be_opened_is_tried_again_in_a_node),
        TEST(test_a_directory_has_one_owner),
        TEST(test_a_drain_ends_by_time_by_its_watcher_and_with_the_handle),
        TEST(test_a_visitor_cannot_close_but_may_call),
        TEST(test_the_log_is_read_while_it_runs_and_after),
        TEST(test_sql_reads_within_its_limits),
        TEST(test_a_preview_shows_rows_and_writes_nothing),
        TEST(test_a_declaration_without_memory_is_refused_whole),
        TEST(test_a_null_argument_is_invalid_by_its_name),
        TEST(test_options_out_of_range_are_invalid_by_their_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
