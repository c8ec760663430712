/* Routes for the holder of a lease: heartbeat, complete, fail, release. */
#include "base/core/error.h"
#include "server/work/records.h"
#include "server/work/work.h"

void pawl__serve_work_status(struct pawl__serve_call *call,
                             pawl_view work_item_id,
                             pawl_item_status status)
{
    pawl__serve_answer(call, 200, &(struct item_status){ work_item_id, status });
}

static pawl_lease lease_of(const struct pawl__serve_call *call, uint64_t token)
{
    const struct item_path *path = call->parameters;

    return (pawl_lease){ sizeof(pawl_lease), path->item, token };
}

static pawl_status find(struct pawl__serve_call *call, pawl_work **ret_store, pawl_error *reterr)
{
    return pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, ret_store, reterr);
}

pawl_status pawl__serve_work_heartbeat(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct heartbeat_body *body = call->body;
    const pawl_lease lease = lease_of(call, body->token);
    struct lease_end answer = { .work_item_id = lease.work_item_id };
    pawl_work *store = NULL;

    TRY(find(call, &store, reterr));
    TRY(pawl_work_heartbeat(
        store, &lease, (uint32_t)body->lease_ms, &answer.expires_at_us, reterr));
    pawl__serve_answer(call, 200, &answer);
    return PAWL_OK;
}

/* --- complete: the connection is suspended until the group commit is on disk --- */

static pawl_status finish(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct item_path *path = call->parameters;
    const pawl_error *outcome = call->state;

    if (outcome->status != PAWL_OK) {
        *reterr = *outcome;
        return outcome->status;
    }
    pawl__serve_work_status(call, path->item, PAWL_ITEM_COMPLETED);
    return PAWL_OK;
}

/* On the thread that commits: only hands it on. */
static void on_answer(void *context, const pawl_error *outcome)
{
    struct pawl__serve_call *call = context;

    *(pawl_error *)call->state = *outcome;
    pawl__serve_resume(call, finish);
}

static pawl_status submit(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct complete_body *body = call->body;
    const pawl_lease lease = lease_of(call, body->token);
    pawl_work *store = NULL;

    TRY(find(call, &store, reterr));
    pawl__http_drop_body(call->request); /* nobody may touch it once the answer can come */
    return pawl_work_complete_async(store, &lease, body->output_data, on_answer, call, reterr);
}

/* A store that is not open yet may take its time. */
pawl_status pawl__serve_work_complete(struct pawl__serve_call *call, pawl_error *reterr)
{
    if (pawl__serve_work_open_one(call->part) != NULL) {
        return submit(call, reterr);
    }
    pawl__serve_hand_over(call, submit);
    return PAWL_OK;
}

/* --- fail, release --- */

pawl_status pawl__serve_work_fail(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct fail_body *body = call->body;
    const pawl_lease lease = lease_of(call, body->token);
    pawl_item_status status = PAWL_ITEM_FAILED;
    pawl_work *store = NULL;

    TRY(find(call, &store, reterr));
    TRY(pawl_work_fail(
        store, &lease, body->error_message, body->output_data, !body->permanent, &status, reterr));
    pawl__serve_work_status(call, lease.work_item_id, status);
    return PAWL_OK;
}

pawl_status pawl__serve_work_release(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct release_body *body = call->body;
    const pawl_lease lease = lease_of(call, body->token);
    pawl_work *store = NULL;

    TRY(find(call, &store, reterr));
    TRY(pawl_work_release(store, &lease, reterr));
    pawl__serve_work_status(call, lease.work_item_id, PAWL_ITEM_PENDING);
    return PAWL_OK;
}
