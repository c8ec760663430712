#include "server/jobs/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/thread/thread.h"
#include "server/jobs/statements.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/schemas.h"
#include "store/sqlite/sqlite.h"

enum { BUSY_MS_MAX = 5000 };

static const struct pawl__field fields[] = {
    { FIELD(struct pawl__job, job_id, FIELD_TEXT), .flags = FIELD_SET, .about = "Its name" },
    { FIELD(struct pawl__job, kind, FIELD_TEXT), .flags = FIELD_SET, .about = "What it does" },
    { FIELD(struct pawl__job, state, FIELD_ENUM),
      .flags = FIELD_SET,
      .names = pawl__serve_job_states,
      .about = "Where it is: done, failed, cancelled and interrupted are ends" },
    { FIELD(struct pawl__job, parameters, FIELD_JSON),
      .flags = FIELD_SET,
      .about = "What it was asked" },
    { FIELD(struct pawl__job, done, FIELD_UINT64), .flags = FIELD_SET, .about = "How far it is" },
    { FIELD(struct pawl__job, total, FIELD_UINT64),
      .flags = FIELD_SET,
      .about = "How far it goes, about; 0 when nobody knows" },
    { FIELD(struct pawl__job, result, FIELD_JSON), .about = "What it found, once it is done" },
    { FIELD(struct pawl__job, code, FIELD_TEXT), .about = "Why it failed: the code of a problem" },
    { FIELD(struct pawl__job, detail, FIELD_TEXT), .about = "The same for people" },
    { FIELD(struct pawl__job, advised, FIELD_BOOL),
      .flags = FIELD_SET,
      .about = "Whether the detail ends with what to do" },
    { FIELD_AS("created_at", struct pawl__job, created_at_us, FIELD_TIME), .flags = FIELD_SET },
    { FIELD_AS("started_at", struct pawl__job, started_at_us, FIELD_TIME) },
    { FIELD_AS("ended_at", struct pawl__job, ended_at_us, FIELD_TIME) },
};
const struct pawl__record pawl__serve_job_record = RECORD("Job", struct pawl__job, fields);

struct pawl__job_store {
    struct pawl__lock lock; /* covers the handle */
    struct pawl__sqlite *db;
    struct pawl__store_lock *owner;
    struct pawl__clock *clock;
};

/* --- opening --- */

static pawl_status open_db(struct pawl__job_store *store, const char *path, pawl_error *reterr)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;

    options.mode = PAWL__SQLITE_CREATE;
    options.in_memory = path == NULL;
    options.application_id = PAWL__JOBS_APPLICATION_ID;
    options.schema = &pawl__schema_sqlite_jobs;
    options.statements = pawl__job_sql_statements;
    options.statement_count = JOB_SQL_COUNT;
    options.busy_ms_max = BUSY_MS_MAX;
    options.clock = store->clock;
    return pawl__sqlite_open(path == NULL ? "pawl-jobs" : path, &options, &store->db, reterr);
}

static pawl_status interrupt_unfinished(struct pawl__job_store *store, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_INTERRUPT);

    pawl__sqlite_bind_i64(&use, 1, PAWL__JOB_INTERRUPTED);
    pawl__sqlite_bind_text(&use, 2, pawl_view_of("INTERRUPTED"));
    pawl__sqlite_bind_text(&use, 3, pawl_view_of("the node ended while the job ran"));
    pawl__sqlite_bind_i64(&use, 4, pawl__wall_us(store->clock));
    return pawl__sqlite_run(&use, reterr);
}

pawl_status pawl__serve_job_store_open(const char *path,
                                       struct pawl__clock *clock,
                                       struct pawl__job_store **ret_store,
                                       pawl_error *reterr)
{
    AUTO(pawl__serve_job_store_close_p) struct pawl__job_store *store = calloc(1, sizeof(*store));

    TRY(pawl__check_memory(store, "jobs", reterr));
    pawl__lock_init(&store->lock);
    store->clock = pawl__clock_or_real(clock);
    if (path != NULL) { /* a second node would take the first one's jobs for those of a dead one */
        TRY(pawl__store_lock_beside(path, &store->owner, reterr));
    }
    TRY(open_db(store, path, reterr));
    TRY(interrupt_unfinished(store, reterr));
    *ret_store = STEAL(store);
    return PAWL_OK;
}

