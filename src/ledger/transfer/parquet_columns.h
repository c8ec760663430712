/* How the columns of a Parquet file are read. */
#ifndef PAWL_LEDGER_TRANSFER_PARQUET_COLUMNS_H
#define PAWL_LEDGER_TRANSFER_PARQUET_COLUMNS_H

#include "base/core/buf.h"
#include "store/duckdb/duckdb.h"

/* What the query gives for each row. A number or a time has a text beside it: for a number one that
 * is no whole number, or too large; for a time one that is still to be read. All of them are NULL for
 * a column that the file does not have. */
enum parquet_column {
    PARQUET_ID,
    PARQUET_RUN_ID,
    PARQUET_KIND,
    PARQUET_ACTOR,
    PARQUET_PAYLOAD,
    PARQUET_TURN,
    PARQUET_TURN_TEXT,
    PARQUET_SCHEMA_VERSION,
    PARQUET_SCHEMA_VERSION_TEXT,
    PARQUET_CREATED_AT,
    PARQUET_CREATED_AT_TEXT,
};

/* Adds the query for the file at `path`. INVALID names a column whose type cannot be read without
 * changing values. */
PAWL_MUST_USE pawl_status pawl__ledger_parquet_add_query(struct pawl__duck_conn *conn,
                                                         const char *path,
                                                         struct pawl__buf *sql,
                                                         pawl_error *reterr);

/* Adds 'path' with its quotes doubled. */
void pawl__ledger_parquet_add_quoted(struct pawl__buf *sql, const char *path);

#endif
