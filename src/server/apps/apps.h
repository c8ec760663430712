/* The applications of the node, and helpers of their routes. */
#ifndef PAWL_SERVER_APPS_APPS_H
#define PAWL_SERVER_APPS_APPS_H

#include <stdatomic.h>

#include <pawl/app.h>

#include "base/thread/thread.h"
#include "server/part.h"
#include "server/probe.h"
#include "store/lock.h"

struct node_apps;   /* registry.h */
struct node_gauges; /* gauges.c */

/* The state of the part. */
struct apps_part {
    struct pawl__lock create_lock; /* one application is created at a time */
    struct node_apps *apps;
    const struct pawl__serve_options *options;
    const char *location;
    bool is_database;
    struct pawl__store_lock *owner; /* of a location that is a directory */
    struct node_gauges *gauges;
    struct pawl__clock *clock; /* of deadlines and waits, so one that runs */
};

struct node_app_state {
    char name[PAWL_APP_NAME_BYTES_MAX + 1]; /* that of its directory */
    pawl_app *app;                          /* NULL: it is not open */
    bool opening;                           /* for the first time: it will be in a moment */
    pawl_status why;                        /* it is not open, and not being opened */
    struct node_probe *probe;               /* of one that is open */
    struct node_app *held; /* that it stays open for whoever has this; NULL: nothing */
};

extern const struct pawl__serve_part pawl__serve_apps_part;
enum { APPS_JOB_KINDS = 3 };
extern const struct pawl__job_kind pawl__serve_apps_jobs[APPS_JOB_KINDS]; /* jobs.c */

/* --- which there are (registry.c) --- */

/* False: there is none of that name. One that is open stays so until it is released. */
bool pawl__serve_app_find(struct apps_part *part, pawl_view name, struct node_app_state *ret_state);
void pawl__serve_app_release(struct node_app *held); /* NULL is fine */

/* Those that there are now; `to_close`: all handles that must be closed, those that were lost to another process
 * too. Released with pawl__serve_app_states_free; NULL: no memory. */
struct node_app_state *pawl__serve_app_states(struct apps_part *part,
                                              bool to_close,
                                              size_t *ret_count);

void pawl__serve_app_states_free(struct node_app_state *states, size_t count);

size_t pawl__serve_apps_count(struct apps_part *part);      /* those too that are not open */
size_t pawl__serve_apps_open_count(struct apps_part *part); /* those that are open */

/* Whether one of so many partitions fits in: else CONFLICT. */
PAWL_MUST_USE pawl_status pawl__serve_apps_check_room(struct apps_part *part,
                                                      unsigned partitions,
                                                      pawl_error *reterr);

/* One that is open, which is the node's from here on, or closed. CONFLICT: there is no room any more. (handle.c) */
PAWL_MUST_USE pawl_status pawl__serve_app_add(struct apps_part *part,
                                              const char *name,
                                              pawl_app *opened,
                                              pawl_error *reterr);

PAWL_MUST_USE pawl_status pawl__serve_apps_new(struct apps_part *part, pawl_error *reterr);
/* When they are closed. */
void pawl__serve_apps_free(struct apps_part *part);

/* --- opening them (open.c) --- */

/* Finds those of the location. */
PAWL_MUST_USE pawl_status pawl__serve_apps_list(struct apps_part *part, pawl_error *reterr);
/* Begins to open them. */
PAWL_MUST_USE pawl_status pawl__serve_apps_start(struct apps_part *part, pawl_error *reterr);
/* Until each has been tried once. */
void pawl__serve_apps_await(struct apps_part *part, int64_t deadline_ns);
/* Opens no more. TIMEOUT: one that is being opened does not come back. */
PAWL_MUST_USE pawl_status pawl__serve_apps_stop(struct apps_part *part,
                                                int64_t deadline_ns,
                                                pawl_error *reterr);

/* Closes an application, when nobody uses it any more, and opens it with its numbers made anew; requests for it are
 * answered 503 meanwhile. BUSY: somebody uses it for too long. CANCELLED. After a failure it is opened as it was. (rebuild.c) */
