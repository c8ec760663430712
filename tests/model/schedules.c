/* Schedules in memory. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "model/list.h"
#include "work/core/copy.h"
#include "work/items/item.h"
#include "work/schedules/backend.h"

struct model_schedule {
    pawl_schedule schedule;
    struct pawl__arena arena;
};

struct model_fire {
    char *schedule_id;
    int64_t slot_us;
};

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for a schedule");
}

static void free_schedule(void *row)
{
    struct model_schedule *schedule = row;

    pawl__arena_done(&schedule->arena);
    free(schedule);
}

static void free_fire(void *row)
{
    struct model_fire *fire = row;

    free(fire->schedule_id);
    free(fire);
}

static size_t place_of(const struct work_model *backend, pawl_view schedule_id)
{
    const struct work_model_list *list = &backend->schedules;

    for (size_t i = 0; i < list->count; i++) {
        const struct model_schedule *row = list->rows[i];
        if (row != NULL && pawl__view_equal(row->schedule.schedule_id, schedule_id)) {
            return i;
        }
    }
    return list->count;
}

static int64_t last_slot(const struct work_model *backend, pawl_view schedule_id)
{
    int64_t last_us = 0;

    for (size_t i = 0; i < backend->fires.count; i++) {
        const struct model_fire *fire = backend->fires.rows[i];
        if (fire != NULL && pawl__view_is(schedule_id, fire->schedule_id)) {
            last_us = MAX(last_us, fire->slot_us);
        }
    }
    return last_us;
}

static bool keep(const struct work_model *backend,
                 const struct model_schedule *row,
                 struct pawl__arena *arena,
                 pawl_schedule *ret_schedule)
{
    bool kept = pawl__work_copy_schedule(arena, &row->schedule, ret_schedule);

    if (kept) {
        ret_schedule->last_slot_us = last_slot(backend, row->schedule.schedule_id);
    }
    return kept;
}

static pawl_status model_load(struct work_backend *base,
                              pawl_view schedule_id,
                              struct pawl__arena *arena,
                              pawl_schedule **ret_schedule,
                              pawl_error *reterr)
{
    size_t place = place_of(of(base), schedule_id);

    *ret_schedule = NULL;
    if (place == of(base)->schedules.count) {
        return PAWL_OK;
    }
    pawl_schedule *kept = pawl__arena_take(arena, sizeof(*kept));
    if (kept == NULL || !keep(of(base), of(base)->schedules.rows[place], arena, kept)) {
        return no_memory(reterr);
    }
    *ret_schedule = kept;
    return PAWL_OK;
}

static pawl_status model_put(struct work_backend *base,
                             const struct work_now *now,
                             const pawl_schedule *schedule,
                             pawl_error *reterr)
{
    struct work_model_list *list = &of(base)->schedules;
    size_t place = place_of(of(base), schedule->schedule_id);
    struct model_schedule *row = calloc(1, sizeof(*row));

    (void)now;
    if (row == NULL || !pawl__work_copy_schedule(&row->arena, schedule, &row->schedule)) {
        if (row != NULL) {
            free_schedule(row);
        }
        return no_memory(reterr);
    }
    return place < list->count ? work_model_replace(of(base), list, place, row, reterr)
                               : work_model_add(of(base), list, row, reterr);
}

static pawl_status model_remove(struct work_backend *base,
                                pawl_view schedule_id,
                                bool *ret_removed,
                                pawl_error *reterr)
{
    struct work_model *backend = of(base);
    size_t place = place_of(backend, schedule_id);
    pawl_status status = PAWL_OK;

    *ret_removed = place < backend->schedules.count;
    if (!*ret_removed) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < backend->fires.count && status == PAWL_OK; i++) {
        const struct model_fire *fire = backend->fires.rows[i];
        if (fire != NULL && pawl__view_is(schedule_id, fire->schedule_id)) {
            status = work_model_remove(backend, &backend->fires, i, reterr);
        }
    }
    return status == PAWL_OK ? work_model_remove(backend, &backend->schedules, place, reterr)
                             : status;
}

static pawl_status model_fired(struct work_backend *base,
                               pawl_view schedule_id,
                               int64_t slot_us,
                               bool *ret_fired,
                               pawl_error *reterr)
{
    (void)reterr;
    *ret_fired = false;
    for (size_t i = 0; i < of(base)->fires.count; i++) {
        const struct model_fire *fire = of(base)->fires.rows[i];
        if (fire != NULL && fire->slot_us == slot_us
            && pawl__view_is(schedule_id, fire->schedule_id)) {
            *ret_fired = true;
        }
    }
    return PAWL_OK;
}

static pawl_status model_fire(struct work_backend *base,
                              pawl_view schedule_id,
                              int64_t slot_us,
                              pawl_view work_item_id,
                              pawl_error *reterr)
{
    struct model_fire *fire = calloc(1, sizeof(*fire));

    (void)work_item_id;
    if (fire == NULL) {
        return no_memory(reterr);
    }
    fire->schedule_id = pawl__view_dup(schedule_id);
    fire->slot_us = slot_us;
    if (fire->schedule_id == NULL) {
        free(fire);
        return no_memory(reterr);
    }
    return work_model_add(of(base), &of(base)->fires, fire, reterr);
}

static pawl_status model_forget(struct work_backend *base,
                                pawl_view schedule_id,
                                int64_t before_us,
                                pawl_error *reterr)
{
    struct work_model_list *fires = &of(base)->fires;
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < fires->count && status == PAWL_OK; i++) {
        const struct model_fire *fire = fires->rows[i];
        if (fire != NULL && fire->slot_us < before_us
            && pawl__view_is(schedule_id, fire->schedule_id)) {
            status = work_model_remove(of(base), fires, i, reterr);
        }
    }
    return status;
}

static pawl_status model_move(struct work_backend *base,
                              const struct work_now *now,
                              pawl_view schedule_id,
                              int64_t next_slot_us,
                              pawl_error *reterr)
{
    size_t place = place_of(of(base), schedule_id);

    if (place == of(base)->schedules.count) {
        return PAWL_OK;
    }
    pawl_schedule moved =
        ((const struct model_schedule *)of(base)->schedules.rows[place])->schedule;
    moved.next_slot_us = next_slot_us;
    return model_put(base, now, &moved, reterr);
}

/* --- Reading: copies, so that `visit` may call whatever it likes --- */

