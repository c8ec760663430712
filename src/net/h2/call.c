/* A call from its stream's beginning to its end, and what handlers do with it. */
#include "net/h2/server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { EARLY_MS = 1000, EARLY_BYTES = 65536 };

static void fire(struct pawl__h2_timer *timer, int64_t now_ns);
static void run_final(struct pawl__h2_post *post);
static void run_wake(struct pawl__h2_post *post);

struct pawl__h2_call *pawl__h2_call_new(struct h2_server_conn *conn, int32_t stream_id)
{
    struct pawl__h2 *server = conn->home->server;
    struct pawl__h2_loop *loop = conn->conn.loop;
    size_t fixed = sizeof(struct pawl__h2_call);

    if (!pawl__h2_budget_take(&server->budget, fixed)) {
        return NULL;
    }
    struct pawl__h2_call *call = calloc(1, sizeof(*call));
    if (call == NULL || !pawl__h2_loop_adopt(loop)) {
        pawl__h2_budget_give(&server->budget, fixed);
        free(call);
        return NULL;
    }
    atomic_init(&call->refs, 1);
    atomic_fetch_add(&server->refs, 1);
    call->charged = fixed;
    call->server = server;
    call->loop = loop;
    call->conn = conn;
    call->serial = conn->serial;
    call->stream_id = stream_id;
    call->timer.fire = fire;
    call->post.run = run_final;
    call->wake.run = run_wake;
    call->deadline_ns = call->request_by_ns = INT64_MAX;
    call->final.details.max = H2_DETAILS_MAX;
    call->in.bytes_max = server->limits.message_bytes_max;
    pawl__h2_outbox_init(&call->out);
    pawl__h2_pace_end(&call->pace);
    call->next = conn->calls;
    if (call->next != NULL) {
        call->next->before = call;
    }
    conn->calls = call;
    conn->call_count++;
    pawl__h2_conn_check_by(&conn->conn,
                           pawl__h2_loop_now(loop) + (int64_t)server->limits.ping_ms * NS_PER_MS);
    return call;
}

void pawl__h2_call_unref(struct pawl__h2_call *call)
{
    if (atomic_fetch_sub(&call->refs, 1) > 1) {
        return;
    }
    if (call->release != NULL) {
        call->release(call->attached);
    }
    pawl__h2_chunk_unref(call->last);
    pawl__h2_outbox_done(&call->out);
    pawl__h2_deframer_done(&call->in);
    pawl__buf_done(&call->held);
    pawl__buf_done(&call->request);
    pawl__buf_done(&call->final.details);
    pawl__buf_done(&call->said.details);
    pawl__arena_done(&call->arena);
    if (call->server != NULL) {
        pawl__h2_budget_give(&call->server->budget, call->charged);
        pawl__h2_server_unref(call->server);
    }
    free(call);
}

bool pawl__h2_call_charge(struct pawl__h2_call *call)
{
    size_t now = sizeof(*call) + call->header_bytes + call->held.cap + call->request.cap
                 + pawl__h2_deframer_bytes(&call->in);

    if (now > call->charged && !pawl__h2_budget_take(&call->server->budget, now - call->charged)) {
        return false;
    }
    if (now < call->charged) {
        pawl__h2_budget_give(&call->server->budget, call->charged - now);
    }
    call->charged = now;
    return true;
}

void pawl__h2_call_arm(struct pawl__h2_call *call)
{
    int64_t next_ns = MIN(call->answered ? INT64_MAX : call->deadline_ns, call->request_by_ns);

    pawl__h2_timer_set(&call->loop->timers, &call->timer, MIN(next_ns, call->pace.by_ns));
}

static void tell_gone(struct pawl__h2_call *call)
{
    if (!atomic_exchange(&call->gone, true) && call->handed && call->method->gone != NULL
        && !atomic_load(&call->finished)) {
        call->method->gone(call, call->method->context);
    }
}

