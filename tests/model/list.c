#include "model/list.h"

#include <stdlib.h>

#include "base/core/error.h"

enum { ROOM_FIRST = 16 };

/* A removed row leaves a hole until the commit, so that the rest keep their places. */
struct list_step {
    struct work_undo base; /* first */
    struct work_model_list *list;
    size_t index;
    void *old; /* NULL: there was none */
};

static void undo_step(struct work_undo *base)
{
    struct list_step *step = (struct list_step *)base;
    struct work_model_list *list = step->list;

    if (list->rows[step->index] != NULL) {
        list->free_row(list->rows[step->index]);
    }
    list->rows[step->index] = step->old;
    if (step->old == NULL) {
        list->count--; /* steps are undone newest first: it is the last one */
    }
    free(step);
}

static void forget_step(struct work_undo *base)
{
    struct list_step *step = (struct list_step *)base;

    if (step->old != NULL) {
        step->list->free_row(step->old);
    }
    free(step);
}

static pawl_status remember(struct work_model *backend,
                            struct work_model_list *list,
                            size_t index,
                            void *old,
                            pawl_error *reterr)
{
    struct list_step *step = calloc(1, sizeof(*step));

    if (step == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a row");
    }
    *step = (struct list_step){
        .base = { .undo = undo_step, .forget = forget_step },
        .list = list,
        .index = index,
        .old = old,
    };
    work_model_remember(backend, &step->base);
    return PAWL_OK;
}

static pawl_status make_room(struct work_model_list *list, pawl_error *reterr)
{
    size_t room = list->room == 0 ? ROOM_FIRST : 2 * list->room;

    if (list->count < list->room) {
        return PAWL_OK;
    }
    void **rows = realloc(list->rows, room * sizeof(*rows));
    if (rows == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a row");
    }
    list->rows = rows;
    list->room = room;
    return PAWL_OK;
}

pawl_status work_model_add(struct work_model *backend,
                           struct work_model_list *list,
                           void *row,
                           pawl_error *reterr)
{
    pawl_status status = make_room(list, reterr);

    if (status == PAWL_OK) {
        status = remember(backend, list, list->count, NULL, reterr);
    }
    if (status != PAWL_OK) {
        list->free_row(row);
        return status;
    }
    list->rows[list->count++] = row;
    return PAWL_OK;
}

pawl_status work_model_replace(struct work_model *backend,
                               struct work_model_list *list,
                               size_t index,
                               void *row,
                               pawl_error *reterr)
{
    pawl_status status = remember(backend, list, index, list->rows[index], reterr);

    if (status != PAWL_OK) {
        list->free_row(row);
        return status;
    }
    list->rows[index] = row;
    return PAWL_OK;
}

pawl_status work_model_remove(struct work_model *backend,
                              struct work_model_list *list,
                              size_t index,
                              pawl_error *reterr)
{
    pawl_status status = remember(backend, list, index, list->rows[index], reterr);

    if (status == PAWL_OK) {
        list->rows[index] = NULL;
    }
    return status;
}

void work_model_list_done(struct work_model_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i] != NULL) {
            list->free_row(list->rows[i]);
        }
    }
    free(list->rows);
}
