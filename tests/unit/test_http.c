/* The HTTP server by real sockets: what it takes, refuses, keeps, and how it stops. */
#include "lib/check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/queue.h"
#include "base/thread/thread.h"
#include "lib/fault.h"
#include "lib/http_client.h"
#include "net/http/http.h"
#include "net/http/url.h"

enum { CONNECTIONS = 64, BODY_MAX = 1000, PATIENCE_S = 30 };

struct fixture {
    struct pawl__http_options options;
    struct pawl__http *http;
    struct pawl__metrics *metrics;
    struct pawl__queue *kept; /* requests that wait for a test to resume them */
    struct pawl__lock lock;   /* covers open and at_gate */
    struct pawl__cond opened;
    bool open;   /* the gate of GET /gate */
    int at_gate; /* who has come to it */
    int asker;   /* a connection that asks until it is refused */
    int refused_with;
    atomic_int finished;
    char address[64];
    pawl_error error;
};

static int64_t in_seconds(int seconds)
{
    return pawl__monotonic_ns(pawl__clock_real()) + seconds * NS_PER_S;
}

/* --- handlers --- */

static void echo(struct pawl__http_request *request, void *context)
{
    const uint64_t range[2] = { 1, 1000 };
    pawl_error error = PAWL_ERROR_INIT;
    pawl_view name = pawl__http_part(request, "name");
    const pawl_view *given = pawl__http_query(request, "n");
    uint64_t n = 7;
    struct pawl__buf body = BUF_INIT(4096);

    (void)context;
    if (given != NULL && pawl__http_number("n", *given, range, &n, &error) != PAWL_OK) {
        pawl__http_fail(request, &error);
        return;
    }
    pawl__buf_add_format(&body, "{\"name\":\"%.*s\",\"n\":%d}", VIEW_ARGS(name), (int)n);
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}

static void count_bytes(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(64);

    (void)context;
    pawl__buf_add_format(&body, "%zu", pawl__http_body(request).len);
    pawl__http_answer_buf(request, 201, HTTP_JSON, &body);
}

static void keep(struct pawl__http_request *request, void *context)
{
    struct fixture *f = context;

    if (pawl__http_keep(request)) {
        REQUIRE(pawl__queue_push(f->kept, request, INT64_MAX, NULL, NULL) == PAWL_OK);
    }
}

static void finish_kept(struct pawl__http_request *request, void *context)
{
    struct fixture *f = context;

    atomic_fetch_add(&f->finished, 1);
    count_bytes(request, context);
}

/* Resumes it before the handler is back. */
static void keep_and_resume(struct pawl__http_request *request, void *context)
{
    if (pawl__http_keep(request)) {
        pawl__http_resume(request, finish_kept, context);
    }
}

static void wait_at_gate(struct pawl__http_request *request, void *context)
{
    struct fixture *f = context;

    pawl__lock(&f->lock);
    f->at_gate++;
    pawl__cond_broadcast(&f->opened);
    while (!f->open) {
        pawl__cond_wait(&f->opened, &f->lock);
    }
    pawl__unlock(&f->lock);
    pawl__http_answer(request, 200, HTTP_JSON, strdup("true"), 4);
}

static void open_gate(struct fixture *f)
{
    pawl__lock(&f->lock);
    f->open = true;
    pawl__cond_broadcast(&f->opened);
    pawl__unlock(&f->lock);
}

static void answer_much(struct pawl__http_request *request, void *context)
{
    enum { MUCH = 64 << 20 };

    (void)context;
    pawl__http_answer(request, 200, HTTP_JSON, calloc(1, MUCH), MUCH);
}

static void fail_inside(struct pawl__http_request *request, void *context)
{
    pawl_error error = PAWL_ERROR_INIT;
    const uint64_t range[2] = { PAWL_FAILED, PAWL_CLOSED };
    uint64_t status = 0;

    (void)context;
    if (pawl__http_number("status", pawl__http_part(request, "status"), range, &status, &error)
        == PAWL_OK) {
        (void)pawl__fail(&error, (pawl_status)status, "SELECT '/var/lib/secret'");
    }
    pawl__http_fail(request, &error);
}

/* What stores and the operating system say is none of the client's business, whatever the status. */
static void fail_as_errno(struct pawl__http_request *request, void *context)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)context;
    (void)pawl__fail_errno(&error, ENOENT, "open '/var/lib/secret'");
    pawl__http_fail(request, &error);
}

static void answer_over_the_ceiling(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(4);

    (void)context;
    pawl__buf_add_text(&body, "secret");
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}

static void fail_as_sqlstate(struct pawl__http_request *request, void *context)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)context;
    (void)pawl__fail(&error, PAWL_NOT_FOUND, "cannot connect to 'secret@host/db'");
    (void)snprintf(error.sqlstate, sizeof(error.sqlstate), "3D000");
    pawl__http_fail(request, &error);
}

