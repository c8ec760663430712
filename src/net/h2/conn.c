#include "net/h2/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "net/h2/tls.h"

enum {
    OUT_SIZE = 64 * 1024,
    FRAME_SIZE_MAX = 16384 + 9, /* what nghttp2 hands out at a time */
    NO_COPY_MIN = 4096,
    READS_MAX = 8 /* of one connection in a round: others wait */
};

void pawl__h2_conn_touch(struct pawl__h2_conn *conn)
{
    if (!conn->is_dirty) {
        conn->is_dirty = true;
        conn->dirty_next = conn->loop->dirty;
        conn->loop->dirty = conn;
    }
}

void pawl__h2_conn_fail(struct pawl__h2_conn *conn, const char *format, ...)
{
    va_list arguments;

    if (!conn->failing) {
        conn->failing = true;
        va_start(arguments, format);
        (void)vsnprintf(conn->why, sizeof(conn->why), format, arguments);
        va_end(arguments);
    }
    pawl__h2_conn_touch(conn);
}

void pawl__h2_conn_goodbye(struct pawl__h2_conn *conn, uint32_t code, const char *why)
{
    if (conn->session != NULL && !conn->failing) {
        (void)nghttp2_session_terminate_session(conn->session, code);
    }
    pawl__h2_conn_fail(conn, "%s", why);
}

void pawl__h2_conn_check_by(struct pawl__h2_conn *conn, int64_t at_ns)
{
    if (conn->state != PAWL__H2_CONN_CLOSED
        && (conn->timer.slot == 0 || at_ns < conn->timer.at_ns)) {
        pawl__h2_timer_set(&conn->loop->timers, &conn->timer, at_ns);
    }
}

int64_t pawl__h2_conn_check_ping(struct pawl__h2_conn *conn,
                                 int64_t now_ns,
                                 int64_t silence_ns,
                                 int64_t wait_ns)
{
    if (conn->ping_ns != 0 && conn->read_ns - conn->ping_ns > 0) {
        conn->ping_ns = 0; /* something came after we asked */
    }
    if (conn->ping_ns != 0) {
        if (now_ns - conn->ping_ns >= wait_ns) {
            pawl__h2_conn_fail(conn, "the peer does not answer");
        }
        return conn->ping_ns + wait_ns;
    }
    if (now_ns - conn->read_ns < silence_ns) {
        return conn->read_ns + silence_ns;
    }
    conn->ping_ns = now_ns;
    if (nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL) != 0) {
        pawl__h2_conn_fail(conn, "no memory");
    }
    pawl__h2_conn_touch(conn);
    return now_ns + wait_ns;
}

/* --- what goes out --- */

static bool has_output(const struct pawl__h2_conn *conn)
{
    return conn->piece_first < conn->piece_count;
}

static bool borrow_out(struct pawl__h2_conn *conn)
{
    if (conn->out == NULL) {
        conn->out = conn->loop->spare_out != NULL ? STEAL(conn->loop->spare_out) : malloc(OUT_SIZE);
    }
    return conn->out != NULL;
}

/* All of it was written: the buffer is there for others. */
static void return_out(struct pawl__h2_conn *conn)
{
    for (size_t i = 0; i < conn->piece_count; i++) {
        pawl__h2_chunk_unref(conn->holds[i]);
    }
    conn->piece_count = conn->piece_first = conn->out_used = 0;
    if (conn->loop->spare_out == NULL) {
        conn->loop->spare_out = conn->out;
    } else {
        free(conn->out);
    }
    conn->out = NULL;
}

/* Adds bytes to the gathered ones, of which there is room. */
static void gather(struct pawl__h2_conn *conn, const uint8_t *bytes, size_t len)
{
    char *to = &conn->out[conn->out_used];
    struct iovec *last = conn->piece_count == 0 ? NULL : &conn->pieces[conn->piece_count - 1];

    memcpy(to, bytes, len);
    conn->out_used += len;
    if (last != NULL && conn->holds[conn->piece_count - 1] == NULL
        && (char *)last->iov_base + last->iov_len == to) {
        last->iov_len += len;
        return;
    }
    conn->holds[conn->piece_count] = NULL;
    conn->pieces[conn->piece_count++] = (struct iovec){ .iov_base = to, .iov_len = len };
}

