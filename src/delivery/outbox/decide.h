/* What to do with an event, an answer and a stream. Pure: no clock, no I/O, no memory of its own.
 *
 * Order. A subject has one message under way at a time, and a message says which one must be the last of its subject
 * (expected-last-subject-sequence). So the stream has the messages of a subject in the order of their numbers, also
 * when the server lost its tail and nobody has noticed yet: it then refuses, and the stream is checked.
 *
 * Once. A message whose answer did not come may be stored. Before it is sent again the stream is asked for the last
 * message of the subject: one that this outbox sent, with this number or a higher one, means that it is there. (Another
 * outbox may have sent the same event, and not what was before it in ours.) That holds after the
 * server's duplicate window too. On a subject that others write to it does not; there the window has to do, and
 * beyond it the consumer's own index of ids.
 *
 * Kept. An acknowledgement is no proof of durability. An entry is kept until the same process of the server has had
 * it for longer than that takes to sync, and is then read back. */
#ifndef PAWL_DELIVERY_OUTBOX_DECIDE_H
#define PAWL_DELIVERY_OUTBOX_DECIDE_H

#include "base/decide/backoff.h"
#include "delivery/outbox/broker.h"
#include "delivery/outbox/store.h"

/* --- accepting --- */

enum outbox_admission { OUTBOX_NEW, OUTBOX_DUPLICATE, OUTBOX_CONFLICT };

enum outbox_admission pawl__delivery_outbox_admit(const struct outbox_hit *hit,
                                                  const struct delivery_hash *payload_hash);

/* Which of `count` partitions a key belongs to: a function of the key alone, for ever. */
PAWL_MUST_USE pawl_status pawl__delivery_outbox_partition(pawl_view key,
                                                          uint32_t count,
                                                          uint32_t *ret_partition,
                                                          pawl_error *reterr);

/* --- one subject --- */

enum outbox_phase {
    OUTBOX_ASK, /* the stream has to be asked for its last message */
    OUTBOX_READY,
    OUTBOX_UNDER_WAY,
};

struct outbox_subject {
    enum outbox_phase phase;
    uint64_t from;          /* pending entries of the subject have at least this number */
    uint64_t number;        /* of the one under way */
    uint64_t last_sequence; /* of its last message in the stream; 0: none */
    bool refused_order;     /* the last answer: another message came before */
    bool shared;            /* others write to it: its last message cannot be foretold */
    uint32_t attempts;      /* that failed, since the last success */
    int64_t wait_until_ns;
};

struct outbox_limits {
    struct pawl__backoff backoff;
    uint32_t attempts_max; /* of a message that is refused for a reason nobody knows */
};

/* The stream was asked; `head` is the first pending number. Returns the number up to which the subject's pending
 * entries are in the stream; 0: none are. */
uint64_t pawl__delivery_outbox_asked(struct outbox_subject *subject,
                                     const struct outbox_last *last,
                                     uint64_t head);

void pawl__delivery_outbox_sent(struct outbox_subject *subject, uint64_t number);

enum outbox_verdict {
    OUTBOX_STORED,
    OUTBOX_AGAIN, /* after wait_until_ns */
    OUTBOX_CHECK, /* the stream may have lost messages: compare it first */
    OUTBOX_FAIL,  /* never: it goes out of the way */
};

/* `random` spreads the waits. */
enum outbox_verdict pawl__delivery_outbox_answered(struct outbox_subject *subject,
                                                   const struct outbox_answer *answer,
                                                   const struct outbox_limits *limits,
                                                   int64_t now_ns,
                                                   uint64_t random);

/* --- what the stream has lost --- */

enum outbox_finding {
    OUTBOX_THERE,
    OUTBOX_LOST,
    OUTBOX_REMOVED, /* by the stream's own limits, or by somebody: it was there */
};

/* `found` a message at the sequence, and it has the entry's id. */
enum outbox_finding pawl__delivery_outbox_find(const struct outbox_kept *kept,
                                               const struct outbox_stream *stream,
                                               bool found,
                                               bool same_id);

/* The boundary between sequences for which something is so and those above for which it is not, by halving. At most
 * 64 steps: while _next is true, look at the first kept entry at or above *ret_sequence, and tell. */
struct outbox_search {
    uint64_t yes; /* the highest sequence known to be so */
    uint64_t no;  /* the lowest known not to be */
};

bool pawl__delivery_outbox_search_next(const struct outbox_search *search, uint64_t *ret_sequence);
/* `at` is the sequence of the entry that was looked at; that of no entry below `no`: UINT64_MAX. */
void pawl__delivery_outbox_search_told(struct outbox_search *search,
                                       uint64_t asked,
                                       uint64_t at,
                                       bool is_so);

/* --- what may be forgotten --- */

/* Kept by this process of the server for long enough. */
bool pawl__delivery_outbox_ripe(const struct outbox_kept *kept,
                                uint64_t session,
                                int64_t keep_ns,
                                int64_t now_ns);

#endif
