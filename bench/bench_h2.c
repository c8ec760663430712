/* gRPC calls by our client to our server, both in this process: small ones with 64 on their way, against round trips of
 * the same bytes over a bare socket with 64 on their way; and answers of 4 MiB, against a bare socket's bytes. */
#include "bench.h"

#include <arpa/inet.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/macros.h"
#include "base/thread/thread.h"
#include "must.h"
#include "net/h2/client.h"
#include "net/h2/h2.h"

enum { IN_FLIGHT = 64, CALLS = 50000, ROUNDS = 5, SMALL = 100, LARGE = 4 << 20, LARGE_CALLS = 100 };

static void echo(struct pawl__h2_call *call, void *context)
{
    struct pawl__buf answer = BUF_INIT(SMALL);

    (void)context;
    pawl__buf_add(&answer, pawl__h2_request(call));
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

static void large(struct pawl__h2_call *call, void *context)
{
    struct pawl__buf answer = BUF_INIT(LARGE);
    char *room = pawl__buf_extend(&answer, LARGE);

    (void)context;
    if (room != NULL) {
        memset(room, 'x', LARGE);
    }
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

static const struct pawl__h2_method methods[] = {
    { .path = "/bench.Echo/Small", .handle = echo },
    { .path = "/bench.Echo/Large", .handle = large },
};

/* --- calls --- */

struct calls {
    sem_t room;
    size_t failed;
};

static void ended(void *context, const struct pawl__h2_outcome *outcome)
{
    struct calls *calls = context;

    calls->failed += outcome->code == PAWL__H2_OK ? 0 : 1;
    sem_post(&calls->room);
}

static double run_calls(struct pawl__h2_client *client,
                        const char *path,
                        size_t count,
                        size_t in_flight)
{
    static const char bytes[SMALL] = "small";
    struct calls calls = { .failed = 0 };
    const struct pawl__h2_client_ask ask = { .path = path,
                                             .deadline_ns = INT64_MAX,
                                             .request = { bytes, sizeof(bytes) },
                                             .single = true,
                                             .done = ended,
                                             .context = &calls };

    sem_init(&calls.room, 0, (unsigned)in_flight);
    double begin_s = bench_now_s();
    for (size_t i = 0; i < count; i++) {
        sem_wait(&calls.room);
        MUST(pawl__h2_client_begin(client, &ask, NULL, err));
    }
    for (size_t i = 0; i < in_flight; i++) {
        sem_wait(&calls.room);
    }
    double took_s = bench_now_s() - begin_s;
    REQUIRE(calls.failed == 0);
    sem_destroy(&calls.room);
    return took_s;
}

/* --- a bare socket --- */

struct bare {
    int fd;
    size_t message;
    size_t count;
};

static void read_whole(int fd, char *to, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = recv(fd, to + done, len - done, 0);
        REQUIRE(got > 0);
        done += (size_t)got;
    }
}

static void write_whole(int fd, const char *from, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t sent = send(fd, from + done, len - done, MSG_NOSIGNAL);
        REQUIRE(sent > 0);
        done += (size_t)sent;
    }
}

static void answer_bare(void *context)
{
    struct bare *bare = context;
    char *bytes = calloc(1, bare->message);

    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < bare->count; i++) {
        read_whole(bare->fd, bytes, SMALL);
        write_whole(bare->fd, bytes, bare->message);
    }
    free(bytes);
}

static double run_bare(size_t message, size_t count, size_t in_flight)
{
    int fds[2];
    struct pawl__thread thread = { .started = false };
    char request[SMALL] = "small";
    char *answer = malloc(message);

    REQUIRE(answer != NULL);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    struct bare bare = { .fd = fds[1], .message = message, .count = count };
    MUST(pawl__thread_start(&thread, "bare", answer_bare, &bare, err));
    double begin_s = bench_now_s();
    for (size_t i = 0; i < count + in_flight; i++) {
        if (i < count) {
            write_whole(fds[0], request, sizeof(request));
        }
        if (i >= in_flight) {
            read_whole(fds[0], answer, message);
        }
    }
    double took_s = bench_now_s() - begin_s;
    pawl__thread_join(&thread);
    close(fds[0]);
    close(fds[1]);
    free(answer);
    return took_s;
}

int main(void)
{
    struct pawl__h2_options options = PAWL__H2_OPTIONS_INIT;
    struct pawl__h2 *server = NULL;
    struct pawl__h2_client *client = NULL;
    double small_s[ROUNDS];
    double small_bare_s[ROUNDS];
    double large_s[ROUNDS];
    double large_bare_s[ROUNDS];

    options.methods = methods;
    options.method_count = COUNT_OF(methods);
    options.threads = 1;
    MUST(pawl__h2_start(&options, &server, err));
    const struct pawl__h2_client_options to = { .address = pawl__h2_listens_on(server) };
    MUST(pawl__h2_client_open(&to, &client, err));
    for (size_t i = 0; i < ROUNDS; i++) {
        small_s[i] = run_calls(client, "/bench.Echo/Small", CALLS, IN_FLIGHT);
        small_bare_s[i] = run_bare(SMALL, CALLS, IN_FLIGHT);
        large_s[i] = run_calls(client, "/bench.Echo/Large", LARGE_CALLS, 2);
        large_bare_s[i] = run_bare(LARGE, LARGE_CALLS, 1);
    }
    bench_report("h2/unary calls of 100 bytes, 64 on their way",
                 "calls/s",
                 CALLS / bench_median(small_s, ROUNDS),
                 "round trips over a bare socket",
                 CALLS / bench_median(small_bare_s, ROUNDS),
                 0);
    bench_report("h2/answers of 4 MiB",
                 "MiB/s",
                 4.0 * LARGE_CALLS / bench_median(large_s, ROUNDS),
                 "bytes over a bare socket",
                 4.0 * LARGE_CALLS / bench_median(large_bare_s, ROUNDS),
                 0);
    pawl__h2_client_close(client);
    MUST(pawl__h2_stop(server, INT64_MAX, err));
    return 0;
}
