-- Calls of a group that need no more than one statement (src/work/postgres/fast_path.c).
-- $1 the time, $2 ids, $3 tokens, $4 outputs of what is completed; $5 holders, $6 microseconds of leases
-- of what is claimed after it.

-- fragment: ended(arrays, names)
-- Completes what has a live lease and no dependents. The row is found in the statement's snapshot and
-- changed in place; one that another transaction has changed meanwhile is checked again, by the
-- conditions on `w`.
WITH t AS MATERIALIZED (SELECT {now} AS now),
asked AS MATERIALIZED (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS a ({names}, call)),
ended AS (
    UPDATE work_items AS w SET status = 'completed', output_data = s.output, error_message = NULL,
        lease_holder = NULL, lease_expires_at = NULL, completed_at = s.now, updated_at = s.now,
        steps = w.steps + 1
    FROM (SELECT a.*, o.at, o.held_by, t.now FROM t CROSS JOIN asked AS a
        CROSS JOIN LATERAL (SELECT ctid AS at, lease_holder AS held_by FROM work_items
            WHERE work_item_id = a.id AND token = a.token AND status = 'in_progress'
            AND lease_expires_at > t.now AND NOT has_followers OFFSET 0) AS o OFFSET 0) AS s
    WHERE w.ctid = s.at AND w.token = s.token
        AND (w.status = 'in_progress' AND NOT w.has_followers) IS TRUE
    RETURNING s.*, w.work_item_id, w.task_id, w.retry_count, w.updated_at),

-- fragment: claimed(filter)
-- Claims for those who completed something and ask for more, and for those without an id. They get the
-- first items in order, or after the queue's head; nothing when a waiting item is due.
wanted AS MATERIALIZED (
    SELECT holder, lease_us, call FROM ended WHERE holder IS NOT NULL
    UNION ALL
    SELECT holder, lease_us, call FROM asked WHERE id IS NULL),
picked AS MATERIALIZED (
    SELECT ctid AS at FROM work_items WHERE status = 'pending' {filter}
        AND NOT EXISTS (SELECT 1 FROM work_waiting
            WHERE waits_for = 0 AND due_at <= (SELECT now FROM t))
    ORDER BY priority DESC, submission
    LIMIT (SELECT count(*) FROM wanted) FOR UPDATE SKIP LOCKED),
paired AS MATERIALIZED (
    SELECT * FROM unnest((SELECT array_agg(at) FROM picked),
        (SELECT array_agg(holder) FROM wanted), (SELECT array_agg(lease_us) FROM wanted),
        (SELECT array_agg(call) FROM wanted)) AS z (at, holder, lease_us, call)),
claimed AS (
    UPDATE work_items AS w SET status = 'in_progress', lease_holder = g.holder,
        token = {next_token} + 1, attempts = attempts + 1, lease_acquired_at = t.now,
        heartbeat_at = t.now, updated_at = t.now, started_at = coalesce(started_at, t.now),
        lease_expires_at = t.now + g.lease_us * interval '1 microsecond', steps = steps + 1
    FROM t CROSS JOIN paired AS g WHERE w.ctid = g.at
    RETURNING g.call, w.*),

-- fragment: told
INSERT INTO work_history (work_item_id, task_id, from_status, to_status, token, lease_holder,
    retry_count, at)
SELECT work_item_id, task_id, 'in_progress', 'completed', token, held_by, retry_count, updated_at
FROM ended

-- fragment: fast_path_of(filter)
{ended: $2, $3, $4, $5, $6; id, token, output, holder, lease_us}
{claimed: {filter}}
told AS (
    {told}
    UNION ALL
    SELECT work_item_id, task_id, 'pending', 'in_progress', token, lease_holder, retry_count,
        updated_at FROM claimed)
SELECT {item_columns}, call, true FROM claimed
UNION ALL
SELECT work_item_id, task_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, call, false FROM ended

-- name: fast (zTITTI) -> ({item_types} ib)
{fast_path_of: };

-- name: fast_type (zTITTIt) -> ({item_types} ib)
{fast_path_of: AND work_type = $7};

-- name: fast_head (zTITTIii) -> ({item_types} ib)
{fast_path_of: AND priority = $7 AND submission > $8};

-- name: fast_head_type (zTITTItii) -> ({item_types} ib)
{fast_path_of: AND work_type = $7 AND priority = $8 AND submission > $9};

-- name: fast_end (zTIT) -> (it)
{ended: $2, $3, $4; id, token, output}
told AS ({told})
SELECT call, task_id FROM ended;
