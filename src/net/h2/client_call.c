/* A client's call from its beginning to its outcome. */
#include "net/h2/client_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { SEND_WAITING_MAX = 4 << 20, TEXT_MAX = 4096, DETAILS_MAX = 16384 };

void pawl__h2_client_stream_unref(struct pawl__h2_client_stream *call)
{
    if (atomic_fetch_sub(&call->refs, 1) > 1) {
        return;
    }
    pawl__h2_outbox_done(&call->out);
    pawl__h2_deframer_done(&call->in);
    pawl__buf_done(&call->text);
    pawl__buf_done(&call->details);
    struct pawl__h2_client *client = call->client;
    free(call->path);
    free(call);
    pawl__h2_client_unref(client);
}

/* --- where it is --- */

void pawl__h2_client_unplace(struct pawl__h2_client_stream *call)
{
    struct pawl__h2_client *client = call->client;

    if (call->place == H2_WAITING) {
        struct pawl__h2_client_stream **at = &client->waiting;
        while (*at != call) {
            at = &(*at)->next;
        }
        *at = call->next;
        if (client->waiting_last == &call->next) {
            client->waiting_last = at;
        }
    } else if (call->place == H2_ON_STREAM) {
        if (call->before != NULL) {
            call->before->next = call->next;
        } else {
            call->conn->calls = call->next;
        }
        if (call->next != NULL) {
            call->next->before = call->before;
        }
        call->conn->call_count--;
        if (call->conn->conn.session != NULL) {
            (void)nghttp2_session_set_stream_user_data(
                call->conn->conn.session, call->stream_id, NULL);
        }
    }
    call->place = H2_NOWHERE;
    call->next = call->before = NULL;
    call->conn = NULL;
}

static void wait_for_connection(struct pawl__h2_client_stream *call)
{
    struct pawl__h2_client *client = call->client;

    call->place = H2_WAITING;
    call->next = NULL;
    *client->waiting_last = call;
    client->waiting_last = &call->next;
    if (!pawl__h2_client_dial(client)) {
        pawl__h2_client_fail_waiting(client);
    }
}

