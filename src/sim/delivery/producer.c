/* Who publishes, and what happens to the stream. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/delivery/model.h"

static enum sim_nature draw_nature(struct sim_delivery *sim)
{
    uint64_t draw = pawl__sim_below(&sim->world, 100);

    if (draw < 80) {
        return SIM_GOOD;
    }
    static const enum sim_nature others[] = { SIM_NOT_JSON, SIM_UNWANTED, SIM_POISON,
                                              SIM_FLAKY,    SIM_FLAKY,    SIM_STUBBORN };
    return others[draw % COUNT_OF(others)];
}

/* The payload begins with its item's number, so that everything that holds it can be told apart. */
static void make_item(struct sim_delivery *sim, uint64_t id)
{
    struct sim_item *item = &sim->items[sim->item_count];

    *item = (struct sim_item){
        .nature = draw_nature(sim),
        .has_id = id != 0,
        .id = id,
        .heals_ns = sim->world.now_ns + pawl__sim_ms(&sim->world, 1000, 150000),
    };
    snprintf(item->payload, sizeof(item->payload), "%zu", sim->item_count);
    sim->item_count++;
}

void pawl__sim_make_items(struct sim_delivery *sim)
{
    size_t count = 15 + pawl__sim_below(&sim->world, 35);

    for (size_t i = 0; i < count; i++) {
        bool has_id = pawl__sim_coin(&sim->world, 750);
        make_item(sim, has_id ? i + 1 : 0);
        if (has_id && pawl__sim_coin(&sim->world, 60)) {
            make_item(sim, i + 1); /* the same id, another payload */
        }
    }
}

const struct sim_item *pawl__sim_item_of(const struct sim_delivery *sim, pawl_view payload)
{
    char number[24];

    snprintf(number, sizeof(number), "%.*s", VIEW_ARGS(payload));
    size_t i = (size_t)strtoull(number, NULL, 10);
    REQUIRE(i < sim->item_count);
    return &sim->items[i];
}

void pawl__sim_publish(struct sim_delivery *sim, size_t i)
{
    const struct sim_item *item = &sim->items[i];
    char id[24];
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t sequence = 0;

    if (sim->message_count == SIM_MESSAGES_MAX) {
        return;
    }
    snprintf(id, sizeof(id), "e%" PRIu64, item->id);
    struct delivery_header header = { pawl_view_of(DELIVERY_HEADER_MESSAGE_ID), pawl_view_of(id) };
    struct delivery_message message = {
        .place = { .stored_ns = sim->world.now_ns },
        .subject = pawl_view_of("events"),
        .headers = &header,
        .header_count = item->has_id ? 1 : 0,
        .payload = pawl_view_of(item->payload),
    };
    pawl_status status = pawl__delivery_memory_publish(&sim->broker, &message, &sequence, &error);
    REQUIRE(status == PAWL_OK);
    sim->messages[sim->message_count++] =
        (struct sim_message){ i, sim->broker.created_ns, sequence, SIM_IN_STREAM };
    pawl__sim_trace(&sim->world, "published", i, sequence);
}

/* --- what happens to the stream --- */

static void end_messages(struct sim_delivery *sim, uint64_t from, uint64_t to, enum sim_end end)
{
    for (size_t i = 0; i < sim->message_count; i++) {
        struct sim_message *message = &sim->messages[i];
        if (message->end < end && message->created_ns == sim->broker.created_ns
            && message->sequence >= from && message->sequence <= to) {
            message->end = end;
        }
    }
    sim->was_looked_at = false;
    sim->faults++;
}

void pawl__sim_purge(struct sim_delivery *sim)
{
    uint64_t to = pawl__sim_below(&sim->world, sim->broker.last + 1);

    if (sim->reused_to > 0 && to >= sim->reused_to) {
        end_messages(sim, sim->reused_from, sim->reused_to, SIM_WITHOUT_TRACE);
    }
    end_messages(sim, 1, to, sim->has_begun ? SIM_PURGED : SIM_BEFORE_US);
    pawl__delivery_memory_purge(&sim->broker, to);
    pawl__sim_trace(&sim->world, "PURGED up to", to, 0);
}

void pawl__sim_roll_back(struct sim_delivery *sim)
{
    uint64_t back = pawl__sim_below(&sim->world, 8);
    uint64_t to = sim->broker.last > back ? sim->broker.last - back : 0;

    end_messages(sim, to + 1, UINT64_MAX, SIM_ROLLED_BACK);
    if (sim->broker.delivered > to) {
        sim->reused_from = sim->reused_to == 0 ? to + 1 : MIN(sim->reused_from, to + 1);
        sim->reused_to = MAX(sim->reused_to, sim->broker.delivered);
    }
    pawl__delivery_memory_roll_back(&sim->broker, to, pawl__sim_coin(&sim->world, 500));
    sim->is_cut = true;
    pawl__sim_trace(&sim->world, "ROLLED BACK to", to, 0);
}

void pawl__sim_recreate(struct sim_delivery *sim)
{
    end_messages(sim, 1, UINT64_MAX, SIM_RECREATED);
    pawl__delivery_memory_recreate(&sim->broker, sim->broker.created_ns + 1);
    pawl__sim_trace(&sim->world, "RECREATED", (uint64_t)sim->broker.created_ns, 0);
}
