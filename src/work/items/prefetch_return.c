#include "work/items/prefetch_return.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "work/items/prefetch.h"

#define RETRY_NS (500 * NS_PER_MS) /* between two attempts to return an item */

/* An item that is being returned. */
struct returning {
    struct work_prefetch *prefetch;
    uint64_t token;
    int64_t leased_until_ns; /* then a sweep takes it back, and counts a retry */
    int64_t retry_ns;
    struct returning *next;
    size_t id_len;
    char id[];
};

struct work_prefetch {
    struct pawl__clock *clock;
    work_release_fn *release;
    void *context;
    struct pawl__lock lock; /* covers the rest */
    struct pawl__cond changed;
    struct work_prefetch_cache *cache;
    struct returning *retries; /* could not be returned yet */
    int64_t wakes_ns;          /* when the returner wakes up */
    bool stops;
    struct pawl__thread returner;
};

static int64_t now_ns(const struct work_prefetch *prefetch)
{
    return pawl__monotonic_ns(prefetch->clock);
}

/* --- returning items --- */

/* Whether another attempt may succeed. */
static bool is_passing(pawl_status status)
{
    return pawl__status_may_pass(status) || status == PAWL_IO || status == PAWL_NOMEM
           || status == PAWL_NO_SPACE;
}

static void wake_returner_locked(struct work_prefetch *prefetch, int64_t at_ns)
    REQUIRES_LOCK(prefetch->lock)
{
    if (at_ns < prefetch->wakes_ns) {
        prefetch->wakes_ns = at_ns;
        pawl__cond_signal(&prefetch->changed);
    }
}

/* Runs on the committer's thread, or on the caller's when the release could not be sent. */
static void on_released(void *context, const pawl_error *outcome)
{
    struct returning *returning = context;
    struct work_prefetch *prefetch = returning->prefetch;
    int64_t retry_ns = now_ns(prefetch) + RETRY_NS;

    pawl__lock(&prefetch->lock);
    bool again =
        is_passing(outcome->status) && !prefetch->stops && retry_ns < returning->leased_until_ns;
    if (again) {
        returning->retry_ns = retry_ns;
        returning->next = prefetch->retries;
        prefetch->retries = returning;
        wake_returner_locked(prefetch, retry_ns);
    }
    pawl__unlock(&prefetch->lock);
    if (!again) {
        free(returning);
    }
}

static void send_release(struct work_prefetch *prefetch, struct returning *returning)
{
    const pawl_lease lease = { sizeof(pawl_lease),
                               { returning->id, returning->id_len },
                               returning->token };
    pawl_error error = PAWL_ERROR_INIT;

    if (prefetch->release(prefetch->context, &lease, on_released, returning, &error) != PAWL_OK) {
        on_released(returning, &error);
    }
}

static void return_item(struct work_prefetch *prefetch,
                        const pawl_item *item,
                        int64_t leased_until_ns)
{
    struct returning *returning = malloc(sizeof(*returning) + item->work_item_id.len);

    if (returning == NULL) {
        return; /* its lease expires */
    }
    *returning = (struct returning){ .prefetch = prefetch,
                                     .token = item->token,
                                     .leased_until_ns = leased_until_ns,
                                     .id_len = item->work_item_id.len };
    memcpy(returning->id, item->work_item_id.data, returning->id_len);
    send_release(prefetch, returning);
}

static void return_batches(struct work_prefetch *prefetch, struct work_prefetch_batch *batches)
{
    while (batches != NULL) {
        struct work_prefetch_batch *batch = batches;
        for (size_t i = batch->at; i < batch->claimed->count; i++) {
            return_item(prefetch, &batch->claimed->items[i], batch->leased_until_ns);
        }
        batches = batch->next;
        pawl__work_prefetch_batch_free(batch);
    }
}

static void release_again(struct work_prefetch *prefetch, struct returning *due)
{
    while (due != NULL) {
        struct returning *returning = due;
        due = returning->next;
        send_release(prefetch, returning);
    }
}

/* --- claims --- */

pawl_status pawl__work_prefetch_pop(struct work_prefetch *prefetch,
                                    const pawl_claim *claim,
                                    pawl_claimed **ret_claimed,
                                    uint32_t *ret_prefetch,
                                    pawl_error *reterr)
{
    pawl__lock(&prefetch->lock);
    pawl_status status = pawl__work_prefetch_cache_pop(
        prefetch->cache, claim, now_ns(prefetch), ret_claimed, ret_prefetch, reterr);
    pawl__unlock(&prefetch->lock);
    return status;
}

