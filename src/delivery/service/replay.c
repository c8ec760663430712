/* Reading a part of what a pipeline has read once more, and delivering what the table lacks. The pipeline stands still
 * meanwhile; its source is read beside it, so that its own consumer stays where it is.
 *
 *     1. what is pending is applied, and the counters follow what the table really has
 *     2. entries of the log in the range: those that the table lacks become exceptions, and are delivered
 *     3. messages of the source in the range: the same, or a new entry when the log has forgotten the first one */
#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "delivery/duckdb/inspect.h"
#include "delivery/pipeline/replay.h"
#include "delivery/service/asked.h"
#include "delivery/service/internal.h"

enum { PAGE_ENTRIES = 1000, PAGE_BYTES = 8 << 20 };

struct replay {
    struct delivery_runner *runner;
    struct delivery_observer observer;
    pawl_replay_range range;
    const pawl_watch *watch;
    pawl_replay_result result;
    uint64_t total;
    struct delivery_asked asked;
    delivery_lsn *lsns; /* of the log, to be delivered again; DELIVERY_ASKED_MAX */
    size_t lsn_count;
    struct delivery_missing *missing; /* of the batch in work; DELIVERY_ASKED_MAX */
    size_t missing_count;
    struct delivery_exceptions exceptions;
};

static void replay_done(struct replay *replay)
{
    pawl__delivery_asked_done(&replay->asked);
    pawl__delivery_exceptions_done(&replay->exceptions);
    pawl__delivery_observer_done(&replay->observer);
    free(replay->lsns);
    free(replay->missing);
    replay->lsns = NULL;
    replay->missing = NULL;
}

static pawl_status make_room(struct replay *replay, pawl_error *reterr)
{
    replay->lsns = calloc(DELIVERY_ASKED_MAX, sizeof(*replay->lsns));
    replay->missing = calloc(DELIVERY_ASKED_MAX, sizeof(*replay->missing));
    return replay->lsns != NULL && replay->missing != NULL
               ? PAWL_OK
               : pawl__fail(reterr, PAWL_NOMEM, "no memory for a replay");
}

/* --- the range --- */

static bool is_between(uint64_t value, uint64_t from, uint64_t to)
{
    return value >= from && (to == 0 || value <= to);
}

static bool is_in_time(const pawl_replay_range *range, int64_t time_us)
{
    return time_us >= range->from_us && (range->to_us == 0 || time_us < range->to_us);
}

/* Only JetStream keeps a time beside each message. */
static bool has_times(const struct replay *replay)
{
    return replay->observer.declared.kind == DELIVERY_KIND_NATS;
}

static bool wants_entry(const struct replay *replay, const struct delivery_entry *entry)
{
    const pawl_replay_range *range = &replay->range;

    switch (range->by) {
    case PAWL_REPLAY_LSN:
        return is_between(entry->lsn, range->from, range->to);
    case PAWL_REPLAY_SEQUENCE:
        return is_between(entry->place.sequence, range->from, range->to);
    case PAWL_REPLAY_TIME:
        break;
    }
    return is_in_time(range,
                      has_times(replay) ? entry->place.stored_ns / NS_PER_US : entry->created_us);
}

static pawl_status check_range(const pawl_replay_range *range, pawl_error *reterr)
{
    if ((unsigned)range->by > PAWL_REPLAY_TIME) {
        return pawl__fail(reterr, PAWL_INVALID, "range.by: %u is none", (unsigned)range->by);
    }
    bool is_time = range->by == PAWL_REPLAY_TIME;
    bool is_upside_down = is_time ? range->to_us != 0 && range->to_us <= range->from_us
                                  : range->to != 0 && range->to < range->from;
    return is_upside_down ? pawl__fail(reterr, PAWL_INVALID, "the range ends before it begins")
                          : PAWL_OK;
}

/* --- both passes --- */

