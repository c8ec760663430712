-- The migration runner (src/store/sqlite/schema.c), and whether a store still has the schema that its
-- migrations made (schema_check.c, extend.c). Each is prepared where it is needed, for one use.

-- script: version_table
CREATE TABLE IF NOT EXISTS schema_version (
    component TEXT NOT NULL,
    version TEXT NOT NULL,
    migration INTEGER NOT NULL,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    PRIMARY KEY (component, migration)
) WITHOUT ROWID;

-- name: has_versions
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version';

-- name: versions
SELECT version, migration, name FROM schema_version WHERE component = ?1 ORDER BY migration;

-- name: any_component
SELECT component FROM schema_version LIMIT 1;

-- name: add_version
INSERT INTO schema_version (component, version, migration, name, applied_at)
VALUES (?1, ?2, ?3, ?4, ?5);

-- name: objects
-- sqlite_schema keeps the text of a statement. Tables first: what is missing with one is named by it.
-- Neither SQLite's own tables nor the runner's, which is made before any migration, are of a schema. A
-- trigger of such a name is no less a trigger.
SELECT CASE type WHEN 'table' THEN '0' WHEN 'index' THEN '1' ELSE type END, name, tbl_name, sql, type
FROM sqlite_schema WHERE sql IS NOT NULL AND (type NOT IN ('table', 'index')
    OR (name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'schema_version'))
ORDER BY 1, 2;

-- name: has_object
SELECT 1 FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE;

-- name: count_objects
SELECT count(*) FROM sqlite_schema;

-- name: table_shape
-- First the columns, then what a column may not bring: a value that our INSERT would have to give, a
-- key, a row elsewhere that takes ours along when it goes.
SELECT (SELECT count(*) FROM pragma_table_xinfo(?1)),
    (SELECT count(*) FROM pragma_table_xinfo(?1) WHERE "notnull" AND dflt_value IS NULL),
    (SELECT count(*) FROM pragma_table_xinfo(?1) WHERE pk > 0),
    (SELECT count(*) FROM pragma_index_list(?1) WHERE "unique" AND origin <> 'c'),
    (SELECT count(*) FROM pragma_foreign_key_list(?1));
