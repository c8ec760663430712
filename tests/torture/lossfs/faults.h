/* Which operation fails, and how. Pure: it counts what passes and says what happens to it. */
#ifndef TESTS_LOSSFS_FAULTS_H
#define TESTS_LOSSFS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "torture/lossfs/file.h"

#define LOSS_NO_QUOTA UINT64_MAX

struct loss_faults {
    uint64_t operations; /* that change something, fsyncs included */
    uint64_t writes;
    uint64_t fsyncs;
    uint64_t errors; /* that we made up: failed writes and fsyncs */

    uint64_t cut_at;     /* the power goes just before this operation; 0: never */
    uint64_t fail_write; /* this write fails with EIO; 0: none */
    uint64_t fail_fsync; /* this fsync fails with EIO and its file's changes are gone; 0: none */
    uint64_t quota;      /* bytes that all files together may have */
    uint64_t slow_fsync_us;
    bool read_only;
    bool lying_fsync; /* says yes and does nothing: a disk with a volatile cache */

    enum loss_cut cut;
    uint64_t seed;
    bool cut_done; /* the machine is off: nothing works any more */
};

enum loss_verdict {
    LOSS_GO,
    LOSS_CUT_NOW, /* the caller cuts, then refuses as with LOSS_REFUSE */
    LOSS_REFUSE,  /* with the errno */
};

/* For every operation that changes something, before it happens. */
enum loss_verdict loss_faults_change(struct loss_faults *faults, int *ret_errno);

/* Additionally for a write (or anything else that makes files longer) of a file system that now has
 * `bytes` and would have `bytes_after`. 0 or an errno. */
int loss_faults_grow(const struct loss_faults *faults, uint64_t bytes, uint64_t bytes_after);
int loss_faults_write(struct loss_faults *faults);
int loss_faults_fsync(struct loss_faults *faults);

#endif