static bool has_room(const struct pawl__h2_conn *conn)
{
    return OUT_SIZE - conn->out_used >= FRAME_SIZE_MAX
           && PAWL__H2_PIECES_MAX - conn->piece_count >= 4;
}

int pawl__h2_conn_send_data(nghttp2_session *session,
                            nghttp2_frame *frame,
                            const uint8_t *head,
                            size_t len,
                            nghttp2_data_source *source,
                            void *user)
{
    struct pawl__h2_conn *conn = user;
    size_t done = 0;

    (void)session;
    (void)frame;
    if (!has_room(conn)) {
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    gather(conn, head, 9);
    conn->piece_count += pawl__h2_outbox_pieces(source->ptr,
                                                len,
                                                &conn->pieces[conn->piece_count],
                                                &conn->holds[conn->piece_count],
                                                2,
                                                &done);
    REQUIRE(done == len);
    return 0;
}

ssize_t pawl__h2_conn_read_outbox(struct pawl__h2_conn *conn,
                                  struct pawl__h2_outbox *outbox,
                                  uint8_t *to,
                                  size_t len,
                                  uint32_t *flags)
{
    size_t left = PAWL__H2_PREFIX_SIZE + outbox->head->len - outbox->offset;

    if (conn->ssl == NULL && left >= NO_COPY_MIN && len >= NO_COPY_MIN) {
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        return (ssize_t)MIN(left, len); /* of one chunk: two pieces at most */
    }
    return (ssize_t)pawl__h2_outbox_copy(outbox, to, len);
}

/* False: the session is lost. */
static bool fill(struct pawl__h2_conn *conn)
{
    const uint8_t *bytes = NULL;

    if (!borrow_out(conn)) {
        return false;
    }
    while (has_room(conn)) {
        ssize_t len = nghttp2_session_mem_send(conn->session, &bytes);
        if (len <= 0) {
            return len == 0;
        }
        gather(conn, bytes, (size_t)len);
    }
    return true;
}

/* Bytes written of the gathered ones; 0: not now; -1: lost. */
static ssize_t write_some(struct pawl__h2_conn *conn)
{
    struct iovec *pieces = &conn->pieces[conn->piece_first];
    ssize_t written = 0;

    if (conn->ssl != NULL) {
        return pawl__h2_tls_write(conn->ssl, pieces->iov_base, pieces->iov_len);
    }
    struct msghdr message = { .msg_iov = pieces,
                              .msg_iovlen = conn->piece_count - conn->piece_first };
    do {
        written = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
    } while (written < 0 && errno == EINTR);
    if (written < 0) {
        return errno == EAGAIN ? 0 : -1;
    }
    return written;
}

static void advance(struct pawl__h2_conn *conn, size_t written)
{
    while (written > 0) {
        struct iovec *piece = &conn->pieces[conn->piece_first];
        size_t part = MIN(written, piece->iov_len);
        piece->iov_base = (char *)piece->iov_base + part;
        piece->iov_len -= part;
        written -= part;
        conn->piece_first += piece->iov_len == 0 ? 1 : 0;
    }
}

/* Writes what is gathered. True: all of it. */
static bool write_out(struct pawl__h2_conn *conn)
{
    while (has_output(conn)) {
        ssize_t written = write_some(conn);
        if (written < 0) {
            pawl__h2_conn_fail(conn, "the connection was lost");
            return false;
        }
        int64_t now_ns = pawl__h2_loop_now(conn->loop);
        if (written == 0) {
            pawl__h2_pace_begin(&conn->pace, now_ns, conn->stall_ns);
            pawl__h2_conn_check_by(conn, conn->pace.by_ns);
            return false;
        }
        pawl__h2_pace_more(&conn->pace, now_ns, conn->stall_ns, (size_t)written);
        advance(conn, (size_t)written);
    }
    pawl__h2_pace_end(&conn->pace);
    if (conn->out != NULL) {
        return_out(conn);
    }
    return true;
}

static void wait_for(struct pawl__h2_conn *conn)
{
    bool out = has_output(conn) || conn->tls_wants_write || conn->state == PAWL__H2_CONN_CONNECTING;
    uint32_t events = (conn->state == PAWL__H2_CONN_CONNECTING ? 0U : (uint32_t)EPOLLIN)
                      | (out ? (uint32_t)EPOLLOUT : 0U);
    struct epoll_event event = { .events = events, .data.ptr = &conn->source };

    if (events != conn->events) {
        (void)epoll_ctl(conn->loop->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event);
        conn->events = events;
    }
}

static void flush(struct pawl__h2_conn *conn)
{
    if (conn->session == NULL) {
        return;
    }
    while (write_out(conn)) {
        if (!fill(conn)) {
            pawl__h2_conn_fail(conn, "no memory");
            return;
        }
        if (!has_output(conn)) {
            (void)write_out(conn); /* gives the buffer back */
            break;
        }
    }
    if (!conn->failing && !has_output(conn) && !nghttp2_session_want_read(conn->session)
        && !nghttp2_session_want_write(conn->session)) {
        pawl__h2_conn_fail(conn, "%s", "");
    }
}

/* --- what comes in --- */

static ssize_t read_some(struct pawl__h2_conn *conn, char *to, size_t size)
{
    ssize_t got = 0;

    if (conn->ssl != NULL) {
        return pawl__h2_tls_read(conn->ssl, to, size);
    }
    do {
        got = recv(conn->fd, to, size, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return errno == EAGAIN ? 0 : -1;
    }
    return got == 0 ? -1 : got;
}

static void read_in(struct pawl__h2_conn *conn)
{
    conn->read_again = false;
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t got = read_some(conn, conn->loop->in, PAWL__H2_IN_SIZE);
        if (got == 0) {
            return;
        }
        if (got < 0) {
            pawl__h2_conn_fail(conn, "the peer closed the connection");
            return;
        }
        conn->read_ns = pawl__h2_loop_now(conn->loop);
        ssize_t used =
            nghttp2_session_mem_recv(conn->session, (const uint8_t *)conn->loop->in, (size_t)got);
        if (used < 0) {
            /* Any of them is the end: after a flood nghttp2 sends no GOAWAY of its own. */
            pawl__h2_conn_goodbye(conn,
                                  used == NGHTTP2_ERR_NOMEM ? NGHTTP2_ENHANCE_YOUR_CALM
                                                            : NGHTTP2_PROTOCOL_ERROR,
                                  nghttp2_strerror((int)used));
        }
        if (conn->failing) {
            return;
        }
        if (conn->ssl == NULL && got < PAWL__H2_IN_SIZE) {
            return; /* the next one would say that there is no more */
        }
    }
    conn->read_again = conn->ssl != NULL; /* what OpenSSL holds, epoll does not see */
}

/* --- states --- */

static void open_session(struct pawl__h2_conn *conn)
{
    pawl_error error = PAWL_ERROR_INIT;

    conn->state = PAWL__H2_CONN_OPEN;
    conn->read_ns = pawl__h2_loop_now(conn->loop);
    if (conn->role->open(conn, &error) != PAWL_OK) {
        pawl__h2_conn_fail(conn, "%s", error.message);
    }
    pawl__h2_conn_touch(conn);
}

static void shake_hands(struct pawl__h2_conn *conn)
{
    pawl_error error = PAWL_ERROR_INIT;

    conn->tls_wants_write = false;
    switch (pawl__h2_tls_handshake(conn->ssl, &error)) {
    case PAWL__H2_TLS_DONE:
        open_session(conn);
        break;
    case PAWL__H2_TLS_WANTS_WRITE:
        conn->tls_wants_write = true;
        break;
    case PAWL__H2_TLS_WANTS_READ:
        break;
    default:
        pawl__h2_conn_fail(conn, "%s", error.message);
        break;
    }
}

static void finish_connect(struct pawl__h2_conn *conn)
{
    int number = 0;
    socklen_t size = sizeof(number);
    char text[64] = "";

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0 || number != 0) {
        pawl__h2_conn_fail(conn, "%s", strerror_r(number, text, sizeof(text)));
        return;
    }
    conn->state = PAWL__H2_CONN_HANDSHAKE;
    pawl__h2_conn_go(conn);
}

