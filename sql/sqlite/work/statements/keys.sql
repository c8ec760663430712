-- Idempotency keys. ?3 boot id and ?4 boot clock: now, for what this boot has stored.

-- fragment: key_columns
-- In the order in which src/work/sql/keys.c reads them.
idempotency_key, request_hash, task_id, coalesce(item_id, work_item_id), status, response_data,
    owner, owner_token, lease_expires_at, created_at, completed_at, expires_at,
    lease_expires_at IS NOT NULL OR lease_deadline_ns IS NOT NULL,
    lease_boot_id, lease_deadline_ns, expires_boot_id, expires_deadline_ns

-- fragment: key_free
-- ?1 now: past its TTL, and no caller holds it. In two, one for each index: keys of this boot, and all
-- others.
AND NOT coalesce(status = 'pending' AND CASE WHEN lease_deadline_ns IS NULL
    THEN lease_expires_at > ?1 ELSE lease_boot_id = ?3 AND lease_deadline_ns > ?4 END, 0)

-- fragment: key_over
expires_boot_id = ?3 AND expires_deadline_ns <= ?4 {key_free}

-- fragment: key_over_wall
expires_at <= ?1 AND expires_boot_id IS NOT ?3 {key_free}

-- fragment: key_old
-- ?2 completed before
status = 'completed' AND created_at < ?2 AND completed_at < ?2

-- fragment: key_by_id
SELECT {key_columns} FROM idempotency_keys WHERE idempotency_key = ?1

-- name: key_get
{key_by_id};

-- name: key_load
{key_by_id};

-- fragment: key_store
INSERT OR REPLACE INTO idempotency_keys (idempotency_key, request_hash, task_id, work_item_id,
    item_id, owner, owner_token, lease_expires_at, created_at, expires_at, lease_boot_id,
    lease_deadline_ns, expires_boot_id, expires_deadline_ns)
VALUES (?1, ?2, ?3, (SELECT work_item_id FROM work_items WHERE work_item_id = ?4), ?4, ?5, ?6, ?7,
    ?8, ?9, ?10, ?11, ?10, ?12)

-- name: key_insert
{key_store};

-- name: key_replace
{key_store};

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
DELETE FROM idempotency_keys WHERE idempotency_key IN (
    SELECT idempotency_key FROM idempotency_keys WHERE {key_over}
    UNION ALL SELECT idempotency_key FROM idempotency_keys WHERE {key_over_wall}
    LIMIT ?2);

-- name: key_prune_old
DELETE FROM idempotency_keys
WHERE idempotency_key IN (SELECT idempotency_key FROM idempotency_keys WHERE {key_old} LIMIT ?1);

-- name: key_prunable
SELECT count(*) FROM idempotency_keys WHERE ({key_over}) OR ({key_over_wall}) OR ({key_old});
