/* Items that were leased ahead of the claims that want them (pawl_work_options.claim_ahead).
 *
 * A claim that finds nothing here leases some more than it wants, and the next claims of the same
 * holder for the same things are answered without the store. How many more is learnt: none for a
 * holder that takes long over an item, twice as many as last time for one that has used them up, as
 * many as were used when the rest had to be given back.
 * An item is handed out only while its lease is young; a thread gives back what nobody wanted, so
 * that no lease runs out here and others get what one holder cannot use.
 *
 * Every item here has its token. What happens to it meanwhile (its task is cancelled, the machine
 * sleeps) is told to whoever is given it by its next call, as to any other holder.
 *
 * Threads: any. */
#ifndef PAWL_WORK_AHEAD_H
#define PAWL_WORK_AHEAD_H

#include <pawl/work.h>

#include "base/macros.h"
#include "base/thread.h"

#define WORK_AHEAD_NS_MAX NS_PER_S /* an item waits here so long, or an eighth of its lease */

struct work_ahead;

/* Gives an item back to the store, without waiting. Called without a lock. */
typedef void (*work_ahead_give_back)(void *context, const pawl_lease *lease);

/* `max`: how many a claim may lease ahead. */
PAWL_MUST_USE pawl_status pawl__ahead_new(uint32_t max,
                                          work_ahead_give_back give_back,
                                          void *context,
                                          struct work_ahead **ret_ahead,
                                          pawl_error *reterr);

/* Up to claim->count_max items. NOT_FOUND: there is none, and *ret_more is how many the claim shall
 * lease on top of what it wants. */
PAWL_MUST_USE pawl_status pawl__ahead_take(struct work_ahead *ahead,
                                           const pawl_claim *claim,
                                           pawl_claimed **ret_claimed,
                                           uint32_t *ret_more,
                                           pawl_error *reterr);

/* Hands out the first claim->count_max of what a claim has leased since `asked_ns` (monotonic), and
 * keeps the rest. Takes `claimed` over. After NOMEM all of them are given back in their time. */
PAWL_MUST_USE pawl_status pawl__ahead_keep(struct work_ahead *ahead,
                                           const pawl_claim *claim,
                                           int64_t asked_ns,
                                           pawl_claimed *claimed,
                                           pawl_claimed **ret_claimed,
                                           pawl_error *reterr);

/* Gives back everything. NULL is fine. */
void pawl__ahead_free(struct work_ahead *ahead);

#endif
