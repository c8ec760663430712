#include "lib/seq_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "sequencer/table.h"

struct log_event {
    pawl_seq_value *values;
    size_t count;
    bool hidden;
};

struct seq_memory {
    struct pawl__lock lock; /* covers all below */
    struct pawl__cond changed;
    struct log_event *events; /* the one at offset n in [n - 1] */
    size_t event_count;
    size_t event_room;
    struct seq_table numbers;
    uint64_t next_offset;
    struct {
        pawl_status fails;
        bool held;
        uint64_t begun;
    } calls[SEQ_MEMORY_CALL_COUNT];
};

pawl_status seq_memory_new(struct seq_memory **ret_memory, pawl_error *reterr)
{
    struct seq_memory *memory = calloc(1, sizeof(*memory));

    if (memory == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a storage");
    }
    pawl_status status = pawl__seq_table_init(&memory->numbers, reterr);
    if (status != PAWL_OK) {
        free(memory);
        return status;
    }
    pawl__lock_cond_init(&memory->lock, &memory->changed);
    *ret_memory = memory;
    return PAWL_OK;
}

void seq_memory_free(struct seq_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (size_t i = 0; i < memory->event_count; i++) {
        free(memory->events[i].values);
    }
    free(memory->events);
    pawl__seq_table_done(&memory->numbers);
    pawl__cond_done(&memory->changed);
    pawl__lock_done(&memory->lock);
    free(memory);
}

/* --- switches --- */

void seq_memory_fail(struct seq_memory *memory, enum seq_memory_call call, pawl_status status)
{
    pawl__lock(&memory->lock);
    memory->calls[call].fails = status;
    pawl__unlock(&memory->lock);
}

void seq_memory_hold(struct seq_memory *memory, enum seq_memory_call call, bool hold)
{
    pawl__lock(&memory->lock);
    memory->calls[call].held = hold;
    pawl__cond_broadcast(&memory->changed);
    pawl__unlock(&memory->lock);
}

void seq_memory_hide(struct seq_memory *memory, uint64_t offset, bool hide)
{
    pawl__lock(&memory->lock);
    REQUIRE(offset >= 1 && offset <= memory->event_count);
    memory->events[offset - 1].hidden = hide;
    pawl__unlock(&memory->lock);
}

