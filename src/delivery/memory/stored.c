#include "delivery/memory/stored.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

pawl_status pawl__delivery_stored_new(const struct delivery_entry *entry,
                                      struct delivery_stored **ret_stored,
                                      pawl_error *reterr)
{
    struct delivery_stored *stored = calloc(1, sizeof(*stored));

    TRY(pawl__check_memory(stored, "an entry", reterr));
    stored->references = 1;
    pawl_status status = pawl__delivery_entry_copy(entry, &stored->arena, &stored->entry, reterr);
    if (status != PAWL_OK) {
        pawl__delivery_stored_drop(stored);
        return status;
    }
    *ret_stored = stored;
    return PAWL_OK;
}

struct delivery_stored *pawl__delivery_stored_share(struct delivery_stored *stored)
{
    stored->references++;
    return stored;
}

void pawl__delivery_stored_drop(struct delivery_stored *stored)
{
    if (stored == NULL || --stored->references > 0) {
        return;
    }
    pawl__arena_done(&stored->arena);
    free(stored);
}

pawl_status pawl__delivery_failure_new(const struct delivery_failed_row *row,
                                       struct delivery_stored_failure **ret_failure,
                                       pawl_error *reterr)
{
    struct delivery_stored_failure *failure = calloc(1, sizeof(*failure));

    TRY(pawl__check_memory(failure, "a failed event", reterr));
    failure->references = 1;
    pawl_status status = pawl__delivery_failed_page_add(&failure->page, row, reterr);
    if (status != PAWL_OK) {
        pawl__delivery_failure_drop(failure);
        return status;
    }
    *ret_failure = failure;
    return PAWL_OK;
}

void pawl__delivery_failure_share(struct delivery_stored_failure *failure)
{
    if (failure != NULL) {
        failure->references++;
    }
}

void pawl__delivery_failure_drop(struct delivery_stored_failure *failure)
{
    if (failure == NULL || --failure->references > 0) {
        return;
    }
    pawl__delivery_failed_page_done(&failure->page);
    free(failure);
}

pawl_status pawl__delivery_stored_decision_new(const struct delivery_decision *decision,
                                               struct delivery_stored_decision **ret_stored,
                                               pawl_error *reterr)
{
    struct delivery_stored_decision *stored = calloc(1, sizeof(*stored));

    TRY(pawl__check_memory(stored, "a decision", reterr));
    stored->references = 1;
    pawl_status status =
        pawl__delivery_decision_copy(decision, &stored->arena, &stored->decision, reterr);
    if (status != PAWL_OK) {
        pawl__delivery_stored_decision_drop(stored);
        return status;
    }
    *ret_stored = stored;
    return PAWL_OK;
}

void pawl__delivery_stored_decision_share(struct delivery_stored_decision *stored)
{
    if (stored != NULL) {
        stored->references++;
    }
}

void pawl__delivery_stored_decision_drop(struct delivery_stored_decision *stored)
{
    if (stored == NULL || --stored->references > 0) {
        return;
    }
    pawl__arena_done(&stored->arena);
    free(stored);
}

void pawl__delivery_table_done(struct delivery_table *table)
{
    free(table->slots);
    *table = (struct delivery_table){ .slots = NULL };
}

/* Where the key is, or the free slot where it belongs. */
static struct delivery_slot *place_of(const struct delivery_table *table,
                                      const struct delivery_hash *key)
{
    uint64_t word;

    memcpy(&word, key->bytes, sizeof(word));
    size_t i = (size_t)word & (table->room - 1);
    while (table->slots[i].used && !pawl__delivery_hash_equal(&table->slots[i].key, key)) {
        i = (i + 1) & (table->room - 1);
    }
    return &table->slots[i];
}

const struct delivery_slot *pawl__delivery_table_find(const struct delivery_table *table,
                                                      const struct delivery_hash *key)
{
    if (table->room == 0) {
        return NULL;
    }
    const struct delivery_slot *slot = place_of(table, key);
    return slot->used ? slot : NULL;
}

static pawl_status grow(struct delivery_table *table, pawl_error *reterr)
{
    size_t room = table->room == 0 ? 64 : table->room * 2;
    struct delivery_table larger = { calloc(room, sizeof(*larger.slots)), room, table->count };

    TRY(pawl__check_memory(larger.slots, "a table of keys", reterr));
    for (size_t i = 0; i < table->room; i++) {
        if (table->slots[i].used) {
            *place_of(&larger, &table->slots[i].key) = table->slots[i];
        }
    }
    free(table->slots);
    *table = larger;
    return PAWL_OK;
}

pawl_status pawl__delivery_table_put(struct delivery_table *table,
                                     const struct delivery_slot *slot,
                                     pawl_error *reterr)
{
    if (table->count * 2 >= table->room) {
        TRY(grow(table, reterr));
    }
    struct delivery_slot *place = place_of(table, &slot->key);
    table->count += !place->used;
    *place = *slot;
    place->used = true;
    return PAWL_OK;
}

pawl_status pawl__delivery_table_copy(const struct delivery_table *table,
                                      struct delivery_table *ret_copy,
                                      pawl_error *reterr)
{
    struct delivery_slot *slots = malloc(MAX(table->room, (size_t)1) * sizeof(*slots));

    TRY(pawl__check_memory(slots, "a table of keys", reterr));
    if (table->room > 0) {
        memcpy(slots, table->slots, table->room * sizeof(*slots));
    }
    *ret_copy = (struct delivery_table){ slots, table->room, table->count };
    return PAWL_OK;
}
