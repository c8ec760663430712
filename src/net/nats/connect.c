/* Connecting, and ending.
 *
 * cnats 3.4 runs the TLS handshake on a blocking socket without a time limit: a server that stops in the middle
 * of it would hold us for ever, in open as well as in close, which joins the thread that reconnects. So both
 * run on a thread of their own that is left behind when it is late. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/random.h"
#include "base/os/fs.h"
#include "net/nats/identity.h"
#include "net/nats/internal.h"
#include "net/nats/url.h"

enum {
    CONNECT_MS_DEFAULT = 5000,
    ANSWER_MS_DEFAULT = 5000,
    PING_MS_DEFAULT = 5000,
    RECONNECT_MS_FIRST = 100,
    RECONNECT_MS_LAST = 5000,
    MS_MAX = 3600 * 1000,
    PINGS_OUT_MAX = 2,
    SIGNATURES_MAX = 8, /* one in 256 cannot be sent (identity.c) */
    GRACE_MS = 1000,    /* beyond cnats' own limits, before its thread is left behind */
};

/* --- what cnats tells us --- */

static void events_release(struct nats_events *events)
{
    pawl__lock(&events->lock);
    int left = --events->owners;
    pawl__unlock(&events->lock);
    if (left == 0) {
        pawl__lock_done(&events->lock);
        pawl__nats_identity_done(&events->identity);
        free(events);
    }
}

static void on_error(natsConnection *conn, natsSubscription *sub, natsStatus error, void *closure)
{
    struct nats_events *events = closure;
    const char *text = nats_GetLastError(NULL);

    (void)conn;
    (void)sub;
    if (error != NATS_NOT_PERMITTED && error != NATS_CONNECTION_AUTH_FAILED) {
        return;
    }
    pawl__lock(&events->lock);
    events->refusals++;
    events->credentials_refused = events->credentials_refused || error != NATS_NOT_PERMITTED;
    snprintf(events->refusal,
             sizeof(events->refusal),
             "the server refuses it: %s",
             text == NULL || text[0] == '\0' ? natsStatus_GetText(error) : text);
    pawl__unlock(&events->lock);
}

/* The last callback of a connection. */
static void on_closed(natsConnection *conn, void *closure)
{
    const char *text = NULL;
    struct nats_events *events = closure;

    if (natsConnection_GetLastError(conn, &text) == NATS_CONNECTION_AUTH_FAILED) {
        on_error(conn, NULL, NATS_CONNECTION_AUTH_FAILED, closure);
    }
    events_release(events);
}

static int64_t on_reconnect_wait(natsConnection *conn, int attempts, void *closure)
{
    const struct nats_events *events = closure;
    uint64_t bits = 0;

    (void)conn;
    if (pawl__random_bytes(pawl__random_real(), &bits, sizeof(bits), NULL) != PAWL_OK) {
        bits = UINT64_MAX;
    }
    return pawl__backoff_ns(&events->backoff, (uint64_t)MAX(attempts, 1), bits) / NS_PER_MS;
}

/* --- options --- */

static int or_default(int value, int fallback)
{
    return value == 0 ? fallback : value;
}

static pawl_status check_times(const struct pawl__nats_options *options, pawl_error *reterr)
{
    TRY(pawl__check_range("connect_ms_max", options->connect_ms_max, 0, MS_MAX, reterr));
    TRY(pawl__check_range("answer_ms_max", options->answer_ms_max, 0, MS_MAX, reterr));
    TRY(pawl__check_range("ping_ms", options->ping_ms, 0, MS_MAX, reterr));
    TRY(pawl__check_range("reconnect_ms_min", options->reconnect_ms_min, 0, MS_MAX, reterr));
    return pawl__check_range("reconnect_ms_max", options->reconnect_ms_max, 0, MS_MAX, reterr);
}

static pawl_status set_tls(natsOptions *native,
                           const struct pawl__nats_tls *tls,
                           bool wanted,
                           pawl_error *reterr)
{
    if (!wanted && !tls->required && tls->ca_file == NULL && tls->cert_file == NULL) {
        return PAWL_OK;
    }
    TRY(pawl__nats_fail_option(natsOptions_SetSecure(native, true), "TLS", reterr));
    if (tls->ca_file != NULL) {
        TRY(pawl__nats_fail_option(
            natsOptions_LoadCATrustedCertificates(native, tls->ca_file), "TLS: CA file", reterr));
    }
    if (tls->cert_file != NULL) {
        TRY(pawl__nats_fail_option(
            natsOptions_LoadCertificatesChain(native, tls->cert_file, tls->key_file),
            "TLS: client certificate",
            reterr));
    }
    return tls->server_name == NULL
               ? PAWL_OK
               : pawl__nats_fail_option(natsOptions_SetExpectedHostname(native, tls->server_name),
                                        "TLS: server name",
                                        reterr);
}

