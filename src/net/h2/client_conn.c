/* A client's connection: dialling, and what nghttp2 tells it. */
#include "net/h2/client_internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/decide/backoff.h"
#include "base/os/fs.h"
#include "net/h2/core/frame.h"
#include "net/h2/tls.h"

enum {
    STREAM_WINDOW = 4 << 20, /* pages of 16 MiB are what we ask for */
    CONNECTION_WINDOW = 16 << 20,
    HEADER_BYTES_MAX = 32768,
    HEADER_OVERHEAD = 32,
    CONTROLS_BURST = 1000,
    CONTROLS_PER_S = 100,
    RETRY_MS_MIN = 100,
    CODE_MAX = 16,
};

/* --- calls on a connection --- */

static void put(nghttp2_nv *names, size_t *count, const char *name, const char *value)
{
    names[(*count)++] = (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                                      .value = (uint8_t *)(uintptr_t)value,
                                      .namelen = strlen(name),
                                      .valuelen = strlen(value),
                                      .flags = NGHTTP2_NV_FLAG_NONE };
}

static ssize_t read_request(nghttp2_session *session,
                            int32_t stream_id,
                            uint8_t *to,
                            size_t len,
                            uint32_t *flags,
                            nghttp2_data_source *source,
                            void *user)
{
    struct pawl__h2_client_stream *call =
        (struct pawl__h2_client_stream *)((char *)source->ptr
                                          - offsetof(struct pawl__h2_client_stream, out));
    ssize_t read = 0;

    (void)stream_id;
    if (nghttp2_session_get_stream_user_data(session, stream_id) != call) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it has ended, and may be gone */
    }
    if (call->out.bytes > 0) {
        size_t before = call->out.bytes;
        read = pawl__h2_conn_read_outbox(user, &call->out, to, len, flags);
        if ((*flags & NGHTTP2_DATA_FLAG_NO_COPY) != 0) {
            atomic_fetch_sub(&call->waiting_bytes, (size_t)read);
            return read;
        }
        atomic_fetch_sub(&call->waiting_bytes, before - call->out.bytes);
    }
    if (call->out.bytes > 0) {
        return read;
    }
    if (call->last) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return read;
    }
    call->deferred = read == 0;
    return read == 0 ? NGHTTP2_ERR_DEFERRED : read;
}

