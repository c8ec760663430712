/* POST and GET /v1/counters/{name}, the stream /v1/counters/changes, a metric. */
#include <stdio.h>

#include "base/core/error.h"
#include "counter.h"
#include "server/follow.h"

/* The address says a name alone: a pawl_view. */
static const struct pawl__field path_fields[] = {
    { .name = "name", .kind = FIELD_TEXT, .max = NAME_MAX_BYTES, .about = "The counter." },
};
static const struct pawl__record path_record = RECORD("CounterPath", pawl_view, path_fields);

static const struct change step_start = { .value = 1 };
static const struct pawl__field step_fields[] = {
    { FIELD_AS("by", struct change, value, FIELD_INT64), .min = -BY_MAX, .max = BY_MAX },
};
static const struct pawl__record step_record =
    RECORD_FROM("CounterStep", struct change, step_fields, &step_start);

static const struct pawl__field change_fields[] = {
    { FIELD(struct change, id, FIELD_UINT64) },
    { FIELD(struct change, name, FIELD_CHARS) },
    { FIELD(struct change, value, FIELD_INT64), .about = "After the change." },
};
static const struct pawl__record change_record = RECORD("Change", struct change, change_fields);

static struct pawl__series *added; /* of the process */

static struct change change_of(const struct pawl__serve_call *call)
{
    const pawl_view *name = call->parameters;
    struct change change = step_start;

    (void)snprintf(change.name, sizeof(change.name), "%.*s", VIEW_ARGS(*name));
    return change;
}

static pawl_status add(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct change change = change_of(call);

    change.value = ((const struct change *)call->body)->value;
    TRY(counter_add(call->part, &change, reterr));
    pawl__counter_add(added, 1);
    pawl__serve_answer(call, 200, &change);
    return PAWL_OK;
}

static pawl_status show(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct change change = change_of(call);

    TRY(counter_read(call->part, &change, reterr));
    pawl__serve_answer(call, 200, &change);
    return PAWL_OK;
}

static bool next(void *part, uint64_t *position, struct pawl__buf *data)
{
    struct change change = { .id = *position };

    if (counter_read(part, &change, NULL) != PAWL_OK) {
        return false;
    }
    *position = change.id;
    pawl__record_write(&change_record, &change, data);
    return true;
}

static pawl_status follow(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct counter *counter = call->part;

    return pawl__serve_follow(call, &counter->engine.watch, "change", next, reterr);
}

static const struct pawl__serve_route routes[] = {
    { ROUTE(GET, "/v1/counters/changes", "counterChanges", "Follows the changes of all counters"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200, .type = HTTP_EVENTS, .record = &change_record }),
      .handle = follow },
    { ROUTE(POST, "/v1/counters/{name}", "counterAdd", "Adds to a counter"),
      .scope = PAWL__SCOPE_WRITE,
      .lane = LANE_BLOCKING,
      .parameters = &path_record,
      .body = &step_record,
      .answers = ANSWERS({ .code = 200, .record = &change_record }),
      .no_key = "adding twice counts twice",
      .handle = add },
    { ROUTE(GET, "/v1/counters/{name}", "counterGet", "Shows a counter"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .parameters = &path_record,
      .answers = ANSWERS({ .code = 200, .record = &change_record }),
      .problems = "NOT_FOUND",
      .handle = show },
};

static const struct pawl__metric_def added_def = { .name = "counter_added_total",
                                                   .help = "Additions since the start.",
                                                   .type = PAWL__COUNTER };

static pawl_status start(const struct pawl__serve_host *host, void **ret_state, pawl_error *reterr)
{
    struct pawl__metric *metric = NULL;
    struct counter *counter = NULL;

    TRY(pawl__metrics_register(host->metrics, &added_def, &metric, reterr));
    TRY(pawl__metric_series(metric, NULL, &added, reterr));
    TRY(counter_open(host->options->location, &counter, reterr));
    *ret_state = counter;
    return PAWL_OK;
}

static pawl_status end(void *state, int64_t deadline_ns, pawl_error *reterr)
{
    (void)deadline_ns; /* the engine has a bound of its own */
    return counter_close(state, reterr);
}

const struct pawl__serve_part counter_part = {
    .name = "counters",
    .routes = routes,
    .route_count = COUNT_OF(routes),
    .open = start,
    .close = end,
};
