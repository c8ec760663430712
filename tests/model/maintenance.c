/* Statistics and retention in memory. Rows of the lists begin with what they keep. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/list.h"
#include "work/core/backend_maintenance.h"
#include "work/core/copy.h"
#include "work/items/item.h"
#include "work/keys/decide.h"

enum { GROWTH_TASKS = 10 };

#define US_PER_HOUR (3600.0 * 1e6)
#define US_PER_MINUTE (60.0 * 1e6)

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for statistics");
}

/* --- Inside of a transaction: what is removed goes at the commit --- */

struct removal {
    struct work_undo base; /* first */
    struct work_model *backend;
    struct work_model_item *item;
};

static bool is_of(const struct work_model_event *event, pawl_view id)
{
    return pawl__view_equal(event->item->work_item_id, id);
}

static void drop_history(struct work_model *backend, pawl_view id)
{
    size_t kept = 0;

    for (size_t i = 0; i < backend->history_count; i++) {
        if (is_of(&backend->history[i], id)) {
            pawl_item_free(backend->history[i].item);
        } else {
            backend->history[kept++] = backend->history[i];
        }
    }
    backend->history_count = kept;
}

static void drop_edges(struct work_model *backend, pawl_view id)
{
    size_t kept = 0;

    for (size_t i = 0; i < backend->edge_count; i++) {
        struct work_model_edge *edge = &backend->edges[i];
        if (pawl__view_is(id, edge->work_item_id) || pawl__view_is(id, edge->after_id)) {
            free(edge->work_item_id);
            free(edge->after_id);
        } else {
            backend->edges[kept++] = *edge;
        }
    }
    backend->edge_count = kept;
}

static void carry_out(struct work_undo *base)
{
    struct removal *removal = (struct removal *)base;
    struct work_model_item *item = removal->item;
    pawl_view id = item->row.item.work_item_id;

    removal->backend->token_floor = MAX(removal->backend->token_floor, item->row.item.token);
    drop_history(removal->backend, id);
    drop_edges(removal->backend, id);
    (void)pawl__map_remove(removal->backend->items, id);
    pawl_item_free(item->copy);
    free(item);
    free(removal);
}

static void call_off(struct work_undo *base)
{
    free(base);
}

static bool is_old(const struct work_model_item *item, int64_t ended_before_us)
{
    return pawl__work_item_has_ended(item->row.item.status)
           && item->row.item.updated_at_us < ended_before_us;
}

static uint64_t history_of(const struct work_model *backend, pawl_view id)
{
    uint64_t count = 0;

    for (size_t i = 0; i < backend->history_count; i++) {
        count += is_of(&backend->history[i], id);
    }
    return count;
}

static pawl_status model_remove_items(struct work_backend *base,
                                      int64_t ended_before_us,
                                      const pawl_view *ids,
                                      size_t count,
                                      uint64_t *ret_items,
                                      uint64_t *ret_history,
                                      pawl_error *reterr)
{
    struct work_model *backend = of(base);
    uint64_t items = 0;
    uint64_t history = 0;

    for (size_t i = 0; i < count; i++) {
        struct work_model_item *item = pawl__map_get(backend->items, ids[i]);
        if (item == NULL || !is_old(item, ended_before_us)) {
            continue;
        }
        struct removal *removal = calloc(1, sizeof(*removal));
        if (removal == NULL) {
            return no_memory(reterr);
        }
        *removal = (struct removal){
            .base = { .undo = call_off, .forget = carry_out },
            .backend = backend,
            .item = item,
        };
        work_model_remember(backend, &removal->base);
        items++;
        history += history_of(backend, ids[i]);
    }
    *ret_items = items;
    *ret_history = history;
    return PAWL_OK;
}

/* --- Reading --- */

static void count_item(const pawl_item *item,
                       const struct work_stats_at *at,
                       pawl_work_stats *stats)
{
    uint64_t *const counts[] = {
        [PAWL_ITEM_PENDING] = &stats->pending,     [PAWL_ITEM_IN_PROGRESS] = &stats->in_progress,
        [PAWL_ITEM_COMPLETED] = &stats->completed, [PAWL_ITEM_FAILED] = &stats->failed,
        [PAWL_ITEM_EXPIRED] = &stats->pending,     [PAWL_ITEM_WAITING] = &stats->waiting,
    };

    (*counts[item->status])++;
    if (item->status == PAWL_ITEM_IN_PROGRESS) {
        int64_t since_us = at->wall_us - item->heartbeat_at_us;
        stats->stale_leases += item->heartbeat_at_us < at->stale_before_us;
        stats->avg_minutes_since_heartbeat += (double)since_us / US_PER_MINUTE;
    }
    if (item->status == PAWL_ITEM_PENDING
        && (stats->oldest_pending_us == 0 || item->created_at_us < stats->oldest_pending_us)) {
        stats->oldest_pending_us = item->created_at_us;
    }
}

