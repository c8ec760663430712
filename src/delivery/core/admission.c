#include "delivery/core/admission.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

bool pawl__delivery_hit_counts(const struct delivery_hit *hit, uint64_t epoch)
{
    return hit->found && hit->epoch == epoch;
}

static enum delivery_admission known_with(const struct delivery_question *question,
                                          const struct delivery_hash *payload_hash)
{
    if (pawl__delivery_hash_equal(payload_hash, &question->key.payload_hash)) {
        return DELIVERY_DUPLICATE;
    }
    if (!question->conflict_asked) {
        return DELIVERY_ASK_CONFLICT;
    }
    return question->conflict_known ? DELIVERY_DUPLICATE : DELIVERY_ADMIT_CONFLICT;
}

enum delivery_admission pawl__delivery_admit(const struct delivery_question *question)
{
    if (pawl__delivery_hit_counts(&question->hit, question->epoch)) {
        return known_with(question, &question->hit.payload_hash);
    }
    if (question->may_be_older && !question->sink_asked) {
        return DELIVERY_ASK_SINK;
    }
    if (question->sink_asked && question->known.found) {
        return known_with(question, &question->known.payload_hash);
    }
    /* Whatever it was in conflict with may be lost with an older sink; the conflict itself is kept longer. */
    if ((question->may_be_older || question->was_rebuilt) && !question->conflict_asked) {
        return DELIVERY_ASK_CONFLICT;
    }
    return question->conflict_known ? DELIVERY_DUPLICATE : DELIVERY_ADMIT;
}

/* --- the batch itself --- */

static size_t first_slot(const struct delivery_batch_keys *keys, const struct delivery_hash *key)
{
    uint64_t word;

    memcpy(&word, key->bytes, sizeof(word)); /* of a SHA-256: as good as random */
    return (size_t)word & (keys->room - 1);
}

pawl_status pawl__delivery_batch_keys_begin(struct delivery_batch_keys *keys,
                                            size_t count_max,
                                            pawl_error *reterr)
{
    size_t room = 16;

    while (room < count_max * 2) {
        room *= 2;
    }
    if (room > keys->room) {
        struct delivery_batch_slot *slots = realloc(keys->slots, room * sizeof(*slots));
        TRY(pawl__check_memory(slots, "the keys of a batch", reterr));
        keys->slots = slots;
        keys->room = room;
    }
    memset(keys->slots, 0, keys->room * sizeof(*keys->slots));
    return PAWL_OK;
}

void pawl__delivery_batch_keys_done(struct delivery_batch_keys *keys)
{
    free(keys->slots);
    *keys = (struct delivery_batch_keys){ .slots = NULL };
}

void pawl__delivery_batch_keys_add(struct delivery_batch_keys *keys,
                                   const struct delivery_key *key,
                                   delivery_lsn lsn)
{
    size_t i = first_slot(keys, &key->key);

    while (keys->slots[i].lsn != 0) {
        i = (i + 1) & (keys->room - 1);
    }
    keys->slots[i] = (struct delivery_batch_slot){ *key, lsn };
}

bool pawl__delivery_batch_keys_find(const struct delivery_batch_keys *keys,
                                    const struct delivery_hash *key,
                                    uint64_t epoch,
                                    struct delivery_hit *hit)
{
    for (size_t i = first_slot(keys, key); keys->slots[i].lsn != 0;
         i = (i + 1) & (keys->room - 1)) {
        const struct delivery_batch_slot *slot = &keys->slots[i];
        if (pawl__delivery_hash_equal(&slot->key.key, key)) {
            *hit = (struct delivery_hit){ true, epoch, slot->lsn, slot->key.payload_hash };
            return true;
        }
    }
    return false;
}
