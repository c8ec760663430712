-- The migration runner (src/store/duckdb/migrate.c).

-- script: version_table
CREATE TABLE IF NOT EXISTS schema_version (
    component TEXT NOT NULL,
    version TEXT NOT NULL,
    migration INTEGER NOT NULL,
    name TEXT NOT NULL,
    applied_at TIMESTAMP NOT NULL,
    PRIMARY KEY (component, migration));

-- name: has_versions
SELECT 1 FROM duckdb_tables() WHERE NOT internal AND table_name = 'schema_version';

-- name: versions
SELECT version, migration, name FROM schema_version WHERE component = $1 ORDER BY migration;

-- name: add_version
INSERT INTO schema_version VALUES ($1, $2, $3, $4, $5::TIMESTAMP);
