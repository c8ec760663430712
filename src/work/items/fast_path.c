/* Calls that a store carries out by its fast path, before the rest of their group. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/core/group.h"
#include "work/items/item.h"

enum { CALLS_MAX = 2500 }; /* of a group; with more, a transaction is as fast */

struct fast_calls {
    struct work_fast_call *calls;
    size_t count;
    size_t room;
    const struct work_filter *filter; /* of those that lease; NULL: none does */
};

/* --- which calls --- */

/* How many calls a request becomes, without what it prefetches; 0: it needs the transaction. */
static size_t calls_of(const struct work_request *request)
{
    if (request->kind == WORK_CLAIM) {
        return ((const struct work_claiming *)request)->claim.count_max;
    }
    return request->kind == WORK_LEASED
           && ((const struct work_leased *)request)->command.kind == WORK_COMPLETE;
}

/* How many calls the group becomes. 0: one of its claims needs the transaction, which then serves the whole
 * group: one transaction, not two. */
static size_t count_calls(struct fast_calls *fast,
                          struct work_request *const *requests,
                          size_t count)
{
    size_t calls = 0;
    size_t prefetch = 0;

    for (size_t i = 0; i < count; i++) {
        const struct work_claiming *claiming = pawl__work_claim_in(requests[i]);
        calls += calls_of(requests[i]);
        if (claiming == NULL) {
            continue;
        }
        if (fast->filter == NULL) {
            fast->filter = &claiming->filter;
        }
        prefetch += claiming->prefetch;
        if (!pawl__work_filter_equal(fast->filter, &claiming->filter)
            || (requests[i]->kind == WORK_LEASED && claiming->claim.count_max != 1)) {
            return 0;
        }
    }
    return calls <= CALLS_MAX ? MIN(calls + prefetch, (size_t)CALLS_MAX) : 0;
}

/* --- in which order --- */

static void add_completion(struct fast_calls *fast, struct work_request *request)
{
    const struct work_leased *leased = (struct work_leased *)request;
    struct work_fast_call call = {
        .id = leased->lease.work_item_id,
        .token = leased->lease.token,
        .output_data = leased->command.output_data,
        .owner = request,
    };

    if (leased->next != NULL) {
        call.holder = leased->next->claim.holder;
        call.lease_ms = leased->next->claim.lease_ms;
    }
    fast->calls[fast->count++] = call;
}

/* Returns where they begin. */
static size_t add_claims(struct fast_calls *fast, struct work_claiming *claiming, size_t count)
{
    size_t first = fast->count;

    for (size_t i = 0; i < count && fast->count < fast->room; i++) {
        fast->calls[fast->count++] = (struct work_fast_call){
            .holder = claiming->claim.holder,
            .lease_ms = claiming->claim.lease_ms,
            .owner = claiming,
        };
    }
    return first;
}

static int by_id(const void *a, const void *b)
{
    return pawl__work_view_order(((const struct work_fast_call *)a)->id,
                                 ((const struct work_fast_call *)b)->id);
}

/* Sorts by id, the order in which every node locks rows. Drops all calls for an item that has several: only
 * the transaction can answer each of them. */
static void sort_completions(struct fast_calls *fast)
{
    size_t kept = 0;

    qsort(fast->calls, fast->count, sizeof(fast->calls[0]), by_id);
    for (size_t i = 0; i < fast->count; i++) {
        pawl_view id = fast->calls[i].id;
        bool twice = (i > 0 && pawl__view_equal(id, fast->calls[i - 1].id))
                     || (i + 1 < fast->count && pawl__view_equal(id, fast->calls[i + 1].id));
        if (!twice) {
            fast->calls[kept++] = fast->calls[i]; /* kept <= i */
        }
    }
    fast->count = kept;
}

/* When there is not enough for all, claims get what they asked for before any of them prefetches. */
static void add_calls(struct fast_calls *fast, struct work_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_LEASED && calls_of(requests[i]) > 0) {
            add_completion(fast, requests[i]);
        }
    }
    sort_completions(fast);
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_CLAIM) {
            struct work_claiming *claiming = (struct work_claiming *)requests[i];
            claiming->calls_at = add_claims(fast, claiming, claiming->claim.count_max);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_CLAIM) {
            struct work_claiming *claiming = (struct work_claiming *)requests[i];
            claiming->prefetch_at = add_claims(fast, claiming, claiming->prefetch);
        }
    }
}

/* --- answers --- */

static void hand_out(struct work_row *const *rows, size_t count, struct work_claiming *claiming)
{
    if (pawl__work_copy_out_rows(rows, count, &claiming->claimed, &claiming->request.item.outcome)
        != PAWL_OK) {
        claiming->claimed = NULL; /* leased, but nobody knows: a sweep takes it back */
    }
}

static void answer_completion(struct work_fast_call *call)
{
    struct work_leased *leased = call->owner;

    leased->done = call->ended;
    leased->status = PAWL_ITEM_COMPLETED;
    leased->expires_at_us = 0;
    leased->request.served = call->ended && (leased->next == NULL || call->row != NULL);
    if (leased->request.served && leased->next != NULL) {
        hand_out(&call->row, 1, leased->next);
    }
}

/* Adds what `wanted` calls of a claim, from `first` on, have leased. */
static size_t gather(const struct fast_calls *fast,
                     const struct work_claiming *claiming,
                     size_t first,
                     size_t wanted,
                     struct work_row **rows,
                     size_t count)
{
    for (size_t i = first; i < MIN(first + wanted, fast->count); i++) {
        if (fast->calls[i].owner == claiming && fast->calls[i].row != NULL) {
            rows[count++] = fast->calls[i].row;
        }
    }
    return count;
}

static void answer_claim(const struct fast_calls *fast,
                         struct work_claiming *claiming,
                         struct work_row **rows)
{
    size_t count = gather(fast, claiming, claiming->calls_at, claiming->claim.count_max, rows, 0);

    count = gather(fast, claiming, claiming->prefetch_at, claiming->prefetch, rows, count);
    claiming->request.served = count > 0;
    if (count > 0) {
        hand_out(rows, count, claiming);
    }
}

static void answer(const struct fast_calls *fast,
                   struct work_request *const *requests,
                   size_t count,
                   struct work_row **rows)
{
    for (size_t i = 0; i < fast->count; i++) {
        if (fast->calls[i].id.len > 0) {
            answer_completion(&fast->calls[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_CLAIM) {
            answer_claim(fast, (struct work_claiming *)requests[i], rows);
        }
    }
}

pawl_status pawl__work_group_fast_path(struct work_backend *backend,
                                       struct pawl__arena *arena,
                                       struct work_request *const *requests,
                                       size_t count,
                                       pawl_error *reterr)
{
    struct fast_calls fast = { .count = 0 };

    if (backend->store->fast_path == NULL || backend->without_fast_path) {
        return PAWL_OK;
    }
    fast.room = count_calls(&fast, requests, count);
    if (fast.room == 0) {
        return PAWL_OK;
    }
    struct work_row **rows = pawl__arena_take(arena, fast.room * sizeof(*rows));
    fast.calls = pawl__arena_take(arena, fast.room * sizeof(*fast.calls));
    if (rows == NULL || fast.calls == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a group of calls");
    }
    add_calls(&fast, requests, count);
    REQUIRE(fast.count <= fast.room);
    if (fast.count == 0) {
        return PAWL_OK;
    }
    TRY(backend->store->fast_path(backend, fast.filter, fast.calls, fast.count, arena, reterr));
    answer(&fast, requests, count, rows);
    return PAWL_OK;
}
