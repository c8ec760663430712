#include "server/jobs/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/uuid.h"
#include "base/log/log.h"
#include "base/os/failpoint.h"
#include "base/thread/shutdown.h"

enum { PARAMETERS_BYTES_MAX = 64 << 10 };

/* One that is queued or runs; one whose end could not be written stays here, too. */
struct pawl__job_run {
    struct pawl__jobs *jobs;
    struct pawl__job_run *next;
    const struct pawl__job_binding *binding;
    char job_id[JOB_ID_SIZE];
    char *parameters;
    json_t *json; /* what `value` points into */
    struct pawl__arena arena;
    void *value; /* of the kind's record */
    struct pawl__cancel cancel;

    /* covered by jobs->lock */
    enum pawl__job_state state;
    uint64_t done;
    uint64_t total;
    int64_t started_at_us;
    int64_t ended_at_us;
    pawl_error error;
    struct pawl__buf result;
};

struct pawl__jobs {
    struct pawl__lock lock; /* covers `live` and what runs say of themselves */
    struct pawl__cond changed;
    struct pawl__job_run *live; /* in the order of their start */
    size_t live_count;
    bool stopping;

    struct pawl__cancel cancel; /* of all */
    struct pawl__job_store *store;
    const struct pawl__job_binding *bindings;
    size_t binding_count;
    struct pawl__clock *clock;
    struct pawl__thread threads[JOBS_RUNNING_MAX];
};

/* --- one job --- */

static void run_free(struct pawl__job_run *run)
{
    if (run != NULL) {
        pawl__cancel_done(&run->cancel);
        pawl__arena_done(&run->arena);
        json_decref(run->json);
        free(run->value);
        free(run->parameters);
        pawl__buf_done(&run->result);
        free(run);
    }
}
DEFINE_AUTO(struct pawl__job_run *, run_free)

void pawl__serve_job_progress(struct pawl__job_run *run, uint64_t done, uint64_t total)
{
    pawl__lock(&run->jobs->lock);
    run->done = done;
    run->total = total;
    pawl__unlock(&run->jobs->lock);
}

struct pawl__cancel *pawl__serve_job_cancelled(struct pawl__job_run *run)
{
    return &run->cancel;
}

static void end_locked(struct pawl__jobs *jobs,
                       struct pawl__job_run *run,
                       enum pawl__job_command command) REQUIRES_LOCK(jobs->lock)
{
    bool allowed = pawl__serve_job_next(run->state, command, &run->state);

    REQUIRE(allowed && pawl__serve_job_has_ended(run->state));
    run->ended_at_us = pawl__wall_us(jobs->clock);
    if (run->state == PAWL__JOB_DONE) {
        run->done = run->total; /* the last step is not always reported */
    }
    if (run->state == PAWL__JOB_INTERRUPTED) {
        (void)pawl__fail(&run->error, PAWL_CANCELLED, "the node stopped while the job ran");
    }
}

static pawl_view code_of(const struct pawl__job_run *run)
{
    const bool interrupted = run->state == PAWL__JOB_INTERRUPTED;

    return run->error.status == PAWL_OK
               ? (pawl_view){ NULL, 0 }
               : pawl_view_of(interrupted ? "INTERRUPTED" : pawl_status_name(run->error.status));
}

/* What a run knows of itself, over what is stored. */
static void show(const struct pawl__job_run *run, struct pawl__job *job)
{
    job->state = run->state;
    job->done = run->done;
    job->total = run->total;
    job->started_at_us = run->started_at_us;
    job->ended_at_us = run->ended_at_us;
    job->result =
        run->state == PAWL__JOB_DONE ? pawl__buf_view(&run->result) : (pawl_view){ NULL, 0 };
    job->code = code_of(run);
    job->detail = pawl_view_of(run->error.message);
    job->advised = run->error.advised;
}

static struct pawl__job_run *find_locked(struct pawl__jobs *jobs, pawl_view job_id)
    REQUIRES_LOCK(jobs->lock)
{
    struct pawl__job_run *run = jobs->live;

    while (run != NULL && !pawl__view_is(job_id, run->job_id)) {
        run = run->next;
    }
    return run;
}

