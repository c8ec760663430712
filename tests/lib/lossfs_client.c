#include "lib/lossfs_client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"

#define ANSWER_MS_MAX 30000
#define CONTROL_FD 3 /* in lossfs */

extern char **environ;

/* One packet, or why not. An end of file is lossfs having ended. */
static pawl_status receive(struct lossfs_client *fs,
                           char *ret_text,
                           size_t size,
                           pawl_error *reterr)
{
    struct pollfd waiting = { .fd = fs->control, .events = POLLIN };
    int ready = 0;

    do {
        ready = poll(&waiting, 1, ANSWER_MS_MAX);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        return pawl__fail(reterr, PAWL_TIMEOUT, "lossfs did not answer in %d ms", ANSWER_MS_MAX);
    }
    ssize_t len = recv(fs->control, ret_text, size - 1, 0);
    if (len <= 0) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "lossfs has ended");
    }
    ret_text[len] = '\0';
    return PAWL_OK;
}

static pawl_status spawn(struct lossfs_client *fs,
                         const struct lossfs_options *options,
                         int control,
                         pawl_error *reterr)
{
    posix_spawn_file_actions_t actions;
    const char *allow = options->other_users ? "-oallow_other" : "-odefault_permissions";
    const char *arguments[] = {
        LOSSFS_PROGRAM,
        options->live,
        fs->path,
        options->strict ? "strict" : "journal",
        "3",
        "-ofsname=lossfs",
        "-odefault_permissions",
        allow,
        NULL,
    };
    char *argv[COUNT_OF(arguments)];

    memcpy(argv, arguments, sizeof(argv));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, control, CONTROL_FD);
    int error = posix_spawn(&fs->pid, LOSSFS_PROGRAM, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? PAWL_OK : pawl__fail_errno(reterr, error, "start '%s'", LOSSFS_PROGRAM);
}

static pawl_status start(struct lossfs_client *fs,
                         const struct lossfs_options *options,
                         pawl_error *reterr)
{
    int sockets[2];
    char text[64];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        return pawl__fail_errno(reterr, errno, "control socket");
    }
    fs->control = sockets[0];
    pawl_status status = spawn(fs, options, sockets[1], reterr);
    close(sockets[1]);
    return status != PAWL_OK ? status : receive(fs, text, sizeof(text), reterr);
}

static pawl_status choose_path(struct lossfs_client *fs, const char *at, pawl_error *reterr)
{
    const char *base = getenv("TMPDIR");
    int len = at != NULL
                  ? snprintf(fs->path, sizeof(fs->path), "%s", at)
                  : snprintf(
                      fs->path, sizeof(fs->path), "%s/lossfs-XXXXXX", base == NULL ? "/tmp" : base);

    if (len < 0 || len >= (int)sizeof(fs->path)) {
        return pawl__fail(reterr, PAWL_INVALID, "the mount point's path is too long");
    }
    if (at == NULL && mkdtemp(fs->path) == NULL) {
        return pawl__fail_errno(reterr, errno, "mount point");
    }
    fs->made_path = at == NULL;
    return PAWL_OK;
}

pawl_status lossfs_mount(struct lossfs_client *fs,
                         const struct lossfs_options *options,
                         pawl_error *reterr)
{
    *fs = (struct lossfs_client)LOSSFS_CLIENT_INIT;
    if (access("/dev/fuse", F_OK) != 0) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "this machine has no /dev/fuse");
    }
    pawl_status status = choose_path(fs, options->at, reterr);
    if (status == PAWL_OK) {
        status = start(fs, options, reterr);
    }
    if (status != PAWL_OK) {
        lossfs_unmount(fs);
        return pawl__fail_context(reterr, status, "mount lossfs");
    }
    return PAWL_OK;
}

static pawl_status ask(struct lossfs_client *fs,
                       const char *command,
                       char *ret_answer,
                       size_t size,
                       pawl_error *reterr)
{
    if (send(fs->control, command, strlen(command), MSG_NOSIGNAL) < 0) {
        return pawl__fail_errno(reterr, errno, "send '%s' to lossfs", command);
    }
    pawl_status status = receive(fs, ret_answer, size, reterr);
    if (status == PAWL_OK && strncmp(ret_answer, "ok", 2) != 0) {
        return pawl__fail(reterr, PAWL_INVALID, "lossfs: '%s': %s", command, ret_answer);
    }
    return status;
}

pawl_status lossfs_tell(struct lossfs_client *fs, pawl_error *reterr, const char *format, ...)
{
    char command[PATH_MAX];
    char answer[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    return ask(fs, command, answer, sizeof(answer), reterr);
}

pawl_status lossfs_counter(struct lossfs_client *fs,
                           const char *name,
                           uint64_t *ret_value,
                           pawl_error *reterr)
{
    char answer[512];
    pawl_status status = ask(fs, "show", answer, sizeof(answer), reterr);

    if (status != PAWL_OK) {
        return status;
    }
    char *rest = answer;
    for (char *word = NULL; (word = strsep(&rest, " ")) != NULL;) {
        const char *key = strsep(&word, "=");
        if (word != NULL && strcmp(key, name) == 0) {
            *ret_value = strtoull(word, NULL, 10);
            return PAWL_OK;
        }
    }
    return pawl__fail(reterr, PAWL_NOT_FOUND, "lossfs has no counter '%s'", name);
}

/* True when it ended by itself; lossfs does so as soon as its control socket is closed. */
static bool ended_in_time(pid_t pid)
{
    int handle = pidfd_open(pid, 0);
    struct pollfd waiting = { .fd = handle, .events = POLLIN };
    bool ended = handle >= 0 && poll(&waiting, 1, ANSWER_MS_MAX) == 1;

    pawl__fs_close(&handle);
    return ended;
}

void lossfs_unmount(struct lossfs_client *fs)
{
    pawl__fs_close(&fs->control);
    if (fs->pid > 0) {
        if (!ended_in_time(fs->pid)) {
            kill(fs->pid, SIGKILL);
            umount2(fs->path, MNT_DETACH);
        }
        waitpid(fs->pid, NULL, 0);
    }
    if (fs->made_path) {
        rmdir(fs->path);
    }
    *fs = (struct lossfs_client)LOSSFS_CLIENT_INIT;
}
