/* Routes of items: submit, show, cancel. */
#include "base/core/error.h"
#include "server/work/records.h"
#include "server/work/work.h"

pawl_status pawl__serve_work_submit(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct submission_batch *batch = call->body;
    pawl_submit_result *results = pawl__arena_take(&call->arena, batch->count * sizeof(*results));
    pawl_work *store = NULL;
    bool any_new = false;

    if (results == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for items");
    }
    for (size_t i = 0; i < batch->count; i++) {
        results[i].size = sizeof(results[i]);
    }
    TRY(pawl__serve_work_find(call->part, NODE_WORK_TO_CREATE, &store, reterr));
    TRY(pawl_work_submit(store, batch->items, batch->count, results, reterr));
    for (size_t i = 0; i < batch->count; i++) {
        any_new = any_new || !results[i].duplicate;
    }
    pawl__serve_answer(call, any_new ? 201 : 200, &(struct submit_answer){ results, batch->count });
    return PAWL_OK;
}

pawl_status pawl__serve_work_item(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct item_path *path = call->parameters;
    pawl_work *store = NULL;
    char *json = NULL;
    size_t len = 0;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_show_json(store, path->item, &json, &len, reterr));
    pawl__serve_answer_json(call, 200, json, len);
    return PAWL_OK;
}

pawl_status pawl__serve_work_cancel(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct item_path *path = call->parameters;
    pawl_work *store = NULL;

    TRY(pawl__serve_work_find(call->part, NODE_WORK_THAT_EXISTS, &store, reterr));
    TRY(pawl_work_cancel(store, path->item, reterr));
    pawl__serve_work_status(call, path->item, PAWL_ITEM_FAILED);
    return PAWL_OK;
}
