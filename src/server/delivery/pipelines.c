/* Routes of pipelines: list, show, add, remove, pause, resume, start, drain. */
#include "base/core/error.h"
#include "server/delivery/delivery.h"
#include "server/page.h"

/* --- shown --- */

static bool add_item(void *context, const pawl_pipeline_status *status)
{
    return pawl__serve_page_add(context, &pawl__pipeline_status_record, status);
}

pawl_status pawl__serve_pipeline_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    AUTO(pawl__serve_page_done) struct pawl__serve_page page;
    pawl_delivery *delivery = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, &error);

    pawl__serve_page_start(&page, PAWL_PIPELINES_MAX);
    if (status == PAWL_OK) {
        status = pawl_pipeline_list(delivery, NULL, add_item, &page, &error);
    }
    if (status != PAWL_OK && status != PAWL_NOT_FOUND) {
        return pawl__fail_with(reterr, status, &error);
    }
    pawl__serve_page_answer(&page, call);
    return PAWL_OK;
}

struct answering {
    struct pawl__serve_call *call;
    unsigned code;
};

static bool answer(void *context, const pawl_pipeline_status *status)
{
    const struct answering *answering = context;

    pawl__serve_answer(answering->call, answering->code, status);
    return true;
}

pawl_status pawl__serve_pipeline_answer(struct pawl__serve_call *call,
                                        pawl_delivery *delivery,
                                        const char *name,
                                        unsigned code,
                                        pawl_error *reterr)
{
    struct answering answering = { call, code };

    return pawl_pipeline_get(delivery, name, answer, &answering, reterr);
}

pawl_status pawl__serve_pipeline_show(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    return pawl__serve_pipeline_answer(call, delivery, name.text, 200, reterr);
}

/* --- declared --- */

/* The library has said by then that it is one. */
static pawl_status name_of(pawl_view declaration,
                           struct node_pipeline_name *ret_name,
                           pawl_error *reterr)
{
    json_auto_t *json = NULL;

    TRY(pawl__json_parse(declaration, PAWL_DECLARATION_BYTES_MAX, &json, reterr));
    *ret_name =
        pawl__serve_pipeline_name(pawl_view_of(json_string_value(json_object_get(json, "name"))));
    return PAWL_OK;
}

pawl_status pawl__serve_pipeline_add(struct pawl__serve_call *call, pawl_error *reterr)
{
    pawl_view declaration = pawl__http_body(call->request);
    struct node_pipeline_name name;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_TO_CREATE, &delivery, reterr));
    TRY(pawl_pipeline_add(delivery, declaration, reterr));
    TRY(name_of(declaration, &name, reterr));
    return pawl__serve_pipeline_answer(call, delivery, name.text, 200, reterr);
}

pawl_status pawl__serve_pipeline_remove(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_removal *asked = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(asked->pipeline);
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(pawl_pipeline_remove(delivery, name.text, asked->unsafe_drop_pending, reterr));
    pawl__serve_answer(call, 200, &(struct pipeline_removed){ asked->pipeline, true });
    return PAWL_OK;
}

/* --- running --- */

static pawl_status change(struct pawl__serve_call *call,
                          pawl_status (*fn)(pawl_delivery *, const char *, pawl_error *),
                          pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(fn(delivery, name.text, reterr));
    return pawl__serve_pipeline_answer(call, delivery, name.text, 200, reterr);
}

pawl_status pawl__serve_pipeline_pause(struct pawl__serve_call *call, pawl_error *reterr)
{
    return change(call, pawl_pipeline_pause, reterr);
}

pawl_status pawl__serve_pipeline_resume(struct pawl__serve_call *call, pawl_error *reterr)
{
    return change(call, pawl_pipeline_resume, reterr);
}

pawl_status pawl__serve_pipeline_start(struct pawl__serve_call *call, pawl_error *reterr)
{
    return change(call, pawl_pipeline_start, reterr);
}

pawl_status pawl__serve_pipeline_drain(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct drain_body *body = call->body;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(pawl_pipeline_drain(delivery, name.text, (uint32_t)body->timeout_ms, NULL, reterr));
    return pawl__serve_pipeline_answer(call, delivery, name.text, 200, reterr);
}
