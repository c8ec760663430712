/* From the WAL into the sink: entries after the applied LSN, and exceptions that are due. Both are the same work on
 * other entries: judge, commit, and where the sink refuses, find out which event is to blame. */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "delivery/pipeline/commit.h"

/* A run of entries for one transaction. */
struct work {
    struct delivery_window *window;
    const struct delivery_exceptions
        *exceptions; /* they were exceptions before; NULL: they were not */
    size_t count;
    delivery_lsn through; /* there is no entry behind the last one up to here; 0: there may be */
};

/* --- judging --- */

static pawl_status make_room(struct delivery_pipeline *pipeline, size_t count, pawl_error *reterr)
{
    if (count <= pipeline->outcome_room) {
        return PAWL_OK;
    }
    struct delivery_outcome *outcomes = realloc(pipeline->outcomes, count * sizeof(*outcomes));
    TRY(pawl__check_memory(outcomes, "a transaction", reterr));
    pipeline->outcomes = outcomes;
    struct delivery_verdict *verdicts = realloc(pipeline->verdicts, count * sizeof(*verdicts));
    TRY(pawl__check_memory(verdicts, "a transaction", reterr));
    pipeline->verdicts = verdicts;
    pipeline->outcome_room = count;
    return PAWL_OK;
}

/* The id stays with whom the sink has: the entry is stored under the key of a conflict. */
static pawl_status check_conflict(struct delivery_pipeline *pipeline,
                                  struct delivery_entry *entry,
                                  struct delivery_outcome *outcome,
                                  pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_key key = { entry->key, entry->payload_hash };
    struct delivery_known known = { .found = false };
    struct delivery_names names;

    TRY(sink->ops->lookup(sink, &key, 1, &known, reterr));
    if (known.found) {
        TRY(pawl__delivery_entry_names(entry, &names, reterr));
        entry->key = names.conflict;
        outcome->kind = DELIVERY_TO_FAILED;
        outcome->layer = DELIVERY_LAYER_VALIDATION;
        outcome->reason = DELIVERY_REASON_CONFLICT;
    }
    return PAWL_OK;
}

static pawl_status judge(struct delivery_pipeline *pipeline,
                         const struct work *work,
                         size_t i,
                         pawl_error *reterr)
{
    struct delivery_entry *entry = &pipeline->page.entries[i];
    struct delivery_outcome *outcome = &pipeline->outcomes[i];

    pawl__delivery_outcome_of(entry, &pipeline->verdicts[i], outcome);
    if (entry->payload.len > pipeline->settings.payload_bytes_max) {
        outcome->kind = DELIVERY_TO_FAILED;
        outcome->layer = DELIVERY_LAYER_WAL;
        outcome->reason = "too_large";
    }
    if (work->exceptions == NULL) {
        return PAWL_OK;
    }
    const struct delivery_exception *exception =
        pawl__delivery_exceptions_find(work->exceptions, entry->lsn);
    REQUIRE(exception != NULL);
    outcome->was_exception = true;
    outcome->exception = *exception;
    /* Left behind by another WAL: the sink may have got the same id from elsewhere. */
    return exception->first_failed_running_ns < 0 ? check_conflict(pipeline, entry, outcome, reterr)
                                                  : PAWL_OK;
}

/* --- committing, and finding who is to blame --- */

static delivery_lsn applied_after(const struct delivery_pipeline *pipeline,
                                  const struct work *work,
                                  size_t count)
{
    delivery_lsn applied = work->exceptions != NULL || count == 0
                               ? pipeline->cursor.applied
                               : pipeline->page.entries[count - 1].lsn;

    return count == work->count ? MAX(applied, work->through) : applied;
}

/* The one event in it is to blame; `error` says why. Its end is committed instead of its row. Refused once more, it is
 * the sink that is to blame after all. */
static pawl_status pin(struct delivery_pipeline *pipeline,
                       const struct work *work,
                       enum delivery_blame blame,
                       const pawl_error *error,
                       pawl_error *reterr)
{
    struct delivery_outcome *outcome = &pipeline->outcomes[0];
    struct delivery_exception known = outcome->exception;

    outcome->error = error->message;
    pawl__delivery_pin(&pipeline->settings.retry,
                       &known,
                       blame,
                       pawl__delivery_running_now(pipeline),
                       pawl__delivery_draw(pipeline),
                       outcome);
    return pawl__delivery_commit(
        pipeline, outcome, 1, applied_after(pipeline, work, 1), &blame, reterr);
}

static bool may_be_an_event(enum delivery_blame blame)
{
    return blame == DELIVERY_BLAME_EVENT || blame == DELIVERY_BLAME_RETRY;
}

static pawl_status commit_some(struct delivery_pipeline *pipeline,
                               struct work *work,
                               size_t *ret_moved,
                               pawl_error *reterr)
{
    for (size_t count = work->count;; count = MIN(work->window->size, work->count)) {
        pawl_error error = PAWL_ERROR_INIT;
        enum delivery_blame blame = DELIVERY_BLAME_STOP;
        pawl_status status = pawl__delivery_commit(pipeline,
                                                   pipeline->outcomes,
                                                   count,
                                                   applied_after(pipeline, work, count),
                                                   &blame,
                                                   &error);

        if (status != PAWL_OK && may_be_an_event(blame) && count > 1) {
            pawl__delivery_window_halve(work->window, count);
            continue;
        }
        if (status != PAWL_OK && may_be_an_event(blame) && count == 1) {
            status = pin(pipeline, work, blame, &error, &error);
        }
        if (status != PAWL_OK) {
            return pawl__fail_with(reterr, status, &error);
        }
        pawl__delivery_window_grow(work->window);
        *ret_moved = count;
        return PAWL_OK;
    }
}

