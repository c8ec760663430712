#include "delivery/duckdb/sink.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"
#include "delivery/duckdb/internal.h"

pawl_status pawl__delivery_duckdb_get_bytes(const struct pawl__duck_rows *rows,
                                            size_t column,
                                            uint8_t ret_bytes[16],
                                            pawl_error *reterr)
{
    pawl_view bytes = pawl__duck_get_bytes(rows, column);

    if (bytes.len != 16) {
        return pawl__fail(
            reterr, PAWL_CORRUPT, "a hash or id of %zu bytes instead of 16", bytes.len);
    }
    memcpy(ret_bytes, bytes.data, 16);
    return PAWL_OK;
}

/* --- the cursor row --- */

static pawl_status fill_cursor(const struct pawl__duck_rows *rows,
                               struct delivery_cursor *cursor,
                               pawl_error *reterr)
{
    TRY(pawl__delivery_duckdb_get_bytes(rows, 0, cursor->wal_id.bytes, reterr));
    cursor->epoch = pawl__duck_get_u64(rows, 1);
    cursor->fence = pawl__duck_get_u64(rows, 2);
    cursor->version = pawl__duck_get_u64(rows, 3);
    cursor->applied = pawl__duck_get_u64(rows, 4);
    cursor->stream.created_ns = pawl__duck_get_i64(rows, 5);
    cursor->stream.sequence = pawl__duck_get_u64(rows, 6);
    cursor->stream.stored_ns = pawl__duck_get_i64(rows, 7);
    cursor->running_ns = pawl__duck_get_i64(rows, 8);
    cursor->counters.accepted = pawl__duck_get_u64(rows, 9);
    cursor->counters.delivered = pawl__duck_get_u64(rows, 10);
    cursor->counters.filtered = pawl__duck_get_u64(rows, 11);
    cursor->counters.failed = pawl__duck_get_u64(rows, 12);
    return PAWL_OK;
}

pawl_status pawl__delivery_duckdb_read_cursor(struct delivery_duckdb_sink *sink,
                                              struct delivery_cursor *ret_cursor,
                                              bool *ret_found,
                                              pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    struct delivery_cursor cursor = { .sink_id = sink->file->sink_id };

    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_CURSOR_READ,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    bool is_found = pawl__duck_has_row(rows);
    if (is_found) {
        TRY(fill_cursor(rows, &cursor, reterr));
        TRY(pawl__duck_next(rows, reterr));
        if (pawl__duck_has_row(rows)) {
            return pawl__fail(
                reterr, PAWL_CORRUPT, "pipeline '%s' has more than one cursor row", sink->pipeline);
        }
    }
    *ret_cursor = cursor;
    *ret_found = is_found;
    return PAWL_OK;
}

