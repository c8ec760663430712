#include "work/items/waiters.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/thread/inside.h"
#include "work/core/internal.h"
#include "work/items/claim_queue.h"

enum { WAITERS_MAX = 65536 };
/* With less, leases that a slow disk is about to grant would be lost; a store that hangs is given up by then. */
#define LATE_NS (5 * NS_PER_S)
#define INTERRUPTED_NS (2 * NS_PER_S) /* what an interrupted store has for its answers */

struct work_waiter {
    struct work_claiming claiming; /* its filter is the queue's */
    struct work_waiters *waiters;
    struct claim_queue *queue;
    struct work_waiter *next; /* among all */
    struct work_waiter *before;
    struct work_waiter *chosen; /* the next one that is sent together with this one; the sender's */
    struct work_waiter *ended;  /* the next one that the thread answers */
    pawl_work_claim_done done;
    void *context;
    int64_t deadline_ns;
    int64_t asked_ns;
    int refs; /* of the list or whoever answers it, and of the committer */
    bool linked;
    bool asking; /* the committer has it */
    bool cancelled;
    bool waited;     /* nothing was there at once */
    uint64_t misses; /* of its queue, when it joined */
    char holder[];
};

static int64_t now_ns(const struct work_waiters *waiters)
{
    return pawl__calls_now_ns(&waiters->work->engine.calls);
}

/* --- the list of all --- */

static void link_locked(struct work_waiters *waiters, struct work_waiter *waiter)
    REQUIRES_LOCK(waiters->lock)
{
    waiter->linked = true;
    waiter->before = waiters->last;
    *(waiters->last == NULL ? &waiters->first : &waiters->last->next) = waiter;
    waiters->last = waiter;
    waiters->count++;
}

static void unlink_locked(struct work_waiters *waiters, struct work_waiter *waiter)
    REQUIRES_LOCK(waiters->lock)
{
    *(waiter->before == NULL ? &waiters->first : &waiter->before->next) = waiter->next;
    *(waiter->next == NULL ? &waiters->last : &waiter->next->before) = waiter->before;
    waiter->linked = false;
    waiter->next = NULL;
    waiter->queue->parked -= !waiter->asking;
    waiters->count--;
}

/* --- the end of a claim --- */

static void on_released(void *context, const pawl_error *outcome)
{
    (void)context;
    (void)outcome; /* if the release failed, the lease expires */
}

/* Releases items whose claim nobody waits for any more. */
static void release_claimed(pawl_work *work, const pawl_claimed *claimed)
{
    for (size_t i = 0; claimed != NULL && i < claimed->count; i++) {
        const pawl_lease lease = { sizeof(pawl_lease),
                                   claimed->items[i].work_item_id,
                                   claimed->items[i].token };

        (void)!pawl_work_release_async(work, &lease, on_released, NULL, NULL);
    }
}

static void unref(struct work_waiter *waiter)
{
    struct work_waiters *waiters = waiter->waiters;

    pawl__lock(&waiters->lock);
    bool last = --waiter->refs == 0;
    if (last) {
        pawl__work_claim_queue_leave(&waiters->queues, waiter->queue);
    }
    pawl__unlock(&waiters->lock);
    if (last) {
        free(waiter);
        pawl__calls_leave(&waiters->work->engine.calls); /* closing waits for it */
    }
}

/* It is unlinked: nobody else answers it. */
static void answer(struct work_waiter *waiter, pawl_claimed *claimed, const pawl_error *outcome)
{
    struct pawl__inside inside;

    if (claimed != NULL) {
        claimed->waited = waiter->waited;
    }
    if (waiter->claiming.ret_asked_ns != NULL) {
        *waiter->claiming.ret_asked_ns = waiter->asked_ns;
    }
    pawl__inside_enter(&inside, waiter->waiters->work->engine.commit);
    waiter->done(waiter->context, claimed, outcome);
    pawl__inside_leave(&inside);
    unref(waiter);
}

/* --- asking --- */

static void on_answered(struct pawl__commit_item *item);