static natsStatus set_events(natsOptions *native, struct nats_events *events)
{
    natsStatus s = natsOptions_SetErrorHandler(native, on_error, events);

    s = s != NATS_OK ? s : natsOptions_SetClosedCB(native, on_closed, events);
    s = s != NATS_OK ? s : natsOptions_SetCustomReconnectDelay(native, on_reconnect_wait, events);
    return s;
}

static natsStatus set_times(natsOptions *native, const struct pawl__nats_options *options)
{
    int ping_ms = or_default(options->ping_ms, PING_MS_DEFAULT);
    int connect_ms = or_default(options->connect_ms_max, CONNECT_MS_DEFAULT);
    natsStatus s = natsOptions_SetTimeout(native, connect_ms);

    s = s != NATS_OK ? s : natsOptions_SetPingInterval(native, ping_ms);
    s = s != NATS_OK ? s : natsOptions_SetMaxPingsOut(native, PINGS_OUT_MAX);
    s = s != NATS_OK ? s
                     : natsOptions_SetWriteDeadline(
                         native, or_default(options->answer_ms_max, ANSWER_MS_DEFAULT));
    s = s != NATS_OK ? s : natsOptions_SetMaxReconnect(native, -1);
    s = s != NATS_OK ? s : natsOptions_SetFailRequestsOnDisconnect(native, true);
    return s;
}

static pawl_status fill(natsOptions *native,
                        const struct pawl__nats_options *options,
                        struct pawl__nats_url *url,
                        struct nats_events *events,
                        pawl_error *reterr)
{
    const char *name = options->name == NULL ? "pawl" : options->name;
    const char *servers[PAWL__NATS_SERVERS_MAX];

    for (size_t i = 0; i < url->server_count; i++) {
        servers[i] = url->servers[i];
    }
    TRY(pawl__nats_fail_option(
        natsOptions_SetServers(native, servers, (int)url->server_count), "servers", reterr));
    TRY(pawl__nats_fail_option(natsOptions_SetName(native, name), "name", reterr));
    TRY(pawl__nats_fail_option(set_times(native, options), "time limits", reterr));
    TRY(pawl__nats_fail_option(set_events(native, events), "callbacks", reterr));
    TRY(pawl__nats_set_identity(native, options, url, &events->identity, reterr));
    return set_tls(native, &options->tls, url->tls, reterr);
}

/* --- a thread for what may hang --- */

struct hang_job {
    struct pawl__lock lock; /* covers everything below */
    struct pawl__cond cond;
    bool done;
    bool left_behind;     /* nobody waits any more: the thread ends what it holds */
    natsOptions *options; /* set: connect with these */
    struct nats_events
        *events;          /* cnats' share of it, which a connection that fails does not give back */
    natsConnection *conn; /* what was made; without options: what to close */
    natsStatus native;
    char text[160];
};

static void job_free(struct hang_job *job)
{
    natsOptions_Destroy(job->options);
    pawl__lock_cond_done(&job->lock, &job->cond);
    free(job);
}

static void job_run(void *context)
{
    struct hang_job *job = context;
    natsConnection *made = NULL;
    natsStatus native = NATS_OK;
    const char *text = NULL;

    if (job->options != NULL) {
        for (int i = 0; i < SIGNATURES_MAX; i++) {
            native = natsConnection_Connect(&made, job->options);
            if (native == NATS_OK || !atomic_exchange(&job->events->identity.unsendable, false)) {
                break;
            }
        }
        if (native != NATS_OK) {
            text = nats_GetLastError(NULL);
            events_release(job->events);
        }
    } else {
        natsConnection_Destroy(job->conn);
    }
    pawl__lock(&job->lock);
    job->done = true;
    job->conn = made;
    job->native = native;
    snprintf(job->text, sizeof(job->text), "%s", text == NULL ? "" : text);
    bool left_behind = job->left_behind;
    pawl__cond_signal(&job->cond);
    pawl__unlock(&job->lock);
    if (left_behind) {
        natsConnection_Destroy(made);
        job_free(job);
    }
}

