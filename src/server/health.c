/* The node's own part: is it alive, is it ready, how is it. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "server/node_internal.h"
#include "server/openapi.h"

enum { REPORT_BYTES_MAX = 64 << 20 };

/* --- what is not ready --- */

static const struct pawl__field trouble_fields[] = {
    { FIELD(struct pawl__serve_trouble, app, FIELD_TEXT), .flags = FIELD_OMITTED },
    { FIELD(struct pawl__serve_trouble, partition, FIELD_INT32), .flags = FIELD_OMITTED },
    { FIELD(struct pawl__serve_trouble, store, FIELD_TEXT), .flags = FIELD_OMITTED },
    { FIELD(struct pawl__serve_trouble, why, FIELD_NAME), .flags = FIELD_SET },
};
const struct pawl__record pawl__serve_trouble_record =
    RECORD("Trouble", struct pawl__serve_trouble, trouble_fields);

static void add_trouble(struct pawl__buf *list, const struct pawl__serve_trouble *trouble)
{
    pawl__buf_add_text(list, list->len == 0 ? "" : ",");
    pawl__record_write(&pawl__serve_trouble_record, trouble, list);
}

void pawl__serve_report_degraded(struct pawl__serve_report *report,
                                 const struct pawl__serve_trouble *trouble)
{
    add_trouble(&report->degraded, trouble);
}

void pawl__serve_report_waiting(struct pawl__serve_report *report,
                                const struct pawl__serve_trouble *trouble)
{
    add_trouble(&report->waiting, trouble);
}

/* --- answers --- */

struct liveness {
    bool alive;
};
static const struct pawl__field liveness_fields[] = {
    { FIELD(struct liveness, alive, FIELD_BOOL) },
};
static const struct pawl__record liveness_record =
    RECORD("Liveness", struct liveness, liveness_fields);

/* The lists are written while they are made. */
struct readiness {
    const struct pawl__serve_trouble *degraded;
    size_t degraded_count;
    const struct pawl__serve_trouble *waiting;
    size_t waiting_count;
    bool ready;
    const char *status;
    const char *version;
    int64_t up_seconds;
};
#define REPORT_FIELDS                                                  \
    { FIELD(struct readiness, degraded, FIELD_RECORDS),                \
      .record = &pawl__serve_trouble_record,                           \
      .count_offset = offsetof(struct readiness, degraded_count),      \
      .about = "Who is not served, though the node is ready." },       \
    {                                                                  \
        FIELD(struct readiness, waiting, FIELD_RECORDS),               \
            .record = &pawl__serve_trouble_record,                     \
            .count_offset = offsetof(struct readiness, waiting_count), \
            .about = "What the node waits for until it is ready."      \
    }
static const struct pawl__field readiness_fields[] = {
    REPORT_FIELDS,
    { FIELD(struct readiness, ready, FIELD_BOOL) },
};
static const struct pawl__record readiness_record =
    RECORD("Readiness", struct readiness, readiness_fields);

static const struct pawl__field health_fields[] = {
    { FIELD(struct readiness, status, FIELD_NAME),
      .flags = FIELD_SET,
      .about = "`ok`, or `waiting`." },
    { FIELD(struct readiness, version, FIELD_NAME), .flags = FIELD_SET },
    { FIELD(struct readiness, up_seconds, FIELD_INT64) },
    REPORT_FIELDS,
};
const struct pawl__record pawl__serve_health_record =
    RECORD("Health", struct readiness, health_fields);

static pawl_status livez(struct pawl__serve_call *call, pawl_error *reterr)
{
    (void)reterr;
    pawl__serve_answer(call, 200, &(struct liveness){ .alive = true });
    return PAWL_OK;
}

/* Begins the answer with {"degraded": [...], "waiting": [...]. Whether the node is ready. Nothing here waits for a
 * store: parts ask theirs on threads of their own, and this is what they said. */
