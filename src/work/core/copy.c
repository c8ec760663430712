#include "work/core/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { ITEM_TEXTS = 7 };

static void item_texts(pawl_item *item, pawl_view *ret_texts[ITEM_TEXTS])
{
    pawl_view *texts[ITEM_TEXTS] = {
        &item->work_item_id, &item->task_id,     &item->work_type,     &item->lease_holder,
        &item->input_data,   &item->output_data, &item->error_message,
    };

    memcpy(ret_texts, texts, sizeof(texts));
}

static size_t texts_bytes(pawl_view *const *texts, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += texts[i]->len + 1;
    }
    return bytes;
}

/* Copies texts behind each other, each with a NUL, and returns where the next one goes. */
static char *move_texts(pawl_view *const *texts, size_t count, char *to)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = texts[i]->len;
        if (len > 0) {
            memcpy(to, texts[i]->data, len);
        }
        to[len] = '\0';
        texts[i]->data = to;
        to = &to[len + 1];
    }
    return to;
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a copy");
}

/* Items in one piece with room for their texts. */
struct copied {
    pawl_claimed claimed;
    pawl_item items[];
};

static size_t bytes_of_texts(const pawl_item *item)
{
    pawl_item moved = *item;
    pawl_view *texts[ITEM_TEXTS];

    item_texts(&moved, texts);
    return texts_bytes(texts, ITEM_TEXTS);
}

static struct copied *make_room(size_t count, size_t text_bytes)
{
    struct copied *copy = malloc(sizeof(*copy) + count * sizeof(copy->items[0]) + text_bytes);

    if (copy != NULL) {
        copy->claimed = (pawl_claimed){ .items = copy->items, .count = count };
    }
    return copy;
}

/* Returns where the texts of the next one go. */
static char *put_item(pawl_item *to, const pawl_item *item, char *texts_at)
{
    pawl_view *texts[ITEM_TEXTS];

    *to = *item;
    item_texts(to, texts);
    return move_texts(texts, ITEM_TEXTS, texts_at);
}

pawl_status pawl__work_copy_out_rows(struct work_row *const *rows,
                                     size_t count,
                                     pawl_claimed **ret_claimed,
                                     pawl_error *reterr)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += bytes_of_texts(&rows[i]->item);
    }
    struct copied *copy = make_room(count, bytes);
    if (copy == NULL) {
        return no_memory(reterr);
    }
    char *to = (char *)&copy->items[count];
    for (size_t i = 0; i < count; i++) {
        to = put_item(&copy->items[i], &rows[i]->item, to);
    }
    *ret_claimed = &copy->claimed;
    return PAWL_OK;
}

pawl_status pawl__work_copy_out_items(const pawl_item *items,
                                      size_t count,
                                      pawl_claimed **ret_claimed,
                                      pawl_error *reterr)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += bytes_of_texts(&items[i]);
    }
    struct copied *copy = make_room(count, bytes);
    if (copy == NULL) {
        return no_memory(reterr);
    }
    char *to = (char *)&copy->items[count];
    for (size_t i = 0; i < count; i++) {
        to = put_item(&copy->items[i], &items[i], to);
    }
    *ret_claimed = &copy->claimed;
    return PAWL_OK;
}

void pawl_claimed_free(pawl_claimed *claimed)
{
    free(claimed);
}

pawl_status pawl__work_copy_out_item(const pawl_item *item,
                                     pawl_item **ret_item,
                                     pawl_error *reterr)
{
    pawl_item moved = *item;
    pawl_view *texts[ITEM_TEXTS];

    item_texts(&moved, texts);
    pawl_item *copy = malloc(sizeof(*copy) + texts_bytes(texts, ITEM_TEXTS));
    if (copy == NULL) {
        return no_memory(reterr);
    }
    (void)move_texts(texts, ITEM_TEXTS, (char *)(copy + 1));
    *copy = moved;
    *ret_item = copy;
    return PAWL_OK;
}

void pawl_item_free(pawl_item *item)
{
    free(item);
}

pawl_status pawl__work_copy_out_task(const pawl_task *task,
                                     pawl_task **ret_task,
                                     pawl_error *reterr)
{
    pawl_task moved = *task;
    pawl_view *texts[] = { &moved.task_id, &moved.title, &moved.metadata };
    size_t bytes = texts_bytes(texts, COUNT_OF(texts));
    pawl_task *copy = malloc(sizeof(*copy) + bytes);

    if (copy == NULL) {
        return no_memory(reterr);
    }
    (void)move_texts(texts, COUNT_OF(texts), (char *)(copy + 1));
    *copy = moved;
    *ret_task = copy;
    return PAWL_OK;
}

void pawl_task_free(pawl_task *task)
{
    free(task);
}