static void remove_locked(struct pawl__jobs *jobs, struct pawl__job_run *run)
    REQUIRES_LOCK(jobs->lock)
{
    struct pawl__job_run **at = &jobs->live;

    while (*at != run) {
        at = &(*at)->next;
    }
    *at = run->next;
    jobs->live_count--;
}

/* --- running --- */

/* Nobody changes one that has ended. When its end cannot be written it stays in memory, for those who ask. */
static void write_end(struct pawl__jobs *jobs, struct pawl__job_run *run)
{
    struct pawl__job job = { .job_id = pawl_view_of(run->job_id) };
    pawl_error error = PAWL_ERROR_INIT;

    show(run, &job);
    if (pawl__serve_job_store_end(jobs->store, &job, JOBS_HISTORY_MAX, &error) != PAWL_OK) {
        LOG_WARNING("the end of a job could not be written; after a restart it looks interrupted",
                    LOG_TEXT("job", run->job_id),
                    LOG_TEXT("error", error.message));
        return;
    }
    pawl__lock(&jobs->lock);
    remove_locked(jobs, run);
    pawl__unlock(&jobs->lock);
    run_free(run);
}

static void write_start(struct pawl__jobs *jobs, const struct pawl__job_run *run)
{
    const struct pawl__job job = { .job_id = pawl_view_of(run->job_id),
                                   .state = PAWL__JOB_RUNNING,
                                   .started_at_us = run->started_at_us };
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl__serve_job_store_start(jobs->store, &job, &error) != PAWL_OK) {
        LOG_WARNING("the start of a job could not be written; it runs",
                    LOG_TEXT("job", run->job_id),
                    LOG_TEXT("error", error.message));
    }
}

static enum pawl__job_command command_of(pawl_status status)
{
    return status == PAWL_OK          ? PAWL__JOB_SUCCEED
           : status == PAWL_CANCELLED ? PAWL__JOB_GIVE_UP
                                      : PAWL__JOB_FAIL;
}

static pawl_status call_kind(struct pawl__job_run *run,
                             struct pawl__buf *result,
                             pawl_error *reterr)
{
    const struct pawl__job_kind *kind = run->binding->kind;

    FAILPOINT("node.job.run.before", reterr);
    TRY(kind->run(*run->binding->state, run, run->value, result, reterr));
    return pawl__buf_check(result, "the result", reterr);
}

