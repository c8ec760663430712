/* Failed events, for people: read through a connection of their own, and changed by the thread of the pipeline, or here
 * when it does not run. */
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

enum { PAGE_ROWS = 256, PAGE_BYTES = 8 << 20, JSON_BYTES_MAX = 256 << 20 };

const char *pawl_failed_status_name(pawl_failed_status status)
{
    return (unsigned)status <= PAWL_FAILED_ABANDONED ? pawl__failed_status_names[status]
                                                     : "unknown";
}

/* --- what is asked for --- */

struct asked {
    struct delivery_uuid id;
    struct delivery_failed_query query; /* its id points to `id` */
};

static pawl_status take_filter(const pawl_failed_filter *given,
                               struct asked *asked,
                               pawl_error *reterr)
{
    pawl_failed_filter filter = PAWL_FAILED_FILTER_INIT;

    TRY(pawl__take_sized("filter", given, &filter, sizeof(filter), reterr));
    NEED_VIEW(filter.id, reterr);
    NEED_VIEW(filter.reason, reterr);
    NEED_VIEW(filter.source, reterr);
    NEED_VIEW(filter.transaction_id, reterr);
    *asked = (struct asked){ .query = { .id = NULL } };
    if (filter.id.len > 0) {
        TRY(pawl__delivery_failed_id_parse(filter.id, &asked->id, reterr));
        asked->query.id = &asked->id;
        return PAWL_OK;
    }
    asked->query = (struct delivery_failed_query){
        .statuses = filter.statuses,
        .reason = filter.reason,
        .source = filter.source,
        .transaction_id = filter.transaction_id,
        .since_us = filter.since_us,
        .until_us = filter.until_us,
        .newest_first = filter.newest_first,
    };
    return PAWL_OK;
}

/* --- reading --- */

typedef pawl_status look_fn(struct delivery_sink *sink, void *context, pawl_error *reterr);

static pawl_status look_entered(struct pawl_delivery *delivery,
                                const char *name,
                                look_fn *look,
                                void *context,
                                pawl_error *reterr)
{
    struct delivery_runner *runner = NULL;
    struct delivery_sink *sink = NULL;

    TRY(pawl__delivery_find(delivery, name, &runner, reterr));
    TRY(pawl__delivery_open_sink(delivery, &runner->declared, &sink, reterr));
    pawl_status status = look(sink, context, reterr);
    sink->ops->close(sink);
    return status;
}

/* With `manage` the declaration stays what it is. The sink is one of our own: a second connection to the file. */
static pawl_status look_at(struct pawl_delivery *delivery,
                           const char *name,
                           look_fn *look,
                           void *context,
                           pawl_error *reterr)
{
    pawl__calls_enter(&delivery->calls);
    pawl__lock(&delivery->manage);
    pawl_status status = look_entered(delivery, name, look, context, reterr);
    pawl__unlock(&delivery->manage);
    pawl__calls_leave(&delivery->calls);
    return status;
}

struct listing {
    struct asked asked;
    struct delivery_failed_page rows;
    struct pawl__page page;
};

static void listing_done(struct listing *listing)
{
    pawl__delivery_failed_page_done(&listing->rows);
}

/* The backends begin after an LSN, a page with one. */
static void begin_at(struct delivery_failed_query *query, uint64_t from)
{
    if (from != 0 && query->id == NULL) {
        query->after = query->newest_first ? MAX(from, from + 1) : from - 1;
    }
}

static pawl_status read_page(struct delivery_sink *sink, void *context, pawl_error *reterr)
{
    struct listing *listing = context;
    struct delivery_failed_query *query = &listing->asked.query;

    uint64_t wanted = pawl__page_reads(&listing->page);
    query->rows_max =
        (size_t)(wanted == 0 ? PAGE_ROWS : MIN(wanted - listing->page.shown, (uint64_t)PAGE_ROWS));
    query->bytes_max = PAGE_BYTES;
    return sink->ops->read_failed(sink, query, &listing->rows, reterr);
}

static pawl_failed_event event_of(const struct delivery_failed_row *row,
                                  const char *pipeline,
                                  char id[37])
{
    pawl__delivery_failed_id_text(&row->id, id);
    return (pawl_failed_event){
        .size = sizeof(pawl_failed_event),
        .pipeline = pawl_view_of(pipeline),
        .id = pawl_view_of(id),
        .lsn = row->lsn,
        .transaction_id = row->transaction_id,
        .event_id = row->event_id,
        .source = row->source,
        .subject = row->subject,
        .session_key = row->session_key,
        .correlation_key = row->correlation_key,
        .status = (pawl_failed_status)row->status,
        .failure_reason = row->reason,
        .failure_layer = row->layer,
        .last_error = row->last_error,
        .retry_count = (int32_t)row->retry_count,
        .max_retries_exceeded = row->retries_exceeded,
        .received_at_us = row->received_us,
        .failed_at_us = row->failed_us,
        .last_retry_at_us = row->last_retry_us,
        .resolution = pawl_view_of(pawl__delivery_resolution_name(row->resolution)),
        .resolved_at_us = row->resolved_us,
        .resolved_by = row->resolved_by,
        .resolution_notes = row->notes,
        .payload_encoding = row->encoding,
        .headers = row->headers,
        .event_payload = row->payload,
        .edited_payload = row->edited_payload,
    };
}

