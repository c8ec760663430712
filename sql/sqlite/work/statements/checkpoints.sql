-- Checkpoints and their evidence.

-- fragment: checkpoint_columns
checkpoint_id, task_id, coalesce(item_id, work_item_id), checkpoint_type, sequence_number,
    snapshot_data, metadata, created_at, verified

-- fragment: checkpoint_list_of(of_type, order)
-- ?1 task, ?2 item (NULL: any), ?3 type, ?4 verified only, ?5 below, ?6 from, ?7 limit (-1: none)
SELECT {checkpoint_columns} FROM checkpoints WHERE task_id = ?1 {of_type}
AND (?2 IS NULL OR item_id = ?2) AND (?4 = 0 OR verified = 1) AND sequence_number < ?5
AND sequence_number >= ?6 ORDER BY sequence_number {order} LIMIT ?7

-- name: checkpoint_get
SELECT {checkpoint_columns} FROM checkpoints WHERE checkpoint_id = ?1;

-- name: checkpoint_list
{checkpoint_list_of: ; };

-- name: checkpoint_list_type
{checkpoint_list_of: AND checkpoint_type = ?3; };

-- name: checkpoint_newest
{checkpoint_list_of: ; DESC};

-- name: checkpoint_newest_type
{checkpoint_list_of: AND checkpoint_type = ?3; DESC};

-- name: checkpoint_add
INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id, checkpoint_type,
    sequence_number, snapshot_data, metadata, created_at)
VALUES (?1, ?2, (SELECT work_item_id FROM work_items WHERE work_item_id = ?3), ?3, ?4,
    (SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters WHERE task_id = ?2), ?5, ?6, ?7)
RETURNING sequence_number;

-- name: checkpoint_verified
UPDATE checkpoints SET verified = ?2 WHERE checkpoint_id = ?1;

-- name: checkpoint_walk
SELECT checkpoint_id, checkpoint_type, verified FROM checkpoints WHERE task_id = ?1
ORDER BY sequence_number DESC;

-- name: checkpoint_archive
INSERT OR IGNORE INTO checkpoints_archive (checkpoint_id, task_id, work_item_id, checkpoint_type,
    sequence_number, snapshot_data, metadata, created_at, item_id, verified, archived_at)
SELECT checkpoint_id, task_id, work_item_id, checkpoint_type, sequence_number, snapshot_data,
    metadata, created_at, item_id, verified, ?2
FROM checkpoints WHERE checkpoint_id = ?1;

-- name: checkpoint_remove
DELETE FROM checkpoints WHERE checkpoint_id = ?1;

-- name: checkpoint_crowded
SELECT task_id, count(*) FROM checkpoints GROUP BY task_id HAVING count(*) > ?1;

-- name: evidence_get
SELECT kind, subject, expected FROM checkpoint_evidence WHERE checkpoint_id = ?1
ORDER BY ordinal;

-- name: evidence_add
INSERT INTO checkpoint_evidence (task_id, checkpoint_id, ordinal, kind, subject, expected)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: evidence_result
INSERT INTO checkpoint_results (task_id, checkpoint_id, ordinal, at, ok, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);
