/* What the files of the HTTP server share. */
#ifndef PAWL_NET_HTTP_INTERNAL_H
#define PAWL_NET_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/core/buf.h"
#include "base/os/clock.h"
#include "base/thread/queue.h"
#include "base/thread/thread.h"
#include "net/http/http.h"
#include "net/http/route.h"

enum {
    HTTP_ADDRESS_SIZE = 64,
    HTTP_WORKERS_MAX = 16,
    HTTP_METHOD_SIZE = 16,
    HTTP_GRACE_MS = 250 /* for the last answers to leave */
};

/* --- connections and how long they may take (watch.c) --- */

struct http_conn {
    struct http_conn *next;
    struct http_conn *before;
    int fd;
    int64_t
        deadline_ns; /* a request must have arrived, or an answer been read; INT64_MAX: neither */
    struct pawl__http_request *request; /* whose first line was read; NULL: none */
    pthread_t thread;                   /* of MHD, that reads it */
};

struct http_watch {
    struct pawl__lock lock; /* covers everything below; no function of MHD is called with it held */
    struct pawl__cond changed;
    struct http_conn *conns;
    size_t requests; /* that have arrived and not ended */
    bool stop;
    int64_t sleeps_until_ns;
    struct pawl__clock *clock;
    int64_t idle_ns;
    int64_t read_ns;
    int64_t answer_ns;
    /* Looks at what else may be late, with no lock held; when to do it again. */
    int64_t (*also)(void *context, int64_t now_ns);
    void *context;
    struct pawl__thread thread;
};

PAWL_MUST_USE pawl_status pawl__http_watch_start(struct http_watch *watch,
                                                 const struct pawl__http_options *options,
                                                 pawl_error *reterr);
void pawl__http_watch_stop(struct http_watch *watch); /* ends the thread; connections may stay */
void pawl__http_watch_done(struct http_watch *watch); /* when there are none */

struct http_conn *pawl__http_conn_open(struct http_watch *watch, int fd); /* NULL without memory */
void pawl__http_conn_close(struct http_watch *watch, struct http_conn *conn);
/* A request begins; all of it is here, which `ends` is told; its answer goes out; it ends. */
void pawl__http_conn_begins(struct http_watch *watch,
                            struct http_conn *conn,
                            struct pawl__http_request *request);
void pawl__http_conn_has_it(struct http_watch *watch, struct http_conn *conn);
void pawl__http_conn_answers(struct http_watch *watch, struct http_conn *conn);
/* Its answer is a stream that has nothing to send at present. */
void pawl__http_conn_waits(struct http_watch *watch, struct http_conn *conn);
void pawl__http_conn_ends(struct http_watch *watch, struct http_conn *conn, bool had_it);
/* Looks at everything again by this monotonic time. */
void pawl__http_watch_by(struct http_watch *watch, int64_t at_ns);
/* False at the monotonic deadline. */
bool pawl__http_watch_wait(struct http_watch *watch, int64_t deadline_ns);

/* --- what MHD refuses by itself (refused.c) --- */

/* MHD's log. It says so there when it answers a request itself. */
__attribute__((format(printf, 2, 0))) void pawl__http_on_message(void *context,
                                                                 const char *format,
                                                                 va_list arguments);

/* Answers past MHD and ends the connection, of a request that no handler has seen. */
void pawl__http_refuse_raw(struct pawl__http_request *request,
                           const struct pawl__http_problem *problem,
                           const char *detail);

/* --- metrics (metrics.c) --- */

struct http_metrics;

PAWL_MUST_USE pawl_status pawl__http_metrics_new(struct pawl__metrics *registry,
                                                 const struct pawl__http_routes *routes,
                                                 struct http_metrics **ret_metrics,
                                                 pawl_error *reterr);
void pawl__http_metrics_free(struct http_metrics *metrics);
/* `route` is routes->count for a request that fits none. NULL metrics count nothing. */
void pawl__http_metrics_count(
    struct http_metrics *metrics, size_t route, const char *method, unsigned code, double seconds);

/* --- the server (http.c) --- */

/* Threads of one kind of routes that block, and what waits for them (workers.c). */
enum { HTTP_LANE_MAIN, HTTP_LANE_ISOLATED, HTTP_LANES };
struct http_lane {
    struct pawl__queue *jobs; /* NULL: there is no such lane */
    struct pawl__thread workers[HTTP_WORKERS_MAX];
};

struct pawl__http {
    struct pawl__lock lock; /* covers kept and stopping, and of each request what says so */
    bool watch_ready;
    bool stopping;                           /* answers end their connections */
    bool forced;                             /* nothing is kept any more */
    struct pawl__http_request *kept;         /* suspended */
    size_t kept_count;                       /* those too whose handler is not back yet */
    int64_t looks_ns;                        /* when clients are looked for that have left */
    struct pawl__http_stream *quiet_streams; /* suspended until they are woken */
    size_t stream_count;
    atomic_uint refs;         /* the owner and every request: the last one frees it */
    atomic_size_t body_bytes; /* of all requests */

    struct http_watch watch;
    struct pawl__http_options options;
    struct pawl__http_routes routes;
    struct http_metrics *metrics;
    struct MHD_Daemon *daemon;
    char address[HTTP_ADDRESS_SIZE];
    char *socket_path;  /* a copy of options.socket_path */
    ino_t socket_inode; /* of its file; 0: none */
    struct http_lane lanes[HTTP_LANES];
};

