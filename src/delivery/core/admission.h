/* Whether a message becomes an entry: from its identity, from the index, and where the index may not know, from
 * the sink. */
#ifndef PAWL_DELIVERY_CORE_ADMISSION_H
#define PAWL_DELIVERY_CORE_ADMISSION_H

#include "delivery/core/sink.h"

enum delivery_admission {
    DELIVERY_ADMIT,          /* new */
    DELIVERY_ADMIT_CONFLICT, /* its id is known with another payload */
    DELIVERY_DUPLICATE,      /* known: acknowledged and counted */
    DELIVERY_ASK_SINK,       /* the index does not have it, and may be younger than it */
    DELIVERY_ASK_CONFLICT,   /* a conflict, perhaps one that is known */
    DELIVERY_ADMISSION_COUNT,
};

/* Everything that was asked about one message so far. */
struct delivery_question {
    struct delivery_key key; /* of its identity */
    uint64_t epoch;          /* of the index now */
    struct delivery_hit hit; /* of the index, or of an earlier message of the batch */
    bool may_be_older;       /* than the index: a replay, or a place that was passed before */
    bool
        was_rebuilt; /* the index, once: it may know a conflict without what it was in conflict with */
    bool sink_asked;
    struct delivery_known known;
    bool conflict_asked; /* the index, and the sink where it may be older, for the conflict's key */
    bool conflict_known;
};

enum delivery_admission pawl__delivery_admit(const struct delivery_question *question);

/* An index entry of an older epoch speaks of rows that a sink once had. */
bool pawl__delivery_hit_counts(const struct delivery_hit *hit, uint64_t epoch);

/* The messages of one batch by key, so that the second of two with one id is seen to be the second. Starts with
 * zeroes; takes its memory once and is used again. */
struct delivery_batch_keys {
    struct delivery_batch_slot {
        struct delivery_key key;
        delivery_lsn lsn; /* 0: free */
    } * slots;
    size_t room; /* a power of two */
};

PAWL_MUST_USE pawl_status pawl__delivery_batch_keys_begin(struct delivery_batch_keys *keys,
                                                          size_t count_max,
                                                          pawl_error *reterr);
void pawl__delivery_batch_keys_done(struct delivery_batch_keys *keys);
void pawl__delivery_batch_keys_add(struct delivery_batch_keys *keys,
                                   const struct delivery_key *key,
                                   delivery_lsn lsn);
/* False: not in this batch, *hit as it was. */
bool pawl__delivery_batch_keys_find(const struct delivery_batch_keys *keys,
                                    const struct delivery_hash *key,
                                    uint64_t epoch,
                                    struct delivery_hit *hit);

#endif
