/* Many threads that append the same events at once, on every backend. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/random.h"
#include "base/thread/thread.h"

enum { THREADS = 16, IDS = 240, BATCH_MAX = 5 };

struct appender {
    struct pawl__thread thread;
    pawl_ledger *ledger;
    uint64_t seed;
    uint64_t offsets[IDS]; /* as this thread was told */
    size_t firsts[IDS];    /* how often it was told that the event is new */
    pawl_status status;
    pawl_error err;
};

static void append_batch(struct appender *appender, const size_t *ids, size_t count)
{
    char texts[BATCH_MAX][16];
    pawl_event events[BATCH_MAX];
    pawl_append_result results[BATCH_MAX] = { PAWL_APPEND_RESULT_INIT };

    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "id-%zu", ids[i]);
        events[i] = event_of(texts[i], 0, "{}");
    }
    appender->status =
        pawl_ledger_append_many(appender->ledger, events, count, results, &appender->err);
    for (size_t i = 0; i < count && appender->status == PAWL_OK; i++) {
        uint64_t *offset = &appender->offsets[ids[i]];
        if (*offset != 0 && *offset != results[i].offset) {
            appender->status = PAWL_FAILED;
        }
        *offset = results[i].offset;
        appender->firsts[ids[i]] += !results[i].duplicate;
    }
}

/* All ids, in an order of its own, in batches of 1 to 5. */
static void run_appender(void *context)
{
    struct appender *appender = context;
    struct pawl__prng prng = pawl__prng_seeded(appender->seed);
    size_t order[IDS];

    for (size_t i = 0; i < IDS; i++) {
        size_t j = pawl__prng_below(&prng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < IDS && appender->status == PAWL_OK;) {
        size_t count = 1 + pawl__prng_below(&prng, BATCH_MAX);
        count = MIN(count, (size_t)IDS - i);
        append_batch(appender, &order[i], count);
        i += count;
    }
}

static void test_overlapping_ids_are_new_once_and_have_one_offset(void **state)
{
    struct ledger_fixture *f = *state;
    static struct appender appenders[THREADS];
    bool taken[IDS + 1] = { false };

    for (size_t i = 0; i < THREADS; i++) {
        appenders[i] = (struct appender){ .ledger = f->ledger, .seed = i };
        assert_ok(pawl__thread_start(
                      &appenders[i].thread, "append", run_appender, &appenders[i], &f->err),
                  &f->err);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&appenders[i].thread);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_ok(appenders[i].status, &appenders[i].err);
    }
    for (size_t id = 0; id < IDS; id++) {
        uint64_t offset = appenders[0].offsets[id];
        size_t firsts = 0;
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(appenders[i].offsets[id], offset);
            firsts += appenders[i].firsts[id];
        }
        assert_int_equal(firsts, 1);
        assert_in_range(offset, 1, IDS);
        assert_false(taken[offset]);
        taken[offset] = true;
    }
    assert_int_equal(latest_offset(f), IDS);
}

/* --- turns --- */

enum { CONDUCTORS = 6, TURNS = 8 };

struct conductor {
    struct pawl__thread thread;
    pawl_ledger *ledger;
    char run_id[8];
    int committed;
    pawl_status status;
    pawl_error err;
};

/* Three conductors a run compete for its turns; who loses one goes on with the next. */
static void run_conductor(void *context)
{
    struct conductor *conductor = context;
    pawl_event event = { .size = sizeof(pawl_event),
                         .kind = pawl_view_of("k"),
                         .actor = pawl_view_of("a"),
                         .payload = pawl_view_of("0") };

    for (int64_t i = 0; i < TURNS; i++) {
        pawl_turn *turn = NULL;
        pawl_status status = pawl_turn_begin(
            conductor->ledger, pawl_view_of(conductor->run_id), i, &turn, &conductor->err);
        if (status == PAWL_OK) {
            status = pawl_turn_append(turn, &event, 1, NULL, &conductor->err);
        }
        if (status == PAWL_OK) {
            status = pawl_turn_commit(turn, &conductor->err);
        }
        pawl_turn_free(turn);
        conductor->committed += status == PAWL_OK;
        if (status != PAWL_OK && status != PAWL_CONFLICT && status != PAWL_LEASE_LOST) {
            conductor->status = status;
            return;
        }
    }
}

static bool count_committed(void *context, const pawl_turn_info *info)
{
    *(int *)context += info->state == PAWL_TURN_COMMITTED;
    return true;
}

static pawl_status count_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)event;
    (void)reterr;
    ++*(int *)context;
    return PAWL_OK;
}

static void test_of_those_who_compete_for_a_turn_at_most_one_commits_it(void **state)
{
    struct ledger_fixture *f = *state;
    static struct conductor conductors[CONDUCTORS];
    int committed = 0;
    int rows = 0;
    int folded = 0;

    for (size_t i = 0; i < CONDUCTORS; i++) {
        conductors[i] = (struct conductor){ .ledger = f->ledger };
        snprintf(conductors[i].run_id, sizeof(conductors[i].run_id), "run-%zu", i % 2);
        assert_ok(pawl__thread_start(
                      &conductors[i].thread, "conduct", run_conductor, &conductors[i], &f->err),
                  &f->err);
    }
    for (size_t i = 0; i < CONDUCTORS; i++) {
        pawl__thread_join(&conductors[i].thread);
    }
    for (size_t i = 0; i < CONDUCTORS; i++) {
        assert_ok(conductors[i].status, &conductors[i].err);
        committed += conductors[i].committed;
    }
    assert_ok(
        pawl_ledger_turns(f->ledger, (pawl_view){ NULL, 0 }, NULL, count_committed, &rows, &f->err),
        &f->err);
    assert_int_equal(rows, committed);
    assert_in_range(committed, 1, 2 * TURNS); /* whoever comes last in a run has no rival */
    for (int i = 0; i < 2 * TURNS; i++) {     /* nothing is left open to hold the fold back */
        pawl_turn *turn = NULL;
        const char *run_id = conductors[i % 2].run_id;
        pawl_status status =
            pawl_turn_begin(f->ledger, pawl_view_of(run_id), i / 2, &turn, &f->err);
        assert_true(status == PAWL_OK || status == PAWL_CONFLICT);
        if (status == PAWL_OK) {
            assert_ok(pawl_turn_abandon(turn, pawl_view_of("over"), &f->err), &f->err);
        }
        pawl_turn_free(turn);
    }
    assert_ok(pawl_ledger_fold(f->ledger, NULL, count_event, &folded, NULL, &f->err), &f->err);
    assert_int_equal(folded, committed); /* one event for each, whoever tried */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_overlapping_ids_are_new_once_and_have_one_offset),
        LEDGER_TEST(test_of_those_who_compete_for_a_turn_at_most_one_commits_it),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
