#include "work/items/prefetch.h"

#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/map.h"
#include "work/core/copy.h"

enum { SHELVES_MAX = 4096 };         /* for more holders and wishes nothing is leased ahead */
#define FORGOTTEN_NS (10 * NS_PER_S) /* an empty shelf that nobody asked for so long makes room */

/* What one holder has for one kind of claim, oldest first. */
struct shelf {
    struct work_stock *first;
    struct work_stock *last;
    uint32_t more;    /* leased ahead the last time, or used of that */
    bool kept;        /* the last claim that went to the store kept something, ... */
    bool given_back;  /* ... which was not used whole */
    int64_t asked_ns; /* when there was a claim the last time; 0: never */
};

struct work_shelves {
    uint32_t max;
    struct pawl__map *by_key;
    int64_t cleared_ns;
};

pawl_status pawl__shelves_new(uint32_t max, struct work_shelves **ret_shelves, pawl_error *reterr)
{
    struct work_shelves *shelves = calloc(1, sizeof(*shelves));

    if (shelves == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items leased ahead");
    }
    shelves->max = max;
    shelves->cleared_ns = INT64_MIN / 2;
    pawl_status status = pawl__map_new(SHELVES_MAX, &shelves->by_key, reterr);
    if (status != PAWL_OK) {
        free(shelves);
        return status;
    }
    *ret_shelves = shelves;
    return PAWL_OK;
}

void pawl__stock_free(struct work_stock *stock)
{
    pawl_claimed_free(stock->claimed);
    free(stock);
}

static void free_shelf(struct shelf *shelf)
{
    while (shelf->first != NULL) {
        struct work_stock *stock = shelf->first;
        shelf->first = stock->next;
        pawl__stock_free(stock);
    }
    free(shelf);
}

void pawl__shelves_free(struct work_shelves *shelves)
{
    size_t cursor = 0;
    void *shelf;

    if (shelves == NULL) {
        return;
    }
    while (pawl__map_next(shelves->by_key, &cursor, NULL, &shelf)) {
        free_shelf(shelf);
    }
    pawl__map_free(shelves->by_key);
    free(shelves);
}

size_t pawl__shelves_count(const struct work_shelves *shelves)
{
    return pawl__map_count(shelves->by_key);
}

/* --- finding one --- */

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

/* Moves those that somebody uses to a new map. */
static void clear_forgotten(struct work_shelves *shelves, int64_t now_ns)
{
    struct pawl__map *kept = NULL;
    size_t cursor = 0;
    pawl_view key;
    void *value;

    if (now_ns - shelves->cleared_ns < NS_PER_S
        || pawl__map_new(SHELVES_MAX, &kept, NULL) != PAWL_OK) {
        return;
    }
    shelves->cleared_ns = now_ns;
    while (pawl__map_next(shelves->by_key, &cursor, &key, &value)) {
        const struct shelf *shelf = value;
        bool used = shelf->first != NULL || now_ns - shelf->asked_ns < FORGOTTEN_NS;
        if (used && pawl__map_put(kept, key, value, NULL, NULL) != PAWL_OK) {
            pawl__map_free(kept); /* another time */
            return;
        }
    }
    cursor = 0;
    while (pawl__map_next(shelves->by_key, &cursor, &key, &value)) {
        if (pawl__map_get(kept, key) == NULL) {
            free_shelf(value);
        }
    }
    pawl__map_free(shelves->by_key);
    shelves->by_key = kept;
}

/* NULL: there can be none for this claim. */
static struct shelf *shelf_of(struct work_shelves *shelves, const pawl_claim *claim, int64_t now_ns)
{
    char space[1024];
    struct pawl__buf key = BUF_OVER(space);

    write_key(claim, &key);
    if (key.broken) { /* very many types */
        return NULL;
    }
    struct shelf *shelf = pawl__map_get(shelves->by_key, pawl__buf_view(&key));
    if (shelf != NULL) {
        return shelf;
    }
    if (pawl__map_count(shelves->by_key) == SHELVES_MAX) {
        clear_forgotten(shelves, now_ns);
    }
    shelf = calloc(1, sizeof(*shelf));
    if (shelf != NULL
        && pawl__map_put(shelves->by_key, pawl__buf_view(&key), shelf, NULL, NULL) != PAWL_OK) {
        free(shelf);
        shelf = NULL;
    }
    return shelf;
}

/* --- claims --- */

static int64_t young_ns(const pawl_claim *claim)
{
    return MIN((int64_t)claim->lease_ms * NS_PER_MS / 8, WORK_YOUNG_NS_MAX);
}

/* There is nothing left: how many to lease now. */
static void learn(struct shelf *shelf, uint32_t max, bool comes_back_soon)
{
    uint32_t more = 1;

    if (shelf->kept) {
        more = shelf->given_back ? shelf->more + 1 : shelf->more * 2 + 1;
    }
    shelf->more = comes_back_soon ? MIN(more, max) : 0;
    shelf->kept = false;
    shelf->given_back = false;
}

static pawl_status hand_out(struct shelf *shelf,
                            size_t count_max,
                            pawl_claimed **ret_claimed,
                            pawl_error *reterr)
{
    struct work_stock *stock = shelf->first;
    size_t count = MIN(count_max, stock->claimed->count - stock->at);

    TRY(pawl__work_copy_out_items(&stock->claimed->items[stock->at], count, ret_claimed, reterr));
    stock->at += count;
    if (stock->at == stock->claimed->count) {
        shelf->first = stock->next;
        shelf->last = shelf->first == NULL ? NULL : shelf->last;
        pawl__stock_free(stock);
    }
    return PAWL_OK;
}

