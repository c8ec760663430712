/* What only a ledger on PostgreSQL has to do: keep bytes and microseconds that pass through SQL
 * types, survive links and servers that come and go, share a database politely. */
#include "lib/pg_fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/ledger.h>

#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "ledger/core/backend.h"
#include "ledger/recall/recall.h"
#include "store/location.h"

enum { WAIT_MS = 60000 };

static pawl_ledger *open_at(struct pg_fixture *f, const char *location)
{
    pawl_ledger *ledger = NULL;

    assert_ok(pawl_ledger_open(location, NULL, &ledger, &f->err), &f->err);
    return ledger;
}

/* A new ledger in an empty database. */
static pawl_ledger *new_ledger(struct pg_fixture *f)
{
    pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE");
    return open_at(f, pg_server_url(f->server));
}

static pawl_status try_open(struct pg_fixture *f,
                            const char *location,
                            const pawl_ledger_options *options)
{
    pawl_ledger *ledger = NULL;
    pawl_status status = pawl_ledger_open(location, options, &ledger, &f->err);

    pawl_ledger_close(ledger, 0, NULL);
    return status;
}

static pawl_event event_of(const char *id, const char *payload)
{
    return (pawl_event){ .size = sizeof(pawl_event),
                         .id = pawl_view_of(id),
                         .run_id = pawl_view_of("r"),
                         .kind = pawl_view_of("k"),
                         .actor = pawl_view_of("a"),
                         .payload = pawl_view_of(payload) };
}

static pawl_status append(struct pg_fixture *f,
                          pawl_ledger *ledger,
                          const char *id,
                          pawl_append_result *ret_result)
{
    pawl_event event = event_of(id, "1");

    return pawl_ledger_append(ledger, &event, ret_result, &f->err);
}

static void append_ok(struct pg_fixture *f, pawl_ledger *ledger, const char *id)
{
    assert_ok(append(f, ledger, id, NULL), &f->err);
}

/* --- bytes and times --- */

static void test_hashes_are_those_of_the_same_events_in_memory(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledgers[] = { new_ledger(f), open_at(f, "memory:") };
    static const int64_t times[] = { PAWL__WALL_US_MIN, -1, 1, 946684799999999, PAWL__WALL_US_MAX };
    static const char *const payloads[] = { "{ \"b\" : 1.50,\t\"a\":[ ] ,\"B\":2 }",
                                            "\"\\u0001 \\ud83d\\ude00 \xC3\xA4\"",
                                            "1e5",
                                            " null ",
                                            "-0.0" };
    pawl_ledger_head heads[2];

    for (size_t i = 0; i < COUNT_OF(ledgers); i++) {
        for (size_t j = 0; j < COUNT_OF(times); j++) {
            char id[8];
            pawl_event *stored = NULL;
            snprintf(id, sizeof(id), "%zu", j);
            pawl_event event = event_of(id, payloads[j]);
            event.created_at_us = times[j];
            event.turn = INT64_MAX;
            event.schema_version = INT32_MAX;
            assert_ok(pawl_ledger_append(ledgers[i], &event, NULL, &f->err), &f->err);
            assert_ok(pawl_ledger_get(ledgers[i], event.id, 0, &stored, &f->err), &f->err);
            assert_int_equal(stored->created_at_us, times[j]);
            assert_int_equal(stored->payload.len, event.payload.len);
            assert_memory_equal(stored->payload.data, payloads[j], event.payload.len);
            pawl_event_free(stored);
        }
        assert_ok(pawl_ledger_get_head(ledgers[i], &heads[i], &f->err), &f->err);
        pawl_ledger_close(ledgers[i], 0, NULL);
    }
    assert_memory_equal(&heads[0], &heads[1], sizeof(heads[0]));
}

