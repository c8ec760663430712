/* Answers that are streams, by real sockets: events as they come, slow and gone clients, stopping; and the
 * listener in the file system. */
#include "lib/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "lib/http_client.h"
#include "lib/tempdir.h"
#include "net/http/events.h"
#include "net/http/http.h"
#include "net/http/listen.h"

enum { FOLLOWERS_MAX = 2048, PATIENCE_S = 30, OTHER_UID = 65534 };

/* A log whose events are their own numbers, and those who follow it. */
struct fixture {
    struct pawl__http_options options;
    struct pawl__http *http;
    struct pawl__lock lock; /* covers what follows */
    struct pawl__cond changed;
    uint64_t newest;
    bool ended;
    struct pawl__http_stream *streams[FOLLOWERS_MAX];
    size_t stream_count;
    size_t closed;
    size_t bytes_asked; /* of the endless stream */
    char directory[TEMPDIR_SIZE];
    char address[64];
    pawl_error error;
};

struct follower {
    struct fixture *fixture;
    uint64_t seen;
};

static int64_t in_seconds(int seconds)
{
    return pawl__monotonic_ns(pawl__clock_real()) + seconds * NS_PER_S;
}

/* --- handlers --- */

static bool next_events(void *context, struct pawl__buf *events)
{
    struct follower *follower = context;
    struct fixture *f = follower->fixture;
    char number[32];

    pawl__lock(&f->lock);
    uint64_t newest = f->newest;
    bool ended = f->ended;
    pawl__unlock(&f->lock);
    while (follower->seen < newest && events->len < 4096) {
        (void)snprintf(number, sizeof(number), "%d", (int)++follower->seen);
        pawl__http_event_write(
            pawl_view_of(number), pawl_view_of("tick"), pawl_view_of(number), events);
    }
    return !ended;
}

static void close_follower(void *context)
{
    struct follower *follower = context;
    struct fixture *f = follower->fixture;

    pawl__lock(&f->lock);
    f->closed++;
    pawl__cond_broadcast(&f->changed);
    pawl__unlock(&f->lock);
    free(follower);
}

static void follow(struct pawl__http_request *request, void *context)
{
    struct fixture *f = context;
    const char *last = pawl__http_header(request, "Last-Event-ID");
    struct follower *follower = calloc(1, sizeof(*follower));
    struct pawl__http_stream *stream = pawl__http_stream_new(request);

    assert_non_null(follower);
    assert_non_null(stream);
    *follower = (struct follower){ f, last == NULL ? 0 : strtoull(last, NULL, 10) };
    const struct pawl__http_event_source source = {
        .next = next_events, .close = close_follower, .context = follower, .quiet_ms_max = 100
    };
    pawl__http_answer_events(request, &source, stream);
    pawl__lock(&f->lock);
    f->streams[f->stream_count++] = stream;
    pawl__cond_broadcast(&f->changed);
    pawl__unlock(&f->lock);
}

static size_t read_for_ever(void *context, char *to, size_t size, bool *ret_ended)
{
    struct fixture *f = context;

    *ret_ended = false;
    memset(to, 'x', size);
    pawl__lock(&f->lock);
    f->bytes_asked += size;
    pawl__unlock(&f->lock);
    return size;
}

static void close_endless(void *context)
{
    struct fixture *f = context;

    pawl__lock(&f->lock);
    f->closed++;
    pawl__cond_broadcast(&f->changed);
    pawl__unlock(&f->lock);
}

static void answer_without_end(struct pawl__http_request *request, void *context)
{
    struct pawl__http_stream *stream = pawl__http_stream_new(request);
    const struct pawl__http_source source = { .read = read_for_ever,
                                              .close = close_endless,
                                              .context = context };

    assert_non_null(stream);
    pawl__http_answer_stream(request, "text/plain", &source, stream);
    pawl__http_stream_release(stream);
}

static void say_method(struct pawl__http_request *request, void *context)
{
    (void)context;
    pawl__http_answer(request, 200, HTTP_JSON, strdup("true"), 4);
}

static const struct pawl__http_route routes[] = {
    { .method = PAWL__HTTP_GET, .pattern = "/events", .handle = follow },
    { .method = PAWL__HTTP_GET, .pattern = "/endless", .handle = answer_without_end },
    { .method = PAWL__HTTP_DELETE, .pattern = "/thing", .handle = say_method },
    { .method = PAWL__HTTP_PATCH, .pattern = "/thing", .handle = say_method, .takes_json = true },
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
    assert_ok(tempdir_make(f->directory, "http", &f->error), &f->error);
    pawl__lock_init(&f->lock);
    pawl__cond_init(&f->changed);
    *state = f;
    return 0;
}

