/* The node: every application of a place, open in this process, behind HTTP.
 *
 * An application is opened when the node starts or when it is created through it, and stays open until
 * the node ends: a pointer to one is good for as long.
 *
 * Threads: any, but for open and close. */
#ifndef PAWL_SERVER_NODE_H
#define PAWL_SERVER_NODE_H

#include <pawl/app.h>
#include <pawl/work.h>

#include "base/macros.h"
#include "base/metrics.h"
#include "net/http.h"

enum { NODE_APPS_MAX = 1000, NODE_PARTITIONS_MAX = 256 /* when nothing else is said */ };

struct pawl__node_options {
    const char *place; /* of applications: a directory, which is made, or postgres://... */
    pawl_app_options app;
    const char *work; /* where the work store is, or would be once somebody submits; NULL: none */
    pawl_work_options work_options;
    uint32_t work_sweep_ms; /* how often its leases that ran out are taken back; 0: not at all */
    struct pawl__http_options http; /* listen and limits; the rest is the node's */
    uint32_t stop_ms_max;           /* for requests that have begun, when it is closed */
    uint32_t partitions_max;        /* of all applications together: each has threads and a cache */
};

/* Whether a node may listen there: INVALID when it is no address, or not of this machine alone. */
PAWL_MUST_USE pawl_status pawl__node_check_address(const char *listen, pawl_error *reterr);

struct pawl__node;

/* Opens all of them and listens. INVALID: there are more partitions than partitions_max. BUSY: another process has the place or an application of it, or the
 * address is in use. INVALID: the address is none, or not of this machine alone. The error of an
 * application that cannot be opened, with its name. */
PAWL_MUST_USE pawl_status pawl__node_open(const struct pawl__node_options *options,
                                          struct pawl__node **ret_node,
                                          pawl_error *reterr);

const char *pawl__node_listens_on(const struct pawl__node *node);
size_t pawl__node_app_count(struct pawl__node *node);

/* Answers what has begun, then closes the applications. TIMEOUT: something does not come back; it is
 * still there, so end the process. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__node_close(struct pawl__node *node, pawl_error *reterr);

#endif