void pawl__serve_job_store_close(struct pawl__job_store *store)
{
    if (store != NULL) {
        pawl__sqlite_close(store->db);
        pawl__store_lock_release(store->owner);
        pawl__lock_done(&store->lock);
        free(store);
    }
}

/* --- writing --- */

static void bind_optional(struct pawl__sqlite_stmt *use, int parameter, pawl_view text)
{
    if (text.len == 0) {
        pawl__sqlite_bind_null(use, parameter);
    } else {
        pawl__sqlite_bind_text(use, parameter, text);
    }
}

static pawl_status add_locked(struct pawl__job_store *store,
                              const struct pawl__job *job,
                              pawl_error *reterr) REQUIRES_LOCK(store->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_ADD);

    pawl__sqlite_bind_text(&use, 1, job->job_id);
    pawl__sqlite_bind_text(&use, 2, job->kind);
    pawl__sqlite_bind_i64(&use, 3, job->state);
    pawl__sqlite_bind_text(&use, 4, job->parameters);
    pawl__sqlite_bind_i64(&use, 5, job->created_at_us);
    return pawl__sqlite_run(&use, reterr);
}

static pawl_status start_locked(struct pawl__job_store *store,
                                const struct pawl__job *job,
                                pawl_error *reterr) REQUIRES_LOCK(store->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_START);

    pawl__sqlite_bind_text(&use, 1, job->job_id);
    pawl__sqlite_bind_i64(&use, 2, job->state);
    pawl__sqlite_bind_i64(&use, 3, job->started_at_us);
    return pawl__sqlite_run(&use, reterr);
}

static pawl_status end_locked(struct pawl__job_store *store,
                              const struct pawl__job *job,
                              pawl_error *reterr) REQUIRES_LOCK(store->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_END);

    pawl__sqlite_bind_text(&use, 1, job->job_id);
    pawl__sqlite_bind_i64(&use, 2, job->state);
    pawl__sqlite_bind_i64(&use, 3, (int64_t)job->done);
    pawl__sqlite_bind_i64(&use, 4, (int64_t)job->total);
    bind_optional(&use, 5, job->result);
    bind_optional(&use, 6, job->code);
    bind_optional(&use, 7, job->detail);
    pawl__sqlite_bind_i64(&use, 8, job->advised);
    pawl__sqlite_bind_i64(&use, 9, job->ended_at_us);
    return pawl__sqlite_run(&use, reterr);
}

static pawl_status prune_locked(struct pawl__job_store *store,
                                size_t history_max,
                                pawl_error *reterr) REQUIRES_LOCK(store->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_PRUNE);

    pawl__sqlite_bind_i64(&use, 1, (int64_t)history_max);
    return pawl__sqlite_run(&use, reterr);
}

pawl_status pawl__serve_job_store_add(struct pawl__job_store *store,
                                      const struct pawl__job *job,
                                      pawl_error *reterr)
{
    pawl__lock(&store->lock);
    pawl_status status = add_locked(store, job, reterr);
    pawl__unlock(&store->lock);
    return status;
}

pawl_status pawl__serve_job_store_start(struct pawl__job_store *store,
                                        const struct pawl__job *job,
                                        pawl_error *reterr)
{
    pawl__lock(&store->lock);
    pawl_status status = start_locked(store, job, reterr);
    pawl__unlock(&store->lock);
    return status;
}

pawl_status pawl__serve_job_store_end(struct pawl__job_store *store,
                                      const struct pawl__job *job,
                                      size_t history_max,
                                      pawl_error *reterr)
{
    REQUIRE(pawl__serve_job_has_ended(job->state));
    pawl__lock(&store->lock);
    pawl_status status = end_locked(store, job, reterr);
    if (status == PAWL_OK) {
        status = prune_locked(store, history_max, reterr);
    }
    pawl__unlock(&store->lock);
    return status;
}

