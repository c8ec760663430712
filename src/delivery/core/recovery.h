/* What recovery on start found: the result that is logged and shown. */
#ifndef PAWL_DELIVERY_CORE_RECOVERY_H
#define PAWL_DELIVERY_CORE_RECOVERY_H

#include "delivery/core/sink.h"

struct delivery_recovery {
    uint64_t total_pending;     /* entries that the WAL had as pending */
    uint64_t already_committed; /* of these, in the sink: a crash between commit and mark */
    uint64_t recovered;         /* committed since, as rows or filtered */
    uint64_t expired;
    uint64_t failed;     /* for any other reason */
    uint64_t skipped;    /* still to be tried: exceptions that are not due */
    int64_t duration_ns; /* until the last of them was settled or skipped; 0: not yet */
};

/* An entry that was pending at the start, as far as the sink knows. */
void pawl__delivery_recovery_found(struct delivery_recovery *recovery, bool is_committed);

/* A transaction settled entries up to `until`, the last LSN that was pending at the start. */
void pawl__delivery_recovery_settled(struct delivery_recovery *recovery,
                                     const struct delivery_outcome *outcomes,
                                     size_t count,
                                     delivery_lsn until);

uint64_t pawl__delivery_recovery_left(const struct delivery_recovery *recovery);

#endif
