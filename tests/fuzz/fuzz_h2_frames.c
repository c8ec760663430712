/* Any bytes after the preface of HTTP/2, to a real server on loopback: no crash, the connection ends, and the memory that
 * it had comes back. */
#include "fuzz/fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/h2/h2.h"

enum { BASE_BYTES = 1 << 20 };

static void echo(struct pawl__h2_call *call, void *context)
{
    struct pawl__buf answer = BUF_INIT(1 << 20);

    (void)context;
    pawl__buf_add(&answer, pawl__h2_request(call));
    pawl__h2_reply(call, &answer);
    pawl__buf_done(&answer);
}

static void begin(struct pawl__h2_call *call, void *context)
{
    (void)call;
    (void)context;
}

static void echo_message(struct pawl__h2_call *call, pawl_view message, void *context)
{
    (void)context;
    CHECK(pawl__h2_send(call, message, NULL) != PAWL_INVALID);
}

static void end(struct pawl__h2_call *call, void *context)
{
    (void)context;
    pawl__h2_end(call);
}

static struct pawl__h2 *server_of(void)
{
    static const struct pawl__h2_method methods[] = {
        { .path = "/a.B/U", .handle = echo },
        { .path = "/a.B/S",
          .kind = PAWL__H2_BIDI,
          .handle = begin,
          .message = echo_message,
          .ended = end,
          .gone = end },
    };
    static struct pawl__h2 *server;

    if (server == NULL) {
        struct pawl__h2_options options = PAWL__H2_OPTIONS_INIT;
        options.methods = methods;
        options.method_count = COUNT_OF(methods);
        options.threads = 1;
        options.reflection = true;
        options.limits.memory_bytes_max = 32 << 20;
        CHECK(pawl__h2_start(&options, &server, NULL) == PAWL_OK);
    }
    return server;
}

static int dial(struct pawl__h2 *server)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const char *colon = strrchr(pawl__h2_listens_on(server), ':');
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    struct pawl__h2 *server = server_of();
    struct pawl__h2_counts counts;
    char bytes[4096];

    int fd = dial(server);
    ssize_t sent = send(fd, preface, sizeof(preface) - 1, MSG_NOSIGNAL);
    for (size_t at = 0; sent > 0 && at < size; at += (size_t)sent) {
        sent = send(fd, &data[at], size - at, MSG_NOSIGNAL);
    }
    CHECK(shutdown(fd, SHUT_WR) == 0 || sent < 0);
    ssize_t got = 1;
    while (got > 0) {
        got = recv(fd, bytes, sizeof(bytes), 0);
    }
    close(fd);
    do { /* it is counted out after the socket was closed */
        pawl__h2_counts(server, &counts);
    } while (counts.connections_open > 0);
    CHECK(counts.memory_bytes < BASE_BYTES);
    return 0;
}
