/* What nghttp2 tells a server's connection, and the limits that it does not keep itself. */
#include "net/h2/server.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "net/h2/tls.h"

enum {
    STREAM_WINDOW = 1 << 20,
    CONNECTION_WINDOW = 4 << 20,
    CONTROLS_BURST = 100,
    CONTROLS_PER_S = 20,
    EMPTIES_BURST = 1000,
    EMPTIES_PER_S = 100,
    OUR_RESETS_BURST = 1000,
    OUR_RESETS_PER_S = 200,
    BLOCK_TIMES_MAX = 4, /* of the limit on headers, before more than the call is refused */
    HEADER_OVERHEAD = 32 /* by RFC 9113 */
};

static const uint8_t drain_ping[8] = { 'p', 'a', 'w', 'l', 'd', 'r', 'n', '1' };

void pawl__h2_session_limit(struct h2_server_conn *conn, const char *why)
{
    if (!conn->conn.failing) {
        atomic_fetch_add_explicit(&conn->home->server->limited, 1, memory_order_relaxed);
    }
    pawl__h2_conn_goodbye(&conn->conn, NGHTTP2_ENHANCE_YOUR_CALM, why);
}

static struct pawl__h2_call *call_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int64_t now_of(struct h2_server_conn *conn)
{
    return pawl__h2_loop_now(conn->conn.loop);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    struct h2_server_conn *conn = user;

    (void)session;
    if (head->type != NGHTTP2_DATA && conn->headers_ns == 0) {
        conn->headers_ns = now_of(conn);
        pawl__h2_conn_check_by(&conn->conn,
                               conn->headers_ns
                                   + (int64_t)conn->home->server->limits.header_ms_max * NS_PER_MS);
    }
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_server_conn *conn = user;

