#include "delivery/pipeline/replay.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "delivery/pipeline/commit.h"

enum { REPLAY_STEP = 1000 }; /* entries of a transaction */

pawl_status pawl__delivery_recount(struct delivery_pipeline *pipeline,
                                   const struct delivery_counters *there,
                                   pawl_error *reterr)
{
    struct delivery_counters *counters = &pipeline->cursor.counters;
    enum delivery_blame blame = DELIVERY_BLAME_STOP;

    if (counters->delivered == there->delivered && counters->filtered == there->filtered
        && counters->failed == there->failed) {
        return PAWL_OK;
    }
    *counters = *there;
    pawl__lock(&pipeline->shared.lock);
    pipeline->shared.accepted = there->accepted;
    pawl__unlock(&pipeline->shared.lock);
    return pawl__delivery_commit(pipeline, NULL, 0, pipeline->cursor.applied, &blame, reterr);
}

/* --- entries that the WAL has --- */

static pawl_status read_entries(struct delivery_pipeline *pipeline,
                                const delivery_lsn *lsns,
                                size_t count,
                                struct delivery_page *page,
                                pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page one = { .count = 0 };

    pawl__delivery_page_clear(page);
    for (size_t i = 0; i < count; i++) {
        bool is_found = false;
        TRY(pawl__delivery_read_one(pipeline, lsns[i], &one, &is_found, reterr));
        if (is_found) {
            TRY(pawl__delivery_page_add(page, &one.entries[0], reterr));
        }
    }
    return PAWL_OK;
}

static void add_accepted(struct delivery_pipeline *pipeline, uint64_t count)
{
    pawl__lock(&pipeline->shared.lock);
    pipeline->shared.accepted += count; /* modulo 2^64: it may be taken back */
    pawl__unlock(&pipeline->shared.lock);
}

static pawl_status defer(struct delivery_pipeline *pipeline,
                         const struct delivery_page *page,
                         struct delivery_outcome *outcomes,
                         pawl_error *reterr)
{
    enum delivery_blame blame = DELIVERY_BLAME_STOP;

    for (size_t i = 0; i < page->count; i++) {
        const struct delivery_entry *entry = &page->entries[i];
        outcomes[i] = (struct delivery_outcome){
            .entry = entry,
            .kind = DELIVERY_DEFERRED,
            .exception = { .lsn = entry->lsn,
                           .sequence = entry->place.sequence,
                           .first_failed_running_ns = -1 },
            .error = "",
        };
    }
    add_accepted(pipeline, page->count);
    pawl_status status = pawl__delivery_commit(
        pipeline, outcomes, page->count, pipeline->cursor.applied, &blame, reterr);
    if (status != PAWL_OK) {
        add_accepted(pipeline, (uint64_t)0 - page->count);
    }
    return status;
}

pawl_status pawl__delivery_replay_entries(struct delivery_pipeline *pipeline,
                                          const delivery_lsn *lsns,
                                          size_t count,
                                          pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    struct delivery_outcome *outcomes = calloc(REPLAY_STEP, sizeof(*outcomes));
    pawl_status status = pawl__check_memory(outcomes, "a transaction", reterr);

    for (size_t done = 0; status == PAWL_OK && done < count; done += REPLAY_STEP) {
        size_t step = MIN(count - done, (size_t)REPLAY_STEP);
        status = read_entries(pipeline, &lsns[done], step, &page, reterr);
        if (status == PAWL_OK && page.count > 0) {
            status = defer(pipeline, &page, outcomes, reterr);
        }
    }
    free(outcomes);
    return status;
}

/* --- messages that it has not --- */

struct batch {
    struct pawl__arena arena;
    struct delivery_entry *entries;
    size_t count;
};

static void batch_done(struct batch *batch)
{
    pawl__arena_done(&batch->arena);
    free(batch->entries);
}

static pawl_status identify(struct delivery_pipeline *pipeline,
                            struct batch *batch,
                            const struct delivery_message *message,
                            struct delivery_identity *ret_identity,
                            pawl_error *reterr)
{
    char *room = pawl__arena_take(&batch->arena, DELIVERY_TRANSACTION_ID_BYTES_MAX + 1);

    TRY(pawl__check_memory(room, "a transaction id", reterr));
    struct pawl__buf text = { .data = room,
                              .cap = DELIVERY_TRANSACTION_ID_BYTES_MAX + 1,
                              .max = DELIVERY_TRANSACTION_ID_BYTES_MAX };
    return pawl__delivery_identify(
        &pipeline->settings.identity, message, &text, ret_identity, reterr);
}

