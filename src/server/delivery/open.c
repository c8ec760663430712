/* The directory of pipelines: opened off the listening path, tried again while another process has it, closed in bounded
 * time. Without pipelines nothing is opened or made. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/fs.h"
#include "server/delivery/delivery.h"

enum {
    LOOK_MS = 500,         /* between two looks for changes */
    REOPEN_MS = 1000,      /* between two attempts to open it */
    OPENING_MS_MAX = 5000, /* how long others wait for the one who opens it */
    CLOSE_MS_MIN = 1000,   /* also when requests took up all the time */
};

/* --- opening --- */

static bool has_pipelines(const struct node_delivery *node)
{
    AUTO(pawl__text_free) char *path = pawl__fs_join(node->options->delivery, "pipelines");

    return node->options->delivery_configure != NULL || (path != NULL && access(path, F_OK) == 0);
}

static pawl_status open_directory(struct node_delivery *node,
                                  pawl_delivery **ret_delivery,
                                  pawl_error *reterr)
{
    const struct pawl__serve_options *options = node->options;
    pawl_delivery *delivery = NULL;

    TRY(pawl_delivery_open(options->delivery, &options->delivery_options, &delivery, reterr));
    pawl_status status =
        options->delivery_configure == NULL
            ? PAWL_OK
            : options->delivery_configure(options->delivery_context, delivery, reterr);
    if (status == PAWL_OK) {
        status = pawl_delivery_start(delivery, reterr);
    }
    if (status != PAWL_OK) {
        (void)pawl_delivery_close(delivery, 0, NULL);
        return status;
    }
    *ret_delivery = delivery;
    return PAWL_OK;
}

static void note_outcome(struct node_delivery *node, pawl_delivery *delivery, const pawl_error *why)
{
    pawl__lock(&node->lock);
    bool is_new = why->status != PAWL_OK && why->status != node->why.status;
    node->why = *why;
    node->is_opening = false;
    atomic_store(&node->handle, delivery);
    pawl__cond_broadcast(&node->changed);
    pawl__unlock(&node->lock);
    if (is_new) {
        LOG_WARNING("delivery cannot be opened; it is tried again",
                    LOG_TEXT("status", pawl_status_name(why->status)),
                    LOG_TEXT("error", why->message));
    }
}

/* One thread opens it, the others wait. */
static bool may_open(struct node_delivery *node)
{
    int64_t deadline_ns = pawl__monotonic_ns(node->clock) + OPENING_MS_MAX * NS_PER_MS;
    bool in_time = true;

    pawl__lock(&node->lock);
    while (node->is_opening && in_time) {
        in_time = pawl__cond_wait_until(&node->changed, &node->lock, deadline_ns);
    }
    bool mine = !node->is_opening && !node->is_stopping && atomic_load(&node->handle) == NULL;
    node->is_opening = node->is_opening || mine;
    pawl__unlock(&node->lock);
    return mine;
}

static void try_to_open(struct node_delivery *node)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_delivery *delivery = NULL;

    if (may_open(node)) {
        (void)!open_directory(node, &delivery, &error);
        note_outcome(node, delivery, &error);
    }
}

static int64_t look(void *context)
{
    struct node_delivery *node = context;
    pawl_delivery *delivery = atomic_load(&node->handle);

    if (delivery == NULL && node->options->delivery != NULL && has_pipelines(node)) {
        try_to_open(node);
        delivery = atomic_load(&node->handle);
    }
    if (delivery != NULL) {
        pawl__serve_delivery_look(node, delivery);
    }
    return pawl__monotonic_ns(node->clock) + (delivery == NULL ? REOPEN_MS : LOOK_MS) * NS_PER_MS;
}

/* --- finding it --- */

pawl_delivery *pawl__serve_delivery_open_one(struct node_delivery *node)
{
    return atomic_load(&node->handle);
}

pawl_status pawl__serve_delivery_find(struct node_delivery *node,
                                      enum node_delivery_access access_,
                                      pawl_delivery **ret_delivery,
                                      pawl_error *reterr)
{
    pawl_delivery *delivery = atomic_load(&node->handle);

    if (delivery == NULL && node->options->delivery != NULL
        && (access_ == NODE_DELIVERY_TO_CREATE || has_pipelines(node))) {
        try_to_open(node);
        delivery = atomic_load(&node->handle);
    }
    if (delivery != NULL) {
        *ret_delivery = delivery;
        return PAWL_OK;
    }
    pawl__lock(&node->lock);
    pawl_error why = node->why;
    pawl__unlock(&node->lock);
    return why.status == PAWL_OK || why.status == PAWL_NOT_FOUND
               ? pawl__fail(reterr,
                            PAWL_NOT_FOUND,
                            access_ == NODE_DELIVERY_TO_CREATE ? "this node runs no pipelines"
                                                               : "no such pipeline")
               : pawl__fail_with(reterr, PAWL_BUSY, &why);
}

struct node_pipeline_name pawl__serve_pipeline_name(pawl_view given)
{
    struct node_pipeline_name name;
    size_t len = MIN(given.len, sizeof(name.text) - 1);

    if (len > 0) { /* a parameter that was left out has no bytes */
        memcpy(name.text, given.data, len);
    }
    name.text[len] = '\0';
    return name;
}

/* --- the part --- */

