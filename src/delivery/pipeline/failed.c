#include "delivery/pipeline/failed.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/json/json.h"
#include "base/os/failpoint.h"
#include "delivery/pipeline/retry.h"

enum {
    ACT_ROWS = 256, /* of a page */
    ACT_BYTES = 4 << 20,
    LINE_BYTES_MAX = 256 << 20,
};

/* --- which rows --- */

/* The page begins at the first row; false: the action can begin from none of the statuses that are wanted. */
static bool narrow(enum delivery_failed_action action, struct delivery_failed_query *query)
{
    unsigned from = pawl__delivery_failed_from(action);

    query->statuses = query->statuses == 0 ? from : query->statuses & from;
    query->newest_first = false;
    query->after = 0;
    query->rows_max = ACT_ROWS;
    query->bytes_max = ACT_BYTES;
    return query->statuses != 0;
}

pawl_status pawl__delivery_failed_count(struct delivery_sink *sink,
                                        enum delivery_failed_action action,
                                        const struct delivery_failed_query *query,
                                        uint64_t *ret_count,
                                        pawl_error *reterr)
{
    struct delivery_failed_query narrowed = *query;

    *ret_count = 0;
    return narrow(action, &narrowed) ? sink->ops->count_failed(sink, &narrowed, ret_count, reterr)
                                     : PAWL_OK;
}

static pawl_status check_request(const struct delivery_failed_request *request, pawl_error *reterr)
{
    TRY(pawl__delivery_decision_check(request->who, request->notes, reterr));
    if (request->who.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "by: missing; say who decides");
    }
    if (request->edited_payload.len == 0) {
        return PAWL_OK;
    }
    if (request->action != DELIVERY_FAILED_RETRY || request->query.id == NULL) {
        return pawl__fail(
            reterr, PAWL_INVALID, "an edited payload belongs to the retry of one failed event");
    }
    pawl_status status =
        pawl__json_check(request->edited_payload, request->edited_payload.len, reterr);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "the edited payload");
}

/* --- resolve and abandon --- */

static pawl_status close_page(struct delivery_pipeline *pipeline,
                              const struct delivery_failed_request *request,
                              const struct delivery_failed_page *page,
                              struct delivery_failed_result *result,
                              pawl_error *reterr)
{
    struct delivery_failed_change changes[ACT_ROWS];
    struct delivery_decision decisions[ACT_ROWS];
    enum delivery_blame blame = DELIVERY_BLAME_STOP;
    bool is_resolve = request->action == DELIVERY_FAILED_RESOLVE;

    REQUIRE(page->count <= ACT_ROWS);
    for (size_t i = 0; i < page->count; i++) {
        decisions[i] = (struct delivery_decision){
            .lsn = page->rows[i].lsn,
            .status = is_resolve ? DELIVERY_FAILED_RESOLVED : DELIVERY_FAILED_ABANDONED,
            .resolution = is_resolve ? DELIVERY_RESOLVED_BY_HAND : DELIVERY_NOT_RESOLVED,
            .at_us = pawl__wall_us(pipeline->parts.clock),
            .who = request->who,
            .notes = request->notes,
        };
        changes[i] =
            (struct delivery_failed_change){ .id = page->rows[i].id, .decision = decisions[i] };
    }
    TRY(pawl__delivery_be_ready(pipeline, reterr));
    FAILPOINT("delivery.failed.close.before", reterr);
    TRY(pawl__delivery_commit_changes(pipeline, NULL, 0, changes, page->count, &blame, reterr));
    result->closed += page->count;
    FAILPOINT("delivery.failed.close.after", reterr);
    return pawl__delivery_keep_decisions(pipeline, decisions, page->count, reterr);
}

/* --- retry --- */

static pawl_status retry_page(struct delivery_pipeline *pipeline,
                              const struct delivery_failed_request *request,
                              const struct delivery_failed_page *page,
                              struct delivery_failed_result *result,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < page->count; i++) {
        const struct delivery_decision decision = {
            .lsn = page->rows[i].lsn,
            .at_us = pawl__wall_us(pipeline->parts.clock),
            .who = request->who,
            .notes = request->notes,
            .edited_payload = request->edited_payload,
        };
        struct delivery_attempt attempt = { .kind = DELIVERY_TO_FAILED };
        TRY(pawl__delivery_retry_failed(pipeline, &page->rows[i], &decision, &attempt, reterr));
        result->delivered += attempt.kind == DELIVERY_ROW;
        result->filtered += attempt.kind == DELIVERY_FILTERED;
        if (attempt.kind == DELIVERY_TO_FAILED) {
            result->refused++;
            memcpy(result->error, attempt.error, sizeof(result->error));
        }
    }
    return PAWL_OK;
}

