/* What the outbox needs of a broker. One thread at a time. Statuses: UNAVAILABLE and TIMEOUT while there is no link,
 * DENIED when the server refuses us. */
#ifndef PAWL_DELIVERY_OUTBOX_BROKER_H
#define PAWL_DELIVERY_OUTBOX_BROKER_H

#include "base/core/buf.h"
#include "delivery/core/message.h"

struct outbox_broker;

enum { OUTBOX_STREAM_SIZE = 256, OUTBOX_SUBJECT_SIZE = 512, OUTBOX_WHY_SIZE = 120 };

struct outbox_link {
    uint64_t
        number; /* another one after every reconnect; what was under way on the old one is unanswered */
    uint64_t session; /* names the server's process and the boot of this machine */
};

struct outbox_stream {
    int64_t created_ns;
    uint64_t first_sequence;
    uint64_t last_sequence;
};

/* The last message of a subject. */
struct outbox_last {
    bool found;
    uint64_t sequence;
    uint64_t number; /* of our entry; 0: another's */
};

/* Which outbox a message came from, and its number there. Two outboxes may have the same events. */
struct outbox_origin {
    uint64_t outbox; /* 0: none that we know of */
    uint64_t number;
};

struct outbox_outgoing {
    uint64_t token; /* comes back with the answer */
    struct outbox_origin origin;
    const char *subject;
    pawl_view id; /* the whole transaction id */
    pawl_view source;
    pawl_view event_id;
    uint64_t sequence;
    pawl_view payload;
    const struct delivery_header *headers;
    size_t header_count;
    bool expect_last;
    uint64_t last_sequence; /* of the subject; 0: none */
};

enum outbox_fate { OUTBOX_FATE_STORED, OUTBOX_FATE_UNKNOWN, OUTBOX_FATE_REFUSED };

struct outbox_answer {
    uint64_t token;
    enum outbox_fate fate;
    uint64_t sequence; /* STORED */
    bool duplicate;
    bool out_of_order; /* REFUSED: the last message of the subject is another one */
    pawl_status status;
    bool retryable; /* REFUSED: it is not the message's fault */
    char why[OUTBOX_WHY_SIZE];
};

struct outbox_broker_ops {
    /* Connects when there is no connection. */
    pawl_status (*link)(struct outbox_broker *broker,
                        struct outbox_link *ret_link,
                        pawl_error *reterr);
    /* NOT_FOUND: no stream takes the subject. */
    pawl_status (*find_stream)(struct outbox_broker *broker,
                               const char *subject,
                               char ret_stream[OUTBOX_STREAM_SIZE],
                               pawl_error *reterr);
    /* NOT_FOUND: no such stream. */
    pawl_status (*stream)(struct outbox_broker *broker,
                          const char *stream,
                          struct outbox_stream *ret_stream,
                          pawl_error *reterr);
    /* The id of the message at a sequence, or with sequence 0 of the subject's last, and where it came from.
     * NOT_FOUND: no such message. */
    pawl_status (*get)(struct outbox_broker *broker,
                       const char *stream,
                       const char *subject,
                       uint64_t sequence,
                       struct pawl__buf *id,
                       uint64_t *ret_sequence,
                       struct outbox_origin *ret_origin,
                       pawl_error *reterr);
    /* INVALID: this message can never be sent. Any other failure: nothing was sent. */
    pawl_status (*send)(struct outbox_broker *broker,
                        const struct outbox_outgoing *message,
                        pawl_error *reterr);
    /* Answers that are there; waits up to wait_ms for the first. Every message gets one in bounded time. */
    pawl_status (*collect)(struct outbox_broker *broker,
                           int wait_ms,
                           struct outbox_answer *ret_answers,
                           size_t max,
                           size_t *ret_count,
                           pawl_error *reterr);
    void (*close)(struct outbox_broker *broker);
};

struct outbox_broker {
    const struct outbox_broker_ops *ops;
};

#endif
