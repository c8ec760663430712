/* A colony store in a DuckDB file. Any thread: one caller at a time. */
#ifndef PAWL_TELEMETRY_COLONY_DUCKDB_H
#define PAWL_TELEMETRY_COLONY_DUCKDB_H

#include "store/duckdb/duckdb.h"
#include "telemetry/colony/store.h"

struct telemetry_duckdb_colony_options {
    const char *path;
    struct pawl__duck_options duck; /* the clock is also that of stored times */
    uint64_t checkpoint_rows;       /* committed before maintenance checkpoints; 0: 100,000 */
};

/* CORRUPT: the file does not open. Unlike an agent's it is not replaced: it has what agents no longer have. */
PAWL_MUST_USE pawl_status
pawl__telemetry_duckdb_colony(const struct telemetry_duckdb_colony_options *options,
                              struct telemetry_colony_store **ret_store,
                              pawl_error *reterr);

#endif
