/* Opening and closing clients, and calls that wait for their answer. */
#include "net/h2/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "net/h2/client_internal.h"
#include "net/h2/tls.h"

enum {
    CALLS_MAX = 1000,
    CONNECT_MS = 5000,
    PING_MS = 30000,
    PING_WAIT_MS = 10000,
    RECONNECT_MS = 5000
};

/* --- dialers --- */

void pawl__h2_dialer_unref(struct pawl__h2_dialer *dialer)
{
    if (atomic_fetch_sub(&dialer->refs, 1) == 1) {
        for (size_t i = 0; i < dialer->count; i++) {
            pawl__h2_loop_done(&dialer->loops[i]);
        }
        free(dialer);
    }
}

void pawl__h2_dialer_stop(struct pawl__h2_dialer *dialer)
{
    if (dialer == NULL) {
        return;
    }
    for (size_t i = 0; i < dialer->count; i++) {
        pawl__h2_loop_stop(&dialer->loops[i]);
    }
    for (size_t i = 0; i < dialer->count; i++) {
        bool ended = pawl__h2_loop_join(&dialer->loops[i], INT64_MAX);
        REQUIRE(ended);
    }
    pawl__h2_dialer_unref(dialer);
}

pawl_status pawl__h2_dialer_start(uint32_t threads,
                                  struct pawl__clock *clock,
                                  struct pawl__h2_dialer **ret_dialer,
                                  pawl_error *reterr)
{
    if (threads == 0 || threads > H2_DIALER_THREADS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%u threads: from 1 to %d are allowed",
                          (unsigned)threads,
                          H2_DIALER_THREADS_MAX);
    }
    AUTO(pawl__h2_dialer_stop_p) struct pawl__h2_dialer *dialer = calloc(1, sizeof(*dialer));
    TRY(pawl__check_memory(dialer, "the threads of clients", reterr));
    atomic_init(&dialer->refs, 1);
    for (; dialer->count < threads; dialer->count++) {
        TRY(pawl__h2_loop_start(&dialer->loops[dialer->count], "pawl-h2-dial", clock, reterr));
    }
    *ret_dialer = STEAL(dialer);
    return PAWL_OK;
}

/* --- clients --- */

void pawl__h2_client_unref(struct pawl__h2_client *client)
{
    if (atomic_fetch_sub(&client->refs, 1) > 1) {
        return;
    }
    nghttp2_session_callbacks_del(client->callbacks);
    nghttp2_option_del(client->option);
    SSL_CTX_free(client->tls);
    if (client->dialer != NULL) {
        pawl__h2_dialer_unref(client->dialer);
    }
    if (client->authorization != NULL) {
        OPENSSL_cleanse(client->authorization, strlen(client->authorization));
    }
    free(client->authorization);
    free(client->authority);
    free(client->tls_name);
    pawl__lock_cond_done(&client->lock, &client->changed);
    free(client);
}

static pawl_status parse_address(struct pawl__h2_client *client,
                                 const char *text,
                                 pawl_error *reterr)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    bool bracketed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    size_t host_len = bracketed ? len - 2 : len;
    char *end = NULL;
    unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);

    bool fits = colon != NULL && host_len > 0 && host_len < sizeof(client->host) && colon[1] >= '0'
                && colon[1] <= '9' && *end == '\0' && port > 0 && port <= UINT16_MAX
                && (bracketed || memchr(text, ':', len) == NULL);
    if (!fits) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' is no address of a server: write 127.0.0.1:4317, [::1]:4317 or "
                          "agent.example:4317",
                          text);
    }
    memcpy(client->host, text + (bracketed ? 1 : 0), host_len);
    (void)snprintf(client->port, sizeof(client->port), "%lu", port);
    return PAWL_OK;
}

