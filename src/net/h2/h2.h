/* A gRPC server on HTTP/2: methods in, answers out, limits on everything. nghttp2 does the framing, OpenSSL the TLS.
 *
 *     static void check(struct pawl__h2_call *call, void *context)
 *     {
 *         pawl_view request = pawl__h2_request(call);        protobuf, decompressed
 *         ...
 *         pawl__h2_reply(call, &answer);                     or _fail, _refuse; now, or later from any thread
 *     }
 *     static const struct pawl__h2_method methods[] = {
 *         { .path = "/pawl.agent.v1.Query/QueryTelemetry", .handle = check, .blocks = true },
 *     };
 *     struct pawl__h2_options options = PAWL__H2_OPTIONS_INIT;
 *     options.methods = methods; ...
 *     pawl__h2_start(&options, &server, &error);
 *
 * Threads: each connection belongs to one of a few threads, which runs the callbacks of its calls; they must return
 * quickly and never block. `handle` of a method that `blocks` runs on a thread that does nothing else. A call may be
 * answered from any thread. */
#ifndef PAWL_NET_H2_H2_H
#define PAWL_NET_H2_H2_H

#include <pawl/pawl.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "net/h2/core/grpc.h"

struct pawl__h2;
struct pawl__h2_call;

/* Of the nghttp2 that is loaded: "1.52.0". */
const char *pawl__h2_library_version(void);

enum pawl__h2_kind {
    PAWL__H2_UNARY,
    PAWL__H2_SERVER_STREAM,
    PAWL__H2_CLIENT_STREAM,
    PAWL__H2_BIDI,
};

typedef void pawl__h2_handler(struct pawl__h2_call *call, void *context);

/* Between JSON and the bytes of a method's messages, for Connect (net/h2/service.h). */
struct pawl__h2_json {
    PAWL_MUST_USE pawl_status (*to_request)(pawl_view json,
                                            struct pawl__buf *ret_bytes,
                                            pawl_error *reterr);
    PAWL_MUST_USE pawl_status (*of_answer)(pawl_view bytes,
                                           struct pawl__buf *ret_json,
                                           pawl_error *reterr);
};

struct pawl__h2_method {
    const char *path; /* "/package.Service/Method" */
    enum pawl__h2_kind kind;
    bool blocks;    /* unary and server streams: `handle` runs on a thread of its own */
    bool open;      /* without authorize: health checks */
    unsigned scope; /* what options.authorize is told */
    pawl__h2_handler
        *handle; /* unary and server streams: the request is whole; others: the call begins */
    void (*message)(struct pawl__h2_call *call,
                    pawl_view message,
                    void *context); /* client streams, bidi */
    pawl__h2_handler *ended;        /* client streams, bidi: the client has sent its last message */
    pawl__h2_handler
        *ready; /* streams: after pawl__h2_send said BUSY, it has room again. NULL: nothing */
    pawl__h2_handler
        *gone; /* the call ended before it was finished, which is still to be done. NULL: nothing */
    void *context;
    const struct pawl__h2_json *json; /* NULL: no JSON */
};

/* Who calls. Views live during authorize. */
struct pawl__h2_caller {
    pawl_view path;
    unsigned scope;
    pawl_view authorization; /* the header; no data: none */
    const char *peer_name;   /* in its certificate, verified; NULL: none */
    bool loopback;
};

struct pawl__h2_tls {
    const char *certificate_file; /* PEM, with the chain */
    const char *key_file;         /* PEM */
    const char *
        ca_file; /* server: clients must have a certificate of it. Client: whom to trust; NULL: whom
                            * this machine trusts */
    const char *
        server_name; /* client: in the server's certificate, when it is not the host of the address */
};

struct pawl__h2_limits {
    size_t message_bytes_max; /* of one message, decompressed: 16 MiB and a bit */
    size_t header_bytes_max;  /* of a header list: names, values and 32 for each */
    size_t memory_bytes_max;  /* of all connections together: messages, answers, nghttp2 */
    size_t answer_bytes_max;  /* waiting to be sent on one call: then pawl__h2_send is BUSY */
    uint32_t connections_max;
    uint32_t streams_max;      /* at a time, on one connection */
    uint32_t resets_burst;     /* calls that a client may reset at once, on one connection, */
    uint32_t resets_per_s;     /* and then; 1,800 deadlines that pass at once are honest */
    uint32_t handshake_ms_max; /* from accept to the first SETTINGS, TLS included */
    uint32_t header_ms_max;    /* from the first frame of a header block to its last */
    uint32_t request_ms_max;   /* for the message of a unary call or server stream to arrive */
    uint32_t stall_ms_max;     /* without a client reading what waits to be sent */
    uint32_t idle_ms_max;      /* a connection without calls */
    uint32_t ping_ms; /* of silence, with calls, before the client is asked whether it is there */
    uint32_t ping_wait_ms_max; /* for its answer */
    uint32_t call_ms_max;      /* of a unary call without a deadline of its own; 0: none */
    uint32_t drain_ms_max; /* for the client to confirm that it knows of the end, when stopping */
};

