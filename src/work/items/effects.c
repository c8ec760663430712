/* Consequences of a change: dependents of an ended item are freed, or fail with it. */
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/group.h"
#include "work/items/item.h"

/* One item that comes after one that has ended. */
struct dependent {
    pawl_view id;
    const struct work_row *ended;
    struct dependent *next;
};

struct dependents {
    struct work_tx *tx;
    struct work_row *const *ended; /* ascending ids */
    size_t ended_count;
    struct dependent *first;
    size_t count;
    bool nomem;
};

static int by_row_id(const void *a, const void *b)
{
    return pawl__work_view_order((*(struct work_row *const *)a)->item.work_item_id,
                                 (*(struct work_row *const *)b)->item.work_item_id);
}

static int by_dependent_id(const void *a, const void *b)
{
    return pawl__work_view_order((*(struct dependent *const *)a)->id,
                                 (*(struct dependent *const *)b)->id);
}

static const struct work_row *find_ended(const struct dependents *dependents, pawl_view id)
{
    struct work_row key = { .item.work_item_id = id };
    const struct work_row *wanted = &key;
    struct work_row *const *found = bsearch(
        &wanted, dependents->ended, dependents->ended_count, sizeof(struct work_row *), by_row_id);

    return found == NULL ? NULL : *found;
}

static void note_dependent(void *context, const struct work_edge *edge)
{
    struct dependents *dependents = context;
    const struct work_row *ended = find_ended(dependents, edge->after_id);
    struct dependent *dependent = pawl__arena_take(dependents->tx->arena, sizeof(*dependent));

    if (ended == NULL) {
        return;
    }
    if (dependent == NULL
        || !pawl__arena_copy(dependents->tx->arena, edge->work_item_id, &dependent->id)) {
        dependents->nomem = true;
        return;
    }
    dependent->ended = ended;
    dependent->next = dependents->first;
    dependents->first = dependent;
    dependents->count++;
}

pawl_status pawl__work_tx_fail_after(struct work_tx *tx,
                                     struct work_row *row,
                                     pawl_view after_id,
                                     bool *ret_changed,
                                     pawl_error *reterr)
{
    char text[PAWL_WORK_NAME_BYTES_MAX + 64];
    struct pawl__buf message = BUF_OVER(text);
    pawl_view stored;

    pawl__buf_add_format(
        &message, "item '%.*s', which it comes after, failed", VIEW_ARGS(after_id));
    if (!pawl__arena_copy(tx->arena, pawl__buf_view(&message), &stored)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a message");
    }
    *ret_changed = pawl__work_decide_cancel(row, stored, &tx->now);
    return PAWL_OK;
}

static pawl_status follow(struct work_tx *tx,
                          struct work_row *row,
                          const struct work_row *ended,
                          bool *ret_changed,
                          pawl_error *reterr)
{
    *ret_changed = false;
    if (row->item.status != PAWL_ITEM_WAITING) {
        return PAWL_OK; /* cancelled meanwhile, or failed because of another one */
    }
    if (ended->item.status == PAWL_ITEM_COMPLETED) {
        (void)pawl__work_decide_freed(row, &tx->now);
        *ret_changed = true;
        return PAWL_OK;
    }
    return pawl__work_tx_fail_after(tx, row, ended->item.work_item_id, ret_changed, reterr);
}

/* Loads the dependents' rows, each once, and changes them. */
static pawl_status apply(struct work_tx *tx,
                         struct dependent **sorted,
                         size_t count,
                         struct work_row ***ret_changed,
                         size_t *ret_count,
                         pawl_error *reterr)
{
    pawl_view *ids = TX_ALLOC(tx, count, sizeof(*ids), reterr);
    struct work_row **rows = TX_ALLOC(tx, count, sizeof(struct work_row *), reterr);
    size_t distinct = 0;
    size_t changed = 0;

    for (size_t i = 0; i < count; i++) {
        if (distinct == 0 || !pawl__view_equal(ids[distinct - 1], sorted[i]->id)) {
            ids[distinct++] = sorted[i]->id;
        }
    }
    TRY(tx->backend->items->load(tx->backend, ids, distinct, tx->arena, rows, reterr));
    for (size_t i = 0, at = 0; i < distinct; i++) {
        bool any = false;
        for (; at < count && pawl__view_equal(sorted[at]->id, ids[i]); at++) {
            bool one = false;
            if (rows[i] != NULL) {
                TRY(follow(tx, rows[i], sorted[at]->ended, &one, reterr));
            }
            any |= one;
        }
        if (any) {
            rows[changed++] = rows[i]; /* changed <= i */
        }
    }
    *ret_changed = rows;
    *ret_count = changed;
    return PAWL_OK;
}

