/* Every address of the node. */
#include "server/node_internal.h"

static const char *const paging[] = { "from", "limit", NULL };

#define APP "/v1/apps/{app}"
#define WORKSPACE APP "/workspaces/{wsid}"

const struct pawl__http_route pawl__node_routes[] = {
    { .method = PAWL__HTTP_POST,
      .pattern = WORKSPACE "/commands",
      .handle = pawl__serve_command,
      .takes_json = true },
    { .method = PAWL__HTTP_GET,
      .pattern = WORKSPACE "/records",
      .handle = pawl__serve_records,
      .parameters = paging,
      .blocks = true },
    { .method = PAWL__HTTP_GET,
      .pattern = WORKSPACE "/records/{id}",
      .handle = pawl__serve_record,
      .blocks = true },
    { .method = PAWL__HTTP_GET,
      .pattern = WORKSPACE "/wlog",
      .handle = pawl__serve_wlog,
      .parameters = paging,
      .blocks = true },
    { .method = PAWL__HTTP_GET,
      .pattern = APP "/partitions/{p}/plog",
      .handle = pawl__serve_plog,
      .parameters = paging,
      .blocks = true },
    { .method = PAWL__HTTP_GET, .pattern = APP "/seq", .handle = pawl__serve_seq, .blocks = true },
    { .method = PAWL__HTTP_GET, .pattern = APP, .handle = pawl__serve_app },
    { .method = PAWL__HTTP_PUT,
      .pattern = APP,
      .handle = pawl__serve_app_create,
      .takes_json = true,
      .blocks = true },
    { .method = PAWL__HTTP_GET, .pattern = "/v1/apps", .handle = pawl__serve_app_list },
    { .method = PAWL__HTTP_GET, .pattern = "/livez", .handle = pawl__serve_livez },
    { .method = PAWL__HTTP_GET, .pattern = "/readyz", .handle = pawl__serve_readyz },
    { .method = PAWL__HTTP_GET, .pattern = "/healthz", .handle = pawl__serve_healthz },
    { .method = PAWL__HTTP_GET,
      .pattern = "/metrics",
      .handle = pawl__serve_metrics,
      .blocks = true },
};
const size_t pawl__node_route_count = COUNT_OF(pawl__node_routes);
