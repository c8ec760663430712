/* Applications as a part of the node: its beginning and end, whether it is ready, its routes. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "server/apps/apps.h"
#include "server/apps/records.h"
#include "store/location.h"

enum { OPENERS_MS_MAX = 1000 }; /* at the least, for threads that open applications */

/* --- beginning and end --- */

static void free_part(struct apps_part *part)
{
    pawl__serve_gauges_free(part->gauges);
    pawl__store_lock_release(part->owner);
    pawl__serve_apps_free(part);
    pawl__lock_done(&part->create_lock);
    free(part);
}

static pawl_status claim_location(struct apps_part *part, pawl_error *reterr)
{
    if (part->is_database) {
        return PAWL_OK; /* each application there has an owner of its own */
    }
    TRY(pawl__fs_make_dir(part->location, reterr));
    return pawl__store_lock_inside(part->location, &part->owner, reterr);
}

static pawl_status fill(struct apps_part *part, struct pawl__metrics *metrics, pawl_error *reterr)
{
    TRY(claim_location(part, reterr));
    TRY(pawl__serve_gauges_new(metrics, &part->gauges, reterr));
    TRY(pawl__serve_apps_new(part, reterr));
    return pawl__serve_apps_list(part, reterr);
}

static pawl_status open_part(const struct pawl__serve_host *host,
                             void **ret_state,
                             pawl_error *reterr)
{
    struct apps_part *part = calloc(1, sizeof(*part));

    if (part == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for applications");
    }
    pawl__lock_init(&part->create_lock);
    part->options = host->options;
    part->location = host->options->location;
    part->is_database = pawl__location_is_postgres(part->location);
    part->clock = host->clock;
    pawl_status status = fill(part, host->metrics, reterr);
    if (status != PAWL_OK) {
        free_part(part);
        return status;
    }
    *ret_state = part;
    return PAWL_OK;
}

static pawl_status start(void *state, pawl_error *reterr)
{
    return pawl__serve_apps_start(state, reterr);
}

static void await(void *state, int64_t deadline_ns)
{
    pawl__serve_apps_await(state, deadline_ns);
}

/* Also when requests have taken up all the time. */
static pawl_status close_part(void *state, int64_t deadline_ns, pawl_error *reterr)
{
    struct apps_part *part = state;
    int64_t least_ns = pawl__monotonic_ns(part->clock) + OPENERS_MS_MAX * NS_PER_MS;

    TRY(pawl__serve_apps_stop(part, MAX(deadline_ns, least_ns), reterr));
    TRY(pawl__serve_apps_close(part, reterr));
    free_part(part);
    return PAWL_OK;
}

/* --- how it is --- */

/* Why a partition takes no commands now; NULL: it does. */
static const char *why_not(pawl_app *app, uint16_t partition)
{
    pawl_sequencer_status of = PAWL_SEQUENCER_STATUS_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    if (pawl_app_get_status(app, partition, &of, &error) != PAWL_OK) {
        return pawl_status_name(error.status);
    }
    if (of.last_error.status != PAWL_OK) { /* soon too much waits to be written, if not now */
        return pawl_status_name(of.last_error.status);
    }
    return of.actualizing || of.next_offset == 0 ? "ACTUALIZING" : NULL;
}

static void report_open(struct pawl__serve_report *report, const struct node_app_state *state)
{
    pawl_status says = pawl__serve_probe_status(state->probe);
    struct pawl__serve_trouble trouble = { .app = pawl_view_of(state->name), .partition = -1 };

    if (says != PAWL_OK) {
        trouble.why = pawl_status_name(says);
        pawl__serve_report_waiting(report, &trouble);
        return;
    }
    for (uint16_t p = 0; p < pawl_app_get_descriptor(state->app)->partitions; p++) {
        trouble.partition = p;
        trouble.why = why_not(state->app, p);
        if (trouble.why != NULL) {
            pawl__serve_report_waiting(report, &trouble);
        }
    }
}

/* A node of which no application is open is not ready: it may be the one that waits for another node to
 * end. */
static void report_closed(struct pawl__serve_report *report,
                          const struct node_app_state *state,
                          bool any_open)
{
    const struct pawl__serve_trouble trouble = { .app = pawl_view_of(state->name),
                                                 .partition = -1,
                                                 .why = pawl__serve_why_not_open(state) };

    if (any_open && !state->opening) {
        pawl__serve_report_degraded(report, &trouble);
    } else {
        pawl__serve_report_waiting(report, &trouble);
    }
}

/* Without memory the report is broken: nobody knows. */
static void report_apps(void *state, struct pawl__serve_report *report)
{
    size_t count = 0;
    struct node_app_state *apps = pawl__serve_app_states(state, false, &count);
    bool any_open = false;

    if (apps == NULL) {
        report->waiting.broken = true;
        report->waiting.nomem = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        any_open = any_open || apps[i].app != NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (apps[i].app != NULL) {
            report_open(report, &apps[i]);
        } else {
            report_closed(report, &apps[i], any_open);
        }
    }
    pawl__serve_app_states_free(apps, count);
}

static void health(void *state, void *ret_value)
{
    ((struct apps_health *)ret_value)->apps = pawl__serve_apps_count(state);
}

static pawl_status metrics(void *state, struct pawl__buf *text, pawl_error *reterr)
{
    TRY(pawl__serve_gauges_update(state, reterr));
    return pawl__serve_commits_add(state, text, reterr);
}

