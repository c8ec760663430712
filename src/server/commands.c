/* POST .../commands: the connection waits, suspended, until the group that has the command is on disk. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "server/idempotency.h"
#include "server/node_internal.h"

struct waiting {
    struct pawl__http_request *request;
    const pawl_app *app;
    pawl_app_response *response;
    pawl_error error;
};

static void answer_response(struct pawl__http_request *request,
                            const pawl_app *app,
                            const pawl_app_response *response)
{
    pawl_error error = PAWL_ERROR_INIT;
    char *json = NULL;
    size_t len = 0;

    if (pawl_app_response_to_json(app, response, &json, &len, &error) != PAWL_OK) {
        pawl__http_fail(request, &error);
        return;
    }
    if (response->duplicate) {
        pawl__http_set_header(request, "Idempotent-Replayed", "true");
    }
    pawl__http_answer_json(request, 200, json, len);
}

/* On a thread of the server's. */
static void finish(struct pawl__http_request *request, void *context)
{
    struct waiting *waiting = context;
    const pawl_error *error = &waiting->error;

    if (error->status == PAWL_OK) {
        answer_response(request, waiting->app, waiting->response);
    } else if (error->status == PAWL_CONFLICT && error->native == PAWL_APP_CONFLICT_OF_KEY) {
        pawl__http_refuse(request, &pawl__http_key_reused, error->message);
    } else {
        pawl__http_fail(request, error);
    }
    pawl_app_response_free(waiting->response);
    free(waiting);
}

/* On the thread that commits: only hands it on. */
static void take_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct waiting *waiting = context;

    waiting->response = response;
    waiting->error = *error;
    pawl__http_resume(waiting->request, finish, waiting);
}

static void submit(struct pawl__http_request *request,
                   pawl_app *app,
                   uint64_t workspace,
                   pawl_view command)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    pawl_error error = PAWL_ERROR_INIT;

    if (waiting == NULL) {
        (void)pawl__fail(&error, PAWL_NOMEM, "no memory for a command");
        pawl__http_fail(request, &error);
        return;
    }
    waiting->request = request;
    waiting->app = app;
    if (!pawl__http_keep(request)) { /* before: the answer may be quicker than this thread */
        free(waiting);
        return;
    }
    if (pawl_app_submit_json(app, workspace, command, take_answer, waiting, &error) != PAWL_OK) {
        free(waiting);
        pawl__http_fail(request, &error);
        pawl__http_resume(request, NULL, NULL);
    }
}

void pawl__serve_command(struct pawl__http_request *request, void *context)
{
    static const uint64_t workspaces[2] = { 1, PAWL_APP_WORKSPACE_MAX };
    const char *header = pawl__http_header(request, "Idempotency-Key");
    struct pawl__buf with_key = BUF_INIT(4 * PAWL_APP_COMMAND_BYTES_MAX);
    pawl_view command = pawl__http_body(request);
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t workspace = 0;
    pawl_app *app = pawl__serve_find(request, context);

    if (app == NULL) {
        return;
    }
    pawl_status status = pawl__http_part_number(request, "wsid", workspaces, &workspace, &error);
    if (status == PAWL_OK && header != NULL) {
        status = pawl__command_with_key(command, header, &with_key, &error);
        command = pawl__buf_view(&with_key);
    }
    if (status == PAWL_OK) {
        submit(request, app, workspace, command);
    } else {
        pawl__http_fail(request, &error);
    }
    pawl__buf_done(&with_key);
}
