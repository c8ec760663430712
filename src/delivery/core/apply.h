/* What follows from a transaction that the sink refused: whose fault it was, how the guilty event is found, and
 * what becomes of it. */
#ifndef PAWL_DELIVERY_CORE_APPLY_H
#define PAWL_DELIVERY_CORE_APPLY_H

#include "base/decide/backoff.h"
#include "delivery/core/sink.h"

enum delivery_blame {
    DELIVERY_BLAME_EVENT,  /* one event's, for good: conversion, constraint, range */
    DELIVERY_BLAME_RETRY,  /* perhaps one event's, perhaps it passes */
    DELIVERY_BLAME_OUTAGE, /* the sink's: memory, disk, a database that gave up, one that is busy */
    DELIVERY_BLAME_FENCED, /* ours: somebody else holds the pipeline */
    DELIVERY_BLAME_STOP,   /* nobody's: the pipeline is being closed */
};
enum delivery_blame pawl__delivery_blame(pawl_status status);

/* After an outage nobody knows whether the transaction was committed: the cursor row tells. */
bool pawl__delivery_commit_in_doubt(enum delivery_blame blame);

/* How many events go into one transaction. A fault halves it, down to the one event that is to blame; a commit
 * doubles it again. So a bad event among n costs about 2 log2(n) small transactions, and the others none. */
struct delivery_window {
    size_t size;
    size_t max;
};
struct delivery_window pawl__delivery_window(size_t max);
void pawl__delivery_window_halve(struct delivery_window *window, size_t tried);
void pawl__delivery_window_grow(struct delivery_window *window);

struct delivery_retry_rule {
    uint32_t attempts_max;        /* then failed_events, `max_retries_exceeded` */
    int64_t ttl_ns;               /* of running time since its first failure; then `expired` */
    struct pawl__backoff backoff; /* between two attempts */
};

/* A transaction with this one event failed. `exception` is what was known about it (zeroes with
 * first_failed_running_ns -1: nothing). Decides: failed_events, or an exception that is due later. */
void pawl__delivery_pin(const struct delivery_retry_rule *rule,
                        const struct delivery_exception *exception,
                        enum delivery_blame blame,
                        int64_t running_ns,
                        uint64_t random,
                        struct delivery_outcome *outcome);

#define DELIVERY_REASON_CONFLICT "conflict"
#define DELIVERY_REASON_BAD_ID "bad_id"
#define DELIVERY_REASON_REJECTED "rejected"
#define DELIVERY_REASON_EXPIRED "expired"
#define DELIVERY_REASON_RETRIES "max_retries_exceeded"

/* What an entry becomes before the sink is asked: a conflict and a bad id fail, anything else is the mapping's
 * verdict. */
void pawl__delivery_outcome_of(const struct delivery_entry *entry,
                               const struct delivery_verdict *verdict,
                               struct delivery_outcome *ret_outcome);

/* The counters after a transaction. */
void pawl__delivery_count(struct delivery_counters *counters,
                          const struct delivery_outcome *outcomes,
                          size_t count);

#endif