static void answer_unusually(struct pawl__http_request *request, void *context)
{
    struct pawl__buf body = BUF_INIT(64);

    (void)context;
    pawl__buf_add_format(&body, "{}");
    pawl__http_answer_buf(request, 418, HTTP_JSON, &body);
}

static const char *const echo_parameters[] = { "n", NULL };
static const struct pawl__http_route routes[] = {
    { .method = PAWL__HTTP_GET,
      .pattern = "/echo/{name}",
      .handle = echo,
      .parameters = echo_parameters },
    { .method = PAWL__HTTP_POST, .pattern = "/bytes", .handle = count_bytes, .takes_json = true },
    { .method = PAWL__HTTP_PUT,
      .pattern = "/bytes",
      .handle = count_bytes,
      .takes_json = true,
      .no_key = "it is sent once" },
    { .method = PAWL__HTTP_POST,
      .pattern = "/kept",
      .handle = keep,
      .takes_json = true,
      .takes_key = true },
    { .method = PAWL__HTTP_POST,
      .pattern = "/soon",
      .handle = keep_and_resume,
      .takes_json = true },
    { .method = PAWL__HTTP_GET, .pattern = "/gate", .handle = wait_at_gate, .blocks = true },
    { .method = PAWL__HTTP_GET, .pattern = "/fail/{status}", .handle = fail_inside },
    { .method = PAWL__HTTP_GET, .pattern = "/large", .handle = answer_much },
    { .method = PAWL__HTTP_GET, .pattern = "/errno", .handle = fail_as_errno },
    { .method = PAWL__HTTP_GET, .pattern = "/over", .handle = answer_over_the_ceiling },
    { .method = PAWL__HTTP_GET, .pattern = "/sqlstate", .handle = fail_as_sqlstate },
    { .method = PAWL__HTTP_GET, .pattern = "/teapot", .handle = answer_unusually },
};

/* --- set-up --- */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->options = (struct pawl__http_options)PAWL__HTTP_OPTIONS_INIT;
    f->options.routes = routes;
    f->options.route_count = COUNT_OF(routes);
    f->options.context = f;
    f->options.loopback_hosts = true;
    f->options.body_bytes_max = BODY_MAX;
    assert_ok(pawl__queue_new(1000, &f->kept, &f->error), &f->error);
    pawl__lock_init(&f->lock);
    pawl__cond_init(&f->opened);
    assert_ok(pawl__metrics_new(&f->metrics, &f->error), &f->error);
    f->options.metrics = f->metrics;
    *state = f;
    return 0;
}

static void start(struct fixture *f)
{
    assert_ok(pawl__http_start(&f->options, &f->http, &f->error), &f->error);
    (void)snprintf(f->address, sizeof(f->address), "%s", pawl__http_listens_on(f->http));
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    open_gate(f);
    assert_ok(pawl__http_stop(f->http, in_seconds(PATIENCE_S), &f->error), &f->error);
    pawl__queue_free(f->kept);
    pawl__metrics_free(f->metrics);
    pawl__cond_done(&f->opened);
    pawl__lock_done(&f->lock);
    free(f);
    return 0;
}

static struct pawl__http_request *next_kept(struct fixture *f)
{
    void *request = NULL;

    assert_ok(pawl__queue_pop(f->kept, in_seconds(PATIENCE_S), NULL, &request, &f->error),
              &f->error);
    return request;
}

static void assert_reply(struct http_reply reply, int code, const char *part)
{
    if (reply.code != code || (part != NULL && strstr(reply.body, part) == NULL)) {
        fail_msg("%d %s instead of %d %s",
                 reply.code,
                 reply.body == NULL ? "" : reply.body,
                 code,
                 part == NULL ? "" : part);
    }
    http_reply_done(&reply);
}

static void assert_header(const struct http_reply *reply, const char *name, const char *value)
{
    char *found = http_reply_header(reply, name);

    assert_non_null(found);
    assert_string_equal(found, value);
    free(found);
}

/* --- tests --- */

static void test_requests_of_one_connection_are_answered_in_turn(void **state)
{
    struct fixture *f = *state;

    start(f);
    int fd = http_connect(f->address);
    for (int i = 0; i < 3; i++) {
        http_ask_on(fd, "GET /echo/ada?n=5", NULL, NULL);
        assert_reply(http_receive(fd, false), 200, "{\"name\":\"ada\",\"n\":5}");
        http_ask_on(fd, "GET /nowhere", NULL, NULL);
        assert_reply(http_receive(fd, false), 404, "\"code\":\"NOT_FOUND\"");
        http_ask_on(fd, "POST /soon", NULL, "{}");
        assert_reply(http_receive(fd, false), 201, "2");
        http_ask_on(fd, "GET /echo/x", "Content-Length: 3\r\n", NULL);
        http_send(fd, "abc");
        assert_reply(http_receive(fd, false), 400, "no body");
    }
    close(fd);
}