void pawl__h2_client_place(struct pawl__h2_client_stream *call)
{
    struct h2_client_conn *conn = call->client->current;

    if (conn != NULL && conn->settled && !conn->conn.failing) {
        if (!pawl__h2_client_submit(conn, call)) {
            pawl__h2_client_fail(call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for a call");
        }
    } else {
        wait_for_connection(call);
    }
}

void pawl__h2_client_send_waiting(struct pawl__h2_client *client)
{
    while (client->waiting != NULL && client->current != NULL && client->current->settled) {
        struct pawl__h2_client_stream *call = client->waiting;
        pawl__h2_client_unplace(call);
        pawl__h2_client_place(call);
    }
}

void pawl__h2_client_fail_waiting(struct pawl__h2_client *client)
{
    while (client->waiting != NULL) {
        pawl__h2_client_fail(client->waiting,
                             PAWL__H2_UNAVAILABLE,
                             "no connection to '%s': %s",
                             client->authority,
                             client->why);
    }
}

static void rewind_call(struct pawl__h2_client_stream *call)
{
    pawl__h2_outbox_rewind(&call->out);
    pawl__h2_deframer_done(&call->in);
    call->in =
        (struct pawl__h2_deframer)PAWL__H2_DEFRAMER_INIT(call->client->message_bytes_max, false);
    pawl__buf_clear(&call->text);
    pawl__buf_clear(&call->details);
    call->header_bytes = 0;
    call->http_status = 0;
    call->code = -1;
    call->is_grpc = call->sent = call->deferred = false;
}

void pawl__h2_client_repeat(struct pawl__h2_client_stream *call, const char *why)
{
    bool whole = call->single || !call->sent;

    pawl__h2_client_unplace(call);
    if (!whole || ++call->attempts >= H2_ATTEMPTS_MAX) {
        pawl__h2_client_fail(call, PAWL__H2_UNAVAILABLE, "%s", why);
        return;
    }
    rewind_call(call);
    pawl__h2_client_place(call);
}

/* --- its end --- */

static void reset_stream(struct pawl__h2_client_stream *call)
{
    if (call->place == H2_ON_STREAM && call->conn->conn.session != NULL) {
        (void)nghttp2_submit_rst_stream(
            call->conn->conn.session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
        pawl__h2_conn_touch(&call->conn->conn);
    }
}

void pawl__h2_client_finish(struct pawl__h2_client_stream *call,
                            int code,
                            pawl_view text,
                            pawl_view details)
{
    struct pawl__h2_client *client = call->client;
    const struct pawl__h2_outcome outcome = {
        .code = code, .message = text, .details = details, .sent = call->sent
    };

    if (atomic_exchange(&call->ended, true)) {
        return;
    }
    pawl__h2_client_unplace(call);
    if (call->timed) {
        pawl__h2_loop_release(client->loop, &call->timer);
    }
    call->done(call->context, &outcome);
    pawl__lock(&client->lock);
    client->call_count--;
    pawl__cond_broadcast(&client->changed);
    pawl__unlock(&client->lock);
    pawl__h2_client_stream_unref(call);
}

void pawl__h2_client_fail(struct pawl__h2_client_stream *call, int code, const char *format, ...)
{
    char text[512] = "";
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    reset_stream(call);
    pawl__h2_client_finish(call, code, pawl_view_of(text), (pawl_view){ 0 });
}

static void fire(struct pawl__h2_timer *timer, int64_t now_ns)
{
    struct pawl__h2_client_stream *call =
        (struct pawl__h2_client_stream *)((char *)timer
                                          - offsetof(struct pawl__h2_client_stream, timer));

    (void)now_ns;
    pawl__h2_client_fail(call,
                         PAWL__H2_DEADLINE_EXCEEDED,
                         call->place == H2_WAITING
                             ? "the deadline passed before there was a connection to '%s'"
                             : "'%s' did not answer by the deadline",
                         call->client->authority);
}

/* --- from any thread --- */

static void run_begin(struct pawl__h2_post *post)
{
    struct pawl__h2_client_stream *call = (struct pawl__h2_client_stream *)post;
    struct pawl__h2_client *client = call->client;

    call->timed = pawl__h2_loop_adopt(client->loop);
    if (!call->timed) {
        pawl__h2_client_fail(call, PAWL__H2_RESOURCE_EXHAUSTED, "no memory for a call");
        return;
    }
    pawl__lock(&client->lock);
    bool closing = client->closing;
    pawl__unlock(&client->lock);
    if (closing) {
        pawl__h2_client_fail(call, PAWL__H2_CANCELLED, "the client is closed");
        return;
    }
    pawl__h2_timer_set(&client->loop->timers, &call->timer, call->deadline_ns);
    pawl__h2_client_place(call);
}

static void resume(struct pawl__h2_client_stream *call)
{
    if (call->place == H2_ON_STREAM && call->deferred) {
        call->deferred = false;
        (void)nghttp2_session_resume_data(call->conn->conn.session, call->stream_id);
        pawl__h2_conn_touch(&call->conn->conn);
    }
}

static void run_half_close(struct pawl__h2_post *post)
{
    struct pawl__h2_client_stream *call =
        (struct pawl__h2_client_stream *)((char *)post
                                          - offsetof(struct pawl__h2_client_stream, half_close));

    call->last = true;
    resume(call);
    pawl__h2_client_stream_unref(call);
}

static void run_cancel(struct pawl__h2_post *post)
{
    struct pawl__h2_client_stream *call =
        (struct pawl__h2_client_stream *)((char *)post
                                          - offsetof(struct pawl__h2_client_stream, cancel));

    if (!atomic_load(&call->ended)) {
        pawl__h2_client_fail(call, PAWL__H2_CANCELLED, "cancelled by the caller");
    }
    pawl__h2_client_stream_unref(call);
}

static void run_send(struct pawl__h2_post *post)
{
    struct pawl__h2_chunk *chunk = (struct pawl__h2_chunk *)post;
    struct pawl__h2_client_stream *call = chunk->owner;

    if (atomic_load(&call->ended)) {
        pawl__h2_chunk_unref(chunk);
    } else {
        pawl__h2_outbox_add(&call->out, chunk);
        resume(call);
    }
    pawl__h2_client_stream_unref(call);
}

static pawl_status count_in(struct pawl__h2_client *client, pawl_error *reterr)
{
    pawl__lock(&client->lock);
    bool closing = client->closing;
    bool room = client->call_count < client->calls_max;
    client->call_count += room && !closing ? 1 : 0;
    pawl__unlock(&client->lock);
    if (closing) {
        return pawl__fail(reterr, PAWL_CLOSED, "the client is closed");
    }
    return room ? PAWL_OK
                : pawl__fail(reterr,
                             PAWL_BUSY,
                             "%zu calls to '%s' run already",
                             client->calls_max,
                             client->authority);
}

static void count_out(struct pawl__h2_client *client)
{
    pawl__lock(&client->lock);
    client->call_count--;
    pawl__cond_broadcast(&client->changed);
    pawl__unlock(&client->lock);
}

static struct pawl__h2_client_stream *make(struct pawl__h2_client *client,
                                           const struct pawl__h2_client_ask *ask)
{
    struct pawl__h2_client_stream *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        return NULL;
    }
    call->path = strdup(ask->path);
    if (call->path == NULL) {
        free(call);
        return NULL;
    }
    atomic_init(&call->refs, 1);
    atomic_fetch_add(&client->refs, 1);
    call->client = client;
    call->post.run = run_begin;
    call->half_close.run = run_half_close;
    call->cancel.run = run_cancel;
    call->timer.fire = fire;
    call->deadline_ns = ask->deadline_ns;
    call->message = ask->message;
    call->done = ask->done;
    call->context = ask->context;
    call->single = call->last = ask->single;
    call->text.max = TEXT_MAX;
    call->details.max = DETAILS_MAX;
    pawl__h2_outbox_init(&call->out);
    call->out.keep = ask->single;
    rewind_call(call);
    return call;
}

static pawl_status add_first(struct pawl__h2_client_stream *call,
                             pawl_view request,
                             pawl_error *reterr)
{
    struct pawl__h2_chunk *chunk = NULL;

    if (!call->single && request.data == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__h2_chunk_copy(NULL, request, call->client->gzip, &chunk, reterr));
    atomic_fetch_add(&call->waiting_bytes, PAWL__H2_PREFIX_SIZE + chunk->len);
    pawl__h2_outbox_add(&call->out, chunk);
    return PAWL_OK;
}

pawl_status pawl__h2_client_begin(struct pawl__h2_client *client,
                                  const struct pawl__h2_client_ask *ask,
                                  struct pawl__h2_client_stream **ret_stream,
                                  pawl_error *reterr)
{
    pawl_view service = { 0 };
    pawl_view method = { 0 };

    if (!pawl__h2_path_split(pawl_view_of(ask->path), &service, &method)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is no path of a method: write /package.Service/Method",
                          ask->path);
    }
    TRY(count_in(client, reterr));
    struct pawl__h2_client_stream *call = make(client, ask);
    pawl_status status = pawl__check_memory(call, "a call", reterr);
    if (status == PAWL_OK) {
        status = add_first(call, ask->request, reterr);
    }
    if (status != PAWL_OK) {
        if (call != NULL) {
            pawl__h2_client_stream_unref(call);
        }
        count_out(client);
        return status;
    }
    if (ret_stream != NULL) {
        atomic_fetch_add(&call->refs, 1);
        *ret_stream = call;
    }
    /* From the client's own thread too: it runs in the next round, so `done` never comes before this returns there. */
    bool posted = pawl__h2_loop_post(client->loop, &call->post);
    REQUIRE(posted); /* a client that is open has its thread */
    return PAWL_OK;
}

