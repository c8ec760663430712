/* Statistics and retention as callers see them. */
#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "work/checkpoints/backend.h"
#include "work/core/backend_maintenance.h"
#include "work/core/copy.h"
#include "work/core/internal.h"
#include "work/core/retain.h"
#include "work/keys/backend.h"

enum { BATCH_MAX = 10000, DAYS_MAX = 36500 };

#define US_PER_DAY (86400 * US_PER_S)

pawl_status pawl_work_get_stats(pawl_work *work, pawl_work_stats *ret_stats, pawl_error *reterr)
{
    NEED(work, ret_stats, reterr);
    TRY(pawl__check_sized("ret_stats", ret_stats, reterr));
    struct work_now now;
    TRY(work->backend->store->read_now(work->backend, &now, reterr));
    const struct work_stats_at at = { now.wall_us,
                                      now.wall_us - work->options.stale_ms * INT64_C(1000) };
    pawl_work_stats stats = PAWL_WORK_STATS_INIT;
    TRY(work->backend->maintenance->stats(work->backend, &at, &stats, reterr));
    pawl__give_sized(&stats, sizeof(stats), ret_stats);
    return PAWL_OK;
}

pawl_status pawl_work_type_stats(pawl_work *work,
                                 pawl_type_stats_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    NEED(work, visit, reterr);
    struct work_now now;
    TRY(work->backend->store->read_now(work->backend, &now, reterr));
    INSIDE(work);
    return work->backend->maintenance->type_stats(work->backend, &now, visit, context, reterr);
}

pawl_status pawl_work_checkpoint_growth(pawl_work *work,
                                        pawl_checkpoint_growth_visit visit,
                                        void *context,
                                        pawl_error *reterr)
{
    NEED(work, visit, reterr);
    INSIDE(work);
    return work->backend->maintenance->growth(work->backend, visit, context, reterr);
}

/* --- Retention --- */

/* One run. The arena holds the ids that were found and are removed next. */
struct run {
    pawl_work *work;
    pawl_retention rules;
    int64_t items_before_us;
    int64_t keys_before_us;
    pawl_retention_report report;
    struct pawl__arena arena;
    pawl_view *ids;
    uint64_t id_count;
    bool nomem;
};

static bool note_id(struct run *run, pawl_view id)
{
    run->nomem = run->nomem || !pawl__arena_copy(&run->arena, id, &run->ids[run->id_count]);
    if (!run->nomem) {
        run->id_count++;
    }
    return !run->nomem;
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "retention");
}

/* --- items --- */

struct items_request {
    struct work_request request; /* first */
    const struct run *run;
    uint64_t items;
    uint64_t history;
};

static pawl_status run_items(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct items_request *items = (struct items_request *)request;

    return tx->backend->maintenance->remove_items(tx->backend,
                                                  items->run->items_before_us,
                                                  items->run->ids,
                                                  items->run->id_count,
                                                  &items->items,
                                                  &items->history,
                                                  reterr);
}

static bool note_item(void *context, pawl_view id, uint64_t history)
{
    struct run *run = context;

    if (run->rules.dry_run) {
        run->report.items++;
        run->report.history += history;
    }
    return note_id(run, id);
}

/* A reader, which blocks no writer, finds old items; the transaction removes those that still are. */
static pawl_status prune_items(struct run *run, pawl_error *reterr)
{
    struct work_backend *backend = run->work->backend;
    char last[PAWL_WORK_NAME_BYTES_MAX + 1] = "";
    pawl_view after = { last, 0 };

    for (;;) {
        run->id_count = 0;
        pawl__arena_clear(&run->arena);
        TRY(backend->maintenance->old_items(
            backend, run->items_before_us, after, run->rules.batch, note_item, run, reterr));
        if (run->nomem) {
            return no_memory(reterr);
        }
        if (run->id_count == 0) {
            return PAWL_OK;
        }
        if (!run->rules.dry_run) {
            struct items_request items = { .request.run = run_items, .run = run };
            TRY(pawl__work_submit_request(run->work, &items.request, reterr));
            run->report.items += items.items;
            run->report.history += items.history;
        }
        struct pawl__buf copy = BUF_OVER(last);
        pawl__buf_add(&copy, run->ids[run->id_count - 1]);
        after = pawl__buf_view(&copy);
    }
}

