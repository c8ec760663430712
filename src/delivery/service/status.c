/* What pipelines say of themselves: those that run as they reported last, the others from their stores. */
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

enum { PAGE_ENTRIES = 1000, PAGE_BYTES = 4 << 20, EXCEPTIONS = 256, JSON_BYTES_MAX = 1 << 20 };

const char *pawl_pipeline_state_name(pawl_pipeline_state state)
{
    return (unsigned)state <= PAWL_PIPELINE_FAILED ? pawl__pipeline_state_names[state] : "unknown";
}

/* --- from its stores --- */

/* Entries above the applied LSN: whatever they are marked, the table does not have them. */
static pawl_status count_entries(struct delivery_wal *wal,
                                 delivery_lsn after,
                                 uint64_t *ret_count,
                                 pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    struct delivery_range range = { .from = after + 1,
                                    .to = UINT64_MAX,
                                    .states = DELIVERY_STATES_ALL,
                                    .entries_max = PAGE_ENTRIES,
                                    .bytes_max = PAGE_BYTES };
    uint64_t count = 0;

    do {
        TRY(wal->ops->read(wal, &range, &page, reterr));
        count += page.count;
        range.from = page.count > 0 ? page.entries[page.count - 1].lsn + 1 : range.from;
    } while (page.count == PAGE_ENTRIES || page.bytes > PAGE_BYTES);
    *ret_count = count;
    return PAWL_OK;
}

static pawl_status count_exceptions(struct delivery_sink *sink,
                                    uint64_t *ret_count,
                                    pawl_error *reterr)
{
    struct delivery_exception page[EXCEPTIONS];
    delivery_lsn after = 0;
    size_t got = EXCEPTIONS;

    *ret_count = 0;
    while (got == EXCEPTIONS) {
        TRY(sink->ops->exceptions(sink, after, page, EXCEPTIONS, &got, reterr));
        *ret_count += got;
        after = got > 0 ? page[got - 1].lsn : after;
    }
    return PAWL_OK;
}

static void close_wal(struct delivery_wal **wal)
{
    if (*wal != NULL) {
        (*wal)->ops->close(*wal);
    }
}

static void close_sink(struct delivery_sink **sink)
{
    if (*sink != NULL) {
        (*sink)->ops->close(*sink);
    }
}

/* A pipeline that never ran has no log. */
static pawl_status count_in_log(struct delivery_runner *runner,
                                delivery_lsn applied,
                                uint64_t *ret_count,
                                pawl_error *reterr)
{
    AUTO(close_wal) struct delivery_wal *wal = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__delivery_open_wal(runner->delivery, &runner->declared, true, &wal, &error);

    *ret_count = 0;
    if (status == PAWL_NOT_FOUND) {
        return PAWL_OK;
    }
    return status == PAWL_OK ? count_entries(wal, applied, ret_count, reterr)
                             : pawl__fail_with(reterr, status, &error);
}

pawl_status pawl__delivery_read_report(struct delivery_runner *runner,
                                       struct delivery_report *ret_report,
                                       pawl_error *reterr)
{
    AUTO(close_sink) struct delivery_sink *sink = NULL;
    struct delivery_cursor cursor = { .epoch = 0 };
    struct delivery_report report = { .pairing = NULL };
    uint64_t in_log = 0;
    uint64_t deferred = 0;
    bool is_found = false;

    TRY(pawl__delivery_open_sink(runner->delivery, &runner->declared, &sink, reterr));
    TRY(sink->ops->read_cursor(sink, &cursor, &is_found, reterr));
    if (is_found) {
        report.counters = cursor.counters;
        report.sequence = cursor.stream.sequence;
        report.applied = cursor.applied;
        TRY(count_exceptions(sink, &deferred, reterr));
    }
    TRY(count_in_log(runner, report.applied, &in_log, reterr));
    report.counters.accepted = report.counters.delivered + report.counters.filtered
                               + report.counters.failed + in_log + deferred;
    *ret_report = report;
    return PAWL_OK;
}

/* --- for the caller --- */

static pawl_pipeline_status status_of(const struct delivery_runner *runner,
                                      const struct delivery_report *report,
                                      const pawl_error *error,
                                      pawl_pipeline_recovery *recovery)
{
    const struct delivery_declared *declared = &runner->declared;

    *recovery = (pawl_pipeline_recovery){
        .size = sizeof(*recovery),
        .pairing = report->pairing,
        .total_pending = report->recovery.total_pending,
        .already_committed = report->recovery.already_committed,
        .recovered = report->recovery.recovered,
        .expired = report->recovery.expired,
        .failed = report->recovery.failed,
        .skipped = report->recovery.skipped,
        .duration_us = report->recovery.duration_ns / NS_PER_US,
    };
    return (pawl_pipeline_status){
        .size = sizeof(pawl_pipeline_status),
        .name = declared->is.name,
        .from = declared->shown,
        .into = declared->is.into,
        .source = declared->is.source,
        .generation = declared->is.generation,
        .state = runner->state,
        .accepted = report->counters.accepted,
        .delivered = report->counters.delivered,
        .filtered = report->counters.filtered,
        .failed = report->counters.failed,
        .pending = pawl__delivery_pending(&report->counters),
        .sequence = report->sequence,
        .applied_lsn = report->applied,
        .duplicates = report->totals.duplicates,
        .conflicts = report->totals.conflicts,
        .retries = report->totals.retries,
        .losses = report->totals.losses,
        .outages = report->totals.outages,
        .breaker_is_open = report->breaker_is_open,
        .last_error = pawl_view_of(error->status == PAWL_OK ? "" : error->message),
        .recovery = report->pairing == NULL ? NULL : recovery,
        .last_status = error->status,
    };
}

