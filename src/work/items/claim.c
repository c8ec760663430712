/* Claims: those with the same filter share one walk; a claim that finds nothing may wait. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/watch.h"
#include "work/core/copy.h"
#include "work/core/group.h"
#include "work/core/internal.h"
#include "work/items/item.h"

enum { ADMIT_AT_ONCE = 1000 };
#define AGAIN_NS (250 * NS_PER_MS) /* a waiting claim asks a store that failed again */
/* How much longer than its own time a claim waits for a store that is carrying it out. With less, leases that a
 * slow disk is about to grant would be lost; a store that hangs is given up by then. */
#define LATE_NS (5 * NS_PER_S)

/* --- on the committer's thread --- */

pawl_status pawl__work_tx_admit_due(struct work_tx *tx,
                                    uint64_t *ret_count,
                                    int64_t *ret_next_ns,
                                    pawl_error *reterr)
{
    struct work_backend *backend = tx->backend;
    struct work_rows found = {
        .arena = tx->arena,
        .rows = TX_ALLOC(tx, ADMIT_AT_ONCE, sizeof(struct work_row *), reterr),
        .room = ADMIT_AT_ONCE,
    };

    *ret_count = 0;
    do {
        size_t admitted = 0;
        found.count = 0;
        TRY(backend->items->due(backend, &tx->now, &found, ret_next_ns, reterr));
        for (size_t i = 0; i < found.count; i++) {
            if (pawl__work_decide_due(found.rows[i], &tx->now)) {
                found.rows[admitted++] = found.rows[i];
            }
        }
        TRY(pawl__work_tx_put(tx, found.rows, admitted, reterr));
        *ret_count += admitted;
    } while (found.count == ADMIT_AT_ONCE);
    return PAWL_OK;
}

bool pawl__work_filter_equal(const struct work_filter *a, const struct work_filter *b)
{
    if (a->work_type_count != b->work_type_count || !pawl__view_equal(a->task_id, b->task_id)) {
        return false;
    }
    for (size_t i = 0; i < a->work_type_count; i++) {
        if (!pawl__view_equal(a->work_types[i], b->work_types[i])) {
            return false;
        }
    }
    return true;
}

/* Claims from `first` on that want what it wants, up to a full batch: they have served[i]
 * afterwards. */
static size_t gather(
    struct work_claiming *const *claims, size_t count, size_t first, bool *served, size_t *ret_last)
{
    size_t wanted = 0;

    for (size_t i = first; i < count && wanted < PAWL_WORK_BATCH_MAX; i++) {
        if (!served[i] && pawl__work_filter_equal(&claims[first]->filter, &claims[i]->filter)) {
            wanted += claims[i]->claim.count_max + claims[i]->prefetch;
            served[i] = true;
            *ret_last = i;
        }
    }
    return wanted;
}

void pawl__work_claims_plan(struct work_claiming *const *claims,
                            size_t count,
                            struct work_prefetch_plan *plan)
{
    bool served[WORK_GROUP_MAX] = { false };
    size_t last;

    plan->filter = &claims[0]->filter;
    plan->pick_count = gather(claims, count, 0, served, &last);
}

/* What claims of this filter ask for, without what they prefetch. */
static size_t asked_for(struct work_claiming *const *claims,
                        size_t first,
                        size_t last,
                        const struct work_filter *filter)
{
    size_t count = 0;

    for (size_t i = first; i <= last; i++) {
        if (pawl__work_filter_equal(filter, &claims[i]->filter)) {
            count += claims[i]->claim.count_max;
        }
    }
    return count;
}

/* The rows that a walk found, dealt out to the claims: first what each asked for, then what it prefetches. */
struct deal {
    struct work_row **rows;
    size_t asked;     /* the next of those that were asked for, ... */
    size_t asked_end; /* ... which end here */
    size_t prefetch;  /* the next of the others */
    size_t found;
};