static pawl_status show(struct replay *replay, pawl_error *reterr)
{
    uint64_t done = replay->result.from_wal + replay->result.from_source;

    return pawl__delivery_show_progress(
        replay->runner->delivery, replay->watch, done, MAX(done, replay->total), reterr);
}

/* Entries that are on their way: above the applied LSN, or exceptions. */
static bool is_pending(const struct replay *replay, delivery_lsn lsn)
{
    return lsn > replay->runner->pipeline.cursor.applied
           || pawl__delivery_exceptions_find(&replay->exceptions, lsn) != NULL;
}

static pawl_status deliver(struct replay *replay, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &replay->runner->pipeline;
    size_t appended = 0;

    TRY(pawl__delivery_replay_entries(pipeline, replay->lsns, replay->lsn_count, reterr));
    if (replay->missing_count > 0) {
        TRY(pawl__delivery_replay_messages(
            pipeline, replay->missing, replay->missing_count, &appended, reterr));
        replay->result.present += replay->missing_count - appended;
    }
    replay->lsn_count = 0;
    replay->missing_count = 0;
    TRY(pawl__delivery_settle_all(replay->runner, reterr));
    TRY(pawl__delivery_exceptions_read(pipeline, &replay->exceptions, reterr));
    return show(replay, reterr);
}

/* --- the log --- */

static pawl_status settle_entries(struct replay *replay, pawl_error *reterr)
{
    TRY(pawl__delivery_ask(&replay->asked, replay->observer.opened.sink, reterr));
    for (size_t i = 0; i < replay->asked.count; i++) {
        const struct delivery_asked_event *event = &replay->asked.events[i];
        if (event->is_known || is_pending(replay, event->lsn)) {
            replay->result.present++;
        } else {
            replay->lsns[replay->lsn_count++] = event->lsn;
        }
    }
    pawl__delivery_asked_clear(&replay->asked);
    return deliver(replay, reterr);
}

static pawl_status replay_entry(struct delivery_pipeline *pipeline,
                                const struct delivery_entry *entry,
                                void *context,
                                pawl_error *reterr)
{
    struct replay *replay = context;

    (void)pipeline;
    if (!wants_entry(replay, entry)) {
        return PAWL_OK;
    }
    replay->result.from_wal++;
    TRY(pawl__delivery_asked_add_entry(&replay->asked, entry, reterr));
    return replay->asked.count == DELIVERY_ASKED_MAX ? settle_entries(replay, reterr) : PAWL_OK;
}

static pawl_status replay_log(struct replay *replay, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &replay->runner->pipeline;
    const pawl_replay_range *range = &replay->range;

    TRY(pawl__delivery_each_entry(pipeline, 1, replay_entry, replay, reterr));
    TRY(settle_entries(replay, reterr));
    if (range->by == PAWL_REPLAY_LSN) {
        delivery_lsn last = pipeline->shared.next_lsn - 1;
        delivery_lsn to = range->to == 0 ? last : MIN(range->to, last);
        delivery_lsn from = MAX(range->from, UINT64_C(1));
        uint64_t wanted = from > to ? 0 : to - from + 1;
        replay->result.gone = wanted - MIN(replay->result.from_wal, wanted);
    }
    return PAWL_OK;
}

/* --- the source --- */

/* The log has an entry of this event: it is on its way, or is delivered again under its LSN. */
static pawl_status find_in_log(struct replay *replay,
                               const struct delivery_asked_event *event,
                               bool *ret_found,
                               pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };
    struct delivery_pipeline *pipeline = &replay->runner->pipeline;
    struct delivery_wal *wal = pipeline->parts.wal;
    const struct delivery_key keys[] = { { event->names.id, event->payload_hash },
                                         { event->names.conflict, event->payload_hash } };
    struct delivery_hit hits[COUNT_OF(keys)];

    *ret_found = false;
    TRY(wal->ops->lookup(wal, keys, COUNT_OF(keys), hits, reterr));
    for (size_t i = 0; i < COUNT_OF(keys) && !*ret_found; i++) {
        if (!hits[i].found || hits[i].lsn == 0
            || !pawl__delivery_hash_equal(&hits[i].payload_hash, &event->payload_hash)) {
            continue;
        }
        TRY(pawl__delivery_read_one(pipeline, hits[i].lsn, &page, ret_found, reterr));
        if (*ret_found && !is_pending(replay, hits[i].lsn)) {
            replay->lsns[replay->lsn_count++] = hits[i].lsn;
        } else if (*ret_found) {
            replay->result.present++;
        }
    }
    return PAWL_OK;
}