static bool visit_page(struct pawl_delivery *delivery,
                       struct listing *listing,
                       const char *pipeline,
                       pawl_failed_visit visit,
                       void *context)
{
    INSIDE(delivery);
    bool goes_on = true;

    for (size_t i = 0; goes_on && i < listing->rows.count; i++) {
        char id[37];
        pawl_failed_event event = event_of(&listing->rows.rows[i], pipeline, id);
        goes_on = pawl__page_admits(&listing->page, event.lsn)
                  && pawl__page_show(&listing->page, visit(context, &event));
        listing->asked.query.after = listing->rows.rows[i].lsn;
    }
    return goes_on;
}

pawl_status pawl_failed_list(pawl_delivery *delivery,
                             const char *pipeline,
                             const pawl_failed_filter *filter,
                             pawl_page *page,
                             pawl_failed_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    NEED(delivery, pipeline, visit, reterr);
    AUTO(listing_done) struct listing listing = { .rows = { .count = 0 } };
    bool goes_on = true;

    TRY(take_filter(filter, &listing.asked, reterr));
    TRY(pawl__page_take(page, &listing.page, reterr));
    begin_at(&listing.asked.query, listing.page.page.from);
    do {
        TRY(look_at(delivery, pipeline, read_page, &listing, reterr));
        goes_on = visit_page(delivery, &listing, pipeline, visit, context);
    } while (goes_on && listing.rows.count > 0 && listing.asked.query.id == NULL);
    pawl__page_answer(&listing.page, page);
    return PAWL_OK;
}

pawl_status pawl_failed_to_json(const pawl_failed_event *event,
                                char **ret_json,
                                size_t *ret_len,
                                pawl_error *reterr)
{
    NEED(event, ret_json, reterr);
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(JSON_BYTES_MAX);
    pawl_failed_event taken = { .size = sizeof(taken) };

    TRY(pawl__take_sized("event", event, &taken, sizeof(taken), reterr));
    if ((unsigned)taken.status > PAWL_FAILED_ABANDONED) {
        return pawl__fail(reterr, PAWL_INVALID, "event.status: is %u", (unsigned)taken.status);
    }
    TRY(pawl__record_check(&pawl__failed_event_record, &taken, reterr));
    pawl__record_write(&pawl__failed_event_record, &taken, &json);
    return pawl__buf_hand_out(&json, "a failed event", ret_json, ret_len, reterr);
}

/* --- counting --- */

static pawl_status check_action(pawl_failed_action action, pawl_error *reterr)
{
    return (unsigned)action <= PAWL_FAILED_ABANDON
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_INVALID, "action: %u is none", (unsigned)action);
}

struct counting {
    struct asked asked;
    enum delivery_failed_action action;
    uint64_t count;
};

static pawl_status count_rows(struct delivery_sink *sink, void *context, pawl_error *reterr)
{
    struct counting *counting = context;

    return pawl__delivery_failed_count(
        sink, counting->action, &counting->asked.query, &counting->count, reterr);
}

pawl_status pawl_failed_count(pawl_delivery *delivery,
                              const char *pipeline,
                              pawl_failed_action action,
                              const pawl_failed_filter *filter,
                              uint64_t *ret_count,
                              pawl_error *reterr)
{
    NEED(delivery, pipeline, ret_count, reterr);
    struct counting counting = { .action = (enum delivery_failed_action)action };

    TRY(check_action(action, reterr));
    TRY(take_filter(filter, &counting.asked, reterr));
    TRY(look_at(delivery, pipeline, count_rows, &counting, reterr));
    *ret_count = counting.count;
    return PAWL_OK;
}

/* --- acting --- */

static void act(struct delivery_runner *runner, struct delivery_errand *errand)
{
    errand->status = pawl__delivery_failed_act(
        &runner->pipeline, errand->request, &errand->result, &errand->error);
}

void pawl__delivery_run_errand(struct delivery_runner *runner)
{
    struct pawl_delivery *delivery = runner->delivery;

    pawl__lock(&delivery->lock);
    struct delivery_errand *errand = STEAL(runner->errand);
    if (errand != NULL) {
        errand->is_taken = true;
    }
    pawl__unlock(&delivery->lock);
    if (errand == NULL) {
        return;
    }
    act(runner, errand);
    pawl__lock(&delivery->lock);
    errand->is_done = true;
    pawl__cond_broadcast(&delivery->changed);
    pawl__unlock(&delivery->lock);
}

/* Its thread is not there; `manage` keeps it so. */
static void act_here(struct delivery_runner *runner, struct delivery_errand *errand)
{
    errand->status = pawl__delivery_open_stores(runner, &errand->error);
    if (errand->status == PAWL_OK) {
        act(runner, errand);
    }
    if (errand->status == PAWL_OK) {
        pawl__delivery_checkpoint_now(runner);
    }
    pawl__delivery_close_parts(runner);
}

