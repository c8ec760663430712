-- Idempotency keys.

-- fragment: key_columns
-- In the order in which src/work/sql/keys.c reads them.
idempotency_key, request_hash, task_id, coalesce(item_id, work_item_id), status, response_data,
    owner, owner_token, lease_expires_at, created_at, completed_at, expires_at,
    lease_expires_at IS NOT NULL

-- fragment: key_types
tttttttizzzzb

-- fragment: key_over
-- $1 now: past its TTL, and no caller holds it
expires_at <= $1 AND NOT coalesce(status = 'pending' AND lease_expires_at > $1, false)

-- fragment: key_old
-- $2 completed before
status = 'completed' AND created_at < $2 AND completed_at < $2

-- name: key_get (t) -> ({key_types})
SELECT {key_columns} FROM idempotency_keys WHERE idempotency_key = $1;

-- name: key_load (t) -> ({key_types})
SELECT {key_columns} FROM idempotency_keys WHERE idempotency_key = $1 FOR UPDATE;

-- name: key_floor -> (i)
SELECT owner_token_floor FROM work_counters;

-- name: key_insert (tttttizzz)
INSERT INTO idempotency_keys (idempotency_key, request_hash, task_id, work_item_id, item_id, owner,
    owner_token, lease_expires_at, created_at, expires_at)
VALUES ($1, $2, $3, (SELECT work_item_id FROM work_items WHERE work_item_id = $4 FOR KEY SHARE), $4,
    $5, $6, $7, $8, $9);

-- name: key_replace (tttttizzz)
UPDATE idempotency_keys
SET request_hash = $2, task_id = $3, work_item_id = (SELECT work_item_id FROM work_items
    WHERE work_item_id = $4 FOR KEY SHARE), item_id = $4, owner = $5, owner_token = $6,
    lease_expires_at = $7, created_at = $8, expires_at = $9, status = 'pending',
    response_data = NULL, completed_at = NULL WHERE idempotency_key = $1;

-- name: key_end (tttz)
UPDATE idempotency_keys
SET status = $2, response_data = $3, completed_at = $4, lease_expires_at = NULL
WHERE idempotency_key = $1;

-- name: key_cached (tz) -> ({key_types})
SELECT {key_columns} FROM idempotency_keys WHERE task_id = $1 AND status = 'completed'
AND (expires_at IS NULL OR expires_at > $2) ORDER BY idempotency_key;

-- name: key_prune_over (zi)
DELETE FROM idempotency_keys
WHERE idempotency_key = ANY (ARRAY (SELECT idempotency_key FROM idempotency_keys WHERE {key_over}
    ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED));

-- name: key_prune_old (iz)
DELETE FROM idempotency_keys
WHERE idempotency_key = ANY (ARRAY (SELECT idempotency_key FROM idempotency_keys WHERE {key_old}
    LIMIT $1 FOR UPDATE SKIP LOCKED));

-- name: key_prunable (zz) -> (i)
SELECT count(*) FROM idempotency_keys WHERE ({key_over}) OR ({key_old});
