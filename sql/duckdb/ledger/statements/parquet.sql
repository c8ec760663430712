-- Events as a Parquet file (src/ledger/transfer/parquet.c). What names the file stays in C: COPY and
-- DESCRIBE take no parameters.

-- script: events
CREATE TABLE events ("offset" UBIGINT, id VARCHAR, run_id VARCHAR, turn BIGINT, kind VARCHAR,
    actor VARCHAR, payload VARCHAR, created_at TIMESTAMP, schema_version INTEGER, hash BLOB);

-- name: rows
SELECT num_rows FROM parquet_file_metadata($1);
