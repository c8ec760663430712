/* Import and export on every backend: what comes back is what went out, to the last field. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/os/clock.h"
#include "base/os/fs.h"

static const char *path_in(struct ledger_fixture *f, const char *name)
{
    static char paths[4][TEMPDIR_SIZE + 64];
    static size_t next;
    char *path = paths[next++ % COUNT_OF(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", f->dir, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Turns in all three states, a payload over several lines, times before 1970, odd letters. */
static void fill(struct ledger_fixture *f)
{
    static const char *const payloads[] = {
        "{\"a\": 1.50, \"b\":[1e2,null]}",
        "\"\\u00e9\\n\"",
        "{\n  \"pretty\": true\r\n}",
        " 7 ",
        "null",
    };

    pawl_turn *first = begin_turn(f, "q", 1);
    assert_ok(pawl_turn_commit(first, &f->err), &f->err);
    pawl_turn_free(first);
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        char id[8];
        snprintf(id, sizeof(id), "e-%zu", i);
        pawl_event event = event_of(id, (int64_t)i, payloads[i]);
        event.created_at_us = (int64_t)i * 1000001 - 2000000;
        event.created_at_us += event.created_at_us == 0; /* 0 would be now */
        event.schema_version = (int64_t)i + 1;
        event.actor = pawl_view_of("z\xC3\xBC\"\\\t\xE2\x80\xA8");
        assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
    }
    pawl_turn *lost = begin_turn(f, "r", 9);
    turn_says(f, lost, "1 2");
    pawl_turn *kept = begin_turn(f, "r", 9); /* abandons the first */
    turn_says(f, kept, "3");
    assert_ok(pawl_turn_commit(kept, &f->err), &f->err);
    pawl_turn *open = begin_turn(f, "r", 10);
    turn_says(f, open, "4");
    pawl_turn_free(lost);
    pawl_turn_free(kept);
    pawl_turn_free(open);
}

static pawl_ledger *other_ledger(struct ledger_fixture *f, const char *name)
{
    pawl_ledger *ledger = NULL;
    const char *location = strcmp(name, "memory:") == 0 ? name : path_in(f, name);

    assert_ok(pawl_ledger_open(location, NULL, &ledger, &f->err), &f->err);
    return ledger;
}

static bool add_turn(void *context, const pawl_turn_info *info)
{
    pawl__buf_add_format(context,
                         "%.*s %lld.%u %d %llu-%llu\n",
                         VIEW_ARGS(info->run_id),
                         (long long)info->turn,
                         info->attempt,
                         (int)info->state,
                         (unsigned long long)info->begin_offset,
                         (unsigned long long)info->end_offset);
    return true;
}

static char *turns_of(pawl_ledger *ledger, pawl_error *error)
{
    struct pawl__buf text = BUF_INIT(1 << 16);

    assert_ok(pawl_ledger_turns(ledger, pawl_view_of(NULL), NULL, add_turn, &text, error), error);
    return pawl__buf_steal(&text);
}

/* The head's hash covers every field of every event, so equal heads say that all are equal. */
static void assert_same(struct ledger_fixture *f, pawl_ledger *other)
{
    pawl_ledger_head head;
    pawl_ledger_head other_head;

    assert_ok(pawl_ledger_get_head(f->ledger, &head, &f->err), &f->err);
    assert_ok(pawl_ledger_get_head(other, &other_head, &f->err), &f->err);
    assert_int_equal(head.offset, other_head.offset);
    assert_memory_equal(head.hash, other_head.hash, sizeof(head.hash));
    char *turns = turns_of(f->ledger, &f->err);
    char *other_turns = turns_of(other, &f->err);
    assert_string_equal(turns, other_turns);
    free(turns);
    free(other_turns);
}

static void check_round_trip(struct ledger_fixture *f, const char *name, pawl_file_format format)
{
    static const char *const targets[] = { "memory:", "copy.db" };
    const char *path = path_in(f, name);
    pawl_import_report report = PAWL_IMPORT_REPORT_INIT;
    uint64_t count = 0;

    fill(f);
    assert_ok(pawl_ledger_export(f->ledger, path, format, NULL, NULL, &count, &f->err), &f->err);
    assert_int_equal(count, latest_offset(f));
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        pawl_ledger *copy = other_ledger(f, targets[i]);

        assert_ok(pawl_ledger_import(copy, path, format, NULL, &report, &f->err), &f->err);
        assert_int_equal(report.appended, count);
        assert_int_equal(report.duplicates, 0);
        assert_same(f, copy);
        assert_ok(pawl_ledger_import(copy, path, format, NULL, &report, &f->err), &f->err);
        assert_int_equal(report.appended, 0);
        assert_int_equal(report.duplicates, count);
        assert_same(f, copy);
        pawl_ledger_close(copy, 0, NULL);
    }
    assert_status(pawl_ledger_export(f->ledger, path, format, NULL, NULL, &count, &f->err),
                  PAWL_CONFLICT,
                  &f->err);
}

