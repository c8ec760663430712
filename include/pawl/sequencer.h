/* <pawl/sequencer.h>: numbers that only go up, per workspace and sequence.
 *
 * Numbers are served from memory, written in the background, and rebuilt from the log: memory
 * does not grow with the number of workspaces, and a start takes the time of the log's tail.
 *
 *     pawl_sequencer_start(seq, kind, workspace, &offset, &error);   BUSY: try again a little later
 *     pawl_sequencer_next(seq, ORDER_ID, &number, &error);           any number of times
 *     ... write the event to the log at `offset`, with the numbers in it ...
 *     written ? pawl_sequencer_flush(seq, &error) : pawl_sequencer_actualize(seq, &error);
 *
 * The log is the truth. What is stored of the numbers may be older than the log, never newer: it is
 * stored with the offset of the first event that it does not cover, and actualization reads the log
 * from there. A number is given out again only when its event was not written.
 *
 * Threads: a transaction belongs to the thread that started it; calls of others are WRONG_THREAD
 * while it is open, also after that thread has ended: only a close helps then. Two threads of its own
 * write and read in the background. The calls of a storage must not come back to their sequencer, but for
 * pawl_sequencer_get_status: they get WRONG_THREAD.
 *
 * A NULL where something is needed is INVALID, and the message names the argument.
 *
 * TRANSACTION_OPEN, NO_TRANSACTION, WRONG_THREAD, UNKNOWN_KIND and UNKNOWN_SEQUENCE are details (PAWL_DETAIL_...) of
 * INVALID; EXHAUSTED is one of FAILED. */
#ifndef PAWL_SEQUENCER_H
#define PAWL_SEQUENCER_H

#include <pawl/pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_SEQ_NUMBER_MAX UINT64_MAX /* the last number of a sequence, and the last offset */

/* A sequence that workspaces of a kind have, and its first number. */
typedef struct pawl_seq_type {
    size_t size;
    uint16_t kind;
    uint16_t sequence;
    uint64_t initial; /* at least 1 */
} pawl_seq_type;

#define PAWL_SEQ_TYPE_INIT             \
    {                                  \
        sizeof(pawl_seq_type), 0, 0, 1 \
    }

/* The last number given out. */
typedef struct pawl_seq_value {
    uint64_t workspace;
    uint16_t sequence;
    uint64_t value;
} pawl_seq_value;

/* Takes what one event of the log used: values of any workspaces in any order, keys more than once,
 * or none at all. It may wait. Anything but PAWL_OK ends the walk, which returns it as it is. */
typedef pawl_status (*pawl_seq_batcher)(
    void *context, const pawl_seq_value *values, size_t count, uint64_t offset, pawl_error *reterr);

/* Where numbers and the log are. What a call returns counts, whether or not it fills `reterr`. `read_numbers` is called on the thread of the transaction, the
 * others on threads of the sequencer, all three at the same time. */
typedef struct pawl_seq_storage {
    size_t size;
    void *context; /* outlives the sequencer; after a close that timed out, for ever */

    /* The last number of each sequence, 0 where none is stored. Until the monotonic deadline; a read
     * that would take longer is TIMEOUT. */
    pawl_status (*read_numbers)(void *context,
                                uint64_t workspace,
                                const uint16_t *sequences,
                                size_t count,
                                int64_t deadline_ns,
                                uint64_t *ret_numbers,
                                pawl_error *reterr);

    /* What the last write stored; 0: nothing yet. */
    pawl_status (*read_next_offset)(void *context, uint64_t *ret_offset, pawl_error *reterr);

    /* Stores both in one atomic step. The keys are unique; there may be none. A number that is there
     * already and higher stays: numbers are merged by maximum. */
    pawl_status (*write)(void *context,
                         const pawl_seq_value *values,
                         size_t count,
                         uint64_t next_offset,
                         pawl_error *reterr);

    /* Hands every event of the log from `offset` on to the batcher, in order, each one. */
    pawl_status (*actualize)(void *context,
                             uint64_t offset,
                             pawl_seq_batcher batcher,
                             void *batcher_context,
                             pawl_error *reterr);
} pawl_seq_storage;

#define PAWL_SEQ_STORAGE_INIT                                  \
    {                                                          \
        sizeof(pawl_seq_storage), NULL, NULL, NULL, NULL, NULL \
    }

typedef struct pawl_sequencer_options {
    size_t size;                /* PAWL_SEQUENCER_OPTIONS_INIT sets it */
    const pawl_seq_type *types; /* copied; the only sequences that it knows */
    size_t type_count;
    const pawl_seq_storage *storage; /* copied */
    uint32_t unflushed_max;          /* numbers that wait to be written; 500 */
    uint32_t flush_interval_ms;      /* they wait so long at the most; 500 */
    uint32_t cache_size;             /* numbers kept in memory, up to 2^28; 100,000 */
    uint32_t batcher_delay_ms;       /* between two looks whether there is room; 5 */
    uint32_t retry_ms;               /* after a failed read or write, with jitter; 500 */
    uint32_t read_ms_max;            /* of one read in pawl_sequencer_next; 1000 */
    uint32_t close_ms_max;           /* 5000 */
} pawl_sequencer_options;

#define PAWL_SEQUENCER_OPTIONS_INIT                                                         \
    {                                                                                       \
        sizeof(pawl_sequencer_options), NULL, 0, NULL, 500, 500, 100000, 5, 500, 1000, 5000 \
    }

