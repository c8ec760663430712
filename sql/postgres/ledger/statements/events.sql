-- The log. `offset` is a word of SQL, hence the quotes.

-- fragment: columns
"offset", id, run_id, turn, kind, actor, payload, created_at, schema_version, hash

-- fragment: column_types
ittitttzix

-- fragment: in_range
-- $1 and $2 the range, $3 the limit, $4 run, $5 kind, $6 actor, $7 and $8 turns, $9 and $10 times.
-- The statements that go by an index name their column without a way out, so that a plan which was made
-- once for all values uses it.
AND "offset" > $1 AND "offset" <= $2

-- fragment: by_run
AND ($4::text IS NULL OR run_id = $4)

-- fragment: by_kind
AND ($5::text IS NULL OR kind = $5)

-- fragment: by_actor
AND ($6::text IS NULL OR actor = $6)

-- fragment: by_turn_and_time
AND turn BETWEEN $7 AND $8 AND created_at >= $9 AND created_at < $10

-- fragment: in_order
ORDER BY "offset" LIMIT $3

-- fragment: read_types
iiitttiizz

-- fragment: matching
-- The same without range and limit, from $1 on.
WHERE ($1::text IS NULL OR run_id = $1) AND ($2::text IS NULL OR kind = $2)
AND ($3::text IS NULL OR actor = $3) AND turn BETWEEN $4 AND $5
AND created_at >= $6 AND created_at < $7

-- fragment: matching_types
tttiizz

-- fragment: our_tables
('events'::regclass, 'ledger_head'::regclass, 'turns'::regclass, 'embeddings'::regclass)

-- name: head -> (ix)
SELECT "offset", hash FROM ledger_head;

-- name: head_lock -> (ix)
SELECT "offset", hash FROM ledger_head FOR UPDATE;

-- name: head_set (ix)
UPDATE ledger_head SET "offset" = $1, hash = $2;

-- name: head_and_last -> (ixixi)
SELECT ledger_head."offset", ledger_head.hash, last."offset", last.hash,
    (SELECT min("offset") FROM events)
FROM ledger_head
LEFT JOIN (SELECT "offset", hash FROM events ORDER BY "offset" DESC LIMIT 1) AS last ON true;

-- name: read_back (ii) -> (ixixb)
-- What the transaction has written so far, and whether a trigger, a rule or a key that is gone could have
-- meddled: nobody can change that before it ends. Both bounds: with one of them the server plans to read
-- the whole table, once for all.
SELECT (SELECT count(*) FROM events WHERE "offset" > $1 AND "offset" <= $2),
    (SELECT hash FROM events WHERE "offset" = $2), "offset", hash,
    EXISTS (SELECT FROM pg_trigger WHERE tgrelid IN {our_tables} AND NOT tgisinternal)
    OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class IN {our_tables})
    OR 5 > (SELECT count(*) FROM pg_index WHERE indrelid IN {our_tables}
        AND indisunique AND indisvalid)
FROM ledger_head;

-- name: notify (ti) -> (b)
-- $1 the channel, $2 the new head's offset.
SELECT true FROM pg_notify($1, $2::bigint::text);

-- name: insert (iTTITTTZIX)
INSERT INTO events ({columns})
SELECT $1 + ordinal - 1, id, run_id, turn, kind, actor, payload::json, created_at, schema_version,
    hash
FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY
    AS given (id, run_id, turn, kind, actor, payload, created_at, schema_version, hash, ordinal);

-- name: lookup (T) -> ({column_types})
SELECT {columns} FROM events WHERE id = ANY ($1);

-- name: by_id (t) -> ({column_types})
SELECT {columns} FROM events WHERE id = $1;

-- name: by_offset (i) -> ({column_types})
SELECT {columns} FROM events WHERE "offset" = $1;

-- name: read (iii) -> ({column_types})
SELECT {columns} FROM events WHERE true {in_range} {in_order};

-- name: read_filter ({read_types}) -> ({column_types})
SELECT {columns} FROM events
WHERE true {in_range} {by_run} {by_kind} {by_actor} {by_turn_and_time} {in_order};

-- name: read_run ({read_types}) -> ({column_types})
SELECT {columns} FROM events
WHERE run_id = $4 {in_range} {by_kind} {by_actor} {by_turn_and_time} {in_order};

-- name: read_kind ({read_types}) -> ({column_types})
SELECT {columns} FROM events
WHERE kind = $5 {in_range} {by_run} {by_actor} {by_turn_and_time} {in_order};

-- name: read_actor ({read_types}) -> ({column_types})
SELECT {columns} FROM events
WHERE actor = $6 {in_range} {by_run} {by_kind} {by_turn_and_time} {in_order};

-- name: max_turn (t) -> (i)
SELECT max(turn) FROM events WHERE $1::text IS NULL OR run_id = $1;

-- fragment: counted(column)
SELECT {column}, count(*) FROM events {matching} GROUP BY 1 ORDER BY 1

-- name: count_run ({matching_types}) -> (ti)
{counted: run_id};

-- name: count_kind ({matching_types}) -> (ti)
{counted: kind};

-- name: count_actor ({matching_types}) -> (ti)
{counted: actor};

-- name: embed_any -> (i)
SELECT octet_length(vector) FROM embeddings LIMIT 1;

-- name: embed_delete (i)
DELETE FROM embeddings WHERE "offset" = $1;

-- name: embed (ix)
INSERT INTO embeddings ("offset", vector) SELECT "offset", $2 FROM events WHERE "offset" = $1;

-- name: embeddings -> (ix)
SELECT "offset", vector FROM embeddings ORDER BY "offset";

-- name: embeddings_filter ({matching_types}) -> (ix)
SELECT "offset", vector FROM embeddings JOIN events USING ("offset") {matching} ORDER BY "offset";
