/* The work store as a part of the node: its beginning and end, whether it is ready, its routes. */
#include <stdlib.h>

#include "base/core/macros.h"
#include "net/http/events.h"
#include "server/work/records.h"
#include "server/work/work.h"

static pawl_status open_part(const struct pawl__serve_host *host,
                             void **ret_state,
                             pawl_error *reterr)
{
    struct node_work *work = NULL;

    TRY(pawl__serve_work_new(host->options, host->metrics, &work, reterr));
    *ret_state = work;
    return PAWL_OK;
}

static void cancel(void *state)
{
    pawl__serve_work_cancel_waits(state);
}

static void interrupt(void *state)
{
    pawl__serve_work_interrupt(state);
}

/* It has bounds of its own, so that it is tried in earnest also when requests have taken up all the time. */
static pawl_status close_part(void *state, int64_t deadline_ns, pawl_error *reterr)
{
    (void)deadline_ns;
    return pawl__serve_work_close(state, reterr);
}

static void report_store(void *state, struct pawl__serve_report *report)
{
    pawl_status health = pawl__serve_work_health(state);
    const struct pawl__serve_trouble trouble = { .store = pawl_view_of("work"),
                                                 .partition = -1,
                                                 .why = pawl_status_name(health) };

    if (health != PAWL_OK) {
        pawl__serve_report_waiting(report, &trouble);
    }
}

static pawl_status metrics(void *state, struct pawl__buf *text, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *found = pawl__serve_work_metrics(state);

    (void)reterr;
    pawl__buf_add_text(text, found == NULL ? "" : found);
    return PAWL_OK;
}

/* A lost lease is the client's, not the node's; and nothing was claimed when the node stops. */
static const struct pawl__http_problem *problem_of(const pawl_error *error)
{
    bool ours = error->native == 0 && error->sqlstate[0] == '\0';

    if (error->status == PAWL_LEASE_LOST && ours) {
        return &pawl__http_lease_lost;
    }
    return error->status == PAWL_CANCELLED && ours ? &pawl__http_stopping : NULL;
}

/* --- routes ---
 *
 * They have threads of their own: when the store hangs, applications still answer. */

#define ITEMS "/v1/work/items"
#define ITEM ITEMS "/{item}"
#define TASKS "/v1/work/tasks"
#define TASK TASKS "/{task}"

#define READS                                         \
    .scope = PAWL__SCOPE_READ, .lane = LANE_ISOLATED, \
    .no_key = "work_item_id makes a submit repeatable, the token what its holder says"
#define WRITES                                         \
    .scope = PAWL__SCOPE_WRITE, .lane = LANE_ISOLATED, \
    .no_key = "work_item_id makes a submit repeatable, the token what its holder says"
#define WRITES_NOW                                            \
    .scope = PAWL__SCOPE_WRITE, .lane = LANE_INLINE_ISOLATED, \
    .no_key = "work_item_id makes a submit repeatable, the token what its holder says"

