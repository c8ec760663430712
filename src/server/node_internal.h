/* What the routes know of the node. */
#ifndef PAWL_SERVER_NODE_INTERNAL_H
#define PAWL_SERVER_NODE_INTERNAL_H

#include "base/thread/thread.h"
#include "server/node.h"
#include "server/probe.h"
#include "store/lock.h"

struct node_apps;    /* the applications: server/apps/open.c */
struct node_gauges;  /* metrics of the applications: server/gauges.c */
struct pawl__tokens; /* server/tokens/store.h */
struct node_work;    /* the work store: server/work/work.h */

struct pawl__serve_node {
    struct pawl__lock create_lock; /* one application is created at a time */
    struct node_apps *apps;

    struct pawl__serve_options options;
    char *location;
    bool is_database;
    struct pawl__store_lock *owner; /* of a location that is a directory */
    struct pawl__metrics *metrics;
    struct node_gauges *gauges;
    struct node_work *work;
    struct pawl__tokens *tokens; /* NULL: it knows none */
    struct pawl__http *http;
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs */
    int64_t started_ns;
};

/* --- applications (apps/open.c) --- */

struct node_app_state {
    char name[PAWL_APP_NAME_BYTES_MAX + 1]; /* that of its directory */
    pawl_app *app;                          /* NULL: it is not open */
    bool opening;                           /* for the first time: it will be in a moment */
    pawl_status why;                        /* it is not open, and not being opened */
    struct node_probe *probe;               /* of one that is open */
};

/* False: there is none of that name. */
bool pawl__serve_node_find(struct pawl__serve_node *node,
                           pawl_view name,
                           struct node_app_state *ret_state);

/* Those that there are now; `to_close`: all handles that must be closed, those that were lost to another process
 * too. One block to free; NULL: no memory. */
struct node_app_state *pawl__serve_app_states(struct pawl__serve_node *node,
                                              bool to_close,
                                              size_t *ret_count);

size_t pawl__serve_apps_open_count(struct pawl__serve_node *node); /* those that are open */

/* Whether one of so many partitions fits in: else CONFLICT. */
PAWL_MUST_USE pawl_status pawl__serve_apps_check_room(struct pawl__serve_node *node,
                                                      unsigned partitions,
                                                      pawl_error *reterr);

/* One that is open, which is the node's from here on, or closed. CONFLICT: there is no room any more. */
PAWL_MUST_USE pawl_status pawl__serve_node_add(struct pawl__serve_node *node,
                                               const char *name,
                                               pawl_app *opened,
                                               pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__serve_apps_new(struct pawl__serve_node *node, pawl_error *reterr);
/* Finds those of the location. */
PAWL_MUST_USE pawl_status pawl__serve_apps_list(struct pawl__serve_node *node, pawl_error *reterr);
/* Begins to open them. */
PAWL_MUST_USE pawl_status pawl__serve_apps_start(struct pawl__serve_node *node, pawl_error *reterr);
/* Until each has been tried once. */
void pawl__serve_apps_await(struct pawl__serve_node *node, int64_t deadline_ns);
/* Opens no more. TIMEOUT: one that is being opened does not come back. */
PAWL_MUST_USE pawl_status pawl__serve_apps_stop(struct pawl__serve_node *node,
                                                int64_t deadline_ns,
                                                pawl_error *reterr);
/* When they are closed. */
void pawl__serve_apps_free(struct pawl__serve_node *node);

/* Creates an application, or finds the one of that name: ret_state->app is NULL when it is there and not
 * open. CONFLICT: it has another descriptor, or there is no room for it. INVALID: the descriptor is none, or
 * of another name. May take as long as the store does. (node.c) */
PAWL_MUST_USE pawl_status pawl__serve_node_create(struct pawl__serve_node *node,
                                                  pawl_view name,
                                                  pawl_view descriptor,
                                                  struct node_app_state *ret_state,
                                                  bool *ret_created,
                                                  pawl_error *reterr);

/* Closes all applications together, in app.close_ms_max. TIMEOUT: a store does not come back. (node_end.c) */
PAWL_MUST_USE pawl_status pawl__serve_apps_close(struct pawl__serve_node *node, pawl_error *reterr);

/* --- metrics of the applications (gauges.c) --- */

PAWL_MUST_USE pawl_status pawl__serve_gauges_new(struct pawl__metrics *metrics,
                                                 struct node_gauges **ret_gauges,
                                                 pawl_error *reterr);
void pawl__serve_gauges_free(struct node_gauges *gauges);
/* Sets them to what the applications say now. */
PAWL_MUST_USE pawl_status pawl__serve_gauges_update(struct pawl__serve_node *node,
                                                    pawl_error *reterr);
/* Adds the metrics of the applications' own commits, as text. */
PAWL_MUST_USE pawl_status pawl__serve_commits_add(struct pawl__serve_node *node,
                                                  struct pawl__buf *out,
                                                  pawl_error *reterr);

/* Asks a request for a token of that enum pawl__scope; false: it was refused. (tokens/authorize.c) */
bool pawl__serve_authorize(struct pawl__http_request *request, unsigned scope, void *context);

/* --- handlers; their context is the node --- */

extern const struct pawl__http_route pawl__serve_routes[];
extern const size_t pawl__serve_route_count;

/* apps/apps.c */
pawl__http_handler pawl__serve_app_list;
pawl__http_handler pawl__serve_app;
pawl__http_handler pawl__serve_app_create;
pawl__http_handler pawl__serve_seq;
/* apps/commands.c */
pawl__http_handler pawl__serve_command;
/* apps/pages.c */
pawl__http_handler pawl__serve_records;
pawl__http_handler pawl__serve_record;
pawl__http_handler pawl__serve_wlog;
pawl__http_handler pawl__serve_plog;
/* health.c */
pawl__http_handler pawl__serve_livez;
pawl__http_handler pawl__serve_readyz;
pawl__http_handler pawl__serve_healthz;
pawl__http_handler pawl__serve_metrics;

/* Adds {"app": ..., "why": ...} of one that is not open. */
void pawl__serve_add_not_open(struct pawl__buf *body,
                              const char *before,
                              const struct node_app_state *state);

/* Answers with why an application is not open. */
void pawl__serve_not_open(struct pawl__http_request *request,
                          struct pawl__serve_node *node,
                          const struct node_app_state *state);

/* What a handler does with the open application that the address names: it answers, or its failure becomes the
 * answer. Any other application is answered for it. */
typedef pawl_status serve_app_fn(struct pawl__http_request *request,
                                 const struct node_app_state *found,
                                 pawl_error *reterr);
void pawl__serve_app_run(struct pawl__http_request *request,
                         struct pawl__serve_node *node,
                         serve_app_fn *fn);

#define DEFINE_APP_HANDLER(name, fn)                             \
    void name(struct pawl__http_request *request, void *context) \
    {                                                            \
        pawl__serve_app_run(request, context, (fn));             \
    }

#endif
