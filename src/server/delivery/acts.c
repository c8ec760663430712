/* Long acts on pipelines: replay and trace as calls, audit and rebuild as jobs. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/object.h"
#include "server/delivery/delivery.h"
#include "server/page.h"

#define FINDINGS_BYTES_MAX ((size_t)8 << 20) /* of a result; the rest is counted */

/* --- records --- */

static const struct replay_body replay_start = { .by = PAWL_REPLAY_SEQUENCE };
static const struct pawl__field replay_fields[] = {
    { FIELD(struct replay_body, by, FIELD_ENUM), .names = pawl__replay_by_names },
    { FIELD(struct replay_body, from, FIELD_UINT64),
      .max = INT64_MAX,
      .about = "The first LSN or sequence; left out: from the beginning." },
    { FIELD(struct replay_body, to, FIELD_UINT64),
      .max = INT64_MAX,
      .about = "The last one; left out: as far as the pipeline has read." },
    { FIELD(struct replay_body, since, FIELD_TEXT),
      .max = 64,
      .about = "By time: RFC 3339, inclusive." },
    { FIELD(struct replay_body, until, FIELD_TEXT),
      .max = 64,
      .about = "By time: RFC 3339, exclusive." },
};
const struct pawl__record pawl__serve_replay_record =
    RECORD_FROM("Replay", struct replay_body, replay_fields, &replay_start);

static const struct pawl__field trace_fields[] = {
    { FIELD(struct trace_query, id, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = 600,
      .about = "A transaction id, or the producer's event id." },
    { FIELD(struct trace_query, pipeline, FIELD_TEXT),
      .max = PAWL_PIPELINE_NAME_BYTES_MAX,
      .about = "Look only in this one." },
    { FIELD(struct trace_query, no_source, FIELD_BOOL),
      .about = "Do not search the source, which may take long." },
};
const struct pawl__record pawl__serve_trace_query_record =
    RECORD("Trace", struct trace_query, trace_fields);

static const struct pawl__field trace_answer_fields[] = {
    { FIELD(struct trace_answer, steps, FIELD_RECORDS),
      .record = &pawl__trace_step_record,
      .count_offset = offsetof(struct trace_answer, count) },
    { FIELD(struct trace_answer, skipped, FIELD_UINT64),
      .about = "Sources and outboxes that could not be read." },
};
const struct pawl__record pawl__serve_trace_record =
    RECORD("Traced", struct trace_answer, trace_answer_fields);

/* --- replay --- */

static pawl_status take_time(const char *name, pawl_view text, int64_t *ret_us, pawl_error *reterr)
{
    pawl_status status = text.len == 0 ? PAWL_OK : pawl__time_parse(text, ret_us, reterr);

    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "%s", name);
}

pawl_status pawl__serve_pipeline_replay(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct replay_body *body = call->body;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_replay_range range = PAWL_REPLAY_RANGE_INIT;
    pawl_replay_result result = PAWL_REPLAY_RESULT_INIT;
    pawl_delivery *delivery = NULL;

    range.by = (pawl_replay_by)body->by;
    range.from = body->from;
    range.to = body->to;
    TRY(take_time("since", body->since, &range.from_us, reterr));
    TRY(take_time("until", body->until, &range.to_us, reterr));
    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(pawl_pipeline_replay(delivery, name.text, &range, NULL, &result, reterr));
    pawl__serve_answer(call, 200, &result);
    return PAWL_OK;
}

/* --- trace --- */

struct tracing {
    struct pawl__buf steps; /* JSON objects */
    size_t count;
};

static void tracing_done(struct tracing *tracing)
{
    pawl__buf_done(&tracing->steps);
}

static bool add_step(void *context, const pawl_trace_step *step)
{
    struct tracing *tracing = context;

    pawl__buf_add_text(&tracing->steps, tracing->count++ == 0 ? "" : ",");
    pawl__record_write(&pawl__trace_step_record, step, &tracing->steps);
    return !tracing->steps.broken;
}

pawl_status pawl__serve_trace(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct trace_query *asked = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(asked->pipeline);
    AUTO(tracing_done) struct tracing tracing = { .steps = BUF_INIT(FINDINGS_BYTES_MAX) };
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(2 * FINDINGS_BYTES_MAX);
    pawl_trace_options options = PAWL_TRACE_OPTIONS_INIT;
    pawl_delivery *delivery = NULL;
    uint64_t skipped = 0;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    options.pipeline = asked->pipeline.len == 0 ? NULL : name.text;
    options.no_source = asked->no_source;
    TRY(pawl_delivery_trace(delivery, asked->id, &options, add_step, &tracing, &skipped, reterr));
    TRY(pawl__buf_check(&tracing.steps, "the trace", reterr));
    pawl__buf_add_text(&body, "{\"steps\":[");
    pawl__buf_add(&body, pawl__buf_view(&tracing.steps));
    pawl__buf_add_format(&body, "],\"skipped\":%llu}\n", (unsigned long long)skipped);
    pawl__serve_answer_buf(call, 200, &body);
    return PAWL_OK;
}

/* --- jobs --- */

