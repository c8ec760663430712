#include "lib/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "base/thread/thread.h"

/* What a child that read its own environment met at its first two points. */
struct outcome {
    int wait_status;
    pawl_status first;
    pawl_error error;
};

/* A point is passed for the first time once in a process, so what the environment does is seen from
 * a child. It reports through a pipe. */
static struct outcome run_child(const char *rules, const char *log)
{
    struct outcome outcome = { 0 };
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pawl_status ignored;

        setenv("PAWL_FAILPOINTS", rules, 1);
        setenv("PAWL_FAILPOINTS_LOG", log, 1);
        outcome.first = pawl__failpoint_hit("child.one", &outcome.error);
        ignored = pawl__failpoint_hit("child.one", NULL);
        ignored = pawl__failpoint_hit("child.two", NULL);
        (void)ignored;
        _exit(write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
    }
    close(ends[1]);
    int wait_status;
    ssize_t got = read(ends[0], &outcome, sizeof(outcome));
    close(ends[0]);
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    outcome.wait_status = wait_status;
    assert_true(got == sizeof(outcome) || WIFSIGNALED(wait_status));
    return outcome;
}

#ifdef PAWL_FAILPOINTS

static pawl_status pass(const char *name)
{
    return pawl__failpoint_hit(name, NULL);
}

static void set(const char *specification)
{
    pawl_error error = PAWL_ERROR_INIT;
    assert_ok(pawl__failpoint_set(specification, &error), &error);
}

static void test_the_environment_makes_a_point_fail(void **state)
{
    (void)state;
    struct outcome outcome = run_child("child.one=error:NO_SPACE", "");

    assert_int_equal(outcome.first, PAWL_NO_SPACE);
    assert_message(&outcome.error, "failpoint 'child.one'");
}

static void test_kill_ends_the_process_as_kill_9_does(void **state)
{
    (void)state;
    struct outcome outcome = run_child("child.two=kill", "");

    assert_true(WIFSIGNALED(outcome.wait_status));
    assert_int_equal(WTERMSIG(outcome.wait_status), SIGKILL);
}

static void test_a_wrong_environment_is_loud_at_every_point(void **state)
{
    (void)state;
    struct outcome outcome = run_child("other.point=kill,child.two=eror", "");

    assert_int_equal(outcome.first, PAWL_INVALID);
    assert_message(&outcome.error, "PAWL_FAILPOINTS: failpoint 'child.two=eror'");
}

static void test_a_log_that_cannot_be_opened_is_loud(void **state)
{
    (void)state;
    struct outcome outcome = run_child("", "/nonexistent/names");

    assert_int_equal(outcome.first, PAWL_NOT_FOUND);
    assert_message(&outcome.error, "PAWL_FAILPOINTS_LOG '/nonexistent/names'");
}

static void test_the_log_lists_each_name_once_per_process(void **state)
{
    (void)state;
    char path[] = "/tmp/pawl-names-XXXXXX";
    int fd = mkstemp(path);
    char text[256];
    size_t len = 0;
    pawl_error error = PAWL_ERROR_INIT;

    assert_true(fd >= 0);
    close(fd);
    run_child("", path);
    run_child("child.two=kill", path); /* a name is written before its point acts */
    assert_ok(pawl__fs_read_small(path, text, sizeof(text), &len, &error), &error);
    unlink(path);
    assert_string_equal(text, "child.one\nchild.two\nchild.one\nchild.two\n");
}

static void test_passes_are_chosen_by_number_and_times(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *trace; /* one character a pass: E failed, . went through */
    } rows[] = {
        { "p.a=error", "EEEEE" },          { "p.a=error@3", "..EEE" },
        { "p.a=error*2", "EE..." },        { "p.a=error@2*2", ".EE.." },
        { "p.a=error*1@4", "...E." },      { "p.b=error", "....." },
        { "p.b=kill,p.a=error", "EEEEE" }, { "", "....." },
    };

    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        char trace[6] = "";
        set(rows[row].rule);
        for (size_t i = 0; i < 5; i++) {
            trace[i] = pass("p.a") == PAWL_OK ? '.' : 'E';
        }
        assert_string_equal(trace, rows[row].trace);
    }
    set(NULL);
}

static void test_every_status_but_ok_can_be_asked_for(void **state)
{
    (void)state;

    for (pawl_status status = PAWL_FAILED; status <= PAWL_CLOSED; status++) {
        char rule[64];
        pawl_error error = PAWL_ERROR_INIT;
        snprintf(rule, sizeof(rule), "p.a=error:%s", pawl_status_name(status));
        set(rule);
        assert_status(pawl__failpoint_hit("p.a", &error), status, &error);
        assert_int_equal(error.status, status);
    }
    set("p.a=error");
    assert_int_equal(pass("p.a"), PAWL_IO);
    set(NULL);
}

static void test_a_delay_waits_and_goes_through(void **state)
{
    (void)state;
    struct pawl__clock *clock = pawl__clock_real();

    set("p.a=delay:20");
    int64_t before_ns = pawl__monotonic_ns(clock);
    assert_int_equal(pass("p.a"), PAWL_OK);
    assert_true(pawl__monotonic_ns(clock) - before_ns >= 20 * NS_PER_MS);
    set(NULL);
}

