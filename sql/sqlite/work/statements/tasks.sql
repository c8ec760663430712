-- Tasks, and the status that their items give them.

-- fragment: task_unfinished(task)
CASE WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = 'in_progress') THEN 1
    WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = 'pending') THEN 1
    WHEN EXISTS (SELECT 1 FROM work_items WHERE task_id = {task} AND status = 'expired') THEN 1
    WHEN EXISTS (SELECT 1 FROM work_waiting WHERE task_id = {task}) THEN 1 ELSE 0 END

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

-- name: task_unfinished
SELECT {task_unfinished: ?1};

-- name: task_started
SELECT EXISTS (SELECT 1 FROM work_items WHERE task_id = ?1 AND status IN ('in_progress',
    'completed', 'failed', 'expired'));

-- name: task_ends
SELECT EXISTS (SELECT 1 FROM work_items WHERE task_id = ?1 AND status = 'failed'), EXISTS (SELECT 1
    FROM work_items WHERE task_id = ?1);

-- name: tasks_unsettled
SELECT task_id FROM tasks WHERE status = 'running' AND status_by = 'items'
AND EXISTS (SELECT 1 FROM work_items WHERE task_id = tasks.task_id)
AND NOT {task_unfinished: tasks.task_id}
UNION ALL SELECT task_id FROM tasks WHERE status = 'pending' AND status_by = 'items'
AND EXISTS (SELECT 1 FROM work_items WHERE task_id = tasks.task_id AND status IN ('in_progress',
    'completed', 'failed', 'expired')) LIMIT ?1;

-- name: tasks
SELECT {task_columns} FROM tasks
WHERE (?1 IS NULL OR status = ?1) ORDER BY created_at, task_id;

-- name: tasks_page
SELECT {task_columns} FROM tasks
WHERE (?1 IS NULL OR status = ?1) AND task_id >= ?2 ORDER BY task_id LIMIT ?3;

-- name: task_counts
SELECT status, count(*) FROM work_items WHERE task_id = ?1 GROUP BY status
UNION ALL SELECT 'waiting', count(*) FROM work_waiting WHERE task_id = ?1;
