/* What a transaction appends. Values are checked before an appender sees them: its first error costs the whole
 * transaction. */
#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/uuid.h"
#include "delivery/duckdb/internal.h"

static void append_value(struct pawl__duck_appender *appender, const struct delivery_value *value)
{
    if (value->is_null) {
        pawl__duck_append_null(appender);
        return;
    }
    switch (value->type) {
    case DELIVERY_BIGINT:
    case DELIVERY_INTEGER:
        pawl__duck_append_i64(appender, value->as.i64);
        break;
    case DELIVERY_DOUBLE:
        pawl__duck_append_double(appender, value->as.real);
        break;
    case DELIVERY_BOOLEAN:
        pawl__duck_append_bool(appender, value->as.boolean);
        break;
    case DELIVERY_TIMESTAMP:
        pawl__duck_append_time(appender, value->as.i64);
        break;
    case DELIVERY_BLOB:
        pawl__duck_append_bytes(appender, value->as.text);
        break;
    default:
        pawl__duck_append_text(appender, value->as.text);
    }
}

static void append_name(struct pawl__duck_appender *appender, const char *name)
{
    pawl__duck_append_text(appender, pawl_view_of(name));
}

static void append_hash(struct pawl__duck_appender *appender, const struct delivery_hash *hash)
{
    pawl__duck_append_bytes(appender,
                            (pawl_view){ (const char *)hash->bytes, sizeof(hash->bytes) });
}

static pawl_status append_row(struct delivery_duckdb_sink *sink,
                              struct pawl__duck_appender *appender,
                              const struct delivery_outcome *outcome,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < sink->order_count; i++) {
        struct delivery_value value;
        if (sink->order[i] == NULL) {
            pawl__duck_append_default(appender);
            continue;
        }
        TRY(sink->order[i]->from == DELIVERY_FROM_EXPRESSION
                ? pawl__delivery_expressions_value(
                    sink->expressions, sink->order[i], outcome->entry, &value, reterr)
                : pawl__delivery_map_value(
                    sink->order[i], outcome->entry, &sink->arena, &value, reterr));
        append_value(appender, &value);
    }
    return PAWL_OK;
}

static pawl_status append_clean(struct delivery_duckdb_sink *sink,
                                struct pawl__duck_appender *appender,
                                pawl_view text,
                                pawl_error *reterr)
{
    pawl_view clean;

    TRY(pawl__delivery_clean_text(text, &sink->arena, &clean, reterr));
    pawl__duck_append_text(appender, clean);
    return PAWL_OK;
}

static pawl_status append_filtered(struct delivery_duckdb_sink *sink,
                                   struct pawl__duck_appender *appender,
                                   const struct delivery_outcome *outcome,
                                   pawl_error *reterr)
{
    append_name(appender, sink->pipeline);
    TRY(append_clean(sink, appender, outcome->entry->transaction_id, reterr));
    append_hash(appender, &outcome->entry->payload_hash);
    append_hash(appender, &outcome->entry->key);
    return PAWL_OK;
}

/* The columns of the default table that are read from the payload, for people who look for a failure by them. */
static pawl_status append_key(struct delivery_duckdb_sink *sink,
                              struct pawl__duck_appender *appender,
                              const char *path,
                              const struct delivery_entry *entry,
                              pawl_error *reterr)
{
    const struct delivery_column column = {
        .name = "key", .type = DELIVERY_VARCHAR, .path = path, .is_lenient = true
    };
    struct delivery_value value;

    TRY(pawl__delivery_map_value(&column, entry, &sink->arena, &value, reterr));
    append_value(appender, &value);
    return PAWL_OK;
}

static pawl_status append_keys(struct delivery_duckdb_sink *sink,
                               struct pawl__duck_appender *appender,
                               const struct delivery_entry *entry,
                               bool is_json,
                               pawl_error *reterr)
{
    if (!is_json) {
        pawl__duck_append_null(appender);
        pawl__duck_append_null(appender);
        return PAWL_OK;
    }
    TRY(append_key(sink, appender, "$.session_key", entry, reterr));
    return append_key(sink, appender, "$.correlation_key", entry, reterr);
}

static void append_entry_id(struct pawl__duck_appender *appender, const struct delivery_uuid *id)
{
    struct pawl__uuid uuid;
    char text[PAWL__UUID_TEXT_SIZE];

    memcpy(uuid.bytes, id->bytes, sizeof(uuid.bytes));
    pawl__uuid_text(&uuid, text);
    append_name(appender, text);
}

