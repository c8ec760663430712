#include "net/http/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "net/http/listen.h"

enum {
    RETRY_NS = 20 * 1000 * 1000, /* for a socket whose queue of connections is full */
    PIECE = 1 << 16
};

struct pawl__http_client {
    char *where; /* a path or an address */
    bool is_path;
    struct pawl__clock *clock;
    int fd;       /* -1: there is no connection */
    bool is_used; /* it has answered before */
    char piece[PIECE];
};

/* --- waiting --- */

static pawl_status too_late(const struct pawl__http_client *client, pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_TIMEOUT,
                      "the process that listens on '%s' does not answer; it may be stopped",
                      client->where);
}

static pawl_status wait_for(struct pawl__http_client *client,
                            short events,
                            int64_t deadline_ns,
                            pawl_error *reterr)
{
    struct pollfd waits = { .fd = client->fd, .events = events };

    for (;;) {
        int64_t left_ms =
            (deadline_ns - pawl__monotonic_ns(client->clock) + NS_PER_MS - 1) / NS_PER_MS;

        if (left_ms <= 0) {
            return too_late(client, reterr);
        }
        int ready = poll(&waits, 1, (int)MIN(left_ms, 60000));
        if (ready > 0) {
            return PAWL_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "wait for '%s'", client->where);
        }
    }
}

/* --- connecting --- */

static pawl_status not_reached(const struct pawl__http_client *client,
                               int error_number,
                               pawl_error *reterr)
{
    bool nobody = error_number == ENOENT || error_number == ECONNREFUSED;

    (void)pawl__fail_errno(reterr, error_number, "connect to '%s'", client->where);
    if (error_number == EACCES || error_number == EPERM) {
        return PAWL_DENIED;
    }
    if (reterr != NULL) {
        reterr->status = nobody ? PAWL_NOT_FOUND : PAWL_UNAVAILABLE;
    }
    return nobody ? PAWL_NOT_FOUND : PAWL_UNAVAILABLE;
}

/* What a connect that was begun came to. */
static pawl_status finish_connect(struct pawl__http_client *client,
                                  int64_t deadline_ns,
                                  pawl_error *reterr)
{
    int error = 0;
    socklen_t size = sizeof(error);

    TRY(wait_for(client, POLLOUT, deadline_ns, reterr));
    if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    return error == 0 ? PAWL_OK : not_reached(client, error, reterr);
}

static pawl_status connect_to(struct pawl__http_client *client,
                              const struct sockaddr *address,
                              socklen_t size,
                              int64_t deadline_ns,
                              pawl_error *reterr)
{
    client->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) {
        return pawl__fail_errno(reterr, errno, "make a socket for '%s'", client->where);
    }
    while (connect(client->fd, address, size) != 0) {
        if (errno == EINPROGRESS) {
            return finish_connect(client, deadline_ns, reterr);
        }
        /* AF_UNIX says EAGAIN while the queue is full, and nothing tells when it is not any more. */
        if (errno != EAGAIN && errno != EINTR) {
            return not_reached(client, errno, reterr);
        }
        if (pawl__monotonic_ns(client->clock) >= deadline_ns) {
            return too_late(client, reterr);
        }
        pawl__sleep_until(client->clock, pawl__monotonic_ns(client->clock) + RETRY_NS);
    }
    return PAWL_OK;
}

static pawl_status connect_path(struct pawl__http_client *client,
                                int64_t deadline_ns,
                                pawl_error *reterr)
{
    struct sockaddr_un address;
    AUTO(pawl__fs_close) int directory = -1;
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (pawl__http_unix_address(client->where, &address, &directory, reterr) != PAWL_OK) {
        return not_reached(client, ENOENT, reterr); /* its directory is not there either */
    }
    TRY(connect_to(
        client, (const struct sockaddr *)&address, sizeof(address), deadline_ns, reterr));
    /* Somebody else's process would be told what this user does. */
    if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0
        || (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0)) {
        return pawl__fail(reterr,
                          PAWL_DENIED,
                          "the process that listens on '%s' belongs to another user",
                          client->where);
    }
    return PAWL_OK;
}