void pawl__http_unref(struct pawl__http *http);

/* --- what may block (workers.c) --- */

PAWL_MUST_USE pawl_status pawl__http_work_start(struct pawl__http *http, pawl_error *reterr);
/* TIMEOUT: one of them does not come back. */
PAWL_MUST_USE pawl_status pawl__http_work_stop(struct pawl__http *http,
                                               int64_t deadline_ns,
                                               pawl_error *reterr);
/* The request is a worker's, unless it is answered. */
void pawl__http_to_worker(struct pawl__http_request *request);

/* --- requests (request.c) --- */

enum http_phase {
    HTTP_BEGUN,   /* the address is known, headers are not */
    HTTP_READING, /* the body arrives */
    HTTP_HANDED,  /* a handler had it */
    HTTP_QUEUED   /* the answer is on its way */
};

struct http_answer {
    unsigned code; /* 0: there is none yet */
    const char *type;
    char *body;
    size_t len;
    struct pawl__http_stream *stream; /* in place of the body; NULL: none */
    struct {
        const char *name;
        char value[HTTP_HEADER_SIZE];
    } headers[HTTP_HEADERS_MAX];
    size_t header_count;
};

struct pawl__http_request {
    struct pawl__http *http;
    atomic_uint refs; /* the connection's, and that of whoever keeps it */
    struct MHD_Connection *connection;
    struct http_conn *conn;
    int64_t began_ns;
    char *target; /* as it was sent */
    char method[HTTP_METHOD_SIZE];
    struct pawl__http_url url;
    size_t route;          /* routes.count: none */
    enum http_phase phase; /* the connection's thread alone */
    struct pawl__buf body;
    size_t body_bytes; /* of http->body_bytes that are this one's */
    size_t dropped;    /* bytes of a body that is refused */
    bool arrived;      /* all of it */
    bool refused;      /* past MHD, see refused.c: what MHD still says of it is not listened to */
    bool ends; /* the connection, with the answer: where the next request begins is not sure */
    pawl__http_handler *job;
    void *job_context;
    void *attached;
    void (*release)(void *attached); /* NULL: nothing is attached */

    /* covered by http->lock */
    struct http_answer answer;
    bool kept;
    bool suspended; /* and in http->kept */
    bool was_suspended;
    bool resumed;
    bool gone;                      /* nobody waits for an answer any more */
    int64_t answer_by_ns;           /* of one that is kept */
    void (*leaving)(void *context); /* of one that is kept; NULL: nobody wants to know */
    void *leaving_context;
    pawl__http_handler *finish;
    void *finish_context;
    struct pawl__http_request *next_kept;
    struct pawl__http_request *before_kept;
};

struct pawl__http_request *pawl__http_request_new(struct pawl__http *http,
                                                  struct MHD_Connection *connection,
                                                  const char *target);
void pawl__http_request_unref(struct pawl__http_request *request);

/* Decides what the headers allow to decide: host, route, query, length and type of the body. An answer
 * is set when it is refused. (admit.c) */
void pawl__http_admit(struct pawl__http_request *request);
void pawl__http_refuse_size(struct pawl__http_request *request);

bool pawl__http_is_answered(struct pawl__http_request *request);
const struct pawl__http_route *pawl__http_route_of(const struct pawl__http_request *request);
void *pawl__http_context_of(const struct pawl__http_request *request); /* of its handler */

/* Behind a handler: true when there is an answer to be queued. False: it comes later. MHD then calls
 * again, at once, and in that call, which is not `first`, the connection is suspended.
 *
 * Not before: MHD resumes a connection in the state it had when it was suspended. One that is suspended
 * in its first call waits to be read, so that MHD, when it is resumed, reads first, finds that the client
 * has closed its side, and closes instead of answering (0.9.75 and 1.0.1). */
bool pawl__http_settle(struct pawl__http_request *request, bool first);

/* Whether the client has closed its side, or all. */
bool pawl__http_conn_is_closed(const struct http_conn *conn);

/* The connection ends: whoever keeps the request is told so. */
void pawl__http_leave(struct pawl__http_request *request);

/* Runs what pawl__http_resume left to do, unless that is done. */
void pawl__http_finish(struct pawl__http_request *request);

/* Answers what is kept with 503 and resumes it; from here on nothing is kept. */
void pawl__http_give_up(struct pawl__http *http);

/* Tells those who watch for it which clients have left; when to look again. */
int64_t pawl__http_notice_leaving(struct pawl__http *http, int64_t now_ns);

/* Answers what is kept for too long with 504; when the next one is late. */
int64_t pawl__http_give_up_late(struct pawl__http *http, int64_t now_ns);

/* --- streams (stream.c) --- */

/* False: nobody waits for an answer any more. */
PAWL_MUST_USE bool pawl__http_answer_stream_locked(struct pawl__http *http,
                                                   struct pawl__http_request *request,
                                                   const char *type,
                                                   struct pawl__http_stream *stream)
    REQUIRES_LOCK(http->lock);
struct MHD_Response *pawl__http_stream_response(struct pawl__http_stream *stream);
/* One whose answer was never sent. NULL is fine. */
void pawl__http_stream_drop(struct pawl__http_stream *stream);
/* Resumes those whose source is to be asked again; when the next one is due. */
int64_t pawl__http_streams_ask_again(struct pawl__http *http, int64_t now_ns);
/* Ends all of them, while the server stops. */
void pawl__http_streams_end(struct pawl__http *http);

#endif
