-- Checkpoints and their evidence.

-- fragment: checkpoint_columns
checkpoint_id, c.task_id, coalesce(item_id, work_item_id), checkpoint_type, sequence_number,
    snapshot_data, metadata, created_at, verified

-- fragment: checkpoint_types
ttttittzb

-- fragment: with_evidence(checkpoints, order)
-- A row per piece of evidence; a checkpoint without any has one row whose kind is null.
SELECT c.*, e.kind, e.subject, e.expected
FROM ({checkpoints}) AS c
LEFT JOIN checkpoint_evidence AS e ON e.task_id = c.task_id AND e.checkpoint_id = c.checkpoint_id
ORDER BY c.sequence_number {order}, e.ordinal

-- fragment: evidence_types
{checkpoint_types} ttt

-- fragment: checkpoint_list_of(of_type, order)
-- $1 task, $2 item (null: any), $3 verified only, $4 below, $5 from, $6 limit, $7 type
{with_evidence: SELECT {checkpoint_columns} FROM checkpoints AS c WHERE c.task_id = $1
    {of_type} AND ($2::text IS NULL OR item_id = $2)
    AND (NOT $3 OR verified) AND sequence_number < $4 AND sequence_number >= $5
    ORDER BY sequence_number {order} LIMIT $6; {order}}

-- name: checkpoint_get (t) -> ({evidence_types})
{with_evidence: SELECT {checkpoint_columns} FROM checkpoints AS c WHERE checkpoint_id = $1 LIMIT 1; };

-- name: checkpoint_list (ttbiii) -> ({evidence_types})
{checkpoint_list_of: ; };

-- name: checkpoint_list_type (ttbiiit) -> ({evidence_types})
{checkpoint_list_of: AND checkpoint_type = $7; };

-- name: checkpoint_newest (ttbiii) -> ({evidence_types})
{checkpoint_list_of: ; DESC};

-- name: checkpoint_newest_type (ttbiiit) -> ({evidence_types})
{checkpoint_list_of: AND checkpoint_type = $7; DESC};

-- name: checkpoint_add (ttttttz) -> (i)
INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id, checkpoint_type,
    snapshot_data, metadata, created_at)
VALUES ($1, $2, (SELECT work_item_id FROM work_items WHERE work_item_id = $3 FOR KEY SHARE), $3, $4,
    $5, $6, $7) RETURNING sequence_number;

-- name: checkpoint_id_lock (t) -> (b)
SELECT true FROM pg_advisory_xact_lock(hashtextextended($1, 4));

-- name: checkpoint_verified (ttb)
UPDATE checkpoints SET verified = $3 WHERE task_id = $1 AND checkpoint_id = $2;

-- name: checkpoint_walk (t) -> (ttb)
SELECT checkpoint_id, checkpoint_type, verified FROM checkpoints WHERE task_id = $1
ORDER BY sequence_number DESC;

-- name: checkpoint_archive (tTz)
INSERT INTO checkpoints_archive (checkpoint_id, task_id, work_item_id, checkpoint_type,
    sequence_number, snapshot_data, metadata, created_at, item_id, verified, archived_at)
SELECT checkpoint_id, task_id, work_item_id, checkpoint_type, sequence_number, snapshot_data,
    metadata, created_at, item_id, verified, $3
FROM checkpoints WHERE task_id = $1 AND checkpoint_id = ANY ($2)
ON CONFLICT DO NOTHING;

-- name: checkpoint_remove (tT)
DELETE FROM checkpoints WHERE task_id = $1 AND checkpoint_id = ANY ($2);

-- name: checkpoint_crowded (i) -> (ti)
SELECT task_id, count(*) FROM checkpoints GROUP BY task_id HAVING count(*) > $1;

-- name: evidence_add (ttittt)
INSERT INTO checkpoint_evidence (task_id, checkpoint_id, ordinal, kind, subject, expected)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: evidence_result (ttizbt)
INSERT INTO checkpoint_results (task_id, checkpoint_id, ordinal, at, ok, detail)
SELECT $1, $2, $3, $4, $5, $6
WHERE EXISTS (SELECT 1 FROM checkpoints WHERE task_id = $1 AND checkpoint_id = $2);
