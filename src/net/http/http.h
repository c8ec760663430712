/* An HTTP/1.1 server: routes in, answers out, limits on everything. libmicrohttpd does the protocol.
 *
 * A handler runs on one of a few threads, each of which has many connections. It answers at once; or
 * it keeps the request, and whoever it gave it to resumes it later from any thread, so that what many
 * connections wait for is done together; or its route says that it `blocks`, and it runs on a thread
 * that does nothing else.
 *
 * Errors are application/problem+json, see net/http/problem.h. */
#ifndef PAWL_NET_HTTP_HTTP_H
#define PAWL_NET_HTTP_HTTP_H

#include <pawl/pawl.h>

#include "base/log/metrics.h"
#include "net/http/problem.h"

struct pawl__http;
struct pawl__http_request;

/* Of the libmicrohttpd that is loaded: "0.9.75". */
const char *pawl__http_library_version(void);

typedef void pawl__http_handler(struct pawl__http_request *request, void *context);

enum pawl__http_method {
    PAWL__HTTP_GET,
    PAWL__HTTP_POST,
    PAWL__HTTP_PUT,
    PAWL__HTTP_PATCH,
    PAWL__HTTP_DELETE
};

struct pawl__http_route {
    enum pawl__http_method method;
    const char *pattern; /* "/v1/apps/{app}" */
    pawl__http_handler *handle;
    const char *const *parameters; /* of the query, NULL after the last; NULL: none */
    bool takes_json;               /* a body of application/json; without it any body is refused */
    bool blocks;                   /* on a thread of its own; must answer */
    bool isolated;                 /* on threads that other routes do not use: what it waits for
                                    * may hang, and is nothing that they need */
    bool takes_key;                /* with an Idempotency-Key it may be sent again */
    const char *no_key;            /* why one is refused here; NULL: it is not */
    unsigned scope;                /* what options.authorize is told */
    void *context;                 /* of its handler; NULL: that of the options */
};

struct pawl__http_options {
    const char *listen;                    /* "127.0.0.1:8470", "[::1]:0"; port 0 is a free one */
    const char *socket_path;               /* instead: a socket in the file system. NULL: none */
    const struct pawl__http_route *routes; /* these and what they point to outlive the server */
    size_t route_count;
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs. NULL: the real one */
    void *context;             /* of authorize, and of handlers whose route has none */
    struct pawl__metrics *metrics; /* NULL: none. Outlives the server */
    /* Whether the request may do what a route of this scope does; if not, it has answered it. Runs before
     * the body arrives, on a thread that serves other connections as well. NULL: everybody may. */
    bool (*authorize)(struct pawl__http_request *request, unsigned scope, void *context);
    const char *tls_certificate; /* PEM, with the chain. NULL: plain HTTP */
    const char *tls_key;         /* PEM */
    bool trusted;        /* only this user's programs can connect: failures are told whole */
    bool loopback_hosts; /* the Host header must be localhost, 127.0.0.1 or [::1] */
    size_t body_bytes_max;
    size_t bodies_bytes_max; /* of all requests together */
    size_t header_bytes_max; /* request line and headers */
    uint32_t connections_max;
    uint32_t streams_max;      /* answers that are streams (net/http/stream.h), at a time */
    uint32_t idle_ms_max;      /* without a byte, between requests or within one */
    uint32_t read_ms_max;      /* for a whole request to arrive */
    uint32_t answer_ms_max;    /* for the answer to be there, and then to be read */
    uint32_t threads;          /* at least 2 */
    uint32_t workers;          /* for routes that block */
    uint32_t workers_isolated; /* for those of them that are isolated; 0: the same */
};

#define PAWL__HTTP_OPTIONS_INIT                                                                    \
    {                                                                                              \
        .listen = "127.0.0.1:0", .body_bytes_max = (size_t)8 << 20,                                \
        .bodies_bytes_max = (size_t)256 << 20, .header_bytes_max = 32768, .connections_max = 1024, \
        .streams_max = 512, .idle_ms_max = 60000, .read_ms_max = 30000, .answer_ms_max = 60000,    \
        .threads = 2, .workers = 2,                                                                \
    }

/* An address as people write it: a numeric IPv4 or IPv6 address in brackets, or localhost, and a port.
 * INVALID says what is allowed. */
struct pawl__http_address {
    bool ipv6;
    bool loopback;
    uint16_t port;
    uint8_t bytes[16];
};
PAWL_MUST_USE pawl_status pawl__http_address_parse(const char *text,
                                                   struct pawl__http_address *ret_address,
                                                   pawl_error *reterr);

