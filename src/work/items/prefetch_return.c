#include "work/items/prefetch_return.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "work/items/prefetch.h"

#define AGAIN_NS (500 * NS_PER_MS) /* between two tries to give an item back */

/* An item on its way back. */
struct returning {
    struct work_ahead *ahead;
    uint64_t token;
    int64_t leased_until_ns; /* then it comes back by itself, and counts as a retry */
    int64_t again_ns;
    struct returning *next;
    size_t id_len;
    char id[];
};

struct work_ahead {
    struct pawl__clock *clock;
    work_ahead_release release;
    void *context;
    struct pawl__lock lock; /* of all below */
    struct pawl__cond changed;
    struct work_shelves *shelves;
    struct returning *again; /* could not be given back yet */
    int64_t wakes_ns;        /* when the keeper looks again */
    bool stops;
    struct pawl__thread keeper;
};

static int64_t now_ns(const struct work_ahead *ahead)
{
    return pawl__monotonic_ns(ahead->clock);
}

/* --- giving back --- */

/* Whether another try may help. */
static bool is_passing(pawl_status status)
{
    return pawl__status_may_pass(status) || status == PAWL_IO || status == PAWL_NOMEM
           || status == PAWL_NO_SPACE;
}

static void wake_keeper_locked(struct work_ahead *ahead, int64_t at_ns) REQUIRES_LOCK(ahead->lock)
{
    if (at_ns < ahead->wakes_ns) {
        ahead->wakes_ns = at_ns;
        pawl__cond_signal(&ahead->changed);
    }
}

/* Runs on the committer's thread, or on that of whoever could not send it. */
static void came_back(void *context, const pawl_error *outcome)
{
    struct returning *returning = context;
    struct work_ahead *ahead = returning->ahead;
    int64_t again_ns = now_ns(ahead) + AGAIN_NS;

    pawl__lock(&ahead->lock);
    bool again =
        is_passing(outcome->status) && !ahead->stops && again_ns < returning->leased_until_ns;
    if (again) {
        returning->again_ns = again_ns;
        returning->next = ahead->again;
        ahead->again = returning;
        wake_keeper_locked(ahead, again_ns);
    }
    pawl__unlock(&ahead->lock);
    if (!again) {
        free(returning);
    }
}

static void send_back(struct work_ahead *ahead, struct returning *returning)
{
    const pawl_lease lease = { { returning->id, returning->id_len }, returning->token };
    pawl_error error = PAWL_ERROR_INIT;

    if (ahead->release(ahead->context, &lease, came_back, returning, &error) != PAWL_OK) {
        came_back(returning, &error);
    }
}

static void send_item_back(struct work_ahead *ahead, const pawl_item *item, int64_t leased_until_ns)
{
    struct returning *returning = malloc(sizeof(*returning) + item->work_item_id.len);

    if (returning == NULL) {
        return; /* its lease runs out */
    }
    *returning = (struct returning){ .ahead = ahead,
                                     .token = item->token,
                                     .leased_until_ns = leased_until_ns,
                                     .id_len = item->work_item_id.len };
    memcpy(returning->id, item->work_item_id.data, returning->id_len);
    send_back(ahead, returning);
}

static void send_stocks_back(struct work_ahead *ahead, struct work_stock *down)
{
    while (down != NULL) {
        struct work_stock *stock = down;
        for (size_t i = stock->at; i < stock->claimed->count; i++) {
            send_item_back(ahead, &stock->claimed->items[i], stock->leased_until_ns);
        }
        down = stock->next;
        pawl__stock_free(stock);
    }
}

/* --- claims --- */

pawl_status pawl__ahead_take(struct work_ahead *ahead,
                             const pawl_claim *claim,
                             pawl_claimed **ret_claimed,
                             uint32_t *ret_more,
                             pawl_error *reterr)
{
    pawl__lock(&ahead->lock);
    pawl_status status =
        pawl__shelves_take(ahead->shelves, claim, now_ns(ahead), ret_claimed, ret_more, reterr);
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
    const struct work_stock *stock = NULL;

    pawl__lock(&ahead->lock);
    pawl_status status =
        pawl__shelves_keep(ahead->shelves, claim, asked_ns, claimed, ret_claimed, &stock, reterr);
    if (stock != NULL) {
        wake_keeper_locked(ahead, stock->young_until_ns);
    }
    pawl__unlock(&ahead->lock);
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    for (size_t i = claim->count_max; i < claimed->count; i++) {
        send_item_back(ahead, &claimed->items[i], asked_ns + (int64_t)claim->lease_ms * NS_PER_MS);
    }
    claimed->count = claim->count_max; /* keep fails only with more than these */
    *ret_claimed = claimed;
    return PAWL_OK;
}

