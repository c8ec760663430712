#include "delivery/memory/wal.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"

static struct delivery_memory_wal *as_memory(struct delivery_wal *wal)
{
    return (struct delivery_memory_wal *)wal; /* base is its first member */
}

static pawl_status read_meta(struct delivery_wal *base,
                             struct delivery_wal_meta *ret_meta,
                             bool *ret_found,
                             pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);

    (void)reterr;
    *ret_found = wal->has_meta;
    *ret_meta = wal->meta;
    return PAWL_OK;
}

static pawl_status write_meta(struct delivery_wal *base,
                              const struct delivery_wal_meta *meta,
                              pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);

    (void)reterr;
    wal->has_meta = true;
    wal->meta = *meta;
    return PAWL_OK;
}

static pawl_status put_key(struct delivery_memory_wal *wal,
                           const struct delivery_key *key,
                           uint64_t epoch,
                           delivery_lsn lsn,
                           pawl_error *reterr)
{
    struct delivery_slot slot = {
        .key = key->key, .payload_hash = key->payload_hash, .a = epoch, .b = lsn
    };
    return pawl__delivery_table_put(&wal->index, &slot, reterr);
}

static pawl_status put_entry_key(struct delivery_memory_wal *wal,
                                 const struct delivery_entry *entry,
                                 uint64_t epoch,
                                 pawl_error *reterr)
{
    struct delivery_key key = { entry->key, entry->payload_hash };

    return entry->by_place ? PAWL_OK : put_key(wal, &key, epoch, entry->lsn, reterr);
}

static pawl_status append_one(struct delivery_memory_wal *wal,
                              const struct delivery_entry *entry,
                              uint64_t epoch,
                              pawl_error *reterr)
{
    struct delivery_memory_wal_entry *entries =
        pawl__grow(wal->entries, wal->count, &wal->room, sizeof(*entries));
    struct delivery_stored *stored = NULL;

    REQUIRE(entry->lsn > wal->last);
    TRY(pawl__check_memory(entries, "the WAL", reterr));
    wal->entries = entries;
    TRY(pawl__delivery_stored_new(entry, &stored, reterr));
    pawl_status status = put_entry_key(wal, entry, epoch, reterr);
    if (status != PAWL_OK) {
        pawl__delivery_stored_drop(stored);
        return status;
    }
    entries[wal->count++] = (struct delivery_memory_wal_entry){ .stored = stored };
    wal->last = entry->lsn;
    return PAWL_OK;
}

static pawl_status append(struct delivery_wal *base,
                          const struct delivery_entry *entries,
                          size_t count,
                          const struct delivery_wal_meta *meta,
                          pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);
    struct delivery_memory_wal next = pawl__delivery_memory_wal();
    pawl_status status = pawl__delivery_memory_wal_copy(&next, wal, reterr);

    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = append_one(&next, &entries[i], meta->epoch, reterr);
    }
    if (status != PAWL_OK) { /* nothing of it is there */
        pawl__delivery_memory_wal_done(&next);
        return status;
    }
    pawl__delivery_memory_wal_done(wal);
    *wal = next;
    return write_meta(base, meta, reterr);
}

/* Ids by place have no index entry: the entry answers for itself as long as it is there. */
static struct delivery_hit find_entry(const struct delivery_memory_wal *wal,
                                      const struct delivery_hash *key)
{
    for (size_t i = 0; i < wal->count; i++) {
        const struct delivery_entry *entry = &wal->entries[i].stored->entry;
        if (entry->by_place && pawl__delivery_hash_equal(&entry->key, key)) {
            return (struct delivery_hit){ true, wal->meta.epoch, entry->lsn, entry->payload_hash };
        }
    }
    return (struct delivery_hit){ .found = false };
}

static struct delivery_hit look_up_one(const struct delivery_memory_wal *wal,
                                       const struct delivery_hash *key)
{
    const struct delivery_slot *slot = pawl__delivery_table_find(&wal->index, key);
    struct delivery_hit hit = { .found = false };

    if (slot == NULL || slot->a < wal->meta.epoch) {
        hit = find_entry(wal, key);
    }
    return slot == NULL || hit.found
               ? hit
               : (struct delivery_hit){ true, slot->a, slot->b, slot->payload_hash };
}

