/* Where a task resumes after its workers died. */
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "work/checkpoints/checkpoint.h"
#include "work/core/copy.h"
#include "work/items/item.h"
#include "work/keys/backend.h"

/* A list that grows as a chain in the arena, and becomes an array at the end. */
struct link {
    struct link *next;
};

struct links {
    struct link *first;
    struct link *last;
    size_t count;
    size_t bytes; /* of its data */
};

struct item_link {
    struct link link; /* first */
    pawl_item item;
};

struct key_link {
    struct link link; /* first */
    pawl_view key;
    pawl_view response;
};

/* A recovery that is being built. */
struct building {
    pawl_recovery *recovery;
    struct pawl__arena *arena;
    pawl_recover_options options;
    pawl_checkpoint *checkpoint; /* the one that was just read */
    struct links items;
    struct links keys;
    bool nomem;
};

void pawl_recovery_free(pawl_recovery *recovery)
{
    pawl__work_record_free(recovery);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "recovery");
}

static bool copy_task(void *context, const pawl_task *task)
{
    struct building *building = context;
    struct pawl__arena *arena = building->arena;
    pawl_task *copy = pawl__arena_take(arena, sizeof(*copy));

    building->nomem = copy == NULL || !pawl__work_copy_task(arena, task, copy);
    building->recovery->task = copy;
    return false;
}

static bool copy_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    struct building *building = context;
    struct pawl__arena *arena = building->arena;
    pawl_checkpoint *copy = pawl__arena_take(arena, sizeof(*copy));

    building->nomem = copy == NULL || !pawl__work_copy_checkpoint(arena, checkpoint, copy);
    building->checkpoint = copy;
    return false;
}

/* The first of the query, or NULL. */
static pawl_status first_of(pawl_work *work,
                            struct building *building,
                            const struct work_checkpoint_query *query,
                            pawl_error *reterr)
{
    building->checkpoint = NULL;
    TRY(work->backend->checkpoints->list(work->backend, query, copy_checkpoint, building, reterr));
    return building->nomem ? no_memory(reterr) : PAWL_OK;
}

static pawl_status holds_now(pawl_work *work,
                             const struct building *building,
                             bool *ret_holds,
                             pawl_error *reterr)
{
    const pawl_checkpoint *checkpoint = building->checkpoint;

    if (building->options.as_recorded) {
        *ret_holds = checkpoint->verified;
        return PAWL_OK;
    }
    pawl_status status = pawl__work_checkpoint_verify(work, checkpoint, ret_holds, NULL, reterr);
    return status == PAWL_OK
               ? PAWL_OK
               : pawl__fail_context(
                   reterr, status, "checkpoint %lld", (long long)checkpoint->sequence_number);
}

/* From the newest on until one holds. Reads one at a time: checking evidence may take long, and must not hold a
 * reader open. */
static pawl_status find_resume(pawl_work *work,
                               pawl_view task_id,
                               struct building *building,
                               pawl_error *reterr)
{
    pawl_recovery *recovery = building->recovery;
    struct work_checkpoint_query query = { .task_id = task_id, .newest_first = true, .limit = 1 };

    for (;;) {
        bool holds = false;
        TRY(first_of(work, building, &query, reterr));
        pawl_checkpoint *checkpoint = building->checkpoint;
        if (checkpoint == NULL) {
            return PAWL_OK;
        }
        query.below = checkpoint->sequence_number;
        if (checkpoint->type == PAWL_CHECKPOINT_ERROR_BOUNDARY) {
            continue;
        }
        TRY(holds_now(work, building, &holds, reterr));
        if (holds) {
            checkpoint->verified = true;
            recovery->resume = checkpoint;
            return PAWL_OK;
        }
        recovery->passed_over++;
    }
}

static pawl_status find_iteration_end(pawl_work *work,
                                      pawl_view task_id,
                                      struct building *building,
                                      pawl_error *reterr)
{
    pawl_checkpoint_type type = PAWL_CHECKPOINT_ITERATION_END;
    struct work_checkpoint_query query = {
        .task_id = task_id,
        .type = &type,
        .newest_first = true,
        .limit = 1,
    };

    TRY(first_of(work, building, &query, reterr));
    building->recovery->iteration_end = building->checkpoint;
    return PAWL_OK;
}

/* One more than is wanted shows that there are more. At least one is added, however large it is. */
static bool is_full(const struct building *building, const struct links *links, size_t bytes)
{
    const pawl_recover_options *options = &building->options;

    return (options->list_max > 0 && links->count == options->list_max)
           || (options->bytes_max > 0 && links->count > 0
               && bytes > options->bytes_max - MIN(links->bytes, options->bytes_max));
}

/* A new link of `size` bytes; NULL: the list is full, or no memory. */
static void *append(struct building *building, struct links *links, size_t size, size_t bytes)
{
    if (is_full(building, links, bytes)) {
        building->recovery->more = true;
        return NULL;
    }
    struct link *link = pawl__arena_take(building->arena, size);
    if (link == NULL) {
        building->nomem = true;
        return NULL;
    }
    link->next = NULL;
    *(links->last == NULL ? &links->first : &links->last->next) = link;
    links->last = link;
    links->count++;
    links->bytes += bytes;
    return link;
}

