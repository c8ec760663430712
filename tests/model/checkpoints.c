/* Checkpoints in memory. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/list.h"
#include "work/checkpoints/backend.h"
#include "work/core/copy.h"

struct model_checkpoint {
    pawl_checkpoint checkpoint;
    struct pawl__arena arena;
};

struct model_counter {
    char *task_id;
    int64_t last;
};

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a checkpoint");
}

static void free_checkpoint(void *row)
{
    struct model_checkpoint *checkpoint = row;

    pawl__arena_done(&checkpoint->arena);
    free(checkpoint);
}

static void free_counter(void *row)
{
    struct model_counter *counter = row;

    free(counter->task_id);
    free(counter);
}

static struct model_checkpoint *copy_of(const pawl_checkpoint *checkpoint)
{
    struct model_checkpoint *copy = calloc(1, sizeof(*copy));

    if (copy != NULL && !pawl__work_copy_checkpoint(&copy->arena, checkpoint, &copy->checkpoint)) {
        free_checkpoint(copy);
        return NULL;
    }
    return copy;
}

/* Where it stands; `count` when it is not there. */
static size_t place_of(const struct work_model *backend, pawl_view checkpoint_id)
{
    const struct work_model_list *list = &backend->checkpoints;

    for (size_t i = 0; i < list->count; i++) {
        const struct model_checkpoint *row = list->rows[i];
        if (row != NULL && pawl__view_equal(row->checkpoint.checkpoint_id, checkpoint_id)) {
            return i;
        }
    }
    return list->count;
}

/* --- Inside of a transaction --- */

static pawl_status model_find(struct work_backend *base,
                              pawl_view checkpoint_id,
                              struct pawl__arena *arena,
                              pawl_checkpoint **ret_checkpoint,
                              pawl_error *reterr)
{
    size_t place = place_of(of(base), checkpoint_id);

    *ret_checkpoint = NULL;
    if (place == of(base)->checkpoints.count) {
        return PAWL_OK;
    }
    const struct model_checkpoint *row = of(base)->checkpoints.rows[place];
    pawl_checkpoint *kept = pawl__arena_take(arena, sizeof(*kept));
    if (kept == NULL || !pawl__work_copy_checkpoint(arena, &row->checkpoint, kept)) {
        return no_memory(reterr);
    }
    *ret_checkpoint = kept;
    return PAWL_OK;
}

static pawl_status next_number(struct work_model *backend,
                               pawl_view task_id,
                               int64_t *ret_number,
                               pawl_error *reterr)
{
    struct work_model_list *list = &backend->counters;
    struct model_counter *counter = calloc(1, sizeof(*counter));
    size_t place = 0;

    while (place < list->count
           && !pawl__view_is(task_id, ((struct model_counter *)list->rows[place])->task_id)) {
        place++;
    }
    if (counter == NULL) {
        return no_memory(reterr);
    }
    counter->task_id = pawl__view_dup(task_id);
    counter->last =
        1 + (place < list->count ? ((struct model_counter *)list->rows[place])->last : 0);
    if (counter->task_id == NULL) {
        free(counter);
        return no_memory(reterr);
    }
    *ret_number = counter->last;
    return place < list->count ? work_model_replace(backend, list, place, counter, reterr)
                               : work_model_add(backend, list, counter, reterr);
}

static pawl_status model_add(struct work_backend *base,
                             const struct work_now *now,
                             const pawl_checkpoint *checkpoint,
                             int64_t *ret_sequence,
                             pawl_error *reterr)
{
    struct model_checkpoint *row = copy_of(checkpoint);

    if (row == NULL) {
        return no_memory(reterr);
    }
    pawl_status status =
        next_number(of(base), checkpoint->task_id, &row->checkpoint.sequence_number, reterr);
    if (status != PAWL_OK) {
        free_checkpoint(row);
        return status;
    }
    int64_t sequence = row->checkpoint.sequence_number;
    row->checkpoint.created_at_us = now->wall_us;
    row->checkpoint.verified = true;
    status = work_model_add(of(base), &of(base)->checkpoints, row, reterr);
    if (status == PAWL_OK) {
        *ret_sequence = sequence;
    }
    return status;
}