static void run_one(struct pawl__jobs *jobs, struct pawl__job_run *run)
{
    struct pawl__buf result = BUF_INIT(JOB_RESULT_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;

    write_start(jobs, run);
    pawl_status status = call_kind(run, &result, &error);
    pawl__lock(&jobs->lock);
    run->error = error;
    run->result = result;
    end_locked(jobs, run, command_of(status));
    pawl__unlock(&jobs->lock);
    write_end(jobs, run);
}

static struct pawl__job_run *next_locked(struct pawl__jobs *jobs) REQUIRES_LOCK(jobs->lock)
{
    struct pawl__job_run *run = jobs->live;

    while (run != NULL && run->state != PAWL__JOB_QUEUED) {
        run = run->next;
    }
    return run;
}

static void run_jobs(void *context)
{
    struct pawl__jobs *jobs = context;

    pawl__lock(&jobs->lock);
    while (!jobs->stopping) {
        struct pawl__job_run *run = next_locked(jobs);

        if (run == NULL) {
            pawl__cond_wait(&jobs->changed, &jobs->lock);
            continue;
        }
        bool allowed = pawl__serve_job_next(run->state, PAWL__JOB_START, &run->state);
        REQUIRE(allowed);
        run->started_at_us = pawl__wall_us(jobs->clock);
        pawl__unlock(&jobs->lock);
        run_one(jobs, run);
        pawl__lock(&jobs->lock);
    }
    pawl__unlock(&jobs->lock);
}

/* --- opening and closing --- */

pawl_status pawl__serve_jobs_open(struct pawl__job_store *store,
                                  const struct pawl__job_binding *bindings,
                                  size_t count,
                                  struct pawl__clock *clock,
                                  struct pawl__jobs **ret_jobs,
                                  pawl_error *reterr)
{
    struct pawl__jobs *jobs = calloc(1, sizeof(*jobs));
    pawl_status status = pawl__check_memory(jobs, "jobs", reterr);

    if (status != PAWL_OK) {
        pawl__serve_job_store_close(store);
        return status;
    }
    pawl__lock_cond_init(&jobs->lock, &jobs->changed);
    pawl__cancel_init(&jobs->cancel, NULL);
    jobs->store = store;
    jobs->bindings = bindings;
    jobs->binding_count = count;
    jobs->clock = pawl__clock_or_real(clock);
    for (size_t i = 0; i < JOBS_RUNNING_MAX && status == PAWL_OK; i++) {
        status = pawl__thread_start(&jobs->threads[i], "pawl-job", run_jobs, jobs, reterr);
    }
    if (status != PAWL_OK) {
        (void)!pawl__serve_jobs_close(jobs, INT64_MAX, NULL);
        return status;
    }
    *ret_jobs = jobs;
    return PAWL_OK;
}

void pawl__serve_jobs_cancel(struct pawl__jobs *jobs)
{
    if (jobs != NULL) {
        pawl__lock(&jobs->lock);
        jobs->stopping = true;
        pawl__cond_broadcast(&jobs->changed);
        pawl__unlock(&jobs->lock);
        pawl__cancel_now(&jobs->cancel);
    }
}

/* No thread is left. */
static void end_queued(struct pawl__jobs *jobs)
{
    for (struct pawl__job_run *run = jobs->live, *next = NULL; run != NULL; run = next) {
        next = run->next;
        if (run->state == PAWL__JOB_QUEUED) {
            pawl__lock(&jobs->lock);
            end_locked(jobs, run, PAWL__JOB_INTERRUPT);
            pawl__unlock(&jobs->lock);
            write_end(jobs, run);
        }
    }
    while (jobs->live != NULL) { /* whose end could not be written */
        struct pawl__job_run *run = jobs->live;

        jobs->live = run->next;
        run_free(run);
    }
}

pawl_status pawl__serve_jobs_close(struct pawl__jobs *jobs, int64_t deadline_ns, pawl_error *reterr)
{
    struct pawl__stop stops[JOBS_RUNNING_MAX];

    if (jobs == NULL) {
        return PAWL_OK;
    }
    for (size_t i = 0; i < JOBS_RUNNING_MAX; i++) {
        stops[i] = (struct pawl__stop){ "a job", &jobs->threads[i] };
    }
    pawl__serve_jobs_cancel(jobs);
    TRY(pawl__stop_threads(NULL, stops, JOBS_RUNNING_MAX, deadline_ns, reterr));
    end_queued(jobs);
    pawl__serve_job_store_close(jobs->store);
    pawl__cancel_done(&jobs->cancel);
    pawl__lock_cond_done(&jobs->lock, &jobs->changed);
    free(jobs);
    return PAWL_OK;
}

/* --- starting --- */

static const struct pawl__job_binding *find_binding(const struct pawl__jobs *jobs, pawl_view name)
{
    for (size_t i = 0; i < jobs->binding_count; i++) {
        if (pawl__view_is(name, jobs->bindings[i].kind->name)) {
            return &jobs->bindings[i];
        }
    }
    return NULL;
}

const struct pawl__job_kind *pawl__serve_jobs_kind(const struct pawl__jobs *jobs, pawl_view name)
{
    const struct pawl__job_binding *binding = find_binding(jobs, name);

    return binding == NULL ? NULL : binding->kind;
}

static pawl_status unknown_kind(const struct pawl__jobs *jobs, pawl_view kind, pawl_error *reterr)
{
    char space[PAWL_ERROR_MESSAGE_SIZE / 2] = "";
    struct pawl__buf known = BUF_OVER(space);

    for (size_t i = 0; i < jobs->binding_count; i++) {
        pawl__buf_add_format(&known, i == 0 ? "%s" : ", %s", jobs->bindings[i].kind->name);
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "there is no kind of job '%.*s': there are %s",
                      VIEW_ARGS(((pawl_view){ kind.data, MIN(kind.len, (size_t)JOB_KIND_MAX) })),
                      space);
}

/* A copy of the parameters, which live longer than the request. */
static pawl_status copy_parameters(struct pawl__job_run *run,
                                   struct pawl__json_node parameters,
                                   pawl_error *reterr)
{
    const struct pawl__record *record = run->binding->kind->parameters;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(PARAMETERS_BYTES_MAX);

    run->json = json_deep_copy(parameters.value);
    run->value = calloc(1, record->size);
    if (run->json == NULL || run->value == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a job");
    }
    TRY(pawl__record_read(
        record, pawl__json_root(run->json, parameters.name), &run->arena, run->value, reterr));
    TRY(pawl__json_dump(run->json, &text, reterr));
    return pawl__buf_hand_out(&text, "the parameters", &run->parameters, NULL, reterr);
}

static pawl_status new_run(struct pawl__jobs *jobs,
                           const struct pawl__job_binding *binding,
                           struct pawl__json_node parameters,
                           struct pawl__job_run **ret_run,
                           pawl_error *reterr)
{
    AUTO(run_free_p) struct pawl__job_run *run = calloc(1, sizeof(*run));
    const struct pawl__job_kind *kind = binding->kind;
    struct pawl__uuid id;

    TRY(pawl__check_memory(run, "a job", reterr));
    run->jobs = jobs;
    run->binding = binding;
    pawl__cancel_init(&run->cancel, &jobs->cancel);
    TRY(copy_parameters(run, parameters, reterr));
    TRY(kind->check == NULL ? PAWL_OK : kind->check(*binding->state, run->value, reterr));
    TRY(pawl__uuid_next(pawl__uuid_process(), &id, reterr));
    pawl__uuid_text(&id, run->job_id);
    *ret_run = STEAL(run);
    return PAWL_OK;
}

static pawl_status check_room_locked(const struct pawl__jobs *jobs, pawl_error *reterr)
    REQUIRES_LOCK(jobs->lock)
{
    if (jobs->stopping) {
        return pawl__fail(reterr, PAWL_CLOSED, "the node is stopping");
    }
    return jobs->live_count < JOBS_RUNNING_MAX + JOBS_QUEUED_MAX
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_BUSY,
                            "%d jobs wait already: cancel one, or try again when one has ended",
                            JOBS_QUEUED_MAX);
}

