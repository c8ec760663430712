/* POST .../batch: many commands in one request, answered when the last one is on disk. They are submitted in their order,
 * up to the first that is refused at once: those after it are not executed. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "server/apps/apps.h"
#include "server/apps/records.h"
#include "server/page.h"

enum { BATCH_MAX = 256, COMMAND_BYTES_MAX = 8 << 20 };

struct batch_command {
    struct pawl__serve_call *call;
    pawl_app_response *response;
    pawl_error error;
};

/* --- the answer --- */

static pawl_status add_outcome(struct pawl__serve_page *page,
                               const struct pawl__serve_call *call,
                               const struct batch_command *command,
                               pawl_error *reterr)
{
    const struct waiting_batch *batch = call->state;
    const struct pawl__http_problem *problem = pawl__http_problem_of_error(&command->error);
    struct command_outcome outcome = { .advised = command->error.advised };
    AUTO(pawl__text_free) char *json = NULL;

    if (command->error.status == PAWL_OK) {
        TRY(pawl_app_response_to_json(
            batch->app, command->response, &json, &outcome.response.len, reterr));
        outcome.response.data = json;
    } else {
        outcome.code = pawl_view_of(pawl_status_name(command->error.status));
        if (command->error.detail != PAWL_DETAIL_NONE) {
            outcome.reason = pawl_view_of(pawl_detail_name(command->error.detail));
        }
        outcome.detail = pawl_view_of(problem->inner && !pawl__http_is_trusted(call->request)
                                          ? pawl_status_text(command->error.status)
                                          : command->error.message);
    }
    (void)pawl__serve_page_add(page, &pawl__serve_outcome_record, &outcome);
    return PAWL_OK;
}

static pawl_status write_outcomes(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct waiting_batch *batch = call->state;
    AUTO(pawl__serve_page_done) struct pawl__serve_page page;

    pawl__serve_page_start(&page, UINT64_MAX);
    for (size_t i = 0; i < batch->count; i++) {
        TRY(add_outcome(&page, call, &batch->commands[i], reterr));
    }
    pawl__serve_page_answer(&page, call);
    return PAWL_OK;
}

/* On a thread of the server's. */
static pawl_status finish(struct pawl__serve_call *call, pawl_error *reterr)
{
    struct waiting_batch *batch = call->state;
    pawl_status status = write_outcomes(call, reterr);

    for (size_t i = 0; i < batch->count; i++) {
        pawl_app_response_free(batch->commands[i].response);
    }
    free(batch->commands);
    return status;
}

static void one_less(struct pawl__serve_call *call)
{
    struct waiting_batch *batch = call->state;

    if (atomic_fetch_sub(&batch->left, 1) == 1) {
        pawl__serve_probe_ends(batch->probe);
        pawl__serve_resume(call, finish);
    }
}

/* On a thread that commits: only hands it on. */
static void on_answer(void *context, pawl_app_response *response, const pawl_error *error)
{
    struct batch_command *command = context;

    command->response = response;
    command->error = *error;
    one_less(command->call);
}

/* --- the request --- */

/* False: it was refused, and is the last one. */
static bool submit(struct pawl__serve_call *call, json_t *json)
{
    struct waiting_batch *batch = call->state;
    struct batch_command *command = &batch->commands[batch->count++];
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(COMMAND_BYTES_MAX);
    pawl_error error = PAWL_ERROR_INIT;

    command->call = call;
    atomic_fetch_add(&batch->left, 1);
    pawl_status status = pawl__json_dump(json, &text, &error);
    if (status == PAWL_OK) {
        status = pawl_app_exec_json_async(batch->app,
                                          0,
                                          (pawl_view){ NULL, 0 },
                                          pawl__buf_view(&text),
                                          on_answer,
                                          command,
                                          &error);
    }
    if (status != PAWL_OK) {
        command->error = error;
        atomic_fetch_sub(&batch->left, 1); /* whoever submits has one, too */
    }
    return status == PAWL_OK;
}

static pawl_status read_commands(struct pawl__serve_call *call,
                                 json_t **ret_json,
                                 struct pawl__json_node *ret_commands,
                                 pawl_error *reterr)
{
    static const char *const names[] = { "commands" };
    struct pawl__json_node object;

    TRY(pawl__json_parse(pawl__http_body(call->request), SIZE_MAX / 2, ret_json, reterr));
    TRY(pawl__json_object(pawl__json_root(*ret_json, ""), &object, reterr));
    TRY(pawl__json_only(&object, names, COUNT_OF(names), reterr));
    TRY(pawl__json_array(pawl__json_key(&object, "commands"), ret_commands, reterr));
    size_t count = pawl__json_count(ret_commands);
    return count >= 1 && count <= BATCH_MAX
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "commands: there are %zu, 1 to %d are allowed",
                            count,
                            BATCH_MAX);
}

pawl_status pawl__serve_batch(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct app_path *path = call->parameters;
    struct waiting_batch *batch = call->state;
    json_auto_t *json = NULL;
    struct pawl__json_node commands;
    struct node_app_state found;

    TRY(pawl__serve_app_of(call, path->app, &found, reterr));
    TRY(read_commands(call, &json, &commands, reterr));
    pawl__http_drop_body(call->request);
    size_t count = json_array_size(commands.value);
    batch->app = found.app;
    batch->probe = found.probe;
    batch->commands = calloc(count, sizeof(*batch->commands));
    TRY(pawl__check_memory(batch->commands, "a batch", reterr));
    pawl__serve_probe_begins(found.probe);
    atomic_store(&batch->left, 1);
    for (size_t i = 0; i < count && submit(call, json_array_get(commands.value, i)); i++) {
    }
    one_less(call);
    return PAWL_OK;
}