/* More than one statement takes: by number, and by bytes. */
static void test_a_large_batch_is_stored_whole_and_in_order(void **state)
{
    enum { COUNT = 20001, LARGE = 12, LARGE_BYTES = 1 << 20 };
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    pawl_event *events = calloc(COUNT, sizeof(*events));
    char(*ids)[16] = calloc(COUNT, sizeof(*ids));
    char *large = malloc(LARGE_BYTES);
    const pawl_event *event;
    pawl_reader *reader;

    assert_true(events != NULL && ids != NULL && large != NULL);
    memset(large, '1', LARGE_BYTES);
    large[0] = '"';
    large[LARGE_BYTES - 1] = '"';
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(ids[i], sizeof(ids[i]), "e%zu", i);
        events[i] = event_of(ids[i], "1");
        if (i < LARGE) {
            events[i].payload = (pawl_view){ large, LARGE_BYTES };
        }
    }
    assert_ok(pawl_ledger_append_many(ledger, events, COUNT, NULL, &f->err), &f->err);
    assert_ok(pawl_reader_open(ledger, NULL, &reader, &f->err), &f->err);
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
        assert_int_equal(event->offset, i + 1);
        assert_int_equal(event->id.len, strlen(ids[i]));
        assert_memory_equal(event->id.data, ids[i], event->id.len);
        assert_int_equal(event->payload.len, events[i].payload.len);
    }
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
    /* Again: all of them looked up at once, all duplicates. */
    assert_ok(pawl_ledger_append_many(ledger, events, COUNT, NULL, &f->err), &f->err);
    assert_int_equal(pg_number(f, "SELECT count(*) FROM events"), COUNT);
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
    free(large);
    free(ids);
    free(events);
}

static void test_the_largest_payload_is_what_one_parameter_takes(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    uint32_t limit = (64U << 20) - 64;

    options.payload_bytes_max = limit + 1;
    assert_status(try_open(f, pg_server_url(f->server), &options), PAWL_INVALID, &f->err);
    assert_message(&f->err, "payload_bytes_max: is 67108801, on PostgreSQL the limit is 67108800");
    pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE");
    options.payload_bytes_max = limit;
    pawl_ledger *ledger = NULL;
    assert_ok(pawl_ledger_open(pg_server_url(f->server), &options, &ledger, &f->err), &f->err);
    char *payload = malloc(limit);
    assert_non_null(payload);
    memset(payload, ' ', limit);
    payload[0] = '1';
    pawl_event event = event_of("large", "");
    event.payload = (pawl_view){ payload, limit };
    assert_ok(pawl_ledger_append(ledger, &event, NULL, &f->err), &f->err);
    pawl_event *stored = NULL;
    assert_ok(pawl_ledger_get(ledger, event.id, 0, &stored, &f->err), &f->err);
    assert_int_equal(stored->payload.len, limit);
    pawl_event_free(stored);
    pawl_ledger_close(ledger, 0, NULL);
    free(payload);
}

/* --- links and servers --- */

static void test_a_link_that_was_cut_is_replaced(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    uint64_t offset;

    append_ok(f, ledger, "1");
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof(id), "again %d", i);
        pg_admin(f,
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                 " WHERE application_name = 'pawl ledger'");
        append_ok(f, ledger, id);
        assert_ok(pawl_ledger_latest_offset(ledger, &offset, &f->err), &f->err);
        assert_int_equal(offset, i + 2);
    }
    pawl_ledger_close(ledger, 0, NULL);
}

struct inside {
    struct pg_fixture *f;
    pawl_ledger *ledger;
    pawl_status status;
};

static bool append_inside(void *context, const pawl_count *counted)
{
    struct inside *inside = context;
    pawl_event event = event_of("inside", "1");

    (void)counted;
    inside->status = pawl_ledger_append(inside->ledger, &event, NULL, NULL);
    return false;
}

static bool append_in_progress(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    (void)append_inside(context, NULL);
    return true;
}

