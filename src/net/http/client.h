/* An HTTP/1.1 client: one connection, one request at a time, a deadline on everything.
 *
 * Statuses of opening and asking:
 *   NOT_FOUND    nobody listens there: there is no socket, or one that a killed process left
 *   DENIED       the socket belongs to another user
 *   UNAVAILABLE  it cannot be reached, or the connection ended before an answer
 *   TIMEOUT      it takes connections and does not answer, as a stopped process does
 *   INVALID      it answers something else than HTTP
 *
 * Threads: a client belongs to one thread at a time. */
#ifndef PAWL_NET_HTTP_CLIENT_H
#define PAWL_NET_HTTP_CLIENT_H

#include "base/os/clock.h"
#include "net/http/reply.h"

struct pawl__http_client;

/* Connects to a socket in the file system, whose process must be of this user or root; or to "127.0.0.1:8470". */
PAWL_MUST_USE pawl_status pawl__http_client_open_unix(const char *path,
                                                      struct pawl__clock *clock,
                                                      int64_t deadline_ns,
                                                      struct pawl__http_client **ret_client,
                                                      pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__http_client_open(const char *address,
                                                 struct pawl__clock *clock,
                                                 int64_t deadline_ns,
                                                 struct pawl__http_client **ret_client,
                                                 pawl_error *reterr);
void pawl__http_client_close(struct pawl__http_client *client); /* NULL is fine */
DEFINE_AUTO(struct pawl__http_client *, pawl__http_client_close)

struct pawl__http_ask {
    const char *method;
    const char *target;      /* percent-encoded */
    const char *headers;     /* more of them, "Name: value\r\n" each; NULL: none */
    pawl_view body;          /* JSON; no data: none */
    int64_t deadline_ns;     /* for all of the answer */
    uint64_t body_bytes_max; /* of the answer */
    pawl__http_body_sink *sink;
    void *context; /* of the sink */
};

/* Asks, and reads the answer, whatever its code. A connection that has ended since the last answer is made
 * again. After a failure the next request makes a new one. *ret_reply holds no memory. */
PAWL_MUST_USE pawl_status pawl__http_client_ask(struct pawl__http_client *client,
                                                const struct pawl__http_ask *ask,
                                                struct pawl__http_reply *ret_reply,
                                                pawl_error *reterr);

#endif
