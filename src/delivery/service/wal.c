/* Write-ahead logs, for people who look into them: of pipelines that run, and of those that do not. */
#include <stdio.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/decide/page.h"
#include "base/thread/inside.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

enum { PAGE_ENTRIES = 500, PAGE_BYTES = 8 << 20, JSON_BYTES_MAX = 128 << 20 };

const char *pawl_wal_state_name(pawl_wal_state state)
{
    return (unsigned)state <= PAWL_WAL_FAILED ? pawl__wal_state_names[state] : "unknown";
}

/* --- one look at it --- */

static pawl_status look_closed(struct delivery_runner *runner,
                               delivery_wal_look *look,
                               void *context,
                               pawl_error *reterr)
{
    struct delivery_wal *wal = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl__delivery_open_wal(runner->delivery, &runner->declared, true, &wal, &error);

    if (status == PAWL_NOT_FOUND) {
        return PAWL_OK; /* it never ran */
    }
    if (status != PAWL_OK) {
        return pawl__fail_with(reterr, status, &error);
    }
    status = look(wal, context, reterr);
    wal->ops->close(wal);
    return status;
}

/* With `manage` it is neither started nor removed meanwhile; with `wal_lock` its thread does not close the log. */
pawl_status pawl__delivery_look_at_wal(struct pawl_delivery *delivery,
                                       const char *name,
                                       delivery_wal_look *look,
                                       void *context,
                                       pawl_error *reterr)
{
    struct delivery_runner *runner = NULL;

    pawl__calls_enter(&delivery->calls);
    pawl__lock(&delivery->manage);
    pawl_status status = pawl__delivery_find(delivery, name, &runner, reterr);
    if (status == PAWL_OK) {
        pawl__lock(&runner->wal_lock);
        status = runner->wal != NULL ? look(runner->wal, context, reterr)
                                     : look_closed(runner, look, context, reterr);
        pawl__unlock(&runner->wal_lock);
    }
    pawl__unlock(&delivery->manage);
    pawl__calls_leave(&delivery->calls);
    return status;
}

/* --- status --- */

static pawl_status read_status(struct delivery_wal *wal, void *context, pawl_error *reterr)
{
    pawl_wal_status *status = context;
    struct delivery_wal_stats stats;
    struct delivery_wal_meta meta = { .epoch = 0 };
    bool is_found = false;

    TRY(wal->ops->stats(wal, &stats, reterr));
    TRY(wal->ops->read_meta(wal, &meta, &is_found, reterr));
    *status = (pawl_wal_status){
        .size = sizeof(*status),
        .first_lsn = stats.first,
        .last_lsn = stats.last,
        .pending = stats.entries[DELIVERY_PENDING],
        .confirmed = stats.entries[DELIVERY_CONFIRMED],
        .failed = stats.entries[DELIVERY_FAILED],
        .pending_bytes = stats.bytes[DELIVERY_PENDING],
        .confirmed_bytes = stats.bytes[DELIVERY_CONFIRMED],
        .failed_bytes = stats.bytes[DELIVERY_FAILED],
        .index_entries = stats.index_entries,
        .index_bytes = stats.index_bytes,
        .epoch = meta.epoch,
        .fence = meta.fence,
        .lease_until_us = meta.lease_until_us,
    };
    snprintf(status->lease_holder, sizeof(status->lease_holder), "%s", meta.lease_holder);
    return PAWL_OK;
}

pawl_status pawl_wal_get_status(pawl_delivery *delivery,
                                const char *name,
                                pawl_wal_status *ret_status,
                                pawl_error *reterr)
{
    NEED(delivery, name, ret_status, reterr);
    pawl_wal_status status = { .size = sizeof(status), .first_lsn = 1 };

    TRY(pawl__check_sized("ret_status", ret_status, reterr));
    TRY(pawl__delivery_look_at_wal(delivery, name, read_status, &status, reterr));
    pawl__give_sized(&status, sizeof(status), ret_status);
    return PAWL_OK;
}

/* --- entries --- */

struct reading {
    struct delivery_range range;
    struct delivery_page page;
};

static pawl_status read_page(struct delivery_wal *wal, void *context, pawl_error *reterr)
{
    struct reading *reading = context;

    return wal->ops->read(wal, &reading->range, &reading->page, reterr);
}

