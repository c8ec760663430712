/* The server: libmicrohttpd's callbacks, starting and stopping. */
#include "net/http/http.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "net/http/internal.h"
#include "net/http/listen.h"

enum {
    CONNECTION_BYTES_MIN = 4096,
    AMPERSANDS_MAX = 4 * HTTP_QUERY_MAX /* which is checked later, with a better message */
};

#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

const char *pawl__http_library_version(void)
{
    return MHD_get_version();
}

/* --- answering --- */

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (MHD_add_response_header(response, name, value) != MHD_YES) {
        LOG_DEBUG("a header was left out", LOG_TEXT("name", name));
    }
}

static struct MHD_Response *make_response(struct http_answer *answer, bool last)
{
    char none[1] = "";
    struct MHD_Response *response =
        answer->stream != NULL ? pawl__http_stream_response(answer->stream)
        : answer->body == NULL
            ? MHD_create_response_from_buffer(0, none, MHD_RESPMEM_MUST_COPY)
            : MHD_create_response_from_buffer(answer->len, answer->body, MHD_RESPMEM_MUST_FREE);

    if (response == NULL) {
        free(STEAL(answer->body));
        return NULL;
    }
    add_header(response, "Content-Type", answer->type);
    add_header(response, "Cache-Control", "no-store");
    add_header(response, "X-Content-Type-Options", "nosniff");
    for (size_t i = 0; i < answer->header_count; i++) {
        add_header(response, answer->headers[i].name, answer->headers[i].value);
    }
    if (last) {
        add_header(response, "Connection", "close");
    }
    return response;
}

static void count_and_log(struct pawl__http_request *request, const struct http_answer *answer)
{
    int64_t took_ns = pawl__monotonic_ns(request->http->options.clock) - request->began_ns;
    double seconds = (double)took_ns / (double)NS_PER_S;

    pawl__http_metrics_count(
        request->http->metrics, request->route, request->method, answer->code, seconds);
    LOG_DEBUG("request",
              LOG_TEXT("method", request->method),
              LOG_TEXT("target", request->target),
              LOG_NATURAL("code", answer->code),
              LOG_NATURAL("bytes", answer->len),
              LOG_REAL("seconds", seconds));
}

/* On the connection's thread. */
static enum MHD_Result queue_answer(struct pawl__http_request *request)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    REQUIRE(request->answer.code != 0);
    struct http_answer answer = request->answer;
    request->answer.body = NULL;
    request->answer.stream = NULL;
    bool last = http->stopping || request->ends;
    bool kept = request->kept; /* then somebody may still read the body */
    bool was_suspended = request->was_suspended;
    pawl__unlock(&http->lock);
    /* The end may have come with the request: MHD, which then has read less than there was room for, does
     * not look again, and the client would wait for the end of an idle connection. */
    last = last
           || (!was_suspended && request->conn != NULL && pawl__http_conn_is_closed(request->conn));

    request->phase = HTTP_QUEUED;
    if (!kept) {
        pawl__http_drop_body(request);
    }
    pawl__http_conn_answers(&http->watch, request->conn);
    count_and_log(request, &answer);
    if (answer.stream != NULL && strcmp(request->method, "HEAD") == 0) {
        /* MHD would send the end of a chunked body behind the head, which is where the next answer begins. */
        pawl__http_stream_drop(STEAL(answer.stream));
    }
    struct MHD_Response *response = make_response(&answer, last);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result result = MHD_queue_response(request->connection, answer.code, response);
    MHD_destroy_response(response);
    return result;
}

/* --- handling --- */

/* What arrives while the server stops is not begun: it would have to be waited for, and so on. */
static bool is_stopping(struct pawl__http *http)
{
    pawl__lock(&http->lock);
    bool stopping = http->stopping;
    pawl__unlock(&http->lock);
    return stopping;
}

static enum MHD_Result handle(struct pawl__http_request *request)
{
    const struct pawl__http_route *route = pawl__http_route_of(request);

    request->phase = HTTP_HANDED;
    if (is_stopping(request->http)) {
        pawl__http_refuse(request, &pawl__http_stopping, "nothing was done: ask again");
    } else if (route->blocks) {
        pawl__http_to_worker(request);
    } else {
        route->handle(request, pawl__http_context_of(request));
    }
    return pawl__http_settle(request, true) ? queue_answer(request) : MHD_YES;
}

/* --- reading --- */

/* Whether there is room for so much more of all bodies together. */
static bool count_body(struct pawl__http_request *request, size_t len)
{
    struct pawl__http *http = request->http;

    if (atomic_fetch_add(&http->body_bytes, len) + len > http->options.bodies_bytes_max) {
        atomic_fetch_sub(&http->body_bytes, len);
        return false;
    }
    request->body_bytes += len;
    return true;
}

