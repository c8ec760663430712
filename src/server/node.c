#include "server/node.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "server/node_internal.h"
#include "server/tokens/store.h"
#include "store/location.h"

enum {
    INTERRUPTED_MS_MAX = 4000, /* for calls of a store that was interrupted to come back */
    LOCAL_CONNECTIONS_MAX = 128,
    LOCAL_WORKERS = 2
};

/* --- opening --- */

pawl_status pawl__serve_check_address(const char *listen,
                                      const struct pawl__serve_reach *reach,
                                      pawl_error *reterr)
{
    struct pawl__http_address address;

    TRY(pawl__http_address_parse(listen, &address, reterr));
    if (address.loopback) {
        return PAWL_OK;
    }
    if (!reach->has_tokens) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'%s' can be reached from other machines, and no token keeps strangers "
                          "out: make one with 'pawl token create', or listen on 127.0.0.1",
                          listen);
    }
    if (!reach->has_tls && !reach->unsafe_plain) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "tokens would be sent to '%s' in the clear: set server.tls_certificate "
                          "and server.tls_key, or say --unsafe-plain",
                          listen);
    }
    return PAWL_OK;
}

static pawl_status open_tokens(struct pawl__serve_node *node, pawl_error *reterr)
{
    const struct pawl__serve_options *options = &node->options;
    struct pawl__serve_reach reach = { .has_tls = options->http.tls_certificate != NULL,
                                       .unsafe_plain = options->unsafe_plain };

    if (options->http.listen == NULL) {
        return PAWL_OK;
    }
    if (options->tokens != NULL) {
        TRY(pawl__serve_tokens_open(
            options->tokens, false, options->http.clock, &node->tokens, reterr));
        TRY(pawl__serve_tokens_any(node->tokens, &reach.has_tokens, reterr));
    }
    return pawl__serve_check_address(options->http.listen, &reach, reterr);
}

static pawl_status listen_on(struct pawl__serve_node *node, pawl_error *reterr)
{
    struct pawl__http_options options = node->options.http;
    struct pawl__http_address address;

    if (options.listen == NULL) {
        return PAWL_OK;
    }
    options.routes = node->table.routes;
    options.route_count = node->table.count;
    options.context = node;
    options.metrics = node->metrics;
    TRY(pawl__http_address_parse(options.listen, &address, reterr));
    options.loopback_hosts = address.loopback;
    options.authorize = pawl__serve_authorize;
    return pawl__http_start(&options, &node->http, reterr);
}

/* A second server with the same routes. Nodes that share a database may share a data directory, too: then the first one
 * has the socket. */
