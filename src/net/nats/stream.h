/* Streams and consumers: what the server says about them, making them, and reading one message.
 *
 * Times are UTC nanoseconds since 1970 as the server stored them. They identify, they decide nothing. */
#ifndef PAWL_NET_NATS_STREAM_H
#define PAWL_NET_NATS_STREAM_H

#include "base/core/buf.h"
#include "net/nats/nats.h"

#define PAWL__NATS_MAX_AGE_NS (INT64_C(7) * 24 * 3600 * NS_PER_S) /* of a stream that we make */
#define PAWL__NATS_DUPLICATES_NS (120 * NS_PER_S)

enum {
    PAWL__NATS_SUBJECTS_MAX = 64,    /* of a stream that we make */
    PAWL__NATS_SUBJECTS_SIZE = 1024, /* as text */
};

enum pawl__nats_retention {
    PAWL__NATS_KEEPS_BY_LIMITS,
    PAWL__NATS_KEEPS_BY_INTEREST, /* until every consumer has acknowledged */
    PAWL__NATS_KEEPS_UNTIL_ACK,   /* a work queue */
};

struct pawl__nats_stream {
    char name[PAWL__NATS_NAME_SIZE];
    char subjects[PAWL__NATS_SUBJECTS_SIZE]; /* behind commas; cut, then it ends in "..." */
    int64_t created_ns;
    uint64_t messages;
    uint64_t bytes;
    uint64_t first_seq; /* of an empty stream: one above last_seq, or 0 */
    uint64_t last_seq;
    int64_t first_ns;
    int64_t last_ns;
    /* its configuration; -1 or 0 is no limit */
    bool in_memory;
    bool no_ack; /* publishers get no answer */
    bool sealed;
    bool discards_new; /* at a limit it refuses, else it drops the oldest */
    bool mirror;       /* or has sources: others write into it */
    enum pawl__nats_retention retention;
    int64_t max_age_ns;
    int64_t duplicates_ns;
    int64_t max_messages;
    int64_t max_messages_per_subject;
    int64_t max_bytes;
    int64_t message_bytes_max;
    int64_t replicas;
};

/* NOT_FOUND: no such stream. */
PAWL_MUST_USE pawl_status pawl__nats_stream_info(struct pawl__nats *nats,
                                                 const char *stream,
                                                 struct pawl__nats_stream *ret_stream,
                                                 pawl_error *reterr);

/* The stream that takes a subject. NOT_FOUND: none does. */
PAWL_MUST_USE pawl_status pawl__nats_stream_of(struct pawl__nats *nats,
                                               const char *subject,
                                               char ret_name[PAWL__NATS_NAME_SIZE],
                                               pawl_error *reterr);

/* Zero is a default: limits retention, file storage, PAWL__NATS_MAX_AGE_NS, PAWL__NATS_DUPLICATES_NS, one
 * replica, no other limit. */
struct pawl__nats_stream_options {
    const char *const *subjects; /* at least one */
    size_t subject_count;
    int64_t max_age_ns;
    int64_t duplicates_ns;
    int64_t max_bytes;
    int replicas;
};

/* CONFLICT: there is one of this name with another configuration, or its subjects belong to another. One that
 * is already exactly so is fine. */
PAWL_MUST_USE pawl_status pawl__nats_stream_create(struct pawl__nats *nats,
                                                   const char *stream,
                                                   const struct pawl__nats_stream_options *options,
                                                   struct pawl__nats_stream *ret_stream,
                                                   pawl_error *reterr);

#define PAWL__NATS_HEADER_OUTBOX "Pawl-Outbox" /* which outbox sent it, and under which number */
enum { PAWL__NATS_OUTBOX_SIZE = 48 };

/* A message as the stream has it. NOT_FOUND: none at this sequence (not yet, or not any more). */
struct pawl__nats_stored {
    uint64_t sequence;
    int64_t stored_ns;
    char subject[PAWL__NATS_SUBJECT_SIZE];
    struct pawl__buf id;                 /* Nats-Msg-Id; empty: none */
    char outbox[PAWL__NATS_OUTBOX_SIZE]; /* PAWL__NATS_HEADER_OUTBOX; empty: none, or too long */
    struct pawl__buf payload;
};