static pawl_status lookup(struct delivery_wal *base,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_hit *ret_hits,
                          pawl_error *reterr)
{
    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        ret_hits[i] = look_up_one(as_memory(base), &keys[i].key);
    }
    return PAWL_OK;
}

static bool is_wanted(const struct delivery_memory_wal_entry *entry,
                      const struct delivery_range *range)
{
    delivery_lsn lsn = entry->stored->entry.lsn;

    return lsn >= range->from && lsn <= range->to
           && (range->states & (1U << (unsigned)entry->fate.state)) != 0;
}

static pawl_status read_range(struct delivery_wal *base,
                              const struct delivery_range *range,
                              struct delivery_page *page,
                              pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);

    pawl__delivery_page_clear(page);
    for (size_t i = 0; i < wal->count; i++) {
        if (page->count == range->entries_max || page->bytes > range->bytes_max) {
            break;
        }
        if (is_wanted(&wal->entries[i], range)) {
            TRY(pawl__delivery_page_add(page, &wal->entries[i].stored->entry, reterr));
            page->entries[page->count - 1].fate = wal->entries[i].fate;
        }
    }
    return PAWL_OK;
}

static struct delivery_memory_wal_entry *find(struct delivery_memory_wal *wal, delivery_lsn lsn)
{
    size_t low = 0;
    size_t high = wal->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wal->entries[middle].stored->entry.lsn < lsn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < wal->count && wal->entries[low].stored->entry.lsn == lsn ? &wal->entries[low]
                                                                          : NULL;
}

static pawl_status mark(struct delivery_wal *base,
                        const delivery_lsn *lsns,
                        const struct delivery_fate *fates,
                        size_t count,
                        pawl_error *reterr)
{
    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        struct delivery_memory_wal_entry *entry = find(as_memory(base), lsns[i]);
        if (entry != NULL) {
            entry->fate = fates[i];
        }
    }
    return PAWL_OK;
}

static pawl_status decide_one(struct delivery_memory_wal *wal,
                              const struct delivery_decision *decision,
                              pawl_error *reterr)
{
    struct delivery_memory_wal_entry *entry = find(wal, decision->lsn);
    struct delivery_stored_decision *stored = NULL;

    if (entry == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_stored_decision_new(decision, &stored, reterr));
    pawl__delivery_stored_decision_drop(entry->decision);
    entry->decision = stored;
    entry->fate.state = DELIVERY_CONFIRMED;
    return PAWL_OK;
}

