/* A request: what was asked, its answer, and being kept. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/log/log.h"
#include "net/http/internal.h"

enum {
    TARGET_SHOWN_MAX = 200,
    LOOK_AT_ONCE = 256,
    PROBLEM_BYTES_MAX = 4 * PAWL_ERROR_MESSAGE_SIZE + 1024
};
#define LOOK_NS (2 * NS_PER_S) /* between two looks at who has left */

/* --- life --- */

struct pawl__http_request *pawl__http_request_new(struct pawl__http *http,
                                                  struct MHD_Connection *connection,
                                                  const char *target)
{
    struct pawl__http_request *request = calloc(1, sizeof(*request));

    if (request == NULL) {
        return NULL;
    }
    request->target = strdup(target);
    if (request->target == NULL) {
        free(request);
        return NULL;
    }
    request->http = http;
    request->connection = connection;
    request->route = http->routes.count;
    request->body = (struct pawl__buf)BUF_INIT(http->options.body_bytes_max);
    request->began_ns = pawl__monotonic_ns(http->options.clock);
    atomic_init(&request->refs, 1);
    atomic_fetch_add(&http->refs, 1);
    return request;
}

void pawl__http_request_unref(struct pawl__http_request *request)
{
    if (atomic_fetch_sub(&request->refs, 1) != 1) {
        return;
    }
    if (request->release != NULL) {
        request->release(request->attached);
    }
    pawl__http_drop_body(request);
    pawl__http_stream_drop(request->answer.stream);
    pawl__http_unref(request->http);
    pawl__http_url_done(&request->url);
    free(request->answer.body);
    free(request->target);
    free(request);
}

/* --- what was asked --- */

const struct pawl__http_route *pawl__http_route_of(const struct pawl__http_request *request)
{
    REQUIRE(request->route < request->http->routes.count);
    return &request->http->routes.routes[request->route];
}

void *pawl__http_context_of(const struct pawl__http_request *request)
{
    void *context = pawl__http_route_of(request)->context;

    return context != NULL ? context : request->http->options.context;
}

void pawl__http_attach(struct pawl__http_request *request,
                       void *attached,
                       void (*release)(void *attached))
{
    REQUIRE(request->release == NULL);
    request->attached = attached;
    request->release = release;
}

pawl_view pawl__http_part(const struct pawl__http_request *request, const char *name)
{
    return pawl__http_part_of(pawl__http_route_of(request)->pattern, &request->url, name);
}

const pawl_view *pawl__http_query(const struct pawl__http_request *request, const char *name)
{
    return pawl__http_url_query(&request->url, name);
}

pawl_view pawl__http_body(const struct pawl__http_request *request)
{
    return pawl__buf_view(&request->body);
}

void pawl__http_drop_body(struct pawl__http_request *request)
{
    pawl__buf_done(&request->body);
    atomic_fetch_sub(&request->http->body_bytes, request->body_bytes);
    request->body_bytes = 0;
}

bool pawl__http_is_trusted(const struct pawl__http_request *request)
{
    return request->http->options.trusted;
}

const char *pawl__http_header(const struct pawl__http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* --- the answer --- */

bool pawl__http_is_answered(struct pawl__http_request *request)
{
    pawl__lock(&request->http->lock);
    bool answered = request->answer.code != 0;
    pawl__unlock(&request->http->lock);
    return answered;
}

static void set_header_locked(struct pawl__http *http,
                              struct pawl__http_request *request,
                              const char *name,
                              const char *value) REQUIRES_LOCK(http->lock)
{
    struct http_answer *answer = &request->answer;

    REQUIRE(request->http == http);
    if (!request->gone) {
        REQUIRE(answer->header_count < HTTP_HEADERS_MAX);
        REQUIRE(strlen(value) < HTTP_HEADER_SIZE);
        answer->headers[answer->header_count].name = name;
        memcpy(answer->headers[answer->header_count].value, value, strlen(value) + 1);
        answer->header_count++;
    }
}

void pawl__http_set_header(struct pawl__http_request *request, const char *name, const char *value)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    set_header_locked(http, request, name, value);
    pawl__unlock(&http->lock);
}