static void test_head_has_the_length_and_no_body(void **state)
{
    struct fixture *f = *state;

    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "HEAD /echo/ada", NULL, NULL);
    struct http_reply reply = http_receive(fd, true);
    assert_int_equal(reply.code, 200);
    assert_header(&reply, "Content-Length", "20");
    assert_header(&reply, "Cache-Control", "no-store");
    http_reply_done(&reply);
    http_ask_on(fd, "GET /echo/ada", NULL, NULL); /* nothing is left in between */
    assert_reply(http_receive(fd, false), 200, "ada");
    close(fd);
}

static void test_another_method_is_told_those_that_are_allowed(void **state)
{
    struct fixture *f = *state;

    start(f);
    struct http_reply reply = http_ask(f->address, "DELETE /bytes", NULL, NULL);
    assert_header(&reply, "Allow", "POST, PUT");
    assert_header(&reply, "Content-Type", "application/problem+json");
    assert_reply(reply, 405, "METHOD_NOT_ALLOWED");
    reply = http_ask(f->address, "POST /echo/x", NULL, "{}");
    assert_header(&reply, "Allow", "GET, HEAD");
    assert_reply(reply, 405, NULL);
}

static void test_a_body_has_a_length_a_type_and_a_limit(void **state)
{
    struct fixture *f = *state;
    char body[BODY_MAX + 2];

    start(f);
    memset(body, 'x', sizeof(body));
    body[BODY_MAX] = '\0';
    assert_reply(http_ask(f->address, "POST /bytes", NULL, body), 201, "1000");
    body[BODY_MAX] = 'x';
    body[BODY_MAX + 1] = '\0';
    assert_reply(http_ask(f->address, "POST /bytes", NULL, body), 413, "1000 bytes");
    assert_reply(http_ask(f->address, "POST /bytes", NULL, NULL), 411, "LENGTH_REQUIRED");
    assert_reply(
        http_ask(f->address, "POST /bytes", "Content-Length: 0\r\n", NULL), 415, "MEDIA_TYPE");
    int fd = http_connect(f->address);
    http_ask_on(fd, "POST /bytes", "Content-Type: text/plain\r\nContent-Length: 2\r\n", NULL);
    http_send(fd, "{}");
    assert_reply(http_receive(fd, false), 415, "application/json");
    http_ask_on(fd,
                "POST /bytes",
                "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n",
                NULL);
    http_send(fd, "{}");
    assert_reply(http_receive(fd, false), 415, "Content-Encoding");
    http_ask_on(fd,
                "PUT /bytes",
                "Content-Type: Application/JSON;charset=utf-8\r\nContent-Encoding: identity\r\n"
                "Content-Length: 2\r\n",
                NULL);
    http_send(fd, "{}"); /* the connection has survived the refusal */
    assert_reply(http_receive(fd, false), 201, "2");
    close(fd);
}

static void send_chunks(int fd, size_t count, const char *chunk)
{
    char head[32];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(head, sizeof(head), "%zx\r\n", strlen(chunk));
        http_send(fd, head);
        http_send(fd, chunk);
        http_send(fd, "\r\n");
    }
}

static void test_a_body_in_chunks_has_the_same_limit(void **state)
{
    struct fixture *f = *state;
    static const char headers[] =
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";

    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "POST /bytes", headers, NULL);
    send_chunks(fd, 100, "0123456789");
    http_send(fd, "0\r\n\r\n");
    assert_reply(http_receive(fd, false), 201, "1000");
    http_ask_on(fd, "POST /bytes", headers, NULL);
    send_chunks(fd, 101, "0123456789");
    http_send(fd, "0\r\n\r\n");
    assert_reply(http_receive(fd, false), 413, "TOO_LARGE");
    close(fd);
    fd = http_connect(f->address); /* one that never ends is cut */
    http_ask_on(fd, "POST /bytes", headers, NULL);
    send_chunks(fd, 1000, "0123456789");
    assert_true(http_is_closed(fd, PATIENCE_S * 1000));
    close(fd);
}

static void test_numbers_and_parameters_are_checked_by_name(void **state)
{
    struct fixture *f = *state;

    start(f);
    assert_reply(http_ask(f->address, "GET /echo/x?n=1001", NULL, NULL), 400, "'n' is not");
    assert_reply(http_ask(f->address, "GET /echo/x?n=", NULL, NULL), 400, "'n' is not");
    assert_reply(http_ask(f->address, "GET /echo/x?m=1", NULL, NULL), 400, "'m' is unknown");
    assert_reply(http_ask(f->address, "GET /echo/x?n=1&n=1", NULL, NULL), 400, "more than once");
    assert_reply(
        http_ask(f->address, "GET /fail/99999999999999999999999", NULL, NULL), 400, "'status'");
}