static int send_data(nghttp2_session *session,
                     nghttp2_frame *frame,
                     const uint8_t *head,
                     size_t len,
                     nghttp2_data_source *source,
                     void *user)
{
    struct pawl__h2_client_stream *call =
        (struct pawl__h2_client_stream *)((char *)source->ptr
                                          - offsetof(struct pawl__h2_client_stream, out));

    return nghttp2_session_get_stream_user_data(session, frame->hd.stream_id) == call
               ? pawl__h2_conn_send_data(session, frame, head, len, source, user)
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

bool pawl__h2_client_submit(struct h2_client_conn *conn, struct pawl__h2_client_stream *call)
{
    struct pawl__h2_client *client = call->client;
    nghttp2_data_provider provider = { .source.ptr = &call->out, .read_callback = read_request };
    char timeout[PAWL__H2_TIMEOUT_SIZE] = "";
    nghttp2_nv names[12];
    size_t count = 0;

    put(names, &count, ":method", "POST");
    put(names, &count, ":scheme", client->tls == NULL ? "http" : "https");
    put(names, &count, ":path", call->path);
    put(names, &count, ":authority", client->authority);
    put(names, &count, "te", "trailers");
    put(names, &count, "content-type", "application/grpc");
    put(names, &count, "user-agent", "pawl");
    put(names, &count, "grpc-accept-encoding", "identity,gzip");
    if (client->gzip) {
        put(names, &count, "grpc-encoding", "gzip");
    }
    if (call->deadline_ns != INT64_MAX) {
        int64_t left_ns = call->deadline_ns - pawl__h2_loop_now(client->loop);
        pawl__h2_timeout_format(MAX(left_ns, (int64_t)0), timeout);
        put(names, &count, "grpc-timeout", timeout);
    }
    if (client->authorization != NULL) {
        put(names, &count, "authorization", client->authorization);
    }
    call->stream_id =
        nghttp2_submit_request(conn->conn.session, NULL, names, count, &provider, call);
    if (call->stream_id < 0) {
        return false;
    }
    call->place = H2_ON_STREAM;
    call->conn = conn;
    call->before = NULL;
    call->next = conn->calls;
    if (call->next != NULL) {
        call->next->before = call;
    }
    conn->calls = call;
    conn->call_count++;
    pawl__h2_conn_check_by(&conn->conn, pawl__h2_loop_now(client->loop) + client->ping_ns);
    pawl__h2_conn_touch(&conn->conn);
    return true;
}

/* --- answers --- */

static void keep_header(struct pawl__h2_client_stream *call, pawl_view name, pawl_view value)
{
    if (pawl__view_is(name, ":status")) {
        call->http_status = value.len == 3 ? (unsigned)strtoul(value.data, NULL, 10) : 0;
    } else if (pawl__view_is(name, "content-type")) {
        call->is_grpc = value.len >= 16 && memcmp(value.data, "application/grpc", 16) == 0;
    } else if (pawl__view_is(name, "grpc-encoding")) {
        call->in.gzip = pawl__view_is(value, "gzip");
    } else if (pawl__view_is(name, "grpc-status")) {
        char digits[4] = "";
        memcpy(digits, value.data, MIN(value.len, sizeof(digits) - 1));
        long code = strtol(digits, NULL, 10);
        call->code = value.len > 0 && value.len <= 2 && code >= 0 && code <= CODE_MAX
                         ? (int)code
                         : PAWL__H2_UNKNOWN;
    } else if (pawl__view_is(name, "grpc-message")) {
        pawl__buf_clear(&call->text);
        pawl__h2_percent_decode(value, &call->text);
    } else if (pawl__view_is(name, "grpc-status-details-bin")) {
        pawl__buf_clear(&call->details);
        if (!pawl__h2_base64_decode(value, &call->details)) {
            pawl__buf_clear(&call->details);
        }
    }
}

static int on_header(nghttp2_session *session,
                     const nghttp2_frame *frame,
                     const uint8_t *name,
                     size_t name_len,
                     const uint8_t *value,
                     size_t value_len,
                     uint8_t flags,
                     void *user)
{
    struct h2_client_conn *conn = user;
    struct pawl__h2_client_stream *call =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags;
    if (call == NULL) {
        return 0;
    }
    call->header_bytes += name_len + value_len + HEADER_OVERHEAD;
    if (call->header_bytes > HEADER_BYTES_MAX) {
        pawl__h2_conn_goodbye(&conn->conn, NGHTTP2_ENHANCE_YOUR_CALM, "headers over 32 KiB");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    keep_header(call,
                (pawl_view){ (const char *)name, name_len },
                (pawl_view){ (const char *)value, value_len });
    return 0;
}

static int on_data_chunk(nghttp2_session *session,
                         uint8_t flags,
                         int32_t stream_id,
                         const uint8_t *data,
                         size_t len,
                         void *user)
{
    struct h2_client_conn *conn = user;
    struct pawl__h2_client_stream *call = nghttp2_session_get_stream_user_data(session, stream_id);
    pawl_view in = { (const char *)data, len };
    pawl_view message = { 0 };
    enum pawl__h2_code code = PAWL__H2_OK;
    pawl_error error = PAWL_ERROR_INIT;

    (void)flags;
    (void)nghttp2_session_consume(session, stream_id, len);
    pawl__h2_conn_touch(&conn->conn);
    while (call != NULL && call->is_grpc && in.len > 0) {
        enum pawl__h2_deframed found = pawl__h2_deframe(&call->in, &in, &message, &code, &error);
        if (found == PAWL__H2_BAD) {
            pawl__h2_client_fail(call, (int)code, "the answer: %s", error.message);
            return 0;
        }
        if (found == PAWL__H2_MESSAGE && call->message != NULL) {
            call->message(call->context, message);
            call =
                nghttp2_session_get_stream_user_data(session, stream_id); /* it may have ended it */
        }
    }
    return 0;
}

static void close_stream(struct pawl__h2_client_stream *call, uint32_t code)
{
    if (call->code >= 0) {
        pawl__h2_client_finish(
            call, call->code, pawl__buf_view(&call->text), pawl__buf_view(&call->details));
    } else if (code == NGHTTP2_REFUSED_STREAM || (!call->sent && code != NGHTTP2_NO_ERROR)) {
        pawl__h2_client_repeat(call, "the server refuses new calls");
    } else if (call->http_status != 0 && call->http_status != 200) {
        pawl__h2_client_fail(call,
                             (int)pawl__h2_code_of_http(call->http_status),
                             "'%s' answers with HTTP status %u",
                             call->client->authority,
                             call->http_status);
    } else if (call->http_status == 200 && !call->is_grpc) {
        pawl__h2_client_fail(
            call, PAWL__H2_UNKNOWN, "'%s' does not speak gRPC", call->client->authority);
    } else {
        int ours = code == NGHTTP2_CANCEL              ? PAWL__H2_CANCELLED
                   : code == NGHTTP2_ENHANCE_YOUR_CALM ? PAWL__H2_RESOURCE_EXHAUSTED
                                                       : PAWL__H2_INTERNAL;
        pawl__h2_client_fail(
            call, ours, "the stream ended without a status (%s)", nghttp2_http2_strerror(code));
    }
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user)
{
    struct pawl__h2_client_stream *call = nghttp2_session_get_stream_user_data(session, stream_id);

    (void)user;
    if (call != NULL) {
        close_stream(call, code);
    }
    return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct pawl__h2_client_stream *call =
        frame->hd.type == NGHTTP2_HEADERS
            ? nghttp2_session_get_stream_user_data(session, frame->hd.stream_id)
            : NULL;

    (void)user;
    if (call != NULL) {
        call->sent = true;
    }
    return 0;
}

static int on_frame_not_send(nghttp2_session *session,
                             const nghttp2_frame *frame,
                             int code,
                             void *user)
{
    (void)session;
    (void)user;
    (void)code;
    /* A request that nghttp2 held back and will not send: its stream is never made, so nothing closes it. */
    if (frame->hd.type == NGHTTP2_HEADERS) {
        struct h2_client_conn *conn = user;
        struct pawl__h2_client_stream *call = conn->calls;
        while (call != NULL && call->stream_id != frame->hd.stream_id) {
            call = call->next;
        }
        if (call != NULL) {
            pawl__h2_client_repeat(call, "the server takes no more calls on this connection");
        }
    }
    return 0;
}

/* New calls need a new connection; those that this one has go on. */
static void retire(struct h2_client_conn *conn)
{
    if (conn->client->current == conn) {
        conn->client->current = NULL;
    }
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_client_conn *conn = user;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        retire(conn);
        return 0;
    }
    if (frame->hd.type != NGHTTP2_SETTINGS && frame->hd.type != NGHTTP2_PING) {
        return 0;
    }
    if (!pawl__h2_bucket_take(&conn->controls, pawl__h2_loop_now(conn->conn.loop))) {
        pawl__h2_conn_goodbye(
            &conn->conn, NGHTTP2_ENHANCE_YOUR_CALM, "too many PING or SETTINGS frames");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (frame->hd.type == NGHTTP2_SETTINGS && !conn->settled) {
        conn->settled = true;
        conn->client->failures = 0;
        atomic_fetch_add(&conn->client->connects, 1);
        pawl__h2_client_send_waiting(conn->client);
    }
    return 0;
}

pawl_status pawl__h2_client_session_setup(struct pawl__h2_client *client, pawl_error *reterr)
{
    if (nghttp2_session_callbacks_new(&client->callbacks) != 0
        || nghttp2_option_new(&client->option) != 0) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an HTTP/2 client");
    }
    nghttp2_session_callbacks *callbacks = client->callbacks;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    nghttp2_option_set_no_auto_window_update(client->option, 1);
    nghttp2_option_set_no_closed_streams(client->option, 1);
    return PAWL_OK;
}

/* --- the connection --- */

static pawl_status open_session(struct pawl__h2_conn *base, pawl_error *reterr)
{
    static const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_BYTES_MAX },
    };
    struct h2_client_conn *conn = (struct h2_client_conn *)base;
    struct pawl__h2_client *client = conn->client;

    if (base->ssl != NULL
        && !pawl__h2_tls_peer_name(base->ssl, client->peer_name, sizeof(client->peer_name))) {
        client->peer_name[0] = '\0';
    }
    conn->controls = (struct pawl__h2_bucket)PAWL__H2_BUCKET_INIT(CONTROLS_BURST, CONTROLS_PER_S);
    if (nghttp2_session_client_new2(&base->session, client->callbacks, conn, client->option) != 0
        || nghttp2_submit_settings(base->session, NGHTTP2_FLAG_NONE, settings, COUNT_OF(settings))
               != 0
        || nghttp2_session_set_local_window_size(
               base->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW)
               != 0) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a connection");
    }
    return PAWL_OK;
}