static bool has_losses(struct delivery_pipeline *pipeline)
{
    pawl__lock(&pipeline->shared.lock);
    bool has_some = pipeline->shared.losses.count > 0;
    pawl__unlock(&pipeline->shared.lock);
    return has_some;
}

static pawl_status run(struct delivery_pipeline *pipeline,
                       struct work *work,
                       size_t *ret_moved,
                       pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;

    work->count = pipeline->page.count;
    *ret_moved = 0;
    if (work->count == 0 && !has_losses(pipeline) && work->through <= pipeline->cursor.applied) {
        return PAWL_OK;
    }
    TRY(make_room(pipeline, work->count, reterr));
    TRY(sink->ops->validate(sink, pipeline->page.entries, work->count, pipeline->verdicts, reterr));
    for (size_t i = 0; i < work->count; i++) {
        TRY(judge(pipeline, work, i, reterr));
    }
    return commit_some(pipeline, work, ret_moved, reterr);
}

/* --- the two kinds of work --- */

/* The WAL may have forgotten its last entries before the sink was lost that had them: nothing is pending there, and a
 * row that stayed below them would ask for a rebuild on every start. */
static delivery_lsn last_appended(struct delivery_pipeline *pipeline)
{
    pawl__lock(&pipeline->shared.lock);
    delivery_lsn last = pipeline->shared.next_lsn - 1;
    pawl__unlock(&pipeline->shared.lock);
    return last;
}

pawl_status pawl__delivery_apply(struct delivery_pipeline *pipeline,
                                 size_t *ret_moved,
                                 pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    struct work work = { .window = &pipeline->window };
    bool is_ready = false;

    *ret_moved = 0;
    TRY(pawl__delivery_ready(pipeline, &is_ready, reterr));
    if (!is_ready) {
        return PAWL_OK;
    }
    delivery_lsn last = last_appended(pipeline);
    struct delivery_range range = {
        .from = pipeline->cursor.applied + 1,
        .to = last, /* what intake is just appending has no place yet and is not counted */
        .states =
            DELIVERY_STATES_ALL, /* above the applied LSN all are pending, whatever they are marked */
        .entries_max = pipeline->window.size,
        .bytes_max = pipeline->settings.apply_bytes_max,
    };
    TRY(wal->ops->read(wal, &range, &pipeline->page, reterr));
    if (pipeline->page.count < range.entries_max && pipeline->page.bytes <= range.bytes_max) {
        work.through = last;
    }
    return run(pipeline, &work, ret_moved, reterr);
}

/* The entries of exceptions that are due, up to the window; the position learns the lowest place of them all. */
static pawl_status read_due(struct delivery_pipeline *pipeline,
                            const struct delivery_exceptions *exceptions,
                            pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page one = { .count = 0 };
    int64_t running_ns = pawl__delivery_running_now(pipeline);

    pawl__delivery_page_clear(&pipeline->page);
    for (size_t i = 0; i < exceptions->count; i++) {
        const struct delivery_exception *exception = &exceptions->items[i];
        bool is_found = false;
        if (exception->due_running_ns > running_ns
            || pipeline->page.count == pipeline->retry_window.size) {
            continue;
        }
        TRY(pawl__delivery_read_one(pipeline, exception->lsn, &one, &is_found, reterr));
        if (!is_found) {
            pipeline->is_broken = true;
            return pawl__fail(reterr, PAWL_CORRUPT, "the WAL lost an entry that waits for a retry");
        }
        TRY(pawl__delivery_page_add(&pipeline->page, &one.entries[0], reterr));
    }
    pawl__lock(&pipeline->shared.lock);
    pawl__delivery_position_exceptions(
        &pipeline->shared.position, exceptions->items, exceptions->count);
    pawl__unlock(&pipeline->shared.lock);
    return PAWL_OK;
}

pawl_status pawl__delivery_retry(struct delivery_pipeline *pipeline,
                                 size_t *ret_moved,
                                 pawl_error *reterr)
{
    AUTO(pawl__delivery_exceptions_done) struct delivery_exceptions exceptions = { .items = NULL };
    struct work work = { .window = &pipeline->retry_window, .exceptions = &exceptions };
    int64_t now_ns = pawl__delivery_now_ns(pipeline);
    bool is_ready = false;

    *ret_moved = 0;
    if (now_ns - pipeline->retried_ns < pipeline->settings.retry_interval_ns) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_ready(pipeline, &is_ready, reterr));
    if (!is_ready) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_exceptions_read(pipeline, &exceptions, reterr));
    TRY(read_due(pipeline, &exceptions, reterr));
    TRY(run(pipeline, &work, ret_moved, reterr));
    if (*ret_moved == 0) {
        pipeline->retried_ns = now_ns; /* until then more may be due */
    }
    return PAWL_OK;
}
