#include "delivery/pipeline/commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { MARK_STEP = 1000 };

/* Those that were committed; more may have been seen since. */
static void drop_losses_locked(struct delivery_shared *shared, size_t count)
    REQUIRES_LOCK(shared->lock);
static void drop_losses_locked(struct delivery_shared *shared, size_t count)
{
    struct delivery_losses *losses = &shared->losses;

    REQUIRE(count <= losses->count);
    losses->count -= count;
    if (count > 0) {
        memmove(losses->items, &losses->items[count], losses->count * sizeof(*losses->items));
    }
}

/* --- before --- */

/* The answer to a commit was lost. Its cursor row tells whether it was made. */
static pawl_status resolve_doubt(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    AUTO(pawl__delivery_exceptions_done) struct delivery_exceptions exceptions = { .items = NULL };
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_cursor stored;
    bool is_found = false;

    TRY(sink->ops->read_cursor(sink, &stored, &is_found, reterr));
    bool is_ours = is_found && stored.fence == pipeline->cursor.fence;
    if (is_ours && stored.version == pipeline->cursor.version) {
        pipeline->cursor_in_doubt = false;
        return PAWL_OK;
    }
    if (!is_ours || stored.version != pipeline->cursor.version + 1) {
        pipeline->is_broken = true;
        return pawl__fail(
            reterr,
            PAWL_LEASE_LOST,
            "the cursor row is not the one that this pipeline wrote: somebody else has the sink");
    }
    TRY(pawl__delivery_exceptions_read(pipeline, &exceptions, reterr));
    pipeline->cursor = stored;
    pawl__lock(&pipeline->shared.lock);
    pawl__delivery_position_committed(&pipeline->shared.position);
    drop_losses_locked(&pipeline->shared, pipeline->losses.count);
    pawl__unlock(&pipeline->shared.lock);
    TRY(pawl__delivery_settle_marks(pipeline, &exceptions, NULL, reterr));
    pipeline->cursor_in_doubt = false;
    return PAWL_OK;
}

static pawl_status check_lease(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    int64_t boot_ns = pawl__boot_ns(pipeline->parts.clock);
    pawl_status status = pawl__lease_renew(
        &pipeline->lease, pipeline->cursor.fence, boot_ns, pipeline->settings.lease_ns, reterr);

    pawl__delivery_break_if(pipeline, status != PAWL_OK);
    return status;
}

static void outage(struct delivery_pipeline *pipeline)
{
    int64_t now_ns = pawl__delivery_now_ns(pipeline);

    pawl__delivery_breaker_outage(
        &pipeline->breaker, &pipeline->settings.outage, now_ns, pawl__delivery_draw(pipeline));
    pawl__lock(&pipeline->shared.lock);
    pawl__delivery_running_stop(&pipeline->shared.running, now_ns);
    pipeline->shared.totals.outages++;
    pawl__unlock(&pipeline->shared.lock);
}

/* The sink answers again, so its entries can be tried: their time runs. */
static void resume(struct delivery_pipeline *pipeline)
{
    pawl__lock(&pipeline->shared.lock);
    pawl__delivery_running_resume(&pipeline->shared.running, pawl__delivery_now_ns(pipeline));
    pawl__unlock(&pipeline->shared.lock);
}

pawl_status pawl__delivery_ready(struct delivery_pipeline *pipeline,
                                 bool *ret_ready,
                                 pawl_error *reterr)
{
    *ret_ready = pawl__delivery_breaker_allows(&pipeline->breaker, pawl__delivery_now_ns(pipeline));
    if (!*ret_ready) {
        return PAWL_OK;
    }
    TRY(check_lease(pipeline, reterr));
    if (!pipeline->cursor_in_doubt) {
        return PAWL_OK;
    }
    pawl__lock(&pipeline->turn);
    pawl_status status = resolve_doubt(pipeline, reterr);
    pawl__unlock(&pipeline->turn);
    if (status == PAWL_OK) {
        resume(pipeline);
    } else if (!pipeline->is_broken) {
        outage(pipeline);
    }
    return status;
}

/* --- the row --- */

