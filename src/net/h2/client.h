/* A gRPC client: one connection to one server, any number of calls at a time from any threads.
 *
 * It connects with the first call, and again after the connection was lost, with backoff. A call is sent again only
 * when the server cannot have begun it: it refused the stream (REFUSED_STREAM), its GOAWAY named a lower stream, or the
 * call was never sent. All else is told to the caller, who knows whether it may be repeated.
 *
 * Statuses of a call: pawl__h2_status_of(code), with the code in error.native: UNAVAILABLE (14) also for a server that
 * cannot be reached, TIMEOUT (4) at the deadline, NO_SPACE (8) for an answer that is too large. */
#ifndef PAWL_NET_H2_CLIENT_H
#define PAWL_NET_H2_CLIENT_H

#include "net/h2/h2.h"

struct pawl__h2_client;
struct pawl__h2_dialer;

/* Threads that several clients share. */
PAWL_MUST_USE pawl_status pawl__h2_dialer_start(uint32_t threads,
                                                struct pawl__clock *clock,
                                                struct pawl__h2_dialer **ret_dialer,
                                                pawl_error *reterr);
DEFINE_AUTO(struct pawl__h2_dialer *, pawl__h2_dialer_stop) /* its clients are closed */

struct pawl__h2_client_options {
    const char *address;            /* "127.0.0.1:4317", "[::1]:4317", "agent.example:4317" */
    const struct pawl__h2_tls *tls; /* NULL: h2c with prior knowledge */
    const char *token;              /* sent as "authorization: Bearer ..."; NULL: none */
    struct pawl__h2_dialer *dialer; /* whose threads it uses; NULL: one of its own */
    bool gzip;                      /* compress requests */
    size_t message_bytes_max;       /* of an answer, decompressed; 0: 16 MiB and a bit */
    size_t calls_max;               /* at a time, those that wait included; 0: 1000 */
    uint32_t connect_ms_max;        /* TCP, TLS and SETTINGS; 0: 5 s */
    uint32_t ping_ms;          /* of silence, with calls, before the server is asked; 0: 30 s */
    uint32_t ping_wait_ms_max; /* 0: 10 s */
    uint32_t reconnect_ms_max; /* ceiling of the wait between attempts; 0: 5 s */
    struct pawl__clock *clock; /* NULL: the real one */
};

/* Connects to nothing yet. INVALID: the address, a certificate. What it points to is copied. */
PAWL_MUST_USE pawl_status pawl__h2_client_open(const struct pawl__h2_client_options *options,
                                               struct pawl__h2_client **ret_client,
                                               pawl_error *reterr);
/* Ends every call with CANCELLED, in bounded time. Not from a callback of its own. */
DEFINE_AUTO(struct pawl__h2_client *, pawl__h2_client_close)

/* A unary call: waits for the answer until the monotonic deadline. The answer goes into the buffer, whose ceiling is
 * raised to message_bytes_max. Not from a callback. */
PAWL_MUST_USE pawl_status pawl__h2_client_call(struct pawl__h2_client *client,
                                               const char *path,
                                               pawl_view request,
                                               int64_t deadline_ns,
                                               struct pawl__buf *ret_answer,
                                               pawl_error *reterr);

/* How a call ended. Views live during the callback. */
struct pawl__h2_outcome {
    int code;          /* of gRPC */
    pawl_view message; /* decoded */
    pawl_view details; /* google.rpc.Status; no data: none */
    bool sent;         /* the server may have begun it */
};

/* A call with callbacks, on the client's thread: they return quickly, never block. */
struct pawl__h2_client_stream;
struct pawl__h2_client_ask {
    const char *path;
    int64_t deadline_ns; /* monotonic; INT64_MAX: none */
    pawl_view
        request; /* the first message, and with `single` the only one; no data and not single: none yet */
    bool
        single; /* unary or server stream: no message follows. Such a call may be sent again, see above */
    void (*message)(void *context, pawl_view message); /* NULL: dropped */
    void (*done)(void *context,
                 const struct pawl__h2_outcome *outcome); /* exactly once, the last one */
    void *context;
};

/* PAWL_OK: `done` will be called. *ret_stream (NULL: not wanted) is the caller's until _release. Any other status:
 * `done` is never called. */
PAWL_MUST_USE pawl_status pawl__h2_client_begin(struct pawl__h2_client *client,
                                                const struct pawl__h2_client_ask *ask,
                                                struct pawl__h2_client_stream **ret_stream,
                                                pawl_error *reterr);
/* Another message; BUSY: over 4 MiB wait to be sent. CLOSED: the call has ended. */
PAWL_MUST_USE pawl_status pawl__h2_client_send(struct pawl__h2_client_stream *call,
                                               pawl_view message,
                                               pawl_error *reterr);
void pawl__h2_client_half_close(struct pawl__h2_client_stream *call); /* no more messages */
void pawl__h2_client_cancel(struct pawl__h2_client_stream *call);     /* ends with CANCELLED */
DEFINE_AUTO(struct pawl__h2_client_stream *, pawl__h2_client_release) /* the call itself goes on */

/* How often a connection was made. */
uint64_t pawl__h2_client_connects(struct pawl__h2_client *client);

#endif
