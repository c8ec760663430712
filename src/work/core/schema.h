/* The tables of work: sql/sqlite/work and sql/postgres/work, embedded at build time. Their constraints and
 * triggers guard rows and their changes, for our code and for foreign SQL. */
#ifndef PAWL_WORK_CORE_SCHEMA_H
#define PAWL_WORK_CORE_SCHEMA_H

#include "store/layout.h"
#include "store/schemas.h" /* pawl__schema_sqlite_work, pawl__schema_postgres_work */
#include "store/sqlite/sqlite.h"

/* How work.sqlite is opened. With triggers on every write, statements that take
 * many rows are much cheaper than many statements: each keeps a journal of the pages it touches. */
static inline struct pawl__sqlite_options pawl__work_sqlite_options(void)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;

    options.application_id = PAWL__WORK_APPLICATION_ID;
    options.schema = &pawl__schema_sqlite_work;
    options.incremental_vacuum = true;
    options.temp_in_memory = true;
    return options;
}

#endif