static void start(struct fixture *f)
{
    assert_ok(pawl__http_start(&f->options, &f->http, &f->error), &f->error);
    (void)snprintf(f->address, sizeof(f->address), "%s", pawl__http_listens_on(f->http));
}

static void stop(struct fixture *f)
{
    assert_ok(pawl__http_stop(f->http, in_seconds(PATIENCE_S), &f->error), &f->error);
    f->http = NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    stop(f);
    for (size_t i = 0; i < f->stream_count; i++) {
        pawl__http_stream_wake(f->streams[i]); /* for nothing: the server is gone */
        pawl__http_stream_release(f->streams[i]);
    }
    tempdir_remove(f->directory);
    pawl__cond_done(&f->changed);
    pawl__lock_done(&f->lock);
    free(f);
    return 0;
}

/* --- helpers --- */

static void wait_for(struct fixture *f, const size_t *number, size_t wanted)
{
    bool in_time = true;

    pawl__lock(&f->lock);
    while (*number < wanted && in_time) {
        in_time = pawl__cond_wait_until(&f->changed, &f->lock, in_seconds(PATIENCE_S));
    }
    assert_int_equal(*number, wanted);
    pawl__unlock(&f->lock);
}

static void publish(struct fixture *f, uint64_t count)
{
    pawl__lock(&f->lock);
    f->newest += count;
    size_t streams = f->stream_count;
    pawl__unlock(&f->lock);
    for (size_t i = 0; i < streams; i++) {
        pawl__http_stream_wake(f->streams[i]);
    }
}

/* Reads until the text has come; what was read is kept in `got`. */
static void read_until(int fd, const char *text, char *got, size_t size)
{
    size_t len = strlen(got);

    while (strstr(got, text) == NULL) {
        struct pollfd waits = { .fd = fd, .events = POLLIN };

        assert_int_equal(poll(&waits, 1, PATIENCE_S * 1000), 1);
        ssize_t more = recv(fd, got + len, size - 1 - len, 0);
        if (more <= 0) {
            fail_msg("'%s' has not come, only: %s", text, got);
        }
        len += (size_t)more;
        got[len] = '\0';
    }
}

static int ask_to_follow(struct fixture *f, const char *headers)
{
    size_t before = f->stream_count;
    int fd = http_connect(f->address);

    http_ask_on(fd, "GET /events", headers, NULL);
    wait_for(f, &f->stream_count, before + 1);
    return fd;
}

static size_t count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;

    assert_non_null(tasks);
    while (readdir(tasks) != NULL) {
        count++;
    }
    closedir(tasks);
    return count;
}

/* --- tests --- */

static void test_an_event_keeps_the_lines_of_its_data(void **state)
{
    struct pawl__buf text = BUF_INIT(1024);

    (void)state;
    pawl__http_event_write(
        pawl_view_of("7"), pawl_view_of("done"), pawl_view_of("a\nb\r\nc\rd\n"), &text);
    pawl__http_event_write(
        (pawl_view){ NULL, 0 }, (pawl_view){ NULL, 0 }, (pawl_view){ NULL, 0 }, &text);
    assert_string_equal(text.data,
                        "id: 7\nevent: done\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"
                        "data: \n\n");
    pawl__buf_done(&text);
}

static void test_a_follower_sees_events_as_they_come(void **state)
{
    struct fixture *f = *state;
    char got[65536] = "";

    start(f);
    int fd = ask_to_follow(f, NULL);
    read_until(fd, "Content-Type: text/event-stream\r\n", got, sizeof(got));
    publish(f, 1);
    read_until(fd, "id: 1\nevent: tick\ndata: 1\n\n", got, sizeof(got));
    publish(f, 1);
    read_until(fd, "id: 2\nevent: tick\ndata: 2\n\n", got, sizeof(got));
    close(fd);
}

static void test_a_follower_that_comes_back_misses_nothing(void **state)
{
    struct fixture *f = *state;
    char got[65536] = "";

    start(f);
    publish(f, 1000);
    int fd = ask_to_follow(f, "Last-Event-ID: 990\r\n");
    read_until(fd, "data: 1000\n", got, sizeof(got));
    assert_null(strstr(got, "data: 990\n"));
    assert_non_null(strstr(got, "data: 991\n"));
    close(fd);
}

