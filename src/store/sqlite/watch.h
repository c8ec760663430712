/* News from other processes that have the same SQLite store open. */
#ifndef PAWL_STORE_SQLITE_WATCH_H
#define PAWL_STORE_SQLITE_WATCH_H

#include "base/thread/cancel.h"
#include "store/sqlite/sqlite.h"

/* One thread's. */
struct pawl__sqlite_watch {
    struct pawl__sqlite *db;
    int inotify_fd; /* -1: not to be had */
    int64_t data_version;
    bool fresh;
};

#define PAWL__SQLITE_WATCH_INIT \
    {                           \
        .inotify_fd = -1        \
    }

/* Watches the store of `path` through `db`, which is the watch's from here on. */
void pawl__sqlite_watch_start(struct pawl__sqlite_watch *watch,
                              const char *path,
                              struct pawl__sqlite *db);
void pawl__sqlite_watch_done(struct pawl__sqlite_watch *watch); /* also when never started */

/* As pawl__watch_fn says. The first call returns at once: what was there before is not news. */
PAWL_MUST_USE pawl_status pawl__sqlite_watch(struct pawl__sqlite_watch *watch,
                                             int64_t deadline_ns,
                                             struct pawl__cancel *cancel,
                                             pawl_error *reterr);

#endif
