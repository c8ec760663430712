/* One event on its way: outbox, source, write-ahead log, table. Everything is collected first: what the pipelines say about
 * the id names the transaction ids that the outbox is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/sized.h"
#include "base/os/fs.h"
#include "base/thread/inside.h"
#include "delivery/duckdb/inspect.h"
#include "delivery/outbox/rocksdb.h"
#include "delivery/service/internal.h"
#include "records/delivery.h"

enum { PAGE_ENTRIES = 1000, PAGE_BYTES = 8 << 20, DETAIL_SIZE = 512 };

const char *pawl_trace_place_name(pawl_trace_place place)
{
    return (unsigned)place <= PAWL_TRACE_FAILED ? pawl__trace_place_names[place] : "unknown";
}

/* An event of one pipeline, as far as anybody knows it. Texts are in the arena. */
struct traced {
    pawl_view transaction_id;
    pawl_view subject;
    struct delivery_hash key;
    bool in_source;
    uint64_t sequence;
    int64_t stored_us;
    delivery_lsn lsn;
    pawl_view log_state; /* empty: the log never had it, as far as anybody knows */
    int64_t appended_us;
    int64_t ended_us;
    bool is_settled;
    enum delivery_outcome_kind kind; /* when it is settled */
    int64_t failed_us;
    pawl_view status;
    pawl_view detail;
};

struct trace {
    struct pawl_delivery *delivery;
    pawl_trace_options options;
    pawl_watch watch;
    pawl_view id;
    uint64_t skipped;
    struct pawl__arena arena;
    struct delivery_observer observer;
    struct traced *events; /* of the pipeline in work */
    size_t count;
    size_t room;
    pawl_trace_step *steps; /* the outbox's come last here, and first for the visitor */
    size_t step_count;
    size_t step_room;
    size_t outbox_first;
};

static void trace_done(struct trace *trace)
{
    pawl__delivery_observer_done(&trace->observer);
    pawl__arena_done(&trace->arena);
    free(trace->events);
    free(trace->steps);
    trace->events = NULL;
    trace->steps = NULL;
}

static pawl_status keep(struct trace *trace,
                        pawl_view text,
                        pawl_view *ret_kept,
                        pawl_error *reterr)
{
    return pawl__arena_copy(&trace->arena, text, ret_kept)
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a trace");
}

/* The event with this key, perhaps a new one. */
static pawl_status find_event(struct trace *trace,
                              const struct delivery_hash *key,
                              pawl_view transaction_id,
                              struct traced **ret_event,
                              pawl_error *reterr)
{
    for (size_t i = 0; i < trace->count; i++) {
        if (pawl__delivery_hash_equal(&trace->events[i].key, key)) {
            *ret_event = &trace->events[i];
            return PAWL_OK;
        }
    }
    struct traced *events = pawl__grow(trace->events, trace->count, &trace->room, sizeof(*events));
    TRY(pawl__check_memory(events, "a trace", reterr));
    trace->events = events;
    struct traced *event = &events[trace->count];
    *event = (struct traced){ .key = *key };
    TRY(keep(trace, transaction_id, &event->transaction_id, reterr));
    trace->count++;
    *ret_event = event;
    return PAWL_OK;
}

