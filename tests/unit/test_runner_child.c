/* Commands as processes: their output, their end, and what becomes of them when the runner dies. */
#include "lib/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "cli/run/child.h"
#include "cli/run/guard.h"
#include "cli/run/holder.h"
#include "lib/child.h"
#include "lib/tempdir.h"

enum { WAIT_MS = 60000 };

struct ran {
    struct runner_exit exit;
    struct runner_capture captures[2];
};

static void ran_done(struct ran *ran)
{
    pawl__cli_capture_done(&ran->captures[0]);
    pawl__cli_capture_done(&ran->captures[1]);
}

static void wait_for_end(struct runner_child *child, struct runner_capture *captures)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = child->pidfd, .events = POLLIN },
                                { .fd = child->streams[0], .events = POLLIN },
                                { .fd = child->streams[1], .events = POLLIN } };
        assert_true(poll(fds, 3, WAIT_MS) > 0);
        for (int i = 0; i < 2; i++) {
            if (fds[i + 1].revents != 0) {
                pawl__cli_child_read(child, i, &captures[i]);
            }
        }
        if (fds[0].revents != 0) {
            return;
        }
    }
}

static struct ran run(const char *script, const char *input)
{
    static char variable[] = "COLOUR=green";
    static char path[] = "PATH=/usr/bin:/bin";
    char *const environment[] = { variable, path, NULL };
    struct ran ran = { .captures = { RUNNER_CAPTURE_INIT, RUNNER_CAPTURE_INIT } };
    struct runner_guard guard = { 0 };
    struct runner_child child;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__cli_guard_start(&guard, &error), &error);
    struct runner_command command = { .script = script,
                                      .environment = environment,
                                      .input = pawl_view_of(input),
                                      .guard_fd = guard.fd };
    if (pawl__cli_child_start(&command, &child, &ran.exit.code)) {
        wait_for_end(&child, ran.captures);
        ran.exit = pawl__cli_child_end(&child, ran.captures);
    }
    pawl__cli_guard_done(&guard);
    return ran;
}

static void assert_json(const struct runner_capture *capture, const char *expected, bool cut)
{
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(1 << 20);

    assert_int_equal(pawl__cli_capture_add_json(capture, &json), cut);
    assert_string_equal(json.data, expected);
}

static void test_a_command_gets_its_input_and_its_variables(void **state)
{
    struct ran ran = run("cat; echo \"$COLOUR\" >&2; exit 7", "hello\n");

    (void)state;
    assert_true(ran.exit.started);
    assert_int_equal(ran.exit.code, 7);
    assert_int_equal(ran.exit.signal, 0);
    assert_json(&ran.captures[0], "\"hello\\n\"", false);
    assert_json(&ran.captures[1], "\"green\\n\"", false);
    ran_done(&ran);
}

static void test_input_that_nobody_reads_holds_nobody_up(void **state)
{
    AUTO(pawl__text_free) char *input = malloc((1 << 20) + 1);

    (void)state;
    assert_non_null(input);
    memset(input, 'x', 1 << 20);
    input[1 << 20] = '\0';
    struct ran ran = run("true", input);
    assert_int_equal(ran.exit.code, 0);
    ran_done(&ran);
    ran = run("wc -c", input);
    assert_json(&ran.captures[0], "\"1048576\\n\"", false);
    ran_done(&ran);
}

static void test_a_signal_is_told_from_an_exit_code(void **state)
{
    struct ran ran = run("kill -9 $$", "");

    (void)state;
    assert_int_equal(ran.exit.signal, SIGKILL);
    ran_done(&ran);
}

static void test_a_script_that_is_too_long_is_said(void **state)
{
    AUTO(pawl__text_free) char *script = malloc(200001);

    (void)state;
    assert_non_null(script);
    memset(script, ' ', 200000);
    script[200000] = '\0';
    struct ran ran = run(script, "");
    assert_false(ran.exit.started);
    assert_int_equal(ran.exit.code, E2BIG);
    ran_done(&ran);
}

