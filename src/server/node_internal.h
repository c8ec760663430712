/* What the routes know of the node. */
#ifndef PAWL_SERVER_NODE_INTERNAL_H
#define PAWL_SERVER_NODE_INTERNAL_H

#include "base/thread.h"
#include "server/node.h"
#include "store/lock.h"

struct node_gauges; /* metrics of the applications: server/gauges.c */
struct node_work;   /* the work store: server/work.h */

struct pawl__node {
    struct pawl__lock lock;        /* covers apps and app_count */
    struct pawl__lock create_lock; /* one application is created at a time; taken first */
    bool locks_ready;
    pawl_app **apps; /* in the order in which they were opened */
    size_t app_count;

    struct pawl__node_options options;
    char *place;
    bool is_database;
    struct pawl__store_lock *owner; /* of a place that is a directory */
    struct pawl__metrics *metrics;
    struct node_gauges *gauges;
    struct node_work *work;
    struct pawl__http *http;
    int64_t started_ns;
};

/* NULL: there is none of that name. */
pawl_app *pawl__node_find(struct pawl__node *node, pawl_view name);

/* Those that there are now: at most `max` into `ret_apps`, and how many. */
size_t pawl__node_apps(struct pawl__node *node, pawl_app **ret_apps, size_t max);

/* Creates an application, or finds the one of that name. CONFLICT: it has another descriptor, or
 * there is no room for it. INVALID:
 * the descriptor is none, or of another name. May take as long as the store does. */
PAWL_MUST_USE pawl_status pawl__node_create(struct pawl__node *node,
                                            pawl_view name,
                                            pawl_view descriptor,
                                            pawl_app **ret_app,
                                            bool *ret_created,
                                            pawl_error *reterr);

/* Closes all applications together, in app.close_ms_max. TIMEOUT: a store does not come back. (node_end.c) */
PAWL_MUST_USE pawl_status pawl__node_close_apps(struct pawl__node *node, pawl_error *reterr);

/* --- metrics of the applications (gauges.c) --- */

PAWL_MUST_USE pawl_status pawl__node_gauges_new(struct pawl__metrics *metrics,
                                                struct node_gauges **ret_gauges,
                                                pawl_error *reterr);
void pawl__node_gauges_free(struct node_gauges *gauges);
/* Sets them to what the applications say now. */
PAWL_MUST_USE pawl_status pawl__node_gauges_update(struct pawl__node *node, pawl_error *reterr);

/* --- handlers; their context is the node --- */

extern const struct pawl__http_route pawl__node_routes[];
extern const size_t pawl__node_route_count;

/* apps.c */
void pawl__serve_app_list(struct pawl__http_request *request, void *context);
void pawl__serve_app(struct pawl__http_request *request, void *context);
void pawl__serve_app_create(struct pawl__http_request *request, void *context);
void pawl__serve_seq(struct pawl__http_request *request, void *context);
/* commands.c */
void pawl__serve_command(struct pawl__http_request *request, void *context);
/* pages.c */
void pawl__serve_records(struct pawl__http_request *request, void *context);
void pawl__serve_record(struct pawl__http_request *request, void *context);
void pawl__serve_wlog(struct pawl__http_request *request, void *context);
void pawl__serve_plog(struct pawl__http_request *request, void *context);
/* health.c */
void pawl__serve_livez(struct pawl__http_request *request, void *context);
void pawl__serve_readyz(struct pawl__http_request *request, void *context);
void pawl__serve_healthz(struct pawl__http_request *request, void *context);
void pawl__serve_metrics(struct pawl__http_request *request, void *context);

/* The application that the address names; else NULL, and it is answered. */
pawl_app *pawl__serve_find(struct pawl__http_request *request, struct pawl__node *node);

#endif