static void test_odd_encodings_are_taken_or_refused_whole(void **state)
{
    struct fixture *f = *state;

    start(f);
    assert_reply(http_ask(f->address, "GET /echo/a%2Fb", NULL, NULL), 200, "\"a/b\"");
    assert_reply(http_ask(f->address, "GET /%65cho/a%2fb", NULL, NULL), 200, "\"a/b\"");
    assert_reply(http_ask(f->address, "GET /echo/a%00b", NULL, NULL), 400, "%00");
    assert_reply(http_ask(f->address, "GET /echo/%ff", NULL, NULL), 400, "UTF-8");
    assert_reply(http_ask(f->address, "GET /echo/%zz", NULL, NULL), 400, "hexadecimal");
    assert_reply(http_ask(f->address, "GET /echo/..%2f..%2fetc", NULL, NULL), 200, "../../etc");
    assert_reply(http_ask(f->address, "GET /echo/../echo/x", NULL, NULL), 404, NULL);
    assert_reply(http_ask(f->address, "GET http://localhost/echo/x", NULL, NULL), 200, "\"x\"");
}

static void test_only_loopback_names_are_answered(void **state)
{
    static const struct {
        const char *host;
        int code;
    } hosts[] = {
        { "localhost", 200 },
        { "LOCALHOST:80", 200 },
        { "127.0.0.1:8470", 200 },
        { "[::1]:1", 200 },
        { "evil.example", 421 },
        { "localhost.evil.example", 421 },
        { "127.0.0.1.evil.example", 421 },
        { "localhost:", 421 },
        { "localhost:80.evil.example", 421 },
        { "127.0.0.2", 421 },
        { "", 421 },
    };
    struct fixture *f = *state;
    char text[256];

    start(f);
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        int fd = http_connect(f->address);

        (void)snprintf(
            text, sizeof(text), "GET /echo/x HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i].host);
        http_send(fd, text);
        assert_reply(http_receive(fd, false), hosts[i].code, NULL);
        close(fd);
    }
}

static void test_what_fails_inside_stays_inside(void **state)
{
    /* What is about the request itself; everything else is about the store. */
    static const pawl_status told[] = { PAWL_INVALID, PAWL_NOT_FOUND, PAWL_CONFLICT };
    struct fixture *f = *state;
    char target[64];

    start(f);
    for (int status = PAWL_FAILED; status <= PAWL_CLOSED; status++) {
        (void)snprintf(target, sizeof(target), "GET /fail/%d", status);
        struct http_reply reply = http_ask(f->address, target, NULL, NULL);
        bool shown = false;

        for (size_t i = 0; i < COUNT_OF(told); i++) {
            shown |= told[i] == (pawl_status)status;
        }
        assert_int_equal(strstr(reply.body, "secret") != NULL, shown);
        assert_int_equal(reply.code < 500, shown || status == PAWL_DENIED);
        if (reply.code == 503) {
            assert_header(&reply, "Retry-After", "1");
        }
        http_reply_done(&reply);
    }
}

static void test_an_error_of_a_store_is_never_the_clients(void **state)
{
    static const char *const targets[] = { "GET /errno", "GET /sqlstate", "GET /over" };
    struct fixture *f = *state;

    start(f);
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        struct http_reply reply = http_ask(f->address, targets[i], NULL, NULL);

        assert_null(strstr(reply.body, "secret"));
        assert_reply(reply, 500, "\"code\":\"FAILED\"");
    }
}

static void test_kept_requests_of_many_connections_wait_together(void **state)
{
    struct fixture *f = *state;
    int fds[CONNECTIONS];
    struct pawl__http_request *requests[CONNECTIONS];

    start(f);
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], "POST /kept", NULL, "{ }");
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        requests[i] = next_kept(f);
    }
    assert_reply(http_ask(f->address, "GET /echo/free", NULL, NULL), 200, "free");
    for (int i = 0; i < CONNECTIONS; i++) {
        pawl__http_resume(requests[i], finish_kept, f);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        assert_reply(http_receive(fds[i], false), 201, "3");
        http_ask_on(fds[i], "GET /echo/again", NULL, NULL);
        assert_reply(http_receive(fds[i], false), 200, "again");
        close(fds[i]);
    }
    assert_int_equal(atomic_load(&f->finished), CONNECTIONS);
}

static void test_a_client_that_leaves_does_no_harm(void **state)
{
    struct fixture *f = *state;

    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "POST /kept", NULL, "{}");
    struct pawl__http_request *request = next_kept(f);
    close(fd);
    pawl__http_resume(request, finish_kept, f);
    assert_reply(http_ask(f->address, "GET /echo/x", NULL, NULL), 200, NULL);
}

static void test_what_is_kept_for_too_long_is_504(void **state)
{
    struct fixture *f = *state;

    f->options.answer_ms_max = 200;
    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "POST /kept", NULL, "{}");
    struct pawl__http_request *request = next_kept(f);
    assert_reply(http_receive(fd, false), 504, "with the same idempotency key");
    pawl__http_resume(request, finish_kept, f); /* whoever has it does not know */
    assert_int_equal(atomic_load(&f->finished), 1);
    http_ask_on(fd, "GET /echo/again", NULL, NULL);
    assert_reply(http_receive(fd, false), 200, "again");
    http_ask_on(fd, "GET /gate", NULL, NULL); /* a worker hangs */
    assert_reply(http_receive(fd, false), 504, "executed or not: ask again\"");
    close(fd);
}

