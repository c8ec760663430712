/* From a header block and DATA to a call of a method. */
#include "net/h2/server.h"

#include <string.h>

#include "base/core/error.h"

/* Whether the list of encodings, "identity,deflate, gzip", has gzip. */
static bool lists_gzip(pawl_view list)
{
    pawl_view part = { 0 };

    while (pawl__view_split(&list, ',', &part)) {
        pawl_view space = { 0 };
        bool padded = part.len > 0 && part.data[0] == ' ';
        while (padded && pawl__view_take(&part, 1, &space)) {
            padded = part.len > 0 && part.data[0] == ' ';
        }
        if (pawl__view_is(part, "gzip")) {
            return true;
        }
    }
    return false;
}

/* What HTTP itself refuses. */
static const char *http_fault(const struct pawl__h2_call *call)
{
    if (!pawl__view_is(pawl__h2_metadata(call, ":method"), "POST")) {
        return "405";
    }
    return pawl__h2_is_grpc(pawl__h2_metadata(call, "content-type")) ? NULL : "415";
}

static bool set_deadline(struct pawl__h2_call *call)
{
    pawl_view timeout = pawl__h2_metadata(call, "grpc-timeout");
    int64_t now_ns = pawl__h2_loop_now(call->loop);
    int64_t left_ns = 0;

    if (timeout.data == NULL) {
        uint32_t ms = call->server->limits.call_ms_max;
        bool bounded = ms > 0 && call->method->kind == PAWL__H2_UNARY;
        call->deadline_ns = bounded ? now_ns + ms * NS_PER_MS : INT64_MAX;
        return true;
    }
    if (!pawl__h2_timeout_parse(timeout, &left_ns)) {
        return false;
    }
    call->deadline_ns = left_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + left_ns;
    return true;
}

static pawl_status authorize(struct pawl__h2_call *call, pawl_error *reterr)
{
    const struct pawl__h2_caller caller = {
        .path = pawl_view_of(call->method->path),
        .scope = call->method->scope,
        .authorization = pawl__h2_metadata(call, "authorization"),
        .peer_name = call->peer_name,
        .loopback = call->conn->loopback,
    };

    if (call->server->authorize == NULL || call->method->open) {
        return PAWL_OK;
    }
    pawl_status status = call->server->authorize(call->server->context, &caller, reterr);
    return pawl__fail_settled(reterr, status, "authorize '%s'", call->method->path);
}

static bool admit(struct pawl__h2_call *call)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = authorize(call, &error);

    if (status == PAWL_OK) {
        return true;
    }
    bool unknown = pawl__h2_metadata(call, "authorization").data == NULL && call->peer_name == NULL;
    enum pawl__h2_code code =
        status == PAWL_DENIED && unknown ? PAWL__H2_UNAUTHENTICATED : pawl__h2_code_of(status);
    pawl__h2_call_abort(call, code, "%s", error.message);
    return false;
}

static bool set_encoding(struct pawl__h2_call *call)
{
    pawl_view encoding = pawl__h2_metadata(call, "grpc-encoding");

    call->in.gzip = pawl__view_is(encoding, "gzip");
    /* Every client can read gzip; one that sends it has the time to wait for it. */
    call->answer_gzip =
        call->in.gzip && lists_gzip(pawl__h2_metadata(call, "grpc-accept-encoding"));
    return call->in.gzip || encoding.data == NULL || pawl__view_is(encoding, "identity");
}

static bool reads_stream(const struct pawl__h2_method *method)
{
    return method->kind == PAWL__H2_CLIENT_STREAM || method->kind == PAWL__H2_BIDI;
}

static void begin(struct pawl__h2_call *call)
{
    if (reads_stream(call->method)) {
        pawl__h2_call_arm(call);
        pawl__h2_call_hand(call);
    } else {
        call->request_by_ns = pawl__h2_loop_now(call->loop)
                              + (int64_t)call->server->limits.request_ms_max * NS_PER_MS;
        pawl__h2_call_arm(call);
    }
}

static bool keep_peer_name(struct pawl__h2_call *call)
{
    pawl_view copy = { 0 };

    if (call->conn->peer_name[0] == '\0') {
        return true;
    }
    if (!pawl__arena_copy(&call->arena, pawl_view_of(call->conn->peer_name), &copy)) {
        return false;
    }
    call->peer_name = copy.data;
    return true;
}

void pawl__h2_call_headers(struct pawl__h2_call *call)
{
    atomic_fetch_add_explicit(&call->server->calls, 1, memory_order_relaxed);
    if (call->header_refused || !pawl__h2_call_charge(call) || !keep_peer_name(call)) {
        pawl__h2_call_abort(call,
                            PAWL__H2_RESOURCE_EXHAUSTED,
                            "headers over %zu bytes or %d names",
                            call->server->limits.header_bytes_max,
                            H2_HEADERS_MAX);
        return;
    }
    const char *fault = http_fault(call);
    if (fault != NULL) {
        pawl__h2_answer_http(call, fault);
        return;
    }
    pawl_view path = pawl__h2_metadata(call, ":path");
    call->method = pawl__h2_services_find(&call->server->services, path);
    if (call->method == NULL) {
        pawl__h2_call_abort(call,
                            PAWL__H2_UNIMPLEMENTED,
                            "no method '%.*s'",
                            (int)MIN(path.len, (size_t)200),
                            path.data);
    } else if (!set_encoding(call)) {
        pawl__h2_call_abort(call, PAWL__H2_UNIMPLEMENTED, "grpc-encoding must be identity or gzip");
    } else if (!set_deadline(call)) {
        pawl__h2_call_abort(call, PAWL__H2_INTERNAL, "grpc-timeout is not a number and a unit");
    } else if (admit(call)) {
        begin(call);
    }
}

