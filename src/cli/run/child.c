#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "cli/run/guard.h"

/* A file in memory: the command reads as much as it wants, and no thread waits for it. */
static int input_file(pawl_view input)
{
    int fd = memfd_create("pawl-input", MFD_CLOEXEC);
    pawl_view taken;

    while (fd >= 0 && input.len > 0) {
        ssize_t put = write(fd, input.data, input.len);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0 || !pawl__view_take(&input, (size_t)put, &taken)) {
            int failed = errno;
            close(fd);
            errno = failed;
            return -1;
        }
    }
    if (fd >= 0) {
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

struct pipes {
    int input;
    int output[2];
    int error[2];
    int failure[2]; /* carries errno when exec fails; closed when it does not */
};

static void pipes_done(struct pipes *pipes)
{
    int *all[] = { &pipes->input,    &pipes->output[0],  &pipes->output[1], &pipes->error[0],
                   &pipes->error[1], &pipes->failure[0], &pipes->failure[1] };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        pawl__fs_close(all[i]);
    }
}

static bool pipes_open(struct pipes *pipes, pawl_view input)
{
    pipes->input = input_file(input);
    return pipes->input >= 0 && pipe2(pipes->output, O_CLOEXEC) == 0
           && pipe2(pipes->error, O_CLOEXEC) == 0 && pipe2(pipes->failure, O_CLOEXEC) == 0;
}

/* Between vfork and exec: nothing but system calls, and nothing that the parent would notice. */
_Noreturn static void become(const struct runner_command *command, const struct pipes *pipes)
{
    static const int reset[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD };
    char *const argv[] = {
        (char[]){ "sh" }, (char[]){ "-c" }, (char *)(uintptr_t)command->script, NULL
    };
    struct sigaction plain = { .sa_handler = SIG_DFL };
    sigset_t none;

    setpgid(0, 0);
    bool ready = pawl__cli_guard_begins(command->guard_fd) && dup2(pipes->input, STDIN_FILENO) >= 0
                 && dup2(pipes->output[1], STDOUT_FILENO) >= 0
                 && dup2(pipes->error[1], STDERR_FILENO) >= 0;
    for (size_t i = 0; i < COUNT_OF(reset); i++) {
        sigaction(reset[i], &plain, NULL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (ready) {
        execve("/bin/sh", argv, command->environment);
    }
    int failed = errno;
    ssize_t told = write(pipes->failure[1], &failed, sizeof(failed));
    _exit(told == (ssize_t)sizeof(failed) ? 127 : 126);
}

/* vfork, because this process has the libraries of several stores in it: copying their page tables
 * for every command took most of the time. Signals wait, so that no handler of ours runs in the new
 * process, which shares our memory until it becomes the command. */
static pid_t start_process(const struct runner_command *command, const struct pipes *pipes)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork();
    if (pid == 0) {
        become(command, pipes);
    }
    int failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return pid;
}

/* errno of the exec that failed; 0: it did not. */
static int failure_of(struct pipes *pipes)
{
    int failed = 0;
    ssize_t got;

    pawl__fs_close(&pipes->failure[1]);
    do {
        got = read(pipes->failure[0], &failed, sizeof(failed));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(failed) ? failed : 0;
}

static void reap(pid_t pid, int *ret_state)
{
    while (waitpid(pid, ret_state, 0) < 0 && errno == EINTR) {
    }
}

/* The parent's side, once the process exists. */
static bool adopt(const struct runner_command *command,
                  struct pipes *pipes,
                  pid_t pid,
                  struct runner_child *ret_child,
                  int *ret_errno)
{
    int state = 0;
    int failed = failure_of(pipes);
    int pidfd = failed == 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    if (pidfd < 0) {
        *ret_errno = failed == 0 ? errno : failed;
        kill(-pid, SIGKILL);
        pawl__cli_guard_ends(command->guard_fd, pid);
        reap(pid, &state);
        return false;
    }
    fcntl(pipes->output[0], F_SETFL, O_NONBLOCK);
    fcntl(pipes->error[0], F_SETFL, O_NONBLOCK);
    *ret_child = (struct runner_child){
        .pid = pid,
        .pidfd = pidfd,
        .streams = { pipes->output[0], pipes->error[0] },
        .guard_fd = command->guard_fd,
    };
    pipes->output[0] = -1;
    pipes->error[0] = -1;
    return true;
}

bool pawl__cli_child_start(const struct runner_command *command,
                           struct runner_child *ret_child,
                           int *ret_errno)
{
    AUTO(pipes_done) struct pipes pipes = { -1, { -1, -1 }, { -1, -1 }, { -1, -1 } };

    if (!pipes_open(&pipes, command->input)) {
        *ret_errno = errno;
        return false;
    }
    pid_t pid = start_process(command, &pipes);
    if (pid < 0) {
        *ret_errno = errno;
        return false;
    }
    return adopt(command, &pipes, pid, ret_child, ret_errno);
}

void pawl__cli_child_signal(const struct runner_child *child, enum runner_action action)
{
    if (action == RUNNER_NOTHING) {
        return;
    }
    kill(-child->pid, action == RUNNER_KILL ? SIGKILL : SIGTERM);
    if (action == RUNNER_TERM) {
        kill(-child->pid, SIGCONT); /* what is stopped could not obey */
    }
}

void pawl__cli_child_read(struct runner_child *child, int stream, struct runner_capture *capture)
{
    /* More than a pipe holds, and not for ever: who writes faster than we read (a command's child
     * that left its group, after the end) must not keep us from a timeout, or from ending. */
    enum { READS_MAX = 32 };
    char bytes[64 << 10];
    int *fd = &child->streams[stream];

    for (int reads = 0; *fd >= 0 && reads < READS_MAX; reads++) {
        ssize_t got = read(*fd, bytes, sizeof(bytes));
        if (got > 0) {
            pawl__cli_capture_add(capture, (pawl_view){ bytes, (size_t)got });
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            pawl__fs_close(fd);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

struct runner_exit pawl__cli_child_end(struct runner_child *child,
                                       struct runner_capture captures[2])
{
    int state = 0;

    /* Its pid is reserved until waitpid, so this reaches no other process. */
    kill(-child->pid, SIGKILL);
    for (int i = 0; i < 2; i++) {
        pawl__cli_child_read(child, i, &captures[i]);
        pawl__fs_close(&child->streams[i]);
    }
    pawl__cli_guard_ends(child->guard_fd, child->pid);
    reap(child->pid, &state);
    pawl__fs_close(&child->pidfd);
    return (struct runner_exit){
        .started = true,
        .code = WIFEXITED(state) ? WEXITSTATUS(state) : 0,
        .signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0,
    };
}
