#include "torture/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"

__attribute__((noreturn)) static void become(const struct process_options *options,
                                             pid_t parent,
                                             int in,
                                             int out)
{
    char *argv[32] = { NULL };
    int errors = open(options->errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    for (size_t i = 0; options->argv[i] != NULL && i + 1 < COUNT_OF(argv); i++) {
        argv[i] = strdup(options->argv[i]);
    }
    for (size_t i = 0; options->settings != NULL && options->settings[i] != NULL; i++) {
        putenv(strdup(options->settings[i]));
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (errors >= 0 && getppid() == parent && dup2(in, STDIN_FILENO) >= 0
        && dup2(out, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0) {
        execv(argv[0], argv);
    }
    _exit(127);
}

pawl_status process_start(struct process *process,
                          const struct process_options *options,
                          pawl_error *reterr)
{
    int in[2] = { -1, -1 };
    int out[2] = { -1, -1 };

    *process = (struct process){ .in = -1, .out = -1 };
    if (pipe2(in, O_CLOEXEC) != 0) {
        return pawl__fail_errno(reterr, errno, "pipe");
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        int error = errno;
        close(in[0]);
        close(in[1]);
        return pawl__fail_errno(reterr, error, "pipe");
    }
    pid_t parent = getpid();
    process->pid = fork();
    if (process->pid == 0) {
        become(options, parent, in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    process->in = in[1];
    process->out = out[0];
    return process->pid > 0 ? PAWL_OK : pawl__fail_errno(reterr, errno, "fork");
}

static bool take_line(struct process *process, char *ret_line, size_t size)
{
    const char *newline = memchr(process->buffer, '\n', process->len);

    if (newline == NULL) {
        return false;
    }
    size_t len = (size_t)(newline - process->buffer);
    REQUIRE(len < size);
    memcpy(ret_line, process->buffer, len);
    ret_line[len] = '\0';
    process->len -= len + 1;
    memmove(process->buffer, newline + 1, process->len);
    return true;
}

enum process_event process_next(struct process *process,
                                int64_t deadline_ns,
                                char *ret_line,
                                size_t size)
{
    struct pollfd waiting = { .fd = process->out, .events = POLLIN };

    while (!take_line(process, ret_line, size)) {
        int64_t left_ms = (deadline_ns - pawl__monotonic_ns(pawl__clock_real())) / NS_PER_MS;
        int ready = left_ms > 0 ? poll(&waiting, 1, (int)left_ms) : 0;
        if (ready <= 0) {
            return ready == 0 ? PROCESS_SILENT : PROCESS_INTERRUPTED;
        }
        REQUIRE(process->len < sizeof(process->buffer));
        ssize_t got = read(
            process->out, &process->buffer[process->len], sizeof(process->buffer) - process->len);
        if (got <= 0) {
            return PROCESS_EOF;
        }
        process->len += (size_t)got;
    }
    return PROCESS_LINE;
}

void process_close_input(struct process *process)
{
    pawl__fs_close(&process->in);
}

void process_kill(struct process *process)
{
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
    }
}

int process_end(struct process *process)
{
    int status = 0;

    process_close_input(process);
    pawl__fs_close(&process->out);
    if (process->pid > 0) {
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
        }
        process->pid = 0;
    }
    return status;
}