/* The rows that have ended, in the order of their ids. */
static pawl_status collect_ended(struct work_tx *tx,
                                 struct work_row *const *rows,
                                 size_t count,
                                 struct dependents *dependents,
                                 pawl_view **ret_ids,
                                 pawl_error *reterr)
{
    struct work_row **ended = TX_ALLOC(tx, count, sizeof(struct work_row *), reterr);
    pawl_view *ids = TX_ALLOC(tx, count, sizeof(*ids), reterr);
    size_t ended_count = 0;

    for (size_t i = 0; i < count; i++) {
        if (pawl__work_item_has_ended(rows[i]->item.status)) {
            ended[ended_count++] = rows[i];
        }
    }
    qsort(ended, ended_count, sizeof(struct work_row *), by_row_id);
    for (size_t i = 0; i < ended_count; i++) {
        ids[i] = ended[i]->item.work_item_id;
    }
    *dependents = (struct dependents){ .tx = tx, .ended = ended, .ended_count = ended_count };
    *ret_ids = ids;
    return PAWL_OK;
}

static pawl_status next_generation(struct work_tx *tx,
                                   struct work_row *const *rows,
                                   size_t count,
                                   struct work_row ***ret_rows,
                                   size_t *ret_count,
                                   pawl_error *reterr)
{
    struct dependents dependents;
    pawl_view *ids;

    *ret_count = 0;
    TRY(collect_ended(tx, rows, count, &dependents, &ids, reterr));
    if (dependents.ended_count == 0) {
        return PAWL_OK;
    }
    TRY(tx->backend->items->edges(
        tx->backend, ids, dependents.ended_count, note_dependent, &dependents, reterr));
    if (dependents.nomem) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items that come after others");
    }
    if (dependents.count == 0) {
        return PAWL_OK;
    }
    struct dependent **sorted = TX_ALLOC(tx, dependents.count, sizeof(struct dependent *), reterr);
    size_t i = 0;
    for (struct dependent *at = dependents.first; at != NULL; at = at->next) {
        sorted[i++] = at;
    }
    qsort(sorted, dependents.count, sizeof(struct dependent *), by_dependent_id);
    return apply(tx, sorted, dependents.count, ret_rows, ret_count, reterr);
}

static pawl_status note_tasks(struct work_tx *tx,
                              struct work_row *const *rows,
                              size_t count,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__work_tx_touch(tx, rows[i]->item.task_id, reterr));
        tx->wake |= rows[i]->item.status == PAWL_ITEM_PENDING
                    || rows[i]->item.status == PAWL_ITEM_WAITING; /* an earlier time to look at */
    }
    return PAWL_OK;
}

/* What must hold of every row that is written: only a leased item has a holder. */
static void require_row(const struct work_row *row)
{
    REQUIRE(row->item.work_item_id.len > 0 && row->item.task_id.len > 0);
    REQUIRE(row->item.status == PAWL_ITEM_IN_PROGRESS || row->item.lease_holder.len == 0);
    REQUIRE(row->item.status != PAWL_ITEM_IN_PROGRESS || row->item.token > 0);
    REQUIRE(row->home != WORK_NOWHERE || row->item.token == 0);
}

pawl_status pawl__work_tx_put(struct work_tx *tx,
                              struct work_row *const *rows,
                              size_t count,
                              pawl_error *reterr)
{
    /* One generation after the other: an item that fails also fails its dependents, and so on. The loop ends,
     * because an item ends only once. */
    while (count > 0) {
        struct work_row **next = NULL;
        size_t next_count = 0;
        for (size_t i = 0; i < count; i++) {
            require_row(rows[i]);
        }
        TRY(tx->backend->items->put(tx->backend, rows, count, reterr));
        TRY(note_tasks(tx, rows, count, reterr));
        TRY(next_generation(tx, rows, count, &next, &next_count, reterr));
        rows = next;
        count = next_count;
    }
    return PAWL_OK;
}
