-- Databases of the original schema, which pawl only reads (src/ledger/transfer/import_seed.c).

-- name: columns
-- Fits any database; those below only one that has the table.
SELECT count(*) FROM pragma_table_info('events') WHERE name IN ('offset', 'id', 'run_id', 'turn',
    'kind', 'actor', 'payload', 'created_at', 'schema_version');

-- name: total
SELECT count(*) FROM events;

-- name: events
SELECT offset, id, run_id, turn, kind, actor, payload, created_at, schema_version
FROM events ORDER BY offset;

-- script: original_schema
-- Answered by a table of the original schema,
SELECT offset, id, run_id, turn, kind, actor, payload, created_at FROM events LIMIT 0;

-- script: hashed_schema
-- and only by a ledger's own.
SELECT hash FROM events LIMIT 0;
