#include "server/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/json/json.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "server/node_internal.h"
#include "server/tokens/store.h"
#include "server/work/work.h"
#include "store/location.h"

enum {
    INTERRUPTED_MS_MAX = 4000, /* for calls of a store that was interrupted to come back */
    OPENERS_MS_MAX = 1000      /* at the least, for threads that open applications */
};

/* --- creating one --- */

/* A descriptor that somebody sent: read, not opened. */
struct wanted {
    char *json; /* as an application has it */
    size_t len;
    json_t *parsed;
    const char *name;
    unsigned partitions;
};

static void wanted_done(struct wanted *wanted)
{
    json_decref(wanted->parsed);
    free(wanted->json);
}

static pawl_status read_wanted(pawl_view descriptor, struct wanted *wanted, pawl_error *reterr)
{
    TRY(pawl_app_descriptor_normalize(descriptor, &wanted->json, &wanted->len, reterr));
    TRY(pawl__json_parse(
        (pawl_view){ wanted->json, wanted->len }, SIZE_MAX, &wanted->parsed, reterr));
    wanted->name = json_string_value(json_object_get(wanted->parsed, "name"));
    wanted->partitions =
        (unsigned)json_integer_value(json_object_get(wanted->parsed, "partitions"));
    REQUIRE(wanted->name != NULL && wanted->partitions > 0);
    return PAWL_OK;
}

static pawl_status compare(const struct wanted *wanted, const pawl_app *there, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *stored = NULL;
    size_t len = 0;

    TRY(pawl_app_descriptor_to_json(there, &stored, &len, reterr));
    if (strcmp(wanted->json, stored) != 0) {
        return pawl__fail(
            reterr, PAWL_CONFLICT, "application '%s' has another descriptor", wanted->name);
    }
    return PAWL_OK;
}

/* After a good descriptor a failure is the store's, not the client's, unless another application is in the
 * way. */
static pawl_status map_store_error(const char *name, pawl_status status, pawl_error *reterr)
{
    bool ours = status == PAWL_CONFLICT && pawl__http_problem_of_error(reterr)->http == 409;

    if (!ours && pawl__http_problem_of(status)->http < 500) {
        status = PAWL_FAILED;
        reterr->status = status;
    }
    return ours ? status : pawl__fail_context(reterr, status, "create application '%s'", name);
}

static pawl_status create_new(struct pawl__serve_node *node,
                              const struct wanted *wanted,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_view json = { wanted->json, wanted->len };
    pawl_app *app = NULL;

    TRY(pawl__serve_apps_check_room(node, wanted->partitions, reterr));
    pawl_status status = pawl_app_locate(node->location, wanted->name, &location, reterr);
    if (status == PAWL_OK) { /* which makes the directory, unless there is no room */
        status = pawl_app_open_json(location, json, &node->options.app, &app, reterr);
    }
    return status == PAWL_OK ? pawl__serve_node_add(node, wanted->name, app, reterr)
                             : map_store_error(wanted->name, status, reterr);
}

static pawl_status create_or_find(struct pawl__serve_node *node,
                                  const struct wanted *wanted,
                                  struct node_app_state *ret_state,
                                  bool *ret_created,
                                  pawl_error *reterr)
{
    pawl_view name = pawl_view_of(wanted->name);
    pawl_status status = PAWL_OK;

    *ret_created = !pawl__serve_node_find(node, name, ret_state);
    if (*ret_created) {
        status = create_new(node, wanted, reterr);
        REQUIRE(status != PAWL_OK || pawl__serve_node_find(node, name, ret_state));
        return status;
    }
    return ret_state->app == NULL ? PAWL_OK : compare(wanted, ret_state->app, reterr);
}

pawl_status pawl__serve_node_create(struct pawl__serve_node *node,
                                    pawl_view name,
                                    pawl_view descriptor,
                                    struct node_app_state *ret_state,
                                    bool *ret_created,
                                    pawl_error *reterr)
{
    AUTO(wanted_done) struct wanted wanted = { .json = NULL }; /* what is refused leaves nothing */

    TRY(read_wanted(descriptor, &wanted, reterr));
    if (!pawl__view_is(name, wanted.name)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the descriptor is that of '%s', which the address does not say",
                          wanted.name);
    }
    pawl__lock(&node->create_lock);
    pawl_status status = create_or_find(node, &wanted, ret_state, ret_created, reterr);
    pawl__unlock(&node->create_lock);
    return status;
}

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

    if (options->tokens != NULL) {
        TRY(pawl__serve_tokens_open(
            options->tokens, false, options->http.clock, &node->tokens, reterr));
        TRY(pawl__serve_tokens_any(node->tokens, &reach.has_tokens, reterr));
    }
    return pawl__serve_check_address(options->http.listen, &reach, reterr);
}