/* failed_at to updated_at. */
static pawl_status append_failure(struct delivery_duckdb_sink *sink,
                                  struct pawl__duck_appender *appender,
                                  const struct delivery_outcome *outcome,
                                  pawl_error *reterr)
{
    int64_t now_us = pawl__wall_us(sink->file->clock);

    pawl__duck_append_time(appender, now_us); /* failed_at */
    append_name(appender, outcome->reason);
    append_name(appender, pawl__delivery_layer_name(outcome->layer));
    TRY(append_clean(
        sink, appender, pawl_view_of(outcome->error != NULL ? outcome->error : ""), reterr));
    pawl__duck_append_i64(appender, outcome->exception.attempts); /* retry_count */
    if (outcome->exception.attempts > 0) {
        pawl__duck_append_time(appender, now_us); /* last_retry_at */
    } else {
        pawl__duck_append_null(appender);
    }
    pawl__duck_append_bool(appender, outcome->retries_exceeded);
    append_name(appender, "pending");
    pawl__duck_append_null(appender); /* resolved_at */
    pawl__duck_append_null(appender); /* resolved_by */
    pawl__duck_append_null(appender); /* resolution_notes */
    pawl__duck_append_time(appender, now_us);
    pawl__duck_append_time(appender, now_us);
    return PAWL_OK;
}

/* What a retry needs beside the payload, should the WAL be lost: subject, headers, received_at. */
static pawl_status append_message(struct delivery_duckdb_sink *sink,
                                  struct pawl__duck_appender *appender,
                                  const struct delivery_entry *entry,
                                  pawl_error *reterr)
{
    pawl_view headers;

    TRY(append_clean(sink, appender, entry->subject, reterr));
    if (entry->header_count == 0) {
        pawl__duck_append_null(appender);
    } else {
        TRY(pawl__delivery_headers_json(
            entry->headers, entry->header_count, &sink->arena, &headers, reterr));
        pawl__duck_append_text(appender, headers);
    }
    pawl__duck_append_time(appender, entry->created_us);
    return PAWL_OK;
}

/* Takes any bytes: nothing that failed may fail here again. */
static pawl_status append_failed(struct delivery_duckdb_sink *sink,
                                 const struct delivery_uuid *wal_id,
                                 struct pawl__duck_appender *appender,
                                 const struct delivery_outcome *outcome,
                                 pawl_error *reterr)
{
    const struct delivery_entry *entry = outcome->entry;
    enum delivery_encoding encoding = DELIVERY_AS_JSON;
    struct delivery_uuid id;
    pawl_view payload;

    TRY(pawl__delivery_entry_id(wal_id, entry->lsn, &id, reterr));
    TRY(pawl__delivery_payload_json(entry->payload, &sink->arena, &encoding, &payload, reterr));
    append_entry_id(appender, &id);
    TRY(append_clean(sink, appender, entry->transaction_id, reterr));
    TRY(append_clean(sink, appender, entry->event_id, reterr));
    TRY(append_keys(sink, appender, entry, encoding == DELIVERY_AS_JSON, reterr));
    TRY(append_clean(sink, appender, entry->source, reterr));
    pawl__duck_append_text(appender, payload);
    TRY(append_failure(sink, appender, outcome, reterr));
    append_name(appender, sink->pipeline);
    pawl__duck_append_u64(appender, entry->lsn);
    append_name(appender, pawl__delivery_encoding_name(encoding));
    append_hash(appender, &entry->payload_hash);
    append_hash(appender, &entry->key);
    TRY(append_message(sink, appender, entry, reterr));
    pawl__duck_append_null(appender); /* resolution */
    pawl__duck_append_null(appender); /* edited_payload */
    return PAWL_OK;
}

static pawl_status append_exception(struct delivery_duckdb_sink *sink,
                                    struct pawl__duck_appender *appender,
                                    const struct delivery_exception *exception,
                                    const char *error,
                                    pawl_error *reterr)
{
    append_name(appender, sink->pipeline);
    pawl__duck_append_u64(appender, exception->lsn);
    pawl__duck_append_u64(appender, exception->sequence);
    pawl__duck_append_u64(appender, exception->attempts);
    pawl__duck_append_i64(appender, exception->first_failed_running_ns);
    pawl__duck_append_i64(appender, exception->due_running_ns);
    if (error == NULL) {
        pawl__duck_append_null(appender);
        return PAWL_OK;
    }
    return append_clean(sink, appender, pawl_view_of(error), reterr);
}