static const struct pawl__serve_route routes[] = {
    { ROUTE(POST, "/v1/work/claims", "workClaim", "Leases items, also waiting for the first"),
      WRITES_NOW,
      .about = "Each item has its token. Repeating complete, fail or release with the same token "
               "returns the first answer.",
      .body = &pawl__serve_claim_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_claimed_record }),
      .problems = "NOT_FOUND",
      .state_size = sizeof(void *),
      .begin = pawl__serve_work_claim },
    { ROUTE(POST, ITEM "/complete", "workComplete", "Completes an item that you hold"),
      WRITES_NOW,
      .parameters = &pawl__serve_item_path_record,
      .body = &pawl__serve_complete_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_item_status_record }),
      .problems = "NOT_FOUND LEASE_LOST",
      .state_size = sizeof(pawl_error),
      .begin = pawl__serve_work_complete },
    { ROUTE(POST, ITEM "/heartbeat", "workHeartbeat", "Extends a lease"),
      WRITES,
      .parameters = &pawl__serve_item_path_record,
      .body = &pawl__serve_heartbeat_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_lease_record }),
      .problems = "NOT_FOUND LEASE_LOST",
      .handle = pawl__serve_work_heartbeat },
    { ROUTE(POST, ITEM "/fail", "workFail", "Fails an item that you hold"),
      WRITES,
      .parameters = &pawl__serve_item_path_record,
      .body = &pawl__serve_fail_record,
      .answers = ANSWERS({ .code = 200,
                           .record = &pawl__serve_item_status_record,
                           .about = "`pending` or `waiting`: it is tried again." }),
      .problems = "NOT_FOUND LEASE_LOST",
      .handle = pawl__serve_work_fail },
    { ROUTE(POST, ITEM "/release", "workRelease", "Gives an item back that you hold"),
      WRITES,
      .parameters = &pawl__serve_item_path_record,
      .body = &pawl__serve_release_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_item_status_record }),
      .problems = "NOT_FOUND LEASE_LOST",
      .handle = pawl__serve_work_release },
    { ROUTE(POST, ITEMS, "workSubmit", "Submits an item, or several, all or none"),
      WRITES,
      .body = &pawl__serve_submission_batch_record,
      .answers = ANSWERS({ .code = 201, .record = &pawl__serve_submit_record },
                         { .code = 200,
                           .record = &pawl__serve_submit_record,
                           .about = "All of them were there, with the same content." }),
      .problems = "NOT_FOUND CONFLICT",
      .handle = pawl__serve_work_submit },
    { ROUTE(GET, ITEMS, "workItems", "Lists items by id"),
      READS,
      .parameters = &pawl__serve_item_list_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_item_page_record }),
      .problems = "NOT_FOUND",
      .handle = pawl__serve_work_item_list },
    { ROUTE(GET, ITEM, "workItem", "Shows an item with its history"),
      READS,
      .parameters = &pawl__serve_item_path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_item_detail_record }),
      .problems = "NOT_FOUND",
      .handle = pawl__serve_work_item },
    { ROUTE(POST, ITEM "/cancel", "workCancel", "Fails an item, whoever holds it"),
      WRITES,
      .parameters = &pawl__serve_item_path_record,
      .body = &pawl__serve_nothing_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_item_status_record }),
      .problems = "NOT_FOUND CONFLICT",
      .handle = pawl__serve_work_cancel },
    { ROUTE(POST, TASKS, "workTaskCreate", "Makes a task"),
      WRITES,
      .body = &pawl__serve_new_task_record,
      .answers = ANSWERS({ .code = 201, .record = &pawl__task_record },
                         { .code = 200,
                           .record = &pawl__task_record,
                           .about = "It was there, with the same title and metadata." }),
      .problems = "NOT_FOUND CONFLICT",
      .handle = pawl__serve_work_task_create },
    { ROUTE(GET, TASKS, "workTasks", "Lists tasks by id"),
      READS,
      .parameters = &pawl__serve_task_list_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_task_page_record }),
      .handle = pawl__serve_work_task_list },
    { ROUTE(GET, TASK, "workTask", "Shows a task with its items counted"),
      READS,
      .parameters = &pawl__serve_task_path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__task_record }),
      .problems = "NOT_FOUND",
      .handle = pawl__serve_work_task },
    { ROUTE(POST, TASK "/cancel", "workTaskCancel", "Ends a task for good"),
      WRITES,
      .parameters = &pawl__serve_task_path_record,
      .body = &pawl__serve_nothing_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_task_cancelled_record }),
      .problems = "NOT_FOUND CONFLICT",
      .handle = pawl__serve_work_task_cancel },
    { ROUTE(POST, TASK "/checkpoints", "workCheckpointAdd", "Adds a checkpoint"),
      WRITES,
      .parameters = &pawl__serve_task_path_record,
      .body = &pawl__serve_new_checkpoint_record,
      .answers = ANSWERS({ .code = 201, .record = &pawl__serve_checkpoint_added_record },
                         { .code = 200,
                           .record = &pawl__serve_checkpoint_added_record,
                           .about = "It was there, with the same content." }),
      .problems = "NOT_FOUND CONFLICT LEASE_LOST",
      .handle = pawl__serve_work_checkpoint_add },
    { ROUTE(GET, TASK "/checkpoints", "workCheckpoints", "Lists the checkpoints of a task"),
      READS,
      .parameters = &pawl__serve_checkpoint_list_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_checkpoint_page_record }),
      .problems = "NOT_FOUND",
      .handle = pawl__serve_work_checkpoint_list },
    { ROUTE(GET,
            TASK "/checkpoints/latest",
            "workCheckpointLatest",
            "Shows the newest checkpoint of a task"),
      READS,
      .parameters = &pawl__serve_checkpoint_latest_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__checkpoint_record }),
      .problems = "NOT_FOUND",
      .handle = pawl__serve_work_checkpoint_latest },
    { ROUTE(GET, TASK "/recovery", "workRecovery", "Shows where a task resumes"),
      READS,
      .about = "As the evidence of its checkpoints was last verified: nothing is checked here.",
      .parameters = &pawl__serve_task_path_record,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_recovery_record }),
      .problems = "NOT_FOUND",
      .handle = pawl__serve_work_recovery },
    { ROUTE(GET, "/v1/work/changes", "workChanges", "Follows the changes of items"),
      .scope = PAWL__SCOPE_READ,
      .lane = LANE_INLINE_ISOLATED,
      .about =
          "Server-sent events, one per change; the header Last-Event-ID resumes after that one.",
      .parameters = &pawl__serve_change_list_record,
      .answers = ANSWERS({ .code = 200, .type = HTTP_EVENTS, .record = &pawl__work_change_record }),
      .problems = "NOT_FOUND GONE",
      .state_size = sizeof(struct changes_start),
      .begin = pawl__serve_work_changes },
    { ROUTE(GET, "/v1/work/stats", "workStats", "Shows counts and health"),
      READS,
      .answers = ANSWERS({ .code = 200, .record = &pawl__serve_stats_record }),
      .handle = pawl__serve_work_stats },
};

const struct pawl__serve_part pawl__serve_work_part = {
    .name = "work",
    .routes = routes,
    .route_count = COUNT_OF(routes),
    .open = open_part,
    .cancel = cancel,
    .interrupt = interrupt,
    .close = close_part,
    .report = report_store,
    .metrics = metrics,
    .problem_of = problem_of,
};
