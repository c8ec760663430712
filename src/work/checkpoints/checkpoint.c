/* Checkpoints as callers see them: adding one, finding one. */
#include "work/checkpoints/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/json/json.h"
#include "base/thread/inside.h"
#include "work/checkpoints/diff.h"
#include "work/checkpoints/evidence.h"
#include "work/core/copy.h"
#include "work/items/item.h"

static pawl_status check_type(pawl_checkpoint_type type, pawl_error *reterr)
{
    return (size_t)type <= PAWL_CHECKPOINT_ERROR_BOUNDARY
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "type: %d is no type of checkpoint", (int)type);
}

/* --- Adding: on the caller's thread --- */

static pawl_status check_names(const pawl_checkpoint *checkpoint,
                               const pawl_lease *lease,
                               pawl_error *reterr)
{
    TRY(pawl__work_check_optional_name("checkpoint_id", checkpoint->checkpoint_id, reterr));
    if (lease == NULL || checkpoint->task_id.len > 0) {
        TRY(pawl__work_check_name("task_id", checkpoint->task_id, reterr));
    }
    TRY(pawl__work_check_optional_name("work_item_id", checkpoint->work_item_id, reterr));
    if (lease == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__work_check_name("lease: work_item_id", lease->work_item_id, reterr));
    if (checkpoint->work_item_id.len > 0
        && !pawl__view_equal(checkpoint->work_item_id, lease->work_item_id)) {
        return pawl__fail(reterr, PAWL_INVALID, "work_item_id: is not the lease's");
    }
    return PAWL_OK;
}

static pawl_status check_evidence(const pawl_checkpoint *checkpoint, pawl_error *reterr)
{
    TRY(pawl__check_limit(
        "evidence:", checkpoint->evidence_count, " pieces", PAWL_EVIDENCE_MAX, reterr));
    if (checkpoint->evidence_count > 0 && checkpoint->evidence == NULL) {
        return pawl__fail(reterr, PAWL_INVALID, "evidence: is NULL");
    }
    for (size_t i = 0; i < checkpoint->evidence_count; i++) {
        pawl_status status = pawl__work_evidence_check_form(&checkpoint->evidence[i], reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "evidence %zu", i);
        }
    }
    return PAWL_OK;
}

static pawl_status check_checkpoint(const pawl_work *work,
                                    const pawl_checkpoint *checkpoint,
                                    const pawl_lease *lease,
                                    pawl_error *reterr)
{
    size_t bytes_max = work->options.data_bytes_max;
    TRY(check_names(checkpoint, lease, reterr));
    TRY(check_type(checkpoint->type, reterr));
    if (checkpoint->snapshot_data.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "snapshot_data: is empty, must be a JSON value");
    }
    TRY(pawl__work_check_json("snapshot_data", checkpoint->snapshot_data, bytes_max, reterr));
    TRY(pawl__work_check_json("metadata", checkpoint->metadata, bytes_max, reterr));
    return check_evidence(checkpoint, reterr);
}

/* A checkpoint whose evidence does not hold is not stored. */
static pawl_status verify_first(pawl_work *work,
                                const pawl_checkpoint *checkpoint,
                                pawl_error *reterr)
{
    struct work_checkpoint_result results[PAWL_EVIDENCE_MAX];
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    char what[CHECKPOINT_WHAT_SIZE] = "";
    TRY(pawl__work_checkpoint_check_evidence(work, checkpoint, &arena, results, what, reterr));
    if (what[0] == '\0') {
        return PAWL_OK;
    }
    size_t failed = 0;
    while (failed + 1 < checkpoint->evidence_count && results[failed].ok) {
        failed++;
    }
    return pawl__mark_index(
        reterr,
        failed,
        pawl__fail_detail(reterr, PAWL_INVALID, PAWL_DETAIL_EVIDENCE_FAILED, "%s", what));
}

/* --- Adding: inside of the transaction --- */

struct add_request {
    struct work_request request; /* first */
    const pawl_checkpoint *given;
    const pawl_lease *lease;
    bool fresh; /* the id was made for it */
    int64_t sequence;
};