/* BUSY: the address is in use, and the message names it. */
PAWL_MUST_USE pawl_status pawl__http_start(const struct pawl__http_options *options,
                                           struct pawl__http **ret_http,
                                           pawl_error *reterr);

/* "127.0.0.1:8470", with the port that it got. Lives as long as the server. */
const char *pawl__http_listens_on(const struct pawl__http *http);

/* Takes no more connections, waits for the requests that have begun, at the longest until the monotonic
 * deadline, answers those that are kept longer with 503, and ends all connections. What was kept may
 * still be resumed afterwards, for nothing, also when the server is gone. PAWL_OK: it is freed.
 * TIMEOUT: a handler of a route that blocks does not come back; the server stays, and with it whatever
 * that handler uses, and this may be called again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__http_stop(struct pawl__http *http,
                                          int64_t deadline_ns,
                                          pawl_error *reterr);

/* --- what was asked; views live as long as the request --- */

pawl_view pawl__http_part(const struct pawl__http_request *request, const char *name);
/* NULL: the query has no such parameter. */
const pawl_view *pawl__http_query(const struct pawl__http_request *request, const char *name);
pawl_view pawl__http_body(const struct pawl__http_request *request);
/* Frees the body, which nobody needs any more: others may then send theirs. In the thread that has the
 * request: a handler's, or that of a job, also after it was kept. */
void pawl__http_drop_body(struct pawl__http_request *request);
/* Whether options.trusted is set where it came in. */
bool pawl__http_is_trusted(const struct pawl__http_request *request);
/* NULL: there is none. Only while the handler has not kept the request. */
const char *pawl__http_header(const struct pawl__http_request *request, const char *name);

/* What a handler keeps with the request: freed with it, also when it was kept. Once. */
void pawl__http_attach(struct pawl__http_request *request,
                       void *attached,
                       void (*release)(void *attached));

/* --- answering: once, from the thread that has the request --- */

/* A header of the answer, before it is given. `name` is static. */
enum { HTTP_HEADERS_MAX = 4, HTTP_HEADER_SIZE = 128 };
void pawl__http_set_header(struct pawl__http_request *request, const char *name, const char *value);

/* `body` is malloc'ed and the request's from here on; NULL with len 0 is none. `type` is static. */
void pawl__http_answer(
    struct pawl__http_request *request, unsigned code, const char *type, char *body, size_t len);

/* The same for JSON that ends in a NUL: it goes out as a line. */
void pawl__http_answer_json(struct pawl__http_request *request,
                            unsigned code,
                            char *json,
                            size_t len);

/* The content of the buffer, which is emptied. When it is broken: 503 without memory, 500 over its
 * ceiling. */
void pawl__http_answer_buf(struct pawl__http_request *request,
                           unsigned code,
                           const char *type,
                           struct pawl__buf *body);
void pawl__http_fail(struct pawl__http_request *request, const pawl_error *error);
void pawl__http_refuse(struct pawl__http_request *request,
                       const struct pawl__http_problem *problem,
                       const char *detail);

#define HTTP_JSON "application/json"
#define HTTP_TEXT "text/plain; version=0.0.4; charset=utf-8"

/* --- answering later --- */

/* In a handler: the request continues when it is resumed, which happens exactly once. After answer_ms_max it
 * is answered 504, and the late answer is dropped. False: too many requests are kept; this one is answered 503,
 * so that health checks still find a connection. */
PAWL_MUST_USE bool pawl__http_keep(struct pawl__http_request *request);

/* With a request that is kept: `job` runs on a thread of those that may block, exactly once, and resumes
 * it or leaves that to somebody. False: too many wait for one, and nothing happens. */
PAWL_MUST_USE bool pawl__http_hand_over(struct pawl__http_request *request,
                                        pawl__http_handler *job,
                                        void *context);

/* Nobody waits for an answer any more: what was not begun need not be. */
bool pawl__http_is_gone(struct pawl__http_request *request);

/* The same, or the client has closed its side of the connection. Only of a request that is kept and not
 * resumed yet. */
bool pawl__http_has_left(struct pawl__http_request *request);

/* With a request that is kept: calls leaving(context) within about two seconds of the client closing its side, and
 * every two seconds after that, until the request is resumed or `leaving` is set to NULL. With a lock of the server held: it must not call the
 * server, nor wait. */
void pawl__http_watch_leaving(struct pawl__http_request *request,
                              void (*leaving)(void *context),
                              void *context);

/* From any thread. `finish` runs on a thread of the server's and must answer; it runs exactly once,
 * also when the connection is gone and the answer goes nowhere: then here. */
void pawl__http_resume(struct pawl__http_request *request,
                       pawl__http_handler *finish,
                       void *context);

#endif