static pawl_status settle_messages(struct replay *replay,
                                   const struct delivery_message *const *messages,
                                   pawl_error *reterr)
{
    struct delivery_asked *asked = &replay->asked;

    TRY(pawl__delivery_ask(asked, replay->observer.opened.sink, reterr));
    for (size_t i = 0; i < asked->count; i++) {
        const struct delivery_asked_event *event = &asked->events[i];
        bool is_in_log = false;
        if (event->is_known) {
            replay->result.present++;
            continue;
        }
        TRY(find_in_log(replay, event, &is_in_log, reterr));
        if (!is_in_log) {
            replay->missing[replay->missing_count++] =
                (struct delivery_missing){ messages[i], event->id_taken };
        }
    }
    pawl__delivery_asked_clear(asked);
    return deliver(replay, reterr);
}

static pawl_status replay_messages(void *context,
                                   const struct delivery_message *messages,
                                   size_t count,
                                   bool *ret_enough,
                                   pawl_error *reterr)
{
    struct replay *replay = context;
    const struct delivery_message **wanted = calloc(count, sizeof(*wanted));
    pawl_status status = pawl__check_memory(wanted, "a batch", reterr);

    *ret_enough = false;
    for (size_t i = 0; status == PAWL_OK && i < count; i++) {
        bool is_wanted = replay->range.by != PAWL_REPLAY_TIME
                         || is_in_time(&replay->range, messages[i].place.stored_ns / NS_PER_US);
        if (is_wanted) {
            wanted[replay->asked.count] = &messages[i];
            status = pawl__delivery_asked_add_message(
                &replay->asked, &replay->observer.declared.identity, &messages[i], reterr);
            replay->result.from_source++;
        }
    }
    if (status == PAWL_OK) {
        status = settle_messages(replay, wanted, reterr);
    }
    free(wanted);
    return status;
}

/* Up to where the pipeline has read: what is behind that is the next run's. */
static pawl_status replay_source(struct replay *replay, pawl_error *reterr)
{
    const struct delivery_position *position = &replay->runner->pipeline.shared.position;
    const pawl_replay_range *range = &replay->range;
    struct delivery_stream_state state = { .last = 0 };
    bool by_sequence = range->by == PAWL_REPLAY_SEQUENCE;
    uint64_t read_to = pawl__delivery_position_floor(position);
    uint64_t from = by_sequence ? MAX(range->from, UINT64_C(1)) : 1;
    uint64_t to = by_sequence && range->to != 0 ? MIN(range->to, read_to) : read_to;

    replay->total = replay->result.from_wal + (to >= from ? to - from + 1 : 0);
    TRY(pawl__delivery_walk_source(&replay->observer,
                                   position->created_ns,
                                   from,
                                   to,
                                   replay_messages,
                                   replay,
                                   &state,
                                   reterr));
    if (by_sequence && state.first > from) {
        replay->result.gone = MIN(state.first, to + 1) - from;
    }
    return PAWL_OK;
}

/* --- all of it --- */