static pawl_wal_entry entry_of(const struct delivery_entry *entry)
{
    static const pawl_wal_state states[] = {
        [DELIVERY_PENDING] = PAWL_WAL_PENDING,
        [DELIVERY_CONFIRMED] = PAWL_WAL_CONFIRMED,
        [DELIVERY_FAILED] = PAWL_WAL_FAILED,
    };

    return (pawl_wal_entry){
        .size = sizeof(pawl_wal_entry),
        .lsn = entry->lsn,
        .state = states[entry->fate.state],
        .transaction_id = entry->transaction_id,
        .source = entry->source,
        .event_id = entry->event_id,
        .subject = entry->subject,
        .message_id = entry->message_id,
        .payload = entry->payload,
        .sequence = entry->place.sequence,
        .attempts = entry->fate.attempts,
        .created_at_us = entry->created_us,
        .last_attempt_at_us = entry->fate.last_attempt_us,
        .ended_at_us = entry->fate.ended_us,
        .last_error = pawl_view_of(entry->fate.last_error),
        .failure_reason = pawl_view_of(entry->fate.failure_reason),
    };
}

/* False: enough. */
static bool visit_page(pawl_delivery *delivery,
                       const struct delivery_page *entries,
                       struct pawl__page *page,
                       pawl_wal_visit visit,
                       void *context)
{
    INSIDE(delivery);
    bool goes_on = true;

    for (size_t i = 0; goes_on && i < entries->count; i++) {
        pawl_wal_entry entry = entry_of(&entries->entries[i]);
        goes_on =
            pawl__page_admits(page, entry.lsn) && pawl__page_show(page, visit(context, &entry));
    }
    return goes_on;
}

static void reading_done(struct reading *reading)
{
    pawl__delivery_page_done(&reading->page);
}

pawl_status pawl_wal_read(pawl_delivery *delivery,
                          const char *name,
                          const pawl_wal_filter *filter,
                          pawl_page *page,
                          pawl_wal_visit visit,
                          void *context,
                          pawl_error *reterr)
{
    NEED(delivery, name, visit, reterr);
    pawl_wal_filter taken = PAWL_WAL_FILTER_INIT;
    struct pawl__page walk;
    bool goes_on = true;

    TRY(pawl__take_sized("filter", filter, &taken, sizeof(taken), reterr));
    TRY(pawl__page_take(page, &walk, reterr));
    AUTO(reading_done)
    struct reading reading = {
        .range = { .from = MAX(walk.page.from, UINT64_C(1)),
                   .to = taken.to == 0 ? UINT64_MAX : taken.to,
                   .states = taken.pending ? 1U << DELIVERY_PENDING : DELIVERY_STATES_ALL,
                   .entries_max = PAGE_ENTRIES,
                   .bytes_max = PAGE_BYTES },
    };
    while (goes_on) {
        TRY(pawl__delivery_look_at_wal(delivery, name, read_page, &reading, reterr));
        const struct delivery_page *read = &reading.page;
        goes_on = visit_page(delivery, read, &walk, visit, context)
                  && (read->count == PAGE_ENTRIES || read->bytes > PAGE_BYTES);
        reading.range.from =
            read->count > 0 ? read->entries[read->count - 1].lsn + 1 : reading.range.from;
    }
    pawl__page_answer(&walk, page);
    return PAWL_OK;
}

pawl_status pawl_wal_entry_to_json(const pawl_wal_entry *entry,
                                   char **ret_json,
                                   size_t *ret_len,
                                   pawl_error *reterr)
{
    NEED(entry, ret_json, reterr);
    AUTO(pawl__buf_done) struct pawl__buf json = BUF_INIT(JSON_BYTES_MAX);
    pawl_wal_entry taken = { .size = sizeof(taken) };

    TRY(pawl__take_sized("entry", entry, &taken, sizeof(taken), reterr));
    if ((unsigned)taken.state > PAWL_WAL_FAILED) {
        return pawl__fail(reterr, PAWL_INVALID, "entry.state: is %u", (unsigned)taken.state);
    }
    TRY(pawl__record_check(&pawl__wal_entry_record, &taken, reterr));
    pawl__record_write(&pawl__wal_entry_record, &taken, &json);
    return pawl__buf_hand_out(&json, "an entry", ret_json, ret_len, reterr);
}