static int64_t check(struct pawl__h2_conn *base, int64_t now_ns)
{
    struct h2_client_conn *conn = (struct h2_client_conn *)base;
    int64_t by_ns = conn->begun_ns + conn->client->connect_ns;

    if (!conn->settled) {
        if (now_ns - by_ns >= 0) {
            pawl__h2_conn_fail(base,
                               "it did not answer within %lld ms",
                               (long long)(conn->client->connect_ns / NS_PER_MS));
        }
        return by_ns;
    }
    return conn->call_count == 0
               ? INT64_MAX
               : pawl__h2_conn_check_ping(
                   base, now_ns, conn->client->ping_ns, conn->client->ping_wait_ns);
}

static void back_off(struct pawl__h2_client *client)
{
    const struct pawl__backoff backoff = { .first_ns = RETRY_MS_MIN * NS_PER_MS,
                                           .max_ns = client->reconnect_ns_max };
    uint64_t random = 0;

    if (pawl__random_bytes(pawl__random_real(), &random, sizeof(random), NULL) != PAWL_OK) {
        random = (uint64_t)pawl__h2_loop_now(client->loop); /* it only parts a herd */
    }
    client->failures++;
    client->retry_ns =
        pawl__h2_loop_now(client->loop) + pawl__backoff_ns(&backoff, client->failures, random);
}

