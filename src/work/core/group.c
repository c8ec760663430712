#include "work/core/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "work/items/item.h"

enum { CONFLICT_TRIES = 5 };

struct work_touched {
    pawl_view task_id;
    struct work_touched *next;
};

/* The committer thread's. */
struct work_group {
    struct work_backend *backend;
    const pawl_work_options *options;
    struct pawl__arena arena;
    struct pawl__prng prng;
    struct work_leased *leased[WORK_GROUP_MAX];
    struct work_claiming *claims[WORK_GROUP_MAX];
    struct work_request *rest[WORK_GROUP_MAX];
    struct work_prefetch_plan plan;
    pawl_view plan_ids[WORK_GROUP_MAX];
};

pawl_status pawl__work_group_new(struct work_backend *backend,
                                 const pawl_work_options *options,
                                 struct work_group **ret_group,
                                 pawl_error *reterr)
{
    uint64_t seed;
    TRY(pawl__random_bytes(pawl__random_real(), &seed, sizeof(seed), reterr));
    struct work_group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a committer");
    }
    group->backend = backend;
    group->options = options;
    group->prng = pawl__prng_seeded(seed);
    *ret_group = group;
    return PAWL_OK;
}

void pawl__work_group_free(struct work_group *group)
{
    if (group != NULL) {
        pawl__arena_done(&group->arena);
        free(group);
    }
}

void pawl__work_group_seed(struct work_group *group, uint64_t seed)
{
    group->prng = pawl__prng_seeded(seed);
}

pawl_status pawl__work_refuse(struct work_request *request,
                              pawl_status status,
                              const char *format,
                              ...)
{
    char message[PAWL_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    pawl__fail(&request->item.outcome, status, "%s", message);
    return PAWL_OK;
}

pawl_status pawl__work_mark_detail(struct work_request *request,
                                   pawl_detail detail,
                                   pawl_status status)
{
    return pawl__mark_detail(&request->item.outcome, detail, status);
}

void *pawl__work_tx_alloc(struct work_tx *tx, size_t count, size_t size, pawl_error *reterr)
{
    void *allocated = count > SIZE_MAX / size ? NULL : pawl__arena_take(tx->arena, count * size);

    if (allocated == NULL) {
        pawl__fail(reterr, PAWL_NOMEM, "no memory for a group of calls");
        return NULL;
    }
    memset(allocated, 0, count * size);
    return allocated;
}

pawl_status pawl__work_tx_refresh_now(struct work_tx *tx, pawl_error *reterr)
{
    const struct work_store_ops *store = tx->backend->store;

    return store->now == NULL ? PAWL_OK : store->now(tx->backend, &tx->now, reterr);
}

pawl_status pawl__work_tx_task(struct work_tx *tx,
                               struct work_request *request,
                               pawl_view task_id,
                               pawl_task *ret_task,
                               pawl_error *reterr)
{
    struct work_task found = { .known = false };
    TRY(tx->backend->items->tasks(tx->backend, &task_id, 1, tx->arena, &found, reterr));
    *ret_task = found.task;
    return found.known ? PAWL_OK
                       : pawl__work_refuse_detail(
                           request, PAWL_NOT_FOUND, NO_TASK, "no task '%.*s'", VIEW_ARGS(task_id));
}

pawl_status pawl__work_tx_item(struct work_tx *tx,
                               struct work_request *request,
                               pawl_view work_item_id,
                               struct work_row **ret_row,
                               pawl_error *reterr)
{
    TRY(tx->backend->items->load(tx->backend, &work_item_id, 1, tx->arena, ret_row, reterr));
    return *ret_row != NULL
               ? PAWL_OK
               : pawl__work_refuse_detail(
                   request, PAWL_NOT_FOUND, NO_ITEM, "no item '%.*s'", VIEW_ARGS(work_item_id));
}

/* --- tasks whose status may have changed --- */

pawl_status pawl__work_tx_touch(struct work_tx *tx, pawl_view task_id, pawl_error *reterr)
{
    if (tx->touched != NULL && pawl__view_equal(tx->touched->task_id, task_id)) {
        return PAWL_OK;
    }
    struct work_touched *touched = TX_ALLOC(tx, 1, sizeof(*touched), reterr);
    *touched = (struct work_touched){ .task_id = task_id, .next = tx->touched };
    tx->touched = touched;
    return PAWL_OK;
}

static pawl_status derive_tasks(struct work_tx *tx, pawl_error *reterr)
{
    size_t count = 0;

    for (const struct work_touched *at = tx->touched; at != NULL; at = at->next) {
        count++;
    }
    if (count == 0) {
        return PAWL_OK;
    }
    pawl_view *ids = TX_ALLOC(tx, count, sizeof(*ids), reterr);
    count = 0;
    for (const struct work_touched *at = tx->touched; at != NULL; at = at->next) {
        ids[count++] = at->task_id;
    }
    size_t distinct = pawl__work_views_distinct(ids, count);
    return tx->backend->items->derive(tx->backend, &tx->now, ids, distinct, reterr);
}

/* --- one transaction --- */

struct work_claiming *pawl__work_claim_in(struct work_request *request)
{
    switch (request->kind) {
    case WORK_CLAIM:
        return (struct work_claiming *)request;
    case WORK_LEASED:
        return ((struct work_leased *)request)->next;
    case WORK_RUN:
        break;
    }
    return NULL;
}

static pawl_status run_all(struct work_tx *tx,
                           struct work_group *group,
                           struct work_request *const *requests,
                           size_t count,
                           pawl_error *reterr)
{
    size_t leased = 0;
    size_t claims = 0;

    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_LEASED) {
            struct work_leased *call = (struct work_leased *)requests[i];
            if (!call->done) {
                group->leased[leased++] = call;
            }
        }
    }
    if (leased > 0) {
        TRY(pawl__work_group_leased(tx, group->leased, leased, reterr));
    }
    for (size_t i = 0; i < count; i++) {
        struct work_claiming *claiming = pawl__work_claim_in(requests[i]);
        if (claiming != NULL && requests[i]->item.outcome.status == PAWL_OK) {
            group->claims[claims++] = claiming;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_RUN) {
            TRY(requests[i]->run(tx, requests[i], reterr));
        }
    }
    if (claims > 0) {
        TRY(pawl__work_group_claims(tx, group->claims, claims, reterr));
    }
    return derive_tasks(tx, reterr);
}