static void test_a_key_is_refused_where_it_would_do_nothing(void **state)
{
    struct fixture *f = *state;

    start(f);
    assert_reply(http_ask(f->address, "PUT /bytes", "Idempotency-Key: a\r\n", "{}"),
                 400,
                 "Idempotency-Key is not taken at this address: it is sent once");
    assert_reply(http_ask(f->address, "POST /bytes", "Idempotency-Key: a\r\n", "{}"), 201, NULL);
    assert_reply(http_ask(f->address, "PUT /bytes", NULL, "{}"), 201, NULL);
}

static void test_clients_that_leave_do_not_fill_the_server(void **state)
{
    struct fixture *f = *state;
    enum { LIMIT = 16, KEPT_MAX = 14 };
    struct pawl__http_request *requests[KEPT_MAX];

    f->options.connections_max = LIMIT;
    start(f);
    for (int i = 0; i < KEPT_MAX; i++) {
        int fd = http_connect(f->address);

        http_ask_on(fd, "POST /kept", NULL, "{}");
        requests[i] = next_kept(f);
        close(fd);
    }
    struct http_reply reply = http_ask(f->address, "POST /kept", NULL, "{}");
    assert_header(&reply, "Retry-After", "1");
    assert_reply(reply, 503, "\"code\":\"BUSY\"");
    assert_reply(http_ask(f->address, "GET /gate", NULL, NULL), 503, "BUSY");
    assert_reply(http_ask(f->address, "GET /echo/alive", NULL, NULL), 200, "alive");
    pawl__http_resume(requests[0], finish_kept, f);
    int fd = http_connect(f->address); /* there is room for one again */
    http_ask_on(fd, "POST /kept", NULL, "{ }");
    pawl__http_resume(next_kept(f), finish_kept, f);
    assert_reply(http_receive(fd, false), 201, "3");
    close(fd);
    for (int i = 1; i < KEPT_MAX; i++) {
        pawl__http_resume(requests[i], finish_kept, f);
    }
}

static void test_bodies_have_a_limit_together(void **state)
{
    struct fixture *f = *state;
    char body[BODY_MAX + 1];
    struct pawl__http_request *requests[2];
    int fds[2];

    memset(body, 'x', BODY_MAX);
    body[BODY_MAX] = '\0';
    f->options.bodies_bytes_max = (size_t)2 * BODY_MAX;
    start(f);
    for (int i = 0; i < 2; i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], "POST /kept", NULL, body);
        requests[i] = next_kept(f);
    }
    assert_reply(http_ask(f->address, "POST /bytes", NULL, "{}"), 503, "BUSY");
    pawl__http_drop_body(requests[0]);
    assert_reply(http_ask(f->address, "POST /bytes", NULL, body), 201, "1000");
    assert_reply(http_ask(f->address, "POST /bytes", NULL, body), 201, "1000");
    for (int i = 0; i < 2; i++) {
        pawl__http_resume(requests[i], finish_kept, f);
        assert_reply(http_receive(fds[i], false), 201, i == 0 ? "0" : "1000");
        close(fds[i]);
    }
    assert_reply(http_ask(f->address, "POST /bytes", NULL, body), 201, "1000");
}

/* Reads a little now and then, for ever; true when the server ends it. */
static bool sip(int fd)
{
    int64_t deadline_ns = in_seconds(PATIENCE_S);
    char bytes[4096];
    ssize_t got = 1;

    while (got > 0 && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        struct timespec pause = { .tv_nsec = 5000000 };

        got = read(fd, bytes, sizeof(bytes));
        (void)nanosleep(&pause, NULL); /* a slow reader is what this is about */
    }
    return got <= 0;
}

static void test_an_answer_that_is_read_slowly_is_cut_off(void **state)
{
    struct fixture *f = *state;

    f->options.answer_ms_max = 300;
    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "GET /large", NULL, NULL);
    assert_true(sip(fd));
    close(fd);
}

static void test_headers_that_contradict_each_other_are_refused(void **state)
{
    static const struct {
        const char *headers;
        int code;
        const char *says;
    } cases[] = {
        { "Content-Length: 2\r\nContent-Length: 2\r\n", 400, NULL },
        { "Content-Length: 2\r\nContent-Length: 3\r\n", 400, NULL },
        { "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", 400, NULL },
        { "Transfer-Encoding: gzip\r\n", 400, NULL },
        { "Transfer-Encoding: gzip, chunked\r\n", 400, NULL },
        { "Content-Length: 2\r\nHost: localhost\r\n", 400, "two headers Host" },
        { "Content-Length: 2\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n", 400, "two headers" },
        { "Content-Length: 2\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\n", 201, "2" },
    };
    struct fixture *f = *state;
    char headers[256];

    start(f);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int fd = http_connect(f->address);

        (void)snprintf(
            headers, sizeof(headers), "Content-Type: application/json\r\n%s", cases[i].headers);
        http_ask_on(fd, "POST /bytes", headers, NULL);
        if (cases[i].code == 201) {
            http_send(fd, "{}");
        }
        assert_reply(http_receive(fd, false), cases[i].code, cases[i].says);
        if (cases[i].code == 400) {
            assert_true(http_is_closed(fd, PATIENCE_S * 1000));
        }
        close(fd);
    }
}

