/* Claims that wait for items without a thread each.
 *
 * A claim that finds nothing stays in a list, oldest first. Those with the same filter form a queue, and
 * when something may have become claimable, only the 16 oldest of each queue ask the store, in one transaction.
 * If all of them find items, the next 64 ask, then 256 and so on, until one finds nothing. So one new item costs
 * 16 claims however many wait, and a thousand new items cost four rounds.
 *
 *   parked    waits for news: of the watch, of an item whose delay ends, of a store that failed
 *   asking    the committer has its request
 *   answered  unlinked, and `done` is called; once
 *
 * A claim that arrives while others of its queue wait does not ask: it would overtake them.
 *
 * One thread of the handle answers claims whose time is over, also while the store hangs: then the request
 * is left to the committer, and what it still leases is released.
 *
 * Threads: any. */
#ifndef PAWL_WORK_ITEMS_WAITERS_H
#define PAWL_WORK_ITEMS_WAITERS_H

#include "base/core/macros.h"
#include "base/thread/watch.h"
#include "work/core/group.h"

struct claim_queue;
struct work_waiter;

struct work_waiters {
    struct pawl__lock lock; /* covers everything below up to the subscriber */
    struct pawl__cond changed;
    bool ready; /* lock and condition */
    bool stopping;
    int64_t sleeps_until_ns; /* the thread looks at times again by then */
    size_t count;
    size_t asking;             /* requests that the committer has */
    struct work_waiter *first; /* oldest first */
    struct work_waiter *last;
    struct claim_queue *queues; /* claims with the same filter */
    int64_t interrupted_ns;     /* when that was noticed; 0: it was not */

    pawl_work *work;
    int64_t
        late_ns; /* how much longer than its own time a claim waits for a store that is carrying it out */
    struct pawl__watch_subscriber news;
    struct pawl__thread thread; /* started with the first claim, as the subscription */
};

void pawl__work_waiters_init(struct work_waiters *waiters, pawl_work *work);

/* Ends the thread and the subscription. When no call is under way, or the handle is left as it is. */
void pawl__work_waiters_stop(struct work_waiters *waiters);
void pawl__work_waiters_done(struct work_waiters *waiters); /* after stop */

/* Claims, waiting up to claim.wait_ms for the first item. Copies what the claim points to. PAWL_OK: `done` is called
 * exactly once, on a thread of the handle, maybe before this returns. */
PAWL_MUST_USE pawl_status pawl__work_waiters_claim(struct work_waiters *waiters,
                                                   const struct work_claiming *claiming,
                                                   pawl_work_claim_done done,
                                                   void *context,
                                                   pawl_error *reterr);

/* Ends the waits that were given this function and context. */
void pawl__work_waiters_cancel(struct work_waiters *waiters,
                               pawl_work_claim_done done,
                               void *context);

#endif
