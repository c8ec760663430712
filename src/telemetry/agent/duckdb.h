/* An agent store in a DuckDB file. Any thread: appends, queries and maintenance each take their turn, and none of them
 * waits for another but for a checkpoint.
 *
 * Failpoints: telemetry.append.{before,after} around the transaction of an append. */
#ifndef PAWL_TELEMETRY_AGENT_DUCKDB_H
#define PAWL_TELEMETRY_AGENT_DUCKDB_H

#include "base/core/random.h"
#include "store/duckdb/duckdb.h"
#include "telemetry/agent/store.h"

struct telemetry_duckdb_agent_options {
    const char *path;
    struct pawl__duck_options duck; /* the clock is also that of arrival */
    struct pawl__random *random;    /* NULL: the kernel's */
    struct telemetry_retention retention;
    size_t window_names;      /* 0: the default */
    uint64_t checkpoint_rows; /* appended before maintenance checkpoints; 0: 100,000 */
};

struct telemetry_duckdb_agent_opened {
    bool is_new;
    int quarantined;    /* the file did not open and was moved to PATH.quarantined-N; 0: it did */
    pawl_error why;     /* of that */
    uint64_t cut_bytes; /* see pawl__duck_cut_bytes */
};

/* A file that does not open is moved aside, and a new one with a new session takes its place: say so loudly. CORRUPT: the
 * file opens, and has no session: it is left as it is. `ret_opened` may be NULL. */
PAWL_MUST_USE pawl_status
pawl__telemetry_duckdb_agent(const struct telemetry_duckdb_agent_options *options,
                             struct telemetry_agent_store **ret_store,
                             struct telemetry_duckdb_agent_opened *ret_opened,
                             pawl_error *reterr);

#endif
