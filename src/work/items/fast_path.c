/* Calls that a store may carry out by a short way, before the rest of their group. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/copy.h"
#include "work/core/group.h"
#include "work/items/item.h"

enum { QUICK_MAX = 2500 }; /* calls of a group; with more, the long way is as good */

struct quick {
    struct work_fast_call *calls;
    size_t count;
    size_t room;
    const struct work_filter *filter; /* of those that lease; NULL: none does */
};

/* --- which calls --- */

/* How many calls a request becomes, without what it leases ahead; 0: it goes the long way. */
static size_t calls_of(const struct work_request *request)
{
    if (request->kind == WORK_CLAIM) {
        return ((const struct work_claiming *)request)->claim.count_max;
    }
    return request->kind == WORK_LEASED
           && ((const struct work_leased *)request)->command.kind == WORK_COMPLETE;
}

/* A group with a claim that has to go the long way goes there as a whole: one transaction, not two.
 * 0: it does. */
static size_t count_calls(struct quick *quick, struct work_request *const *requests, size_t count)
{
    size_t calls = 0;
    size_t ahead = 0;

    for (size_t i = 0; i < count; i++) {
        const struct work_claiming *claiming = pawl__work_claim_in(requests[i]);
        calls += calls_of(requests[i]);
        if (claiming == NULL) {
            continue;
        }
        if (quick->filter == NULL) {
            quick->filter = &claiming->filter;
        }
        ahead += claiming->more;
        if (!pawl__work_filter_equal(quick->filter, &claiming->filter)
            || (requests[i]->kind == WORK_LEASED && claiming->claim.count_max != 1)) {
            return 0;
        }
    }
    return calls <= QUICK_MAX ? MIN(calls + ahead, (size_t)QUICK_MAX) : 0;
}

/* --- in which order --- */

static void add_end(struct quick *quick, struct work_request *request)
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
    quick->calls[quick->count++] = call;
}

/* Where they begin. */
static size_t add_claims(struct quick *quick, struct work_claiming *claiming, size_t count)
{
    size_t first = quick->count;

    for (size_t i = 0; i < count && quick->count < quick->room; i++) {
        quick->calls[quick->count++] = (struct work_fast_call){
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

/* In the order of their ids, as everybody locks them; of two calls for one item none, since one of
 * them has something to be told. */
static void arrange_ends(struct quick *quick)
{
    size_t kept = 0;

    qsort(quick->calls, quick->count, sizeof(quick->calls[0]), by_id);
    for (size_t i = 0; i < quick->count; i++) {
        pawl_view id = quick->calls[i].id;
        bool twice = (i > 0 && pawl__view_equal(id, quick->calls[i - 1].id))
                     || (i + 1 < quick->count && pawl__view_equal(id, quick->calls[i + 1].id));
        if (!twice) {
            quick->calls[kept++] = quick->calls[i]; /* kept <= i */
        }
    }
    quick->count = kept;
}

/* Who is served when there is not enough for all: first what was asked for, then what is leased
 * ahead, as far as there is room. */
static void add_calls(struct quick *quick, struct work_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_LEASED && calls_of(requests[i]) > 0) {
            add_end(quick, requests[i]);
        }
    }
    arrange_ends(quick);
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_CLAIM) {
            struct work_claiming *claiming = (struct work_claiming *)requests[i];
            claiming->calls_at = add_claims(quick, claiming, claiming->claim.count_max);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_CLAIM) {
            struct work_claiming *claiming = (struct work_claiming *)requests[i];
            claiming->ahead_at = add_claims(quick, claiming, claiming->more);
        }
    }
}

/* --- answers --- */

static void hand_out(struct work_row *const *rows, size_t count, struct work_claiming *claiming)
{
    if (pawl__work_copy_out_rows(rows, count, &claiming->claimed, &claiming->request.item.outcome)
        != PAWL_OK) {
        claiming->claimed = NULL; /* leased, and nobody works on it: the watchdog finds it */
    }
}

static void answer_end(struct work_fast_call *call)
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
static size_t gather(const struct quick *quick,
                     const struct work_claiming *claiming,
                     size_t first,
                     size_t wanted,
                     struct work_row **rows,
                     size_t count)
{
    for (size_t i = first; i < MIN(first + wanted, quick->count); i++) {
        if (quick->calls[i].owner == claiming && quick->calls[i].row != NULL) {
            rows[count++] = quick->calls[i].row;
        }
    }
    return count;
}

static void answer_claim(const struct quick *quick,
                         struct work_claiming *claiming,
                         struct work_row **rows)
{
    size_t count = gather(quick, claiming, claiming->calls_at, claiming->claim.count_max, rows, 0);

    count = gather(quick, claiming, claiming->ahead_at, claiming->more, rows, count);
    claiming->request.served = count > 0;
    if (count > 0) {
        hand_out(rows, count, claiming);
    }
}

static void answer(const struct quick *quick,
                   struct work_request *const *requests,
                   size_t count,
                   struct work_row **rows)
{
    for (size_t i = 0; i < quick->count; i++) {
        if (quick->calls[i].id.len > 0) {
            answer_end(&quick->calls[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->kind == WORK_CLAIM) {
            answer_claim(quick, (struct work_claiming *)requests[i], rows);
        }
    }
}

pawl_status pawl__work_group_fast_path(struct work_backend *backend,
                                       struct pawl__arena *arena,
                                       struct work_request *const *requests,
                                       size_t count,
                                       pawl_error *reterr)
{
    struct quick quick = { .count = 0 };

    if (backend->store->fast_path == NULL || backend->without_fast_path) {
        return PAWL_OK;
    }
    quick.room = count_calls(&quick, requests, count);
    if (quick.room == 0) {
        return PAWL_OK;
    }
    struct work_row **rows = pawl__arena_take(arena, quick.room * sizeof(*rows));
    quick.calls = pawl__arena_take(arena, quick.room * sizeof(*quick.calls));
    if (rows == NULL || quick.calls == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a group of calls");
    }
    add_calls(&quick, requests, count);
    if (quick.count == 0) {
        return PAWL_OK;
    }
    TRY(backend->store->fast_path(backend, quick.filter, quick.calls, quick.count, arena, reterr));
    answer(&quick, requests, count, rows);
    return PAWL_OK;
}
