/* The cursor row: what the sink knows about a pipeline. It commits in the transaction of the rows that it
 * covers, and it alone says what is applied. */
#ifndef PAWL_DELIVERY_CORE_CURSOR_H
#define PAWL_DELIVERY_CORE_CURSOR_H

#include "delivery/core/entry.h"

/* accepted = delivered + filtered + failed + pending, at every commit and across restarts. */
struct delivery_counters {
    uint64_t accepted;  /* got an LSN; duplicates do not */
    uint64_t delivered; /* a row */
    uint64_t filtered;  /* the mapping wants no row */
    uint64_t failed;    /* a row of failed_events */
};

uint64_t pawl__delivery_pending(const struct delivery_counters *counters);
bool pawl__delivery_counters_hold(
    const struct delivery_counters *counters); /* no sum is negative */

struct delivery_cursor {
    struct delivery_uuid wal_id;  /* of the WAL that feeds this sink */
    struct delivery_uuid sink_id; /* of this file */
    uint64_t epoch;               /* raised whenever the index has to be made anew */
    uint64_t fence; /* of the newest opener; a lower one is refused. The token of its lease */
    uint64_t
        version; /* one more with every commit: a commit whose answer was lost and that arrives again
                       * finds another one */

    delivery_lsn
        applied; /* up to here everything is in the table, in failed_events, filtered, or an exception */
    struct delivery_place
        stream;         /* up to this place of the source everything is applied; sequence 0:
                                   * nothing. `stored_ns` is of the message at `sequence`, 0: not known,
                                   * DELIVERY_STORED_GONE: the stream had forgotten it */
    int64_t running_ns; /* how long the pipeline has run in all; see running.h */
    struct delivery_counters counters;
};

/* LEASE_LOST unless `next` may replace `stored`: its fence is not lower and its version is the next one. Every
 * sink asks this inside the transaction. `stored` NULL: no row yet. */
PAWL_MUST_USE pawl_status pawl__delivery_cursor_check(const struct delivery_cursor *stored,
                                                      const struct delivery_cursor *next,
                                                      pawl_error *reterr);

/* What a source no longer holds and no store of ours has, as far as we can know: a row of delivery_losses. */
enum delivery_loss_reason {
    DELIVERY_LOSS_RECREATED,   /* the stream was deleted and created again */
    DELIVERY_LOSS_ROLLED_BACK, /* the server lost its tail */
    DELIVERY_LOSS_PURGED,
    DELIVERY_LOSS_RETENTION, /* max_age or another limit overtook us */
    DELIVERY_LOSS_REBUILD,   /* a rebuild asked for it, and the source no longer had it */
};
const char *pawl__delivery_loss_reason_name(enum delivery_loss_reason reason);

#define DELIVERY_LOSS_OPEN UINT64_MAX /* nobody knows how far it reached */

struct delivery_loss {
    int64_t created_ns; /* of the stream that had them */
    uint64_t from;
    uint64_t to; /* inclusive, or DELIVERY_LOSS_OPEN */
    enum delivery_loss_reason reason;
    int64_t seen_us; /* wall, for people */
};

#endif
