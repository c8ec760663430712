/* Items in memory: every question is a walk over all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/backend.h"
#include "work/checkpoints/backend.h"
#include "work/items/item.h"

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

/* A row to be changed; its texts stay where they are until the transaction ends. */
static struct work_row *take_row(const struct work_model_item *item, struct pawl__arena *arena)
{
    struct work_row *row = pawl__arena_take(arena, sizeof(*row));

    if (row != NULL) {
        *row = item->row;
    }
    return row;
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for an item");
}

static pawl_status model_load(struct work_backend *base,
                              const pawl_view *ids,
                              size_t count,
                              struct pawl__arena *arena,
                              struct work_row **ret_rows,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        const struct work_model_item *item = pawl__map_get(of(base)->items, ids[i]);
        ret_rows[i] = item == NULL ? NULL : take_row(item, arena);
        if (item != NULL && ret_rows[i] == NULL) {
            return no_memory(reterr);
        }
    }
    return PAWL_OK;
}

/* A question: which rows, in which order. */
struct question {
    bool (*matches)(const struct question *question, const struct work_row *row);
    int (*order)(const void *a, const void *b); /* of pointers to pointers to stored items */
    const struct work_filter *filter;
    const struct work_now *now;
    pawl_view task_id;
};

static pawl_status answer(struct work_model *backend,
                          const struct question *question,
                          struct work_rows *ret_found,
                          pawl_error *reterr)
{
    size_t all = pawl__map_count(backend->items);
    const struct work_model_item **found = calloc(all + 1, sizeof(*found));
    pawl_status status = found == NULL ? no_memory(reterr) : PAWL_OK;
    size_t count = 0;
    size_t cursor = 0;
    void *item;

    while (status == PAWL_OK && pawl__map_next(backend->items, &cursor, NULL, &item)) {
        if (question->matches(question, &((struct work_model_item *)item)->row)) {
            found[count++] = item;
        }
    }
    if (count > 1) {
        qsort((void *)found, count, sizeof(*found), question->order);
    }
    count = MIN(count, ret_found->room);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        ret_found->rows[i] = take_row(found[i], ret_found->arena);
        status = ret_found->rows[i] == NULL ? no_memory(reterr) : PAWL_OK;
    }
    free((void *)found);
    ret_found->count = status == PAWL_OK ? count : 0;
    return status;
}

static const struct work_row *row_at(const void *pointer)
{
    return &(*(const struct work_model_item *const *)pointer)->row;
}

static int by_claim_order(const void *a, const void *b)
{
    return pawl__work_claim_order(row_at(a), row_at(b));
}

static int by_id(const void *a, const void *b)
{
    return pawl__work_view_order(row_at(a)->item.work_item_id, row_at(b)->item.work_item_id);
}

static bool is_claimable(const struct question *question, const struct work_row *row)
{
    const struct work_filter *filter = question->filter;
    bool type_fits = filter->work_type_count == 0;

    for (size_t i = 0; i < filter->work_type_count && !type_fits; i++) {
        type_fits = pawl__view_equal(filter->work_types[i], row->item.work_type);
    }
    return row->item.status == PAWL_ITEM_PENDING && type_fits
           && (filter->task_id.len == 0 || pawl__view_equal(filter->task_id, row->item.task_id));
}

static pawl_status model_pick(struct work_backend *base,
                              const struct work_filter *filter,
                              struct work_rows *found,
                              pawl_error *reterr)
{
    struct question question = { .matches = is_claimable,
                                 .order = by_claim_order,
                                 .filter = filter };
    pawl_status status = answer(of(base), &question, found, reterr);

    for (size_t i = 0; status == PAWL_OK && i < found->count; i++) {
        found->rows[i]->item.token = MAX(found->rows[i]->item.token, of(base)->token_floor);
    }
    return status;
}

static bool has_run_out(const struct question *question, const struct work_row *row)
{
    return row->item.status == PAWL_ITEM_IN_PROGRESS && row->deadline_ns <= question->now->ns;
}

