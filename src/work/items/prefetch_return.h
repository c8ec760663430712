/* The prefetch cache of a handle (pawl_work_options.claim_ahead): prefetch.h with a lock, and a thread that
 * returns items nobody claimed, so that no lease expires here and others get what one holder does not use.
 *
 * Every prefetched item has its token. If another process cancels it meanwhile, or the machine sleeps, the
 * claim that gets it learns so from its next call, as any other holder does.
 *
 * Threads: any; new, stop and free from one. */
#ifndef PAWL_WORK_ITEMS_PREFETCH_RETURN_H
#define PAWL_WORK_ITEMS_PREFETCH_RETURN_H

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

struct work_prefetch;

/* Releases an item without waiting: PAWL_OK means that `answer` is called once. Called without a lock. */
typedef pawl_status work_release_fn(
    void *work, const pawl_lease *lease, pawl_done answer, void *context, pawl_error *reterr);

/* `max`: how many items a claim may prefetch. `clock`: of waits, so one that runs. */
PAWL_MUST_USE pawl_status pawl__work_prefetch_new(uint32_t max,
                                                  struct pawl__clock *clock,
                                                  work_release_fn *release,
                                                  void *context,
                                                  struct work_prefetch **ret_prefetch,
                                                  pawl_error *reterr);

/* See pawl__work_prefetch_cache_pop. */
PAWL_MUST_USE pawl_status pawl__work_prefetch_pop(struct work_prefetch *prefetch,
                                                  const pawl_claim *claim,
                                                  pawl_claimed **ret_claimed,
                                                  uint32_t *ret_prefetch,
                                                  pawl_error *reterr);

/* See pawl__work_prefetch_cache_store. Without memory for the rest it returns that to the store; the items
 * that the claim wants are always handed out. */
pawl_claimed *pawl__work_prefetch_store(struct work_prefetch *prefetch,
                                        const pawl_claim *claim,
                                        int64_t asked_ns,
                                        pawl_claimed *claimed);

/* A task or an item (the other id is empty) was cancelled: it is not handed out. NULL is fine. */
void pawl__work_prefetch_withdraw(struct work_prefetch *prefetch,
                                  pawl_view task_id,
                                  pawl_view work_item_id);

/* Returns everything, once. No pop or store may follow. NULL is fine. */
void pawl__work_prefetch_stop(struct work_prefetch *prefetch);

/* When all releases are answered. NULL is fine. */
void pawl__work_prefetch_free(struct work_prefetch *prefetch);

#endif
