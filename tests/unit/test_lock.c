/* Store locks between processes, threads, forks and kills. */
#include "lib/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "base/thread/thread.h"
#include "lib/fault.h"
#include "store/lock.h"

struct fixture {
    char dir[64];
    char store[128];
    char file[160];
};

static int setup(void **state)
{
    static struct fixture f;
    const char *tmp = getenv("TMPDIR");

    snprintf(f.dir, sizeof(f.dir), "%.40s/pawl-lock-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(f.dir) == NULL) {
        return -1;
    }
    snprintf(f.store, sizeof(f.store), "%s/analytics.duckdb", f.dir);
    snprintf(f.file, sizeof(f.file), "%s.lock", f.store);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    return system(command); /* NOLINT(cert-env33-c): a path of our own making */
}

/* A child that takes the lock, says so and then waits to be killed. */
struct holder {
    pid_t pid;
    char said; /* 'y' or 'n' */
};

static struct holder start_holder(const char *store)
{
    struct holder holder = { .said = 0 };
    int pipes[2];
    char said = 0;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    holder.pid = fork();
    assert_true(holder.pid >= 0);
    if (holder.pid == 0) {
        struct pawl__store_lock *lock = NULL;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        said = pawl__store_lock_beside(store, &lock, NULL) == PAWL_OK ? 'y' : 'n';
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
    holder.said = said;
    return holder;
}

static void end_holder(struct holder *holder)
{
    assert_int_equal(kill(holder->pid, SIGKILL), 0);
    assert_int_equal(waitpid(holder->pid, NULL, 0), holder->pid);
}

/* Runs `try` in a child and gives its answer. */
static int in_child(int (*try)(const struct fixture *f), const struct fixture *f)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(try(f));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_take(const struct fixture *f)
{
    struct pawl__store_lock *lock = NULL;

    return (int)pawl__store_lock_beside(f->store, &lock, NULL);
}

static void test_a_second_process_is_told_who_holds_it(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct holder holder = start_holder(f->store);
    struct pawl__store_lock *lock = NULL;
    char pid[32];

    assert_int_equal(holder.said, 'y');
    snprintf(pid, sizeof(pid), "process %d (", (int)holder.pid);
    assert_status(pawl__store_lock_beside(f->store, &lock, &error), PAWL_BUSY, &error);
    assert_null(lock);
    assert_true(error.retryable);
    assert_message(&error, "analytics.duckdb' is in use by ");
    assert_message(&error, pid);
    assert_message(&error, "test_lock"); /* its command */
    assert_message(&error, "stop it, or work through the node");

    end_holder(&holder); /* kill -9: the lock dies with it */
    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    pawl__store_lock_release(lock);
}

static void test_a_look_takes_nothing_and_creates_nothing(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;

    assert_ok(pawl__store_lock_inspect_beside(f->store, &error), &error);
    assert_int_equal(access(f->file, F_OK), -1);
    assert_ok(pawl__store_lock_inspect_inside(f->dir, &error), &error);

    struct holder holder = start_holder(f->store);
    assert_status(pawl__store_lock_inspect_beside(f->store, &error), PAWL_BUSY, &error);
    assert_message(&error, "test_lock");
    end_holder(&holder);

    assert_ok(pawl__store_lock_inspect_beside(f->store, &error), &error);
    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    assert_status(pawl__store_lock_inspect_beside(f->store, &error), PAWL_BUSY, &error);
    assert_int_equal(in_child(try_take, f), PAWL_BUSY); /* the look did not drop it */
    pawl__store_lock_release(lock);
}

static void test_a_second_open_in_the_same_process_is_busy(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;
    struct pawl__store_lock *second = NULL;

    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    assert_status(pawl__store_lock_beside(f->store, &second, &error), PAWL_BUSY, &error);
    assert_message(&error, "already open in this process");
    /* The refused attempt took nothing away from the first: others are still told our pid. */
    assert_int_equal(in_child(try_take, f), PAWL_BUSY);
    pawl__store_lock_release(lock);
    assert_int_equal(in_child(try_take, f), PAWL_OK);
    assert_ok(pawl__store_lock_beside(f->store, &second, &error), &error);
    pawl__store_lock_release(second);
}

static int try_take_and_name_parent(const struct fixture *f)
{
    struct pawl__store_lock *lock = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    char pid[32];

    snprintf(pid, sizeof(pid), "process %d (", (int)getppid());
    return pawl__store_lock_beside(f->store, &lock, &error) == PAWL_BUSY
           && strstr(error.message, pid) != NULL;
}

static void test_a_stranger_who_closes_the_file_does_not_unlock_it(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;

    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    assert_true(in_child(try_take_and_name_parent, f));
    close(open(f->file, O_RDONLY | O_CLOEXEC)); /* drops every process lock on the file */
    assert_int_equal(in_child(try_take, f), PAWL_BUSY);
    pawl__store_lock_release(lock);
}

static void test_a_child_of_fork_does_not_keep_the_lock(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;
    int pipes[2];

    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* lives until the parent closes its end */
        char byte;

        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) == 0 ? 0 : 1);
    }
    pawl__store_lock_release(lock);
    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    close(pipes[1]);
    close(pipes[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    pawl__store_lock_release(lock);
}

/* Takes the lock, forks a child that outlives it, and tells both pids. */
static void hold_and_fork(const char *store, int out)
{
    struct pawl__store_lock *lock = NULL;
    pid_t pids[2] = { getpid(), 0 };

    if (pawl__store_lock_beside(store, &lock, NULL) != PAWL_OK) {
        _exit(1);
    }
    pid_t child = fork();
    if (child == 0) {
        pids[1] = getpid(); /* said by the child: it runs, so the fork is behind it */
        if (write(out, pids, sizeof(pids)) != (ssize_t)sizeof(pids)) {
            _exit(1);
        }
    }
    for (;;) {
        pause();
    }
}

static void test_a_killed_holder_leaves_no_lock_with_its_child(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;
    pid_t pids[2];
    int pipes[2];

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        hold_and_fork(f->store, pipes[1]);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], pids, sizeof(pids)), sizeof(pids));
    close(pipes[0]);
    assert_status(pawl__store_lock_beside(f->store, &lock, &error), PAWL_BUSY, &error);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    pawl_status status = pawl__store_lock_beside(f->store, &lock, &error);
    assert_int_equal(kill(pids[1], SIGKILL), 0);
    assert_ok(status, &error);
    pawl__store_lock_release(lock);
}

