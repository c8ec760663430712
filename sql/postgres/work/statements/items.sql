-- Items. The writer's connection has settings under which each statement has only one plan: along an
-- index, made once (WRITER_SETTINGS of src/work/postgres/backend.c).

-- fragment: item_columns_with_token(token)
-- In the order in which src/work/sql/items.c reads them; both tables fill all places.
work_item_id, task_id, work_type, status, priority, retry_count, max_retries, attempts, {token},
    lease_holder, input_data, output_data, error_message, created_at, started_at, completed_at,
    updated_at, lease_acquired_at, lease_expires_at, heartbeat_at, entries,
    NULL::timestamptz AS due_at, NULL::text AS reason, 0::bigint AS waits_for, submission

-- fragment: item_columns
{item_columns_with_token: token}

-- fragment: next_token
-- Of what is claimed: the next token is above that of every row that was ever removed.
greatest(token, (SELECT token_floor FROM work_counters))

-- fragment: pick_columns
{item_columns_with_token: {next_token} AS token}

-- fragment: waiting_columns
work_item_id, task_id, work_type, 'waiting' AS status, priority, retry_count, max_retries, attempts,
    token, NULL::text AS lease_holder, input_data, NULL::text AS output_data, error_message,
    created_at, started_at, NULL::timestamptz AS completed_at, updated_at,
    NULL::timestamptz AS lease_acquired_at, NULL::timestamptz AS lease_expires_at,
    NULL::timestamptz AS heartbeat_at, entries, due_at, reason, waits_for, submission

-- fragment: item_types
ttttiiiiittttzzzzzzziztii

-- fragment: claim_order
ORDER BY priority DESC, submission LIMIT $1

-- fragment: locked
FOR UPDATE SKIP LOCKED

-- fragment: now
-- The time that decides. $1 null: the server's clock, as in production; a test gives its own.
coalesce($1, clock_timestamp())

-- fragment: submission_number
-- A number that is not positive is an index below the one that `number` drew for this round trip.
CASE WHEN submission > 0 THEN submission ELSE currval('work_submissions') - submission END

-- name: clock (z) -> (z)
SELECT {now};

-- name: clock_and_due (z) -> (zz)
SELECT {now}, (SELECT due_at FROM work_waiting WHERE waits_for = 0 AND due_at IS NOT NULL
    ORDER BY due_at LIMIT 1);

-- name: notify (tt) -> (b)
-- $1 the channel, $2 who sends it.
SELECT true FROM pg_notify($1, $2);

-- name: load (T) -> ({item_types})
SELECT {item_columns} FROM work_items WHERE work_item_id = ANY ($1)
ORDER BY work_item_id FOR UPDATE;

-- name: load_waiting (T) -> ({item_types})
SELECT {waiting_columns} FROM work_waiting WHERE work_item_id = ANY ($1)
ORDER BY work_item_id FOR UPDATE;

-- name: pick (i) -> ({item_types})
SELECT {pick_columns} FROM work_items WHERE status = 'pending' {claim_order} {locked};

-- name: pick_type (it) -> ({item_types})
SELECT {pick_columns} FROM work_items WHERE status = 'pending' AND work_type = $2
{claim_order} {locked};

-- name: pick_types (iT) -> ({item_types})
SELECT found.* FROM (SELECT DISTINCT unnest($2) AS wanted) AS given
CROSS JOIN LATERAL (SELECT {pick_columns} FROM work_items WHERE status = 'pending'
    AND work_type = wanted {claim_order} {locked}) AS found {claim_order};

-- name: pick_task (it) -> ({item_types})
SELECT {pick_columns} FROM work_items WHERE status = 'pending' AND task_id = $2
{claim_order} {locked};

-- name: pick_task_types (itT) -> ({item_types})
SELECT {pick_columns} FROM work_items
WHERE status = 'pending' AND task_id = $2 AND work_type = ANY ($3)
{claim_order} {locked};

-- name: expired (iz) -> ({item_types})
SELECT {item_columns} FROM work_items WHERE status = 'in_progress' AND lease_expires_at <= $2
ORDER BY lease_expires_at LIMIT $1 {locked};

-- name: left_expired (i) -> ({item_types})
SELECT {item_columns} FROM work_items WHERE status = 'expired' LIMIT $1 {locked};