/* Calls that it had: those that the server cannot have seen are sent again. */
static void end_calls(struct h2_client_conn *conn, const char *why)
{
    while (conn->calls != NULL) {
        struct pawl__h2_client_stream *call = conn->calls;
        if (call->sent) {
            pawl__h2_client_fail(call,
                                 PAWL__H2_UNAVAILABLE,
                                 "the connection to '%s' was lost: %s",
                                 call->client->authority,
                                 why);
        } else {
            pawl__h2_client_repeat(call, why);
        }
    }
}

static void closed(struct pawl__h2_conn *base, const char *why)
{
    struct h2_client_conn *conn = (struct h2_client_conn *)base;
    struct pawl__h2_client *client = conn->client;
    bool was_current = client->current == conn;

    retire(conn);
    if (was_current && !conn->settled) {
        (void)snprintf(client->why,
                       sizeof(client->why),
                       "%s",
                       why[0] == '\0' ? "it closed the connection" : why);
        back_off(client);
    }
    end_calls(conn, why[0] == '\0' ? "the server closed it" : why);
    if (client->waiting != NULL && !pawl__h2_client_dial(client)) {
        pawl__h2_client_fail_waiting(client);
    }
    if (conn->before != NULL) {
        conn->before->next = conn->next;
    } else {
        client->conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->before = conn->before;
    }
    free(conn);
    pawl__lock(&client->lock);
    client->conn_count--;
    pawl__cond_broadcast(&client->changed);
    pawl__unlock(&client->lock);
    pawl__h2_client_unref(client);
}

static const struct pawl__h2_role client_role = {
    .open = open_session,
    .check = check,
    .closed = closed,
};

static void cannot(struct pawl__h2_client *client, const char *what, int error_number)
{
    struct pawl__buf why = BUF_OVER(client->why);
    char text[64] = "";

    pawl__buf_add(&why, (pawl_view){ what, MIN(strlen(what), sizeof(client->why) / 2) });
    if (error_number != 0) {
        pawl__buf_add_format(&why, ": %s", strerror_r(error_number, text, sizeof(text)));
    }
    back_off(client);
}

static int open_socket(struct pawl__h2_client *client, const struct h2_address *address)
{
    int fd = socket(address->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        cannot(client, "make a socket", errno);
    } else if (connect(fd, &address->to.any, address->len) != 0 && errno != EINPROGRESS) {
        cannot(client, "connect", errno);
        pawl__fs_close(&fd);
    }
    return fd;
}