/* --- checkpoints --- */

struct checkpoints_request {
    struct work_request request; /* first */
    struct run *run;
    pawl_view task_id;
    struct work_retain retain;
};

static bool note_checkpoint(void *context,
                            pawl_view checkpoint_id,
                            pawl_checkpoint_type type,
                            bool verified)
{
    struct checkpoints_request *request = context;

    if (pawl__work_retain_keeps(&request->retain, type, verified)) {
        return true;
    }
    return note_id(request->run, checkpoint_id)
           && request->run->id_count < request->run->rules.batch;
}

/* Decides and removes in one transaction: a verification in between could make another checkpoint the newest
 * verified one. */
static pawl_status run_checkpoints(struct work_tx *tx,
                                   struct work_request *request,
                                   pawl_error *reterr)
{
    struct checkpoints_request *checkpoints = (struct checkpoints_request *)request;
    const struct work_checkpoint_ops *ops = tx->backend->checkpoints;
    struct run *run = checkpoints->run;

    run->id_count = 0;
    pawl__arena_clear(&run->arena);
    checkpoints->retain = (struct work_retain){ .keep_last = run->rules.checkpoints_per_task };
    TRY(ops->walk(tx->backend, checkpoints->task_id, note_checkpoint, checkpoints, reterr));
    if (run->nomem) {
        return no_memory(reterr);
    }
    return run->id_count > 0 ? ops->remove(tx->backend,
                                           &tx->now,
                                           checkpoints->task_id,
                                           run->ids,
                                           run->id_count,
                                           run->rules.archive,
                                           reterr)
                             : PAWL_OK;
}

static pawl_status prune_task(struct run *run, pawl_view task_id, pawl_error *reterr)
{
    for (;;) {
        struct checkpoints_request request = { .request.run = run_checkpoints,
                                               .run = run,
                                               .task_id = task_id };
        TRY(pawl__work_submit_request(run->work, &request.request, reterr));
        run->report.checkpoints += run->id_count;
        run->report.archived += run->rules.archive ? run->id_count : 0;
        if (run->id_count < run->rules.batch) {
            return PAWL_OK;
        }
    }
}

struct counting {
    struct work_retain retain;
    uint64_t *removed;
};

static bool count_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    struct counting *counting = context;

    *counting->removed +=
        !pawl__work_retain_keeps(&counting->retain, checkpoint->type, checkpoint->verified);
    return true;
}

static pawl_status count_task(struct run *run, pawl_view task_id, pawl_error *reterr)
{
    struct work_backend *backend = run->work->backend;
    struct work_checkpoint_query query = { .task_id = task_id, .newest_first = true };
    struct counting counting = {
        .retain = { .keep_last = run->rules.checkpoints_per_task },
        .removed = &run->report.checkpoints,
    };

    return backend->checkpoints->list(backend, &query, count_checkpoint, &counting, reterr);
}

static bool note_task(void *context, pawl_view task_id, uint64_t count)
{
    (void)count;
    return pawl__work_id_list_add(context, task_id);
}

static pawl_status prune_checkpoints(struct run *run, pawl_error *reterr)
{
    struct work_backend *backend = run->work->backend;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct work_id_list crowded = { .arena = &arena };
    TRY(backend->checkpoints->crowded(
        backend, run->rules.checkpoints_per_task, note_task, &crowded, reterr));
    if (crowded.nomem) {
        return no_memory(reterr);
    }
    for (const struct work_id *at = crowded.first; at != NULL; at = at->next) {
        TRY(run->rules.dry_run ? count_task(run, at->id, reterr) : prune_task(run, at->id, reterr));
    }
    if (run->rules.dry_run && run->rules.archive) {
        run->report.archived = run->report.checkpoints;
    }
    return PAWL_OK;
}

