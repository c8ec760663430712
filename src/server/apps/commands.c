/* POST .../commands: the connection waits, suspended, until the group that has the command is on disk. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "server/apps/idempotency.h"
#include "server/node_internal.h"

enum {
    LARGE = 256 << 10
}; /* bytes of a command that would hold up the connections of its thread */

struct waiting {
    struct pawl__http_request *request;
    pawl_app *app;
    struct node_probe *probe;
    uint64_t workspace;
    char key_bytes[2 * PAWL_APP_KEY_BYTES_MAX + 4];
    pawl_view key; /* of the header */
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
static void on_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct waiting *waiting = context;

    waiting->response = response;
    waiting->error = *error;
    pawl__serve_probe_ends(waiting->probe);
    pawl__http_resume(waiting->request, finish, waiting);
}

/* With a request that is kept. The body is not needed after this, however long the command waits. */
static void submit(struct pawl__http_request *request, void *context)
{
    struct waiting *waiting = context;
    pawl_error error = PAWL_ERROR_INIT;
    struct node_probe *probe = waiting->probe;

    pawl__serve_probe_begins(probe);
    pawl_status status = pawl_app_submit_json_with_key(waiting->app,
                                                       waiting->workspace,
                                                       waiting->key,
                                                       pawl__http_body(request),
                                                       on_answer,
                                                       waiting,
                                                       &error);

    pawl__http_drop_body(request);
    if (status != PAWL_OK) { /* else it is the application's now */
        pawl__serve_probe_ends(probe);
        free(waiting);
        pawl__http_fail(request, &error);
        pawl__http_resume(request, NULL, NULL);
    }
}

static void submit_large(struct pawl__http_request *request, void *context)
{
    if (pawl__http_is_gone(request)) {
        free(context);
        pawl__http_resume(request, NULL, NULL);
    } else {
        submit(request, context);
    }
}

static void hold_and_submit(struct waiting *waiting)
{
    struct pawl__http_request *request = waiting->request;

    if (!pawl__http_keep(request)) { /* before: the answer may be quicker than this thread */
        free(waiting);
    } else if (pawl__http_body(request).len <= LARGE) {
        submit(request, waiting);
    } else if (!pawl__http_hand_over(request, submit_large, waiting)) {
        free(waiting);
        pawl__http_refuse(request, pawl__http_problem_of(PAWL_BUSY), "");
        pawl__http_resume(request, NULL, NULL);
    }
}

static pawl_status read_request(struct waiting *waiting, pawl_error *reterr)
{
    static const uint64_t workspaces[2] = { 1, PAWL_APP_WORKSPACE_MAX };
    const char *header = pawl__http_header(waiting->request, "Idempotency-Key");
    struct pawl__buf key = BUF_OVER(waiting->key_bytes);

    TRY(pawl__http_part_number(waiting->request, "wsid", workspaces, &waiting->workspace, reterr));
    TRY(header == NULL ? PAWL_OK : pawl__serve_idempotency_key(header, &key, reterr));
    waiting->key = pawl__buf_view(&key);
    return PAWL_OK;
}

static pawl_status command(struct pawl__http_request *request,
                           const struct node_app_state *found,
                           pawl_error *reterr)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));

    if (waiting == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a command");
    }
    waiting->request = request;
    waiting->app = found->app;
    waiting->probe = found->probe;
    pawl_status status = read_request(waiting, reterr);
    if (status == PAWL_OK) {
        hold_and_submit(waiting);
    } else {
        free(waiting);
    }
    return status;
}

DEFINE_APP_HANDLER(pawl__serve_command, command)