static void test_callbacks_may_append_though_there_is_one_connection(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    char location[256];

    pawl_ledger_close(new_ledger(f), 0, NULL);
    snprintf(location, sizeof(location), "%s", pg_server_url(f->server));
    strncat(location,
            strchr(location, '?') == NULL ? "?connections=1" : "&connections=1",
            sizeof(location) - strlen(location) - 1);
    struct inside inside = { .f = f, .ledger = open_at(f, location) };
    append_ok(f, inside.ledger, "before");
    assert_ok(pawl_ledger_counts(
                  inside.ledger, PAWL_COUNT_BY_KIND, NULL, append_inside, &inside, &f->err),
              &f->err);
    assert_int_equal(inside.status, PAWL_OK);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    const pawl_watch watch = { sizeof(pawl_watch), append_in_progress, &inside };
    options.watch = &watch;
    inside.status = PAWL_FAILED;
    assert_ok(pawl_ledger_verify(inside.ledger, &options, NULL, &f->err), &f->err);
    assert_int_equal(inside.status, PAWL_OK);
    pawl_ledger_close(inside.ledger, 0, NULL);
}

static void test_a_dropped_table_or_column_is_corrupt(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const char *const deeds[] = {
        "DROP TABLE pawl.events CASCADE",
        "DROP TABLE pawl.turns",
        "ALTER TABLE pawl.events DROP COLUMN hash",
    };

    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
        pawl_ledger *ledger = new_ledger(f);
        append_ok(f, ledger, "before");
        pawl_ledger_close(ledger, 0, NULL);
        pg_admin(f, deeds[i]);
        options.read_only = true;
        assert_status(try_open(f, pg_server_url(f->server), &options), PAWL_CORRUPT, &f->err);
        assert_message(&f->err, "does not exist");
        assert_message(&f->err, "restore the database, or a snapshot of this ledger");
    }
}

static void test_tables_without_a_record_of_their_migrations_are_corrupt(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const char *const deeds[] = {
        "DELETE FROM pawl.schema_version WHERE component = 'ledger'",
        "DROP TABLE pawl.schema_version",
    };

    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
        pawl_ledger *ledger = new_ledger(f);
        append_ok(f, ledger, "before");
        pawl_ledger_close(ledger, 0, NULL);
        pg_admin(f, deeds[i]);
        for (int read_only = 0; read_only < 2; read_only++) {
            options.read_only = read_only == 1;
            assert_status(try_open(f, pg_server_url(f->server), &options), PAWL_CORRUPT, &f->err);
            assert_message(&f->err, "has the table 'embeddings', but schema_version has no row");
            assert_message(&f->err, "restore the database");
        }
    }
}