static void append_body(struct pawl__http_request *request, pawl_view bytes)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (!count_body(request, bytes.len)) {
        pawl__http_refuse(request, pawl__http_problem_of(PAWL_BUSY), "");
        pawl__http_drop_body(request);
        return;
    }
    pawl__buf_add(&request->body, bytes);
    if (request->body.nomem) {
        (void)pawl__fail(&error, PAWL_NOMEM, "no memory for a body");
        pawl__http_fail(request, &error);
    } else if (request->body.broken) {
        pawl__http_refuse_size(request);
    }
}

/* A refused body is let pass, so that its sender gets to read the answer; twice the limit is enough. */
static enum MHD_Result let_pass(struct pawl__http_request *request, size_t len)
{
    request->dropped += len;
    return request->dropped <= 2 * request->http->options.body_bytes_max ? MHD_YES : MHD_NO;
}

/* A client that closed its side in mid-body sends no more of it. libmicrohttpd is told so once, together
 * with bytes that came before, and overlooks it behind a short read (epoll, edge-triggered). Closing our
 * side, too, tells it again; what has arrived can still be read. */
static void notice_end_of_body(const struct pawl__http_request *request)
{
    if (request->conn != NULL && pawl__http_conn_is_closed(request->conn)) {
        (void)shutdown(request->conn->fd, SHUT_RD);
    }
}

static bool has_body(const struct pawl__http_request *request)
{
    return pawl__http_header(request, "Content-Length") != NULL
           || pawl__http_header(request, "Transfer-Encoding") != NULL;
}

static enum MHD_Result begin(struct pawl__http_request *request, const char *method)
{
    request->phase = HTTP_READING;
    (void)snprintf(request->method, sizeof(request->method), "%s", method);
    pawl__http_admit(request);
    if (has_body(request)) {
        notice_end_of_body(request);
    }
    /* An answer now ends the connection: only for a body that is not wanted, or ends nobody knows where. */
    return request->ends ? queue_answer(request) : MHD_YES;
}

static enum MHD_Result on_access(void *context,
                                 struct MHD_Connection *connection,
                                 const char *url,
                                 const char *method,
                                 const char *version,
                                 const char *data,
                                 size_t *data_size,
                                 void **request_context)
{
    struct pawl__http_request *request = *request_context;

    (void)context;
    (void)connection;
    (void)url;
    (void)version;
    if (request == NULL
        || request->refused) { /* there was no memory for it, or it has its answer */
        return MHD_NO;
    }
    if (request->phase == HTTP_BEGUN) {
        return begin(request, method);
    }
    if (request->phase == HTTP_HANDED) { /* it is kept, or was resumed */
        return pawl__http_settle(request, false) ? queue_answer(request) : MHD_YES;
    }
    bool answered = pawl__http_is_answered(request);
    if (*data_size > 0) {
        size_t len = *data_size;

        *data_size = 0;
        if (answered) {
            return let_pass(request, len);
        }
        append_body(request, (pawl_view){ data, len });
        notice_end_of_body(request);
        return MHD_YES;
    }
    request->arrived = true;
    pawl__http_conn_has_it(&request->http->watch, request->conn);
    return answered ? queue_answer(request) : handle(request);
}

/* --- coming and going --- */

static struct http_conn *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

static void complete(struct pawl__http_request *request, const char *why)
{
    if (request->phase != HTTP_QUEUED) {
        LOG_DEBUG("request ended without an answer",
                  LOG_TEXT("method", request->method),
                  LOG_TEXT("target", request->target),
                  LOG_TEXT("why", why));
    }
    pawl__http_leave(request);
    pawl__http_conn_ends(&request->http->watch, request->conn, request->arrived);
    pawl__http_request_unref(request);
}

static void on_connection(void *context,
                          struct MHD_Connection *connection,
                          void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct pawl__http *http = context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context =
            info == NULL ? NULL : pawl__http_conn_open(&http->watch, info->connect_fd);
        if (info != NULL && http->options.socket_path != NULL
            && !pawl__http_is_own_peer(info->connect_fd)) {
            (void)shutdown(info->connect_fd, SHUT_RDWR); /* the file's mode did not keep it out */
        }
    } else {
        struct http_conn *conn = *socket_context;

        if (conn != NULL && conn->request != NULL) { /* MHD forgets some that it refused twice */
            complete(conn->request, "the connection ended");
        }
        pawl__http_conn_close(&http->watch, conn);
    }
}

/* MHD takes the query apart for itself, out of the connection's memory. When that runs out it forgets
 * that it has answered, and answers once more (0.9.75). */