static void count_lists(const struct work_model *backend, pawl_work_stats *stats)
{
    for (size_t i = 0; i < backend->checkpoints.count; i++) {
        stats->checkpoints += backend->checkpoints.rows[i] != NULL;
    }
    for (size_t i = 0; i < backend->keys.count; i++) {
        const struct work_key_row *row = backend->keys.rows[i];
        if (row != NULL) {
            stats->keys_pending += row->state == WORK_KEY_PENDING;
            stats->keys_completed += row->state == WORK_KEY_COMPLETED;
            stats->keys_failed += row->state == WORK_KEY_FAILED;
        }
    }
}

static pawl_status model_stats(struct work_backend *base,
                               const struct work_stats_at *at,
                               pawl_work_stats *ret_stats,
                               pawl_error *reterr)
{
    struct work_model *backend = of(base);
    pawl_work_stats stats = { .size = sizeof(pawl_work_stats) };
    size_t cursor = 0;
    void *item;

    (void)reterr;
    pawl__lock(&backend->lock);
    while (pawl__map_next(backend->items, &cursor, NULL, &item)) {
        count_item(&((const struct work_model_item *)item)->row.item, at, &stats);
    }
    count_lists(backend, &stats);
    pawl__unlock(&backend->lock);
    stats.active_leases = stats.in_progress;
    if (stats.active_leases > 0) {
        stats.avg_minutes_since_heartbeat /= (double)stats.active_leases;
    }
    *ret_stats = stats;
    return PAWL_OK;
}

/* By type, then by the status's name, as SQL has it. */
static int by_type(const void *a, const void *b)
{
    const pawl_type_stats *one = a;
    const pawl_type_stats *other = b;
    int order = pawl__work_view_order(one->work_type, other->work_type);

    return order != 0
               ? order
               : pawl__work_view_order(pawl_view_of(pawl__work_item_status_text(one->status)),
                                       pawl_view_of(pawl__work_item_status_text(other->status)));
}

/* One row for each item, so that equal ones stand together once they are sorted. */
static pawl_type_stats *copy_types(struct work_model *backend,
                                   const struct work_now *now,
                                   struct pawl__arena *arena,
                                   size_t *ret_count)
{
    size_t room = pawl__map_count(backend->items) + 1;
    pawl_type_stats *rows = pawl__arena_take(arena, room * sizeof(*rows));
    size_t cursor = 0;
    size_t count = 0;
    void *value;

    while (rows != NULL && pawl__map_next(backend->items, &cursor, NULL, &value)) {
        const pawl_item *item = &((const struct work_model_item *)value)->row.item;
        rows[count] = (pawl_type_stats){
            .size = sizeof(pawl_type_stats),
            .status = item->status,
            .count = 1,
            .avg_age_hours = (double)(now->wall_us - item->created_at_us) / US_PER_HOUR,
        };
        if (!pawl__arena_copy(arena, item->work_type, &rows[count++].work_type)) {
            rows = NULL;
        }
    }
    *ret_count = count;
    return rows;
}

static pawl_status model_type_stats(struct work_backend *base,
                                    const struct work_now *now,
                                    pawl_type_stats_visit visit,
                                    void *context,
                                    pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    size_t count = 0;
    bool goes_on = true;

    pawl__lock(&of(base)->lock);
    pawl_type_stats *rows = copy_types(of(base), now, &arena, &count);
    pawl__unlock(&of(base)->lock);
    if (rows != NULL) {
        qsort(rows, count, sizeof(*rows), by_type);
    }
    for (size_t i = 0; rows != NULL && i < count && goes_on;) {
        pawl_type_stats sum = rows[i];
        for (i++; i < count && by_type(&rows[i], &sum) == 0; i++) {
            sum.count++;
            sum.avg_age_hours += rows[i].avg_age_hours;
        }
        sum.avg_age_hours /= (double)sum.count;
        goes_on = visit(context, &sum);
    }
    bool complete = rows != NULL;
    pawl__arena_done(&arena);
    return complete ? PAWL_OK : no_memory(reterr);
}

