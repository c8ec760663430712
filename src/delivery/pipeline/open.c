/* Opening a pipeline: reconcile, claim, recover. What each case means stands in core/reconcile.h; here it is done, in
 * an order in which a crash after any step is found and done again by the next open:
 *
 *     1. the WAL's record: ids, epoch, fence
 *     2. the index, if it has to be made anew, under that epoch, and the record once more: durable only then. The
 *        epoch was taken before, so what is left of an index that was not finished counts for nothing
 *     3. the sink's cursor row and exceptions, in one transaction: from here on they belong together */
#include "delivery/pipeline/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

struct delivery_settings pawl__delivery_settings_default(void)
{
    const struct pawl__backoff backoff = { 5 * NS_PER_S, 300 * NS_PER_S };

    return (struct delivery_settings){
        .fetch = { .messages_max = 4000, .bytes_max = (size_t)8 << 20, .wait_ns = NS_PER_S },
        .apply_entries_max = 20000,
        .apply_bytes_max = (size_t)64 << 20,
        .pending_bytes_max = UINT64_C(4) << 30,
        .failed_bytes_max = UINT64_C(1) << 30,
        .payload_bytes_max = (size_t)8 << 20,
        .retry = { .attempts_max = 100,
                   .ttl_ns = INT64_C(168) * 3600 * NS_PER_S,
                   .backoff = backoff },
        .retry_interval_ns = 30 * NS_PER_S,
        .outage = backoff,
        .nak_delay_ns = 5 * NS_PER_S,
        .lease_ns = 120 * NS_PER_S,
        .checkpoint_age_ns = 60 * NS_PER_S,
        .checkpoint_bytes = UINT64_C(64) << 20,
        .state_interval_ns = 10 * NS_PER_S,
    };
}

/* --- what both sides say --- */

/* A sink that is new knows no stream; the WAL still knows which one its entries came from. */
static int64_t stream_of(const struct delivery_sides *sides)
{
    return sides->cursor.stream.created_ns != 0 ? sides->cursor.stream.created_ns
                                                : sides->meta.stream.created_ns;
}

/* An exception of another stream holds up no place of this one. */
static pawl_status find_missing(struct delivery_pipeline *pipeline,
                                const struct delivery_exceptions *exceptions,
                                int64_t created_ns,
                                struct delivery_exceptions *held,
                                pawl_error *reterr)
{
    AUTO(pawl__delivery_page_done) struct delivery_page page = { .count = 0 };

    for (size_t i = 0; i < exceptions->count; i++) {
        struct delivery_exception exception = exceptions->items[i];
        bool is_there = false;
        TRY(pawl__delivery_read_one(pipeline, exception.lsn, &page, &is_there, reterr));
        if (is_there && page.entries[0].place.created_ns != created_ns) {
            exception.sequence = UINT64_MAX;
        }
        if (is_there) {
            TRY(pawl__delivery_exceptions_add(held, &exception, reterr));
        }
    }
    return PAWL_OK;
}

/* `held` are the sink's exceptions whose entries the WAL has. */
static pawl_status read_sides(struct delivery_pipeline *pipeline,
                              struct delivery_sides *ret_sides,
                              struct delivery_exceptions *held,
                              pawl_error *reterr)
{
    AUTO(pawl__delivery_exceptions_done) struct delivery_exceptions exceptions = { .items = NULL };
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_sides sides = { .wal_found = false };

    TRY(wal->ops->read_meta(wal, &sides.meta, &sides.wal_found, reterr));
    TRY(wal->ops->stats(wal, &sides.stats, reterr));
    TRY(sink->ops->read_cursor(sink, &sides.cursor, &sides.sink_found, reterr));
    TRY(pawl__delivery_exceptions_read(pipeline, &exceptions, reterr));
    TRY(find_missing(pipeline, &exceptions, stream_of(&sides), held, reterr));
    sides.exception_missing = held->count < exceptions.count;
    *ret_sides = sides;
    return PAWL_OK;
}

/* --- the WAL's side --- */

static pawl_status put_key(void *context, const struct delivery_key *key, pawl_error *reterr)
{
    struct delivery_pipeline *pipeline = context;
    struct delivery_wal *wal = pipeline->parts.wal;

    return wal->ops->put_index(wal, key, 1, pipeline->meta.epoch, reterr);
}

static pawl_status make_index(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_sink *sink = pipeline->parts.sink;

    TRY(sink->ops->each_key(sink, put_key, pipeline, reterr));
    return wal->ops->reindex(wal, pipeline->meta.epoch, reterr);
}