static pawl_status listen_locally(struct pawl__serve_node *node, pawl_error *reterr)
{
    struct pawl__http_options options = node->options.http;
    pawl_error error = PAWL_ERROR_INIT;

    if (node->options.socket == NULL) {
        return PAWL_OK;
    }
    options.socket_path = node->options.socket;
    options.routes = node->table.routes;
    options.route_count = node->table.count;
    options.context = node;
    options.tls_certificate = NULL;
    options.tls_key = NULL;
    options.trusted = true;
    options.connections_max = MIN(options.connections_max, (uint32_t)LOCAL_CONNECTIONS_MAX);
    options.workers = LOCAL_WORKERS;
    options.workers_isolated = MIN(options.workers_isolated, (uint32_t)LOCAL_WORKERS);
    options.authorize = pawl__serve_authorize;
    pawl_status status = pawl__http_start(&options, &node->local, &error);
    if (status == PAWL_BUSY && pawl__location_is_postgres(node->options.location)) {
        LOG_WARNING("another node has the socket: commands reach that one",
                    LOG_TEXT("socket", node->options.socket));
        return PAWL_OK;
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

/* The node itself is its last part: the routes that are asked most come first. */
size_t pawl__serve_list_parts(const struct pawl__serve_part *const *parts,
                              const struct pawl__serve_part *ret_parts[NODE_PARTS_MAX])
{
    size_t count = 0;

    for (parts = parts == NULL ? pawl__serve_parts : parts; *parts != NULL; parts++) {
        ret_parts[count++] = *parts;
        REQUIRE(count < NODE_PARTS_MAX);
    }
    ret_parts[count++] = &pawl__serve_node_part;
    return count;
}

/* Listens before parts are started: what they have not opened by then is meanwhile answered with 503. */
static pawl_status open_parts(struct pawl__serve_node *node, pawl_error *reterr)
{
    const struct pawl__serve_host host = { &node->options, node->metrics, node->clock, node };

    for (size_t i = 0; i < node->part_count; i++) {
        TRY(node->parts[i]->open(&host, &node->states[i], reterr));
    }
    TRY(listen_on(node, reterr));
    TRY(listen_locally(node, reterr));
    for (size_t i = 0; i < node->part_count; i++) {
        TRY(node->parts[i]->start == NULL ? PAWL_OK
                                          : node->parts[i]->start(node->states[i], reterr));
    }
    return PAWL_OK;
}

static pawl_status open_node(struct pawl__serve_node *node, pawl_error *reterr)
{
    TRY(open_tokens(node, reterr));
    TRY(pawl__metrics_new(&node->metrics, reterr));
    node->part_count = pawl__serve_list_parts(node->options.parts, node->parts);
    TRY(pawl__serve_table_new(node->parts, node->states, node->part_count, &node->table, reterr));
    return open_parts(node, reterr);
}

static void await_parts(struct pawl__serve_node *node, int64_t deadline_ns)
{
    for (size_t i = 0; i < node->part_count; i++) {
        if (node->parts[i]->await != NULL) {
            node->parts[i]->await(node->states[i], deadline_ns);
        }
    }
}

pawl_status pawl__serve_node_open(const struct pawl__serve_options *options,
                                  struct pawl__serve_node **ret_node,
                                  pawl_error *reterr)
{
    struct pawl__serve_node *node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a node");
    }
    node->options = *options;
    node->clock = pawl__clock_or_real(options->http.clock);
    node->started_ns = pawl__monotonic_ns(node->clock);
    pawl_status status = open_node(node, reterr);
    if (status != PAWL_OK) {
        (void)!pawl__serve_node_close(node, NULL);
        return status;
    }
    await_parts(node, node->started_ns + options->open_ms * NS_PER_MS);
    *ret_node = node;
    return PAWL_OK;
}

const char *pawl__serve_listens_on(const struct pawl__serve_node *node)
{
    return pawl__http_listens_on(node->http);
}

void *pawl__serve_part_state(const struct pawl__serve_node *node,
                             const struct pawl__serve_part *part)
{
    for (size_t i = 0; i < node->part_count; i++) {
        if (node->parts[i] == part) {
            return node->states[i];
        }
    }
    return NULL;
}

/* --- closing --- */

/* `cancel` or `interrupt` of each part that is open. */
static void tell_parts(struct pawl__serve_node *node, bool interrupts)
{
    for (size_t i = 0; i < node->part_count; i++) {
        const struct pawl__serve_part *part = node->parts[i];
        void (*tell)(void *state) = interrupts ? part->interrupt : part->cancel;

        if (tell != NULL && node->states[i] != NULL) {
            tell(node->states[i]);
        }
    }
}

/* Nobody asks any more when this begins; the first part that does not come back ends it. */
static pawl_status close_parts(struct pawl__serve_node *node,
                               int64_t deadline_ns,
                               pawl_error *reterr)
{
    for (size_t i = node->part_count; i > 0; i--) { /* what uses others was opened after them */
        if (node->states[i - 1] != NULL) {
            TRY(node->parts[i - 1]->close(STEAL(node->states[i - 1]), deadline_ns, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status stop_listening(struct pawl__serve_node *node,
                                  int64_t deadline_ns,
                                  pawl_error *reterr)
{
    TRY(pawl__http_stop(node->local, deadline_ns, reterr));
    node->local = NULL;
    TRY(pawl__http_stop(node->http, deadline_ns, reterr));
    node->http = NULL;
    return PAWL_OK;
}

static pawl_status stop(struct pawl__serve_node *node, pawl_error *reterr)
{
    int64_t deadline_ns = pawl__monotonic_ns(node->clock) + node->options.stop_ms_max * NS_PER_MS;

    tell_parts(node, false);
    pawl_status status = stop_listening(node, deadline_ns, reterr);
    if (status == PAWL_TIMEOUT) { /* a thread of it may be waiting for a store */
        tell_parts(node, true);
        status = stop_listening(node, deadline_ns + INTERRUPTED_MS_MAX * NS_PER_MS, reterr);
    }
    return status == PAWL_OK ? close_parts(node, deadline_ns, reterr) : status;
}

pawl_status pawl__serve_node_close(struct pawl__serve_node *node, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (node == NULL) {
        return PAWL_OK;
    }
    pawl_status status = stop(node, &error);
    if (status != PAWL_OK) {
        LOG_WARNING("the node ends without waiting any longer: what it answered is on disk",
                    LOG_TEXT("error", error.message));
        if (reterr != NULL) {
            *reterr = error;
        }
        return status;
    }
    pawl__serve_table_done(&node->table);
    pawl__metrics_free(node->metrics);
    pawl__serve_tokens_close(node->tokens);
    free(node);
    return PAWL_OK;
}
