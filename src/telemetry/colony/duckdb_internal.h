/* What the files of the colony's DuckDB store share. */
#ifndef PAWL_TELEMETRY_COLONY_DUCKDB_INTERNAL_H
#define PAWL_TELEMETRY_COLONY_DUCKDB_INTERNAL_H

#include "base/thread/thread.h"
#include "telemetry/colony/duckdb.h"
#include "telemetry/colony/statements.h"

struct telemetry_duckdb_colony {
    struct telemetry_colony_store base;
    struct pawl__lock lock; /* covers everything below */
    struct pawl__duck *db;
    struct pawl__duck_conn *conn;
    struct pawl__clock *clock;
    uint64_t gap_ids;   /* the last one given */
    uint64_t committed; /* rows since the last checkpoint */
    uint64_t checkpoint_rows;
};

static inline struct telemetry_duckdb_colony *as_duckdb(struct telemetry_colony_store *store)
{
    return (struct telemetry_duckdb_colony *)store; /* base is its first member */
}

static inline struct pawl__duck_value duck_id(const struct telemetry_id *id)
{
    return pawl__duck_text(pawl_view_of(id->text));
}

static inline struct pawl__duck_value duck_type(enum telemetry_type type)
{
    return pawl__duck_text(pawl_view_of(pawl__telemetry_type(type)->name));
}

/* The checkpoint row; the session is "" when there is none. */
PAWL_MUST_USE pawl_status
pawl__telemetry_colony_checkpoint(struct telemetry_duckdb_colony *colony,
                                  const char *agent,
                                  enum telemetry_type type,
                                  struct telemetry_checkpoint *ret_checkpoint,
                                  uint64_t *ret_high_water,
                                  pawl_error *reterr);

/* The calls of store.h that commit; the caller holds the lock. */
PAWL_MUST_USE pawl_status pawl__telemetry_colony_commit(struct telemetry_duckdb_colony *colony,
                                                        const struct telemetry_commit *commits,
                                                        size_t count,
                                                        pawl_error *reterr);

#endif
