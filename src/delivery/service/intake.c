/* Events that callers hand to a pipeline: identified and copied here, written by its thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "delivery/service/internal.h"

const char *pawl_submit_outcome_name(pawl_submit_outcome outcome)
{
    static const char *const names[] = { "accepted", "duplicate", "conflict" };

    return (unsigned)outcome < COUNT_OF(names) ? names[outcome] : "unknown";
}

struct handing {
    struct delivery_submission submission;
    struct pawl_delivery *delivery;
    pawl_submit_done done;
    void *context;
};

static void handing_free(struct handing *handing)
{
    if (handing != NULL) {
        pawl__arena_done(&handing->submission.arena);
        free(handing);
    }
}
DEFINE_AUTO(struct handing *, handing_free)

_Static_assert((int)PAWL_SUBMIT_ACCEPTED == DELIVERY_TAKEN_NEW
                   && (int)PAWL_SUBMIT_DUPLICATE == DELIVERY_TAKEN_AGAIN
                   && (int)PAWL_SUBMIT_CONFLICT == DELIVERY_TAKEN_CONFLICT
                   && sizeof(pawl_submit_outcome) == sizeof(enum delivery_taken),
               "outcomes are what the pipeline says");

static void on_done(struct delivery_submission *submission, const pawl_error *error)
{
    struct handing *handing = submission->context;
    const pawl_submit_outcome *outcomes = (const pawl_submit_outcome *)(void *)submission->taken;
    INSIDE(handing->delivery);

    handing->done(handing->context, error->status == PAWL_OK ? outcomes : NULL, error);
    handing_free(handing);
}

/* --- what is handed in --- */

static pawl_status copy_view(struct pawl__arena *arena,
                             pawl_view from,
                             pawl_view *ret_copy,
                             pawl_error *reterr)
{
    return pawl__arena_copy(arena, from, ret_copy)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
}

/* An id that is given beside the payload travels as it does from `pawl publish`: in headers, which win over id_field. */
static pawl_status add_headers(struct pawl__arena *arena,
                               const pawl_incoming *event,
                               struct delivery_message *message,
                               pawl_error *reterr)
{
    struct delivery_header *headers = pawl__arena_take(arena, 3 * sizeof(*headers));
    char sequence[24];
    size_t count = 0;

    TRY(pawl__check_memory(headers, "an event", reterr));
    message->headers = headers;
    if (event->event_id.len == 0) {
        return event->sequence == 0 && event->source.len == 0
                   ? PAWL_OK
                   : pawl__fail(reterr,
                                PAWL_INVALID,
                                "event_id: missing; sequence and source need it beside them");
    }
    headers[count].name = pawl_view_of(DELIVERY_HEADER_EVENT_ID);
    TRY(copy_view(arena, event->event_id, &headers[count++].value, reterr));
    if (event->source.len > 0) {
        headers[count].name = pawl_view_of(DELIVERY_HEADER_SOURCE);
        TRY(copy_view(arena, event->source, &headers[count++].value, reterr));
    }
    if (event->sequence > 0) {
        (void)snprintf(sequence, sizeof(sequence), "%" PRIu64, event->sequence);
        headers[count].name = pawl_view_of(DELIVERY_HEADER_SEQUENCE);
        TRY(copy_view(arena, pawl_view_of(sequence), &headers[count++].value, reterr));
    }
    message->header_count = count;
    return PAWL_OK;
}

/* Without an id of its own it would be another event each time it is sent. */
static pawl_status check_id(const struct delivery_identity_rule *rule,
                            const struct delivery_message *message,
                            pawl_error *reterr)
{
    char memory[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct pawl__buf text = BUF_OVER(memory);
    struct delivery_identity identity;

    TRY(pawl__delivery_identify(rule, message, &text, &identity, reterr));
    if (identity.kind == DELIVERY_ID_GIVEN) {
        return PAWL_OK;
    }
    if (identity.kind == DELIVERY_ID_BAD) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "event_id: an id has 1 to %d bytes of UTF-8 without control characters, "
                          "a source no ':'",
                          DELIVERY_ID_BYTES_MAX);
    }
    return rule->id_field.len > 0
               ? pawl__fail(reterr,
                            PAWL_INVALID,
                            "event_id: missing, and the payload has no key '%.*s' with an id",
                            VIEW_ARGS(rule->id_field))
               : pawl__fail(reterr, PAWL_INVALID, "event_id: missing; every event needs its own");
}

