/* Long acts of a node: started by a request, run in the background one after the other, looked at, cancelled, and kept
 * with their results across a restart.
 *
 * A part declares the kinds that it has (part.h). A job that runs when the node ends is interrupted: nothing is resumed,
 * since a kind that changes something does it so that it can be asked again.
 *
 * Threads: any, but for open and close. */
#ifndef PAWL_SERVER_JOBS_JOBS_H
#define PAWL_SERVER_JOBS_JOBS_H

#include "base/thread/cancel.h"
#include "server/jobs/store.h"
#include "server/tokens/token.h"

enum {
    JOBS_RUNNING_MAX = 2,
    JOBS_QUEUED_MAX = 64,
    JOBS_HISTORY_MAX = 1000, /* that have ended */
    JOB_RESULT_BYTES_MAX = 16 << 20
};

/* A job that runs. */
struct pawl__job_run;

/* How far it is. Any thread. */
void pawl__serve_job_progress(struct pawl__job_run *run, uint64_t done, uint64_t total);
/* Asked between steps: whoever is cancelled returns CANCELLED soon. */
struct pawl__cancel *pawl__serve_job_cancelled(struct pawl__job_run *run);

struct pawl__job_kind {
    const char *name; /* "apps.verify" */
    const char *about;
    const struct pawl__record *parameters;
    enum pawl__scope scope; /* of a token that may start one */

    /* Whether it could run, asked when it is started: the failure is the answer. Does not wait. NULL: always. */
    pawl_status (*check)(void *state, const void *parameters, pawl_error *reterr);
    /* On a thread that does nothing else. Adds a JSON value to the result. `state` is that of the part, `parameters` a
     * value of the record. */
    pawl_status (*run)(void *state,
                       struct pawl__job_run *run,
                       const void *parameters,
                       struct pawl__buf *result,
                       pawl_error *reterr);
};

/* A kind and whose it is. */
struct pawl__job_binding {
    const struct pawl__job_kind *kind;
    void *const *state; /* where the part's state stands once it is open */
};

struct pawl__jobs;

/* The bindings outlive it. The store is its own from here on, also after a failure. */
PAWL_MUST_USE pawl_status pawl__serve_jobs_open(struct pawl__job_store *store,
                                                const struct pawl__job_binding *bindings,
                                                size_t count,
                                                struct pawl__clock *clock,
                                                struct pawl__jobs **ret_jobs,
                                                pawl_error *reterr);

/* Cancels what runs, and takes no more. Does not wait. */
void pawl__serve_jobs_cancel(struct pawl__jobs *jobs);
/* TIMEOUT: one that runs does not come back, and nothing is freed. NULL is fine. */
PAWL_MUST_USE pawl_status pawl__serve_jobs_close(struct pawl__jobs *jobs,
                                                 int64_t deadline_ns,
                                                 pawl_error *reterr);

/* NULL: there is none. */
const struct pawl__job_kind *pawl__serve_jobs_kind(const struct pawl__jobs *jobs, pawl_view name);

/* Starts one. INVALID: the kind is unknown or a parameter is wrong. BUSY: as many wait as may. */
PAWL_MUST_USE pawl_status pawl__serve_jobs_start(struct pawl__jobs *jobs,
                                                 pawl_view kind,
                                                 struct pawl__json_node parameters,
                                                 char ret_id[JOB_ID_SIZE],
                                                 pawl_error *reterr);

/* CONFLICT: it has ended. NOT_FOUND. One that is being cancelled already is fine. */
PAWL_MUST_USE pawl_status pawl__serve_jobs_stop(struct pawl__jobs *jobs,
                                                pawl_view job_id,
                                                pawl_error *reterr);

/* As the store's, with how far those are that run. */
PAWL_MUST_USE pawl_status pawl__serve_jobs_get(struct pawl__jobs *jobs,
                                               pawl_view job_id,
                                               pawl__job_visitor *visitor,
                                               void *context,
                                               pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__serve_jobs_list(struct pawl__jobs *jobs,
                                                pawl_view from,
                                                size_t limit,
                                                pawl__job_visitor *visitor,
                                                void *context,
                                                pawl_error *reterr);

#endif