static struct delivery_cursor next_cursor(struct delivery_pipeline *pipeline,
                                          const struct delivery_outcome *outcomes,
                                          size_t count,
                                          delivery_lsn applied)
{
    struct delivery_shared *shared = &pipeline->shared;
    struct delivery_cursor next = pipeline->cursor;
    int64_t now_ns = pawl__delivery_now_ns(pipeline);

    pawl__lock(&shared->lock);
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i].kind == DELIVERY_DEFERRED) {
            pawl__delivery_position_exception(&shared->position, &outcomes[i].entry->place);
        }
    }
    next.version++;
    next.applied = applied;
    next.stream = pawl__delivery_position_applied(&shared->position, applied);
    next.running_ns = pawl__delivery_running_ns(&shared->running, now_ns);
    next.counters.accepted = shared->accepted;
    pawl__unlock(&shared->lock);
    pawl__delivery_count(&next.counters, outcomes, count);
    return next;
}

/* What was stored says otherwise than what we did: somebody else writes, too. */
static pawl_status check_counters(struct delivery_pipeline *pipeline,
                                  const struct delivery_counters *counters,
                                  pawl_error *reterr)
{
    if (pawl__delivery_counters_hold(counters)) {
        return PAWL_OK;
    }
    pipeline->is_broken = true;
    return pawl__fail(reterr, PAWL_CORRUPT, "more events were settled than accepted");
}

/* --- behind it --- */

static struct delivery_fate fate_of(struct delivery_pipeline *pipeline,
                                    const struct delivery_outcome *outcome)
{
    struct delivery_fate fate = outcome->entry->fate;
    int64_t wall_us = pawl__wall_us(pipeline->parts.clock);
    bool has_failed = outcome->kind == DELIVERY_TO_FAILED;

    fate.attempts = outcome->exception.attempts;
    fate.last_attempt_us = wall_us;
    if (outcome->kind == DELIVERY_DEFERRED) {
        fate.state = DELIVERY_PENDING;
    } else {
        fate.state = has_failed ? DELIVERY_FAILED : DELIVERY_CONFIRMED;
        fate.ended_us = wall_us;
    }
    if (outcome->error != NULL) {
        snprintf(fate.last_error, sizeof(fate.last_error), "%s", outcome->error);
    }
    if (has_failed) {
        snprintf(fate.failure_reason, sizeof(fate.failure_reason), "%s", outcome->reason);
    }
    return fate;
}

static pawl_status make_mark_room(struct delivery_pipeline *pipeline)
{
    if (pipeline->mark_lsns != NULL) {
        return PAWL_OK;
    }
    pipeline->mark_lsns = calloc(MARK_STEP, sizeof(*pipeline->mark_lsns));
    pipeline->mark_fates = calloc(MARK_STEP, sizeof(*pipeline->mark_fates));
    return pipeline->mark_lsns == NULL || pipeline->mark_fates == NULL ? PAWL_NOMEM : PAWL_OK;
}

static pawl_status mark_some(struct delivery_pipeline *pipeline,
                             const struct delivery_outcome *outcomes,
                             size_t count)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    size_t marked = 0;

    for (size_t i = 0; i < count; i++) {
        if (!outcomes[i]
                 .was_failed) { /* its mark comes with the decision, which has to be durable */
            pipeline->mark_lsns[marked] = outcomes[i].entry->lsn;
            pipeline->mark_fates[marked++] = fate_of(pipeline, &outcomes[i]);
        }
    }
    return marked == 0
               ? PAWL_OK
               : wal->ops->mark(wal, pipeline->mark_lsns, pipeline->mark_fates, marked, NULL);
}

/* Not durable and not needed: a mark that is lost is found out again from the cursor row. */
static void mark_outcomes(struct delivery_pipeline *pipeline,
                          const struct delivery_outcome *outcomes,
                          size_t count)
{
    pawl_status status = make_mark_room(pipeline);

    for (size_t done = 0; done < count && status == PAWL_OK; done += MARK_STEP) {
        status = mark_some(pipeline, &outcomes[done], MIN(count - done, (size_t)MARK_STEP));
    }
    /* A WAL that cannot be written takes no appends either. */
    pawl__delivery_break_if(pipeline, status != PAWL_OK);
}

