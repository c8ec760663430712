/* A sink in memory: the reference of sink.h. What it holds outlives close, as a file would. */
#ifndef PAWL_DELIVERY_MEMORY_SINK_H
#define PAWL_DELIVERY_MEMORY_SINK_H

#include "delivery/core/sink.h"
#include "delivery/memory/stored.h"

struct delivery_memory_row {
    struct delivery_stored *stored;
    enum delivery_outcome_kind kind; /* ROW, FILTERED or TO_FAILED */
    const char *reason;              /* TO_FAILED */
    struct delivery_exception tries;
    struct delivery_stored_failure *failure; /* TO_FAILED */
};

/* What a table would do: decides verdicts, and refuses transactions. Both may be NULL: everything that is JSON
 * becomes a row, and nothing is refused. */
struct delivery_memory_rules {
    void (*judge)(void *context,
                  const struct delivery_entry *entry,
                  struct delivery_verdict *verdict);
    pawl_status (*refuse)(void *context,
                          const struct delivery_transaction *transaction,
                          pawl_error *reterr);
    void *context;
};

struct delivery_memory_sink {
    struct delivery_sink base;
    struct delivery_memory_rules rules;
    struct delivery_uuid sink_id;
    bool has_cursor;
    struct delivery_cursor cursor;
    struct delivery_memory_row *rows; /* in the order of their commits */
    size_t count;
    size_t room;
    struct delivery_table keys;            /* a: kind */
    struct delivery_exception *exceptions; /* ascending by LSN */
    size_t exception_count;
    size_t exception_room;
    struct delivery_loss *losses;
    size_t loss_count;
    size_t loss_room;
    int64_t now_us; /* the time of failures; a test's */
};

struct delivery_memory_sink pawl__delivery_memory_sink(const struct delivery_uuid *sink_id,
                                                       const struct delivery_memory_rules *rules);
void pawl__delivery_memory_sink_done(struct delivery_memory_sink *sink);

/* Replaces `sink` by a copy of `from`. NOMEM leaves it alone. */
PAWL_MUST_USE pawl_status pawl__delivery_memory_sink_copy(struct delivery_memory_sink *sink,
                                                          const struct delivery_memory_sink *from,
                                                          pawl_error *reterr);

/* --- memory/failed.c --- */

/* The row of failed_events that an outcome makes. */
PAWL_MUST_USE pawl_status
pawl__delivery_memory_failure(const struct delivery_memory_sink *sink,
                              const struct delivery_transaction *transaction,
                              const struct delivery_outcome *outcome,
                              struct delivery_stored_failure **ret_failure,
                              pawl_error *reterr);

/* `changes` and `requeue_retrying` of a transaction. */
PAWL_MUST_USE pawl_status
pawl__delivery_memory_change(struct delivery_memory_sink *sink,
                             const struct delivery_transaction *transaction,
                             pawl_error *reterr);

pawl_status pawl__delivery_memory_read_failed(struct delivery_sink *base,
                                              const struct delivery_failed_query *query,
                                              struct delivery_failed_page *page,
                                              pawl_error *reterr);
pawl_status pawl__delivery_memory_count_failed(struct delivery_sink *base,
                                               const struct delivery_failed_query *query,
                                               uint64_t *ret_count,
                                               pawl_error *reterr);

#endif
