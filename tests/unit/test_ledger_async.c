/* Appending without waiting, readers that are told when there is something to read, and events that are
 * checked without a ledger. */
#include "lib/ledger_fixture.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_S = 60, MANY = 200, LARGE = 1 << 20, TOO_MANY = 100 };

struct told {
    struct ledger_fixture *f;
    pawl_reader *reader;
    sem_t done;
    sem_t go_on; /* of a `done` that is held */
    pawl_error outcome;
    pawl_detail appending; /* of calls that wait, from inside */
    pawl_detail waiting;
    pawl_detail closing;
    pawl_status reading; /* of one that does not */
    uint64_t offset;
    size_t count;
    atomic_int calls;
};

static void await(sem_t *semaphore)
{
    struct timespec deadline;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    assert_int_equal(sem_timedwait(semaphore, &deadline), 0);
}

static void told_init(struct told *told, struct ledger_fixture *f)
{
    *told = (struct told){ .f = f };
    assert_int_equal(sem_init(&told->done, 0, 0), 0);
    assert_int_equal(sem_init(&told->go_on, 0, 0), 0);
}

static void told_done(struct told *told)
{
    sem_destroy(&told->done);
    sem_destroy(&told->go_on);
}

static void note(void *context,
                 const pawl_append_result *results,
                 size_t count,
                 const pawl_error *outcome)
{
    struct told *told = context;

    told->outcome = *outcome;
    told->count = count;
    told->offset = results == NULL ? 0 : results[count - 1].offset;
    atomic_fetch_add(&told->calls, 1);
    sem_post(&told->done);
}

/* Keeps the committer's thread until it may go on. */
static void hold(void *context,
                 const pawl_append_result *results,
                 size_t count,
                 const pawl_error *outcome)
{
    struct told *told = context;

    (void)results;
    (void)count;
    (void)outcome;
    sem_post(&told->done);
    while (sem_wait(&told->go_on) != 0) {
    }
}

static void start(struct told *told, const pawl_event *events, size_t count)
{
    struct ledger_fixture *f = told->f;

    assert_ok(pawl_ledger_append_async(f->ledger, events, count, note, told, &f->err), &f->err);
}

static void start_held(struct told *told)
{
    struct ledger_fixture *f = told->f;
    pawl_event event = event_of("held", 0, "1");

    assert_ok(pawl_ledger_append_async(f->ledger, &event, 1, hold, told, &f->err), &f->err);
    await(&told->done);
}

/* --- appends --- */

static void test_an_append_is_answered_once_it_is_stored(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event events[] = { event_of("a", 0, "1"), event_of("b", 0, "2") };
    pawl_event *stored = NULL;
    struct told told;

    told_init(&told, f);
    start(&told, events, 2);
    await(&told.done);
    assert_int_equal(told.outcome.status, PAWL_OK);
    assert_int_equal(told.outcome.index, -1);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.offset, 2);
    assert_ok(pawl_ledger_get(f->ledger, pawl_view_of("b"), 0, &stored, &f->err), &f->err);
    pawl_event_free(stored);
    told_done(&told);
}

static void test_a_conflict_is_told_to_done(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event events[] = { event_of("b", 0, "1"), event_of("a", 0, "9") };
    struct told told;

    told_init(&told, f);
    append_one(f, "a", 0, "1");
    start(&told, events, 2);
    await(&told.done);
    assert_int_equal(told.outcome.status, PAWL_CONFLICT);
    assert_int_equal(told.outcome.detail, PAWL_DETAIL_ID_TAKEN);
    assert_int_equal(told.outcome.index, 1);
    assert_int_equal(told.count, 0);
    assert_int_equal(told.offset, 0);
    assert_int_equal(latest_offset(f), 1);
    told_done(&told);
}

static void test_texts_of_the_caller_are_copied(void **state)
{
    struct ledger_fixture *f = *state;
    char id[] = "mine";
    char payload[] = "[1]";
    pawl_event event = event_of(id, 0, payload);
    pawl_event *stored = NULL;
    struct told told;

    told_init(&told, f);
    start_held(&told);
    start(&told, &event, 1);
    memset(id, 'x', sizeof(id) - 1);
    memset(payload, 'x', sizeof(payload) - 1);
    memset(&event, 0, sizeof(event));
    sem_post(&told.go_on);
    await(&told.done);
    assert_int_equal(told.outcome.status, PAWL_OK);
    assert_ok(pawl_ledger_get(f->ledger, pawl_view_of("mine"), 0, &stored, &f->err), &f->err);
    assert_int_equal(stored->payload.len, 3);
    assert_memory_equal(stored->payload.data, "[1]", 3);
    assert_int_equal(stored->schema_version, 1);
    assert_true(stored->created_at_us > 0);
    pawl_event_free(stored);
    told_done(&told);
}

