/* Items in memory: rows are replaced whole, and a rollback puts the old ones back. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/backend.h"
#include "work/core/copy.h"
#include "work/items/item.h"

enum { ROOM_FIRST = 64 };

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

static void free_item(struct work_model_item *item)
{
    if (item != NULL) {
        pawl_item_free(item->copy);
        free(item);
    }
}

/* --- what a rollback undoes --- */

struct item_step {
    struct work_undo base;
    struct work_model *backend;
    struct work_model_item *old; /* NULL: there was none */
    struct work_model_item *new;
};

static void undo_item(struct work_undo *base)
{
    struct item_step *step = (struct item_step *)base;
    pawl_view id = step->new->row.item.work_item_id;

    if (step->old == NULL) {
        (void)pawl__map_remove(step->backend->items, id);
    } else {
        /* The key is there: putting another value under it needs no memory. */
        pawl_status status = pawl__map_put(step->backend->items, id, step->old, NULL, NULL);
        REQUIRE(status == PAWL_OK);
    }
    free_item(step->new);
    free(step);
}

static void forget_item(struct work_undo *base)
{
    struct item_step *step = (struct item_step *)base;

    free_item(step->old);
    free(step);
}

static pawl_status replace(struct work_model *backend,
                           const struct work_row *row,
                           pawl_error *reterr)
{
    struct work_model_item *item = calloc(1, sizeof(*item));
    struct item_step *step = calloc(1, sizeof(*step));
    void *old = NULL;
    pawl_status status = item == NULL || step == NULL ? no_memory(reterr) : PAWL_OK;

    if (status == PAWL_OK) {
        status = pawl__work_copy_out_item(&row->item, &item->copy, reterr);
    }
    if (status == PAWL_OK) {
        item->row = *row;
        item->row.item = *item->copy;
        status = pawl__map_put(backend->items, item->copy->work_item_id, item, &old, reterr);
    }
    if (status != PAWL_OK) {
        free_item(item);
        free(step);
        return status;
    }
    *step = (struct item_step){
        .base = { .undo = undo_item, .forget = forget_item },
        .backend = backend,
        .old = old,
        .new = item,
    };
    work_model_remember(backend, &step->base);
    return PAWL_OK;
}

/* --- history and edges: lists that grow, and are cut back --- */

/* Room for one more of `size` bytes. */
static bool grow(void **list, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return true;
    }
    size_t wanted = *room == 0 ? ROOM_FIRST : *room * 2;
    void *grown = realloc(*list, wanted * size);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    *room = wanted;
    return true;
}

void work_model_cut(struct work_model *backend, size_t history_count, size_t edge_count)
{
    while (backend->history_count > history_count) {
        pawl_item_free(backend->history[--backend->history_count].item);
    }
    while (backend->edge_count > edge_count) {
        struct work_model_edge *edge = &backend->edges[--backend->edge_count];
        free(edge->work_item_id);
        free(edge->after_id);
    }
}

void work_model_free_items(struct work_model *backend)
{
    size_t cursor = 0;
    void *item;

    while (backend->items != NULL && pawl__map_next(backend->items, &cursor, NULL, &item)) {
        free_item(item);
    }
    pawl__map_free(backend->items);
    backend->items = NULL;
    work_model_cut(backend, 0, 0);
    free(backend->history);
    free(backend->edges);
}

static pawl_status note(struct work_model *backend,
                        const char *from,
                        const char *to,
                        const pawl_item *item,
                        pawl_error *reterr)
{
    void *list = backend->history;

    if (!grow(&list, backend->history_count, &backend->history_room, sizeof(*backend->history))) {
        return no_memory(reterr);
    }
    backend->history = list;
    struct work_model_event *event = &backend->history[backend->history_count];
    *event = (struct work_model_event){ .from = from, .to = to, .at_us = item->updated_at_us };
    pawl_status status = pawl__work_copy_out_item(item, &event->item, reterr);
    backend->history_count += status == PAWL_OK;
    return status;
}

pawl_status work_model_add_edges(struct work_backend *base,
                                 const struct work_edge *edges,
                                 size_t count,
                                 pawl_error *reterr)
{
    struct work_model *backend = work_model_of(base);

    for (size_t i = 0; i < count; i++) {
        void *list = backend->edges;
        if (!grow(&list, backend->edge_count, &backend->edge_room, sizeof(*backend->edges))) {
            return no_memory(reterr);
        }
        backend->edges = list;
        struct work_model_edge *edge = &backend->edges[backend->edge_count++];
        edge->work_item_id = pawl__view_dup(edges[i].work_item_id);
        edge->after_id = pawl__view_dup(edges[i].after_id);
        if (edge->work_item_id == NULL || edge->after_id == NULL) {
            return no_memory(reterr);
        }
    }
    return PAWL_OK;
}

/* --- storing --- */

static const char *reason_text(enum work_reason reason)
{
    return reason == WORK_BACKOFF ? "backoff" : reason == WORK_DEPENDENCY ? "dependency" : "delay";
}

/* What the triggers of a database write: every change of status, and the submit. */
static pawl_status note_change(struct work_model *backend,
                               const struct work_row *old,
                               const struct work_row *row,
                               pawl_error *reterr)
{
    pawl_item item = row->item;
    bool waits = item.status == PAWL_ITEM_WAITING;
    pawl_item_status to = waits ? PAWL_ITEM_PENDING : item.status;
    pawl_item_status from =
        old == NULL || old->item.status == PAWL_ITEM_WAITING ? PAWL_ITEM_PENDING : old->item.status;

    if (old == NULL) {
        item.error_message = pawl_view_of(waits ? reason_text(row->reason) : "");
        return note(backend, "", pawl__work_item_status_text(to), &item, reterr);
    }
    if (from == to) {
        return PAWL_OK;
    }
    if (item.lease_holder.len == 0) {
        item.lease_holder = old->item.lease_holder;
    }
    if (to == PAWL_ITEM_IN_PROGRESS || to == PAWL_ITEM_COMPLETED) {
        item.error_message = (pawl_view){ NULL, 0 };
    }
    return note(
        backend, pawl__work_item_status_text(from), pawl__work_item_status_text(to), &item, reterr);
}

static pawl_status put_one(struct work_model *backend, struct work_row *row, pawl_error *reterr)
{
    const struct work_model_item *old = pawl__map_get(backend->items, row->item.work_item_id);
    bool waits = row->item.status == PAWL_ITEM_WAITING;

    if ((old == NULL) != (row->home == WORK_NOWHERE)) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "item '%.*s' is there already",
                          VIEW_ARGS(row->item.work_item_id));
    }
    pawl_status status = note_change(backend, old == NULL ? NULL : &old->row, row, reterr);
    row->entries += row->home == WORK_IN_WAITING && !waits;
    row->home = waits ? WORK_IN_WAITING : WORK_IN_ITEMS;
    if (waits) { /* a database's work_waiting has no columns for these */
        row->item.output_data = (pawl_view){ NULL, 0 };
        row->item.lease_acquired_at_us = 0;
        row->item.heartbeat_at_us = 0;
    } else { /* nor its work_items for this one */
        row->item.due_at_us = 0;
    }
    return status == PAWL_OK ? replace(backend, row, reterr) : status;
}

pawl_status work_model_put(struct work_backend *base,
                           struct work_row *const *rows,
                           size_t count,
                           pawl_error *reterr)
{
    struct work_model *backend = work_model_of(base);
    pawl_status status = PAWL_OK;

    backend->submissions = pawl__work_number_rows(rows, count, backend->submissions);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        status = put_one(backend, rows[i], reterr);
    }
    return status;
}