    conn->block_bytes = 0;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    struct pawl__h2_call *call = pawl__h2_call_new(conn, frame->hd.stream_id);
    if (call == NULL) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    (void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static void keep_header(struct pawl__h2_call *call, pawl_view name, pawl_view value)
{
    size_t bytes = name.len + value.len + HEADER_OVERHEAD;
    struct h2_header *header = &call->headers[call->header_count];

    if (call->header_refused) {
        return;
    }
    call->header_bytes += bytes;
    call->header_refused = call->header_bytes > call->server->limits.header_bytes_max
                           || call->header_count == H2_HEADERS_MAX
                           || !pawl__arena_copy(&call->arena, name, &header->name)
                           || !pawl__arena_copy(&call->arena, value, &header->value);
    if (!call->header_refused) {
        call->header_count++;
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
    struct h2_server_conn *conn = user;
    struct pawl__h2_call *call = call_of(session, frame->hd.stream_id);
    size_t max = conn->home->server->limits.header_bytes_max;

    (void)flags;
    /* Decoding alone costs time: a block far over the limit ends the connection. */
    conn->block_bytes += name_len + value_len + HEADER_OVERHEAD;
    if (conn->block_bytes > BLOCK_TIMES_MAX * max) {
        pawl__h2_session_limit(conn, "a header block far over the limit");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (call != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        keep_header(call,
                    (pawl_view){ (const char *)name, name_len },
                    (pawl_view){ (const char *)value, value_len });
    }
    return 0;
}

/* The client has confirmed that it knows of the end: what it sends from here on, it sends knowingly. */
static void send_goaway(struct h2_server_conn *conn)
{
    nghttp2_session *session = conn->conn.session;

    if (!conn->goaway) {
        conn->goaway = true;
        (void)nghttp2_submit_goaway(session,
                                    NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(session),
                                    NGHTTP2_NO_ERROR,
                                    NULL,
                                    0);
        pawl__h2_conn_touch(&conn->conn);
    }
}

static int control_received(struct h2_server_conn *conn, const nghttp2_frame *frame)
{
    bool ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;

    if (frame->hd.type == NGHTTP2_SETTINGS) {
        conn->settled = true;
    }
    if (ack && frame->hd.type == NGHTTP2_PING
        && memcmp(frame->ping.opaque_data, drain_ping, sizeof(drain_ping)) == 0
        && conn->drain_ns != 0) {
        send_goaway(conn);
    }
    if (!pawl__h2_bucket_take(&conn->controls, now_of(conn))) {
        pawl__h2_session_limit(conn, "too many PING or SETTINGS frames");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

/* Frames that cost and change nothing. */
static bool is_empty(const nghttp2_frame *frame)
{
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    return frame->hd.type == NGHTTP2_PRIORITY
           || (frame->hd.type == NGHTTP2_DATA && frame->hd.length == 0 && !ends);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_server_conn *conn = user;

    conn->headers_ns = 0;
    if (frame->hd.type == NGHTTP2_PING || frame->hd.type == NGHTTP2_SETTINGS) {
        return control_received(conn, frame);
    }
    if (is_empty(frame) && !pawl__h2_bucket_take(&conn->empties, now_of(conn))) {
        pawl__h2_session_limit(conn, "too many empty frames");
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) {
        return 0;
    }
    struct pawl__h2_call *call = call_of(session, frame->hd.stream_id);
    if (call != NULL && frame->hd.type == NGHTTP2_HEADERS
        && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        pawl__h2_call_headers(call);
    }
    if (call != NULL && call->conn != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        pawl__h2_call_ended(call);
    }
    return 0;
}

static int on_invalid_frame(nghttp2_session *session,
                            const nghttp2_frame *frame,
                            int code,
                            void *user)
{
    struct h2_server_conn *conn = user;

    (void)session;
    (void)frame;
    (void)code;
    conn->headers_ns = 0;
    return 0;
}

static int on_data_chunk(nghttp2_session *session,
                         uint8_t flags,
                         int32_t stream_id,
                         const uint8_t *data,
                         size_t len,
                         void *user)
{
    struct h2_server_conn *conn = user;
    struct pawl__h2_call *call = call_of(session, stream_id);

    (void)flags;
    /* Other streams do not wait for this one to be read. */
    (void)nghttp2_session_consume_connection(session, len);
    pawl__h2_conn_touch(&conn->conn);
    if (call != NULL) {
        pawl__h2_call_bytes(call, (pawl_view){ (const char *)data, len });
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user)
{
    struct pawl__h2_call *call = call_of(session, stream_id);

    (void)code;
    (void)user;
    if (call != NULL) {
        (void)nghttp2_session_set_stream_user_data(session, stream_id, NULL);
        pawl__h2_call_detach(call);
    }
    return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_server_conn *conn = user;
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (frame->hd.type == NGHTTP2_RST_STREAM
        && !pawl__h2_bucket_take(&conn->resets, now_of(conn))) {
        pawl__h2_session_limit(conn, "too many calls that had to be reset");
    }
    if (frame->hd.type == NGHTTP2_HEADERS && ends
        && nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
        pawl__h2_call_early(call_of(session, frame->hd.stream_id));
    }
    return 0;
}

/* --- opening --- */

pawl_status pawl__h2_session_setup(struct pawl__h2 *server, pawl_error *reterr)
{
    if (nghttp2_session_callbacks_new(&server->callbacks) != 0
        || nghttp2_option_new(&server->option) != 0) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an HTTP/2 server");
    }
    nghttp2_session_callbacks *callbacks = server->callbacks;
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, pawl__h2_answer_send_data);
    nghttp2_option_set_no_auto_window_update(server->option, 1);
    nghttp2_option_set_no_closed_streams(server->option, 1);
    nghttp2_option_set_stream_reset_rate_limit(
        server->option, server->limits.resets_burst, server->limits.resets_per_s);
    server->mem = pawl__h2_budget_mem(&server->budget);
    return PAWL_OK;
}

static int submit_settings(struct h2_server_conn *conn)
{
    const struct pawl__h2_limits *limits = &conn->home->server->limits;
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams_max },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)limits->header_bytes_max },
    };
    nghttp2_session *session = conn->conn.session;
    int code = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, COUNT_OF(settings));

