/* An agent store in memory: the reference of store.h. What it holds outlives close, as a file would. */
#ifndef PAWL_TELEMETRY_AGENT_MEMORY_H
#define PAWL_TELEMETRY_AGENT_MEMORY_H

#include "base/core/random.h"
#include "base/os/clock.h"
#include "telemetry/agent/state.h"

struct telemetry_memory_row {
    uint64_t seq_id;
    char *bytes; /* of its message */
    size_t len;
};

struct telemetry_memory_rows {
    struct telemetry_memory_row *at;
    size_t count;
    size_t room;
};

/* What a file would be: copied, replaced, opened again. */
struct telemetry_memory_agent {
    struct telemetry_agent_store base;
    struct pawl__clock *clock;
    struct telemetry_agent_state state;
    struct telemetry_memory_rows rows[TELEMETRY_TYPE_COUNT];
    bool is_open;
};

struct telemetry_memory_agent_options {
    struct pawl__clock *clock;
    struct pawl__random *random;
    struct telemetry_retention retention; /* used_max counts the bytes of messages */
    size_t window_names;                  /* 0: the default */
};

/* Opens it, at first as a new one: makes a session when there is none, adds an epoch. */
PAWL_MUST_USE pawl_status
pawl__telemetry_memory_agent_open(struct telemetry_memory_agent *agent,
                                  const struct telemetry_memory_agent_options *options,
                                  pawl_error *reterr);
void pawl__telemetry_memory_agent_done(struct telemetry_memory_agent *agent);

/* Replaces `agent`, which is then not open, by a copy of what `from` stores. NOMEM leaves it alone. */
PAWL_MUST_USE pawl_status
pawl__telemetry_memory_agent_copy(struct telemetry_memory_agent *agent,
                                  const struct telemetry_memory_agent *from,
                                  pawl_error *reterr);

/* For tests: a row disappears as if a block of the file were lost. False: there is no such row. */
bool pawl__telemetry_memory_agent_lose(struct telemetry_memory_agent *agent,
                                       enum telemetry_type type,
                                       uint64_t seq_id);

#endif