static void test_jsonl_brings_everything_back(void **state)
{
    check_round_trip(*state, "out.jsonl", PAWL_FORMAT_JSONL);
}

static void test_parquet_brings_everything_back(void **state)
{
    check_round_trip(*state, "it's *.parquet", PAWL_FORMAT_PARQUET);
}

static void test_a_copied_turn_goes_on(void **state)
{
    struct ledger_fixture *f = *state;
    const char *path = path_in(f, "out.jsonl");
    pawl_ledger *copy = other_ledger(f, "copy.db");
    pawl_turn *turn = NULL;
    pawl_event event = event_of("", 0, "5");

    fill(f);
    assert_ok(pawl_ledger_export(f->ledger, path, PAWL_FORMAT_JSONL, NULL, NULL, NULL, &f->err),
              &f->err);
    assert_ok(pawl_ledger_import(copy, path, PAWL_FORMAT_JSONL, NULL, NULL, &f->err), &f->err);
    assert_status(
        pawl_turn_begin(copy, pawl_view_of("r"), 9, &turn, &f->err), PAWL_CONFLICT, &f->err);
    assert_ok(pawl_turn_resume(copy, pawl_view_of("r"), 10, 1, 1, &turn, &f->err), &f->err);
    assert_ok(pawl_turn_append(turn, &event, 1, NULL, &f->err), &f->err);
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    pawl_turn_free(turn);
    pawl_ledger_close(copy, 0, NULL);
}

static void test_an_export_has_what_the_filter_lets_through(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    uint64_t count = 99;

    fill(f);
    filter.run_id = pawl_view_of("r");
    filter.turn_min = 1;
    filter.turn_max = 2;
    assert_ok(
        pawl_ledger_export(
            f->ledger, path_in(f, "some.jsonl"), PAWL_FORMAT_JSONL, &filter, NULL, &count, &f->err),
        &f->err);
    assert_int_equal(count, 2);
}

static void test_an_empty_ledger_gives_an_empty_file(void **state)
{
    struct ledger_fixture *f = *state;
    const char *const names[] = { "none.jsonl", "none.parquet" };
    pawl_import_report report = PAWL_IMPORT_REPORT_INIT;
    uint64_t count = 99;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *path = path_in(f, names[i]);
        pawl_file_format format = i == 0 ? PAWL_FORMAT_JSONL : PAWL_FORMAT_PARQUET;

        assert_ok(pawl_ledger_export(f->ledger, path, format, NULL, NULL, &count, &f->err),
                  &f->err);
        assert_int_equal(count, 0);
        assert_ok(pawl_ledger_import(f->ledger, path, format, NULL, &report, &f->err), &f->err);
        assert_int_equal(report.appended + report.duplicates, 0);
    }
}

#define LINE(id, payload) \
    "{\"id\":\"" id       \
    "\",\"run_id\":\"r\",\"turn\":0,\"kind\":\"k\",\"actor\":\"a\",\"payload\":" payload "}\n"