static void begin_to_ask_locked(struct work_waiters *waiters, struct work_waiter *waiter)
    REQUIRES_LOCK(waiters->lock)
{
    REQUIRE(waiter->waiters == waiters);
    waiter->waited |= waiter->misses != waiter->queue->misses;
    waiters->asking++;
    waiter->queue->asking++;
    waiter->asking = true;
    waiter->refs++;
    waiter->asked_ns = now_ns(waiters);
    waiter->claiming.request.item = (struct pawl__commit_item){ .done = on_answered };
}

/* The claims that ask now, oldest first, for send_requests. */
static struct work_waiter *choose_locked(struct work_waiters *waiters) REQUIRES_LOCK(waiters->lock)
{
    struct work_waiter *chosen = NULL;
    struct work_waiter **end = &chosen;
    size_t room = pawl__work_claim_queues_open_rounds(waiters->queues);

    for (struct work_waiter *at = waiters->first; at != NULL && room > 0; at = at->next) {
        if (!at->asking && at->queue->room > 0) {
            room--;
            at->queue->room--;
            at->queue->parked--;
            begin_to_ask_locked(waiters, at);
            at->chosen = NULL;
            *end = at;
            end = &at->chosen;
        }
    }
    return chosen;
}

static void sleep_until_locked(struct work_waiters *waiters, int64_t at_ns)
    REQUIRES_LOCK(waiters->lock)
{
    if (at_ns < waiters->sleeps_until_ns) {
        waiters->sleeps_until_ns = at_ns;
        pawl__cond_signal(&waiters->changed);
    }
}

static bool is_over(const struct work_waiter *waiter, int64_t at_ns)
{
    return waiter->cancelled || waiter->deadline_ns <= at_ns
           || (waiter->claiming.claim.wait_ms > 0
               && atomic_load(&waiter->waiters->work->waits_cancelled));
}

/* The committer is done with its request. True: the claim ends with that outcome. */
static bool take_back_locked(struct work_waiters *waiters, struct work_waiter *waiter)
    REQUIRES_LOCK(waiters->lock)
{
    struct claim_queue *queue = waiter->queue;
    pawl_status status = waiter->claiming.request.item.outcome.status;

    waiters->asking--;
    queue->asking--;
    waiter->asking = false;
    pawl__work_claim_queue_note_outcome(queue, &waiter->claiming, now_ns(waiters));
    sleep_until_locked(waiters, queue->due_ns);
    if (queue->asking == 0) {
        pawl__work_claim_queue_end_round(queue);
    }
    if (!waiter->linked) {
        return false;
    }
    queue->parked++;
    waiter->waited |= status != PAWL_OK;
    bool goes_on = status == PAWL_NOT_FOUND || pawl__status_may_pass(status);
    if (goes_on && !is_over(waiter, now_ns(waiters))) {
        sleep_until_locked(waiters, waiter->deadline_ns);
        return false;
    }
    unlink_locked(waiters, waiter);
    return true;
}

static pawl_error outcome_of(const struct work_waiter *waiter, const pawl_error *stored)
{
    pawl_error outcome = *stored;
    bool cancelled = waiter->cancelled
                     || (waiter->claiming.claim.wait_ms > 0
                         && atomic_load(&waiter->waiters->work->waits_cancelled));

    if (outcome.status != PAWL_OK && cancelled) {
        (void)pawl__fail(&outcome, PAWL_CANCELLED, "cancelled");
    }
    return outcome;
}

static void settle(struct work_waiter *waiter, bool answers, pawl_claimed *claimed)
{
    pawl_error outcome = outcome_of(waiter, &waiter->claiming.request.item.outcome);
    pawl_work *work = waiter->waiters->work;

    if (answers) {
        pawl__lock(&waiter->waiters->lock);
        waiter->refs--; /* the committer's; the other one is left */
        pawl__unlock(&waiter->waiters->lock);
        answer(waiter, claimed, &outcome);
    } else {
        /* Only if their leases are stored for sure: otherwise the token may be another holder's. */
        release_claimed(work, claimed);
        pawl_claimed_free(claimed);
        unref(waiter);
    }
}