void pawl__h2_call_detach(struct pawl__h2_call *call)
{
    struct h2_server_conn *conn = call->conn;

    if (call->before != NULL) {
        call->before->next = call->next;
    } else {
        conn->calls = call->next;
    }
    if (call->next != NULL) {
        call->next->before = call->before;
    }
    if (--conn->call_count == 0) {
        conn->idle_ns = pawl__h2_loop_now(call->loop);
        pawl__h2_conn_check_by(
            &conn->conn, conn->idle_ns + (int64_t)call->server->limits.idle_ms_max * NS_PER_MS);
    }
    call->conn = NULL;
    pawl__h2_loop_release(call->loop, &call->timer);
    tell_gone(call);
    pawl__h2_call_unref(call);
}

void pawl__h2_call_abort(struct pawl__h2_call *call,
                         enum pawl__h2_code code,
                         const char *format,
                         ...)
{
    va_list arguments;

    if (call->conn == NULL || call->answered) {
        return;
    }
    call->said.code = code;
    va_start(arguments, format);
    (void)vsnprintf(call->said.message, sizeof(call->said.message), format, arguments);
    va_end(arguments);
    call->request_by_ns = INT64_MAX;
    atomic_fetch_add(&call->refs, 1);
    if (call->out.bytes > 0) {
        /* A message is under way and the client does not take it: trailers would have to wait for it. */
        call->answered = true;
        (void)nghttp2_submit_rst_stream(
            call->conn->conn.session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
        pawl__h2_conn_touch(&call->conn->conn);
    } else {
        pawl__h2_answer(call);
    }
    pawl__h2_call_arm(call);
    tell_gone(call);
    pawl__h2_call_unref(call);
}

/* Resets the stream of a call that was answered before the client had sent all: it may stop. Only after the answer has
 * gone: earlier, nghttp2 would drop what is queued. */
static void stop_client(struct pawl__h2_call *call)
{
    (void)nghttp2_submit_rst_stream(
        call->conn->conn.session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_NO_ERROR);
    pawl__h2_conn_touch(&call->conn->conn);
    call->early = false;
}

void pawl__h2_call_early(struct pawl__h2_call *call)
{
    if (call == NULL) {
        return;
    }
    /* What is on its way may come: some clients take a reset for a failure, also after a whole answer. */
    call->early = true;
    call->request_by_ns = pawl__h2_loop_now(call->loop) + EARLY_MS * NS_PER_MS;
    pawl__h2_call_arm(call);
}

void pawl__h2_call_drop(struct pawl__h2_call *call, size_t bytes)
{
    call->dropped += bytes;
    if (call->early && call->dropped > EARLY_BYTES) {
        stop_client(call);
    }
}

/* Too slow with what waits to be sent to it. */
static void drop_slow(struct pawl__h2_call *call)
{
    call->answered = true;
    atomic_fetch_add_explicit(&call->server->limited, 1, memory_order_relaxed);
    (void)nghttp2_submit_rst_stream(
        call->conn->conn.session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
    pawl__h2_conn_touch(&call->conn->conn);
    pawl__h2_pace_end(&call->pace);
    tell_gone(call);
}

static void fire(struct pawl__h2_timer *timer, int64_t now_ns)
{
    struct pawl__h2_call *call =
        (struct pawl__h2_call *)((char *)timer - offsetof(struct pawl__h2_call, timer));

    if (call->early && now_ns - call->request_by_ns >= 0) {
        call->request_by_ns = INT64_MAX;
        stop_client(call);
    } else if (!call->answered && now_ns - call->deadline_ns >= 0) {
        pawl__h2_call_abort(
            call, PAWL__H2_DEADLINE_EXCEEDED, "the deadline of the call has passed");
    } else if (now_ns - call->request_by_ns >= 0) {
        pawl__h2_call_abort(
            call, PAWL__H2_DEADLINE_EXCEEDED, "the request did not arrive within its time");
    } else if (now_ns - call->pace.by_ns >= 0) {
        drop_slow(call);
    } else {
        pawl__h2_call_arm(call);
    }
}

void pawl__h2_call_hand(struct pawl__h2_call *call)
{
    call->handed = true;
    atomic_fetch_add(&call->refs, 1); /* the handler's */
    if (!call->method->blocks || call->server->jobs == NULL) {
        call->method->handle(call, call->method->context);
        return;
    }
    if (pawl__queue_push(call->server->jobs, call, 0, NULL, NULL) != PAWL_OK) {
        call->handed = false;
        pawl__h2_call_abort(call, PAWL__H2_UNAVAILABLE, "too many calls wait; try later");
        pawl__h2_call_unref(call);
    }
}

static void run_wake(struct pawl__h2_post *post)
{
    struct pawl__h2_call *call =
        (struct pawl__h2_call *)((char *)post - offsetof(struct pawl__h2_call, wake));

    call->waking = false;
    if (atomic_exchange(&call->told_busy, false) && call->handed && call->method->ready != NULL
        && !atomic_load(&call->finished)) {
        call->method->ready(call, call->method->context);
    }
    if (call->conn != NULL && !call->answered) {
        pawl__h2_call_resume(call);
    }
    pawl__h2_call_unref(call);
}

/* --- what handlers use --- */

pawl_view pawl__h2_request(const struct pawl__h2_call *call)
{
    return pawl__buf_view(&call->request);
}

pawl_view pawl__h2_metadata(const struct pawl__h2_call *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++) {
        if (pawl__view_is(call->headers[i].name, name)) {
            return call->headers[i].value;
        }
    }
    return (pawl_view){ 0 };
}

const char *pawl__h2_peer_name(const struct pawl__h2_call *call)
{
    return call->peer_name;
}

int64_t pawl__h2_deadline_ns(const struct pawl__h2_call *call)
{
    return call->deadline_ns;
}

bool pawl__h2_is_gone(const struct pawl__h2_call *call)
{
    return atomic_load(&call->gone);
}

void pawl__h2_attach(struct pawl__h2_call *call, void *attached, void (*release)(void *attached))
{
    REQUIRE(call->attached == NULL);
    call->attached = attached;
    call->release = release;
}

void *pawl__h2_attached(const struct pawl__h2_call *call)
{
    return call->attached;
}

static void run_send(struct pawl__h2_post *post)
{
    struct pawl__h2_chunk *chunk = (struct pawl__h2_chunk *)post;
    struct pawl__h2_call *call = chunk->owner;

    if (call->conn != NULL && !call->answered) {
        pawl__h2_answer_message(call, chunk);
    } else {
        pawl__h2_chunk_unref(chunk);
    }
    pawl__h2_call_unref(call);
}

/* Whether so much waits that the handler is to stop; it is told when it may go on. */
static bool is_full(struct pawl__h2_call *call)
{
    size_t max = call->server->limits.answer_bytes_max;

    if (atomic_load(&call->waiting) < max) {
        return false;
    }
    atomic_store(&call->told_busy, true);
    /* What was sent between the two looks may have been the last that would tell. */
    return atomic_load(&call->waiting) >= max / 2 || !atomic_exchange(&call->told_busy, false);
}

pawl_status pawl__h2_send(struct pawl__h2_call *call, pawl_view message, pawl_error *reterr)
{
    struct pawl__h2_chunk *chunk = NULL;

    REQUIRE(call->method->kind == PAWL__H2_SERVER_STREAM || call->method->kind == PAWL__H2_BIDI);
    if (pawl__h2_is_gone(call)) {
        return pawl__fail(reterr, PAWL_CANCELLED, "nobody waits for this call any more");
    }
    if (is_full(call)) {
        return pawl__fail(reterr, PAWL_BUSY, "%zu bytes wait to be sent", (size_t)call->waiting);
    }
    TRY(pawl__h2_chunk_copy(&call->server->budget, message, call->answer_gzip, &chunk, reterr));
    atomic_fetch_add(&call->waiting, PAWL__H2_PREFIX_SIZE + chunk->len);
    atomic_fetch_add(&call->refs, 1);
    chunk->owner = call;
    chunk->post.run = run_send;
    if (pawl__h2_loop_is_mine(call->loop) || !pawl__h2_loop_post(call->loop, &chunk->post)) {
        run_send(&chunk->post);
    }
    return PAWL_OK;
}

/* --- finishing --- */

static void run_final(struct pawl__h2_post *post)
{
    struct pawl__h2_call *call = (struct pawl__h2_call *)post;

    call->handed = false;
    if (call->conn != NULL && !call->answered) {
        struct pawl__h2_chunk *last = STEAL(call->last);
        call->request_by_ns = INT64_MAX;
        call->said = call->final;
        call->final.details = (struct pawl__buf){ 0 };
        if (last != NULL) {
            pawl__h2_outbox_add(&call->out, last);
            pawl__h2_pace_begin(&call->pace,
                                pawl__h2_loop_now(call->loop),
                                (int64_t)call->server->limits.stall_ms_max * NS_PER_MS);
        }
        pawl__h2_answer(call);
        pawl__h2_call_arm(call);
    }
    pawl__h2_call_unref(call);
}

static void finish_local(struct pawl__h2_call *call)
{
    pawl_view answer =
        call->last == NULL ? (pawl_view){ 0 } : (pawl_view){ call->last->data, call->last->len };

    call->local_done(
        call->local_context, (int)call->final.code, pawl_view_of(call->final.message), answer);
    pawl__h2_call_unref(call);
}

/* The status stands in the call, unless the server has answered already. */
static void finish(struct pawl__h2_call *call)
{
    atomic_store(&call->finished, true);
    if (call->server == NULL) {
        finish_local(call);
    } else if (pawl__h2_loop_is_mine(call->loop) || !pawl__h2_loop_post(call->loop, &call->post)) {
        run_final(&call->post);
    }
}

static void set_final(struct pawl__h2_call *call, enum pawl__h2_code code, const char *message)
{
    call->final.code = code;
    (void)snprintf(call->final.message, sizeof(call->final.message), "%s", message);
}

void pawl__h2_reply(struct pawl__h2_call *call, struct pawl__buf *message)
{
    struct pawl__h2_budget *budget = call->server == NULL ? NULL : &call->server->budget;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__h2_chunk_new(budget, message, call->answer_gzip, &call->last, &error) != PAWL_OK) {
        set_final(call, PAWL__H2_RESOURCE_EXHAUSTED, error.message);
    } else {
        atomic_fetch_add(&call->waiting, PAWL__H2_PREFIX_SIZE + call->last->len);
    }
    finish(call);
}

