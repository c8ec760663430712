-- Idempotency keys.

-- fragment: key_columns
idempotency_key, request_hash, task_id, coalesce(item_id, work_item_id), status, response_data,
    owner, owner_token, lease_boot_id, lease_deadline_ns, lease_expires_at, created_at,
    completed_at, expires_at, expires_boot_id, expires_deadline_ns

-- fragment: key_free
-- ?1 now, ?2 boot id, ?3 boot clock: past its TTL, and no caller holds it. In two, one for each index:
-- keys of this boot, and all others.
AND NOT coalesce(status = 'pending' AND CASE WHEN lease_deadline_ns IS NULL
    THEN lease_expires_at > ?1 ELSE lease_boot_id = ?2 AND lease_deadline_ns > ?3 END, 0)

-- fragment: key_over
expires_boot_id = ?2 AND expires_deadline_ns <= ?3 {key_free}

-- fragment: key_over_wall
expires_at <= ?1 AND expires_boot_id IS NOT ?2 {key_free}

-- fragment: key_old
-- ?4 completed before
status = 'completed' AND created_at < ?4 AND completed_at < ?4

-- name: key_get
SELECT {key_columns} FROM idempotency_keys WHERE idempotency_key = ?1;

-- name: key_take
INSERT OR REPLACE INTO idempotency_keys (idempotency_key, request_hash, task_id, work_item_id,
    item_id, owner, owner_token, lease_boot_id, lease_deadline_ns, lease_expires_at, created_at,
    expires_at, expires_boot_id, expires_deadline_ns)
VALUES (?1, ?2, ?3, (SELECT work_item_id FROM work_items WHERE work_item_id = ?4), ?4, ?5, ?6, ?7,
    ?8, ?9, ?10, ?11, ?7, ?12);

-- name: key_floor
SELECT owner_token_floor FROM work_counters;

-- name: key_end
UPDATE idempotency_keys
SET status = ?2, response_data = ?3, completed_at = ?4, lease_boot_id = NULL,
    lease_deadline_ns = NULL, lease_expires_at = NULL WHERE idempotency_key = ?1;

-- name: key_cached
SELECT {key_columns} FROM idempotency_keys WHERE task_id = ?1 AND status = 'completed'
AND CASE WHEN expires_boot_id = ?3 THEN expires_deadline_ns > ?4 ELSE expires_at IS NULL
    OR expires_at > ?2 END ORDER BY idempotency_key;

-- name: key_prune_over
DELETE FROM idempotency_keys
WHERE idempotency_key IN (SELECT idempotency_key FROM idempotency_keys WHERE {key_over} LIMIT ?5);

-- name: key_prune_over_wall
DELETE FROM idempotency_keys
WHERE idempotency_key IN (SELECT idempotency_key FROM idempotency_keys WHERE {key_over_wall}
    LIMIT ?5);

-- name: key_prune_old
DELETE FROM idempotency_keys
WHERE idempotency_key IN (SELECT idempotency_key FROM idempotency_keys WHERE {key_old} LIMIT ?5);

-- name: key_prunable
SELECT count(*) FROM idempotency_keys WHERE ({key_over}) OR ({key_over_wall}) OR ({key_old});
