/* Where messages come from. One thread at a time.
 *
 * A source gives every message a place, keeps it until it is acknowledged, and may deliver it any number of
 * times, in any order. Nothing it remembers about us is believed across a connection: see stream.h. */
#ifndef PAWL_DELIVERY_CORE_SOURCE_H
#define PAWL_DELIVERY_CORE_SOURCE_H

#include "base/core/macros.h"
#include "delivery/core/message.h"

struct delivery_source;

struct delivery_fetch {
    size_t messages_max;
    size_t bytes_max;
    int64_t wait_ns; /* how long an empty fetch may wait; 0: not at all */
};

/* What was fetched. Owned by the source, good until its next call. */
struct delivery_batch {
    const struct delivery_message *messages;
    size_t count;
};

/* What the source says about itself. */
struct delivery_stream_state {
    int64_t created_ns;
    uint64_t first;        /* the lowest sequence that it still has; last + 1 when it is empty */
    uint64_t last;         /* the highest it ever had; 0: none */
    int64_t oldest_age_ns; /* of the message at `first`; 0: empty */
    int64_t age_max_ns;    /* its retention; 0: by age never */

    /* Of the message at the sequence that was asked for. */
    bool probe_found;
    int64_t probe_stored_ns;

    /* Of our consumer. A source without consumers has one from restart_at on, and tells of it what it handed out
     * itself. */
    bool consumer_found;
    int64_t consumer_created_ns;
    uint64_t delivered; /* the highest stream sequence it has sent */
    uint64_t acked_to;  /* up to this stream sequence it waits for no acknowledgement */
};

struct delivery_source_ops {
    /* What is there, up to the limits. PAWL_OK with 0 messages: nothing now. UNAVAILABLE, TIMEOUT: the
     * connection is gone, and so may be a part of what was sent; the pipeline checks the stream before it
     * fetches again. A reconnection that a client library makes by itself fails one fetch as well: a server that
     * lost its tail was restarted, and what it gave out before must be looked at before it gives out more. */
    pawl_status (*fetch)(struct delivery_source *source,
                         const struct delivery_fetch *fetch,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr);

    /* Each message by itself: a source must not let one acknowledgement stand for those before it. May be lost
     * on the way without an error; the message is then delivered again. */
    pawl_status (*ack)(struct delivery_source *source,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr);

    /* Deliver again, not before `delay_ns`. May be lost like an acknowledgement. */
    pawl_status (*nak)(struct delivery_source *source,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr);

    /* What a message turned out to be, told before its acknowledgement and after the fsync: for a source whose producer
     * waits for it. NULL: nobody asks. */
    void (*taken)(struct delivery_source *source,
                  const struct delivery_message *message,
                  enum delivery_taken how);

    /* Its state now, and the message at `probe` (0: none). NOT_FOUND: no such stream. */
    pawl_status (*state)(struct delivery_source *source,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr);

    /* Makes the consumer anew, so that it delivers everything from `sequence` on, whatever was acknowledged
     * before. A source without consumers moves to there. */
    pawl_status (*restart_at)(struct delivery_source *source,
                              uint64_t sequence,
                              pawl_error *reterr);

    void (*close)(struct delivery_source *source); /* NULL source is the caller's mistake */
};

struct delivery_source {
    const struct delivery_source_ops *ops;
    bool
        is_named; /* `created` is what the user named (a generation): another one is other events, and no loss */
    bool may_skip; /* sequences that are missing may belong to nobody (a filter on subjects, deleted
                    * messages): they are settled by acked_to, and not by waiting */
};

#endif