static bool connect_to(struct pawl__h2_client *client, const struct h2_address *address)
{
    SSL *ssl = NULL;
    int fd = open_socket(client, address);

    if (fd < 0) {
        return false;
    }
    struct h2_client_conn *conn = calloc(1, sizeof(*conn));
    pawl_error error = PAWL_ERROR_INIT;
    if (conn == NULL
        || (client->tls != NULL
            && pawl__h2_tls_connect(client->tls, fd, client->tls_name, &ssl, &error) != PAWL_OK)) {
        cannot(client, conn == NULL ? "no memory" : error.message, 0);
        pawl__fs_close(&fd);
        free(conn);
        return false;
    }
    conn->client = client;
    conn->conn.state = PAWL__H2_CONN_CONNECTING;
    conn->conn.stall_ns = client->ping_ns + client->ping_wait_ns;
    if (pawl__h2_conn_init(&conn->conn, client->loop, &client_role, fd, ssl, &error) != PAWL_OK) {
        cannot(client, error.message, 0);
        free(conn);
        return false;
    }
    conn->begun_ns = pawl__h2_loop_now(client->loop);
    conn->next = client->conns;
    if (conn->next != NULL) {
        conn->next->before = conn;
    }
    client->conns = conn;
    client->current = conn;
    atomic_fetch_add(&client->refs, 1);
    pawl__lock(&client->lock);
    client->conn_count++;
    pawl__unlock(&client->lock);
    pawl__h2_conn_check_by(&conn->conn, conn->begun_ns + client->connect_ns);
    return true;
}

/* --- names --- */

/* A name is looked up on a thread of its own, which may hang for as long as the system's resolver does. */
struct resolve {
    struct pawl__h2_post post;
    struct pawl__h2_client *client;
    struct h2_address address;
    int code;
};

static int look_up(const struct pawl__h2_client *client, int flags, struct h2_address *ret_address)
{
    const struct addrinfo hints = { .ai_flags = flags | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;

    int code = getaddrinfo(client->host, client->port, &hints, &found);
    if (code == 0) {
        ret_address->len = (socklen_t)MIN((size_t)found->ai_addrlen, sizeof(ret_address->to));
        memcpy(&ret_address->to, found->ai_addr, ret_address->len);
        freeaddrinfo(found);
    }
    return code;
}

static void resolved(struct pawl__h2_post *post)
{
    struct resolve *resolve = (struct resolve *)post;
    struct pawl__h2_client *client = resolve->client;

    client->resolving = false;
    pawl__lock(&client->lock);
    bool closing = client->closing;
    pawl__unlock(&client->lock);
    if (!closing && client->current == NULL && client->waiting != NULL) {
        if (resolve->code != 0) {
            cannot(client, gai_strerror(resolve->code), 0);
        }
        if (resolve->code != 0 || !connect_to(client, &resolve->address)) {
            pawl__h2_client_fail_waiting(client);
        }
    }
    pawl__h2_client_unref(client);
    free(resolve);
}

static void *run_resolve(void *context)
{
    struct resolve *resolve = context;
    struct pawl__h2_client *client = resolve->client;

    resolve->code = look_up(client, AI_ADDRCONFIG, &resolve->address);
    if (!pawl__h2_loop_post(client->loop, &resolve->post)) {
        pawl__h2_client_unref(client);
        free(resolve);
    }
    return NULL;
}

static bool begin_resolve(struct pawl__h2_client *client)
{
    struct resolve *resolve = calloc(1, sizeof(*resolve));
    pthread_attr_t attributes;
    pthread_t thread;

    if (resolve == NULL) {
        cannot(client, "no memory", 0);
        return false;
    }
    resolve->client = client;
    resolve->post.run = resolved;
    atomic_fetch_add(&client->refs, 1);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int code = pthread_create(&thread, &attributes, run_resolve, resolve);
    (void)pthread_attr_destroy(&attributes);
    if (code != 0) {
        cannot(client, "start a thread to look the name up", code);
        pawl__h2_client_unref(client);
        free(resolve);
        return false;
    }
    client->resolving = true;
    return true;
}

bool pawl__h2_client_dial(struct pawl__h2_client *client)
{
    struct h2_address address = { .len = 0 };

    if (client->resolving || (client->current != NULL && !client->current->conn.failing)) {
        return true;
    }
    if (pawl__h2_loop_now(client->loop) - client->retry_ns < 0 && client->failures > 0) {
        return false;
    }
    if (look_up(client, AI_NUMERICHOST, &address) == 0) {
        return connect_to(client, &address);
    }
    return begin_resolve(client);
}