static pawl_status model_expired(struct work_backend *base,
                                 const struct work_now *now,
                                 struct work_rows *found,
                                 pawl_error *reterr)
{
    struct question question = { .matches = has_run_out, .order = by_id, .now = now };

    return answer(of(base), &question, found, reterr);
}

static bool is_due(const struct question *question, const struct work_row *row)
{
    return row->item.status == PAWL_ITEM_WAITING && row->waits_for == 0
           && row->due_ns <= question->now->ns;
}

static pawl_status model_due(struct work_backend *base,
                             const struct work_now *now,
                             struct work_rows *found,
                             int64_t *ret_next_ns,
                             pawl_error *reterr)
{
    struct question question = { .matches = is_due, .order = by_id, .now = now };
    size_t cursor = 0;
    void *item;

    *ret_next_ns = INT64_MAX;
    while (pawl__map_next(of(base)->items, &cursor, NULL, &item)) {
        const struct work_row *row = &((struct work_model_item *)item)->row;
        if (row->item.status == PAWL_ITEM_WAITING && row->waits_for == 0) {
            *ret_next_ns = MIN(*ret_next_ns, row->due_ns);
        }
    }
    return answer(of(base), &question, found, reterr);
}

static bool is_unfinished(const struct question *question, const struct work_row *row)
{
    return pawl__view_equal(question->task_id, row->item.task_id)
           && !pawl__work_item_has_ended(row->item.status);
}

static pawl_status model_unfinished(struct work_backend *base,
                                    pawl_view task_id,
                                    struct work_rows *found,
                                    pawl_error *reterr)
{
    struct question question = { .matches = is_unfinished, .order = by_id, .task_id = task_id };

    return answer(of(base), &question, found, reterr);
}

static pawl_status model_edges(struct work_backend *base,
                               const pawl_view *after_ids,
                               size_t count,
                               work_edge_visit *visit,
                               void *context,
                               pawl_error *reterr)
{
    const struct work_model *backend = of(base);

    (void)reterr;
    for (size_t i = 0; i < backend->edge_count; i++) {
        struct work_edge edge = { .work_item_id = pawl_view_of(backend->edges[i].work_item_id),
                                  .after_id = pawl_view_of(backend->edges[i].after_id) };
        for (size_t k = 0; k < count; k++) {
            if (pawl__view_equal(after_ids[k], edge.after_id)) {
                visit(context, &edge);
            }
        }
    }
    return PAWL_OK;
}

static pawl_status model_boundaries(struct work_backend *base,
                                    const struct work_now *now,
                                    const struct work_boundary *boundaries,
                                    size_t count,
                                    pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        pawl_checkpoint checkpoint = {
            .size = sizeof(pawl_checkpoint),
            .checkpoint_id = boundaries[i].checkpoint_id,
            .task_id = boundaries[i].task_id,
            .work_item_id = boundaries[i].work_item_id,
            .type = PAWL_CHECKPOINT_ERROR_BOUNDARY,
            .snapshot_data = boundaries[i].snapshot,
            .verified = true,
        };
        int64_t sequence;
        TRY(base->checkpoints->add(base, now, &checkpoint, &sequence, reterr));
    }
    return PAWL_OK;
}

const struct work_item_ops work_model_items = {
    .load = model_load,
    .pick = model_pick,
    .expired = model_expired,
    .due = model_due,
    .unfinished = model_unfinished,
    .put = work_model_put,
    .edges = model_edges,
    .add_edges = work_model_add_edges,
    .boundaries = model_boundaries,
    .tasks = work_model_tasks,
    .task_insert = work_model_task_insert,
    .task_set = work_model_task_set,
    .derive = work_model_derive,
    .settle = work_model_settle,
    .get = work_model_get,
    .list = work_model_list,
    .history = work_model_history,
    .task_read = work_model_task_read,
};