static pawl_status copy_texts(struct pawl__h2_client *client,
                              const struct pawl__h2_client_options *options,
                              pawl_error *reterr)
{
    TRY(parse_address(client, options->address, reterr));
    client->authority = strdup(options->address);
    TRY(pawl__check_memory(client->authority, "a client", reterr));
    const char *name = options->tls != NULL && options->tls->server_name != NULL
                           ? options->tls->server_name
                           : client->host;
    client->tls_name = strdup(name);
    TRY(pawl__check_memory(client->tls_name, "a client", reterr));
    if (options->token != NULL) {
        size_t size = strlen(options->token) + sizeof("Bearer ");
        client->authorization = malloc(size);
        TRY(pawl__check_memory(client->authorization, "a client", reterr));
        (void)snprintf(client->authorization, size, "Bearer %s", options->token);
        if (strpbrk(options->token, "\r\n") != NULL) {
            return pawl__fail(reterr, PAWL_INVALID, "the token has a line end");
        }
    }
    return PAWL_OK;
}

static int64_t ns_or(uint32_t ms, uint32_t other)
{
    return (int64_t)(ms == 0 ? other : ms) * NS_PER_MS;
}

static pawl_status set_up(struct pawl__h2_client *client,
                          const struct pawl__h2_client_options *options,
                          pawl_error *reterr)
{
    const struct pawl__h2_limits limits = PAWL__H2_LIMITS_INIT;

    client->clock = pawl__clock_or_real(options->clock);
    client->gzip = options->gzip;
    client->message_bytes_max =
        options->message_bytes_max == 0 ? limits.message_bytes_max : options->message_bytes_max;
    client->calls_max = options->calls_max == 0 ? CALLS_MAX : options->calls_max;
    client->connect_ns = ns_or(options->connect_ms_max, CONNECT_MS);
    client->ping_ns = ns_or(options->ping_ms, PING_MS);
    client->ping_wait_ns = ns_or(options->ping_wait_ms_max, PING_WAIT_MS);
    client->reconnect_ns_max = MAX(ns_or(options->reconnect_ms_max, RECONNECT_MS), 100 * NS_PER_MS);
    TRY(copy_texts(client, options, reterr));
    if (options->tls != NULL) {
        TRY(pawl__h2_tls_client(options->tls, &client->tls, reterr));
    }
    TRY(pawl__h2_client_session_setup(client, reterr));
    client->dialer = options->dialer;
    client->own_dialer = options->dialer == NULL;
    if (client->own_dialer) {
        return pawl__h2_dialer_start(1, client->clock, &client->dialer, reterr);
    }
    return PAWL_OK;
}

pawl_status pawl__h2_client_open(const struct pawl__h2_client_options *options,
                                 struct pawl__h2_client **ret_client,
                                 pawl_error *reterr)
{
    struct pawl__h2_client *client = calloc(1, sizeof(*client));

    TRY(pawl__check_memory(client, "a client", reterr));
    atomic_init(&client->refs, 1);
    pawl__lock_cond_init(&client->lock, &client->changed);
    client->waiting_last = &client->waiting;
    pawl_status status = set_up(client, options, reterr);
    if (status != PAWL_OK) {
        client->dialer = NULL; /* it has none of its own when this fails */
        pawl__h2_client_unref(client);
        return status;
    }
    atomic_fetch_add(&client->dialer->refs, 1);
    size_t turn = atomic_fetch_add(&client->dialer->next, 1);
    client->loop = &client->dialer->loops[turn % client->dialer->count];
    *ret_client = client;
    return PAWL_OK;
}

static void end_everything(void *context)
{
    struct pawl__h2_client *client = context;

    while (client->waiting != NULL) {
        pawl__h2_client_fail(client->waiting, PAWL__H2_CANCELLED, "the client is closed");
    }
    for (struct h2_client_conn *conn = client->conns; conn != NULL; conn = conn->next) {
        while (conn->calls != NULL) {
            pawl__h2_client_fail(conn->calls, PAWL__H2_CANCELLED, "the client is closed");
        }
        pawl__h2_conn_goodbye(&conn->conn, NGHTTP2_NO_ERROR, "the client is closed");
    }
}