static void send_requests(struct work_waiter *chosen);

static void come_back(struct work_waiter *waiter, bool next_round)
{
    struct work_waiters *waiters = waiter->waiters;
    pawl_claimed *claimed = STEAL(waiter->claiming.claimed);

    if (waiter->claiming.request.item.outcome.status != PAWL_OK) {
        pawl_claimed_free(STEAL(claimed));
    }
    pawl__lock(&waiters->lock);
    bool answers = take_back_locked(waiters, waiter);
    struct work_waiter *chosen = next_round ? choose_locked(waiters) : NULL;
    pawl__unlock(&waiters->lock);
    send_requests(chosen); /* first: the next transaction begins while this one is told */
    settle(waiter, answers, claimed);
}

/* On the committer's thread, or that of who stops it. */
static void on_answered(struct pawl__commit_item *item)
{
    come_back(
        (struct work_waiter *)((char *)item - offsetof(struct work_waiter, claiming.request.item)),
        true);
}

/* Hands requests to the committer. One that is refused comes back at once; the thread begins the next round. */
static void send_requests(struct work_waiter *chosen)
{
    while (chosen != NULL) {
        struct work_waiter *waiter = chosen;
        pawl_error error = PAWL_ERROR_INIT;

        chosen = waiter->chosen; /* the waiter is gone as soon as it is answered */
        if (pawl__work_submit_request_async(
                waiter->waiters->work, &waiter->claiming.request, &error)
            != PAWL_OK) {
            waiter->claiming.request.item.outcome = error;
            come_back(waiter, false);
        }
    }
}

/* --- the thread --- */

/* When the wait is over: of one that the store is carrying out, later. One that does not wait for items waits for the
 * store, whose own waits have bounds. */
static int64_t ends_at_ns(const struct work_waiters *waiters, const struct work_waiter *waiter)
{
    int64_t late_ns =
        waiter->claiming.claim.wait_ms == 0 ? INT64_MAX : waiter->deadline_ns + waiters->late_ns;

    if (!waiter->asking) {
        return waiter->deadline_ns;
    }
    return waiters->interrupted_ns == 0 ? late_ns
                                        : MIN(late_ns, waiters->interrupted_ns + INTERRUPTED_NS);
}

/* Unlinks claims whose time is over; they are linked by `ended`. */
static struct work_waiter *end_late_locked(struct work_waiters *waiters, int64_t at_ns)
    REQUIRES_LOCK(waiters->lock)
{
    struct work_waiter *ended = NULL;
    struct work_waiter **end = &ended;
    struct work_waiter *next = NULL;

    if (waiters->interrupted_ns == 0 && atomic_load(&waiters->work->engine.interrupted)) {
        waiters->interrupted_ns = at_ns;
    }
    for (struct work_waiter *waiter = waiters->first; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (ends_at_ns(waiters, waiter) <= at_ns || (!waiter->asking && is_over(waiter, at_ns))) {
            unlink_locked(waiters, waiter);
            waiter->ended = NULL;
            *end = waiter;
            end = &waiter->ended;
        } else {
            waiters->sleeps_until_ns = MIN(waiters->sleeps_until_ns, ends_at_ns(waiters, waiter));
        }
    }
    return ended;
}

/* Why a claim ends that the thread has unlinked. */
static pawl_error why_it_ends(struct work_waiters *waiters, const struct work_waiter *waiter)
{
    pawl_error why = PAWL_ERROR_INIT;

    pawl__lock(&waiters->lock);
    if (waiter->asking) {
        (void)pawl__fail(
            &why,
            PAWL_TIMEOUT,
            "the store did not answer in time; if it still leases items, they are released");
    } else if (waiter->queue->failure.status != PAWL_OK) {
        why = waiter->queue->failure;
    } else {
        (void)pawl__fail(&why, PAWL_NOT_FOUND, "nothing to claim");
    }
    pawl__unlock(&waiters->lock);
    return outcome_of(waiter, &why);
}