PAWL_MUST_USE pawl_status pawl__nats_stream_get(struct pawl__nats *nats,
                                                const char *stream,
                                                uint64_t sequence,
                                                struct pawl__nats_stored *ret_stored,
                                                pawl_error *reterr);

/* The last one of a subject, which has no wildcards. NOT_FOUND: it has none. */
PAWL_MUST_USE pawl_status pawl__nats_stream_last(struct pawl__nats *nats,
                                                 const char *stream,
                                                 const char *subject,
                                                 struct pawl__nats_stored *ret_stored,
                                                 pawl_error *reterr);
void pawl__nats_stored_done(struct pawl__nats_stored *stored);

enum pawl__nats_ack_policy { PAWL__NATS_ACK_EXPLICIT, PAWL__NATS_ACK_NONE, PAWL__NATS_ACK_ALL };

struct pawl__nats_consumer {
    char stream[PAWL__NATS_NAME_SIZE];
    char name[PAWL__NATS_NAME_SIZE];
    int64_t created_ns;
    uint64_t delivered_seq;   /* highest stream sequence that was handed out */
    uint64_t delivered_count; /* its consumer sequence: back at 0 when the state was lost */
    uint64_t ack_floor_seq;   /* below or at it all is acknowledged */
    int64_t ack_pending;
    int64_t redelivered;
    uint64_t pending; /* still to be handed out; wrong when the stream lost its tail */
    /* its configuration */
    bool durable;
    bool push;
    bool in_memory;
    bool headers_only;
    bool replays_slowly; /* at the pace at which the messages were stored */
    enum pawl__nats_ack_policy ack_policy;
    int64_t ack_wait_ns;
    int64_t max_deliver; /* -1: never gives up */
    int64_t max_ack_pending;
    int64_t max_request_batch;
    int64_t max_request_bytes;
    int64_t max_request_expires_ns;
    int64_t inactive_ns; /* the server deletes it when unused for so long; 0: never */
    int backoff_count;   /* waits that replace ack_wait_ns */
    char filter[PAWL__NATS_SUBJECT_SIZE];
};

/* NOT_FOUND: no such consumer, or no such stream; `native` tells them apart (10014, 10059). */
PAWL_MUST_USE pawl_status pawl__nats_consumer_info(struct pawl__nats *nats,
                                                   const char *stream,
                                                   const char *consumer,
                                                   struct pawl__nats_consumer *ret_consumer,
                                                   pawl_error *reterr);

/* What we need of a consumer: durable, explicit acknowledgements, never gives up. */
struct pawl__nats_consumer_need {
    const char *name;
    const char *filter;      /* NULL: all subjects */
    int64_t ack_wait_ns;     /* 0: 30 s */
    int64_t max_ack_pending; /* 0: 20,000 */
    int64_t batch_max;       /* the largest fetch; 0: max_ack_pending */
};

#define PAWL__NATS_ACK_WAIT_NS (30 * NS_PER_S)
#define PAWL__NATS_ACK_PENDING_MAX 20000

/* Makes the consumer, so that it begins with stream sequence `start_seq` (0 and 1: with the first). CONFLICT
 * when there is one of this name: cnats and the server would change it silently. */
PAWL_MUST_USE pawl_status pawl__nats_consumer_create(struct pawl__nats *nats,
                                                     const char *stream,
                                                     const struct pawl__nats_consumer_need *need,
                                                     uint64_t start_seq,
                                                     struct pawl__nats_consumer *ret_consumer,
                                                     pawl_error *reterr);

/* One that is not there is fine. */
PAWL_MUST_USE pawl_status pawl__nats_consumer_delete(struct pawl__nats *nats,
                                                     const char *stream,
                                                     const char *consumer,
                                                     pawl_error *reterr);

/* Deletes and makes it anew at a position. What was handed out and not acknowledged comes again. */
PAWL_MUST_USE pawl_status pawl__nats_consumer_recreate(struct pawl__nats *nats,
                                                       const char *stream,
                                                       const struct pawl__nats_consumer_need *need,
                                                       uint64_t start_seq,
                                                       struct pawl__nats_consumer *ret_consumer,
                                                       pawl_error *reterr);

#endif
