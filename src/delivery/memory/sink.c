#include "delivery/memory/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/json/json.h"

static struct delivery_memory_sink *as_memory(struct delivery_sink *sink)
{
    return (struct delivery_memory_sink *)sink; /* base is its first member */
}

static pawl_status read_cursor(struct delivery_sink *base,
                               struct delivery_cursor *ret_cursor,
                               bool *ret_found,
                               pawl_error *reterr)
{
    struct delivery_memory_sink *sink = as_memory(base);

    (void)reterr;
    *ret_found = sink->has_cursor;
    *ret_cursor = sink->cursor;
    ret_cursor->sink_id = sink->sink_id;
    return PAWL_OK;
}

/* --- one transaction --- */

static size_t exception_index(const struct delivery_memory_sink *sink, delivery_lsn lsn)
{
    size_t i = 0;

    while (i < sink->exception_count && sink->exceptions[i].lsn < lsn) {
        i++;
    }
    return i;
}

static void remove_exception(struct delivery_memory_sink *sink, delivery_lsn lsn)
{
    size_t i = exception_index(sink, lsn);

    if (i < sink->exception_count && sink->exceptions[i].lsn == lsn) {
        sink->exception_count--;
        memmove(&sink->exceptions[i],
                &sink->exceptions[i + 1],
                (sink->exception_count - i) * sizeof(*sink->exceptions));
    }
}

static pawl_status put_exception(struct delivery_memory_sink *sink,
                                 const struct delivery_exception *exception,
                                 pawl_error *reterr)
{
    remove_exception(sink, exception->lsn);
    struct delivery_exception *exceptions = pawl__grow(
        sink->exceptions, sink->exception_count, &sink->exception_room, sizeof(*exceptions));
    TRY(pawl__check_memory(exceptions, "an exception", reterr));
    sink->exceptions = exceptions;
    size_t i = exception_index(sink, exception->lsn);
    memmove(&exceptions[i + 1], &exceptions[i], (sink->exception_count - i) * sizeof(*exceptions));
    exceptions[i] = *exception;
    sink->exception_count++;
    return PAWL_OK;
}

/* A retry that would make a second row of a transaction id. */
static pawl_status check_retried(const struct delivery_memory_sink *sink,
                                 const struct delivery_outcome *outcome,
                                 pawl_error *reterr)
{
    for (size_t i = 0; outcome->was_failed && i < sink->count; i++) {
        const struct delivery_memory_row *row = &sink->rows[i];
        if (row->kind != DELIVERY_TO_FAILED
            && pawl__view_equal(row->stored->entry.transaction_id,
                                outcome->entry->transaction_id)) {
            return pawl__fail(reterr,
                              PAWL_CONFLICT,
                              "transaction id '%.*s' is in the table already",
                              VIEW_ARGS(outcome->entry->transaction_id));
        }
    }
    return PAWL_OK;
}

static pawl_status put_row(struct delivery_memory_sink *sink,
                           const struct delivery_transaction *transaction,
                           const struct delivery_outcome *outcome,
                           pawl_error *reterr)
{
    const struct delivery_entry *entry = outcome->entry;
    struct delivery_memory_row *rows =
        pawl__grow(sink->rows, sink->count, &sink->room, sizeof(*rows));
    struct delivery_slot slot = { .key = entry->key,
                                  .payload_hash = entry->payload_hash,
                                  .a = (uint64_t)outcome->kind };
    struct delivery_stored *stored = NULL;
    struct delivery_stored_failure *failure = NULL;

    TRY(pawl__check_memory(rows, "a row", reterr));
    sink->rows = rows;
    TRY(check_retried(sink, outcome, reterr));
    TRY(pawl__delivery_table_put(&sink->keys, &slot, reterr));
    TRY(pawl__delivery_stored_new(entry, &stored, reterr));
    pawl_status status =
        outcome->kind == DELIVERY_TO_FAILED
            ? pawl__delivery_memory_failure(sink, transaction, outcome, &failure, reterr)
            : PAWL_OK;
    if (status != PAWL_OK) {
        pawl__delivery_stored_drop(stored);
        return status;
    }
    rows[sink->count++] = (struct delivery_memory_row){
        stored, outcome->kind, outcome->reason, outcome->exception, failure
    };
    return PAWL_OK;
}