static void answer_late(struct work_waiters *waiters, struct work_waiter *ended)
{
    while (ended != NULL) {
        struct work_waiter *waiter = ended;
        pawl_error why = why_it_ends(waiters, waiter);

        ended = waiter->ended;
        answer(waiter, NULL, &why);
    }
}

static void run(void *context)
{
    struct work_waiters *waiters = context;

    pawl__lock(&waiters->lock);
    while (!waiters->stopping) {
        int64_t at_ns = now_ns(waiters);

        waiters->sleeps_until_ns = INT64_MAX;
        struct work_waiter *ended = end_late_locked(waiters, at_ns);
        waiters->sleeps_until_ns =
            MIN(waiters->sleeps_until_ns, pawl__work_claim_queues_note_due(waiters->queues, at_ns));
        struct work_waiter *chosen = choose_locked(waiters);
        if (ended == NULL && chosen == NULL) {
            (void)pawl__cond_wait_until(
                &waiters->changed, &waiters->lock, waiters->sleeps_until_ns);
            continue;
        }
        pawl__unlock(&waiters->lock);
        send_requests(chosen);
        answer_late(waiters, ended);
        pawl__lock(&waiters->lock);
    }
    pawl__unlock(&waiters->lock);
}

/* Something was committed, or waits were cancelled. On the watch's thread. */
static void on_news(void *context)
{
    struct work_waiters *waiters = context;
    const pawl_work *work = waiters->work;

    pawl__lock(&waiters->lock);
    pawl__work_claim_queues_note_news(waiters->queues);
    if (atomic_load(&work->waits_cancelled) || atomic_load(&work->engine.interrupted)) {
        sleep_until_locked(waiters, 0);
    }
    struct work_waiter *chosen = choose_locked(waiters);
    pawl__unlock(&waiters->lock);
    send_requests(chosen);
}

static pawl_status start_locked(struct work_waiters *waiters, pawl_error *reterr)
    REQUIRES_LOCK(waiters->lock)
{
    struct pawl__watch *watch = &waiters->work->engine.watch;

    if (waiters->thread.started) {
        return PAWL_OK;
    }
    TRY(pawl__watch_outside(watch, reterr));
    if (waiters->news.watch == NULL) {
        TRY(pawl__watch_subscribe(watch, &waiters->news, on_news, waiters, reterr));
    }
    return pawl__thread_start(&waiters->thread, "pawl-work-wait", run, waiters, reterr);
}

void pawl__work_waiters_init(struct work_waiters *waiters, pawl_work *work)
{
    waiters->work = work;
    waiters->late_ns = LATE_NS;
    waiters->sleeps_until_ns = INT64_MAX;
    pawl__lock_cond_init(&waiters->lock, &waiters->changed);
    waiters->ready = true;
}

void pawl__work_waiters_stop(struct work_waiters *waiters)
{
    if (!waiters->ready) {
        return;
    }
    pawl__watch_unsubscribe(&waiters->news);
    pawl__lock(&waiters->lock);
    waiters->stopping = true;
    pawl__cond_signal(&waiters->changed);
    pawl__unlock(&waiters->lock);
    pawl__thread_join(&waiters->thread);
}

void pawl__work_waiters_done(struct work_waiters *waiters)
{
    if (waiters->ready) {
        REQUIRE(waiters->first == NULL && waiters->queues == NULL);
        pawl__lock_cond_done(&waiters->lock, &waiters->changed);
        waiters->ready = false;
    }
}

/* --- claims --- */

static struct work_waiter *make_waiter(struct work_waiters *waiters,
                                       const struct work_claiming *claiming)
{
    pawl_view holder = claiming->claim.holder;
    struct work_waiter *waiter = malloc(sizeof(*waiter) + holder.len);

    if (waiter != NULL) {
        *waiter = (struct work_waiter){
            .claiming = *claiming,
            .waiters = waiters,
            .deadline_ns = now_ns(waiters) + claiming->claim.wait_ms * NS_PER_MS,
            .refs = 1,
        };
        memcpy(waiter->holder, holder.data, holder.len);
        waiter->claiming.claim.holder = (pawl_view){ waiter->holder, holder.len };
    }
    return waiter;
}

