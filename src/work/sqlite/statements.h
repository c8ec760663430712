/* All SQL of the SQLite backend, as numbers. Each subject keeps its statements as a list of
 * X(NAME, "text") in a header of its own; they are put together here and in sqlite_statements.c. */
#ifndef PAWL_WORK_SQLITE_STATEMENTS_H
#define PAWL_WORK_SQLITE_STATEMENTS_H

#include "work/sqlite/items_sql.h"
#include "work/sqlite/maintenance_sql.h"

#define WORK_SQLITE_STATEMENTS(X)  \
    WORK_SQLITE_ITEMS_SQL(X)       \
    WORK_SQLITE_CHECKPOINTS_SQL(X) \
    WORK_SQLITE_KEYS_SQL(X)        \
    WORK_SQLITE_SCHEDULES_SQL(X)   \
    WORK_SQLITE_STATS_SQL(X)

enum {
#define WORK_SQL_ENUM_(name, text) WORK_SQL_##name,
    WORK_SQLITE_STATEMENTS(WORK_SQL_ENUM_)
#undef WORK_SQL_ENUM_
        WORK_SQL_COUNT
};

extern const char *const pawl__work_sqlite_statements[WORK_SQL_COUNT];

#endif