void pawl__h2_end(struct pawl__h2_call *call)
{
    finish(call);
}

void pawl__h2_refuse(struct pawl__h2_call *call,
                     enum pawl__h2_code code,
                     const char *message,
                     pawl_view details)
{
    REQUIRE(code != PAWL__H2_OK);
    set_final(call, code, message);
    pawl__buf_add(&call->final.details, details);
    finish(call);
}

void pawl__h2_fail(struct pawl__h2_call *call, const pawl_error *error)
{
    pawl__h2_refuse(call, pawl__h2_code_of(error->status), error->message, (pawl_view){ 0 });
}

pawl_status pawl__h2_call_local(const struct pawl__h2_method *method,
                                struct pawl__buf *request,
                                int64_t deadline_ns,
                                pawl__h2_local_done *done,
                                void *context,
                                pawl_error *reterr)
{
    REQUIRE(method->kind == PAWL__H2_UNARY);
    struct pawl__h2_call *call = calloc(1, sizeof(*call));
    TRY(pawl__check_memory(call, "a call", reterr));
    atomic_init(&call->refs, 1);
    pawl__h2_outbox_init(&call->out);
    call->method = method;
    call->deadline_ns = deadline_ns;
    call->final.details.max = H2_DETAILS_MAX;
    call->request = *request;
    *request = (struct pawl__buf){ .max = request->max };
    call->local_done = done;
    call->local_context = context;
    method->handle(call, method->context);
    return PAWL_OK;
}