bool pawl__http_answer_stream_locked(struct pawl__http *http,
                                     struct pawl__http_request *request,
                                     const char *type,
                                     struct pawl__http_stream *stream)
{
    REQUIRE(request->http == http);
    if (!request->gone) {
        REQUIRE(request->answer.code == 0);
        request->answer.code = 200;
        request->answer.type = type;
        request->answer.stream = stream;
    }
    return !request->gone;
}

static void answer_locked(struct pawl__http *http,
                          struct pawl__http_request *request,
                          unsigned code,
                          const char *type,
                          char *body,
                          size_t len) REQUIRES_LOCK(http->lock)
{
    REQUIRE(request->http == http);
    if (request->gone) {
        free(body);
        return;
    }
    REQUIRE(request->answer.code == 0);
    request->answer.code = code;
    request->answer.type = type;
    request->answer.body = body;
    request->answer.len = len;
}

void pawl__http_answer(
    struct pawl__http_request *request, unsigned code, const char *type, char *body, size_t len)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    answer_locked(http, request, code, type, body, len);
    pawl__unlock(&http->lock);
}

void pawl__http_answer_json(struct pawl__http_request *request,
                            unsigned code,
                            char *json,
                            size_t len)
{
    REQUIRE(json[len] == '\0');
    json[len] = '\n'; /* where the NUL was, which nobody needs here */
    pawl__http_answer(request, code, HTTP_JSON, json, len + 1);
}

void pawl__http_answer_buf(struct pawl__http_request *request,
                           unsigned code,
                           const char *type,
                           struct pawl__buf *body)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__buf_check(body, "the answer", &error);
    size_t len = body->len;

    if (status != PAWL_OK) {
        error.status = status == PAWL_NOMEM ? status : PAWL_FAILED; /* the ceiling is ours */
        pawl__buf_done(body);
        pawl__http_fail(request, &error);
        return;
    }
    pawl__http_answer(request, code, type, pawl__buf_steal(body), len);
}

static void answer_problem_locked(struct pawl__http *http,
                                  struct pawl__http_request *request,
                                  const struct pawl__http_problem *problem,
                                  struct pawl__buf body) REQUIRES_LOCK(http->lock)
{
    if (problem->http == 503) {
        set_header_locked(http, request, "Retry-After", "1");
    }
    size_t len = body.broken ? 0 : body.len; /* without memory the code has to say it */
    char *text = pawl__buf_steal(&body);
    pawl__buf_done(&body);
    answer_locked(http, request, problem->http, "application/problem+json", text, len);
}

static void refuse_locked(struct pawl__http *http,
                          struct pawl__http_request *request,
                          const struct pawl__http_problem *problem,
                          const char *detail,
                          const pawl_error *error) REQUIRES_LOCK(http->lock)
{
    struct pawl__buf body = BUF_INIT(PROBLEM_BYTES_MAX);

    pawl__http_problem_write(problem, detail, error, &body);
    answer_problem_locked(http, request, problem, body);
}

static void refuse(struct pawl__http_request *request,
                   const struct pawl__http_problem *problem,
                   const char *detail,
                   const pawl_error *error)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    refuse_locked(http, request, problem, detail, error);
    pawl__unlock(&http->lock);
}

void pawl__http_refuse(struct pawl__http_request *request,
                       const struct pawl__http_problem *problem,
                       const char *detail)
{
    refuse(request, problem, detail, NULL);
}

void pawl__http_fail(struct pawl__http_request *request, const pawl_error *error)
{
    const struct pawl__http_problem *problem = pawl__http_problem_of_error(error);
    pawl_view target = pawl_view_of(request->target);

    target.len = MIN(target.len, TARGET_SHOWN_MAX);
    if (problem->http >= 500) {
        LOG_WARNING("request failed",
                    LOG_TEXT("method", request->method),
                    LOG_VIEW("target", target),
                    LOG_TEXT("status", pawl_status_name(error->status)),
                    LOG_TEXT("error", error->message));
    }
    if (!request->http->options.trusted) {
        refuse(request, problem, error->message, error);
        return;
    }
    struct pawl__buf body = BUF_INIT(PROBLEM_BYTES_MAX);
    pawl__http_problem_write_whole(problem, error, &body);
    pawl__lock(&request->http->lock);
    answer_problem_locked(request->http, request, problem, body);
    pawl__unlock(&request->http->lock);
}

/* --- being kept --- */

/* Connections that are left to whoever asks something that is answered at once, when the store stalls
 * and everybody else waits. */
