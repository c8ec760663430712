/* net/h2 as a process, for clients and servers that are not ours.
 *
 *   h2_peer serve [DIR]          the methods of h2_fixture.h and reflection; with DIR mutual TLS with its certificates.
 *                                Prints its address, and stops in order when standard input ends.
 *   h2_peer call ADDRESS [DIR]   calls a server that has the same methods, and prints what it found, a line each
 *   h2_peer certificates DIR     makes the certificates */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/thread.h"
#include "lib/h2_fixture.h"

enum { PATIENCE_MS = 60000, PATH_SIZE = 256 };

struct paths {
    char certificate[PATH_SIZE];
    char key[PATH_SIZE];
    char ca[PATH_SIZE];
    struct pawl__h2_tls tls;
};

static const struct pawl__h2_tls *tls_of(const char *directory,
                                         const char *who,
                                         struct paths *paths)
{
    if (directory == NULL) {
        return NULL;
    }
    (void)snprintf(paths->certificate, PATH_SIZE, "%s/%s.pem", directory, who);
    (void)snprintf(paths->key, PATH_SIZE, "%s/%s.key", directory, who);
    (void)snprintf(paths->ca, PATH_SIZE, "%s/ca.pem", directory);
    paths->tls = (struct pawl__h2_tls){ .certificate_file = paths->certificate,
                                        .key_file = paths->key,
                                        .ca_file = paths->ca };
    return &paths->tls;
}

static int serve(const char *directory)
{
    static struct h2_fixture fixture;
    struct paths paths;
    char byte = 0;

    h2_fixture_init(&fixture);
    fixture.options.tls = tls_of(directory, "server", &paths);
    fixture.options.reflection = true;
    if (h2_fixture_start(&fixture, &fixture.error) != PAWL_OK) {
        (void)fprintf(stderr, "%s\n", fixture.error.message);
        return 1;
    }
    (void)printf("%s\n", pawl__h2_listens_on(fixture.server));
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
        h2_fixture_release(&fixture);
    }
    h2_fixture_done(&fixture);
    return 0;
}

static void print_call(struct pawl__h2_client *client, const char *path, const char *request)
{
    struct pawl__buf answer = BUF_INIT(0);
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__h2_client_call(
            client, path, pawl_view_of(request), h2_fixture_in_ms(PATIENCE_MS), &answer, &error)
        == PAWL_OK) {
        (void)printf("%s %zu %.40s\n", path, answer.len, answer.data == NULL ? "" : answer.data);
    } else {
        (void)printf("%s %d %s\n", path, error.native, error.message);
    }
    pawl__buf_done(&answer);
}

struct stream {
    struct pawl__lock lock; /* covers everything below */
    struct pawl__cond changed;
    bool done;
    int code;
    size_t messages;
    size_t bytes;
    size_t details;
};

static void on_message(void *context, pawl_view message)
{
    struct stream *stream = context;

    pawl__lock(&stream->lock);
    stream->messages++;
    stream->bytes += message.len;
    pawl__unlock(&stream->lock);
}

static void on_done(void *context, const struct pawl__h2_outcome *outcome)
{
    struct stream *stream = context;

    pawl__lock(&stream->lock);
    stream->done = true;
    stream->code = outcome->code;
    stream->details = outcome->details.len;
    pawl__cond_signal(&stream->changed);
    pawl__unlock(&stream->lock);
}

static void print_stream(struct pawl__h2_client *client,
                         const char *path,
                         const char *first,
                         size_t more)
{
    struct stream stream = { .done = false };
    struct pawl__h2_client_stream *call = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    const struct pawl__h2_client_ask ask = { .path = path,
                                             .deadline_ns = h2_fixture_in_ms(PATIENCE_MS),
                                             .request = pawl_view_of(first),
                                             .single = more == 0,
                                             .message = on_message,
                                             .done = on_done,
                                             .context = &stream };

    pawl__lock_cond_init(&stream.lock, &stream.changed);
    if (pawl__h2_client_begin(client, &ask, &call, &error) != PAWL_OK) {
        (void)printf("%s %s\n", path, error.message);
        return;
    }
    for (size_t i = 1; i < more; i++) {
        while (pawl__h2_client_send(call, pawl_view_of(first), &error) == PAWL_BUSY) {
            pawl__sleep_until(pawl__clock_real(), h2_fixture_in_ms(1));
        }
    }
    pawl__h2_client_half_close(call);
    pawl__lock(&stream.lock);
    while (!stream.done) {
        pawl__cond_wait(&stream.changed, &stream.lock);
    }
    pawl__unlock(&stream.lock);
    (void)printf("%s code %d messages %zu bytes %zu details %zu\n",
                 path,
                 stream.code,
                 stream.messages,
                 stream.bytes,
                 stream.details);
    pawl__h2_client_release(call);
    pawl__lock_cond_done(&stream.lock, &stream.changed);
}

static int call(const char *address, const char *directory)
{
    struct paths paths;
    const struct pawl__h2_client_options options = { .address = address,
                                                     .token = "secret",
                                                     .gzip = true,
                                                     .tls = tls_of(directory, "client", &paths) };
    struct pawl__h2_client *client = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__h2_client_open(&options, &client, &error) != PAWL_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    print_call(client, "/test.Echo/Unary", "hello");
    print_call(client, "/test.Echo/Big", "3000000");
    print_call(client, "/test.Echo/Fail", "x");
    print_call(client, "/test.Echo/Who", "x");
    print_call(client, "/test.Echo/Nothing", "x");
    print_stream(client, "/test.Echo/Count", "2000", 0);
    print_stream(client, "/test.Echo/Join", "ab", 100);
    print_stream(client, "/test.Echo/Chat", "ab", 100);
    print_stream(client, "/test.Echo/Fail", "x", 0);
    pawl__h2_client_close(client);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "serve") == 0) {
        return serve(argc > 2 ? argv[2] : NULL);
    }
    if (argc >= 3 && strcmp(argv[1], "call") == 0) {
        return call(argv[2], argc > 3 ? argv[3] : NULL);
    }
    if (argc == 3 && strcmp(argv[1], "certificates") == 0) {
        return h2_fixture_certificates(argv[2]) ? 0 : 1;
    }
    (void)fprintf(stderr, "usage: h2_peer serve [DIR] | call ADDRESS [DIR] | certificates DIR\n");
    return 2;
}