/* True: it asks at once. Otherwise others of its queue wait, and it comes after them. */
static bool join_locked(struct work_waiters *waiters,
                        struct work_waiter *waiter,
                        struct claim_queue *queue) REQUIRES_LOCK(waiters->lock)
{
    bool waits = waiter->claiming.claim.wait_ms > 0;
    bool asks = !waits || (queue->parked == 0 && queue->asking == 0);

    waiter->queue = queue;
    waiter->misses = queue->misses;
    waiter->claiming.filter = queue->filter;
    waiter->claiming.claim.work_types = queue->filter.work_types;
    waiter->claiming.claim.task_id = queue->filter.task_id;
    link_locked(waiters, waiter);
    if (asks) {
        queue->missed &= queue->asking > 0;
        begin_to_ask_locked(waiters, waiter);
    } else {
        queue->parked++;
        waiter->waited = queue->asking == 0; /* then the others have found nothing */
    }
    sleep_until_locked(waiters, is_over(waiter, INT64_MIN) ? 0 : ends_at_ns(waiters, waiter));
    return asks;
}

static pawl_status add_locked(struct work_waiters *waiters,
                              struct work_waiter *waiter,
                              const struct work_filter *filter,
                              bool *ret_asks,
                              pawl_error *reterr) REQUIRES_LOCK(waiters->lock)
{
    if (waiters->count >= WAITERS_MAX) {
        return pawl__fail(reterr, PAWL_BUSY, "%d claims wait already", (int)WAITERS_MAX);
    }
    TRY(start_locked(waiters, reterr));
    struct claim_queue *queue = pawl__work_claim_queue_join(&waiters->queues, filter);
    if (queue == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a claim");
    }
    *ret_asks = join_locked(waiters, waiter, queue);
    return PAWL_OK;
}

/* The first request of a claim. When the store takes it no more and the claim would end with that, it is refused
 * instead of answered: a `done` that claims again would otherwise call itself until the stack ends. */
static pawl_status ask_first(struct work_waiter *waiter, pawl_error *reterr)
{
    struct work_waiters *waiters = waiter->waiters;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__work_submit_request_async(waiters->work, &waiter->claiming.request, &error)
        == PAWL_OK) {
        return PAWL_OK;
    }
    waiter->claiming.request.item.outcome = error;
    pawl__lock(&waiters->lock);
    bool ends = take_back_locked(waiters, waiter);
    waiter->refs -= ends; /* of the list, which has let go of it */
    pawl__unlock(&waiters->lock);
    error = outcome_of(waiter, &error);
    unref(waiter);
    return ends ? pawl__fail_with(reterr, error.status, &error) : PAWL_OK;
}

pawl_status pawl__work_waiters_claim(struct work_waiters *waiters,
                                     const struct work_claiming *claiming,
                                     pawl_work_claim_done done,
                                     void *context,
                                     pawl_error *reterr)
{
    struct work_waiter *waiter = make_waiter(waiters, claiming);
    bool asks = false;

    if (waiter == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a claim");
    }
    waiter->done = done;
    waiter->context = context;
    pawl__calls_enter(&waiters->work->engine.calls);
    pawl__lock(&waiters->lock);
    pawl_status status = add_locked(waiters, waiter, &claiming->filter, &asks, reterr);
    pawl__unlock(&waiters->lock);
    if (status != PAWL_OK) {
        free(waiter);
        pawl__calls_leave(&waiters->work->engine.calls);
    } else if (asks) {
        status = ask_first(waiter, reterr);
    }
    return status;
}

void pawl__work_waiters_cancel(struct work_waiters *waiters,
                               pawl_work_claim_done done,
                               void *context)
{
    pawl__lock(&waiters->lock);
    for (struct work_waiter *at = waiters->first; at != NULL; at = at->next) {
        if (at->done == done && at->context == context) {
            at->cancelled = true;
            sleep_until_locked(waiters, 0);
        }
    }
    pawl__unlock(&waiters->lock);
}