static size_t kept_max(const struct pawl__http_options *options)
{
    return options->connections_max - MAX(options->connections_max / 8, 1);
}

bool pawl__http_keep(struct pawl__http_request *request)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    REQUIRE(!request->kept);
    bool keeps = http->kept_count < kept_max(&http->options);
    if (keeps) {
        atomic_fetch_add(&request->refs, 1);
        request->kept = true;
        request->answer_by_ns = pawl__monotonic_ns(http->options.clock) + http->watch.answer_ns;
        http->kept_count++;
    } else {
        refuse_locked(http, request, pawl__http_problem_of(PAWL_BUSY), "", NULL);
    }
    pawl__unlock(&http->lock);
    return keeps;
}

bool pawl__http_is_gone(struct pawl__http_request *request)
{
    pawl__lock(&request->http->lock);
    bool gone = request->gone;
    pawl__unlock(&request->http->lock);
    return gone;
}

bool pawl__http_conn_is_closed(const struct http_conn *conn)
{
    struct pollfd socket = { .fd = conn->fd, .events = POLLRDHUP };

    return poll(&socket, 1, 0) > 0;
}

/* A connection that is suspended is not looked at by libmicrohttpd. Its socket stays open as long as
 * nobody gave the request up, which takes the lock. */
bool pawl__http_has_left(struct pawl__http_request *request)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    REQUIRE(request->kept && !request->resumed);
    bool left = request->gone;
    if (!left && request->conn != NULL) {
        left = pawl__http_conn_is_closed(request->conn);
    }
    pawl__unlock(&http->lock);
    return left;
}

void pawl__http_watch_leaving(struct pawl__http_request *request,
                              void (*leaving)(void *context),
                              void *context)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    REQUIRE(request->kept && !request->resumed);
    request->leaving = leaving;
    request->leaving_context = context;
    bool first = http->looks_ns == INT64_MAX;
    if (first) {
        http->looks_ns = pawl__monotonic_ns(http->options.clock) + LOOK_NS;
    }
    int64_t looks_ns = http->looks_ns;
    pawl__unlock(&http->lock);
    if (first) {
        pawl__http_watch_by(&http->watch, looks_ns);
    }
}

struct leaving {
    struct pollfd sockets[LOOK_AT_ONCE];
    struct pawl__http_request *requests[LOOK_AT_ONCE];
    nfds_t count;
};

static void tell_leaving_locked(struct pawl__http *http, struct leaving *leaving)
    REQUIRES_LOCK(http->lock)
{
    int left = poll(leaving->sockets, leaving->count, 0);

    for (size_t i = 0; i < leaving->count && left > 0; i++) {
        struct pawl__http_request *request = leaving->requests[i];

        REQUIRE(request->http == http);
        if (leaving->sockets[i].revents != 0) {
            request->leaving(request->leaving_context);
        }
    }
    leaving->count = 0;
}

/* A connection that is suspended is not looked at by libmicrohttpd, and its socket stays open. */
int64_t pawl__http_notice_leaving(struct pawl__http *http, int64_t now_ns)
{
    struct leaving leaving = { .count = 0 };

    pawl__lock(&http->lock);
    for (struct pawl__http_request *at = http->kept; at != NULL && http->looks_ns <= now_ns;
         at = at->next_kept) {
        if (at->leaving == NULL || at->conn == NULL) {
            continue;
        }
        leaving.sockets[leaving.count] = (struct pollfd){ .fd = at->conn->fd, .events = POLLRDHUP };
        leaving.requests[leaving.count++] = at;
        if (leaving.count == LOOK_AT_ONCE) {
            tell_leaving_locked(http, &leaving);
        }
    }
    tell_leaving_locked(http, &leaving);
    if (http->looks_ns <= now_ns) {
        http->looks_ns = http->kept_count > 0 ? now_ns + LOOK_NS : INT64_MAX;
    }
    int64_t next_ns = http->looks_ns;
    pawl__unlock(&http->lock);
    return next_ns;
}

static void link_locked(struct pawl__http *http, struct pawl__http_request *request)
    REQUIRES_LOCK(http->lock)
{
    request->suspended = true;
    request->was_suspended = true;
    request->next_kept = http->kept;
    if (http->kept != NULL) {
        http->kept->before_kept = request;
    }
    http->kept = request;
}

