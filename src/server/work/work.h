/* The work store of the node, and helpers of its routes. */
#ifndef PAWL_SERVER_WORK_WORK_H
#define PAWL_SERVER_WORK_WORK_H

#include <pawl/work.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/log/metrics.h"
#include "net/http/http.h"

struct pawl__serve_options;
struct node_work;

/* --- the store (open.c); any thread, except new and close --- */

PAWL_MUST_USE pawl_status pawl__serve_work_new(const struct pawl__serve_options *options,
                                               struct pawl__metrics *metrics,
                                               struct node_work **ret_work,
                                               pawl_error *reterr);

/* Ends all waiting for items, now and in future. Call it before waiting for the requests that wait. */
void pawl__serve_work_cancel_waits(struct node_work *work);
bool pawl__serve_work_is_stopping(struct node_work *work); /* that was called */

/* Makes calls of the store return soon, whatever it does; it cannot be used after that. NULL is fine. */
void pawl__serve_work_interrupt(struct node_work *work);

/* Call it when no request is left. TIMEOUT: the store does not return, and nothing is freed. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_work_close(struct node_work *work, pawl_error *reterr);

enum node_work_access { NODE_WORK_THAT_EXISTS, NODE_WORK_TO_CREATE };

/* The store, opened by the first call that finds it: it may be created after the node starts. NOT_FOUND: no
 * store yet, or this node cannot have one. Every other failure is the server's, not the client's. May take as
 * long as the store does. */
PAWL_MUST_USE pawl_status pawl__serve_work_find(struct node_work *work,
                                                enum node_work_access access,
                                                pawl_work **ret_store,
                                                pawl_error *reterr);

/* The store if it is open, else NULL. Does not wait. */
pawl_work *pawl__serve_work_open_one(struct node_work *work);

/* The monotonic clock of the node. */
int64_t pawl__serve_work_now_ms(const struct node_work *work);

/* The longest time a claim may wait so that its answer is still in time. */
uint32_t pawl__serve_work_wait_ms_max(const struct node_work *work);

/* Calls `run` on a thread of its own, where it may wait long. False: too many wait, or the node stops. */
PAWL_MUST_USE bool pawl__serve_work_wait(struct node_work *work,
                                         void (*run)(void *context),
                                         void *context);

/* The metrics of the store, malloc'ed. NULL: no store, it cannot be read, or another request has been reading
 * them for long; pawl_work_up is then 0. May take as long as the store does, for one request at a time. */
char *pawl__serve_work_metrics(struct node_work *work);

/* Logs once that a use of the store failed. Only the probe notices that it works again. */
void pawl__serve_work_log_outcome(struct node_work *work, const pawl_error *error);

/* The outcome of the latest use, or TIMEOUT when the store does not answer. PAWL_OK also without a store. Does
 * not wait. */
pawl_status pawl__serve_work_health(struct node_work *work);

/* --- sweeps and schedules, on a thread (maintenance.c) --- */

struct node_maintenance;

PAWL_MUST_USE pawl_status pawl__serve_maintenance_start(struct node_work *work,
                                                        struct pawl__clock *clock,
                                                        uint32_t sweep_ms,
                                                        struct node_maintenance **ret_maintenance,
                                                        pawl_error *reterr);
/* TIMEOUT: the store does not return; call it again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_maintenance_stop(struct node_maintenance *maintenance,
                                                       int64_t deadline_ns,
                                                       pawl_error *reterr);
void pawl__serve_maintenance_free(
    struct node_maintenance *maintenance); /* after stop; NULL is fine */
DEFINE_AUTO(struct node_maintenance *, pawl__serve_maintenance_free)

/* --- threads for claims that wait (waits.c) --- */

enum { NODE_WAITS_MAX = 64 };
struct node_waits;

PAWL_MUST_USE pawl_status pawl__serve_waits_new(struct node_waits **ret_waits, pawl_error *reterr);
PAWL_MUST_USE bool pawl__serve_waits_run(struct node_waits *waits,
                                         void (*run)(void *context),
                                         void *context);
void pawl__serve_waits_stop(struct node_waits *waits); /* starts no more */
/* TIMEOUT: one of them does not return; call it again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_waits_stop_until(struct node_waits *waits,
                                                       int64_t deadline_ns,
                                                       pawl_error *reterr);
void pawl__serve_waits_free(struct node_waits *waits); /* after stop_until; NULL is fine */

/* --- requests and answers (json.c) --- */

DEFINE_AUTO(pawl_task *, pawl_task_free)
DEFINE_AUTO(pawl_checkpoint *, pawl_checkpoint_free)
DEFINE_AUTO(pawl_recovery *, pawl_recovery_free)

/* What a handler does: it answers the request, or it fails and the failure becomes the answer. */
typedef pawl_status serve_work_fn(struct pawl__http_request *request,
                                  struct node_work *work,
                                  pawl_error *reterr);