static void test_a_lost_answer_is_found_by_appending_again(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    static const struct {
        const char *point;
        bool stored;
    } cases[] = {
        { "postgres.commit.before=error:UNAVAILABLE*1", false },
        { "postgres.commit.after=error:UNAVAILABLE*1", true },
        { "postgres.pipeline.before=error:UNAVAILABLE*1", false },
        { "postgres.pipeline.after=error:UNAVAILABLE*1", false },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char id[8];
        pawl_append_result result = PAWL_APPEND_RESULT_INIT;
        snprintf(id, sizeof(id), "%zu", i);
        assert_ok(pawl__failpoint_set(cases[i].point, &f->err), &f->err);
        assert_status(append(f, ledger, id, NULL), PAWL_UNAVAILABLE, &f->err);
        assert_true(f->err.retryable);
        assert_ok(append(f, ledger, id, &result), &f->err);
        assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
        assert_int_equal(result.offset, i + 1);
        assert_int_equal(result.duplicate, cases[i].stored);
    }
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_writer_that_holds_the_head_makes_others_busy(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    struct pawl__pg *other = pg_connect(f, NULL);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *impatient = NULL;
    uint64_t offset;

    options.busy_ms_max = 50;
    assert_ok(pawl_ledger_open(pg_server_url(f->server), &options, &impatient, &f->err), &f->err);
    assert_ok(pawl__pg_begin(other, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(pawl__pg_script(other, "SELECT * FROM ledger_head FOR UPDATE", &f->err), &f->err);
    assert_status(append(f, impatient, "1", NULL), PAWL_BUSY, &f->err);
    assert_message(&f->err, "another process is writing");
    assert_ok(pawl_ledger_latest_offset(ledger, &offset, &f->err), &f->err); /* readers go on */
    assert_int_equal(offset, 0);
    pawl__pg_rollback(other);
    append_ok(f, impatient, "1");
    pawl__pg_close(other);
    pawl_ledger_close(impatient, 0, NULL);
    pawl_ledger_close(ledger, 0, NULL);
}

struct waiter {
    struct pawl__thread thread;
    struct ledger_backend *backend;
    struct pawl__cancel cancel;
    atomic_bool listening;
    pawl_status status;
};

static void wait_for_news(void *context)
{
    struct waiter *waiter = context;
    int64_t deadline_ns = in_ms(WAIT_MS);

    /* The first call connects and comes back at once, the second one waits. */
    waiter->status =
        waiter->backend->ops->watch(waiter->backend, deadline_ns, &waiter->cancel, NULL);
    atomic_store(&waiter->listening, true);
    if (waiter->status == PAWL_OK) {
        waiter->status =
            waiter->backend->ops->watch(waiter->backend, deadline_ns, &waiter->cancel, NULL);
    }
}

static void start_waiter(struct pg_fixture *f, struct waiter *waiter)
{
    struct pawl__location location = { 0 };
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    assert_ok(pawl__location_parse(pg_server_url(f->server), &location, &f->err), &f->err);
    assert_ok(pawl__ledger_postgres_open(&location, &options, &waiter->backend, &f->err), &f->err);
    pawl__location_done(&location);
    pawl__cancel_init(&waiter->cancel, NULL);
    assert_ok(pawl__thread_start(&waiter->thread, "wait", wait_for_news, waiter, &f->err), &f->err);
    while (!atomic_load(&waiter->listening)) {
        pawl__sleep_until(pawl__clock_real(), in_ms(1));
    }
}

static void end_waiter(struct waiter *waiter)
{
    pawl__thread_join(&waiter->thread);
    assert_int_equal(waiter->status, PAWL_OK);
    waiter->backend->ops->close(waiter->backend);
    pawl__cancel_done(&waiter->cancel);
}

/* The watcher's own poll is a second; this one would wait for a minute. */
static void test_a_commit_elsewhere_wakes_the_watcher_by_notification(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    struct waiter waiter = { .status = PAWL_FAILED };

    start_waiter(f, &waiter);
    int64_t before_ns = pawl__monotonic_ns(pawl__clock_real());
    append_ok(f, ledger, "1");
    end_waiter(&waiter);
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - before_ns < WAIT_MS / 2 * NS_PER_MS);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_watcher_can_be_cancelled(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    struct waiter waiter = { .status = PAWL_FAILED };

    start_waiter(f, &waiter);
    int64_t before_ns = pawl__monotonic_ns(pawl__clock_real());
    pawl__cancel_now(&waiter.cancel);
    end_waiter(&waiter);
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - before_ns < WAIT_MS / 2 * NS_PER_MS);
    pawl_ledger_close(ledger, 0, NULL);
}

/* --- opening --- */

static void test_a_missing_ledger_is_not_made_by_who_only_looks(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;

    pg_admin(f, "DROP SCHEMA IF EXISTS pawl CASCADE");
    options.must_exist = true;
    assert_status(try_open(f, pg_server_url(f->server), &options), PAWL_NOT_FOUND, &f->err);
    options.must_exist = false;
    options.read_only = true;
    assert_status(try_open(f, pg_server_url(f->server), &options), PAWL_NOT_FOUND, &f->err);
    assert_message(&f->err, "there is no ledger in this database");
    assert_int_equal(pg_number(f, "SELECT count(*) FROM pg_namespace WHERE nspname = 'pawl'"), 0);
}

static void test_events_that_went_missing_are_noticed_on_open(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const struct {
        const char *damage;
        const char *message;
    } cases[] = {
        { "DELETE FROM events WHERE \"offset\" = 3", "the log ends at offset 2, its head is at 3" },
        { "DELETE FROM events", "the log ends at offset 0, its head is at 3" },
        { "INSERT INTO events SELECT 4, 'x', run_id, turn, kind, actor, payload, created_at,"
          " schema_version, hash FROM events WHERE \"offset\" = 1",
          "the log ends at offset 4, its head is at 3" },
        { "UPDATE events SET hash = decode(repeat('ab', 32), 'hex') WHERE \"offset\" = 3",
          "offset 3 has another hash than the head" },
        { "DELETE FROM ledger_head", "ledger_head has 0 rows instead of one" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pawl_ledger *ledger = new_ledger(f);
        append_ok(f, ledger, "1");
        append_ok(f, ledger, "2");
        append_ok(f, ledger, "3");
        pawl_ledger_close(ledger, 0, NULL);
        assert_ok(try_open(f, pg_server_url(f->server), NULL), &f->err);
        pg_admin(f, cases[i].damage);
        assert_status(try_open(f, pg_server_url(f->server), NULL), PAWL_CORRUPT, &f->err);
        assert_message(&f->err, cases[i].message);
    }
}

static void test_an_offset_that_is_taken_is_corruption_and_no_duplicate(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);

    append_ok(f, ledger, "1");
    pg_admin(f,
             "INSERT INTO events SELECT 2, 'x', run_id, turn, kind, actor, payload, created_at,"
             " schema_version, hash FROM events");
    assert_status(append(f, ledger, "2", NULL), PAWL_CORRUPT, &f->err);
    assert_int_equal(pg_number(f, "SELECT count(*) FROM events WHERE id = '2'"), 0);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_database_in_another_encoding_is_refused(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    char url[256];

    pg_admin(f,
             "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
             " TEMPLATE template0");
    snprintf(url, sizeof(url), "postgresql://pawl@127.0.0.1:%d/latin", pg_server_port(f->server));
    assert_status(try_open(f, url, NULL), PAWL_UNSUPPORTED, &f->err);
    assert_message(&f->err, "encoding is 'LATIN1', a ledger needs UTF8");
}

static void test_no_message_holds_the_password(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const struct {
        const char *before;
        const char *after;
    } urls[] = {
        { "postgresql://guarded:hunter2@127.0.0.1", "/postgres" },
        { "postgresql://guarded:hunter2@127.0.0.1", "/nowhere" },
        { "postgresql://guarded:hunter2@127.0.0.1", "/postgres?connections=0" },
        { "postgresql://guarded:hunter2@127.0.0.1", "/postgres?connections=hunter2" },
        { "postgresql://guarded:hunter2@127.0.0.1", "/postgres?durability=normal" },
        { "postgres://guarded:hunter2%zz@127.0.0.1", "/postgres" },
    };

    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        char url[256];
        int port = pg_server_port(f->server);
        snprintf(url, sizeof(url), "%s:%d%s", urls[i].before, port, urls[i].after);
        assert_int_not_equal(try_open(f, url, NULL), PAWL_OK);
        assert_null(strstr(f->err.message, "hunter2"));
    }
}

static void test_the_number_of_connections_has_limits(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    static const char *const wrong[] = { "0", "257", "-1", "1x", "", "99999999999" };
    char url[256];

    pawl_ledger_close(new_ledger(f), 0, NULL);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        snprintf(url, sizeof(url), "%s&connections=%s", pg_server_url(f->server), wrong[i]);
        assert_status(try_open(f, url, NULL), PAWL_INVALID, &f->err);
        assert_message(&f->err, "connections: must be 1 to 256");
    }
    snprintf(url, sizeof(url), "%s&connections=256&application_name=x", pg_server_url(f->server));
    assert_ok(try_open(f, url, NULL), &f->err);
}

static void test_one_connection_is_enough_to_write_read_and_follow(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *other = new_ledger(f);
    char url[256];
    const pawl_event *event;
    pawl_reader *reader;

    snprintf(url, sizeof(url), "%s&connections=1", pg_server_url(f->server));
    pawl_ledger *ledger = open_at(f, url);
    append_ok(f, ledger, "1");
    append_ok(f, ledger, "1");
    assert_ok(pawl_reader_open(ledger, NULL, &reader, &f->err), &f->err);
    assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    assert_status(pawl_reader_wait(reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    append_ok(f, other, "2");
    assert_ok(pawl_reader_wait(reader, WAIT_MS, &f->err), &f->err);
    assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    assert_int_equal(event->offset, 2);
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
    pawl_ledger_close(other, 0, NULL);
}

struct follower {
    pawl_reader *reader;
    pawl_status status;
    pawl_error err;
};

static void wait_long(void *context)
{
    struct follower *follower = context;

    follower->status = pawl_reader_wait(follower->reader, WAIT_MS, &follower->err);
}

static int64_t now_ms(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) / NS_PER_MS;
}

static void test_a_follower_waits_for_a_server_that_is_away(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger *ledger = new_ledger(f);
    struct follower follower = { .err = PAWL_ERROR_INIT };
    struct pawl__thread thread = { 0 };
    const pawl_event *event;
    enum { SHORT_MS = 4000 };

    assert_ok(pawl_reader_open(ledger, NULL, &follower.reader, &f->err), &f->err);
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    int64_t before_ms = now_ms();
    assert_status(pawl_reader_wait(follower.reader, SHORT_MS, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_true(now_ms() - before_ms >= SHORT_MS); /* a single try takes about a second */

    assert_ok(pawl__thread_start(&thread, "follower", wait_long, &follower, &f->err), &f->err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    pawl_ledger *other = open_at(f, pg_server_url(f->server));
    append_ok(f, other, "1");
    pawl__thread_join(&thread);
    assert_ok(follower.status, &follower.err);
    assert_ok(pawl_reader_next(follower.reader, &event, &f->err), &f->err);
    assert_int_equal(event->offset, 1);

    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_ok(pawl__thread_start(&thread, "follower", wait_long, &follower, &f->err), &f->err);
    pawl_reader_cancel(follower.reader); /* told to stop, it stops */
    pawl__thread_join(&thread);
    assert_status(follower.status, PAWL_CANCELLED, &follower.err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    pawl_reader_free(follower.reader);
    pawl_ledger_close(ledger, 0, NULL);
    pawl_ledger_close(other, 0, NULL);
}

/* TIMEOUT would say that there is no event. */
static void test_a_follower_tells_a_stalled_server_from_a_quiet_one(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *other = new_ledger(f);
    pawl_ledger *ledger = NULL;
    pawl_reader *reader;

    options.answer_ms_max = 500;
    assert_ok(pawl_ledger_open(pg_server_url(f->server), &options, &ledger, &f->err), &f->err);
    assert_ok(pawl_reader_open(ledger, NULL, &reader, &f->err), &f->err);
    assert_status(pawl_reader_wait(reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    pg_server_stall(f->server);
    pawl_status status = pawl_reader_wait(reader, 1, &f->err);
    pg_server_resume(f->server);
    assert_status(status, PAWL_UNAVAILABLE, &f->err);
    assert_message(&f->err, "has stalled");
    append_ok(f, other, "1");
    assert_ok(pawl_reader_wait(reader, WAIT_MS, &f->err), &f->err);
    pawl_reader_free(reader);
    pawl_ledger_close(ledger, 0, NULL);
    pawl_ledger_close(other, 0, NULL);
}

static atomic_uint warnings;

static void count_warnings(void *context, const pawl_log_event *event)
{
    (void)context;
    if (event->level == PAWL_LOG_WARNING
        && strstr(event->message, "may lose acknowledged events") != NULL) {
        atomic_fetch_add(&warnings, 1);
    }
}

static void test_a_server_that_does_not_sync_is_warned_of(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pg_server *unsafe = NULL;

    assert_ok(pg_server_start(
                  &(struct pg_server_options){ .settings = "fsync = off\n" }, &unsafe, &f->err),
              &f->err);
    atomic_store(&warnings, 0);
    pawl_set_log_sink(count_warnings, NULL, PAWL_LOG_WARNING);
    pawl_ledger_close(new_ledger(f), 0, NULL);
    assert_int_equal(atomic_load(&warnings), 0);
    assert_ok(try_open(f, pg_server_url(unsafe), NULL), &f->err);
    pawl_set_log_sink(NULL, NULL, PAWL_LOG_WARNING);
    pg_server_free(unsafe);
    assert_int_equal(atomic_load(&warnings), 1);
}

static void test_a_plain_server_leaves_the_search_to_us(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__location location = { 0 };
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    struct ledger_backend *backend = NULL;
    pawl_recalled found;
    struct recall_top top = { &found, 0, 1 };

    pawl_ledger_close(new_ledger(f), 0, NULL);
    assert_ok(pawl__location_parse(pg_server_url(f->server), &location, &f->err), &f->err);
    assert_ok(pawl__ledger_postgres_open(&location, &options, &backend, &f->err), &f->err);
    assert_status(backend->ops->nearest(backend, (float[]){ 1 }, 1, NULL, &top, &f->err),
                  PAWL_UNSUPPORTED,
                  &f->err);
    backend->ops->close(backend);
    pawl__location_done(&location);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes_are_those_of_the_same_events_in_memory),
        cmocka_unit_test(test_a_large_batch_is_stored_whole_and_in_order),
        cmocka_unit_test(test_the_largest_payload_is_what_one_parameter_takes),
        cmocka_unit_test(test_a_link_that_was_cut_is_replaced),
        cmocka_unit_test(test_callbacks_may_append_though_there_is_one_connection),
        cmocka_unit_test(test_a_dropped_table_or_column_is_corrupt),
        cmocka_unit_test(test_tables_without_a_record_of_their_migrations_are_corrupt),
        cmocka_unit_test(test_a_lost_answer_is_found_by_appending_again),
        cmocka_unit_test(test_a_writer_that_holds_the_head_makes_others_busy),
        cmocka_unit_test(test_a_commit_elsewhere_wakes_the_watcher_by_notification),
        cmocka_unit_test(test_a_watcher_can_be_cancelled),
        cmocka_unit_test(test_a_missing_ledger_is_not_made_by_who_only_looks),
        cmocka_unit_test(test_events_that_went_missing_are_noticed_on_open),
        cmocka_unit_test(test_an_offset_that_is_taken_is_corruption_and_no_duplicate),
        cmocka_unit_test(test_a_database_in_another_encoding_is_refused),
        cmocka_unit_test(test_no_message_holds_the_password),
        cmocka_unit_test(test_the_number_of_connections_has_limits),
        cmocka_unit_test(test_one_connection_is_enough_to_write_read_and_follow),
        cmocka_unit_test(test_a_follower_waits_for_a_server_that_is_away),
        cmocka_unit_test(test_a_follower_tells_a_stalled_server_from_a_quiet_one),
        cmocka_unit_test(test_a_server_that_does_not_sync_is_warned_of),
        cmocka_unit_test(test_a_plain_server_leaves_the_search_to_us),
    };
    return cmocka_run_group_tests(tests, pg_fixture_start, pg_fixture_stop);
}
