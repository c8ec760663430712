/* Failed events: read, counted, changed. */
#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "delivery/duckdb/internal.h"

/* --- reading --- */

struct failed_args {
    struct pawl__duck_value values[10]; /* as fragment failed_where has them, and the page */
    char id[37];
    char statuses[64];
};

static void fill_args(const struct delivery_duckdb_sink *sink,
                      const struct delivery_failed_query *query,
                      struct failed_args *args)
{
    struct pawl__buf statuses = BUF_OVER(args->statuses);

    args->id[0] = '\0';
    if (query->id != NULL) {
        pawl__delivery_failed_id_text(query->id, args->id);
    }
    for (int i = 0; i < DELIVERY_FAILED_STATUS_COUNT; i++) {
        if ((query->statuses & 1U << (unsigned)i) != 0) {
            pawl__buf_add_text(&statuses, statuses.len == 0 ? "" : ",");
            pawl__buf_add_text(&statuses,
                               pawl__delivery_failed_status_name((enum delivery_failed_status)i));
        }
    }
    const struct pawl__duck_value values[] = {
        pawl__duck_text(pawl_view_of(sink->pipeline)),
        pawl__duck_text(pawl_view_of(args->id)),
        pawl__duck_text(pawl__buf_view(&statuses)),
        pawl__duck_text(query->reason),
        pawl__duck_text(query->source),
        pawl__duck_text(query->transaction_id),
        pawl__duck_i64(query->since_us),
        pawl__duck_i64(query->until_us),
        pawl__duck_u64(query->newest_first && query->after == 0 ? UINT64_MAX : query->after),
        pawl__duck_i64((int64_t)MIN(query->rows_max, (size_t)INT32_MAX)),
    };
    memcpy(args->values, values, sizeof(values));
}

static pawl_status take_states(const struct pawl__duck_rows *rows,
                               struct delivery_failed_row *row,
                               pawl_error *reterr)
{
    pawl_view resolution = pawl__duck_get_text(rows, 3);
    int found = 0;

    TRY(pawl__delivery_failed_id_parse(pawl__duck_get_text(rows, 0), &row->id, reterr));
    TRY(pawl__delivery_failed_status_parse(pawl__duck_get_text(rows, 2), &row->status, reterr));
    while (found < DELIVERY_RESOLUTION_COUNT
           && !pawl__view_is(resolution,
                             pawl__delivery_resolution_name((enum delivery_resolution)found))) {
        found++;
    }
    if (found == DELIVERY_RESOLUTION_COUNT) {
        return pawl__fail(
            reterr, PAWL_INVALID, "resolution '%.*s' is not known", VIEW_ARGS(resolution));
    }
    row->resolution = (enum delivery_resolution)found;
    TRY(pawl__delivery_duckdb_get_bytes(rows, 6, row->key.bytes, reterr));
    return pawl__delivery_duckdb_get_bytes(rows, 7, row->payload_hash.bytes, reterr);
}

static pawl_status take_row(const struct pawl__duck_rows *rows,
                            struct delivery_failed_row *ret_row,
                            pawl_error *reterr)
{
    struct delivery_failed_row row = {
        .lsn = pawl__duck_get_u64(rows, 1),
        .retries_exceeded = pawl__duck_get_bool(rows, 4),
        .retry_count = (uint32_t)pawl__duck_get_i64(rows, 5),
        .failed_us = pawl__duck_get_i64(rows, 8),
        .received_us = pawl__duck_get_i64(rows, 9),
        .last_retry_us = pawl__duck_get_i64(rows, 10),
        .resolved_us = pawl__duck_get_i64(rows, 11),
        .updated_us = pawl__duck_get_i64(rows, 12),
    };
    pawl_view *const texts[] = {
        &row.transaction_id,  &row.event_id, &row.source,  &row.subject,    &row.session_key,
        &row.correlation_key, &row.reason,   &row.layer,   &row.last_error, &row.resolved_by,
        &row.notes,           &row.headers,  &row.payload, &row.encoding,   &row.edited_payload,
    };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        *texts[i] = pawl__duck_get_text(rows, 13 + i);
    }
    pawl_status status = take_states(rows, &row, reterr);
    if (status != PAWL_OK) { /* people may write to the table themselves */
        return pawl__fail_context(
            reterr, PAWL_CORRUPT, "the failed event with LSN %" PRIu64, row.lsn);
    }
    *ret_row = row;
    return PAWL_OK;
}