static pawl_status append_outcome(struct delivery_duckdb_sink *sink,
                                  const struct delivery_transaction *transaction,
                                  struct pawl__duck_appender *appender,
                                  const struct delivery_outcome *outcome,
                                  pawl_error *reterr)
{
    switch (outcome->kind) {
    case DELIVERY_ROW:
        return append_row(sink, appender, outcome, reterr);
    case DELIVERY_FILTERED:
        return append_filtered(sink, appender, outcome, reterr);
    case DELIVERY_TO_FAILED:
        return append_failed(sink, &transaction->cursor.wal_id, appender, outcome, reterr);
    default:
        return append_exception(sink, appender, &outcome->exception, outcome->error, reterr);
    }
}

static pawl_status append_all(struct delivery_duckdb_sink *sink,
                              const struct delivery_transaction *transaction,
                              enum delivery_outcome_kind kind,
                              struct pawl__duck_appender *appender,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < transaction->count; i++) {
        if (transaction->outcomes[i].kind != kind) {
            continue;
        }
        TRY(append_outcome(sink, transaction, appender, &transaction->outcomes[i], reterr));
        TRY(pawl__duck_append_row_end(appender, reterr));
        pawl__arena_clear(&sink->arena);
    }
    return pawl__duck_appender_finish(appender, reterr);
}

static bool has_kind(const struct delivery_transaction *transaction,
                     enum delivery_outcome_kind kind)
{
    size_t i = 0;

    while (i < transaction->count && transaction->outcomes[i].kind != kind) {
        i++;
    }
    return i < transaction->count;
}

pawl_status pawl__delivery_duckdb_append(struct delivery_duckdb_sink *sink,
                                         const struct delivery_transaction *transaction,
                                         enum delivery_outcome_kind kind,
                                         pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;
    const char *const tables[DELIVERY_OUTCOME_COUNT] = {
        [DELIVERY_ROW] = sink->mapping->table,
        [DELIVERY_FILTERED] = "delivery_filtered",
        [DELIVERY_TO_FAILED] = "failed_events",
        [DELIVERY_DEFERRED] = "delivery_exceptions",
    };

    if (!has_kind(transaction, kind)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__duck_appender_open(sink->conn, tables[kind], &appender, reterr);
    if (status == PAWL_INVALID || status == PAWL_CONFLICT) {
        return pawl__fail_context(reterr, PAWL_UNAVAILABLE, "table '%s'", tables[kind]);
    }
    TRY(status);
    return append_all(sink, transaction, kind, appender, reterr);
}

pawl_status pawl__delivery_duckdb_append_exceptions(struct delivery_duckdb_sink *sink,
                                                    const struct delivery_transaction *transaction,
                                                    pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    if (transaction->exception_count == 0) {
        return PAWL_OK;
    }
    TRY(pawl__duck_appender_open(sink->conn, "delivery_exceptions", &appender, reterr));
    for (size_t i = 0; i < transaction->exception_count; i++) {
        TRY(append_exception(sink, appender, &transaction->exceptions[i], NULL, reterr));
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}

pawl_status pawl__delivery_duckdb_append_losses(struct delivery_duckdb_sink *sink,
                                                const struct delivery_transaction *transaction,
                                                pawl_error *reterr)
{
    AUTO(pawl__duck_appender_free_p) struct pawl__duck_appender *appender = NULL;

    if (transaction->loss_count == 0) {
        return PAWL_OK;
    }
    TRY(pawl__duck_appender_open(sink->conn, "delivery_losses", &appender, reterr));
    for (size_t i = 0; i < transaction->loss_count; i++) {
        const struct delivery_loss *loss = &transaction->losses[i];
        append_name(appender, sink->pipeline);
        pawl__duck_append_i64(appender, loss->created_ns);
        pawl__duck_append_u64(appender, loss->from);
        if (loss->to == DELIVERY_LOSS_OPEN) {
            pawl__duck_append_null(appender);
        } else {
            pawl__duck_append_u64(appender, loss->to);
        }
        append_name(appender, pawl__delivery_loss_reason_name(loss->reason));
        pawl__duck_append_time(appender, loss->seen_us);
        TRY(pawl__duck_append_row_end(appender, reterr));
    }
    return pawl__duck_appender_finish(appender, reterr);
}
