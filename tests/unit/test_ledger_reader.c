/* Reading on every backend: pages, filters, complete turns, waiting. */
#include "lib/ledger_fixture.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os/clock.h"
#include "base/thread/thread.h"

/* `count` events with ids "<prefix>0", "<prefix>1", ... in one batch. */
static void append_numbered(struct ledger_fixture *f, const char *prefix, size_t count)
{
    pawl_event *events = calloc(count, sizeof(*events));
    char(*ids)[24] = calloc(count, sizeof(*ids));

    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(*ids), "%s%zu", prefix, i);
        events[i] = event_of(ids[i], 0, "0");
    }
    assert_ok(pawl_ledger_append_many(f->ledger, events, count, NULL, &f->err), &f->err);
    free(events);
    free(ids);
}

static void test_pages_are_seamless(void **state)
{
    struct ledger_fixture *f = *state;
    const pawl_event *event;
    pawl_reader *reader;
    char id[24];

    append_numbered(f, "e", 1300); /* two full pages and a bit */
    assert_ok(pawl_reader_open(f->ledger, NULL, &reader, &f->err), &f->err);
    for (uint64_t i = 0; i < 1300; i++) {
        assert_int_equal(pawl_reader_position(reader), i);
        assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
        assert_int_equal(event->offset, i + 1);
        snprintf(id, sizeof(id), "e%" PRIu64, i);
        assert_true(pawl__view_is(event->id, id));
    }
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
    append_one(f, "later", 5, "1");
    assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    assert_int_equal(event->offset, 1301);
    pawl_reader_free(reader);
}

static void test_large_events_come_in_pages_of_few(void **state)
{
    struct ledger_fixture *f = *state;
    size_t bytes = 700000;
    char *text = malloc(bytes + 1);
    const pawl_event *event;
    pawl_reader *reader;
    char id[2] = "a";

    memset(text, 'x', bytes);
    text[0] = text[bytes - 1] = '"';
    text[bytes] = '\0';
    for (; id[0] < 'f'; id[0]++) {
        text[1] = id[0];
        append_one(f, id, 0, text);
    }
    assert_ok(pawl_reader_open(f->ledger, NULL, &reader, &f->err), &f->err);
    for (id[0] = 'a'; id[0] < 'f'; id[0]++) {
        assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
        assert_true(pawl__view_is(event->id, id));
        assert_int_equal(event->payload.len, bytes);
        assert_int_equal(event->payload.data[1], id[0]);
    }
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
    pawl_reader_free(reader);
    free(text);
}

static void test_an_event_comes_back_as_it_went_in(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event =
        event_of("\xC3\xA4\xF0\x9F\x90\x93", 12, " {\"a\" : [1, \"\xE2\x82\xAC\"]}\n");
    pawl_ledger_head head;
    pawl_event *found;

    event.run_id = pawl_view_of("run ' \" \\ 1");
    event.created_at_us = -1234567;
    event.schema_version = 3;
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
    assert_ok(pawl_ledger_get(f->ledger, event.id, 0, &found, &f->err), &f->err);
    assert_int_equal(found->offset, 1);
    assert_true(pawl__view_equal(found->id, event.id));
    assert_true(pawl__view_equal(found->run_id, event.run_id));
    assert_true(pawl__view_equal(found->kind, event.kind));
    assert_true(pawl__view_equal(found->actor, event.actor));
    assert_true(pawl__view_equal(found->payload, event.payload));
    assert_int_equal(found->turn, 12);
    assert_int_equal(found->created_at_us, -1234567);
    assert_int_equal(found->schema_version, 3);
    assert_ok(pawl_ledger_get_head(f->ledger, &head, &f->err), &f->err);
    assert_int_equal(head.offset, 1);
    assert_memory_equal(head.hash, found->hash, sizeof(head.hash));
    pawl_event_free(found);
    pawl_event_free(NULL);
}

