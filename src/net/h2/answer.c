/* From a status and messages to frames: headers, DATA, trailers. */
#include "net/h2/server.h"

#include <stdio.h>
#include <string.h>

enum { CODE_SIZE = 12, NAMES_MAX = 8 };

/* What is sent as one block of headers; the views live until it is submitted, when nghttp2 copies them. */
struct block {
    nghttp2_nv names[NAMES_MAX];
    size_t count;
};

static void put(struct block *block, const char *name, pawl_view value)
{
    REQUIRE(block->count < NAMES_MAX);
    block->names[block->count++] = (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value.data,
        .namelen = strlen(name),
        .valuelen = value.len,
        .flags = NGHTTP2_NV_FLAG_NONE,
    };
}

static void put_head(struct block *block, const struct pawl__h2_call *call)
{
    put(block, ":status", pawl_view_of("200"));
    put(block, "content-type", pawl_view_of("application/grpc"));
    if (call->answer_gzip) {
        put(block, "grpc-encoding", pawl_view_of("gzip"));
    }
    put(block, "grpc-accept-encoding", pawl_view_of("identity,gzip"));
}

/* Room for the texts of a status, which a block points to. */
struct status_texts {
    char code[CODE_SIZE];
    struct pawl__buf message;
    struct pawl__buf details;
};

static void texts_done(struct status_texts *texts)
{
    pawl__buf_done(&texts->message);
    pawl__buf_done(&texts->details);
}

static void put_status(struct block *block,
                       const struct pawl__h2_call *call,
                       struct status_texts *texts)
{
    (void)snprintf(texts->code, sizeof(texts->code), "%d", (int)call->said.code);
    put(block, "grpc-status", pawl_view_of(texts->code));
    texts->message.max = 3 * sizeof(call->said.message);
    pawl__h2_percent_encode(pawl_view_of(call->said.message), &texts->message);
    if (texts->message.len > 0 && !texts->message.broken) {
        put(block, "grpc-message", pawl__buf_view(&texts->message));
    }
    texts->details.max = (size_t)2 * H2_DETAILS_MAX;
    pawl__h2_base64_encode(pawl__buf_view(&call->said.details), &texts->details);
    if (texts->details.len > 0 && !texts->details.broken) {
        put(block, "grpc-status-details-bin", pawl__buf_view(&texts->details));
    }
}

/* nghttp2 refuses only what has gone already, or when memory is used up: then the stream is reset. */
static void submitted(struct pawl__h2_call *call, int code)
{
    if (code == NGHTTP2_ERR_NOMEM) {
        pawl__h2_conn_fail(&call->conn->conn, "no memory");
    }
    pawl__h2_conn_touch(&call->conn->conn);
}

static int submit_trailers(struct pawl__h2_call *call, nghttp2_session *session)
{
    AUTO(texts_done) struct status_texts texts = { .code = "" };
    struct block block = { .count = 0 };

    put_status(&block, call, &texts);
    return nghttp2_submit_trailer(session, call->stream_id, block.names, block.count);
}

/* What waits has become less. */
static void sent(struct pawl__h2_call *call, size_t bytes)
{
    size_t low = call->server->limits.answer_bytes_max / 2;
    int64_t now_ns = pawl__h2_loop_now(call->loop);
    size_t left = atomic_fetch_sub(&call->waiting, bytes) - bytes;

    pawl__h2_pace_more(
        &call->pace, now_ns, (int64_t)call->server->limits.stall_ms_max * NS_PER_MS, bytes);
    if (call->out.bytes == 0) {
        pawl__h2_pace_end(&call->pace);
    }
    bool stuck =
        atomic_load(&call->told_busy) || call->held.len > 0 || (call->ended && !call->ended_told);
    if (left <= low && stuck && !call->waking) {
        call->waking = true;
        atomic_fetch_add(&call->refs, 1);
        /* Not from inside nghttp2: in the next round. */
        bool posted = pawl__h2_loop_post(call->loop, &call->wake);
        REQUIRE(posted); /* this is the loop's thread */
    }
}

