/* The socket of a `pawl deliver`: the routes of delivery, for other commands of this user. */
#include "base/core/error.h"
#include "base/log/log.h"
#include "cli/delivery/delivery.h"
#include "server/node.h"

enum { STOP_MS = 5000, WORKERS = 4 };

static pawl_status listen_on(const struct pawl__cli_delivery *delivery,
                             struct pawl__serve_node **ret_node,
                             pawl_error *reterr)
{
    AUTO(pawl__text_free) char *path = NULL;
    struct pawl__serve_options options = {
        .delivery_handle = delivery->here,
        .delivery_options = PAWL_DELIVERY_OPTIONS_INIT,
        .http = PAWL__HTTP_OPTIONS_INIT,
        .stop_ms_max = STOP_MS,
    };

    TRY(pawl__cli_deliver_socket(delivery->run, &path, reterr));
    options.socket = path;
    options.http.clock = delivery->run->clock;
    options.http.workers_isolated = WORKERS;
    return pawl__serve_delivery_alone(&options, ret_node, reterr);
}

void pawl__cli_deliver_listen(const struct pawl__cli_delivery *delivery,
                              struct pawl__serve_node **ret_node)
{
    pawl_error error = PAWL_ERROR_INIT;

    *ret_node = NULL;
    if (delivery->here != NULL && listen_on(delivery, ret_node, &error) != PAWL_OK) {
        *ret_node = NULL;
        LOG_WARNING("other commands cannot reach these pipelines while this one runs",
                    LOG_TEXT("error", error.message));
    }
}

void pawl__cli_deliver_stop_listening(struct pawl__serve_node *node)
{
    (void)!pawl__serve_node_close(node, NULL); /* it has logged what does not end */
}
