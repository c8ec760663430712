/* Opening, closing and asking on every backend. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "ledger/core/internal.h"
#include "lib/virtual_clock.h"

static pawl_status try_open(struct ledger_fixture *f,
                            const char *location,
                            const pawl_ledger_options *options)
{
    pawl_ledger *kept = NULL;
    pawl_status status = pawl_ledger_open(location, options, &kept, &f->err);

    assert_true((status == PAWL_OK) == (kept != NULL));
    pawl_ledger_close(kept, 0, NULL);
    return status;
}

static void test_what_was_closed_is_there_when_it_is_opened_again(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_head before;
    pawl_ledger_head after;

    append_one(f, "1", 0, "1");
    pawl_turn_free(begin_turn(f, "r", 1));
    assert_ok(pawl_ledger_get_head(f->ledger, &before, &f->err), &f->err);
    if (!ledger_fixture_close(f)) {
        return;
    }
    ledger_fixture_open(f, NULL);
    assert_ok(pawl_ledger_get_head(f->ledger, &after, &f->err), &f->err);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_int_equal(append_one(f, "1", 0, "1"), 1);
    pawl_turn *turn = begin_turn(f, "r", 1);
    assert_int_equal(pawl_turn_attempt(turn), 2);
    pawl_turn_free(turn);
    assert_int_equal(latest_offset(f), 4);
}

static void test_a_ledger_stamps_by_the_clock_that_it_is_given(void **state)
{
    enum { START_US = 1000000 };
    struct ledger_fixture *f = *state;
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(START_US, 0);
    pawl_ledger *ledger = NULL;
    pawl_event event = event_of("1", 0, "1");
    pawl_event *stored = NULL;

    event.created_at_us = 0;
    assert_ok(pawl__ledger_open_at(f->location, NULL, &clock.base, &ledger, &f->err), &f->err);
    pawl__clock_advance(&clock, 5 * NS_PER_S);
    assert_ok(pawl_ledger_append(ledger, &event, NULL, &f->err), &f->err);
    assert_ok(pawl_ledger_get(ledger, pawl_view_of("1"), 0, &stored, &f->err), &f->err);
    assert_int_equal(stored->created_at_us, START_US + 5 * US_PER_S);
    pawl_event_free(stored);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_read_only_ledger_reads_and_refuses_to_write(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_event event = event_of("2", 0, "2");
    pawl_turn *turn = NULL;

    append_one(f, "1", 0, "1");
    if (!ledger_fixture_close(f)) {
        return;
    }
    options.read_only = true;
    ledger_fixture_open(f, &options);
    assert_reads(f, NULL, "1 r/0 k 1\nat 1\n");
    assert_status(pawl_ledger_append(f->ledger, &event, NULL, &f->err), PAWL_DENIED, &f->err);
    assert_status(
        pawl_turn_begin(f->ledger, pawl_view_of("r"), 1, &turn, &f->err), PAWL_DENIED, &f->err);
    assert_null(turn);
}

static void test_two_handles_of_one_ledger_share_it(void **state)
{
    struct ledger_fixture *f = *state;
    struct ledger_fixture other = *f;

    if (strcmp(f->backend, "memory") == 0) {
        return; /* each handle is a ledger of its own */
    }
    ledger_fixture_open(&other, NULL);
    assert_int_equal(append_one(f, "1", 0, "1"), 1);
    assert_int_equal(append_one(&other, "2", 0, "2"), 2);
    assert_int_equal(append_one(f, "2", 0, "2"), 2);
    pawl_turn *mine = begin_turn(f, "r", 1);
    pawl_turn *theirs = begin_turn(&other, "r", 1);
    assert_status(pawl_turn_commit(mine, &f->err), PAWL_LEASE_LOST, &f->err);
    assert_ok(pawl_turn_commit(theirs, &f->err), &f->err);
    pawl_turn_free(mine);
    pawl_turn_free(theirs);
    pawl_ledger_close(other.ledger, 0, NULL);
}

static void test_a_ledger_that_must_exist_is_not_made(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    char path[TEMPDIR_SIZE + 16];

    snprintf(path, sizeof(path), "%s/none.db", f->dir);
    options.must_exist = true;
    assert_status(try_open(f, path, &options), PAWL_NOT_FOUND, &f->err);
    options.must_exist = false;
    options.read_only = true;
    assert_status(try_open(f, path, &options), PAWL_NOT_FOUND, &f->err);
    options.read_only = false;
    assert_ok(try_open(f, path, &options), &f->err);
}

