/* Routes of failed events: list, show, count, and what people decide about them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/core/error.h"
#include "server/delivery/delivery.h"
#include "server/page.h"

/* --- which --- */

static pawl_status take_time(const char *name, pawl_view text, int64_t *ret_us, pawl_error *reterr)
{
    pawl_status status = text.len == 0 ? PAWL_OK : pawl__time_parse(text, ret_us, reterr);

    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "%s", name);
}

static pawl_status set_filter(const struct bulk_body *asked,
                              pawl_failed_filter *filter,
                              pawl_error *reterr)
{
    filter->statuses = asked->status == FIELD_ENUM_NONE ? 0 : 1U << asked->status;
    filter->reason = asked->reason;
    filter->source = asked->source;
    filter->transaction_id = asked->transaction_id;
    TRY(take_time("since", asked->since, &filter->since_us, reterr));
    return take_time("until", asked->until, &filter->until_us, reterr);
}

pawl_status pawl__serve_failed_filter(const struct failed_list *asked,
                                      pawl_failed_filter *ret_filter,
                                      pawl_error *reterr)
{
    const struct bulk_body which = {
        .status = asked->status,
        .reason = asked->reason,
        .source = asked->source,
        .transaction_id = asked->transaction_id,
        .since = asked->since,
        .until = asked->until,
    };

    ret_filter->newest_first = asked->newest_first;
    return set_filter(&which, ret_filter, reterr);
}

/* --- shown --- */

struct listing {
    struct pawl__serve_page page;
    pawl_error error;
};

static void listing_done(struct listing *listing)
{
    pawl__serve_page_done(&listing->page);
}

static bool add_event(void *context, const pawl_failed_event *event)
{
    struct listing *listing = context;
    AUTO(pawl__text_free) char *json = NULL;
    size_t len = 0;

    if (pawl_failed_to_json(event, &json, &len, &listing->error) != PAWL_OK) {
        return false;
    }
    return pawl__serve_page_add_json(&listing->page, (pawl_view){ json, len });
}

pawl_status pawl__serve_failed_list(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct failed_list *asked = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(asked->pipeline);
    AUTO(listing_done) struct listing listing = { .error = PAWL_ERROR_INIT };
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    pawl_delivery *delivery = NULL;

    pawl__serve_page_start(&listing.page, asked->limit);
    TRY(pawl__serve_failed_filter(asked, &filter, reterr));
    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    page.from = asked->from;
    page.limit = asked->limit;
    TRY(pawl_failed_list(delivery, name.text, &filter, &page, add_event, &listing, reterr));
    if (listing.error.status != PAWL_OK) {
        return pawl__fail_with(reterr, listing.error.status, &listing.error);
    }
    pawl__serve_page_follow_at(&listing.page, &page);
    pawl__serve_page_answer(&listing.page, call);
    return PAWL_OK;
}

struct one {
    char *json;
    size_t len;
    pawl_error error;
};

static bool take_one(void *context, const pawl_failed_event *event)
{
    struct one *one = context;

    one->error.status = pawl_failed_to_json(event, &one->json, &one->len, &one->error);
    return false;
}

pawl_status pawl__serve_failed_show(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct failed_path *path = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    struct one one = { .error = PAWL_ERROR_INIT };
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    filter.id = path->event;
    TRY(pawl_failed_list(delivery, name.text, &filter, NULL, take_one, &one, reterr));
    if (one.error.status != PAWL_OK) {
        return pawl__fail_with(reterr, one.error.status, &one.error);
    }
    if (one.json == NULL) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no failed event '%.*s'", VIEW_ARGS(path->event));
    }
    pawl__serve_answer_json(call, 200, one.json, one.len);
    return PAWL_OK;
}

pawl_status pawl__serve_failed_count(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct failed_list *asked = call->parameters;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(asked->pipeline);
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    struct failed_counted counted = { .count = 0 };
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_failed_filter(asked, &filter, reterr));
    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(pawl_failed_count(
        delivery, name.text, (pawl_failed_action)asked->action, &filter, &counted.count, reterr));
    pawl__serve_answer(call, 200, &counted);
    return PAWL_OK;
}

/* --- decided --- */

static pawl_status decide(struct pawl__serve_call *call,
                          pawl_view pipeline,
                          unsigned action,
                          const pawl_failed_filter *filter,
                          const pawl_failed_decision *decision,
                          pawl_error *reterr)
{
    const struct node_pipeline_name name = pawl__serve_pipeline_name(pipeline);
    pawl_failed_result result = PAWL_FAILED_RESULT_INIT;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(pawl_failed_act(
        delivery, name.text, (pawl_failed_action)action, filter, decision, &result, reterr));
    pawl__serve_answer(call, 200, &result);
    return PAWL_OK;
}

pawl_status pawl__serve_failed_decide(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct failed_path *path = call->parameters;
    const struct decision_body *body = call->body;
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    pawl_failed_decision decision = PAWL_FAILED_DECISION_INIT;

    filter.id = path->event;
    decision.by = body->by;
    decision.notes = body->notes;
    decision.edited_payload = body->payload;
    return decide(call, path->pipeline, path->action, &filter, &decision, reterr);
}

pawl_status pawl__serve_failed_decide_all(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct bulk_body *body = call->body;
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;
    pawl_failed_decision decision = PAWL_FAILED_DECISION_INIT;

    TRY(set_filter(body, &filter, reterr));
    decision.by = body->by;
    decision.notes = body->notes;
    decision.expected = body->expected;
    return decide(call, path->pipeline, body->action, &filter, &decision, reterr);
}
