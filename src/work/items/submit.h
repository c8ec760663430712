/* The state of one submit inside its transaction, shared by submit.c and submit_after.c. */
#ifndef PAWL_WORK_ITEMS_SUBMIT_H
#define PAWL_WORK_ITEMS_SUBMIT_H

#include "work/core/group.h"
#include "work/items/dag.h"

/* One submission. */
struct work_new_item {
    const pawl_submission *given;
    size_t index;           /* in the call */
    bool fresh;             /* its id was made for it */
    bool duplicate;         /* it is stored, or occurs earlier in the call */
    pawl_view failed_after; /* an item it comes after that has failed already; empty: none */
    struct work_row row;
};

/* All submissions of a call. */
struct work_submit {
    struct work_tx *tx;
    struct work_request *request;
    struct work_new_item *coming; /* in the call's order */
    struct work_new_item **by_id; /* sorted */
    size_t count;
    pawl_view *known_ids; /* stored items that the call names, by id or by `after`: sorted */
    struct work_row **known;
    size_t known_count;
    struct work_edge *edges;
    size_t edge_count;
    struct work_arrow *arrows; /* edges among the call's own */
    size_t arrow_count;
};

static inline bool pawl__work_submit_refused(const struct work_submit *submit)
{
    return pawl__work_is_refused(submit->request);
}

/* The stored item of this id, of those that the call names; NULL: none. */
struct work_row *pawl__work_submit_find_stored(const struct work_submit *submit, pawl_view id);

/* The first of this id in the call; NULL: none. */
struct work_new_item *pawl__work_submit_find_new(const struct work_submit *submit, pawl_view id);

/* Refuses the call for its item `index`. */
PRINTF_LIKE(5, 6)
void pawl__work_submit_refuse(const struct work_submit *submit,
                              pawl_status status,
                              pawl_detail detail,
                              size_t index,
                              const char *format,
                              ...);

/* --- submit_after.c: which item comes after which --- */

/* Refuses a repeated submission that names other predecessors than the stored item has. */
PAWL_MUST_USE pawl_status pawl__work_submit_compare_edges(struct work_submit *submit,
                                                          pawl_error *reterr);

/* Lists the edges of new items, and counts how many items each waits for. Refuses a predecessor that does not
 * exist or belongs to another task, and cycles. */
PAWL_MUST_USE pawl_status pawl__work_submit_add_edges(struct work_submit *submit,
                                                      pawl_error *reterr);

#endif