static int by_growth(const void *a, const void *b)
{
    const pawl_checkpoint_growth *one = a;
    const pawl_checkpoint_growth *other = b;

    if (one->checkpoint_count != other->checkpoint_count) {
        return one->checkpoint_count > other->checkpoint_count ? -1 : 1;
    }
    return pawl__work_view_order(one->task_id, other->task_id);
}

static bool add_growth(pawl_checkpoint_growth *rows,
                       size_t *count,
                       const pawl_checkpoint *checkpoint,
                       struct pawl__arena *arena)
{
    size_t i = 0;

    while (i < *count && !pawl__view_equal(rows[i].task_id, checkpoint->task_id)) {
        i++;
    }
    if (i == *count) {
        rows[i] = (pawl_checkpoint_growth){ .size = sizeof(pawl_checkpoint_growth),
                                            .first_at_us = checkpoint->created_at_us };
        if (!pawl__arena_copy(arena, checkpoint->task_id, &rows[i].task_id)) {
            return false;
        }
        (*count)++;
    }
    rows[i].checkpoint_count++;
    rows[i].max_sequence = MAX(rows[i].max_sequence, checkpoint->sequence_number);
    rows[i].last_at_us = MAX(rows[i].last_at_us, checkpoint->created_at_us);
    return true;
}

static pawl_checkpoint_growth *copy_growth(struct work_model *backend,
                                           struct pawl__arena *arena,
                                           size_t *ret_count)
{
    const struct work_model_list *list = &backend->checkpoints;
    pawl_checkpoint_growth *rows = pawl__arena_take(arena, (list->count + 1) * sizeof(*rows));

    for (size_t i = 0; rows != NULL && i < list->count; i++) {
        if (list->rows[i] != NULL && !add_growth(rows, ret_count, list->rows[i], arena)) {
            rows = NULL;
        }
    }
    return rows;
}

static pawl_status model_growth(struct work_backend *base,
                                pawl_checkpoint_growth_visit visit,
                                void *context,
                                pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    size_t count = 0;

    pawl__lock(&of(base)->lock);
    pawl_checkpoint_growth *rows = copy_growth(of(base), &arena, &count);
    pawl__unlock(&of(base)->lock);
    if (rows != NULL) {
        qsort(rows, count, sizeof(*rows), by_growth);
        for (size_t i = 0; i < MIN(count, (size_t)GROWTH_TASKS) && visit(context, &rows[i]); i++) {
        }
    }
    bool complete = rows != NULL;
    pawl__arena_done(&arena);
    return complete ? PAWL_OK : no_memory(reterr);
}

static int by_view(const void *a, const void *b)
{
    return pawl__work_view_order(*(const pawl_view *)a, *(const pawl_view *)b);
}

/* Only for retention, which keeps what it is told and calls nothing. */
static pawl_status model_old_items(struct work_backend *base,
                                   int64_t ended_before_us,
                                   pawl_view after_id,
                                   size_t count,
                                   work_count_visit *visit,
                                   void *context,
                                   pawl_error *reterr)
{
    struct work_model *backend = of(base);
    size_t cursor = 0;
    size_t found = 0;
    void *item;

    pawl__lock(&backend->lock);
    pawl_view *ids = calloc(pawl__map_count(backend->items) + 1, sizeof(*ids));
    while (ids != NULL && pawl__map_next(backend->items, &cursor, NULL, &item)) {
        pawl_view id = ((const struct work_model_item *)item)->row.item.work_item_id;
        if (is_old(item, ended_before_us) && pawl__work_view_order(id, after_id) > 0) {
            ids[found++] = id;
        }
    }
    if (ids != NULL) {
        qsort(ids, found, sizeof(*ids), by_view);
        for (size_t i = 0;
             i < MIN(found, count) && visit(context, ids[i], history_of(backend, ids[i]));
             i++) {
        }
    }
    pawl__unlock(&backend->lock);
    bool complete = ids != NULL;
    free(ids);
    return complete ? PAWL_OK : no_memory(reterr);
}

static const struct work_maintenance_ops model_care = {
    .remove_items = model_remove_items,
    .stats = model_stats,
    .type_stats = model_type_stats,
    .growth = model_growth,
    .old_items = model_old_items,
};

void work_model_set_up(struct work_model *backend)
{
    backend->base.maintenance = &model_care;
    work_model_checkpoints_set_up(backend);
    work_model_keys_set_up(backend);
    work_model_schedules_set_up(backend);
}

void work_model_maintenance_done(struct work_model *backend)
{
    work_model_list_done(&backend->checkpoints);
    work_model_list_done(&backend->counters);
    work_model_list_done(&backend->keys);
    work_model_list_done(&backend->schedules);
    work_model_list_done(&backend->fires);
}
