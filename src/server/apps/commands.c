/* POST .../commands: the connection waits, suspended, until the group that has the command is on disk. */
#include "base/core/error.h"
#include "server/apps/apps.h"

static pawl_status answer(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct waiting_command *waiting = call->state;
    const pawl_app_response *response = waiting->response;
    char *json = NULL;
    size_t len = 0;

    TRY(pawl_app_response_to_json(waiting->app, response, &json, &len, reterr));
    if (response->duplicate) {
        pawl__http_set_header(call->request, "Idempotent-Replayed", "true");
    }
    pawl__serve_answer_json(call, 200, json, len);
    return PAWL_OK;
}

/* On a thread of the server's. */
static pawl_status finish(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct waiting_command *waiting = call->state;
    pawl_status status = waiting->error.status;

    if (status == PAWL_OK) {
        status = answer(call, reterr);
    } else if (waiting->error.detail == PAWL_DETAIL_KEY_REUSED) {
        status =
            pawl__serve_refuse(call, &pawl__http_key_reused, reterr, "%s", waiting->error.message);
    } else {
        *reterr = waiting->error;
    }
    pawl_app_response_free(waiting->response);
    return status;
}

/* On the thread that commits: only hands it on. */
static void on_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct pawl__serve_call *call = context;
    struct waiting_command *waiting = call->state;

    waiting->response = response;
    waiting->error = *error;
    pawl__serve_probe_ends(waiting->probe);
    pawl__serve_resume(call, finish);
}

/* The body is not needed after this, however long the command waits. */
static pawl_status submit(struct pawl__serve_call *call,
                          pawl_view app,
                          uint64_t workspace,
                          pawl_error *reterr)
{
    struct waiting_command *waiting = call->state;
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, app, &found, reterr));
    waiting->app = found.app;
    waiting->probe = found.probe;
    pawl__serve_probe_begins(found.probe);
    pawl_status status = pawl_app_exec_json_async(
        found.app, workspace, call->key, pawl__http_body(call->request), on_answer, call, reterr);
    pawl__http_drop_body(call->request);
    if (status != PAWL_OK) {
        pawl__serve_probe_ends(found.probe);
    }
    return status;
}

pawl_status pawl__serve_command(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct workspace_path *path = call->parameters;

    return submit(call, path->app, path->wsid, reterr);
}

/* The command says which workspace it is for. */
pawl_status pawl__serve_app_command(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct app_path *path = call->parameters;

    return submit(call, path->app, 0, reterr);
}
