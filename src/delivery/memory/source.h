/* A stream and its one durable consumer in memory: the reference of source.h, and a model of what a JetStream server
 * does: deliver again what was not acknowledged in time, be purged, be recreated, lose its tail and hand out the same
 * sequences again while the consumer stays where it was. */
#ifndef PAWL_DELIVERY_MEMORY_SOURCE_H
#define PAWL_DELIVERY_MEMORY_SOURCE_H

#include "base/os/clock.h"
#include "delivery/core/source.h"
#include "delivery/memory/stored.h"

struct delivery_memory_message {
    struct delivery_stored *stored; /* subject, headers, payload and place */
    bool is_sent;
    bool is_acked;
    int64_t again_ns; /* sent and not acknowledged: again from here on */
};

struct delivery_memory_source {
    struct delivery_source base;
    struct pawl__clock *clock; /* for the time to wait for an acknowledgement */
    int64_t ack_wait_ns;
    int64_t created_ns;
    uint64_t first;
    uint64_t last;
    struct delivery_memory_message *messages; /* sequence 1 first */
    size_t room;
    uint64_t
        incarnation; /* raised when the consumer or the stream changes: older acknowledgements mean nothing */
    bool has_consumer;
    uint64_t delivered;
    struct delivery_message *batch; /* of the last fetch */
    size_t batch_room;
};

struct delivery_memory_source pawl__delivery_memory_source(struct pawl__clock *clock,
                                                           int64_t created_ns,
                                                           int64_t ack_wait_ns);
void pawl__delivery_memory_source_done(struct delivery_memory_source *source);

/* As a producer. The place is given by the stream but for stored_ns, which is the caller's. */
PAWL_MUST_USE pawl_status pawl__delivery_memory_publish(struct delivery_memory_source *source,
                                                        const struct delivery_message *message,
                                                        uint64_t *ret_sequence,
                                                        pawl_error *reterr);

/* What happens to servers. */
void pawl__delivery_memory_purge(struct delivery_memory_source *source, uint64_t to);
void pawl__delivery_memory_roll_back(struct delivery_memory_source *source,
                                     uint64_t to,
                                     bool with_consumer);
void pawl__delivery_memory_recreate(struct delivery_memory_source *source, int64_t created_ns);

/* The message at a sequence; NULL: it is not there. */
const struct delivery_entry *pawl__delivery_memory_at(const struct delivery_memory_source *source,
                                                      uint64_t sequence);

#endif
