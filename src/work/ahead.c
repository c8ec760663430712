#include "work/ahead.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/map.h"
#include "work/copy.h"

enum { SHELVES_MAX = 4096 }; /* holders with their wishes; for more nothing is leased ahead */

/* Items that were leased together. */
struct stock {
    pawl_claimed *claimed;
    size_t from; /* the first that was kept */
    size_t at;   /* the first that nobody has */
    int64_t fresh_until_ns;
    struct stock *next;
};

/* What one holder has for one kind of claim, oldest first. */
struct shelf {
    struct stock *first;
    struct stock *last;
    uint32_t more;    /* to lease next time */
    int64_t asked_ns; /* when there was a claim the last time */
};

struct work_ahead {
    uint32_t max;
    work_ahead_give_back give_back;
    void *context;
    struct pawl__lock lock; /* of all below */
    struct pawl__cond changed;
    struct pawl__map *shelves;
    struct pawl__thread keeper;
    bool stops;
};

static void keep_young(void *context);

pawl_status pawl__ahead_new(uint32_t max,
                            work_ahead_give_back give_back,
                            void *context,
                            struct work_ahead **ret_ahead,
                            pawl_error *reterr)
{
    struct work_ahead *ahead = calloc(1, sizeof(*ahead));

    if (ahead == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items leased ahead");
    }
    ahead->max = max;
    ahead->give_back = give_back;
    ahead->context = context;
    pawl_status status = pawl__lock_init(&ahead->lock, reterr);
    if (status != PAWL_OK) {
        free(ahead);
        return status;
    }
    status = pawl__cond_init(&ahead->changed, reterr);
    if (status != PAWL_OK) {
        pawl__lock_done(&ahead->lock);
        free(ahead);
        return status;
    }
    status = pawl__map_new(SHELVES_MAX, &ahead->shelves, reterr);
    if (status == PAWL_OK) {
        status = pawl__thread_start(&ahead->keeper, "work ahead", keep_young, ahead, reterr);
    }
    if (status != PAWL_OK) {
        pawl__ahead_free(ahead);
        return status;
    }
    *ret_ahead = ahead;
    return PAWL_OK;
}

/* --- shelves --- */

/* Claims with the same key take from one shelf. */
static void write_key(const pawl_claim *claim, struct pawl__buf *key)
{
    pawl__buf_add_u32be(key, claim->lease_ms);
    pawl__buf_add_u32be(key, (uint32_t)claim->holder.len);
    pawl__buf_add(key, claim->holder);
    pawl__buf_add_u32be(key, (uint32_t)claim->task_id.len);
    pawl__buf_add(key, claim->task_id);
    for (size_t i = 0; i < claim->work_type_count; i++) {
        pawl__buf_add_u32be(key, (uint32_t)claim->work_types[i].len);
        pawl__buf_add(key, claim->work_types[i]);
    }
}

/* NULL: there can be none for this claim. */
static struct shelf *shelf_of(struct work_ahead *ahead, const pawl_claim *claim)
    REQUIRES_LOCK(ahead->lock)
{
    char space[1024];
    struct pawl__buf key = BUF_OVER(space);

    write_key(claim, &key);
    if (key.broken) { /* very many types */
        return NULL;
    }
    struct shelf *shelf = pawl__map_get(ahead->shelves, pawl__buf_view(&key));
    if (shelf != NULL) {
        return shelf;
    }
    shelf = calloc(1, sizeof(*shelf));
    if (shelf != NULL
        && pawl__map_put(ahead->shelves, pawl__buf_view(&key), shelf, NULL, NULL) != PAWL_OK) {
        free(shelf);
        shelf = NULL;
    }
    return shelf;
}

static void drop_first(struct shelf *shelf)
{
    struct stock *stock = shelf->first;

    shelf->first = stock->next;
    if (shelf->first == NULL) {
        shelf->last = NULL;
    }
    pawl_claimed_free(stock->claimed);
    free(stock);
}

/* --- claims --- */

static int64_t young_ns(const pawl_claim *claim)
{
    return MIN((int64_t)claim->lease_ms * NS_PER_MS / 8, WORK_AHEAD_NS_MAX);
}

pawl_status pawl__ahead_take(struct work_ahead *ahead,
                             const pawl_claim *claim,
                             pawl_claimed **ret_claimed,
                             uint32_t *ret_more,
                             pawl_error *reterr)
{
    int64_t now_ns = pawl__monotonic_ns(pawl__clock_real());
    pawl_status status = PAWL_NOT_FOUND;

    *ret_more = 0;
    pawl__lock(&ahead->lock);
    struct shelf *shelf = shelf_of(ahead, claim);
    struct stock *stock = shelf == NULL ? NULL : shelf->first;
    if (stock != NULL && now_ns < stock->fresh_until_ns) {
        size_t count = MIN((size_t)claim->count_max, stock->claimed->count - stock->at);
        status = pawl__copy_items(&stock->claimed->items[stock->at], count, ret_claimed, reterr);
        stock->at += status == PAWL_OK ? count : 0;
        if (stock->at == stock->claimed->count) {
            drop_first(shelf);
        }
    } else if (stock == NULL && shelf != NULL) {
        /* Only a holder that comes back while a lease is young can use what is leased ahead. */
        bool quick = shelf->asked_ns != 0 && now_ns - shelf->asked_ns < young_ns(claim);
        shelf->more = quick ? MIN(shelf->more * 2 + 1, ahead->max) : 0;
    }
    if (shelf != NULL) {
        shelf->asked_ns = now_ns;
        *ret_more = stock == NULL ? shelf->more : 0;
    }
    pawl__unlock(&ahead->lock);
    return status;
}