static pawl_status claim_location(struct pawl__serve_node *node, pawl_error *reterr)
{
    if (node->is_database) {
        return PAWL_OK; /* each application there has an owner of its own */
    }
    TRY(pawl__fs_make_dir(node->location, reterr));
    return pawl__store_lock_inside(node->location, &node->owner, reterr);
}

static pawl_status listen_on(struct pawl__serve_node *node, pawl_error *reterr)
{
    struct pawl__http_options options = node->options.http;
    struct pawl__http_address address;

    options.routes = pawl__serve_routes;
    options.route_count = pawl__serve_route_count;
    options.context = node;
    options.metrics = node->metrics;
    TRY(pawl__http_address_parse(options.listen, &address, reterr));
    options.loopback_hosts = address.loopback;
    options.authorize = pawl__serve_authorize;
    return pawl__http_start(&options, &node->http, reterr);
}

/* Listens before applications are opened: requests for one are meanwhile answered with 503. */
static pawl_status open_parts(struct pawl__serve_node *node, pawl_error *reterr)
{
    TRY(open_tokens(node, reterr));
    TRY(claim_location(node, reterr));
    TRY(pawl__metrics_new(&node->metrics, reterr));
    TRY(pawl__serve_gauges_new(node->metrics, &node->gauges, reterr));
    TRY(pawl__serve_work_new(&node->options, node->metrics, &node->work, reterr));
    TRY(pawl__serve_apps_new(node, reterr));
    TRY(pawl__serve_apps_list(node, reterr));
    TRY(listen_on(node, reterr));
    return pawl__serve_apps_start(node, reterr);
}

pawl_status pawl__serve_node_open(const struct pawl__serve_options *options,
                                  struct pawl__serve_node **ret_node,
                                  pawl_error *reterr)
{
    struct pawl__serve_node *node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a node");
    }
    pawl__lock_init(&node->create_lock);
    node->options = *options;
    node->clock = pawl__clock_or_real(options->http.clock);
    node->started_ns = pawl__monotonic_ns(node->clock);
    node->location = strdup(options->location);
    node->is_database = pawl__location_is_postgres(options->location);
    pawl_status status = node->location == NULL
                             ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a node")
                             : open_parts(node, reterr);
    if (status != PAWL_OK) {
        (void)!pawl__serve_node_close(node, NULL);
        return status;
    }
    pawl__serve_apps_await(node, node->started_ns + options->open_ms * NS_PER_MS);
    *ret_node = node;
    return PAWL_OK;
}

const char *pawl__serve_listens_on(const struct pawl__serve_node *node)
{
    return pawl__http_listens_on(node->http);
}

static int64_t from_now(const struct pawl__serve_node *node, uint32_t ms)
{
    return pawl__monotonic_ns(node->clock) + ms * NS_PER_MS;
}

/* Nobody asks any more when this begins; the first part that does not come back ends it. */
static pawl_status close_parts(struct pawl__serve_node *node,
                               int64_t deadline_ns,
                               pawl_error *reterr)
{
    TRY(pawl__serve_apps_stop(node, deadline_ns, reterr));
    TRY(pawl__serve_apps_close(node, reterr));
    return pawl__serve_work_close(STEAL(node->work), reterr);
}

pawl_status pawl__serve_node_close(struct pawl__serve_node *node, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    if (node == NULL) {
        return PAWL_OK;
    }
    int64_t deadline_ns = from_now(node, node->options.stop_ms_max);
    pawl__serve_work_cancel_waits(node->work);
    pawl_status status = pawl__http_stop(node->http, deadline_ns, &error);
    if (status == PAWL_TIMEOUT) { /* a thread of it may be waiting for the work store */
        pawl__serve_work_interrupt(node->work);
        status = pawl__http_stop(node->http, deadline_ns + INTERRUPTED_MS_MAX * NS_PER_MS, &error);
    }
    if (status == PAWL_OK) { /* also when requests have taken up all the time */
        status = close_parts(node, MAX(deadline_ns, from_now(node, OPENERS_MS_MAX)), &error);
    }
    if (status != PAWL_OK) {
        LOG_WARNING("the node ends without waiting any longer: what it answered is on disk",
                    LOG_TEXT("error", error.message));
        if (reterr != NULL) {
            *reterr = error;
        }
        return status;
    }
    pawl__serve_gauges_free(node->gauges);
    pawl__metrics_free(node->metrics);
    pawl__serve_tokens_close(node->tokens);
    pawl__store_lock_release(node->owner);
    pawl__lock_done(&node->create_lock);
    pawl__serve_apps_free(node);
    free(node->location);
    free(node);
    return PAWL_OK;
}