static pawl_status connect_address(struct pawl__http_client *client,
                                   int64_t deadline_ns,
                                   pawl_error *reterr)
{
    struct pawl__http_address to;
    int on = 1;

    TRY(pawl__http_address_parse(client->where, &to, reterr));
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(to.port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(to.port) };
    memcpy(&v4.sin_addr, to.bytes, sizeof(v4.sin_addr));
    memcpy(&v6.sin6_addr, to.bytes, sizeof(v6.sin6_addr));
    TRY(to.ipv6
            ? connect_to(client, (const struct sockaddr *)&v6, sizeof(v6), deadline_ns, reterr)
            : connect_to(client, (const struct sockaddr *)&v4, sizeof(v4), deadline_ns, reterr));
    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return PAWL_OK;
}

static void disconnect(struct pawl__http_client *client)
{
    pawl__fs_close(&client->fd);
    client->fd = -1;
    client->is_used = false;
}

static pawl_status reconnect(struct pawl__http_client *client,
                             int64_t deadline_ns,
                             pawl_error *reterr)
{
    disconnect(client);
    pawl_status status = client->is_path ? connect_path(client, deadline_ns, reterr)
                                         : connect_address(client, deadline_ns, reterr);
    if (status != PAWL_OK) {
        disconnect(client);
    }
    return status;
}

/* One that was there before and is gone has stopped: NOT_FOUND would be said of what is asked for. */
static pawl_status connect_again(struct pawl__http_client *client,
                                 int64_t deadline_ns,
                                 pawl_error *reterr)
{
    pawl_status status = reconnect(client, deadline_ns, reterr);

    return status != PAWL_NOT_FOUND ? status
                                    : pawl__fail(reterr,
                                                 PAWL_UNAVAILABLE,
                                                 "the process that listened on '%s' has stopped",
                                                 client->where);
}

static pawl_status open_client(const char *where,
                               bool is_path,
                               struct pawl__clock *clock,
                               int64_t deadline_ns,
                               struct pawl__http_client **ret_client,
                               pawl_error *reterr)
{
    AUTO(pawl__http_client_close_p) struct pawl__http_client *client = calloc(1, sizeof(*client));

    TRY(pawl__check_memory(client, "a connection", reterr));
    client->fd = -1;
    client->is_path = is_path;
    client->clock = pawl__clock_or_real(clock);
    client->where = strdup(where);
    TRY(pawl__check_memory(client->where, "a connection", reterr));
    TRY(reconnect(client, deadline_ns, reterr));
    *ret_client = STEAL(client);
    return PAWL_OK;
}

pawl_status pawl__http_client_open_unix(const char *path,
                                        struct pawl__clock *clock,
                                        int64_t deadline_ns,
                                        struct pawl__http_client **ret_client,
                                        pawl_error *reterr)
{
    return open_client(path, true, clock, deadline_ns, ret_client, reterr);
}

pawl_status pawl__http_client_open(const char *address,
                                   struct pawl__clock *clock,
                                   int64_t deadline_ns,
                                   struct pawl__http_client **ret_client,
                                   pawl_error *reterr)
{
    return open_client(address, false, clock, deadline_ns, ret_client, reterr);
}

void pawl__http_client_close(struct pawl__http_client *client)
{
    if (client != NULL) {
        disconnect(client);
        free(client->where);
        free(client);
    }
}

/* --- asking --- */

/* Whether the server has ended the connection while nobody asked, as it does after a while. */
static bool has_ended(struct pawl__http_client *client)
{
    char byte = '\0';

    return client->fd < 0
           || (client->is_used
               && (recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN));
}