static pawl_status claim_wal(struct delivery_pipeline *pipeline,
                             const struct delivery_sides *sides,
                             const struct delivery_plan *plan,
                             pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_wal_meta *meta = &pipeline->meta;

    *meta = sides->wal_found ? sides->meta : (struct delivery_wal_meta){ .epoch = 0 };
    if (plan->new_wal_id) {
        TRY(pawl__random_bytes(
            pipeline->parts.random, meta->wal_id.bytes, sizeof(meta->wal_id.bytes), reterr));
    }
    if (plan->pairing == DELIVERY_ADOPT) { /* its entries may be older than the last rollback */
        meta->rewound =
            pawl__delivery_rewound_unknown(&meta->rewound, plan->applied, &sides->cursor);
    }
    if (sides->sink_found && pawl__delivery_is_rewound(&meta->rewound, &sides->cursor)) {
        /* The row may be younger than the rollback after all: what it covers, the WAL may have forgotten. */
        meta->doubt_to = MAX(meta->doubt_to, sides->cursor.stream.sequence);
    }
    meta->sink_id = sides->cursor.sink_id;
    meta->epoch = plan->epoch;
    meta->fence = plan->fence;
    meta->applied = plan->applied;
    meta->restart_source = plan->restart_source;
    meta->running_ns = MAX(meta->running_ns, sides->sink_found ? sides->cursor.running_ns : 0);
    memcpy(meta->lease_holder, pipeline->settings.holder, sizeof(meta->lease_holder));
    meta->lease_until_us =
        pawl__wall_us(pipeline->parts.clock) + pipeline->settings.lease_ns / NS_PER_US;
    if (plan->make_index) {
        TRY(wal->ops->write_meta(wal, meta, reterr)); /* nobody else makes one under this epoch */
        TRY(make_index(pipeline, reterr));
    }
    return wal->ops->write_meta(wal, meta, reterr);
}

/* --- the sink's side --- */

static pawl_status leave_behind(struct delivery_pipeline *pipeline,
                                const struct delivery_entry *entry,
                                void *context,
                                pawl_error *reterr)
{
    struct delivery_known known;

    TRY(pawl__delivery_find_in_sink(pipeline, entry, &known, reterr));
    struct delivery_exception exception = { .lsn = entry->lsn,
                                            .sequence = entry->place.sequence,
                                            .first_failed_running_ns = -1 };
    return known.found ? PAWL_OK : pawl__delivery_exceptions_add(context, &exception, reterr);
}

/* How far each of the tails was read that the stream has lost since the row was written: the lowest of them. */
struct lost_tails {
    const struct delivery_cursor *cursor; /* the row */
    uint64_t read;                        /* in the tail that entries come from now; 0: nothing */
    uint64_t lowest;
};

/* A place that is lower than the one before it is of a newer tail, or was only delivered late: then the loss that is
 * noted begins too low, which is safe. */
static pawl_status follow_tail(struct delivery_pipeline *pipeline,
                               const struct delivery_entry *entry,
                               void *context,
                               pawl_error *reterr)
{
    struct lost_tails *tails = context;

    (void)reterr;
    if (entry->lsn <= tails->cursor->applied || entry->lsn > pipeline->meta.rewound.lsn
        || entry->place.created_ns != tails->cursor->stream.created_ns) {
        return PAWL_OK;
    }
    if (entry->place.sequence < tails->read) {
        tails->lowest = MIN(tails->lowest, tails->read);
    }
    tails->read = entry->place.sequence;
    return PAWL_OK;
}

/* The row was written before the WAL noted that the stream had lost its tail, or that note and the loss would be
 * forgotten together. The row may stand below the place of the note: events that were only in the WAL moved that. And
 * the stream may have lost more than one tail meanwhile, of which the WAL notes the last. */
static pawl_status follow_rewind(struct delivery_pipeline *pipeline,
                                 struct delivery_cursor *cursor,
                                 struct delivery_loss *loss,
                                 size_t *ret_count,
                                 pawl_error *reterr)
{
    const struct delivery_rewound *rewound = &pipeline->meta.rewound;
    bool is_rewound = pawl__delivery_is_rewound(rewound, cursor);
    struct lost_tails tails = { .cursor = cursor,
                                .lowest = MAX(cursor->stream.sequence, rewound->sequence) };

    *ret_count = 0;
    if (!is_rewound && !pawl__delivery_loss_is_unnoted(rewound, cursor)) {
        return PAWL_OK;
    }
    TRY(pawl__delivery_each_entry(pipeline, 1, follow_tail, &tails, reterr));
    *loss = (struct delivery_loss){
        .created_ns = cursor->stream.created_ns,
        .from = (tails.read == 0 ? tails.lowest : MIN(tails.lowest, tails.read)) + 1,
        .to = DELIVERY_LOSS_OPEN,
        .reason = DELIVERY_LOSS_ROLLED_BACK,
        .seen_us = pawl__wall_us(pipeline->parts.clock),
    };
    if (is_rewound) {
        cursor->stream.sequence = rewound->sequence;
        cursor->stream.stored_ns = 0;
    }
    *ret_count = 1;
    return PAWL_OK;
}

