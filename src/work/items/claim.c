/* Claims: those with the same filter share one walk; a claim that finds nothing may wait. */
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
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

/* --- waiting --- */

/* A thread that waits for its claim. */
struct waiting_thread {
    sem_t answered;
    pawl_claimed *claimed;
    pawl_error outcome;
};

static void wake_thread(void *context, pawl_claimed *claimed, const pawl_error *outcome)
{
    struct waiting_thread *waiting = context;

    waiting->claimed = claimed;
    waiting->outcome = *outcome;
    REQUIRE(sem_post(&waiting->answered) == 0); /* the thread frees it from here on */
}

/* The wait itself has a bound: see waiters.h. */
static pawl_status claim_waiting(pawl_work *work,
                                 struct work_claiming *claiming,
                                 pawl_error *reterr)
{
    struct waiting_thread waiting = { .claimed = NULL };

    REQUIRE(sem_init(&waiting.answered, 0, 0) == 0); /* allocates nothing */
    TRY(pawl__work_waiters_claim(&work->waiters, claiming, wake_thread, &waiting, reterr));
    while (sem_wait(&waiting.answered) != 0) {
        REQUIRE(errno == EINTR);
    }
    claiming->claimed = waiting.claimed;
    return pawl__fail_with(reterr, waiting.outcome.status, &waiting.outcome);
}

/* Prefetched items first, then the store. */
static pawl_status claim_items(pawl_work *work,
                               struct work_claiming *claiming,
                               pawl_claimed **ret_claimed,
                               pawl_error *reterr)
{
    if (claiming->claim.wait_ms > 0 && atomic_load(&work->waits_cancelled)) {
        return pawl__fail(reterr, PAWL_CANCELLED, "cancelled");
    }
    if (work->prefetch != NULL) {
        pawl_status status = pawl__work_prefetch_pop(
            work->prefetch, &claiming->claim, ret_claimed, &claiming->prefetch, reterr);
        if (status != PAWL_NOT_FOUND) {
            return status;
        }
    }
    int64_t asked_ns = pawl__calls_now_ns(&work->engine.calls);
    claiming->ret_asked_ns = &asked_ns;
    TRY(claiming->claim.wait_ms > 0 ? claim_waiting(work, claiming, reterr)
                                    : pawl__work_submit_inside(work, &claiming->request, reterr));
    *ret_claimed = work->prefetch == NULL
                       ? claiming->claimed
                       : pawl__work_prefetch_store(
                           work->prefetch, &claiming->claim, asked_ns, claiming->claimed);
    return PAWL_OK;
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
    pawl_status status = claim_items(work, &claiming, ret_claimed, reterr);
    pawl__calls_leave(&work->engine.calls);
    return status;
}

pawl_status pawl_work_claim_async(pawl_work *work,
                                  const pawl_claim *claim,
                                  pawl_work_claim_done done,
                                  void *context,
                                  pawl_error *reterr)
{
    NEED(work, reterr);
    NEED(claim, reterr);
    NEED(done, reterr);
    struct work_claiming claiming = { 0 };
    TRY(pawl__work_claim_parse(work, claim, &claiming, reterr));
    return pawl__work_waiters_claim(&work->waiters, &claiming, done, context, reterr);
}

void pawl_work_cancel_claim(pawl_work *work, pawl_work_claim_done done, void *context)
{
    if (work != NULL) {
        pawl__work_waiters_cancel(&work->waiters, done, context);
    }
}

void pawl_work_cancel_waits(pawl_work *work)
{
    if (work == NULL) {
        return;
    }
    atomic_store(&work->waits_cancelled, true);
    pawl__watch_bump(&work->engine.watch);
}
