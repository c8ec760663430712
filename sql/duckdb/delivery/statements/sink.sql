-- The sink of a pipeline. `delivery_rows` is a view of its connection: event_key, payload_hash and transaction_id of the
-- table that its mapping names.

-- name: sink_id
SELECT sink_id FROM delivery_sink;

-- name: sink_id_add
INSERT INTO delivery_sink VALUES ($1, $2);

-- name: cursor_read
SELECT wal_id, epoch, fence, version, applied, stream_created_ns, stream_sequence, stream_stored_ns, running_ns,
    accepted, delivered, filtered, failed
FROM delivery_cursors WHERE pipeline = $1;

-- name: cursor_insert
INSERT INTO delivery_cursors VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- name: cursor_update
UPDATE delivery_cursors SET table_name = $2, wal_id = $3, epoch = $4, fence = $5, version = $6, applied = $7,
    stream_created_ns = $8, stream_sequence = $9, stream_stored_ns = $10, running_ns = $11, accepted = $12,
    delivered = $13, filtered = $14, failed = $15, updated_at = $16
WHERE pipeline = $1;

-- name: table_owner
-- Pipelines that disagree with this one about its table.
SELECT pipeline, table_name FROM delivery_cursors
WHERE (table_name = $2 AND pipeline <> $1) OR (pipeline = $1 AND table_name <> $2);

-- name: table_was_used
SELECT delivered FROM delivery_cursors WHERE pipeline = $1 AND delivered > 0;

-- name: table_columns
SELECT column_name, data_type FROM duckdb_columns()
WHERE schema_name = 'main' AND NOT internal AND table_name = $1 ORDER BY column_index;

-- name: exception_delete
DELETE FROM delivery_exceptions WHERE pipeline = $1 AND lsn = $2;

-- name: exceptions_delete
DELETE FROM delivery_exceptions WHERE pipeline = $1;

-- name: exceptions_read
SELECT lsn, stream_sequence, attempts, first_failed_running_ns, due_running_ns FROM delivery_exceptions
WHERE pipeline = $1 AND lsn > $2 ORDER BY lsn LIMIT $3;

-- fragment: all_keys
-- $1 the pipeline. The numbers are those of enum delivery_outcome_kind.
SELECT event_key, payload_hash, 0 AS kind FROM delivery_rows
UNION ALL SELECT event_key, payload_hash, 1 FROM delivery_filtered WHERE pipeline = $1
UNION ALL SELECT event_key, payload_hash, 2 FROM failed_events WHERE pipeline = $1

-- name: keys_each
{all_keys};

-- name: keys_lookup
-- $2 the keys in hexadecimal, with commas; $3 how many.
SELECT place, kind, payload_hash
FROM (SELECT unhex(unnest(string_split($2, ','))) AS asked, unnest(range($3)) AS place)
JOIN ({all_keys}) ON event_key = asked;