static bool same_evidence(const pawl_checkpoint *a, const pawl_checkpoint *b)
{
    if (a->evidence_count != b->evidence_count) {
        return false;
    }
    for (size_t i = 0; i < a->evidence_count; i++) {
        if (a->evidence[i].kind != b->evidence[i].kind
            || !pawl__view_equal(a->evidence[i].subject, b->evidence[i].subject)
            || !pawl__view_equal(a->evidence[i].expected, b->evidence[i].expected)) {
            return false;
        }
    }
    return true;
}

static pawl_status is_same(const struct add_request *add,
                           const pawl_checkpoint *stored,
                           bool *ret_same,
                           pawl_error *reterr)
{
    const pawl_checkpoint *given = add->given;
    pawl_view item = add->lease != NULL ? add->lease->work_item_id : given->work_item_id;
    bool same_snapshot = false;
    bool same_metadata = false;

    TRY(pawl__json_same(given->snapshot_data, stored->snapshot_data, &same_snapshot, reterr));
    TRY(pawl__json_same(given->metadata, stored->metadata, &same_metadata, reterr));
    *ret_same = (given->task_id.len == 0 || pawl__view_equal(given->task_id, stored->task_id))
                && pawl__view_equal(item, stored->work_item_id) && given->type == stored->type
                && same_snapshot && same_metadata && same_evidence(given, stored);
    return PAWL_OK;
}

/* *ret_answered: it is stored already, and the request has its answer. */
static pawl_status find_duplicate(struct work_tx *tx,
                                  struct add_request *add,
                                  bool *ret_answered,
                                  pawl_error *reterr)
{
    pawl_checkpoint *stored = NULL;
    bool same = false;

    if (!add->fresh) {
        TRY(tx->backend->checkpoints->find(
            tx->backend, add->given->checkpoint_id, tx->arena, &stored, reterr));
    }
    *ret_answered = stored != NULL;
    if (stored == NULL) {
        return PAWL_OK;
    }
    TRY(is_same(add, stored, &same, reterr));
    if (!same) {
        return pawl__work_refuse_detail(&add->request,
                                        PAWL_CONFLICT,
                                        ID_TAKEN,
                                        "checkpoint '%.*s' is there with other content",
                                        VIEW_ARGS(stored->checkpoint_id));
    }
    add->sequence = stored->sequence_number;
    return PAWL_OK;
}

/* The item of the checkpoint: the lease's, or the one it names; NULL when it belongs to the task alone. */
static pawl_status find_item(struct work_tx *tx,
                             struct add_request *add,
                             struct work_row **ret_row,
                             pawl_error *reterr)
{
    pawl_task task;

    *ret_row = NULL;
    if (add->lease != NULL) {
        return pawl__work_tx_lease(tx, &add->request, add->lease, ret_row, reterr);
    }
    TRY(pawl__work_tx_task(tx, &add->request, add->given->task_id, &task, reterr));
    return add->given->work_item_id.len == 0 || pawl__work_is_refused(&add->request)
               ? PAWL_OK
               : pawl__work_tx_item(tx, &add->request, add->given->work_item_id, ret_row, reterr);
}

static pawl_status store(struct work_tx *tx,
                         struct add_request *add,
                         const struct work_row *row,
                         pawl_error *reterr)
{
    pawl_checkpoint whole = *add->given;

    if (row != NULL) {
        if (whole.task_id.len > 0 && !pawl__view_equal(whole.task_id, row->item.task_id)) {
            return pawl__work_refuse(&add->request,
                                     PAWL_INVALID,
                                     "task_id: item '%.*s' is one of task '%.*s'",
                                     VIEW_ARGS(row->item.work_item_id),
                                     VIEW_ARGS(row->item.task_id));
        }
        whole.task_id = row->item.task_id;
        whole.work_item_id = row->item.work_item_id;
    }
    REQUIRE(whole.task_id.len > 0 && whole.checkpoint_id.len > 0);
    TRY(tx->backend->checkpoints->add(tx->backend, &tx->now, &whole, &add->sequence, reterr));
    REQUIRE(add->sequence > 0);
    return PAWL_OK;
}

static pawl_status run_add(struct work_tx *tx, struct work_request *request, pawl_error *reterr)
{
    struct add_request *add = (struct add_request *)request;
    struct work_row *row = NULL;
    bool answered = false;

    TRY(find_duplicate(tx, add, &answered, reterr));
    if (answered) {
        return PAWL_OK;
    }
    TRY(find_item(tx, add, &row, reterr));
    return pawl__work_is_refused(request) ? PAWL_OK : store(tx, add, row, reterr);
}

