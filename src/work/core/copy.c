#include "work/core/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "records/work.h"

/* --- into an arena --- */

/* A key is no record of a public header: it has texts alone. */
static const struct pawl__field key_fields[] = {
    { FIELD(struct work_key_row, key, FIELD_TEXT) },
    { FIELD(struct work_key_row, request_hash, FIELD_TEXT) },
    { FIELD(struct work_key_row, task_id, FIELD_TEXT) },
    { FIELD(struct work_key_row, work_item_id, FIELD_TEXT) },
    { FIELD(struct work_key_row, response, FIELD_JSON) },
    { FIELD(struct work_key_row, owner, FIELD_TEXT) },
};
static const struct pawl__record key_record = RECORD("Key", struct work_key_row, key_fields);

bool pawl__work_copy_checkpoint(struct pawl__arena *arena,
                                const pawl_checkpoint *from,
                                pawl_checkpoint *ret_copy)
{
    return pawl__record_copy(&pawl__checkpoint_record, arena, from, ret_copy);
}

bool pawl__work_copy_item(struct pawl__arena *arena, const pawl_item *from, pawl_item *ret_copy)
{
    return pawl__record_copy(&pawl__item_record, arena, from, ret_copy);
}

bool pawl__work_copy_task(struct pawl__arena *arena, const pawl_task *from, pawl_task *ret_copy)
{
    return pawl__record_copy(&pawl__task_record, arena, from, ret_copy);
}

bool pawl__work_copy_schedule(struct pawl__arena *arena,
                              const pawl_schedule *from,
                              pawl_schedule *ret_copy)
{
    return pawl__record_copy(&pawl__schedule_record, arena, from, ret_copy);
}

bool pawl__work_copy_key(struct pawl__arena *arena,
                         const struct work_key_row *from,
                         struct work_key_row *ret_copy)
{
    return pawl__record_copy(&key_record, arena, from, ret_copy);
}

bool pawl__work_id_list_add(struct work_id_list *ids, pawl_view id)
{
    struct work_id *added = pawl__arena_take(ids->arena, sizeof(*added));

    ids->nomem = added == NULL || !pawl__arena_copy(ids->arena, id, &added->id);
    if (ids->nomem) {
        return false;
    }
    added->next = NULL;
    *(ids->last == NULL ? &ids->first : &ids->last->next) = added;
    ids->last = added;
    return true;
}

/* --- out to a caller --- */

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a copy");
}

/* One block: the record, then its texts. NULL without memory. */
static void *copy_out_record(const struct pawl__record *record, const void *value)
{
    char *copy = malloc(record->size + pawl__record_text_bytes(record, value));

    if (copy != NULL) {
        memcpy(copy, value, record->size);
        (void)pawl__record_move_texts(record, copy, copy + record->size);
    }
    return copy;
}

pawl_status pawl__work_copy_out_item(const pawl_item *item,
                                     pawl_item **ret_item,
                                     pawl_error *reterr)
{
    *ret_item = copy_out_record(&pawl__item_record, item);
    return *ret_item == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__work_copy_out_task(const pawl_task *task,
                                     pawl_task **ret_task,
                                     pawl_error *reterr)
{
    *ret_task = copy_out_record(&pawl__task_record, task);
    return *ret_task == NULL ? no_memory(reterr) : PAWL_OK;
}

void pawl_item_free(pawl_item *item)
{
    free(item);
}

void pawl_task_free(pawl_task *task)
{
    free(task);
}

/* Items in one block, with room for their texts. */
struct copied {
    pawl_claimed claimed;
    pawl_item items[];
};

typedef const pawl_item *item_at(const void *list, size_t index);

static const pawl_item *row_item_at(const void *list, size_t index)
{
    return &((struct work_row *const *)list)[index]->item;
}

static const pawl_item *plain_item_at(const void *list, size_t index)
{
    return &((const pawl_item *)list)[index];
}

static pawl_status copy_out(
    item_at *at, const void *list, size_t count, pawl_claimed **ret_claimed, pawl_error *reterr)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += pawl__record_text_bytes(&pawl__item_record, at(list, i));
    }
    struct copied *copy = malloc(sizeof(*copy) + count * sizeof(copy->items[0]) + bytes);
    if (copy == NULL) {
        return no_memory(reterr);
    }
    copy->claimed =
        (pawl_claimed){ .size = sizeof(pawl_claimed), .items = copy->items, .count = count };
    char *to = (char *)&copy->items[count];
    for (size_t i = 0; i < count; i++) {
        copy->items[i] = *at(list, i);
        to = pawl__record_move_texts(&pawl__item_record, &copy->items[i], to);
    }
    *ret_claimed = &copy->claimed;
    return PAWL_OK;
}

pawl_status pawl__work_copy_out_rows(struct work_row *const *rows,
                                     size_t count,
                                     pawl_claimed **ret_claimed,
                                     pawl_error *reterr)
{
    return copy_out(row_item_at, rows, count, ret_claimed, reterr);
}

pawl_status pawl__work_copy_out_items(const pawl_item *items,
                                      size_t count,
                                      pawl_claimed **ret_claimed,
                                      pawl_error *reterr)
{
    return copy_out(plain_item_at, items, count, ret_claimed, reterr);
}

void pawl_claimed_free(pawl_claimed *claimed)
{
    free(claimed);
}

/* --- records with an arena --- */

struct held {
    struct pawl__arena arena;
    _Alignas(max_align_t) char record[];
};

void *pawl__work_record_new(size_t size, struct pawl__arena **ret_arena)
{
    struct held *held = calloc(1, sizeof(*held) + size);

    if (held == NULL) {
        return NULL;
    }
    *ret_arena = &held->arena;
    memcpy(held->record, &size, sizeof(size)); /* every public struct begins with it */
    return held->record;
}

void pawl__work_record_free(void *record)
{
    if (record != NULL) {
        struct held *held = (struct held *)((char *)record - offsetof(struct held, record));
        pawl__arena_done(&held->arena);
        free(held);
    }
}