static void unlink_locked(struct pawl__http *http, struct pawl__http_request *request)
    REQUIRES_LOCK(http->lock)
{
    if (request->before_kept != NULL) {
        request->before_kept->next_kept = request->next_kept;
    } else {
        http->kept = request->next_kept;
    }
    if (request->next_kept != NULL) {
        request->next_kept->before_kept = request->before_kept;
    }
    request->next_kept = NULL;
    request->before_kept = NULL;
    request->suspended = false;
}

#define UNSURE "it may have been executed or not: ask again"

static void abandon_locked(struct pawl__http *http,
                           struct pawl__http_request *request,
                           const struct pawl__http_problem *problem) REQUIRES_LOCK(http->lock)
{
    if (request->answer.code == 0) {
        bool takes_key = pawl__http_route_of(request)->takes_key;

        request->answer.header_count = 0;
        refuse_locked(http,
                      request,
                      problem,
                      takes_key ? UNSURE ", with the same idempotency key" : UNSURE,
                      NULL);
    }
    request->gone = true;
    http->kept_count--;
}

bool pawl__http_settle(struct pawl__http_request *request, bool first)
{
    struct pawl__http *http = request->http;
    bool answered = true;

    pawl__lock(&http->lock);
    if (request->kept && !request->resumed && !request->gone) {
        answered = http->forced;
        if (http->forced) {
            abandon_locked(http, request, &pawl__http_interrupted);
        } else if (!first) {
            link_locked(http, request);
            MHD_suspend_connection(request->connection); /* before anybody can resume it */
        }
    }
    pawl__unlock(&http->lock);
    if (answered) {
        pawl__http_finish(request);
    }
    return answered;
}

void pawl__http_leave(struct pawl__http_request *request)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    if (request->kept && !request->resumed && !request->gone) {
        abandon_locked(http, request, &pawl__http_interrupted);
    }
    pawl__unlock(&http->lock);
    pawl__http_finish(request);
}

void pawl__http_resume(struct pawl__http_request *request,
                       pawl__http_handler *finish,
                       void *context)
{
    struct pawl__http *http = request->http;

    pawl__lock(&http->lock);
    bool gone = request->gone;
    REQUIRE(!request->resumed);
    request->resumed = true;
    if (!gone) {
        http->kept_count--;
        request->finish = finish;
        request->finish_context = context;
        if (request->suspended) {
            unlink_locked(http, request);
            MHD_resume_connection(request->connection);
        }
    }
    pawl__unlock(&http->lock);
    if (gone && finish != NULL) {
        finish(request, context);
    }
    pawl__http_request_unref(request);
}

void pawl__http_finish(struct pawl__http_request *request)
{
    pawl__lock(&request->http->lock);
    pawl__http_handler *finish = request->finish;
    request->finish = NULL;
    pawl__unlock(&request->http->lock);
    if (finish != NULL) {
        finish(request, request->finish_context);
    }
}

static void give_up_locked(struct pawl__http *http,
                           struct pawl__http_request *request,
                           const struct pawl__http_problem *problem) REQUIRES_LOCK(http->lock)
{
    unlink_locked(http, request);
    abandon_locked(http, request, problem);
    MHD_resume_connection(request->connection);
}

void pawl__http_give_up(struct pawl__http *http)
{
    pawl__lock(&http->lock);
    http->forced = true;
    while (http->kept != NULL) {
        give_up_locked(http, http->kept, &pawl__http_interrupted);
    }
    pawl__unlock(&http->lock);
}

int64_t pawl__http_give_up_late(struct pawl__http *http, int64_t now_ns)
{
    struct pawl__http_request *next = NULL;
    int64_t next_ns = INT64_MAX;
    size_t count = 0;

    pawl__lock(&http->lock);
    for (struct pawl__http_request *request = http->kept; request != NULL; request = next) {
        next = request->next_kept;
        if (request->answer_by_ns <= now_ns) {
            give_up_locked(http, request, &pawl__http_no_answer);
            count++;
        } else {
            next_ns = MIN(next_ns, request->answer_by_ns);
        }
    }
    pawl__unlock(&http->lock);
    if (count > 0) {
        LOG_WARNING("requests were answered 504: the store does not come back",
                    LOG_NATURAL("count", count));
    }
    return next_ns;
}