typedef struct pawl_sequencer pawl_sequencer;

/* INVALID names the option: an initial value of 0, a sequence given twice for a kind, a cache or a
 * limit of 0, a cache over 2^28, no types, no storage or one without all of its calls. Starts to actualize in the background. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_open(const pawl_sequencer_options *options,
                                                       pawl_sequencer **ret_sequencer,
                                                       pawl_error *reterr);

/* Opens a transaction for a workspace (not 0) and says at which offset its event belongs.
 *
 * BUSY (retryable)  actualization is not over, or too many numbers wait to be written
 * CORRUPT           the log has a hole, or goes back: the message names the offset
 * UNSUPPORTED       an event of the log is of a newer version
 * TRANSACTION_OPEN  this thread has one open; WRONG_THREAD: another thread has
 * LEASE_LOST        the log belongs to somebody else now
 * UNKNOWN_KIND      no sequence was defined for it; INVALID: workspace 0
 * EXHAUSTED         the last offset is used
 * CLOSED            after pawl_sequencer_stop
 *
 * An error leaves no transaction open that was not. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_start(pawl_sequencer *sequencer,
                                                        uint16_t kind,
                                                        uint64_t workspace,
                                                        uint64_t *ret_offset,
                                                        pawl_error *reterr);

/* Another event of the same write: the transaction continues with this workspace at the next offset,
 * and ends for all of its events at once. For writers that put many events into the log in one step.
 * NO_TRANSACTION, WRONG_THREAD, UNKNOWN_KIND, INVALID, EXHAUSTED, CLOSED; BUSY (retryable) when too
 * many numbers would wait: end the write with the events it has. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_also(pawl_sequencer *sequencer,
                                                       uint16_t kind,
                                                       uint64_t workspace,
                                                       uint64_t *ret_offset,
                                                       pawl_error *reterr);

/* The next number. NO_TRANSACTION, WRONG_THREAD, CLOSED; UNKNOWN_SEQUENCE; EXHAUSTED: the last one is
 * used; BUSY (retryable): it could not be read in time; IO, CORRUPT and others of the storage. The
 * transaction continues after each but the first three. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_next(pawl_sequencer *sequencer,
                                                       uint16_t sequence,
                                                       uint64_t *ret_number,
                                                       pawl_error *reterr);

/* Gives up the event that start or also began last, which must not go into the log: the numbers that it
 * took and its offset are the next ones again. The transaction continues with the events before it; with
 * none it ends. Then begin another event with also, or end the transaction: until then there is nothing
 * to take numbers for (NO_TRANSACTION), and a second drop does nothing. Nothing is rebuilt.
 * NO_TRANSACTION, WRONG_THREAD, CLOSED. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_drop(pawl_sequencer *sequencer,
                                                       pawl_error *reterr);

/* The event is in the log: the transaction ends, and the offset moves by one for each of its events,
 * also when no number was taken. Does not wait for a write. NO_TRANSACTION, WRONG_THREAD, CLOSED. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_flush(pawl_sequencer *sequencer,
                                                        pawl_error *reterr);

/* The event is not in the log, or nobody knows: the transaction ends, its numbers are forgotten, and
 * everything is rebuilt from the log in the background. NO_TRANSACTION, WRONG_THREAD, CLOSED. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_actualize(pawl_sequencer *sequencer,
                                                            pawl_error *reterr);

typedef struct pawl_sequencer_status {
    size_t size;
    uint64_t next_offset;   /* 0: not known yet */
    uint64_t stored_offset; /* as of the last successful write or read */
    uint64_t unflushed;     /* numbers that wait to be written */
    bool actualizing;
    uint64_t actualizations;
    uint64_t flushes;
    uint64_t flush_failures;
    uint64_t hits; /* of pawl_sequencer_next; as of the last ended transaction */
    uint64_t misses;
    pawl_error
        last_error; /* of a read or write in the background; PAWL_OK: the last one went well */
} pawl_sequencer_status;

#define PAWL_SEQUENCER_STATUS_INIT                                                    \
    {                                                                                 \
        sizeof(pawl_sequencer_status), 0, 0, 0, false, 0, 0, 0, 0, 0, PAWL_ERROR_INIT \
    }

/* From any thread. */
PAWL_API pawl_status pawl_sequencer_get_status(pawl_sequencer *sequencer,
                                               pawl_sequencer_status *ret_status,
                                               pawl_error *reterr);

/* Waits until no actualization is under way. TIMEOUT; CLOSED; CORRUPT as in start. From any thread. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_wait(pawl_sequencer *sequencer,
                                                       uint32_t timeout_ms,
                                                       pawl_error *reterr);

/* Ends the work in the background, within `timeout_ms` (0: close_ms_max). What was not written is not lost: it
 * is in the log. Every later call is CLOSED; a transaction that is open counts for nothing. What waits to be
 * written is written once more, unless the last write failed. TIMEOUT: the storage did not come back. WRONG_THREAD:
 * called by the storage. From any other thread; a second time is fine. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sequencer_stop(pawl_sequencer *sequencer,
                                                       uint32_t timeout_ms,
                                                       pawl_error *reterr);

/* Stops when nobody did, and frees. After a stop that timed out the threads free what they still use when they
 * come back, and so they do when the storage itself calls this, which waits for nothing. No other call may be
 * under way. See Closing in pawl.h. */
PAWL_API pawl_status pawl_sequencer_close(pawl_sequencer *sequencer,
                                          uint32_t timeout_ms,
                                          pawl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