pawl_status pawl__h2_client_send(struct pawl__h2_client_stream *call,
                                 pawl_view message,
                                 pawl_error *reterr)
{
    struct pawl__h2_chunk *chunk = NULL;

    if (atomic_load(&call->ended) || atomic_load(&call->half_closing) || call->single) {
        return pawl__fail(reterr, PAWL_CLOSED, "the call takes no more messages");
    }
    if (atomic_load(&call->waiting_bytes) >= SEND_WAITING_MAX) {
        return pawl__fail(reterr, PAWL_BUSY, "over 4 MiB wait to be sent on this call");
    }
    TRY(pawl__h2_chunk_copy(NULL, message, call->client->gzip, &chunk, reterr));
    atomic_fetch_add(&call->waiting_bytes, PAWL__H2_PREFIX_SIZE + chunk->len);
    chunk->owner = call;
    chunk->post.run = run_send;
    atomic_fetch_add(&call->refs, 1);
    if (!pawl__h2_loop_post(call->client->loop, &chunk->post)) {
        run_send(&chunk->post);
    }
    return PAWL_OK;
}

void pawl__h2_client_half_close(struct pawl__h2_client_stream *call)
{
    if (!call->single && !atomic_exchange(&call->half_closing, true)) {
        atomic_fetch_add(&call->refs, 1);
        if (!pawl__h2_loop_post(call->client->loop, &call->half_close)) {
            pawl__h2_client_stream_unref(call);
        }
    }
}

void pawl__h2_client_cancel(struct pawl__h2_client_stream *call)
{
    if (!atomic_exchange(&call->cancelling, true)) {
        atomic_fetch_add(&call->refs, 1);
        if (!pawl__h2_loop_post(call->client->loop, &call->cancel)) {
            pawl__h2_client_stream_unref(call);
        }
    }
}

void pawl__h2_client_release(struct pawl__h2_client_stream *call)
{
    if (call != NULL) {
        pawl__h2_client_stream_unref(call);
    }
}
