/* Entries that are about to be written, in order, and the last one of each key. One thread at a time. */
#ifndef PAWL_APP_CORE_BATCH_H
#define PAWL_APP_CORE_BATCH_H

#include "app/core/backend.h"
#include "base/core/hash.h"

/* Places are counted from 1; 0 is none. */
struct app_link {
    uint32_t hash;
    uint32_t before; /* the entry before with the same low bits of the hash */
};

/* Start with zeroes; it may be cleared and filled again. */
struct app_batch {
    struct app_entry *entries;
    size_t count;
    size_t room;
    struct pawl__arena arena; /* of keys and values */

    /* Made by the first search and updated by each: most batches are never searched. */
    struct app_link *links; /* of the first `linked` entries */
    uint32_t *heads;        /* by low bits of the hash, the last entry */
    size_t linked;
    size_t link_room; /* of both; a power of two */
    struct pawl__hash_seed seed;
};

void pawl__app_batch_done(struct app_batch *batch);
void pawl__app_batch_clear(struct app_batch *batch);

/* Back to the first `count` entries. */
void pawl__app_batch_cut(struct app_batch *batch, size_t count);

/* Copies key and value. NOMEM leaves the batch as it was; so does NO_SPACE, beyond 2^31 entries. */
PAWL_MUST_USE pawl_status pawl__app_batch_add(struct app_batch *batch,
                                              enum app_family family,
                                              enum app_mode mode,
                                              const struct app_key *key,
                                              pawl_view value,
                                              pawl_error *reterr);

/* The last entry of a key; NULL: there is none. It stays until the batch changes. NOMEM. */
PAWL_MUST_USE pawl_status pawl__app_batch_find(struct app_batch *batch,
                                               enum app_family family,
                                               pawl_view key,
                                               const struct app_entry **ret_entry,
                                               pawl_error *reterr);

#endif
