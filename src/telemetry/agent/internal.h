/* What the files of the agent's DuckDB store share. */
#ifndef PAWL_TELEMETRY_AGENT_INTERNAL_H
#define PAWL_TELEMETRY_AGENT_INTERNAL_H

#include "base/thread/thread.h"
#include "telemetry/agent/duckdb.h"
#include "telemetry/agent/state.h"
#include "telemetry/agent/statements.h"

/* A connection that one caller uses at a time. */
struct agent_lane {
    struct pawl__lock lock; /* covers conn */
    struct pawl__duck_conn *conn;
};

/* Locks are taken in this order: maintain, write, read, state. */
struct telemetry_duckdb_agent {
    struct telemetry_agent_store base;
    struct pawl__duck *db;
    struct pawl__clock *clock;
    struct agent_lane maintain;
    struct agent_lane write;
    struct agent_lane read;
    struct pawl__lock
        state_lock; /* covers the two below; counters change only under write.lock too */
    struct telemetry_agent_state state;
    uint64_t appended; /* rows since the last checkpoint */
    uint64_t checkpoint_rows;
};

static inline struct telemetry_duckdb_agent *as_duckdb(struct telemetry_agent_store *store)
{
    return (struct telemetry_duckdb_agent *)store; /* base is its first member */
}

/* The values of the row that `rows` stands on, whose columns begin with number `first`. Views live until the next row. */
void pawl__telemetry_agent_read_row(enum telemetry_type type,
                                    const struct pawl__duck_rows *rows,
                                    size_t first,
                                    struct telemetry_values *ret_row);

/* The last ids given and removed, in one snapshot. CORRUPT: a counter is missing. */
PAWL_MUST_USE pawl_status
pawl__telemetry_agent_read_counters(struct pawl__duck_conn *conn,
                                    uint64_t ret_counters[TELEMETRY_TYPE_COUNT],
                                    uint64_t ret_removed[TELEMETRY_TYPE_COUNT],
                                    pawl_error *reterr);

/* The statement of a kind for a type. */
size_t pawl__telemetry_agent_page_statement(enum telemetry_type type);

/* The calls of store.h. */
pawl_status pawl__telemetry_agent_append(struct telemetry_agent_store *base,
                                         enum telemetry_type type,
                                         const struct telemetry_values *rows,
                                         size_t count,
                                         struct telemetry_appended *ret_appended,
                                         pawl_error *reterr);
pawl_status pawl__telemetry_agent_query(struct telemetry_agent_store *base,
                                        const struct telemetry_query *query,
                                        struct telemetry_page *page,
                                        pawl_error *reterr);
pawl_status pawl__telemetry_agent_maintain(struct telemetry_agent_store *base,
                                           uint64_t *ret_removed,
                                           pawl_error *reterr);

/* Blocks in use. On the maintenance's connection. */
PAWL_MUST_USE pawl_status pawl__telemetry_agent_used(struct telemetry_duckdb_agent *agent,
                                                     uint64_t *ret_used,
                                                     pawl_error *reterr);

#endif
