/* Routes of checkpoints: add one, the newest; and where a task resumes. */
#include "base/core/error.h"
#include "server/work/records.h"
#include "server/work/work.h"

/* --- adding --- */

static pawl_status check_lease(const struct new_checkpoint *body, pawl_error *reterr)
{
    return (body->token != 0) == (body->work_item_id.len > 0)
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "a checkpoint is of a task, or of an item that you hold: work_item_id "
                            "and token go together");
}

/* Two requests that add it at the same time may both get 201. */
static pawl_status is_new(pawl_work *store, pawl_view id, bool *ret_new, pawl_error *reterr)
{
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *there = NULL;
    pawl_status status =
        id.len == 0 ? PAWL_NOT_FOUND
                    : pawl_checkpoint_get(store, id, (pawl_view){ NULL, 0 }, 0, &there, reterr);

    *ret_new = status == PAWL_NOT_FOUND;
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

pawl_status pawl__serve_work_checkpoint_add(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct task_path *path = call->parameters;
    const struct new_checkpoint *body = call->body;
    const pawl_checkpoint checkpoint = { .size = sizeof(pawl_checkpoint),
                                         .checkpoint_id = body->checkpoint_id,
                                         .task_id = path->task,
                                         .work_item_id = body->work_item_id,
                                         .type = body->type,
                                         .snapshot_data = body->snapshot_data,
                                         .metadata = body->metadata };
    const pawl_lease lease = { sizeof(pawl_lease), body->work_item_id, body->token };
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    struct checkpoint_added added = { .sequence_number = 0 };
    pawl_work *store = NULL;
    bool created = false;

    TRY(check_lease(body, reterr));
    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(is_new(store, body->checkpoint_id, &created, reterr));
    TRY(pawl_checkpoint_add(store,
                            &checkpoint,
                            body->token == 0 ? NULL : &lease,
                            &added.sequence_number,
                            id,
                            PAWL_WORK_NAME_BYTES_MAX + 1,
                            reterr));
    added.checkpoint_id = pawl_view_of(id);
    pawl__serve_answer(call, created ? 201 : 200, &added);
    return PAWL_OK;
}

/* --- the newest --- */

pawl_status pawl__serve_work_checkpoint_latest(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct checkpoint_latest *asked = call->parameters;
    const pawl_checkpoint_type type = (pawl_checkpoint_type)asked->type;
    AUTO(pawl_checkpoint_free_p) pawl_checkpoint *checkpoint = NULL;
    AUTO(pawl_task_free_p) pawl_task *task = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    pawl_status status = pawl_checkpoint_latest(store,
                                                asked->task,
                                                asked->type == FIELD_ENUM_NONE ? NULL : &type,
                                                false,
                                                &checkpoint,
                                                reterr);
    if (status == PAWL_NOT_FOUND && pawl_task_get(store, asked->task, &task, &error) != PAWL_OK) {
        *reterr = error; /* the task does not exist */
        return error.status;
    }
    TRY(status);
    pawl__serve_answer(call, 200, checkpoint);
    return PAWL_OK;
}

/* --- where a task resumes ---
 *
 * By the latest recorded verification: checking evidence runs commands, which a GET must not do. */

enum { RECOVERY_LIST_MAX = 1000, RECOVERY_BYTES_MAX = 8 << 20 };

pawl_status pawl__serve_work_recovery(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct task_path *path = call->parameters;
    AUTO(pawl_recovery_free_p) pawl_recovery *recovery = NULL;
    pawl_recover_options options = PAWL_RECOVER_OPTIONS_INIT;
    pawl_work *store = NULL;
    char *json = NULL;
    size_t len = 0;

    options.as_recorded = true;
    options.list_max = RECOVERY_LIST_MAX;
    options.bytes_max = RECOVERY_BYTES_MAX;
    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_recover_with(store, path->task, &options, &recovery, reterr));
    TRY(pawl_recovery_to_json(recovery, &json, &len, reterr));
    pawl__serve_answer_json(call, 200, json, len);
    return PAWL_OK;
}
