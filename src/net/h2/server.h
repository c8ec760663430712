/* What the files of the server share. */
#ifndef PAWL_NET_H2_SERVER_H
#define PAWL_NET_H2_SERVER_H

#include <stdatomic.h>

#include "base/core/arena.h"
#include "base/thread/queue.h"
#include "net/h2/conn.h"
#include "net/h2/service.h"

enum {
    H2_THREADS_MAX = 16,
    H2_WORKERS_MAX = 64,
    H2_HEADERS_MAX = 64,   /* of a request */
    H2_NAME_SIZE = 256,    /* of a peer */
    H2_MESSAGE_SIZE = 512, /* of grpc-message, before it is encoded */
    H2_DETAILS_MAX = 4096  /* of grpc-status-details-bin */
};

struct h2_server_loop;

struct h2_server_conn {
    struct pawl__h2_conn conn; /* first */
    struct h2_server_loop *home;
    struct h2_server_conn *next;
    struct h2_server_conn *before;
    struct pawl__h2_call *calls; /* whose stream is open */
    size_t call_count;
    uint64_t serial;
    int64_t accepted_ns;
    int64_t idle_ns;    /* since when it has had no call */
    int64_t headers_ns; /* since when a frame other than DATA is under way; 0: none is */
    int64_t drain_ns;   /* GOAWAY goes out then at the latest; 0: it is not draining */
    bool settled;       /* its SETTINGS came */
    bool goaway;        /* with the last id, was sent */
    bool loopback;
    size_t block_bytes;              /* of the header block that is under way */
    struct pawl__h2_bucket controls; /* PING and SETTINGS */
    struct pawl__h2_bucket empties;  /* frames that move nothing on */
    struct pawl__h2_bucket resets;   /* that we send, because of what the peer did */
    char peer_name[H2_NAME_SIZE];    /* empty: none */
};

struct h2_header {
    pawl_view name;
    pawl_view value;
};

struct h2_status {
    enum pawl__h2_code code;
    char message[H2_MESSAGE_SIZE];
    struct pawl__buf details;
};

/* One call. The stream has a reference while it is open, and the handler one until it finishes. All but the atomics is
 * the loop's thread's, as far as it is not written before the handler gets the call and never after. */
struct pawl__h2_call {
    struct pawl__h2_post post; /* finishing it from another thread; first */
    struct pawl__h2_post wake; /* it has room again */
    atomic_uint refs;
    atomic_bool gone;
    atomic_bool finished;  /* by the handler, who is told nothing more */
    atomic_size_t waiting; /* bytes to be sent, those included that are on their way to the loop */
    struct pawl__h2 *server; /* NULL: a local call */
    struct pawl__h2_loop *loop;
    const struct pawl__h2_method *method;
    struct h2_server_conn *conn; /* NULL: its stream has ended */
    struct pawl__h2_call *next;
    struct pawl__h2_call *before;
    int32_t stream_id;
    uint64_t serial; /* of the connection */
    struct pawl__h2_timer timer;
    /* the request */
    struct pawl__arena arena;
    struct h2_header headers[H2_HEADERS_MAX];
    size_t header_count;
    size_t header_bytes;
    bool header_refused; /* too many of them */
    const char *peer_name;
    struct pawl__h2_deframer in;
    struct pawl__buf held;    /* arrived, and not read while too much waits to be sent */
    size_t charged;           /* to the budget */
    struct pawl__buf request; /* of a unary call */
    bool has_request;
    bool ended; /* the client has sent all */
    bool ended_told;
    bool handed; /* to the handler, which has not finished it */
    bool answer_gzip;
    int64_t deadline_ns;
    int64_t request_by_ns;
    /* the answer */
    struct pawl__h2_outbox out;
    struct pawl__h2_pace pace;
    bool begun;            /* its headers were submitted */
    bool deferred;         /* nghttp2 waits to be told of more */
    bool early;            /* answered whole, and the client still sends */
    size_t dropped;        /* bytes that came after the answer */
    bool answered;         /* with a status: nothing follows */
    atomic_bool told_busy; /* a handler waits for room */
    bool waking;
    struct h2_status said;       /* what goes out: the loop's */
    struct h2_status final;      /* what the handler said: its own until it finishes */
    struct pawl__h2_chunk *last; /* the answer of a unary call, likewise */
    void *attached;
    void (*release)(void *attached);
    pawl__h2_local_done *local_done;
    void *local_context;
};

struct h2_server_loop {
    struct pawl__h2_loop loop; /* first */
    struct pawl__h2 *server;
    struct pawl__h2_source listener;
    struct pawl__h2_timer accept_timer; /* there were no descriptors: tries again */
    struct h2_server_conn *conns;
    bool listening;
};

struct h2_health;
struct h2_reflection;

