/* What `pawl work run` decides, without a store and without a process. */
#include "lib/check.h"

#include <errno.h>
#include <signal.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "cli/run/holder.h"
#include "cli/run/step.h"
#include "cli/run/template.h"
#include "lib/trace.h"

/* --- the command --- */

static const char *filled(const char *command, const char *input)
{
    static char text[1000];
    struct pawl__buf buf = BUF_OVER(text);
    pawl_view mark = pawl_view_of("{}");

    assert_int_equal(pawl__cli_template_check(pawl_view_of(command), mark, NULL), PAWL_OK);
    pawl__cli_template_fill(&buf, pawl_view_of(command), mark, pawl_view_of(input));
    assert_false(buf.broken);
    return text;
}

static void test_the_input_is_one_word_whatever_it_holds(void **state)
{
    (void)state;
    assert_string_equal(filled("echo {}", "a b"), "echo 'a b'");
    assert_string_equal(filled("echo {}", ""), "echo ''");
    assert_string_equal(filled("echo {}", "it's; rm -rf /"), "echo 'it'\\''s; rm -rf /'");
    assert_string_equal(filled("echo {}", "'"), "echo ''\\'''");
    assert_string_equal(filled("echo {}", "$(id) `id` \\ \n"), "echo '$(id) `id` \\ \n'");
}

static void test_every_mark_is_filled(void **state)
{
    (void)state;
    assert_string_equal(filled("cp {} {}.bak", "f"), "cp 'f' 'f'.bak");
    assert_string_equal(filled("x={} sh -c 'echo \"$x\"'", "f"), "x='f' sh -c 'echo \"$x\"'");
    assert_string_equal(filled("n=$(wc -l <{})", "f"), "n=$(wc -l <'f')");
    assert_string_equal(filled("true", "f"), "true");
    assert_string_equal(filled("echo \\\"{}", "f"), "echo \\\"'f'");
    assert_string_equal(filled("echo a#b {}", "f"), "echo a#b 'f'");
}

