#include "delivery/duckdb/inspect.h"

#include "base/core/error.h"
#include "delivery/duckdb/internal.h"

enum { SQL_BYTES_MAX = 4096 };

/* --- how much there is --- */

static pawl_status inventory_entered(struct delivery_duckdb_sink *sink,
                                     struct delivery_inventory *inventory,
                                     pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_AUDIT_COUNTS,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    if (!pawl__duck_has_row(rows)) {
        return PAWL_OK;
    }
    *inventory = (struct delivery_inventory){
        .applied = pawl__duck_get_u64(rows, 0),
        .stream = { .created_ns = pawl__duck_get_i64(rows, 1),
                    .sequence = pawl__duck_get_u64(rows, 2) },
        .counters = { .accepted = pawl__duck_get_u64(rows, 3),
                      .delivered = pawl__duck_get_u64(rows, 4),
                      .filtered = pawl__duck_get_u64(rows, 5),
                      .failed = pawl__duck_get_u64(rows, 6) },
        .rows = (uint64_t)pawl__duck_get_i64(rows, 7),
        .filtered = (uint64_t)pawl__duck_get_i64(rows, 8),
        .failed = (uint64_t)pawl__duck_get_i64(rows, 9),
        .exceptions = (uint64_t)pawl__duck_get_i64(rows, 10),
        .losses = (uint64_t)pawl__duck_get_i64(rows, 11),
    };
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_inventory(struct delivery_sink *base,
                                            struct delivery_inventory *ret_inventory,
                                            pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    struct delivery_inventory inventory = { .applied = 0 };
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = inventory_entered(sink, &inventory, reterr);
    }
    if (status == PAWL_OK) {
        *ret_inventory = inventory;
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

/* --- what is there twice --- */

static pawl_status duplicates_entered(struct delivery_duckdb_sink *sink,
                                      delivery_duplicate_visitor *visitor,
                                      void *context,
                                      pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_AUDIT_DUPLICATES,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        TRY(visitor(
            context, pawl__duck_get_text(rows, 0), (uint64_t)pawl__duck_get_i64(rows, 1), reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_duplicates(struct delivery_sink *base,
                                             delivery_duplicate_visitor *visitor,
                                             void *context,
                                             pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = duplicates_entered(sink, visitor, context, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

/* --- where one event is --- */

static pawl_status visit_others(const struct pawl__duck_rows *rows,
                                delivery_found_visitor *visitor,
                                void *context,
                                pawl_error *reterr)
{
    struct delivery_found found = {
        .kind = (enum delivery_outcome_kind)pawl__duck_get_i64(rows, 0),
        .transaction_id = pawl__duck_get_text(rows, 1),
        .lsn = pawl__duck_get_u64(rows, 3),
        .received_us = pawl__duck_get_i64(rows, 4),
        .failed_us = pawl__duck_get_i64(rows, 5),
        .status = pawl__duck_get_text(rows, 6),
        .reason = pawl__duck_get_text(rows, 7),
        .error = pawl__duck_get_text(rows, 8),
    };

    TRY(pawl__delivery_duckdb_get_bytes(rows, 2, found.key.bytes, reterr));
    return visitor(context, &found, reterr);
}

static pawl_status find_others(struct delivery_duckdb_sink *sink,
                               pawl_view id,
                               delivery_found_visitor *visitor,
                               void *context,
                               pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(
        sink->conn,
        DELIVERY_DUCK_TRACE_OTHERS,
        DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)), pawl__duck_text(id)),
        &rows,
        reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        TRY(visit_others(rows, visitor, context, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

/* The column that has the time of arrival, if the mapping has one. */
static const char *received_column(const struct delivery_duckdb_sink *sink)
{
    for (size_t i = 0; i < sink->wanted_count; i++) {
        if (sink->wanted[i].from == DELIVERY_FROM_RECEIVED) {
            return sink->wanted[i].name;
        }
    }
    return NULL;
}

static pawl_status find_rows(struct delivery_duckdb_sink *sink,
                             pawl_view id,
                             delivery_found_visitor *visitor,
                             void *context,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf sql = BUF_INIT(SQL_BYTES_MAX);
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    const char *received = received_column(sink);

    pawl__buf_add_text(&sql, "SELECT transaction_id, event_key, ");
    if (received != NULL) {
        pawl__buf_add_format(&sql, "coalesce(epoch_us(\"%s\"), 0)", received);
    } else {
        pawl__buf_add_text(&sql, "0");
    }
    pawl__buf_add_format(&sql,
                         " FROM main.\"%s\" WHERE transaction_id = $1 OR (contains(transaction_id, "
                         "$1) AND regexp_extract(transaction_id, '^[^:]*:(.*):[0-9]+$', 1) = $1)",
                         sink->mapping->table);
    TRY(pawl__buf_check(&sql, "a query", reterr));
    TRY(pawl__duck_query_text(sink->conn, sql.data, DUCK_ARGS(pawl__duck_text(id)), &rows, reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        struct delivery_found found = {
            .kind = DELIVERY_ROW,
            .transaction_id = pawl__duck_get_text(rows, 0),
            .received_us = pawl__duck_get_i64(rows, 2),
        };
        TRY(pawl__delivery_duckdb_get_bytes(rows, 1, found.key.bytes, reterr));
        TRY(visitor(context, &found, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_find(struct delivery_sink *base,
                                       pawl_view id,
                                       delivery_found_visitor *visitor,
                                       void *context,
                                       pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = find_rows(sink, id, visitor, context, reterr);
    }
    if (status == PAWL_OK) {
        status = find_others(sink, id, visitor, context, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}
