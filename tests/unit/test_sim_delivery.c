/* Delivery in a simulated world: the real pipeline on a broker, a WAL and a sink that crash, forget and lie.
 *
 *     test_sim_delivery [--rounds SEEDS] [--seed N]
 *
 * A seed that fails prints its trace; once the fault is found, the seed stays in `regressions`. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/check.h"
#include "lib/repeat.h"

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "sim/sim.h"

enum { SEEDS = 1000, TRACE_BYTES_MAX = 4 << 20 };

static struct repeat asked;

static struct sim_report run(uint64_t seed, enum sim_defect defect)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct sim_report report;

    const struct sim_options options = { seed, SIM_ALL_FAULTS, defect, NULL };
    assert_ok(pawl__sim_delivery(&options, NULL, &report, &error), &error);
    return report;
}

static void print_trace(uint64_t seed)
{
    struct pawl__buf trace = BUF_INIT(TRACE_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    struct sim_report report;

    const struct sim_options options = { seed, SIM_ALL_FAULTS, SIM_NO_DEFECT, NULL };
    assert_ok(pawl__sim_delivery(&options, &trace, &report, &error), &error);
    fwrite(trace.data, 1, trace.len, stderr);
    pawl__buf_done(&trace);
}

static struct sim_report expect_clean(uint64_t seed)
{
    struct sim_report report = run(seed, SIM_NO_DEFECT);

    if (!report.is_clean) {
        print_trace(seed);
        fail_msg("seed %" PRIu64 ": %s; again with: test_sim_delivery --rounds 1 --seed %" PRIu64,
                 seed,
                 report.violation,
                 seed);
    }
    return report;
}

static void test_every_event_arrives_once_whatever_happens(void **state)
{
    struct sim_report sum = { 0 };

    (void)state;
    for (uint64_t i = 0; i < asked.rounds; i++) {
        struct sim_report report = expect_clean(asked.seed + i);
        sum.published += report.published;
        sum.faults += report.faults;
        sum.on_record += report.on_record;
        sum.reopened += report.reopened;
    }
    printf("# result rounds=%" PRIu64 " faults=%" PRIu64 " acknowledged=%" PRIu64
           " lost=0 duplicated=0\n",
           asked.rounds,
           sum.faults,
           sum.published);
    /* A run in which nothing happens proves nothing. */
    assert_true(sum.published >= asked.rounds * 15);
    assert_true(asked.rounds < 100 || sum.faults >= asked.rounds * 10);
    assert_true(asked.rounds < 100 || sum.reopened >= asked.rounds * 3);
    assert_true(asked.rounds < 100 || sum.on_record > 0);
}

static void test_faults_that_were_found_once_stay_away(void **state)
{
    static const uint64_t regressions[] = {
        92,    /* an id by place behind an index entry of an older epoch */
        278,   /* the running clock stood for ever after an outage */
        451,   /* a tail was lost and grew again before anybody looked */
        419,   /* a restart took entries of the old tail for the new one */
        357,   /* a restart in the middle of reading a stream again forgot that it was */
        362,   /* a conflict whose first payload was lost was admitted as new */
        6594,  /* the same, later */
        1128,  /* a lost WAL left its pending entries in the counters */
        1298,  /* a sink from before a rebuild had events under other LSNs */
        20,    /* a duplicate of an exception let the cursor pass it */
        1582,  /* a purge before the first commit of a pipeline was not noticed */
        15218, /* a loss that was seen while a commit was in doubt was forgotten with it */
        2010,     3778,
        9539,     4002687, /* an old WAL took an id from the payload that the sink had */
        2021075,           /* a lost sink waited for entries that the WAL had forgotten */
        7000731,           /* an index that was not finished hid entries of the next one */
        2015535,           /* a purge before the pipeline had ever reached the stream */
        2025555,  3006225,
        7003036,  9005064, /* the first row after a rollback was taken for one from before it */
        9018573,           /* the record of a rollback failed, and the next one forgot it */
        9017371,           /* an empty WAL was adopted again, and forgot a rollback */
        9024692,           /* an older sink knew nothing of the stream that was recreated */
        9062271,           /* a place that a purge had taken was given out again */
        9096695,  9104677, /* judged before the pipeline had looked at the stream */
        20026907,          /* a new tail that was purged before anybody looked left no trace */
        20060267,          /* a commit that came late had forgotten its losses */
        20064740,          /* a lost tail opened the place of a duplicate that waited */
        9035968,           /* a second life was taken for a first one after another start */
        93299,    50046611,
        226970,   60038845, /* a duplicate of a pending entry let the cursor row pass it */
        50094584,           /* the cursor row went back to places that the WAL had forgotten */
        60085449, /* a row whose place had no time did not show that the stream had lost its tail */
        50127946, /* an older sink knew nothing of a rollback that a lost WAL had noted */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(regressions); i++) {
        expect_clean(regressions[i]);
    }
}

static void test_the_same_seed_gives_the_same_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_true(run(seed, SIM_NO_DEFECT).hash == run(seed, SIM_NO_DEFECT).hash);
    }
    assert_true(run(1, SIM_NO_DEFECT).hash != run(2, SIM_NO_DEFECT).hash);
}