static pawl_status put_outcome(struct delivery_memory_sink *sink,
                               const struct delivery_transaction *transaction,
                               const struct delivery_outcome *outcome,
                               pawl_error *reterr)
{
    if (outcome->was_exception) {
        remove_exception(sink, outcome->entry->lsn);
    }
    return outcome->kind == DELIVERY_DEFERRED ? put_exception(sink, &outcome->exception, reterr)
                                              : put_row(sink, transaction, outcome, reterr);
}

static pawl_status put_loss(struct delivery_memory_sink *sink,
                            const struct delivery_loss *loss,
                            pawl_error *reterr)
{
    struct delivery_loss *losses =
        pawl__grow(sink->losses, sink->loss_count, &sink->loss_room, sizeof(*losses));

    TRY(pawl__check_memory(losses, "a loss", reterr));
    sink->losses = losses;
    losses[sink->loss_count++] = *loss;
    return PAWL_OK;
}

static pawl_status run(struct delivery_memory_sink *sink,
                       const struct delivery_transaction *transaction,
                       pawl_error *reterr)
{
    for (size_t i = 0; i < transaction->count; i++) {
        TRY(put_outcome(sink, transaction, &transaction->outcomes[i], reterr));
    }
    for (size_t i = 0; i < transaction->loss_count; i++) {
        TRY(put_loss(sink, &transaction->losses[i], reterr));
    }
    if (transaction->replace_exceptions) {
        sink->exception_count = 0;
        for (size_t i = 0; i < transaction->exception_count; i++) {
            TRY(put_exception(sink, &transaction->exceptions[i], reterr));
        }
    }
    TRY(pawl__delivery_memory_change(sink, transaction, reterr));
    sink->cursor = transaction->cursor;
    sink->has_cursor = true;
    return PAWL_OK;
}

static pawl_status apply(struct delivery_sink *base,
                         const struct delivery_transaction *transaction,
                         pawl_error *reterr)
{
    struct delivery_memory_sink *sink = as_memory(base);
    struct delivery_memory_sink next = pawl__delivery_memory_sink(&sink->sink_id, &sink->rules);

    TRY(pawl__delivery_cursor_check(
        sink->has_cursor ? &sink->cursor : NULL, &transaction->cursor, reterr));
    if (sink->rules.refuse != NULL) {
        TRY(sink->rules.refuse(sink->rules.context, transaction, reterr));
    }
    TRY(pawl__delivery_memory_sink_copy(&next, sink, reterr));
    pawl_status status = run(&next, transaction, reterr);
    if (status != PAWL_OK) {
        pawl__delivery_memory_sink_done(&next);
        return status;
    }
    pawl__delivery_memory_sink_done(sink);
    *sink = next;
    return PAWL_OK;
}

/* --- the rest --- */

static void judge_json(const struct delivery_entry *entry, struct delivery_verdict *verdict)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__json_check(entry->payload, entry->payload.len, &error) != PAWL_OK) {
        verdict->kind = DELIVERY_TO_FAILED;
        verdict->reason = "not_json";
        snprintf(
            verdict->error, sizeof(verdict->error), "%.*s", DELIVERY_ERROR_SIZE - 1, error.message);
    }
}

static pawl_status validate(struct delivery_sink *base,
                            const struct delivery_entry *entries,
                            size_t count,
                            struct delivery_verdict *ret_verdicts,
                            pawl_error *reterr)
{
    const struct delivery_memory_rules *rules = &as_memory(base)->rules;

    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        ret_verdicts[i] = (struct delivery_verdict){ .kind = DELIVERY_ROW };
        if (rules->judge != NULL) {
            rules->judge(rules->context, &entries[i], &ret_verdicts[i]);
        } else {
            judge_json(&entries[i], &ret_verdicts[i]);
        }
    }
    return PAWL_OK;
}

static pawl_status lookup(struct delivery_sink *base,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_known *ret_known,
                          pawl_error *reterr)
{
    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        const struct delivery_slot *slot =
            pawl__delivery_table_find(&as_memory(base)->keys, &keys[i].key);
        ret_known[i] = slot == NULL ? (struct delivery_known){ .found = false }
                                    : (struct delivery_known){ true,
                                                               (enum delivery_outcome_kind)slot->a,
                                                               slot->payload_hash };
    }
    return PAWL_OK;
}