static void note_committed(struct delivery_pipeline *pipeline,
                           const struct delivery_transaction *transaction)
{
    struct delivery_shared *shared = &pipeline->shared;
    int64_t now_ns = pawl__delivery_now_ns(pipeline);

    pipeline->cursor = transaction->cursor;
    pawl__delivery_breaker_success(&pipeline->breaker);
    for (size_t i = 0; i < transaction->count; i++) {
        pipeline->bytes_since_checkpoint +=
            pawl__delivery_entry_bytes(transaction->outcomes[i].entry);
    }
    pipeline->bytes_since_checkpoint +=
        transaction->change_count; /* a checkpoint has to cover them */
    pawl__delivery_recovery_settled(
        &pipeline->recovery, transaction->outcomes, transaction->count, pipeline->recovery_until);
    if (pipeline->recovery.duration_ns == 0
        && pawl__delivery_recovery_left(&pipeline->recovery) == 0) {
        pipeline->recovery.duration_ns = now_ns - pipeline->opened_ns;
    }
    pawl__lock(&shared->lock);
    shared->applied_seen = transaction->cursor.applied;
    pawl__delivery_position_committed(&shared->position);
    shared->totals.losses += transaction->loss_count;
    drop_losses_locked(shared, transaction->loss_count);
    for (size_t i = 0; i < transaction->count; i++) {
        enum delivery_outcome_kind kind = transaction->outcomes[i].kind;
        shared->totals.confirms += kind == DELIVERY_ROW || kind == DELIVERY_FILTERED;
        shared->totals.failures += kind == DELIVERY_TO_FAILED;
        shared->totals.retries +=
            transaction->outcomes[i].was_exception || transaction->outcomes[i].was_failed;
    }
    pawl__unlock(&shared->lock);
    mark_outcomes(pipeline, transaction->outcomes, transaction->count);
}

/* A copy for the transaction: intake may see more of them meanwhile. */
static pawl_status take_losses(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    const struct delivery_losses *seen = &pipeline->shared.losses;
    pawl_status status = PAWL_OK;

    pipeline->losses.count = 0;
    pawl__lock(&pipeline->shared.lock);
    for (size_t i = 0; i < seen->count && status == PAWL_OK; i++) {
        status = pawl__delivery_losses_add(&pipeline->losses, &seen->items[i], reterr);
    }
    pawl__unlock(&pipeline->shared.lock);
    return status;
}

static pawl_status commit_in_turn(struct delivery_pipeline *pipeline,
                                  struct delivery_transaction *transaction,
                                  delivery_lsn applied,
                                  enum delivery_blame *ret_blame,
                                  pawl_error *reterr) REQUIRES_LOCK(pipeline->turn)
{
    struct delivery_sink *sink = pipeline->parts.sink;

    TRY(take_losses(pipeline, reterr));
    transaction->losses = pipeline->losses.items;
    transaction->loss_count = pipeline->losses.count;
    transaction->cursor = next_cursor(pipeline, transaction->outcomes, transaction->count, applied);
    TRY(check_counters(pipeline, &transaction->cursor.counters, reterr));
    pawl_status status = sink->ops->apply(sink, transaction, reterr);

    if (status == PAWL_OK) {
        note_committed(pipeline, transaction);
        return PAWL_OK;
    }
    *ret_blame = pawl__delivery_blame(status);
    pawl__delivery_break_if(pipeline, *ret_blame == DELIVERY_BLAME_FENCED);
    if (*ret_blame == DELIVERY_BLAME_OUTAGE) {
        pipeline->cursor_in_doubt = pawl__delivery_commit_in_doubt(*ret_blame);
        outage(pipeline);
    }
    return status;
}

static pawl_status commit(struct delivery_pipeline *pipeline,
                          struct delivery_transaction *transaction,
                          delivery_lsn applied,
                          enum delivery_blame *ret_blame,
                          pawl_error *reterr)
{
    pawl__lock(&pipeline->turn);
    pawl_status status = commit_in_turn(pipeline, transaction, applied, ret_blame, reterr);
    pawl__unlock(&pipeline->turn);
    return status;
}

pawl_status pawl__delivery_commit(struct delivery_pipeline *pipeline,
                                  const struct delivery_outcome *outcomes,
                                  size_t count,
                                  delivery_lsn applied,
                                  enum delivery_blame *ret_blame,
                                  pawl_error *reterr)
{
    struct delivery_transaction transaction = { .outcomes = outcomes, .count = count };

    return commit(pipeline, &transaction, applied, ret_blame, reterr);
}

pawl_status pawl__delivery_commit_changes(struct delivery_pipeline *pipeline,
                                          const struct delivery_outcome *outcomes,
                                          size_t count,
                                          const struct delivery_failed_change *changes,
                                          size_t change_count,
                                          enum delivery_blame *ret_blame,
                                          pawl_error *reterr)
{
    struct delivery_transaction transaction = {
        .outcomes = outcomes,
        .count = count,
        .changes = changes,
        .change_count = change_count,
    };

    return commit(pipeline, &transaction, pipeline->cursor.applied, ret_blame, reterr);
}