static bool is_alive_locked(const struct delivery_runner *runner)
    REQUIRES_LOCK(runner->delivery->lock)
{
    return runner->state == PAWL_PIPELINE_STARTING || runner->state == PAWL_PIPELINE_RUNNING;
}

/* Gives the errand to the thread; false: there is none. BUSY: it has another one. */
static pawl_status hand_over(struct delivery_runner *runner,
                             struct delivery_errand *errand,
                             bool *ret_given,
                             pawl_error *reterr)
{
    pawl__lock(&runner->delivery->lock);
    bool is_alive = runner->has_thread && is_alive_locked(runner);
    bool is_busy = is_alive && runner->errand != NULL;
    *ret_given = is_alive && !is_busy;
    if (*ret_given) {
        runner->errand = errand;
        runner->waiting++;
    }
    pawl__unlock(&runner->delivery->lock);
    if (*ret_given) {
        pawl__delivery_call(runner);
    }
    return is_busy ? pawl__fail(reterr,
                                PAWL_BUSY,
                                "somebody else is at the failed events of pipeline '%s'",
                                runner->declared.is.name.data)
                   : PAWL_OK;
}

/* Once taken it is waited for: it is ours that the thread writes to. */
static void await(struct delivery_runner *runner, struct delivery_errand *errand)
{
    pawl__lock(&runner->delivery->lock);
    while (!errand->is_done
           && (errand->is_taken || (is_alive_locked(runner) && !runner->delivery->is_closing))) {
        pawl__cond_wait(&runner->delivery->changed, &runner->delivery->lock);
    }
    if (runner->errand == errand) {
        runner->errand = NULL;
    }
    runner->waiting--;
    pawl__cond_broadcast(&runner->delivery->changed);
    pawl__unlock(&runner->delivery->lock);
    if (!errand->is_done) {
        errand->status = pawl__fail(
            &errand->error, PAWL_UNAVAILABLE, "the pipeline was stopped meanwhile: try again");
    }
}

static pawl_status run_errand(struct pawl_delivery *delivery,
                              const char *name,
                              struct delivery_errand *errand,
                              pawl_error *reterr)
{
    struct delivery_runner *runner = NULL;
    bool is_given = false;

    pawl__lock(&delivery->manage);
    pawl_status status = pawl__delivery_find(delivery, name, &runner, reterr);
    if (status == PAWL_OK) {
        status = pawl__delivery_check_free(runner, reterr);
    }
    if (status == PAWL_OK) {
        status = hand_over(runner, errand, &is_given, reterr);
    }
    if (status == PAWL_OK && !is_given) {
        act_here(runner, errand);
    }
    pawl__unlock(&delivery->manage);
    if (status == PAWL_OK && is_given) {
        await(runner, errand);
    }
    TRY(status);
    return errand->status == PAWL_OK ? PAWL_OK
                                     : pawl__fail_with(reterr, errand->status, &errand->error);
}

static pawl_status take_decision(const pawl_failed_decision *given,
                                 struct delivery_failed_request *request,
                                 pawl_error *reterr)
{
    pawl_failed_decision decision = PAWL_FAILED_DECISION_INIT;

    TRY(pawl__take_sized("decision", given, &decision, sizeof(decision), reterr));
    NEED_VIEW(decision.by, reterr);
    NEED_VIEW(decision.notes, reterr);
    NEED_VIEW(decision.edited_payload, reterr);
    request->who = decision.by;
    request->notes = decision.notes;
    request->edited_payload = decision.edited_payload;
    request->expected = decision.expected;
    return PAWL_OK;
}

static void give_result(const struct delivery_failed_result *result, pawl_failed_result *ret_result)
{
    pawl_failed_result given = {
        .size = sizeof(given),
        .matched = result->matched,
        .delivered = result->delivered,
        .filtered = result->filtered,
        .refused = result->refused,
        .closed = result->closed,
    };

    _Static_assert(sizeof(given.error) == sizeof(result->error), "the same room");
    memcpy(given.error, result->error, sizeof(given.error));
    *ret_result = given;
}

pawl_status pawl_failed_act(pawl_delivery *delivery,
                            const char *pipeline,
                            pawl_failed_action action,
                            const pawl_failed_filter *filter,
                            const pawl_failed_decision *decision,
                            pawl_failed_result *ret_result,
                            pawl_error *reterr)
{
    NEED(delivery, pipeline, reterr);
    NEED(decision, ret_result, reterr);
    struct asked asked;
    struct delivery_failed_request request = { .action = (enum delivery_failed_action)action };
    struct delivery_errand errand = { .request = &request, .error = PAWL_ERROR_INIT };

    TRY(check_action(action, reterr));
    TRY(take_filter(filter, &asked, reterr));
    TRY(take_decision(decision, &request, reterr));
    request.query = asked.query;
    pawl__calls_enter(&delivery->calls);
    pawl_status status = run_errand(delivery, pipeline, &errand, reterr);
    pawl__calls_leave(&delivery->calls);
    give_result(&errand.result, ret_result);
    return status;
}