void pawl__h2_conn_go(struct pawl__h2_conn *conn)
{
    if (conn->state == PAWL__H2_CONN_HANDSHAKE && conn->ssl == NULL) {
        open_session(conn);
    } else if (conn->state == PAWL__H2_CONN_HANDSHAKE) {
        shake_hands(conn);
    }
    if (conn->state == PAWL__H2_CONN_OPEN && conn->session != NULL && !conn->failing) {
        read_in(conn);
    }
    pawl__h2_conn_touch(conn);
}

static void ready(struct pawl__h2_source *source, uint32_t events)
{
    struct pawl__h2_conn *conn = (struct pawl__h2_conn *)source;

    if (conn->state == PAWL__H2_CONN_CLOSED || conn->failing) {
        pawl__h2_conn_touch(conn);
        return;
    }
    if (conn->state == PAWL__H2_CONN_CONNECTING) {
        finish_connect(conn);
        return;
    }
    if (conn->state == PAWL__H2_CONN_HANDSHAKE || (events & ~(uint32_t)EPOLLOUT) != 0) {
        pawl__h2_conn_go(conn);
    }
    pawl__h2_conn_touch(conn);
}

static void fire(struct pawl__h2_timer *timer, int64_t now_ns)
{
    struct pawl__h2_conn *conn =
        (struct pawl__h2_conn *)((char *)timer - offsetof(struct pawl__h2_conn, timer));

    if (conn->pace.by_ns != INT64_MAX && now_ns - conn->pace.by_ns >= 0) {
        pawl__h2_conn_fail(conn, "the peer does not read");
        return;
    }
    int64_t next_ns = conn->role->check(conn, now_ns);
    if (!conn->failing) {
        pawl__h2_conn_check_by(conn, MIN(next_ns, conn->pace.by_ns));
    }
}

