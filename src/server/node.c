#include "server/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "server/node_internal.h"
#include "server/work.h"
#include "store/location.h"

/* --- applications --- */

pawl_app *pawl__node_find(struct pawl__node *node, pawl_view name)
{
    pawl_app *found = NULL;

    pawl__lock(&node->lock);
    for (size_t i = 0; i < node->app_count && found == NULL; i++) {
        if (pawl__view_is(name, pawl_app_get_descriptor(node->apps[i])->name)) {
            found = node->apps[i];
        }
    }
    pawl__unlock(&node->lock);
    return found;
}

size_t pawl__node_apps(struct pawl__node *node, pawl_app **ret_apps, size_t max)
{
    pawl__lock(&node->lock);
    size_t count = MIN(node->app_count, max);
    memcpy(ret_apps, node->apps, count * sizeof(ret_apps[0]));
    pawl__unlock(&node->lock);
    return count;
}

size_t pawl__node_app_count(struct pawl__node *node)
{
    pawl__lock(&node->lock);
    size_t count = node->app_count;
    pawl__unlock(&node->lock);
    return count;
}

/* Whether an application of so many partitions fits in. `refusal` is what it is called when it does not:
 * CONFLICT of a request, INVALID of a place. */
static pawl_status check_room(struct pawl__node *node,
                              unsigned partitions,
                              pawl_status refusal,
                              pawl_error *reterr)
{
    unsigned there = 0;

    pawl__lock(&node->lock);
    size_t count = node->app_count;
    for (size_t i = 0; i < count; i++) {
        there += pawl_app_get_descriptor(node->apps[i])->partitions;
    }
    pawl__unlock(&node->lock);
    if (count >= NODE_APPS_MAX) {
        return pawl__fail(reterr, refusal, "a node has %d applications at the most", NODE_APPS_MAX);
    }
    return there + partitions <= node->options.partitions_max
               ? PAWL_OK
               : pawl__fail(reterr,
                            refusal,
                            "a node has %u partitions at the most (server.partitions_max): with "
                            "the %u of this application there would be %u",
                            node->options.partitions_max,
                            partitions,
                            there + partitions);
}

static void add_app(struct pawl__node *node, pawl_app *app)
{
    pawl__lock(&node->lock);
    REQUIRE(node->app_count < NODE_APPS_MAX);
    node->apps[node->app_count++] = app;
    pawl__unlock(&node->lock);
}

/* Our own word for it, not that a file or a database is missing. */
static bool is_no_application(pawl_status status, const pawl_error *error)
{
    return status == PAWL_NOT_FOUND && error->native == 0 && error->sqlstate[0] == '\0';
}

/* For each name at the place. A directory without an application is what a creation that was
 * interrupted leaves behind: no reason not to start. */
static pawl_status open_one(void *context, const char *name, pawl_error *reterr)
{
    struct pawl__node *node = context;
    AUTO(pawl__text_free) char *location = NULL;
    pawl_app *app = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl_app_locate(node->place, name, &location, &error);

    if (status == PAWL_OK) {
        status = pawl_app_open(location, NULL, &node->options.app, &app, &error);
    }
    if (is_no_application(status, &error)) {
        LOG_WARNING("there is no application in this directory", LOG_TEXT("name", name));
        return PAWL_OK;
    }
    if (status == PAWL_OK) {
        status = check_room(node, pawl_app_get_descriptor(app)->partitions, PAWL_INVALID, &error);
    }
    if (status != PAWL_OK) {
        pawl_app_close(app);
        if (reterr != NULL) {
            *reterr = error;
        }
        return pawl__fail_context(reterr, status, "application '%s'", name);
    }
    add_app(node, app);
    return PAWL_OK;
}

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
    pawl_status status =
        pawl_app_descriptor_normalize(descriptor, &wanted->json, &wanted->len, reterr);

    if (status == PAWL_OK) {
        status = pawl__json_parse(
            (pawl_view){ wanted->json, wanted->len }, SIZE_MAX, &wanted->parsed, reterr);
    }
    if (status == PAWL_OK) {
        wanted->name = json_string_value(json_object_get(wanted->parsed, "name"));
        wanted->partitions =
            (unsigned)json_integer_value(json_object_get(wanted->parsed, "partitions"));
        REQUIRE(wanted->name != NULL && wanted->partitions > 0);
    }
    return status;
}

