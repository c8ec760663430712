-- Items.

-- script: temp_schema
-- Where rows wait to be changed by one statement (src/work/sqlite/store.c).
CREATE TEMP TABLE staged_items (work_item_id, status, retry_count, attempts, token, lease_holder,
    output_data, error_message, started_at, completed_at, updated_at, lease_acquired_at,
    lease_expires_at, heartbeat_at, lease_boot_id, lease_deadline_ns);
CREATE TEMP TABLE staged_new ({new_columns})

-- fragment: item_columns_with_token(token)
-- In the order in which src/work/sql/items.c reads them; both tables fill all places.
work_item_id, task_id, work_type, status, priority, retry_count, max_retries, attempts, {token},
    lease_holder, input_data, output_data, error_message, created_at, started_at, completed_at,
    updated_at, lease_acquired_at, lease_expires_at, heartbeat_at, entries, NULL AS due_at,
    NULL AS reason, 0 AS waits_for, submission, lease_boot_id, lease_deadline_ns

-- fragment: item_columns
{item_columns_with_token: token}

-- fragment: pick_columns
-- Of what is claimed: the next token is above that of every row that was ever removed.
{item_columns_with_token: max(token, (SELECT token_floor FROM work_counters)) AS token}

-- fragment: waiting_columns
work_item_id, task_id, work_type, 'waiting' AS status, priority, retry_count, max_retries, attempts,
    token, NULL AS lease_holder, input_data, NULL AS output_data, error_message, created_at,
    started_at, NULL AS completed_at, updated_at, NULL AS lease_acquired_at,
    NULL AS lease_expires_at, NULL AS heartbeat_at, entries, due_at, reason, waits_for, submission,
    due_boot_id AS lease_boot_id, due_deadline_ns AS lease_deadline_ns

-- fragment: claim_order
ORDER BY priority DESC, submission, work_item_id LIMIT ?1

-- name: load
SELECT {item_columns} FROM work_items WHERE work_item_id = ?1;

-- name: load_waiting
SELECT {waiting_columns} FROM work_waiting WHERE work_item_id = ?1;

-- name: pick
SELECT {pick_columns} FROM work_items INDEXED BY idx_work_items_claim
WHERE status = 'pending' {claim_order};

-- name: pick_type
SELECT {pick_columns} FROM work_items INDEXED BY idx_work_items_claim_type
WHERE status = 'pending' AND work_type = ?2 {claim_order};

-- name: pick_task
SELECT {pick_columns} FROM work_items INDEXED BY idx_work_items_claim_task
WHERE status = 'pending' AND task_id = ?2 {claim_order};

-- name: pick_task_type
SELECT {pick_columns} FROM work_items INDEXED BY idx_work_items_claim_task
WHERE status = 'pending' AND task_id = ?2 AND work_type = ?3 {claim_order};

-- name: expired
SELECT {item_columns} FROM work_items INDEXED BY idx_work_items_lease_expiry
WHERE status = 'in_progress' AND CASE WHEN lease_deadline_ns IS NULL THEN lease_expires_at <= ?2
    WHEN lease_boot_id = ?3 THEN lease_deadline_ns <= ?4 ELSE 1 END
ORDER BY lease_expires_at LIMIT ?1;

-- name: left_expired
SELECT {item_columns} FROM work_items INDEXED BY idx_work_items_status_priority
WHERE status = 'expired' LIMIT ?1;

-- name: unfinished
SELECT work_item_id FROM (
    SELECT work_item_id FROM (SELECT work_item_id FROM work_items
        WHERE task_id = ?1 AND status IN ('pending', 'in_progress', 'expired') LIMIT ?2)
    UNION ALL
    SELECT work_item_id FROM (SELECT work_item_id FROM work_waiting WHERE task_id = ?1 LIMIT ?2))
ORDER BY work_item_id LIMIT ?2;

-- name: due
SELECT {waiting_columns} FROM work_waiting INDEXED BY idx_work_waiting_clock WHERE waits_for = 0
AND due_boot_id = ?2 AND due_deadline_ns <= ?3 ORDER BY due_deadline_ns LIMIT ?1;

-- name: due_wall
SELECT {waiting_columns} FROM work_waiting INDEXED BY idx_work_waiting_due WHERE waits_for = 0
AND due_at <= ?3 AND due_boot_id IS NOT ?2 LIMIT ?1;

-- name: next_due
-- The first of this boot, and the first of all others, by the wall.
SELECT * FROM (SELECT due_at, due_boot_id, due_deadline_ns FROM work_waiting
    INDEXED BY idx_work_waiting_clock WHERE waits_for = 0
    AND due_boot_id = ?1 ORDER BY due_deadline_ns LIMIT 1)