/* Leases its share to one claim. */
static pawl_status deal_out(struct work_tx *tx,
                            struct deal *deal,
                            struct work_claiming *claiming,
                            pawl_error *reterr)
{
    size_t share = MIN((size_t)claiming->claim.count_max, deal->asked_end - deal->asked);
    size_t more = MIN((size_t)claiming->prefetch, deal->found - deal->prefetch);
    struct work_row **rows = TX_ALLOC(tx, share + more + 1, sizeof(struct work_row *), reterr);
    if (share == 0) {
        return PAWL_OK; /* it prefetches nothing while another claim has too few */
    }
    memcpy(rows, deal->rows + deal->asked, share * sizeof(struct work_row *));
    memcpy(rows + share, deal->rows + deal->prefetch, more * sizeof(struct work_row *));
    deal->asked += share;
    deal->prefetch += more;
    for (size_t i = 0; i < share + more; i++) {
        TRY(pawl__work_decide_claim(rows[i],
                                    claiming->claim.holder,
                                    claiming->claim.lease_ms * NS_PER_MS,
                                    &tx->now,
                                    reterr));
    }
    return pawl__work_copy_out_rows(rows, share + more, &claiming->claimed, reterr);
}

/* Serves claims[first] and later ones with the same filter, up to a full batch: they have
 * served[i] afterwards. All before `first` are served. */
static pawl_status serve(struct work_tx *tx,
                         struct work_claiming *const *claims,
                         size_t count,
                         size_t first,
                         bool *served,
                         pawl_error *reterr)
{
    struct work_backend *backend = tx->backend;
    const struct work_filter *filter = &claims[first]->filter;
    size_t last = first;
    size_t wanted = gather(claims, count, first, served, &last);
    struct work_row **rows = TX_ALLOC(tx, wanted, sizeof(struct work_row *), reterr);
    struct work_rows found = { .arena = tx->arena, .rows = rows, .room = wanted };
    TRY(backend->items->pick(backend, filter, &found, reterr));
    TRY(pawl__work_tx_refresh_now(tx, reterr));
    size_t asked_end = MIN(found.count, asked_for(claims, first, last, filter));
    struct deal deal = {
        .rows = rows, .asked_end = asked_end, .prefetch = asked_end, .found = found.count
    };
    for (size_t i = first; i <= last; i++) {
        if (pawl__work_filter_equal(filter, &claims[i]->filter)) {
            TRY(deal_out(tx, &deal, claims[i], reterr));
        }
    }
    return pawl__work_tx_put(tx, rows, deal.prefetch, reterr);
}

pawl_status pawl__work_group_claims(struct work_tx *tx,
                                    struct work_claiming *const *claims,
                                    size_t count,
                                    pawl_error *reterr)
{
    bool *served = TX_ALLOC(tx, count, sizeof(*served), reterr);
    uint64_t admitted;
    int64_t next_ns = INT64_MAX;

    TRY(pawl__work_tx_admit_due(tx, &admitted, &next_ns, reterr));
    for (size_t i = 0; i < count; i++) {
        if (!served[i]) {
            TRY(serve(tx, claims, count, i, served, reterr));
        }
        claims[i]->next_due_ns = next_ns;
        claims[i]->now_ns = tx->now.ns;
        if (claims[i]->claimed == NULL) {
            pawl__work_refuse(&claims[i]->request, PAWL_NOT_FOUND, "nothing to claim");
        }
    }
    return PAWL_OK;
}

/* --- on the caller's --- */

static pawl_status check_claim(const pawl_claim *claim, pawl_error *reterr)
{
    TRY(pawl__work_check_name("holder", claim->holder, reterr));
    TRY(pawl__work_check_optional_name("task", claim->task_id, reterr));
    TRY(pawl__check_limit("types: are", claim->work_type_count, "", WORK_CLAIM_TYPES_MAX, reterr));
    if (claim->work_type_count > 0 && claim->work_types == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "types: is NULL");
    }
    for (size_t i = 0; i < claim->work_type_count; i++) {
        TRY(pawl__work_check_name("types", claim->work_types[i], reterr));
    }
    return pawl__check_range("count_max", claim->count_max, 1, PAWL_WORK_BATCH_MAX, reterr);
}

