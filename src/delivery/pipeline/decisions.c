/* What people decided, made to agree between WAL and sink. Either of them may have lost it: a sink that was restored
 * from an older copy or made anew, a process that ended between the two. Decisions only move on (pending, abandoned,
 * resolved), so the one that is further on is right. */
#include "base/core/error.h"
#include "delivery/core/encode.h"
#include "delivery/pipeline/failed.h"
#include "delivery/pipeline/retry.h"

enum { DECISIONS_STEP = 128, DECIDED_ROWS = 256, DECIDED_BYTES = 4 << 20 };

/* The failed row of this very event. The id would not do: it has the id of the WAL in it, and an adopted one has
 * another. *ret_row NULL: none. */
static pawl_status find_row(struct delivery_pipeline *pipeline,
                            const struct delivery_entry *entry,
                            struct delivery_failed_page *page,
                            const struct delivery_failed_row **ret_row,
                            pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_failed_query query = { .rows_max = DECIDED_ROWS, .bytes_max = DECIDED_BYTES };

    *ret_row = NULL;
    TRY(pawl__delivery_clean_text(entry->transaction_id, &arena, &query.transaction_id, reterr));
    do {
        TRY(sink->ops->read_failed(sink, &query, page, reterr));
        for (size_t i = 0; i < page->count && *ret_row == NULL; i++) {
            query.after = page->rows[i].lsn;
            if (pawl__delivery_hash_equal(&page->rows[i].payload_hash, &entry->payload_hash)) {
                *ret_row = &page->rows[i];
            }
        }
    } while (page->count > 0 && *ret_row == NULL);
    return PAWL_OK;
}

static bool is_settled(const struct delivery_failed_row *row,
                       const struct delivery_decision *decision)
{
    return row->status == DELIVERY_FAILED_RESOLVED || row->status == decision->status;
}

static pawl_status close_again(struct delivery_pipeline *pipeline,
                               const struct delivery_failed_row *row,
                               const struct delivery_decision *decision,
                               pawl_error *reterr)
{
    struct delivery_failed_change change = { .id = row->id, .decision = *decision };
    enum delivery_blame blame = DELIVERY_BLAME_STOP;

    change.decision.lsn = row->lsn;
    TRY(pawl__delivery_be_ready(pipeline, reterr));
    TRY(pawl__delivery_commit_changes(pipeline, NULL, 0, &change, 1, &blame, reterr));
    return pawl__delivery_keep_decisions(pipeline, decision, 1, reterr);
}

static pawl_status decide_again(struct delivery_pipeline *pipeline,
                                const struct delivery_failed_row *row,
                                const struct delivery_decision *decision,
                                pawl_error *reterr)
{
    struct delivery_attempt attempt;
    bool was_retried = decision->resolution == DELIVERY_RESOLVED_DELIVERED
                       || decision->resolution == DELIVERY_RESOLVED_FILTERED;

    return was_retried ? pawl__delivery_retry_failed(pipeline, row, decision, &attempt, reterr)
                       : close_again(pipeline, row, decision, reterr);
}

/* *left: the sink does not have the event yet. */
static pawl_status restore_one(struct delivery_pipeline *pipeline,
                               delivery_lsn lsn,
                               bool *left,
                               pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    AUTO(pawl__delivery_failed_page_done) struct delivery_failed_page failed = { .count = 0 };
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct delivery_wal *wal = pipeline->parts.wal;
    const struct delivery_failed_row *row = NULL;
    struct delivery_decision decision;
    struct delivery_known known;
    bool is_found = false;

    TRY(pawl__delivery_read_one(pipeline, lsn, &page, &is_found, reterr));
    if (!is_found) {
        return PAWL_OK; /* forgotten, and the decision goes with the next clean-up */
    }
    TRY(wal->ops->read_decision(wal, lsn, &arena, &decision, &is_found, reterr));
    TRY(find_row(pipeline, &page.entries[0], &failed, &row, reterr));
    if (is_found && row != NULL) {
        return is_settled(row, &decision) ? PAWL_OK
                                          : decide_again(pipeline, row, &decision, reterr);
    }
    TRY(pawl__delivery_find_in_sink(pipeline, &page.entries[0], &known, reterr));
    *left |= !known.found;
    return PAWL_OK;
}

static pawl_status from_wal(struct delivery_pipeline *pipeline, bool *left, pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    delivery_lsn lsns[DECISIONS_STEP];
    delivery_lsn after = 0;
    size_t count = 0;

    do {
        TRY(wal->ops->decided(wal, after, lsns, DECISIONS_STEP, &count, reterr));
        for (size_t i = 0; i < count; i++) {
            TRY(restore_one(pipeline, lsns[i], left, reterr));
            after = lsns[i];
        }
    } while (count > 0);
    return PAWL_OK;
}

/* An entry that is failed in the WAL, and decided in the sink: the process ended between the two. */
static pawl_status copy_one(struct delivery_pipeline *pipeline,
                            const struct delivery_failed_row *row,
                            pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    bool is_found = false;

    TRY(pawl__delivery_read_one(pipeline, row->lsn, &page, &is_found, reterr));
    if (!is_found || page.entries[0].fate.state != DELIVERY_FAILED
        || !pawl__delivery_hash_equal(&page.entries[0].payload_hash, &row->payload_hash)) {
        return PAWL_OK;
    }
    const struct delivery_decision decision = {
        .lsn = row->lsn,
        .status = row->status,
        .resolution = row->resolution,
        .at_us = row->resolved_us,
        .who = row->resolved_by,
        .notes = row->notes,
        .edited_payload = row->edited_payload,
    };
    return pawl__delivery_keep_decisions(pipeline, &decision, 1, reterr);
}

static pawl_status from_sink(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    AUTO(pawl__delivery_failed_page_done) struct delivery_failed_page page = { .count = 0 };
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_wal_stats stats;
    uint64_t count = 0;
    struct delivery_failed_query query = {
        .statuses = 1U << DELIVERY_FAILED_RESOLVED | 1U << DELIVERY_FAILED_ABANDONED,
        .rows_max = DECIDED_ROWS,
        .bytes_max = DECIDED_BYTES,
    };

    TRY(sink->ops->count_failed(sink, &query, &count, reterr));
    if (count == 0) {
        return PAWL_OK;
    }
    TRY(wal->ops->stats(wal, &stats, reterr));
    query.after = stats.first - 1; /* what the WAL has forgotten is history */
    do {
        TRY(sink->ops->read_failed(sink, &query, &page, reterr));
        for (size_t i = 0; i < page.count; i++) {
            TRY(copy_one(pipeline, &page.rows[i], reterr));
            query.after = page.rows[i].lsn;
        }
    } while (page.count > 0);
    return PAWL_OK;
}

pawl_status pawl__delivery_restore_decisions(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    bool left = false;

    if (!pipeline->decisions_due || pipeline->cursor.applied < pipeline->recovery_until) {
        return PAWL_OK;
    }
    TRY(from_wal(pipeline, &left, reterr));
    TRY(from_sink(pipeline, reterr));
    pipeline->decisions_due = left;
    return PAWL_OK;
}
