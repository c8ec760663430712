/* Instead of all other files here and in src/net, in a build without the node. */
#include "store/absent.h"
#include "base/core/macros.h"
#include "server/node.h"

pawl_status pawl__serve_check_address(const char *listen,
                                      const struct pawl__serve_reach *reach,
                                      pawl_error *reterr)
{
    (void)listen;
    (void)reach;
    return pawl__fail_absent(reterr, "node", "node");
}

pawl_status pawl__serve_node_open(const struct pawl__serve_options *options,
                                  struct pawl__serve_node **ret_node,
                                  pawl_error *reterr)
{
    (void)options;
    (void)ret_node;
    return pawl__fail_absent(reterr, "node", "node");
}

pawl_status pawl__serve_delivery_alone(const struct pawl__serve_options *options,
                                       struct pawl__serve_node **ret_node,
                                       pawl_error *reterr)
{
    return pawl__serve_node_open(options, ret_node, reterr);
}

pawl_status pawl__serve_openapi(struct pawl__buf *buf, pawl_error *reterr)
{
    (void)buf;
    return pawl__fail_absent(reterr, "node", "node");
}

const char *pawl__serve_listens_on(const struct pawl__serve_node *node)
{
    REQUIRE(node != NULL); /* which nobody can have */
    return NULL;
}

size_t pawl__serve_app_count(struct pawl__serve_node *node)
{
    REQUIRE(node != NULL);
    return 0;
}

pawl_status pawl__serve_node_close(struct pawl__serve_node *node, pawl_error *reterr)
{
    (void)reterr;
    REQUIRE(node == NULL);
    return PAWL_OK;
}
