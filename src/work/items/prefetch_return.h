/* Items leased ahead (pawl_work_options.claim_ahead): shelves.h behind a lock, and a thread that gives
 * back what nobody wanted, so that no lease runs out here and others get what one holder cannot use.
 *
 * Every item here has its token. What happens to it meanwhile (another process cancels it, the machine
 * sleeps) is told to whoever is given it by its next call, as to any other holder.
 *
 * Threads: any; new, stop and free from one. */
#ifndef PAWL_WORK_ITEMS_PREFETCH_RETURN_H
#define PAWL_WORK_ITEMS_PREFETCH_RETURN_H

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/os/clock.h"

struct work_ahead;

/* Gives an item back to the store without waiting: PAWL_OK means that `answer` is called once. Called
 * without a lock. */
typedef pawl_status (*work_ahead_release)(void *context,
                                          const pawl_lease *lease,
                                          pawl_work_answer answer,
                                          void *answer_context,
                                          pawl_error *reterr);

/* `max`: how many a claim may lease ahead. `clock`: of waits, so one that runs. */
PAWL_MUST_USE pawl_status pawl__ahead_new(uint32_t max,
                                          struct pawl__clock *clock,
                                          work_ahead_release release,
                                          void *context,
                                          struct work_ahead **ret_ahead,
                                          pawl_error *reterr);

/* See pawl__shelves_take and pawl__shelves_keep; without memory for the rest it is given back. */
PAWL_MUST_USE pawl_status pawl__ahead_take(struct work_ahead *ahead,
                                           const pawl_claim *claim,
                                           pawl_claimed **ret_claimed,
                                           uint32_t *ret_more,
                                           pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__ahead_keep(struct work_ahead *ahead,
                                           const pawl_claim *claim,
                                           int64_t asked_ns,
                                           pawl_claimed *claimed,
                                           pawl_claimed **ret_claimed,
                                           pawl_error *reterr);

/* The task, or the item (the other one is empty), was cancelled: it is not handed out. NULL is fine. */
void pawl__ahead_withdraw(struct work_ahead *ahead, pawl_view task_id, pawl_view work_item_id);

/* Gives back everything, once. Nobody takes or keeps any more. NULL is fine. */
void pawl__ahead_stop(struct work_ahead *ahead);

/* When all releases are answered. NULL is fine. */
void pawl__ahead_free(struct work_ahead *ahead);

#endif