static struct pawl__store_lock *inherited;

static int release_and_try_take(const struct fixture *f)
{
    pawl__store_lock_release(inherited);
    return try_take(f);
}

static void test_a_release_in_the_child_leaves_the_parent_locked(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__store_lock_beside(f->store, &inherited, &error), &error);
    assert_int_equal(in_child(release_and_try_take, f), PAWL_BUSY);
    assert_int_equal(in_child(try_take, f), PAWL_BUSY);
    pawl__store_lock_release(inherited);
}

static void test_what_the_file_says_does_not_matter(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;
    struct stat info;

    assert_ok(pawl__fs_replace(f->file, pawl_view_of("1\n/sbin/init\n"), &error), &error);
    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error); /* nobody holds it */
    assert_int_equal(stat(f->file, &info), 0);
    assert_int_equal(info.st_size, 13); /* and nobody writes to it */
    pawl__store_lock_release(lock);

    struct holder holder = start_holder(f->store);
    assert_status(pawl__store_lock_beside(f->store, &lock, &error), PAWL_BUSY, &error);
    assert_null(strstr(error.message, "init"));
    end_holder(&holder);
}

static void test_a_link_to_the_store_means_the_same_lock(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;
    struct pawl__store_lock *second = NULL;
    char link[160];

    assert_ok(pawl__fs_replace(f->store, pawl_view_of("x"), &error), &error);
    snprintf(link, sizeof(link), "%s/link", f->dir);
    assert_int_equal(symlink(f->store, link), 0);
    assert_ok(pawl__store_lock_beside(f->store, &lock, &error), &error);
    assert_status(pawl__store_lock_beside(link, &second, &error), PAWL_BUSY, &error);
    pawl__store_lock_release(lock);
}