static bool write_report(struct pawl__serve_node *node,
                         struct pawl__object *object,
                         pawl_error *reterr)
{
    struct pawl__serve_report report = { BUF_INIT(REPORT_BYTES_MAX), BUF_INIT(REPORT_BYTES_MAX) };

    for (size_t i = 0; i < node->part_count; i++) {
        if (node->parts[i]->report != NULL) {
            node->parts[i]->report(node->states[i], &report);
        }
    }
    pawl__object_key(object, "degraded");
    pawl__buf_add_char(object->buf, '[');
    pawl__buf_add(object->buf, pawl__buf_view(&report.degraded));
    pawl__buf_add_char(object->buf, ']');
    pawl__object_key(object, "waiting");
    pawl__buf_add_char(object->buf, '[');
    pawl__buf_add(object->buf, pawl__buf_view(&report.waiting));
    pawl__buf_add_char(object->buf, ']');
    bool ready = report.waiting.len == 0;
    if (pawl__buf_check(&report.degraded, "the report", reterr) != PAWL_OK
        || pawl__buf_check(&report.waiting, "the report", reterr) != PAWL_OK) {
        ready = false;
    }
    pawl__buf_done(&report.degraded);
    pawl__buf_done(&report.waiting);
    return ready;
}

static pawl_status readyz(struct pawl__serve_call *call, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT((size_t)2 * REPORT_BYTES_MAX);
    struct pawl__object object = pawl__object_start(&body);
    pawl_error error = PAWL_ERROR_INIT;
    bool ready = write_report(call->part, &object, &error);

    if (error.status != PAWL_OK) {
        *reterr = error;
        return error.status;
    }
    pawl__object_bool(&object, "ready", ready);
    pawl__object_end(&object);
    pawl__buf_add_char(&body, '\n');
    if (!ready) {
        pawl__http_set_header(call->request, "Retry-After", "1");
    }
    pawl__serve_answer_buf(call, ready ? 200 : 503, &body);
    return PAWL_OK;
}

static void write_health_of_parts(struct pawl__serve_node *node, struct pawl__object *object)
{
    uint64_t value[32];

    for (size_t i = 0; i < node->part_count; i++) {
        const struct pawl__serve_part *part = node->parts[i];

        if (part->health != NULL) {
            REQUIRE(part->health_record->size <= sizeof(value));
            pawl__record_start(part->health_record, value);
            part->health(node->states[i], value);
            pawl__record_write_fields(part->health_record, value, object);
        }
    }
}

static pawl_status healthz(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct pawl__serve_node *node = call->part;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT((size_t)2 * REPORT_BYTES_MAX);
    struct pawl__object object = pawl__object_start(&body);
    int64_t up_ns = pawl__monotonic_ns(node->clock) - node->started_ns;
    pawl_error error = PAWL_ERROR_INIT;
    bool ready = write_report(node, &object, &error);

    if (error.status != PAWL_OK) {
        *reterr = error;
        return error.status;
    }
    pawl__object_text(&object, "status", pawl_view_of(ready ? "ok" : "waiting"));
    pawl__object_text(&object, "version", pawl_view_of(pawl_version()));
    write_health_of_parts(node, &object);
    pawl__object_integer(&object, "up_seconds", up_ns / NS_PER_S);
    pawl__object_end(&object);
    pawl__buf_add_char(&body, '\n');
    pawl__serve_answer_buf(call, 200, &body);
    return PAWL_OK;
}

/* The metrics of the node, then those of its parts. */
struct texts {
    struct pawl__buf bufs[NODE_PARTS_MAX + 1];
    pawl_view views[NODE_PARTS_MAX + 1];
    size_t count;
};

static void texts_done(struct texts *texts)
{
    for (size_t i = 1; i < texts->count; i++) {
        pawl__buf_done(&texts->bufs[i]);
    }
}

/* Parts may have series of the same metric, which Prometheus accepts only after one head: texts are joined metric by
 * metric. */
