/* /v1/jobs: starting, listing, looking at and cancelling the jobs of all parts. */
#include "server/jobs/part.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "server/node_internal.h"
#include "server/page.h"
#include "server/tokens/store.h"

enum { CLOSE_MS_MIN = 1000, KINDS_MAX = 64 };

struct jobs_part {
    struct pawl__jobs *jobs;
    struct pawl__serve_node *node;
    struct pawl__clock *clock;
    struct pawl__job_binding bindings[KINDS_MAX];
    size_t binding_count;
};

/* --- beginning and end --- */

static void bind_kinds(struct jobs_part *part, const struct pawl__serve_node *node)
{
    for (size_t i = 0; i < node->part_count; i++) {
        for (size_t k = 0; k < node->parts[i]->job_count; k++) {
            REQUIRE(part->binding_count < KINDS_MAX);
            part->bindings[part->binding_count++] =
                (struct pawl__job_binding){ &node->parts[i]->jobs[k], &node->states[i] };
        }
    }
}

/* Nodes that share a database may share a data directory, too: the second one keeps its jobs in memory. */
static pawl_status open_store(const struct pawl__serve_host *host,
                              struct pawl__job_store **ret_store,
                              pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__serve_job_store_open(host->options->jobs, host->clock, ret_store, &error);

    if (status == PAWL_BUSY) {
        LOG_WARNING("another node keeps its jobs here: those of this one end with it",
                    LOG_TEXT("error", error.message));
        return pawl__serve_job_store_open(NULL, host->clock, ret_store, reterr);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static pawl_status open_part(const struct pawl__serve_host *host,
                             void **ret_state,
                             pawl_error *reterr)
{
    struct jobs_part *part = calloc(1, sizeof(*part));
    struct pawl__job_store *store = NULL;
    pawl_status status = pawl__check_memory(part, "jobs", reterr);

    if (status == PAWL_OK) {
        part->clock = host->clock;
        part->node = host->node;
        bind_kinds(part, host->node);
        status = open_store(host, &store, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__serve_jobs_open(
            store, part->bindings, part->binding_count, host->clock, &part->jobs, reterr);
    }
    if (status != PAWL_OK) {
        free(part);
        return status;
    }
    *ret_state = part;
    return PAWL_OK;
}

static void cancel_part(void *state)
{
    pawl__serve_jobs_cancel(((struct jobs_part *)state)->jobs);
}

static pawl_status close_part(void *state, int64_t deadline_ns, pawl_error *reterr)
{
    struct jobs_part *part = state;
    int64_t least_ns = pawl__monotonic_ns(part->clock) + CLOSE_MS_MIN * NS_PER_MS;

    TRY(pawl__serve_jobs_close(part->jobs, MAX(deadline_ns, least_ns), reterr));
    free(part);
    return PAWL_OK;
}

/* --- what is said and answered --- */

struct job_request {
    pawl_view kind;
    pawl_view parameters;
};
static const struct pawl__field request_fields[] = {
    { FIELD(struct job_request, kind, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .about = "What to do: apps.verify, apps.certificate, apps.rebuild." },
    { FIELD(struct job_request, parameters, FIELD_JSON),
      .flags = FIELD_OBJECT,
      .about = "Those of the kind." },
};
static const struct pawl__record request_record =
    RECORD("JobRequest", struct job_request, request_fields);

struct job_path {
    pawl_view job;
};
static const struct pawl__field path_fields[] = {
    { FIELD(struct job_path, job, FIELD_TEXT), .about = "The job's id." },
};
static const struct pawl__record path_record = RECORD("JobPath", struct job_path, path_fields);

struct job_page {
    pawl_view from;
    uint64_t limit;
};
static const struct job_page first_page = { .limit = PAGE_LIMIT_DEFAULT };
static const struct pawl__field page_request_fields[] = {
    { FIELD(struct job_page, from, FIELD_TEXT), .about = PAGE_FROM_ABOUT },
    PAGE_LIMIT_FIELD(struct job_page),
};
static const struct pawl__record page_request_record =
    RECORD_FROM("JobPageRequest", struct job_page, page_request_fields, &first_page);

static const struct pawl__field page_fields[] = PAGE_FIELDS(&pawl__serve_job_record);
static const struct pawl__record page_record =
    RECORD("JobPage", struct pawl__serve_page_shape, page_fields);

/* The detail of an inner problem may name files: it is for whoever has those. */
static struct pawl__job shown(const struct pawl__serve_call *call, const struct pawl__job *job)
{
    struct pawl__job shown = *job;

    for (int i = PAWL_FAILED; i <= PAWL_CLOSED && !pawl__http_is_trusted(call->request); i++) {
        pawl_status status = (pawl_status)i;

        if (pawl__view_is(job->code, pawl_status_name(status))
            && pawl__http_problem_of(status)->inner) {
            shown.detail = pawl_view_of(pawl_status_text(status));
        }
    }
    return shown;
}

struct answering {
    struct pawl__serve_call *call;
    unsigned code;
};

static pawl_status answer_job(void *context, const struct pawl__job *job, pawl_error *reterr)
{
    const struct answering *answering = context;
    const struct pawl__job value = shown(answering->call, job);

    (void)reterr;
    pawl__serve_answer(answering->call, answering->code, &value);
    return PAWL_OK;
}

static pawl_status answer_with(struct pawl__serve_call *call,
                               pawl_view job_id,
                               unsigned code,
                               pawl_error *reterr)
{
    struct jobs_part *part = call->part;
    struct answering answering = { call, code };

    return pawl__serve_jobs_get(part->jobs, job_id, answer_job, &answering, reterr);
}

/* --- handlers --- */

/* The kind says what may start it; false: the request has been answered. */
static bool may_start(struct pawl__serve_call *call, pawl_view kind)
{
    const struct jobs_part *part = call->part;
    const struct pawl__job_kind *known = pawl__serve_jobs_kind(part->jobs, kind);

    return known == NULL || pawl__serve_authorize(call->request, known->scope, part->node);
}

static pawl_status start(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct jobs_part *part = call->part;
    const struct job_request *request = call->body;
    char location[JOB_ID_SIZE + 16];
    char job_id[JOB_ID_SIZE];
    json_auto_t *parameters = NULL;

    if (!may_start(call, request->kind)) {
        return PAWL_OK;
    }
    TRY(pawl__json_parse(request->parameters.len == 0 ? pawl_view_of("{}") : request->parameters,
                         SIZE_MAX / 2,
                         &parameters,
                         reterr));
    TRY(pawl__serve_jobs_start(
        part->jobs, request->kind, pawl__json_root(parameters, "parameters"), job_id, reterr));
    (void)snprintf(location, sizeof(location), "/v1/jobs/%s", job_id);
    pawl__http_set_header(call->request, "Location", location);
    return answer_with(call, pawl_view_of(job_id), 202, reterr);
}

struct listing {
    struct pawl__serve_page page;
    struct pawl__serve_call *call;
};

static void listing_done(struct listing *listing)
{
    pawl__serve_page_done(&listing->page);
}

static pawl_status add_job(void *context, const struct pawl__job *job, pawl_error *reterr)
{
    struct listing *listing = context;
    struct pawl__serve_page *page = &listing->page;
    const struct pawl__job value = shown(listing->call, job);

    (void)reterr;
    if (!pawl__serve_page_has_room(page, job->job_id)) {
        return PAWL_CANCELLED; /* with a next item: a full page */
    }
    (void)pawl__serve_page_add(page, &pawl__serve_job_record, &value);
    return PAWL_OK;
}

static pawl_status list(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct jobs_part *part = call->part;
    const struct job_page *wanted = call->parameters;
    AUTO(listing_done) struct listing listing = { .call = call };

    pawl__serve_page_start(&listing.page, wanted->limit);
    pawl_status status = pawl__serve_jobs_list(
        part->jobs, wanted->from, wanted->limit + 1, add_job, &listing, reterr);
    if (status != PAWL_OK && !(status == PAWL_CANCELLED && listing.page.next[0] != '\0')) {
        return status;
    }
    pawl__serve_page_answer(&listing.page, call);
    return PAWL_OK;
}

static pawl_status show(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct job_path *path = call->parameters;

    return answer_with(call, path->job, 200, reterr);
}

static pawl_status cancel(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct jobs_part *part = call->part;
    const struct job_path *path = call->parameters;

    TRY(pawl__serve_jobs_stop(part->jobs, path->job, reterr));
    return answer_with(call, path->job, 202, reterr);
}

static const struct pawl__serve_route routes[] = {
    { ROUTE(POST, "/v1/jobs", "jobStart", "Starts a job"),
      .about =
          "Answers at once; GET on the Location tells how far it is and what it found. Kinds that "
          "change something need a token of a higher scope.",
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_ISOLATED,
      .body = &request_record,
      .answers = ANSWERS({ .code = 202, .record = &pawl__serve_job_record }),
      .problems = "NOT_FOUND WRONG_SCOPE",
      .no_key = "a job is listed as soon as it is started: look for it with GET /v1/jobs",
      .handle = start },
    { ROUTE(GET, "/v1/jobs", "jobList", "Lists jobs, the newest first"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_ISOLATED,
      .parameters = &page_request_record,
      .answers = ANSWERS({ .code = 200, .record = &page_record }),
      .handle = list },
    { ROUTE(GET, "/v1/jobs/{job}", "jobGet", "Shows a job: how far it is, what it found"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_ISOLATED,
      .parameters = &path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_job_record }),
      .problems = "NOT_FOUND",
      .handle = show },
    { ROUTE(POST, "/v1/jobs/{job}/cancel", "jobCancel", "Cancels a job"),
      .about = "One that runs is cancelling until it has ended.",
      .scope = PAWL__SCOPE_WRITE,
      .lane = LANE_ISOLATED,
      .parameters = &path_record,
      .body = &pawl__serve_nothing_record,
      .answers = ANSWERS({ .code = 202, .record = &pawl__serve_job_record }),
      .problems = "NOT_FOUND CONFLICT",
      .no_key = "cancelling again is fine",
      .handle = cancel },
};

const struct pawl__serve_part pawl__serve_jobs_part = {
    .name = "jobs",
    .routes = routes,
    .route_count = COUNT_OF(routes),
    .open = open_part,
    .cancel = cancel_part,
    .close = close_part,
};
