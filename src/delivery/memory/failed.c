/* Failed events of the sink in memory. */
#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "delivery/core/encode.h"
#include "delivery/memory/sink.h"

static struct delivery_memory_sink *as_memory(struct delivery_sink *sink)
{
    return (struct delivery_memory_sink *)sink; /* base is its first member */
}

static struct delivery_failed_row row_of(const struct delivery_memory_sink *sink,
                                         const struct delivery_outcome *outcome)
{
    const struct delivery_entry *entry = outcome->entry;

    return (struct delivery_failed_row){
        .lsn = entry->lsn,
        .retries_exceeded = outcome->retries_exceeded,
        .retry_count = outcome->exception.attempts,
        .key = entry->key,
        .payload_hash = entry->payload_hash,
        .failed_us = sink->now_us,
        .received_us = entry->created_us,
        .updated_us = sink->now_us,
        .transaction_id = entry->transaction_id,
        .event_id = entry->event_id,
        .source = entry->source,
        .subject = entry->subject,
        .reason = pawl_view_of(outcome->reason),
        .layer = pawl_view_of(pawl__delivery_layer_name(outcome->layer)),
        .last_error = pawl_view_of(outcome->error != NULL ? outcome->error : ""),
    };
}

pawl_status pawl__delivery_memory_failure(const struct delivery_memory_sink *sink,
                                          const struct delivery_transaction *transaction,
                                          const struct delivery_outcome *outcome,
                                          struct delivery_stored_failure **ret_failure,
                                          pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct delivery_failed_row row = row_of(sink, outcome);
    enum delivery_encoding encoding = DELIVERY_AS_JSON;

    TRY(pawl__delivery_entry_id(&transaction->cursor.wal_id, outcome->entry->lsn, &row.id, reterr));
    TRY(pawl__delivery_payload_json(
        outcome->entry->payload, &arena, &encoding, &row.payload, reterr));
    if (outcome->entry->header_count > 0) {
        TRY(pawl__delivery_headers_json(
            outcome->entry->headers, outcome->entry->header_count, &arena, &row.headers, reterr));
    }
    row.encoding = pawl_view_of(pawl__delivery_encoding_name(encoding));
    return pawl__delivery_failure_new(&row, ret_failure, reterr);
}

static pawl_status replace(struct delivery_memory_row *row,
                           const struct delivery_failed_change *change,
                           pawl_error *reterr)
{
    struct delivery_failed_row next =
        pawl__delivery_failed_changed(&row->failure->page.rows[0], change);
    struct delivery_stored_failure *failure = NULL;

    TRY(pawl__delivery_failure_new(&next, &failure, reterr));
    pawl__delivery_failure_drop(row->failure);
    row->failure = failure;
    return PAWL_OK;
}

static pawl_status change_one(struct delivery_memory_sink *sink,
                              const struct delivery_failed_change *change,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < sink->count; i++) {
        struct delivery_memory_row *row = &sink->rows[i];
        if (row->failure != NULL && row->failure->page.rows[0].lsn == change->decision.lsn
            && memcmp(&row->failure->page.rows[0].id, &change->id, sizeof(change->id)) == 0) {
            return replace(row, change, reterr);
        }
    }
    return pawl__fail(
        reterr, PAWL_NOT_FOUND, "no failed event has LSN %" PRIu64, change->decision.lsn);
}

static pawl_status requeue(struct delivery_memory_sink *sink, pawl_error *reterr)
{
    for (size_t i = 0; i < sink->count; i++) {
        struct delivery_memory_row *row = &sink->rows[i];
        const struct delivery_failed_change change = {
            .decision = { .status = DELIVERY_FAILED_PENDING, .at_us = sink->now_us },
        };
        if (row->failure != NULL && row->failure->page.rows[0].status == DELIVERY_FAILED_RETRYING) {
            TRY(replace(row, &change, reterr));
        }
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_memory_change(struct delivery_memory_sink *sink,
                                         const struct delivery_transaction *transaction,
                                         pawl_error *reterr)
{
    if (transaction->requeue_retrying) {
        TRY(requeue(sink, reterr));
    }
    for (size_t i = 0; i < transaction->change_count; i++) {
        TRY(change_one(sink, &transaction->changes[i], reterr));
    }
    return PAWL_OK;
}

/* The row that follows `after` in the order of the query; NULL: none. Slow, and simple. */
static const struct delivery_failed_row *next_row(const struct delivery_memory_sink *sink,
                                                  const struct delivery_failed_query *query)
{
    const struct delivery_failed_row *next = NULL;

    for (size_t i = 0; i < sink->count; i++) {
        const struct delivery_failed_row *row =
            sink->rows[i].failure == NULL ? NULL : &sink->rows[i].failure->page.rows[0];
        if (row == NULL || !pawl__delivery_failed_matches(query, row)) {
            continue;
        }
        if (next == NULL || (query->newest_first ? row->lsn > next->lsn : row->lsn < next->lsn)) {
            next = row;
        }
    }
    return next;
}

pawl_status pawl__delivery_memory_read_failed(struct delivery_sink *base,
                                              const struct delivery_failed_query *query,
                                              struct delivery_failed_page *page,
                                              pawl_error *reterr)
{
    struct delivery_failed_query rest = *query;

    pawl__delivery_failed_page_clear(page);
    while (!pawl__delivery_failed_page_is_full(page, query)) {
        const struct delivery_failed_row *row = next_row(as_memory(base), &rest);
        if (row == NULL) {
            break;
        }
        TRY(pawl__delivery_failed_page_add(page, row, reterr));
        rest.after = row->lsn;
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_memory_count_failed(struct delivery_sink *base,
                                               const struct delivery_failed_query *query,
                                               uint64_t *ret_count,
                                               pawl_error *reterr)
{
    const struct delivery_memory_sink *sink = as_memory(base);
    uint64_t count = 0;

    (void)reterr;
    for (size_t i = 0; i < sink->count; i++) {
        count += sink->rows[i].failure != NULL
                 && pawl__delivery_failed_matches(query, &sink->rows[i].failure->page.rows[0]);
    }
    *ret_count = count;
    return PAWL_OK;
}