pawl_claimed *pawl__work_prefetch_store(struct work_prefetch *prefetch,
                                        const pawl_claim *claim,
                                        int64_t asked_ns,
                                        pawl_claimed *claimed)
{
    const struct work_prefetch_batch *batch = NULL;
    pawl_claimed *handed_out = NULL;

    pawl__lock(&prefetch->lock);
    pawl_status status = pawl__work_prefetch_cache_store(
        prefetch->cache, claim, asked_ns, claimed, &handed_out, &batch, NULL);
    if (batch != NULL) {
        wake_returner_locked(prefetch, batch->fresh_until_ns);
    }
    pawl__unlock(&prefetch->lock);
    if (status == PAWL_OK) {
        return handed_out;
    }
    int64_t leased_until_ns = asked_ns + (int64_t)claim->lease_ms * NS_PER_MS;
    for (size_t i = claim->count_max; i < claimed->count; i++) {
        return_item(prefetch, &claimed->items[i], leased_until_ns);
    }
    claimed->count = claim->count_max; /* it fails only with more than these */
    return claimed;
}

void pawl__work_prefetch_withdraw(struct work_prefetch *prefetch,
                                  pawl_view task_id,
                                  pawl_view work_item_id)
{
    const struct work_prefetch_eviction which = { .task_id = task_id,
                                                  .work_item_id = work_item_id };

    if (prefetch == NULL) {
        return;
    }
    pawl__lock(&prefetch->lock);
    struct work_prefetch_batch *evicted =
        pawl__work_prefetch_cache_evict(prefetch->cache, &which, NULL);
    pawl__unlock(&prefetch->lock);
    return_batches(prefetch, evicted);
}

/* --- the thread that returns items --- */

/* What to return now, and when there is more. */
struct due {
    struct work_prefetch_batch *batches;
    struct returning *retries;
    int64_t next_ns;
};

static struct due pop_due_locked(struct work_prefetch *prefetch, int64_t now)
    REQUIRES_LOCK(prefetch->lock)
{
    const struct work_prefetch_eviction old = { .now_ns = now };
    struct returning **at = &prefetch->retries;
    struct due due = { .retries = NULL };

    due.batches = pawl__work_prefetch_cache_evict(prefetch->cache, &old, &due.next_ns);
    while (*at != NULL) {
        struct returning *returning = *at;
        if (returning->retry_ns <= now) {
            *at = returning->next;
            returning->next = due.retries;
            due.retries = returning;
        } else {
            due.next_ns = MIN(due.next_ns, returning->retry_ns);
            at = &returning->next;
        }
    }
    return due;
}

static void run_returner(void *context)
{
    struct work_prefetch *prefetch = context;

    pawl__lock(&prefetch->lock);
    while (!prefetch->stops) {
        struct due due = pop_due_locked(prefetch, now_ns(prefetch));
        prefetch->wakes_ns = due.next_ns;
        if (due.batches != NULL || due.retries != NULL) {
            pawl__unlock(&prefetch->lock);
            return_batches(prefetch, due.batches);
            release_again(prefetch, due.retries);
            pawl__lock(&prefetch->lock);
        } else if (due.next_ns == INT64_MAX) {
            pawl__cond_wait(&prefetch->changed, &prefetch->lock);
        } else {
            (void)pawl__cond_wait_until(&prefetch->changed, &prefetch->lock, due.next_ns);
        }
    }
    pawl__unlock(&prefetch->lock);
}

/* --- starting and stopping --- */

pawl_status pawl__work_prefetch_new(uint32_t max,
                                    struct pawl__clock *clock,
                                    work_release_fn *release,
                                    void *context,
                                    struct work_prefetch **ret_prefetch,
                                    pawl_error *reterr)
{
    struct work_prefetch *prefetch = calloc(1, sizeof(*prefetch));

    if (prefetch == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for prefetched items");
    }
    prefetch->clock = clock;
    prefetch->release = release;
    prefetch->context = context;
    prefetch->wakes_ns = INT64_MAX;
    pawl__lock_cond_init(&prefetch->lock, &prefetch->changed);
    pawl_status status = pawl__work_prefetch_cache_new(max, &prefetch->cache, reterr);
    if (status == PAWL_OK) {
        status = pawl__thread_start(
            &prefetch->returner, "work prefetch", run_returner, prefetch, reterr);
    }
    if (status != PAWL_OK) {
        pawl__work_prefetch_free(prefetch);
        return status;
    }
    *ret_prefetch = prefetch;
    return PAWL_OK;
}

void pawl__work_prefetch_stop(struct work_prefetch *prefetch)
{
    if (prefetch == NULL) {
        return;
    }
    pawl__lock(&prefetch->lock);
    prefetch->stops = true;
    struct due due = pop_due_locked(prefetch, INT64_MAX);
    pawl__cond_signal(&prefetch->changed);
    pawl__unlock(&prefetch->lock);
    pawl__thread_join(&prefetch->returner);
    return_batches(prefetch, due.batches);
    release_again(prefetch, due.retries);
}

void pawl__work_prefetch_free(struct work_prefetch *prefetch)
{
    if (prefetch == NULL) {
        return;
    }
    REQUIRE(!prefetch->returner.started || prefetch->stops);
    pawl__work_prefetch_cache_free(prefetch->cache);
    pawl__lock_cond_done(&prefetch->lock, &prefetch->changed);
    free(prefetch);
}