static void refuse_target(struct pawl__http_request *request)
{
    char detail[64];
    size_t ampersands = 0;

    for (const char *at = strchr(request->target, '&'); at != NULL; at = strchr(at + 1, '&')) {
        ampersands++;
    }
    if (strlen(request->target) > request->http->options.header_bytes_max) {
        (void)snprintf(detail,
                       sizeof(detail),
                       "the limit is %zu bytes",
                       request->http->options.header_bytes_max);
        pawl__http_refuse_raw(request, &pawl__http_target_too_long, detail);
    } else if (ampersands > AMPERSANDS_MAX) {
        (void)snprintf(
            detail, sizeof(detail), "the query has more than %d parameters", HTTP_QUERY_MAX);
        pawl__http_refuse_raw(request, pawl__http_problem_of(PAWL_INVALID), detail);
    }
}

/* The first line was read. What is returned is the request's context. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct pawl__http *http = context;
    struct pawl__http_request *request = pawl__http_request_new(http, connection, target);

    if (request != NULL) {
        request->conn = conn_of(connection);
        pawl__http_conn_begins(&http->watch, request->conn, request);
        refuse_target(request);
    }
    return request;
}

static void on_completed(void *context,
                         struct MHD_Connection *connection,
                         void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    static const char *const whys[] = { "answered", "error",          "timeout",
                                        "stopping", "reading failed", "the client left" };
    struct pawl__http_request *request = *request_context;

    (void)context;
    (void)connection;
    if (request != NULL) {
        *request_context = NULL;
        complete(request, (size_t)code < COUNT_OF(whys) ? whys[code] : "unknown");
    }
}

/* Addresses are taken apart by ourselves, before anything in them is decoded. */
static size_t leave_escaped(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* Connections that arrive during a stop are refused here, not by MHD_quiesce_daemon: that races MHD's own
 * threads for the listening socket, and the loser aborts the program (0.9.75). */
static enum MHD_Result on_connect(void *context, const struct sockaddr *address, socklen_t size)
{
    (void)address;
    (void)size;
    return is_stopping(context) ? MHD_NO : MHD_YES;
}

/* --- starting --- */

/* MHD has four times the memory of our own limit on headers, so that ours is met first and answered by us. It zeroes
 * all of it after each request: more would cost every one of them. */
static pawl_status start_daemon(struct pawl__http *http, int fd, pawl_error *reterr)
{
    const struct pawl__http_options *options = &http->options;
    unsigned idle_s = (options->idle_ms_max + 999) / 1000;
    size_t memory = 4 * MAX(options->header_bytes_max, CONNECTION_BYTES_MIN);
    bool is_tls = options->tls_certificate != NULL;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->tls_certificate },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->tls_key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_VERSIONS },
        { MHD_OPTION_END, 0, NULL },
    };
    sigset_t all;
    sigset_t before;

    sigfillset(&all); /* signals belong to the program: its threads inherit this */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    http->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME
                                        | MHD_USE_ERROR_LOG | (is_tls ? MHD_USE_TLS : 0U),
                                    0,
                                    on_connect,
                                    http,
                                    on_access,
                                    http,
                                    MHD_OPTION_ARRAY,
                                    is_tls ? tls : &tls[COUNT_OF(tls) - 1],
                                    MHD_OPTION_EXTERNAL_LOGGER,
                                    pawl__http_on_message,
                                    http,
                                    MHD_OPTION_LISTEN_SOCKET,
                                    fd,
                                    MHD_OPTION_THREAD_POOL_SIZE,
                                    (unsigned)MAX(options->threads, 2),
                                    MHD_OPTION_CONNECTION_LIMIT,
                                    (unsigned)options->connections_max,
                                    MHD_OPTION_CONNECTION_TIMEOUT,
                                    idle_s,
                                    MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                    memory,
                                    MHD_OPTION_STRICT_FOR_CLIENT,
                                    1,
                                    MHD_OPTION_URI_LOG_CALLBACK,
                                    on_target,
                                    http,
                                    MHD_OPTION_UNESCAPE_CALLBACK,
                                    leave_escaped,
                                    NULL,
                                    MHD_OPTION_NOTIFY_COMPLETED,
                                    on_completed,
                                    http,
                                    MHD_OPTION_NOTIFY_CONNECTION,
                                    on_connection,
                                    http,
                                    MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (http->daemon != NULL) {
        return PAWL_OK;
    }
    return is_tls ? pawl__fail(
               reterr,
               PAWL_INVALID,
               "the HTTP server does not start: the TLS certificate and its key do not "
               "belong together, or one of them is damaged")
                  : pawl__fail(reterr, PAWL_FAILED, "the HTTP server does not start");
}

