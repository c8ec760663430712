/* What audits and traces ask a sink on DuckDB beside the calls of core/sink.h. They change nothing. */
#ifndef PAWL_DELIVERY_DUCKDB_INSPECT_H
#define PAWL_DELIVERY_DUCKDB_INSPECT_H

#include "delivery/core/sink.h"

/* The cursor row, and what is really there, of one moment. */
struct delivery_inventory {
    delivery_lsn applied;
    struct delivery_place stream; /* without `stored_ns` */
    struct delivery_counters counters;
    uint64_t rows;
    uint64_t filtered;
    uint64_t failed; /* without those that a retry delivered */
    uint64_t exceptions;
    uint64_t losses;
};

/* All zeroes without a cursor row. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_inventory(struct delivery_sink *sink,
                                                          struct delivery_inventory *ret_inventory,
                                                          pawl_error *reterr);

typedef pawl_status delivery_duplicate_visitor(void *context,
                                               pawl_view transaction_id,
                                               uint64_t times,
                                               pawl_error *reterr);

/* Events that are there more than once. The visitor must not call a sink. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_duplicates(struct delivery_sink *sink,
                                                           delivery_duplicate_visitor *visitor,
                                                           void *context,
                                                           pawl_error *reterr);

/* Where the sink has an event. Views are good for the visit. */
struct delivery_found {
    enum delivery_outcome_kind kind; /* ROW, FILTERED or TO_FAILED */
    pawl_view transaction_id;
    struct delivery_hash key;
    delivery_lsn lsn;    /* 0: not known */
    int64_t received_us; /* 0: not known */
    int64_t failed_us;
    pawl_view status; /* of a failed event, like the next two */
    pawl_view reason;
    pawl_view error;
};

typedef pawl_status delivery_found_visitor(void *context,
                                           const struct delivery_found *found,
                                           pawl_error *reterr);

/* `id`: a transaction id, or the producer's event id. */
PAWL_MUST_USE pawl_status pawl__delivery_duckdb_find(struct delivery_sink *sink,
                                                     pawl_view id,
                                                     delivery_found_visitor *visitor,
                                                     void *context,
                                                     pawl_error *reterr);

#endif