    return code != 0 ? code
                     : nghttp2_session_set_local_window_size(
                         session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

pawl_status pawl__h2_session_open(struct pawl__h2_conn *base, pawl_error *reterr)
{
    struct h2_server_conn *conn = (struct h2_server_conn *)base;
    struct pawl__h2 *server = conn->home->server;

    if (base->ssl != NULL
        && !pawl__h2_tls_peer_name(base->ssl, conn->peer_name, sizeof(conn->peer_name))) {
        conn->peer_name[0] = '\0';
    }
    conn->controls = (struct pawl__h2_bucket)PAWL__H2_BUCKET_INIT(CONTROLS_BURST, CONTROLS_PER_S);
    conn->empties = (struct pawl__h2_bucket)PAWL__H2_BUCKET_INIT(EMPTIES_BURST, EMPTIES_PER_S);
    conn->resets = (struct pawl__h2_bucket)PAWL__H2_BUCKET_INIT(OUR_RESETS_BURST, OUR_RESETS_PER_S);
    if (nghttp2_session_server_new3(
            &base->session, server->callbacks, conn, server->option, &server->mem)
            != 0
        || submit_settings(conn) != 0) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a connection");
    }
    return PAWL_OK;
}

/* --- time --- */

static int64_t check_drain(struct h2_server_conn *conn, int64_t now_ns)
{
    if (conn->drain_ns == 0 || conn->goaway) {
        return INT64_MAX;
    }
    if (now_ns - conn->drain_ns >= 0) {
        send_goaway(
            conn); /* a client that does not confirm: calls on their way may be lost to it */
        return INT64_MAX;
    }
    return conn->drain_ns;
}

static int64_t check_calls(struct h2_server_conn *conn, int64_t now_ns)
{
    const struct pawl__h2_limits *limits = &conn->home->server->limits;

    if (conn->call_count > 0) {
        return pawl__h2_conn_check_ping(&conn->conn,
                                        now_ns,
                                        (int64_t)limits->ping_ms * NS_PER_MS,
                                        (int64_t)limits->ping_wait_ms_max * NS_PER_MS);
    }
    int64_t by_ns = conn->idle_ns + (int64_t)limits->idle_ms_max * NS_PER_MS;
    if (now_ns - by_ns >= 0 && conn->drain_ns == 0) {
        pawl__h2_session_drain(conn);
        return conn->drain_ns;
    }
    return conn->drain_ns != 0 ? INT64_MAX : by_ns;
}

int64_t pawl__h2_session_check(struct pawl__h2_conn *base, int64_t now_ns)
{
    struct h2_server_conn *conn = (struct h2_server_conn *)base;
    const struct pawl__h2_limits *limits = &conn->home->server->limits;
    int64_t handshake_ns = conn->accepted_ns + (int64_t)limits->handshake_ms_max * NS_PER_MS;
    int64_t headers_ns = conn->headers_ns + (int64_t)limits->header_ms_max * NS_PER_MS;

    if (!conn->settled && now_ns - handshake_ns >= 0) {
        pawl__h2_session_limit(conn, "no SETTINGS within the time for a handshake");
        return INT64_MAX;
    }
    if (conn->headers_ns != 0 && now_ns - headers_ns >= 0) {
        pawl__h2_session_limit(conn, "a header block that does not end");
        return INT64_MAX;
    }
    if (!conn->settled) {
        return handshake_ns;
    }
    int64_t next_ns = MIN(check_calls(conn, now_ns), check_drain(conn, now_ns));
    return conn->headers_ns != 0 ? MIN(next_ns, headers_ns) : next_ns;
}

void pawl__h2_session_drain(struct h2_server_conn *conn)
{
    int64_t now_ns = now_of(conn);

    if (conn->conn.session == NULL) {
        pawl__h2_conn_fail(&conn->conn, "the server stops");
        return;
    }
    if (conn->drain_ns != 0) {
        return;
    }
    conn->drain_ns = now_ns + (int64_t)conn->home->server->limits.drain_ms_max * NS_PER_MS;
    if (nghttp2_submit_shutdown_notice(conn->conn.session) != 0
        || nghttp2_submit_ping(conn->conn.session, NGHTTP2_FLAG_NONE, drain_ping) != 0) {
        pawl__h2_conn_fail(&conn->conn, "no memory");
    }
    pawl__h2_conn_check_by(&conn->conn, conn->drain_ns);
    pawl__h2_conn_touch(&conn->conn);
}