static pawl_status show_metrics(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct pawl__serve_node *node = call->part;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(REPORT_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf own = BUF_INIT(REPORT_BYTES_MAX);
    AUTO(texts_done) struct texts texts = { .count = 1 };

    for (size_t i = 0; i < node->part_count; i++) {
        struct pawl__buf *text = &texts.bufs[texts.count];

        if (node->parts[i]->metrics != NULL) {
            *text = (struct pawl__buf)BUF_INIT(REPORT_BYTES_MAX);
            texts.count++;
            TRY(node->parts[i]->metrics(node->states[i], text, reterr));
            TRY(pawl__buf_check(text, "the metrics", reterr));
            texts.views[texts.count - 1] = pawl__buf_view(text);
        }
    }
    TRY(pawl__metrics_write(node->metrics, &own, reterr));
    texts.views[0] = pawl__buf_view(&own);
    pawl__metrics_join(texts.views, texts.count, &body);
    pawl__serve_answer_buf(call, 200, &body);
    return PAWL_OK;
}

/* --- the description of the API --- */

static pawl_status show_openapi(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pawl__serve_node *node = call->part;
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(REPORT_BYTES_MAX);

    TRY(pawl__serve_openapi_write(node->parts, node->part_count, &body, reterr));
    pawl__serve_answer_buf(call, 200, &body);
    return PAWL_OK;
}

pawl_status pawl__serve_openapi(struct pawl__buf *buf, pawl_error *reterr)
{
    const struct pawl__serve_part *parts[NODE_PARTS_MAX];
    size_t count = pawl__serve_list_parts(NULL, parts);

    return pawl__serve_openapi_write(parts, count, buf, reterr);
}

/* --- what it is --- */

struct identity {
    const char *version;
    const char *apps;
};
static const struct pawl__field identity_fields[] = {
    { FIELD(struct identity, version, FIELD_NAME), .flags = FIELD_SET },
    { FIELD(struct identity, apps, FIELD_NAME),
      .about = "Says which applications it serves, the same for every process that looks there." },
};
static const struct pawl__record identity_record = RECORD("Node", struct identity, identity_fields);

static pawl_status show_identity(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pawl__serve_node *node = call->part;
    const struct identity identity = { pawl_version(), node->options.apps_id };

    (void)reterr;
    pawl__serve_answer(call, 200, &identity);
    return PAWL_OK;
}

/* --- the part --- */

static pawl_status open_part(const struct pawl__serve_host *host,
                             void **ret_state,
                             pawl_error *reterr)
{
    (void)reterr;
    *ret_state = host->node;
    return PAWL_OK;
}

static pawl_status close_part(void *state, int64_t deadline_ns, pawl_error *reterr)
{
    (void)state;
    (void)deadline_ns;
    (void)reterr;
    return PAWL_OK;
}

static const struct pawl__serve_route routes[] = {
    { ROUTE(GET, "/livez", "livez", "Answers while the process does"),
      .scope = PAWL__SCOPE_PUBLIC,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200, .record = &liveness_record }),
      .handle = livez },
    { ROUTE(GET, "/readyz", "readyz", "Tells whether the node is ready, and what it waits for"),
      .scope = PAWL__SCOPE_PUBLIC,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200, .record = &readiness_record, .about = "It is ready." },
                         { .code = 503, .record = &readiness_record, .about = "It is not." }),
      .handle = readyz },
    { ROUTE(GET, "/healthz", "healthz", "Shows how the node is"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_health_record }),
      .handle = healthz },
    { ROUTE(GET, "/v1/node", "node", "Shows what the node is"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200, .record = &identity_record }),
      .handle = show_identity },
    { ROUTE(GET, "/metrics", "metrics", "Counts everything, for Prometheus"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .answers = ANSWERS({ .code = 200, .type = HTTP_TEXT }),
      .handle = show_metrics },
    { ROUTE(GET, "/v1/openapi.json", "openapi", "Describes this API: OpenAPI 3.1"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200 }),
      .handle = show_openapi },
};

const struct pawl__serve_part pawl__serve_node_part = {
    .name = "node",
    .routes = routes,
    .route_count = COUNT_OF(routes),
    .open = open_part,
    .close = close_part,
};