void pawl__ahead_withdraw(struct work_ahead *ahead, pawl_view task_id, pawl_view work_item_id)
{
    if (ahead == NULL) {
        return;
    }
    pawl__lock(&ahead->lock);
    struct work_stock *down = pawl__shelves_withdraw(ahead->shelves, task_id, work_item_id);
    pawl__unlock(&ahead->lock);
    send_stocks_back(ahead, down);
}

/* --- the keeper --- */

/* Takes those whose time has come; *next_ns becomes the time of the next, if that is earlier. */
static struct returning *take_due_locked(struct work_ahead *ahead, int64_t now, int64_t *next_ns)
    REQUIRES_LOCK(ahead->lock)
{
    struct returning **at = &ahead->again;
    struct returning *due = NULL;

    while (*at != NULL) {
        struct returning *returning = *at;
        if (returning->again_ns <= now) {
            *at = returning->next;
            returning->next = due;
            due = returning;
        } else {
            *next_ns = MIN(*next_ns, returning->again_ns);
            at = &returning->next;
        }
    }
    return due;
}

static void send_again(struct work_ahead *ahead, struct returning *due)
{
    while (due != NULL) {
        struct returning *returning = due;
        due = returning->next;
        send_back(ahead, returning);
    }
}

static void run_keeper(void *context)
{
    struct work_ahead *ahead = context;

    pawl__lock(&ahead->lock);
    while (!ahead->stops) {
        int64_t now = now_ns(ahead);
        int64_t next_ns;
        struct work_stock *down = pawl__shelves_take_down(ahead->shelves, now, &next_ns);
        struct returning *due = take_due_locked(ahead, now, &next_ns);
        ahead->wakes_ns = next_ns;
        if (down != NULL || due != NULL) {
            pawl__unlock(&ahead->lock);
            send_stocks_back(ahead, down);
            send_again(ahead, due);
            pawl__lock(&ahead->lock);
        } else if (next_ns == INT64_MAX) {
            pawl__cond_wait(&ahead->changed, &ahead->lock);
        } else {
            (void)pawl__cond_wait_until(&ahead->changed, &ahead->lock, next_ns);
        }
    }
    pawl__unlock(&ahead->lock);
}

/* --- from beginning to end --- */

pawl_status pawl__ahead_new(uint32_t max,
                            struct pawl__clock *clock,
                            work_ahead_release release,
                            void *context,
                            struct work_ahead **ret_ahead,
                            pawl_error *reterr)
{
    struct work_ahead *ahead = calloc(1, sizeof(*ahead));

    if (ahead == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items leased ahead");
    }
    ahead->clock = clock;
    ahead->release = release;
    ahead->context = context;
    ahead->wakes_ns = INT64_MAX;
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
    status = pawl__shelves_new(max, &ahead->shelves, reterr);
    if (status == PAWL_OK) {
        status = pawl__thread_start(&ahead->keeper, "work ahead", run_keeper, ahead, reterr);
    }
    if (status != PAWL_OK) {
        pawl__ahead_free(ahead);
        return status;
    }
    *ret_ahead = ahead;
    return PAWL_OK;
}

void pawl__ahead_stop(struct work_ahead *ahead)
{
    int64_t next_ns;

    if (ahead == NULL) {
        return;
    }
    pawl__lock(&ahead->lock);
    ahead->stops = true;
    struct work_stock *down = pawl__shelves_take_down(ahead->shelves, INT64_MAX, &next_ns);
    struct returning *due = take_due_locked(ahead, INT64_MAX, &next_ns);
    pawl__cond_signal(&ahead->changed);
    pawl__unlock(&ahead->lock);
    pawl__thread_join(&ahead->keeper);
    send_stocks_back(ahead, down);
    send_again(ahead, due);
}

void pawl__ahead_free(struct work_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    REQUIRE(!ahead->keeper.started || ahead->stops);
    pawl__shelves_free(ahead->shelves);
    pawl__cond_done(&ahead->changed);
    pawl__lock_done(&ahead->lock);
    free(ahead);
}