/* --- routes --- */

#define APP "/v1/apps/{app}"
#define WORKSPACE APP "/workspaces/{wsid}"
#define APP_PROBLEMS "NOT_FOUND OPENING NOT_OPEN"

static const struct pawl__serve_route routes[] = {
    { ROUTE(POST, WORKSPACE "/commands", "appCommand", "Executes a command of the workspace"),
      .about = "Answers when the command is on disk. Sent again with the same key, it is executed "
               "once and returns the same answer, with the header Idempotent-Replayed.",
      .scope = PAWL__SCOPE_WRITE,
      .lane = LANE_INLINE,
      .parameters = &pawl__serve_workspace_path_record,
      .body = &pawl__serve_command_record,
      .raw_body = true,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_response_record }),
      .problems = APP_PROBLEMS " CONFLICT KEY_REUSED UNKNOWN_KIND UNKNOWN_SEQUENCE EXHAUSTED",
      .takes_key = true,
      .state_size = sizeof(struct waiting_command),
      .begin = pawl__serve_command },
    { ROUTE(POST, APP "/commands", "appExecute", "Executes a command, which names its workspace"),
      .scope = PAWL__SCOPE_WRITE,
      .lane = LANE_INLINE,
      .parameters = &pawl__serve_app_path_record,
      .body = &pawl__serve_command_record,
      .raw_body = true,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_response_record }),
      .problems = APP_PROBLEMS " CONFLICT KEY_REUSED UNKNOWN_KIND UNKNOWN_SEQUENCE EXHAUSTED",
      .takes_key = true,
      .state_size = sizeof(struct waiting_command),
      .begin = pawl__serve_app_command },
    { ROUTE(POST, APP "/batch", "appBatch", "Executes commands, each of which names its workspace"),
      .about = "They are executed in their order, up to the first that is refused for what it "
               "says. Answers "
               "when all of them are on disk, with what became of each.",
      .scope = PAWL__SCOPE_WRITE,
      .lane = LANE_INLINE,
      .parameters = &pawl__serve_app_path_record,
      .body = &pawl__serve_batch_request_record,
      .raw_body = true,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_batch_record }),
      .problems = APP_PROBLEMS,
      .no_key = "each command of a batch has a key of its own",
      .state_size = sizeof(struct waiting_batch),
      .begin = pawl__serve_batch },
    { ROUTE(GET, WORKSPACE "/records", "appRecords", "Lists the C-records of a workspace"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .parameters = &pawl__serve_workspace_page_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_record_page_record }),
      .problems = APP_PROBLEMS,
      .handle = pawl__serve_records },
    { ROUTE(GET, WORKSPACE "/records/{id}", "appRecord", "Shows one record of any class"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .parameters = &pawl__serve_record_path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_record_record }),
      .problems = APP_PROBLEMS,
      .handle = pawl__serve_record },
    { ROUTE(GET, WORKSPACE "/wlog", "appWorkspaceLog", "Lists the events of a workspace"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .parameters = &pawl__serve_workspace_page_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_event_page_record }),
      .problems = APP_PROBLEMS,
      .handle = pawl__serve_wlog },
    { ROUTE(GET, APP "/partitions/{p}/plog", "appPartitionLog", "Lists the events of a partition"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .parameters = &pawl__serve_partition_page_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_event_page_record }),
      .problems = APP_PROBLEMS,
      .handle = pawl__serve_plog },
    { ROUTE(GET, APP "/seq", "appSequences", "Shows the sequences of each partition"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_BLOCKING,
      .parameters = &pawl__serve_app_path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_seq_record }),
      .problems = APP_PROBLEMS,
      .handle = pawl__serve_seq },
    { ROUTE(GET, APP, "appGet", "Shows the descriptor of an application"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE,
      .parameters = &pawl__serve_app_path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_descriptor_record }),
      .problems = APP_PROBLEMS,
      .handle = pawl__serve_app },
    { ROUTE(PUT, APP, "appCreate", "Creates an application"),
      .scope = PAWL__SCOPE_ADMIN,
      .lane = LANE_BLOCKING,
      .parameters = &pawl__serve_app_path_record,
      .body = &pawl__serve_descriptor_record,
      .raw_body = true,
      .answers = ANSWERS(
          { .code = 201, .record = &pawl__serve_descriptor_record, .about = "It was created." },
          { .code = 200,
            .record = &pawl__serve_descriptor_record,
            .about = "It was there, with the same descriptor." }),
      .problems = "CONFLICT OPENING NOT_OPEN",
      .no_key = "the name makes it repeatable",
      .handle = pawl__serve_app_create },
    { ROUTE(GET, "/v1/apps", "appList", "Lists the applications"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_app_list_record }),
      .handle = pawl__serve_app_list },
};

const struct pawl__serve_part pawl__serve_apps_part = {
    .name = "apps",
    .routes = routes,
    .route_count = COUNT_OF(routes),
    .jobs = pawl__serve_apps_jobs,
    .job_count = APPS_JOB_KINDS,
    .open = open_part,
    .start = start,
    .await = await,
    .close = close_part,
    .report = report_apps,
    .health_record = &pawl__serve_apps_health_record,
    .health = health,
    .metrics = metrics,
};

size_t pawl__serve_app_count(struct pawl__serve_node *node)
{
    struct apps_part *part = pawl__serve_part_state(node, &pawl__serve_apps_part);

    return part == NULL ? 0 : pawl__serve_apps_count(part);
}
