/* Delivery as a part of the node: the open directory, and helpers of its routes. */
#ifndef PAWL_SERVER_DELIVERY_DELIVERY_H
#define PAWL_SERVER_DELIVERY_DELIVERY_H

#include <pawl/delivery.h>

#include "base/thread/watch.h"
#include "server/delivery/records.h"
#include "server/part.h"
#include "server/periodic.h"

/* --- the directory (open.c); any thread, except new and close --- */

/* What a pipeline was when it was last looked at. */
struct node_pipeline {
    uint64_t version; /* of its last change; 0: free */
    char name[PAWL_PIPELINE_NAME_BYTES_MAX + 1];
    bool is_removed;
    bool is_seen; /* in the look at hand */
    char *json;   /* malloc'ed */
};

enum { NODE_EXPORTS_MAX = 4 };

struct node_delivery {
    const struct pawl__serve_options *options;
    struct pawl__clock *clock;
    struct node_periodic look; /* opens the directory; then looks for changes */

    struct pawl__lock lock; /* covers everything below */
    struct pawl__cond changed;
    _Atomic(pawl_delivery *) handle; /* set once; read without the lock. NULL: not open */
    bool is_opening;
    bool is_stopping;
    pawl_error why; /* it is not open; NOT_FOUND: there is nothing to open */
    struct node_export {
        struct pawl__thread thread;
        bool is_used;
        bool has_ended; /* the thread returns, and can be joined */
    } exports[NODE_EXPORTS_MAX];

    /* Changes, for followers. */
    struct pawl__watch watch;
    struct node_pipeline pipelines[PAWL_PIPELINES_MAX];
    uint64_t version;
};

enum node_delivery_access { NODE_DELIVERY_THAT_EXISTS, NODE_DELIVERY_TO_CREATE };

/* The open directory. NOT_FOUND: there are no pipelines, and none is created. BUSY: another process has it; any other
 * failure is the node's, not the client's. May take as long as opening does. */
PAWL_MUST_USE pawl_status pawl__serve_delivery_find(struct node_delivery *node,
                                                    enum node_delivery_access access,
                                                    pawl_delivery **ret_delivery,
                                                    pawl_error *reterr);

/* If it is open, else NULL. Does not wait. */
pawl_delivery *pawl__serve_delivery_open_one(struct node_delivery *node);

/* The name of the pipeline that a call is about, ended by a NUL; longer ones are of no pipeline. */
struct node_pipeline_name {
    char text[PAWL_PIPELINE_NAME_BYTES_MAX + 2];
};
struct node_pipeline_name pawl__serve_pipeline_name(pawl_view given);

/* --- exports (export.c) --- */

/* When no client is left. TIMEOUT: one does not end. */
PAWL_MUST_USE pawl_status pawl__serve_delivery_join_exports(struct node_delivery *node,
                                                            int64_t deadline_ns,
                                                            pawl_error *reterr);

/* --- changes (changes.c) --- */

/* Compares all pipelines with the last look. */
void pawl__serve_delivery_look(struct node_delivery *node, pawl_delivery *delivery);
void pawl__serve_delivery_forget(struct node_delivery *node);

/* --- routes --- */

extern const struct pawl__serve_part pawl__serve_delivery_part; /* open.c */

enum { SERVE_DELIVERY_ROUTES = 22, SERVE_DELIVERY_JOBS = 2 };
extern const struct pawl__serve_route pawl__serve_delivery_routes[];               /* routes.c */
extern const struct pawl__job_kind pawl__serve_delivery_jobs[SERVE_DELIVERY_JOBS]; /* acts.c */

/* Answers with the pipeline as it is now. (pipelines.c) */
PAWL_MUST_USE pawl_status pawl__serve_pipeline_answer(struct pawl__serve_call *call,
                                                      pawl_delivery *delivery,
                                                      const char *name,
                                                      unsigned code,
                                                      pawl_error *reterr);

pawl__serve_handler pawl__serve_pipeline_list; /* pipelines.c */
pawl__serve_handler pawl__serve_pipeline_show;
pawl__serve_handler pawl__serve_pipeline_add;
pawl__serve_handler pawl__serve_pipeline_remove;
pawl__serve_handler pawl__serve_pipeline_pause;
pawl__serve_handler pawl__serve_pipeline_resume;
pawl__serve_handler pawl__serve_pipeline_start;
pawl__serve_handler pawl__serve_pipeline_drain;
pawl__serve_handler pawl__serve_pipeline_changes; /* changes.c */
pawl__serve_handler pawl__serve_pipeline_submit;  /* intake.c */
pawl__serve_handler pawl__serve_wal_show;         /* wal.c */
pawl__serve_handler pawl__serve_wal_list;
pawl__serve_handler pawl__serve_wal_entry;
pawl__serve_handler pawl__serve_failed_list; /* failed.c */
pawl__serve_handler pawl__serve_failed_show;
pawl__serve_handler pawl__serve_failed_count;
pawl__serve_handler pawl__serve_failed_decide;
pawl__serve_handler pawl__serve_failed_decide_all;
pawl__serve_handler pawl__serve_failed_export;   /* export.c */
pawl__serve_handler pawl__serve_sql;             /* sql.c */
pawl__serve_handler pawl__serve_pipeline_replay; /* acts.c */
pawl__serve_handler pawl__serve_trace;

/* The filter of a list of failed events. (failed.c) */
PAWL_MUST_USE pawl_status pawl__serve_failed_filter(const struct failed_list *asked,
                                                    pawl_failed_filter *ret_filter,
                                                    pawl_error *reterr);

#endif
