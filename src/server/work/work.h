/* The work store of the node, and helpers of its routes. */
#ifndef PAWL_SERVER_WORK_WORK_H
#define PAWL_SERVER_WORK_WORK_H

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/log/metrics.h"
#include "server/part.h"

struct node_work;

/* --- the store (open.c); any thread, except new and close --- */

PAWL_MUST_USE pawl_status pawl__serve_work_new(const struct pawl__serve_options *options,
                                               struct pawl__metrics *metrics,
                                               struct node_work **ret_work,
                                               pawl_error *reterr);

/* Ends all waiting for items, now and in future. Call it before waiting for the requests that wait. */
void pawl__serve_work_cancel_waits(struct node_work *work);

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

/* The longest time a claim may wait so that its answer is still in time. */
uint32_t pawl__serve_work_wait_ms_max(const struct node_work *work);

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

/* --- the feed of changes, and the thread that reads it for all followers (change_feed.c) --- */

struct node_changes;

PAWL_MUST_USE pawl_status pawl__serve_changes_new(struct node_work *work,
                                                  struct pawl__clock *clock,
                                                  struct node_changes **ret_changes,
                                                  pawl_error *reterr);
/* When no follower is left. TIMEOUT: the store does not return; call it again. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_changes_stop(struct node_changes *changes,
                                                   int64_t deadline_ns,
                                                   pawl_error *reterr);
void pawl__serve_changes_free(struct node_changes *changes); /* after stop; NULL is fine */

/* Where a request begins in the feed: the state of its call. */
struct changes_start {
    bool at_end; /* else after this: */
    pawl_work_position at;
};

struct node_changes *pawl__serve_work_changes_of(struct node_work *work); /* (open.c) */

/* --- routes --- */

DEFINE_AUTO(pawl_task *, pawl_task_free)
DEFINE_AUTO(pawl_item *, pawl_item_free)
DEFINE_AUTO(pawl_checkpoint *, pawl_checkpoint_free)
DEFINE_AUTO(pawl_recovery *, pawl_recovery_free)

extern const struct pawl__serve_part pawl__serve_work_part; /* part.c */

/* Answers {"work_item_id": ..., "status": ...}. (leases.c) */
void pawl__serve_work_status(struct pawl__serve_call *call,
                             pawl_view work_item_id,
                             pawl_item_status status);

pawl__serve_handler pawl__serve_work_claim;     /* claims.c */
pawl__serve_handler pawl__serve_work_changes;   /* changes.c */
pawl__serve_handler pawl__serve_work_heartbeat; /* leases.c */
pawl__serve_handler pawl__serve_work_complete;
pawl__serve_handler pawl__serve_work_fail;
pawl__serve_handler pawl__serve_work_release;
pawl__serve_handler pawl__serve_work_submit; /* items.c */
pawl__serve_handler pawl__serve_work_item;
pawl__serve_handler pawl__serve_work_cancel;
pawl__serve_handler pawl__serve_work_task_create; /* tasks.c */
pawl__serve_handler pawl__serve_work_task;
pawl__serve_handler pawl__serve_work_task_cancel;
pawl__serve_handler pawl__serve_work_task_list; /* pages.c */
pawl__serve_handler pawl__serve_work_item_list;
pawl__serve_handler pawl__serve_work_checkpoint_list;
pawl__serve_handler pawl__serve_work_checkpoint_add; /* checkpoints.c */
pawl__serve_handler pawl__serve_work_checkpoint_latest;
pawl__serve_handler pawl__serve_work_recovery;
pawl__serve_handler pawl__serve_work_stats; /* stats.c */

#endif
