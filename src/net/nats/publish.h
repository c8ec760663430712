/* Publishing into a stream, with an answer for every message: it is stored, it may be stored, or it is not.
 *
 * STORED means that the server answered. Unless it syncs every write (sync_interval: always), a power cut can
 * still take it: whoever may not lose it keeps it until it was read back (stream.h).
 *
 * One by one:      pawl__nats_publish
 * Many at once:    a publisher; send without waiting, then collect the answers. What a broken link leaves
 *                  unanswered comes back as MAYBE_STORED; publish it again under the same id. */
#ifndef PAWL_NET_NATS_PUBLISH_H
#define PAWL_NET_NATS_PUBLISH_H

#include "net/nats/nats.h"

enum { PAWL__NATS_HEADERS_MAX = 64, PAWL__NATS_PENDING_MAX = 100000 };

struct pawl__cancel;

struct pawl__nats_header {
    pawl_view name;  /* printable ASCII without ':' */
    pawl_view value; /* without CR, LF and NUL */
};

struct pawl__nats_outgoing {
    const char *subject;
    pawl_view payload;
    pawl_view id; /* Nats-Msg-Id: the server drops a second one within its window. Empty: none */
    const struct pawl__nats_header *headers;
    size_t header_count;
    const char *expect_stream; /* NULL: whichever has the subject */
    bool expect_last;          /* only when the last message of the subject is this one; 0: none */
    uint64_t last_subject_seq;
};

/* INVALID: it is no subject to publish to, which has parts behind dots, no wildcard and no blank. Pure. */
PAWL_MUST_USE pawl_status pawl__nats_check_subject(const char *subject, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__nats_check_header(pawl_view name,
                                                  pawl_view value,
                                                  pawl_error *reterr);

enum pawl__nats_fate { PAWL__NATS_STORED, PAWL__NATS_MAYBE_STORED, PAWL__NATS_NOT_STORED };

struct pawl__nats_published {
    enum pawl__nats_fate fate;
    uint64_t token;     /* what send was given */
    uint64_t sequence;  /* STORED: where. Of a duplicate: where the first one is */
    bool duplicate;     /* the server has this id already, whatever its subject and payload */
    pawl_status status; /* why not: CONFLICT (10071): another message came before */
    bool retryable;
    int native;
    char why[120];
    char stream[PAWL__NATS_NAME_SIZE];
};

/* OK: STORED. Any other status: ret_published says whether it may be stored all the same. */
PAWL_MUST_USE pawl_status pawl__nats_publish(struct pawl__nats *nats,
                                             const struct pawl__nats_outgoing *message,
                                             struct pawl__nats_published *ret_published,
                                             pawl_error *reterr);

/* One thread at a time. */
struct pawl__nats_publisher;

PAWL_MUST_USE pawl_status pawl__nats_publisher_open(struct pawl__nats *nats,
                                                    size_t pending_max,
                                                    struct pawl__nats_publisher **ret_publisher,
                                                    pawl_error *reterr);

/* What is still pending may be stored: ask pawl__nats_publisher_pending before. */
DEFINE_AUTO(struct pawl__nats_publisher *, pawl__nats_publisher_close)

/* BUSY: pending_max answers are missing; collect first. UNAVAILABLE and every other failure but IO: nothing was
 * sent. */
PAWL_MUST_USE pawl_status pawl__nats_publisher_send(struct pawl__nats_publisher *publisher,
                                                    const struct pawl__nats_outgoing *message,
                                                    uint64_t token,
                                                    pawl_error *reterr);

/* Answers that are there, up to `max`; waits up to wait_ms for the first. None while nothing is pending, or when
 * the time is up. An answer that does not come within answer_ms_max, or whose link broke, is MAYBE_STORED. */
PAWL_MUST_USE pawl_status pawl__nats_publisher_collect(struct pawl__nats_publisher *publisher,
                                                       int wait_ms,
                                                       const struct pawl__cancel *cancel,
                                                       struct pawl__nats_published *ret_published,
                                                       size_t max,
                                                       size_t *ret_count,
                                                       pawl_error *reterr);

/* Tokens without an answer, in the order in which they were sent; how many there are. */
size_t pawl__nats_publisher_pending(const struct pawl__nats_publisher *publisher,
                                    uint64_t *ret_tokens,
                                    size_t max);

/* An answer to a publish. False: it is none. Pure. */
PAWL_MUST_USE bool pawl__nats_parse_answer(pawl_view text, struct pawl__nats_published *published);

#endif
