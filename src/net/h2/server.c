/* Starting and stopping a server, and accepting connections. */
#include "net/h2/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/fs.h"
#include "net/h2/tls.h"
#include "net/http/listen.h"

enum { ACCEPTS_MAX = 16, ACCEPT_PAUSE_MS = 100, LOOP_GRACE_MS = 5000 };

const char *pawl__h2_library_version(void)
{
    return nghttp2_version(0)->version_str;
}

/* --- connections --- */

static void conn_closed(struct pawl__h2_conn *base, const char *why)
{
    struct h2_server_conn *conn = (struct h2_server_conn *)base;
    struct pawl__h2 *server = conn->home->server;

    (void)why;
    while (conn->calls != NULL) {
        pawl__h2_call_detach(conn->calls);
    }
    if (conn->before != NULL) {
        conn->before->next = conn->next;
    } else {
        conn->home->conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->before = conn->before;
    }
    free(conn);
    pawl__lock(&server->lock);
    server->open--;
    pawl__cond_broadcast(&server->closed);
    pawl__unlock(&server->lock);
}

static const struct pawl__h2_role server_role = {
    .open = pawl__h2_session_open,
    .check = pawl__h2_session_check,
    .closed = conn_closed,
};

static bool is_loopback(const struct sockaddr_storage *from)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

    return from->ss_family == AF_INET
               ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
               : from->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static bool count_in(struct pawl__h2 *server)
{
    pawl__lock(&server->lock);
    bool room = server->open < server->limits.connections_max;
    server->open += room ? 1 : 0;
    pawl__unlock(&server->lock);
    atomic_fetch_add_explicit(
        room ? &server->connections : &server->refused, 1, memory_order_relaxed);
    return room;
}

static void count_out(struct pawl__h2 *server)
{
    pawl__lock(&server->lock);
    server->open--;
    pawl__cond_broadcast(&server->closed);
    pawl__unlock(&server->lock);
}

/* Takes the socket over. */
static void begin_conn(struct h2_server_loop *home, int fd, bool loopback)
{
    struct pawl__h2 *server = home->server;
    SSL *ssl = NULL;

    struct h2_server_conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL
        || (server->tls != NULL && pawl__h2_tls_accept(server->tls, fd, &ssl, NULL) != PAWL_OK)) {
        free(conn);
        pawl__fs_close(&fd);
        count_out(server);
        return;
    }
    conn->conn.state = PAWL__H2_CONN_HANDSHAKE;
    conn->conn.stall_ns = (int64_t)server->limits.stall_ms_max * NS_PER_MS;
    if (pawl__h2_conn_init(&conn->conn, &home->loop, &server_role, fd, ssl, NULL) != PAWL_OK) {
        free(conn);
        count_out(server);
        return;
    }
    conn->home = home;
    conn->serial = atomic_fetch_add(&server->next_serial, 1);
    conn->loopback = loopback;
    conn->accepted_ns = conn->idle_ns = pawl__h2_loop_now(&home->loop);
    conn->next = home->conns;
    if (conn->next != NULL) {
        conn->next->before = conn;
    }
    home->conns = conn;
    pawl__h2_conn_check_by(
        &conn->conn, conn->accepted_ns + (int64_t)server->limits.handshake_ms_max * NS_PER_MS);
    pawl__h2_conn_go(&conn->conn);
}

static pawl_status listen_on(struct h2_server_loop *home, bool on)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = &home->listener };

    if (home->listening == on) {
        return PAWL_OK;
    }
    home->listening = on;
    return epoll_ctl(home->loop.epoll_fd,
                     on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                     home->server->listen_fd,
                     &event)
                   == 0
               ? PAWL_OK
               : PAWL_IO;
}

/* Without descriptors the listener would be ready for ever: it rests. */
static void rest(struct h2_server_loop *home)
{
    (void)listen_on(home, false);
    pawl__h2_timer_set(&home->loop.timers,
                       &home->accept_timer,
                       pawl__h2_loop_now(&home->loop) + ACCEPT_PAUSE_MS * NS_PER_MS);
}

static void accept_again(struct pawl__h2_timer *timer, int64_t now_ns)
{
    struct h2_server_loop *home =
        (struct h2_server_loop *)((char *)timer - offsetof(struct h2_server_loop, accept_timer));

    (void)now_ns;
    if (listen_on(home, true) != PAWL_OK) {
        home->listening = false;
        rest(home);
    }
}

