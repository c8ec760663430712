/* One transaction: rows, failed rows, exceptions, losses and the cursor row. */
#include "base/core/error.h"
#include "delivery/duckdb/internal.h"

/* Only a row of the mapping's table can be refused for what is in the event. Refused elsewhere, it is the sink that
 * is not as it should be, and halving would blame an innocent event. */
static pawl_status not_an_events_fault(pawl_status status, pawl_error *reterr)
{
    if (status == PAWL_INVALID || status == PAWL_CONFLICT) {
        return pawl__fail_context(reterr, PAWL_UNAVAILABLE, "the sink's own tables");
    }
    return status;
}

static pawl_status check_fence(struct delivery_duckdb_sink *sink,
                               const struct delivery_cursor *next,
                               bool *ret_found,
                               pawl_error *reterr)
{
    struct delivery_cursor stored;

    TRY(pawl__delivery_duckdb_read_cursor(sink, &stored, ret_found, reterr));
    return pawl__delivery_cursor_check(*ret_found ? &stored : NULL, next, reterr);
}

static pawl_status delete_exceptions(struct delivery_duckdb_sink *sink,
                                     const struct delivery_transaction *transaction,
                                     pawl_error *reterr)
{
    pawl_view pipeline = pawl_view_of(sink->pipeline);

    if (transaction->replace_exceptions) {
        return pawl__duck_run(sink->conn,
                              DELIVERY_DUCK_EXCEPTIONS_DELETE,
                              DUCK_ARGS(pawl__duck_text(pipeline)),
                              NULL,
                              reterr);
    }
    for (size_t i = 0; i < transaction->count; i++) {
        const struct delivery_outcome *outcome = &transaction->outcomes[i];
        if (outcome->was_exception || outcome->kind == DELIVERY_DEFERRED) {
            TRY(pawl__duck_run(
                sink->conn,
                DELIVERY_DUCK_EXCEPTION_DELETE,
                DUCK_ARGS(pawl__duck_text(pipeline), pawl__duck_u64(outcome->entry->lsn)),
                NULL,
                reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status put_cursor(struct delivery_duckdb_sink *sink,
                              const struct delivery_cursor *cursor,
                              bool is_there,
                              pawl_error *reterr)
{
    int64_t changed = 0;
    pawl_view wal_id = { (const char *)cursor->wal_id.bytes, sizeof(cursor->wal_id.bytes) };

    TRY(pawl__duck_run(sink->conn,
                       is_there ? DELIVERY_DUCK_CURSOR_UPDATE : DELIVERY_DUCK_CURSOR_INSERT,
                       DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                 pawl__duck_text(pawl_view_of(sink->mapping->table)),
                                 pawl__duck_bytes(wal_id),
                                 pawl__duck_u64(cursor->epoch),
                                 pawl__duck_u64(cursor->fence),
                                 pawl__duck_u64(cursor->version),
                                 pawl__duck_u64(cursor->applied),
                                 pawl__duck_i64(cursor->stream.created_ns),
                                 pawl__duck_u64(cursor->stream.sequence),
                                 pawl__duck_i64(cursor->stream.stored_ns),
                                 pawl__duck_i64(cursor->running_ns),
                                 pawl__duck_u64(cursor->counters.accepted),
                                 pawl__duck_u64(cursor->counters.delivered),
                                 pawl__duck_u64(cursor->counters.filtered),
                                 pawl__duck_u64(cursor->counters.failed),
                                 pawl__duck_time(pawl__wall_us(sink->file->clock))),
                       &changed,
                       reterr));
    return changed == 1 ? PAWL_OK
                        : pawl__fail(reterr,
                                     PAWL_CORRUPT,
                                     "pipeline '%s' has %lld cursor rows instead of one",
                                     sink->pipeline,
                                     (long long)changed);
}

/* Everything but the rows of the table. */
static pawl_status write_own_tables(struct delivery_duckdb_sink *sink,
                                    const struct delivery_transaction *transaction,
                                    bool is_there,
                                    pawl_error *reterr)
{
    TRY(pawl__delivery_duckdb_append(sink, transaction, DELIVERY_FILTERED, reterr));
    TRY(pawl__delivery_duckdb_append(sink, transaction, DELIVERY_TO_FAILED, reterr));
    TRY(delete_exceptions(sink, transaction, reterr));
    if (transaction->replace_exceptions) {
        TRY(pawl__delivery_duckdb_append_exceptions(sink, transaction, reterr));
    } else {
        TRY(pawl__delivery_duckdb_append(sink, transaction, DELIVERY_DEFERRED, reterr));
    }
    TRY(pawl__delivery_duckdb_append_losses(sink, transaction, reterr));
    TRY(pawl__delivery_duckdb_change_failed(sink, transaction, reterr));
    return put_cursor(sink, &transaction->cursor, is_there, reterr);
}

/* DuckDB wraps what an index refuses at COMMIT into an error of the transaction. Anything else that is wrong with a
 * commit leaves its outcome open. */
static pawl_status commit(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    pawl_status status = pawl__duck_commit(sink->conn, reterr);

    if (status == PAWL_FAILED || status == PAWL_NOMEM || status == PAWL_BUSY) {
        return pawl__fail_context(reterr, PAWL_UNAVAILABLE, "commit");
    }
    return status;
}

pawl_status pawl__delivery_duckdb_apply(struct delivery_duckdb_sink *sink,
                                        const struct delivery_transaction *transaction,
                                        pawl_error *reterr)
{
    AUTO(pawl__duck_rollback_p) struct pawl__duck_conn *guard = sink->conn;
    bool is_there = false;

    pawl__arena_clear(&sink->arena);
    TRY(pawl__duck_begin(guard, PAWL__DUCK_WRITE, reterr));
    TRY(not_an_events_fault(check_fence(sink, &transaction->cursor, &is_there, reterr), reterr));
    TRY(pawl__delivery_duckdb_check_retried(sink, transaction, reterr));
    TRY(pawl__delivery_duckdb_append(sink, transaction, DELIVERY_ROW, reterr));
    TRY(not_an_events_fault(write_own_tables(sink, transaction, is_there, reterr), reterr));
    return commit(sink, reterr);
}