static bool is_meant(const struct trace *trace, pawl_view transaction_id, pawl_view event_id)
{
    return pawl__view_equal(transaction_id, trace->id) || pawl__view_equal(event_id, trace->id);
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

static pawl_status take_entry(struct trace *trace,
                              const struct delivery_entry *entry,
                              pawl_error *reterr)
{
    static const char *const states[] = {
        [DELIVERY_PENDING] = "pending",
        [DELIVERY_CONFIRMED] = "confirmed",
        [DELIVERY_FAILED] = "failed",
    };
    bool is_retried = entry->fate.state == DELIVERY_PENDING && entry->fate.attempts > 0;
    struct traced *event = NULL;

    TRY(find_event(trace, &entry->key, entry->transaction_id, &event, reterr));
    event->in_source = true;
    event->sequence = entry->place.sequence;
    if (trace->observer.declared.kind == DELIVERY_KIND_NATS) {
        event->stored_us = entry->place.stored_ns / NS_PER_US;
    }
    event->lsn = entry->lsn;
    event->log_state = pawl_view_of(is_retried ? "retrying" : states[entry->fate.state]);
    event->appended_us = entry->created_us;
    event->ended_us = entry->fate.ended_us;
    TRY(keep(trace, pawl_view_of(entry->fate.last_error), &event->detail, reterr));
    return keep(trace, entry->subject, &event->subject, reterr);
}

static pawl_status search_log(struct trace *trace, pawl_error *reterr)
{
    AUTO(log_page_done)
    struct log_page page = {
        .range = { .from = 1,
                   .to = UINT64_MAX,
                   .states = DELIVERY_STATES_ALL,
                   .entries_max = PAGE_ENTRIES,
                   .bytes_max = PAGE_BYTES },
    };
    const char *name = trace->observer.declared.is.name.data;

    do {
        pawl__delivery_page_clear(&page.page);
        TRY(pawl__delivery_look_at_wal(trace->delivery, name, read_page, &page, reterr));
        for (size_t i = 0; i < page.page.count; i++) {
            const struct delivery_entry *entry = &page.page.entries[i];
            if (is_meant(trace, entry->transaction_id, entry->event_id)) {
                TRY(take_entry(trace, entry, reterr));
            }
            page.range.from = entry->lsn + 1;
        }
    } while (page.page.count > 0);
    return PAWL_OK;
}

/* The index remembers the LSN of an entry that was cleaned up. */
static pawl_status ask_index(struct delivery_wal *wal, void *context, pawl_error *reterr)
{
    struct trace *trace = context;

    for (size_t i = 0; i < trace->count; i++) {
        struct traced *event = &trace->events[i];
        const struct delivery_key key = { .key = event->key };
        struct delivery_hit hit;
        if (event->log_state.len > 0) {
            continue;
        }
        TRY(wal->ops->lookup(wal, &key, 1, &hit, reterr));
        event->lsn = hit.found && hit.lsn != 0 ? hit.lsn : event->lsn;
    }
    return PAWL_OK;
}

/* --- the table --- */

static pawl_status take_found(void *context, const struct delivery_found *found, pawl_error *reterr)
{
    struct trace *trace = context;
    struct traced *event = NULL;
    char detail[DETAIL_SIZE];

    TRY(find_event(trace, &found->key, found->transaction_id, &event, reterr));
    if (event->is_settled && event->kind == DELIVERY_ROW) {
        return PAWL_OK; /* delivered by a retry: the row is what counts */
    }
    event->is_settled = true;
    event->kind = found->kind;
    event->lsn = event->lsn == 0 ? found->lsn : event->lsn;
    event->appended_us = event->appended_us == 0 ? found->received_us : event->appended_us;
    if (found->kind != DELIVERY_TO_FAILED) {
        return keep(trace,
                    found->kind == DELIVERY_ROW ? trace->observer.declared.is.into
                                                : (pawl_view){ NULL, 0 },
                    &event->detail,
                    reterr);
    }
    event->failed_us = found->failed_us;
    snprintf(detail,
             sizeof(detail),
             "%.*s%s%.*s",
             VIEW_ARGS(found->reason),
             found->error.len > 0 ? ": " : "",
             VIEW_ARGS(found->error));
    TRY(keep(trace, pawl_view_of(detail), &event->detail, reterr));
    return keep(trace, found->status, &event->status, reterr);
}

/* --- the source --- */

static bool knows_all_places(const struct trace *trace)
{
    bool all = trace->count > 0;

    for (size_t i = 0; i < trace->count; i++) {
        all = all && trace->events[i].in_source;
    }
    return all;
}

static pawl_status take_message(struct trace *trace,
                                const struct delivery_message *message,
                                pawl_error *reterr)
{
    char room[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct pawl__buf text = BUF_OVER(room);
    struct delivery_identity identity;
    struct traced *event = NULL;

    TRY(pawl__delivery_identify(
        &trace->observer.declared.identity, message, &text, &identity, reterr));
    if (!is_meant(trace, identity.transaction_id, identity.event_id)) {
        return PAWL_OK;
    }
    TRY(find_event(trace, &identity.id, identity.transaction_id, &event, reterr));
    if (event->in_source) {
        return PAWL_OK; /* its first place is the one that counts */
    }
    event->in_source = true;
    event->sequence = message->place.sequence;
    if (trace->observer.declared.kind == DELIVERY_KIND_NATS) {
        event->stored_us = message->place.stored_ns / NS_PER_US;
    }
    return keep(trace, message->subject, &event->subject, reterr);
}

static pawl_status take_messages(void *context,
                                 const struct delivery_message *messages,
                                 size_t count,
                                 bool *ret_enough,
                                 pawl_error *reterr)
{
    struct trace *trace = context;

    for (size_t i = 0; i < count; i++) {
        TRY(take_message(trace, &messages[i], reterr));
    }
    *ret_enough = knows_all_places(trace);
    return pawl__delivery_show_progress(
        trace->delivery, &trace->watch, messages[count - 1].place.sequence, 0, reterr);
}

static pawl_status search_source(struct trace *trace, pawl_error *reterr)
{
    struct delivery_stream_state state;
    pawl_error error = PAWL_ERROR_INIT;

    if (trace->options.no_source || knows_all_places(trace)
        || !pawl__delivery_is_readable(&trace->observer.declared)) {
        return PAWL_OK;
    }
    pawl_status status = pawl__delivery_walk_source(
        &trace->observer, 0, 1, UINT64_MAX, take_messages, trace, &state, &error);
    if (status == PAWL_CANCELLED || status == PAWL_CLOSED || status == PAWL_NOMEM) {
        return pawl__fail_with(reterr, status, &error);
    }
    trace->skipped += status != PAWL_OK;
    return PAWL_OK;
}

/* --- as steps --- */

static pawl_status add_step(struct trace *trace, const pawl_trace_step *step, pawl_error *reterr)
{
    pawl_trace_step *steps =
        pawl__grow(trace->steps, trace->step_count, &trace->step_room, sizeof(*steps));

    TRY(pawl__check_memory(steps, "a trace", reterr));
    trace->steps = steps;
    steps[trace->step_count] = *step;
    steps[trace->step_count++].size = sizeof(*step);
    return PAWL_OK;
}

static pawl_status add_end(struct trace *trace,
                           const struct traced *event,
                           pawl_trace_step step,
                           pawl_error *reterr)
{
    static const pawl_trace_place places[] = {
        [DELIVERY_ROW] = PAWL_TRACE_TABLE,
        [DELIVERY_FILTERED] = PAWL_TRACE_FILTERED,
        [DELIVERY_TO_FAILED] = PAWL_TRACE_FAILED,
    };

    step.place = places[event->kind];
    step.state = event->status;
    step.sequence = 0;
    step.at_us = event->kind == DELIVERY_TO_FAILED ? event->failed_us : event->ended_us;
    step.detail = event->detail;
    return add_step(trace, &step, reterr);
}

static pawl_status add_event(struct trace *trace,
                             const struct traced *event,
                             pawl_view pipeline,
                             pawl_error *reterr)
{
    pawl_trace_step step = { .pipeline = pipeline, .transaction_id = event->transaction_id };

    if (event->in_source) {
        step.place = PAWL_TRACE_SOURCE;
        step.sequence = event->sequence;
        step.at_us = event->stored_us;
        step.detail = event->subject;
        TRY(add_step(trace, &step, reterr));
    }
    step.lsn = event->lsn;
    if (event->lsn > 0 || event->appended_us > 0) {
        step.place = PAWL_TRACE_WAL;
        step.state = event->log_state.len > 0 ? event->log_state : pawl_view_of("cleaned_up");
        step.at_us = event->appended_us;
        step.detail = event->is_settled ? (pawl_view){ NULL, 0 } : event->detail;
        TRY(add_step(trace, &step, reterr));
    }
    return event->is_settled ? add_end(trace, event, step, reterr) : PAWL_OK;
}

static pawl_status trace_one(struct trace *trace, const char *name, pawl_error *reterr)
{
    pawl_view pipeline = { NULL, 0 };

    trace->count = 0;
    TRY(pawl__delivery_observe(trace->delivery, name, &trace->observer, reterr));
    TRY(keep(trace, pawl_view_of(name), &pipeline, reterr));
    TRY(search_log(trace, reterr));
    TRY(pawl__delivery_duckdb_find(
        trace->observer.opened.sink, trace->id, take_found, trace, reterr));
    TRY(pawl__delivery_look_at_wal(trace->delivery, name, ask_index, trace, reterr));
    TRY(search_source(trace, reterr));
    for (size_t i = 0; i < trace->count; i++) {
        TRY(add_event(trace, &trace->events[i], pipeline, reterr));
    }
    pawl__delivery_observer_done(&trace->observer);
    return PAWL_OK;
}

/* --- the outbox --- */

static pawl_status find_kept(struct outbox_store *store,
                             uint64_t number,
                             pawl_trace_step *step,
                             pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf stream = BUF_INIT(1 << 16);
    bool is_found = true;

    TRY(store->ops->next_stream(store, (pawl_view){ NULL, 0 }, &stream, &is_found, reterr));
    while (is_found) {
        struct outbox_kept kept = { .sequence = 0 };
        bool has_kept = true;
        for (uint64_t from = 0; has_kept; from = kept.sequence + 1) {
            TRY(store->ops->first_kept(
                store, pawl__buf_view(&stream), from, &kept, &has_kept, reterr));
            if (has_kept && kept.number == number) {
                step->state = pawl_view_of("acknowledged");
                step->sequence = kept.sequence;
                return PAWL_OK;
            }
        }
        AUTO(pawl__buf_done) struct pawl__buf after = BUF_INIT(1 << 16);
        pawl__buf_add(&after, pawl__buf_view(&stream));
        TRY(pawl__buf_check(&after, "the name of a stream", reterr));
        TRY(store->ops->next_stream(store, pawl__buf_view(&after), &stream, &is_found, reterr));
    }
    return PAWL_OK;
}

static pawl_status fill_outbox_step(struct trace *trace,
                                    struct outbox_store *store,
                                    pawl_trace_step *step,
                                    pawl_error *reterr)
{
    struct outbox_read read = OUTBOX_READ_INIT;
    struct outbox_failed failed;
    bool is_found = false;
    bool has_failed = false;
    pawl_status status = store->ops->read(store, step->number, &read, &is_found, reterr);

    if (status == PAWL_OK && is_found) {
        step->at_us = read.entry.created_us;
        step->state = pawl_view_of("pending");
        status = keep(trace, read.entry.subject, &step->detail, reterr);
    }
    pawl__delivery_outbox_read_done(&read);
    TRY(status);
    if (!is_found) {
        step->state = pawl_view_of("acknowledged"); /* and forgotten since */
        return PAWL_OK;
    }
    TRY(store->ops->next_failed(store, step->number, &failed, &has_failed, reterr));
    if (has_failed && failed.number == step->number) {
        step->state = pawl_view_of("failed");
        return keep(trace, pawl_view_of(failed.reason), &step->detail, reterr);
    }
    return find_kept(store, step->number, step, reterr);
}

static pawl_status ask_outbox(struct trace *trace,
                              struct outbox_store *store,
                              pawl_view transaction_id,
                              pawl_error *reterr)
{
    pawl_trace_step step = { .place = PAWL_TRACE_OUTBOX, .transaction_id = transaction_id };
    struct delivery_hash key;
    struct outbox_hit hit = { .found = false };

    for (size_t i = trace->outbox_first; i < trace->step_count; i++) {
        if (pawl__view_equal(trace->steps[i].transaction_id, transaction_id)) {
            return PAWL_OK;
        }
    }
    TRY(pawl__delivery_given_key(transaction_id, &key, reterr));
    TRY(store->ops->lookup(store, &key, 1, &hit, reterr));
    if (!hit.found) {
        return PAWL_OK;
    }
    step.number = hit.number;
    TRY(fill_outbox_step(trace, store, &step, reterr));
    return add_step(trace, &step, reterr);
}

/* The id itself, and every transaction id that a pipeline knows. */
static pawl_status ask_outbox_all(struct trace *trace,
                                  struct outbox_store *store,
                                  pawl_error *reterr)
{
    size_t count = trace->step_count;

    trace->outbox_first = count;
    TRY(ask_outbox(trace, store, trace->id, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(ask_outbox(trace, store, trace->steps[i].transaction_id, reterr));
    }
    return PAWL_OK;
}

static pawl_status trace_outbox(struct trace *trace, pawl_error *reterr)
{
    AUTO(pawl__text_free)
    char *dir = trace->options.outbox_dir == NULL
                    ? pawl__fs_join(trace->delivery->dir, "wal/producer")
                    : strdup(trace->options.outbox_dir);
    const struct delivery_rocksdb_options options = { .read_only = true };
    struct outbox_store *store = NULL;

    TRY(pawl__fs_check_path(dir, reterr));
    trace->outbox_first = trace->step_count;
    pawl_status status = pawl__delivery_outbox_rocksdb_open(dir, &options, &store, NULL);
    if (status != PAWL_OK) {
        trace->skipped += status != PAWL_NOT_FOUND;
        return PAWL_OK;
    }
    status = ask_outbox_all(trace, store, reterr);
    store->ops->close(store);
    return status;
}

/* --- all of it --- */

static pawl_status trace_all(struct trace *trace, pawl_error *reterr)
{
    const char **names = NULL;
    size_t count = 0;

    if (trace->options.pipeline != NULL) {
        TRY(trace_one(trace, trace->options.pipeline, reterr));
        return trace_outbox(trace, reterr);
    }
    TRY(pawl__delivery_names(trace->delivery, &trace->arena, &names, &count, reterr));
    for (size_t i = 0; i < count; i++) {
        TRY(trace_one(trace, names[i], reterr));
    }
    return trace_outbox(trace, reterr);
}

static void visit_all(const struct trace *trace, pawl_trace_visit visit, void *context)
{
    INSIDE(trace->delivery);
    bool goes_on = true;

    for (size_t i = trace->outbox_first; goes_on && i < trace->step_count; i++) {
        goes_on = visit(context, &trace->steps[i]);
    }
    for (size_t i = 0; goes_on && i < trace->outbox_first; i++) {
        goes_on = visit(context, &trace->steps[i]);
    }
}

pawl_status pawl_delivery_trace(pawl_delivery *delivery,
                                pawl_view id,
                                const pawl_trace_options *options,
                                pawl_trace_visit visit,
                                void *context,
                                uint64_t *ret_skipped,
                                pawl_error *reterr)
{
    NEED(delivery, visit, reterr);
    NEED_VIEW(id, reterr);
    AUTO(trace_done)
    struct trace trace = {
        .delivery = delivery, .id = id, .options = PAWL_TRACE_OPTIONS_INIT, .arena = ARENA_INIT
    };

    if (id.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "the id is empty");
    }
    TRY(pawl__take_sized("options", options, &trace.options, sizeof(trace.options), reterr));
    trace.watch = (pawl_watch)PAWL_WATCH_INIT;
    TRY(pawl__take_sized("watch", trace.options.watch, &trace.watch, sizeof(trace.watch), reterr));
    pawl__calls_enter(&delivery->calls);
    pawl_status status = trace_all(&trace, reterr);
    if (status == PAWL_OK) {
        visit_all(&trace, visit, context);
    }
    pawl__delivery_observer_done(&trace.observer);
    pawl__calls_leave(&delivery->calls);
    TRY(status);
    if (ret_skipped != NULL) {
        *ret_skipped = trace.skipped;
    }
    return trace.step_count > 0
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOT_FOUND, "no event '%.*s'", VIEW_ARGS(id));
}
