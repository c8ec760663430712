/* Prefetched items: leased before a claim asks for them. This cache knows which claim gets them, how many to
 * prefetch next time and which are too old to hand out. Pure: state, event and time in; the lock, the clock
 * and the thread that returns items are in prefetch_return.h.
 *
 * Claims of one holder with the same filter and lease time share an entry. Each entry learns how many items to
 * prefetch:
 *
 *   the holder does not claim again while a lease is fresh     none
 *   it does                                                    one, then 2n + 1 whenever all n were used
 *   some were not used and had to be returned                  as many as were used, and one more
 *   the store had no more than the claim asked for             one
 *
 * Times are monotonic. */
#ifndef PAWL_WORK_ITEMS_PREFETCH_H
#define PAWL_WORK_ITEMS_PREFETCH_H

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

#define WORK_PREFETCH_FRESH_NS_MAX NS_PER_S /* or an eighth of the lease, if that is shorter */

/* Items that were leased together, some of which are left. */
struct work_prefetch_batch {
    pawl_claimed *claimed;
    size_t from; /* the first that was stored */
    size_t at;   /* the first that was not handed out */
    int64_t fresh_until_ns;
    int64_t leased_until_ns;
    struct work_prefetch_batch *next;
};
void pawl__work_prefetch_batch_free(struct work_prefetch_batch *batch);

struct work_prefetch_cache;

/* `max`: how many items a claim may prefetch. */
PAWL_MUST_USE pawl_status pawl__work_prefetch_cache_new(uint32_t max,
                                                        struct work_prefetch_cache **ret_cache,
                                                        pawl_error *reterr);
void pawl__work_prefetch_cache_free(struct work_prefetch_cache *cache); /* with all that is left */

/* Hands out up to claim->count_max items. NOT_FOUND: the cache has none, and *ret_prefetch is how many the
 * claim should lease in addition to those it wants. */
PAWL_MUST_USE pawl_status pawl__work_prefetch_cache_pop(struct work_prefetch_cache *cache,
                                                        const pawl_claim *claim,
                                                        int64_t now_ns,
                                                        pawl_claimed **ret_claimed,
                                                        uint32_t *ret_prefetch,
                                                        pawl_error *reterr);

/* Hands out the first claim->count_max of the items that a claim leased, at asked_ns or later, and stores the
 * rest: *ret_batch, NULL when nothing is left. Takes `claimed` over. NOMEM: nothing is stored or handed out,
 * and `claimed` still belongs to the caller. */
PAWL_MUST_USE pawl_status
pawl__work_prefetch_cache_store(struct work_prefetch_cache *cache,
                                const pawl_claim *claim,
                                int64_t asked_ns,
                                pawl_claimed *claimed,
                                pawl_claimed **ret_claimed,
                                const struct work_prefetch_batch **ret_batch,
                                pawl_error *reterr);

/* Which batches to evict: those with an item of this task, or this item; with neither, those that are not
 * fresh at now_ns. */
struct work_prefetch_eviction {
    int64_t now_ns;
    pawl_view task_id;
    pawl_view work_item_id;
};

/* The caller frees each batch. *ret_next_ns (may be NULL): when the next batch is no longer fresh; INT64_MAX:
 * never. */
struct work_prefetch_batch *pawl__work_prefetch_cache_evict(
    struct work_prefetch_cache *cache,
    const struct work_prefetch_eviction *which,
    int64_t *ret_next_ns);

#endif
