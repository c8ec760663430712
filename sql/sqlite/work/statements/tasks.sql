-- Tasks, and the status that their items give them.

-- fragment: task_unfinished(task)
CASE WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = 'in_progress') THEN 1
    WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = 'pending') THEN 1
    WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = 'expired') THEN 1
    WHEN EXISTS (SELECT 1 FROM work_waiting WHERE task_id = {task}) THEN 1 ELSE 0 END

-- fragment: task_started(task)
EXISTS (SELECT 1 FROM work_items WHERE task_id = {task}
    AND status IN ('in_progress', 'completed', 'failed', 'expired'))

-- fragment: task_columns
task_id, title, status, status_by, created_at, updated_at, metadata

-- name: task_load
SELECT {task_columns} FROM tasks WHERE task_id = ?1;

-- name: task_insert
INSERT INTO tasks ({task_columns})
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6);

-- name: task_set
UPDATE tasks
SET status = ?2, status_by = ?3, derivations = derivations + (?3 = 'items'), updated_at = ?4
WHERE task_id = ?1;

-- name: task_facts
-- Whether the items are unfinished, started, failed, and there at all; what does not matter is not asked.
WITH t AS MATERIALIZED (SELECT task_id, status, {task_unfinished: ?1} AS unfinished FROM tasks
    WHERE task_id = ?1 AND status_by = 'items')
SELECT task_id, status, unfinished,
    CASE WHEN unfinished AND status = 'pending' THEN {task_started: ?1} ELSE 0 END,
    CASE WHEN unfinished THEN 0 ELSE EXISTS (SELECT 1 FROM work_items
        WHERE task_id = ?1 AND status = 'failed') END,
    CASE WHEN unfinished THEN 1
        ELSE EXISTS (SELECT 1 FROM work_items WHERE task_id = ?1) END
FROM t;

-- name: tasks_unsettled
SELECT task_id FROM tasks WHERE status = 'running' AND status_by = 'items'
AND EXISTS (SELECT 1 FROM work_items WHERE task_id = tasks.task_id)
AND NOT {task_unfinished: tasks.task_id}
UNION ALL SELECT task_id FROM tasks WHERE status = 'pending' AND status_by = 'items'
AND {task_started: tasks.task_id} LIMIT ?1;

-- fragment: counted(statuses)
(SELECT count(*) FROM work_items WHERE task_id = t.task_id AND status IN ({statuses}))

-- fragment: counted_tasks
SELECT {task_columns}, {counted: 'pending', 'expired'}, {counted: 'in_progress'},
    {counted: 'completed'}, {counted: 'failed'},
    (SELECT count(*) FROM work_waiting WHERE task_id = t.task_id)
FROM tasks AS t

-- name: task_get
{counted_tasks} WHERE task_id = ?1;

-- name: tasks
{counted_tasks} WHERE (?1 IS NULL OR status = ?1) ORDER BY created_at, task_id;

-- name: tasks_page
{counted_tasks} WHERE (?1 IS NULL OR status = ?1) AND task_id >= ?2 ORDER BY task_id LIMIT ?3;
