#include "lib/child.h"

#include "lib/check.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 4, PATIENCE_MS = 30000, NOBODY = 65534 };

static const char child_word[] = "--child";

bool child_is_one(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[1], child_word) == 0;
}

/* Between fork and exec only what a signal handler may do: the parent has threads. */
static void become_child(int out, const char *const arguments[])
{
    const char *argv[ARGUMENTS_MAX + 3] = { "test", child_word };

    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i] != NULL; i++) {
        argv[i + 2] = arguments[i];
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

void child_start(struct child *child, const char *const arguments[])
{
    int pipes[2];

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        become_child(pipes[1], arguments);
    }
    close(pipes[1]);
    child->out = pipes[0];
}

bool child_line(struct child *child, char *ret_line, size_t size)
{
    size_t len = 0;
    char c = '\0';

    while (len + 1 < size) {
        struct pollfd waits = { .fd = child->out, .events = POLLIN };

        if (poll(&waits, 1, PATIENCE_MS) != 1 || read(child->out, &c, 1) != 1 || c == '\n') {
            break;
        }
        ret_line[len++] = c;
    }
    ret_line[len] = '\0';
    return c == '\n';
}

int child_end(struct child *child, int signal)
{
    int ended = 0;

    if (signal != 0) {
        kill(child->pid, signal);
    }
    assert_int_equal(waitpid(child->pid, &ended, 0), child->pid);
    close(child->out);
    return ended;
}

void child_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

bool child_drop_rights(void)
{
    return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0;
}

bool child_mount_tmpfs(const char *path, const char *options)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
           && mount("none", path, "tmpfs", 0, options) == 0;
}

bool child_remount_read_only(const char *path)
{
    return mount("none", path, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0;
}