/* A server that refuses a request may answer and close before all of it is sent: the answer says why. */
static pawl_status send_all(struct pawl__http_client *client,
                            pawl_view bytes,
                            int64_t deadline_ns,
                            pawl_error *reterr)
{
    while (bytes.len > 0) {
        pawl_view sent_bytes;
        ssize_t sent = send(client->fd, bytes.data, bytes.len, MSG_NOSIGNAL);

        if (sent >= 0) {
            (void)!pawl__view_take(&bytes, (size_t)sent, &sent_bytes);
        } else if (errno == EAGAIN) {
            TRY(wait_for(client, POLLOUT, deadline_ns, reterr));
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return PAWL_OK;
        } else if (errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "send to '%s'", client->where);
        }
    }
    return PAWL_OK;
}

static pawl_status send_request(struct pawl__http_client *client,
                                const struct pawl__http_ask *ask,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf head = BUF_INIT(HTTP_REPLY_HEAD_MAX);

    pawl__buf_add_format(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\n", ask->method, ask->target);
    if (ask->body.data != NULL) {
        pawl__buf_add_format(
            &head, "Content-Type: application/json\r\nContent-Length: %zu\r\n", ask->body.len);
    }
    pawl__buf_add_text(&head, ask->headers == NULL ? "" : ask->headers);
    pawl__buf_add_text(&head, "\r\n");
    TRY(pawl__buf_check(&head, "the request", reterr));
    TRY(send_all(client, pawl__buf_view(&head), ask->deadline_ns, reterr));
    return send_all(client, ask->body, ask->deadline_ns, reterr);
}

static pawl_status ended_early(const struct pawl__http_client *client,
                               struct pawl__http_reply *reply,
                               pawl_error *reterr)
{
    bool nothing = reply->state == HTTP_REPLY_HEAD && reply->text.len == 0;

    if (!nothing && pawl__http_reply_end(reply, reterr) == PAWL_OK) {
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      PAWL_UNAVAILABLE,
                      "the process that listens on '%s' ended the connection before %s",
                      client->where,
                      nothing ? "it answered" : "its answer was whole");
}

static pawl_status receive(struct pawl__http_client *client,
                           int64_t deadline_ns,
                           struct pawl__http_reply *reply,
                           pawl_error *reterr)
{
    while (reply->state != HTTP_REPLY_DONE) {
        ssize_t got = recv(client->fd, client->piece, sizeof(client->piece), 0);

        if (got > 0) {
            pawl_view bytes = { client->piece, (size_t)got };

            TRY(pawl__http_reply_feed(reply, &bytes, reterr));
            reply->closes = reply->closes || bytes.len > 0; /* something that nobody asked for */
        } else if (got == 0 || errno == ECONNRESET) {
            return ended_early(client, reply, reterr);
        } else if (errno == EAGAIN) {
            TRY(wait_for(client, POLLIN, deadline_ns, reterr));
        } else if (errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "read from '%s'", client->where);
        }
    }
    return PAWL_OK;
}

pawl_status pawl__http_client_ask(struct pawl__http_client *client,
                                  const struct pawl__http_ask *ask,
                                  struct pawl__http_reply *ret_reply,
                                  pawl_error *reterr)
{
    AUTO(pawl__http_reply_done) struct pawl__http_reply reply;

    pawl__http_reply_init(&reply, ask->body_bytes_max, ask->sink, ask->context);
    reply.no_body = strcmp(ask->method, "HEAD") == 0;
    if (has_ended(client)) {
        TRY(connect_again(client, ask->deadline_ns, reterr));
    }
    pawl_status status = send_request(client, ask, reterr);
    if (status == PAWL_OK) {
        status = receive(client, ask->deadline_ns, &reply, reterr);
    }
    client->is_used = true;
    if (status != PAWL_OK || reply.closes) {
        disconnect(client);
    }
    if (status == PAWL_OK) {
        *ret_reply = reply;
        ret_reply->text = (struct pawl__buf)BUF_INIT(0);
    }
    return status;
}