struct job_parameters {
    pawl_view pipeline;
    bool replace;
};
static const struct pawl__field audit_fields[] = {
    { FIELD(struct job_parameters, pipeline, FIELD_TEXT),
      .max = PAWL_PIPELINE_NAME_BYTES_MAX,
      .about = "Only this one; none: all of them." },
};
static const struct pawl__record audit_record =
    RECORD("DeliveryAudit", struct job_parameters, audit_fields);
static const struct pawl__field rebuild_fields[] = {
    { FIELD(struct job_parameters, replace, FIELD_BOOL),
      .about = "Make the file anew, also when it opens." },
};
static const struct pawl__record rebuild_record =
    RECORD("DeliveryRebuild", struct job_parameters, rebuild_fields);

struct listing {
    struct pawl__job_run *run;
    struct pawl__buf items;
    size_t count;
};

static void listing_done(struct listing *listing)
{
    pawl__buf_done(&listing->items);
}

static bool progress(void *context, uint64_t done, uint64_t total)
{
    struct listing *listing = context;

    pawl__serve_job_progress(listing->run, done, total);
    return !pawl__cancelled(pawl__serve_job_cancelled(listing->run));
}

static bool add_item(struct listing *listing, const struct pawl__record *record, const void *value)
{
    if (listing->items.len < FINDINGS_BYTES_MAX / 2) {
        pawl__buf_add_text(&listing->items, listing->count++ == 0 ? "" : ",");
        pawl__record_write(record, value, &listing->items);
    }
    return true;
}

static bool add_finding(void *context, const pawl_audit_finding *finding)
{
    return add_item(context, &pawl__audit_finding_record, finding);
}

static bool add_rebuilt(void *context, const pawl_rebuilt *rebuilt)
{
    return add_item(context, &pawl__rebuilt_record, rebuilt);
}

/* {..., "items": [...]} */
static void write_result(const struct pawl__record *record,
                         const void *value,
                         const char *key,
                         const struct listing *listing,
                         struct pawl__buf *result)
{
    struct pawl__object object = pawl__object_start(result);

    pawl__record_write_fields(record, value, &object);
    pawl__object_key(&object, key);
    pawl__buf_add_char(result, '[');
    pawl__buf_add(result, pawl__buf_view(&listing->items));
    pawl__buf_add_char(result, ']');
    pawl__object_end(&object);
}

static pawl_status check(void *state, const void *parameters, pawl_error *reterr)
{
    (void)parameters;
    return pawl__serve_delivery_open_one(state) != NULL
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOT_FOUND, "no pipelines are open");
}

/* What it finds wrong is its result, not its failure. */
static pawl_status audit(void *state,
                         struct pawl__job_run *run,
                         const void *parameters,
                         struct pawl__buf *result,
                         pawl_error *reterr)
{
    const struct job_parameters *given = parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(given->pipeline);
    AUTO(listing_done)
    struct listing listing = { .run = run, .items = BUF_INIT(FINDINGS_BYTES_MAX) };
    pawl_watch watch = PAWL_WATCH_INIT;
    pawl_audit_report report = PAWL_AUDIT_REPORT_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(state, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    watch.progress = progress;
    watch.context = &listing;
    pawl_status status = pawl_delivery_audit(delivery,
                                             given->pipeline.len == 0 ? NULL : name.text,
                                             &watch,
                                             add_finding,
                                             &listing,
                                             &report,
                                             &error);
    if (status != PAWL_OK
        && !(status == PAWL_CORRUPT && report.lost + report.duplicated + report.miscounted > 0)) {
        return pawl__fail_with(reterr, status, &error);
    }
    write_result(&pawl__audit_report_record, &report, "findings", &listing, result);
    return PAWL_OK;
}

static pawl_status rebuild(void *state,
                           struct pawl__job_run *run,
                           const void *parameters,
                           struct pawl__buf *result,
                           pawl_error *reterr)
{
    const struct job_parameters *given = parameters;
    AUTO(listing_done)
    struct listing listing = { .run = run, .items = BUF_INIT(FINDINGS_BYTES_MAX) };
    pawl_watch watch = PAWL_WATCH_INIT;
    pawl_rebuild_result rebuilt = PAWL_REBUILD_RESULT_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(state, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    watch.progress = progress;
    watch.context = &listing;
    pawl_status status = pawl_delivery_rebuild(
        delivery, given->replace, &watch, add_rebuilt, &listing, &rebuilt, &error);
    if (status != PAWL_OK && !(status == PAWL_UNAVAILABLE && rebuilt.incomplete > 0)) {
        return pawl__fail_with(reterr, status, &error);
    }
    write_result(&pawl__rebuild_result_record, &rebuilt, "rebuilt", &listing, result);
    return PAWL_OK;
}

const struct pawl__job_kind pawl__serve_delivery_jobs[SERVE_DELIVERY_JOBS] = {
    { .name = "delivery.audit",
      .about = "Compares sources, write-ahead logs, tables and failed events with each other",
      .parameters = &audit_record,
      .scope = PAWL__SCOPE_READ,
      .check = check,
      .run = audit },
    { .name = "delivery.rebuild",
      .about = "Makes a lost or damaged DuckDB file anew from the logs and the sources",
      .parameters = &rebuild_record,
      .scope = PAWL__SCOPE_ADMIN,
      .check = check,
      .run = rebuild },
};