static void test_bytes_that_are_no_text_are_replaced(void **state)
{
    struct ran ran = run("printf 'a\\000b\\377c\\033\\042\\134\\011\\303\\244'", "");

    (void)state;
    assert_json(&ran.captures[0],
                "\"a\xEF\xBF\xBD"
                "b\xEF\xBF\xBD"
                "c\\u001b\\\"\\\\\\u0009\xC3\xA4\"",
                false);
    ran_done(&ran);
}

static void test_long_output_is_whole_for_readers_and_cut_for_the_store(void **state)
{
    AUTO(pawl__buf_done) struct pawl__buf whole = BUF_INIT(10 << 20);
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(10 << 20);
    struct pawl__sink sink = pawl__sink_buf(&whole);
    pawl_error error = PAWL_ERROR_INIT;
    struct ran ran = run("seq 1 100000", "");

    (void)state;
    assert_int_equal(ran.captures[0].total, 588895);
    assert_ok(pawl__cli_capture_copy(&ran.captures[0], &sink, &error), &error);
    assert_int_equal(whole.len, 588895);
    assert_memory_equal(whole.data, "1\n2\n3\n", 6);
    assert_memory_equal(whole.data + whole.len - 7, "100000\n", 7);
    assert_true(pawl__cli_capture_add_json(&ran.captures[0], &json));
    assert_true(json.len > RUNNER_KEPT_BYTES && json.len < (size_t)2 * RUNNER_KEPT_BYTES);
    assert_memory_equal(json.data + json.len - 9, "100000\\n\"", 9);
    ran_done(&ran);
}

static void test_a_cut_never_leaves_half_a_character(void **state)
{
    struct runner_capture capture = RUNNER_CAPTURE_INIT;
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(1 << 20);

    (void)state;
    pawl__cli_capture_add(&capture, pawl_view_of("\xC3\xA4"));
    for (size_t i = 0; i < RUNNER_KEPT_BYTES - 1; i++) {
        pawl__cli_capture_add(&capture, pawl_view_of("x"));
    }
    assert_true(pawl__cli_capture_add_json(&capture, &json));
    assert_int_equal(json.len, RUNNER_KEPT_BYTES - 1 + 2);
    assert_int_equal(json.data[1], 'x');
    pawl__cli_capture_done(&capture);
}

static void test_what_a_command_leaves_running_is_ended(void **state)
{
    struct ran ran = run("sleep 1000 & echo $!", "");
    pid_t left = (pid_t)strtol(ran.captures[0].memory.data, NULL, 10);

    (void)state;
    assert_true(left > 1);
    /* Killed; whoever inherited it waits for it in its own time. */
    char path[64];
    char text[1000];
    size_t len = 0;
    uint64_t start = 0;
    bool alive = true;
    snprintf(path, sizeof(path), "/proc/%d/stat", left);
    for (int64_t end = pawl__monotonic_ns(pawl__clock_real()) + 60 * NS_PER_S;
         alive && pawl__monotonic_ns(pawl__clock_real()) < end;) {
        alive = pawl__fs_read_small(path, text, sizeof(text), &len, NULL) == PAWL_OK
                && pawl__cli_holder_parse_stat((pawl_view){ text, len }, &start, &alive) && alive;
    }
    assert_false(alive);
    ran_done(&ran);
}

static void test_names_of_logs_hold_any_id(void **state)
{
    AUTO(pawl__text_free) char *plain = pawl__cli_capture_name(pawl_view_of("a-1"), 2, "out");
    AUTO(pawl__text_free) char *odd = pawl__cli_capture_name(pawl_view_of("../a b\n"), 1, "err");
    char id[201] = "";

    (void)state;
    assert_string_equal(plain, "a-1.2.out");
    assert_string_equal(odd, "%2E.%2Fa%20b%0A.1.err");
    memset(id, '/', 200);
    AUTO(pawl__text_free) char *one = pawl__cli_capture_name(pawl_view_of(id), 1, "out");
    id[199] = '.';
    AUTO(pawl__text_free) char *other = pawl__cli_capture_name(pawl_view_of(id), 1, "out");
    assert_true(strlen(one) < 200);
    assert_string_not_equal(one, other);
}

