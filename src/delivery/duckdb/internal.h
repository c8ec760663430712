#ifndef PAWL_DELIVERY_DUCKDB_INTERNAL_H
#define PAWL_DELIVERY_DUCKDB_INTERNAL_H

#include "base/thread/thread.h"
#include "delivery/duckdb/expressions.h"
#include "delivery/duckdb/sink.h"
#include "delivery/duckdb/statements.h"

struct delivery_duckdb_sink {
    struct delivery_sink base;
    struct delivery_duckdb_file *file;
    struct delivery_duckdb_sink *next;
    struct pawl__duck_conn *conn; /* NULL: not connected; covered by the file's lock */
    char *pipeline;
    const struct delivery_mapping *mapping;
    struct delivery_column wanted[DELIVERY_COLUMNS_MAX]; /* the mapping's, and our own */
    size_t wanted_count;
    const struct delivery_column *order[PAWL__DUCK_COLUMNS_MAX]; /* as the table has them; NULL:
                                                                  * nobody's, gets its default */
    size_t order_count;
    struct pawl__arena arena;                 /* of the row that is made */
    struct delivery_expressions *expressions; /* NULL: the mapping computes nothing */
};

static inline struct delivery_duckdb_sink *as_duckdb(struct delivery_sink *sink)
{
    return (struct delivery_duckdb_sink *)sink; /* base is its first member */
}

struct delivery_duckdb_reader {
    struct pawl__duck_conn *conn;
    struct delivery_duckdb_reader *next;
};

struct delivery_duckdb_file {
    struct pawl__lock lock; /* covers everything below, and every use of the connections */
    struct pawl__duck *db;  /* NULL: it has to be opened again */
    bool is_in_doubt;       /* as above */
    char *path;
    struct pawl__duck_options options;
    struct pawl__clock *clock;
    struct delivery_uuid sink_id;
    struct delivery_duckdb_sink *sinks;
    struct delivery_duckdb_reader *readers; /* connections of consoles */
    struct pawl__cond left;                 /* one of them ended */
    bool is_reopening;                      /* no further reader begins */
};

enum { DELIVERY_READERS_MAX = 4 };

/* A connection beside those of the sinks, for somebody who only reads. It is cut off when the file has to be opened again.
 * BUSY: there are enough of them, or the file is just being opened again. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_begin_reading(struct delivery_duckdb_file *file,
                                                              struct pawl__duck_conn **ret_conn,
                                                              pawl_error *reterr);
/* Its rows are freed before. */
void pawl__delivery_duckdb_end_reading(struct delivery_duckdb_file *file,
                                       struct pawl__duck_conn *conn);

/* Takes the file's lock and gives the sink a connection that can be used. Released in any case by leave. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_enter(struct delivery_duckdb_sink *sink,
                                                      pawl_error *reterr);
/* Notes what the status of a call says about the file, and returns it. */
pawl_status pawl__delivery_duckdb_leave(struct delivery_duckdb_sink *sink, pawl_status status);

/* Brings the table in line with the mapping, fills `order`, makes the view `delivery_rows`. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_fit_table(struct delivery_duckdb_sink *sink,
                                                          pawl_error *reterr);

/* *ret_found false: no row. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_read_cursor(struct delivery_duckdb_sink *sink,
                                                            struct delivery_cursor *ret_cursor,
                                                            bool *ret_found,
                                                            pawl_error *reterr);

/* Appends every outcome of this kind to its table. INVALID and CONFLICT of rows are an event's fault. */
PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_append(struct delivery_duckdb_sink *sink,
                             const struct delivery_transaction *transaction,
                             enum delivery_outcome_kind kind,
                             pawl_error *reterr);

PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_append_losses(struct delivery_duckdb_sink *sink,
                                    const struct delivery_transaction *transaction,
                                    pawl_error *reterr);

/* The rows of `transaction->exceptions`. */
PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_append_exceptions(struct delivery_duckdb_sink *sink,
                                        const struct delivery_transaction *transaction,
                                        pawl_error *reterr);

/* --- failed.c --- */

/* CONFLICT: the transaction id of an event that is retried is in the table, or was filtered. */
PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_check_retried(struct delivery_duckdb_sink *sink,
                                    const struct delivery_transaction *transaction,
                                    pawl_error *reterr);

/* `changes` and `requeue_retrying`. NOT_FOUND: no such row. */
PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_change_failed(struct delivery_duckdb_sink *sink,
                                    const struct delivery_transaction *transaction,
                                    pawl_error *reterr);

/* The calls of sink.h. */
pawl_status pawl__delivery_duckdb_read_failed(struct delivery_sink *base,
                                              const struct delivery_failed_query *query,
                                              struct delivery_failed_page *page,
                                              pawl_error *reterr);
pawl_status pawl__delivery_duckdb_count_failed(struct delivery_sink *base,
                                               const struct delivery_failed_query *query,
                                               uint64_t *ret_count,
                                               pawl_error *reterr);

/* Bytes of a fixed length out of a row: a hash or an id. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_get_bytes(const struct pawl__duck_rows *rows,
                                                          size_t column,
                                                          uint8_t ret_bytes[16],
                                                          pawl_error *reterr);

/* One transaction; the caller has entered. */
PAWL_MUST_USE pawl_status
pawl__delivery_duckdb_apply(struct delivery_duckdb_sink *sink,
                            const struct delivery_transaction *transaction,
                            pawl_error *reterr);

#endif