static void test_the_address_listened_on_is_a_host(void **state)
{
    struct fixture *f = *state;

    f->options.listen = "127.0.0.2:0";
    start(f);
    int fd = http_connect(f->address);
    http_send(fd, "GET /echo/x HTTP/1.1\r\nHost: 127.0.0.2\r\n\r\n");
    assert_reply(http_receive(fd, false), 200, NULL);
    http_send(fd, "GET /echo/x HTTP/1.1\r\nHost: 127.0.0.3\r\n\r\n");
    assert_reply(http_receive(fd, false), 421, NULL);
    close(fd);
}

static void test_stopping_does_not_wait_for_half_a_request(void **state)
{
    struct fixture *f = *state;
    int64_t began_ns = in_seconds(0);

    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "GET /echo/x", NULL, NULL);
    assert_reply(http_receive(fd, false), 200, NULL);
    http_send(fd, "GET /echo/x HTTP/1.1\r\nHost");
    /* Had it waited, it would have until this deadline. */
    assert_ok(pawl__http_stop(STEAL(f->http), in_seconds(2 * PATIENCE_S), &f->error), &f->error);
    assert_true(in_seconds(0) - began_ns < PATIENCE_S * NS_PER_S);
    close(fd);
}

static void test_what_blocks_does_not_stop_the_others(void **state)
{
    struct fixture *f = *state;
    int fds[8];

    start(f);
    for (size_t i = 0; i < COUNT_OF(fds); i++) { /* more than there are workers */
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], "GET /gate", NULL, NULL);
    }
    assert_reply(http_ask(f->address, "GET /echo/x", NULL, NULL), 200, NULL);
    open_gate(f);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        assert_reply(http_receive(fds[i], false), 200, "true");
        close(fds[i]);
    }
}

/* Sends a byte whenever nothing happened for a while, for ever; true when the server ends it. */
static bool drip(int fd)
{
    int64_t deadline_ns = in_seconds(PATIENCE_S);

    while (!http_is_closed(fd, 20)) {
        if (pawl__monotonic_ns(pawl__clock_real()) > deadline_ns) {
            return false;
        }
        http_send(fd, "x");
    }
    return true;
}

static void test_a_slow_request_is_cut_off(void **state)
{
    struct fixture *f = *state;

    f->options.read_ms_max = 200;
    start(f);
    int fd = http_connect(f->address);
    http_send(fd, "GET /ec"); /* in its first line */
    assert_true(drip(fd));
    close(fd);
    fd = http_connect(f->address);
    http_send(fd, "GET /echo/x HTTP/1.1\r\nHost: local"); /* in its headers */
    assert_true(drip(fd));
    close(fd);
    fd = http_connect(f->address);
    http_ask_on(
        fd, "POST /bytes", "Content-Type: application/json\r\nContent-Length: 900\r\n", NULL);
    assert_true(drip(fd)); /* in its body */
    close(fd);
    fd = http_connect(f->address); /* one that is kept has arrived: it may take its time */
    http_ask_on(fd, "POST /kept", NULL, "{}");
    struct pawl__http_request *request = next_kept(f);
    assert_false(http_is_closed(fd, 500));
    pawl__http_resume(request, finish_kept, f);
    assert_reply(http_receive(fd, false), 201, NULL);
    close(fd);
}

static void test_an_idle_connection_is_ended(void **state)
{
    struct fixture *f = *state;

    f->options.idle_ms_max = 1000;
    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "GET /echo/x", NULL, NULL);
    assert_reply(http_receive(fd, false), 200, NULL);
    assert_true(http_is_closed(fd, PATIENCE_S * 1000));
    close(fd);
}

static void test_headers_have_a_limit(void **state)
{
    struct fixture *f = *state;
    char *headers = NULL;

    f->options.header_bytes_max = 4096;
    start(f);
    assert_true(asprintf(&headers, "X: %05000d\r\n", 0) > 0);
    struct http_reply reply = http_ask(f->address, "GET /echo/x", headers, NULL);
    assert_int_equal(reply.code, 431);
    http_reply_done(&reply);
    free(headers);
}

static struct http_reply ask_with_headers(struct fixture *f, size_t count)
{
    struct pawl__buf headers = BUF_INIT(1 << 20);

    for (size_t i = 0; i < count; i++) {
        pawl__buf_add_text(&headers, "a: b\r\n");
    }
    pawl__buf_add_char(&headers, '\0');
    struct http_reply reply = http_ask(f->address, "GET /echo/x", headers.data, NULL);
    pawl__buf_done(&headers);
    return reply;
}