/* Stored before it may run. */
static pawl_status add_run(struct pawl__jobs *jobs, struct pawl__job_run *run, pawl_error *reterr)
{
    const struct pawl__job job = { .job_id = pawl_view_of(run->job_id),
                                   .kind = pawl_view_of(run->binding->kind->name),
                                   .state = PAWL__JOB_QUEUED,
                                   .parameters = pawl_view_of(run->parameters),
                                   .created_at_us = pawl__wall_us(jobs->clock) };

    pawl__lock(&jobs->lock);
    pawl_status status = check_room_locked(jobs, reterr);
    pawl__unlock(&jobs->lock);
    TRY(status);
    TRY(pawl__serve_job_store_add(jobs->store, &job, reterr));
    struct pawl__job_run **end = &jobs->live;
    pawl__lock(&jobs->lock);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = run;
    jobs->live_count++;
    pawl__cond_signal(&jobs->changed);
    pawl__unlock(&jobs->lock);
    return PAWL_OK;
}

pawl_status pawl__serve_jobs_start(struct pawl__jobs *jobs,
                                   pawl_view kind,
                                   struct pawl__json_node parameters,
                                   char ret_id[JOB_ID_SIZE],
                                   pawl_error *reterr)
{
    const struct pawl__job_binding *binding = find_binding(jobs, kind);
    AUTO(run_free_p) struct pawl__job_run *run = NULL;
    char job_id[JOB_ID_SIZE];

    if (binding == NULL) {
        return unknown_kind(jobs, kind, reterr);
    }
    TRY(new_run(jobs, binding, parameters, &run, reterr));
    memcpy(job_id, run->job_id, sizeof(job_id));
    TRY(add_run(jobs, run, reterr));
    run = NULL; /* the threads have it */
    memcpy(ret_id, job_id, sizeof(job_id));
    return PAWL_OK;
}

