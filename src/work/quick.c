/* Calls that a store may carry out by a short way, before the rest of their group. */
#include <stdlib.h>

#include "base/buf.h"
#include "work/copy.h"
#include "work/group.h"
#include "work/item.h"

enum { QUICK_MAX = 256 }; /* with more, the long way is as good */

struct quick {
    struct work_quick_call calls[QUICK_MAX];
    size_t count;
    const struct work_filter *filter; /* of those that lease; NULL: none does */
    bool mixed;                       /* there is one that cannot, or wants something else */
};

static void add_claim(struct quick *quick,
                      struct work_quick_call *call,
                      const struct work_claiming *claiming)
{
    if (quick->filter == NULL) {
        quick->filter = &claiming->filter;
    }
    quick->mixed |=
        claiming->claim.count_max != 1 || !pawl__same_filter(quick->filter, &claiming->filter);
    call->holder = claiming->claim.holder;
    call->lease_ms = claiming->claim.lease_ms;
}

/* A group with a claim that has to go the long way goes there as a whole: one transaction, not two. */
static void add(struct quick *quick, struct work_request *request)
{
    struct work_quick_call call = { .owner = request };

    if (request->kind == WORK_CLAIM) {
        add_claim(quick, &call, (struct work_claiming *)request);
    } else if (request->kind == WORK_LEASED) {
        const struct work_leased *leased = (struct work_leased *)request;
        if (leased->command.kind != WORK_COMPLETE) {
            return;
        }
        call.id = leased->lease.work_item_id;
        call.token = leased->lease.token;
        call.output_data = leased->command.output_data;
        if (leased->next != NULL) {
            add_claim(quick, &call, leased->next);
        }
    } else {
        return;
    }
    quick->mixed |= quick->count == QUICK_MAX;
    if (!quick->mixed) {
        quick->calls[quick->count++] = call;
    }
}

static int by_id(const void *a, const void *b)
{
    return pawl__view_order(((const struct work_quick_call *)a)->id,
                            ((const struct work_quick_call *)b)->id);
}

/* In the order of their ids, as everybody locks them; of two calls for one item none, since one of
 * them has something to be told. */
static void arrange(struct quick *quick)
{
    size_t kept = 0;

    qsort(quick->calls, quick->count, sizeof(quick->calls[0]), by_id);
    for (size_t i = 0; i < quick->count; i++) {
        pawl_view id = quick->calls[i].id;
        bool twice = (i > 0 && pawl__view_equal(id, quick->calls[i - 1].id))
                     || (i + 1 < quick->count && pawl__view_equal(id, quick->calls[i + 1].id));
        if (id.len == 0 || !twice) {
            quick->calls[kept++] = quick->calls[i]; /* kept <= i */
        }
    }
    quick->count = kept;
}

static void hand_out(struct work_quick_call *call, struct work_claiming *claiming)
{
    if (pawl__copy_claimed(&call->row, 1, &claiming->claimed, &claiming->request.item.outcome)
        != PAWL_OK) {
        claiming->claimed = NULL; /* it is leased, and nobody works on it: the watchdog finds it */
    }
}

static void answer(struct work_quick_call *call)
{
    struct work_request *request = call->owner;

    if (request->kind == WORK_CLAIM) {
        request->served = call->row != NULL;
        if (request->served) {
            hand_out(call, (struct work_claiming *)request);
        }
        return;
    }
    struct work_leased *leased = (struct work_leased *)request;
    leased->done = call->ended;
    leased->status = PAWL_ITEM_COMPLETED;
    leased->expires_at_us = 0;
    request->served = call->ended && (leased->next == NULL || call->row != NULL);
    if (request->served && leased->next != NULL) {
        hand_out(call, leased->next);
    }
}

pawl_status pawl__group_quick(struct work_backend *backend,
                              struct pawl__arena *arena,
                              struct work_request *const *requests,
                              size_t count,
                              pawl_error *reterr)
{
    struct quick quick;

    if (backend->store->quick == NULL) {
        return PAWL_OK;
    }
    quick.count = 0;
    quick.filter = NULL;
    quick.mixed = false;
    for (size_t i = 0; i < count; i++) {
        add(&quick, requests[i]);
    }
    if (quick.mixed) {
        return PAWL_OK;
    }
    arrange(&quick);
    if (quick.count == 0) {
        return PAWL_OK;
    }
    pawl_status status =
        backend->store->quick(backend, quick.filter, quick.calls, quick.count, arena, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    for (size_t i = 0; i < quick.count; i++) {
        answer(&quick.calls[i]);
    }
    return PAWL_OK;
}