static pawl_status count_pending(struct delivery_pipeline *pipeline,
                                 const struct delivery_entry *entry,
                                 void *context,
                                 pawl_error *reterr)
{
    const struct delivery_cursor *cursor = context;

    (void)reterr;
    pipeline->shared.accepted += entry->lsn > cursor->applied;
    return PAWL_OK;
}

/* accepted = delivered + filtered + failed + what the WAL holds for it. */
static pawl_status count_accepted(struct delivery_pipeline *pipeline,
                                  struct delivery_cursor *cursor,
                                  size_t exception_count,
                                  pawl_error *reterr)
{
    struct delivery_counters *counters = &cursor->counters;

    pipeline->shared.accepted =
        counters->delivered + counters->filtered + counters->failed + exception_count;
    TRY(pawl__delivery_each_entry(pipeline, 1, count_pending, cursor, reterr));
    counters->accepted = pipeline->shared.accepted;
    return PAWL_OK;
}

static pawl_status claim_sink(struct delivery_pipeline *pipeline,
                              const struct delivery_sides *sides,
                              const struct delivery_plan *plan,
                              const struct delivery_exceptions *exceptions,
                              pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_cursor cursor =
        sides->sink_found ? sides->cursor : (struct delivery_cursor){ .epoch = 0 };
    struct delivery_loss loss;
    size_t loss_count = 0;

    TRY(follow_rewind(pipeline, &cursor, &loss, &loss_count, reterr));
    cursor.wal_id = pipeline->meta.wal_id;
    cursor.sink_id = sides->cursor.sink_id;
    cursor.epoch = plan->epoch;
    cursor.fence = plan->fence;
    cursor.version++;
    cursor.applied = plan->applied;
    cursor.running_ns = pipeline->meta.running_ns;
    TRY(count_accepted(pipeline, &cursor, exceptions->count, reterr));
    struct delivery_transaction transaction = {
        .losses = &loss,
        .loss_count = loss_count,
        .exceptions = exceptions->items,
        .exception_count = exceptions->count,
        .replace_exceptions = true,
        .requeue_retrying = true, /* whoever retried is gone */
        .cursor = cursor,
    };
    TRY(sink->ops->apply(sink, &transaction, reterr));
    pipeline->cursor = cursor;
    return PAWL_OK;
}

/* --- what is known again --- */

static pawl_status recall_entry(struct delivery_pipeline *pipeline,
                                const struct delivery_entry *entry,
                                void *context,
                                pawl_error *reterr)
{
    struct delivery_position *position = &pipeline->shared.position;

    (void)context;
    return entry->lsn <= pipeline->meta.rewound.lsn
               ? pawl__delivery_position_held(position, entry->lsn, &entry->place, reterr)
               : pawl__delivery_position_appended(position, entry->lsn, &entry->place, reterr);
}

/* A sink that is new knows no place; the WAL still knows which stream its entries came from. */
static struct delivery_place place_to_start(const struct delivery_pipeline *pipeline)
{
    struct delivery_place place = pipeline->cursor.stream;

    if (place.created_ns == 0) {
        place.created_ns = pipeline->meta.stream.created_ns;
        place.sequence = pipeline->meta.begun_at;
    }
    return place;
}

static pawl_status recall(struct delivery_pipeline *pipeline,
                          const struct delivery_exceptions *exceptions,
                          pawl_error *reterr)
{
    struct delivery_shared *shared = &pipeline->shared;
    struct delivery_place place = place_to_start(pipeline);

    TRY(pawl__delivery_position_start(&shared->position, &place, reterr));
    shared->position.doubt_to = pipeline->meta.doubt_to;
    pawl__delivery_position_exceptions(&shared->position, exceptions->items, exceptions->count);
    pawl__delivery_position_reopened(&shared->position);
    return pawl__delivery_each_entry(pipeline, 1, recall_entry, NULL, reterr);
}

static void start_clocks(struct delivery_pipeline *pipeline)
{
    int64_t now_ns = pawl__monotonic_ns(pipeline->parts.clock);

    pipeline->opened_ns = now_ns;
    pipeline->asked_ns = now_ns;
    pipeline->checkpointed_ns = now_ns;
    pipeline->retried_ns = now_ns - pipeline->settings.retry_interval_ns;
    pipeline->shared.running = pawl__delivery_running_start(pipeline->meta.running_ns, now_ns);
    pipeline->lease = (struct pawl__lease){
        .owner = 1,
        .token = pipeline->cursor.fence,
        .deadline_ns = pawl__boot_ns(pipeline->parts.clock) + pipeline->settings.lease_ns,
    };
}

