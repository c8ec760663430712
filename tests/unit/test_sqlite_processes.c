/* Several processes on one SQLite store: creating, migrating, waiting, dying. */
#include "lib/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/os/failpoint.h"
#include "lib/sqlite_probe.h"
#include "test_schemas.h"

enum { NOBODY = 65534 };

/* A child with a line in each direction. It ends when the test does. */
struct child {
    pid_t pid;
    int to;
    int from;
};

typedef int child_main(struct probe *probe, int in, int out);

static struct child start(struct probe *probe, child_main *run)
{
    int down[2];
    int up[2];
    struct child child;

    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(down[1]);
        close(up[0]);
        _exit(run(probe, down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    child.to = down[1];
    child.from = up[0];
    return child;
}

static void say(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static void hear(int fd)
{
    char byte;

    assert_int_equal(read(fd, &byte, 1), 1);
}

/* What waitpid says about it. */
static int end(struct child *child)
{
    int status = 0;

    close(child->to);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->from);
    return status;
}

/* The child's exit code is a pawl_status. */
#define assert_ended_with(child, expected)               \
    do {                                                 \
        int ended_ = end(child);                         \
        assert_true(WIFEXITED(ended_));                  \
        assert_int_equal(WEXITSTATUS(ended_), expected); \
    } while (0)

static int open_when_told(struct probe *probe, int in, int out)
{
    struct pawl__sqlite *db = NULL;
    char byte;

    (void)out;
    if (read(in, &byte, 1) < 0) { /* 0: all of them hear the same line being closed */
        return 100;
    }
    pawl_status status = pawl__sqlite_open(probe->path, &probe->options, &db, NULL);
    pawl__sqlite_close(db);
    return (int)status;
}

/* Starts eight that wait, lets them go together and expects all to succeed. */
static void open_together(struct probe *probe)
{
    struct child children[8];

    for (size_t i = 0; i < COUNT_OF(children); i++) {
        children[i] = start(probe, open_when_told);
    }
    for (size_t i = 0; i < COUNT_OF(children); i++) {
        say(children[i].to);
    }
    for (size_t i = 0; i < COUNT_OF(children); i++) {
        assert_ended_with(&children[i], PAWL_OK);
    }
}

static void test_processes_that_create_and_migrate_together_all_succeed(void **state)
{
    struct probe *probe = *state;
    const struct pawl__schema older = { .component = "probe",
                                        .migrations = pawl__schema_sqlite_probe.migrations,
                                        .count = 1 };
    struct pawl__sqlite_options options = probe->options;

    for (int round = 0; round < 10; round++) {
        snprintf(probe->path, sizeof(probe->path), "%s/round-%d", probe->dir, round);
        probe->options.statement_count = 0;
        probe->options.schema = &older;
        open_together(probe); /* create */
        probe->options = options;
        open_together(probe); /* migrate two further */
        assert_int_equal(probe_pragma(probe, "SELECT count(*) FROM schema_version"), 3);
        assert_int_equal(probe_pragma(probe, "SELECT count(*) FROM probe"), 1);
    }
}

/* --- waiting --- */

static int hold_the_write_lock(struct probe *probe, int in, int out)
{
    struct pawl__sqlite *db = NULL;
    char byte;

    if (pawl__sqlite_open(probe->path, &probe->options, &db, NULL) != PAWL_OK
        || pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, NULL) != PAWL_OK
        || probe_put(db, "held", NULL) != PAWL_OK || write(out, "x", 1) != 1
        || read(in, &byte, 1) != 1) {
        return 100;
    }
    pawl_status status = pawl__sqlite_commit(db, NULL);
    pawl__sqlite_close(db);
    return (int)status;
}

static void test_a_writer_waits_for_another_process(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__sqlite_close(probe_open(probe));
    struct child holder = start(probe, hold_the_write_lock);
    hear(holder.from);
    probe->options.busy_ms_max = 0;
    struct pawl__sqlite *hasty = probe_open(probe);
    assert_rows(hasty, 1); /* readers see what was there */
    assert_status(pawl__sqlite_begin(hasty, PAWL__SQLITE_IMMEDIATE, &error), PAWL_BUSY, &error);
    assert_message(&error, "database is locked");
    pawl__sqlite_close(hasty);

    probe->options.busy_ms_max = 60000;
    struct pawl__sqlite *patient = probe_open(probe);
    say(holder.to); /* it commits while we wait, or before */
    assert_ok(probe_put_committed(patient, "mine", &error), &error);
    assert_rows(patient, 3);
    assert_ended_with(&holder, PAWL_OK);
    pawl__sqlite_close(patient);
}

static void test_a_killed_writer_takes_nothing_along(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite *db = probe_open(probe);

    for (int i = 0; i < 5; i++) {
        char name[16];
        struct child holder = start(probe, hold_the_write_lock);

        hear(holder.from);
        assert_int_equal(kill(holder.pid, SIGKILL), 0);
        assert_true(WIFSIGNALED(end(&holder)));
        snprintf(name, sizeof(name), "row-%d", i);
        assert_ok(probe_put_committed(db, name, &error), &error); /* the lock died with it */
        assert_rows(db, 2 + i);
    }
    assert_ok(pawl__sqlite_quick_check(db, &error), &error);
    pawl__sqlite_close(db);
}

/* --- dying at a point --- */

static const char *point; /* where the child dies */

static int migrate_and_die(struct probe *probe, int in, int out)
{
    (void)out;
    if (pawl__failpoint_set(point, NULL) != PAWL_OK) {
        return 100;
    }
    return open_when_told(probe, in, out);
}

static void test_a_migration_killed_anywhere_leaves_old_or_new(void **state)
{
    struct probe *probe = *state;
    const struct pawl__schema older = { .component = "probe",
                                        .migrations = pawl__schema_sqlite_probe.migrations,
                                        .count = 1 };
    static const struct {
        const char *point;
        int migration; /* what the store is at afterwards */
    } kills[] = {
        { "migrate.apply.before=kill", 1 },  { "migrate.apply.before=kill@2", 1 },
        { "migrate.commit.before=kill", 1 }, { "sqlite.commit.before=kill", 1 },
        { "sqlite.commit.after=kill", 3 },   { "migrate.commit.after=kill", 3 },
    };

    for (size_t i = 0; i < COUNT_OF(kills); i++) {
        struct probe old = *probe;

        snprintf(probe->path, sizeof(probe->path), "%s/kill-%zu", probe->dir, i);
        snprintf(old.path, sizeof(old.path), "%s", probe->path);
        old.options.statement_count = 0;
        old.options.schema = &older;
        pawl__sqlite_close(probe_open(&old));

        point = kills[i].point;
        struct child child = start(probe, migrate_and_die);
        say(child.to);
        int ended = end(&child);
        assert_true(WIFSIGNALED(ended));
        assert_int_equal(WTERMSIG(ended), SIGKILL);

        old.options.schema = NULL; /* look, migrate nothing */
        assert_int_equal(probe_pragma(&old, "SELECT max(migration) FROM schema_version"),
                         kills[i].migration);
        assert_int_equal(
            probe_pragma(&old, "SELECT count(*) FROM sqlite_schema WHERE name = 'probe_child'"),
            kills[i].migration == 3);
        struct pawl__sqlite *db = probe_open(probe); /* the next start brings it to the end */
        assert_rows(db, 1);
        pawl__sqlite_close(db);
    }
}

/* --- permissions; root has them all, so a child gives them up --- */

static int open_as_nobody(struct probe *probe, int in, int out)
{
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    (void)in;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
        return 100;
    }
    pawl_status status = pawl__sqlite_open(probe->path, &probe->options, &db, &error);
    if (write(out, error.message, sizeof(error.message)) != (ssize_t)sizeof(error.message)) {
        return 100;
    }
    int64_t rows = 0;
    if (status == PAWL_OK) {
        status = probe_rows(db, &rows, &error);
    }
    pawl__sqlite_close(db);
    return (int)status;
}

