#include "torture/lossfs/faults.h"

#include <errno.h>

enum loss_verdict loss_faults_change(struct loss_faults *faults, int *ret_errno)
{
    if (faults->cut_done) {
        *ret_errno = EIO;
        return LOSS_REFUSE;
    }
    faults->operations++;
    if (faults->operations == faults->cut_at) {
        *ret_errno = EIO;
        return LOSS_CUT_NOW;
    }
    if (faults->read_only) {
        *ret_errno = EROFS;
        return LOSS_REFUSE;
    }
    return LOSS_GO;
}

int loss_faults_grow(const struct loss_faults *faults, uint64_t bytes, uint64_t bytes_after)
{
    return bytes_after > bytes && bytes_after > faults->quota ? ENOSPC : 0;
}

static int fail_at(struct loss_faults *faults, uint64_t number, uint64_t fail_number)
{
    if (number != fail_number) {
        return 0;
    }
    faults->errors++;
    return EIO;
}

int loss_faults_write(struct loss_faults *faults)
{
    return fail_at(faults, ++faults->writes, faults->fail_write);
}

int loss_faults_fsync(struct loss_faults *faults)
{
    return fail_at(faults, ++faults->fsyncs, faults->fail_fsync);
}
