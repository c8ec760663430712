/* Source, write-ahead log, table and failed_events compared with each other, also while the pipeline runs. What makes that
 * possible is an order: first the cursor row (everything up to its applied LSN and to its place is settled, but for the
 * exceptions), then the exceptions, then the sources of truth. What the row covered at the beginning is there at any
 * later time, or something is wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "delivery/duckdb/inspect.h"
#include "delivery/pipeline/internal.h"
#include "delivery/service/asked.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

enum { PAGE_ENTRIES = 1000, PAGE_BYTES = 8 << 20, WHAT_SIZE = 320 };

const char *pawl_audit_fault_name(pawl_audit_fault fault)
{
    return (unsigned)fault <= PAWL_AUDIT_MISCOUNTED ? pawl__audit_fault_names[fault] : "unknown";
}

struct audit {
    struct pawl_delivery *delivery;
    const pawl_watch *watch;
    pawl_audit_visit visit;
    void *context;
    bool wants_more; /* the visitor */
    pawl_audit_report report;
    uint64_t done;
    uint64_t total;

    /* Of the pipeline in work. */
    struct delivery_observer observer;
    struct delivery_inventory inventory;
    struct delivery_exceptions exceptions;
    struct delivery_asked asked;
};

static void audit_done(struct audit *audit)
{
    pawl__delivery_asked_done(&audit->asked);
    pawl__delivery_exceptions_done(&audit->exceptions);
    pawl__delivery_observer_done(&audit->observer);
}

/* --- findings --- */

static void find(struct audit *audit, pawl_audit_finding *finding)
{
    pawl_audit_report *report = &audit->report;

    finding->size = sizeof(*finding);
    finding->pipeline = audit->observer.declared.is.name;
    report->lost += finding->fault == PAWL_AUDIT_LOST;
    report->duplicated += finding->fault == PAWL_AUDIT_DUPLICATED;
    report->miscounted += finding->fault == PAWL_AUDIT_MISCOUNTED;
    if (audit->visit != NULL && audit->wants_more) {
        INSIDE(audit->delivery);
        audit->wants_more = audit->visit(audit->context, finding);
    }
}

static void check_count(struct audit *audit, const char *what, uint64_t counted, uint64_t there)
{
    char text[WHAT_SIZE];
    pawl_audit_finding finding = { .fault = PAWL_AUDIT_MISCOUNTED };

    if (counted == there) {
        return;
    }
    snprintf(text,
             sizeof(text),
             "%" PRIu64 " events were %s, and %" PRIu64 " are there",
             counted,
             what,
             there);
    finding.what = pawl_view_of(text);
    find(audit, &finding);
}

static pawl_status note_duplicate(void *context,
                                  pawl_view transaction_id,
                                  uint64_t times,
                                  pawl_error *reterr)
{
    char text[WHAT_SIZE];
    pawl_audit_finding finding = { .fault = PAWL_AUDIT_DUPLICATED,
                                   .transaction_id = transaction_id };

    (void)reterr;
    snprintf(text, sizeof(text), "it is there %" PRIu64 " times", times);
    finding.what = pawl_view_of(text);
    find(context, &finding);
    return PAWL_OK;
}

/* Those that were collected and that nobody knows. */
static pawl_status settle(struct audit *audit, pawl_error *reterr)
{
    struct delivery_asked *asked = &audit->asked;

    TRY(pawl__delivery_ask(asked, audit->observer.opened.sink, reterr));
    for (size_t i = 0; i < asked->count; i++) {
        const struct delivery_asked_event *event = &asked->events[i];
        pawl_audit_finding finding = {
            .fault = PAWL_AUDIT_LOST,
            .transaction_id = event->transaction_id,
            .sequence = event->sequence,
            .lsn = event->lsn,
            .what = pawl_view_of(event->lsn == 0
                                     ? "the source has it; table and failed_events do not"
                                     : "the write-ahead log has it; table and failed_events do "
                                       "not"),
        };
        if (!event->is_known) {
            find(audit, &finding);
        }
    }
    audit->done += asked->count;
    pawl__delivery_asked_clear(asked);
    return pawl__delivery_show_progress(
        audit->delivery, audit->watch, audit->done, MAX(audit->total, audit->done), reterr);
}

