/* The work store of the node, and what its routes share. */
#ifndef PAWL_SERVER_WORK_WORK_H
#define PAWL_SERVER_WORK_WORK_H

#include <pawl/work.h>

#include "base/core/buf.h"
#include "base/json/json.h"
#include "base/log/metrics.h"
#include "net/http/http.h"

struct pawl__serve_options;
struct node_work;

/* --- the store (work_store.c); any thread, but for new and close --- */

PAWL_MUST_USE pawl_status pawl__serve_work_new(const struct pawl__serve_options *options,
                                               struct pawl__metrics *metrics,
                                               struct node_work **ret_work,
                                               pawl_error *reterr);

/* Ends all waiting for items, now and for ever. Before the requests that wait are waited for. */
void pawl__serve_work_cancel_waits(struct node_work *work);
bool pawl__serve_work_is_stopping(struct node_work *work); /* that was called */

/* Calls of the store come back soon, whatever it does, and it is good for nothing any more. NULL is fine. */
void pawl__serve_work_interrupt(struct node_work *work);

/* When nobody asks any more. TIMEOUT: the store does not come back; all of it stays. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_work_close(struct node_work *work, pawl_error *reterr);

enum node_work_access { NODE_WORK_THAT_EXISTS, NODE_WORK_TO_CREATE };

/* The store, which is opened if it is not. It may come later than the node, so it is looked for
 * whenever somebody asks, and stays open once it was found. NOT_FOUND: there is none, or none can be
 * here. Every other failure is that of a server, not of whoever asks. Takes as long as the store does. */
PAWL_MUST_USE pawl_status pawl__serve_work_find(struct node_work *work,
                                                enum node_work_access access,
                                                pawl_work **ret_store,
                                                pawl_error *reterr);

/* The store when it is open; NULL: it is not. Does not wait. */
pawl_work *pawl__serve_work_open_one(struct node_work *work);

/* The monotonic clock of the node. */
int64_t pawl__serve_work_now_ms(const struct node_work *work);

/* How long a claim may wait at the longest, so that its answer is still in time. */
uint32_t pawl__serve_work_wait_ms_max(const struct node_work *work);

/* `run` on a thread of its own, where it may wait for long. False: too many wait, or the node ends. */
PAWL_MUST_USE bool pawl__serve_work_wait(struct node_work *work,
                                         void (*run)(void *context),
                                         void *context);

/* What it says now, malloc'ed; NULL: there is none, it cannot be read, or another one has been asking for
 * long. pawl_work_up is set to that. Takes as long as the store does, for one at a time. */
char *pawl__serve_work_metrics(struct node_work *work);

/* That an attempt to use the store failed, which is logged once; only the probe knows that it works again. */
void pawl__serve_work_log_outcome(struct node_work *work, const pawl_error *error);

/* What the newest attempt said, or TIMEOUT when it does not come back: PAWL_OK also when there is no store.
 * Does not wait for it. */
pawl_status pawl__serve_work_health(struct node_work *work);

/* --- sweeping and schedules, on a thread (work_care.c) --- */

struct node_maintenance;

PAWL_MUST_USE pawl_status pawl__serve_maintenance_start(struct node_work *work,
                                                        struct pawl__clock *clock,
                                                        uint32_t sweep_ms,
                                                        struct node_maintenance **ret_maintenance,
                                                        pawl_error *reterr);
/* TIMEOUT: the store does not come back; it may be called again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_maintenance_stop(struct node_maintenance *maintenance,
                                                       int64_t deadline_ns,
                                                       pawl_error *reterr);
void pawl__serve_maintenance_free(
    struct node_maintenance *maintenance); /* one that is stopped; NULL is fine */

/* --- threads for those who wait (work_waits.c) --- */

enum { NODE_WAITS_MAX = 64 };
struct node_waits;

PAWL_MUST_USE pawl_status pawl__serve_waits_new(struct node_waits **ret_waits, pawl_error *reterr);
PAWL_MUST_USE bool pawl__serve_waits_run(struct node_waits *waits,
                                         void (*run)(void *context),
                                         void *context);
void pawl__serve_waits_stop(struct node_waits *waits); /* runs nothing more */
/* TIMEOUT: one of them does not come back; it may be called again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_waits_stop_until(struct node_waits *waits,
                                                       int64_t deadline_ns,
                                                       pawl_error *reterr);
void pawl__serve_waits_free(struct node_waits *waits); /* when they are stopped; NULL is fine */

/* --- what is asked and answered (work_json.c) --- */

