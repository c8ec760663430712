#include "ledger/verify/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "ledger/core/chain.h"
#include "ledger/core/internal.h"

enum { PAGE_EVENTS = 1024 };
#define PROGRESS_BYTES ((size_t)4 << 20) /* hashed between two reports, or a page */

/* A head that somebody noted earlier and that must be part of the chain. */
struct witness {
    pawl_ledger_head head;
    const char *whose;
};

enum { WITNESSES_MAX = 3 }; /* where to resume, the anchor, what the caller expects */

struct walk {
    struct ledger_backend *backend;
    pawl_verify_options options;
    pawl_ledger_head end; /* the head when the walk began: later events are not verified */
    struct witness witnesses[WITNESSES_MAX];
    size_t witness_count;
    pawl_verify_report report;
    struct pawl__sha256 recent[LEDGER_VERIFY_RECENT]; /* see ledger_verify_context */
    size_t recent_count;
    pawl_error anchor; /* it cannot be read: reported when everything else was verified */
    pawl_watch watch;
    size_t bytes; /* since the last report of progress */
    bool broken;  /* the chain; the event after `verified` does not continue it */
    struct ledger_turn_sum turns;
    struct ledger_index_sums indexes;
};

PRINTF_LIKE(4, 5)
static pawl_status bad_at(
    struct walk *walk, uint64_t offset, pawl_error *reterr, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(walk->report.what, sizeof(walk->report.what), format, arguments);
    va_end(arguments);
    walk->report.first_bad_offset = offset;
    return pawl__fail(
        reterr, PAWL_CORRUPT, "offset %llu: %s", (unsigned long long)offset, walk->report.what);
}

/* The same for an error that another part found there. */
static pawl_status bad_as(struct walk *walk,
                          uint64_t offset,
                          const pawl_error *error,
                          pawl_error *reterr)
{
    const char *advice = error->advised ? strstr(error->message, "; ") : NULL;
    int len = advice == NULL ? PAWL_ERROR_MESSAGE_SIZE : (int)(advice - error->message);

    (void)bad_at(walk, offset, reterr, "%.*s", len, error->message);
    return advice == NULL ? PAWL_CORRUPT
                          : pawl__fail_advise(reterr, PAWL_CORRUPT, "%s", advice + strlen("; "));
}

/* What a check found: CORRUPT is reported at the offset, anything else is handed on. */
static pawl_status conclude(struct walk *walk,
                            pawl_status status,
                            uint64_t bad,
                            const pawl_error *error,
                            pawl_error *reterr)
{
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    return status == PAWL_CORRUPT ? bad_as(walk, bad, error, reterr)
                                  : pawl__fail_with(reterr, status, error);
}

/* What is wrong, and not at an offset. */
static pawl_status bad_elsewhere(struct walk *walk, const pawl_error *error, pawl_error *reterr)
{
    if (error->status == PAWL_CORRUPT) {
        snprintf(walk->report.what, sizeof(walk->report.what), "%.150s", error->message);
    }
    return pawl__fail_with(reterr, error->status, error);
}

/* --- heads that were noted --- */

static pawl_status copy_hash(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)reterr;
    memcpy(context, event->hash, sizeof(event->hash));
    return PAWL_OK;
}

static pawl_status cut_off(struct ledger_backend *backend,
                           const pawl_ledger_head *head,
                           const char *whose,
                           uint64_t *ret_bad,
                           pawl_error *reterr)
{
    pawl_ledger_head end;

    TRY(backend->ops->head(backend, &end, reterr));
    if (ret_bad != NULL) {
        *ret_bad = MIN(end.offset + 1, head->offset);
    }
    if (end.offset > head->offset) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "removed: %s is at offset %llu, where nothing is",
                          whose,
                          (unsigned long long)head->offset);
    }
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "cut off: the log ends at offset %llu, %s is at %llu; " LEDGER_CUT_ADVICE,
        (unsigned long long)end.offset,
        whose,
        (unsigned long long)head->offset);
}

