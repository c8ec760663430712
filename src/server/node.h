/* The node: a table of parts (part.h), each with its routes, behind HTTP.
 *
 * Applications are opened in the background after the node listens, or when they are created through it. An
 * open one stays open until the node ends, or for as long as somebody holds it. One that cannot be opened
 * stops none of the others.
 *
 * Threads: any, but for open and close. */
#ifndef PAWL_SERVER_NODE_H
#define PAWL_SERVER_NODE_H

#include <pawl/app.h>
#include <pawl/delivery.h>
#include <pawl/work.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/log/metrics.h"
#include "net/http/http.h"

enum { NODE_APPS_MAX = 1000, NODE_PARTITIONS_MAX = 256 /* when nothing else is said */ };

struct pawl__serve_part;

struct pawl__serve_options {
    const struct pawl__serve_part *const *parts; /* NULL after the last; NULL: pawl__serve_parts */
    const char *location; /* of applications: a directory, which is made, or postgres://... */
    pawl_app_options app;
    const char *work; /* where the work store is, or would be once somebody submits; NULL: none */
    pawl_work_options work_options;
    uint32_t work_sweep_ms; /* how often its leases that ran out are taken back; 0: not at all */
    const char *delivery; /* the data directory of its pipelines, once there are any; NULL: none */
    pawl_delivery_options delivery_options;
    pawl_delivery *delivery_handle; /* of a process that has it open already; then NULL above */
    /* Declares pipelines of the configuration, each time it is opened; NULL: there are none. */
    pawl_status (*delivery_configure)(void *context, pawl_delivery *delivery, pawl_error *reterr);
    void *delivery_context;
    const char *tokens;  /* the file of its tokens, once there are any; NULL: it has none */
    bool unsafe_plain;   /* other machines may send tokens without TLS */
    const char *socket;  /* where this user's programs reach it without a token; NULL: nowhere */
    const char *jobs;    /* the file of its jobs; NULL: in memory */
    const char *apps_id; /* of `location`, the same in every process; NULL: nobody asks */
    struct pawl__http_options
        http; /* listen (NULL: only on the socket), limits and TLS; the rest is the node's */
    uint32_t stop_ms_max;    /* for requests that have begun, when it is closed */
    uint32_t partitions_max; /* of all applications together: each has threads and a cache */
    uint32_t
        open_ms; /* so long does pawl__serve_node_open wait for applications, while it listens */
};

/* Whether a node may listen there: INVALID when it is no address; or one that other machines reach, and it has
 * no token, or would be sent them in the clear. */
struct pawl__serve_reach {
    bool has_tokens;
    bool has_tls;
    bool unsafe_plain;
};
PAWL_MUST_USE pawl_status pawl__serve_check_address(const char *listen,
                                                    const struct pawl__serve_reach *reach,
                                                    pawl_error *reterr);

struct pawl__serve_node;

/* Listens, and opens the applications, each of which has been tried once when this returns, or open_ms have
 * passed. BUSY: another process has the location, or the address is in use. INVALID: the address is none, or
 * not of this machine alone. UNAVAILABLE: the database cannot be asked which applications it has. */
PAWL_MUST_USE pawl_status pawl__serve_node_open(const struct pawl__serve_options *options,
                                                struct pawl__serve_node **ret_node,
                                                pawl_error *reterr);

/* Adds the description of the API of `pawl serve`: OpenAPI 3.1, as /v1/openapi.json. NOMEM. */
PAWL_MUST_USE pawl_status pawl__serve_openapi(struct pawl__buf *buf, pawl_error *reterr);

/* For a process that has a directory of pipelines open: answers other programs of this user on a socket. Only
 * delivery_handle, delivery_options, socket, http and the times count. */
PAWL_MUST_USE pawl_status pawl__serve_delivery_alone(const struct pawl__serve_options *options,
                                                     struct pawl__serve_node **ret_node,
                                                     pawl_error *reterr);

const char *pawl__serve_listens_on(const struct pawl__serve_node *node);
size_t pawl__serve_app_count(struct pawl__serve_node *node); /* those too that are not open */

/* Answers what has begun, then closes the applications, in bounded time. TIMEOUT: something does not come
 * back, and the log names it; it is still there, so end the process. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_node_close(struct pawl__serve_node *node, pawl_error *reterr);

#endif