pawl_status pawl_checkpoint_add(pawl_work *work,
                                const pawl_checkpoint *checkpoint,
                                const pawl_lease *lease,
                                int64_t *ret_sequence,
                                char *ret_id,
                                size_t room,
                                pawl_error *reterr)
{
    static const pawl_evidence evidence = PAWL_EVIDENCE_INIT;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_checkpoint given = PAWL_CHECKPOINT_INIT;
    pawl_lease held = PAWL_LEASE_INIT;

    NEED(work, checkpoint, reterr);
    TRY(pawl__take_sized("checkpoint", checkpoint, &given, sizeof(given), reterr));
    TRY(pawl__take_sized("lease", lease, &held, sizeof(held), reterr));
    NEED_ARRAY(given.evidence, given.evidence_count, reterr);
    const void *pieces = given.evidence;
    TRY(pawl__widen_sized("evidence",
                          &pieces,
                          given.evidence_count <= PAWL_EVIDENCE_MAX ? given.evidence_count : 0,
                          &evidence,
                          sizeof(evidence),
                          &arena,
                          reterr));
    given.evidence = pieces;
    const pawl_checkpoint asked = given;
    checkpoint = &asked;
    lease = lease == NULL ? NULL : &held;
    NEED_VIEW(checkpoint->checkpoint_id, reterr);
    NEED_VIEW(checkpoint->task_id, reterr);
    NEED_VIEW(checkpoint->work_item_id, reterr);
    NEED_VIEW(checkpoint->snapshot_data, reterr);
    NEED_VIEW(checkpoint->metadata, reterr);
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    TRY(check_checkpoint(work, checkpoint, lease, reterr));
    TRY(pawl__work_id(checkpoint->checkpoint_id, id, reterr));
    TRY(pawl__check_room("ret_id", ret_id, room, strlen(id) + 1, reterr));
    TRY(verify_first(work, checkpoint, reterr));
    given.checkpoint_id = pawl_view_of(id);
    struct add_request add = {
        .request = { .item = { .bytes = checkpoint->snapshot_data.len + checkpoint->metadata.len },
                     .run = run_add },
        .given = &given,
        .lease = lease,
        .fresh = checkpoint->checkpoint_id.len == 0,
    };
    TRY(pawl__work_submit_request(work, &add.request, reterr));
    if (ret_sequence != NULL) {
        *ret_sequence = add.sequence;
    }
    if (ret_id != NULL) {
        memcpy(ret_id, id, strlen(id) + 1);
    }
    return PAWL_OK;
}

/* --- Finding --- */

struct found {
    pawl_checkpoint *checkpoint; /* NULL: none */
    bool nomem;
};

static bool copy_found(void *context, const pawl_checkpoint *checkpoint)
{
    struct found *found = context;
    struct pawl__arena *arena = NULL;

    found->checkpoint = pawl__work_record_new(sizeof(*checkpoint), &arena);
    found->nomem = found->checkpoint == NULL
                   || !pawl__work_copy_checkpoint(arena, checkpoint, found->checkpoint);
    return false;
}

void pawl_checkpoint_free(pawl_checkpoint *checkpoint)
{
    pawl__work_record_free(checkpoint);
}

/* The first of the query; by its id when that is given. */
static pawl_status find_first(pawl_work *work,
                              pawl_view checkpoint_id,
                              const struct work_checkpoint_query *query,
                              pawl_checkpoint **ret_checkpoint,
                              pawl_error *reterr)
{
    const struct work_checkpoint_ops *ops = work->backend->checkpoints;
    struct found found = { .checkpoint = NULL };
    pawl_status status = checkpoint_id.len > 0
                             ? ops->get(work->backend, checkpoint_id, copy_found, &found, reterr)
                             : ops->list(work->backend, query, copy_found, &found, reterr);

    if (status != PAWL_OK || found.nomem) {
        pawl_checkpoint_free(found.checkpoint);
        return found.nomem ? pawl__fail(reterr, PAWL_NOMEM, "checkpoint") : status;
    }
    if (found.checkpoint == NULL) {
        return pawl__fail(reterr,
                          PAWL_NOT_FOUND,
                          "task '%.*s' has no such checkpoint",
                          VIEW_ARGS(query->task_id));
    }
    *ret_checkpoint = found.checkpoint;
    return PAWL_OK;
}

