/* The control channel: one packet a command, one packet an answer.
 *
 *   cut MODE SEED          the power goes now; MODE is drop, keep, random, prefix or torn
 *   cut-at N MODE SEED     ... just before the N-th change from now on (fsyncs count)
 *   fail-write N           the N-th write from now on fails with EIO
 *   fail-fsync N           the N-th fsync from now on fails with EIO and loses that file's changes
 *   quota N                all files together may have N bytes; 0: no limit
 *   slow-fsync N           an fsync takes N microseconds longer
 *   lying-fsync N          1: fsync does nothing and says it did
 *   read-only N            1: changes fail with EROFS
 *   sync                   everything so far is durable, as by sync(2)
 *   save DIR               writes the durable image into the empty directory DIR
 *   show                   counters, "name=number" each
 *
 * Answers are "ok", "ok ..." or "error ...". */
#include "torture/lossfs/lossfs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "torture/lossfs/disk.h"

#define COMMAND_BYTES_MAX (PATH_MAX + 64)

static bool take_number(char **arguments, uint64_t *ret_number)
{
    char *word = strsep(arguments, " ");
    char *end = NULL;

    if (word == NULL || *word == '\0') {
        return false;
    }
    errno = 0;
    uint64_t number = strtoull(word, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *ret_number = number;
    return true;
}

static bool take_cut(char **arguments, struct loss_faults *faults)
{
    const char *word = strsep(arguments, " ");

    return word != NULL && loss_cut_parse(word, &faults->cut)
           && take_number(arguments, &faults->seed);
}

static bool do_cut(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    if (!take_cut(&arguments, &fs->faults)) {
        return false;
    }
    lossfs_cut_locked(fs);
    return true;
}

static bool do_cut_at(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    uint64_t nth = 0;

    if (!take_number(&arguments, &nth) || !take_cut(&arguments, &fs->faults)) {
        return false;
    }
    fs->faults.cut_at = fs->faults.operations + nth;
    return true;
}

static bool do_fail_write(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    uint64_t nth = 0;
    bool valid = take_number(&arguments, &nth);

    fs->faults.fail_write = valid ? fs->faults.writes + nth : fs->faults.fail_write;
    return valid;
}

static bool do_fail_fsync(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    uint64_t nth = 0;
    bool valid = take_number(&arguments, &nth);

    fs->faults.fail_fsync = valid ? fs->faults.fsyncs + nth : fs->faults.fail_fsync;
    return valid;
}

static bool do_quota(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    uint64_t bytes = 0;
    bool valid = take_number(&arguments, &bytes);

    if (valid) {
        fs->faults.quota = bytes == 0 ? LOSS_NO_QUOTA : bytes;
    }
    return valid;
}

static bool do_slow_fsync(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    return take_number(&arguments, &fs->faults.slow_fsync_us);
}

static bool take_switch(char *arguments, bool *ret_on)
{
    uint64_t number = 0;
    bool valid = take_number(&arguments, &number) && number <= 1;

    *ret_on = valid ? number == 1 : *ret_on;
    return valid;
}

static bool do_lying_fsync(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    return take_switch(arguments, &fs->faults.lying_fsync);
}

static bool do_read_only(struct lossfs *fs, char *arguments) REQUIRES_LOCK(fs->lock)
{
    return take_switch(arguments, &fs->faults.read_only);
}

static const struct {
    const char *name;
    bool (*run)(struct lossfs *fs, char *arguments);
} commands[] = {
    { "cut", do_cut },
    { "cut-at", do_cut_at },
    { "fail-write", do_fail_write },
    { "fail-fsync", do_fail_fsync },
    { "quota", do_quota },
    { "slow-fsync", do_slow_fsync },
    { "lying-fsync", do_lying_fsync },
    { "read-only", do_read_only },
};

static void answer_save(struct lossfs *fs, const char *path, char *ret_answer, size_t size)
{
    int result = path == NULL ? -EINVAL : loss_disk_save(&fs->names, path);

    if (result == 0) {
        snprintf(ret_answer, size, "ok");
    } else {
        snprintf(ret_answer, size, "error save: %s", strerror(-result));
    }
}

static void answer_show(const struct lossfs *fs, char *ret_answer, size_t size)
{
    snprintf(ret_answer,
             size,
             "ok cut=%d operations=%llu writes=%llu fsyncs=%llu errors=%llu bytes=%llu "
             "pending_names=%zu lost_names=%zu lost_writes=%zu",
             fs->faults.cut_done,
             (unsigned long long)fs->faults.operations,
             (unsigned long long)fs->faults.writes,
             (unsigned long long)fs->faults.fsyncs,
             (unsigned long long)fs->faults.errors,
             (unsigned long long)fs->names.live_bytes,
             fs->names.pending,
             fs->lost.names,
             fs->lost.writes);
}

static void answer_locked(struct lossfs *fs, char *command, char *ret_answer, size_t size)
    REQUIRES_LOCK(fs->lock)
{
    char *arguments = command;
    const char *name = strsep(&arguments, " ");

    if (strcmp(name, "save") == 0) {
        answer_save(fs, arguments, ret_answer, size);
        return;
    }
    if (strcmp(name, "sync") == 0) {
        loss_names_sync_all(&fs->names);
        loss_names_sync_files(&fs->names);
        snprintf(ret_answer, size, "ok");
        return;
    }
    if (strcmp(name, "show") == 0) {
        answer_show(fs, ret_answer, size);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            bool done = commands[i].run(fs, arguments);
            snprintf(ret_answer, size, done ? "ok" : "error arguments of '%s'", name);
            return;
        }
    }
    snprintf(ret_answer, size, "error no command '%s'", name);
}

void lossfs_control_answer(struct lossfs *fs, char *command, char *ret_answer, size_t size)
{
    pawl__lock(&fs->lock);
    answer_locked(fs, command, ret_answer, size);
    pawl__unlock(&fs->lock);
}

void lossfs_control_run(void *context)
{
    struct lossfs *fs = context;
    char command[COMMAND_BYTES_MAX];
    char answer[256];
    ssize_t len = 0;

    while ((len = recv(fs->control, command, sizeof(command) - 1, 0)) > 0) {
        command[len] = '\0';
        lossfs_control_answer(fs, command, answer, sizeof(answer));
        if (send(fs->control, answer, strlen(answer), MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    /* Whoever mounted us is gone or done. libfuse leaves its loop on this signal. */
    kill(getpid(), SIGTERM);
}