static pawl_status open_part(const struct pawl__serve_host *host,
                             void **ret_state,
                             pawl_error *reterr)
{
    struct node_delivery *node = calloc(1, sizeof(*node));

    TRY(pawl__check_memory(node, "delivery", reterr));
    node->options = host->options;
    node->clock = host->clock;
    node->why = (pawl_error)PAWL_ERROR_INIT;
    node->version = (uint64_t)pawl__wall_us(host->clock); /* ids of followers outlive the node */
    pawl__lock_cond_init(&node->lock, &node->changed);
    pawl__watch_init(&node->watch, NULL, NULL);
    atomic_store(&node->handle, host->options->delivery_handle);
    *ret_state = node;
    return PAWL_OK;
}

static pawl_status start_part(void *state, pawl_error *reterr)
{
    struct node_delivery *node = state;

    node->look.name = "delivery";
    node->look.run = look;
    node->look.context = node;
    return pawl__serve_periodic_start(&node->look, "pawl-delivery", reterr);
}

static void cancel(void *state)
{
    struct node_delivery *node = state;

    pawl__lock(&node->lock);
    node->is_stopping = true;
    pawl__cond_broadcast(&node->changed);
    pawl__unlock(&node->lock);
    if (node->look.run != NULL) {
        pawl__serve_periodic_cancel(&node->look);
    }
}

/* What is left of the node's time, but not more than pipelines may take. */
static pawl_status close_directory(struct node_delivery *node,
                                   int64_t deadline_ns,
                                   pawl_error *reterr)
{
    int64_t left_ms = (deadline_ns - pawl__monotonic_ns(node->clock)) / NS_PER_MS;
    int64_t bound_ms = MIN(MAX(left_ms, (int64_t)CLOSE_MS_MIN),
                           (int64_t)node->options->delivery_options.close_ms_max);
    pawl_delivery *delivery = atomic_load(&node->handle);

    return delivery == NULL || delivery == node->options->delivery_handle
               ? PAWL_OK
               : pawl_delivery_close(delivery, (uint32_t)bound_ms, reterr);
}

static pawl_status close_part(void *state, int64_t deadline_ns, pawl_error *reterr)
{
    struct node_delivery *node = state;
    int64_t until_ns = MAX(deadline_ns, pawl__monotonic_ns(node->clock) + CLOSE_MS_MIN * NS_PER_MS);

    cancel(node);
    if (node->look.run != NULL) {
        TRY(pawl__serve_periodic_stop(&node->look, until_ns, reterr));
    }
    TRY(pawl__serve_delivery_join_exports(node, until_ns, reterr));
    TRY(close_directory(node, deadline_ns, reterr));
    if (node->look.run != NULL) {
        pawl__serve_periodic_done(&node->look);
    }
    pawl__watch_done(&node->watch);
    pawl__serve_delivery_forget(node);
    pawl__lock_cond_done(&node->lock, &node->changed);
    free(node);
    return PAWL_OK;
}

/* --- how it is --- */

static bool add_trouble(void *context, const pawl_pipeline_status *status)
{
    char text[PAWL_PIPELINE_NAME_BYTES_MAX + sizeof("pipeline ")];
    struct pawl__buf store = BUF_OVER(text);

    if (status->last_error.len == 0 && status->state != PAWL_PIPELINE_FAILED) {
        return true;
    }
    pawl__buf_add_text(&store, "pipeline ");
    pawl__buf_add(&store, status->name);
    const struct pawl__serve_trouble trouble = { .store = pawl__buf_view(&store),
                                                 .partition = -1,
                                                 .why = pawl_status_name(status->last_status) };
    pawl__serve_report_degraded(context, &trouble);
    return true;
}

static void report(void *state, struct pawl__serve_report *report)
{
    struct node_delivery *node = state;
    pawl_delivery *delivery = atomic_load(&node->handle);

    if (delivery != NULL) {
        (void)!pawl_pipeline_peek(delivery, add_trouble, report, NULL);
        return;
    }
    pawl__lock(&node->lock);
    pawl_status why = node->why.status;
    pawl__unlock(&node->lock);
    const struct pawl__serve_trouble trouble = { .store = pawl_view_of("delivery"),
                                                 .partition = -1,
                                                 .why = pawl_status_name(why) };
    if (why != PAWL_OK && why != PAWL_NOT_FOUND) {
        pawl__serve_report_degraded(report, &trouble);
    }
}

static bool count_pipeline(void *context, const pawl_pipeline_status *status)
{
    struct delivery_health *health = context;

    health->pipelines++;
    health->pipelines_running += status->state == PAWL_PIPELINE_RUNNING;
    health->pipelines_failed += status->state == PAWL_PIPELINE_FAILED;
    health->events_pending += status->pending;
    return true;
}

static void health(void *state, void *ret_value)
{
    pawl_delivery *delivery = pawl__serve_delivery_open_one(state);

    if (delivery != NULL) {
        (void)!pawl_pipeline_peek(delivery, count_pipeline, ret_value, NULL);
    }
}

static pawl_status metrics(void *state, struct pawl__buf *text, pawl_error *reterr)
{
    pawl_delivery *delivery = pawl__serve_delivery_open_one(state);
    AUTO(pawl__text_free) char *found = NULL;

    if (delivery != NULL) {
        TRY(pawl_delivery_get_metrics(delivery, &found, NULL, reterr));
        pawl__buf_add_text(text, found);
    }
    return PAWL_OK;
}

const struct pawl__serve_part pawl__serve_delivery_part = {
    .name = "delivery",
    .routes = pawl__serve_delivery_routes,
    .route_count = SERVE_DELIVERY_ROUTES,
    .jobs = pawl__serve_delivery_jobs,
    .job_count = SERVE_DELIVERY_JOBS,
    .open = open_part,
    .start = start_part,
    .cancel = cancel,
    .close = close_part,
    .report = report,
    .health_record = &pawl__serve_delivery_health_record,
    .health = health,
    .metrics = metrics,
};
