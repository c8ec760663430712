#include "cli/run/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"

/* What the pipe carries: a number that begins, or its negative that ends. Written whole or not at
 * all, because it is shorter than PIPE_BUF. */
typedef int32_t record;

static bool tell(int fd, record what)
{
    ssize_t put;

    do {
        put = write(fd, &what, sizeof(what));
    } while (put < 0 && errno == EINTR);
    return put == (ssize_t)sizeof(what);
}

bool pawl__cli_guard_begins(int fd)
{
    return tell(fd, (record)getpid());
}

void pawl__cli_guard_ends(int fd, pid_t pid)
{
    (void)tell(fd, -(record)pid);
}

/* --- the guard's own process. One thread, no stdio. --- */

struct groups {
    size_t count;
    pid_t pids[2 * RUNNER_JOBS_MAX];
};

static void note(struct groups *groups, record what)
{
    if (what > 0 && groups->count < COUNT_OF(groups->pids)) {
        groups->pids[groups->count++] = what;
        return;
    }
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->pids[i] == -what) {
            groups->pids[i] = groups->pids[--groups->count];
            return;
        }
    }
}

/* Some groups: all that the guard knows, or one. */
struct some {
    const pid_t *pids;
    size_t count;
};

static bool is_among(const struct some *groups, pid_t group)
{
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->pids[i] == group) {
            return true;
        }
    }
    return false;
}

/* "4711 (name) S 1 4700 ...": the state, the parent, the group. */
static bool runs_in(const struct some *groups, const char *name)
{
    char path[300];
    char text[1024];
    size_t len = 0;
    char state = 0;
    int parent = 0;
    int group = 0;

    snprintf(path, sizeof(path), "/proc/%s/stat", name);
    if (pawl__fs_read_small(path, text, sizeof(text), &len, NULL) != PAWL_OK) {
        return false;
    }
    const char *behind = strrchr(text, ')');
    // NOLINTNEXTLINE(cert-err34-c): the kernel wrote it
    if (behind == NULL || sscanf(behind + 1, " %c %d %d", &state, &parent, &group) != 3) {
        return false;
    }
    return state != 'Z' && state != 'X' && is_among(groups, group);
}

/* Killed is not yet gone: a process may still finish the call that it is in. Zombies are gone, for
 * their parent may be gone. */
static bool any_runs(const struct some *groups)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool found = false;

    while (proc != NULL && !found && (entry = readdir(proc)) != NULL) {
        found =
            entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && runs_in(groups, entry->d_name);
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return found;
}

static void end_all(const struct groups *groups)
{
    const struct some all = { groups->pids, groups->count };
    enum { ROUNDS = 2000 }; /* about 10 seconds */
    const struct timespec pause = { .tv_nsec = 5000000 };

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < groups->count; i++) {
            kill(-groups->pids[i], SIGKILL);
        }
        if (groups->count == 0 || !any_runs(&all)) {
            return;
        }
        nanosleep(&pause, NULL); /* they are not our children: there is nothing to wait for */
    }
}

static void leave_everything(int fd)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };

    setsid(); /* signals to the runner's group and its terminal are not for the guard */
    for (size_t i = 0; i < COUNT_OF(ignored); i++) {
        signal(ignored[i], SIG_IGN);
    }
    prctl(PR_SET_NAME, "pawl-guard");
    if (fd != STDIN_FILENO) {
        dup2(fd, STDIN_FILENO);
    }
    /* The others' pipes, locks and files must not stay open because of us. */
    if (syscall(SYS_close_range, 1U, ~0U, 0U) != 0) {
        for (int other = 1; other < 1024; other++) {
            close(other);
        }
    }
}

_Noreturn static void guard_run(int fd)
{
    static struct groups groups;
    record what;
    ssize_t got;

    leave_everything(fd);
    while ((got = read(STDIN_FILENO, &what, sizeof(what))) != 0) {
        if (got == (ssize_t)sizeof(what)) {
            note(&groups, what);
        }
    }
    end_all(&groups);
    _exit(0);
}

/* --- the runner's side --- */

bool pawl__cli_group_runs(pid_t group)
{
    return any_runs(&(struct some){ &group, 1 });
}

pawl_status pawl__cli_guard_start(struct runner_guard *ret_guard, pawl_error *reterr)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return pawl__fail_errno(reterr, errno, "make a pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        guard_run(ends[0]);
    }
    int failed = errno;
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return pawl__fail_errno(reterr, failed, "start the guard");
    }
    *ret_guard = (struct runner_guard){ .pid = pid, .fd = ends[1] };
    return PAWL_OK;
}

void pawl__cli_guard_done(struct runner_guard *guard)
{
    if (guard->pid <= 0) {
        return;
    }
    close(guard->fd);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    guard->pid = 0;
}