void pawl__h2_client_close(struct pawl__h2_client *client)
{
    if (client == NULL) {
        return;
    }
    pawl__lock(&client->lock);
    client->closing = true;
    pawl__unlock(&client->lock);
    bool ran = pawl__h2_loop_call(client->loop, end_everything, client);
    REQUIRE(ran);
    pawl__lock(&client->lock);
    while (client->conn_count > 0 || client->call_count > 0) {
        pawl__cond_wait(&client->changed, &client->lock);
    }
    pawl__unlock(&client->lock);
    struct pawl__h2_dialer *own = client->own_dialer ? client->dialer : NULL;
    pawl__h2_client_unref(client);
    pawl__h2_dialer_stop(own);
}

uint64_t pawl__h2_client_connects(struct pawl__h2_client *client)
{
    return atomic_load(&client->connects);
}

/* --- a call that waits --- */

struct unary {
    struct pawl__lock lock; /* covers done */
    struct pawl__cond changed;
    bool done;
    size_t messages;
    struct pawl__buf *answer;
    pawl_error *reterr;
    const char *path;
    pawl_status status;
};

static void take_answer(void *context, pawl_view message)
{
    struct unary *unary = context;

    if (unary->messages++ == 0) {
        pawl__buf_add(unary->answer, message);
    }
}

static pawl_status outcome_status(struct unary *unary, const struct pawl__h2_outcome *outcome)
{
    if (outcome->code != PAWL__H2_OK) {
        pawl_status status = pawl__fail(unary->reterr,
                                        pawl__h2_status_of(outcome->code),
                                        "%s: %s (%.*s)",
                                        unary->path,
                                        pawl__h2_code_name(outcome->code),
                                        VIEW_ARGS(outcome->message));
        if (unary->reterr != NULL) {
            unary->reterr->native = outcome->code;
        }
        return status;
    }
    if (unary->messages != 1) {
        return pawl__fail(unary->reterr,
                          PAWL_FAILED,
                          "%s: %zu messages in the answer of a unary call",
                          unary->path,
                          unary->messages);
    }
    return pawl__buf_check(unary->answer, "an answer", unary->reterr);
}

static void end_unary(void *context, const struct pawl__h2_outcome *outcome)
{
    struct unary *unary = context;

    unary->status = outcome_status(unary, outcome);
    pawl__lock(&unary->lock);
    unary->done = true;
    pawl__cond_signal(&unary->changed);
    pawl__unlock(&unary->lock);
}

pawl_status pawl__h2_client_call(struct pawl__h2_client *client,
                                 const char *path,
                                 pawl_view request,
                                 int64_t deadline_ns,
                                 struct pawl__buf *ret_answer,
                                 pawl_error *reterr)
{
    struct pawl__buf answer = BUF_INIT(client->message_bytes_max);
    struct unary unary = { .answer = &answer, .reterr = reterr, .path = path };
    const struct pawl__h2_client_ask ask = {
        .path = path,
        .deadline_ns = deadline_ns,
        .request = request,
        .single = true,
        .message = take_answer,
        .done = end_unary,
        .context = &unary,
    };

    REQUIRE(!pawl__h2_loop_is_mine(client->loop));
    pawl__lock_cond_init(&unary.lock, &unary.changed);
    pawl_status status = pawl__h2_client_begin(client, &ask, NULL, reterr);
    if (status == PAWL_OK) {
        pawl__lock(&unary.lock);
        while (!unary.done) { /* the client's thread ends it by the deadline */
            pawl__cond_wait(&unary.changed, &unary.lock);
        }
        pawl__unlock(&unary.lock);
        status = unary.status;
    }
    pawl__lock_cond_done(&unary.lock, &unary.changed);
    if (status == PAWL_OK) {
        pawl__buf_done(ret_answer);
        *ret_answer = answer;
    } else {
        pawl__buf_done(&answer);
    }
    return status;
}
