#include "sequencer/app_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

pawl_status pawl__app_store_open(const char *location,
                                 const struct app_store_options *options,
                                 struct app_store **ret_store,
                                 pawl_error *reterr)
{
    if (location == NULL || location[0] == '\0') {
        return pawl__fail(reterr, PAWL_INVALID, "the location is empty");
    }
    if (strcmp(location, "memory:") == 0) {
        return pawl__app_memory_open(ret_store, reterr);
    }
    if (strstr(location, "://") != NULL || strncmp(location, "memory:", strlen("memory:")) == 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "location '%s' is neither a directory nor memory:", location);
    }
    pawl_status status = pawl__app_rocksdb_open(location, options, ret_store, reterr);
    return status == PAWL_OK ? status : pawl__fail_context(reterr, status, "open '%s'", location);
}

void pawl__app_store_close(struct app_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

pawl_status pawl__app_store_get(struct app_store *store,
                                enum app_family family,
                                pawl_view key,
                                struct pawl__arena *arena,
                                struct app_value *ret_value,
                                pawl_error *reterr)
{
    return store->ops->get_many(store, family, &key, 1, arena, ret_value, reterr);
}

pawl_status pawl__app_store_conflict(const struct app_entry *entry, pawl_error *reterr)
{
    char space[PAWL_ERROR_MESSAGE_SIZE];
    struct pawl__buf text = BUF_OVER(space);

    pawl__app_key_describe(entry->family, entry->key, &text);
    return pawl__fail(reterr, PAWL_CONFLICT, "%s is there already", space);
}

/* --- batches --- */

void pawl__app_batch_done(struct app_batch *batch)
{
    free(batch->entries);
    pawl__arena_done(&batch->arena);
    *batch = (struct app_batch){ .count = 0 };
}

void pawl__app_batch_clear(struct app_batch *batch)
{
    batch->count = 0;
    pawl__arena_clear(&batch->arena);
}

static pawl_status make_room(struct app_batch *batch, pawl_error *reterr)
{
    if (batch->count < batch->room) {
        return PAWL_OK;
    }
    size_t room = batch->room == 0 ? 64 : batch->room * 2;
    struct app_entry *entries = realloc(batch->entries, room * sizeof(*entries));
    if (entries == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu entries", room);
    }
    batch->entries = entries;
    batch->room = room;
    return PAWL_OK;
}

pawl_status pawl__app_batch_add(struct app_batch *batch,
                                enum app_family family,
                                enum app_mode mode,
                                const struct app_key *key,
                                pawl_view value,
                                pawl_error *reterr)
{
    struct app_entry entry = { .family = family, .mode = mode };
    pawl_status status = make_room(batch, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    if (!pawl__arena_copy(&batch->arena, pawl__app_key_view(key), &entry.key)
        || !pawl__arena_copy(&batch->arena, value, &entry.value)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an entry of %zu bytes", value.len);
    }
    batch->entries[batch->count++] = entry;
    return PAWL_OK;
}

const struct app_entry *pawl__app_batch_find(const struct app_batch *batch,
                                             enum app_family family,
                                             pawl_view key)
{
    for (size_t i = batch->count; i > 0; i--) {
        const struct app_entry *entry = &batch->entries[i - 1];
        if (entry->family == family && pawl__view_equal(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}
