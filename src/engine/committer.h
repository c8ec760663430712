/* Group commit: many callers, one commit, each gets its own answer.
 *
 * A committer thread owns the store handle. It takes everything that waits (up to the limits), has
 * it committed as one, and answers each caller; what arrives meanwhile is the next batch. One fsync
 * serves all of them, and the more callers there are, the larger the batches become by themselves.
 *
 *     struct append {
 *         struct pawl__commit_item item;
 *         pawl_view event;               what commit_fn writes
 *         uint64_t offset;               what it gives back
 *     };
 *
 * Ownership. An item belongs to the committer from submit until its answer. A caller that stops
 * waiting for an item in flight leaves it to the committer: commit_fn may be reading it at that moment. So
 * such an item must live on the heap, with everything commit_fn reads hanging on it, and name the
 * function that frees it. A caller that appends again and again keeps one item and uses it again;
 * only after a TIMEOUT does it need a new one.
 *
 * Threads: submit from any; new, stop and free from one. */
#ifndef PAWL_ENGINE_COMMITTER_H
#define PAWL_ENGINE_COMMITTER_H

#include "base/core/macros.h"
#include "base/decide/group_commit.h"
#include "base/os/clock.h"

/* Commits the items, in this order, as one. PAWL_OK: the batch is durable, but for those items that
 * it failed by their own with pawl__fail(&item->outcome, ...): those must have left no trace.
 * Anything else: every item gets that error, and none of it is durable, unless the status is one of
 * an unknown outcome (docs/errors.md). Runs on the committer
 * thread only. It should have a bound on its time: nobody can end it from outside. */
typedef pawl_status (*pawl__commit_fn)(void *context,
                                       struct pawl__commit_item *const *items,
                                       size_t count,
                                       pawl_error *reterr);

struct pawl__commit_options {
    const char *name; /* of the thread and in messages; static */
    pawl__commit_fn commit;
    void *context; /* the committer's until free, or for ever after a stop that timed out */
    struct pawl__commit_limits limits;
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs. NULL: the real one */
};

/* 1,000 items or 8 MiB, whichever comes first; larger transactions hardly gain anything. */
#define PAWL__COMMIT_LIMITS_DEFAULT                                                            \
    {                                                                                          \
        .batch_items_max = 1000, .batch_bytes_max = (size_t)8 << 20, .waiting_max = 65536,     \
        .async_max = 0, .async_bytes_max = 0, .linger_ns = 0, .only_for_recent_callers = false \
    }

struct pawl__commit;

PAWL_MUST_USE pawl_status pawl__commit_new(const struct pawl__commit_options *options,
                                           struct pawl__commit **ret_commit,
                                           pawl_error *reterr);

/* Waits for the item's own outcome and returns it. Also
 *   CLOSED   refused or failed because of a stop; not committed
 *   BUSY     too many wait, or the monotonic deadline passed before its turn came; not committed
 *   TIMEOUT  the deadline passed while it was in flight: the outcome is unknown, and *item is NULL,
 *            because the committer will free it. Only here.
 * With deadline INT64_MAX it waits for ever, and the item may live on the stack and have no `free`.
 */
PAWL_MUST_USE pawl_status pawl__commit_submit(struct pawl__commit *commit,
                                              struct pawl__commit_item **item,
                                              int64_t deadline_ns,
                                              pawl_error *reterr);

/* Does not wait: PAWL_OK means that item->done(item) will be called exactly once, with
 * item->outcome set, on the committer's thread or on that of who calls stop. The item is the
 * caller's again in that function, which must be quick and may submit again. BUSY, CLOSED, INVALID:
 * it will not. */
PAWL_MUST_USE pawl_status pawl__commit_submit_async(struct pawl__commit *commit,
                                                    struct pawl__commit_item *item,
                                                    pawl_error *reterr);

/* Refuses new items and ends the thread. With `drain` what waits is committed first, otherwise (and
 * at the deadline) it is answered with CLOSED. TIMEOUT when the batch in flight does not come back
 * until the deadline: its callers continue to wait up to their own deadlines. The call may be
 * repeated. */
PAWL_MUST_USE pawl_status pawl__commit_stop(struct pawl__commit *commit,
                                            bool drain,
                                            int64_t deadline_ns,
                                            pawl_error *reterr);

/* Nobody may be in a call, or call again. Stops without draining when nobody did. After a stop that
 * timed out it waits for nothing: the thread frees the rest when it comes back, if ever, and
 * `context` has to outlive it. */
void pawl__commit_free(struct pawl__commit *commit);
DEFINE_AUTO(struct pawl__commit *, pawl__commit_free)

/* Batches committed or failed so far, and the items in them. */
void pawl__commit_counts(struct pawl__commit *commit, uint64_t *ret_batches, uint64_t *ret_items);

/* Items whose turn has not come. */
size_t pawl__commit_waiting(struct pawl__commit *commit);

#endif