static pawl_status read_cursor(struct delivery_sink *base,
                               struct delivery_cursor *ret_cursor,
                               bool *ret_found,
                               pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = pawl__delivery_duckdb_read_cursor(sink, ret_cursor, ret_found, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

/* --- writing --- */

/* A sink that cannot be entered is out of order, whatever the reason: no event is to blame. */
static pawl_status enter_to_write(struct delivery_duckdb_sink *sink, pawl_error *reterr)
{
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    return status == PAWL_INVALID || status == PAWL_CONFLICT
               ? pawl__fail_context(reterr, PAWL_UNAVAILABLE, "open the sink again")
               : status;
}

static pawl_status apply(struct delivery_sink *base,
                         const struct delivery_transaction *transaction,
                         pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = enter_to_write(sink, reterr);

    if (status == PAWL_OK) {
        status = pawl__delivery_duckdb_apply(sink, transaction, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

static pawl_status validate(struct delivery_sink *base,
                            const struct delivery_entry *entries,
                            size_t count,
                            struct delivery_verdict *ret_verdicts,
                            pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);

    if (sink->expressions != NULL) {
        return pawl__delivery_expressions_judge(
            sink->expressions, entries, count, ret_verdicts, reterr);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__delivery_map_verdict(sink->mapping, &entries[i], &ret_verdicts[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status checkpoint_entered(struct delivery_duckdb_sink *sink,
                                      struct delivery_cursor *ret_cursor,
                                      pawl_error *reterr)
{
    bool is_found = false;

    TRY(pawl__duck_checkpoint(sink->file->db, PAWL__DUCK_CHECKPOINT_TRY, reterr));
    return pawl__delivery_duckdb_read_cursor(sink, ret_cursor, &is_found, reterr);
}

/* Nobody commits between the two: the lock is held. */
static pawl_status checkpoint(struct delivery_sink *base,
                              struct delivery_cursor *ret_cursor,
                              pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = checkpoint_entered(sink, ret_cursor, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

/* --- reading --- */

static void add_keys(struct pawl__buf *text, const struct delivery_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            pawl__buf_add_char(text, ',');
        }
        for (size_t j = 0; j < sizeof(keys[i].key.bytes); j++) {
            char digits[2];
            pawl__hex_byte(keys[i].key.bytes[j], digits);
            pawl__buf_add(text, (pawl_view){ digits, 2 });
        }
    }
}

static pawl_status take_known(const struct pawl__duck_rows *rows,
                              struct delivery_known *known,
                              size_t count,
                              pawl_error *reterr)
{
    int64_t place = pawl__duck_get_i64(rows, 0);
    int64_t kind = pawl__duck_get_i64(rows, 1);

    REQUIRE(place >= 0 && (size_t)place < count);
    struct delivery_known *one = &known[place];
    if (one->found && (int64_t)one->kind <= kind) {
        return PAWL_OK; /* retried with success: the row counts, the failure is history */
    }
    one->found = true;
    one->kind = (enum delivery_outcome_kind)kind;
    return pawl__delivery_duckdb_get_bytes(rows, 2, one->payload_hash.bytes, reterr);
}

static pawl_status lookup_entered(struct delivery_duckdb_sink *sink,
                                  const struct delivery_key *keys,
                                  size_t count,
                                  struct delivery_known *known,
                                  pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(PAWL__DUCK_VALUE_BYTES_MAX);
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    add_keys(&text, keys, count);
    TRY(pawl__buf_check(&text, "the keys", reterr));
    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_KEYS_LOOKUP,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                   pawl__duck_text(pawl__buf_view(&text)),
                                   pawl__duck_i64((int64_t)count)),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        TRY(take_known(rows, known, count, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status lookup(struct delivery_sink *base,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_known *ret_known,
                          pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);

    for (size_t i = 0; i < count; i++) {
        ret_known[i] = (struct delivery_known){ .found = false };
    }
    if (count == 0) {
        return PAWL_OK;
    }
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);
    if (status == PAWL_OK) {
        status = lookup_entered(sink, keys, count, ret_known, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

static pawl_status each_key_entered(struct delivery_duckdb_sink *sink,
                                    delivery_key_visitor *visitor,
                                    void *context,
                                    pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_KEYS_EACH,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    while (pawl__duck_has_row(rows)) {
        struct delivery_key key;
        TRY(pawl__delivery_duckdb_get_bytes(rows, 0, key.key.bytes, reterr));
        TRY(pawl__delivery_duckdb_get_bytes(rows, 1, key.payload_hash.bytes, reterr));
        TRY(visitor(context, &key, reterr));
        TRY(pawl__duck_next(rows, reterr));
    }
    return PAWL_OK;
}

static pawl_status each_key(struct delivery_sink *base,
                            delivery_key_visitor *visitor,
                            void *context,
                            pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = each_key_entered(sink, visitor, context, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

static pawl_status exceptions_entered(struct delivery_duckdb_sink *sink,
                                      delivery_lsn after,
                                      struct delivery_exception *ret_exceptions,
                                      size_t room,
                                      size_t *ret_count,
                                      pawl_error *reterr)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    size_t count = 0;

    TRY(pawl__duck_query(sink->conn,
                         DELIVERY_DUCK_EXCEPTIONS_READ,
                         DUCK_ARGS(pawl__duck_text(pawl_view_of(sink->pipeline)),
                                   pawl__duck_u64(after),
                                   pawl__duck_i64((int64_t)MIN(room, (size_t)INT32_MAX))),
                         &rows,
                         reterr));
    TRY(pawl__duck_next(rows, reterr));
    for (; count < room && pawl__duck_has_row(rows); count++) {
        ret_exceptions[count] = (struct delivery_exception){
            .lsn = pawl__duck_get_u64(rows, 0),
            .sequence = pawl__duck_get_u64(rows, 1),
            .attempts = (uint32_t)pawl__duck_get_u64(rows, 2),
            .first_failed_running_ns = pawl__duck_get_i64(rows, 3),
            .due_running_ns = pawl__duck_get_i64(rows, 4),
        };
        TRY(pawl__duck_next(rows, reterr));
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status exceptions(struct delivery_sink *base,
                              delivery_lsn after,
                              struct delivery_exception *ret_exceptions,
                              size_t room,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    struct delivery_duckdb_sink *sink = as_duckdb(base);
    pawl_status status = pawl__delivery_duckdb_enter(sink, reterr);

    if (status == PAWL_OK) {
        status = exceptions_entered(sink, after, ret_exceptions, room, ret_count, reterr);
    }
    return pawl__delivery_duckdb_leave(sink, status);
}

/* --- life --- */

static void unlink_sink(struct delivery_duckdb_sink *sink)
{
    struct delivery_duckdb_sink **link = &sink->file->sinks;

    while (*link != NULL && *link != sink) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = sink->next;
    }
}

static void sink_free(struct delivery_duckdb_sink *sink)
{
    if (sink == NULL) {
        return;
    }
    pawl__lock(&sink->file->lock);
    unlink_sink(sink);
    pawl__duck_disconnect(sink->conn);
    pawl__unlock(&sink->file->lock);
    pawl__delivery_expressions_close(sink->expressions);
    pawl__arena_done(&sink->arena);
    free(sink->pipeline);
    free(sink);
}

static void sink_free_p(struct delivery_duckdb_sink **sink)
{
    sink_free(*sink);
}

static void close_sink(struct delivery_sink *base)
{
    sink_free((struct delivery_duckdb_sink *)base);
}

static void want_columns(struct delivery_duckdb_sink *sink)
{
    size_t own_count = 0;
    const struct delivery_column *own = pawl__delivery_own_columns(&own_count);

    for (size_t i = 0; i < sink->mapping->count; i++) {
        sink->wanted[sink->wanted_count++] = sink->mapping->columns[i];
    }
    for (size_t i = 0; i < own_count; i++) {
        bool is_there = false;
        for (size_t j = 0; j < sink->mapping->count; j++) {
            is_there |= strcmp(own[i].name, sink->mapping->columns[j].name) == 0;
        }
        if (!is_there) {
            sink->wanted[sink->wanted_count++] = own[i];
        }
    }
}

pawl_status pawl__delivery_duckdb_sink(struct delivery_duckdb_file *file,
                                       const char *pipeline,
                                       const struct delivery_mapping *mapping,
                                       struct delivery_sink **ret_sink,
                                       pawl_error *reterr)
{
    static const struct delivery_sink_ops ops = {
        .read_cursor = read_cursor,
        .apply = apply,
        .validate = validate,
        .lookup = lookup,
        .each_key = each_key,
        .exceptions = exceptions,
        .read_failed = pawl__delivery_duckdb_read_failed,
        .count_failed = pawl__delivery_duckdb_count_failed,
        .checkpoint = checkpoint,
        .close = close_sink,
    };
    AUTO(sink_free_p) struct delivery_duckdb_sink *sink = NULL;

    mapping = mapping != NULL ? mapping : pawl__delivery_default_mapping();
    TRY(pawl__delivery_mapping_check(mapping, reterr));
    sink = calloc(1, sizeof(*sink));
    TRY(pawl__check_memory(sink, "a sink", reterr));
    *sink = (struct delivery_duckdb_sink){ .base = { &ops }, .file = file, .mapping = mapping };
    want_columns(sink);
    sink->pipeline = strdup(pipeline);
    TRY(pawl__check_memory(sink->pipeline, "a name", reterr));
    pawl_status status = PAWL_OK;
    if (pawl__delivery_mapping_computes(mapping)) {
        status = pawl__delivery_expressions_open(mapping, file->clock, &sink->expressions, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "pipeline '%s'", pipeline);
    }
    pawl__lock(&file->lock);
    sink->next = file->sinks;
    file->sinks = sink;
    pawl__unlock(&file->lock);
    status = pawl__delivery_duckdb_leave(sink, pawl__delivery_duckdb_enter(sink, reterr));
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "pipeline '%s'", pipeline);
    }
    *ret_sink = &STEAL(sink)->base;
    return PAWL_OK;
}
