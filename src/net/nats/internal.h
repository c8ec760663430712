/* What the files of the NATS wrapper share; nobody else includes it.
 *
 * Of cnats we use the connection, synchronous subscriptions and the JetStream calls that ask and answer once.
 * Pull requests, acknowledgements and publishes are a few bytes on subjects, and we write them ourselves
 * (fetch.c, publish.c say why): so no callback of cnats runs into objects of ours, but for the events below. */
#ifndef PAWL_NET_NATS_INTERNAL_H
#define PAWL_NET_NATS_INTERNAL_H

#include <nats/nats.h>

#include "base/decide/backoff.h"
#include "base/thread/cancel.h"
#include "base/thread/thread.h"
#include "net/nats/identity.h"
#include "net/nats/nats.h"

enum {
    NATS_SLICE_MS = 100, /* how often a wait looks whether the link is lost or somebody cancelled */
};

/* What cnats tells us on threads of its own. It may do so after the connection was closed, so this has two
 * owners: the connection, and cnats until its last callback. */
struct nats_events {
    struct pawl__lock lock; /* covers everything below */
    int owners;
    uint64_t refusals; /* how often the server forbade something */
    char refusal[160]; /* what it said last */
    bool credentials_refused;
    struct pawl__backoff backoff;  /* this and the next never change */
    struct nats_identity identity; /* here, because cnats may reconnect after we have gone */
};

struct pawl__nats {
    natsConnection *conn;
    jsCtx *js;
    struct nats_events *events;
    natsStatistics *statistics; /* this and the next under the lock of events */
    uint64_t reconnects;
    char *shown;
    int answer_ms_max;
    int connect_ms_max;
    size_t server_count;
    struct pawl__clock *clock;
};

/* error.c: the one place where a code of cnats or of JetStream becomes a status. */
pawl_status pawl__nats_status_of(natsStatus native, int code);

/* Fills the error: "what: text". `text` is the server's, or NULL. */
PRINTF_LIKE(5, 6)
pawl_status pawl__nats_fail(
    pawl_error *reterr, natsStatus native, int code, const char *text, const char *format, ...);

/* After an option was set. */
PAWL_MUST_USE pawl_status pawl__nats_fail_option(natsStatus native,
                                                 const char *what,
                                                 pawl_error *reterr);

/* After a JetStream call: as above with the text that cnats kept. A time-out of a call that the server forbade
 * is DENIED; `refusals` is what pawl__nats_refusals said before the call. */
PRINTF_LIKE(6, 7)
pawl_status pawl__nats_fail_call(struct pawl__nats *nats,
                                 uint64_t refusals,
                                 natsStatus native,
                                 jsErrCode code,
                                 pawl_error *reterr,
                                 const char *format,
                                 ...);
uint64_t pawl__nats_refusals(struct pawl__nats *nats);

/* UNAVAILABLE while the link is lost, DENIED when it was closed for good. Before anything is sent: cnats would
 * keep it and send it later, when the caller has long been told that it failed. */
PAWL_MUST_USE pawl_status pawl__nats_ready(struct pawl__nats *nats, pawl_error *reterr);

/* Options of a JetStream call, with our time limit. */
jsOptions pawl__nats_call_options(const struct pawl__nats *nats);

static inline int64_t pawl__nats_now_ns(const struct pawl__nats *nats)
{
    return pawl__monotonic_ns(nats->clock);
}

struct pawl__nats_wait {
    int64_t deadline_ns;
    uint64_t reconnects;
    const struct pawl__cancel *cancel; /* NULL: nobody cancels */
};

/* Waits for the next message of a subscription: OK, TIMEOUT at the deadline, UNAVAILABLE when the link broke
 * meanwhile (`reconnects` is what pawl__nats_reconnects said before), CANCELLED. */
PAWL_MUST_USE pawl_status pawl__nats_next(struct pawl__nats *nats,
                                          natsSubscription *subscription,
                                          const struct pawl__nats_wait *wait,
                                          natsMsg **ret_msg,
                                          pawl_error *reterr);

/* A subject of our own with room for a last part, and the subscription to all of them. */
struct nats_inbox {
    char prefix[64]; /* ends in '.' */
    natsSubscription *subscription;
};

PAWL_MUST_USE pawl_status pawl__nats_inbox_open(struct pawl__nats *nats,
                                                struct nats_inbox *ret_inbox,
                                                pawl_error *reterr);
void pawl__nats_inbox_done(struct nats_inbox *inbox);

/* The number behind the prefix; false when the subject is not of this inbox. */
bool pawl__nats_inbox_number(const struct nats_inbox *inbox,
                             const char *subject,
                             uint64_t *ret_number);

/* The status of a message that is no message ("404"), and its description; 0: it is one. */
int pawl__nats_msg_status(natsMsg *msg, const char **ret_description);

static inline void pawl__nats_msg_destroy(natsMsg **msg) /* for AUTO */
{
    natsMsg_Destroy(*msg);
}

#endif
