#include "app/core/batch.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/grow.h"

#define ENTRIES_MAX ((size_t)1 << 31)

void pawl__app_batch_done(struct app_batch *batch)
{
    free(batch->entries);
    free(batch->links);
    free(batch->heads);
    pawl__arena_done(&batch->arena);
    *batch = (struct app_batch){ .count = 0 };
}

void pawl__app_batch_clear(struct app_batch *batch)
{
    pawl__app_batch_cut(batch, 0);
    pawl__arena_clear(&batch->arena);
}

/* --- entries --- */

pawl_status pawl__app_batch_add(struct app_batch *batch,
                                enum app_family family,
                                enum app_mode mode,
                                const struct app_key *key,
                                pawl_view value,
                                pawl_error *reterr)
{
    struct app_entry entry = { .family = family, .mode = mode };
    struct app_entry *entries =
        batch->count < ENTRIES_MAX
            ? pawl__grow(batch->entries, batch->count, &batch->room, sizeof(*entries))
            : NULL;

    if (batch->count >= ENTRIES_MAX) {
        return pawl__fail(reterr, PAWL_NO_SPACE, "a batch has more than %zu entries", ENTRIES_MAX);
    }
    if (entries == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu entries", batch->count);
    }
    batch->entries = entries;
    if (!pawl__arena_copy(&batch->arena, pawl__app_key_view(key), &entry.key)
        || !pawl__arena_copy(&batch->arena, value, &entry.value)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an entry of %zu bytes", value.len);
    }
    batch->entries[batch->count++] = entry;
    return PAWL_OK;
}

/* --- finding them --- */

static uint32_t hash_of(const struct app_batch *batch, enum app_family family, pawl_view key)
{
    return (uint32_t)pawl__hash_pair(
        &batch->seed, pawl__hash_bytes(&batch->seed, key), (uint64_t)family);
}

static uint32_t *head_of(const struct app_batch *batch, uint32_t hash)
{
    return &batch->heads[hash & (batch->link_room - 1)];
}

static void link_entry(struct app_batch *batch, size_t i)
{
    uint32_t *head = head_of(batch, batch->links[i].hash);

    batch->links[i].before = *head;
    *head = (uint32_t)i + 1;
}

static pawl_status make_link_room(struct app_batch *batch, pawl_error *reterr)
{
    if (batch->link_room >= batch->room) {
        return PAWL_OK;
    }
    if (batch->link_room == 0) {
        TRY(pawl__hash_seed(&batch->seed, reterr));
    }
    uint32_t *heads = calloc(batch->room, sizeof(*heads));
    struct app_link *links =
        heads == NULL ? NULL : realloc(batch->links, batch->room * sizeof(*links));
    if (links == NULL) {
        free(heads);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory to find %zu entries", batch->room);
    }
    free(batch->heads);
    batch->heads = heads;
    batch->links = links;
    batch->link_room = batch->room;
    for (size_t i = 0; i < batch->linked; i++) {
        link_entry(batch, i);
    }
    return PAWL_OK;
}

pawl_status pawl__app_batch_find(struct app_batch *batch,
                                 enum app_family family,
                                 pawl_view key,
                                 const struct app_entry **ret_entry,
                                 pawl_error *reterr)
{
    TRY(make_link_room(batch, reterr));
    for (; batch->linked < batch->count; batch->linked++) {
        const struct app_entry *entry = &batch->entries[batch->linked];
        batch->links[batch->linked].hash = hash_of(batch, entry->family, entry->key);
        link_entry(batch, batch->linked);
    }
    *ret_entry = NULL;
    if (batch->count == 0) {
        return PAWL_OK;
    }
    uint32_t hash = hash_of(batch, family, key);
    uint32_t place = *head_of(batch, hash);
    for (; place != 0; place = batch->links[place - 1].before) {
        const struct app_entry *entry = &batch->entries[place - 1];
        if (batch->links[place - 1].hash == hash && entry->family == family
            && pawl__view_equal(entry->key, key)) {
            *ret_entry = entry;
            break;
        }
    }
    return PAWL_OK;
}

/* The last one goes first, so a head is always the entry that goes. */
void pawl__app_batch_cut(struct app_batch *batch, size_t count)
{
    for (; batch->linked > count; batch->linked--) {
        const struct app_link *link = &batch->links[batch->linked - 1];
        *head_of(batch, link->hash) = link->before;
    }
    batch->count = MIN(batch->count, count);
}
