/* What the node consists of. */
#ifndef PAWL_SERVER_NODE_INTERNAL_H
#define PAWL_SERVER_NODE_INTERNAL_H

#include "server/dispatch.h"
#include "server/node.h"
#include "server/part.h"

struct pawl__tokens; /* server/tokens/store.h */

enum { NODE_PARTS_MAX = 16 };

struct pawl__serve_node {
    struct pawl__serve_options options;
    const struct pawl__serve_part *parts[NODE_PARTS_MAX];
    void *states[NODE_PARTS_MAX]; /* NULL: it is not open */
    size_t part_count;
    struct pawl__serve_table table;
    struct pawl__metrics *metrics;
    struct pawl__tokens *tokens; /* NULL: it knows none */
    struct pawl__http *http;
    struct pawl__http *local;  /* on the socket; NULL: there is none */
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs */
    int64_t started_ns;
};

/* These, or those of `pawl serve` when it is NULL, and the node's own; how many. (node.c) */
size_t pawl__serve_list_parts(const struct pawl__serve_part *const *parts,
                              const struct pawl__serve_part *ret_parts[NODE_PARTS_MAX]);

/* Asks a request for a token of that enum pawl__scope; false: it was refused. (tokens/authorize.c) */
bool pawl__serve_authorize(struct pawl__http_request *request, unsigned scope, void *context);

#endif