PAWL_MUST_USE pawl_status pawl__serve_app_rebuild(struct apps_part *part,
                                                  pawl_view name,
                                                  struct pawl__cancel *cancel,
                                                  pawl_error *reterr);

/* Creates an application, or finds the one of that name: ret_state->app is NULL when it is there and not
 * open. CONFLICT: it has another descriptor, or there is no room for it. INVALID: the descriptor is none, or
 * of another name. May take as long as the store does. (create.c) */
PAWL_MUST_USE pawl_status pawl__serve_apps_create(struct apps_part *part,
                                                  pawl_view name,
                                                  pawl_view descriptor,
                                                  struct node_app_state *ret_state,
                                                  bool *ret_created,
                                                  pawl_error *reterr);

/* Closes all applications together, in app.close_ms_max. TIMEOUT: a store does not come back. (close.c) */
PAWL_MUST_USE pawl_status pawl__serve_apps_close(struct apps_part *part, pawl_error *reterr);

/* --- metrics (gauges.c) --- */

PAWL_MUST_USE pawl_status pawl__serve_gauges_new(struct pawl__metrics *metrics,
                                                 struct node_gauges **ret_gauges,
                                                 pawl_error *reterr);
void pawl__serve_gauges_free(struct node_gauges *gauges);
/* Sets them to what the applications say now. */
PAWL_MUST_USE pawl_status pawl__serve_gauges_update(struct apps_part *part, pawl_error *reterr);

/* Adds the metrics of the applications' own commits, as text. */
PAWL_MUST_USE pawl_status pawl__serve_commits_add(struct apps_part *part,
                                                  struct pawl__buf *out,
                                                  pawl_error *reterr);

/* --- routes --- */

/* The open application of that name, which stays open until the call ends; a failure says why there is none. (apps.c) */
PAWL_MUST_USE pawl_status pawl__serve_app_of(struct pawl__serve_call *call,
                                             pawl_view name,
                                             struct node_app_state *ret_app,
                                             pawl_error *reterr);

/* "OPENING", or the name of a status. */
const char *pawl__serve_why_not_open(const struct node_app_state *state);

/* A command until its answer. */
struct waiting_command {
    pawl_app *app;
    struct node_probe *probe;
    pawl_app_response *response;
    pawl_error error;
};

/* Commands until the last answer. */
struct waiting_batch {
    pawl_app *app;
    struct node_probe *probe;
    struct batch_command *commands;
    size_t count;
    atomic_size_t left; /* answers, and the one who submits */
};

/* What the address says. (records.c) */
struct app_path {
    pawl_view app;
};
struct workspace_path {
    pawl_view app;
    uint64_t wsid;
};
struct record_path {
    pawl_view app;
    uint64_t wsid;
    uint64_t id;
};
struct workspace_page {
    pawl_view app;
    uint64_t wsid;
    uint64_t from;
    uint64_t limit;
};
struct partition_page {
    pawl_view app;
    uint64_t p;
    uint64_t from;
    uint64_t limit;
};
extern const struct pawl__record pawl__serve_app_path_record;
extern const struct pawl__record pawl__serve_workspace_path_record;
extern const struct pawl__record pawl__serve_record_path_record;
extern const struct pawl__record pawl__serve_workspace_page_record;
extern const struct pawl__record pawl__serve_partition_page_record;

pawl__serve_handler pawl__serve_app_list; /* apps.c */
pawl__serve_handler pawl__serve_app;
pawl__serve_handler pawl__serve_app_create;
pawl__serve_handler pawl__serve_seq;
pawl__serve_handler pawl__serve_command; /* commands.c */
pawl__serve_handler pawl__serve_app_command;
pawl__serve_handler pawl__serve_batch;   /* batch.c */
pawl__serve_handler pawl__serve_records; /* pages.c */
pawl__serve_handler pawl__serve_record;
pawl__serve_handler pawl__serve_wlog;
pawl__serve_handler pawl__serve_plog;

#endif