static void test_a_directory_is_locked_from_inside(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;
    struct pawl__store_lock *second = NULL;
    struct stat info;
    char file[160];

    assert_ok(pawl__store_lock_inside(f->dir, &lock, &error), &error);
    assert_status(pawl__store_lock_inside(f->dir, &second, &error), PAWL_BUSY, &error);
    snprintf(file, sizeof(file), "%s/pawl.lock", f->dir);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    pawl__store_lock_release(lock);
    assert_status(pawl__store_lock_inside("/nonexistent/x", &lock, &error), PAWL_NOT_FOUND, &error);
}

static void test_a_lock_file_that_is_no_file_is_refused(void **state)
{
    struct fixture *f = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__store_lock *lock = NULL;

    assert_int_equal(mkfifo(f->file, 0600), 0);
    assert_status(pawl__store_lock_beside(f->store, &lock, &error), PAWL_INVALID, &error);
    assert_message(&error, "is not a regular file");
    assert_int_equal(unlink(f->file), 0);
    assert_int_equal(symlink("/dev/null", f->file), 0);
    assert_status(pawl__store_lock_beside(f->store, &lock, &error), PAWL_INVALID, &error);
    assert_null(lock);
}

static void test_running_out_of_memory_leaves_nothing_locked(void **state)
{
    struct fixture *f = *state;

    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        struct pawl__store_lock *lock = NULL;
        pawl_status status = pawl__store_lock_beside(f->store, &lock, &error);

        assert_status(status, fault_fired() ? PAWL_NOMEM : PAWL_OK, &error);
        fault_disarm();
        pawl__store_lock_release(lock);
        assert_int_equal(in_child(try_take, f), PAWL_OK);
    }
}

/* Threads race for one lock: never more than one has it. */
struct race {
    const struct fixture *f;
    _Atomic int holders;
    _Atomic int wins;
    _Atomic int wrong;
};

static void race_for_it(void *context)
{
    struct race *race = context;

    for (int i = 0; i < 300; i++) {
        struct pawl__store_lock *lock = NULL;
        pawl_status status = pawl__store_lock_beside(race->f->store, &lock, NULL);

        if (status == PAWL_OK) {
            race->wrong += ++race->holders != 1;
            race->wins++;
            race->holders--;
            pawl__store_lock_release(lock);
        } else {
            race->wrong += status != PAWL_BUSY;
        }
    }
}

static void test_of_many_threads_one_has_it(void **state)
{
    struct race race = { .f = *state };
    struct pawl__thread threads[4] = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_ok(pawl__thread_start(&threads[i], "race", race_for_it, &race, &error), &error);
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pawl__thread_join(&threads[i]);
    }
    assert_int_equal(race.wrong, 0);
    assert_true(race.wins > 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_second_process_is_told_who_holds_it),
        CASE(test_a_look_takes_nothing_and_creates_nothing),
        CASE(test_a_second_open_in_the_same_process_is_busy),
        CASE(test_a_stranger_who_closes_the_file_does_not_unlock_it),
        CASE(test_a_child_of_fork_does_not_keep_the_lock),
        CASE(test_a_killed_holder_leaves_no_lock_with_its_child),
        CASE(test_a_release_in_the_child_leaves_the_parent_locked),
        CASE(test_what_the_file_says_does_not_matter),
        CASE(test_a_link_to_the_store_means_the_same_lock),
        CASE(test_a_directory_is_locked_from_inside),
        CASE(test_a_lock_file_that_is_no_file_is_refused),
        CASE(test_running_out_of_memory_leaves_nothing_locked),
        CASE(test_of_many_threads_one_has_it),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
