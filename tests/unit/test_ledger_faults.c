/* Memory runs out at every place there is, on every backend: each call says so and does nothing, or
 * does all of it. */
#include "lib/ledger_fixture.h"

#include <stdatomic.h>

#include "lib/fault.h"

static void test_opening_survives_every_failed_allocation(void **state)
{
    struct ledger_fixture *f = *state;

    FAULT_WALK (walk) {
        pawl_ledger *ledger = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl_ledger_open(f->location, NULL, &ledger, &error);
        bool fired = fault_fired();
        fault_disarm();
        assert_true(status == PAWL_OK || (fired && status == PAWL_NOMEM));
        assert_true((status == PAWL_OK) == (ledger != NULL));
        pawl_ledger_close(ledger, 0, NULL);
    }
}

static void test_appending_survives_every_failed_allocation(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event events[] = { event_of("1", 0, "{\"\\u0061\":1}"), event_of("2", 0, "2.5e1") };

    FAULT_WALK (walk) {
        pawl_append_result results[2] = { { .size = sizeof(pawl_append_result), .offset = 99 } };
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl_ledger_append_many(f->ledger, events, 2, results, &error);
        bool fired = fault_fired();
        fault_disarm();
        assert_int_equal(status, fired ? PAWL_NOMEM : PAWL_OK);
        assert_int_equal(results[0].offset, fired ? 99 : 1);
        assert_int_equal(latest_offset(f), fired ? 0 : 2);
    }
}

static void count_answer(void *context,
                         const pawl_append_result *results,
                         size_t count,
                         const pawl_error *outcome)
{
    (void)results;
    (void)count;
    atomic_fetch_add((atomic_int *)context, outcome->status == PAWL_OK);
}

static void test_an_async_append_survives_every_failed_allocation(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_event events[] = { event_of("1", 0, "1"), event_of("2", 0, "2") };
    atomic_int stored = 0;

    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status =
            pawl_ledger_append_async(f->ledger, events, 2, count_answer, &stored, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
    pawl_ledger_close(f->ledger, 0, NULL); /* waits for the answers */
    f->ledger = NULL;
    assert_int_equal(atomic_load(&stored), 1);
}

static pawl_status take_a_turn(struct ledger_fixture *f, pawl_error *reterr)
{
    pawl_event events[] = {
        { .size = sizeof(pawl_event),
          .kind = { "k", 1 },
          .actor = { "a", 1 },
          .payload = { "1", 1 } },
        { .size = sizeof(pawl_event),
          .kind = { "l", 1 },
          .actor = { "a", 1 },
          .payload = { "1", 1 } },
    };
    pawl_turn *turn = NULL;
    pawl_status status = pawl_turn_begin(f->ledger, pawl_view_of("r"), 1, &turn, reterr);

    for (int tries = 0; tries < 2 && status == PAWL_OK; tries++) {
        status = pawl_turn_append(turn, events, 2, NULL, reterr);
    }
    pawl_turn_free(turn);
    return status;
}

static void test_a_turn_survives_every_failed_allocation(void **state)
{
    struct ledger_fixture *f = *state;

    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = take_a_turn(f, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
}

static pawl_status fold_nothing(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)context;
    (void)event;
    (void)reterr;
    return PAWL_OK;
}

static bool count_nothing(void *context, const pawl_count *counted)
{
    (void)context;
    (void)counted;
    return true;
}

static pawl_status ask_everything(struct ledger_fixture *f, pawl_error *reterr)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_fold_options folding = PAWL_FOLD_OPTIONS_INIT;
    pawl_event *event = NULL;

    filter.actor = pawl_view_of("a");
    folding.filter = &filter;
    folding.up_to_time_us = 1;
    pawl_status status = pawl_ledger_fold(f->ledger, NULL, fold_nothing, NULL, NULL, reterr);
    if (status == PAWL_OK) {
        status = pawl_ledger_fold(f->ledger, &folding, fold_nothing, NULL, NULL, reterr);
    }
    if (status == PAWL_OK) {
        status =
            pawl_ledger_counts(f->ledger, PAWL_COUNT_BY_RUN, NULL, count_nothing, NULL, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl_ledger_get(f->ledger, pawl_view_of("1"), 0, &event, reterr);
    }
    pawl_event_free(event);
    return status;
}

static void test_reading_survives_every_failed_allocation(void **state)
{
    struct ledger_fixture *f = *state;

    append_one(f, "1", 0, "1");
    pawl_turn *first = begin_turn(f, "r", 1);
    turn_says(f, first, "2");
    pawl_turn *second = begin_turn(f, "r", 1);
    assert_ok(pawl_turn_commit(second, &f->err), &f->err);
    pawl_turn_free(first);
    pawl_turn_free(second);
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = ask_everything(f, &error);
        assert_int_equal(status, fault_fired() ? PAWL_NOMEM : PAWL_OK);
    }
}

/* A turn that was abandoned, then enough to make the page grow while it is filled. */
static void make_long_history(struct ledger_fixture *f)
{
    static char payload[3000];
    char id[8] = "a";

    pawl_turn *turn = begin_turn(f, "r", 1);
    turn_says(f, turn, "2");
    assert_ok(pawl_turn_abandon(turn, pawl_view_of("x"), &f->err), &f->err);
    pawl_turn_free(turn);
    memset(payload, 'x', sizeof(payload));
    payload[0] = payload[sizeof(payload) - 2] = '"';
    payload[sizeof(payload) - 1] = '\0';
    for (; id[0] <= 'h'; id[0]++) {
        append_one(f, id, 5, payload);
    }
}

static void test_a_reader_that_ran_out_of_memory_goes_on_where_it_was(void **state)
{
    struct ledger_fixture *f = *state;
    pawl_reader_options complete = PAWL_READER_OPTIONS_INIT;

    make_long_history(f);
    complete.complete_turns = true;
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        const pawl_event *event;
        pawl_reader *reader = NULL;
        uint64_t next = 4; /* behind the abandoned turn */
        pawl_status status;
        do {
            status = pawl_reader_open(f->ledger, &complete, &reader, &error);
        } while (status == PAWL_NOMEM);
        while (status == PAWL_OK || status == PAWL_NOMEM) {
            status = pawl_reader_next(reader, &event, &error);
            if (status == PAWL_OK) {
                assert_int_equal(event->offset, next++);
            }
        }
        assert_status(status, PAWL_NOT_FOUND, &error);
        assert_int_equal(next, 12);
        pawl_reader_free(reader);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_opening_survives_every_failed_allocation),
        LEDGER_TEST(test_appending_survives_every_failed_allocation),
        LEDGER_TEST(test_an_async_append_survives_every_failed_allocation),
        LEDGER_TEST(test_a_turn_survives_every_failed_allocation),
        LEDGER_TEST(test_reading_survives_every_failed_allocation),
        LEDGER_TEST(test_a_reader_that_ran_out_of_memory_goes_on_where_it_was),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
