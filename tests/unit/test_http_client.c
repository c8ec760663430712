/* The HTTP client: answers that are whole, cut off or no answers, peers that are away, stopped or foreign. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "lib/tempdir.h"
#include "net/http/client.h"
#include "net/http/listen.h"

enum { BODY_MAX = 64 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 256];
    int listens;
    int peer;
    struct pawl__http_client *client;
    struct pawl__buf body;
    pawl_error error;
};

static int64_t in_ms(int64_t ms)
{
    return pawl__monotonic_ns(pawl__clock_real()) + ms * NS_PER_MS;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->listens = -1;
    f->peer = -1;
    f->body = (struct pawl__buf)BUF_INIT(1 << 20);
    assert_ok(tempdir_make(f->dir, "client", &f->error), &f->error);
    (void)snprintf(f->path, sizeof(f->path), "%s/s.sock", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__http_client_close(f->client);
    close(f->listens);
    close(f->peer);
    pawl__buf_done(&f->body);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static pawl_status gather(void *context, pawl_view bytes, pawl_error *reterr)
{
    (void)reterr;
    pawl__buf_add(context, bytes);
    return PAWL_OK;
}

static void start(struct fixture *f)
{
    assert_ok(pawl__http_listen_unix(f->path, &f->listens, &f->error), &f->error);
    assert_ok(pawl__http_client_open_unix(f->path, NULL, in_ms(10000), &f->client, &f->error),
              &f->error);
    f->peer = accept(f->listens, NULL, NULL);
    assert_true(f->peer >= 0);
}

static pawl_status ask(struct fixture *f, int64_t ms, struct pawl__http_reply *ret_reply)
{
    const struct pawl__http_ask wanted = {
        .method = "GET",
        .target = "/x",
        .deadline_ns = in_ms(ms),
        .body_bytes_max = BODY_MAX,
        .sink = gather,
        .context = &f->body,
    };

    return pawl__http_client_ask(f->client, &wanted, ret_reply, &f->error);
}

/* What the peer says before it is asked; it then ends its side, when it is told so. */
static void prepare(struct fixture *f, const char *answer, bool ends)
{
    assert_int_equal(write(f->peer, answer, strlen(answer)), (ssize_t)strlen(answer));
    if (ends) {
        assert_int_equal(shutdown(f->peer, SHUT_WR), 0);
    }
}

/* --- answers --- */