static void assert_nobody_gets(struct probe *probe,
                               enum pawl__sqlite_mode mode,
                               pawl_status expected,
                               const char *says)
{
    pawl_error error = PAWL_ERROR_INIT;

    probe->options.mode = mode;
    struct child child = start(probe, open_as_nobody);
    assert_int_equal(read(child.from, error.message, sizeof(error.message)), sizeof(error.message));
    assert_message(&error, says);
    assert_ended_with(&child, expected);
}

static void test_what_may_not_be_written_is_denied(void **state)
{
    struct probe *probe = *state;

    pawl__sqlite_close(probe_open(probe));
    assert_int_equal(chmod(probe->path, 0444), 0);
    assert_int_equal(chmod(probe->dir, 0755), 0); /* a directory of somebody else */
    assert_nobody_gets(probe, PAWL__SQLITE_CREATE, PAWL_DENIED, "may not be written by this user");
    assert_nobody_gets(
        probe, PAWL__SQLITE_MUST_EXIST, PAWL_DENIED, "may not be written by this user");
    assert_nobody_gets(probe,
                       PAWL__SQLITE_READ_ONLY,
                       PAWL_DENIED,
                       "reading needs a directory that may be written");
    assert_int_equal(chmod(probe->path, 0600), 0); /* of root */
    assert_nobody_gets(probe, PAWL__SQLITE_READ_ONLY, PAWL_DENIED, probe->path);
    assert_int_equal(unlink(probe->path), 0);
    assert_nobody_gets(probe, PAWL__SQLITE_CREATE, PAWL_DENIED, "create '");
    assert_int_equal(access(probe->path, F_OK), -1);

    assert_int_equal(chmod(probe->dir, 0777), 0); /* a read-only file where one may create */
    probe->options.mode = PAWL__SQLITE_CREATE;
    pawl__sqlite_close(probe_open(probe));
    assert_int_equal(chmod(probe->path, 0444), 0);
    assert_nobody_gets(
        probe, PAWL__SQLITE_MUST_EXIST, PAWL_DENIED, "may not be written by this user");
    assert_nobody_gets(probe, PAWL__SQLITE_READ_ONLY, PAWL_OK, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_processes_that_create_and_migrate_together_all_succeed),
        CASE(test_a_writer_waits_for_another_process),
        CASE(test_a_killed_writer_takes_nothing_along),
        CASE(test_a_migration_killed_anywhere_leaves_old_or_new),
        CASE(test_what_may_not_be_written_is_denied),
    };
    return cmocka_run_group_tests_name("sqlite_processes", tests, NULL, NULL);
}