/* --- the table --- */

static pawl_status read_exceptions(struct audit *audit, pawl_error *reterr)
{
    struct delivery_sink *sink = audit->observer.opened.sink;
    struct delivery_exception page[64];
    size_t count = 0;
    delivery_lsn after = 0;

    do {
        TRY(sink->ops->exceptions(sink, after, page, COUNT_OF(page), &count, reterr));
        for (size_t i = 0; i < count; i++) {
            TRY(pawl__delivery_exceptions_add(&audit->exceptions, &page[i], reterr));
            after = page[i].lsn;
        }
    } while (count == COUNT_OF(page));
    return PAWL_OK;
}

static pawl_status check_table(struct audit *audit, pawl_error *reterr)
{
    struct delivery_sink *sink = audit->observer.opened.sink;
    struct delivery_inventory *inventory = &audit->inventory;
    pawl_audit_report *report = &audit->report;

    TRY(pawl__delivery_duckdb_inventory(sink, inventory, reterr));
    TRY(read_exceptions(audit, reterr));
    report->rows += inventory->rows;
    report->filtered += inventory->filtered;
    report->failed += inventory->failed;
    report->pending += inventory->exceptions;
    report->recorded += inventory->losses;
    check_count(audit, "delivered", inventory->counters.delivered, inventory->rows);
    check_count(audit, "filtered", inventory->counters.filtered, inventory->filtered);
    check_count(audit, "put into failed_events", inventory->counters.failed, inventory->failed);
    return pawl__delivery_duckdb_duplicates(sink, note_duplicate, audit, reterr);
}

/* --- the log --- */

struct log_page {
    struct delivery_range range;
    struct delivery_page page;
};

static void log_page_done(struct log_page *page)
{
    pawl__delivery_page_done(&page->page);
}

static pawl_status read_page(struct delivery_wal *wal, void *context, pawl_error *reterr)
{
    struct log_page *page = context;

    return wal->ops->read(wal, &page->range, &page->page, reterr);
}

static pawl_status take_entry(struct audit *audit,
                              const struct delivery_entry *entry,
                              pawl_error *reterr)
{
    audit->report.log_entries++;
    if (entry->lsn > audit->inventory.applied) {
        audit->report.pending++;
        return PAWL_OK;
    }
    if (pawl__delivery_exceptions_find(&audit->exceptions, entry->lsn) != NULL) {
        return PAWL_OK; /* counted with them */
    }
    TRY(pawl__delivery_asked_add_entry(&audit->asked, entry, reterr));
    return audit->asked.count == DELIVERY_ASKED_MAX ? settle(audit, reterr) : PAWL_OK;
}

static pawl_status check_log(struct audit *audit, pawl_error *reterr)
{
    AUTO(log_page_done)
    struct log_page page = {
        .range = { .from = 1,
                   .to = UINT64_MAX,
                   .states = DELIVERY_STATES_ALL,
                   .entries_max = PAGE_ENTRIES,
                   .bytes_max = PAGE_BYTES },
    };
    const char *name = audit->observer.declared.is.name.data;

    do {
        pawl__delivery_page_clear(&page.page);
        TRY(pawl__delivery_look_at_wal(audit->delivery, name, read_page, &page, reterr));
        for (size_t i = 0; i < page.page.count; i++) {
            TRY(take_entry(audit, &page.page.entries[i], reterr));
            page.range.from = page.page.entries[i].lsn + 1;
        }
    } while (page.page.count > 0);
    return settle(audit, reterr);
}

/* --- the source --- */