struct pawl__h2_options {
    const char *
        listen; /* "127.0.0.1:4317"; port 0 is a free one. Without TLS only on loopback, unless `open` */
    bool open;                             /* plain text on other addresses too */
    const struct pawl__h2_method *methods; /* these and what they point to outlive the server */
    size_t method_count;
    const struct pawl__h2_tls *tls; /* NULL: h2c with prior knowledge */
    /* OK, or why not: DENIED is PERMISSION_DENIED, and UNAUTHENTICATED for a caller without authorization and
     * certificate. Runs before the message arrives, on a thread that serves other connections. NULL: all may. */
    PAWL_MUST_USE pawl_status (*authorize)(void *context,
                                           const struct pawl__h2_caller *caller,
                                           pawl_error *reterr);
    void *context; /* of authorize */
    struct pawl__clock
        *clock; /* NULL: the real one. Deadlines of calls run on it, so one that runs */
    uint32_t threads;
    uint32_t workers; /* for methods that block; 0 when none does */
    bool health;      /* grpc.health.v1.Health */
    bool reflection;  /* grpc.reflection.v1 and v1alpha */
    const pawl_view
        *descriptors; /* FileDescriptorSets with imports, for reflection. They outlive the server */
    size_t descriptor_count;
    struct pawl__h2_limits limits;
};

#define PAWL__H2_LIMITS_INIT                                                                       \
    {                                                                                              \
        .message_bytes_max = ((size_t)16 << 20) + 65536, .header_bytes_max = 16384,                \
        .memory_bytes_max = (size_t)256 << 20, .answer_bytes_max = (size_t)1 << 20,                \
        .connections_max = 1024, .streams_max = 128, .resets_burst = 5000, .resets_per_s = 2000,   \
        .handshake_ms_max = 10000, .header_ms_max = 10000, .request_ms_max = 60000,                \
        .stall_ms_max = 30000, .idle_ms_max = 600000, .ping_ms = 60000, .ping_wait_ms_max = 20000, \
        .call_ms_max = 0, .drain_ms_max = 1000,                                                    \
    }

#define PAWL__H2_OPTIONS_INIT                                                \
    {                                                                        \
        .listen = "127.0.0.1:0", .threads = 2, .workers = 2, .health = true, \
        .limits = PAWL__H2_LIMITS_INIT,                                      \
    }

/* BUSY: the address is in use. INVALID: a method's path, an address that is not loopback without TLS, a certificate. */
PAWL_MUST_USE pawl_status pawl__h2_start(const struct pawl__h2_options *options,
                                         struct pawl__h2 **ret_server,
                                         pawl_error *reterr);

/* "127.0.0.1:4317", with the port that it got. Lives as long as the server. */
const char *pawl__h2_listens_on(const struct pawl__h2 *server);

/* Takes no more connections, tells every client to send no new calls, waits for those that run, at the longest until
 * the monotonic deadline, and ends all connections. Calls that are kept may still be finished afterwards, for nothing,
 * also when the server is gone. PAWL_OK: it is freed. TIMEOUT: a handler that blocks does not come back; the server
 * stays, and this may be called again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__h2_stop(struct pawl__h2 *server,
                                        int64_t deadline_ns,
                                        pawl_error *reterr);

/* What health answers for a service ("" is the server): SERVING or NOT_SERVING. Every service of options.methods is
 * SERVING from the start. Watchers are told. A service that is not known is added. */
PAWL_MUST_USE pawl_status pawl__h2_set_serving(struct pawl__h2 *server,
                                               const char *service,
                                               bool serving,
                                               pawl_error *reterr);

/* What happened since the start; each number only grows, but for the gauges. */
struct pawl__h2_counts {
    uint64_t connections_open; /* now */
    uint64_t memory_bytes;     /* now */
    uint64_t connections;
    uint64_t refused; /* connections over connections_max */
    uint64_t calls;
    uint64_t failed;          /* calls that ended with another code than OK */
    uint64_t closed_by_limit; /* connections that a limit or timer ended */
};
void pawl__h2_counts(struct pawl__h2 *server, struct pawl__h2_counts *ret_counts);

/* --- a call. From handle, message, ended, ready and gone, or later until it is finished --- */

/* The message of a unary call or server stream. Lives until the call is finished. */
pawl_view pawl__h2_request(const struct pawl__h2_call *call);
/* A header of the request, by its name in lower case; no data: none. Lives until the call is finished. */
pawl_view pawl__h2_metadata(const struct pawl__h2_call *call, const char *name);
/* The name in the client's certificate, which was verified; NULL: none. */
const char *pawl__h2_peer_name(const struct pawl__h2_call *call);
/* Monotonic, on the server's clock; INT64_MAX: none. */
int64_t pawl__h2_deadline_ns(const struct pawl__h2_call *call);
/* Nobody waits for an answer any more: the client left, or the deadline passed. */
bool pawl__h2_is_gone(const struct pawl__h2_call *call);
/* What the handler keeps with a call; freed with it. Once. */
void pawl__h2_attach(struct pawl__h2_call *call, void *attached, void (*release)(void *attached));
void *pawl__h2_attached(const struct pawl__h2_call *call);

/* A message of a server stream or bidi. BUSY: too much waits to be sent; `ready` is called when it does not.
 * CANCELLED: the call is gone. */
PAWL_MUST_USE pawl_status pawl__h2_send(struct pawl__h2_call *call,
                                        pawl_view message,
                                        pawl_error *reterr);

/* Finishing: exactly once for each call that `handle` was given, also when it is gone. The call must not be used after
 * it. */

/* OK with the content of the buffer, which is emptied. A broken buffer: RESOURCE_EXHAUSTED. */
void pawl__h2_reply(struct pawl__h2_call *call, struct pawl__buf *message);
void pawl__h2_end(struct pawl__h2_call *call); /* OK, after the messages of a stream */
void pawl__h2_fail(struct pawl__h2_call *call, const pawl_error *error);
/* `details`: a google.rpc.Status, sent as grpc-status-details-bin; no data: none. */
void pawl__h2_refuse(struct pawl__h2_call *call,
                     enum pawl__h2_code code,
                     const char *message,
                     pawl_view details);

#endif
