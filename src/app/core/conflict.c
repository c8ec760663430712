/* Whose keys were taken, after a write of many commands that was a conflict. The store names one key, and
 * not in every case; nothing was written, so looking is as good. */
#include <inttypes.h>

#include "app/core/item.h"
#include "base/core/error.h"

enum { LOOK_KEYS_MAX = 1000 };

/* Keys of one family that were to be inserted, and whose they are. */
struct look {
    enum app_family family;
    pawl_view keys[LOOK_KEYS_MAX];
    struct app_item *owners[LOOK_KEYS_MAX];
    size_t count;
    struct app_value values[LOOK_KEYS_MAX];
};

static pawl_status look_at_keys(struct app_partition *partition,
                                struct look *look,
                                size_t *blamed,
                                pawl_error *reterr)
{
    struct app_store *store = partition->seq.store;
    const struct app_lookup lookup = { .family = look->family,
                                       .keys = look->keys,
                                       .count = look->count };

    if (look->count == 0) {
        return PAWL_OK;
    }
    TRY(store->ops->get_many(store, &lookup, &partition->arena, look->values, reterr));
    for (size_t i = 0; i < look->count; i++) {
        if (look->values[i].found) {
            look->owners[i]->alone = true;
            (*blamed)++;
        }
    }
    look->count = 0;
    return PAWL_OK;
}

static pawl_status look_at_family(struct app_partition *partition,
                                  struct look *look,
                                  size_t *blamed,
                                  pawl_error *reterr)
{
    const struct app_batch *batch = &partition->batch;
    size_t owner = 0;
    look->count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (owner + 1 < partition->taken_count && partition->taken[owner + 1]->entry_at == i) {
            owner++;
        }
        if (batch->entries[i].family == look->family && batch->entries[i].mode == APP_INSERT) {
            look->keys[look->count] = batch->entries[i].key;
            look->owners[look->count++] = partition->taken[owner];
        }
        if (look->count == LOOK_KEYS_MAX) {
            TRY(look_at_keys(partition, look, blamed, reterr));
        }
    }
    return look_at_keys(partition, look, blamed, reterr);
}

void pawl__app_blame(struct app_partition *partition)
{
    struct look *look = pawl__arena_take(&partition->arena, sizeof(*look));
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = look == NULL ? PAWL_NOMEM : PAWL_OK;
    size_t blamed = 0;

    for (int family = 0; family < APP_FAMILY_COUNT && status == PAWL_OK; family++) {
        look->family = (enum app_family)family;
        status = look_at_family(partition, look, &blamed, &error);
    }
    if (status == PAWL_OK && blamed > 0) {
        return;
    }
    for (size_t i = 0; i < partition->taken_count; i++) {
        partition->taken[i]->alone = true;
    }
}

/* The key has the offset of the event that used the number. */
static void tell_number(const struct app_partition *partition,
                        pawl_view key,
                        pawl_view value,
                        pawl_error *error)
{
    struct app_key_parts parts;
    uint64_t offset = 0;

    if (pawl__app_key_take(APP_NUMBERS, key, &parts) && pawl__view_take_u64be(&value, &offset)) {
        (void)!pawl__fail(error,
                          PAWL_CONFLICT,
                          "number %" PRIu64 " of sequence '%s' of workspace %" PRIu64
                          " is used already, at PLog offset %" PRIu64
                          ": what is stored of the sequence is behind the log; 'pawl seq verify "
                          "--all' lists what is wrong, 'pawl seq rebuild' repairs it",
                          parts.number,
                          pawl_app_sequence_name(partition->app, parts.sequence),
                          parts.workspace,
                          offset);
    }
}

void pawl__app_name_number(struct app_partition *partition, pawl_error *error)
{
    const struct app_batch *batch = &partition->batch;
    struct app_store *store = partition->seq.store;
    pawl_error ignored = PAWL_ERROR_INIT;

    for (size_t i = 0; i < batch->count; i++) {
        const struct app_entry *entry = &batch->entries[i];
        struct app_value value = { .found = false };
        if (entry->family == APP_NUMBERS && entry->mode == APP_INSERT
            && pawl__app_store_get(
                   store, APP_NUMBERS, entry->key, &partition->arena, &value, &ignored)
                   == PAWL_OK
            && value.found) {
            tell_number(partition, entry->key, value.bytes, error);
            return;
        }
    }
}