/* False: the thread is left behind and owns the job. */
static bool job_finish(struct hang_job *job, struct pawl__thread *thread, int64_t deadline_ns)
{
    pawl__lock(&job->lock);
    while (!job->done && pawl__cond_wait_until(&job->cond, &job->lock, deadline_ns)) {
    }
    bool done = job->done;
    job->left_behind = !done;
    pawl__unlock(&job->lock);
    if (done) {
        pawl__thread_join(thread);
    } else {
        pthread_detach(thread->id);
    }
    return done;
}

static pawl_status job_new(struct hang_job **ret_job, pawl_error *reterr)
{
    struct hang_job *job = calloc(1, sizeof(*job));

    TRY(pawl__check_memory(job, "a NATS connection", reterr));
    pawl__lock_cond_init(&job->lock, &job->cond);
    *ret_job = job;
    return PAWL_OK;
}

/* --- open and close --- */

static pawl_status fail_connect(const struct pawl__nats *nats,
                                natsStatus native,
                                const char *text,
                                pawl_error *reterr)
{
    return pawl__nats_fail(
        reterr, native, 0, text[0] == '\0' ? NULL : text, "cannot connect to '%s'", nats->shown);
}

/* cnats holds a share of the events until on_closed. */
static void events_share(struct nats_events *events)
{
    pawl__lock(&events->lock);
    events->owners++;
    pawl__unlock(&events->lock);
}

static pawl_status connect_now(struct pawl__nats *nats, natsOptions **options, pawl_error *reterr)
{
    struct pawl__thread thread = { 0 };
    struct hang_job *job = NULL;
    int64_t limit_ms = (int64_t)nats->connect_ms_max * (int64_t)nats->server_count + GRACE_MS;

    TRY(job_new(&job, reterr));
    job->options = STEAL(*options);
    job->events = nats->events;
    events_share(nats->events);
    pawl_status status = pawl__thread_start(&thread, "pawl-nats", job_run, job, reterr);
    if (status != PAWL_OK) {
        events_release(nats->events);
        job_free(job);
        return status;
    }
    if (!job_finish(job, &thread, pawl__nats_now_ns(nats) + limit_ms * NS_PER_MS)) {
        return fail_connect(nats, NATS_TIMEOUT, "the server stopped in the middle of it", reterr);
    }
    status = job->native == NATS_OK ? PAWL_OK : fail_connect(nats, job->native, job->text, reterr);
    nats->conn = job->conn;
    job_free(job);
    return status;
}

static void disconnect_now(struct pawl__nats *nats)
{
    struct pawl__thread thread = { 0 };
    struct hang_job *job = NULL;
    int64_t limit_ms = (int64_t)nats->connect_ms_max + nats->answer_ms_max + GRACE_MS;

    if (job_new(&job, NULL) != PAWL_OK) {
        natsConnection_Destroy(nats->conn); /* no memory for a thread: the plain way */
        return;
    }
    job->conn = nats->conn;
    if (pawl__thread_start(&thread, "pawl-nats", job_run, job, NULL) != PAWL_OK) {
        job_run(job);
        job_free(job);
    } else if (job_finish(job, &thread, pawl__nats_now_ns(nats) + limit_ms * NS_PER_MS)) {
        job_free(job);
    }
}

static pawl_status make_events(const struct pawl__nats_options *options,
                               struct nats_events **ret_events,
                               pawl_error *reterr)
{
    struct nats_events *events = calloc(1, sizeof(*events));
    int first_ms = or_default(options->reconnect_ms_min, RECONNECT_MS_FIRST);
    int last_ms = or_default(options->reconnect_ms_max, RECONNECT_MS_LAST);

    TRY(pawl__check_memory(events, "a NATS connection", reterr));
    pawl__lock_init(&events->lock);
    events->owners = 1;
    events->backoff = (struct pawl__backoff){ .first_ns = first_ms * NS_PER_MS,
                                              .max_ns = MAX(first_ms, last_ms) * NS_PER_MS };
    *ret_events = events;
    return PAWL_OK;
}

static void options_destroy(natsOptions **options)
{
    natsOptions_Destroy(*options);
}

static pawl_status open_parsed(struct pawl__nats *nats,
                               const struct pawl__nats_options *options,
                               struct pawl__nats_url *url,
                               pawl_error *reterr)
{
    AUTO(options_destroy) natsOptions *native = NULL;

    TRY(make_events(options, &nats->events, reterr));
    TRY(pawl__nats_fail_option(natsOptions_Create(&native), "NATS options", reterr));
    TRY(fill(native, options, url, nats->events, reterr));
    TRY(connect_now(nats, &native, reterr));
    TRY(pawl__nats_fail_option(natsStatistics_Create(&nats->statistics), "statistics", reterr));
    jsOptions js = pawl__nats_call_options(nats);
    return pawl__nats_fail_option(
        natsConnection_JetStream(&nats->js, nats->conn, &js), "JetStream", reterr);
}