static void test_a_mark_where_input_could_become_a_command_is_refused(void **state)
{
    static const struct {
        const char *command;
        const char *says;
    } cases[] = {
        { "sh -c 'echo {}'", "inside of quotes" },
        { "echo \"{}\"", "inside of quotes" },
        { "echo \"\\\"{}\"", "inside of quotes" },
        { "echo `cat {}`", "inside of backquotes" },
        { "true # {}", "in a comment" },
        { "cat <<E\n{}\nE", "after a here-document" },
        { "echo $'a\\'' {}", "after $'...'" },
        { "echo $(( {} * 2 ))", "in or after ((...))" },
        { "echo $[ {} * 2 ]", "in or after $[...]" },
        { "echo \\{}", "follows a backslash" },
        { "", "is empty" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        assert_status(
            pawl__cli_template_check(pawl_view_of(cases[i].command), pawl_view_of("{}"), &error),
            PAWL_INVALID,
            &error);
        assert_message(&error, cases[i].says);
    }
}

static void test_another_mark_leaves_braces_alone(void **state)
{
    char text[100];
    struct pawl__buf buf = BUF_OVER(text);
    pawl_view command = pawl_view_of("awk '{}' @");
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    assert_ok(pawl__cli_template_check(command, pawl_view_of("@"), &error), &error);
    assert_ok(pawl__cli_template_check(command, pawl_view_of(""), &error), &error);
    pawl__cli_template_fill(&buf, command, pawl_view_of("@"), pawl_view_of("f"));
    assert_string_equal(text, "awk '{}' 'f'");
}

/* --- one item --- */

static const char *const action_names[] = { "nothing", "TERM", "KILL" };
static const char *const verdict_names[] = { "complete", "retry", "fail", "release", "forget" };

static void happens(struct trace *trace,
                    struct runner_step *step,
                    const char *what,
                    enum runner_event event)
{
    enum runner_action action = pawl__cli_step(step, event, trace_now_ns(trace));

    trace_add(trace, "%s -> %s", what, action_names[action]);
}

static void ends(struct trace *trace, const struct runner_step *step, struct runner_exit exit)
{
    char message[RUNNER_MESSAGE_SIZE];

    pawl__cli_step_message(step, &exit, message);
    trace_add(trace, "%s -> %s", message, verdict_names[pawl__cli_step_verdict(step, &exit, true)]);
}

static void test_a_command_is_asked_then_killed_and_given_back(void **state)
{
    struct trace trace = trace_start();
    struct runner_step step = pawl__cli_step_start(trace_now_ns(&trace), INT64_MAX, 5 * NS_PER_S);

    (void)state;
    happens(&trace, &step, "tick", RUNNER_TICK);
    trace_at(&trace, 10);
    happens(&trace, &step, "stop", RUNNER_STOP);
    happens(&trace, &step, "stop", RUNNER_STOP);
    trace_at(&trace, 14);
    happens(&trace, &step, "tick", RUNNER_TICK);
    trace_at(&trace, 15);
    assert_int_equal(pawl__cli_step_wake_ns(&step), trace_now_ns(&trace));
    happens(&trace, &step, "tick", RUNNER_TICK);
    happens(&trace, &step, "tick", RUNNER_TICK);
    assert_int_equal(pawl__cli_step_wake_ns(&step), INT64_MAX);
    happens(&trace, &step, "exit", RUNNER_EXITED);
    ends(&trace, &step, (struct runner_exit){ true, 0, SIGKILL });
    assert_trace(&trace,
                 "[  0] tick -> nothing\n"
                 "[ 10] stop -> TERM\n"
                 "[ 10] stop -> nothing\n"
                 "[ 14] tick -> nothing\n"
                 "[ 15] tick -> KILL\n"
                 "[ 15] tick -> nothing\n"
                 "[ 15] exit -> nothing\n"
                 "[ 15] ended by signal 9 (Killed) -> release\n");
    trace_done(&trace);
}

static void test_a_lost_lease_outweighs_everything(void **state)
{
    struct trace trace = trace_start();
    struct runner_step step =
        pawl__cli_step_start(trace_now_ns(&trace), 20 * NS_PER_S, 5 * NS_PER_S);

    (void)state;
    trace_at(&trace, 20);
    happens(&trace, &step, "tick", RUNNER_TICK);
    trace_at(&trace, 21);
    happens(&trace, &step, "lost", RUNNER_LOST);
    happens(&trace, &step, "exit", RUNNER_EXITED);
    ends(&trace, &step, (struct runner_exit){ true, 0, 0 });
    assert_trace(&trace,
                 "[ 20] tick -> TERM\n"
                 "[ 21] lost -> nothing\n"
                 "[ 21] exit -> nothing\n"
                 "[ 21] exit code 0 -> forget\n");
    trace_done(&trace);
}

static void test_the_exit_code_decides(void **state)
{
    struct runner_step runs = pawl__cli_step_start(0, INT64_MAX, 0);
    struct runner_step stopped = runs;
    struct runner_step late = runs;

    (void)state;
    (void)pawl__cli_step(&stopped, RUNNER_STOP, 0);
    late.reason = RUNNER_TIMED_OUT;
    const struct {
        const struct runner_step *step;
        struct runner_exit exit;
        bool may_retry;
        enum runner_verdict verdict;
    } cases[] = {
        { &runs, { true, 0, 0 }, true, RUNNER_COMPLETE },
        { &runs, { true, 3, 0 }, true, RUNNER_RETRY },
        { &runs, { true, 3, 0 }, false, RUNNER_FAIL },
        { &runs, { true, 0, SIGSEGV }, true, RUNNER_RETRY },
        { &runs, { false, E2BIG, 0 }, true, RUNNER_FAIL },
        { &runs, { false, EAGAIN, 0 }, true, RUNNER_RELEASE },
        { &stopped, { true, 0, 0 }, true, RUNNER_RELEASE },
        { &stopped, { true, 1, 0 }, true, RUNNER_RELEASE },
        { &stopped, { true, 0, SIGTERM }, false, RUNNER_RELEASE },
        { &late, { true, 0, SIGTERM }, true, RUNNER_RETRY },
        { &late, { true, 0, 0 }, true, RUNNER_RETRY },
        { &late, { true, 0, 0 }, false, RUNNER_FAIL },
        { &late, { true, 0, SIGTERM }, false, RUNNER_FAIL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(pawl__cli_step_verdict(cases[i].step, &cases[i].exit, cases[i].may_retry),
                         cases[i].verdict);
    }
}

/* --- heartbeats --- */

static void test_a_store_that_is_away_costs_the_lease_only_when_it_has_run_out(void **state)
{
    struct runner_beat beat = pawl__cli_beat_start(0, 30 * NS_PER_S, 5 * NS_PER_S);

    (void)state;
    assert_int_equal(beat.next_ns, 5 * NS_PER_S);
    assert_int_equal(pawl__cli_beat_answered(&beat, PAWL_OK, 10 * NS_PER_S, 11 * NS_PER_S),
                     RUNNER_BEAT_FINE);
    assert_int_equal(beat.until_ns, 40 * NS_PER_S); /* from before it was asked for */
    assert_int_equal(beat.next_ns, 15 * NS_PER_S);
    assert_int_equal(pawl__cli_beat_answered(&beat, PAWL_UNAVAILABLE, 20 * NS_PER_S, 39 * NS_PER_S),
                     RUNNER_BEAT_FINE);
    assert_int_equal(beat.next_ns, 40 * NS_PER_S);
    assert_int_equal(pawl__cli_beat_answered(&beat, PAWL_UNAVAILABLE, 39 * NS_PER_S, 40 * NS_PER_S),
                     RUNNER_BEAT_LOST);
    assert_int_equal(pawl__cli_beat_answered(&beat, PAWL_LEASE_LOST, 20 * NS_PER_S, 20 * NS_PER_S),
                     RUNNER_BEAT_LOST);
    assert_int_equal(pawl__cli_beat_answered(&beat, PAWL_NOT_FOUND, 20 * NS_PER_S, 20 * NS_PER_S),
                     RUNNER_BEAT_LOST);
}

static void test_what_nobody_chose_fits_the_lease(void **state)
{
    (void)state;
    assert_int_equal(pawl__cli_beat_fitting_ms(60000, 300000), 60000);
    assert_int_equal(pawl__cli_beat_fitting_ms(60000, 6000), 2000);
    assert_int_equal(pawl__cli_sweep_fitting_ms(60000, 300000), 60000);
    assert_int_equal(pawl__cli_sweep_fitting_ms(60000, 6000), 3000);
}

/* --- the run --- */

static void test_as_many_are_claimed_as_may_run(void **state)
{
    struct runner_plan plan = { .jobs = 4, .threads = 8, .limit = UINT64_MAX };

    (void)state;
    assert_int_equal(pawl__cli_plan_want(&plan), 4);
    plan.running = 3;
    assert_int_equal(pawl__cli_plan_want(&plan), 1);
    plan.finishing = 5;
    assert_int_equal(pawl__cli_plan_want(&plan), 0);
    plan.finishing = 0;
    plan.limit = 10;
    plan.taken = 10;
    assert_int_equal(pawl__cli_plan_want(&plan), 0);
    plan.taken = 0;
    plan.stopping = true;
    assert_int_equal(pawl__cli_plan_want(&plan), 0);
}

static void test_the_run_ends_when_nothing_is_left(void **state)
{
    const struct runner_plan idle = { .jobs = 1, .threads = 2, .limit = 5, .taken = 3 };
    const struct runner_plan full = { .jobs = 1, .threads = 2, .limit = 3, .taken = 3 };
    const struct runner_plan stays = { .jobs = 1, .threads = 2, .limit = 5, .stays = true };
    const struct runner_plan busy = { .jobs = 1, .threads = 2, .limit = 5, .finishing = 1 };
    const struct runner_plan stops = {
        .jobs = 1, .threads = 2, .limit = 5, .stays = true, .stopping = true
    };
    const struct runner_left none = { 0 };

    (void)state;
    assert_int_equal(pawl__cli_plan_next(&idle, &none), RUNNER_END);
    assert_int_equal(pawl__cli_plan_next(&full, &(struct runner_left){ .pending = 9 }), RUNNER_END);
    assert_int_equal(pawl__cli_plan_next(&stays, &none), RUNNER_WAIT);
    assert_int_equal(pawl__cli_plan_next(&stops, &none), RUNNER_END);
    assert_int_equal(pawl__cli_plan_next(&busy, &none), RUNNER_GO_ON);
    assert_int_equal(pawl__cli_plan_next(&idle, &(struct runner_left){ .delayed = 1 }),
                     RUNNER_WAIT);
    assert_int_equal(pawl__cli_plan_next(&idle, &(struct runner_left){ .in_progress = 1 }),
                     RUNNER_WAIT);
    assert_int_equal(pawl__cli_plan_next(&idle, &(struct runner_left){ .held_back = 1 }),
                     RUNNER_STUCK);
}

/* --- who holds --- */

static void test_a_run_that_waits_outlasts_any_stall_and_another_a_minute(void **state)
{
    const struct runner_plan stays = { .jobs = 1, .stays = true };
    const struct runner_plan ends = { .jobs = 1 };

    (void)state;
    assert_true(pawl__cli_plan_outlasts(&stays, INT64_C(24) * 3600 * NS_PER_S));
    assert_true(pawl__cli_plan_outlasts(&ends, 59 * NS_PER_S));
    assert_false(pawl__cli_plan_outlasts(&ends, 60 * NS_PER_S));
}

static void test_a_holder_is_read_back(void **state)
{
    struct runner_holder holder = { .boot_id = "a2debe59-2506-4395-8e7d-345df2e4a567",
                                    .pid_namespace = 4026531836,
                                    .runner = { 4194304, 123456789 },
                                    .guard = { 4194303, 123456790 } };
    struct runner_holder read;
    char text[RUNNER_HOLDER_SIZE];

    (void)state;
    pawl__cli_holder_text(&holder, 0xFFFF00000001, text);
    assert_string_equal(text,
                        "run:1:a2debe59-2506-4395-8e7d-345df2e4a567:4026531836:"
                        "4194304.123456789:4194303.123456790:00000001");
    assert_true(pawl__cli_holder_parse(pawl_view_of(text), &read));
    assert_memory_equal(&read, &holder, sizeof(read));
}

static void test_other_names_are_no_holders(void **state)
{
    static const char *const others[] = {
        "",
        "worker-7",
        "run:2:a2debe59-2506-4395-8e7d-345df2e4a567:1:1.1:1.1:0",
        "run:1:a2debe59:1:1.1:1.1:0",
        "run:1:a2debe59-2506-4395-8e7d-345df2e4a567:1:0.1:1.1:0",
        "run:1:a2debe59-2506-4395-8e7d-345df2e4a567:1:-5.1:1.1:0",
        "run:1:a2debe59-2506-4395-8e7d-345df2e4a567:1:1:1.1:0",
        "run:1:a2debe59-2506-4395-8e7d-345df2e4a567:1:1.1",
    };
    struct runner_holder holder;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_false(pawl__cli_holder_parse(pawl_view_of(others[i]), &holder));
    }
}

static void test_a_start_time_is_found_behind_any_name(void **state)
{
    uint64_t start = 0;
    bool alive = false;

    (void)state;
    assert_true(pawl__cli_holder_parse_stat(
        pawl_view_of("7 (a) b (c)) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 3917 5 6 7\n"),
        &start,
        &alive));
    assert_int_equal(start, 3917);
    assert_true(alive);
    assert_true(pawl__cli_holder_parse_stat(
        pawl_view_of("7 (a) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 3917 5 6 7\n"),
        &start,
        &alive));
    assert_false(alive);
    assert_false(pawl__cli_holder_parse_stat(pawl_view_of("7 (a) S 1 7"), &start, &alive));
    assert_false(pawl__cli_holder_parse_stat(pawl_view_of(""), &start, &alive));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_input_is_one_word_whatever_it_holds),
        cmocka_unit_test(test_every_mark_is_filled),
        cmocka_unit_test(test_a_mark_where_input_could_become_a_command_is_refused),
        cmocka_unit_test(test_another_mark_leaves_braces_alone),
        cmocka_unit_test(test_a_command_is_asked_then_killed_and_given_back),
        cmocka_unit_test(test_a_lost_lease_outweighs_everything),
        cmocka_unit_test(test_the_exit_code_decides),
        cmocka_unit_test(test_a_store_that_is_away_costs_the_lease_only_when_it_has_run_out),
        cmocka_unit_test(test_as_many_are_claimed_as_may_run),
        cmocka_unit_test(test_what_nobody_chose_fits_the_lease),
        cmocka_unit_test(test_the_run_ends_when_nothing_is_left),
        cmocka_unit_test(test_a_run_that_waits_outlasts_any_stall_and_another_a_minute),
        cmocka_unit_test(test_a_holder_is_read_back),
        cmocka_unit_test(test_other_names_are_no_holders),
        cmocka_unit_test(test_a_start_time_is_found_behind_any_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
