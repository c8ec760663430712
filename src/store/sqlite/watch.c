/* News from other processes: inotify says at once that somebody writes to the log file, and
 * SQLite's data_version says whether a commit became visible. The write comes before the commit
 * (and its fsync) is done, so after every sign of life we read again at short intervals; without
 * inotify, or when it missed something, the longest interval is the safety net. */
#include "store/sqlite/watch.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "store/sqlite/internal.h"

#define LOOK_AGAIN_NS_MIN (1 * NS_PER_MS)
#define LOOK_AGAIN_NS_MAX (100 * NS_PER_MS)

void pawl__sqlite_watch_start(struct pawl__sqlite_watch *watch,
                              const char *path,
                              struct pawl__sqlite *db)
{
    AUTO(pawl__buf_done) struct pawl__buf wal = BUF_INIT(65536);

    watch->db = db;
    watch->fresh = true;
    pawl__buf_add_format(&wal, "%s-wal", path);
    watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    /* Without inotify (no more instances, an odd file system) the poll alone goes on. */
    if (watch->inotify_fd >= 0
        && (wal.broken || inotify_add_watch(watch->inotify_fd, wal.data, IN_MODIFY) < 0)) {
        pawl__fs_close(&watch->inotify_fd);
    }
}

void pawl__sqlite_watch_done(struct pawl__sqlite_watch *watch)
{
    pawl__sqlite_close(watch->db);
    watch->db = NULL;
    pawl__fs_close(&watch->inotify_fd);
}

static void wake_eventfd(void *context)
{
    uint64_t one = 1;

    /* Failing means that the counter is full: a thread that reads it wakes all the same. */
    (void)!write(*(int *)context, &one, sizeof(one));
}

/* Waits for a sign of life, cancellation or the time; true when there was a sign. */
static bool wait_for_sign(struct pawl__sqlite_watch *watch, int cancel_fd, int64_t ns)
{
    struct pollfd fds[] = {
        { .fd = watch->inotify_fd, .events = POLLIN }, /* -1 is left alone */
        { .fd = cancel_fd, .events = POLLIN },
    };
    struct timespec timeout = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
    char events[4096];

    if (ppoll(fds, COUNT_OF(fds), &timeout, NULL) <= 0 || (fds[0].revents & POLLIN) == 0) {
        return false;
    }
    while (read(watch->inotify_fd, events, sizeof(events)) > 0) {
    }
    return true;
}

static pawl_status wait_for_change(struct pawl__sqlite_watch *watch,
                                   int64_t deadline_ns,
                                   const struct pawl__cancel *cancel,
                                   int cancel_fd,
                                   pawl_error *reterr)
{
    struct pawl__clock *clock = watch->db->clock;
    int64_t interval_ns = LOOK_AGAIN_NS_MIN;

    for (;;) {
        int64_t version;
        pawl_status status = pawl__sqlite_data_version(watch->db, &version, reterr);
        int64_t left_ns = deadline_ns - pawl__monotonic_ns(clock);

        if (status != PAWL_OK) {
            return status;
        }
        if (version != watch->data_version || left_ns <= 0 || pawl__cancelled(cancel)) {
            watch->data_version = version;
            return PAWL_OK;
        }
        bool sign = wait_for_sign(watch, cancel_fd, MIN(interval_ns, left_ns));
        interval_ns = sign ? LOOK_AGAIN_NS_MIN : MIN(interval_ns * 2, LOOK_AGAIN_NS_MAX);
    }
}

pawl_status pawl__sqlite_watch(struct pawl__sqlite_watch *watch,
                               int64_t deadline_ns,
                               struct pawl__cancel *cancel,
                               pawl_error *reterr)
{
    AUTO(pawl__fs_close) int cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct pawl__cancel_link link;

    if (cancel_fd < 0) {
        return pawl__fail(reterr, PAWL_FAILED, "no eventfd to be had");
    }
    if (watch->fresh) {
        /* What was committed before this is no change any more: all waiting threads read at once. */
        pawl_status status = pawl__sqlite_data_version(watch->db, &watch->data_version, reterr);
        watch->fresh = status != PAWL_OK;
        return status;
    }
    pawl__cancel_link(cancel, &link, wake_eventfd, &cancel_fd);
    pawl_status status = wait_for_change(watch, deadline_ns, cancel, cancel_fd, reterr);
    pawl__cancel_unlink(cancel, &link);
    return status;
}
