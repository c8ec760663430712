/* The real polling, gap and identity decisions of telemetry in a simulated world; every planted defect is found.
 *
 *     test_sim_telemetry [--rounds SEEDS] [--seed N]
 *
 * A seed that fails prints its trace; once the fault is found, the seed stays in `regressions`. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/check.h"
#include "lib/repeat.h"

#include "base/core/macros.h"
#include "sim/sim.h"

enum { SEEDS = 1000, TRACE_BYTES_MAX = 4 << 20 };

static struct repeat asked;

static struct sim_report run(uint64_t seed, enum sim_telemetry_defect defect)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct sim_report report;

    assert_ok(pawl__sim_telemetry(seed, defect, NULL, &report, &error), &error);
    return report;
}

static void print_trace(uint64_t seed)
{
    struct pawl__buf trace = BUF_INIT(TRACE_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    struct sim_report report;

    assert_ok(pawl__sim_telemetry(seed, SIM_TELEMETRY_NO_DEFECT, &trace, &report, &error), &error);
    fwrite(trace.data, 1, trace.len, stderr);
    pawl__buf_done(&trace);
}

static struct sim_report expect_clean(uint64_t seed)
{
    struct sim_report report = run(seed, SIM_TELEMETRY_NO_DEFECT);

    if (!report.is_clean) {
        print_trace(seed);
        fail_msg("seed %" PRIu64 ": %s; again with: test_sim_telemetry --rounds 1 --seed %" PRIu64,
                 seed,
                 report.violation,
                 seed);
    }
    return report;
}

static void test_every_row_is_stored_once_or_on_record(void **state)
{
    struct sim_report sum = { 0 };

    (void)state;
    for (uint64_t i = 0; i < asked.rounds; i++) {
        struct sim_report report = expect_clean(asked.seed + i);
        sum.published += report.published;
        sum.delivered += report.delivered;
        sum.failed += report.failed;
        sum.faults += report.faults;
        sum.on_record += report.on_record;
        sum.reopened += report.reopened;
    }
    printf("# result rounds=%" PRIu64 " faults=%" PRIu64 " acknowledged=%" PRIu64 " stored=%" PRIu64
           " rejected=%" PRIu64 " on_record=%" PRIu64 " lost=0 duplicated=0\n",
           asked.rounds,
           sum.faults,
           sum.published,
           sum.delivered,
           sum.failed,
           sum.on_record);
    /* A run in which nothing happens proves nothing. */
    assert_true(sum.published >= asked.rounds * 100);
    assert_true(asked.rounds < 100 || sum.faults >= asked.rounds * 10);
    assert_true(asked.rounds < 100 || sum.reopened >= asked.rounds * 5);
    assert_true(asked.rounds < 100 || sum.on_record >= asked.rounds);
    assert_true(asked.rounds < 100 || sum.failed >= asked.rounds);
}

static void test_faults_that_were_found_once_stay_away(void **state)
{
    static const uint64_t regressions[] = {
        1,      /* a shared transaction whose answer was lost was committed again, feed by feed */
        417,    /* an epoch that went on in another copy: its later rows were nowhere */
        113436, /* the same copy a second time: those rows were stored again */
        120100, /* retention took the rows of an epoch that had given ids a second time, and its name with them */
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
        assert_true(run(seed, SIM_TELEMETRY_NO_DEFECT).hash
                    == run(seed, SIM_TELEMETRY_NO_DEFECT).hash);
    }
    assert_true(run(1, SIM_TELEMETRY_NO_DEFECT).hash != run(2, SIM_TELEMETRY_NO_DEFECT).hash);
}

static void expect_found(enum sim_telemetry_defect defect, uint64_t seeds)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (!run(seed, defect).is_clean) {
            return;
        }
    }
    fail_msg(
        "%s was not found in %" PRIu64 " seeds", pawl__sim_telemetry_defect_name(defect), seeds);
}

#define FINDS(name, defect, seeds)                 \
    static void test_it_finds_##name(void **state) \
    {                                              \
        (void)state;                               \
        expect_found(defect, seeds);               \
    }

FINDS(a_checkpoint_past_an_unrecorded_hole, SIM_UNRECORDED_HOLE, 20)
FINDS(a_grace_on_a_remote_clock, SIM_REMOTE_GRACE, 300)
FINDS(a_gap_recovered_without_its_rows, SIM_RECOVERED_WITHOUT, 50)
FINDS(a_recovery_query_without_an_end, SIM_UNBOUNDED_RECOVERY, 20)
FINDS(a_retention_by_the_wall_clock, SIM_WALL_RETENTION, 100)
FINDS(the_same_session_after_a_restore, SIM_SAME_SESSION, 50)
FINDS(a_bad_row_that_stops_its_type, SIM_BAD_ROW_STOPS, 5)
FINDS(a_reset_that_doubles_rows, SIM_RESET_DOUBLES, 5)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_is_stored_once_or_on_record),
        cmocka_unit_test(test_faults_that_were_found_once_stay_away),
        cmocka_unit_test(test_the_same_seed_gives_the_same_trace),
        cmocka_unit_test(test_it_finds_a_checkpoint_past_an_unrecorded_hole),
        cmocka_unit_test(test_it_finds_a_grace_on_a_remote_clock),
        cmocka_unit_test(test_it_finds_a_gap_recovered_without_its_rows),
        cmocka_unit_test(test_it_finds_a_recovery_query_without_an_end),
        cmocka_unit_test(test_it_finds_a_retention_by_the_wall_clock),
        cmocka_unit_test(test_it_finds_the_same_session_after_a_restore),
        cmocka_unit_test(test_it_finds_a_bad_row_that_stops_its_type),
        cmocka_unit_test(test_it_finds_a_reset_that_doubles_rows),
    };

    if (!repeat_parse(&argc, argv, &asked) || argc != 1) {
        fprintf(stderr, "usage: %s [--rounds SEEDS] [--seed N]\n", argv[0]);
        return 2;
    }
    asked.rounds = asked.rounds == 0 ? SEEDS : asked.rounds;
    asked.seed = asked.seed == 0 ? 1 : asked.seed;
    return cmocka_run_group_tests_name("sim_telemetry", tests, NULL, NULL);
}
