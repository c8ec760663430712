/* Which commands inserted keys that exist, after the write of a group ended in a conflict. The store names one
 * key at most; nothing was written, so the keys can be looked up. */
#include <inttypes.h>

#include "app/core/item.h"
#include "base/core/error.h"

enum { LOOKUP_KEYS_MAX = 1000 };

/* Keys of one family that were to be inserted, and whose they are. */
struct inserts {
    enum app_family family;
    pawl_view keys[LOOKUP_KEYS_MAX];
    struct app_item *owners[LOOKUP_KEYS_MAX];
    size_t count;
    struct app_value values[LOOKUP_KEYS_MAX];
};

static pawl_status look_up_keys(struct app_partition *partition,
                                struct inserts *inserts,
                                size_t *found,
                                pawl_error *reterr)
{
    struct app_store *store = partition->seq.store;
    const struct app_lookup lookup = { .family = inserts->family,
                                       .keys = inserts->keys,
                                       .count = inserts->count };

    if (inserts->count == 0) {
        return PAWL_OK;
    }
    TRY(store->ops->get_many(store, &lookup, &partition->arena, inserts->values, reterr));
    for (size_t i = 0; i < inserts->count; i++) {
        if (inserts->values[i].found) {
            inserts->owners[i]->isolated = true;
            (*found)++;
        }
    }
    inserts->count = 0;
    return PAWL_OK;
}

static pawl_status look_up_family(struct app_partition *partition,
                                  struct inserts *inserts,
                                  size_t *found,
                                  pawl_error *reterr)
{
    const struct app_batch *batch = &partition->batch;
    size_t owner = 0;
    inserts->count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (owner + 1 < partition->attempt_count && partition->attempt[owner + 1]->entry_at == i) {
            owner++;
        }
        if (batch->entries[i].family == inserts->family && batch->entries[i].mode == APP_INSERT) {
            inserts->keys[inserts->count] = batch->entries[i].key;
            inserts->owners[inserts->count++] = partition->attempt[owner];
        }
        if (inserts->count == LOOKUP_KEYS_MAX) {
            TRY(look_up_keys(partition, inserts, found, reterr));
        }
    }
    return look_up_keys(partition, inserts, found, reterr);
}

void pawl__app_find_conflicts(struct app_partition *partition)
{
    struct inserts *inserts = pawl__arena_take(&partition->arena, sizeof(*inserts));
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = inserts == NULL ? PAWL_NOMEM : PAWL_OK;
    size_t found = 0;

    for (int family = 0; family < APP_FAMILY_COUNT && status == PAWL_OK; family++) {
        inserts->family = (enum app_family)family;
        status = look_up_family(partition, inserts, &found, &error);
    }
    if (status == PAWL_OK && found > 0) {
        return;
    }
    for (size_t i = 0; i < partition->attempt_count; i++) {
        partition->attempt[i]->isolated = true;
    }
}

/* The key has the offset of the event that used the number. */
static void explain_number(const struct app_partition *partition,
                           pawl_view key,
                           pawl_view value,
                           pawl_error *error)
{
    struct app_key_parts parts;
    uint64_t offset = 0;

    if (pawl__app_key_parse(APP_NUMBERS, key, &parts) && pawl__view_take_u64be(&value, &offset)) {
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

void pawl__app_explain_conflict(struct app_partition *partition, pawl_error *error)
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
            explain_number(partition, entry->key, value.bytes, error);
            return;
        }
    }
}
