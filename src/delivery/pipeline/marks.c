/* What the WAL notes about its entries, made to agree with the sink. */
#include "delivery/pipeline/internal.h"

#include <stdio.h>

#include "base/core/error.h"

struct settling {
    const struct delivery_exceptions *exceptions;
    struct delivery_recovery *recovery; /* NULL: nothing is counted */
};

static pawl_status mark_one(struct delivery_pipeline *pipeline,
                            const struct delivery_entry *entry,
                            enum delivery_entry_state state,
                            pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_fate fate = entry->fate;

    if (fate.state == state) {
        return PAWL_OK;
    }
    fate.state = state;
    fate.ended_us = state == DELIVERY_PENDING ? 0 : pawl__wall_us(pipeline->parts.clock);
    return wal->ops->mark(wal, &entry->lsn, &fate, 1, reterr);
}

/* Which of the two ends it found; the sink is asked, because the payload of a failure must stay. */
static pawl_status mark_settled(struct delivery_pipeline *pipeline,
                                const struct delivery_entry *entry,
                                pawl_error *reterr)
{
    struct delivery_known known;

    TRY(pawl__delivery_find_in_sink(pipeline, entry, &known, reterr));
    bool has_failed = known.found && known.kind == DELIVERY_TO_FAILED;
    return mark_one(pipeline, entry, has_failed ? DELIVERY_FAILED : DELIVERY_CONFIRMED, reterr);
}

static pawl_status settle_entry(struct delivery_pipeline *pipeline,
                                const struct delivery_entry *entry,
                                void *context,
                                pawl_error *reterr)
{
    struct settling *settling = context;
    bool is_open = entry->lsn > pipeline->cursor.applied
                   || pawl__delivery_exceptions_find(settling->exceptions, entry->lsn) != NULL;
    bool was_pending = entry->fate.state == DELIVERY_PENDING;

    if (was_pending && settling->recovery != NULL) {
        pawl__delivery_recovery_found(settling->recovery, !is_open);
    }
    if (is_open) {
        return mark_one(pipeline, entry, DELIVERY_PENDING, reterr);
    }
    return was_pending ? mark_settled(pipeline, entry, reterr) : PAWL_OK;
}

pawl_status pawl__delivery_settle_marks(struct delivery_pipeline *pipeline,
                                        const struct delivery_exceptions *exceptions,
                                        struct delivery_recovery *recovery,
                                        pawl_error *reterr)
{
    struct settling settling = { exceptions, recovery };

    return pawl__delivery_each_entry(pipeline, 1, settle_entry, &settling, reterr);
}