static void test_a_wrong_append_is_refused_and_not_answered(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event events[] = { event_of("a", 0, "1"), event_of("b", -1, "1") };
    struct told told;

    told_init(&told, f);
    assert_status(pawl_ledger_append_async(f->ledger, events, 2, note, &told, &f->err),
                  PAWL_INVALID,
                  &f->err);
    assert_int_equal(f->err.index, 1);
    assert_detail(pawl_ledger_append_async(f->ledger, events, 0, note, &told, &f->err),
                  PAWL_DETAIL_OUT_OF_RANGE,
                  &f->err);
    assert_detail(pawl_ledger_append_async(f->ledger, events, 1, NULL, &told, &f->err),
                  PAWL_DETAIL_NULL_ARGUMENT,
                  &f->err);
    assert_int_equal(latest_offset(f), 0);
    assert_ok(pawl_ledger_close(f->ledger, 0, &f->err), &f->err); /* waits for every answer */
    f->ledger = NULL;
    assert_int_equal(atomic_load(&told.calls), 0);
    told_done(&told);
}

static void test_a_ledger_that_only_reads_refuses(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_event event = event_of("b", 0, "1");
    struct told told;

    append_one(f, "a", 0, "1");
    if (!ledger_fixture_close(f)) {
        return; /* a ledger in memory cannot be opened again */
    }
    told_init(&told, f);
    options.read_only = true;
    ledger_fixture_open(f, &options);
    assert_status(
        pawl_ledger_append_async(f->ledger, &event, 1, note, &told, &f->err), PAWL_DENIED, &f->err);
    assert_int_equal(atomic_load(&told.calls), 0);
    told_done(&told);
}

static void meddle(void *context,
                   const pawl_append_result *results,
                   size_t count,
                   const pawl_error *outcome)
{
    struct told *told = context;
    pawl_ledger *ledger = told->f->ledger;
    pawl_event event = event_of("inside", 0, "1");
    pawl_event *found = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)results;
    (void)count;
    (void)outcome;
    told->appending = detail_of(pawl_ledger_append(ledger, &event, NULL, &error), &error);
    told->waiting = detail_of(pawl_reader_wait(told->reader, 60000, &error), &error);
    told->reading = pawl_ledger_get(ledger, pawl_view_of("a"), 0, &found, &error);
    pawl_event_free(found);
    told->closing = detail_of(pawl_ledger_close(ledger, 0, &error), &error);
    if (pawl_ledger_append_async(ledger, &event, 1, note, told, &error) != PAWL_OK) {
        sem_post(&told->done);
    }
}

static void test_inside_done_only_calls_that_do_not_wait_are_fine(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event event = event_of("a", 0, "1");
    pawl_reader_options after = PAWL_READER_OPTIONS_INIT;
    struct told told;

    told_init(&told, f);
    append_one(f, "first", 0, "1");
    after.from = 1;
    assert_ok(pawl_reader_open(f->ledger, &after, &told.reader, &f->err), &f->err);
    assert_ok(pawl_ledger_append_async(f->ledger, &event, 1, meddle, &told, &f->err), &f->err);
    await(&told.done);
    assert_int_equal(told.appending, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(told.waiting, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(told.closing, PAWL_DETAIL_WRONG_THREAD);
    assert_int_equal(told.reading, PAWL_OK);
    assert_int_equal(told.outcome.status, PAWL_OK);
    assert_int_equal(told.offset, 3);
    pawl_reader_free(told.reader);
    told_done(&told);
}

static void test_close_waits_for_every_answer(void **state)
{
    struct ledger_fixture *f = *state;
    struct told told;
    char id[16];

    told_init(&told, f);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof(id), "e-%d", i);
        pawl_event event = event_of(id, 0, "1");
        start(&told, &event, 1);
    }
    assert_ok(pawl_ledger_close(f->ledger, 0, &f->err), &f->err);
    f->ledger = NULL;
    assert_int_equal(atomic_load(&told.calls), MANY);
    assert_int_equal(told.outcome.status, PAWL_OK);
    assert_int_equal(told.offset, MANY); /* in the order of the calls */
    told_done(&told);
}