/* --- reading --- */

/* The schema checks it, but for a program that tells SQLite not to. */
static pawl_status read_state(struct pawl__sqlite_stmt *row,
                              enum pawl__job_state *ret_state,
                              pawl_error *reterr)
{
    int64_t state = pawl__sqlite_i64(row, 2);

    if (state < PAWL__JOB_QUEUED || state > PAWL__JOB_INTERRUPTED) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "the row of job '%.*s' is damaged: its state is %lld",
                          VIEW_ARGS(pawl__sqlite_text(row, 0)),
                          (long long)state);
    }
    *ret_state = (enum pawl__job_state)state;
    return PAWL_OK;
}

static pawl_status visit_rows(struct pawl__sqlite_stmt *row,
                              pawl__job_visitor *visitor,
                              void *context,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    while (pawl__sqlite_more(row, &status, reterr)) {
        enum pawl__job_state state = PAWL__JOB_QUEUED;

        TRY(read_state(row, &state, reterr));
        const struct pawl__job job = {
            .job_id = pawl__sqlite_text(row, 0),
            .kind = pawl__sqlite_text(row, 1),
            .state = state,
            .parameters = pawl__sqlite_text(row, 3),
            .done = (uint64_t)pawl__sqlite_i64(row, 4),
            .total = (uint64_t)pawl__sqlite_i64(row, 5),
            .result = pawl__sqlite_text(row, 6),
            .code = pawl__sqlite_text(row, 7),
            .detail = pawl__sqlite_text(row, 8),
            .advised = pawl__sqlite_i64(row, 9) != 0,
            .created_at_us = pawl__sqlite_i64(row, 10),
            .started_at_us = pawl__sqlite_i64(row, 11),
            .ended_at_us = pawl__sqlite_i64(row, 12),
        };

        (*ret_count)++;
        TRY(visitor(context, &job, reterr));
    }
    return status;
}

static pawl_status get_locked(struct pawl__job_store *store,
                              pawl_view job_id,
                              pawl__job_visitor *visitor,
                              void *context,
                              pawl_error *reterr) REQUIRES_LOCK(store->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_GET);
    size_t count = 0;

    pawl__sqlite_bind_text(&use, 1, job_id);
    TRY(visit_rows(&use, visitor, context, &count, reterr));
    return count > 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOT_FOUND, "there is no job '%.*s'", VIEW_ARGS(job_id));
}

static pawl_status list_locked(struct pawl__job_store *store,
                               pawl_view from,
                               size_t limit,
                               pawl__job_visitor *visitor,
                               void *context,
                               pawl_error *reterr) REQUIRES_LOCK(store->lock)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt use = pawl__sqlite_use(store->db, JOB_SQL_JOB_LIST);
    size_t count = 0;

    /* No id begins with a letter beyond f. */
    pawl__sqlite_bind_text(&use, 1, from.len == 0 ? pawl_view_of("g") : from);
    pawl__sqlite_bind_i64(&use, 2, (int64_t)limit);
    return visit_rows(&use, visitor, context, &count, reterr);
}

pawl_status pawl__serve_job_store_get(struct pawl__job_store *store,
                                      pawl_view job_id,
                                      pawl__job_visitor *visitor,
                                      void *context,
                                      pawl_error *reterr)
{
    pawl__lock(&store->lock);
    pawl_status status = get_locked(store, job_id, visitor, context, reterr);
    pawl__unlock(&store->lock);
    return status;
}

pawl_status pawl__serve_job_store_list(struct pawl__job_store *store,
                                       pawl_view from,
                                       size_t limit,
                                       pawl__job_visitor *visitor,
                                       void *context,
                                       pawl_error *reterr)
{
    pawl__lock(&store->lock);
    pawl_status status = list_locked(store, from, limit, visitor, context, reterr);
    pawl__unlock(&store->lock);
    return status;
}
