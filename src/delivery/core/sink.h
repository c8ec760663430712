/* Where events end: a table, failed_events, delivery_losses, the exceptions and the cursor row, in one file with
 * one writer. One thread at a time per pipeline.
 *
 * The table keeps transaction id and payload hash of every event, filtered ones too (in a table of their own),
 * whatever the mapping. */
#ifndef PAWL_DELIVERY_CORE_SINK_H
#define PAWL_DELIVERY_CORE_SINK_H

#include "base/core/macros.h"
#include "delivery/core/cursor.h"
#include "delivery/core/failed.h"
#include "delivery/core/wal.h"

struct delivery_sink;

enum delivery_outcome_kind {
    DELIVERY_ROW,
    DELIVERY_FILTERED,
    DELIVERY_TO_FAILED, /* a row of failed_events */
    DELIVERY_DEFERRED,  /* becomes, or stays, an exception: retried later */
};
enum { DELIVERY_OUTCOME_COUNT = 4 };

enum delivery_layer { DELIVERY_LAYER_VALIDATION, DELIVERY_LAYER_INSERT, DELIVERY_LAYER_WAL };
const char *pawl__delivery_layer_name(enum delivery_layer layer); /* "duckdb_insert" */

/* An entry at or below the applied LSN that is in no table yet: a row of the exceptions' table. */
struct delivery_exception {
    delivery_lsn lsn;
    uint64_t sequence; /* of its place: the cursor's place stays below it */
    uint32_t attempts;
    int64_t first_failed_running_ns; /* -1: it has not failed, it was only left behind */
    int64_t due_running_ns;
};

struct delivery_outcome {
    const struct delivery_entry *entry;
    enum delivery_outcome_kind kind;
    bool was_exception; /* its row of the exceptions' table goes, or is replaced */
    bool was_failed;    /* ROW, FILTERED: somebody retried a row of failed_events */
    struct delivery_exception exception; /* DEFERRED */
    enum delivery_layer layer;           /* TO_FAILED */
    const char *reason;                  /* TO_FAILED: failure_reason */
    const char *error;                   /* TO_FAILED, DEFERRED: last_error; may be "" */
    bool retries_exceeded;               /* TO_FAILED: max_retries_exceeded */
};

struct delivery_transaction {
    const struct delivery_outcome *outcomes;
    size_t count;
    const struct delivery_loss *losses;
    size_t loss_count;
    const struct delivery_exception
        *exceptions; /* with replace_exceptions: all there are from now on */
    size_t exception_count;
    bool replace_exceptions;
    const struct delivery_failed_change *changes; /* of rows of failed_events */
    size_t change_count;
    bool requeue_retrying;         /* every row that is `retrying` becomes `pending`: on start */
    struct delivery_cursor cursor; /* the row after it */
};

/* What the mapping says about an event before the appender sees it. */
struct delivery_verdict {
    enum delivery_outcome_kind kind; /* ROW, FILTERED or TO_FAILED */
    const char *reason;              /* TO_FAILED; static */
    char error[DELIVERY_ERROR_SIZE];
};

/* Where the sink has an id. */
struct delivery_known {
    bool found;
    enum delivery_outcome_kind kind; /* ROW, FILTERED or TO_FAILED */
    struct delivery_hash payload_hash;
};

typedef pawl_status delivery_key_visitor(void *context,
                                         const struct delivery_key *key,
                                         pawl_error *reterr);

struct delivery_sink_ops {
    /* The row of this pipeline, and the file's own id in any case. *ret_found false: it has no row. */
    pawl_status (*read_cursor)(struct delivery_sink *sink,
                               struct delivery_cursor *ret_cursor,
                               bool *ret_found,
                               pawl_error *reterr);

    /* All or nothing, durable. LEASE_LOST as pawl__delivery_cursor_check says, inside the transaction.
     * INVALID, CONFLICT: the fault of an event in it. IO, TIMEOUT, UNAVAILABLE: nobody knows whether it was
     * committed; the cursor row tells. pawl__delivery_blame (apply.h) says what follows from each status.
     *
     * An outcome that `was_failed` is a CONFLICT as long as the table, or the filtered events, have its transaction
     * id. NOT_FOUND: a change of a row that is not there. */
    pawl_status (*apply)(struct delivery_sink *sink,
                         const struct delivery_transaction *transaction,
                         pawl_error *reterr);

    /* Checks UTF-8, JSON, filter, mapping and types, of all entries of a transaction at once. Never touches the file. */
    pawl_status (*validate)(struct delivery_sink *sink,
                            const struct delivery_entry *entries,
                            size_t count,
                            struct delivery_verdict *ret_verdicts,
                            pawl_error *reterr);

    /* Anti-join: one answer per key, from the table, filtered and failed events. A conflict is found under its
     * conflict key. */
    pawl_status (*lookup)(struct delivery_sink *sink,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_known *ret_known,
                          pawl_error *reterr);

    /* Every key it holds, in no order: rows, filtered and failed. The visitor must not call a sink. */
    pawl_status (*each_key)(struct delivery_sink *sink,
                            delivery_key_visitor *visitor,
                            void *context,
                            pawl_error *reterr);

    /* Exceptions with an LSN above `after`, ascending, up to `room`. */
    pawl_status (*exceptions)(struct delivery_sink *sink,
                              delivery_lsn after,
                              struct delivery_exception *ret_exceptions,
                              size_t room,
                              size_t *ret_count,
                              pawl_error *reterr);

    /* A page of the pipeline's failed events. */
    pawl_status (*read_failed)(struct delivery_sink *sink,
                               const struct delivery_failed_query *query,
                               struct delivery_failed_page *page,
                               pawl_error *reterr);

    /* How many the query means, from its `after` on. */
    pawl_status (*count_failed)(struct delivery_sink *sink,
                                const struct delivery_failed_query *query,
                                uint64_t *ret_count,
                                pawl_error *reterr);

    /* Moves the log into the file. *ret_cursor: the row as it now is in the file itself. BUSY: later. */
    pawl_status (*checkpoint)(struct delivery_sink *sink,
                              struct delivery_cursor *ret_cursor,
                              pawl_error *reterr);

    void (*close)(struct delivery_sink *sink);
};

struct delivery_sink {
    const struct delivery_sink_ops *ops;
};

#endif