UNION ALL
SELECT * FROM (SELECT due_at, due_boot_id, due_deadline_ns FROM work_waiting
    INDEXED BY idx_work_waiting_due WHERE waits_for = 0
    AND due_boot_id IS NOT ?1 ORDER BY due_at LIMIT 1);

-- fragment: new_columns
work_item_id, task_id, work_type, priority, retry_count, max_retries,
    attempts, token, entries, input_data, error_message, created_at, started_at, updated_at,
    submission

-- name: item_insert
INSERT INTO work_items ({new_columns})
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);

-- name: item_update
UPDATE work_items
SET status = ?2, retry_count = ?3, attempts = ?4, token = ?5, lease_holder = ?6, output_data = ?7,
    error_message = ?8, started_at = ?9, completed_at = ?10, updated_at = ?11,
    lease_acquired_at = ?12, lease_expires_at = ?13, heartbeat_at = ?14, lease_boot_id = ?15,
    lease_deadline_ns = ?16 WHERE work_item_id = ?1;

-- name: stage
INSERT INTO temp.staged_items
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16);

-- name: items_update
UPDATE work_items
SET status = s.status, retry_count = s.retry_count, attempts = s.attempts, token = s.token,
    lease_holder = s.lease_holder, output_data = s.output_data, error_message = s.error_message,
    started_at = s.started_at, completed_at = s.completed_at, updated_at = s.updated_at,
    lease_acquired_at = s.lease_acquired_at, lease_expires_at = s.lease_expires_at,
    heartbeat_at = s.heartbeat_at, lease_boot_id = s.lease_boot_id,
    lease_deadline_ns = s.lease_deadline_ns FROM temp.staged_items AS s
WHERE work_items.work_item_id = s.work_item_id;

-- name: stage_new
INSERT INTO temp.staged_new
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);

-- name: items_insert
INSERT INTO work_items ({new_columns})
SELECT * FROM temp.staged_new ORDER BY rowid;

-- name: unstage_new
DELETE FROM temp.staged_new;

-- name: unstage
DELETE FROM temp.staged_items;

-- name: item_delete
DELETE FROM work_items WHERE work_item_id = ?1;

-- name: waiting_insert
INSERT INTO work_waiting ({new_columns}, reason, due_at, waits_for, due_boot_id, due_deadline_ns)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20);

-- name: waiting_update
UPDATE work_waiting SET updated_at = ?2, reason = ?3, waits_for = ?4 WHERE work_item_id = ?1;

-- name: waiting_delete
DELETE FROM work_waiting WHERE work_item_id = ?1;

-- name: relink_checkpoints
UPDATE checkpoints SET work_item_id = item_id WHERE item_id = ?1 AND work_item_id IS NULL;

-- name: relink_keys
UPDATE idempotency_keys SET work_item_id = item_id WHERE item_id = ?1 AND work_item_id IS NULL;

-- name: clock
SELECT offset_us FROM work_clock WHERE boot_id = ?1;

-- name: clock_set
INSERT OR REPLACE INTO work_clock (one, boot_id, offset_us) VALUES (1, ?1, ?2);

-- name: submissions
SELECT submissions FROM work_counters;

-- name: submissions_set
UPDATE work_counters SET submissions = ?1;

-- name: edges
SELECT work_item_id, after_id FROM work_dependencies WHERE after_id = ?1;

-- name: edge_insert
INSERT INTO work_dependencies (work_item_id, after_id) VALUES (?1, ?2);

-- name: comes_after
SELECT after_id FROM work_dependencies WHERE work_item_id = ?1 ORDER BY after_id;

-- name: orphans
-- Items that wait for more than is unfinished, or for an item that failed or was removed.
SELECT w.work_item_id FROM work_waiting AS w
WHERE w.waits_for > 0 AND (
    w.waits_for > (SELECT count(*) FROM work_dependencies AS d
        WHERE d.work_item_id = w.work_item_id AND NOT EXISTS (SELECT 1 FROM work_items AS i
            WHERE i.work_item_id = d.after_id AND i.status = 'completed'))
    OR EXISTS (SELECT 1 FROM work_dependencies AS d
        LEFT JOIN work_items AS i ON i.work_item_id = d.after_id
        WHERE d.work_item_id = w.work_item_id AND (i.status = 'failed' OR (i.status IS NULL
            AND NOT EXISTS (SELECT 1 FROM work_waiting AS o WHERE o.work_item_id = d.after_id)))))
LIMIT ?1;

-- name: boundary
INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id, checkpoint_type,
    sequence_number, snapshot_data, created_at)
VALUES (?1, ?2, ?3, ?3, 'error_boundary',
    (SELECT coalesce(max(last), 0) + 1 FROM checkpoint_counters WHERE task_id = ?2), ?4, ?5);