static int by_id(const void *a, const void *b)
{
    return pawl__work_view_order(((const pawl_schedule *)a)->schedule_id,
                                 ((const pawl_schedule *)b)->schedule_id);
}

static pawl_status copy_all(struct work_model *backend,
                            struct pawl__arena *arena,
                            pawl_schedule **ret_schedules,
                            size_t *ret_count,
                            pawl_error *reterr)
{
    struct work_model_list *list = &backend->schedules;
    pawl_schedule *schedules = pawl__arena_take(arena, (list->count + 1) * sizeof(*schedules));
    size_t count = 0;

    for (size_t i = 0; schedules != NULL && i < list->count; i++) {
        if (list->rows[i] != NULL && !keep(backend, list->rows[i], arena, &schedules[count++])) {
            schedules = NULL;
        }
    }
    *ret_schedules = schedules;
    *ret_count = count;
    return schedules == NULL ? no_memory(reterr) : PAWL_OK;
}

static pawl_status model_list(struct work_backend *base,
                              pawl_schedule_visit visit,
                              void *context,
                              pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    pawl_schedule *schedules;
    size_t count;

    pawl__lock(&of(base)->lock);
    pawl_status status = copy_all(of(base), &arena, &schedules, &count, reterr);
    pawl__unlock(&of(base)->lock);
    if (status == PAWL_OK) {
        qsort(schedules, count, sizeof(*schedules), by_id);
        for (size_t i = 0; i < count && visit(context, &schedules[i]); i++) {
        }
    }
    pawl__arena_done(&arena);
    return status;
}

static const struct work_schedule_ops model_schedules = {
    .load = model_load,
    .put = model_put,
    .remove = model_remove,
    .fired = model_fired,
    .fire = model_fire,
    .forget = model_forget,
    .move = model_move,
    .list = model_list,
};

void work_model_schedules_set_up(struct work_model *backend)
{
    backend->base.schedules = &model_schedules;
    backend->schedules.free_row = free_schedule;
    backend->fires.free_row = free_fire;
}
