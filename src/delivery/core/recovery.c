#include "delivery/core/recovery.h"

#include <string.h>

#include "delivery/core/apply.h"

void pawl__delivery_recovery_found(struct delivery_recovery *recovery, bool is_committed)
{
    recovery->total_pending++;
    recovery->already_committed += is_committed;
}

static void settle_one(struct delivery_recovery *recovery, const struct delivery_outcome *outcome)
{
    switch (outcome->kind) {
    case DELIVERY_ROW:
    case DELIVERY_FILTERED:
        recovery->recovered++;
        break;
    case DELIVERY_DEFERRED:
        recovery->skipped++;
        break;
    case DELIVERY_TO_FAILED:
        if (strcmp(outcome->reason, DELIVERY_REASON_EXPIRED) == 0) {
            recovery->expired++;
        } else {
            recovery->failed++;
        }
        break;
    }
}

void pawl__delivery_recovery_settled(struct delivery_recovery *recovery,
                                     const struct delivery_outcome *outcomes,
                                     size_t count,
                                     delivery_lsn until)
{
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i].entry->lsn <= until && !outcomes[i].was_exception
            && !outcomes[i].was_failed) {
            settle_one(recovery, &outcomes[i]);
        }
    }
}

uint64_t pawl__delivery_recovery_left(const struct delivery_recovery *recovery)
{
    return recovery->total_pending - recovery->already_committed - recovery->recovered
           - recovery->expired - recovery->failed - recovery->skipped;
}