struct pawl__h2 {
    struct pawl__lock lock; /* covers open */
    struct pawl__cond closed;
    size_t open; /* connections */
    atomic_uint refs;
    atomic_uint_fast64_t next_serial;
    struct pawl__h2_limits limits;
    struct pawl__h2_services services;
    struct pawl__h2_budget budget;
    pawl_status (*authorize)(void *context,
                             const struct pawl__h2_caller *caller,
                             pawl_error *reterr);
    void *context;
    struct pawl__clock *clock;
    SSL_CTX *tls;
    int listen_fd;
    char address[64];
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_mem mem;
    struct h2_server_loop *loops;
    size_t loop_count;
    struct pawl__queue *jobs; /* NULL: no method blocks */
    struct pawl__thread workers[H2_WORKERS_MAX];
    size_t worker_count;
    struct h2_health *health;
    struct h2_reflection *reflection;
    atomic_uint_fast64_t connections;
    atomic_uint_fast64_t refused;
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t failed;
    atomic_uint_fast64_t limited;
};

void pawl__h2_server_unref(struct pawl__h2 *server);

/* --- sessions (session.c) --- */

PAWL_MUST_USE pawl_status pawl__h2_session_setup(struct pawl__h2 *server, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__h2_session_open(struct pawl__h2_conn *base, pawl_error *reterr);
/* Looks at its timers; of the role. */
int64_t pawl__h2_session_check(struct pawl__h2_conn *base, int64_t now_ns);
/* Tells the client to send no new calls, waits until it knows, and closes when those that run have ended. */
void pawl__h2_session_drain(struct h2_server_conn *conn);
/* A limit ended the connection. */
void pawl__h2_session_limit(struct h2_server_conn *conn, const char *why);

/* --- what arrives on a call (request.c) --- */

void pawl__h2_call_headers(struct pawl__h2_call *call); /* its header block is whole */
void pawl__h2_call_bytes(struct pawl__h2_call *call, pawl_view bytes);
void pawl__h2_call_ended(struct pawl__h2_call *call);  /* the client half-closed */
void pawl__h2_call_resume(struct pawl__h2_call *call); /* there is room again for answers */

/* --- calls (call.c) --- */

struct pawl__h2_call *pawl__h2_call_new(struct h2_server_conn *conn,
                                        int32_t stream_id); /* NULL: no memory */
void pawl__h2_call_unref(struct pawl__h2_call *call);
/* Its stream has ended. */
void pawl__h2_call_detach(struct pawl__h2_call *call);
/* What the server itself answers; the handler is told that it is gone. */
PRINTF_LIKE(3, 4)
void pawl__h2_call_abort(struct pawl__h2_call *call,
                         enum pawl__h2_code code,
                         const char *format,
                         ...);
/* Brings the memory that the call holds to the budget's account; false: there is none left. */
PAWL_MUST_USE bool pawl__h2_call_charge(struct pawl__h2_call *call);
/* Sets its timer to what is next. */
void pawl__h2_call_arm(struct pawl__h2_call *call);
/* Its whole answer has been sent, and the client has not sent all. */
void pawl__h2_call_early(struct pawl__h2_call *call);
/* Bytes came that nobody wants. */
void pawl__h2_call_drop(struct pawl__h2_call *call, size_t bytes);
/* Hands it to the method's handler. */
void pawl__h2_call_hand(struct pawl__h2_call *call);

/* --- answers (answer.c) --- */

/* A status with what waits to be sent before it. */
void pawl__h2_answer(struct pawl__h2_call *call);
void pawl__h2_answer_message(struct pawl__h2_call *call, struct pawl__h2_chunk *chunk);
/* A callback of nghttp2. */
int pawl__h2_answer_send_data(nghttp2_session *session,
                              nghttp2_frame *frame,
                              const uint8_t *head,
                              size_t len,
                              nghttp2_data_source *source,
                              void *user);
/* One without gRPC: 405 and 415. */
void pawl__h2_answer_http(struct pawl__h2_call *call, const char *status);

/* --- threads for methods that block (workers.c) --- */

PAWL_MUST_USE pawl_status pawl__h2_workers_start(struct pawl__h2 *server,
                                                 uint32_t count,
                                                 pawl_error *reterr);
/* False: one is still in a handler at the deadline. */
PAWL_MUST_USE bool pawl__h2_workers_stop(struct pawl__h2 *server, int64_t deadline_ns);

/* --- services of its own (health.c, reflection.c) --- */

PAWL_MUST_USE pawl_status pawl__h2_health_add(struct pawl__h2 *server, pawl_error *reterr);
void pawl__h2_health_free(struct h2_health *health);
/* No watcher is told anything any more: their calls end. */
void pawl__h2_health_stop(struct pawl__h2 *server);
PAWL_MUST_USE pawl_status pawl__h2_reflection_add(struct pawl__h2 *server,
                                                  const struct pawl__h2_options *options,
                                                  pawl_error *reterr);
void pawl__h2_reflection_free(struct h2_reflection *reflection);

#endif
