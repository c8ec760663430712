/* A small HTTP client over a socket on loopback, for tests that care what exactly is sent. Everything
 * waits 30 s at the longest; what does not work fails the test. */
#ifndef TESTS_HTTP_CLIENT_H
#define TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_ANSWER_MAX = 1 << 20 };

struct http_reply {
    int code; /* 0: the connection ended before an answer */
    char *headers;
    char *body;
    size_t len;
};

/* Told of every answer of http_ask; NULL: nobody is. */
extern void (*http_on_answer)(const char *method_and_target, const struct http_reply *reply);

int http_connect(const char *address); /* "127.0.0.1:8470" */
void http_send(int fd, const char *text);
void http_send_bytes(int fd, const char *bytes, size_t len);

/* The next answer of the connection. Free it with http_reply_done. */
struct http_reply http_receive(int fd, bool head);
void http_reply_done(struct http_reply *reply);

/* The value of a header, malloc'ed; NULL without one. */
char *http_reply_header(const struct http_reply *reply, const char *name);

/* One request on a connection of its own: "GET /x". `headers` may be NULL, "Host" is sent anyway;
 * `body` may be NULL, else it is sent with its length as JSON. */
struct http_reply http_ask(const char *address,
                           const char *method_and_target,
                           const char *headers,
                           const char *body);

/* The same on a connection that is open; the answer is to be received. */
void http_ask_on(int fd, const char *method_and_target, const char *headers, const char *body);

/* Whether the other side has closed the connection, when it does so within the time. */
bool http_is_closed(int fd, int timeout_ms);

/* Whether nothing comes and nothing ends for so long. */
bool http_is_silent(int fd, int timeout_ms);

#endif