/* All are the same event, so that the store has little to write. */
static void test_too_many_that_wait_are_refused(void **state)
{
    struct ledger_fixture *f = *state;
    char *payload = malloc(LARGE + 1);
    pawl_status status = PAWL_OK;
    int taken = 0;
    struct told told;

    assert_non_null(payload);
    memset(payload, '7', LARGE);
    payload[0] = payload[LARGE - 1] = '"';
    payload[LARGE] = '\0';
    pawl_event event = event_of("large", 0, payload);
    told_init(&told, f);
    start_held(&told);
    for (int i = 0; i < TOO_MANY && status == PAWL_OK; i++) {
        status = pawl_ledger_append_async(f->ledger, &event, 1, note, &told, &f->err);
        taken += status == PAWL_OK;
    }
    assert_status(status, PAWL_BUSY, &f->err);
    assert_int_equal(f->err.detail, PAWL_DETAIL_QUEUE_FULL);
    assert_true(f->err.retryable);
    sem_post(&told.go_on);
    for (int i = 0; i < taken; i++) {
        await(&told.done);
    }
    start(&told, &event, 1); /* there is room again */
    await(&told.done);
    assert_int_equal(told.outcome.status, PAWL_OK);
    assert_int_equal(told.offset, 2);
    assert_int_equal(atomic_load(&told.calls), taken + 1);
    free(payload);
    told_done(&told);
}

/* --- readers --- */

static void wake(void *context)
{
    sem_post(context);
}

/* Two readers that are told. Of one change the one that came first is told last. */
struct followers {
    pawl_reader *reader;
    pawl_reader *last;
    sem_t news;
    sem_t all_told;
};

static void followers_init(struct followers *followers, struct ledger_fixture *f)
{
    assert_int_equal(sem_init(&followers->news, 0, 0), 0);
    assert_int_equal(sem_init(&followers->all_told, 0, 0), 0);
    assert_ok(pawl_reader_open(f->ledger, NULL, &followers->last, &f->err), &f->err);
    assert_ok(pawl_reader_on_events(followers->last, wake, &followers->all_told, &f->err), &f->err);
    assert_ok(pawl_reader_open(f->ledger, NULL, &followers->reader, &f->err), &f->err);
    assert_ok(pawl_reader_on_events(followers->reader, wake, &followers->news, &f->err), &f->err);
}

static void followers_done(struct followers *followers)
{
    pawl_reader_free(followers->reader);
    pawl_reader_free(followers->last);
    sem_destroy(&followers->news);
    sem_destroy(&followers->all_told);
}

static void forget(sem_t *semaphore)
{
    while (sem_trywait(semaphore) == 0) {
    }
}

static void test_a_reader_is_told_of_events_without_a_thread(void **state)
{
    struct ledger_fixture *f = *state;
    const pawl_event *event = NULL;
    struct followers followers;

    followers_init(&followers, f);
    for (uint64_t offset = 1; offset <= 3; offset++) {
        char id[] = { (char)('a' + offset), '\0' };

        assert_status(pawl_reader_next(followers.reader, &event, &f->err), PAWL_NOT_FOUND, &f->err);
        append_one(f, id, 0, "1");
        do {
            await(&followers.news); /* the store's watcher may tell of an earlier change */
        } while (pawl_reader_next(followers.reader, &event, &f->err) == PAWL_NOT_FOUND);
        assert_int_equal(event->size, sizeof(*event));
        assert_int_equal(event->offset, offset);
    }
    followers_done(&followers);
}

static void test_a_reader_that_ended_it_is_not_told(void **state)
{
    struct ledger_fixture *f = *state;
    struct followers followers;

    followers_init(&followers, f);
    assert_ok(pawl_reader_on_events(followers.reader, NULL, NULL, &f->err), &f->err);
    forget(&followers.news);
    forget(&followers.all_told);
    append_one(f, "a", 0, "1");
    await(&followers.all_told);
    assert_int_not_equal(sem_trywait(&followers.news), 0);
    assert_ok(pawl_reader_on_events(followers.reader, wake, &followers.news, &f->err), &f->err);
    pawl_reader_free(followers.reader);
    followers.reader = NULL;
    forget(&followers.news);
    forget(&followers.all_told);
    append_one(f, "b", 0, "1");
    await(&followers.all_told);
    assert_int_not_equal(sem_trywait(&followers.news), 0);
    followers_done(&followers);
}

static void test_another_notify_replaces_the_first(void **state)
{
    struct ledger_fixture *f = *state;
    struct followers followers;
    sem_t other;

    assert_int_equal(sem_init(&other, 0, 0), 0);
    followers_init(&followers, f);
    assert_ok(pawl_reader_on_events(followers.reader, wake, &other, &f->err), &f->err);
    forget(&followers.news);
    forget(&followers.all_told);
    append_one(f, "a", 0, "1");
    await(&other);
    await(&followers.all_told);
    assert_int_not_equal(sem_trywait(&followers.news), 0);
    followers_done(&followers);
    sem_destroy(&other);
}