static pawl_status take_messages(void *context,
                                 const struct delivery_message *messages,
                                 size_t count,
                                 bool *ret_enough,
                                 pawl_error *reterr)
{
    struct audit *audit = context;

    *ret_enough = false;
    for (size_t i = 0; i < count; i++) {
        TRY(pawl__delivery_asked_add_message(
            &audit->asked, &audit->observer.declared.identity, &messages[i], reterr));
        audit->report.source_events++;
        if (audit->asked.count == DELIVERY_ASKED_MAX) {
            TRY(settle(audit, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status check_source(struct audit *audit, pawl_error *reterr)
{
    const struct delivery_place *covered = &audit->inventory.stream;
    struct delivery_stream_state state = { .last = 0 };

    if (!pawl__delivery_is_readable(&audit->observer.declared)) {
        audit->report.unread_sources++;
        return PAWL_OK;
    }
    TRY(pawl__delivery_walk_source(&audit->observer,
                                   covered->created_ns,
                                   1,
                                   covered->created_ns == 0 ? 0 : covered->sequence,
                                   take_messages,
                                   audit,
                                   &state,
                                   reterr));
    uint64_t read_to = state.created_ns == covered->created_ns ? covered->sequence : 0;
    audit->report.waiting += state.last > read_to ? state.last - read_to : 0;
    return settle(audit, reterr);
}

/* --- all of it --- */

static pawl_status audit_one(struct audit *audit, const char *name, pawl_error *reterr)
{
    audit->exceptions.count = 0;
    TRY(pawl__delivery_observe(audit->delivery, name, &audit->observer, reterr));
    TRY(check_table(audit, reterr));
    audit->total += audit->inventory.stream.sequence;
    TRY(check_log(audit, reterr));
    TRY(check_source(audit, reterr));
    audit->report.pipelines++;
    return PAWL_OK;
}

static pawl_status audit_all(struct audit *audit, pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    const char **names = NULL;
    size_t count = 0;

    TRY(pawl__delivery_names(audit->delivery, &arena, &names, &count, reterr));
    for (size_t i = 0; i < count; i++) {
        pawl_status status = audit_one(audit, names[i], reterr);
        if (status != PAWL_OK) {
            return pawl__fail_context(reterr, status, "pipeline '%s'", names[i]);
        }
        pawl__delivery_observer_done(&audit->observer);
    }
    return PAWL_OK;
}

static pawl_status judge(const pawl_audit_report *report, pawl_error *reterr)
{
    if (report->lost + report->duplicated + report->miscounted == 0) {
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "lost %" PRIu64 ", duplicated %" PRIu64 ", miscounted %" PRIu64,
                      report->lost,
                      report->duplicated,
                      report->miscounted);
}

pawl_status pawl_delivery_audit(pawl_delivery *delivery,
                                const char *name,
                                const pawl_watch *watch,
                                pawl_audit_visit visit,
                                void *context,
                                pawl_audit_report *ret_report,
                                pawl_error *reterr)
{
    NEED(delivery, ret_report, reterr);
    pawl_watch watched = PAWL_WATCH_INIT;

    TRY(pawl__take_sized("watch", watch, &watched, sizeof(watched), reterr));
    TRY(pawl__check_sized("ret_report", ret_report, reterr));
    AUTO(audit_done)
    struct audit audit = { .delivery = delivery,
                           .watch = &watched,
                           .visit = visit,
                           .context = context,
                           .wants_more = true,
                           .report = PAWL_AUDIT_REPORT_INIT };
    pawl__calls_enter(&delivery->calls);
    pawl_status status = name == NULL ? audit_all(&audit, reterr) : audit_one(&audit, name, reterr);
    audit_done(&audit);
    pawl__calls_leave(&delivery->calls);
    TRY(status);
    status = judge(&audit.report, reterr);
    pawl__give_sized(&audit.report, sizeof(audit.report), ret_report);
    return status;
}