static void test_options_of_an_older_header_are_fine(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_event event = event_of("x", 0, "12345");

    options.read_only = true; /* behind what the older header had */
    options.payload_bytes_max = 4;
    options.size = offsetof(pawl_ledger_options, must_exist);
    pawl_ledger *ledger;
    assert_ok(pawl_ledger_open("memory:", &options, &ledger, &f->err), &f->err);
    assert_status(pawl_ledger_append(ledger, &event, NULL, &f->err), PAWL_INVALID, &f->err);
    event.payload.len = 4;
    assert_ok(pawl_ledger_append(ledger, &event, NULL, &f->err), &f->err);
    pawl_ledger_close(ledger, 0, NULL);

    options.size = 0;
    assert_status(try_open(f, "memory:", &options), PAWL_INVALID, &f->err);
    assert_message(&f->err, "options: size is 0");
    options.size = sizeof(options) + 8; /* a newer header: it may ask for what is not here */
    assert_status(try_open(f, "memory:", &options), PAWL_INVALID, &f->err);
    options.size = sizeof(options);
    options.payload_bytes_max = 0;
    assert_status(try_open(f, "memory:", &options), PAWL_INVALID, &f->err);
    options.payload_bytes_max = (256U << 20) + 1;
    assert_status(try_open(f, "memory:", &options), PAWL_INVALID, &f->err);
    options.payload_bytes_max = 256U << 20;
    options.read_only = false;
    assert_ok(try_open(f, "memory:", &options), &f->err);
}

static void test_the_environment_names_a_ledger_when_nothing_else_does(void **state)
{
    struct ledger_fixture *f = *state;

    assert_int_equal(unsetenv("DATABASE_URL"), 0);
    assert_status(try_open(f, NULL, NULL), PAWL_INVALID, &f->err);
    assert_message(&f->err, "DATABASE_URL");
    assert_int_equal(setenv("DATABASE_URL", "memory:", 1), 0);
    assert_ok(try_open(f, NULL, NULL), &f->err);
    assert_int_equal(setenv("DATABASE_URL", "oracle://x", 1), 0);
    assert_status(try_open(f, NULL, NULL), PAWL_INVALID, &f->err);
    assert_ok(try_open(f, "memory:", NULL), &f->err); /* and only then */
    assert_int_equal(unsetenv("DATABASE_URL"), 0);
    assert_status(try_open(f, "", NULL), PAWL_INVALID, &f->err);
    assert_status(pawl_ledger_open("memory:", NULL, NULL, &f->err), PAWL_INVALID, &f->err);
    pawl_ledger_close(NULL, 0, NULL);
}

struct appender {
    struct pawl__thread thread;
    pawl_ledger *ledger;
    pawl_status status;
    pawl_error err;
};

static void run_append(void *context)
{
    struct appender *appender = context;
    pawl_event event = event_of("late", 0, "0");

    appender->status = pawl_ledger_append(appender->ledger, &event, NULL, &appender->err);
}

static void count_commits(void *context, const char *name, uint64_t passes)
{
    if (strcmp(name, "sqlite.commit.before") == 0) {
        *(uint64_t *)context = passes;
    }
}

static uint64_t commits_passed(void)
{
    uint64_t passes = 0;

    pawl__failpoint_names(count_commits, &passes);
    return passes;
}

static void test_closing_waits_for_an_append_under_way(void **state)
{
    struct ledger_fixture *f = *state;
    struct appender appender = { .ledger = f->ledger };

    if (strcmp(f->backend, "sqlite") != 0
        || pawl__failpoint_set("sqlite.commit.before=delay:50", &f->err) != PAWL_OK) {
        return; /* nothing holds a commit up */
    }
    uint64_t before = commits_passed();
    assert_ok(pawl__thread_start(&appender.thread, "append", run_append, &appender, &f->err),
              &f->err);
    while (commits_passed() == before) {
        sched_yield();
    }
    ledger_fixture_close(f);
    pawl__thread_join(&appender.thread);
    assert_ok(pawl__failpoint_set(NULL, &f->err), &f->err);
    assert_ok(appender.status, &appender.err);
    ledger_fixture_open(f, NULL);
    assert_int_equal(append_one(f, "late", 0, "0"), 1);
}

/* --- questions --- */

static bool add_count(void *context, const pawl_count *counted)
{
    struct pawl__buf *text = context;

    pawl__buf_add_format(
        text, "%.*s=%llu ", VIEW_ARGS(counted->name), (unsigned long long)counted->count);
    return !pawl__view_is(counted->name, "stop");
}

static void assert_counts(struct ledger_fixture *f,
                          pawl_count_by by,
                          const pawl_event_filter *filter,
                          const char *expected)
{
    struct pawl__buf text = BUF_INIT(1024);

    assert_ok(pawl_ledger_counts(f->ledger, by, filter, add_count, &text, &f->err), &f->err);
    assert_text(&text, expected);
    pawl__buf_done(&text);
}

static void append_as(struct ledger_fixture *f, const char *id, const char *run, const char *actor)
{
    pawl_event event = event_of(id, 1, "0");

    event.run_id = pawl_view_of(run);
    event.actor = pawl_view_of(actor);
    assert_ok(pawl_ledger_append(f->ledger, &event, NULL, &f->err), &f->err);
}