/* Results themselves are for SQL to look at. */
static pawl_status model_record(struct work_backend *base,
                                const struct work_now *now,
                                const pawl_checkpoint *checkpoint,
                                const struct work_checkpoint_result *results,
                                size_t count,
                                pawl_error *reterr)
{
    struct work_model_list *list = &of(base)->checkpoints;
    size_t place = place_of(of(base), checkpoint->checkpoint_id);

    (void)now;
    if (place == list->count) {
        return PAWL_OK;
    }
    struct model_checkpoint *row =
        copy_of(&((struct model_checkpoint *)list->rows[place])->checkpoint);
    if (row == NULL) {
        return no_memory(reterr);
    }
    row->checkpoint.verified = true;
    for (size_t i = 0; i < count; i++) {
        row->checkpoint.verified = row->checkpoint.verified && results[i].ok;
    }
    return work_model_replace(of(base), list, place, row, reterr);
}

static pawl_status model_walk(struct work_backend *base,
                              pawl_view task_id,
                              work_checkpoint_light_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    const struct work_model_list *list = &of(base)->checkpoints;

    (void)reterr;
    for (size_t i = list->count; i-- > 0;) {
        const struct model_checkpoint *row = list->rows[i];
        if (row != NULL && pawl__view_equal(row->checkpoint.task_id, task_id)
            && !visit(context,
                      row->checkpoint.checkpoint_id,
                      row->checkpoint.type,
                      row->checkpoint.verified)) {
            break;
        }
    }
    return PAWL_OK;
}

/* There is no archive: nobody could read it. */
static pawl_status model_remove(struct work_backend *base,
                                const struct work_now *now,
                                pawl_view task_id,
                                const pawl_view *ids,
                                size_t count,
                                bool archive,
                                pawl_error *reterr)
{
    struct work_model_list *list = &of(base)->checkpoints;
    pawl_status status = PAWL_OK;

    (void)now;
    (void)task_id;
    (void)archive;
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        size_t place = place_of(of(base), ids[i]);
        if (place < list->count) {
            status = work_model_remove(of(base), list, place, reterr);
        }
    }
    return status;
}

/* --- Reading: copies, so that `visit` may call whatever it likes --- */

struct copies {
    struct pawl__arena arena;
    struct copy_link {
        struct copy_link *next;
        pawl_checkpoint checkpoint;
    } * first, **end;
};

static bool keep_copy(struct copies *copies, const pawl_checkpoint *checkpoint)
{
    struct copy_link *link = pawl__arena_take(&copies->arena, sizeof(*link));

    if (link == NULL
        || !pawl__work_copy_checkpoint(&copies->arena, checkpoint, &link->checkpoint)) {
        return false;
    }
    link->next = NULL;
    *copies->end = link;
    copies->end = &link->next;
    return true;
}

static bool matches(const struct work_checkpoint_query *query, const pawl_checkpoint *checkpoint)
{
    return pawl__view_equal(checkpoint->task_id, query->task_id)
           && (query->work_item_id.len == 0
               || pawl__view_equal(checkpoint->work_item_id, query->work_item_id))
           && (query->type == NULL || *query->type == checkpoint->type)
           && (!query->verified_only || checkpoint->verified)
           && (query->below == 0 || checkpoint->sequence_number < query->below)
           && (query->from == 0 || checkpoint->sequence_number >= query->from)
           && (query->exactly == 0 || checkpoint->sequence_number == query->exactly);
}

/* Numbers ascend along the list. */
static bool gather(const struct work_model_list *list,
                   const struct work_checkpoint_query *query,
                   struct copies *copies)
{
    uint64_t left = query->limit == 0 ? UINT64_MAX : query->limit;