/* Tells a store that is a round trip away what the group loads and picks first. */
static void announce_plan(struct work_group *group,
                          struct work_request *const *requests,
                          size_t count)
{
    struct work_backend *backend = group->backend;
    size_t claims = 0;
    size_t others = 0;

    if (backend->store->plan == NULL) {
        return;
    }
    group->plan = (struct work_prefetch_plan){ .ids = group->plan_ids };
    for (size_t i = 0; i < count; i++) {
        struct work_claiming *claiming = pawl__work_claim_in(requests[i]);
        if (requests[i]->kind == WORK_LEASED) {
            struct work_leased *leased = (struct work_leased *)requests[i];
            if (!leased->done) {
                group->plan_ids[group->plan.id_count++] = leased->lease.work_item_id;
            }
        }
        if (claiming != NULL) {
            group->claims[claims++] = claiming;
        }
        others += requests[i]->kind == WORK_RUN;
    }
    if (claims > 0 && others == 0) {
        pawl__work_claims_plan(group->claims, claims, &group->plan);
    }
    backend->store->plan(backend, &group->plan);
}

/* Drops what an attempt that failed has answered. */
static void reset_answers(struct work_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct work_claiming *claiming = pawl__work_claim_in(requests[i]);
        requests[i]->item.outcome = (pawl_error)PAWL_ERROR_INIT;
        if (claiming != NULL) {
            claiming->request.item.outcome = (pawl_error)PAWL_ERROR_INIT;
            pawl_claimed_free(claiming->claimed);
            claiming->claimed = NULL;
        }
    }
}

static pawl_status commit(struct work_backend *backend, pawl_error *reterr)
{
    FAILPOINT("work.commit.before", reterr);
    TRY(backend->store->commit(backend, reterr));
    FAILPOINT("work.commit.after", reterr);
    return PAWL_OK;
}

static pawl_status attempt(struct work_group *group,
                           struct work_request *const *requests,
                           size_t count,
                           bool *ret_wake,
                           pawl_error *reterr)
{
    struct work_backend *backend = group->backend;
    struct work_tx tx = {
        .backend = backend,
        .options = group->options,
        .arena = &group->arena,
        .prng = &group->prng,
    };

    reset_answers(requests, count);
    pawl__arena_clear(&group->arena);
    announce_plan(group, requests, count);
    pawl_status status = backend->store->begin(backend, &tx.now, reterr);
    if (status == PAWL_OK) {
        status = run_all(&tx, group, requests, count, reterr);
    }
    if (status == PAWL_OK) {
        status = commit(backend, reterr);
    }
    if (status != PAWL_OK) {
        backend->store->rollback(backend);
        reset_answers(requests, count);
        return status;
    }
    *ret_wake |= tx.wake;
    return PAWL_OK;
}

/* Other nodes may conflict several times, but not forever. */
static pawl_status attempt_again(struct work_group *group,
                                 struct work_request *request,
                                 bool *ret_wake,
                                 pawl_error *reterr)
{
    pawl_status status = PAWL_CONFLICT;

    for (int i = 0; i < CONFLICT_TRIES && status == PAWL_CONFLICT; i++) {
        status = attempt(group, &request, 1, ret_wake, reterr);
    }
    return status;
}

static pawl_status run_rest(struct work_group *group,
                            struct work_request *const *requests,
                            size_t count,
                            bool *ret_wake,
                            pawl_error *reterr)
{
    pawl_status status = attempt(group, requests, count, ret_wake, reterr);
    if (status != PAWL_CONFLICT) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        pawl_error error = PAWL_ERROR_INIT;
        if (attempt_again(group, requests[i], ret_wake, &error) != PAWL_OK) {
            requests[i]->item.outcome = error;
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_group_run(struct work_group *group,
                                 struct work_request *const *requests,
                                 size_t count,
                                 bool *ret_wake,
                                 pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    size_t rest = 0;

    REQUIRE(count <= WORK_GROUP_MAX);
    *ret_wake = false;
    pawl__arena_clear(&group->arena);
    pawl_status status =
        pawl__work_group_fast_path(group->backend, &group->arena, requests, count, reterr);
    if (status != PAWL_OK && status != PAWL_CONFLICT) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (!requests[i]->served) {
            group->rest[rest++] = requests[i];
        }
    }
    if (rest == count) {
        return run_rest(group, requests, count, ret_wake, reterr);
    }
    /* Calls that are durable keep their answers, whatever happens to the rest. */
    if (rest > 0 && run_rest(group, group->rest, rest, ret_wake, &error) != PAWL_OK) {
        for (size_t i = 0; i < rest; i++) {
            group->rest[i]->item.outcome = error;
        }
    }
    return PAWL_OK;
}
