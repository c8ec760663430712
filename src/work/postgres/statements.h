/* All SQL of the PostgreSQL backend, as numbers. Each subject keeps its statements as a list of
 * X(NAME, "text", "parameters", "columns") in a header of its own; see store/postgres/postgres.h for the
 * letters. */
#ifndef PAWL_WORK_POSTGRES_STATEMENTS_H
#define PAWL_WORK_POSTGRES_STATEMENTS_H

#include "store/postgres/postgres.h"
#include "work/postgres/items_sql.h"
#include "work/postgres/maintenance_sql.h"

#define WORK_POSTGRES_STATEMENTS(X)  \
    WORK_POSTGRES_ITEMS_SQL(X)       \
    WORK_POSTGRES_CHECKPOINTS_SQL(X) \
    WORK_POSTGRES_KEYS_SQL(X)        \
    WORK_POSTGRES_SCHEDULES_SQL(X)   \
    WORK_POSTGRES_STATS_SQL(X)

enum {
#define WORK_PG_ENUM_(name, text, params, columns) WORK_PG_##name,
    WORK_POSTGRES_STATEMENTS(WORK_PG_ENUM_)
#undef WORK_PG_ENUM_
        WORK_PG_COUNT
};

extern const struct pawl__pg_statement pawl__work_pg_statements[WORK_PG_COUNT];

#endif
