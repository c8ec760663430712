/* What must be true when everything has settled:
 *
 *   - every event that the broker acknowledged and can still deliver is in the table, or in failed_events, or filtered,
 *     and so is every event that it could once and that any store of ours kept
 *   - none of them twice
 *   - what a purge took before we had it is on record in delivery_losses; a pipeline that had never reached the stream
 *     begins with what it finds there; and nothing tells of a message that came and was purged between two looks, at
 *     a place that had been read before the server lost its tail
 *   - an event that only needed time is in the table, not in failed_events
 *   - nothing was acknowledged that was not on a disk of ours
 *   - accepted = delivered + filtered + failed + pending, and each is what the tables say */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/delivery/model.h"

struct tally {
    size_t rows[SIM_ITEMS_MAX]; /* by item */
    size_t filtered[SIM_ITEMS_MAX];
    size_t failed[SIM_ITEMS_MAX];
    size_t conflicts[SIM_ITEMS_MAX]; /* of the failed ones */
    struct delivery_counters counters;
};

static size_t index_of(const struct sim_delivery *sim, const struct sim_item *item)
{
    return (size_t)(item - sim->items);
}

static void count_rows(const struct sim_delivery *sim, struct tally *tally)
{
    for (size_t i = 0; i < sim->table.count; i++) {
        const struct delivery_memory_row *row = &sim->table.rows[i];
        size_t item = index_of(sim, pawl__sim_item_of(sim, row->stored->entry.payload));
        bool has_failed = row->kind == DELIVERY_TO_FAILED;
        tally->rows[item] += row->kind == DELIVERY_ROW;
        tally->filtered[item] += row->kind == DELIVERY_FILTERED;
        tally->failed[item] += has_failed;
        tally->conflicts[item] += has_failed && strcmp(row->reason, DELIVERY_REASON_CONFLICT) == 0;
        tally->counters.delivered += row->kind == DELIVERY_ROW;
        tally->counters.filtered += row->kind == DELIVERY_FILTERED;
        tally->counters.failed += has_failed;
    }
}

static bool is_on_record(const struct sim_delivery *sim, const struct sim_message *message)
{
    for (size_t i = 0; i < sim->table.loss_count; i++) {
        const struct delivery_loss *loss = &sim->table.losses[i];
        if (loss->created_ns == message->created_ns && loss->from <= message->sequence
            && message->sequence <= loss->to) {
            return true;
        }
    }
    return false;
}

/* An event that is nowhere. NULL: it could not be otherwise. */
static const char *blame_for_loss(const struct sim_delivery *sim, size_t item)
{
    for (size_t i = 0; i < sim->message_count; i++) {
        const struct sim_message *message = &sim->messages[i];
        if (message->item != item) {
            continue;
        }
        if (message->end == SIM_IN_STREAM) {
            return "lost, and still in the stream";
        }
        if (message->end == SIM_PURGED && !sim->memory_was_lost && !is_on_record(sim, message)) {
            return "lost by a purge, and not on record";
        }
    }
    return NULL;
}

static bool was_published(const struct sim_delivery *sim, size_t item)
{
    for (size_t i = 0; i < sim->message_count; i++) {
        if (sim->messages[i].item == item) {
            return true;
        }
    }
    return false;
}

static const char *judge_end(const struct sim_item *item, const struct tally *tally, size_t i)
{
    if (tally->conflicts[i] > 0) {
        return NULL; /* that there is one of its id elsewhere, judge_ids looks at */
    }
    switch (item->nature) {
    case SIM_GOOD:
        return tally->rows[i] == 1 ? NULL : "a good event, and not in the table";
    case SIM_FLAKY:
        return tally->rows[i] == 1 ? NULL : "given up, though it only needed time";
    case SIM_UNWANTED:
        return tally->filtered[i] == 1 ? NULL : "not filtered";
    default:
        return tally->failed[i] == 1 ? NULL : "not in failed_events";
    }
}

static const char *judge_item(const struct sim_delivery *sim, const struct tally *tally, size_t i)
{
    size_t ends = tally->rows[i] + tally->filtered[i] + tally->failed[i];

    if (ends > 1) {
        return "duplicated";
    }
    if (ends == 0) {
        return was_published(sim, i) ? blame_for_loss(sim, i) : NULL;
    }
    return judge_end(&sim->items[i], tally, i);
}

/* Of all payloads under one id, one has it and the others are conflicts. */
static const char *judge_ids(const struct sim_delivery *sim, const struct tally *tally, size_t i)
{
    size_t owners = 0;
    bool has_rival = false;

    if (!sim->items[i].has_id) {
        return tally->conflicts[i] == 0 ? NULL : "a conflict without an id";
    }
    for (size_t j = 0; j < sim->item_count; j++) {
        if (sim->items[j].has_id && sim->items[j].id == sim->items[i].id) {
            owners += tally->rows[j] + tally->filtered[j] + tally->failed[j] - tally->conflicts[j];
            has_rival |= j != i && was_published(sim, j);
        }
    }
    if (owners > 1) {
        return "two payloads own one id";
    }
    return tally->conflicts[i] > 0 && !has_rival ? "a conflict with nothing" : NULL;
}

static const char *judge_counters(const struct sim_delivery *sim, const struct tally *tally)
{
    const struct delivery_counters *counters = &sim->table.cursor.counters;

    if (counters->delivered != tally->counters.delivered
        || counters->filtered != tally->counters.filtered
        || counters->failed != tally->counters.failed) {
        return "the counters are not what the tables say";
    }
    return pawl__delivery_counters_hold(counters) && pawl__delivery_pending(counters) == 0
               ? NULL
               : "accepted is not delivered + filtered + failed";
}

bool pawl__sim_judge(const struct sim_delivery *sim, char *violation, size_t size)
{
    struct tally tally = { .rows = { 0 } };

    count_rows(sim, &tally);
    for (size_t i = 0; i < sim->item_count; i++) {
        const char *why = judge_item(sim, &tally, i);
        why = why == NULL ? judge_ids(sim, &tally, i) : why;
        if (why != NULL) {
            snprintf(violation, size, "event %zu: %s", i, why);
            return false;
        }
    }
    const char *why =
        sim->unsafe_acks > 0 ? "acknowledged before it was durable" : judge_counters(sim, &tally);
    if (why != NULL) {
        snprintf(violation, size, "%s", why);
    }
    return why == NULL;
}

/* What a power cut at this moment would leave of it. */
bool pawl__sim_is_durable(const struct sim_delivery *sim, pawl_view payload)
{
    for (size_t i = 0; i < sim->disk.count; i++) {
        if (pawl__view_equal(sim->disk.entries[i].stored->entry.payload, payload)) {
            return true;
        }
    }
    for (size_t i = 0; i < sim->table.count; i++) {
        if (pawl__view_equal(sim->table.rows[i].stored->entry.payload, payload)) {
            return true;
        }
    }
    return false;
}

bool pawl__sim_is_drained(const struct sim_delivery *sim)
{
    for (uint64_t s = sim->broker.first; s <= sim->broker.last; s++) {
        if (!sim->broker.messages[s - 1].is_acked) {
            return false;
        }
    }
    return sim->is_alive && sim->is_open && sim->was_looked_at && !sim->pipeline.shared.check_stream
           && sim->pipeline.shared.losses.count == 0 && sim->table.exception_count == 0
           && sim->live.last <= sim->table.cursor.applied
           && sim->pipeline.cursor.counters.accepted == sim->pipeline.shared.accepted;
}
