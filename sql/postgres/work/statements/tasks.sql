-- Tasks, and the status that their items give them.

-- fragment: task_has(task, status)
EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = '{status}')

-- fragment: task_unfinished(task)
({task_has: {task}; pending} OR {task_has: {task}; in_progress} OR {task_has: {task}; expired}
    OR EXISTS (SELECT 1 FROM work_waiting WHERE task_id = {task}))

-- fragment: task_started(task)
({task_has: {task}; in_progress} OR {task_has: {task}; completed} OR {task_has: {task}; failed}
    OR {task_has: {task}; expired})

-- fragment: task_columns
task_id, title, status, status_by, created_at, updated_at, metadata

-- fragment: task_types
ttttzzt

-- name: task_load (T) -> ({task_types})
SELECT {task_columns} FROM tasks WHERE task_id = ANY ($1) ORDER BY task_id FOR SHARE;

-- name: task_lock (T) -> (t)
SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND status_by = 'items'
ORDER BY task_id FOR NO KEY UPDATE;

-- name: task_insert (ttttzt)
INSERT INTO tasks ({task_columns})
VALUES ($1, $2, $3, $4, $5, $5, $6);

-- name: task_set (tttz)
UPDATE tasks
SET status = $2, status_by = $3, updated_at = $4, derivations = derivations + CASE $3 WHEN 'items'
    THEN 1 ELSE 0 END WHERE task_id = $1;

-- name: tasks_settle (TTz)
UPDATE tasks AS t SET status = g.status, derivations = derivations + 1, updated_at = $3
FROM unnest($1, $2) AS g (task_id, status) WHERE t.task_id = g.task_id;

-- name: task_facts (T) -> (ttbbbb)
-- Whether the items are unfinished, started, failed, and there at all; what does not matter is not asked.
SELECT t.task_id, t.status, u.unfinished,
    CASE WHEN u.unfinished AND t.status = 'pending' THEN {task_started: t.task_id} ELSE false END,
    CASE WHEN u.unfinished THEN false ELSE {task_has: t.task_id; failed} END,
    CASE WHEN u.unfinished THEN true
        ELSE EXISTS (SELECT 1 FROM work_items WHERE task_id = t.task_id) END
FROM tasks AS t
CROSS JOIN LATERAL (SELECT {task_unfinished: t.task_id} AS unfinished OFFSET 0) AS u
WHERE t.task_id = ANY ($1) AND t.status_by = 'items';

-- name: tasks_unsettled (i) -> (t)
SELECT task_id FROM (
    (SELECT task_id FROM tasks AS t WHERE status = 'running' AND status_by = 'items'
        AND EXISTS (SELECT 1 FROM work_items WHERE task_id = t.task_id)
        AND NOT {task_unfinished: t.task_id} LIMIT $1)
    UNION ALL
    (SELECT task_id FROM tasks AS t WHERE status = 'pending' AND status_by = 'items'
        AND {task_started: t.task_id} LIMIT $1)) AS found
LIMIT $1;

-- fragment: counted_tasks
SELECT t.task_id, title, t.status, status_by, created_at, updated_at, metadata,
    c.pending, c.in_progress, c.completed, c.failed,
    (SELECT count(*) FROM work_waiting WHERE task_id = t.task_id)
FROM tasks AS t
CROSS JOIN LATERAL (SELECT
    count(*) FILTER (WHERE status IN ('pending', 'expired')) AS pending,
    count(*) FILTER (WHERE status = 'in_progress') AS in_progress,
    count(*) FILTER (WHERE status = 'completed') AS completed,
    count(*) FILTER (WHERE status = 'failed') AS failed
    FROM work_items WHERE task_id = t.task_id) AS c

-- name: task_get (t) -> ({task_types} iiiii)
{counted_tasks} WHERE t.task_id = $1;

-- name: tasks (t) -> ({task_types} iiiii)
{counted_tasks} WHERE $1::text IS NULL OR t.status = $1 ORDER BY created_at, t.task_id;

-- name: tasks_page (tti) -> ({task_types} iiiii)
{counted_tasks} WHERE ($1::text IS NULL OR t.status = $1) AND t.task_id >= $2
ORDER BY t.task_id LIMIT $3;
