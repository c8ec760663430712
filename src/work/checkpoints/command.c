#include "work/checkpoints/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"

extern char **environ;

static int set_files(posix_spawn_file_actions_t *files)
{
    int rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (rc == 0) {
        rc = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(files, STDOUT_FILENO, STDERR_FILENO);
    }
    return rc == 0 ? posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1) : rc;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;

    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setpgroup(attributes, 0);
    if (rc == 0) {
        rc = posix_spawnattr_setsigmask(attributes, &none);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setsigdefault(attributes, &all);
    }
    return rc == 0 ? posix_spawnattr_setflags(
               attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)
                   : rc;
}

static int start(char *command, pid_t *ret_pid)
{
    char shell[] = "sh";
    char option[] = "-c";
    char *const arguments[] = { shell, option, command, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&files);

    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = set_files(&files);
        if (rc == 0) {
            rc = set_attributes(&attributes);
        }
        if (rc == 0) {
            rc = posix_spawn(ret_pid, "/bin/sh", &files, &attributes, arguments, environ);
        }
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

/* True when the process ended before the deadline. */
static bool wait_until(int pidfd, struct pawl__clock *clock, int64_t deadline_ns)
{
    for (;;) {
        struct pollfd entry = { .fd = pidfd, .events = POLLIN };
        int64_t left_ns = deadline_ns - pawl__monotonic_ns(clock);
        int rc = poll(&entry, 1, left_ns <= 0 ? 0 : (int)(left_ns / NS_PER_MS + 1));
        if (rc > 0) {
            return true;
        }
        if (rc == 0 && left_ns <= 0) {
            return false;
        }
    }
}

static pawl_status reap(pid_t pid, int *ret_state, pawl_error *reterr)
{
    while (waitpid(pid, ret_state, 0) < 0) {
        if (errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "wait for a command");
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_command_run(char *command,
                                   struct pawl__clock *clock,
                                   uint32_t ms_max,
                                   struct work_command_end *ret_end,
                                   pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(clock) + ms_max * NS_PER_MS;
    int state = 0;
    pid_t pid;
    int rc = start(command, &pid);

    if (rc != 0) {
        return pawl__fail_errno(reterr, rc, "start /bin/sh");
    }
    AUTO(pawl__fs_close) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int problem = errno;
    bool ended = pidfd >= 0 && wait_until(pidfd, clock, deadline_ns);
    if (!ended) {
        kill(-pid, SIGKILL); /* not reaped yet, so the number is still its own */
    }
    TRY(reap(pid, &state, reterr));
    if (pidfd < 0) {
        return pawl__fail_errno(reterr, problem, "pidfd_open");
    }
    ret_end->timed_out = !ended;
    ret_end->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    ret_end->exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    return PAWL_OK;
}