static void test_a_bad_line_is_named_and_what_came_before_it_stays(void **state)
{
    struct ledger_fixture *f = *state;
    const char *path = path_in(f, "in.jsonl");
    pawl_import_report report = { .size = sizeof(pawl_import_report) };
    static const struct {
        const char *line;
        pawl_status status;
        const char *message;
    } cases[] = {
        { "{\"id\":\n", PAWL_INVALID, "line 4: column" },
        { LINE("bad", "{x}"), PAWL_INVALID, "line 4: payload:" },
        { LINE("a", "2"), PAWL_CONFLICT, "line 4: id 'a' is taken" },
        { "{\"id\":\"x\",\"run_id\":\"r\",\"turn\":1,\"kind\":\"pawl.turn.commit\","
          "\"actor\":\"pawl\",\"payload\":{\"attempt\":1}}\n",
          PAWL_INVALID,
          "line 4: id: is not 't-" },
        { LINE("bad", "1") LINE("bad", "2"), PAWL_CONFLICT, "line 5: id 'bad' is taken" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pawl__buf text = BUF_INIT(4096);
        char name[] = "a0";

        name[1] = (char)('0' + i);
        pawl__buf_add_format(&text, LINE("a", "1") "\n" LINE("%s", "1"), name);
        pawl__buf_add_text(&text, cases[i].line);
        pawl__buf_add_text(&text, LINE("behind", "1"));
        write_file(path, text.data);
        pawl__buf_done(&text);
        assert_status(
            pawl_ledger_import(f->ledger, path, PAWL_FORMAT_JSONL, NULL, &report, &f->err),
            cases[i].status,
            &f->err);
        assert_message(&f->err, cases[i].message);
        assert_int_equal(report.appended, i == 0 ? 2 : i == 4 ? 2 : 1);
        assert_int_equal(report.duplicates, i == 0 ? 0 : 1);
    }
}

static void test_turns_that_do_not_fit_are_refused(void **state)
{
    struct ledger_fixture *f = *state;
    const char *path = path_in(f, "out.jsonl");
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_ledger *copy = other_ledger(f, "copy.db");
    pawl_ledger_head head;

    fill(f);
    filter.run_id = pawl_view_of("r");
    filter.kind = pawl_view_of("pawl.turn.commit");
    assert_ok(pawl_ledger_export(f->ledger, path, PAWL_FORMAT_JSONL, &filter, NULL, NULL, &f->err),
              &f->err);
    assert_status(pawl_ledger_import(copy, path, PAWL_FORMAT_JSONL, NULL, NULL, &f->err),
                  PAWL_CONFLICT,
                  &f->err);
    assert_message(
        &f->err,
        "line 1: a pawl.turn.commit of attempt 2 at turn 9 of run 'r', which has no attempt here");
    assert_ok(pawl_ledger_get_head(copy, &head, &f->err), &f->err);
    assert_int_equal(head.offset, 0);
    pawl_ledger_close(copy, 0, NULL);
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return false;
}

static void test_an_export_that_is_stopped_leaves_no_file(void **state)
{
    struct ledger_fixture *f = *state;
    const char *path = path_in(f, "sub");
    const pawl_watch stops = { sizeof(pawl_watch), stop_at_once, NULL };

    fill(f);
    assert_int_equal(mkdir(path, 0700), 0);
    path = path_in(f, "sub/out.jsonl");
    for (int format = PAWL_FORMAT_JSONL; format <= PAWL_FORMAT_PARQUET; format++) {
        assert_status(pawl_ledger_export(
                          f->ledger, path, (pawl_file_format)format, NULL, &stops, NULL, &f->err),
                      PAWL_CANCELLED,
                      &f->err);
    }
    assert_int_equal(rmdir(path_in(f, "sub")), 0);
}

static void make_seed(const char *path, const char *rows)
{
    struct pawl__buf sql = BUF_INIT(1 << 16);
    sqlite3 *db = NULL;

    pawl__buf_add_format(
        &sql,
        "PRAGMA journal_mode=WAL;"
        "CREATE TABLE events (offset INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
        " run_id TEXT NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL,"
        " payload TEXT NOT NULL, created_at TEXT NOT NULL,"
        " schema_version INTEGER NOT NULL DEFAULT 1);"
        "INSERT INTO events (id, run_id, turn, kind, actor, payload, created_at) VALUES %s;",
        rows);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql.data, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    pawl__buf_done(&sql);
}

static void test_a_database_of_the_original_schema_is_imported(void **state)
{
    struct ledger_fixture *f = *state;
    const char *path = path_in(f, "seed.db");
    pawl_import_report report = PAWL_IMPORT_REPORT_INIT;
    static const char *const utc[] = {
        "2026-01-29T10:20:30.123456Z", "2026-01-29T10:20:30.500000Z", "2026-01-29T08:20:30.000000Z",
        "2026-01-29T10:20:30.000000Z", "2026-01-29T04:50:30.000000Z", "2026-01-29T10:20:00.000000Z",
        "2026-01-29T00:00:00.000000Z", "1970-01-01T00:00:00.000000Z",
    };

    make_seed(path,
              "('3f0c7d1e-1111-4222-8333-444455556666','r',1,'k','a','{\"n\": 1}',"
              "'2026-01-29T10:20:30.123456'),"
              "('b','r',1,'k','a','2','2026-01-29 10:20:30.5'),"
              "('c','r',1,'k','a','3','2026-01-29T10:20:30+02:00'),"
              "('d','r',1,'k','a','4','2026-01-29 10:20:30+00:00'),"
              "('e','r',1,'k','a','5','2026-01-29T10:20:30+0530'),"
              "('f','r',1,'k','a','6','2026-01-29T10:20'),"
              "('g','r',1,'k','a','7','2026-01-29'),"
              "('h','r',1,'k','a','8','1970-01-01T00:00:00Z')");
    assert_ok(pawl_ledger_import(f->ledger, path, PAWL_FORMAT_SEED_SQLITE, NULL, &report, &f->err),
              &f->err);
    assert_int_equal(report.appended, COUNT_OF(utc));
    for (size_t i = 0; i < COUNT_OF(utc); i++) {
        char text[PAWL__TIME_SIZE];
        pawl_event *event = NULL;

        assert_ok(pawl_ledger_get(f->ledger, pawl_view_of(NULL), i + 1, &event, &f->err), &f->err);
        pawl__time_rfc3339(event->created_at_us, text);
        assert_string_equal(text, utc[i]);
        assert_int_equal(event->schema_version, 1);
        if (i == 0) {
            assert_true(pawl__view_is(event->id, "3f0c7d1e-1111-4222-8333-444455556666"));
            assert_true(pawl__view_is(event->payload, "{\"n\": 1}"));
        }
        pawl_event_free(event);
    }
    assert_ok(pawl_ledger_import(f->ledger, path, PAWL_FORMAT_SEED_SQLITE, NULL, &report, &f->err),
              &f->err);
    assert_int_equal(report.duplicates, COUNT_OF(utc));
}

static void test_a_bad_row_of_the_original_schema_is_named_by_its_offset(void **state)
{
    struct ledger_fixture *f = *state;
    const char *path = path_in(f, "seed.db");
    pawl_import_report report = PAWL_IMPORT_REPORT_INIT;

    make_seed(path,
              "('a','r',1,'k','a','1','2026-01-29T10:20:30'),"
              "('b','r',1,'k','a','NaN','2026-01-29T10:20:30'),"
              "('c','r',1,'k','a','3','yesterday')");
    assert_status(
        pawl_ledger_import(f->ledger, path, PAWL_FORMAT_SEED_SQLITE, NULL, &report, &f->err),
        PAWL_INVALID,
        &f->err);
    assert_message(&f->err, "offset 2: payload:");
    assert_int_equal(report.appended, 1);
    make_seed(path_in(f, "seed2.db"), "('c','r',1,'k','a','3','yesterday')");
    assert_status(
        pawl_ledger_import(
            f->ledger, path_in(f, "seed2.db"), PAWL_FORMAT_SEED_SQLITE, NULL, &report, &f->err),
        PAWL_INVALID,
        &f->err);
    assert_message(&f->err, "offset 1: created_at: 'yesterday' is no time");
}

static void test_files_that_are_something_else_are_refused(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_head head;

    write_file(path_in(f, "text"), "hello\n");
    for (int format = PAWL_FORMAT_JSONL; format <= PAWL_FORMAT_SEED_SQLITE; format++) {
        pawl_file_format kind = (pawl_file_format)format;
        assert_status(pawl_ledger_import(f->ledger, path_in(f, "text"), kind, NULL, NULL, &f->err),
                      PAWL_INVALID,
                      &f->err);
        assert_status(pawl_ledger_import(f->ledger, path_in(f, "none"), kind, NULL, NULL, &f->err),
                      PAWL_NOT_FOUND,
                      &f->err);
    }
    assert_ok(pawl_ledger_get_head(f->ledger, &head, &f->err), &f->err);
    assert_int_equal(head.offset, 0);
}

static void test_opening_a_database_of_the_original_schema_names_the_import(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger *ledger = NULL;

    make_seed(path_in(f, "seed.db"), "('a','r',1,'k','a','1','2026-01-29T10:20:30')");
    assert_status(
        pawl_ledger_open(path_in(f, "seed.db"), NULL, &ledger, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "pawl ledger import");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_jsonl_brings_everything_back),
        LEDGER_TEST(test_parquet_brings_everything_back),
        LEDGER_TEST(test_a_copied_turn_goes_on),
        LEDGER_TEST(test_an_export_has_what_the_filter_lets_through),
        LEDGER_TEST(test_an_empty_ledger_gives_an_empty_file),
        LEDGER_TEST(test_a_bad_line_is_named_and_what_came_before_it_stays),
        LEDGER_TEST(test_turns_that_do_not_fit_are_refused),
        LEDGER_TEST(test_an_export_that_is_stopped_leaves_no_file),
        LEDGER_TEST(test_a_database_of_the_original_schema_is_imported),
        LEDGER_TEST(test_a_bad_row_of_the_original_schema_is_named_by_its_offset),
        LEDGER_TEST(test_files_that_are_something_else_are_refused),
        LEDGER_TEST(test_opening_a_database_of_the_original_schema_names_the_import),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