static void test_reading_starts_behind_from_and_ends_at_up_to(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;

    append_numbered(f, "e", 5);
    options.from = 1;
    options.up_to = 3;
    assert_reads(f, &options, "2 r/0 k 0\n3 r/0 k 0\nat 3\n");
    options.from = 3;
    assert_reads(f, &options, "at 3\n");
}

static void test_a_reader_from_after_the_end_is_refused_and_one_from_the_end_waits(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader = NULL;
    const pawl_event *event;

    append_numbered(f, "e", 5);
    options.from = 6; /* a follower of a longer log */
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "from: is 6, but the ledger ends at offset 5");
    assert_status(pawl_reader_wait(reader, 60000, &f->err), PAWL_INVALID, &f->err);
    pawl_reader_free(STEAL(reader));
    options.from = 5;
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
    append_one(f, "next", 0, "0");
    assert_ok(pawl_reader_wait(reader, 60000, &f->err), &f->err);
    assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    assert_int_equal(event->offset, 6);
    pawl_reader_free(reader);
}

static void test_a_reader_notices_that_the_log_ends_before_what_it_read(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader *reader = NULL;
    const pawl_event *event;

    append_numbered(f, "e", 5);
    assert_ok(pawl_reader_open(f->ledger, NULL, &reader, &f->err), &f->err);
    for (int i = 0; i < 5; i++) {
        assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    }
    if (ledger_fixture_sql(f, "DELETE FROM events WHERE \"offset\" > 3")) {
        if (strcmp(f->backend, "postgres") == 0) {
            ledger_fixture_sql(f, "UPDATE ledger_head SET \"offset\" = 3");
        }
        assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_CORRUPT, &f->err);
        assert_message(&f->err, "cut off: offset 5 was read, now the ledger ends at 3");
    }
    pawl_reader_free(reader);
}

/* --- filters --- */