/* --- both --- */

static pawl_status act_on_page(struct delivery_pipeline *pipeline,
                               const struct delivery_failed_request *request,
                               const struct delivery_failed_page *page,
                               struct delivery_failed_result *result,
                               pawl_error *reterr)
{
    return request->action == DELIVERY_FAILED_RETRY
               ? retry_page(pipeline, request, page, result, reterr)
               : close_page(pipeline, request, page, result, reterr);
}

static pawl_status act_on_one(struct delivery_pipeline *pipeline,
                              const struct delivery_failed_request *request,
                              struct delivery_failed_result *result,
                              pawl_error *reterr)
{
    AUTO(pawl__delivery_failed_page_done) struct delivery_failed_page page = { .count = 0 };
    struct delivery_sink *sink = pipeline->parts.sink;
    const struct delivery_failed_query query = { .id = request->query.id,
                                                 .rows_max = 1,
                                                 .bytes_max = SIZE_MAX };
    char id[37];

    pawl__delivery_failed_id_text(request->query.id, id);
    TRY(sink->ops->read_failed(sink, &query, &page, reterr));
    if (page.count == 0) {
        return pawl__fail(reterr, PAWL_NOT_FOUND, "no failed event '%s'", id);
    }
    result->matched = 1;
    enum delivery_failed_status status = page.rows[0].status;
    if ((pawl__delivery_failed_from(request->action) & 1U << (unsigned)status) == 0) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "failed event '%s' is %s already",
                          id,
                          pawl__delivery_failed_status_name(status));
    }
    return act_on_page(pipeline, request, &page, result, reterr);
}

static pawl_status act_on_many(struct delivery_pipeline *pipeline,
                               const struct delivery_failed_request *request,
                               struct delivery_failed_result *result,
                               pawl_error *reterr)
{
    AUTO(pawl__delivery_failed_page_done) struct delivery_failed_page page = { .count = 0 };
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_failed_query query = request->query;

    TRY(pawl__delivery_failed_count(sink, request->action, &query, &result->matched, reterr));
    if (result->matched != request->expected) {
        return pawl__fail(reterr,
                          PAWL_CONFLICT,
                          "%llu failed events match, %llu were counted before: count again",
                          (unsigned long long)result->matched,
                          (unsigned long long)request->expected);
    }
    if (!narrow(request->action, &query)) {
        return PAWL_OK;
    }
    do {
        TRY(sink->ops->read_failed(sink, &query, &page, reterr));
        if (page.count > 0) {
            query.after = page.rows[page.count - 1].lsn;
            TRY(act_on_page(pipeline, request, &page, result, reterr));
        }
    } while (page.count > 0);
    return PAWL_OK;
}

pawl_status pawl__delivery_failed_act(struct delivery_pipeline *pipeline,
                                      const struct delivery_failed_request *request,
                                      struct delivery_failed_result *ret_result,
                                      pawl_error *reterr)
{
    *ret_result = (struct delivery_failed_result){ .matched = 0 };
    TRY(check_request(request, reterr));
    return request->query.id != NULL ? act_on_one(pipeline, request, ret_result, reterr)
                                     : act_on_many(pipeline, request, ret_result, reterr);
}

/* --- export --- */

pawl_status pawl__delivery_failed_export(struct delivery_sink *sink,
                                         const struct delivery_failed_query *query,
                                         delivery_failed_writer *write,
                                         void *context,
                                         pawl_error *reterr)
{
    AUTO(pawl__delivery_failed_page_done) struct delivery_failed_page page = { .count = 0 };
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(LINE_BYTES_MAX);
    struct delivery_failed_query next = *query;

    next.rows_max = ACT_ROWS;
    next.bytes_max = ACT_BYTES;
    do {
        TRY(sink->ops->read_failed(sink, &next, &page, reterr));
        for (size_t i = 0; i < page.count; i++) {
            pawl__buf_clear(&line);
            TRY(pawl__delivery_failed_json(&page.rows[i], &line, reterr));
            pawl__buf_add_char(&line, '\n');
            TRY(pawl__buf_check(&line, "a failed event", reterr));
            TRY(write(context, pawl__buf_view(&line), reterr));
            next.after = page.rows[i].lsn;
        }
    } while (page.count > 0);
    return PAWL_OK;
}
