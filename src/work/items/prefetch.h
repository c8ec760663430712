/* Items that were leased ahead of the claims that want them: who has what, how many to lease next time,
 * what has got too old. State, event and time in; no thread, clock or store (those are in ahead.h).
 *
 * Claims of one holder for the same things, for the same time, share a shelf. How many a shelf leases
 * ahead is learnt:
 *
 *   a holder that does not come back while a lease is young    none
 *   one that does                                              one, and twice as many and one more
 *                                                              whenever all of them were used
 *   what was not used had to be given back                     as many as were used, and one more
 *   the store had no more than was asked for                   one
 *
 * Times are monotonic. */
#ifndef PAWL_WORK_ITEMS_PREFETCH_H
#define PAWL_WORK_ITEMS_PREFETCH_H

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

#define WORK_YOUNG_NS_MAX NS_PER_S /* an item waits so long, or an eighth of its lease */

/* Items that were leased together, some of which are left. */
struct work_stock {
    pawl_claimed *claimed;
    size_t from; /* the first that was kept */
    size_t at;   /* the first that nobody has */
    int64_t young_until_ns;
    int64_t leased_until_ns;
    struct work_stock *next;
};

struct work_shelves;

/* `max`: how many a claim may lease ahead. */
PAWL_MUST_USE pawl_status pawl__shelves_new(uint32_t max,
                                            struct work_shelves **ret_shelves,
                                            pawl_error *reterr);
void pawl__shelves_free(struct work_shelves *shelves); /* with all that is left */

/* Up to claim->count_max items. NOT_FOUND: there is none, and *ret_more is how many the claim shall
 * lease on top of what it wants. */
PAWL_MUST_USE pawl_status pawl__shelves_take(struct work_shelves *shelves,
                                             const pawl_claim *claim,
                                             int64_t now_ns,
                                             pawl_claimed **ret_claimed,
                                             uint32_t *ret_more,
                                             pawl_error *reterr);

/* Hands out the first claim->count_max of what a claim has leased, at asked_ns or later, and keeps the
 * rest: *ret_stock, or NULL when there is no rest. Takes `claimed` over. NOMEM: nothing is kept or
 * handed out, and `claimed` is the caller's still. */
PAWL_MUST_USE pawl_status pawl__shelves_keep(struct work_shelves *shelves,
                                             const pawl_claim *claim,
                                             int64_t asked_ns,
                                             pawl_claimed *claimed,
                                             pawl_claimed **ret_claimed,
                                             const struct work_stock **ret_stock,
                                             pawl_error *reterr);

/* Takes down what is not young any more. The caller's, to be freed one by one. *ret_next_ns: when there
 * is something to take down again; INT64_MAX: never. */
struct work_stock *pawl__shelves_take_down(struct work_shelves *shelves,
                                           int64_t now_ns,
                                           int64_t *ret_next_ns);

/* Takes down every stock that has an item of this task, or this item (empty: any). */
struct work_stock *pawl__shelves_withdraw(struct work_shelves *shelves,
                                          pawl_view task_id,
                                          pawl_view work_item_id);
void pawl__stock_free(struct work_stock *stock);

/* How many shelves there are. */
size_t pawl__shelves_count(const struct work_shelves *shelves);

#endif
