/* Following what another process writes: woken by it, each event once, in order. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "lib/child.h"

enum { EVENTS = 300, LONG_MS = 60000 };

/* --- the other process --- */

static int fail_child(const pawl_error *error)
{
    child_say("failed: %s", error->message);
    return 1;
}

static int write_events(pawl_ledger *ledger)
{
    for (int i = 0; i < EVENTS; i++) {
        char id[32];
        pawl_error error = PAWL_ERROR_INIT;
        snprintf(id, sizeof(id), "child-%d", i);
        pawl_event event = event_of(id, 0, "0");
        if (pawl_ledger_append(ledger, &event, NULL, &error) != PAWL_OK) {
            return fail_child(&error);
        }
    }
    child_say("done");
    return 0;
}

static int follow_events(pawl_ledger *ledger)
{
    pawl_error error = PAWL_ERROR_INIT;
    const pawl_event *event;
    pawl_reader *reader;
    pawl_status status = pawl_reader_open(ledger, NULL, &reader, &error);

    child_say("ready");
    for (int seen = 0; seen < EVENTS && status == PAWL_OK;) {
        status = pawl_reader_next(reader, &event, &error);
        if (status == PAWL_OK) {
            child_say("%llu", (unsigned long long)event->offset);
            seen++;
        } else if (status == PAWL_NOT_FOUND) {
            status = pawl_reader_wait(reader, LONG_MS, &error);
        }
    }
    pawl_reader_free(reader);
    return status == PAWL_OK ? 0 : fail_child(&error);
}

static int run_child(char **argv)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_ledger *ledger;

    if (pawl_ledger_open(argv[3], NULL, &ledger, &error) != PAWL_OK) {
        return fail_child(&error);
    }
    int code = strcmp(argv[2], "write") == 0 ? write_events(ledger) : follow_events(ledger);
    pawl_ledger_close(ledger, 0, NULL);
    return code;
}

/* --- this one --- */

static void assert_ended_well(struct child *child)
{
    int status = child_end(child, 0);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_events_of_another_process_arrive_once_and_in_order(void **state)
{
    struct ledger_fixture *f = *state;
    const pawl_event *event;
    pawl_reader *reader;
    struct child child;

    assert_ok(pawl_reader_open(f->ledger, NULL, &reader, &f->err), &f->err);
    child_start(&child, (const char *const[]){ "write", f->location, NULL });
    for (uint64_t next = 1; next <= EVENTS;) {
        pawl_status status = pawl_reader_next(reader, &event, &f->err);
        if (status == PAWL_OK) {
            assert_int_equal(event->offset, next++);
        } else {
            assert_status(status, PAWL_NOT_FOUND, &f->err);
            assert_ok(pawl_reader_wait(reader, LONG_MS, &f->err), &f->err);
        }
    }
    assert_ended_well(&child);
    pawl_reader_free(reader);
}

static void test_another_process_follows_this_one(void **state)
{
    struct ledger_fixture *f = *state;
    struct child child;
    char line[128];
    char id[32];

    child_start(&child, (const char *const[]){ "follow", f->location, NULL });
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "ready");
    for (int i = 0; i < EVENTS; i++) {
        snprintf(id, sizeof(id), "parent-%d", i);
        append_one(f, id, 0, "0");
        if (i % 50 == 0) { /* now and then it has nothing left to read, and must be woken */
            for (int seen = i == 0 ? 0 : i - 49; seen <= i; seen++) {
                assert_true(child_line(&child, line, sizeof(line)));
                assert_int_equal(strtol(line, NULL, 10), seen + 1);
            }
        }
    }
    for (int seen = EVENTS - 49; seen < EVENTS; seen++) {
        assert_true(child_line(&child, line, sizeof(line)));
        assert_int_equal(strtol(line, NULL, 10), seen + 1);
    }
    assert_ended_well(&child);
}

/* What is written to another file under the same name never arrives: waiting for it is an error. */
static void test_a_follower_notices_that_its_log_was_replaced(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader;
    char away[sizeof(f->location) + 8];

    if (strcmp(f->backend, "sqlite") != 0) {
        return;
    }
    append_one(f, "one", 0, "0");
    append_one(f, "two", 0, "0");
    options.from = 2;
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    assert_status(pawl_reader_wait(reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    snprintf(away, sizeof(away), "%s.away", f->location);
    assert_int_equal(rename(f->location, away), 0);
    assert_status(pawl_reader_wait(reader, LONG_MS, &f->err), PAWL_IO, &f->err);
    assert_message(&f->err, "was moved, replaced or deleted");
    assert_int_equal(rename(away, f->location), 0);
    assert_status(pawl_reader_wait(reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    pawl_reader_free(reader);
}

/* Readers open the file when they are needed, which may be after it was moved. */
static void test_a_log_that_was_moved_is_not_called_missing(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader *readers[10]; /* more than are kept open */
    char away[sizeof(f->location) + 8];

    if (strcmp(f->backend, "sqlite") != 0) {
        return;
    }
    append_one(f, "one", 0, "0");
    snprintf(away, sizeof(away), "%s.away", f->location);
    assert_int_equal(rename(f->location, away), 0);
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        const pawl_event *event = NULL;

        assert_ok(pawl_reader_open(f->ledger, NULL, &readers[i], &f->err), &f->err);
        assert_status(pawl_reader_next(readers[i], &event, &f->err), PAWL_IO, &f->err);
        assert_message(&f->err, "was moved, replaced or deleted");
    }
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        pawl_reader_free(readers[i]);
    }
}

static void test_a_follower_notices_that_its_log_became_shorter(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader;

    append_one(f, "one", 0, "0");
    append_one(f, "two", 0, "0");
    options.from = 2;
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    assert_status(pawl_reader_wait(reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    ledger_fixture_sql(f,
                       strcmp(f->backend, "sqlite") == 0
                           ? "DELETE FROM events WHERE offset = 2"
                           : "UPDATE pawl.ledger_head SET \"offset\" = 1");
    assert_status(pawl_reader_wait(reader, LONG_MS, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "cut off: offset 2 was there, now the ledger ends at 1");
    pawl_reader_free(reader);
}

/* As after a restore into the database that is followed: the names are the same, the events are not. */
static void test_a_follower_notices_that_another_longer_log_took_its_place(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader;
    bool is_sqlite = strcmp(f->backend, "sqlite") == 0;

    append_one(f, "one", 0, "0");
    append_one(f, "two", 0, "0");
    options.from = 2;
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    assert_status(pawl_reader_wait(reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    append_one(f, "three", 0, "0");
    ledger_fixture_sql(f,
                       is_sqlite ? "UPDATE events SET hash = zeroblob(32) WHERE offset = 2"
                                 : "UPDATE pawl.events SET hash = decode(repeat('00', 32), 'hex')"
                                   " WHERE \"offset\" = 2");
    assert_status(pawl_reader_wait(reader, LONG_MS, &f->err), PAWL_CORRUPT, &f->err);
    assert_message(&f->err, "replaced: offset 2 has another event than when it was read");
    assert_int_equal(pawl_reader_position(reader), 2);
    pawl_reader_free(reader);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_events_of_another_process_arrive_once_and_in_order),
        LEDGER_TEST(test_another_process_follows_this_one),
        LEDGER_TEST(test_a_follower_notices_that_its_log_was_replaced),
        LEDGER_TEST(test_a_log_that_was_moved_is_not_called_missing),
        LEDGER_TEST(test_a_follower_notices_that_its_log_became_shorter),
        LEDGER_TEST(test_a_follower_notices_that_another_longer_log_took_its_place),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
