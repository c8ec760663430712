/* The jobs of a node in jobs.sqlite: one process has it open. */
#ifndef PAWL_SERVER_JOBS_STORE_H
#define PAWL_SERVER_JOBS_STORE_H

#include <pawl/pawl.h>

#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/record/record.h"
#include "server/jobs/state.h"

enum { JOB_ID_SIZE = 37, JOB_KIND_MAX = 64 };

/* A job as it is shown. Views live as long as whoever has it says. */
struct pawl__job {
    pawl_view job_id;
    pawl_view kind;
    enum pawl__job_state state;
    pawl_view parameters; /* JSON */
    uint64_t done;
    uint64_t total;   /* 0: nobody knows */
    pawl_view result; /* JSON; empty: none */
    pawl_view code;   /* why it failed: the name of a status; empty: it did not */
    pawl_view detail;
    bool advised; /* the detail ends with what to do */
    int64_t created_at_us;
    int64_t started_at_us;
    int64_t ended_at_us;
};
extern const struct pawl__record pawl__serve_job_record;

struct pawl__job_store;

/* `path` names the file; NULL: in memory, for a node that has none. Jobs that a process before this one did not end
 * are interrupted from here on. BUSY: another process has it. */
PAWL_MUST_USE pawl_status pawl__serve_job_store_open(const char *path,
                                                     struct pawl__clock *clock,
                                                     struct pawl__job_store **ret_store,
                                                     pawl_error *reterr);
DEFINE_AUTO(struct pawl__job_store *, pawl__serve_job_store_close)

/* Any thread. What they return is on disk. */
PAWL_MUST_USE pawl_status pawl__serve_job_store_add(struct pawl__job_store *store,
                                                    const struct pawl__job *job,
                                                    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__serve_job_store_start(struct pawl__job_store *store,
                                                      const struct pawl__job *job,
                                                      pawl_error *reterr);
/* Also forgets the oldest of those that ended, so that `history_max` stay. */
PAWL_MUST_USE pawl_status pawl__serve_job_store_end(struct pawl__job_store *store,
                                                    const struct pawl__job *job,
                                                    size_t history_max,
                                                    pawl_error *reterr);

/* The views live until the visitor returns. Anything but PAWL_OK from it ends the walk and is returned. */
typedef pawl_status pawl__job_visitor(void *context,
                                      const struct pawl__job *job,
                                      pawl_error *reterr);
/* NOT_FOUND: there is none of this id. */
PAWL_MUST_USE pawl_status pawl__serve_job_store_get(struct pawl__job_store *store,
                                                    pawl_view job_id,
                                                    pawl__job_visitor *visitor,
                                                    void *context,
                                                    pawl_error *reterr);
/* The newest first, from this id on (empty: all). */
PAWL_MUST_USE pawl_status pawl__serve_job_store_list(struct pawl__job_store *store,
                                                     pawl_view from,
                                                     size_t limit,
                                                     pawl__job_visitor *visitor,
                                                     void *context,
                                                     pawl_error *reterr);

#endif