    for (size_t i = 0; i < list->count && left > 0; i++) {
        const struct model_checkpoint *row =
            list->rows[query->newest_first ? list->count - 1 - i : i];
        if (row != NULL && matches(query, &row->checkpoint)) {
            if (!keep_copy(copies, &row->checkpoint)) {
                return false;
            }
            left--;
        }
    }
    return true;
}

static pawl_status show(struct copies *copies,
                        bool complete,
                        pawl_checkpoint_visit visit,
                        void *context,
                        pawl_error *reterr)
{
    for (const struct copy_link *at = copies->first; complete && at != NULL; at = at->next) {
        if (!visit(context, &at->checkpoint)) {
            break;
        }
    }
    pawl__arena_done(&copies->arena);
    return complete ? PAWL_OK : no_memory(reterr);
}

static pawl_status model_list(struct work_backend *base,
                              const struct work_checkpoint_query *query,
                              pawl_checkpoint_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    struct copies copies = { .arena = ARENA_INIT };

    copies.end = &copies.first;
    pawl__lock(&of(base)->lock);
    bool complete = gather(&of(base)->checkpoints, query, &copies);
    pawl__unlock(&of(base)->lock);
    return show(&copies, complete, visit, context, reterr);
}

static pawl_status model_get(struct work_backend *base,
                             pawl_view checkpoint_id,
                             pawl_checkpoint_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    struct copies copies = { .arena = ARENA_INIT };
    bool complete = true;

    copies.end = &copies.first;
    pawl__lock(&of(base)->lock);
    size_t place = place_of(of(base), checkpoint_id);
    bool found = place < of(base)->checkpoints.count;
    if (found) {
        const struct model_checkpoint *row = of(base)->checkpoints.rows[place];
        complete = keep_copy(&copies, &row->checkpoint);
    }
    pawl__unlock(&of(base)->lock);
    pawl_status status = show(&copies, complete, visit, context, reterr);
    return status == PAWL_OK && !found ? pawl__fail(
               reterr, PAWL_NOT_FOUND, "no checkpoint '%.*s'", VIEW_ARGS(checkpoint_id))
                                       : status;
}

static uint64_t count_of(const struct work_model *backend, const char *task_id)
{
    uint64_t count = 0;

    for (size_t i = 0; i < backend->checkpoints.count; i++) {
        const struct model_checkpoint *row = backend->checkpoints.rows[i];
        count += row != NULL && pawl__view_is(row->checkpoint.task_id, task_id);
    }
    return count;
}

/* Only for retention, which keeps what it is told and calls nothing. */
static pawl_status model_crowded(struct work_backend *base,
                                 uint64_t more_than,
                                 work_count_visit *visit,
                                 void *context,
                                 pawl_error *reterr)
{
    struct work_model *backend = of(base);
    bool goes_on = true;

    (void)reterr;
    pawl__lock(&backend->lock);
    for (size_t i = 0; i < backend->counters.count && goes_on; i++) {
        const struct model_counter *counter = backend->counters.rows[i];
        uint64_t count = count_of(backend, counter->task_id);
        if (count > more_than) {
            goes_on = visit(context, pawl_view_of(counter->task_id), count);
        }
    }
    pawl__unlock(&backend->lock);
    return PAWL_OK;
}

static const struct work_checkpoint_ops model_checkpoints = {
    .find = model_find,
    .add = model_add,
    .record = model_record,
    .walk = model_walk,
    .remove = model_remove,
    .get = model_get,
    .list = model_list,
    .crowded = model_crowded,
};

void work_model_checkpoints_set_up(struct work_model *backend)
{
    backend->base.checkpoints = &model_checkpoints;
    backend->checkpoints.free_row = free_checkpoint;
    backend->counters.free_row = free_counter;
}
