/* Applications: which there are, what they are, creating one, how their sequences are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "server/node_internal.h"

enum { LIST_BYTES_MAX = 64 << 20, SEQ_BYTES_MAX = 1 << 20, NAME_SHOWN_MAX = 64 };

/* What stands in a message of an application's own may name files: its status has to do. */
void pawl__serve_not_open(struct pawl__http_request *request,
                          struct pawl__serve_node *node,
                          const struct node_app_state *state)
{
    const struct pawl__http_problem *problem = pawl__http_problem_of(state->why);
    char detail[PAWL_ERROR_MESSAGE_SIZE];

    if (state->opening) {
        (void)snprintf(detail,
                       sizeof(detail),
                       "application '%s' is being opened, %zu of %zu are open: ask again",
                       state->name,
                       pawl__serve_apps_open_count(node),
                       pawl__serve_app_count(node));
        pawl__http_refuse(request, &pawl__http_opening, detail);
        return;
    }
    (void)snprintf(detail,
                   sizeof(detail),
                   "application '%s' is not open: %s (%s); the log of the node says more",
                   state->name,
                   pawl_status_text(state->why),
                   pawl_status_name(state->why));
    pawl__http_refuse(
        request, problem->http == 503 ? &pawl__http_not_open_yet : &pawl__http_not_open, detail);
}

void pawl__serve_app_run(struct pawl__http_request *request,
                         struct pawl__serve_node *node,
                         serve_app_fn *fn)
{
    pawl_view name = pawl__http_part(request, "app");
    pawl_error error = PAWL_ERROR_INIT;
    struct node_app_state found;
    pawl_status status = PAWL_OK;

    if (!pawl__serve_node_find(node, name, &found)) {
        name.len = MIN(name.len, NAME_SHOWN_MAX);
        status =
            pawl__fail(&error, PAWL_NOT_FOUND, "there is no application '%.*s'", VIEW_ARGS(name));
    } else if (found.app == NULL) {
        pawl__serve_not_open(request, node, &found);
    } else {
        status = fn(request, &found, &error);
    }
    if (status != PAWL_OK) {
        pawl__http_fail(request, &error);
    }
}

/* The descriptors of those that are open; the others have theirs in their stores. */
static pawl_status write_list(const struct node_app_state *apps,
                              size_t count,
                              struct pawl__buf *body,
                              pawl_error *reterr)
{
    pawl_status status = PAWL_OK;
    const char *comma = "";

    pawl__buf_add_text(body, "{\"items\":[");
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        AUTO(pawl__text_free) char *json = NULL;
        size_t len = 0;

        if (apps[i].app != NULL) {
            status = pawl_app_descriptor_to_json(apps[i].app, &json, &len, reterr);
            pawl__buf_add_text(body, comma);
            pawl__buf_add(body, (pawl_view){ json, len });
            comma = ",";
        }
    }
    pawl__buf_add_text(body, "],\"next\":null,\"not_open\":[");
    comma = "";
    for (size_t i = 0; i < count; i++) {
        if (apps[i].app == NULL) {
            pawl__serve_add_not_open(body, comma, &apps[i]);
            comma = ",";
        }
    }
    pawl__buf_add_text(body, "]}\n");
    return status;
}

void pawl__serve_app_list(struct pawl__http_request *request, void *context)
{
    size_t count = 0;
    struct node_app_state *apps = pawl__serve_app_states(context, false, &count);
    struct pawl__buf body = BUF_INIT(LIST_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = apps == NULL ? pawl__fail(&error, PAWL_NOMEM, "no memory for a list")
                                      : write_list(apps, count, &body, &error);

    free(apps);
    if (status != PAWL_OK) {
        pawl__buf_done(&body);
        pawl__http_fail(request, &error);
        return;
    }
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
}

static pawl_status answer_descriptor(struct pawl__http_request *request,
                                     const pawl_app *app,
                                     unsigned code,
                                     pawl_error *reterr)
{
    char *json = NULL;
    size_t len = 0;

    TRY(pawl_app_descriptor_to_json(app, &json, &len, reterr));
    pawl__http_answer_json(request, code, json, len);
    return PAWL_OK;
}

static pawl_status descriptor(struct pawl__http_request *request,
                              const struct node_app_state *found,
                              pawl_error *reterr)
{
    return answer_descriptor(request, found->app, 200, reterr);
}

DEFINE_APP_HANDLER(pawl__serve_app, descriptor)

void pawl__serve_app_create(struct pawl__http_request *request, void *context)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct node_app_state state = { .app = NULL };
    bool created = false;
    pawl_status status = pawl__serve_node_create(context,
                                                 pawl__http_part(request, "app"),
                                                 pawl__http_body(request),
                                                 &state,
                                                 &created,
                                                 &error);

    if (status == PAWL_OK && state.app == NULL) {
        pawl__serve_not_open(request, context, &state);
        return;
    }
    if (status == PAWL_OK) {
        status = answer_descriptor(request, state.app, created ? 201 : 200, &error);
    }
    if (status != PAWL_OK) {
        pawl__http_fail(request, &error);
    }
}

/* --- sequences --- */

static void add_partition(struct pawl__buf *body,
                          uint16_t partition,
                          uint64_t log_end,
                          const pawl_sequencer_status *of)
{
    pawl__buf_add_format(body,
                         "%s{\"partition\":%u,\"log_end\":%" PRIu64 ",\"next_offset\":%" PRIu64
                         ",\"stored_offset\":%" PRIu64 ",\"unflushed\":%" PRIu64
                         ",\"hits\":%" PRIu64 ",\"misses\":%" PRIu64,
                         partition == 0 ? "" : ",",
                         partition,
                         log_end,
                         of->next_offset,
                         of->stored_offset,
                         of->unflushed,
                         of->hits,
                         of->misses);
    pawl__buf_add_format(body,
                         ",\"actualizing\":%s,\"actualizations\":%" PRIu64 ",\"flushes\":%" PRIu64
                         ",\"flush_failures\":%" PRIu64 ",\"last_error\":",
                         of->actualizing ? "true" : "false",
                         of->actualizations,
                         of->flushes,
                         of->flush_failures);
    /* The word only: the message may name files. */
    if (of->last_error.status == PAWL_OK) {
        pawl__buf_add_text(body, "null}");
    } else {
        pawl__buf_add_format(body, "\"%s\"}", pawl_status_name(of->last_error.status));
    }
}

static pawl_status sequences(struct pawl__http_request *request,
                             const struct node_app_state *found,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf body = BUF_INIT(SEQ_BYTES_MAX);

    pawl__buf_add_text(&body, "{\"items\":[");
    for (uint16_t i = 0; i < pawl_app_get_descriptor(found->app)->partitions; i++) {
        pawl_sequencer_status of;
        uint64_t log_end = 0;

        TRY(pawl_app_get_status(found->app, i, &of, reterr));
        TRY(pawl_app_get_log_end(found->app, i, &log_end, reterr));
        add_partition(&body, i, log_end, &of);
    }
    pawl__buf_add_text(&body, "],\"next\":null}\n");
    pawl__http_answer_buf(request, 200, HTTP_JSON, &body);
    return PAWL_OK;
}

DEFINE_APP_HANDLER(pawl__serve_seq, sequences)