void pawl__serve_work_run(struct pawl__http_request *request, void *node, serve_work_fn *fn);

#define DEFINE_HANDLER(name, fn)                                 \
    void name(struct pawl__http_request *request, void *context) \
    {                                                            \
        pawl__serve_work_run(request, context, (fn));            \
    }

enum { NODE_SHORT_ANSWER = 8192 }; /* bytes: an id, with all of it escaped, and a few words */

struct node_body {
    json_t *json;
    struct pawl__json_node root; /* an object */
};

/* The body of a request: an object with no other fields than these. *ret_body is empty, and its caller's also
 * on failure. */
PAWL_MUST_USE pawl_status pawl__serve_work_body(const struct pawl__http_request *request,
                                                const char *const *names,
                                                size_t name_count,
                                                struct node_body *ret_body,
                                                pawl_error *reterr);
void pawl__serve_work_body_done(struct node_body *body);

/* The body must be {}: other web pages can make a browser send a request without a body (CSRF). */
PAWL_MUST_USE pawl_status pawl__serve_work_empty_body(const struct pawl__http_request *request,
                                                      pawl_error *reterr);

#define WORK_MS_MAX (INT64_C(7) * 86400000) /* of a lease, and of a wait: a week */
#define NODE_DELAY_MS_MAX (INT64_C(36500) * 86400000)

/* A duration like "90s", within `range` in milliseconds. *ret_ms stays as it is when the key is missing. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_ms(const struct pawl__json_node *object,
                                                   const char *key,
                                                   const int64_t range[2],
                                                   int64_t *ret_ms,
                                                   pawl_error *reterr);

/* A text: an id, a name, a reason. May be missing if the node is optional, but not empty. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_name(struct pawl__json_node node,
                                                     pawl_view *ret_name,
                                                     pawl_error *reterr);

/* The same for a parameter of the query. *ret_name stays as it is when it is missing. */
PAWL_MUST_USE pawl_status pawl__serve_work_query_name(const struct pawl__http_request *request,
                                                      const char *key,
                                                      pawl_view *ret_name,
                                                      pawl_error *reterr);

/* A JSON value as text in `buf`; empty when it is missing or null. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_json(const struct pawl__json_node *object,
                                                     const char *key,
                                                     struct pawl__buf *buf,
                                                     pawl_view *ret_json,
                                                     pawl_error *reterr);

/* The item of the URL and the token of the body. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_lease(const struct pawl__http_request *request,
                                                      const struct pawl__json_node *object,
                                                      pawl_lease *ret_lease,
                                                      pawl_error *reterr);

/* The checkpoint type that the query asks for, stored in `type`; *ret_type is NULL without one. */
PAWL_MUST_USE pawl_status pawl__serve_work_query_type(const struct pawl__http_request *request,
                                                      pawl_checkpoint_type *type,
                                                      const pawl_checkpoint_type **ret_type,
                                                      pawl_error *reterr);

/* Answers a failure. A lost lease is 409 here: it is the client's, not the node's. */
void pawl__serve_work_fail(struct pawl__http_request *request, const pawl_error *error);

/* Answers {"work_item_id": ..., "status": ...} with the item of the URL. */
void pawl__serve_work_status(struct pawl__http_request *request, pawl_item_status status);

/* --- handlers; their context is the node --- */

/* claims.c */
void pawl__serve_work_claim(struct pawl__http_request *request, void *context);
/* leases.c */
void pawl__serve_work_heartbeat(struct pawl__http_request *request, void *context);
void pawl__serve_work_complete(struct pawl__http_request *request, void *context);
void pawl__serve_work_fail_item(struct pawl__http_request *request, void *context);
void pawl__serve_work_release(struct pawl__http_request *request, void *context);
/* items.c */
void pawl__serve_work_submit(struct pawl__http_request *request, void *context);
void pawl__serve_work_item(struct pawl__http_request *request, void *context);
void pawl__serve_work_cancel(struct pawl__http_request *request, void *context);
/* tasks.c */
void pawl__serve_work_task_create(struct pawl__http_request *request, void *context);
void pawl__serve_work_task(struct pawl__http_request *request, void *context);
void pawl__serve_work_task_cancel(struct pawl__http_request *request, void *context);
/* pages.c */
void pawl__serve_work_task_list(struct pawl__http_request *request, void *context);
void pawl__serve_work_item_list(struct pawl__http_request *request, void *context);
void pawl__serve_work_checkpoint_list(struct pawl__http_request *request, void *context);
/* checkpoints.c */
void pawl__serve_work_checkpoint_add(struct pawl__http_request *request, void *context);
void pawl__serve_work_checkpoint_latest(struct pawl__http_request *request, void *context);
void pawl__serve_work_recovery(struct pawl__http_request *request, void *context);
/* stats.c */
void pawl__serve_work_stats(struct pawl__http_request *request, void *context);

#endif
