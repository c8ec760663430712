/* What a sequencer decides: calls, values of events and answers of a storage in; numbers and what is
 * to be written out. No threads, no time, no storage.
 *
 * Two halves. The transaction and the cache are touched by the thread of the transaction alone. The
 * rest (`shared`) is also touched by the threads of background.c; the owner of the threads holds a lock
 * around the functions that say so.
 *
 * Where a number is, from new to old: transaction, `filling`, `flushing`, storage. It leaves a place
 * only after it is in the next one, so a search in this order finds it. The cache may hold any
 * of them and may forget each at any time. */
#ifndef PAWL_SEQUENCER_CORE_H
#define PAWL_SEQUENCER_CORE_H

#include <pawl/sequencer.h>

#include "base/core/lru.h"
#include "sequencer/table.h"

enum { SEQ_TYPES_MAX = 65536 };

/* The sequences of one kind, side by side. */
struct seq_kind {
    uint16_t kind;
    const uint16_t *sequences; /* ascending */
    const uint64_t *initials;
    size_t count;
};

struct seq_transaction {
    bool open;
    const struct seq_kind *kind;
    uint64_t workspace;
    uint64_t *given; /* by place in the kind; the last number given out; 0: none */
    uint64_t *
        *cached;     /* by place; where the cache has it, to be brought up to date at the end of the
                        * event; NULL: not known */
    uint64_t events; /* of this write, this one included */
    struct seq_table earlier; /* what the events before this one have used */
};

struct seq_shared {
    bool actualizing;
    uint64_t next_offset;      /* of the log; 0: not known */
    struct seq_table filling;  /* what the next write takes ... */
    uint64_t filling_offset;   /* ... covers the log up to here, exclusive; 0: nothing to write */
    struct seq_table flushing; /* what a write has begun and not finished ... */
    uint64_t flushing_offset;  /* 0: none has */
    uint64_t stored_offset;
};

struct seq_core {
    struct seq_kind *kinds; /* ascending */
    size_t kind_count;
    uint16_t *sequences; /* of all kinds */
    uint64_t *initials;
    size_t types_of_kind_max;
    size_t unflushed_max;

    struct seq_transaction transaction;
    struct pawl__lru *cache; /* the last number given out */
    uint64_t *pending;       /* room for the numbers of a kind; so is the next */
    uint64_t *stored;
    uint64_t hits;
    uint64_t misses;

    struct seq_shared shared;
};

/* Validates and copies. INVALID as pawl_sequencer_open says. pawl__seq_core_done also after a failure. */
PAWL_MUST_USE pawl_status pawl__seq_core_init(struct seq_core *core,
                                              const pawl_sequencer_options *options,
                                              pawl_error *reterr);
void pawl__seq_core_done(struct seq_core *core);

/* --- under the lock --- */

/* Opens a transaction. There must be none. UNKNOWN_KIND, INVALID, BUSY, EXHAUSTED, NOMEM. */
PAWL_MUST_USE pawl_status pawl__seq_core_start(struct seq_core *core,
                                               uint16_t kind,
                                               uint64_t workspace,
                                               uint64_t *ret_offset,
                                               pawl_error *reterr);

/* Goes on with another event of the same write. Errors as above; the transaction stays as it was. */
PAWL_MUST_USE pawl_status pawl__seq_core_also(struct seq_core *core,
                                              uint16_t kind,
                                              uint64_t workspace,
                                              uint64_t *ret_offset,
                                              pawl_error *reterr);

/* What of the transaction's workspace waits to be written, by place in its kind; 0: nothing. To be
 * asked before the storage is: a number that is written in between is then found there. */
void pawl__seq_core_read_pending(const struct seq_core *core, uint64_t *ret_numbers);

/* Ends the transaction as written. True: it is time to write. *ret_forgotten: there was no memory for
 * the numbers of so many events; the log has them, so actualize instead. Never with a single event.
 */
bool pawl__seq_core_flush(struct seq_core *core, bool *ret_forgotten);

/* Ends the transaction as not written, and begins an actualization. What waits to be written may stay
 * until pawl__seq_core_forget, when no write is under way any more. */
void pawl__seq_core_actualize(struct seq_core *core);
void pawl__seq_core_forget(struct seq_core *core);

/* The log is read from `stored_offset` on; returns the offset to read from. */
uint64_t pawl__seq_core_read_from(struct seq_core *core, uint64_t stored_offset);

/* One event of the log. BUSY: too much waits to be written, try again later. CORRUPT: the offset is
 * not the one that follows. */
PAWL_MUST_USE pawl_status pawl__seq_core_event(struct seq_core *core,
                                               const pawl_seq_value *values,
                                               size_t count,
                                               uint64_t offset,
                                               pawl_error *reterr);
void pawl__seq_core_actualized(struct seq_core *core);

/* Begins to write what waits, or again what a write that failed was to write. False: nothing is. `values` stay
 * as they are until pawl__seq_core_written or pawl__seq_core_forget. */
bool pawl__seq_core_begin_write(struct seq_core *core,
                                const pawl_seq_value **ret_values,
                                size_t *ret_count,
                                uint64_t *ret_offset);
void pawl__seq_core_written(struct seq_core *core);
size_t pawl__seq_core_unflushed(const struct seq_core *core);

/* --- the transaction's thread, without the lock --- */

/* Numbers will be asked for: their entries come into the processor's cache while the caller continues. */
void pawl__seq_core_fetch(const struct seq_core *core);

/* The next number. UNKNOWN_SEQUENCE, EXHAUSTED. *ret_known false: the numbers of the workspace must
 * be read first and handed to pawl__seq_core_supply; nothing was given out. */
PAWL_MUST_USE pawl_status pawl__seq_core_next(struct seq_core *core,
                                              uint16_t sequence,
                                              bool *ret_known,
                                              uint64_t *ret_number,
                                              pawl_error *reterr);

/* Gives up the event that start or also began last, and its numbers. False: it was the only one, and the
 * transaction has ended. Until pawl__seq_core_also begins another event, pawl__seq_core_next is
 * NO_TRANSACTION and a second drop does nothing. */
bool pawl__seq_core_drop(struct seq_core *core);

/* What pawl__seq_core_read_pending found and what was read after it, by place in the kind. The next
 * pawl__seq_core_next of `wanted` is known. */
void pawl__seq_core_supply(struct seq_core *core,
                           uint16_t wanted,
                           const uint64_t *pending,
                           const uint64_t *stored);

#endif
