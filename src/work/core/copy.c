#include "work/core/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"

/* --- the texts of each record --- */

#define TEXT(type, field)              \
    {                                  \
#field, offsetof(type, field), \
    }
#define TEXTS(list, type)                   \
    {                                       \
        list, COUNT_OF(list), sizeof(type), \
    }

static const struct work_text of_item[] = {
    TEXT(pawl_item, work_item_id),  TEXT(pawl_item, task_id),    TEXT(pawl_item, work_type),
    TEXT(pawl_item, lease_holder),  TEXT(pawl_item, input_data), TEXT(pawl_item, output_data),
    TEXT(pawl_item, error_message),
};

static const struct work_text of_task[] = {
    TEXT(pawl_task, task_id),
    TEXT(pawl_task, title),
    TEXT(pawl_task, metadata),
};

static const struct work_text of_checkpoint[] = {
    TEXT(pawl_checkpoint, checkpoint_id), TEXT(pawl_checkpoint, task_id),
    TEXT(pawl_checkpoint, work_item_id),  TEXT(pawl_checkpoint, snapshot_data),
    TEXT(pawl_checkpoint, metadata),
};

static const struct work_text of_evidence[] = {
    { "evidence: subject", offsetof(pawl_evidence, subject) },
    { "evidence: expected", offsetof(pawl_evidence, expected) },
};

static const struct work_text of_schedule[] = {
    TEXT(pawl_schedule, schedule_id), TEXT(pawl_schedule, cron),       TEXT(pawl_schedule, task_id),
    TEXT(pawl_schedule, work_type),   TEXT(pawl_schedule, input_data),
};

static const struct work_text of_key[] = {
    TEXT(struct work_key_row, key),      TEXT(struct work_key_row, request_hash),
    TEXT(struct work_key_row, task_id),  TEXT(struct work_key_row, work_item_id),
    TEXT(struct work_key_row, response), TEXT(struct work_key_row, owner),
};

const struct work_texts pawl__work_item_texts = TEXTS(of_item, pawl_item);
const struct work_texts pawl__work_task_texts = TEXTS(of_task, pawl_task);
const struct work_texts pawl__work_checkpoint_texts = TEXTS(of_checkpoint, pawl_checkpoint);
const struct work_texts pawl__work_evidence_texts = TEXTS(of_evidence, pawl_evidence);
static const struct work_texts schedule_texts = TEXTS(of_schedule, pawl_schedule);
static const struct work_texts key_texts = TEXTS(of_key, struct work_key_row);

static pawl_view *text_of(void *record, const struct work_text *text)
{
    return (pawl_view *)((char *)record + text->offset);
}

/* --- into an arena --- */

/* A copy of a record, with copies of its texts. */
static bool copy_record(struct pawl__arena *arena,
                        const struct work_texts *texts,
                        const void *from,
                        void *record)
{
    memcpy(record, from, texts->record_size);
    for (size_t i = 0; i < texts->count; i++) {
        pawl_view *text = text_of(record, &texts->texts[i]);
        if (text->len == 0) {
            *text = (pawl_view){ "", 0 };
        } else if (!pawl__arena_copy(arena, *text, text)) {
            return false;
        }
    }
    return true;
}

static bool own_evidence(struct pawl__arena *arena, pawl_checkpoint *copy)
{
    size_t count = copy->evidence_count;
    const pawl_evidence *from = copy->evidence;

    copy->evidence = NULL;
    if (count == 0) {
        return true;
    }
    pawl_evidence *pieces = pawl__arena_take(arena, count * sizeof(*pieces));
    if (pieces == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!copy_record(arena, &pawl__work_evidence_texts, &from[i], &pieces[i])) {
            return false;
        }
    }
    copy->evidence = pieces;
    return true;
}

bool pawl__work_copy_checkpoint(struct pawl__arena *arena,
                                const pawl_checkpoint *from,
                                pawl_checkpoint *ret_copy)
{
    return copy_record(arena, &pawl__work_checkpoint_texts, from, ret_copy)
           && own_evidence(arena, ret_copy);
}

bool pawl__work_copy_item(struct pawl__arena *arena, const pawl_item *from, pawl_item *ret_copy)
{
    return copy_record(arena, &pawl__work_item_texts, from, ret_copy);
}

bool pawl__work_copy_task(struct pawl__arena *arena, const pawl_task *from, pawl_task *ret_copy)
{
    return copy_record(arena, &pawl__work_task_texts, from, ret_copy);
}

bool pawl__work_copy_schedule(struct pawl__arena *arena,
                              const pawl_schedule *from,
                              pawl_schedule *ret_copy)
{
    return copy_record(arena, &schedule_texts, from, ret_copy);
}

bool pawl__work_copy_key(struct pawl__arena *arena,
                         const struct work_key_row *from,
                         struct work_key_row *ret_copy)
{
    return copy_record(arena, &key_texts, from, ret_copy);
}

/* --- out to a caller --- */

static size_t bytes_of_texts(const struct work_texts *texts, const void *record)
{
    size_t bytes = 0;

    for (size_t i = 0; i < texts->count; i++) {
        bytes += ((const pawl_view *)((const char *)record + texts->texts[i].offset))->len + 1;
    }
    return bytes;
}

/* Moves a record's texts to `to`, each with a NUL; returns where the next record's go. */
static char *move_texts(const struct work_texts *texts, void *record, char *to)
{
    for (size_t i = 0; i < texts->count; i++) {
        pawl_view *text = text_of(record, &texts->texts[i]);
        if (text->len > 0) {
            memcpy(to, text->data, text->len);
        }
        to[text->len] = '\0';
        text->data = to;
        to = &to[text->len + 1];
    }
    return to;
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a copy");
}

/* One block: the record, then its texts. NULL without memory. */
static void *copy_out_record(const struct work_texts *texts, const void *record)
{
    char *copy = malloc(texts->record_size + bytes_of_texts(texts, record));

    if (copy != NULL) {
        memcpy(copy, record, texts->record_size);
        (void)move_texts(texts, copy, copy + texts->record_size);
    }
    return copy;
}

pawl_status pawl__work_copy_out_item(const pawl_item *item,
                                     pawl_item **ret_item,
                                     pawl_error *reterr)
{
    *ret_item = copy_out_record(&pawl__work_item_texts, item);
    return *ret_item == NULL ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl__work_copy_out_task(const pawl_task *task,
                                     pawl_task **ret_task,
                                     pawl_error *reterr)
{
    *ret_task = copy_out_record(&pawl__work_task_texts, task);
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
        bytes += bytes_of_texts(&pawl__work_item_texts, at(list, i));
    }
    struct copied *copy = malloc(sizeof(*copy) + count * sizeof(copy->items[0]) + bytes);
    if (copy == NULL) {
        return no_memory(reterr);
    }
    copy->claimed = (pawl_claimed){ .items = copy->items, .count = count };
    char *to = (char *)&copy->items[count];
    for (size_t i = 0; i < count; i++) {
        copy->items[i] = *at(list, i);
        to = move_texts(&pawl__work_item_texts, &copy->items[i], to);
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