static void test_many_short_headers_fit_the_limit(void **state)
{
    struct fixture *f = *state;

    start(f); /* 32 KiB: 26 bytes of it for each of these */
    struct http_reply reply = ask_with_headers(f, 1000);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    reply = ask_with_headers(f, 1300);
    assert_int_equal(reply.code, 431);
    assert_non_null(strstr(reply.body, "HEADERS_TOO_LARGE"));
    http_reply_done(&reply);
}

static void stop_and_open(void *context)
{
    struct fixture *f = context;
    struct http_reply reply = { .code = 200 };

    /* Until requests are refused, the server has not begun to stop. */
    while (reply.code == 200) {
        http_reply_done(&reply);
        http_ask_on(f->asker, "GET /echo/x", NULL, NULL);
        reply = http_receive(f->asker, false);
    }
    f->refused_with = reply.code;
    http_reply_done(&reply);
    open_gate(f);
}

static void test_stopping_waits_for_what_has_begun(void **state)
{
    struct fixture *f = *state;
    struct pawl__thread opener = { .started = false };

    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "GET /gate", NULL, NULL);
    pawl__lock(&f->lock);
    while (f->at_gate == 0) {
        pawl__cond_wait(&f->opened, &f->lock);
    }
    pawl__unlock(&f->lock);
    f->asker = http_connect(f->address);
    http_ask_on(f->asker, "GET /echo/x", NULL, NULL); /* so that it is accepted */
    assert_reply(http_receive(f->asker, false), 200, NULL);
    assert_ok(pawl__thread_start(&opener, "opener", stop_and_open, f, &f->error), &f->error);
    assert_ok(pawl__http_stop(STEAL(f->http), in_seconds(PATIENCE_S), &f->error), &f->error);
    pawl__thread_join(&opener);
    close(f->asker);
    assert_int_equal(f->refused_with, 503); /* what came meanwhile */
    assert_reply(http_receive(fd, false), 200, "true");
    assert_true(http_is_closed(fd, PATIENCE_S * 1000));
    close(fd);
}

static void test_stopping_gives_up_what_is_kept_for_too_long(void **state)
{
    struct fixture *f = *state;
    int fds[4];
    struct pawl__http_request *requests[4];

    start(f);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], "POST /kept", NULL, "{}");
        requests[i] = next_kept(f);
    }
    assert_ok(pawl__http_stop(STEAL(f->http), 0, &f->error), &f->error);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        struct http_reply reply = http_receive(fds[i], false);

        assert_header(&reply, "Retry-After", "1");
        assert_header(&reply, "Connection", "close");
        assert_reply(reply, 503, "INTERRUPTED");
        close(fds[i]);
    }
    for (size_t i = 0; i < COUNT_OF(fds); i++) { /* whoever has them does not know */
        pawl__http_resume(requests[i], finish_kept, f);
    }
    assert_int_equal(atomic_load(&f->finished), 4);
}

static void test_an_address_in_use_is_named(void **state)
{
    struct fixture *f = *state;
    struct pawl__http_options second = f->options;
    struct pawl__http *http = NULL;

    start(f);
    second.listen = f->address;
    second.metrics = NULL;
    assert_status(pawl__http_start(&second, &http, &f->error), PAWL_BUSY, &f->error);
    assert_message(&f->error, f->address);
    assert_null(http);
}

static void test_requests_are_counted(void **state)
{
    struct fixture *f = *state;
    struct pawl__buf text = BUF_INIT(1 << 20);

    start(f);
    assert_reply(http_ask(f->address, "GET /echo/x", NULL, NULL), 200, NULL);
    assert_reply(http_ask(f->address, "GET /echo/y", NULL, NULL), 200, NULL);
    assert_reply(http_ask(f->address, "BREW /pot", NULL, NULL), 404, NULL);
    assert_reply(http_ask(f->address, "GET /teapot", NULL, NULL), 418, NULL);
    assert_ok(pawl__metrics_write(f->metrics, &text, &f->error), &f->error);
    char *lines = pawl__buf_steal(&text);
    assert_non_null(strstr(lines,
                           "pawl_http_requests_total{method=\"GET\",route=\"/echo/{name}\","
                           "code=\"200\"} 2\n"));
    assert_non_null(strstr(
        lines, "pawl_http_requests_total{method=\"other\",route=\"none\",code=\"404\"} 1\n"));
    assert_non_null(strstr(
        lines, "pawl_http_requests_total{method=\"GET\",route=\"/teapot\",code=\"other\"} 1\n"));
    assert_non_null(strstr(lines, "pawl_http_request_seconds_count{route=\"/echo/{name}\"} 2\n"));
    free(lines);
}

