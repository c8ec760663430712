/* lossfs: a file system that forgets what was not fsynced.
 *
 * It passes everything through to a live directory and keeps, beside it, the image of what a disk
 * would still have after a power cut (names.h, file.h). A cut freezes that image: from then on
 * every operation fails with EIO, and the image can be written to a directory.
 *
 * A program under test must not notice it is here: mmap, locks, renames and open files without a
 * name work as they do elsewhere. */
#ifndef TESTS_LOSSFS_LOSSFS_H
#define TESTS_LOSSFS_LOSSFS_H

#define FUSE_USE_VERSION 31
#include <fuse.h>

#include "base/thread/thread.h"
#include "torture/lossfs/faults.h"
#include "torture/lossfs/names.h"

struct lossfs {
    struct pawl__lock lock; /* covers everything below */
    int live;               /* the directory behind it */
    struct loss_names names;
    struct loss_faults faults;
    struct loss_lost lost; /* by the cut */
    int control;           /* packets in, packets out: control.c */
};

extern const struct fuse_operations lossfs_operations;

/* Cuts the power as `faults` says; once. */
void lossfs_cut_locked(struct lossfs *fs) REQUIRES_LOCK(fs->lock);

/* Serves the control socket until its other end closes, then ends the program with SIGTERM. */
void lossfs_control_run(void *context); /* the struct lossfs */

/* One command: changes `fs` and writes the answer, "ok..." or "error ...". */
void lossfs_control_answer(struct lossfs *fs, char *command, char *ret_answer, size_t size);

#endif
