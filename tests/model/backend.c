#include <stdlib.h>

#include "base/core/error.h"
#include "model/backend.h"
#include "model/model.h"
#include "store/location.h"
#include "work/core/age.h"
#include "work/core/internal.h"

enum { ENTRIES_MAX = 100000000 };

static struct work_model *of(struct work_backend *base)
{
    return work_model_of(base);
}

void work_model_remember(struct work_model *backend, struct work_undo *step)
{
    step->next = backend->undo;
    backend->undo = step;
}

static pawl_status model_read_now(struct work_backend *base,
                                  struct work_now *ret_now,
                                  pawl_error *reterr)
{
    (void)reterr;
    *ret_now = pawl__work_now(of(base)->clock, &of(base)->lowest_us);
    return PAWL_OK;
}

/* The lock is held until the commit or the rollback. */
static pawl_status model_begin(struct work_backend *base,
                               struct work_now *ret_now,
                               pawl_error *reterr) NO_LOCK_ANALYSIS
{
    struct work_model *backend = of(base);

    pawl__lock(&backend->lock);
    backend->open = true;
    backend->history_before = backend->history_count;
    backend->edges_before = backend->edge_count;
    return model_read_now(base, ret_now, reterr);
}

static pawl_status model_commit(struct work_backend *base, pawl_error *reterr) NO_LOCK_ANALYSIS
{
    struct work_model *backend = of(base);

    (void)reterr;
    while (backend->undo != NULL) {
        struct work_undo *step = backend->undo;
        backend->undo = step->next;
        step->forget(step);
    }
    backend->open = false;
    pawl__unlock(&backend->lock);
    return PAWL_OK;
}

static void model_rollback(struct work_backend *base) NO_LOCK_ANALYSIS
{
    struct work_model *backend = of(base);

    if (!backend->open) {
        return;
    }
    while (backend->undo != NULL) {
        struct work_undo *step = backend->undo;
        backend->undo = step->next;
        step->undo(step);
    }
    work_model_cut(backend, backend->history_before, backend->edges_before);
    backend->open = false;
    pawl__unlock(&backend->lock);
}

static void model_close(struct work_backend *base)
{
    struct work_model *backend = of(base);
    size_t cursor = 0;
    void *task;

    work_model_free_items(backend);
    work_model_maintenance_done(backend);
    while (backend->tasks != NULL && pawl__map_next(backend->tasks, &cursor, NULL, &task)) {
        pawl_task_free(task);
    }
    pawl__map_free(backend->tasks);
    pawl__lock_done(&backend->lock);
    free(backend);
}

static pawl_status model_row_exists(struct work_backend *base,
                                    pawl_view select,
                                    bool *ret_exists, /* NOLINT(readability-non-const-parameter) */
                                    pawl_error *reterr)
{
    (void)base;
    (void)select;
    (void)ret_exists;
    return pawl__fail(reterr, PAWL_UNSUPPORTED, "row_exists: a store in memory has no SQL");
}

static const struct work_store_ops model_store = {
    .name = "model",
    .close = model_close,
    .begin = model_begin,
    .commit = model_commit,
    .rollback = model_rollback,
    .read_now = model_read_now,
    .row_exists = model_row_exists,
};

static pawl_status open_model(const struct pawl__location *location,
                              const void *given,
                              void *ret_backend,
                              pawl_error *reterr)
{
    const struct work_setup *setup = given;
    struct work_model *backend = calloc(1, sizeof(*backend));

    (void)location;
    if (backend == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a work store");
    }
    backend->base.store = &model_store;
    backend->base.items = &work_model_items;
    work_model_set_up(backend);
    backend->clock = setup->clock;
    atomic_init(&backend->lowest_us, WORK_AGE_UNKNOWN);
    pawl__lock_init(&backend->lock);
    pawl_status status = pawl__map_new(ENTRIES_MAX, &backend->items, reterr);
    if (status == PAWL_OK) {
        status = pawl__map_new(ENTRIES_MAX, &backend->tasks, reterr);
    }
    if (status != PAWL_OK) {
        model_close(&backend->base);
        return status;
    }
    *(struct work_backend **)ret_backend = &backend->base;
    return PAWL_OK;
}

void work_model_register(void)
{
    pawl__work_register_model(open_model);
}