/* Each kind alone, and none at all: then nothing fails, and nothing has to be started twice. */
static void test_only_the_faults_that_are_allowed_happen(void **state)
{
    struct sim_report report;
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_options options = { .seed = seed };
        assert_ok(pawl__sim_delivery(&options, NULL, &report, &error), &error);
        assert_true(report.is_clean);
        assert_int_equal(report.faults, 0);
        assert_int_equal(report.reopened, 1);
        for (unsigned bit = 0; bit < SIM_FAULT_COUNT; bit++) {
            options.faults = 1U << bit;
            assert_ok(pawl__sim_delivery(&options, NULL, &report, &error), &error);
            if (!report.is_clean) {
                fail_msg(
                    "%s, seed %" PRIu64 ": %s", pawl__sim_fault_name(bit), seed, report.violation);
            }
        }
    }
}

static void test_a_pipeline_with_the_settings_of_people_settles_too(void **state)
{
    static const struct sim_settings defaults = {
        .retries_max = 100,
        .retry_interval_ns = 30 * NS_PER_S,
        .retry_backoff_ns = 5 * NS_PER_S,
        .entry_ttl_ns = INT64_C(168) * 3600 * NS_PER_S,
        .lease_ns = 120 * NS_PER_S,
    };
    struct sim_settings no_sync = defaults;
    struct sim_report report;
    pawl_error error = PAWL_ERROR_INIT;
    bool found = false;

    (void)state;
    no_sync.no_sync = true;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_options options = { seed, SIM_ALL_FAULTS, SIM_NO_DEFECT, &defaults };
        assert_ok(pawl__sim_delivery(&options, NULL, &report, &error), &error);
        assert_string_equal(report.violation, "");
        assert_true(report.is_clean);
        options.settings = &no_sync;
        assert_ok(pawl__sim_delivery(&options, NULL, &report, &error), &error);
        found |= !report.is_clean;
    }
    assert_true(found);
}

static void expect_found(enum sim_defect defect, uint64_t seeds)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (!run(seed, defect).is_clean) {
            return;
        }
    }
    fail_msg("%s was not found in %" PRIu64 " seeds", pawl__sim_defect_name(defect), seeds);
}

#define FINDS(name, defect, seeds)                 \
    static void test_it_finds_##name(void **state) \
    {                                              \
        (void)state;                               \
        expect_found(defect, seeds);               \
    }

FINDS(an_acknowledgement_before_the_fsync, SIM_ACK_BEFORE_FSYNC, 5)
FINDS(ids_from_a_counter_of_the_process, SIM_PROCESS_COUNTER_ID, 5)
FINDS(a_confirmation_before_the_commit, SIM_CONFIRM_BEFORE_COMMIT, 5)
FINDS(a_writer_without_fencing, SIM_NO_FENCING, 50)
FINDS(one_acknowledgement_for_those_before_it, SIM_ACK_ALL, 200)
FINDS(a_rebuilt_sink_without_a_new_epoch, SIM_SAME_EPOCH, 200)
FINDS(a_replaced_wal_that_nobody_noticed, SIM_WAL_REPLACED, 200)
FINDS(a_time_to_live_by_the_wall_clock, SIM_TTL_BY_WALL_CLOCK, 500)
FINDS(a_conflict_taken_for_a_duplicate, SIM_CONFLICT_AS_DUPLICATE, 5)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_arrives_once_whatever_happens),
        cmocka_unit_test(test_faults_that_were_found_once_stay_away),
        cmocka_unit_test(test_the_same_seed_gives_the_same_trace),
        cmocka_unit_test(test_only_the_faults_that_are_allowed_happen),
        cmocka_unit_test(test_a_pipeline_with_the_settings_of_people_settles_too),
        cmocka_unit_test(test_it_finds_an_acknowledgement_before_the_fsync),
        cmocka_unit_test(test_it_finds_ids_from_a_counter_of_the_process),
        cmocka_unit_test(test_it_finds_a_confirmation_before_the_commit),
        cmocka_unit_test(test_it_finds_a_writer_without_fencing),
        cmocka_unit_test(test_it_finds_one_acknowledgement_for_those_before_it),
        cmocka_unit_test(test_it_finds_a_rebuilt_sink_without_a_new_epoch),
        cmocka_unit_test(test_it_finds_a_replaced_wal_that_nobody_noticed),
        cmocka_unit_test(test_it_finds_a_time_to_live_by_the_wall_clock),
        cmocka_unit_test(test_it_finds_a_conflict_taken_for_a_duplicate),
    };

    if (!repeat_parse(&argc, argv, &asked) || argc != 1) {
        fprintf(stderr, "usage: %s [--rounds SEEDS] [--seed N]\n", argv[0]);
        return 2;
    }
    asked.rounds = asked.rounds == 0 ? SEEDS : asked.rounds;
    asked.seed = asked.seed == 0 ? 1 : asked.seed;
    return cmocka_run_group_tests_name("sim_delivery", tests, NULL, NULL);
}
