/* The tables of work: sql/sqlite/work and sql/postgres/work, embedded at build time. What a row may
 * be and what it may become is said there and guarded there, for our code and for anybody's SQL. */
#ifndef PAWL_WORK_SCHEMA_H
#define PAWL_WORK_SCHEMA_H

#include "store/schemas.h" /* pawl__schema_sqlite_work, pawl__schema_postgres_work */

#endif
