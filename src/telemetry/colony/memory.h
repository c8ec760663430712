/* A colony store in memory: the reference of store.h. What it holds outlives close, as a file would. */
#ifndef PAWL_TELEMETRY_COLONY_MEMORY_H
#define PAWL_TELEMETRY_COLONY_MEMORY_H

#include "base/os/clock.h"
#include "telemetry/colony/store.h"

struct telemetry_memory_stored {
    char *agent;
    enum telemetry_type type;
    struct telemetry_id session;
    struct telemetry_id generation;
    uint64_t seq_id;
    char *bytes;
    size_t len;
    bool is_rejected;
};

struct telemetry_memory_cursor {
    char *agent;
    enum telemetry_type type;
    bool is_current; /* the session that is polled */
    struct telemetry_cursor cursor;
};

struct telemetry_memory_gap {
    char *agent;
    enum telemetry_type type;
    struct telemetry_gap gap;
    int64_t closed_us; /* 0: open */
};

struct telemetry_memory_colony {
    struct telemetry_colony_store base;
    struct pawl__clock *clock;
    struct telemetry_memory_stored *rows;
    size_t row_count;
    size_t row_room;
    struct telemetry_memory_cursor *cursors;
    size_t cursor_count;
    size_t cursor_room;
    struct telemetry_memory_gap *gaps;
    size_t gap_count;
    size_t gap_room;
    uint64_t gap_ids;
};

struct telemetry_memory_colony pawl__telemetry_memory_colony(struct pawl__clock *clock);
void pawl__telemetry_memory_colony_done(struct telemetry_memory_colony *colony);

#endif