enum { NODE_SHORT_ANSWER = 8192 }; /* bytes: an id, with all of it escaped, and a few words */

struct node_body {
    json_t *json;
    struct pawl__json_node root; /* an object */
};

/* The body of a request, which has no other fields than these. */
PAWL_MUST_USE pawl_status pawl__serve_work_body(const struct pawl__http_request *request,
                                                const char *const *names,
                                                size_t name_count,
                                                struct node_body *ret_body,
                                                pawl_error *reterr);
void pawl__serve_work_body_done(struct node_body *body);

/* {}: a request without a body is one that a page of a stranger in a browser may send, too. */
PAWL_MUST_USE pawl_status pawl__serve_work_empty_body(const struct pawl__http_request *request,
                                                      pawl_error *reterr);

#define WORK_MS_MAX (INT64_C(7) * 86400000) /* of a lease, and of a wait: a week */
#define NODE_DELAY_MS_MAX (INT64_C(36500) * 86400000)

/* A duration in the form "90s", of `range` milliseconds. Left alone when it is missing. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_ms(const struct pawl__json_node *object,
                                                   const char *key,
                                                   const int64_t range[2],
                                                   int64_t *ret_ms,
                                                   pawl_error *reterr);

/* A text that is not empty: an id, a name, a reason. Empty is not the same as missing. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_name(struct pawl__json_node node,
                                                     pawl_view *ret_name,
                                                     pawl_error *reterr);

/* The same of the query. Left alone when it is missing. */
PAWL_MUST_USE pawl_status pawl__serve_work_query_name(const struct pawl__http_request *request,
                                                      const char *key,
                                                      pawl_view *ret_name,
                                                      pawl_error *reterr);

/* A value of any type as text, which stands in `buf`; empty when it is missing or null. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_json(const struct pawl__json_node *object,
                                                     const char *key,
                                                     struct pawl__buf *buf,
                                                     pawl_view *ret_json,
                                                     pawl_error *reterr);

/* The item of the address and the token of the body. */
PAWL_MUST_USE pawl_status pawl__serve_work_read_lease(const struct pawl__http_request *request,
                                                      const struct pawl__json_node *object,
                                                      pawl_lease *ret_lease,
                                                      pawl_error *reterr);

/* The type that the query asks for, in `type`; *ret_type is NULL when it does not. */
PAWL_MUST_USE pawl_status pawl__serve_work_query_type(const struct pawl__http_request *request,
                                                      pawl_checkpoint_type *type,
                                                      const pawl_checkpoint_type **ret_type,
                                                      pawl_error *reterr);

/* A lease that was lost is 409 here: it is the client's, not the node's. */
void pawl__serve_work_fail(struct pawl__http_request *request, const pawl_error *error);

/* {"work_item_id": ..., "status": ...}, that of the address. */
void pawl__serve_work_status(struct pawl__http_request *request, pawl_item_status status);

/* --- handlers; their context is the node --- */

/* work_claims.c */
void pawl__serve_work_claim(struct pawl__http_request *request, void *context);
/* work_leases.c */
void pawl__serve_work_heartbeat(struct pawl__http_request *request, void *context);
void pawl__serve_work_complete(struct pawl__http_request *request, void *context);
void pawl__serve_work_fail_item(struct pawl__http_request *request, void *context);
void pawl__serve_work_release(struct pawl__http_request *request, void *context);
/* work_items.c */
void pawl__serve_work_submit(struct pawl__http_request *request, void *context);
void pawl__serve_work_item(struct pawl__http_request *request, void *context);
void pawl__serve_work_cancel(struct pawl__http_request *request, void *context);
/* work_tasks.c */
void pawl__serve_work_task_create(struct pawl__http_request *request, void *context);
void pawl__serve_work_task(struct pawl__http_request *request, void *context);
void pawl__serve_work_task_cancel(struct pawl__http_request *request, void *context);
/* work_pages.c */
void pawl__serve_work_task_list(struct pawl__http_request *request, void *context);
void pawl__serve_work_item_list(struct pawl__http_request *request, void *context);
void pawl__serve_work_checkpoint_list(struct pawl__http_request *request, void *context);
/* work_checkpoints.c */
void pawl__serve_work_checkpoint_add(struct pawl__http_request *request, void *context);
void pawl__serve_work_checkpoint_latest(struct pawl__http_request *request, void *context);
void pawl__serve_work_recovery(struct pawl__http_request *request, void *context);
/* work_stats.c */
void pawl__serve_work_stats(struct pawl__http_request *request, void *context);

#endif
