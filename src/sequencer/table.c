#include "sequencer/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"

#define ROOM_MIN 16
#define ROOM_MAX ((size_t)1 << 30)

pawl_status pawl__seq_table_init(struct seq_table *table, pawl_error *reterr)
{
    *table = (struct seq_table){ 0 };
    return pawl__hash_seed(&table->seed, reterr);
}

void pawl__seq_table_done(struct seq_table *table)
{
    free(table->values);
    free(table->slots);
    *table = (struct seq_table){ 0 };
}

static size_t home_of(const struct seq_table *table, uint64_t workspace, uint16_t sequence)
{
    return (size_t)pawl__hash_beside(&table->seed, workspace, sequence) & (table->slot_count - 1);
}

/* The slot of a key, or the free one where it would stand. There always is a free one. */
static uint32_t *find(const struct seq_table *table, uint64_t workspace, uint16_t sequence)
{
    size_t slot = home_of(table, workspace, sequence);

    while (table->slots[slot] != 0) {
        const pawl_seq_value *value = &table->values[table->slots[slot] - 1];
        if (value->workspace == workspace && value->sequence == sequence) {
            break;
        }
        slot = (slot + 1) & (table->slot_count - 1);
    }
    return &table->slots[slot];
}

static void link_all(struct seq_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        *find(table, table->values[i].workspace, table->values[i].sequence) = (uint32_t)i + 1;
    }
}

static pawl_status grow(struct seq_table *table, size_t room, pawl_error *reterr)
{
    uint32_t *slots = calloc(room * 2, sizeof(*slots));
    pawl_seq_value *values =
        slots == NULL ? NULL : realloc(table->values, room * sizeof(*table->values));

    if (values == NULL) {
        free(slots);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu numbers", room);
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = room * 2;
    table->values = values;
    table->room = room;
    link_all(table);
    return PAWL_OK;
}

pawl_status pawl__seq_table_reserve(struct seq_table *table, size_t more, pawl_error *reterr)
{
    size_t room = table->room == 0 ? ROOM_MIN : table->room;

    if (more > ROOM_MAX - table->count) {
        return pawl__fail(reterr, PAWL_NO_SPACE, "more than %zu numbers wait", ROOM_MAX);
    }
    while (room < table->count + more) {
        room *= 2;
    }
    return room == table->room ? PAWL_OK : grow(table, room, reterr);
}

void pawl__seq_table_merge(struct seq_table *table, const pawl_seq_value *value)
{
    uint32_t *slot = find(table, value->workspace, value->sequence);

    if (*slot == 0) {
        REQUIRE(table->count < table->room);
        table->values[table->count++] = *value;
        *slot = (uint32_t)table->count;
    } else if (table->values[*slot - 1].value < value->value) {
        table->values[*slot - 1].value = value->value;
    }
}

void pawl__seq_table_expect(const struct seq_table *table, uint64_t workspace, uint16_t sequence)
{
    if (table->slot_count > 0) {
        __builtin_prefetch(&table->slots[home_of(table, workspace, sequence)]);
    }
}

uint64_t pawl__seq_table_get(const struct seq_table *table, uint64_t workspace, uint16_t sequence)
{
    if (table->count == 0) {
        return 0;
    }
    uint32_t place = *find(table, workspace, sequence);
    return place == 0 ? 0 : table->values[place - 1].value;
}

void pawl__seq_table_clear(struct seq_table *table)
{
    if (table->count > 0) {
        memset(table->slots, 0, table->slot_count * sizeof(*table->slots));
    }
    table->count = 0;
}
