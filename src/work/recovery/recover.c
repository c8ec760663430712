/* Where a task resumes after its workers died. */
#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "work/checkpoints/checkpoint.h"
#include "work/core/copy.h"
#include "work/items/item.h"
#include "work/keys/backend.h"

/* What is being put together. Lists grow as chains and become arrays at the end. */
struct building {
    pawl_recovery *recovery;
    struct pawl__arena *arena;
    pawl_recover_options options;
    pawl_checkpoint *checkpoint; /* the one that was just read */
    struct item_link {
        struct item_link *next;
        pawl_item item;
    } * items, **items_end;
    struct key_link {
        struct key_link *next;
        pawl_view key;
        pawl_view response;
    } * keys, **keys_end;
    size_t item_bytes;
    size_t key_bytes;
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
    pawl_task *kept = pawl__arena_take(arena, sizeof(*kept));

    building->nomem = kept == NULL || !pawl__work_copy_task(arena, task, kept);
    building->recovery->task = kept;
    return false;
}

static bool copy_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    struct building *building = context;
    struct pawl__arena *arena = building->arena;
    pawl_checkpoint *kept = pawl__arena_take(arena, sizeof(*kept));

    building->nomem = kept == NULL || !pawl__work_copy_checkpoint(arena, checkpoint, kept);
    building->checkpoint = kept;
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

/* From the newest on until one holds. One after the other, because evidence takes its time and
 * nobody may wait for it. */
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

/* One more than is wanted tells that there are more. At least one is let in, however long it is. */
static bool is_full(const struct building *building, size_t count, size_t bytes, size_t more_bytes)
{
    const pawl_recover_options *options = &building->options;
    bool full = (options->list_max > 0 && count == options->list_max)
                || (options->bytes_max > 0 && count > 0
                    && more_bytes > options->bytes_max - MIN(bytes, options->bytes_max));

    building->recovery->more |= full;
    return full;
}

static size_t bytes_of(const pawl_item *item)
{
    return item->input_data.len + item->output_data.len + item->error_message.len;
}

static bool copy_item(void *context, const struct work_row *row)
{
    struct building *building = context;
    struct pawl__arena *arena = building->arena;

    size_t bytes = bytes_of(&row->item);

    if (is_full(building, building->recovery->item_count, building->item_bytes, bytes)) {
        return false;
    }
    building->item_bytes += bytes;
    struct item_link *link = pawl__arena_take(arena, sizeof(*link));
    if (link == NULL || !pawl__work_copy_item(arena, &row->item, &link->item)) {
        building->nomem = true;
        return false;
    }
    link->next = NULL;
    *building->items_end = link;
    building->items_end = &link->next;
    building->recovery->item_count++;
    return true;
}

static pawl_status list_items(pawl_work *work,
                              pawl_view task_id,
                              struct building *building,
                              pawl_error *reterr)
{
    pawl_recovery *recovery = building->recovery;
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    size_t i = 0;

    filter.task_id = task_id;
    filter.statuses = 1U << PAWL_ITEM_PENDING | 1U << PAWL_ITEM_IN_PROGRESS
                      | 1U << PAWL_ITEM_EXPIRED | 1U << PAWL_ITEM_WAITING;
    filter.limit = building->options.list_max == 0 ? 0 : (uint64_t)building->options.list_max + 1;
    TRY(work->backend->items->list(work->backend, &filter, copy_item, building, reterr));
    if (recovery->item_count == 0) {
        return PAWL_OK;
    }
    pawl_item *items = pawl__arena_take(building->arena, recovery->item_count * sizeof(*items));
    if (items == NULL || building->nomem) {
        return no_memory(reterr);
    }
    for (const struct item_link *at = building->items; at != NULL; at = at->next) {
        items[i++] = at->item;
    }
    recovery->items = items;
    return PAWL_OK;
}

static bool copy_key(void *context, const struct work_key_row *row)
{
    struct building *building = context;
    struct pawl__arena *arena = building->arena;
    pawl_view response = row->response.len > 0 ? row->response : pawl_view_of("null");

    if (is_full(building, building->recovery->key_count, building->key_bytes, response.len)) {
        return false;
    }
    building->key_bytes += response.len;
    struct key_link *link = pawl__arena_take(arena, sizeof(*link));
    if (link == NULL || !pawl__arena_copy(arena, row->key, &link->key)
        || !pawl__arena_copy(arena, response, &link->response)) {
        building->nomem = true;
        return false;
    }
    link->next = NULL;
    *building->keys_end = link;
    building->keys_end = &link->next;
    building->recovery->key_count++;
    return true;
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
    if (recovery->key_count == 0) {
        return PAWL_OK;
    }
    pawl_view *views = pawl__arena_take(building->arena, 2 * recovery->key_count * sizeof(*views));
    if (views == NULL || building->nomem) {
        return no_memory(reterr);
    }
    for (const struct key_link *at = building->keys; at != NULL; at = at->next, i++) {
        views[i] = at->key;
        views[recovery->key_count + i] = at->response;
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
    NEED(work, reterr);
    NEED(ret_recovery, reterr);
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
    building.items_end = &building.items;
    building.keys_end = &building.keys;
    pawl_status status = build(work, task_id, &building, reterr);
    if (status != PAWL_OK) {
        pawl_recovery_free(building.recovery);
        return status;
    }
    *ret_recovery = building.recovery;
    return PAWL_OK;
}
