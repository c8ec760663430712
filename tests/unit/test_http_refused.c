/* Requests that nobody should send, byte by byte as they are on the wire: each has one answer at the most,
 * ours when we can help it, and the end of its connection. And what a browser may not do, and a client
 * that closes its side. */
#include "lib/check.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/queue.h"
#include "lib/http_client.h"
#include "net/http/http.h"

enum {
    PATIENCE_S = 30,
    READ_MS_MAX = PATIENCE_S * 1000,
    HEADERS_MAX = 4096,
    BODY_MAX = 1000,
    DECOYS = 16,
    WIRE_MAX = 1 << 16
};

struct fixture {
    struct pawl__http_options options;
    struct pawl__http *http;
    struct pawl__queue *kept;
    atomic_int written; /* how often POST /write came to its handler */
    char address[64];
    pawl_error error;
};

/* --- handlers --- */

static void answer(struct pawl__http_request *request)
{
    pawl__http_answer(request, 200, HTTP_JSON, strdup("true"), 4);
}

static void look(struct pawl__http_request *request, void *context)
{
    (void)context;
    answer(request);
}

static void write_it(struct pawl__http_request *request, void *context)
{
    struct fixture *f = context;

    atomic_fetch_add(&f->written, 1);
    answer(request);
}

static void finish(struct pawl__http_request *request, void *context)
{
    (void)context;
    answer(request);
}

static void keep(struct pawl__http_request *request, void *context)
{
    struct fixture *f = context;

    if (pawl__http_keep(request)) {
        REQUIRE(pawl__queue_push(f->kept, request, INT64_MAX, NULL, NULL) == PAWL_OK);
    }
}

static const char *const any[] = { "a", NULL };
static const struct pawl__http_route routes[] = {
    { .method = PAWL__HTTP_GET, .pattern = "/look", .handle = look, .parameters = any },
    { .method = PAWL__HTTP_GET, .pattern = "/block", .handle = look, .blocks = true },
    { .method = PAWL__HTTP_GET, .pattern = "/kept", .handle = keep },
    { .method = PAWL__HTTP_POST, .pattern = "/write", .handle = write_it, .takes_json = true },
    { .method = PAWL__HTTP_PUT, .pattern = "/write", .handle = write_it, .takes_json = true },
};

/* --- set-up --- */

static int setup_reading(void **state, uint32_t read_ms_max)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->options = (struct pawl__http_options)PAWL__HTTP_OPTIONS_INIT;
    f->options.routes = routes;
    f->options.read_ms_max = read_ms_max;
    f->options.route_count = COUNT_OF(routes);
    f->options.context = f;
    f->options.loopback_hosts = true;
    f->options.body_bytes_max = BODY_MAX;
    f->options.header_bytes_max = HEADERS_MAX;
    assert_ok(pawl__queue_new(100, &f->kept, &f->error), &f->error);
    assert_ok(pawl__http_start(&f->options, &f->http, &f->error), &f->error);
    (void)snprintf(f->address, sizeof(f->address), "%s", pawl__http_listens_on(f->http));
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_reading(state, READ_MS_MAX);
}

static int setup_with_little_time(void **state)
{
    return setup_reading(state, READ_MS_MAX / 30);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int64_t deadline_ns = pawl__monotonic_ns(pawl__clock_real()) + PATIENCE_S * NS_PER_S;

    assert_ok(pawl__http_stop(f->http, deadline_ns, &f->error), &f->error);
    pawl__queue_free(f->kept);
    free(f);
    return 0;
}

/* --- the wire --- */

/* All that comes until the other side closes. */
static void receive_all(int fd, char *text, const char *what)
{
    size_t len = 0;

    for (;;) {
        struct pollfd waits = { .fd = fd, .events = POLLIN };

        if (poll(&waits, 1, PATIENCE_S * 1000) != 1) {
            fail_msg("%.60s: the connection stays open", what);
        }
        ssize_t got = recv(fd, text + len, WIRE_MAX - 1 - len, 0);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
    }
    text[len] = '\0';
}

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

struct bad {
    const char *bytes;
    const char *filler; /* stands where bytes has a '@', `times` times */
    int times;
    int code;         /* 0: none, the connection is closed */
    const char *says; /* of our own answer; NULL: libmicrohttpd's, if there is one */
};

static char *bytes_of(const struct bad *bad)
{
    const char *at = strchr(bad->bytes, '@');
    size_t filler = bad->filler == NULL ? 0 : strlen(bad->filler) * (size_t)bad->times;
    char *bytes = calloc(1, strlen(bad->bytes) + filler + 1);
    size_t len = at == NULL ? strlen(bad->bytes) : (size_t)(at - bad->bytes);

    assert_non_null(bytes);
    memcpy(bytes, bad->bytes, len);
    for (int i = 0; i < bad->times; i++) {
        strcat(bytes + len, bad->filler);
    }
    return at == NULL ? bytes : strcat(bytes, at + 1);
}