pawl_status pawl__work_claim_parse(pawl_work *work,
                                   const pawl_claim *given,
                                   struct work_claiming *claiming,
                                   pawl_error *reterr)
{
    claiming->claim = (pawl_claim)PAWL_CLAIM_INIT;
    claiming->request.kind = WORK_CLAIM;
    TRY(pawl__take_sized("claim", given, &claiming->claim, sizeof(claiming->claim), reterr));
    TRY(check_claim(&claiming->claim, reterr));
    if (claiming->claim.lease_ms == 0) {
        claiming->claim.lease_ms = work->options.lease_ms;
    }
    claiming->filter = (struct work_filter){
        .work_types = claiming->claim.work_types,
        .work_type_count = claiming->claim.work_type_count,
        .task_id = claiming->claim.task_id,
    };
    return PAWL_OK;
}

/* Until when to wait for news at the most: a waiting item may become due before the deadline. */
static int64_t wait_until(const struct work_claiming *claiming, int64_t now_ns, int64_t deadline_ns)
{
    if (claiming->next_due_ns == INT64_MAX) {
        return deadline_ns;
    }
    int64_t in_ns = MAX(claiming->next_due_ns - claiming->now_ns, INT64_C(0));
    return in_ns > deadline_ns - now_ns ? deadline_ns : now_ns + in_ns;
}

/* A claim that may outlive its caller, with copies of its names. It counts as a call under way. */
struct lasting_claim {
    pawl_work *work;
    struct work_claiming claiming;
    pawl_view types[]; /* then their texts */
};

static void on_released(void *context, const pawl_error *outcome)
{
    (void)context;
    (void)outcome; /* if the release failed, the lease expires */
}

/* Releases items whose claim nobody waits for any more. Only if their leases are stored for sure: otherwise the
 * token may belong to another holder by now. */
static void release_claimed(pawl_work *work, const struct work_claiming *claiming)
{
    const pawl_claimed *claimed = claiming->claimed;

    if (claimed == NULL || claiming->request.item.outcome.status != PAWL_OK) {
        return;
    }
    for (size_t i = 0; i < claimed->count; i++) {
        pawl_error error = PAWL_ERROR_INIT;
        const pawl_lease lease = { claimed->items[i].work_item_id, claimed->items[i].token };

        if (pawl__work_release_async(work, &lease, on_released, NULL, &error) != PAWL_OK) {
            on_released(NULL, &error);
        }
    }
}

static void free_lasting(struct pawl__commit_item *item)
{
    struct lasting_claim *lasting =
        (struct lasting_claim *)((char *)item
                                 - offsetof(struct lasting_claim, claiming.request.item));
    pawl_work *work = lasting->work;

    release_claimed(work, &lasting->claiming);
    pawl_claimed_free(lasting->claiming.claimed);
    free(lasting);
    pawl__calls_leave(&work->engine.calls); /* last: closing waits for these releases */
}

static pawl_view move_text(pawl_view text, char **at)
{
    pawl_view moved = { *at, text.len };

    if (text.len > 0) {
        memcpy(*at, text.data, text.len);
    }
    *at += text.len;
    return moved;
}

static struct work_claiming *make_lasting(pawl_work *work, const struct work_claiming *claiming)
{
    size_t bytes = claiming->claim.holder.len + claiming->claim.task_id.len;

    for (size_t i = 0; i < claiming->filter.work_type_count; i++) {
        bytes += claiming->filter.work_types[i].len;
    }
    size_t types_bytes = claiming->filter.work_type_count * sizeof(pawl_view);
    struct lasting_claim *lasting = malloc(sizeof(*lasting) + types_bytes + bytes);
    if (lasting == NULL) {
        return NULL;
    }
    char *at = (char *)lasting->types + types_bytes;
    pawl__calls_enter(&work->engine.calls);
    lasting->work = work;
    lasting->claiming = *claiming;
    lasting->claiming.claimed = NULL;
    lasting->claiming.request.item = (struct pawl__commit_item){ .free = free_lasting };
    lasting->claiming.claim.holder = move_text(claiming->claim.holder, &at);
    lasting->claiming.claim.task_id = move_text(claiming->claim.task_id, &at);
    for (size_t i = 0; i < claiming->filter.work_type_count; i++) {
        lasting->types[i] = move_text(claiming->filter.work_types[i], &at);
    }
    lasting->claiming.claim.work_types = lasting->types;
    lasting->claiming.filter.work_types = lasting->types;
    lasting->claiming.filter.task_id = lasting->claiming.claim.task_id;
    return &lasting->claiming;
}