static void test_requests_sent_at_once_are_answered_in_order(void **state)
{
    struct fixture *f = *state;
    static const char post[] = "POST /kept HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                               "application/json\r\nContent-Length: 3\r\n\r\n{ }";
    static const char get[] = "GET /echo/last HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char text[sizeof(post) * 2 + sizeof(get)];

    start(f);
    int fd = http_connect(f->address);
    (void)snprintf(text, sizeof(text), "%s%s%s", post, post, get);
    http_send(fd, text);
    for (int i = 0; i < 2; i++) { /* the second is not begun before the first is answered */
        pawl__http_resume(next_kept(f), finish_kept, f);
        assert_reply(http_receive(fd, false), 201, "3");
    }
    assert_reply(http_receive(fd, false), 200, "last");
    close(fd);
}

static void test_connections_above_the_limit_wait(void **state)
{
    struct fixture *f = *state;
    int fds[3];

    f->options.connections_max = 2;
    start(f);
    for (int i = 0; i < 2; i++) {
        fds[i] = http_connect(f->address);
        http_ask_on(fds[i], "GET /echo/x", NULL, NULL);
        assert_reply(http_receive(fds[i], false), 200, NULL);
    }
    fds[2] = http_connect(f->address);
    http_ask_on(fds[2], "GET /echo/third", NULL, NULL);
    assert_true(http_is_silent(fds[2], 300));
    close(fds[0]);
    close(fds[1]);
    assert_reply(http_receive(fds[2], false), 200, "third");
    close(fds[2]);
}

static void test_an_address_may_be_ipv6(void **state)
{
    struct fixture *f = *state;

    f->options.listen = "[::1]:0";
    pawl_status status = pawl__http_start(&f->options, &f->http, &f->error);
    if (access("/proc/net/if_inet6", F_OK) != 0) { /* a machine may have no IPv6 */
        assert_int_not_equal(status, PAWL_OK);
        return;
    }
    assert_ok(status, &f->error);
    assert_memory_equal(pawl__http_listens_on(f->http), "[::1]:", 6);
}

static void test_starting_without_memory_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;

    FAULT_WALK (walk) {
        struct pawl__metrics *metrics = NULL;
        pawl_status status = pawl__metrics_new(&metrics, &f->error);

        f->options.metrics = metrics;
        if (status == PAWL_OK) {
            status = pawl__http_start(&f->options, &f->http, &f->error);
        }
        assert_status(status, fault_fired() ? PAWL_NOMEM : PAWL_OK, &f->error);
        if (status == PAWL_OK) {
            assert_ok(pawl__http_stop(STEAL(f->http), in_seconds(PATIENCE_S), &f->error),
                      &f->error);
        }
        pawl__metrics_free(metrics);
    }
}

int main(void)
{
#define HTTP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_requests_of_one_connection_are_answered_in_turn),
        HTTP_TEST(test_head_has_the_length_and_no_body),
        HTTP_TEST(test_another_method_is_told_those_that_are_allowed),
        HTTP_TEST(test_a_body_has_a_length_a_type_and_a_limit),
        HTTP_TEST(test_a_body_in_chunks_has_the_same_limit),
        HTTP_TEST(test_numbers_and_parameters_are_checked_by_name),
        HTTP_TEST(test_odd_encodings_are_taken_or_refused_whole),
        HTTP_TEST(test_only_loopback_names_are_answered),
        HTTP_TEST(test_what_fails_inside_stays_inside),
        HTTP_TEST(test_an_error_of_a_store_is_never_the_clients),
        HTTP_TEST(test_kept_requests_of_many_connections_wait_together),
        HTTP_TEST(test_a_client_that_leaves_does_no_harm),
        HTTP_TEST(test_what_is_kept_for_too_long_is_504),
        HTTP_TEST(test_a_key_is_refused_where_it_would_do_nothing),
        HTTP_TEST(test_clients_that_leave_do_not_fill_the_server),
        HTTP_TEST(test_bodies_have_a_limit_together),
        HTTP_TEST(test_an_answer_that_is_read_slowly_is_cut_off),
        HTTP_TEST(test_headers_that_contradict_each_other_are_refused),
        HTTP_TEST(test_the_address_listened_on_is_a_host),
        HTTP_TEST(test_stopping_does_not_wait_for_half_a_request),
        HTTP_TEST(test_what_blocks_does_not_stop_the_others),
        HTTP_TEST(test_a_slow_request_is_cut_off),
        HTTP_TEST(test_an_idle_connection_is_ended),
        HTTP_TEST(test_headers_have_a_limit),
        HTTP_TEST(test_many_short_headers_fit_the_limit),
        HTTP_TEST(test_stopping_waits_for_what_has_begun),
        HTTP_TEST(test_stopping_gives_up_what_is_kept_for_too_long),
        HTTP_TEST(test_an_address_in_use_is_named),
        HTTP_TEST(test_requests_are_counted),
        HTTP_TEST(test_requests_sent_at_once_are_answered_in_order),
        HTTP_TEST(test_connections_above_the_limit_wait),
        HTTP_TEST(test_an_address_may_be_ipv6),
        HTTP_TEST(test_starting_without_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