static ssize_t read_answer(nghttp2_session *session,
                           int32_t stream_id,
                           uint8_t *to,
                           size_t len,
                           uint32_t *flags,
                           nghttp2_data_source *source,
                           void *user)
{
    struct pawl__h2_call *call =
        (struct pawl__h2_call *)((char *)source->ptr - offsetof(struct pawl__h2_call, out));
    ssize_t read = 0;

    (void)stream_id;
    if (call->out.bytes > 0) {
        size_t before = call->out.bytes;
        read = pawl__h2_conn_read_outbox(user, &call->out, to, len, flags);
        if ((*flags & NGHTTP2_DATA_FLAG_NO_COPY) != 0) {
            return read; /* what goes is counted when it does */
        }
        sent(call, before - call->out.bytes);
    }
    if (call->out.bytes > 0) {
        return read;
    }
    if (!call->answered) {
        call->deferred = read == 0;
        return read == 0 ? NGHTTP2_ERR_DEFERRED : read;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return submit_trailers(call, session) == 0 ? read : NGHTTP2_ERR_CALLBACK_FAILURE;
}

int pawl__h2_answer_send_data(nghttp2_session *session,
                              nghttp2_frame *frame,
                              const uint8_t *head,
                              size_t len,
                              nghttp2_data_source *source,
                              void *user)
{
    struct pawl__h2_call *call =
        (struct pawl__h2_call *)((char *)source->ptr - offsetof(struct pawl__h2_call, out));
    int code = pawl__h2_conn_send_data(session, frame, head, len, source, user);

    if (code == 0) {
        sent(call, len);
    }
    return code;
}

static void begin(struct pawl__h2_call *call)
{
    nghttp2_data_provider provider = { .source.ptr = &call->out, .read_callback = read_answer };
    struct block block = { .count = 0 };

    call->begun = true;
    put_head(&block, call);
    submitted(call,
              nghttp2_submit_response(
                  call->conn->conn.session, call->stream_id, block.names, block.count, &provider));
}

static void resume(struct pawl__h2_call *call)
{
    if (!call->begun) {
        begin(call);
    } else if (call->deferred) {
        call->deferred = false;
        submitted(call, nghttp2_session_resume_data(call->conn->conn.session, call->stream_id));
    }
}

void pawl__h2_answer_message(struct pawl__h2_call *call, struct pawl__h2_chunk *chunk)
{
    pawl__h2_outbox_add(&call->out, chunk);
    pawl__h2_pace_begin(&call->pace,
                        pawl__h2_loop_now(call->loop),
                        (int64_t)call->server->limits.stall_ms_max * NS_PER_MS);
    pawl__h2_call_arm(call);
    resume(call);
}

/* A status and nothing before it: one block of headers that ends the stream. */
static void answer_at_once(struct pawl__h2_call *call)
{
    AUTO(texts_done) struct status_texts texts = { .code = "" };
    struct block block = { .count = 0 };

    call->begun = true;
    put_head(&block, call);
    put_status(&block, call, &texts);
    submitted(call,
              nghttp2_submit_response(
                  call->conn->conn.session, call->stream_id, block.names, block.count, NULL));
}

void pawl__h2_answer(struct pawl__h2_call *call)
{
    call->answered = true;
    if (call->said.code != PAWL__H2_OK) {
        atomic_fetch_add_explicit(&call->server->failed, 1, memory_order_relaxed);
    }
    if (call->begun || call->out.bytes > 0) {
        resume(call);
    } else {
        answer_at_once(call);
    }
}

void pawl__h2_answer_http(struct pawl__h2_call *call, const char *status)
{
    struct block block = { .count = 0 };

    call->begun = call->answered = true;
    atomic_fetch_add_explicit(&call->server->failed, 1, memory_order_relaxed);
    put(&block, ":status", pawl_view_of(status));
    submitted(call,
              nghttp2_submit_response(
                  call->conn->conn.session, call->stream_id, block.names, block.count, NULL));
}
