/* What the files of the client share. */
#ifndef PAWL_NET_H2_CLIENT_INTERNAL_H
#define PAWL_NET_H2_CLIENT_INTERNAL_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "net/h2/client.h"
#include "net/h2/conn.h"

enum {
    H2_HOST_SIZE = 256,
    H2_ATTEMPTS_MAX = 5, /* of a call that the server refuses to begin */
    H2_DIALER_THREADS_MAX = 16
};

struct pawl__h2_dialer {
    atomic_uint refs; /* its owner, clients, and threads that look a name up */
    atomic_uint next;
    size_t count;
    struct pawl__h2_loop loops[H2_DIALER_THREADS_MAX];
};
void pawl__h2_dialer_unref(struct pawl__h2_dialer *dialer);

struct h2_client_conn {
    struct pawl__h2_conn conn; /* first */
    struct pawl__h2_client *client;
    struct h2_client_conn *next;
    struct h2_client_conn *before;
    struct pawl__h2_client_stream *calls; /* that have a stream here */
    size_t call_count;
    int64_t begun_ns;
    bool settled; /* its SETTINGS came: calls go out */
    struct pawl__h2_bucket controls;
};

struct h2_address {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to;
};

struct pawl__h2_client {
    struct pawl__lock lock; /* covers conn_count, call_count and closing */
    struct pawl__cond changed;
    size_t conn_count;
    size_t call_count;
    bool closing;
    atomic_uint refs;
    atomic_uint_fast64_t connects;
    struct pawl__h2_dialer *dialer;
    bool own_dialer;
    struct pawl__h2_loop *loop;
    struct pawl__clock *clock;
    SSL_CTX *tls;
    char *tls_name;
    char *authority;
    char *authorization; /* NULL: none */
    char host[H2_HOST_SIZE];
    char port[8];
    bool gzip;
    size_t message_bytes_max;
    size_t calls_max;
    int64_t connect_ns;
    int64_t ping_ns;
    int64_t ping_wait_ns;
    int64_t reconnect_ns_max;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    /* the loop's */
    struct h2_client_conn *conns;
    struct h2_client_conn
        *current; /* to which new calls go; NULL: none, or a name is being looked up */
    bool resolving;
    struct pawl__h2_client_stream *waiting; /* for a connection */
    struct pawl__h2_client_stream **waiting_last;
    uint64_t failures;           /* since a connection last was good */
    int64_t retry_ns;            /* not before then */
    char why[PAWL__H2_WHY_SIZE]; /* the last attempt failed */
    char peer_name[H2_HOST_SIZE];
};

enum h2_client_place { H2_NOWHERE, H2_WAITING, H2_ON_STREAM };

struct pawl__h2_client_stream {
    struct pawl__h2_post post; /* begins it; first */
    struct pawl__h2_post half_close;
    struct pawl__h2_post cancel;
    atomic_uint refs; /* the loop until it is done, and the caller */
    atomic_bool ended;
    atomic_bool half_closing;
    atomic_bool cancelling;
    atomic_size_t waiting_bytes;
    struct pawl__h2_client *client;
    char *path;
    int64_t deadline_ns;
    void (*message)(void *context, pawl_view message);
    void (*done)(void *context, const struct pawl__h2_outcome *outcome);
    void *context;
    struct pawl__h2_timer timer;
    bool timed; /* adopted by the loop */
    bool single;
    enum h2_client_place place;
    struct pawl__h2_client_stream *next; /* waiting, or on the connection */
    struct pawl__h2_client_stream *before;
    struct h2_client_conn *conn;
    int32_t stream_id;
    unsigned attempts;
    bool sent; /* its headers went out */
    bool last; /* no more messages */
    bool deferred;
    struct pawl__h2_outbox out;
    /* the answer */
    struct pawl__h2_deframer in;
    size_t header_bytes;
    unsigned http_status;
    int code; /* -1: none came */
    bool is_grpc;
    struct pawl__buf text;
    struct pawl__buf details;
};

void pawl__h2_client_unref(struct pawl__h2_client *client);

/* --- calls (client_call.c); on the loop --- */

void pawl__h2_client_stream_unref(struct pawl__h2_client_stream *call);
/* Tells its caller; exactly once. */
void pawl__h2_client_finish(struct pawl__h2_client_stream *call,
                            int code,
                            pawl_view text,
                            pawl_view details);
PRINTF_LIKE(3, 4)
void pawl__h2_client_fail(struct pawl__h2_client_stream *call, int code, const char *format, ...);
/* Sends it when there is a connection, else it waits for one. */
void pawl__h2_client_place(struct pawl__h2_client_stream *call);
/* The server cannot have begun it: tries again, or tells its caller. */
void pawl__h2_client_repeat(struct pawl__h2_client_stream *call, const char *why);
/* Takes it out of where it is: the waiting or its connection. */
void pawl__h2_client_unplace(struct pawl__h2_client_stream *call);
/* The connection is ready, or there is none to be had. */
void pawl__h2_client_send_waiting(struct pawl__h2_client *client);
void pawl__h2_client_fail_waiting(struct pawl__h2_client *client);

/* --- connections (client_conn.c); on the loop --- */

/* Begins one unless there is one. False: not now, and client->why says why not. */
PAWL_MUST_USE bool pawl__h2_client_dial(struct pawl__h2_client *client);
PAWL_MUST_USE pawl_status pawl__h2_client_session_setup(struct pawl__h2_client *client,
                                                        pawl_error *reterr);
/* Opens a stream for a call; false: not on this connection. */
PAWL_MUST_USE bool pawl__h2_client_submit(struct h2_client_conn *conn,
                                          struct pawl__h2_client_stream *call);

#endif
