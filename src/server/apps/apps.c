/* Applications: which there are, what they are, creating one, how their sequences are. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/apps/apps.h"
#include "server/apps/records.h"
#include "server/page.h"

enum { NAME_SHOWN_MAX = 64 };

const char *pawl__serve_why_not_open(const struct node_app_state *state)
{
    return state->opening ? "OPENING" : pawl_status_name(state->why);
}

/* What stands in a message of an application's own may name files: its status has to do. */
static pawl_status refuse_not_open(struct pawl__serve_call *call,
                                   const struct node_app_state *state,
                                   pawl_error *reterr)
{
    if (state->opening) {
        return pawl__serve_refuse(
            call,
            &pawl__http_opening,
            reterr,
            "application '%s' is being opened, %zu of %zu are open: ask again",
            state->name,
            pawl__serve_apps_open_count(call->part),
            pawl__serve_apps_count(call->part));
    }
    return pawl__serve_refuse(
        call,
        pawl__http_problem_of(state->why)->http == 503 ? &pawl__http_not_open_yet
                                                       : &pawl__http_not_open,
        reterr,
        "application '%s' is not open: %s (%s); the log of the node says more",
        state->name,
        pawl_status_text(state->why),
        pawl_status_name(state->why));
}

static void release(void *released)
{
    pawl__serve_app_release(released);
}

/* The call has one application at the most. */
static void hold(struct pawl__serve_call *call, const struct node_app_state *state)
{
    REQUIRE(call->release == NULL);
    call->release = release;
    call->released = state->held;
}

pawl_status pawl__serve_app_of(struct pawl__serve_call *call,
                               pawl_view name,
                               struct node_app_state *ret_app,
                               pawl_error *reterr)
{
    bool found = pawl__serve_app_find(call->part, name, ret_app);

    if (!found) {
        name.len = MIN(name.len, NAME_SHOWN_MAX);
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "there is no application '%.*s'", VIEW_ARGS(name));
    }
    hold(call, ret_app);
    return ret_app->app == NULL ? refuse_not_open(call, ret_app, reterr) : PAWL_OK;
}

/* --- the list --- */

/* The descriptors of those that are open; the others have theirs in their stores. */
static pawl_status add_open(struct pawl__serve_page *page,
                            const struct node_app_state *state,
                            pawl_error *reterr)
{
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (state->app == NULL) {
        return PAWL_OK;
    }
    TRY(pawl_app_descriptor_to_json(state->app, &json, &len, reterr));
    (void)pawl__serve_page_add_json(page, (pawl_view){ json, len });
    return PAWL_OK;
}

static void add_not_open(struct pawl__buf *body, const struct node_app_state *apps, size_t count)
{
    const char *comma = "";

    pawl__buf_add_text(body, ",\"not_open\":[");
    for (size_t i = 0; i < count; i++) {
        const struct pawl__serve_trouble trouble = {
            .app = pawl_view_of(apps[i].name),
            .partition = -1,
            .why = pawl__serve_why_not_open(&apps[i]),
        };

        if (apps[i].app == NULL) {
            pawl__buf_add_text(body, comma);
            pawl__record_write(&pawl__serve_trouble_record, &trouble, body);
            comma = ",";
        }
    }
    pawl__buf_add_text(body, "]}\n");
}

static pawl_status write_list(struct pawl__serve_page *page,
                              const struct node_app_state *apps,
                              size_t count,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(add_open(page, &apps[i], reterr));
    }
    pawl__serve_page_end_list(page);
    add_not_open(&page->body, apps, count);
    return PAWL_OK;
}

pawl_status pawl__serve_app_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    size_t count = 0;
    struct node_app_state *apps = pawl__serve_app_states(call->part, false, &count);
    AUTO(pawl__serve_page_done) struct pawl__serve_page page;

    pawl__serve_page_start(&page, UINT64_MAX);
    pawl_status status = apps == NULL ? pawl__fail(reterr, PAWL_NOMEM, "no memory for a list")
                                      : write_list(&page, apps, count, reterr);
    pawl__serve_app_states_free(apps, count);
    if (status == PAWL_OK) {
        pawl__serve_answer_buf(call, 200, &page.body);
    }
    return status;
}

/* --- one --- */

static pawl_status answer_descriptor(struct pawl__serve_call *call,
                                     const pawl_app *app,
                                     unsigned code,
                                     pawl_error *reterr)
{
    char *json = NULL;
    size_t len = 0;

    TRY(pawl_app_descriptor_to_json(app, &json, &len, reterr));
    pawl__serve_answer_json(call, code, json, len);
    return PAWL_OK;
}

pawl_status pawl__serve_app(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct app_path *path = call->parameters;
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, path->app, &found, reterr));
    return answer_descriptor(call, found.app, 200, reterr);
}

pawl_status pawl__serve_app_create(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct app_path *path = call->parameters;
    struct node_app_state state = { .app = NULL };
    bool created = false;

    pawl_status status = pawl__serve_apps_create(
        call->part, path->app, pawl__http_body(call->request), &state, &created, reterr);
    hold(call, &state);
    TRY(status);
    return state.app == NULL ? refuse_not_open(call, &state, reterr)
                             : answer_descriptor(call, state.app, created ? 201 : 200, reterr);
}

/* --- sequences --- */

pawl_status pawl__serve_seq(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct app_path *path = call->parameters;
    AUTO(pawl__serve_page_done) struct pawl__serve_page page = { .count = 0 };
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, path->app, &found, reterr));
    pawl__serve_page_start(&page, UINT64_MAX);
    for (uint16_t i = 0; i < pawl_app_get_descriptor(found.app)->partitions; i++) {
        struct partition_row row = { .partition = i, .of = PAWL_SEQUENCER_STATUS_INIT };

        TRY(pawl_app_get_status(found.app, i, &row.of, reterr));
        TRY(pawl_app_get_log_end(found.app, i, &row.log_end, reterr));
        row.last_error =
            row.of.last_error.status == PAWL_OK ? NULL : pawl_status_name(row.of.last_error.status);
        row.last_error_detail = pawl__http_is_trusted(call->request)
                                    ? pawl_view_of(row.of.last_error.message)
                                    : (pawl_view){ NULL, 0 };
        (void)pawl__serve_page_add(&page, &pawl__serve_partition_record, &row);
    }
    pawl__serve_page_answer(&page, call);
    return PAWL_OK;
}