pawl_status pawl__h2_conn_init(struct pawl__h2_conn *conn,
                               struct pawl__h2_loop *loop,
                               const struct pawl__h2_role *role,
                               int fd,
                               SSL *ssl,
                               pawl_error *reterr)
{
    int on = 1;
    struct epoll_event event = { .data.ptr = &conn->source };

    conn->source.ready = ready;
    conn->timer.fire = fire;
    conn->role = role;
    conn->loop = loop;
    conn->fd = fd;
    conn->ssl = ssl;
    pawl__h2_pace_end(&conn->pace);
    if (!pawl__h2_loop_adopt(loop)) {
        pawl__fs_close(&conn->fd);
        SSL_free(ssl);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a connection");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    event.events = conn->events = conn->state == PAWL__H2_CONN_CONNECTING ? EPOLLOUT : EPOLLIN;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        int number = errno;
        pawl__h2_loop_release(loop, &conn->timer);
        pawl__fs_close(&conn->fd);
        SSL_free(ssl);
        return pawl__fail_errno(reterr, number, "wait for a socket");
    }
    return PAWL_OK;
}

static void close_conn(struct pawl__h2_conn *conn)
{
    conn->state = PAWL__H2_CONN_CLOSED;
    nghttp2_session_del(conn->session); /* tells of every stream that is left */
    conn->session = NULL;
    if (conn->out != NULL) {
        return_out(conn);
    }
    if (conn->ssl != NULL) {
        pawl__h2_tls_close(conn->ssl);
        conn->ssl = NULL;
    }
    pawl__fs_close(&conn->fd);
    pawl__h2_loop_release(conn->loop, &conn->timer);
    conn->role->closed(conn, conn->why);
}

static void settle(struct pawl__h2_conn *conn)
{
    if (conn->read_again && !conn->failing) {
        read_in(conn);
    }
    flush(conn);
    if (conn->failing) {
        close_conn(conn);
        return;
    }
    conn->is_dirty = false;
    if (conn->read_again) {
        pawl__h2_conn_touch(conn);
    }
    wait_for(conn);
}

void pawl__h2_conn_flush_dirty(struct pawl__h2_loop *loop)
{
    struct pawl__h2_conn *conn = STEAL(loop->dirty);

    while (conn != NULL) {
        struct pawl__h2_conn *next = conn->dirty_next;
        settle(conn); /* what it does on the way does not make it dirty again: it may be freed */
        conn = next;
    }
}
