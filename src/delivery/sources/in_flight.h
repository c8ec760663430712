/* Messages that a source without a broker has handed out and that nobody has answered for: it keeps them itself, to
 * deliver them again after a nak. In the order of their sequences. One thread at a time. */
#ifndef PAWL_DELIVERY_SOURCES_IN_FLIGHT_H
#define PAWL_DELIVERY_SOURCES_IN_FLIGHT_H

#include "delivery/core/source.h"

struct delivery_in_flight_item;

struct delivery_in_flight {
    struct delivery_in_flight_item *
        *items; /* [first, count), ascending; acknowledged ones stay until they are first */
    size_t first;
    size_t count;
    size_t room;
    uint64_t starts;        /* answers to messages of an earlier one mean nothing */
    uint64_t handed_out;    /* the highest sequence that was ever added, or passed over */
    uint64_t highest_acked; /* 0: none since it was cleared */
    struct delivery_message *batch;
    size_t batch_count;
    size_t batch_bytes;
    size_t batch_room;
};

void pawl__delivery_in_flight_done(struct delivery_in_flight *in_flight);

/* Forgets everything: the next message has a sequence above `sequence`. */
void pawl__delivery_in_flight_restart(struct delivery_in_flight *in_flight, uint64_t sequence);

/* A sequence that is no message (a blank line): nobody waits for it. */
void pawl__delivery_in_flight_pass(struct delivery_in_flight *in_flight, uint64_t sequence);

/* --- a batch: begin, what is due again, then new messages --- */

void pawl__delivery_in_flight_begin(struct delivery_in_flight *in_flight);
bool pawl__delivery_in_flight_is_full(const struct delivery_in_flight *in_flight,
                                      const struct delivery_fetch *limits);
PAWL_MUST_USE pawl_status pawl__delivery_in_flight_add_due(struct delivery_in_flight *in_flight,
                                                           const struct delivery_fetch *limits,
                                                           int64_t now_ns,
                                                           pawl_error *reterr);

/* Copies the message, whose sequence is above all before it, and adds it to the batch. */
PAWL_MUST_USE pawl_status pawl__delivery_in_flight_add(struct delivery_in_flight *in_flight,
                                                       const struct delivery_message *message,
                                                       pawl_error *reterr);
struct delivery_batch pawl__delivery_in_flight_batch(const struct delivery_in_flight *in_flight);

/* --- answers --- */

void pawl__delivery_in_flight_ack(struct delivery_in_flight *in_flight,
                                  const struct delivery_message *messages,
                                  size_t count);
void pawl__delivery_in_flight_nak(struct delivery_in_flight *in_flight,
                                  const struct delivery_message *messages,
                                  size_t count,
                                  int64_t again_ns);

/* Everything from `sequence` on again, now; what is below it is forgotten. False: some of it was acknowledged and
 * is gone. */
bool pawl__delivery_in_flight_repeat(struct delivery_in_flight *in_flight, uint64_t sequence);

/* Up to here nobody waits for an acknowledgement. */
uint64_t pawl__delivery_in_flight_acked_to(const struct delivery_in_flight *in_flight);

#endif