static void append_varied(struct ledger_fixture *f)
{
    static const struct {
        const char *id, *run, *kind, *actor;
        int64_t turn;
        int64_t second;
    } rows[] = {
        { "1", "x", "say", "ann", 1, 10 }, { "2", "x", "do", "bob", 1, 20 },
        { "3", "y", "say", "bob", 2, 30 }, { "4", "x", "say", "bob", 3, 40 },
        { "5", "y", "do", "ann", 3, 50 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        pawl_event event = {
            .size = sizeof(pawl_event),
            .id = pawl_view_of(rows[i].id),
            .run_id = pawl_view_of(rows[i].run),
            .kind = pawl_view_of(rows[i].kind),
            .actor = pawl_view_of(rows[i].actor),
            .turn = rows[i].turn,
            .payload = pawl_view_of(rows[i].id),
            .created_at_us = rows[i].second * US_PER_S,
        };
        assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
    }
}

static void assert_filters(struct ledger_fixture *f,
                           const pawl_event_filter *filter,
                           const char *payloads)
{
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    struct pawl__buf found = BUF_INIT(100);
    const pawl_event *event;
    pawl_reader *reader;

    options.filter = filter;
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    while (pawl_reader_next(reader, &event, &f->err) == PAWL_OK) {
        pawl__buf_add(&found, event->payload);
    }
    assert_int_equal(pawl_reader_position(reader), 5); /* also over what was filtered out */
    assert_text(&found, payloads);
    pawl_reader_free(reader);
    pawl__buf_done(&found);
}

static void test_every_field_of_a_filter_must_match(void **state)
{
    struct ledger_fixture *f = *state;
    const pawl_event_filter all = PAWL_EVENT_FILTER_INIT;
    pawl_event_filter filter = all;

    append_varied(f);
    assert_filters(f, &filter, "12345");
    filter.run_id = pawl_view_of("x");
    assert_filters(f, &filter, "124");
    filter.actor = pawl_view_of("bob");
    assert_filters(f, &filter, "24");
    filter.kind = pawl_view_of("say");
    assert_filters(f, &filter, "4");
    filter.turn_max = 2;
    assert_filters(f, &filter, "");
    filter = all;
    filter.actor = pawl_view_of("ann");
    assert_filters(f, &filter, "15");
    filter = all;
    filter.kind = pawl_view_of("say");
    assert_filters(f, &filter, "134");
    filter = all;
    filter.turn_min = filter.turn_max = 3; /* both ends belong to it */
    assert_filters(f, &filter, "45");
    filter = all;
    filter.time_min_us = 20 * US_PER_S; /* this one ... */
    filter.time_max_us = 40 * US_PER_S; /* ... but not that one */
    assert_filters(f, &filter, "23");
    filter.time_max_us = 40 * US_PER_S + 1;
    assert_filters(f, &filter, "234");
    filter.time_min_us = INT64_MAX;
    filter.time_max_us = INT64_MAX;
    assert_filters(f, &filter, "");
}

static void test_a_filter_is_copied_and_checked(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader = NULL;
    const pawl_event *event;
    char name[201] = "y";

    append_varied(f);
    options.filter = &filter;
    filter.run_id = (pawl_view){ name, 1 };
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    name[0] = 'x';
    filter.turn_min = 99;
    assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    assert_int_equal(event->offset, 3);
    pawl_reader_free(reader);

    reader = NULL;
    filter.run_id = (pawl_view){ name, sizeof(name) };
    memset(name, 'x', sizeof(name));
    assert_status(pawl_reader_open(f->ledger, &options, &reader, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "filter: run_id: has 201 bytes");
    filter.run_id = (pawl_view){ NULL, 0 };
    filter.kind = (pawl_view){ "a\0", 2 };
    assert_status(pawl_reader_open(f->ledger, &options, &reader, &f->err), PAWL_INVALID, &f->err);
    filter.kind = (pawl_view){ NULL, 0 };
    filter.size = 4;
    assert_status(pawl_reader_open(f->ledger, &options, &reader, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "filter: size is 4");
    filter.size = offsetof(pawl_event_filter, turn_min); /* of an older header */
    options.size = sizeof(options) + 1;
    assert_status(pawl_reader_open(f->ledger, &options, &reader, &f->err), PAWL_INVALID, &f->err);
    assert_null(reader);
    options.size = sizeof(options);
    assert_filters(f, &filter, "12345");
}

static void test_a_rare_event_is_found_behind_many_others(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;

    append_numbered(f, "a", 70000);
    append_one(f, "rare", 9, "\"!\"");
    append_numbered(f, "b", 70000);
    options.filter = &filter;
    filter.turn_min = 9;
    assert_reads(f, &options, "70001 r/9 k \"!\"\nat 140001\n");
}

/* --- complete turns --- */

static void test_complete_turns_wait_at_the_first_open_one(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options complete = PAWL_READER_OPTIONS_INIT;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;

    complete.complete_turns = true;
    append_one(f, "1", 0, "1");
    pawl_turn *turn = begin_turn(f, "r", 1);
    turn_says(f, turn, "3");
    append_one(f, "4", 0, "4"); /* outside of it, behind its begin */
    pawl_turn *other = begin_turn(f, "q", 1);
    turn_says(f, other, "6");
    assert_ok(pawl_turn_commit(other, &f->err), &f->err);
    assert_reads(f, &complete, "1 r/0 k 1\nat 1\n");
    complete.filter = &filter;
    filter.run_id = pawl_view_of("q"); /* turns of other runs do not hold it back */
    assert_reads(f,
                 &complete,
                 "5 q/1 turn.begin {\"attempt\":1}\n6 q/1 k 6\n"
                 "7 q/1 turn.commit {\"attempt\":1}\nat 7\n");
    filter.run_id = pawl_view_of("r");
    filter.turn_max = 0; /* nor those of other turns */
    assert_reads(f, &complete, "1 r/0 k 1\n4 r/0 k 4\nat 7\n");

    complete.filter = NULL;
    assert_ok(pawl_turn_commit(turn, &f->err), &f->err);
    assert_reads(f,
                 &complete,
                 "1 r/0 k 1\n2 r/1 turn.begin {\"attempt\":1}\n3 r/1 k 3\n4 r/0 k 4\n"
                 "5 q/1 turn.begin {\"attempt\":1}\n6 q/1 k 6\n7 q/1 turn.commit {\"attempt\":1}\n"
                 "8 r/1 turn.commit {\"attempt\":1}\nat 8\n");
    complete.up_to = 7; /* as of then turn 1 was open */
    assert_reads(f, &complete, "1 r/0 k 1\nat 1\n");
    complete.up_to = 8;
    complete.from = 7;
    assert_reads(f, &complete, "8 r/1 turn.commit {\"attempt\":1}\nat 8\n");
    pawl_turn_free(turn);
    pawl_turn_free(other);
}

static void test_complete_turns_skip_abandoned_attempts(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options complete = PAWL_READER_OPTIONS_INIT;

    complete.complete_turns = true;
    pawl_turn *left = begin_turn(f, "r", 1);
    pawl_turn *other = begin_turn(f, "q", 1);
    turn_says(f, left, "3");
    turn_says(f, other, "4");
    append_one(f, "5", 2, "5");
    assert_ok(pawl_turn_abandon(other, pawl_view_of("x"), &f->err), &f->err);
    pawl_turn *right = begin_turn(f, "r", 1);
    turn_says(f, right, "9");
    assert_reads(f, &complete, "5 r/2 k 5\nat 7\n");
    assert_ok(pawl_turn_commit(right, &f->err), &f->err);
    assert_reads(f,
                 &complete,
                 "5 r/2 k 5\n8 r/1 turn.begin {\"attempt\":2}\n9 r/1 k 9\n"
                 "10 r/1 turn.commit {\"attempt\":2}\nat 10\n");
    complete.from = 3; /* in the middle of what is skipped */
    assert_reads(f,
                 &complete,
                 "5 r/2 k 5\n8 r/1 turn.begin {\"attempt\":2}\n9 r/1 k 9\n"
                 "10 r/1 turn.commit {\"attempt\":2}\nat 10\n");
    for (complete.from = 5; complete.from < 8; complete.from++) { /* before the last of each */
        assert_reads(f,
                     &complete,
                     "8 r/1 turn.begin {\"attempt\":2}\n9 r/1 k 9\n"
                     "10 r/1 turn.commit {\"attempt\":2}\nat 10\n");
    }
    pawl_turn_free(left);
    pawl_turn_free(other);
    pawl_turn_free(right);
}

static void test_a_reader_of_complete_turns_goes_on_when_a_turn_ends(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options complete = PAWL_READER_OPTIONS_INIT;
    const pawl_event *event;
    pawl_reader *reader;

    complete.complete_turns = true;
    assert_ok(pawl_reader_open(f->ledger, &complete, &reader, &f->err), &f->err);
    for (int64_t i = 0; i < 5; i++) {
        pawl_turn *turn = begin_turn(f, "r", i);
        turn_says(f, turn, "0");
        assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
        assert_status(pawl_reader_wait(reader, 0, &f->err), PAWL_TIMEOUT, &f->err);
        assert_ok(i % 2 == 0 ? pawl_turn_commit(turn, &f->err)
                             : pawl_turn_abandon(turn, pawl_view_of("odd"), &f->err),
                  &f->err);
        for (int shown = 0; shown < 3 && i % 2 == 0; shown++) {
            assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
            assert_int_equal(event->turn, i);
        }
        pawl_turn_free(turn);
    }
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_int_equal(pawl_reader_position(reader), 15);
    pawl_reader_free(reader);
}

/* --- waiting --- */

struct helper {
    struct pawl__thread thread;
    struct ledger_fixture *f;
    pawl_reader *reader;
    int number;
    bool interrupts; /* the ledger, not only the reader */
    atomic_bool about_to_wait;
    pawl_status status;
    pawl_error err;
};

static void run_appender(void *context)
{
    struct helper *helper = context;
    pawl_event event = event_of("woken", 0, "0");

    helper->status = pawl_ledger_append(helper->f->ledger, &event, NULL, &helper->err);
}

/* Most likely when the other thread sleeps; when not, the outcome is the same. */
static void run_canceller(void *context)
{
    struct helper *helper = context;

    while (!atomic_load(&helper->about_to_wait)) {
        sched_yield();
    }
    for (int i = 0; i < 1000; i++) {
        sched_yield();
    }
    if (helper->interrupts) {
        pawl_ledger_interrupt(helper->f->ledger);
    } else {
        pawl_reader_cancel(helper->reader);
    }
}

enum { LONG_MS = 60000 }; /* nobody waits this long unless something is broken */

static void test_waiting_ends_with_an_event_the_time_or_cancelling(void **state)
{
    struct ledger_fixture *f = *state;
    struct helper helper = { .f = f };
    const pawl_event *event;

    assert_ok(pawl_reader_open(f->ledger, NULL, &helper.reader, &f->err), &f->err);
    assert_status(pawl_reader_wait(helper.reader, 1, &f->err), PAWL_TIMEOUT, &f->err);
    assert_ok(pawl__thread_start(&helper.thread, "append", run_appender, &helper, &f->err),
              &f->err);
    assert_ok(pawl_reader_wait(helper.reader, LONG_MS, &f->err), &f->err);
    assert_ok(pawl_reader_wait(helper.reader, 0, &f->err), &f->err); /* still unread */
    pawl__thread_join(&helper.thread);
    assert_ok(helper.status, &helper.err);
    assert_ok(pawl_reader_next(helper.reader, &event, &f->err), &f->err);
    assert_true(pawl__view_is(event->id, "woken"));

    assert_ok(pawl__thread_start(&helper.thread, "cancel", run_canceller, &helper, &f->err),
              &f->err);
    int64_t start_ns = pawl__monotonic_ns(pawl__clock_real());
    atomic_store(&helper.about_to_wait, true);
    assert_status(pawl_reader_wait(helper.reader, LONG_MS, &f->err), PAWL_CANCELLED, &f->err);
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - start_ns < LONG_MS / 2 * NS_PER_MS);
    pawl__thread_join(&helper.thread);
    assert_status(pawl_reader_wait(helper.reader, LONG_MS, &f->err), PAWL_CANCELLED, &f->err);
    pawl_reader_free(helper.reader);
    pawl_reader_free(NULL);
}

static void test_interrupting_the_ledger_ends_waiting(void **state)
{
    struct ledger_fixture *f = *state;
    struct helper helper = { .f = f, .interrupts = true };

    append_numbered(f, "e", 1);
    assert_ok(pawl_reader_open(f->ledger, NULL, &helper.reader, &f->err), &f->err);
    const pawl_event *event;
    assert_ok(pawl_reader_next(helper.reader, &event, &f->err), &f->err);
    assert_ok(pawl__thread_start(&helper.thread, "interrupt", run_canceller, &helper, &f->err),
              &f->err);
    int64_t start_ns = pawl__monotonic_ns(pawl__clock_real());
    atomic_store(&helper.about_to_wait, true);
    assert_status(pawl_reader_wait(helper.reader, LONG_MS, &f->err), PAWL_CANCELLED, &f->err);
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - start_ns < LONG_MS / 2 * NS_PER_MS);
    pawl__thread_join(&helper.thread);
    assert_status(pawl_reader_wait(helper.reader, LONG_MS, &f->err), PAWL_CANCELLED, &f->err);
    pawl_reader_free(helper.reader);
}

static void test_waiting_at_the_end_of_up_to_is_for_nothing(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    const pawl_event *event;
    pawl_reader *reader;

    append_numbered(f, "e", 3);
    options.up_to = 1;
    assert_ok(pawl_reader_open(f->ledger, &options, &reader, &f->err), &f->err);
    assert_ok(pawl_reader_wait(reader, LONG_MS, &f->err), &f->err);
    assert_ok(pawl_reader_next(reader, &event, &f->err), &f->err);
    assert_status(pawl_reader_next(reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_status(pawl_reader_wait(reader, LONG_MS, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_message(&f->err, "ends at offset 1");
    pawl_reader_free(reader);
}

enum { WRITERS = 4, EACH = 150, ALL = WRITERS * EACH, FOLLOWERS = 3 };

static void run_writer(void *context)
{
    struct helper *helper = context;
    char id[32];

    for (int i = 0; i < EACH && helper->status == PAWL_OK; i++) {
        snprintf(id, sizeof(id), "%d-%d", helper->number, i);
        pawl_event event = event_of(id, 0, "0");
        helper->status = pawl_ledger_append(helper->f->ledger, &event, NULL, &helper->err);
    }
}

/* Sees 1, 2, 3, ... in this order, each once. */
static void run_follower(void *context)
{
    struct helper *helper = context;
    const pawl_event *event;

    helper->status = pawl_reader_open(helper->f->ledger, NULL, &helper->reader, &helper->err);
    for (uint64_t next = 1; next <= ALL && helper->status == PAWL_OK;) {
        helper->status = pawl_reader_next(helper->reader, &event, &helper->err);
        if (helper->status == PAWL_NOT_FOUND) {
            helper->status = pawl_reader_wait(helper->reader, LONG_MS, &helper->err);
        } else if (helper->status == PAWL_OK && event->offset != next++) {
            helper->status = PAWL_FAILED;
        }
    }
    pawl_reader_free(helper->reader);
}

static void test_followers_see_each_event_once_while_others_write(void **state)
{
    struct ledger_fixture *f = *state;
    static struct helper helpers[WRITERS + FOLLOWERS];

    for (int i = 0; i < WRITERS + FOLLOWERS; i++) {
        helpers[i] = (struct helper){ .f = f, .number = i };
        assert_ok(pawl__thread_start(&helpers[i].thread,
                                     "helper",
                                     i < WRITERS ? run_writer : run_follower,
                                     &helpers[i],
                                     &f->err),
                  &f->err);
    }
    for (int i = 0; i < WRITERS + FOLLOWERS; i++) {
        pawl__thread_join(&helpers[i].thread);
        assert_ok(helpers[i].status, &helpers[i].err);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_pages_are_seamless),
        LEDGER_TEST(test_large_events_come_in_pages_of_few),
        LEDGER_TEST(test_an_event_comes_back_as_it_went_in),
        LEDGER_TEST(test_reading_starts_behind_from_and_ends_at_up_to),
        LEDGER_TEST(test_a_reader_from_after_the_end_is_refused_and_one_from_the_end_waits),
        LEDGER_TEST(test_a_reader_notices_that_the_log_ends_before_what_it_read),
        LEDGER_TEST(test_every_field_of_a_filter_must_match),
        LEDGER_TEST(test_a_filter_is_copied_and_checked),
        LEDGER_TEST(test_a_rare_event_is_found_behind_many_others),
        LEDGER_TEST(test_complete_turns_wait_at_the_first_open_one),
        LEDGER_TEST(test_complete_turns_skip_abandoned_attempts),
        LEDGER_TEST(test_a_reader_of_complete_turns_goes_on_when_a_turn_ends),
        LEDGER_TEST(test_waiting_ends_with_an_event_the_time_or_cancelling),
        LEDGER_TEST(test_interrupting_the_ledger_ends_waiting),
        LEDGER_TEST(test_waiting_at_the_end_of_up_to_is_for_nothing),
        LEDGER_TEST(test_followers_see_each_event_once_while_others_write),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