pawl_status pawl__ahead_keep(struct work_ahead *ahead,
                             const pawl_claim *claim,
                             int64_t asked_ns,
                             pawl_claimed *claimed,
                             pawl_claimed **ret_claimed,
                             pawl_error *reterr)
{
    size_t count = MIN((size_t)claim->count_max, claimed->count);
    pawl_status status = PAWL_OK;

    if (count == claimed->count) {
        *ret_claimed = claimed;
        return PAWL_OK;
    }
    struct stock *stock = calloc(1, sizeof(*stock));
    if (stock == NULL) {
        *ret_claimed = claimed; /* more than was asked for, rather than less */
        return PAWL_OK;
    }
    status = pawl__copy_items(claimed->items, count, ret_claimed, reterr);
    *stock = (struct stock){ .claimed = claimed,
                             .from = count,
                             .at = status == PAWL_OK ? count : 0,
                             .fresh_until_ns = asked_ns + young_ns(claim) };
    pawl__lock(&ahead->lock);
    struct shelf *shelf = shelf_of(ahead, claim);
    REQUIRE(shelf != NULL); /* it was made by the take before this */
    if (shelf->last == NULL) {
        shelf->first = stock;
    } else {
        shelf->last->next = stock;
    }
    shelf->last = stock;
    pawl__cond_signal(&ahead->changed);
    pawl__unlock(&ahead->lock);
    return status;
}

/* --- the keeper --- */

/* Takes what is old from the shelves; *ret_next_ns: when the next will be. */
static struct stock *collect(struct work_ahead *ahead, int64_t now_ns, int64_t *ret_next_ns)
    REQUIRES_LOCK(ahead->lock)
{
    struct stock *old = NULL;
    size_t cursor = 0;
    void *value;

    *ret_next_ns = INT64_MAX;
    while (pawl__map_next(ahead->shelves, &cursor, NULL, &value)) {
        struct shelf *shelf = value;
        while (shelf->first != NULL && shelf->first->fresh_until_ns <= now_ns) {
            struct stock *stock = shelf->first;
            shelf->first = stock->next;
            shelf->last = shelf->first == NULL ? NULL : shelf->last;
            shelf->more = MIN(shelf->more, (uint32_t)(MAX(stock->at, stock->from) - stock->from));
            stock->next = old;
            old = stock;
        }
        if (shelf->first != NULL) {
            *ret_next_ns = MIN(*ret_next_ns, shelf->first->fresh_until_ns);
        }
    }
    return old;
}

static void give_back(const struct work_ahead *ahead, struct stock *old)
{
    while (old != NULL) {
        struct stock *stock = old;
        for (size_t i = stock->at; i < stock->claimed->count; i++) {
            pawl_lease lease = { stock->claimed->items[i].work_item_id,
                                 stock->claimed->items[i].token };
            ahead->give_back(ahead->context, &lease);
        }
        old = stock->next;
        pawl_claimed_free(stock->claimed);
        free(stock);
    }
}

static void keep_young(void *context)
{
    struct work_ahead *ahead = context;

    pawl__lock(&ahead->lock);
    while (!ahead->stops) {
        int64_t next_ns;
        struct stock *old = collect(ahead, pawl__monotonic_ns(pawl__clock_real()), &next_ns);
        if (old != NULL) {
            pawl__unlock(&ahead->lock);
            give_back(ahead, old);
            pawl__lock(&ahead->lock);
        } else if (next_ns == INT64_MAX) {
            pawl__cond_wait(&ahead->changed, &ahead->lock);
        } else {
            (void)pawl__cond_wait_until(&ahead->changed, &ahead->lock, next_ns);
        }
    }
    pawl__unlock(&ahead->lock);
}

static void stop(struct work_ahead *ahead)
{
    pawl__lock(&ahead->lock);
    ahead->stops = true;
    pawl__cond_signal(&ahead->changed);
    pawl__unlock(&ahead->lock);
    pawl__thread_join(&ahead->keeper);
}

void pawl__ahead_free(struct work_ahead *ahead)
{
    size_t cursor = 0;
    void *shelf;

    if (ahead == NULL) {
        return;
    }
    stop(ahead);
    if (ahead->shelves != NULL) {
        int64_t next_ns;
        pawl__lock(&ahead->lock);
        struct stock *all = collect(ahead, INT64_MAX, &next_ns);
        pawl__unlock(&ahead->lock);
        give_back(ahead, all);
        while (pawl__map_next(ahead->shelves, &cursor, NULL, &shelf)) {
            free(shelf);
        }
        pawl__map_free(ahead->shelves);
    }
    pawl__cond_done(&ahead->changed);
    pawl__lock_done(&ahead->lock);
    free(ahead);
}