pawl_status pawl__ledger_verify_contains(struct ledger_backend *backend,
                                         const pawl_ledger_head *head,
                                         const char *whose,
                                         uint64_t *ret_bad,
                                         pawl_error *reterr)
{
    uint8_t hash[PAWL_LEDGER_HASH_BYTES];

    if (head->offset == 0) {
        return PAWL_OK;
    }
    pawl_status status =
        backend->ops->get(backend, (pawl_view){ NULL, 0 }, head->offset, copy_hash, hash, reterr);
    if (status == PAWL_NOT_FOUND) {
        return cut_off(backend, head, whose, ret_bad, reterr);
    }
    if (status == PAWL_OK && pawl__ledger_chain_hash_equal(hash, head->hash)) {
        return PAWL_OK;
    }
    if (ret_bad != NULL) {
        *ret_bad = head->offset;
    }
    return status != PAWL_OK ? status
                             : pawl__fail(reterr,
                                          PAWL_CORRUPT,
                                          "replaced: offset %llu or events before it, %s has "
                                          "another hash",
                                          (unsigned long long)head->offset,
                                          whose);
}

static pawl_status read_anchor(struct ledger_backend *backend,
                               pawl_ledger_head *ret_head,
                               pawl_error *reterr)
{
    pawl_ledger_head head = { 0 };
    pawl_status status = backend->ops->anchor == NULL
                             ? PAWL_NOT_FOUND
                             : backend->ops->anchor(backend, &head, reterr);

    if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
        return status;
    }
    *ret_head = head;
    return PAWL_OK;
}

static pawl_status check_store(struct ledger_backend *backend,
                               uint64_t *ret_bad,
                               pawl_error *reterr)
{
    return backend->ops->check == NULL ? PAWL_OK : backend->ops->check(backend, ret_bad, reterr);
}

pawl_status pawl__ledger_verify_ends(struct ledger_backend *backend, pawl_error *reterr)
{
    pawl_ledger_head anchor;
    uint64_t bad;

    TRY(read_anchor(backend, &anchor, reterr));
    TRY(pawl__ledger_verify_contains(backend, &anchor, "its anchor", NULL, reterr));
    return check_store(backend, &bad, reterr);
}

/* Those that the walk does not pass: before its beginning, or after its end. */
static pawl_status check_outside(struct walk *walk, bool before, pawl_error *reterr)
{
    for (size_t i = 0; i < walk->witness_count; i++) {
        const struct witness *witness = &walk->witnesses[i];
        uint64_t bad = 0;
        pawl_error error = PAWL_ERROR_INIT;

        if (before ? witness->head.offset > walk->options.from.offset
                   : witness->head.offset <= walk->end.offset) {
            continue;
        }
        pawl_status status = pawl__ledger_verify_contains(
            walk->backend, &witness->head, witness->whose, &bad, &error);
        TRY(conclude(walk, status, bad, &error, reterr));
    }
    return PAWL_OK;
}

static pawl_status check_witnesses(struct walk *walk, const pawl_event *event, pawl_error *reterr)
{
    for (size_t i = 0; i < walk->witness_count; i++) {
        const struct witness *witness = &walk->witnesses[i];
        if (witness->head.offset == event->offset
            && !pawl__ledger_chain_hash_equal(witness->head.hash, event->hash)) {
            return bad_at(walk,
                          event->offset,
                          reterr,
                          "replaced, it or events before it: %s has another hash",
                          witness->whose);
        }
    }
    return PAWL_OK;
}

/* --- the walk --- */

static pawl_status report_progress(struct walk *walk, pawl_error *reterr)
{
    const pawl_watch *watch = &walk->watch;

    walk->bytes = 0;
    if (watch->progress != NULL
        && !watch->progress(watch->context, walk->report.verified.offset, walk->end.offset)) {
        return pawl__fail(reterr,
                          PAWL_CANCELLED,
                          "verified up to offset %llu, then cancelled",
                          (unsigned long long)walk->report.verified.offset);
    }
    return PAWL_OK;
}

static pawl_status check_event(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct walk *walk = context;
    pawl_ledger_head next = walk->report.verified;

    if (event->offset != next.offset + 1) {
        return bad_at(walk,
                      next.offset + 1,
                      reterr,
                      "removed: offset %llu is followed by %llu",
                      (unsigned long long)next.offset,
                      (unsigned long long)event->offset);
    }
    TRY(pawl__ledger_chain_extend(&next, event, reterr));
    if (!pawl__ledger_chain_hash_equal(next.hash, event->hash)) {
        walk->broken = true;
        return PAWL_CORRUPT; /* what happened is found out when this read is over */
    }
    TRY(check_witnesses(walk, event, reterr));
    TRY(pawl__ledger_verify_turn_event(&walk->turns, event, reterr));
    pawl__ledger_verify_index_event(&walk->indexes, event);
    walk->report.verified = next;
    memcpy(&walk->recent[next.offset % LEDGER_VERIFY_RECENT], next.hash, sizeof(next.hash));
    walk->recent_count = MIN(walk->recent_count + 1, (size_t)LEDGER_VERIFY_RECENT);
    walk->bytes += event->payload.len;
    return walk->bytes < PROGRESS_BYTES ? PAWL_OK : report_progress(walk, reterr);
}