void pawl__delivery_statuses_done(struct delivery_statuses *statuses)
{
    pawl__arena_done(&statuses->arena);
    free(statuses->items);
}

/* `stored` NULL: what it reported. Under delivery->lock. */
static pawl_status copy_status(const struct delivery_runner *runner,
                               const struct delivery_report *stored,
                               const pawl_error *error,
                               struct delivery_statuses *statuses,
                               pawl_error *reterr)
{
    pawl_pipeline_recovery recovery;
    pawl_pipeline_status status = status_of(runner, stored, error, &recovery);
    pawl_pipeline_status *copy = &statuses->items[statuses->count];

    *copy = status;
    if (!pawl__record_copy(&pawl__pipeline_status_record, &statuses->arena, &status, copy)) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a status");
    }
    statuses->count++;
    return PAWL_OK;
}

static pawl_status make_room(struct delivery_statuses *statuses, size_t count, pawl_error *reterr)
{
    statuses->items = calloc(count + 1, sizeof(*statuses->items));
    return pawl__check_memory(statuses->items, "statuses", reterr);
}

pawl_status pawl__delivery_status_seen(struct delivery_runner *runner,
                                       struct delivery_statuses *statuses,
                                       pawl_error *reterr)
{
    struct pawl_delivery *delivery = runner->delivery;

    TRY(make_room(statuses, 1, reterr));
    pawl__lock(&delivery->lock);
    pawl_status status = copy_status(runner, &runner->report, &runner->error, statuses, reterr);
    pawl__unlock(&delivery->lock);
    return status;
}

/* A thread that ended by itself has closed its stores before it said so. */
static bool is_running(struct delivery_runner *runner)
{
    pawl__lock(&runner->delivery->lock);
    bool running =
        runner->state == PAWL_PIPELINE_STARTING || runner->state == PAWL_PIPELINE_RUNNING;
    pawl__unlock(&runner->delivery->lock);
    return running;
}

/* The recovery of the last run is told as long as the directory is open. */
static pawl_status add_status(struct delivery_runner *runner,
                              struct delivery_statuses *statuses,
                              pawl_error *reterr)
{
    struct pawl_delivery *delivery = runner->delivery;
    struct delivery_report stored = { .pairing = NULL };
    pawl_error error = PAWL_ERROR_INIT;
    bool is_read = false;

    if (!is_running(runner)) {
        is_read = pawl__delivery_read_report(runner, &stored, &error) == PAWL_OK;
    }
    pawl__lock(&delivery->lock);
    struct delivery_report report = runner->report;
    if (is_read) {
        report.counters = stored.counters;
        report.sequence = stored.sequence;
        report.applied = stored.applied;
    }
    if (error.status == PAWL_OK) {
        error = runner->error;
    }
    pawl_status status = copy_status(runner, &report, &error, statuses, reterr);
    pawl__unlock(&delivery->lock);
    return status;
}

pawl_status pawl__delivery_statuses_read(struct pawl_delivery *delivery,
                                         struct delivery_runner *only,
                                         struct delivery_statuses *statuses,
                                         pawl_error *reterr)
{
    TRY(make_room(statuses, only == NULL ? delivery->runner_count : 1, reterr));
    if (only != NULL) {
        return add_status(only, statuses, reterr);
    }
    for (struct delivery_runner *runner = delivery->runners; runner != NULL;
         runner = runner->next) { /* `manage` keeps the list as it is */
        TRY(add_status(runner, statuses, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__delivery_statuses_seen(struct pawl_delivery *delivery,
                                         struct delivery_statuses *statuses,
                                         pawl_error *reterr)
{
    pawl_status status = make_room(statuses, PAWL_PIPELINES_MAX, reterr);

    pawl__lock(&delivery->lock);
    for (struct delivery_runner *runner = delivery->runners; status == PAWL_OK && runner != NULL;
         runner = runner->next) {
        status = copy_status(runner, &runner->report, &runner->error, statuses, reterr);
    }
    pawl__unlock(&delivery->lock);
    return status;
}

pawl_status pawl_pipeline_to_json(const pawl_pipeline_status *status,
                                  char **ret_json,
                                  size_t *ret_len,
                                  pawl_error *reterr)
{
    NEED(status, ret_json, reterr);
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(JSON_BYTES_MAX);
    pawl_pipeline_status taken = { .size = sizeof(taken) };

    TRY(pawl__take_sized("status", status, &taken, sizeof(taken), reterr));
    if ((unsigned)taken.state > PAWL_PIPELINE_FAILED) {
        return pawl__fail(reterr, PAWL_INVALID, "status.state: is %u", (unsigned)taken.state);
    }
    TRY(pawl__record_check(&pawl__pipeline_status_record, &taken, reterr));
    pawl__record_write(&pawl__pipeline_status_record, &taken, &json);
    return pawl__buf_hand_out(&json, "a status", ret_json, ret_len, reterr);
}