static void test_a_quiet_stream_sends_comments(void **state)
{
    struct fixture *f = *state;
    char got[65536] = "";

    start(f);
    int fd = ask_to_follow(f, NULL);
    read_until(fd, "\n:\n\n", got, sizeof(got)); /* behind the line with the chunk's length */
    close(fd);
    wait_for(f, &f->closed, 1); /* a comment finds out that nobody is there */
}

static void test_a_stream_that_ends_ends_the_answer(void **state)
{
    struct fixture *f = *state;
    char got[65536] = "";

    start(f);
    int fd = ask_to_follow(f, NULL);
    pawl__lock(&f->lock);
    f->ended = true;
    pawl__unlock(&f->lock);
    publish(f, 1);
    read_until(fd, "data: 1\n\n\r\n0\r\n\r\n", got, sizeof(got));
    wait_for(f, &f->closed, 1);
    http_ask_on(fd, "DELETE /thing", NULL, NULL); /* the connection is still good */
    struct http_reply reply = http_receive(fd, false);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    close(fd);
}

static void test_a_client_that_does_not_read_is_not_read_for(void **state)
{
    struct fixture *f = *state;

    f->options.answer_ms_max = 300;
    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "GET /endless", NULL, NULL);
    wait_for(f, &f->closed, 1);                   /* it was given up */
    assert_in_range(f->bytes_asked, 1, 64 << 20); /* what sockets hold */
    close(fd);
}

static void test_the_head_of_a_stream_has_no_body(void **state)
{
    struct fixture *f = *state;

    start(f);
    struct http_reply reply = { .code = 0 };
    int fd = http_connect(f->address);
    http_ask_on(fd, "HEAD /endless", NULL, NULL);
    reply = http_receive(fd, true);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    wait_for(f, &f->closed, 1);
    close(fd);
}

static void test_the_next_answer_follows_the_head_of_a_stream(void **state)
{
    struct fixture *f = *state;
    char got[4096] = "";

    start(f);
    int fd = http_connect(f->address);
    http_ask_on(fd, "HEAD /events", NULL, NULL);
    read_until(fd, "\r\n\r\n", got, sizeof(got));
    http_ask_on(fd, "HEAD /events", NULL, NULL);
    read_until(fd, "\r\n\r\nHTTP/1.1 200 ", got, sizeof(got));
    assert_memory_equal(strstr(got, "\r\n\r\n") + 4, "HTTP/1.1", 8); /* with nothing in between */
    wait_for(f, &f->closed, 2);
    close(fd);
}

static void test_more_streams_than_allowed_are_refused(void **state)
{
    struct fixture *f = *state;

    f->options.streams_max = 1;
    start(f);
    int first = ask_to_follow(f, NULL);
    int second = ask_to_follow(f, NULL);
    struct http_reply reply = http_receive(second, false);
    assert_int_equal(reply.code, 503);
    assert_non_null(strstr(reply.body, "\"code\":\"BUSY\""));
    http_reply_done(&reply);
    wait_for(f, &f->closed, 1);
    close(second);
    close(first);
}

static void test_stopping_ends_every_stream(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 100 };
    int fds[COUNT];

    start(f);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = ask_to_follow(f, NULL);
    }
    stop(f);
    assert_int_equal(f->closed, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char got[4096] = "";

        read_until(fds[i], "0\r\n\r\n", got, sizeof(got));
        close(fds[i]);
    }
}

static void test_two_thousand_followers_need_no_thread_each(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 2000 };
    struct rlimit files;
    static int fds[COUNT];

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(files.rlim_cur > 2 * COUNT + 100);
    f->options.connections_max = COUNT + 10;
    f->options.streams_max = COUNT;
    start(f);
    size_t threads = count_threads();
    for (int i = 0; i < COUNT; i++) {
        fds[i] = ask_to_follow(f, NULL);
    }
    assert_int_equal(count_threads(), threads);
    for (int round = 1; round <= 3; round++) {
        publish(f, 1);
    }
    for (int i = 0; i < COUNT; i++) {
        char got[65536] = "";

        read_until(fds[i], "data: 3\n\n", got, sizeof(got));
        const char *first = strstr(got, "data: 1\n");
        assert_non_null(first);
        assert_null(strstr(first + 1, "data: 1\n"));
        close(fds[i]);
    }
    wait_for(f, &f->closed, COUNT);
}