/* --- messages --- */

static void take_request(struct pawl__h2_call *call, pawl_view message)
{
    if (call->has_request) {
        pawl__h2_call_abort(
            call, PAWL__H2_INTERNAL, "'%s' takes one message, and more came", call->method->path);
        return;
    }
    call->has_request = true;
    call->request.max = call->server->limits.message_bytes_max;
    struct pawl__h2_deframer *in = &call->in;
    struct pawl__buf *holder = message.data == in->whole.data ? &in->whole : &in->raw;
    if (message.len > 0 && message.data == holder->data) {
        pawl__buf_done(&call->request);
        call->request = *holder; /* it is there already: no copy */
        *holder = (struct pawl__buf){ 0 };
    } else {
        pawl__buf_add(&call->request, message);
    }
    if (call->request.broken || !pawl__h2_call_charge(call)) {
        pawl__h2_call_abort(
            call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for the request; try later");
    }
}

static bool takes_more(const struct pawl__h2_call *call)
{
    return call->conn != NULL && !call->answered
           && (!reads_stream(call->method) || (call->handed && !atomic_load(&call->finished)))
           && atomic_load(&call->waiting) < call->server->limits.answer_bytes_max;
}

/* Takes from the front of `in` as long as there is room for answers. */
static void read_messages(struct pawl__h2_call *call, pawl_view *in)
{
    pawl_view message = { 0 };
    enum pawl__h2_code code = PAWL__H2_OK;
    pawl_error error = PAWL_ERROR_INIT;

    while (in->len > 0 && takes_more(call)) {
        switch (pawl__h2_deframe(&call->in, in, &message, &code, &error)) {
        case PAWL__H2_MORE:
            break;
        case PAWL__H2_MESSAGE:
            if (reads_stream(call->method)) {
                call->method->message(call, message, call->method->context);
            } else {
                take_request(call, message);
            }
            break;
        default:
            pawl__h2_call_abort(call, code, "%s", error.message);
            return;
        }
    }
    if (call->conn != NULL && !call->answered && !pawl__h2_call_charge(call)) {
        pawl__h2_call_abort(
            call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for the request; try later");
    }
}

/* The client has sent all, and all of it was read. */
static void tell_ended(struct pawl__h2_call *call)
{
    call->ended_told = true;
    if (pawl__h2_deframer_is_open(&call->in)) {
        pawl__h2_call_abort(call, PAWL__H2_INTERNAL, "the stream ended in the middle of a message");
    } else if (reads_stream(call->method)) {
        call->method->ended(call, call->method->context);
    } else if (!call->has_request) {
        pawl__h2_call_abort(
            call, PAWL__H2_INTERNAL, "'%s' takes one message, and none came", call->method->path);
    } else {
        call->request_by_ns = INT64_MAX;
        pawl__h2_call_arm(call);
        pawl__h2_call_hand(call);
    }
}

static void consume(struct pawl__h2_call *call, size_t bytes)
{
    if (bytes > 0 && call->conn != NULL) {
        (void)nghttp2_session_consume_stream(call->conn->conn.session, call->stream_id, bytes);
        pawl__h2_conn_touch(&call->conn->conn);
    }
}

/* What cannot be read now is kept; the client's window stays closed by as much. */
static void hold(struct pawl__h2_call *call, pawl_view rest)
{
    call->held.max = call->server->limits.message_bytes_max;
    pawl__buf_add(&call->held, rest);
    if (call->held.broken || !pawl__h2_call_charge(call)) {
        pawl__h2_call_abort(
            call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for the request; try later");
    }
}

void pawl__h2_call_bytes(struct pawl__h2_call *call, pawl_view bytes)
{
    pawl_view rest = bytes;

    if (call->answered || call->method == NULL) {
        consume(call, bytes.len);
        pawl__h2_call_drop(call, bytes.len);
        return;
    }
    if (call->held.len == 0) {
        read_messages(call, &rest);
    }
    if (rest.len > 0 && !call->answered) {
        hold(call, rest);
        consume(call, bytes.len - rest.len);
    } else {
        consume(call, bytes.len);
    }
}

void pawl__h2_call_ended(struct pawl__h2_call *call)
{
    call->ended = true;
    if (call->method != NULL && call->held.len == 0 && takes_more(call)) {
        tell_ended(call);
    }
}

void pawl__h2_call_resume(struct pawl__h2_call *call)
{
    struct pawl__buf held = call->held;
    pawl_view rest = pawl__buf_view(&held);

    call->held = (struct pawl__buf){ .max = held.max };
    read_messages(call, &rest);
    consume(call, held.len - rest.len);
    if (rest.len > 0 && call->conn != NULL && !call->answered) {
        hold(call, rest);
    }
    pawl__buf_done(&held);
    if (call->conn != NULL && call->ended && !call->ended_told && call->held.len == 0
        && takes_more(call)) {
        tell_ended(call);
    }
}