/* Sends it in pieces of so many bytes; 0: whole. */
static void send_in_pieces(int fd, const char *bytes, size_t piece)
{
    size_t len = strlen(bytes);

    for (size_t at = 0; at < len;) {
        size_t part = piece == 0 ? len : MIN(piece, len - at);

        http_send_bytes(fd, bytes + at, part);
        at += part;
    }
}

static void assert_one_answer(struct fixture *f, const struct bad *bad, size_t piece)
{
    char *bytes = bytes_of(bad);
    char *text = malloc(WIRE_MAX);
    char status[32];
    int fd = http_connect(f->address);

    assert_non_null(text);
    send_in_pieces(fd, bytes, piece);
    receive_all(fd, text, bad->bytes);
    (void)snprintf(status, sizeof(status), "HTTP/1.1 %d ", bad->code);
    bool ours = count_of(text, "Content-Type: application/problem+json") == 1
                && strstr(text, "<html") == NULL;
    if (count_of(text, "HTTP/1.") != (bad->code == 0 ? 0 : 1)
        || (bad->code != 0 && strncmp(text, status, strlen(status)) != 0)
        || (bad->says != NULL && (!ours || strstr(text, bad->says) == NULL))) {
        fail_msg("%.60s (pieces of %zu) is answered:\n%s", bytes, piece, text);
    }
    close(fd);
    free(text);
    free(bytes);
}

#define HOST "Host: localhost\r\n"
#define JSON HOST "Content-Type: application/json\r\n"

/* What MHD would answer itself, with its own words, and twice; the last rows are those it still does. */
static const struct bad bads[] = {
    { "GET /look HTTP/1.1\r\n\r\n", NULL, 0, 400, "the header Host is missing" },
    { "GET /look HTTP/1.1\r\nX: y\r\nZ: 1\r\n\r\n", NULL, 0, 400, "the header Host is missing" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: x\r\n\r\n{}",
      NULL,
      0,
      400,
      "Content-Length" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: 2x\r\n\r\n{}",
      NULL,
      0,
      400,
      "whole number" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: -1\r\n\r\n{}",
      NULL,
      0,
      400,
      "whole number" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: +2\r\n\r\n{}",
      NULL,
      0,
      400,
      "whole number" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: \r\n\r\n{}", NULL, 0, 400, "whole number" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: 99999999999999999999\r\n\r\n{}",
      NULL,
      0,
      413,
      "TOO_LARGE" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: 1001\r\n\r\n{}", NULL, 0, 413, "TOO_LARGE" },
    { "POST /write HTTP/1.1\r\n" JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
      NULL,
      0,
      400,
      "Transfer-Encoding" },
    { "POST /write HTTP/1.1\r\n" JSON "Transfer-Encoding: gzip\r\n\r\n{}",
      NULL,
      0,
      400,
      "Transfer-Encoding" },
    { "GET /@ HTTP/1.1\r\n" HOST "\r\n", "a", HEADERS_MAX, 414, "TARGET_TOO_LONG" },
    { "POST /write?@ HTTP/1.1\r\n" JSON "Content-Length: 2\r\n\r\n{}",
      "a&",
      200,
      400,
      "parameters" },
    { "GET /look?@ HTTP/1.1\r\n" HOST "\r\n", "&", HEADERS_MAX - 10, 400, "parameters" },
    { "GET /look HTTP/1.1\r\n" HOST "X: @\r\n\r\n", "a", HEADERS_MAX, 431, "HEADERS_TOO_LARGE" },
    { "GET /look HTTP/1.1\r\n" HOST "Cookie: @\r\n\r\n", "a=1; ", 780, 431, "HEADERS_TOO_LARGE" },
    { "GET /look HTTP/1.1\r\n" HOST "X: @\r\n\r\n", "a", 4 * HEADERS_MAX, 431, NULL },
    { "GET /@ HTTP/1.1\r\n" HOST "\r\n", "a", 4 * HEADERS_MAX, 414, NULL },
    { "GET /look HTTP/9.9\r\n" HOST "\r\n", NULL, 0, 505, NULL },
    { "GET /look HTTP/0.9\r\n" HOST "\r\n", NULL, 0, 505, NULL },
    { "GET /look HTTPS/1.1\r\n" HOST "\r\n", NULL, 0, 400, NULL },
    { "GET /look HTTP/1.1\r\n" HOST "a header without a colon\r\n\r\n", NULL, 0, 400, NULL },
    { "POST /write HTTP/1.1\r\n" JSON "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
      NULL,
      0,
      400,
      NULL },
    { "POST /write HTTP/1.1\r\n" JSON "Transfer-Encoding: chunked\r\n\r\n2\r\n{}nonsense\r\n",
      NULL,
      0,
      400,
      NULL },
    { "POST /write HTTP/1.1\r\n" JSON "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
      NULL,
      0,
      413,
      NULL },
};

/* Others are reading their headers on the same threads: none of them must get the answer. */
static void open_decoys(struct fixture *f, int fds[DECOYS])
{
    for (size_t i = 0; i < DECOYS; i++) {
        fds[i] = http_connect(f->address);
        http_send(fds[i], "GET /look HTTP/1.1\r\nX: ");
    }
}

static void close_decoys(const int fds[DECOYS])
{
    for (size_t i = 0; i < DECOYS; i++) {
        http_send(fds[i], "1\r\nHost: localhost\r\n\r\n");
        struct http_reply reply = http_receive(fds[i], false);

        assert_int_equal(reply.code, 200);
        http_reply_done(&reply);
        close(fds[i]);
    }
}

static void test_a_bad_request_has_one_answer_and_ends_its_connection(void **state)
{
    static const size_t pieces[] = { 0, 1000, 17 };
    struct fixture *f = *state;
    int decoys[DECOYS];

    open_decoys(f, decoys);
    for (size_t i = 0; i < COUNT_OF(bads); i++) {
        for (size_t k = 0; k < COUNT_OF(pieces); k++) {
            assert_one_answer(f, &bads[i], pieces[k]);
        }
    }
    close_decoys(decoys);
    assert_int_equal(atomic_load(&f->written), 0);
}

static void test_a_bad_request_behind_good_ones_has_one_answer_too(void **state)
{
    static const char good[] = "GET /block HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "GET /look HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(bads); i++) {
        char *bytes = bytes_of(&bads[i]);
        char *text = malloc(WIRE_MAX);
        int fd = http_connect(f->address);

        assert_non_null(text);
        http_send(fd, good);
        http_send(fd, bytes);
        receive_all(fd, text, bads[i].bytes);
        if (count_of(text, "HTTP/1.1 200 ") != 2 || count_of(text, "HTTP/1.") != 3) {
            fail_msg("behind good ones %.60s is answered:\n%s", bytes, text);
        }
        close(fd);
        free(text);
        free(bytes);
    }
}

