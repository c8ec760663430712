/* Orphans: items that still wait although foreign SQL has ended or deleted an item they depend on. What
 * this library ends frees its dependents in the same transaction (effects.c). */
#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/core/group.h"
#include "work/core/internal.h"

enum { ORPHANS_AT_ONCE = 500 };

struct orphans_request {
    struct work_request request; /* first */
    struct work_ids found;
    uint64_t changed; /* answer: how many were freed or failed */
    uint64_t freed;   /* answer: how many of them are pending now */
};

/* How many of these items a row still waits for, and one of them that failed or does not exist. */
static size_t count_open(struct work_row *const *afters,
                         const pawl_view *ids,
                         size_t count,
                         pawl_view *ret_failed)
{
    size_t open = 0;

    for (size_t i = 0; i < count; i++) {
        if (afters[i] == NULL || afters[i]->item.status == PAWL_ITEM_FAILED) {
            *ret_failed = ids[i];
        } else if (afters[i]->item.status != PAWL_ITEM_COMPLETED) {
            open++;
        }
    }
    return open;
}

/* Counts again, from what is stored. */
static pawl_status recount(struct work_tx *tx,
                           struct work_row *row,
                           bool *ret_changed,
                           pawl_error *reterr)
{
    const struct work_item_ops *items = tx->backend->items;
    const size_t room = PAWL_WORK_AFTER_MAX + 1;
    struct work_ids found = {
        .arena = tx->arena,
        .ids = TX_ALLOC(tx, room, sizeof(pawl_view), reterr),
        .room = room,
    };
    pawl_view failed = { NULL, 0 };

    TRY(items->comes_after(tx->backend, row->item.work_item_id, &found, reterr));
    if (found.count == room) {
        return PAWL_OK; /* more than we store: foreign SQL made these edges */
    }
    struct work_row **afters = TX_ALLOC(tx, found.count + 1, sizeof(struct work_row *), reterr);
    TRY(items->load(tx->backend, found.ids, found.count, tx->arena, afters, reterr));
    int64_t open = (int64_t)count_open(afters, found.ids, found.count, &failed);
    if (failed.len > 0) {
        return pawl__work_tx_fail_after(tx, row, failed, ret_changed, reterr);
    }
    *ret_changed = open < row->waits_for;
    if (*ret_changed) {
        row->waits_for = open + 1;
        (void)pawl__work_decide_freed(row, &tx->now);
    }
    return PAWL_OK;
}

static pawl_status run_orphans(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct orphans_request *orphans = (struct orphans_request *)request;

    orphans->changed = 0;
    orphans->freed = 0;
    for (size_t i = 0; i < orphans->found.count; i++) {
        struct work_row *row = NULL;
        bool changed = false;
        TRY(tx->backend->items->load(
            tx->backend, &orphans->found.ids[i], 1, tx->arena, &row, reterr));
        if (row != NULL && row->item.status == PAWL_ITEM_WAITING) {
            TRY(recount(tx, row, &changed, reterr));
        }
        if (changed) {
            orphans->changed++;
            orphans->freed += row->item.status == PAWL_ITEM_PENDING;
            TRY(pawl__work_tx_put(tx, &row, 1, reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__work_free_orphans(pawl_work *work, uint64_t *freed, pawl_error *reterr)
{
    const struct work_item_ops *items = work->backend->items;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_view ids[ORPHANS_AT_ONCE];
    struct orphans_request orphans = {
        .found = { .arena = &arena, .ids = ids, .room = ORPHANS_AT_ONCE },
    };

    if (items->orphans == NULL) {
        return PAWL_OK;
    }
    /* A reader finds them without blocking the writer; the transaction then reads each one again. */
    do {
        orphans.request = (struct work_request){ .run = run_orphans };
        pawl__arena_clear(&arena);
        orphans.found.count = 0;
        TRY(items->orphans(work->backend, &orphans.found, reterr));
        if (orphans.found.count == 0) {
            return PAWL_OK;
        }
        TRY(pawl__work_submit_request(work, &orphans.request, reterr));
        *freed += orphans.freed;
    } while (orphans.found.count == ORPHANS_AT_ONCE && orphans.changed > 0);
    return PAWL_OK;
}
