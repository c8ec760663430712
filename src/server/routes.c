/* Every address of the node. */
#include "server/node_internal.h"
#include "server/tokens/token.h"
#include "server/work/work.h"

static const char *const paging[] = { "from", "limit", NULL };
static const char *const of_tasks[] = { "from", "limit", "status", NULL };
static const char *const of_items[] = { "from", "limit", "status", "task", "type", NULL };
static const char *const of_checkpoints[] = { "from", "limit", "type", NULL };
static const char *const of_newest[] = { "type", NULL };

static const char no_work_key[] =
    "work_item_id makes a submit repeatable, the token what its holder says";

#define APP "/v1/apps/{app}"
#define WORKSPACE APP "/workspaces/{wsid}"
#define ITEMS "/v1/work/items"
#define ITEM ITEMS "/{item}"
#define TASKS "/v1/work/tasks"
#define TASK TASKS "/{task}"

/* `needs` is the scope of the token that may ask it. */
#define ROUTE(verb, address, handler, needs, ...)                             \
    {                                                                         \
        .method = PAWL__HTTP_##verb, .pattern = address, .handle = (handler), \
        .scope = PAWL__SCOPE_##needs, __VA_ARGS__                             \
    }
#define PAGE(address, handler) \
    ROUTE(GET, address, handler, READ, .parameters = paging, .blocks = true)
/* Routes of the work store have threads of their own: when it hangs, applications still answer. A handler
 * of WORK_POST_NOW does not wait for the store on them: it keeps the request until there is an answer. */
#define WORK_GET(address, handler, named) \
    ROUTE(GET,                            \
          address,                        \
          handler,                        \
          READ,                           \
          .no_key = no_work_key,          \
          .isolated = true,               \
          .parameters = (named),          \
          .blocks = true)
#define WORK_POST_NOW(address, handler, ...) \
    ROUTE(POST,                              \
          address,                           \
          handler,                           \
          WRITE,                             \
          .no_key = no_work_key,             \
          .isolated = true,                  \
          .takes_json = true,                \
          __VA_ARGS__)
#define WORK_POST(address, handler) WORK_POST_NOW(address, handler, .blocks = true)

const struct pawl__http_route pawl__serve_routes[] = {
    ROUTE(POST,
          WORKSPACE "/commands",
          pawl__serve_command,
          WRITE,
          .takes_json = true,
          .takes_key = true),
    PAGE(WORKSPACE "/records", pawl__serve_records),
    ROUTE(GET, WORKSPACE "/records/{id}", pawl__serve_record, READ, .blocks = true),
    PAGE(WORKSPACE "/wlog", pawl__serve_wlog),
    PAGE(APP "/partitions/{p}/plog", pawl__serve_plog),
    ROUTE(GET, APP "/seq", pawl__serve_seq, READ, .blocks = true),
    ROUTE(GET, APP, pawl__serve_app, READ, .blocks = false),
    ROUTE(PUT, APP, pawl__serve_app_create, ADMIN, .takes_json = true, .blocks = true),
    ROUTE(GET, "/v1/apps", pawl__serve_app_list, READ, .blocks = false),
    WORK_POST(TASKS, pawl__serve_work_task_create),
    WORK_GET(TASKS, pawl__serve_work_task_list, of_tasks),
    WORK_GET(TASK, pawl__serve_work_task, NULL),
    WORK_POST(TASK "/checkpoints", pawl__serve_work_checkpoint_add),
    WORK_GET(TASK "/checkpoints", pawl__serve_work_checkpoint_list, of_checkpoints),
    WORK_GET(TASK "/checkpoints/latest", pawl__serve_work_checkpoint_latest, of_newest),
    WORK_GET(TASK "/recovery", pawl__serve_work_recovery, NULL),
    WORK_GET("/v1/work/stats", pawl__serve_work_stats, NULL),
    WORK_POST(TASK "/cancel", pawl__serve_work_task_cancel),
    WORK_POST(ITEMS, pawl__serve_work_submit),
    WORK_GET(ITEMS, pawl__serve_work_item_list, of_items),
    WORK_GET(ITEM, pawl__serve_work_item, NULL),
    WORK_POST(ITEM "/cancel", pawl__serve_work_cancel),
    WORK_POST_NOW("/v1/work/claims", pawl__serve_work_claim, .blocks = false),
    WORK_POST(ITEM "/heartbeat", pawl__serve_work_heartbeat),
    WORK_POST_NOW(ITEM "/complete", pawl__serve_work_complete, .blocks = false),
    WORK_POST(ITEM "/fail", pawl__serve_work_fail_item),
    WORK_POST(ITEM "/release", pawl__serve_work_release),
    ROUTE(GET, "/livez", pawl__serve_livez, PUBLIC, .blocks = false),
    ROUTE(GET, "/readyz", pawl__serve_readyz, PUBLIC, .blocks = false),
    ROUTE(GET, "/healthz", pawl__serve_healthz, READ, .blocks = false),
    ROUTE(GET, "/metrics", pawl__serve_metrics, READ, .blocks = true),
};
const size_t pawl__serve_route_count = COUNT_OF(pawl__serve_routes);
