/* Mounts tests/torture/lossfs, the file system that forgets what was not fsynced.
 *
 *     struct lossfs_client fs = LOSSFS_CLIENT_INIT;
 *     status = lossfs_mount(&fs, &(struct lossfs_options){ .live = dir }, &error);
 *     ... run something below fs.path ...
 *     status = lossfs_tell(&fs, &error, "cut torn %d", seed);
 *     status = lossfs_tell(&fs, &error, "save %s", empty_dir);
 *     lossfs_unmount(&fs);
 *
 * The file system ends itself when the process that mounted it is gone, however that died. */
#ifndef TESTS_LOSSFS_CLIENT_H
#define TESTS_LOSSFS_CLIENT_H

#include <sys/types.h>

#include <pawl/pawl.h>

#include "base/core/macros.h"

struct lossfs_options {
    const char *live; /* existing directory; what is in it counts as durable */
    const char *at;   /* empty directory to mount it on; NULL: a temporary one */
    bool strict;      /* names are durable only after an fsync of their directory */
    bool other_users; /* may use it too: a server that will not run as root */
};

struct lossfs_client {
    char path[128]; /* where it is mounted */
    bool made_path;
    pid_t pid;
    int control;
};

#define LOSSFS_CLIENT_INIT        \
    {                             \
        .path = "", .control = -1 \
    }

/* Returns when the file system answers. UNAVAILABLE where this machine cannot mount one: no
 * /dev/fuse, or neither root nor fusermount3. */
PAWL_MUST_USE pawl_status lossfs_mount(struct lossfs_client *fs,
                                       const struct lossfs_options *options,
                                       pawl_error *reterr);

/* Sends a command of tests/torture/lossfs/control.c; its complaint is INVALID. */
PRINTF_LIKE(3, 4)
PAWL_MUST_USE pawl_status lossfs_tell(struct lossfs_client *fs,
                                      pawl_error *reterr,
                                      const char *format,
                                      ...);

/* One of the counters that "show" prints. */
PAWL_MUST_USE pawl_status lossfs_counter(struct lossfs_client *fs,
                                         const char *name,
                                         uint64_t *ret_value,
                                         pawl_error *reterr);

/* Unmounts, even with files still open, and removes the mount point if we made it. */
void lossfs_unmount(struct lossfs_client *fs);

#endif