static pawl_status compare(const struct wanted *wanted, const pawl_app *there, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *stored = NULL;
    size_t len = 0;
    pawl_status status = pawl_app_descriptor_to_json(there, &stored, &len, reterr);

    if (status == PAWL_OK && strcmp(wanted->json, stored) != 0) {
        status = pawl__fail(
            reterr, PAWL_CONFLICT, "application '%s' has another descriptor", wanted->name);
    }
    return status;
}

/* What fails behind a descriptor that is good is not the fault of whoever sent it, unless another
 * application is in the way. */
static pawl_status blame_store(const char *name, pawl_status status, pawl_error *reterr)
{
    bool ours = status == PAWL_CONFLICT && pawl__http_problem_of_error(reterr)->http == 409;

    if (!ours && pawl__http_problem_of(status)->http < 500) {
        status = PAWL_FAILED;
        reterr->status = status;
    }
    return ours ? status : pawl__fail_context(reterr, status, "create application '%s'", name);
}

static pawl_status create_new(struct pawl__node *node,
                              const struct wanted *wanted,
                              pawl_app **ret_app,
                              pawl_error *reterr)
{
    AUTO(pawl__text_free) char *location = NULL;
    pawl_view json = { wanted->json, wanted->len };
    pawl_status status = check_room(node, wanted->partitions, PAWL_CONFLICT, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    status = pawl_app_locate(node->place, wanted->name, &location, reterr);
    if (status == PAWL_OK) { /* which makes the directory, unless there is no room */
        status = pawl_app_open_json(location, json, &node->options.app, ret_app, reterr);
    }
    if (status != PAWL_OK) {
        return blame_store(wanted->name, status, reterr);
    }
    add_app(node, *ret_app);
    return PAWL_OK;
}

static pawl_status create_or_find(struct pawl__node *node,
                                  const struct wanted *wanted,
                                  pawl_app **ret_app,
                                  bool *ret_created,
                                  pawl_error *reterr)
{
    pawl_app *there = pawl__node_find(node, pawl_view_of(wanted->name));

    *ret_created = there == NULL;
    if (there == NULL) {
        return create_new(node, wanted, ret_app, reterr);
    }
    *ret_app = there;
    return compare(wanted, there, reterr);
}

pawl_status pawl__node_create(struct pawl__node *node,
                              pawl_view name,
                              pawl_view descriptor,
                              pawl_app **ret_app,
                              bool *ret_created,
                              pawl_error *reterr)
{
    AUTO(wanted_done) struct wanted wanted = { .json = NULL }; /* what is refused leaves nothing */
    pawl_status status = read_wanted(descriptor, &wanted, reterr);

    if (status == PAWL_OK && !pawl__view_is(name, wanted.name)) {
        status = pawl__fail(reterr,
                            PAWL_INVALID,
                            "the descriptor is that of '%s', which the address does not say",
                            wanted.name);
    }
    if (status == PAWL_OK) {
        pawl__lock(&node->create_lock);
        status = create_or_find(node, &wanted, ret_app, ret_created, reterr);
        pawl__unlock(&node->create_lock);
    }
    return status;
}

/* --- opening --- */

pawl_status pawl__node_check_address(const char *listen, pawl_error *reterr)
{
    struct pawl__http_address address;
    pawl_status status = pawl__http_address_parse(listen, &address, reterr);

    if (status == PAWL_OK && !address.loopback) {
        status = pawl__fail(reterr,
                            PAWL_INVALID,
                            "'%s' can be reached from other machines, and there are no tokens yet "
                            "that would keep strangers out: listen on 127.0.0.1 or [::1]",
                            listen);
    }
    return status;
}

static pawl_status take_place(struct pawl__node *node, pawl_error *reterr)
{
    if (node->is_database) {
        return PAWL_OK; /* each application there has an owner of its own */
    }
    pawl_status status = pawl__fs_make_dir(node->place, reterr);
    return status == PAWL_OK ? pawl__store_lock_inside(node->place, &node->owner, reterr) : status;
}

static pawl_status init_locks(struct pawl__node *node, pawl_error *reterr)
{
    pawl_status status = pawl__lock_init(&node->lock, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    status = pawl__lock_init(&node->create_lock, reterr);
    if (status != PAWL_OK) {
        pawl__lock_done(&node->lock);
        return status;
    }
    node->locks_ready = true;
    return PAWL_OK;
}

static pawl_status listen_on(struct pawl__node *node, pawl_error *reterr)
{
    struct pawl__http_options options = node->options.http;

    options.routes = pawl__node_routes;
    options.route_count = pawl__node_route_count;
    options.context = node;
    options.metrics = node->metrics;
    options.loopback_hosts = true;
    return pawl__http_start(&options, &node->http, reterr);
}

static pawl_status open_parts(struct pawl__node *node, pawl_error *reterr)
{
    pawl_status status = pawl__node_check_address(node->options.http.listen, reterr);

    if (status == PAWL_OK) {
        status = init_locks(node, reterr);
    }
    if (status == PAWL_OK) {
        status = take_place(node, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl_app_list(node->place, open_one, node, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__metrics_new(&node->metrics, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__node_gauges_new(node->metrics, &node->gauges, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__node_work_new(&node->options, node->metrics, &node->work, reterr);
    }
    return status == PAWL_OK ? listen_on(node, reterr) : status;
}

pawl_status pawl__node_open(const struct pawl__node_options *options,
                            struct pawl__node **ret_node,
                            pawl_error *reterr)
{
    struct pawl__node *node = calloc(1, sizeof(*node));

    if (node == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a node");
    }
    node->options = *options;
    node->started_ns = pawl__monotonic_ns(pawl__clock_real());
    node->place = strdup(options->place);
    node->apps = calloc(NODE_APPS_MAX, sizeof(node->apps[0]));
    node->is_database = pawl__location_is_postgres(options->place);
    pawl_status status = node->place == NULL || node->apps == NULL
                             ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a node")
                             : open_parts(node, reterr);
    if (status != PAWL_OK) {
        (void)!pawl__node_close(node, NULL);
        return status;
    }
    *ret_node = node;
    return PAWL_OK;
}

const char *pawl__node_listens_on(const struct pawl__node *node)
{
    return pawl__http_listens_on(node->http);
}

pawl_status pawl__node_close(struct pawl__node *node, pawl_error *reterr)
{
    if (node == NULL) {
        return PAWL_OK;
    }
    int64_t deadline_ns =
        pawl__monotonic_ns(pawl__clock_real()) + node->options.stop_ms_max * NS_PER_MS;
    pawl__node_work_cancel_waits(node->work);
    pawl_status status = pawl__http_stop(node->http, deadline_ns, reterr);
    if (status == PAWL_OK) { /* nobody asks any more */
        status = pawl__node_close_apps(node, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__node_work_close(node->work, reterr);
    }
    if (status != PAWL_OK) {
        return status;
    }
    pawl__node_gauges_free(node->gauges);
    pawl__metrics_free(node->metrics);
    pawl__store_lock_release(node->owner);
    if (node->locks_ready) {
        pawl__lock_done(&node->lock);
        pawl__lock_done(&node->create_lock);
    }
    free(node->apps);
    free(node->place);
    free(node);
    return PAWL_OK;
}