static pawl_status begin_locked(struct seq_memory *memory,
                                enum seq_memory_call call,
                                int64_t deadline_ns,
                                pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    memory->calls[call].begun++;
    pawl__cond_broadcast(&memory->changed);
    while (memory->calls[call].held) {
        pawl__cond_wait(&memory->changed, &memory->lock);
    }
    pawl_status status = memory->calls[call].fails;
    while (status == PAWL_TIMEOUT
           && pawl__cond_wait_until(&memory->changed, &memory->lock, deadline_ns)) {
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail(reterr, status, "the storage is told to fail");
}

/* --- what is stored --- */

uint64_t seq_memory_number(struct seq_memory *memory, uint64_t workspace, uint16_t sequence)
{
    pawl__lock(&memory->lock);
    uint64_t number = pawl__seq_table_get(&memory->numbers, workspace, sequence);
    pawl__unlock(&memory->lock);
    return number;
}

uint64_t seq_memory_next_offset(struct seq_memory *memory)
{
    pawl__lock(&memory->lock);
    uint64_t offset = memory->next_offset;
    pawl__unlock(&memory->lock);
    return offset;
}

uint64_t seq_memory_calls(struct seq_memory *memory, enum seq_memory_call call)
{
    pawl__lock(&memory->lock);
    uint64_t begun = memory->calls[call].begun;
    pawl__unlock(&memory->lock);
    return begun;
}

bool seq_memory_await_calls(struct seq_memory *memory,
                            enum seq_memory_call call,
                            uint64_t count,
                            int64_t deadline_ns)
{
    pawl__lock(&memory->lock);
    while (memory->calls[call].begun < count
           && pawl__cond_wait_until(&memory->changed, &memory->lock, deadline_ns)) {
    }
    bool reached = memory->calls[call].begun >= count;
    pawl__unlock(&memory->lock);
    return reached;
}

bool seq_memory_await_offset(struct seq_memory *memory, uint64_t offset, int64_t deadline_ns)
{
    pawl__lock(&memory->lock);
    while (memory->next_offset < offset
           && pawl__cond_wait_until(&memory->changed, &memory->lock, deadline_ns)) {
    }
    bool reached = memory->next_offset >= offset;
    pawl__unlock(&memory->lock);
    return reached;
}

/* --- the log --- */

static pawl_status append_locked(struct seq_memory *memory,
                                 const pawl_seq_value *values,
                                 size_t count,
                                 pawl_error *reterr) REQUIRES_LOCK(memory->lock)
{
    if (memory->event_count == memory->event_room) {
        size_t room = memory->event_room == 0 ? 64 : memory->event_room * 2;
        struct log_event *events = realloc(memory->events, room * sizeof(*events));
        if (events == NULL) {
            return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu events", room);
        }
        memory->events = events;
        memory->event_room = room;
    }
    pawl_seq_value *copy = malloc((count + 1) * sizeof(*copy));
    if (copy == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an event");
    }
    if (count > 0) {
        memcpy(copy, values, count * sizeof(*copy));
    }
    memory->events[memory->event_count++] = (struct log_event){ .values = copy, .count = count };
    return PAWL_OK;
}

pawl_status seq_memory_append(struct seq_memory *memory,
                              const pawl_seq_value *values,
                              size_t count,
                              uint64_t offset,
                              pawl_error *reterr)
{
    pawl__lock(&memory->lock);
    pawl_status status = offset == memory->event_count + 1
                             ? append_locked(memory, values, count, reterr)
                             : pawl__fail(reterr,
                                          PAWL_CONFLICT,
                                          "offset %" PRIu64 " is not the next one, %zu",
                                          offset,
                                          memory->event_count + 1);
    pawl__unlock(&memory->lock);
    return status;
}

/* --- the storage --- */

static pawl_status read_numbers(void *context,
                                uint64_t workspace,
                                const uint16_t *sequences,
                                size_t count,
                                int64_t deadline_ns,
                                uint64_t *ret_numbers,
                                pawl_error *reterr)
{
    struct seq_memory *memory = context;

    pawl__lock(&memory->lock);
    pawl_status status = begin_locked(memory, SEQ_MEMORY_READ, deadline_ns, reterr);
    for (size_t i = 0; i < count && status == PAWL_OK; i++) {
        ret_numbers[i] = pawl__seq_table_get(&memory->numbers, workspace, sequences[i]);
    }
    pawl__unlock(&memory->lock);
    return status;
}

static pawl_status read_next_offset(void *context, uint64_t *ret_offset, pawl_error *reterr)
{
    (void)reterr;
    *ret_offset = seq_memory_next_offset(context);
    return PAWL_OK;
}

static pawl_status write_numbers(void *context,
                                 const pawl_seq_value *values,
                                 size_t count,
                                 uint64_t next_offset,
                                 pawl_error *reterr)
{
    struct seq_memory *memory = context;

    pawl__lock(&memory->lock);
    pawl_status status = begin_locked(memory, SEQ_MEMORY_WRITE, 0, reterr);
    if (status == PAWL_OK) {
        status = pawl__seq_table_reserve(&memory->numbers, count, reterr);
    }
    if (status == PAWL_OK) {
        for (size_t i = 0; i < count; i++) {
            pawl__seq_table_merge(&memory->numbers, &values[i]);
        }
        memory->next_offset = next_offset;
        pawl__cond_broadcast(&memory->changed);
    }
    pawl__unlock(&memory->lock);
    return status;
}

/* Events stay where they are once they are written; only their array may move. */
static bool event_at(struct seq_memory *memory, uint64_t offset, struct log_event *ret_event)
{
    pawl__lock(&memory->lock);
    bool there = offset <= memory->event_count;
    if (there) {
        *ret_event = memory->events[offset - 1];
    }
    pawl__unlock(&memory->lock);
    return there;
}

static pawl_status actualize(void *context,
                             uint64_t offset,
                             pawl_seq_batcher batcher,
                             void *batcher_context,
                             pawl_error *reterr)
{
    struct seq_memory *memory = context;
    struct log_event event;

    pawl__lock(&memory->lock);
    pawl_status status = begin_locked(memory, SEQ_MEMORY_LOG, 0, reterr);
    pawl__unlock(&memory->lock);
    for (; status == PAWL_OK && event_at(memory, offset, &event); offset++) {
        if (!event.hidden) {
            status = batcher(batcher_context, event.values, event.count, offset, reterr);
        }
    }
    return status;
}

pawl_seq_storage seq_memory_storage(struct seq_memory *memory)
{
    return (pawl_seq_storage){
        .size = sizeof(pawl_seq_storage),
        .context = memory,
        .read_numbers = read_numbers,
        .read_next_offset = read_next_offset,
        .write = write_numbers,
        .actualize = actualize,
    };
}
