/* Submitting: which item comes after which. */
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "work/items/item.h"
#include "work/items/submit.h"

/* --- a repeated submission must name the same predecessors --- */

/* "`edge->work_item_id` comes after `edge->after_id`", as a repeated submission says. */
struct claimed_edge {
    struct work_edge edge;
    size_t index; /* of the submission */
    bool stored;
};

struct claimed_edges {
    struct claimed_edge *list; /* sorted */
    size_t count;
};

static int by_edge(const void *a, const void *b)
{
    const struct work_edge *one = &((const struct claimed_edge *)a)->edge;
    const struct work_edge *other = &((const struct claimed_edge *)b)->edge;
    int order = pawl__work_view_order(one->work_item_id, other->work_item_id);

    return order != 0 ? order : pawl__work_view_order(one->after_id, other->after_id);
}

static void note_stored(void *context, const struct work_edge *edge)
{
    const struct claimed_edges *claimed = context;
    const struct claimed_edge key = { .edge = *edge };
    struct claimed_edge *found = bsearch(&key, claimed->list, claimed->count, sizeof(key), by_edge);

    if (found != NULL) {
        found->stored = true;
    }
}

/* Only edges between stored items: nothing is known of items that retention removed. */
static size_t list_claimed(const struct work_submit *submit,
                           struct claimed_edge *ret_list,
                           pawl_view *ret_after_ids)
{
    size_t count = 0;

    for (size_t i = 0; i < submit->count; i++) {
        const pawl_submission *given = submit->coming[i].given;
        bool again = !submit->coming[i].fresh
                     && pawl__work_submit_find_stored(submit, given->work_item_id) != NULL;
        for (size_t k = 0; again && k < given->after_count; k++) {
            if (pawl__work_submit_find_stored(submit, given->after[k]) != NULL) {
                ret_after_ids[count] = given->after[k];
                ret_list[count++] = (struct claimed_edge){
                    .edge = { .work_item_id = given->work_item_id, .after_id = given->after[k] },
                    .index = i,
                };
            }
        }
    }
    return count;
}

static size_t sort_edges(struct claimed_edge *list, size_t count)
{
    size_t kept = 0;

    qsort(list, count, sizeof(*list), by_edge);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || by_edge(&list[kept - 1], &list[i]) != 0) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

pawl_status pawl__work_submit_compare_edges(struct work_submit *submit, pawl_error *reterr)
{
    struct work_tx *tx = submit->tx;
    struct claimed_edges claimed = { 0 };
    size_t room = 0;

    for (size_t i = 0; i < submit->count; i++) {
        room += submit->coming[i].duplicate ? submit->coming[i].given->after_count : 0;
    }
    if (room == 0) {
        return PAWL_OK;
    }
    claimed.list = TX_ALLOC(tx, room, sizeof(*claimed.list), reterr);
    pawl_view *after_ids = TX_ALLOC(tx, room, sizeof(*after_ids), reterr);
    size_t count = list_claimed(submit, claimed.list, after_ids);
    claimed.count = sort_edges(claimed.list, count);
    count = pawl__work_views_distinct(after_ids, count);
    TRY(tx->backend->items->edges(tx->backend, after_ids, count, note_stored, &claimed, reterr));
    for (size_t i = 0; i < claimed.count && !pawl__work_submit_refused(submit); i++) {
        const struct claimed_edge *edge = &claimed.list[i];
        if (!edge->stored) {
            pawl__work_submit_refuse(submit,
                                     PAWL_CONFLICT,
                                     PAWL_DETAIL_ID_TAKEN,
                                     edge->index,
                                     "'%.*s' is there, and does not come after '%.*s'",
                                     VIEW_ARGS(edge->edge.work_item_id),
                                     VIEW_ARGS(edge->edge.after_id));
        }
    }
    return PAWL_OK;
}

/* --- edges of new items --- */

/* Checks and lists one predecessor of `coming`. */
static void add_edge(struct work_submit *submit, struct work_new_item *coming, pawl_view after_id)
{
    const struct work_new_item *first = pawl__work_submit_find_new(submit, after_id);
    const struct work_row *known = pawl__work_submit_find_stored(submit, after_id);

    if (known == NULL && first == NULL) {
        pawl__work_submit_refuse(submit,
                                 PAWL_NOT_FOUND,
                                 PAWL_DETAIL_NO_ITEM,
                                 coming->index,
                                 "after: no item '%.*s'",
                                 VIEW_ARGS(after_id));
        return;
    }
    if (!pawl__view_equal(known != NULL ? known->item.task_id : first->given->task_id,
                          coming->given->task_id)) {
        pawl__work_submit_refuse(submit,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_NONE,
                                 coming->index,
                                 "after: '%.*s' is an item of another task",
                                 VIEW_ARGS(after_id));
        return;
    }
    if (known == NULL) {
        submit->arrows[submit->arrow_count++] =
            (struct work_arrow){ .from = first->index, .to = coming->index };
        coming->row.waits_for++;
    } else if (known->item.status == PAWL_ITEM_FAILED) {
        coming->failed_after = known->item.work_item_id;
    } else if (known->item.status != PAWL_ITEM_COMPLETED) {
        coming->row.waits_for++;
    }
    submit->edges[submit->edge_count++] =
        (struct work_edge){ .work_item_id = coming->given->work_item_id, .after_id = after_id };
}

static pawl_status check_cycles(struct work_submit *submit, pawl_error *reterr)
{
    if (submit->arrow_count == 0) {
        return PAWL_OK;
    }
    size_t *scratch = TX_ALLOC(submit->tx, 3 * submit->count + 1, sizeof(*scratch), reterr);
    size_t node = pawl__work_dag_cycle(submit->count, submit->arrows, submit->arrow_count, scratch);
    if (node < submit->count) {
        pawl__work_submit_refuse(submit,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_DEPENDENCY_CYCLE,
                                 node,
                                 "after: '%.*s' would come after itself",
                                 VIEW_ARGS(submit->coming[node].given->work_item_id));
    }
    return PAWL_OK;
}

pawl_status pawl__work_submit_add_edges(struct work_submit *submit, pawl_error *reterr)
{
    size_t room = 0;

    for (size_t i = 0; i < submit->count; i++) {
        room += submit->coming[i].given->after_count;
    }
    if (room == 0) {
        return PAWL_OK;
    }
    submit->edges = TX_ALLOC(submit->tx, room, sizeof(struct work_edge), reterr);
    submit->arrows = TX_ALLOC(submit->tx, room, sizeof(struct work_arrow), reterr);
    pawl_view *ids = TX_ALLOC(submit->tx, PAWL_WORK_AFTER_MAX, sizeof(*ids), reterr);
    for (size_t i = 0; i < submit->count && !pawl__work_submit_refused(submit); i++) {
        struct work_new_item *coming = &submit->coming[i];
        if (coming->duplicate || coming->given->after_count == 0) {
            continue; /* its edges are stored */
        }
        memcpy(ids, coming->given->after, coming->given->after_count * sizeof(*ids));
        size_t count = pawl__work_views_distinct(ids, coming->given->after_count);
        for (size_t k = 0; k < count && !pawl__work_submit_refused(submit); k++) {
            add_edge(submit, coming, ids[k]);
        }
    }
    return pawl__work_submit_refused(submit) ? PAWL_OK : check_cycles(submit, reterr);
}