-- name: unfinished (ti) -> (t)
SELECT work_item_id FROM (
    (SELECT work_item_id FROM work_items
        WHERE task_id = $1 AND status IN ('pending', 'in_progress', 'expired') LIMIT $2)
    UNION ALL
    (SELECT work_item_id FROM work_waiting WHERE task_id = $1 LIMIT $2)) AS found
ORDER BY work_item_id LIMIT $2;

-- name: due (iz) -> ({item_types})
SELECT {waiting_columns} FROM work_waiting WHERE waits_for = 0 AND due_at <= $2
ORDER BY due_at LIMIT $1 {locked};

-- name: next_due (z) -> (z)
SELECT due_at FROM work_waiting WHERE waits_for = 0 AND due_at > $1 ORDER BY due_at LIMIT 1;

-- name: number -> (i)
SELECT nextval('work_submissions');

-- fragment: new_columns
task_id, work_type, priority, retry_count, max_retries, attempts, token, entries, input_data,
    error_message, created_at, started_at, updated_at

-- name: item_insert (TTTIIIIIITTZZZI) -> (i)
{all_or_none:
    INSERT INTO work_items (work_item_id, {new_columns}, submission, has_followers)
    SELECT g.work_item_id, {new_columns}, {submission_number},
        entries > 0 AND EXISTS (SELECT 1 FROM work_dependencies WHERE after_id = g.work_item_id)
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        AS g (work_item_id, {new_columns}, submission); $1};

-- name: item_update (TTIIITTTZZZZZZ) -> (i)
{all_or_none:
    UPDATE work_items AS w SET status = g.status, retry_count = g.retry_count,
        attempts = g.attempts, token = g.token, lease_holder = g.lease_holder,
        output_data = g.output_data, error_message = g.error_message, started_at = g.started_at,
        completed_at = g.completed_at, updated_at = g.updated_at,
        lease_acquired_at = g.lease_acquired_at, lease_expires_at = g.lease_expires_at,
        heartbeat_at = g.heartbeat_at
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        AS g (work_item_id, status, retry_count, attempts, token, lease_holder, output_data,
        error_message, started_at, completed_at, updated_at, lease_acquired_at, lease_expires_at,
        heartbeat_at)
    WHERE w.work_item_id = g.work_item_id; $1};

-- name: item_delete (T)
DELETE FROM work_items WHERE work_item_id = ANY ($1);

-- name: waiting_insert (TTTIIIIIITTZZZITZI) -> (i)
{all_or_none:
    INSERT INTO work_waiting (work_item_id, {new_columns}, submission, reason, due_at, waits_for)
    SELECT g.work_item_id, {new_columns}, {submission_number}, reason, due_at, waits_for
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
        AS g (work_item_id, {new_columns}, submission, reason, due_at, waits_for); $1};

-- name: waiting_update (TZTI)
UPDATE work_waiting AS w
SET updated_at = g.updated_at, reason = g.reason, waits_for = g.waits_for
FROM unnest($1, $2, $3, $4) AS g (work_item_id, updated_at, reason, waits_for)
WHERE w.work_item_id = g.work_item_id;

-- name: waiting_delete (T)
DELETE FROM work_waiting WHERE work_item_id = ANY ($1);

-- name: relink_checkpoints (T)
UPDATE checkpoints SET work_item_id = item_id WHERE item_id = ANY ($1) AND work_item_id IS NULL;

-- name: relink_keys (T)
UPDATE idempotency_keys SET work_item_id = item_id WHERE item_id = ANY ($1)
AND work_item_id IS NULL;

-- name: edges (T) -> (tt)
SELECT work_item_id, after_id FROM work_dependencies WHERE after_id = ANY ($1);

-- name: edge_insert (TT)
INSERT INTO work_dependencies (work_item_id, after_id) SELECT * FROM unnest($1, $2);

-- name: comes_after (t) -> (t)
SELECT after_id FROM work_dependencies WHERE work_item_id = $1 ORDER BY after_id COLLATE "C";

-- name: orphans (i) -> (t)
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
LIMIT $1;

-- name: boundary (TTTTz)
INSERT INTO checkpoints (checkpoint_id, task_id, work_item_id, item_id, checkpoint_type,
    snapshot_data, created_at)
SELECT checkpoint_id, task_id, work_item_id, work_item_id, 'error_boundary', snapshot, $5
FROM unnest($1, $2, $3, $4) WITH ORDINALITY
    AS g (checkpoint_id, task_id, work_item_id, snapshot, place)
ORDER BY task_id, place;