static void test_a_wrong_specification_changes_nothing_and_names_its_part(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "p.a",
        "p.a=",
        "=kill",
        "P.A=kill",
        "p a=kill",
        "p.a=explode",
        "p.a=kill:9",
        "p.a=error:",
        "p.a=error:OK",
        "p.a=error:io",
        "p.a=delay",
        "p.a=delay:",
        "p.a=delay:0",
        "p.a=delay:x",
        "p.a=delay:600001",
        "p.a=delay:99999999999999999999",
        "p.a=error@",
        "p.a=error@0",
        "p.a=error@-1",
        "p.a=error*",
        "p.a=error*x",
        "p.a=error@1@2",
        "p.a=error*1*1",
        "p.a=error@1 ",
        "p.a=kill,p.a=kill",
        ",p.a=kill",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=kill", /* 64 */
    };

    set("p.b=error:BUSY");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        pawl_error error = PAWL_ERROR_INIT;
        assert_status(pawl__failpoint_set(wrong[i], &error), PAWL_INVALID, &error);
        assert_message(&error, "failpoint '");
        assert_int_equal(pass("p.b"), PAWL_BUSY);
    }
    set("p.a=delay:1,"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=kill"); /* 63 */
    set(NULL);
}

static void test_there_are_at_most_64_rules(void **state)
{
    (void)state;
    char text[2000];
    size_t len = 0;
    pawl_error error = PAWL_ERROR_INIT;

    for (int i = 0; i < 64; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "n%d=kill,", i);
    }
    set(text);
    snprintf(text + len, sizeof(text) - len, "n64=kill");
    assert_status(pawl__failpoint_set(text, &error), PAWL_INVALID, &error);
    assert_message(&error, "more than 64");
    set(NULL);
}

static pawl_status leave_by(const char *name, pawl_error *reterr)
{
    FAILPOINT(name, reterr);
    return PAWL_CLOSED;
}

static void test_the_macro_leaves_the_function(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;

    assert_int_equal(leave_by("macro.point", &error), PAWL_CLOSED);
    set("macro.point=error:TIMEOUT");
    assert_int_equal(leave_by("macro.point", &error), PAWL_TIMEOUT);
    assert_message(&error, "failpoint 'macro.point'");
    set(NULL);
}

struct tally {
    const char *name;
    uint64_t passes;
    size_t names;
};

static void count_name(void *context, const char *name, uint64_t passes)
{
    struct tally *tally = context;

    tally->names++;
    if (strcmp(name, tally->name) == 0) {
        tally->passes += passes;
    }
}

static struct tally tally_of(const char *name)
{
    struct tally tally = { .name = name };

    pawl__failpoint_names(count_name, &tally);
    return tally;
}

enum { THREADS = 4, ROUNDS = 2000 };

static void pass_often(void *context)
{
    atomic_size_t *failures = context;

    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many.%d", i % 10);
        if (pass(name) != PAWL_OK) {
            atomic_fetch_add(failures, 1);
        }
    }
}

static void test_threads_count_every_pass_once(void **state)
{
    (void)state;
    struct pawl__thread threads[THREADS] = { 0 };
    atomic_size_t failures = 0;
    pawl_error error = PAWL_ERROR_INIT;

    set("many.3=error*100");
    for (size_t i = 0; i < THREADS; i++) {
        assert_ok(pawl__thread_start(&threads[i], "pass", pass_often, &failures, &error), &error);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pawl__thread_join(&threads[i]);
    }
    set(NULL);
    assert_int_equal(failures, 100);
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "many.%d", i);
        assert_int_equal(tally_of(name).passes, THREADS * ROUNDS / 10);
    }
}

/* Last of all: it fills the table. */
static void test_there_are_at_most_512_names(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    char name[16];

    for (size_t i = tally_of("").names; i < 512; i++) {
        snprintf(name, sizeof(name), "fill.%zu", i);
        assert_ok(pawl__failpoint_hit(name, &error), &error);
    }
    assert_status(pawl__failpoint_hit("one.more", &error), PAWL_FAILED, &error);
    assert_message(&error, "more than 512 names");
    assert_int_equal(pass("p.a"), PAWL_OK);
    assert_int_equal(tally_of("one.more").passes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_environment_makes_a_point_fail),
        cmocka_unit_test(test_kill_ends_the_process_as_kill_9_does),
        cmocka_unit_test(test_a_wrong_environment_is_loud_at_every_point),
        cmocka_unit_test(test_a_log_that_cannot_be_opened_is_loud),
        cmocka_unit_test(test_the_log_lists_each_name_once_per_process),
        cmocka_unit_test(test_passes_are_chosen_by_number_and_times),
        cmocka_unit_test(test_every_status_but_ok_can_be_asked_for),
        cmocka_unit_test(test_a_delay_waits_and_goes_through),
        cmocka_unit_test(test_a_wrong_specification_changes_nothing_and_names_its_part),
        cmocka_unit_test(test_there_are_at_most_64_rules),
        cmocka_unit_test(test_the_macro_leaves_the_function),
        cmocka_unit_test(test_threads_count_every_pass_once),
        cmocka_unit_test(test_there_are_at_most_512_names),
    };
    return cmocka_run_group_tests_name("failpoint", tests, NULL, NULL);
}

#else

static void count_any(void *context, const char *name, uint64_t passes)
{
    (void)name;
    *(uint64_t *)context += passes;
}

static void test_a_build_without_failpoints_has_none(void **state)
{
    (void)state;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t passes = 0;
    struct outcome outcome = run_child("child.one=error,child.two=kill", "");

    assert_int_equal(outcome.first, PAWL_OK);
    assert_int_equal(outcome.wait_status, 0);
    assert_status(pawl__failpoint_set("p.a=kill", &error), PAWL_UNSUPPORTED, &error);
    assert_ok(pawl__failpoint_set(NULL, &error), &error);
    assert_ok(pawl__failpoint_hit("p.a", &error), &error);
    pawl__failpoint_names(count_any, &passes);
    assert_int_equal(passes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_build_without_failpoints_has_none),
    };
    return cmocka_run_group_tests_name("failpoint", tests, NULL, NULL);
}

#endif
