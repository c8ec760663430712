/* Looking at an SQLite store from outside: what it finds, and that it leaves nothing behind. */
#include "lib/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/sqlite_probe.h"
#include "store/sqlite/inspect.h"
#include "test_schemas.h"

static const struct pawl__sqlite_inspection probe_look = {
    .application_id = PROBE_APPLICATION_ID,
    .schema = &pawl__schema_sqlite_probe,
    .check_bytes_max = UINT64_MAX,
};

static size_t count_files(const char *dir)
{
    DIR *stream = opendir(dir);
    size_t count = 0;

    assert_non_null(stream);
    while (readdir(stream) != NULL) {
        count++;
    }
    closedir(stream);
    return count - 2; /* . and .. */
}

/* The look's status; fails when it changed a byte of the store or the number of files. */
static pawl_status look(struct probe *probe,
                        const struct pawl__sqlite_inspection *how,
                        struct pawl__sqlite_facts *facts,
                        pawl_error *error)
{
    size_t size = 0;
    size_t size_after = 0;
    size_t files = count_files(probe->dir);
    char *before = file_read(probe->path, &size);
    pawl_status status = pawl__sqlite_inspect(probe->path, how, facts, error);
    char *after = file_read(probe->path, &size_after);

    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    assert_int_equal(count_files(probe->dir), files);
    free(before);
    free(after);
    return status;
}

static void test_a_closed_store_is_read_whole(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    pawl__sqlite_close(probe_open(probe));
    assert_ok(look(probe, &probe_look, &facts, &error), &error);
    assert_true(facts.wal);
    assert_true(facts.checked);
    assert_int_equal(facts.log_bytes, 0);
    assert_int_equal(facts.pending, 0);

    struct pawl__sqlite_inspection quick = probe_look;
    quick.check_bytes_max = facts.bytes - 1;
    assert_ok(look(probe, &quick, &facts, &error), &error);
    assert_false(facts.checked);
}

/* A child has the store open, with a commit in its log, until it is killed. */
static pid_t start_user(struct probe *probe)
{
    int pipes[2];
    char said = 0;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct pawl__sqlite *db = NULL;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        said = pawl__sqlite_open(probe->path, &probe->options, &db, NULL) == PAWL_OK
                       && probe_put_committed(db, "in the log", NULL) == PAWL_OK
                   ? 'y'
                   : 'n';
        if (write(pipes[1], &said, 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &said, 1), 1);
    close(pipes[0]);
    assert_int_equal(said, 'y');
    return pid;
}

static void test_a_store_in_use_is_read_with_its_log(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    pid_t user = start_user(probe);

    assert_ok(look(probe, &probe_look, &facts, &error), &error);
    assert_true(facts.log_bytes > 0);
    assert_true(facts.checked);
    assert_int_equal(kill(user, SIGKILL), 0);
    assert_int_equal(waitpid(user, NULL, 0), user);
    /* And with what a killed process leaves behind. */
    assert_ok(look(probe, &probe_look, &facts, &error), &error);
    assert_true(facts.log_bytes > 0);
}

static void test_an_older_store_has_migrations_pending_and_a_newer_one_is_refused(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    const struct pawl__schema *whole = &pawl__schema_sqlite_probe;
    struct pawl__schema half = { .component = whole->component,
                                 .migrations = whole->migrations,
                                 .count = whole->count - 1 };
    struct pawl__sqlite_inspection how = probe_look;
    struct pawl__sqlite *db = NULL;

    probe->options.schema = &half;
    probe->options.statement_count = 0;
    assert_ok(pawl__sqlite_open(probe->path, &probe->options, &db, &error), &error);
    pawl__sqlite_close(db);
    assert_ok(look(probe, &how, &facts, &error), &error);
    assert_int_equal(facts.pending, 1);

    half.count--;
    how.schema = &half;
    facts.pending = 42;
    assert_status(look(probe, &how, &facts, &error), PAWL_UNSUPPORTED, &error);
    assert_message(&error, "newer");
    assert_int_equal(facts.pending, 42);
}

static void test_what_is_not_ours_is_refused(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite_inspection other = probe_look;

    assert_status(
        pawl__sqlite_inspect(probe->path, &probe_look, &facts, &error), PAWL_NOT_FOUND, &error);
    assert_status(
        pawl__sqlite_inspect(probe->dir, &probe_look, &facts, &error), PAWL_INVALID, &error);
    file_write(probe->path, "", 0);
    assert_ok(look(probe, &probe_look, &facts, &error), &error);
    assert_int_equal(facts.bytes, 0);
    file_write(probe->path, "a diary", 7);
    assert_status(look(probe, &probe_look, &facts, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "is not an SQLite database");

    assert_int_equal(unlink(probe->path), 0);
    pawl__sqlite_close(probe_open(probe));
    other.application_id++;
    assert_status(look(probe, &other, &facts, &error), PAWL_INVALID, &error);
    assert_message(&error, "not made by pawl");
}

static void test_damage_is_found(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    size_t size = 0;

    pawl__sqlite_close(probe_open(probe));
    char *bytes = file_read(probe->path, &size);
    memset(bytes + 4096, 0xA5, size - 4096); /* everything but the first page */
    file_write(probe->path, bytes, size);
    free(bytes);
    assert_status(look(probe, &probe_look, &facts, &error), PAWL_CORRUPT, &error);
}

static void test_a_name_that_looks_like_a_uri_is_a_file(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite_facts facts = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    char odd[160];

    pawl__sqlite_close(probe_open(probe));
    snprintf(odd, sizeof(odd), "/%s/a?mode=rwc&x=%%41#b", probe->dir);
    assert_int_equal(rename(probe->path, odd), 0);
    assert_ok(pawl__sqlite_inspect(odd, &probe_look, &facts, &error), &error);
    assert_true(facts.checked);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, probe_setup, probe_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_closed_store_is_read_whole),
        CASE(test_a_store_in_use_is_read_with_its_log),
        CASE(test_an_older_store_has_migrations_pending_and_a_newer_one_is_refused),
        CASE(test_what_is_not_ours_is_refused),
        CASE(test_damage_is_found),
        CASE(test_a_name_that_looks_like_a_uri_is_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