/* --- cancelling --- */

static pawl_status has_ended(void *context, const struct pawl__job *job, pawl_error *reterr)
{
    (void)context;
    return pawl__fail(reterr,
                      PAWL_CONFLICT,
                      pawl__serve_job_has_ended(job->state)
                          ? "the job has ended: it is %s"
                          : "the job is stored as %s, and this node does not run it",
                      pawl__serve_job_states[job->state]);
}

/* A queued one is nobody else's once it has ended; one that runs is told, under the lock: it might be gone after it. */
static struct pawl__job_run *cancel_locked(struct pawl__jobs *jobs,
                                           struct pawl__job_run *run,
                                           bool *ret_told) REQUIRES_LOCK(jobs->lock)
{
    if (run->state == PAWL__JOB_QUEUED) {
        end_locked(jobs, run, PAWL__JOB_CANCEL);
        return run;
    }
    *ret_told = pawl__serve_job_next(run->state, PAWL__JOB_CANCEL, &run->state);
    if (*ret_told) {
        pawl__cancel_now(&run->cancel);
    }
    return NULL;
}

pawl_status pawl__serve_jobs_stop(struct pawl__jobs *jobs, pawl_view job_id, pawl_error *reterr)
{
    struct pawl__job_run *ended = NULL;
    bool told = false;

    pawl__lock(&jobs->lock);
    struct pawl__job_run *run = find_locked(jobs, job_id);
    if (run != NULL) {
        ended = cancel_locked(jobs, run, &told);
    }
    pawl__unlock(&jobs->lock);
    if (ended != NULL) {
        write_end(jobs, ended);
        return PAWL_OK;
    }
    return told ? PAWL_OK : pawl__serve_jobs_get(jobs, job_id, has_ended, NULL, reterr);
}

/* --- looking --- */

struct look {
    struct pawl__jobs *jobs;
    pawl__job_visitor *visitor;
    void *context;
};

/* Under the store's lock: nobody who has `jobs->lock` waits for that. */
static pawl_status visit_live(void *context, const struct pawl__job *stored, pawl_error *reterr)
{
    struct look *look = context;
    struct pawl__job job = *stored;
    AUTO(pawl__buf_done) struct pawl__buf result = BUF_INIT(JOB_RESULT_BYTES_MAX);
    char detail[PAWL_ERROR_MESSAGE_SIZE] = "";

    pawl__lock(&look->jobs->lock);
    const struct pawl__job_run *run = find_locked(look->jobs, stored->job_id);
    if (run != NULL && stored->ended_at_us == 0) {
        show(run, &job);
        pawl__buf_add(&result, job.result);
        job.result = pawl__buf_view(&result);
        (void)snprintf(detail, sizeof(detail), "%s", run->error.message);
        job.detail = pawl_view_of(detail);
    }
    pawl__unlock(&look->jobs->lock);
    return look->visitor(look->context, &job, reterr);
}

pawl_status pawl__serve_jobs_get(struct pawl__jobs *jobs,
                                 pawl_view job_id,
                                 pawl__job_visitor *visitor,
                                 void *context,
                                 pawl_error *reterr)
{
    struct look look = { jobs, visitor, context };

    return pawl__serve_job_store_get(jobs->store, job_id, visit_live, &look, reterr);
}

pawl_status pawl__serve_jobs_list(struct pawl__jobs *jobs,
                                  pawl_view from,
                                  size_t limit,
                                  pawl__job_visitor *visitor,
                                  void *context,
                                  pawl_error *reterr)
{
    struct look look = { jobs, visitor, context };

    return pawl__serve_job_store_list(jobs->store, from, limit, visit_live, &look, reterr);
}