pawl_status pawl__shelves_take(struct work_shelves *shelves,
                               const pawl_claim *claim,
                               int64_t now_ns,
                               pawl_claimed **ret_claimed,
                               uint32_t *ret_more,
                               pawl_error *reterr)
{
    struct shelf *shelf = shelf_of(shelves, claim, now_ns);
    pawl_status status = PAWL_NOT_FOUND;

    *ret_more = 0;
    if (shelf == NULL) {
        return PAWL_NOT_FOUND;
    }
    if (shelf->first == NULL) {
        learn(shelf,
              shelves->max,
              shelf->asked_ns != 0 && now_ns - shelf->asked_ns < young_ns(claim));
        *ret_more = shelf->more;
    } else if (now_ns < shelf->first->young_until_ns) {
        status = hand_out(shelf, claim->count_max, ret_claimed, reterr);
    } /* else it is on its way back */
    shelf->asked_ns = now_ns;
    return status;
}

pawl_status pawl__shelves_keep(struct work_shelves *shelves,
                               const pawl_claim *claim,
                               int64_t asked_ns,
                               pawl_claimed *claimed,
                               pawl_claimed **ret_claimed,
                               const struct work_stock **ret_stock,
                               pawl_error *reterr)
{
    size_t count = claim->count_max;

    *ret_stock = NULL;
    if (claimed->count <= count) {
        *ret_claimed = claimed;
        return PAWL_OK;
    }
    struct shelf *shelf = shelf_of(shelves, claim, asked_ns);
    struct work_stock *stock = shelf == NULL ? NULL : calloc(1, sizeof(*stock));
    if (stock == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items leased ahead");
    }
    pawl_status status = pawl__work_copy_out_items(claimed->items, count, ret_claimed, reterr);
    if (status != PAWL_OK) {
        free(stock);
        return status;
    }
    *stock = (struct work_stock){
        .claimed = claimed,
        .from = count,
        .at = count,
        .young_until_ns = asked_ns + young_ns(claim),
        .leased_until_ns = asked_ns + (int64_t)claim->lease_ms * NS_PER_MS,
    };
    if (shelf->last == NULL) {
        shelf->first = stock;
    } else {
        shelf->last->next = stock;
    }
    shelf->last = stock;
    shelf->kept = true;
    *ret_stock = stock;
    return PAWL_OK;
}

/* --- taking down --- */

static bool has_item(const struct work_stock *stock, pawl_view task_id, pawl_view work_item_id)
{
    for (size_t i = stock->at; i < stock->claimed->count; i++) {
        const pawl_item *item = &stock->claimed->items[i];
        if ((task_id.len == 0 || pawl__view_equal(item->task_id, task_id))
            && (work_item_id.len == 0 || pawl__view_equal(item->work_item_id, work_item_id))) {
            return true;
        }
    }
    return false;
}

struct wish {
    int64_t now_ns;
    pawl_view task_id;
    pawl_view work_item_id;
};

static bool goes(const struct work_stock *stock, const struct wish *wish)
{
    return wish->task_id.len + wish->work_item_id.len > 0
               ? has_item(stock, wish->task_id, wish->work_item_id)
               : stock->young_until_ns <= wish->now_ns;
}

static void take_down(struct shelf *shelf, const struct wish *wish, struct work_stock **down)
{
    struct work_stock *stock = shelf->first;

    shelf->first = NULL;
    shelf->last = NULL;
    while (stock != NULL) {
        struct work_stock *next = stock->next;
        stock->next = NULL;
        if (goes(stock, wish)) {
            shelf->more = MIN(shelf->more, (uint32_t)(stock->at - stock->from));
            shelf->given_back = true;
            stock->next = *down;
            *down = stock;
        } else {
            if (shelf->last == NULL) {
                shelf->first = stock;
            } else {
                shelf->last->next = stock;
            }
            shelf->last = stock;
        }
        stock = next;
    }
}

static struct work_stock *take_down_all(struct work_shelves *shelves,
                                        const struct wish *wish,
                                        int64_t *ret_next_ns)
{
    struct work_stock *down = NULL;
    size_t cursor = 0;
    void *value;

    *ret_next_ns = INT64_MAX;
    while (pawl__map_next(shelves->by_key, &cursor, NULL, &value)) {
        struct shelf *shelf = value;
        if (shelf->first != NULL) {
            take_down(shelf, wish, &down);
        }
        if (shelf->first != NULL) {
            *ret_next_ns = MIN(*ret_next_ns, shelf->first->young_until_ns);
        }
    }
    return down;
}

struct work_stock *pawl__shelves_take_down(struct work_shelves *shelves,
                                           int64_t now_ns,
                                           int64_t *ret_next_ns)
{
    return take_down_all(shelves, &(struct wish){ .now_ns = now_ns }, ret_next_ns);
}

struct work_stock *pawl__shelves_withdraw(struct work_shelves *shelves,
                                          pawl_view task_id,
                                          pawl_view work_item_id)
{
    int64_t next_ns;

    return take_down_all(
        shelves, &(struct wish){ .task_id = task_id, .work_item_id = work_item_id }, &next_ns);
}
