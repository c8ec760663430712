-- The log, its indexes and embeddings.

-- fragment: columns
offset, id, run_id, turn, kind, actor, payload, created_at, schema_version, hash

-- fragment: in_range
-- ?1 and ?2 the range, ?3 the limit, ?4 run, ?5 kind, ?6 actor, ?7 and ?8 turns, ?9 and ?10 times. The
-- unary plus keeps a column from being looked up by its index: each statement names the one it goes by.
AND offset > ?1 AND offset <= ?2

-- fragment: by_run
AND (?4 IS NULL OR +run_id = ?4)

-- fragment: by_kind
AND (?5 IS NULL OR +kind = ?5)

-- fragment: by_actor
AND (?6 IS NULL OR +actor = ?6)

-- fragment: by_turn_and_time
AND turn BETWEEN ?7 AND ?8 AND created_at >= ?9 AND created_at < ?10

-- fragment: in_order
ORDER BY offset LIMIT ?3

-- fragment: matching
-- The same without range and limit, from ?1 on.
WHERE (?1 IS NULL OR run_id = ?1) AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR actor = ?3)
AND turn BETWEEN ?4 AND ?5 AND created_at >= ?6 AND created_at < ?7

-- name: head
SELECT offset, hash FROM events ORDER BY offset DESC LIMIT 1;

-- name: first
SELECT offset FROM events ORDER BY offset LIMIT 1;

-- name: highest_ever
SELECT max(seq) FROM sqlite_sequence WHERE name = 'events';

-- name: read_back
SELECT offset, hash, (SELECT count(*) FROM events WHERE offset > ?1)
FROM events ORDER BY offset DESC LIMIT 1;

-- name: last_unindexed
SELECT last.offset FROM (SELECT offset, id FROM events ORDER BY offset DESC LIMIT 1) AS last
WHERE NOT EXISTS (SELECT 1 FROM events AS found INDEXED BY sqlite_autoindex_events_1
    WHERE found.id = last.id AND +found.offset = last.offset);

-- name: insert
INSERT INTO events ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: by_id
SELECT {columns} FROM events WHERE id = ?1;

-- name: by_offset
SELECT {columns} FROM events WHERE offset = ?1;

-- name: read
SELECT {columns} FROM events WHERE offset > ?1 {in_order};

-- name: read_filter
SELECT {columns} FROM events
WHERE true {in_range} {by_run} {by_kind} {by_actor} {by_turn_and_time} {in_order};

-- name: read_run
SELECT {columns} FROM events INDEXED BY idx_run_id
WHERE run_id = ?4 {in_range} {by_kind} {by_actor} {by_turn_and_time} {in_order};

-- name: read_kind
SELECT {columns} FROM events INDEXED BY idx_kind
WHERE kind = ?5 {in_range} {by_run} {by_actor} {by_turn_and_time} {in_order};

-- name: read_actor
SELECT {columns} FROM events INDEXED BY idx_actor
WHERE actor = ?6 {in_range} {by_run} {by_kind} {by_turn_and_time} {in_order};

-- name: max_turn
SELECT max(turn) FROM events WHERE ?1 IS NULL OR run_id = ?1;

-- fragment: counted(column)
SELECT {column}, count(*) FROM events {matching} GROUP BY 1 ORDER BY 1

-- name: count_run
{counted: run_id};

-- name: count_kind
{counted: kind};

-- name: count_actor
{counted: actor};

-- fragment: indexed(column, index)
SELECT {column}, offset FROM events INDEXED BY {index} ORDER BY {column}

-- name: index_id
{indexed: id; sqlite_autoindex_events_1};

-- name: index_run
{indexed: run_id; idx_run_id}, offset;

-- name: index_kind
{indexed: kind; idx_kind}, offset;

-- name: index_actor
{indexed: actor; idx_actor}, offset;

-- name: embed
INSERT INTO embeddings (offset, vector) VALUES (?1, ?2)
ON CONFLICT (offset) DO UPDATE SET vector = ?2;

-- name: embed_any
SELECT length(vector) FROM embeddings LIMIT 1;

-- name: embeddings
SELECT offset, vector FROM embeddings ORDER BY offset;

-- name: embeddings_filter
SELECT offset, vector FROM embeddings JOIN events USING (offset) {matching} ORDER BY offset;
