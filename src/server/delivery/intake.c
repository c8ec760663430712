/* POST .../events: the connection waits, suspended, until the write-ahead log has the events on disk. */
#include <stdlib.h>

#include "base/core/error.h"
#include "server/delivery/delivery.h"

/* What is left of a call when its body is gone. */
struct posting {
    struct pawl__serve_call *call;
    struct posted_result *results; /* in the call's arena */
    size_t count;
    pawl_error outcome;
};

static pawl_status refuse_conflict(struct pawl__serve_call *call,
                                   const struct posting *posting,
                                   pawl_error *reterr)
{
    for (size_t i = 0; i < posting->count; i++) {
        if (posting->results[i].result == PAWL_SUBMIT_CONFLICT) {
            reterr->index = (int64_t)i;
            return pawl__fail_detail(reterr,
                                     PAWL_CONFLICT,
                                     PAWL_DETAIL_ID_TAKEN,
                                     "events[%zu]: its id is taken by another payload; this one is "
                                     "in failed_events, and all others of the request are accepted",
                                     i);
        }
    }
    pawl__serve_answer(call, 200, &(struct posted_answer){ posting->results, posting->count });
    return PAWL_OK;
}

/* On a thread of the server's. */
static pawl_status finish(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct posting *posting = *(struct posting **)call->state;

    if (posting->outcome.status != PAWL_OK) {
        *reterr = posting->outcome;
        return posting->outcome.status;
    }
    return refuse_conflict(call, posting, reterr);
}

/* On the thread of the pipeline: only hands it on. */
static void on_done(void *context, const pawl_submit_outcome *outcomes, const pawl_error *outcome)
{
    struct posting *posting = context;

    posting->outcome = *outcome;
    for (size_t i = 0; outcomes != NULL && i < posting->count; i++) {
        posting->results[i].result = (unsigned)outcomes[i];
    }
    pawl__serve_resume(posting->call, finish);
}

static pawl_status prepare(struct pawl__serve_call *call,
                           pawl_incoming **ret_events,
                           struct posting **ret_posting,
                           pawl_error *reterr)
{
    const struct posted_events *body = call->body;
    pawl_incoming *events = pawl__arena_take(&call->arena, body->count * sizeof(*events));
    struct posting *posting = pawl__arena_take(&call->arena, sizeof(*posting));
    struct posted_result *results = pawl__arena_take(&call->arena, body->count * sizeof(*results));

    if (events == NULL || posting == NULL || results == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for events");
    }
    for (size_t i = 0; i < body->count; i++) {
        const struct posted_event *given = &body->events[i];

        events[i] = (pawl_incoming)PAWL_INCOMING_INIT;
        events[i].event_id = given->event_id;
        events[i].sequence = given->sequence;
        events[i].source = given->source;
        events[i].subject = given->subject;
        events[i].payload = given->payload;
        results[i].result = PAWL_SUBMIT_ACCEPTED;
    }
    *posting = (struct posting){ .call = call, .results = results, .count = body->count };
    *(struct posting **)call->state = posting;
    *ret_events = events;
    *ret_posting = posting;
    return PAWL_OK;
}

static pawl_status submit(struct pawl__serve_call *call, pawl_error *reterr)
{
    const struct pipeline_path *path = call->parameters;
    const struct posted_events *body = call->body;
    const struct node_pipeline_name name = pawl__serve_pipeline_name(path->pipeline);
    size_t count = body->count;
    pawl_incoming *events = NULL;
    struct posting *posting = NULL;
    pawl_delivery *delivery = NULL;

    TRY(pawl__serve_delivery_find(call->part, NODE_DELIVERY_THAT_EXISTS, &delivery, reterr));
    TRY(prepare(call, &events, &posting, reterr));
    pawl__http_drop_body(call->request); /* nobody may touch it once the answer can come */
    return pawl_pipeline_submit_async(delivery, name.text, events, count, on_done, posting, reterr);
}

/* A directory that is not open yet may take its time. */
pawl_status pawl__serve_pipeline_submit(struct pawl__serve_call *call, pawl_error *reterr)
{
    if (pawl__serve_delivery_open_one(call->part) != NULL) {
        return submit(call, reterr);
    }
    pawl__serve_hand_over(call, submit);
    return PAWL_OK;
}
