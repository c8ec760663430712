-- The migration runner (src/store/postgres/migrate.c).

-- name: migrate_lock (i) -> (b)
SELECT true FROM pg_advisory_xact_lock($1);

-- name: has_schema (t) -> (b)
-- Asked first: CREATE SCHEMA IF NOT EXISTS needs the right to create one even when it is there, and an
-- administrator may have made it for a user without that right.
SELECT true FROM pg_namespace WHERE nspname = $1;

-- name: has_versions (t) -> (b)
-- The server says of a table in a schema that one may not use that it does not exist.
SELECT has_schema_privilege(schemaname, 'USAGE') FROM pg_tables
WHERE schemaname = $1 AND tablename = 'schema_version';

-- name: versions (t) -> (ttit)
SELECT component, version, migration::bigint, name FROM schema_version
WHERE component = $1 ORDER BY migration;

-- name: add_version (ttitt)
-- The session's time zone is UTC.
INSERT INTO schema_version (component, version, migration, name, applied_at)
VALUES ($1, $2, $3, $4, $5::timestamptz);

-- script: version_table
CREATE TABLE IF NOT EXISTS schema_version (
    component TEXT NOT NULL,
    version TEXT NOT NULL,
    migration INTEGER NOT NULL,
    name TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (component, migration));