static void accept_ready(struct pawl__h2_source *source, uint32_t events)
{
    struct h2_server_loop *home =
        (struct h2_server_loop *)((char *)source - offsetof(struct h2_server_loop, listener));

    (void)events;
    for (int i = 0; home->listening && i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage from = { 0 };
        socklen_t size = sizeof(from);
        int fd = accept4(
            home->server->listen_fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && count_in(home->server)) {
            begin_conn(home, fd, is_loopback(&from));
        } else if (fd >= 0) {
            pawl__fs_close(&fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            rest(home);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* --- starting --- */

void pawl__h2_server_unref(struct pawl__h2 *server)
{
    if (atomic_fetch_sub(&server->refs, 1) > 1) {
        return;
    }
    for (size_t i = 0; i < server->loop_count; i++) {
        pawl__h2_loop_done(&server->loops[i].loop);
    }
    free(server->loops);
    pawl__queue_free(server->jobs);
    pawl__h2_health_free(server->health);
    pawl__h2_reflection_free(server->reflection);
    pawl__h2_services_done(&server->services);
    nghttp2_session_callbacks_del(server->callbacks);
    nghttp2_option_del(server->option);
    SSL_CTX_free(server->tls);
    pawl__fs_close(&server->listen_fd);
    pawl__lock_cond_done(&server->lock, &server->closed);
    free(server);
}

static pawl_status check_options(const struct pawl__h2_options *options, pawl_error *reterr)
{
    struct pawl__http_address address = { .ipv6 = false };

    TRY(pawl__http_address_parse(options->listen, &address, reterr));
    if (!address.loopback && options->tls == NULL && !options->open) {
        return pawl__fail(
            reterr,
            PAWL_INVALID,
            "'%s' is not loopback: give a certificate and key, or say that plain text is meant",
            options->listen);
    }
    if (options->threads == 0 || options->threads > H2_THREADS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%u threads: from 1 to %d are allowed",
                          (unsigned)options->threads,
                          H2_THREADS_MAX);
    }
    return PAWL_OK;
}

static struct pawl__h2 *make(const struct pawl__h2_options *options)
{
    struct pawl__h2 *server = calloc(1, sizeof(*server));

    if (server == NULL) {
        return NULL;
    }
    atomic_init(&server->refs, 1);
    atomic_init(&server->next_serial, 1);
    pawl__lock_cond_init(&server->lock, &server->closed);
    server->listen_fd = -1;
    server->limits = options->limits;
    server->budget.max = options->limits.memory_bytes_max;
    server->authorize = options->authorize;
    server->context = options->context;
    server->clock = pawl__clock_or_real(options->clock);
    return server;
}

static pawl_status start_loops(struct pawl__h2 *server, uint32_t count, pawl_error *reterr)
{
    server->loops = calloc(count, sizeof(*server->loops));
    TRY(pawl__check_memory(server->loops, "the threads of a server", reterr));
    for (; server->loop_count < count; server->loop_count++) {
        struct h2_server_loop *home = &server->loops[server->loop_count];
        TRY(pawl__h2_loop_start(&home->loop, "pawl-h2", server->clock, reterr));
        home->server = server;
        home->listener.ready = accept_ready;
        home->accept_timer.fire = accept_again;
    }
    return PAWL_OK;
}

struct listening {
    struct h2_server_loop *home;
    bool failed;
};

static void begin_listening(void *context)
{
    struct listening *listening = context;

    listening->failed =
        !pawl__h2_loop_adopt(&listening->home->loop) || listen_on(listening->home, true) != PAWL_OK;
}

static pawl_status listen_everywhere(struct pawl__h2 *server, pawl_error *reterr)
{
    for (size_t i = 0; i < server->loop_count; i++) {
        struct listening listening = { .home = &server->loops[i] };
        bool ran = pawl__h2_loop_call(&server->loops[i].loop, begin_listening, &listening);
        if (!ran || listening.failed) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory to listen on '%s'", server->address);
        }
    }
    return PAWL_OK;
}

static pawl_status start(struct pawl__h2 *server,
                         const struct pawl__h2_options *options,
                         pawl_error *reterr)
{
    TRY(pawl__h2_services_add(&server->services, options->methods, options->method_count, reterr));
    if (options->health) {
        TRY(pawl__h2_health_add(server, reterr));
    }
    if (options->reflection) {
        TRY(pawl__h2_reflection_add(server, options, reterr));
    }
    TRY(pawl__h2_session_setup(server, reterr));
    if (options->tls != NULL) {
        TRY(pawl__h2_tls_server(options->tls, &server->tls, reterr));
    }
    TRY(pawl__http_listen(
        options->listen, &server->listen_fd, server->address, sizeof(server->address), reterr));
    TRY(pawl__h2_workers_start(server, options->workers, reterr));
    TRY(start_loops(server, options->threads, reterr));
    return listen_everywhere(server, reterr);
}

pawl_status pawl__h2_start(const struct pawl__h2_options *options,
                           struct pawl__h2 **ret_server,
                           pawl_error *reterr)
{
    TRY(check_options(options, reterr));
    struct pawl__h2 *server = make(options);
    TRY(pawl__check_memory(server, "an HTTP/2 server", reterr));
    pawl_status status = start(server, options, reterr);
    if (status != PAWL_OK) {
        pawl_status stopped = pawl__h2_stop(server, INT64_MAX, NULL);
        REQUIRE(stopped == PAWL_OK); /* no handler has run */
        return status;
    }
    *ret_server = server;
    return PAWL_OK;
}

const char *pawl__h2_listens_on(const struct pawl__h2 *server)
{
    return server->address;
}

void pawl__h2_counts(struct pawl__h2 *server, struct pawl__h2_counts *ret_counts)
{
    pawl__lock(&server->lock);
    uint64_t open = server->open;
    pawl__unlock(&server->lock);
    *ret_counts = (struct pawl__h2_counts){
        .connections_open = open,
        .memory_bytes = atomic_load(&server->budget.used),
        .connections = atomic_load(&server->connections),
        .refused = atomic_load(&server->refused),
        .calls = atomic_load(&server->calls),
        .failed = atomic_load(&server->failed),
        .closed_by_limit = atomic_load(&server->limited),
    };
}

/* --- stopping --- */

static void drain_loop(void *context)
{
    struct h2_server_loop *home = context;

    (void)listen_on(home, false);
    pawl__h2_timer_remove(&home->loop.timers, &home->accept_timer);
    for (struct h2_server_conn *conn = home->conns; conn != NULL; conn = conn->next) {
        pawl__h2_session_drain(conn);
    }
}

static void end_loop(void *context)
{
    struct h2_server_loop *home = context;

    for (struct h2_server_conn *conn = home->conns; conn != NULL; conn = conn->next) {
        pawl__h2_conn_goodbye(&conn->conn, NGHTTP2_NO_ERROR, "the server stops");
    }
}

static bool wait_for_none(struct pawl__h2 *server, int64_t deadline_ns)
{
    bool in_time = true;

    pawl__lock(&server->lock);
    while (server->open > 0 && in_time) {
        in_time = pawl__cond_wait_until(&server->closed, &server->lock, deadline_ns);
    }
    bool none = server->open == 0;
    pawl__unlock(&server->lock);
    return none;
}

static void on_every_loop(struct pawl__h2 *server, void (*run)(void *context))
{
    for (size_t i = 0; i < server->loop_count; i++) {
        bool ran = pawl__h2_loop_call(&server->loops[i].loop, run, &server->loops[i]);
        (void)ran; /* one that has ended has no connections */
    }
}

pawl_status pawl__h2_stop(struct pawl__h2 *server, int64_t deadline_ns, pawl_error *reterr)
{
    if (server == NULL) {
        return PAWL_OK;
    }
    on_every_loop(server, drain_loop);
    pawl__h2_health_stop(server);
    if (!wait_for_none(server, deadline_ns)) {
        on_every_loop(server, end_loop);
        bool none =
            wait_for_none(server, INT64_MAX); /* sockets are closed without waiting for peers */
        REQUIRE(none);
    }
    int64_t grace_ns = pawl__monotonic_ns(server->clock) + LOOP_GRACE_MS * NS_PER_MS;
    if (!pawl__h2_workers_stop(server, MAX(deadline_ns, grace_ns))) {
        return pawl__fail(reterr,
                          PAWL_TIMEOUT,
                          "a handler of the server on '%s' does not return",
                          server->address);
    }
    for (size_t i = 0; i < server->loop_count; i++) {
        pawl__h2_loop_stop(&server->loops[i].loop);
    }
    for (size_t i = 0; i < server->loop_count; i++) {
        bool ended = pawl__h2_loop_join(&server->loops[i].loop, INT64_MAX);
        REQUIRE(ended);
    }
    pawl__h2_server_unref(server);
    return PAWL_OK;
}