pawl_status pawl__nats_open(const char *url,
                            const struct pawl__nats_options *options,
                            struct pawl__nats **ret_nats,
                            pawl_error *reterr)
{
    static const struct pawl__nats_options defaults = { 0 };
    AUTO(pawl__nats_url_done) struct pawl__nats_url parsed = { 0 };
    AUTO(pawl__nats_close_p) struct pawl__nats *nats = NULL;

    NEED_TEXT(url, reterr);
    NEED(ret_nats, reterr);
    options = options == NULL ? &defaults : options;
    TRY(check_times(options, reterr));
    TRY(pawl__nats_url_parse(url, &parsed, reterr));
    nats = calloc(1, sizeof(*nats));
    TRY(pawl__check_memory(nats, "a NATS connection", reterr));
    nats->clock = pawl__clock_or_real(options->clock);
    nats->answer_ms_max = or_default(options->answer_ms_max, ANSWER_MS_DEFAULT);
    nats->connect_ms_max = or_default(options->connect_ms_max, CONNECT_MS_DEFAULT);
    nats->server_count = parsed.server_count;
    nats->shown = STEAL(parsed.shown);
    TRY(open_parsed(nats, options, &parsed, reterr));
    *ret_nats = STEAL(nats);
    return PAWL_OK;
}

void pawl__nats_close(struct pawl__nats *nats)
{
    if (nats == NULL) {
        return;
    }
    jsCtx_Destroy(nats->js);
    if (nats->conn != NULL) {
        disconnect_now(nats);
    }
    if (nats->events != NULL) {
        events_release(nats->events);
    }
    natsStatistics_Destroy(nats->statistics);
    free(nats->shown);
    free(nats);
}

enum pawl__nats_state pawl__nats_state(struct pawl__nats *nats)
{
    switch (natsConnection_Status(nats->conn)) {
    case NATS_CONN_STATUS_CONNECTED:
        return PAWL__NATS_CONNECTED;
    case NATS_CONN_STATUS_CLOSED:
        return PAWL__NATS_CLOSED;
    default:
        return PAWL__NATS_RECONNECTING;
    }
}

const char *pawl__nats_state_name(enum pawl__nats_state state)
{
    static const char *const names[] = { "connected", "reconnecting", "closed" };

    return (size_t)state < COUNT_OF(names) ? names[state] : "unknown";
}

/* cnats' own count, which it raises before the connection is up; its callback comes later, and a message that was
 * sent in between would seem to be of the old link. */
uint64_t pawl__nats_reconnects(struct pawl__nats *nats)
{
    uint64_t reconnects = 0;

    pawl__lock(&nats->events->lock);
    if (natsConnection_GetStats(nats->conn, nats->statistics) == NATS_OK
        && natsStatistics_GetCounts(nats->statistics, NULL, NULL, NULL, NULL, &reconnects)
               == NATS_OK) {
        nats->reconnects = MAX(nats->reconnects, reconnects);
    }
    reconnects = nats->reconnects;
    pawl__unlock(&nats->events->lock);
    return reconnects;
}

const char *pawl__nats_shown(const struct pawl__nats *nats)
{
    return nats->shown;
}

int64_t pawl__nats_payload_max(struct pawl__nats *nats)
{
    return natsConnection_GetMaxPayload(nats->conn);
}

pawl_status pawl__nats_ping(struct pawl__nats *nats, pawl_error *reterr)
{
    TRY(pawl__nats_ready(nats, reterr));
    natsStatus native = natsConnection_FlushTimeout(nats->conn, nats->answer_ms_max);
    return native == NATS_OK
               ? PAWL_OK
               : pawl__nats_fail(reterr, native, 0, NULL, "ping of '%s'", nats->shown);
}

pawl_status pawl__nats_server_id(struct pawl__nats *nats,
                                 char ret_id[PAWL__NATS_SERVER_ID_SIZE],
                                 pawl_error *reterr)
{
    NEED(nats, reterr);
    NEED(ret_id, reterr);
    TRY(pawl__nats_ready(nats, reterr));
    natsStatus native =
        natsConnection_GetConnectedServerId(nats->conn, ret_id, PAWL__NATS_SERVER_ID_SIZE);
    return native == NATS_OK ? PAWL_OK
                             : pawl__nats_fail(reterr, native, 0, NULL, "the server's id");
}
