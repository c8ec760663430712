#include "work/items/prefetch.h"

#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/map.h"
#include "work/core/copy.h"

enum { ENTRIES_MAX = 4096 };      /* further holders and filters prefetch nothing */
#define UNUSED_NS (10 * NS_PER_S) /* an empty entry without a claim for this long makes room */

/* What one holder has for one kind of claim, oldest first. */
struct entry {
    struct work_prefetch_batch *first;
    struct work_prefetch_batch *last;
    uint32_t prefetch; /* prefetched last time, or used of that */
    bool stored;       /* the last claim that went to the store left items here, ... */
    bool evicted;      /* ... which were not all used */
    int64_t asked_ns;  /* the last claim; 0: none yet */
};

struct work_prefetch_cache {
    uint32_t max;
    struct pawl__map *entries;
    int64_t cleared_ns;
};

pawl_status pawl__work_prefetch_cache_new(uint32_t max,
                                          struct work_prefetch_cache **ret_cache,
                                          pawl_error *reterr)
{
    AUTO(pawl__map_free_p) struct pawl__map *entries = NULL;
    TRY(pawl__map_new(ENTRIES_MAX, &entries, reterr));
    struct work_prefetch_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for prefetched items");
    }
    *cache = (struct work_prefetch_cache){ max, STEAL(entries), INT64_MIN / 2 };
    *ret_cache = cache;
    return PAWL_OK;
}

void pawl__work_prefetch_batch_free(struct work_prefetch_batch *batch)
{
    pawl_claimed_free(batch->claimed);
    free(batch);
}

static void free_entry(struct entry *entry)
{
    while (entry->first != NULL) {
        struct work_prefetch_batch *batch = entry->first;
        entry->first = batch->next;
        pawl__work_prefetch_batch_free(batch);
    }
    free(entry);
}

void pawl__work_prefetch_cache_free(struct work_prefetch_cache *cache)
{
    size_t cursor = 0;
    void *entry;

    if (cache == NULL) {
        return;
    }
    while (pawl__map_next(cache->entries, &cursor, NULL, &entry)) {
        free_entry(entry);
    }
    pawl__map_free(cache->entries);
    free(cache);
}

/* --- finding an entry --- */

static void write_key(const pawl_claim *claim, struct pawl__buf *key)
{
    pawl__buf_add_u32be(key, claim->lease_ms);
    pawl__buf_add_u32be(key, (uint32_t)claim->holder.len);
    pawl__buf_add(key, claim->holder);
    pawl__buf_add_u32be(key, (uint32_t)claim->task_id.len);
    pawl__buf_add(key, claim->task_id);
    for (size_t i = 0; i < claim->work_type_count; i++) {
        pawl__buf_add_u32be(key, (uint32_t)claim->work_types[i].len);
        pawl__buf_add(key, claim->work_types[i]);
    }
}

/* Moves the entries that are in use to a new map. */
static void clear_unused(struct work_prefetch_cache *cache, int64_t now_ns)
{
    struct pawl__map *used = NULL;
    size_t cursor = 0;
    pawl_view key;
    void *value;

    if (now_ns - cache->cleared_ns < NS_PER_S
        || pawl__map_new(ENTRIES_MAX, &used, NULL) != PAWL_OK) {
        return;
    }
    cache->cleared_ns = now_ns;
    while (pawl__map_next(cache->entries, &cursor, &key, &value)) {
        const struct entry *entry = value;
        bool in_use = entry->first != NULL || now_ns - entry->asked_ns < UNUSED_NS;
        if (in_use && pawl__map_put(used, key, value, NULL, NULL) != PAWL_OK) {
            pawl__map_free(used); /* the next claim tries again */
            return;
        }
    }
    cursor = 0;
    while (pawl__map_next(cache->entries, &cursor, &key, &value)) {
        if (pawl__map_get(used, key) == NULL) {
            free_entry(value);
        }
    }
    pawl__map_free(cache->entries);
    cache->entries = used;
}

/* NULL: this claim cannot have an entry. */
static struct entry *entry_of(struct work_prefetch_cache *cache,
                              const pawl_claim *claim,
                              int64_t now_ns)
{
    char space[1024];
    struct pawl__buf key = BUF_OVER(space);

    write_key(claim, &key);
    if (key.broken) { /* very many types */
        return NULL;
    }
    struct entry *entry = pawl__map_get(cache->entries, pawl__buf_view(&key));
    if (entry != NULL) {
        return entry;
    }
    if (pawl__map_count(cache->entries) == ENTRIES_MAX) {
        clear_unused(cache, now_ns);
    }
    entry = calloc(1, sizeof(*entry));
    if (entry != NULL
        && pawl__map_put(cache->entries, pawl__buf_view(&key), entry, NULL, NULL) != PAWL_OK) {
        free(entry);
        entry = NULL;
    }
    return entry;
}

/* --- claims --- */

static int64_t fresh_ns(const pawl_claim *claim)
{
    return MIN((int64_t)claim->lease_ms * NS_PER_MS / 8, WORK_PREFETCH_FRESH_NS_MAX);
}

/* The entry is empty: decides how many items to prefetch now. */
static void learn(struct entry *entry, uint32_t max, bool claims_again)
{
    uint32_t prefetch = 1;

    if (entry->stored) {
        prefetch = entry->evicted ? entry->prefetch + 1 : entry->prefetch * 2 + 1;
    }
    entry->prefetch = claims_again ? MIN(prefetch, max) : 0;
    entry->stored = false;
    entry->evicted = false;
}