static pawl_status decide(struct delivery_wal *base,
                          const struct delivery_decision *decisions,
                          size_t count,
                          pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(decide_one(as_memory(base), &decisions[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status decided(struct delivery_wal *base,
                           delivery_lsn after,
                           delivery_lsn *ret_lsns,
                           size_t room,
                           size_t *ret_count,
                           pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);
    size_t count = 0;

    (void)reterr;
    for (size_t i = 0; i < wal->count && count < room; i++) {
        delivery_lsn lsn = wal->entries[i].stored->entry.lsn;
        if (wal->entries[i].decision != NULL && lsn > after) {
            ret_lsns[count++] = lsn;
        }
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status read_decision(struct delivery_wal *base,
                                 delivery_lsn lsn,
                                 struct pawl__arena *arena,
                                 struct delivery_decision *ret_decision,
                                 bool *ret_found,
                                 pawl_error *reterr)
{
    const struct delivery_memory_wal_entry *entry = find(as_memory(base), lsn);

    *ret_found = entry != NULL && entry->decision != NULL;
    return *ret_found ? pawl__delivery_decision_copy(
               &entry->decision->decision, arena, ret_decision, reterr)
                      : PAWL_OK;
}

static pawl_status put_index(struct delivery_wal *base,
                             const struct delivery_key *keys,
                             size_t count,
                             uint64_t epoch,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(put_key(as_memory(base), &keys[i], epoch, 0, reterr));
    }
    return PAWL_OK;
}

static pawl_status reindex(struct delivery_wal *base, uint64_t epoch, pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);

    for (size_t i = 0; i < wal->count; i++) {
        TRY(put_entry_key(wal, &wal->entries[i].stored->entry, epoch, reterr));
    }
    return PAWL_OK;
}

static pawl_status clean_up(struct delivery_wal *base, delivery_lsn to, pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);
    size_t kept = 0;

    (void)reterr;
    for (size_t i = 0; i < wal->count; i++) {
        struct delivery_memory_wal_entry *entry = &wal->entries[i];
        if (entry->stored->entry.lsn <= to && entry->fate.state == DELIVERY_CONFIRMED) {
            pawl__delivery_stored_drop(entry->stored);
            pawl__delivery_stored_decision_drop(entry->decision);
        } else {
            wal->entries[kept++] = *entry;
        }
    }
    wal->count = kept;
    wal->cleaned = MAX(wal->cleaned, to);
    return PAWL_OK;
}

static pawl_status stats(struct delivery_wal *base,
                         struct delivery_wal_stats *ret_stats,
                         pawl_error *reterr)
{
    struct delivery_memory_wal *wal = as_memory(base);
    struct delivery_wal_stats found = {
        .first = wal->count > 0 ? wal->entries[0].stored->entry.lsn : wal->last + 1,
        .last = wal->last,
        .cleaned = wal->cleaned,
        .index_entries = wal->index.count,
        .index_bytes = wal->index.room * sizeof(*wal->index.slots),
    };

    (void)reterr;
    for (size_t i = 0; i < wal->count; i++) {
        enum delivery_entry_state state = wal->entries[i].fate.state;
        found.entries[state]++;
        found.bytes[state] += pawl__delivery_entry_bytes(&wal->entries[i].stored->entry);
    }
    *ret_stats = found;
    return PAWL_OK;
}

static void held_bytes(struct delivery_wal *base, uint64_t ret_bytes[DELIVERY_STATE_COUNT])
{
    struct delivery_wal_stats found = { 0 };

    (void)!stats(base, &found, NULL); /* cannot fail */
    memcpy(ret_bytes, found.bytes, sizeof(found.bytes));
}

static void close_nothing(struct delivery_wal *base)
{
    (void)base;
}

struct delivery_memory_wal pawl__delivery_memory_wal(void)
{
    static const struct delivery_wal_ops ops = {
        .read_meta = read_meta,
        .write_meta = write_meta,
        .append = append,
        .lookup = lookup,
        .read = read_range,
        .mark = mark,
        .decide = decide,
        .decided = decided,
        .read_decision = read_decision,
        .put_index = put_index,
        .reindex = reindex,
        .clean_up = clean_up,
        .stats = stats,
        .held_bytes = held_bytes,
        .close = close_nothing,
    };
    return (struct delivery_memory_wal){ .base = { &ops } };
}

void pawl__delivery_memory_wal_done(struct delivery_memory_wal *wal)
{
    for (size_t i = 0; i < wal->count; i++) {
        pawl__delivery_stored_drop(wal->entries[i].stored);
        pawl__delivery_stored_decision_drop(wal->entries[i].decision);
    }
    free(wal->entries);
    pawl__delivery_table_done(&wal->index);
    *wal = pawl__delivery_memory_wal();
}

pawl_status pawl__delivery_memory_wal_copy(struct delivery_memory_wal *wal,
                                           const struct delivery_memory_wal *from,
                                           pawl_error *reterr)
{
    struct delivery_memory_wal copy = *from;

    copy.room = MAX(from->count, (size_t)1);
    copy.entries = malloc(copy.room * sizeof(*copy.entries));
    TRY(pawl__check_memory(copy.entries, "a copy of the WAL", reterr));
    pawl_status status = pawl__delivery_table_copy(&from->index, &copy.index, reterr);
    if (status != PAWL_OK) {
        free(copy.entries);
        return status;
    }
    for (size_t i = 0; i < from->count; i++) {
        copy.entries[i] = from->entries[i];
        pawl__delivery_stored_share(copy.entries[i].stored);
        pawl__delivery_stored_decision_share(copy.entries[i].decision);
    }
    pawl__delivery_memory_wal_done(wal);
    *wal = copy;
    return PAWL_OK;
}
