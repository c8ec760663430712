/* What the stores in memory share: entries that several copies of a store point to, and keys in a hash table. A
 * copy of a store costs no copy of its texts, so a simulation may copy as often as a disk would sync. */
#ifndef PAWL_DELIVERY_MEMORY_STORED_H
#define PAWL_DELIVERY_MEMORY_STORED_H

#include "delivery/core/failed.h"

struct delivery_stored {
    size_t references;
    struct pawl__arena arena;
    struct delivery_entry entry; /* its fate is not kept here: it changes */
};

PAWL_MUST_USE pawl_status pawl__delivery_stored_new(const struct delivery_entry *entry,
                                                    struct delivery_stored **ret_stored,
                                                    pawl_error *reterr);
struct delivery_stored *pawl__delivery_stored_share(struct delivery_stored *stored);
void pawl__delivery_stored_drop(struct delivery_stored *stored); /* NULL is fine */

/* A row of failed_events, and what was decided about an entry: shared like entries, replaced as a whole. */
struct delivery_stored_failure {
    size_t references;
    struct delivery_failed_page page; /* of this row */
};

PAWL_MUST_USE pawl_status pawl__delivery_failure_new(const struct delivery_failed_row *row,
                                                     struct delivery_stored_failure **ret_failure,
                                                     pawl_error *reterr);
void pawl__delivery_failure_share(struct delivery_stored_failure *failure); /* NULL is fine */
void pawl__delivery_failure_drop(struct delivery_stored_failure *failure);  /* as above */

struct delivery_stored_decision {
    size_t references;
    struct pawl__arena arena;
    struct delivery_decision decision;
};

PAWL_MUST_USE pawl_status
pawl__delivery_stored_decision_new(const struct delivery_decision *decision,
                                   struct delivery_stored_decision **ret_stored,
                                   pawl_error *reterr);
void pawl__delivery_stored_decision_share(struct delivery_stored_decision *stored); /* as above */
void pawl__delivery_stored_decision_drop(struct delivery_stored_decision *stored);  /* as above */

struct delivery_slot {
    bool used;
    struct delivery_hash key;
    struct delivery_hash payload_hash;
    uint64_t a; /* the owner's: an epoch, a kind */
    uint64_t b; /* the owner's: an LSN */
};

struct delivery_table {
    struct delivery_slot *slots;
    size_t room; /* a power of two, or 0 */
    size_t count;
};

void pawl__delivery_table_done(struct delivery_table *table);
const struct delivery_slot *pawl__delivery_table_find(const struct delivery_table *table,
                                                      const struct delivery_hash *key);
/* Replaces what is under the key. NOMEM changes nothing. */
PAWL_MUST_USE pawl_status pawl__delivery_table_put(struct delivery_table *table,
                                                   const struct delivery_slot *slot,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_table_copy(const struct delivery_table *table,
                                                    struct delivery_table *ret_copy,
                                                    pawl_error *reterr);

#endif