static pawl_status recount(struct replay *replay, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &replay->runner->pipeline;
    struct delivery_inventory inventory;

    TRY(pawl__delivery_settle_all(replay->runner, reterr));
    TRY(pawl__delivery_exceptions_read(pipeline, &replay->exceptions, reterr));
    TRY(pawl__delivery_duckdb_inventory(replay->observer.opened.sink, &inventory, reterr));
    const struct delivery_counters there = {
        .accepted = inventory.rows + inventory.filtered + inventory.failed + inventory.exceptions,
        .delivered = inventory.rows,
        .filtered = inventory.filtered,
        .failed = inventory.failed,
    };
    return pawl__delivery_recount(pipeline, &there, reterr);
}

static bool reads_source(const struct replay *replay)
{
    return replay->range.by == PAWL_REPLAY_SEQUENCE
           || (replay->range.by == PAWL_REPLAY_TIME && has_times(replay));
}

static pawl_status run_opened(struct replay *replay, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = &replay->runner->pipeline;

    TRY(make_room(replay, reterr));
    TRY(recount(replay, reterr));
    struct delivery_counters before = pipeline->cursor.counters;
    pawl_status status = replay_log(replay, reterr);
    if (status == PAWL_OK && reads_source(replay)) {
        status = replay_source(replay, reterr);
    }
    struct delivery_counters after = pawl__delivery_pipeline_counters(pipeline);
    replay->result.delivered = after.delivered - before.delivered;
    replay->result.filtered = after.filtered - before.filtered;
    replay->result.failed = after.failed - before.failed;
    replay->result.pending = pawl__delivery_pending(&after);
    pawl__delivery_checkpoint_now(replay->runner);
    return status;
}

static pawl_status run_held(struct replay *replay, pawl_error *reterr)
{
    if (!pawl__delivery_is_readable(&replay->observer.declared)
        && replay->range.by == PAWL_REPLAY_SEQUENCE) {
        return pawl__fail_advised(reterr,
                                  PAWL_UNSUPPORTED,
                                  "the source of pipeline '%s' cannot be read again; replay by LSN "
                                  "what the write-ahead log still has, or hand the same events in "
                                  "again",
                                  replay->observer.declared.is.name.data);
    }
    pawl_status status = pawl__delivery_open_stores(replay->runner, reterr);
    if (status == PAWL_OK) {
        status = run_opened(replay, reterr);
    }
    pawl__delivery_close_parts(replay->runner);
    return status;
}

static pawl_status run(struct replay *replay,
                       struct pawl_delivery *delivery,
                       const char *name,
                       pawl_error *reterr)
{
    bool was_running = false;

    TRY(pawl__delivery_hold(delivery, name, "replayed", &replay->runner, &was_running, reterr));
    pawl_status status = pawl__delivery_observe(delivery, name, &replay->observer, reterr);
    if (status == PAWL_OK) {
        status = run_held(replay, reterr);
    }
    pawl__delivery_let_go(replay->runner, was_running);
    return status;
}

pawl_status pawl_pipeline_replay(pawl_delivery *delivery,
                                 const char *name,
                                 const pawl_replay_range *range,
                                 const pawl_watch *watch,
                                 pawl_replay_result *ret_result,
                                 pawl_error *reterr)
{
    NEED(delivery, name, reterr);
    NEED(range, ret_result, reterr);
    pawl_watch watched = PAWL_WATCH_INIT;
    struct replay replay = { .range = PAWL_REPLAY_RANGE_INIT, .result = PAWL_REPLAY_RESULT_INIT };

    TRY(pawl__take_sized("range", range, &replay.range, sizeof(replay.range), reterr));
    TRY(pawl__take_sized("watch", watch, &watched, sizeof(watched), reterr));
    TRY(pawl__check_sized("ret_result", ret_result, reterr));
    TRY(check_range(&replay.range, reterr));
    replay.watch = &watched;
    pawl__calls_enter(&delivery->calls);
    pawl_status status = run(&replay, delivery, name, reterr);
    replay_done(&replay);
    pawl__calls_leave(&delivery->calls);
    pawl__give_sized(&replay.result, sizeof(replay.result), ret_result);
    return status;
}