static pawl_status read_entered(struct delivery_duckdb_sink *sink,
                                const struct delivery_failed_query *query,
                                struct delivery_failed_page *page,
                                pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    struct failed_args args;
    struct delivery_failed_row row;

    fill_args(sink, query, &args);
    TRY(pawl__duck_query(sink->conn,
                         query->newest_first ? DELIVERY_DUCK_FAILED_READ_BACK
                                             : DELIVERY_DUCK_FAILED_READ,
                         args.values,
                         COUNT_OF(args.values),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows) && !pawl__delivery_failed_page_is_full(page, query)) {
        TRY(take_row(rows, &row, reterr));
        TRY(pawl__delivery_failed_page_add(page, &row, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_read_failed(struct delivery_sink *base,
                                              const struct delivery_failed_query *query,
                                              struct delivery_failed_page *page,
                                              pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);

    pawl__delivery_failed_page_clear(page);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);
    if (status == PAWL_OK) {
        status = read_entered(sink, query, page, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

static pawl_status count_entered(struct delivery_duckdb_sink *sink,
                                 const struct delivery_failed_query *query,
                                 uint64_t *ret_count,
                                 pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    struct failed_args args;

    fill_args(sink, query, &args);
    TRY(pawl__duck_query(sink->conn,
                         query->newest_first ? DELIVERY_DUCK_FAILED_COUNT_BACK
                                             : DELIVERY_DUCK_FAILED_COUNT,
                         args.values,
                         COUNT_OF(args.values) - 1,
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    *ret_count = (uint64_t)pawl__duck_get_i64(rows, 0);
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_count_failed(struct delivery_sink *base,
                                               const struct delivery_failed_query *query,
                                               uint64_t *ret_count,
                                               pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = count_entered(sink, query, ret_count, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

/* --- changing --- */

static pawl_status check_one(struct delivery_duckdb_sink *sink,
                             const struct delivery_entry *entry,
                             pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_TRANSACTION_KNOWN,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                   pawl__duck_text(entry->transaction_id)),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    return pawl__duck_has_row(rows) ? pawl__fail(reterr,
                                                 PAWL_CONFLICT,
                                                 "transaction id '%.*s' is in the table already",
                                                 VIEW_ARGS(entry->transaction_id))
                                    : PAWL_OK;
}

pawl_status pawl__delivery_duckdb_check_retried(struct delivery_duckdb_sink *sink,
                                                const struct delivery_transaction *transaction,
                                                pawl_error *reterr)
{
    for (size_t i = 0; i < transaction->count; i++) {
        if (transaction->outcomes[i].was_failed) {
            TRY(check_one(sink, transaction->outcomes[i].entry, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status must_change_one(int64_t changed, delivery_lsn lsn, pawl_error *reterr)
{
    return changed == 1
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOT_FOUND, "no failed event has LSN %" PRIu64, lsn);
}

static struct pawl__duck_value text_or_null(pawl_view text)
{
    return text.len == 0 ? pawl__duck_null() : pawl__duck_text(text);
}

static pawl_status decide(struct delivery_duckdb_sink *sink,
                          const struct delivery_decision *decision,
                          const char *id,
                          pawl_error *reterr)
{
    pawl_view resolution = pawl_view_of(pawl__delivery_resolution_name(decision->resolution));
    int64_t changed = 0;

    TRY(pawl__duck_run(sink->conn,
                       DELIVERY_DUCK_FAILED_DECIDE,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                 pawl__duck_u64(decision->lsn),
                                 pawl__duck_text(pawl_view_of(id)),
                                 text_or_null(resolution),
                                 pawl__duck_time(decision->at_us),
                                 text_or_null(decision->who),
                                 text_or_null(decision->notes),
                                 text_or_null(decision->edited_payload)),
                       &changed,
                       reterr));
    return must_change_one(changed, decision->lsn, reterr);
}

static pawl_status change_one(struct delivery_duckdb_sink *sink,
                              const struct delivery_failed_change *change,
                              pawl_error *reterr)
{
    const struct delivery_decision *decision = &change->decision;
    int64_t changed = 0;
    pawl_view error;
    char id[37];

    pawl__delivery_failed_id_text(&change->id, id);
    TRY(pawl__delivery_clean_text(change->error, &sink->arena, &error, reterr));
    TRY(pawl__duck_run(sink->conn,
                       DELIVERY_DUCK_FAILED_ATTEMPT,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                 pawl__duck_u64(decision->lsn),
                                 pawl__duck_text(pawl_view_of(
                                     pawl__delivery_failed_status_name(decision->status))),
                                 pawl__duck_time(decision->at_us),
                                 pawl__duck_i64(change->is_attempt ? 1 : 0),
                                 pawl__duck_text(error),
                                 pawl__duck_text(pawl_view_of(id))),
                       &changed,
                       reterr));
    TRY(must_change_one(changed, decision->lsn, reterr));
    bool is_decided = decision->status == DELIVERY_FAILED_RESOLVED
                      || decision->status == DELIVERY_FAILED_ABANDONED;
    return is_decided ? decide(sink, decision, id, reterr) : PAWL_OK;
}

pawl_status pawl__delivery_duckdb_change_failed(struct delivery_duckdb_sink *sink,
                                                const struct delivery_transaction *transaction,
                                                pawl_error *reterr)
{
    if (transaction->requeue_retrying) {
        TRY(pawl__duck_run(sink->conn,
                           DELIVERY_DUCK_FAILED_REQUEUE,
                           DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                     pawl__duck_time(pawl__wall_us(sink->file->clock))),
                           NULL,
                           reterr));
    }
    for (size_t i = 0; i < transaction->change_count; i++) {
        TRY(change_one(sink, &transaction->changes[i], reterr));
    }
    return PAWL_OK;
}
