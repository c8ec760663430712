-- Checkpoints and their evidence.

-- fragment: with_evidence(index)
-- A row per piece of evidence; a checkpoint without any has one row whose kind is NULL.
SELECT c.checkpoint_id, c.task_id, coalesce(item_id, work_item_id), checkpoint_type, sequence_number,
    snapshot_data, metadata, created_at, verified, e.kind, e.subject, e.expected
FROM checkpoints AS c {index}
LEFT JOIN checkpoint_evidence AS e ON e.checkpoint_id = c.checkpoint_id

-- fragment: checkpoint_list_of(index, of_type, order)
-- ?1 task, ?2 item (NULL: any), ?3 verified only, ?4 below, ?5 from, ?7 type. The reader stops at the
-- limit, ?6: a LIMIT would count pieces of evidence.
{with_evidence: {index}} WHERE c.task_id = ?1 {of_type}
AND (?2 IS NULL OR item_id = ?2) AND (?3 = 0 OR verified = 1) AND sequence_number < ?4
AND sequence_number >= ?5 AND ?6 > 0 ORDER BY sequence_number {order}, e.ordinal

-- name: checkpoint_get
{with_evidence: } WHERE c.checkpoint_id = ?1 ORDER BY e.ordinal;

-- name: checkpoint_id_lock
-- The write lock of the transaction is enough; PostgreSQL has to lock the id.
SELECT 1 WHERE ?1 IS NULL;

-- name: checkpoint_list
{checkpoint_list_of: ; ; };

-- name: checkpoint_list_type
{checkpoint_list_of: INDEXED BY idx_checkpoints_task_type; AND checkpoint_type = ?7; };

-- name: checkpoint_newest
{checkpoint_list_of: ; ; DESC};

-- name: checkpoint_newest_type
{checkpoint_list_of: INDEXED BY idx_checkpoints_task_type; AND checkpoint_type = ?7; DESC};

-- name: checkpoint_add
INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id, checkpoint_type,
    sequence_number, snapshot_data, metadata, created_at)
VALUES (?1, ?2, (SELECT work_item_id FROM work_items WHERE work_item_id = ?3), ?3, ?4,
    (SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters WHERE task_id = ?2), ?5, ?6, ?7)
RETURNING sequence_number;

-- name: checkpoint_verified
UPDATE checkpoints SET verified = ?3 WHERE task_id = ?1 AND checkpoint_id = ?2;

-- name: checkpoint_walk
SELECT checkpoint_id, checkpoint_type, verified FROM checkpoints WHERE task_id = ?1
ORDER BY sequence_number DESC;

-- name: checkpoint_archive
INSERT OR IGNORE INTO checkpoints_archive (checkpoint_id, task_id, work_item_id, checkpoint_type,
    sequence_number, snapshot_data, metadata, created_at, item_id, verified, archived_at)
SELECT checkpoint_id, task_id, work_item_id, checkpoint_type, sequence_number, snapshot_data,
    metadata, created_at, item_id, verified, ?3
FROM checkpoints WHERE task_id = ?1 AND checkpoint_id = ?2;

-- name: checkpoint_remove
DELETE FROM checkpoints WHERE task_id = ?1 AND checkpoint_id = ?2;

-- name: checkpoint_crowded
SELECT task_id, count(*) FROM checkpoints GROUP BY task_id HAVING count(*) > ?1;

-- name: evidence_add
INSERT INTO checkpoint_evidence (task_id, checkpoint_id, ordinal, kind, subject, expected)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: evidence_result
INSERT INTO checkpoint_results (task_id, checkpoint_id, ordinal, at, ok, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);