static pawl_status explain_break(struct walk *walk, pawl_error *reterr)
{
    struct ledger_verify_context context = {
        .backend = walk->backend,
        .verified = walk->report.verified,
        .end = walk->end.offset,
        .recent = walk->recent,
        .recent_count = walk->recent_count,
    };
    uint64_t offset;
    char what[sizeof(walk->report.what)];

    pawl__ledger_verify_explain(&context, &offset, what, sizeof(what));
    if (offset <= walk->report.verified.offset) {
        /* Forged events before the break had good hashes; they are no part of what was appended. */
        walk->report.verified.offset = offset - 1;
        memcpy(walk->report.verified.hash,
               &walk->recent[(offset - 1) % LEDGER_VERIFY_RECENT],
               PAWL_LEDGER_HASH_BYTES);
        if (offset == 1) {
            walk->report.verified = (pawl_ledger_head){ 0 };
        }
    }
    return bad_at(walk, offset, reterr, "%s", what);
}

/* One page. A store that cannot read a row itself says so: that row is the first bad one. */
static pawl_status walk_page(struct walk *walk, pawl_error *reterr)
{
    struct ledger_query query = {
        .from = walk->report.verified.offset,
        .up_to = walk->end.offset,
        .limit = PAGE_EVENTS,
    };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = walk->backend->ops->read(walk->backend, &query, check_event, walk, &error);

    if (status == PAWL_CORRUPT && walk->broken) {
        return explain_break(walk, reterr);
    }
    if (status == PAWL_CORRUPT && walk->report.first_bad_offset == 0) {
        return bad_as(walk, walk->report.verified.offset + 1, &error, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    if (walk->report.verified.offset == query.from) {
        pawl_status cut = bad_at(walk,
                                 query.from + 1,
                                 reterr,
                                 "cut off: the log ends at offset %llu, its head is at %llu",
                                 (unsigned long long)query.from,
                                 (unsigned long long)walk->end.offset);
        return pawl__fail_advise(reterr, cut, "%s", LEDGER_CUT_ADVICE);
    }
    return report_progress(walk, reterr);
}

static pawl_status walk_log(struct walk *walk, pawl_error *reterr)
{
    while (walk->report.verified.offset < walk->end.offset) {
        TRY(walk_page(walk, reterr));
    }
    return PAWL_OK;
}

static pawl_status check_turns(struct walk *walk, pawl_error *reterr)
{
    uint64_t bad = 0;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__ledger_verify_turn_rows(
        walk->backend, &walk->turns, walk->options.from.offset, walk->end.offset, &bad, &error);

    return conclude(walk, status, bad, &error, reterr);
}

static pawl_status check_indexes(struct walk *walk, pawl_error *reterr)
{
    struct ledger_index_check check = {
        .backend = walk->backend,
        .sums = &walk->indexes,
        .from = walk->options.from.offset,
        .end = walk->end.offset,
        .watch = walk->watch,
    };
    uint64_t bad = 0;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__ledger_verify_indexes(&check, &bad, &error);

    if (status == PAWL_CANCELLED) { /* nothing after the beginning was compared in full */
        walk->report.verified = walk->options.from;
    }
    status = conclude(walk, status, bad, &error, reterr);
    return status == PAWL_CORRUPT
               ? pawl__fail_advise(reterr,
                                   status,
                                   "stop the writers, run `sqlite3 FILE REINDEX`, "
                                   "then `pawl ledger verify` again")
               : status;
}

/* --- the whole --- */

static void add_witness(struct walk *walk, const pawl_ledger_head *head, const char *whose)
{
    if (head != NULL && head->offset > 0) {
        walk->witnesses[walk->witness_count++] = (struct witness){ *head, whose };
    }
}

/* The anchor before the head: it is never ahead of the log, so a log read later holds it. */
static pawl_status start_walk(struct walk *walk, pawl_error *reterr)
{
    pawl_ledger_head anchor = { 0 };
    pawl_status status = read_anchor(walk->backend, &anchor, &walk->anchor);

    if (status != PAWL_OK && status != PAWL_CORRUPT) { /* the walk does without a damaged one */
        return pawl__fail_with(reterr, status, &walk->anchor);
    }
    status = walk->backend->ops->head(walk->backend, &walk->end, reterr);
    if (status == PAWL_CORRUPT) {
        walk->end.offset = INT64_MAX; /* the walk finds the place */
    } else if (status != PAWL_OK) {
        return status;
    }
    if (walk->options.from.offset > 0) {
        walk->report.verified = walk->options.from;
        memcpy(&walk->recent[walk->options.from.offset % LEDGER_VERIFY_RECENT],
               walk->options.from.hash,
               PAWL_LEDGER_HASH_BYTES);
        walk->recent_count = 1;
    }
    walk->report.anchor_missing = walk->backend->ops->anchor != NULL && anchor.offset == 0
                                  && walk->anchor.status != PAWL_CORRUPT;
    add_witness(walk, &walk->options.from, "the head to go on from");
    add_witness(walk, &anchor, "its anchor");
    add_witness(walk, walk->options.expect, "the expected head");
    return PAWL_OK;
}

static pawl_status check_ends(struct walk *walk, pawl_error *reterr)
{
    uint64_t bad = 0;
    pawl_error error = PAWL_ERROR_INIT;

    TRY(check_outside(walk, false, reterr));
    pawl_status status = check_store(walk->backend, &bad, &error);
    if (status == PAWL_CORRUPT && bad == 1) {
        walk->report.verified = (pawl_ledger_head){ 0 };
    }
    return conclude(walk, status, bad, &error, reterr);
}

static pawl_status check_schema(struct walk *walk, pawl_error *reterr)
{
    struct ledger_backend *backend = walk->backend;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        backend->ops->schema == NULL ? PAWL_OK : backend->ops->schema(backend, &error);

    return status == PAWL_OK ? PAWL_OK : bad_elsewhere(walk, &error, reterr);
}

static pawl_status verify(struct walk *walk, pawl_error *reterr)
{
    pawl_status status = check_outside(walk, true, reterr);

    if (status != PAWL_OK) {
        walk->report.verified = (pawl_ledger_head){ 0 };
        return status;
    }
    TRY(walk_log(walk, reterr));
    TRY(check_ends(walk, reterr));
    TRY(check_turns(walk, reterr));
    TRY(check_schema(walk, reterr));
    TRY(check_indexes(walk, reterr));
    return walk->anchor.status == PAWL_CORRUPT ? bad_elsewhere(walk, &walk->anchor, reterr)
                                               : PAWL_OK;
}

pawl_status pawl__ledger_verify_chain(struct ledger_backend *backend,
                                      const pawl_verify_options *options,
                                      pawl_verify_report *ret_report,
                                      pawl_error *reterr)
{
    struct walk walk = { .backend = backend,
                         .options = PAWL_VERIFY_OPTIONS_INIT,
                         .anchor = PAWL_ERROR_INIT };

    TRY(pawl__check_sized("ret_report", ret_report, reterr));
    TRY(pawl__take_sized("verify options", options, &walk.options, sizeof(walk.options), reterr));
    TRY(pawl__take_sized("watch", walk.options.watch, &walk.watch, sizeof(walk.watch), reterr));
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__ledger_verify_index_start(&walk.indexes, &error);
    if (status == PAWL_OK) {
        status = start_walk(&walk, &error);
    }
    if (status != PAWL_OK) {
        snprintf(walk.report.what, sizeof(walk.report.what), "%.150s", error.message);
        (void)pawl__fail_with(reterr, status, &error);
    } else {
        status = verify(&walk, reterr);
    }
    if (ret_report != NULL
        && (status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_CANCELLED)) {
        pawl__give_sized(&walk.report, sizeof(walk.report), ret_report);
    }
    return status;
}

pawl_status pawl_ledger_verify(pawl_ledger *ledger,
                               const pawl_verify_options *options,
                               pawl_verify_report *ret_report,
                               pawl_error *reterr)
{
    NEED(ledger, reterr);
    INSIDE(ledger);

    return pawl__ledger_verify_chain(ledger->backend, options, ret_report, reterr);
}