static void test_a_cancelled_reader_is_told(void **state)
{
    struct ledger_fixture *f = *state;
    struct followers followers;

    followers_init(&followers, f);
    pawl_reader_cancel(followers.reader);
    await(&followers.news);
    followers_done(&followers);
}

static void test_a_reader_is_told_of_other_handles(void **state)
{
    struct ledger_fixture *f = *state;
    const pawl_event *found = NULL;
    pawl_event event = event_of("a", 0, "1");
    pawl_ledger *other = NULL;
    struct followers followers;

    if (strcmp(f->backend, "memory") == 0) {
        return; /* is in one handle only */
    }
    followers_init(&followers, f);
    assert_ok(pawl_ledger_open(f->location, NULL, &other, &f->err), &f->err);
    assert_ok(pawl_ledger_append(other, &event, NULL, &f->err), &f->err);
    do {
        await(&followers.news);
    } while (pawl_reader_next(followers.reader, &found, &f->err) == PAWL_NOT_FOUND);
    assert_int_equal(found->offset, 1);
    assert_ok(pawl_ledger_close(other, 0, &f->err), &f->err);
    followers_done(&followers);
}

static void close_ledger(void *context)
{
    struct told *told = context;
    pawl_error error = PAWL_ERROR_INIT;

    told->closing = detail_of(pawl_ledger_close(told->f->ledger, 0, &error), &error);
    sem_post(&told->done);
}

static void test_close_inside_notify_is_refused(void **state)
{
    struct ledger_fixture *f = *state;
    struct told told;

    told_init(&told, f);
    assert_ok(pawl_reader_open(f->ledger, NULL, &told.reader, &f->err), &f->err);
    assert_ok(pawl_reader_on_events(told.reader, close_ledger, &told, &f->err), &f->err);
    append_one(f, "a", 0, "1");
    await(&told.done);
    pawl_reader_free(told.reader); /* it may be told more than once; from here on it is not */
    assert_int_equal(told.closing, PAWL_DETAIL_WRONG_THREAD);
    append_one(f, "b", 0, "1");
    assert_int_equal(latest_offset(f), 2);
    told_done(&told);
}

/* --- events --- */

static void test_an_event_is_checked_without_a_ledger(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_event event = event_of("a", 0, "{\"a\":1}");

    event.schema_version = 0; /* 1 */
    event.created_at_us = 0;  /* now */
    assert_ok(pawl_event_check(&event, NULL, &f->err), &f->err);
    options.payload_bytes_max = 3;
    assert_status(pawl_event_check(&event, &options, &f->err), PAWL_INVALID, &f->err);
    assert_message(&f->err, "payload: has 7 bytes, the limit is 3");
    event.schema_version = -1;
    assert_status(pawl_event_check(&event, NULL, &f->err), PAWL_INVALID, &f->err);
    event.schema_version = 1;
    event.kind = pawl_view_of("pawl.turn.begin");
    assert_status(pawl_event_check(&event, NULL, &f->err), PAWL_INVALID, &f->err);
    event.kind = pawl_view_of("k");
    event.payload = pawl_view_of("{");
    assert_status(pawl_event_check(&event, NULL, &f->err), PAWL_INVALID, &f->err);
    event.size = 0;
    assert_detail(pawl_event_check(&event, NULL, &f->err), PAWL_DETAIL_STRUCT_SIZE, &f->err);
    options.size = 0;
    assert_detail(pawl_event_check(&event, &options, &f->err), PAWL_DETAIL_STRUCT_SIZE, &f->err);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_an_append_is_answered_once_it_is_stored),
        LEDGER_TEST(test_a_conflict_is_told_to_done),
        LEDGER_TEST(test_texts_of_the_caller_are_copied),
        LEDGER_TEST(test_a_wrong_append_is_refused_and_not_answered),
        LEDGER_TEST(test_a_ledger_that_only_reads_refuses),
        LEDGER_TEST(test_inside_done_only_calls_that_do_not_wait_are_fine),
        LEDGER_TEST(test_close_waits_for_every_answer),
        LEDGER_TEST(test_too_many_that_wait_are_refused),
        LEDGER_TEST(test_a_reader_is_told_of_events_without_a_thread),
        LEDGER_TEST(test_a_reader_that_ended_it_is_not_told),
        LEDGER_TEST(test_another_notify_replaces_the_first),
        LEDGER_TEST(test_a_cancelled_reader_is_told),
        LEDGER_TEST(test_a_reader_is_told_of_other_handles),
        LEDGER_TEST(test_close_inside_notify_is_refused),
        LEDGER_TEST(test_an_event_is_checked_without_a_ledger),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