pawl_status pawl__work_claim_until(pawl_work *work,
                                   struct work_claiming *claiming,
                                   int64_t deadline_ns,
                                   pawl_error *reterr)
{
    struct work_claiming *lasting = make_lasting(work, claiming);

    if (lasting == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a claim");
    }
    struct work_request *request = &lasting->request;
    pawl_status status = pawl__work_submit_until(work, &request, deadline_ns, reterr);
    if (request == NULL) {
        return status;
    }
    claiming->claimed = STEAL(lasting->claimed);
    claiming->next_due_ns = lasting->next_due_ns;
    claiming->now_ns = lasting->now_ns;
    free_lasting(&request->item);
    return status;
}

/* One attempt: prefetched items first, then the store. */
static pawl_status claim_once(pawl_work *work,
                              struct work_claiming *claiming,
                              int64_t deadline_ns,
                              pawl_claimed **ret_claimed,
                              pawl_error *reterr)
{
    if (work->prefetch != NULL) {
        pawl_status status = pawl__work_prefetch_pop(
            work->prefetch, &claiming->claim, ret_claimed, &claiming->prefetch, reterr);
        if (status != PAWL_NOT_FOUND) {
            return status;
        }
    }
    int64_t asked_ns = pawl__calls_now_ns(&work->engine.calls);
    claiming->request.item = (struct pawl__commit_item){ 0 };
    TRY(claiming->claim.wait_ms > 0
            ? pawl__work_claim_until(work, claiming, deadline_ns + LATE_NS, reterr)
            : pawl__work_submit_inside(work, &claiming->request, reterr));
    *ret_claimed = work->prefetch == NULL
                       ? claiming->claimed
                       : pawl__work_prefetch_store(
                           work->prefetch, &claiming->claim, asked_ns, claiming->claimed);
    return PAWL_OK;
}

static pawl_status claim_or_wait(pawl_work *work,
                                 struct work_claiming *claiming,
                                 pawl_claimed **ret_claimed,
                                 pawl_error *reterr)
{
    int64_t deadline_ns =
        pawl__calls_now_ns(&work->engine.calls) + claiming->claim.wait_ms * NS_PER_MS;
    pawl_status status =
        claiming->claim.wait_ms > 0 ? pawl__watch_outside(&work->engine.watch, reterr) : PAWL_OK;

    while (status == PAWL_OK) {
        uint32_t generation = pawl__watch_generation(&work->engine.watch);
        if (claiming->claim.wait_ms > 0 && atomic_load(&work->waits_cancelled)) {
            return pawl__fail(reterr, PAWL_CANCELLED, "cancelled");
        }
        status = claim_once(work, claiming, deadline_ns, ret_claimed, reterr);
        int64_t now_ns = pawl__calls_now_ns(&work->engine.calls);
        if ((status != PAWL_NOT_FOUND && !pawl__status_may_pass(status)) || now_ns >= deadline_ns) {
            return status;
        }
        int64_t until_ns = pawl__status_may_pass(status)
                               ? MIN(now_ns + AGAIN_NS, deadline_ns)
                               : wait_until(claiming, now_ns, deadline_ns);
        status = PAWL_OK;
        (void)pawl__watch_wait(&work->engine.watch, generation, until_ns);
    }
    return status;
}

pawl_status pawl_work_claim(pawl_work *work,
                            const pawl_claim *claim,
                            pawl_claimed **ret_claimed,
                            pawl_error *reterr)
{
    NEED(work, claim, ret_claimed, reterr);
    struct work_claiming claiming = { 0 };
    TRY(pawl__work_claim_parse(work, claim, &claiming, reterr));
    TRY(pawl__work_check_thread(work, reterr));
    pawl__calls_enter(&work->engine.calls);
    pawl_status status = claim_or_wait(work, &claiming, ret_claimed, reterr);
    pawl__calls_leave(&work->engine.calls);
    return status;
}

void pawl_work_cancel_waits(pawl_work *work)
{
    if (work == NULL) {
        return;
    }
    atomic_store(&work->waits_cancelled, true);
    pawl__watch_bump(&work->engine.watch);
}