static void test_answers_are_read_however_they_are_cut(void **state)
{
    static const struct {
        const char *bytes;
        bool ends;
        unsigned code; /* 0: it is refused */
        const char *body;
    } rows[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, 200, "hi" },
        { "HTTP/1.1 200 OK\r\ncontent-length:2 \r\n\r\nhi", false, 200, "hi" },
        { "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, 200, "" },
        { "HTTP/1.1 204 No\r\n\r\n", false, 204, "" },
        { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx",
          false,
          201,
          "x" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
          "chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
          false,
          200,
          "abcde" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
          false,
          200,
          "" },
        { "HTTP/1.1 200 OK\r\n\r\nto the end", true, 200, "to the end" },
        { "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, 200, "x" },
        { "HTTP/2 200\r\n\r\n", true, 0, "first line" },
        { "HTTP/1.1 20 OK\r\n\r\n", true, 0, "first line" },
        { "HTTP/1.1 2000 OK\r\n\r\n", true, 0, "first line" },
        { "HTTP/1.1 101 Switch\r\n\r\n", true, 0, "protocol" },
        { "hello\r\n\r\n", true, 0, "first line" },
        { "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", true, 0, "no header" },
        { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", true, 0, "Content-Length" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
          true,
          0,
          "Content-Length" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
          true,
          0,
          "Content-Length" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          true,
          0,
          "a length and chunks" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", true, 0, "Transfer-Encoding" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", true, 0, "no size" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", true, 0, "longer" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
          true,
          0,
          "too large" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n"
          "0123456789012345678901234567890123456789012345678901234567890123x",
          true,
          0,
          "more than 64 bytes" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", true, 0, "cut off" },
        { "HTTP/1.1 200 OK\r\nContent-Le", true, 0, "cut off" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t step = 1; step <= strlen(rows[i].bytes); step += 7) {
            AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(1 << 20);
            AUTO(pawl__http_reply_done) struct pawl__http_reply reply;
            pawl_view bytes = pawl_view_of(rows[i].bytes);
            pawl_error error = PAWL_ERROR_INIT;
            pawl_status status = PAWL_OK;

            pawl__http_reply_init(&reply, BODY_MAX, gather, &body);
            while (status == PAWL_OK && bytes.len > 0) {
                pawl_view piece;

                assert_true(pawl__view_take(&bytes, MIN(step, bytes.len), &piece));
                status = pawl__http_reply_feed(&reply, &piece, &error);
                assert_true(status != PAWL_OK || piece.len == 0);
            }
            if (status == PAWL_OK && rows[i].ends) {
                status = pawl__http_reply_end(&reply, &error);
            }
            if (rows[i].code == 0) {
                assert_status(status, PAWL_INVALID, &error);
                assert_message(&error, rows[i].body);
                continue;
            }
            assert_ok(status, &error);
            assert_int_equal(reply.state, HTTP_REPLY_DONE);
            assert_int_equal(reply.code, rows[i].code);
            assert_string_equal(body.data == NULL ? "" : body.data, rows[i].body);
        }
    }
}

static void test_a_head_has_a_limit(void **state)
{
    AUTO(pawl__http_reply_done) struct pawl__http_reply reply;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_OK;

    (void)state;
    pawl__http_reply_init(&reply, BODY_MAX, NULL, NULL);
    for (int i = 0; status == PAWL_OK && i < HTTP_REPLY_HEAD_MAX; i++) {
        pawl_view bytes = pawl_view_of(i == 0 ? "HTTP/1.1 200 OK\r\n" : "A: b\r\n");

        status = pawl__http_reply_feed(&reply, &bytes, &error);
    }
    assert_status(status, PAWL_INVALID, &error);
    assert_message(&error, "head is too long");
}

static void expect_request(struct fixture *f)
{
    char asked[256] = "";

    assert_true(read(f->peer, asked, sizeof(asked) - 1) > 0);
    assert_non_null(strstr(asked, "GET /x HTTP/1.1\r\nHost: localhost\r\n"));
}

/* --- a connection --- */

static void test_a_connection_is_used_again_and_made_again(void **state)
{
    struct fixture *f = *state;
    struct pawl__http_reply reply;

    start(f);
    prepare(f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nLocation: /there\r\n\r\nx", false);
    assert_ok(ask(f, 10000, &reply), &f->error);
    assert_string_equal(reply.location, "/there");
    expect_request(f);
    /* The server ends the connection between two requests: the next one waits in the queue of a new one. */
    close(f->peer);
    f->peer = -1;
    assert_status(ask(f, 50, &reply), PAWL_TIMEOUT, &f->error);
    f->peer = accept(f->listens, NULL, NULL);
    expect_request(f);
    close(f->listens);
    f->listens = -1;
    assert_status(ask(f, 10000, &reply), PAWL_UNAVAILABLE, &f->error);
    assert_message(&f->error, "has stopped");
}

static void test_a_peer_that_says_nothing_is_waited_for_until_the_deadline(void **state)
{
    struct fixture *f = *state;
    struct pawl__http_reply reply;

    start(f);
    int64_t before = pawl__monotonic_ns(pawl__clock_real());
    assert_status(ask(f, 100, &reply), PAWL_TIMEOUT, &f->error);
    assert_message(&f->error, "does not answer");
    assert_true(pawl__monotonic_ns(pawl__clock_real()) - before >= 100 * NS_PER_MS);
}

static void test_a_peer_that_goes_away_is_told_from_one_that_answers(void **state)
{
    static const struct {
        const char *bytes;
        const char *says;
    } rows[] = {
        { "", "before it answered" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "before its answer was whole" },
    };
    struct fixture *f = *state;
    struct pawl__http_reply reply;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        start(f);
        prepare(f, rows[i].bytes, true);
        assert_status(ask(f, 10000, &reply), PAWL_UNAVAILABLE, &f->error);
        assert_message(&f->error, rows[i].says);
        close(f->peer);
        close(f->listens);
        assert_int_equal(unlink(f->path), 0);
        pawl__http_client_close(STEAL(f->client));
    }
}

static pawl_status open_only(struct fixture *f)
{
    return pawl__http_client_open_unix(f->path, NULL, in_ms(100), &f->client, &f->error);
}

static void test_nobody_listens(void **state)
{
    struct fixture *f = *state;

    assert_status(open_only(f), PAWL_NOT_FOUND, &f->error);
    start(f);
    pawl__http_client_close(STEAL(f->client));
    close(f->listens); /* as kill -9 leaves it */
    f->listens = -1;
    assert_int_equal(access(f->path, F_OK), 0);
    assert_status(open_only(f), PAWL_NOT_FOUND, &f->error);
    (void)snprintf(f->path, sizeof(f->path), "%s/no/such/dir/s.sock", f->dir);
    assert_status(open_only(f), PAWL_NOT_FOUND, &f->error);
    assert_status(pawl__http_client_open("127.0.0.1:1", NULL, in_ms(10000), &f->client, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_a_full_queue_of_connections_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct pawl__http_client *others[600] = { NULL };
    pawl_status status = PAWL_OK;
    size_t count = 0;

    assert_ok(pawl__http_listen_unix(f->path, &f->listens, &f->error), &f->error);
    while (status == PAWL_OK && count < COUNT_OF(others)) {
        status = pawl__http_client_open_unix(f->path, NULL, in_ms(100), &others[count], &f->error);
        count += status == PAWL_OK;
    }
    assert_true(count < COUNT_OF(others));
    assert_status(status, PAWL_TIMEOUT, &f->error);
    while (count > 0) {
        pawl__http_client_close(others[--count]);
    }
}

static void test_long_paths_are_reached(void **state)
{
    struct fixture *f = *state;
    char deep[TEMPDIR_SIZE + 256];

    (void)snprintf(deep, sizeof(deep), "%s/%0120d", f->dir, 7);
    assert_int_equal(mkdir(deep, 0700), 0);
    (void)snprintf(f->path, sizeof(f->path), "%s/%0120d/s.sock", f->dir, 7);
    start(f);
}

/* As root, a child that gives root up listens: to root that is fine, to a third user it is not. */
static int serve_as(const char *path, uid_t uid)
{
    pawl_error error = PAWL_ERROR_INIT;
    int fd = -1;

    return seteuid(uid) == 0 && pawl__http_listen_unix(path, &fd, &error) == PAWL_OK ? fd : -1;
}

static void test_a_socket_of_another_user_is_refused(void **state)
{
    struct fixture *f = *state;

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(chmod(f->dir, 0777), 0);
    f->listens = serve_as(f->path, 12345);
    assert_int_equal(seteuid(0), 0);
    assert_true(f->listens >= 0);
    assert_int_equal(chmod(f->path, 0666), 0);
    assert_int_equal(seteuid(54321), 0);
    pawl_status status = open_only(f);
    assert_int_equal(seteuid(0), 0);
    assert_status(status, PAWL_DENIED, &f->error);
    assert_message(&f->error, "another user");
    assert_ok(open_only(f), &f->error); /* root may ask anybody */
}

#define client_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_read_however_they_are_cut),
        cmocka_unit_test(test_a_head_has_a_limit),
        client_test(test_a_connection_is_used_again_and_made_again),
        client_test(test_a_peer_that_says_nothing_is_waited_for_until_the_deadline),
        client_test(test_a_peer_that_goes_away_is_told_from_one_that_answers),
        client_test(test_nobody_listens),
        client_test(test_a_full_queue_of_connections_is_waited_for),
        client_test(test_long_paths_are_reached),
        client_test(test_a_socket_of_another_user_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