static pawl_status start_listening(struct pawl__http *http, int *ret_fd, pawl_error *reterr)
{
    const char *path = http->options.socket_path;
    struct stat made;

    if (path == NULL) {
        return pawl__http_listen(
            http->options.listen, ret_fd, http->address, sizeof(http->address), reterr);
    }
    http->socket_path = strdup(path); /* the caller's may be gone when it is removed */
    TRY(pawl__check_memory(http->socket_path, "the path of a socket", reterr));
    TRY(pawl__http_listen_unix(path, ret_fd, reterr));
    http->socket_inode = lstat(path, &made) == 0 ? made.st_ino : 0;
    (void)snprintf(http->address, sizeof(http->address), "localhost:0");
    return PAWL_OK;
}

/* Unless somebody else has put one in its place. */
static void remove_socket(const struct pawl__http *http)
{
    struct stat found;

    if (http->socket_inode != 0 && lstat(http->socket_path, &found) == 0
        && found.st_ino == http->socket_inode) {
        (void)unlink(http->socket_path);
    }
}

/* What else the watch looks after: requests that are kept, and quiet streams. */
static int64_t look_after(void *context, int64_t now_ns)
{
    int64_t late_ns = pawl__http_give_up_late(context, now_ns);
    int64_t looks_ns = pawl__http_notice_leaving(context, now_ns);

    return MIN(MIN(late_ns, looks_ns), pawl__http_streams_ask_again(context, now_ns));
}

static pawl_status start_parts(struct pawl__http *http, pawl_error *reterr)
{
    int fd = -1;

    if (http->options.metrics != NULL) {
        TRY(pawl__http_metrics_new(http->options.metrics, &http->routes, &http->metrics, reterr));
    }
    http->looks_ns = INT64_MAX;
    http->watch.also = look_after;
    http->watch.context = http;
    TRY(pawl__http_watch_start(&http->watch, &http->options, reterr));
    http->watch_ready = true;
    TRY(pawl__http_work_start(http, reterr));
    TRY(start_listening(http, &fd, reterr));
    pawl_status status = start_daemon(http, fd, reterr);
    if (status != PAWL_OK) {
        close(fd);
    }
    return status;
}

pawl_status pawl__http_start(const struct pawl__http_options *options,
                             struct pawl__http **ret_http,
                             pawl_error *reterr)
{
    struct pawl__http *http = calloc(1, sizeof(*http));

    TRY(pawl__check_memory(http, "an HTTP server", reterr));
    atomic_init(&http->refs, 1);
    pawl__lock_init(&http->lock);
    http->options = *options;
    http->options.clock = pawl__clock_or_real(options->clock);
    http->routes = (struct pawl__http_routes){ options->routes, options->route_count };
    pawl_status status = start_parts(http, reterr);
    if (status != PAWL_OK) {
        (void)!pawl__http_stop(http, INT64_MAX, NULL);
        return status;
    }
    *ret_http = http;
    return PAWL_OK;
}

const char *pawl__http_listens_on(const struct pawl__http *http)
{
    return http->address;
}

/* --- stopping --- */

void pawl__http_unref(struct pawl__http *http)
{
    if (atomic_fetch_sub(&http->refs, 1) == 1) {
        pawl__lock_done(&http->lock);
        free(http->socket_path);
        free(http);
    }
}

static void stop_daemon(struct pawl__http *http, int64_t deadline_ns)
{
    struct pawl__clock *clock = http->options.clock;

    pawl__lock(&http->lock);
    http->stopping = true;
    pawl__unlock(&http->lock);
    pawl__http_streams_end(http);
    remove_socket(http);
    if (!pawl__http_watch_wait(&http->watch, deadline_ns)) {
        pawl__http_give_up(http);
        (void)pawl__http_watch_wait(&http->watch,
                                    pawl__monotonic_ns(clock) + HTTP_GRACE_MS * NS_PER_MS);
    }
    pawl__http_give_up(http);
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
}

pawl_status pawl__http_stop(struct pawl__http *http, int64_t deadline_ns, pawl_error *reterr)
{
    if (http == NULL) {
        return PAWL_OK;
    }
    if (http->daemon != NULL) {
        stop_daemon(http, deadline_ns);
    }
    TRY(pawl__http_work_stop(http, deadline_ns, reterr));
    if (http->watch_ready) {
        pawl__http_watch_stop(&http->watch);
        pawl__http_watch_done(&http->watch);
    }
    pawl__http_metrics_free(STEAL(http->metrics));
    pawl__http_unref(http);
    return PAWL_OK;
}