static void test_delete_and_patch_are_methods(void **state)
{
    struct fixture *f = *state;

    start(f);
    struct http_reply reply = http_ask(f->address, "DELETE /thing", NULL, NULL);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    reply = http_ask(f->address, "PATCH /thing", NULL, "{}");
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    reply = http_ask(f->address, "PUT /thing", NULL, "{}");
    assert_int_equal(reply.code, 405);
    char *allowed = http_reply_header(&reply, "Allow");
    assert_string_equal(allowed, "DELETE, PATCH");
    free(allowed);
    http_reply_done(&reply);
}

/* --- in the file system --- */

static int connect_to(const char *path)
{
    struct sockaddr_un address;
    pawl_error error = PAWL_ERROR_INIT;
    int directory = -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_ok(pawl__http_unix_address(path, &address, &directory, &error), &error);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        fd = -1;
    }
    if (directory >= 0) {
        close(directory);
    }
    return fd;
}

static void assert_answers(const char *path)
{
    int fd = connect_to(path);

    assert_true(fd >= 0);
    http_ask_on(fd, "DELETE /thing", NULL, NULL);
    struct http_reply reply = http_receive(fd, false);
    assert_int_equal(reply.code, 200);
    http_reply_done(&reply);
    close(fd);
}

static void test_a_socket_in_the_file_system_is_its_users_alone(void **state)
{
    struct fixture *f = *state;
    char path[256];
    struct stat made;

    (void)snprintf(path, sizeof(path), "%s/pawl.sock", f->directory);
    f->options.socket_path = path;
    start(f);
    assert_int_equal(stat(path, &made), 0);
    assert_int_equal(made.st_mode & 0777, 0600);
    assert_answers(path);
    if (geteuid() == 0) { /* whom the mode does not keep out, the server does */
        assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(chmod(f->directory, 0755), 0);
        pid_t child = fork();
        if (child == 0) {
            int fd = setuid(OTHER_UID) == 0 ? connect_to(path) : -1;
            char byte = 0;

            _exit(fd >= 0 && recv(fd, &byte, 1, 0) == 0 ? 0 : 1);
        }
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
    }
    stop(f);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_a_socket_that_a_killed_process_left_is_replaced(void **state)
{
    struct fixture *f = *state;
    char path[256];
    int left = -1;

    (void)snprintf(path, sizeof(path), "%s/left.sock", f->directory);
    assert_ok(pawl__http_listen_unix(path, &left, &f->error), &f->error);
    f->options.socket_path = path;
    assert_int_equal(pawl__http_start(&f->options, &f->http, &f->error), PAWL_BUSY);
    assert_non_null(strstr(f->error.message, "another process listens on"));
    close(left);
    start(f);
    assert_answers(path);
}

static void test_a_file_that_is_no_socket_is_left_alone(void **state)
{
    struct fixture *f = *state;
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/file", f->directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    f->options.socket_path = path;
    assert_int_equal(pawl__http_start(&f->options, &f->http, &f->error), PAWL_CONFLICT);
    assert_non_null(strstr(f->error.message, "not a socket"));
    assert_int_equal(access(path, F_OK), 0);
}

static void test_a_path_longer_than_the_kernel_takes_works(void **state)
{
    struct fixture *f = *state;
    char path[1024];

    size_t len = (size_t)snprintf(path, sizeof(path), "%s", f->directory);
    for (int i = 0; i < 3; i++) {
        len += (size_t)snprintf(path + len, sizeof(path) - len, "/%060d", i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    (void)snprintf(path + len, sizeof(path) - len, "/pawl.sock");
    f->options.socket_path = path;
    start(f);
    assert_answers(path);
    stop(f);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_keeps_the_lines_of_its_data),
        TEST(a_follower_sees_events_as_they_come),
        TEST(a_follower_that_comes_back_misses_nothing),
        TEST(a_quiet_stream_sends_comments),
        TEST(a_stream_that_ends_ends_the_answer),
        TEST(a_client_that_does_not_read_is_not_read_for),
        TEST(the_head_of_a_stream_has_no_body),
        TEST(the_next_answer_follows_the_head_of_a_stream),
        TEST(more_streams_than_allowed_are_refused),
        TEST(stopping_ends_every_stream),
        TEST(two_thousand_followers_need_no_thread_each),
        TEST(delete_and_patch_are_methods),
        TEST(a_socket_in_the_file_system_is_its_users_alone),
        TEST(a_socket_that_a_killed_process_left_is_replaced),
        TEST(a_file_that_is_no_socket_is_left_alone),
        TEST(a_path_longer_than_the_kernel_takes_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