static void append(struct entry *entry, struct work_prefetch_batch *batch)
{
    *(entry->last == NULL ? &entry->first : &entry->last->next) = batch;
    entry->last = batch;
}

static pawl_status hand_out(struct entry *entry,
                            size_t count_max,
                            pawl_claimed **ret_claimed,
                            pawl_error *reterr)
{
    struct work_prefetch_batch *batch = entry->first;
    size_t count = MIN(count_max, batch->claimed->count - batch->at);

    REQUIRE(count > 0);
    TRY(pawl__work_copy_out_items(&batch->claimed->items[batch->at], count, ret_claimed, reterr));
    batch->at += count;
    if (batch->at == batch->claimed->count) {
        entry->first = batch->next;
        entry->last = entry->first == NULL ? NULL : entry->last;
        pawl__work_prefetch_batch_free(batch);
    }
    return PAWL_OK;
}

pawl_status pawl__work_prefetch_cache_pop(struct work_prefetch_cache *cache,
                                          const pawl_claim *claim,
                                          int64_t now_ns,
                                          pawl_claimed **ret_claimed,
                                          uint32_t *ret_prefetch,
                                          pawl_error *reterr)
{
    struct entry *entry = entry_of(cache, claim, now_ns);
    pawl_status status = PAWL_NOT_FOUND;

    *ret_prefetch = 0;
    if (entry == NULL) {
        return PAWL_NOT_FOUND;
    }
    if (entry->first == NULL) {
        bool claims_again = entry->asked_ns != 0 && now_ns - entry->asked_ns < fresh_ns(claim);
        learn(entry, cache->max, claims_again);
        *ret_prefetch = entry->prefetch;
    } else if (now_ns < entry->first->fresh_until_ns) {
        status = hand_out(entry, claim->count_max, ret_claimed, reterr);
    } /* else the next eviction returns it */
    entry->asked_ns = now_ns;
    return status;
}

pawl_status pawl__work_prefetch_cache_store(struct work_prefetch_cache *cache,
                                            const pawl_claim *claim,
                                            int64_t asked_ns,
                                            pawl_claimed *claimed,
                                            pawl_claimed **ret_claimed,
                                            const struct work_prefetch_batch **ret_batch,
                                            pawl_error *reterr)
{
    size_t count = claim->count_max;

    *ret_batch = NULL;
    if (claimed->count <= count) {
        *ret_claimed = claimed;
        return PAWL_OK;
    }
    struct entry *entry = entry_of(cache, claim, asked_ns);
    struct work_prefetch_batch *batch = entry == NULL ? NULL : calloc(1, sizeof(*batch));
    if (batch == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for prefetched items");
    }
    pawl_status status = pawl__work_copy_out_items(claimed->items, count, ret_claimed, reterr);
    if (status != PAWL_OK) {
        free(batch);
        return status;
    }
    *batch = (struct work_prefetch_batch){
        .claimed = claimed,
        .from = count,
        .at = count,
        .fresh_until_ns = asked_ns + fresh_ns(claim),
        .leased_until_ns = asked_ns + (int64_t)claim->lease_ms * NS_PER_MS,
    };
    append(entry, batch);
    entry->stored = true;
    *ret_batch = batch;
    return PAWL_OK;
}

/* --- evicting --- */

static bool has_item(const struct work_prefetch_batch *batch, pawl_view task_id, pawl_view item_id)
{
    for (size_t i = batch->at; i < batch->claimed->count; i++) {
        const pawl_item *item = &batch->claimed->items[i];
        if ((task_id.len == 0 || pawl__view_equal(item->task_id, task_id))
            && (item_id.len == 0 || pawl__view_equal(item->work_item_id, item_id))) {
            return true;
        }
    }
    return false;
}

static bool is_evicted(const struct work_prefetch_batch *batch,
                       const struct work_prefetch_eviction *which)
{
    return which->task_id.len + which->work_item_id.len > 0
               ? has_item(batch, which->task_id, which->work_item_id)
               : batch->fresh_until_ns <= which->now_ns;
}

static void evict(struct entry *entry,
                  const struct work_prefetch_eviction *which,
                  struct work_prefetch_batch **evicted)
{
    struct work_prefetch_batch *batch = entry->first;

    entry->first = NULL;
    entry->last = NULL;
    while (batch != NULL) {
        struct work_prefetch_batch *next = batch->next;
        batch->next = NULL;
        if (is_evicted(batch, which)) {
            entry->prefetch = MIN(entry->prefetch, (uint32_t)(batch->at - batch->from));
            entry->evicted = true;
            batch->next = *evicted;
            *evicted = batch;
        } else {
            append(entry, batch);
        }
        batch = next;
    }
}

struct work_prefetch_batch *pawl__work_prefetch_cache_evict(
    struct work_prefetch_cache *cache,
    const struct work_prefetch_eviction *which,
    int64_t *ret_next_ns)
{
    struct work_prefetch_batch *evicted = NULL;
    int64_t next_ns = INT64_MAX;
    size_t cursor = 0;
    void *value;

    while (pawl__map_next(cache->entries, &cursor, NULL, &value)) {
        struct entry *entry = value;
        if (entry->first != NULL) {
            evict(entry, which, &evicted);
        }
        if (entry->first != NULL) {
            next_ns = MIN(next_ns, entry->first->fresh_until_ns);
        }
    }
    if (ret_next_ns != NULL) {
        *ret_next_ns = next_ns;
    }
    return evicted;
}