static pawl_status each_key(struct delivery_sink *base,
                            delivery_key_visitor *visitor,
                            void *context,
                            pawl_error *reterr)
{
    struct delivery_memory_sink *sink = as_memory(base);

    for (size_t i = 0; i < sink->count; i++) {
        const struct delivery_entry *entry = &sink->rows[i].stored->entry;
        struct delivery_key key = { entry->key, entry->payload_hash };
        TRY(visitor(context, &key, reterr));
    }
    return PAWL_OK;
}

static pawl_status exceptions(struct delivery_sink *base,
                              delivery_lsn after,
                              struct delivery_exception *ret_exceptions,
                              size_t room,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    struct delivery_memory_sink *sink = as_memory(base);
    size_t first = exception_index(sink, after + 1);
    size_t count = MIN(room, sink->exception_count - first);

    (void)reterr;
    for (size_t i = 0; i < count; i++) {
        ret_exceptions[i] = sink->exceptions[first + i];
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status checkpoint(struct delivery_sink *base,
                              struct delivery_cursor *ret_cursor,
                              pawl_error *reterr)
{
    (void)reterr;
    *ret_cursor = as_memory(base)->cursor;
    return PAWL_OK;
}

static void close_nothing(struct delivery_sink *base)
{
    (void)base;
}

struct delivery_memory_sink pawl__delivery_memory_sink(const struct delivery_uuid *sink_id,
                                                       const struct delivery_memory_rules *rules)
{
    static const struct delivery_sink_ops ops = {
        .read_cursor = read_cursor,
        .apply = apply,
        .validate = validate,
        .lookup = lookup,
        .each_key = each_key,
        .exceptions = exceptions,
        .read_failed = pawl__delivery_memory_read_failed,
        .count_failed = pawl__delivery_memory_count_failed,
        .checkpoint = checkpoint,
        .close = close_nothing,
    };
    return (struct delivery_memory_sink){
        .base = { &ops },
        .rules = rules == NULL ? (struct delivery_memory_rules){ .context = NULL } : *rules,
        .sink_id = *sink_id,
    };
}

void pawl__delivery_memory_sink_done(struct delivery_memory_sink *sink)
{
    for (size_t i = 0; i < sink->count; i++) {
        pawl__delivery_stored_drop(sink->rows[i].stored);
        pawl__delivery_failure_drop(sink->rows[i].failure);
    }
    free(sink->rows);
    free(sink->exceptions);
    free(sink->losses);
    pawl__delivery_table_done(&sink->keys);
    *sink = pawl__delivery_memory_sink(&sink->sink_id, &sink->rules);
}

static void *copy_array(const void *array, size_t count, size_t element_size)
{
    void *copy = malloc(MAX(count, (size_t)1) * element_size);

    if (copy != NULL && count > 0) {
        memcpy(copy, array, count * element_size);
    }
    return copy;
}

pawl_status pawl__delivery_memory_sink_copy(struct delivery_memory_sink *sink,
                                            const struct delivery_memory_sink *from,
                                            pawl_error *reterr)
{
    struct delivery_memory_sink copy = *from;

    copy.count = 0; /* until the rows are shared, its end must not drop them */
    copy.room = MAX(from->count, (size_t)1);
    copy.exception_room = MAX(from->exception_count, (size_t)1);
    copy.loss_room = MAX(from->loss_count, (size_t)1);
    copy.rows = copy_array(from->rows, from->count, sizeof(*from->rows));
    copy.exceptions =
        copy_array(from->exceptions, from->exception_count, sizeof(*from->exceptions));
    copy.losses = copy_array(from->losses, from->loss_count, sizeof(*from->losses));
    copy.keys = (struct delivery_table){ .slots = NULL };
    pawl_status status = pawl__delivery_table_copy(&from->keys, &copy.keys, reterr);
    if (status == PAWL_OK
        && (copy.rows == NULL || copy.exceptions == NULL || copy.losses == NULL)) {
        status = pawl__fail(reterr, PAWL_NOMEM, "no memory for a copy of the sink");
    }
    if (status != PAWL_OK) {
        pawl__delivery_memory_sink_done(&copy);
        return status;
    }
    copy.count = from->count;
    for (size_t i = 0; i < copy.count; i++) {
        pawl__delivery_stored_share(copy.rows[i].stored);
        pawl__delivery_failure_share(copy.rows[i].failure);
    }
    pawl__delivery_memory_sink_done(sink);
    *sink = copy;
    return PAWL_OK;
}
