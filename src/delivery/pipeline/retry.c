#include "delivery/pipeline/retry.h"

#include <stdio.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"

pawl_status pawl__delivery_be_ready(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    bool is_ready = false;

    TRY(pawl__delivery_ready(pipeline, &is_ready, reterr));
    return is_ready
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_UNAVAILABLE, "the sink is out of order: try again later");
}

pawl_status pawl__delivery_keep_decisions(struct delivery_pipeline *pipeline,
                                          const struct delivery_decision *decisions,
                                          size_t count,
                                          pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    pawl_status status = wal->ops->decide(wal, decisions, count, reterr);

    pawl__delivery_break_if(pipeline, status != PAWL_OK);
    return status;
}

/* The WAL has every byte of the event; the row stands in when it has forgotten it, or is another one. */
static pawl_status find_entry(struct delivery_pipeline *pipeline,
                              const struct delivery_failed_row *row,
                              pawl_view edited_payload,
                              struct delivery_page *page,
                              struct pawl__arena *arena,
                              struct delivery_entry *ret_entry,
                              pawl_error *reterr)
{
    struct delivery_failed_row source = *row;
    bool is_found = false;

    TRY(pawl__delivery_read_one(pipeline, row->lsn, page, &is_found, reterr));
    if (is_found && pawl__delivery_hash_equal(&page->entries[0].payload_hash, &row->payload_hash)) {
        *ret_entry = page->entries[0];
        ret_entry->key = row->key; /* under which the sink knows it */
        if (edited_payload.len > 0) {
            ret_entry->payload = edited_payload;
        }
        return PAWL_OK;
    }
    if (edited_payload.len > 0) { /* whatever was kept of the original */
        source.payload = edited_payload;
        source.encoding = pawl_view_of("json");
    }
    return pawl__delivery_failed_entry(&source, arena, ret_entry, reterr);
}

static pawl_status judge(struct delivery_pipeline *pipeline,
                         const struct delivery_entry *entry,
                         struct delivery_verdict *ret_verdict,
                         pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;

    if (entry->payload.len > pipeline->settings.payload_bytes_max) {
        *ret_verdict = (struct delivery_verdict){ .kind = DELIVERY_TO_FAILED };
        snprintf(ret_verdict->error,
                 sizeof(ret_verdict->error),
                 "the payload has %zu bytes, the limit is %zu",
                 entry->payload.len,
                 pipeline->settings.payload_bytes_max);
        return PAWL_OK;
    }
    return sink->ops->validate(sink, entry, 1, ret_verdict, reterr);
}

static pawl_status commit_status(struct delivery_pipeline *pipeline,
                                 const struct delivery_failed_row *row,
                                 enum delivery_failed_status status,
                                 const char *error,
                                 pawl_error *reterr)
{
    enum delivery_blame blame = DELIVERY_BLAME_STOP;
    const struct delivery_failed_change change = {
        .id = row->id,
        .decision = { .lsn = row->lsn,
                      .status = status,
                      .at_us = pawl__wall_us(pipeline->parts.clock) },
        .is_attempt = status == DELIVERY_FAILED_RETRYING,
        .error = pawl_view_of(error),
    };

    return pawl__delivery_commit_changes(pipeline, NULL, 0, &change, 1, &blame, reterr);
}

/* The row of the table, the status and the counters in one transaction. */
static pawl_status commit_row(struct delivery_pipeline *pipeline,
                              const struct delivery_failed_row *row,
                              const struct delivery_outcome *outcome,
                              struct delivery_decision *decision,
                              enum delivery_blame *ret_blame,
                              pawl_error *reterr)
{
    decision->status = DELIVERY_FAILED_RESOLVED;
    decision->resolution =
        outcome->kind == DELIVERY_ROW ? DELIVERY_RESOLVED_DELIVERED : DELIVERY_RESOLVED_FILTERED;
    const struct delivery_failed_change change = { .id = row->id, .decision = *decision };

    FAILPOINT("delivery.failed.row.before", reterr);
    TRY(pawl__delivery_commit_changes(pipeline, outcome, 1, &change, 1, ret_blame, reterr));
    FAILPOINT("delivery.failed.row.after", reterr);
    return PAWL_OK;
}

static pawl_status refuse(struct delivery_pipeline *pipeline,
                          const struct delivery_failed_row *row,
                          const char *error,
                          struct delivery_attempt *attempt,
                          pawl_error *reterr)
{
    attempt->kind = DELIVERY_TO_FAILED;
    snprintf(attempt->error, sizeof(attempt->error), "%.*s", DELIVERY_ERROR_SIZE - 1, error);
    return commit_status(pipeline, row, DELIVERY_FAILED_PENDING, attempt->error, reterr);
}

static pawl_status attempt_entry(struct delivery_pipeline *pipeline,
                                 const struct delivery_failed_row *row,
                                 const struct delivery_entry *entry,
                                 const struct delivery_decision *decision,
                                 struct delivery_attempt *attempt,
                                 pawl_error *reterr)
{
    struct delivery_decision made = *decision;
    enum delivery_blame blame = DELIVERY_BLAME_STOP;
    pawl_error error = PAWL_ERROR_INIT;
    struct delivery_verdict verdict;

    TRY(judge(pipeline, entry, &verdict, reterr));
    if (verdict.kind == DELIVERY_TO_FAILED) {
        return refuse(pipeline, row, verdict.error, attempt, reterr);
    }
    const struct delivery_outcome outcome = { .entry = entry,
                                              .kind = verdict.kind,
                                              .was_failed = true,
                                              .exception = { .first_failed_running_ns = -1 } };
    pawl_status status = commit_row(pipeline, row, &outcome, &made, &blame, &error);
    if (status == PAWL_OK) {
        attempt->kind = verdict.kind;
        return pawl__delivery_keep_decisions(pipeline, &made, 1, reterr);
    }
    if (blame == DELIVERY_BLAME_EVENT || blame == DELIVERY_BLAME_RETRY) {
        return refuse(pipeline, row, error.message, attempt, reterr);
    }
    return pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__delivery_retry_failed(struct delivery_pipeline *pipeline,
                                        const struct delivery_failed_row *row,
                                        const struct delivery_decision *decision,
                                        struct delivery_attempt *ret_attempt,
                                        pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    struct delivery_entry entry;

    TRY(pawl__delivery_be_ready(pipeline, reterr));
    pawl_status status =
        find_entry(pipeline, row, decision->edited_payload, &page, &arena, &entry, &error);
    if (status == PAWL_INVALID) {
        return refuse(pipeline, row, error.message, ret_attempt, reterr);
    }
    if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    TRY(commit_status(pipeline, row, DELIVERY_FAILED_RETRYING, "", reterr));
    return attempt_entry(pipeline, row, &entry, decision, ret_attempt, reterr);
}