/* --- when the runner is killed --- */

/* The runner: starts a command with a child of its own, says their numbers, waits to be killed. */
static int run_runner(void)
{
    char *const environment[] = { NULL };
    struct runner_guard guard;
    struct runner_holder holder;
    struct runner_child child;
    char text[RUNNER_HOLDER_SIZE];
    char line[100];
    int failed = 0;

    if (pawl__cli_guard_start(&guard, NULL) != PAWL_OK
        || pawl__cli_holder_inspect(guard.pid, &holder, NULL) != PAWL_OK) {
        return 1;
    }
    struct runner_command command = {
        .script = "trap '' TERM INT HUP; /bin/sleep 1000 & echo $$ $!; wait",
        .environment = environment,
        .guard_fd = guard.fd,
    };
    if (!pawl__cli_child_start(&command, &child, &failed)) {
        return 1;
    }
    struct pollfd fd = { .fd = child.streams[0], .events = POLLIN };
    poll(&fd, 1, WAIT_MS);
    ssize_t got = read(child.streams[0], line, sizeof(line) - 1);
    line[got > 0 ? got - 1 : 0] = '\0';
    pawl__cli_holder_text(&holder, 7, text);
    child_say("%s", line);
    child_say("%s", text);
    pause();
    return 0;
}

static bool runs(long pid)
{
    struct runner_holder probe = { .runner = { 0 } };
    char path[64];
    char text[1000];
    size_t len = 0;
    bool alive = false;

    (void)probe;
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    return pawl__fs_read_small(path, text, sizeof(text), &len, NULL) == PAWL_OK
           && pawl__cli_holder_parse_stat((pawl_view){ text, len }, &probe.pid_namespace, &alive)
           && alive;
}

static void test_when_a_holder_is_gone_so_is_everything_it_ran(void **state)
{
    const char *const arguments[] = { "runner", NULL };
    struct child child;
    struct runner_holder holder;
    struct runner_holder we;
    struct runner_guard guard;
    char line[300];
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    child_start(&child, arguments);
    assert_true(child_line(&child, line, sizeof(line)));
    char *rest = NULL;
    long command = strtol(line, &rest, 10);
    long below = strtol(rest, NULL, 10);
    assert_true(command > 1 && below > 1);
    assert_true(child_line(&child, line, sizeof(line)));
    assert_true(pawl__cli_holder_parse(pawl_view_of(line), &holder));
    assert_ok(pawl__cli_guard_start(&guard, &error), &error);
    assert_ok(pawl__cli_holder_inspect(guard.pid, &we, &error), &error);
    assert_false(pawl__cli_holder_is_gone(&we, &we));
    assert_false(pawl__cli_holder_is_gone(&holder, &we));
    assert_true(runs(command) && runs(below));
    child_end(&child, SIGKILL);
    int64_t end = pawl__monotonic_ns(pawl__clock_real()) + 60 * NS_PER_S;
    while (!pawl__cli_holder_is_gone(&holder, &we)) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < end);
    }
    assert_false(runs(command));
    assert_false(runs(below));
    we.pid_namespace++;
    assert_false(pawl__cli_holder_is_gone(&holder, &we)); /* elsewhere nobody knows */
    pawl__cli_guard_done(&guard);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_command_gets_its_input_and_its_variables),
        cmocka_unit_test(test_input_that_nobody_reads_holds_nobody_up),
        cmocka_unit_test(test_a_signal_is_told_from_an_exit_code),
        cmocka_unit_test(test_a_script_that_is_too_long_is_said),
        cmocka_unit_test(test_bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(test_long_output_is_whole_for_readers_and_cut_for_the_store),
        cmocka_unit_test(test_a_cut_never_leaves_half_a_character),
        cmocka_unit_test(test_what_a_command_leaves_running_is_ended),
        cmocka_unit_test(test_names_of_logs_hold_any_id),
        cmocka_unit_test(test_when_a_holder_is_gone_so_is_everything_it_ran),
    };

    if (child_is_one(argc, argv)) {
        return run_runner();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