static void test_counts_come_in_order_of_the_name(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;

    assert_counts(f, PAWL_COUNT_BY_RUN, NULL, "");
    append_as(f, "1", "b", "zoe");
    append_as(f, "2", "a", "\xC3\xA4nne");
    append_as(f, "3", "b", "Zoe");
    append_as(f, "4", "stop", "zoe");
    append_as(f, "5", "z", "zo");
    assert_counts(f, PAWL_COUNT_BY_RUN, NULL, "a=1 b=2 stop=1 "); /* and ends when told to */
    assert_counts(f, PAWL_COUNT_BY_KIND, NULL, "k=5 ");
    assert_counts(f, PAWL_COUNT_BY_ACTOR, NULL, "Zoe=1 zo=1 zoe=2 \xC3\xA4nne=1 ");
    filter.actor = pawl_view_of("zoe");
    assert_counts(f, PAWL_COUNT_BY_RUN, &filter, "b=1 stop=1 ");
    filter.turn_max = 0;
    assert_counts(f, PAWL_COUNT_BY_RUN, &filter, "");
    filter.size = 1;
    assert_status(
        pawl_ledger_counts(f->ledger, PAWL_COUNT_BY_RUN, &filter, add_count, NULL, &f->err),
        PAWL_INVALID,
        &f->err);
    assert_status(pawl_ledger_counts(f->ledger, (pawl_count_by)9, NULL, add_count, NULL, &f->err),
                  PAWL_INVALID,
                  &f->err);
}

static void test_the_highest_turn_of_a_run_and_of_all(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_view all = { NULL, 0 };
    int64_t turn = 77;

    assert_status(pawl_ledger_max_turn(f->ledger, all, &turn, &f->err), PAWL_NOT_FOUND, &f->err);
    append_one(f, "1", 8, "0");
    append_one(f, "2", 3, "0");
    append_as(f, "3", "q", "a");
    assert_status(pawl_ledger_max_turn(f->ledger, pawl_view_of("s"), &turn, &f->err),
                  PAWL_NOT_FOUND,
                  &f->err);
    assert_int_equal(turn, 77);
    assert_ok(pawl_ledger_max_turn(f->ledger, all, &turn, &f->err), &f->err);
    assert_int_equal(turn, 8);
    assert_ok(pawl_ledger_max_turn(f->ledger, pawl_view_of("q"), &turn, &f->err), &f->err);
    assert_int_equal(turn, 1);
}

static void test_an_event_is_found_by_id_or_by_offset(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_view none = { NULL, 0 };
    pawl_event *found = NULL;
    pawl_ledger_head head;

    assert_ok(pawl_ledger_get_head(f->ledger, &head, &f->err), &f->err);
    assert_int_equal(head.offset, 0);
    assert_int_equal(head.hash[0], 0);
    append_one(f, "1", 0, "\"one\"");
    append_one(f, "2", 0, "\"two\"");
    assert_ok(pawl_ledger_get(f->ledger, pawl_view_of("2"), 0, &found, &f->err), &f->err);
    assert_int_equal(found->offset, 2);
    pawl_event_free(found);
    assert_ok(pawl_ledger_get(f->ledger, none, 1, &found, &f->err), &f->err);
    assert_true(pawl__view_is(found->payload, "\"one\""));
    pawl_event_free(found);
    found = NULL;
    assert_status(
        pawl_ledger_get(f->ledger, pawl_view_of("3"), 0, &found, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_status(pawl_ledger_get(f->ledger, none, 3, &found, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_status(
        pawl_ledger_get(f->ledger, none, UINT64_MAX, &found, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_status(pawl_ledger_get(f->ledger, none, 0, &found, &f->err), PAWL_INVALID, &f->err);
    assert_status(
        pawl_ledger_get(f->ledger, pawl_view_of("1"), 1, &found, &f->err), PAWL_INVALID, &f->err);
    assert_null(found);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_what_was_closed_is_there_when_it_is_opened_again),
        LEDGER_TEST(test_a_ledger_stamps_by_the_clock_that_it_is_given),
        LEDGER_TEST(test_a_read_only_ledger_reads_and_refuses_to_write),
        LEDGER_TEST(test_two_handles_of_one_ledger_share_it),
        LEDGER_TEST(test_a_ledger_that_must_exist_is_not_made),
        LEDGER_TEST(test_options_of_an_older_header_are_fine),
        LEDGER_TEST(test_the_environment_names_a_ledger_when_nothing_else_does),
        LEDGER_TEST(test_closing_waits_for_an_append_under_way),
        LEDGER_TEST(test_counts_come_in_order_of_the_name),
        LEDGER_TEST(test_the_highest_turn_of_a_run_and_of_all),
        LEDGER_TEST(test_an_event_is_found_by_id_or_by_offset),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
