/* The hash chain: what makes a ledger able to prove itself. */
#ifndef PAWL_LEDGER_CORE_CHAIN_H
#define PAWL_LEDGER_CORE_CHAIN_H

#include <pawl/ledger.h>

/* Moves `head` by one: its offset becomes event->offset, its hash the event's. The event's offset
 * must be the one after the head's. Fails only when hashing does (memory). */
PAWL_MUST_USE pawl_status pawl__ledger_chain_extend(pawl_ledger_head *head,
                                                    const pawl_event *event,
                                                    pawl_error *reterr);

bool pawl__ledger_chain_hash_equal(const uint8_t *a, const uint8_t *b);

#endif
