/* Is it still the stream that we know, and is this consumer fit for us? Pure: what the server said and what we
 * stored in, a verdict out.
 *
 * A stream can change under a consumer without any error. A server that lost its tail keeps the stream's
 * `created` and hands the same sequences out again, and the consumer, which is beyond them, never delivers the
 * new messages. So whoever reads a stream keeps anchors: sequences with the stored time and the id of their
 * messages. */
#ifndef PAWL_NET_NATS_TRUTH_H
#define PAWL_NET_NATS_TRUTH_H

#include "net/nats/stream.h"

enum { PAWL__NATS_DIFFERENCES_MAX = 24, PAWL__NATS_ID_SIZE = 256 };

/* --- is the stream the same --- */

struct pawl__nats_anchor {
    uint64_t sequence;
    int64_t stored_ns;
    char id[PAWL__NATS_ID_SIZE]; /* of a longer id its beginning; empty: none */
};

/* What the stream has at an anchor's sequence now. */
enum pawl__nats_match {
    PAWL__NATS_NOT_ASKED,
    PAWL__NATS_MATCHES,
    PAWL__NATS_DIFFERS,
    PAWL__NATS_GONE, /* no message there */
};

struct pawl__nats_known {
    int64_t stream_created_ns;   /* 0: we know nothing yet */
    int64_t consumer_created_ns; /* 0: not known */
    uint64_t applied_seq; /* up to here we have everything; at least the newest anchor's sequence */
    const struct pawl__nats_anchor *anchors; /* ascending */
    size_t anchor_count;
};

struct pawl__nats_seen {
    const struct pawl__nats_stream *stream;
    const struct pawl__nats_consumer *consumer; /* NULL: there is none */
    const enum pawl__nats_match *matches;       /* one per anchor */
    int64_t now_ns; /* wall clock: tells a purge from retention, and decides nothing else */
};

enum pawl__nats_verdict {
    PAWL__NATS_SAME,
    PAWL__NATS_RECREATED,     /* another stream of the same name */
    PAWL__NATS_ROLLED_BACK,   /* it lost its tail, and may have reused sequences */
    PAWL__NATS_PURGED,        /* messages that we do not have were removed */
    PAWL__NATS_OVERTAKEN,     /* retention removed messages that we do not have */
    PAWL__NATS_CONSUMER_LOST, /* the consumer is gone, made anew, or back at an earlier place */
};

struct pawl__nats_finding {
    enum pawl__nats_verdict verdict;
    bool renew_consumer; /* make it anew, at resume_seq */
    uint64_t resume_seq; /* from here on nothing is missed; what we have already comes again */
    uint64_t lost_from;  /* sequences that nobody can deliver any more; 0: none are known */
    uint64_t lost_to;
    /* time until retention by age reaches the first message that we do not have; INT64_MAX: never */
    int64_t margin_ns;
};

struct pawl__nats_finding pawl__nats_compare_stream(const struct pawl__nats_known *known,
                                                    const struct pawl__nats_seen *seen);
const char *pawl__nats_verdict_name(enum pawl__nats_verdict verdict);

/* What became of an anchor, from the message that is there now. */
enum pawl__nats_match pawl__nats_match_anchor(const struct pawl__nats_anchor *anchor,
                                              const struct pawl__nats_stored *stored);

/* An anchor of a message. */
struct pawl__nats_anchor pawl__nats_anchor_of(uint64_t sequence, int64_t stored_ns, pawl_view id);

/* --- are stream and consumer fit --- */

struct pawl__nats_difference {
    const char *field; /* as the nats command calls it */
    bool dangerous;    /* events would be lost or never come; otherwise only worth a warning */
    char found[48];
    char needed[48];
    const char *why;
};

struct pawl__nats_differences {
    struct pawl__nats_difference at[PAWL__NATS_DIFFERENCES_MAX];
    size_t count;
    size_t dangerous_count;
};

struct pawl__nats_differences pawl__nats_compare_consumer(
    const struct pawl__nats_consumer *consumer, const struct pawl__nats_consumer_need *need);
struct pawl__nats_differences pawl__nats_check_stream(const struct pawl__nats_stream *stream);

/* OK, or CONFLICT naming every dangerous difference: "consumer 'c': max_deliver is 5, must be -1 (why)". */
PAWL_MUST_USE pawl_status pawl__nats_refuse(const struct pawl__nats_differences *differences,
                                            const char *what,
                                            const char *name,
                                            pawl_error *reterr);

/* --- asking the server --- */

/* Reads what stands at each anchor: one call per anchor inside the stream. */
PAWL_MUST_USE pawl_status pawl__nats_match_anchors(struct pawl__nats *nats,
                                                   const struct pawl__nats_stream *stream,
                                                   const struct pawl__nats_known *known,
                                                   enum pawl__nats_match *ret_matches,
                                                   pawl_error *reterr);

#endif