static bool copy_item(void *context, const struct work_row *row)
{
    struct building *building = context;
    const pawl_item *item = &row->item;
    size_t bytes = item->input_data.len + item->output_data.len + item->error_message.len;
    struct item_link *link = append(building, &building->items, sizeof(*link), bytes);

    building->nomem |= link != NULL && !pawl__work_copy_item(building->arena, item, &link->item);
    return link != NULL && !building->nomem;
}

static pawl_status list_items(pawl_work *work,
                              pawl_view task_id,
                              struct building *building,
                              pawl_error *reterr)
{
    pawl_recovery *recovery = building->recovery;
    struct work_item_query query = { .filter = PAWL_ITEM_FILTER_INIT };
    size_t i = 0;

    query.filter.task_id = task_id;
    query.filter.statuses = 1U << PAWL_ITEM_PENDING | 1U << PAWL_ITEM_IN_PROGRESS
                            | 1U << PAWL_ITEM_EXPIRED | 1U << PAWL_ITEM_WAITING;
    query.limit = building->options.list_max == 0 ? 0 : (uint64_t)building->options.list_max + 1;
    TRY(work->backend->items->list(work->backend, &query, copy_item, building, reterr));
    recovery->item_count = building->items.count;
    if (recovery->item_count == 0) {
        return PAWL_OK;
    }
    pawl_item *items = pawl__arena_take(building->arena, recovery->item_count * sizeof(*items));
    if (items == NULL || building->nomem) {
        return no_memory(reterr);
    }
    for (const struct link *at = building->items.first; at != NULL; at = at->next) {
        items[i++] = ((const struct item_link *)at)->item;
    }
    recovery->items = items;
    return PAWL_OK;
}

static bool copy_key(void *context, const struct work_key_row *row)
{
    struct building *building = context;
    struct pawl__arena *arena = building->arena;
    pawl_view response = row->response.len > 0 ? row->response : pawl_view_of("null");
    struct key_link *link = append(building, &building->keys, sizeof(*link), response.len);

    building->nomem |= link != NULL
                       && !(pawl__arena_copy(arena, row->key, &link->key)
                            && pawl__arena_copy(arena, response, &link->response));
    return link != NULL && !building->nomem;
}

static pawl_status list_keys(pawl_work *work,
                             pawl_view task_id,
                             struct building *building,
                             pawl_error *reterr)
{
    struct work_backend *backend = work->backend;
    pawl_recovery *recovery = building->recovery;
    struct work_now now;
    size_t i = 0;
    TRY(backend->store->read_now(backend, &now, reterr));
    TRY(backend->keys->cached(backend, &now, task_id, copy_key, building, reterr));
    recovery->key_count = building->keys.count;
    if (recovery->key_count == 0) {
        return PAWL_OK;
    }
    pawl_view *views = pawl__arena_take(building->arena, 2 * recovery->key_count * sizeof(*views));
    if (views == NULL || building->nomem) {
        return no_memory(reterr);
    }
    for (const struct link *at = building->keys.first; at != NULL; at = at->next, i++) {
        views[i] = ((const struct key_link *)at)->key;
        views[recovery->key_count + i] = ((const struct key_link *)at)->response;
    }
    recovery->keys = views;
    recovery->responses = &views[recovery->key_count];
    return PAWL_OK;
}

static pawl_status build(pawl_work *work,
                         pawl_view task_id,
                         struct building *building,
                         pawl_error *reterr)
{
    const struct work_task_query query = { .id = task_id };

    TRY(work->backend->items->task_read(work->backend, &query, copy_task, building, reterr));
    if (building->nomem) {
        return no_memory(reterr);
    }
    if (building->recovery->task == NULL) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no task '%.*s'", VIEW_ARGS(task_id));
    }
    TRY(find_resume(work, task_id, building, reterr));
    TRY(find_iteration_end(work, task_id, building, reterr));
    TRY(list_items(work, task_id, building, reterr));
    TRY(list_keys(work, task_id, building, reterr));
    return building->nomem ? no_memory(reterr) : PAWL_OK;
}

pawl_status pawl_work_recover(pawl_work *work,
                              pawl_view task_id,
                              pawl_recovery **ret_recovery,
                              pawl_error *reterr)
{
    return pawl_work_recover_with(work, task_id, NULL, ret_recovery, reterr);
}

pawl_status pawl_work_recover_with(pawl_work *work,
                                   pawl_view task_id,
                                   const pawl_recover_options *options,
                                   pawl_recovery **ret_recovery,
                                   pawl_error *reterr)
{
    NEED(work, ret_recovery, reterr);
    struct building building = { .options = PAWL_RECOVER_OPTIONS_INIT };
    TRY(pawl__work_check_name("task_id", task_id, reterr));
    if (options != NULL) {
        TRY(pawl__take_sized(
            "options", options, &building.options, sizeof(building.options), reterr));
    }
    building.recovery = pawl__work_record_new(sizeof(*building.recovery), &building.arena);
    if (building.recovery == NULL) {
        return no_memory(reterr);
    }
    pawl_status status = build(work, task_id, &building, reterr);
    if (status != PAWL_OK) {
        pawl_recovery_free(building.recovery);
        return status;
    }
    *ret_recovery = building.recovery;
    return PAWL_OK;
}