pawl_status pawl_checkpoint_get(pawl_work *work,
                                pawl_view checkpoint_id,
                                pawl_view task_id,
                                int64_t sequence_number,
                                pawl_checkpoint **ret_checkpoint,
                                pawl_error *reterr)
{
    NEED(work, ret_checkpoint, reterr);
    NEED_VIEW(checkpoint_id, reterr);
    NEED_VIEW(task_id, reterr);
    struct work_checkpoint_query query = { .task_id = task_id,
                                           .exactly = sequence_number,
                                           .limit = 1 };
    bool by_id = checkpoint_id.len > 0;
    TRY(pawl__work_check_name(
        by_id ? "checkpoint_id" : "task_id", by_id ? checkpoint_id : task_id, reterr));
    if (!by_id && sequence_number < 1) {
        return pawl__fail(reterr, PAWL_INVALID, "sequence_number: is below 1");
    }
    return find_first(work, checkpoint_id, &query, ret_checkpoint, reterr);
}

pawl_status pawl_checkpoint_latest(pawl_work *work,
                                   pawl_view task_id,
                                   const pawl_checkpoint_type *type,
                                   bool verified_only,
                                   pawl_checkpoint **ret_checkpoint,
                                   pawl_error *reterr)
{
    NEED(work, ret_checkpoint, reterr);
    NEED_VIEW(task_id, reterr);
    struct work_checkpoint_query query = {
        .task_id = task_id,
        .type = type,
        .verified_only = verified_only,
        .newest_first = true,
        .limit = 1,
    };
    TRY(pawl__work_check_name("task_id", task_id, reterr));
    if (type != NULL) {
        TRY(check_type(*type, reterr));
    }
    return find_first(work, (pawl_view){ NULL, 0 }, &query, ret_checkpoint, reterr);
}

struct checkpoint_walk {
    pawl_checkpoint_visit visit;
    void *context;
    struct pawl__page page;
};

static bool list_checkpoint(void *context, const pawl_checkpoint *checkpoint)
{
    struct checkpoint_walk *walk = context;

    return pawl__page_admits(&walk->page, (uint64_t)checkpoint->sequence_number)
           && pawl__page_show(&walk->page, walk->visit(walk->context, checkpoint));
}

pawl_status pawl_checkpoint_list(pawl_work *work,
                                 pawl_view task_id,
                                 pawl_view work_item_id,
                                 const pawl_checkpoint_type *type,
                                 pawl_page *page,
                                 pawl_checkpoint_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    NEED(work, visit, reterr);
    struct checkpoint_walk walk = { .visit = visit, .context = context };
    TRY(pawl__page_take(page, &walk.page, reterr));
    const struct work_checkpoint_query query = {
        .task_id = task_id,
        .work_item_id = work_item_id,
        .type = type,
        .from = (int64_t)MIN(walk.page.page.from, (uint64_t)INT64_MAX),
        .limit = pawl__page_reads(&walk.page),
    };

    TRY(pawl__work_check_name("task_id", task_id, reterr));
    TRY(pawl__work_check_optional_name("work_item_id", work_item_id, reterr));
    if (type != NULL) {
        TRY(check_type(*type, reterr));
    }
    INSIDE(work);
    TRY(work->backend->checkpoints->list(work->backend, &query, list_checkpoint, &walk, reterr));
    pawl__page_answer(&walk.page, page);
    return PAWL_OK;
}

pawl_status pawl_checkpoint_diff(const pawl_checkpoint *from,
                                 const pawl_checkpoint *to,
                                 pawl_difference_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    pawl_checkpoint before = PAWL_CHECKPOINT_INIT;
    pawl_checkpoint after = PAWL_CHECKPOINT_INIT;

    NEED(from, to, visit, reterr);
    TRY(pawl__take_sized("from", from, &before, sizeof(before), reterr));
    TRY(pawl__take_sized("to", to, &after, sizeof(after), reterr));
    from = &before;
    to = &after;
    NEED_VIEW(from->snapshot_data, reterr);
    NEED_VIEW(to->snapshot_data, reterr);
    return pawl__work_json_diff(from->snapshot_data, to->snapshot_data, visit, context, reterr);
}
