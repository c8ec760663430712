/* The broker behind a connection that breaks, reorders, and loses messages and acknowledgements. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/delivery/models.h"

static struct delivery_source *inner(struct delivery_source *source)
{
    return &SIM_OF(source, source)->broker.base;
}

static void shuffle(struct sim_delivery *sim, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)pawl__sim_below(&sim->world, i);
        struct delivery_message kept = sim->fetched[i - 1];
        sim->fetched[i - 1] = sim->fetched[other];
        sim->fetched[other] = kept;
    }
}

/* Numbers every message by a counter of the process, as if that were an identity. */
static void number_messages(struct sim_delivery *sim, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(sim->counter_texts[i], sizeof(sim->counter_texts[i]), "c%" PRIu64, ++sim->counter);
        sim->counter_headers[i] = (struct delivery_header){ pawl_view_of(DELIVERY_HEADER_EVENT_ID),
                                                            pawl_view_of(sim->counter_texts[i]) };
        sim->fetched[i].headers = &sim->counter_headers[i];
        sim->fetched[i].header_count = 1;
    }
}

/* Some of what was sent does not arrive, and nobody says so. */
static size_t lose_some(struct sim_delivery *sim, const struct delivery_batch *batch)
{
    bool loses = pawl__sim_strikes(sim, SIM_CONNECTION, 80);
    size_t count = 0;

    sim->faults += loses;
    for (size_t i = 0; i < batch->count; i++) {
        if (!loses || pawl__sim_coin(&sim->world, 500)) {
            sim->fetched[count++] = batch->messages[i];
        }
    }
    return count;
}

static pawl_status fetch(struct delivery_source *source,
                         const struct delivery_fetch *limits,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(source, source);
    struct delivery_batch batch;

    TRY(sim_before(sim, 15, PAWL_UNAVAILABLE, reterr));
    if (sim->is_cut) {
        sim->is_cut = false;
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "the server was restarted");
    }
    TRY(inner(source)->ops->fetch(inner(source), limits, &batch, reterr));
    size_t count = lose_some(sim, &batch);
    if (pawl__sim_strikes(sim, SIM_CONNECTION, 200)) {
        shuffle(sim, count);
    }
    if (sim->defect == SIM_PROCESS_COUNTER_ID) {
        number_messages(sim, count);
    }
    if (count > 0) {
        pawl__sim_trace(&sim->world, "fetched", sim->fetched[0].place.sequence, count);
    }
    TRY(sim_after(sim, 20, PAWL_UNAVAILABLE, reterr));
    *ret_batch = (struct delivery_batch){ sim->fetched, count };
    return PAWL_OK;
}

static void ack_all(struct sim_delivery *sim, const struct delivery_message *last)
{
    for (uint64_t s = sim->broker.first; s <= last->place.sequence && s <= sim->broker.delivered;
         s++) {
        if (s <= sim->broker.last) {
            sim->broker.messages[s - 1].is_acked = true;
        }
    }
}

static pawl_status ack(struct delivery_source *source,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(source, source);

    for (size_t i = 0; i < count; i++) {
        TRY(sim_before(sim, 5, PAWL_UNAVAILABLE, reterr));
        sim->unsafe_acks += !pawl__sim_is_durable(sim, messages[i].payload);
        if (pawl__sim_strikes(sim, SIM_CONNECTION, 60)) {
            sim->faults++;
            continue; /* lost on the way */
        }
        if (sim->defect == SIM_ACK_ALL) {
            ack_all(sim, &messages[i]);
        }
        TRY(inner(source)->ops->ack(inner(source), &messages[i], 1, reterr));
    }
    return PAWL_OK;
}

static pawl_status nak(struct delivery_source *source,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(source, source);

    TRY(sim_before(sim, 100, PAWL_UNAVAILABLE, reterr));
    return inner(source)->ops->nak(inner(source), messages, count, delay_ns, reterr);
}

static pawl_status state(struct delivery_source *source,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(source, source);

    TRY(sim_before(sim, 20, PAWL_UNAVAILABLE, reterr));
    sim->was_looked_at = true;
    sim->reused_to = 0;
    return inner(source)->ops->state(inner(source), probe, ret_state, reterr);
}

static pawl_status restart_at(struct delivery_source *source, uint64_t sequence, pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(source, source);

    TRY(sim_before(sim, 20, PAWL_UNAVAILABLE, reterr));
    TRY(inner(source)->ops->restart_at(inner(source), sequence, reterr));
    sim->has_begun = true;
    pawl__sim_trace(&sim->world, "consumer made anew at", sequence, 0);
    return sim_after(sim, 20, PAWL_UNAVAILABLE, reterr);
}

static void close_nothing(struct delivery_source *source)
{
    (void)source;
}

struct delivery_source_ops pawl__sim_source_ops(void)
{
    return (struct delivery_source_ops){
        .fetch = fetch,
        .ack = ack,
        .nak = nak,
        .state = state,
        .restart_at = restart_at,
        .close = close_nothing,
    };
}