/* --- keys and space --- */

struct step_request {
    struct work_request request; /* first */
    const struct run *run;
    uint64_t done;
};

static pawl_status run_keys(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct step_request *step = (struct step_request *)request;

    return tx->backend->keys->prune(tx->backend,
                                    &tx->now,
                                    step->run->keys_before_us,
                                    step->run->rules.batch,
                                    &step->done,
                                    reterr);
}

static pawl_status run_space(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct step_request *step = (struct step_request *)request;

    return tx->backend->store->give_back(tx->backend, step->run->rules.batch, &step->done, reterr);
}

/* Until a step has nothing more to do. */
static pawl_status repeat(struct run *run, work_run_fn *fn, uint64_t *total, pawl_error *reterr)
{
    struct step_request step;

    do {
        step = (struct step_request){ .request.run = fn, .run = run };
        TRY(pawl__work_submit_request(run->work, &step.request, reterr));
        *total += step.done;
    } while (step.done > 0);
    return PAWL_OK;
}

static pawl_status prune_keys(struct run *run, const struct work_now *now, pawl_error *reterr)
{
    struct work_backend *backend = run->work->backend;

    return run->rules.dry_run ? backend->keys->prunable(
               backend, now, run->keys_before_us, &run->report.keys, reterr)
                              : repeat(run, run_keys, &run->report.keys, reterr);
}

static pawl_status give_back(struct run *run, pawl_error *reterr)
{
    struct work_backend *backend = run->work->backend;

    if (backend->store->give_back == NULL) {
        return PAWL_OK;
    }
    return run->rules.dry_run
               ? backend->store->free_bytes(backend, &run->report.bytes_freed, reterr)
               : repeat(run, run_space, &run->report.bytes_freed, reterr);
}

/* --- all of it --- */

static pawl_status check_rules(const pawl_retention *rules, pawl_error *reterr)
{
    if (rules->batch < 1 || rules->batch > BATCH_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "batch: %u is not within 1 to %d",
                          (unsigned)rules->batch,
                          (int)BATCH_MAX);
    }
    if (rules->item_days > DAYS_MAX || rules->key_days > DAYS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%s: more than %d days",
                          rules->item_days > DAYS_MAX ? "item_days" : "key_days",
                          (int)DAYS_MAX);
    }
    return PAWL_OK;
}

static pawl_status prune_all(struct run *run, const struct work_now *now, pawl_error *reterr)
{
    TRY(prune_items(run, reterr));
    TRY(prune_checkpoints(run, reterr));
    TRY(prune_keys(run, now, reterr));
    return give_back(run, reterr);
}

pawl_status pawl_work_retention(pawl_work *work,
                                const pawl_retention *retention,
                                pawl_retention_report *ret_report,
                                pawl_error *reterr)
{
    NEED(work, reterr);
    TRY(pawl__check_sized("ret_report", ret_report, reterr));
    struct run run = { .work = work, .rules = PAWL_RETENTION_INIT };
    struct work_now now;
    TRY(pawl__take_sized("retention", retention, &run.rules, sizeof(run.rules), reterr));
    TRY(check_rules(&run.rules, reterr));
    TRY(work->backend->store->read_now(work->backend, &now, reterr));
    run.items_before_us = now.age_us - run.rules.item_days * US_PER_DAY;
    run.keys_before_us = now.age_us - run.rules.key_days * US_PER_DAY;
    run.ids = calloc(run.rules.batch, sizeof(*run.ids));
    pawl_status status = run.ids == NULL ? no_memory(reterr) : prune_all(&run, &now, reterr);
    free(run.ids);
    pawl__arena_done(&run.arena);
    if (status == PAWL_OK && ret_report != NULL) {
        pawl__give_sized(&run.report, sizeof(run.report), ret_report);
    }
    return status;
}
