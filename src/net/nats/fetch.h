/* Pulling messages from a durable consumer, and acknowledging them one by one.
 *
 *     struct pawl__nats_batch batch = { 0 };
 *     status = pawl__nats_fetch(fetcher, &request, &batch, reterr);
 *     ... batch.messages[0 .. count) ... pawl__nats_ack(fetcher, &batch.messages[i], reterr) ...
 *     pawl__nats_batch_done(&batch);
 *
 * A fetcher belongs to one thread at a time. An acknowledgement is sent and not answered: one that is lost makes
 * the message come again. After a kill of the server messages may come again that were acknowledged, with the
 * same consumer sequence and without `redelivered`: only the message's own id tells. */
#ifndef PAWL_NET_NATS_FETCH_H
#define PAWL_NET_NATS_FETCH_H

#include "net/nats/nats.h"

enum { PAWL__NATS_BATCH_MAX = 100000, PAWL__NATS_EXPIRES_MS_MAX = 600000 };

struct pawl__cancel;
struct pawl__nats_fetcher;

PAWL_MUST_USE pawl_status pawl__nats_fetcher_open(struct pawl__nats *nats,
                                                  const char *stream,
                                                  const char *consumer,
                                                  struct pawl__nats_fetcher **ret_fetcher,
                                                  pawl_error *reterr);
DEFINE_AUTO(struct pawl__nats_fetcher *, pawl__nats_fetcher_close)

struct pawl__nats_request {
    int batch_max;     /* at most the consumer's max_ack_pending less what is not acknowledged */
    int64_t bytes_max; /* of all; one larger message comes alone. 0: no limit */
    int expires_ms;    /* how long to wait for the first message; 0: not at all */
    int heartbeat_ms; /* how often the server shows that it lives; at most half of expires_ms. 0: that, or 1 s */
    const struct pawl__cancel *cancel; /* NULL: nobody cancels */
};

struct pawl__nats_message {
    pawl_view subject;
    pawl_view payload;
    pawl_view id; /* Nats-Msg-Id; empty: none */
    uint64_t sequence;
    uint64_t consumer_sequence;
    int64_t stored_ns;
    uint64_t redelivered;    /* how often it came before, as far as the server remembers */
    uint64_t pending;        /* what the consumer still has after it */
    bool headers_unreadable; /* it has headers that are none by the protocol's rules */
    const char *reply; /* where it is acknowledged: all that ack, nak and in_progress need of it */
    void *native;
};

struct pawl__nats_batch {
    struct pawl__nats_message *messages;
    size_t count;
    size_t room;
    int64_t bytes;
};

/* What is there, at once; when nothing is, what comes first within expires_ms. OK without messages: idle (or a
 * late answer to the request before; it says nothing about the stream). UNAVAILABLE: link or heartbeat lost.
 * NOT_FOUND: the consumer is gone. CANCELLED. Messages that came before a failure are handed out with OK; the
 * next call meets the failure again. */
PAWL_MUST_USE pawl_status pawl__nats_fetch(struct pawl__nats_fetcher *fetcher,
                                           const struct pawl__nats_request *request,
                                           struct pawl__nats_batch *ret_batch,
                                           pawl_error *reterr);
void pawl__nats_batch_done(struct pawl__nats_batch *batch);

/* Headers in the order of their names' hash, a name with several values several times. Stops at the first status
 * that is not OK and returns it. */
typedef pawl_status pawl__nats_see_header(void *context,
                                          pawl_view name,
                                          pawl_view value,
                                          pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__nats_message_headers(const struct pawl__nats_message *message,
                                                     pawl__nats_see_header *see,
                                                     void *context,
                                                     pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__nats_ack(struct pawl__nats_fetcher *fetcher,
                                         const struct pawl__nats_message *message,
                                         pawl_error *reterr);

/* Come again, after `delay_ns`. */
PAWL_MUST_USE pawl_status pawl__nats_nak(struct pawl__nats_fetcher *fetcher,
                                         const struct pawl__nats_message *message,
                                         int64_t delay_ns,
                                         pawl_error *reterr);

/* Still at work: ack_wait begins again. */
PAWL_MUST_USE pawl_status pawl__nats_in_progress(struct pawl__nats_fetcher *fetcher,
                                                 const struct pawl__nats_message *message,
                                                 pawl_error *reterr);

/* The reply subject of a JetStream message, which carries what is known about it. False: it is none. Pure. */
PAWL_MUST_USE bool pawl__nats_parse_reply(const char *reply, struct pawl__nats_message *message);

#endif