static void test_a_client_that_closes_its_side_gets_its_answer(void **state)
{
    static const char *const targets[] = { "GET /look", "GET /block", "GET /kept", "POST /write" };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        int fd = http_connect(f->address);
        void *request = NULL;

        http_ask_on(fd, targets[i], NULL, strncmp(targets[i], "POST", 4) == 0 ? "{}" : NULL);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        if (strstr(targets[i], "kept") != NULL) {
            assert_ok(pawl__queue_pop(f->kept, INT64_MAX, NULL, &request, &f->error), &f->error);
            while (!pawl__http_has_left(request)) { /* the end has arrived, as it would for long */
                poll(NULL, 0, 1);
            }
            pawl__http_resume(request, finish, f);
        }
        struct http_reply reply = http_receive(fd, false);
        if (reply.code != 200) {
            fail_msg("%s: %d", targets[i], reply.code);
        }
        http_reply_done(&reply);
        assert_true(http_is_closed(fd, PATIENCE_S * 1000));
        close(fd);
    }
}

/* Sends the start of a request, closes our side, and expects the other to be closed at once. */
static void expect_closed_after(struct fixture *f, const char *wire)
{
    int fd = http_connect(f->address);
    char byte;

    assert_int_equal(send(fd, wire, strlen(wire), MSG_NOSIGNAL), strlen(wire));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    struct pollfd waits = { .fd = fd, .events = POLLIN };
    if (poll(&waits, 1, PATIENCE_S * 1000 / 2) != 1) {
        fail_msg("nothing is said to %s", wire);
    }
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

/* Half a body cannot be answered: libmicrohttpd closes our side before it tells. Closed at once is the
 * answer, and nothing is done. */
static void test_a_client_that_closes_its_side_in_mid_body_is_closed_at_once(void **state)
{
    static const char *const bodies[] = {
        "Content-Length: 100\r\n\r\n",
        "Content-Length: 100\r\n\r\n{\"half",
        "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"h",
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        char wire[256];

        snprintf(wire,
                 sizeof(wire),
                 "POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s",
                 bodies[i]);
        expect_closed_after(f, wire);
    }
    assert_int_equal(atomic_load(&f->written), 0);
}

/* Nor can half of the headers. Before the first line is whole libmicrohttpd tells nobody of them, and it
 * overlooks the end that comes with their last bytes: the time to read a request ends them. */
static void test_a_client_that_closes_its_side_in_the_headers_is_closed_in_time(void **state)
{
    static const char request[] = "POST /write HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Type: application/json\r\nContent-Length: 0\r\n";
    enum { APART = 5, COUNT = (sizeof(request) - 1) / APART };
    struct fixture *f = *state;
    int fds[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        size_t len = sizeof(request) - 1 - (i * APART); /* the first lacks only the empty line */

        fds[i] = http_connect(f->address);
        assert_int_equal(send(fds[i], request, len, MSG_NOSIGNAL), len);
        assert_int_equal(shutdown(fds[i], SHUT_WR), 0);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(http_is_closed(fds[i], PATIENCE_S * 1000));
        close(fds[i]);
    }
    assert_int_equal(atomic_load(&f->written), 0);
}

static void test_a_page_of_another_origin_cannot_write(void **state)
{
    static const struct {
        const char *what;
        const char *host;
        const char *origin;
        int code;
    } cases[] = {
        { "POST", "localhost:8470", "http://localhost:8470", 200 },
        { "PUT", "127.0.0.1:8470", "http://127.0.0.1:8470", 200 },
        { "POST", "[::1]:8470", "http://[::1]:8470", 200 },
        { "POST", "127.0.0.1:8470", "http://localhost:8470", 200 },
        { "POST", "LOCALHOST:8470", "http://[::1]:8470", 200 },
        { "POST", "localhost", "http://localhost:80", 200 },
        { "POST", "localhost", "https://localhost", 200 },
        { "POST", "localhost:8470", NULL, 200 },
        { "POST", "localhost:8470", "http://evil.example", 403 },
        { "PUT", "localhost:8470", "http://evil.example:8470", 403 },
        { "POST", "localhost:8470", "https://localhost.evil.example:8470", 403 },
        { "POST", "localhost:8470", "http://localhost:3000", 403 },
        { "POST", "localhost:8470", "http://localhost", 403 },
        { "POST", "localhost:8470", "http://localhost:8470/", 403 },
        { "POST", "localhost:8470", "localhost:8470", 403 },
        { "POST", "localhost:8470", "null", 403 },
        { "POST", "localhost:8470", "", 403 },
        { "POST", "localhost:8470", "http://localhost:8470\r\nOrigin: http://localhost:8470", 400 },
        { "GET", "localhost:8470", "http://evil.example", 200 },
        { "HEAD", "localhost:8470", "http://evil.example", 200 },
    };
    struct fixture *f = *state;
    int writes = 0;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool reads = strchr("GH", cases[i].what[0]) != NULL;
        int fd = http_connect(f->address);
        char text[512];

        (void)snprintf(text,
                       sizeof(text),
                       "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s",
                       cases[i].what,
                       reads ? "/look" : "/write",
                       cases[i].host,
                       cases[i].origin == NULL ? "" : "Origin: ",
                       cases[i].origin == NULL ? "" : cases[i].origin,
                       cases[i].origin == NULL ? "" : "\r\n",
                       reads ? "\r\n"
                             : "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
        http_send(fd, text);
        struct http_reply reply = http_receive(fd, strcmp(cases[i].what, "HEAD") == 0);
        if (reply.code != cases[i].code
            || (reply.code == 403 && strstr(reply.body, "\"code\":\"WRONG_ORIGIN\"") == NULL)) {
            fail_msg("%s of %s: %d %s",
                     cases[i].what,
                     cases[i].origin == NULL ? "none" : cases[i].origin,
                     reply.code,
                     reply.body);
        }
        writes += !reads && cases[i].code == 200;
        http_reply_done(&reply);
        close(fd);
    }
    assert_int_equal(atomic_load(&f->written), writes);
}

#define REFUSED_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFUSED_TEST(test_a_bad_request_has_one_answer_and_ends_its_connection),
        REFUSED_TEST(test_a_bad_request_behind_good_ones_has_one_answer_too),
        REFUSED_TEST(test_a_client_that_closes_its_side_gets_its_answer),
        REFUSED_TEST(test_a_client_that_closes_its_side_in_mid_body_is_closed_at_once),
        cmocka_unit_test_setup_teardown(
            test_a_client_that_closes_its_side_in_the_headers_is_closed_in_time,
            setup_with_little_time,
            teardown),
        REFUSED_TEST(test_a_page_of_another_origin_cannot_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
