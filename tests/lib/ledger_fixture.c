#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/ledger_sample.h"
#include "lib/pg_fixture.h"
#include "lib/pglite.h"

enum { TEXT_BYTES_MAX = 1 << 20 };

static const char *suite_backend;

/* One server for the program; each test begins with an empty database. */
static struct pg_fixture postgres;
static struct pglite pglite;

static pawl_status start_server(pawl_error *reterr)
{
    if (strcmp(suite_backend, "postgres") == 0) {
        return pg_server_start(
            &(struct pg_server_options){ .settings = NULL }, &postgres.server, reterr);
    }
    return strcmp(suite_backend, "pgvector") == 0 ? pglite_start(&pglite, reterr) : PAWL_OK;
}

static void stop_server(void)
{
    pg_server_free(postgres.server);
    pglite_stop(&pglite);
}

int ledger_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (argc != 2) {
        fprintf(stderr, "usage: %s memory|sqlite|postgres|pgvector\n", argv[0]);
        return 2;
    }
    suite_backend = argv[1];
    pawl_status status = start_server(&error);
    if (status == PAWL_UNSUPPORTED) {
        printf("1..0 # SKIP %s\n", error.message);
        return 0;
    }
    if (status != PAWL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    int failed = _cmocka_run_group_tests(suite_backend, tests, count, NULL, NULL);
    stop_server();
    return failed;
}

static bool is(const struct ledger_fixture *f, const char *backend)
{
    return strcmp(f->backend, backend) == 0;
}

int ledger_fixture_setup(void **state)
{
    struct ledger_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    *state = f;
    f->backend = suite_backend;
    assert_ok(tempdir_make(f->dir, "ledger", &f->err), &f->err);
    if (is(f, "memory")) {
        snprintf(f->location, sizeof(f->location), "memory:");
    } else if (is(f, "sqlite")) {
        snprintf(f->location, sizeof(f->location), "%s/ledger.db", f->dir);
    } else if (is(f, "postgres")) {
        pg_admin(&postgres, "DROP SCHEMA IF EXISTS pawl CASCADE");
        snprintf(f->location, sizeof(f->location), "%s", pg_server_url(postgres.server));
    } else if (is(f, "pgvector")) {
        assert_ok(pglite_admin(&pglite, "DROP SCHEMA IF EXISTS pawl CASCADE", &f->err), &f->err);
        snprintf(f->location, sizeof(f->location), "%s", pglite.url);
    } else {
        fail_msg("no backend '%s'", f->backend);
    }
    ledger_fixture_open(f, NULL);
    return 0;
}

int ledger_fixture_teardown(void **state)
{
    struct ledger_fixture *f = *state;

    pawl_ledger_close(f->ledger, 0, NULL);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

bool ledger_fixture_close(struct ledger_fixture *f)
{
    if (is(f, "memory")) {
        return false;
    }
    pawl_ledger_close(f->ledger, 0, NULL);
    f->ledger = NULL;
    return true;
}

void ledger_fixture_open(struct ledger_fixture *f, const pawl_ledger_options *options)
{
    assert_ok(pawl_ledger_open(f->location, options, &f->ledger, &f->err), &f->err);
}

bool ledger_fixture_sql(struct ledger_fixture *f, const char *sql)
{
    if (is(f, "postgres")) {
        pg_admin(&postgres, sql);
    } else if (is(f, "sqlite")) {
        sample_sql(f->location, sql);
    }
    return is(f, "postgres") || is(f, "sqlite");
}

pawl_event event_of(const char *id, int64_t turn, const char *payload)
{
    return (pawl_event){
        .size = sizeof(pawl_event),
        .id = pawl_view_of(id),
        .run_id = pawl_view_of("r"),
        .turn = turn,
        .kind = pawl_view_of("k"),
        .actor = pawl_view_of("a"),
        .payload = pawl_view_of(payload),
    };
}

uint64_t append_one(struct ledger_fixture *f, const char *id, int64_t turn, const char *payload)
{
    pawl_event event = event_of(id, turn, payload);
    pawl_append_result result = PAWL_APPEND_RESULT_INIT;

    assert_ok(pawl_ledger_append(f->ledger, &event, &result, &f->err), &f->err);
    return result.offset;
}

uint64_t latest_offset(struct ledger_fixture *f)
{
    uint64_t offset;

    assert_ok(pawl_ledger_latest_offset(f->ledger, &offset, &f->err), &f->err);
    return offset;
}

pawl_turn *begin_turn(struct ledger_fixture *f, const char *run_id, int64_t turn)
{
    pawl_turn *handle;

    assert_ok(pawl_turn_begin(f->ledger, pawl_view_of(run_id), turn, &handle, &f->err), &f->err);
    return handle;
}

void turn_says(struct ledger_fixture *f, pawl_turn *turn, const char *payloads)
{
    pawl_view rest = pawl_view_of(payloads);
    pawl_view payload;

    while (pawl__view_split(&rest, ' ', &payload)) {
        pawl_event event = { .size = sizeof(pawl_event),
                             .kind = pawl_view_of("k"),
                             .actor = pawl_view_of("a"),
                             .payload = payload };
        assert_ok(pawl_turn_append(turn, &event, 1, NULL, &f->err), &f->err);
    }
}

void add_event_line(struct pawl__buf *text, const pawl_event *event)
{
    pawl_view kind = event->kind;
    pawl_view taken;

    if (kind.len > 5 && memcmp(kind.data, "pawl.", 5) == 0) {
        assert_true(pawl__view_take(&kind, 5, &taken));
    }
    pawl__buf_add_format(text,
                         "%llu %.*s/%lld %.*s %.*s\n",
                         (unsigned long long)event->offset,
                         VIEW_ARGS(event->run_id),
                         (long long)event->turn,
                         VIEW_ARGS(kind),
                         VIEW_ARGS(event->payload));
}

void assert_text(struct pawl__buf *text, const char *expected)
{
    assert_false(text->broken);
    assert_string_equal(text->data == NULL ? "" : text->data, expected);
}

void assert_reads(struct ledger_fixture *f,
                  const pawl_reader_options *options,
                  const char *expected)
{
    struct pawl__buf text = BUF_INIT(TEXT_BYTES_MAX);
    const pawl_event *event;
    pawl_reader *reader;
    pawl_status status;

    assert_ok(pawl_reader_open(f->ledger, options, &reader, &f->err), &f->err);
    while ((status = pawl_reader_next(reader, &event, &f->err)) == PAWL_OK) {
        add_event_line(&text, event);
    }
    assert_status(status, PAWL_NOT_FOUND, &f->err);
    pawl__buf_add_format(&text, "at %llu\n", (unsigned long long)pawl_reader_position(reader));
    pawl_reader_free(reader);
    assert_text(&text, expected);
    pawl__buf_done(&text);
}
