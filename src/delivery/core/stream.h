/* The stream's own truth: is it still the one that we read, does it still have what we have not read, and does its
 * consumer remember no more than we do? Asked when a pipeline opens, after every broken connection and when idle. */
#ifndef PAWL_DELIVERY_CORE_STREAM_H
#define PAWL_DELIVERY_CORE_STREAM_H

#include "delivery/core/position.h"
#include "delivery/core/wal.h"

enum delivery_truth {
    DELIVERY_SAME,
    DELIVERY_RECREATED,
    DELIVERY_ROLLED_BACK, /* the server lost its tail, and hands out the same sequences again */
};

/* `anchor` NULL: no message is known. The state was asked about the anchor's sequence, or about the floor: a source
 * may not know how far it reaches before it is asked. */
enum delivery_truth pawl__delivery_truth(const struct delivery_position *position,
                                         const struct delivery_place *anchor,
                                         const struct delivery_stream_state *state);

struct delivery_losses {
    struct delivery_loss *items;
    size_t count;
    size_t room;
};
void pawl__delivery_losses_done(struct delivery_losses *losses);
PAWL_MUST_USE pawl_status pawl__delivery_losses_add(struct delivery_losses *losses,
                                                    const struct delivery_loss *loss,
                                                    pawl_error *reterr);

/* Follows a stream that is not what it was, and one that has forgotten places that we never saw. Adds what is lost
 * to `losses`; the position passes it, so the two must be stored in one transaction.
 *
 * `common`: the highest anchor that the stream still has (ROLLED_BACK; 0: none). */
PAWL_MUST_USE pawl_status pawl__delivery_follow(struct delivery_position *position,
                                                enum delivery_truth truth,
                                                uint64_t common,
                                                const struct delivery_stream_state *state,
                                                bool rebuilding,
                                                struct delivery_losses *losses,
                                                pawl_error *reterr);

/* What has to be noted in the WAL after a rollback was followed. `next` is the first LSN that was not given out,
 * `cursor` the row as it was last committed: the one after it may be under way. */
struct delivery_rewound pawl__delivery_rewind(const struct delivery_position *position,
                                              delivery_lsn next,
                                              const struct delivery_cursor *cursor);

/* True when the row may stand where the stream no longer is: it was written before the rollback was noted. */
bool pawl__delivery_is_rewound(const struct delivery_rewound *rewound,
                               const struct delivery_cursor *cursor);

/* True when the sink has no row yet about the rollback: the WAL noted it, and nothing was committed since. */
bool pawl__delivery_loss_is_unnoted(const struct delivery_rewound *rewound,
                                    const struct delivery_cursor *cursor);

/* The WAL that knew of rollbacks is lost, or was another sink's, and `cursor` is the sink's row: rows that are older than
 * it may be from before a rollback, and then only reading the stream again tells. `known` is what this WAL has. */
struct delivery_rewound pawl__delivery_rewound_unknown(const struct delivery_rewound *known,
                                                       delivery_lsn applied,
                                                       const struct delivery_cursor *cursor);

/* True when the consumer may be kept: everything it has sent is seen, so nothing that it believes to be
 * acknowledged can be missing here. False: make it anew at the floor. What a broker remembers of acknowledgements
 * may be older or newer than what we have on disk, and messages come again for free. */
bool pawl__delivery_consumer_fits(const struct delivery_position *position,
                                  const struct delivery_stream_state *state);

/* Sequences that are missing and acknowledged belong to nobody (see may_skip): they are seen. Only for a consumer
 * that fitted or was made anew since this process opened the pipeline. */
PAWL_MUST_USE pawl_status pawl__delivery_settle(struct delivery_position *position,
                                                const struct delivery_stream_state *state,
                                                pawl_error *reterr);

/* How much of its retention the oldest message that we still need has left, in per cent; 100: no limit. */
unsigned pawl__delivery_retention_left(const struct delivery_stream_state *state, uint64_t floor);

#endif
