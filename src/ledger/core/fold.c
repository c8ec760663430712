/* Folding is reading complete turns up to where the log reaches now, without the ledger's own
 * events. What was folded and what `ret_covered` says are the same, so that a projection can resume
 * from there and meets no event twice.
 *
 * As of a time is harder, because times need not be in order: an event counts when its own time is
 * not later, a turn when its commit's is not. */
#include <stdlib.h>

#include "base/core/argument.h"
#include "base/thread/inside.h"
#include "ledger/core/event.h"
#include "ledger/core/internal.h"
#include "ledger/core/reader.h"
#include "ledger/core/turn_index.h"

struct fold {
    pawl_ledger *ledger;
    pawl_fold_options options;
    bool as_of_time;
    uint64_t head;
    uint64_t left_out;             /* the first offset that is too late; UINT64_MAX: none */
    struct ledger_turn_index late; /* committed, but too late: skipped as if abandoned */
    uint64_t *commits;             /* the offsets of commits that are too late, ascending */
    size_t commit_count;
    size_t commit_cap;
    bool no_memory;
};

static void fold_done(struct fold *fold)
{
    pawl__ledger_turn_index_done(&fold->late);
    free(fold->commits);
}

/* --- turns that were committed too late --- */

static pawl_status add_commit(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct fold *fold = context;

    if (fold->commit_count == fold->commit_cap) {
        size_t cap = MAX(fold->commit_cap * 2, (size_t)64);
        uint64_t *larger = realloc(fold->commits, cap * sizeof(*larger));
        if (larger == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu turns", cap);
        }
        fold->commits = larger;
        fold->commit_cap = cap;
    }
    fold->commits[fold->commit_count++] = event->offset;
    return PAWL_OK;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool add_late_turn(void *context, const pawl_turn_info *info)
{
    struct fold *fold = context;

    if (info->state != PAWL_TURN_COMMITTED
        || bsearch(&info->end_offset,
                   fold->commits,
                   fold->commit_count,
                   sizeof(*fold->commits),
                   by_offset)
               == NULL) {
        return true;
    }
    pawl_turn_info span = *info;
    span.state = PAWL_TURN_ABANDONED; /* skip it */
    fold->no_memory = !pawl__ledger_turn_index_add(&fold->late, &span);
    return !fold->no_memory;
}

static pawl_status find_late_turns(struct fold *fold, pawl_error *reterr)
{
    struct ledger_backend *backend = fold->ledger->backend;
    pawl_event_filter commits = PAWL_EVENT_FILTER_INIT;
    struct ledger_query query = {
        .from = fold->options.from, .up_to = UINT64_MAX, .limit = UINT32_MAX, .filter = &commits
    };

    commits.kind = pawl_view_of(PAWL__KIND_TURN_COMMIT);
    commits.time_min_us = fold->options.up_to_time_us + 1;
    pawl_status status = backend->ops->read(backend, &query, add_commit, fold, reterr);
    if (status == PAWL_OK && fold->commit_count > 0) {
        status =
            backend->ops->turns(backend, (pawl_view){ NULL, 0 }, 0, add_late_turn, fold, reterr);
    }
    if (status == PAWL_OK && fold->no_memory) {
        status = pawl__fail(reterr, PAWL_NOMEM, "no memory for the index of turns");
    }
    pawl__ledger_turn_index_ready(&fold->late);
    return status;
}

/* --- the fold --- */

static bool is_too_late(struct fold *fold, const pawl_event *event)
{
    if (!fold->as_of_time
        || (event->created_at_us <= fold->options.up_to_time_us
            && !pawl__ledger_turn_index_skips(&fold->late, event))) {
        return false;
    }
    fold->left_out = MIN(fold->left_out, event->offset);
    return true;
}

/* A step that fails without a word still gives the caller one. */
static pawl_status run_step(pawl_fold_step step,
                            void *context,
                            const pawl_event *event,
                            pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__fail_settled(&error, step(context, event, &error), "the step of the fold");

    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static pawl_status fold_events(
    struct fold *fold, pawl_reader *reader, pawl_fold_step step, void *context, pawl_error *reterr)
{
    for (;;) {
        const pawl_event *event;
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = pawl_reader_next(reader, &event, &error);

        if (status == PAWL_NOT_FOUND) {
            return PAWL_OK;
        }
        if (status != PAWL_OK) {
            return pawl__fail_with(reterr, status, &error);
        }
        if (!is_too_late(fold, event) && !pawl__ledger_event_is_reserved(event)) {
            TRY(run_step(step, context, event, reterr));
        }
    }
}

static pawl_status check_options(struct fold *fold,
                                 const pawl_fold_options *given,
                                 pawl_error *reterr)
{
    fold->options = (pawl_fold_options)PAWL_FOLD_OPTIONS_INIT;
    TRY(pawl__take_sized("fold options", given, &fold->options, sizeof(fold->options), reterr));
    fold->as_of_time = fold->options.up_to_time_us != INT64_MAX;
    pawl_ledger_head head;
    TRY(fold->ledger->backend->ops->head(fold->ledger->backend, &head, reterr));
    fold->head = head.offset;
    return pawl__ledger_reader_check_from(fold->options.from, head.offset, reterr);
}

static pawl_status fold_inside(pawl_ledger *ledger,
                               const pawl_fold_options *options,
                               pawl_fold_step step,
                               void *context,
                               uint64_t *ret_covered,
                               pawl_error *reterr)
{
    AUTO(fold_done)
    struct fold fold = { .ledger = ledger, .left_out = UINT64_MAX, .late = TURN_INDEX_INIT };
    AUTO(pawl_reader_free_p) pawl_reader *reader = NULL;
    pawl_reader_options reading = PAWL_READER_OPTIONS_INIT;

    TRY(check_options(&fold, options, reterr));
    if (fold.as_of_time) {
        TRY(find_late_turns(&fold, reterr));
    }
    reading.from = fold.options.from;
    reading.up_to = fold.options.up_to == 0 ? fold.head : fold.options.up_to;
    reading.complete_turns = true;
    reading.filter = fold.options.filter;
    TRY(pawl_reader_open(ledger, &reading, &reader, reterr));
    if (fold.head > fold.options.from) {
        if (fold.options.up_to == 0) {
            pawl__ledger_reader_as_of_now(reader);
        }
        TRY(fold_events(&fold, reader, step, context, reterr));
    }
    if (ret_covered != NULL) {
        *ret_covered = MIN(pawl_reader_position(reader), fold.left_out - 1);
    }
    return PAWL_OK;
}

pawl_status pawl_ledger_fold(pawl_ledger *ledger,
                             const pawl_fold_options *options,
                             pawl_fold_step step,
                             void *context,
                             uint64_t *ret_covered,
                             pawl_error *reterr)
{
    NEED(ledger, step, reterr);
    INSIDE(ledger);

    return fold_inside(ledger, options, step, context, ret_covered, reterr);
}