static pawl_status take_event(const struct delivery_identity_rule *rule,
                              const pawl_incoming *event,
                              struct pawl__arena *arena,
                              struct delivery_message *message,
                              pawl_error *reterr)
{
    NEED_VIEW(event->event_id, reterr);
    NEED_VIEW(event->source, reterr);
    NEED_VIEW(event->subject, reterr);
    NEED_VIEW(event->payload, reterr);
    *message = (struct delivery_message){ .handle = 0 };
    TRY(add_headers(arena, event, message, reterr));
    TRY(copy_view(arena, event->subject, &message->subject, reterr));
    TRY(copy_view(arena, event->payload, &message->payload, reterr));
    return check_id(rule, message, reterr);
}

static pawl_status fill(struct handing *handing,
                        const struct delivery_identity_rule *rule,
                        const pawl_incoming *events,
                        size_t count,
                        pawl_error *reterr)
{
    struct delivery_submission *submission = &handing->submission;
    struct pawl__arena *arena = &submission->arena;
    const pawl_incoming defaults = PAWL_INCOMING_INIT;
    const void *widened = events;

    TRY(pawl__widen_sized("events", &widened, count, &defaults, sizeof(defaults), arena, reterr));
    events = widened;
    submission->messages = pawl__arena_take(arena, count * sizeof(*submission->messages));
    submission->taken = pawl__arena_take(arena, count * sizeof(*submission->taken));
    TRY(pawl__check_memory(submission->messages, "events", reterr));
    TRY(pawl__check_memory(submission->taken, "events", reterr));
    memset(submission->taken, 0, count * sizeof(*submission->taken));
    for (size_t i = 0; i < count; i++) {
        pawl_status status = take_event(rule, &events[i], arena, &submission->messages[i], reterr);
        if (status != PAWL_OK) {
            if (reterr != NULL) {
                reterr->index = (int64_t)i;
            }
            return status;
        }
    }
    submission->count = count;
    return PAWL_OK;
}

/* --- the pipeline --- */

/* It stays until let_go. Not under `manage`, which may be held for as long as a store takes. */
static struct delivery_runner *hold(struct pawl_delivery *delivery,
                                    const char *name,
                                    pawl_error *reterr)
{
    pawl__lock(&delivery->lock);
    struct delivery_runner *runner = delivery->runners;
    while (runner != NULL && strcmp(runner->declared.is.name.data, name) != 0) {
        runner = runner->next;
    }
    if (runner != NULL) {
        runner->waiting++;
    }
    pawl__unlock(&delivery->lock);
    if (runner == NULL) {
        (void)pawl__fail(reterr, PAWL_NOT_FOUND, "no pipeline '%s'", name);
    }
    return runner;
}

static void let_go(struct delivery_runner *runner)
{
    pawl__lock(&runner->delivery->lock);
    runner->waiting--;
    pawl__cond_broadcast(&runner->delivery->changed);
    pawl__unlock(&runner->delivery->lock);
}

/* Why nothing is taken, which the inbox does not know. */
static pawl_status fail_state(struct delivery_runner *runner,
                              const char *name,
                              pawl_status status,
                              const pawl_error *error,
                              pawl_error *reterr)
{
    if (status != PAWL_UNAVAILABLE) {
        return pawl__fail_with(reterr, status, error);
    }
    pawl__lock(&runner->delivery->lock);
    pawl_pipeline_state state = runner->state;
    pawl_error why = runner->error;
    pawl__unlock(&runner->delivery->lock);
    if (state == PAWL_PIPELINE_PAUSED) {
        return pawl__fail_advised(reterr,
                                  PAWL_UNAVAILABLE,
                                  "pipeline '%s' is paused; run `pawl pipeline resume %s`",
                                  name,
                                  name);
    }
    return pawl__fail(reterr,
                      PAWL_UNAVAILABLE,
                      "pipeline '%s' is %s%s%s",
                      name,
                      pawl_pipeline_state_name(state),
                      why.status == PAWL_OK ? "" : ": ",
                      why.status == PAWL_OK ? "" : why.message);
}

