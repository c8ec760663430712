/* One connection of HTTP/2, of a server or a client: the socket, TLS, what goes out and the time it may take.
 * It belongs to its loop's thread. */
#ifndef PAWL_NET_H2_CONN_H
#define PAWL_NET_H2_CONN_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "net/h2/core/bucket.h"
#include "net/h2/outbox.h"

enum pawl__h2_conn_state {
    PAWL__H2_CONN_CONNECTING, /* TCP, of a client */
    PAWL__H2_CONN_HANDSHAKE,  /* TLS */
    PAWL__H2_CONN_OPEN,       /* it has a session */
    PAWL__H2_CONN_CLOSED,     /* and is freed at the end of the round */
};

struct pawl__h2_conn;

/* What a server's connection does otherwise than a client's. */
struct pawl__h2_role {
    /* The handshake is over: makes conn->session. */
    PAWL_MUST_USE pawl_status (*open)(struct pawl__h2_conn *conn, pawl_error *reterr);
    /* When to look again; it may end the connection. */
    int64_t (*check)(struct pawl__h2_conn *conn, int64_t now_ns);
    /* It is closed and its streams are: frees what it is part of. `why` may be empty. */
    void (*closed)(struct pawl__h2_conn *conn, const char *why);
};

enum { PAWL__H2_PIECES_MAX = 64, PAWL__H2_WHY_SIZE = 160 };

struct pawl__h2_conn {
    struct pawl__h2_source source; /* first */
    const struct pawl__h2_role *role;
    struct pawl__h2_loop *loop;
    struct pawl__h2_timer timer;
    enum pawl__h2_conn_state state;
    int fd;
    SSL *ssl; /* NULL: plain */
    nghttp2_session *session;
    uint32_t events; /* that epoll waits for */
    struct pawl__h2_conn *dirty_next;
    bool is_dirty;
    bool read_again; /* more has arrived than one round reads */
    bool failing;    /* what is to be sent is sent once, and then it is closed */
    bool tls_wants_write;
    int64_t read_ns;  /* bytes last arrived */
    int64_t ping_ns;  /* asked whether it is there, and not answered; 0: no */
    int64_t stall_ns; /* how long a peer may not read */
    struct pawl__h2_pace pace;
    /* gathered, on its way out */
    char *out; /* PAWL__H2_OUT_SIZE; NULL: nothing */
    size_t out_used;
    struct iovec pieces[PAWL__H2_PIECES_MAX];
    struct pawl__h2_chunk *holds[PAWL__H2_PIECES_MAX];
    size_t piece_count;
    size_t piece_first; /* not written yet */
    char why[PAWL__H2_WHY_SIZE];
};

/* Registers the socket, which is the connection's from here on, also when this fails. */
PAWL_MUST_USE pawl_status pawl__h2_conn_init(struct pawl__h2_conn *conn,
                                             struct pawl__h2_loop *loop,
                                             const struct pawl__h2_role *role,
                                             int fd,
                                             SSL *ssl,
                                             pawl_error *reterr);
/* From the state that it has on: tries what may be tried. */
void pawl__h2_conn_go(struct pawl__h2_conn *conn);

/* Something is to be sent at the end of the round. */
void pawl__h2_conn_touch(struct pawl__h2_conn *conn);

/* Ends it at the end of the round; the first reason stays. May be called from callbacks of nghttp2. */
PRINTF_LIKE(2, 3) void pawl__h2_conn_fail(struct pawl__h2_conn *conn, const char *format, ...);

/* The same after a GOAWAY with this code. */
void pawl__h2_conn_goodbye(struct pawl__h2_conn *conn, uint32_t code, const char *why);

/* Looks at its timers by then at the latest. */
void pawl__h2_conn_check_by(struct pawl__h2_conn *conn, int64_t at_ns);

/* Asks a silent peer whether it is there, when calls wait; when to look again. Ends the connection when it is not. */
int64_t pawl__h2_conn_check_ping(struct pawl__h2_conn *conn,
                                 int64_t now_ns,
                                 int64_t silence_ns,
                                 int64_t wait_ns);

/* Callbacks of nghttp2 whose source is a pawl__h2_outbox. */
int pawl__h2_conn_send_data(nghttp2_session *session,
                            nghttp2_frame *frame,
                            const uint8_t *head,
                            size_t len,
                            nghttp2_data_source *source,
                            void *user);
/* What a read callback does with an outbox that is not empty. */
ssize_t pawl__h2_conn_read_outbox(struct pawl__h2_conn *conn,
                                  struct pawl__h2_outbox *outbox,
                                  uint8_t *to,
                                  size_t len,
                                  uint32_t *flags);

void pawl__h2_conn_flush_dirty(struct pawl__h2_loop *loop);

#endif