static pawl_status pair(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    AUTO(pawl__delivery_exceptions_done) struct delivery_exceptions exceptions = { .items = NULL };
    struct delivery_sides sides;

    TRY(read_sides(pipeline, &sides, &exceptions, reterr));
    struct delivery_plan plan = pawl__delivery_reconcile(&sides);
    TRY(claim_wal(pipeline, &sides, &plan, reterr));
    if (plan.look_up) {
        exceptions.count = 0;
        TRY(pawl__delivery_each_entry(pipeline, 1, leave_behind, &exceptions, reterr));
    }
    TRY(claim_sink(pipeline, &sides, &plan, &exceptions, reterr));
    pipeline->decisions_due = true;
    pipeline->pairing = plan.pairing;
    pipeline->pairing_why = plan.why;
    pipeline->rebuilding = plan.restart_source;
    pipeline->shared.next_lsn = plan.next_lsn;
    pipeline->recovery_until = plan.next_lsn - 1;
    start_clocks(pipeline);
    TRY(recall(pipeline, &exceptions, reterr));
    return pawl__delivery_settle_marks(pipeline, &exceptions, &pipeline->recovery, reterr);
}

pawl_status pawl__delivery_pipeline_open(struct delivery_pipeline *pipeline,
                                         const struct delivery_settings *settings,
                                         const struct delivery_parts *parts,
                                         pawl_error *reterr)
{
    *pipeline = (struct delivery_pipeline){
        .settings = *settings,
        .parts = *parts,
        .shared = { .position = DELIVERY_POSITION_INIT, .check_stream = true },
        .window = pawl__delivery_window(settings->apply_entries_max),
        .retry_window = pawl__delivery_window(settings->apply_entries_max),
    };
    pawl__lock_init(&pipeline->shared.lock);
    pawl__lock_init(&pipeline->turn);
    TRY(pawl__delivery_check_rule(&settings->identity, reterr));
    return pair(pipeline, reterr);
}

void pawl__delivery_pipeline_close(struct delivery_pipeline *pipeline)
{
    if (pipeline->parts.wal == NULL) {
        return; /* never opened, or closed before */
    }
    pawl__delivery_position_done(&pipeline->shared.position);
    pawl__delivery_losses_done(&pipeline->shared.losses);
    pawl__delivery_losses_done(&pipeline->losses);
    pawl__lock_done(&pipeline->shared.lock);
    pawl__lock_done(&pipeline->turn);
    pawl__delivery_batch_keys_done(&pipeline->batch_keys);
    pawl__delivery_intake_free(pipeline->intake);
    pawl__delivery_page_done(&pipeline->page);
    free(pipeline->outcomes);
    free(pipeline->verdicts);
    free(pipeline->mark_lsns);
    free(pipeline->mark_fates);
    pipeline->mark_lsns = NULL;
    pipeline->mark_fates = NULL;
    pipeline->outcomes = NULL;
    pipeline->verdicts = NULL;
    pipeline->intake = NULL;
    pipeline->parts = (struct delivery_parts){ .wal = NULL };
}

/* --- what every step needs --- */

int64_t pawl__delivery_now_ns(struct delivery_pipeline *pipeline)
{
    return pawl__monotonic_ns(pipeline->parts.clock);
}

int64_t pawl__delivery_running_now(struct delivery_pipeline *pipeline)
{
    int64_t now_ns = pawl__delivery_now_ns(pipeline);

    pawl__lock(&pipeline->shared.lock);
    int64_t running_ns = pawl__delivery_running_ns(&pipeline->shared.running, now_ns);
    pawl__unlock(&pipeline->shared.lock);
    return running_ns;
}

uint64_t pawl__delivery_draw(struct delivery_pipeline *pipeline)
{
    uint64_t bits = 0;

    return pawl__random_bytes(pipeline->parts.random, &bits, sizeof(bits), NULL) == PAWL_OK ? bits
                                                                                            : 0;
}

bool pawl__delivery_must_reopen(const struct delivery_pipeline *pipeline)
{
    return pipeline->is_broken;
}

struct delivery_counters pawl__delivery_pipeline_counters(struct delivery_pipeline *pipeline)
{
    struct delivery_counters counters = pipeline->cursor.counters;

    pawl__lock(&pipeline->shared.lock);
    counters.accepted = pipeline->shared.accepted;
    pawl__unlock(&pipeline->shared.lock);
    return counters;
}