/* The declaration is replaced only while the pipeline does not run, under `lock`: what is read of it here is copied. */
static pawl_status copy_rule(struct delivery_runner *runner,
                             struct pawl__arena *arena,
                             struct delivery_identity_rule *ret_rule,
                             pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    pawl__lock(&runner->delivery->lock);
    const struct delivery_declared *declared = &runner->declared;
    if (declared->kind != DELIVERY_KIND_HTTP) {
        status =
            pawl__fail_advised(reterr,
                               PAWL_CONFLICT,
                               "pipeline '%s' reads '%.*s'; events are posted to pipelines that "
                               "were added with --from http",
                               declared->is.name.data,
                               VIEW_ARGS(declared->shown));
    } else if (!pawl__arena_copy(arena, declared->identity.source, &ret_rule->source)
               || !pawl__arena_copy(arena, declared->identity.stream, &ret_rule->stream)
               || !pawl__arena_copy(arena, declared->identity.id_field, &ret_rule->id_field)) {
        status = pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    pawl__unlock(&runner->delivery->lock);
    return status;
}

static pawl_status submit(struct delivery_runner *runner,
                          const char *name,
                          struct handing *handing,
                          const pawl_incoming *events,
                          size_t count,
                          pawl_error *reterr)
{
    struct delivery_identity_rule rule;
    pawl_error error = PAWL_ERROR_INIT;

    TRY(copy_rule(runner, &handing->submission.arena, &rule, reterr));
    TRY(fill(handing, &rule, events, count, reterr));
    pawl_status status = pawl__delivery_inbox_submit(&runner->inbox, &handing->submission, &error);
    return status == PAWL_OK ? PAWL_OK : fail_state(runner, name, status, &error, reterr);
}

pawl_status pawl_pipeline_submit_async(pawl_delivery *delivery,
                                       const char *name,
                                       const pawl_incoming *events,
                                       size_t count,
                                       pawl_submit_done done,
                                       void *context,
                                       pawl_error *reterr)
{
    NEED(delivery, name, events, reterr);
    NEED(done, reterr);
    TRY(pawl__check_range(
        "count", (int64_t)MIN(count, (size_t)INT64_MAX), 1, PAWL_INCOMING_BATCH_MAX, reterr));
    AUTO(handing_free_p) struct handing *handing = calloc(1, sizeof(*handing));

    TRY(pawl__check_memory(handing, "events", reterr));
    handing->submission.done = on_done;
    handing->submission.context = handing;
    handing->delivery = delivery;
    handing->done = done;
    handing->context = context;
    pawl__calls_enter(&delivery->calls);
    struct delivery_runner *runner = hold(delivery, name, reterr);
    pawl_status status = PAWL_NOT_FOUND;
    if (runner != NULL) {
        status = submit(runner, name, handing, events, count, reterr);
        let_go(runner);
    }
    pawl__calls_leave(&delivery->calls);
    if (status == PAWL_OK) {
        handing = NULL; /* the pipeline's, and perhaps gone */
    }
    return status;
}

/* --- waiting for it --- */

struct waiter {
    struct pawl__lock lock;
    struct pawl__cond changed;
    bool is_done;
    pawl_submit_outcome *outcomes;
    size_t count;
    pawl_error outcome;
};

static void on_waited(void *context, const pawl_submit_outcome *outcomes, const pawl_error *outcome)
{
    struct waiter *waiter = context;

    pawl__lock(&waiter->lock);
    if (outcomes != NULL) {
        memcpy(waiter->outcomes, outcomes, waiter->count * sizeof(*outcomes));
    }
    waiter->outcome = *outcome;
    waiter->is_done = true;
    pawl__cond_broadcast(&waiter->changed);
    pawl__unlock(&waiter->lock);
}

pawl_status pawl_pipeline_submit(pawl_delivery *delivery,
                                 const char *name,
                                 const pawl_incoming *events,
                                 size_t count,
                                 pawl_submit_outcome *ret_outcomes,
                                 pawl_error *reterr)
{
    NEED(delivery, name, events, reterr);
    NEED(ret_outcomes, reterr);
    struct waiter waiter = { .count = count, .outcome = PAWL_ERROR_INIT };

    if (pawl__is_inside(delivery)) { /* of a `done`: the thread that would write is this one */
        return pawl__fail_detail(reterr,
                                 PAWL_INVALID,
                                 PAWL_DETAIL_WRONG_THREAD,
                                 "called inside a callback of the delivery; use _async there");
    }
    waiter.outcomes = ret_outcomes;
    pawl__lock_cond_init(&waiter.lock, &waiter.changed);
    pawl_status status =
        pawl_pipeline_submit_async(delivery, name, events, count, on_waited, &waiter, reterr);
    if (status == PAWL_OK) {
        pawl__lock(&waiter.lock);
        while (!waiter.is_done) {
            pawl__cond_wait(&waiter.changed, &waiter.lock);
        }
        pawl__unlock(&waiter.lock);
        status = waiter.outcome.status;
    }
    pawl__lock_cond_done(&waiter.lock, &waiter.changed);
    return status == PAWL_OK || waiter.outcome.status == PAWL_OK
               ? status
               : pawl__fail_with(reterr, status, &waiter.outcome);
}
