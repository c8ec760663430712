#include "lib/http_client.h"

#include "lib/check.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ThreadSanitizer makes an answer of 32 MiB last for half a minute on a busy machine. */
#ifdef __SANITIZE_THREAD__
enum { PATIENCE_MS = 120000, HEAD_MAX = 1 << 16 };
#else
enum { PATIENCE_MS = 30000, HEAD_MAX = 1 << 16 };
#endif

void (*http_on_answer)(const char *method_and_target, const struct http_reply *reply);

int http_connect(const char *address)
{
    struct sockaddr_in place = { .sin_family = AF_INET };
    const char *port = strrchr(address, ':');
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    assert_true(fd >= 0);
    assert_non_null(port);
    place.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
    char host[INET_ADDRSTRLEN] = "";
    (void)snprintf(host, sizeof(host), "%.*s", (int)(port - address), address);
    assert_int_equal(inet_pton(AF_INET, host, &place.sin_addr), 1);
    assert_int_equal(connect(fd, (struct sockaddr *)&place, sizeof(place)), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

void http_send_bytes(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        struct pollfd waits = { .fd = fd, .events = POLLOUT };

        assert_int_equal(poll(&waits, 1, PATIENCE_MS), 1);
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0) {
            return; /* the answer says why */
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

void http_send(int fd, const char *text)
{
    http_send_bytes(fd, text, strlen(text));
}

/* -1: nothing for too long; 0: the end. */
static ssize_t receive(int fd, char *bytes, size_t len)
{
    struct pollfd waits = { .fd = fd, .events = POLLIN };

    if (poll(&waits, 1, PATIENCE_MS) != 1) {
        fail_msg("no answer for %d s", PATIENCE_MS / 1000);
    }
    ssize_t got = recv(fd, bytes, len, 0);
    return got < 0 ? 0 : got;
}

static bool receive_head(int fd, char *head)
{
    size_t len = 0;

    while (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0) {
        assert_true(len + 1 < HEAD_MAX);
        if (receive(fd, head + len, 1) != 1) {
            return false;
        }
        len++;
    }
    head[len] = '\0';
    return true;
}

struct http_reply http_receive(int fd, bool head)
{
    struct http_reply reply = { .headers = calloc(1, HEAD_MAX), .body = NULL };

    assert_non_null(reply.headers);
    do {
        memset(reply.headers, 0, HEAD_MAX);
        if (!receive_head(fd, reply.headers)) {
            return reply;
        }
        reply.code = (int)strtol(reply.headers + strlen("HTTP/1.1 "), NULL, 10);
    } while (reply.code == 100);
    char *length = http_reply_header(&reply, "Content-Length");
    reply.len = length == NULL ? 0 : strtoul(length, NULL, 10);
    free(length);
    reply.body = calloc(1, reply.len + 1);
    assert_non_null(reply.body);
    for (size_t got = 0; got < reply.len && !head;) {
        ssize_t more = receive(fd, reply.body + got, reply.len - got);
        assert_true(more > 0);
        got += (size_t)more;
    }
    return reply;
}

void http_reply_done(struct http_reply *reply)
{
    free(reply->headers);
    free(reply->body);
    *reply = (struct http_reply){ .code = 0 };
}

char *http_reply_header(const struct http_reply *reply, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = strstr(reply->headers, "\r\n"); line != NULL && line[2] != '\r';
         line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':') {
            const char *value = line + 2 + len + 1 + strspn(line + 2 + len + 1, " ");
            return strndup(value, strcspn(value, "\r"));
        }
    }
    return NULL;
}

void http_ask_on(int fd, const char *method_and_target, const char *headers, const char *body)
{
    char *text = NULL;
    int len = body == NULL ? asprintf(&text,
                                      "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                                      method_and_target,
                                      headers == NULL ? "" : headers)
                           : asprintf(&text,
                                      "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                                      "application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
                                      method_and_target,
                                      strlen(body),
                                      headers == NULL ? "" : headers,
                                      body);

    assert_true(len > 0);
    http_send_bytes(fd, text, (size_t)len);
    free(text);
}

struct http_reply http_ask(const char *address,
                           const char *method_and_target,
                           const char *headers,
                           const char *body)
{
    int fd = http_connect(address);

    http_ask_on(fd, method_and_target, headers, body);
    struct http_reply reply = http_receive(fd, strncmp(method_and_target, "HEAD ", 5) == 0);
    close(fd);
    if (http_on_answer != NULL && reply.body != NULL) {
        http_on_answer(method_and_target, &reply);
    }
    return reply;
}

bool http_is_closed(int fd, int timeout_ms)
{
    struct pollfd waits = { .fd = fd, .events = POLLIN };
    char byte = '\0';

    return poll(&waits, 1, timeout_ms) == 1 && recv(fd, &byte, 1, MSG_PEEK) <= 0;
}

bool http_is_silent(int fd, int timeout_ms)
{
    struct pollfd waits = { .fd = fd, .events = POLLIN };

    return poll(&waits, 1, timeout_ms) == 0;
}