/* Under its id, or as a conflict with what the sink or this batch has. *ret_new false: it is a duplicate. */
static pawl_status find_key(struct delivery_pipeline *pipeline,
                            const struct delivery_missing *missing,
                            const struct delivery_identity *identity,
                            struct delivery_key *ret_key,
                            bool *ret_new,
                            pawl_error *reterr)
{
    struct delivery_hit hit = { .found = false };
    struct delivery_key key = { identity->id, identity->payload };
    bool in_batch =
        pawl__delivery_batch_keys_find(&pipeline->batch_keys, &key.key, pipeline->meta.epoch, &hit);

    *ret_new = !(in_batch && pawl__delivery_hash_equal(&hit.payload_hash, &identity->payload));
    if (in_batch || missing->id_taken) {
        TRY(pawl__delivery_conflict_key(&identity->id, &identity->payload, &key.key, reterr));
        *ret_new = *ret_new
                   && !pawl__delivery_batch_keys_find(
                       &pipeline->batch_keys, &key.key, pipeline->meta.epoch, &hit);
    }
    *ret_key = key;
    return PAWL_OK;
}

static pawl_status add_entry(struct delivery_pipeline *pipeline,
                             struct batch *batch,
                             const struct delivery_missing *missing,
                             pawl_error *reterr)
{
    const struct delivery_message *message = missing->message;
    struct delivery_identity identity;
    struct delivery_key key;
    bool is_new = false;

    TRY(identify(pipeline, batch, message, &identity, reterr));
    TRY(find_key(pipeline, missing, &identity, &key, &is_new, reterr));
    if (!is_new) {
        return PAWL_OK;
    }
    bool is_conflict = !pawl__delivery_hash_equal(&key.key, &identity.id);
    struct delivery_entry *entry = &batch->entries[batch->count];
    pawl__delivery_entry_of(message, &identity, &key.key, is_conflict, entry);
    entry->lsn = pipeline->shared.next_lsn + batch->count;
    entry->created_us = pawl__wall_us(pipeline->parts.clock);
    batch->count++;
    pawl__delivery_batch_keys_add(&pipeline->batch_keys, &key, entry->lsn);
    return PAWL_OK;
}

static pawl_status append(struct delivery_pipeline *pipeline,
                          const struct batch *batch,
                          pawl_error *reterr)
{
    struct delivery_shared *shared = &pipeline->shared;
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_wal_meta meta = pawl__delivery_next_meta(pipeline);
    pawl_status status = wal->ops->append(wal, batch->entries, batch->count, &meta, reterr);

    if (status != PAWL_OK) {
        pipeline->is_broken = true; /* nobody knows what of it is on disk */
        return status;
    }
    pipeline->meta = meta;
    pawl__lock(&shared->lock);
    for (size_t i = 0; status == PAWL_OK && i < batch->count; i++) {
        const struct delivery_entry *entry = &batch->entries[i];
        status =
            pawl__delivery_position_appended(&shared->position, entry->lsn, &entry->place, reterr);
    }
    shared->next_lsn += batch->count;
    shared->accepted += batch->count;
    shared->totals.writes += batch->count;
    pawl__unlock(&shared->lock);
    pipeline->is_broken |= status != PAWL_OK;
    return status;
}

pawl_status pawl__delivery_replay_messages(struct delivery_pipeline *pipeline,
                                           const struct delivery_missing *missing,
                                           size_t count,
                                           size_t *ret_count,
                                           pawl_error *reterr)
{
    AUTO(batch_done)
    struct batch batch = { .entries =
                               calloc(MAX(count, (size_t)1), sizeof(struct delivery_entry)) };

    TRY(pawl__check_memory(batch.entries, "a batch", reterr));
    TRY(pawl__delivery_batch_keys_begin(&pipeline->batch_keys, count, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(add_entry(pipeline, &batch, &missing[i], reterr));
    }
    TRY(batch.count == 0 ? PAWL_OK : append(pipeline, &batch, reterr));
    *ret_count = batch.count;
    return PAWL_OK;
}
