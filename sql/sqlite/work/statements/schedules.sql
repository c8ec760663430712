-- Schedules, and the times at which they fired.

-- fragment: schedule_rows
SELECT schedule_id, cron, task_id, work_type, input_data, priority, max_retries, next_slot,
    (SELECT max(slot) FROM schedule_fires f WHERE f.schedule_id = s.schedule_id)
FROM schedules s WHERE enabled = 1

-- name: schedule_load
{schedule_rows} AND schedule_id = ?1;

-- name: schedule_list
{schedule_rows} ORDER BY schedule_id;

-- name: schedule_put
INSERT INTO schedules (schedule_id, cron, task_id, work_type, input_data, priority, max_retries,
    next_slot, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
ON CONFLICT (schedule_id) DO UPDATE
SET cron = excluded.cron, task_id = excluded.task_id, work_type = excluded.work_type,
    input_data = excluded.input_data, priority = excluded.priority,
    max_retries = excluded.max_retries, next_slot = excluded.next_slot,
    updated_at = excluded.updated_at, enabled = 1;

-- name: schedule_remove
DELETE FROM schedules WHERE schedule_id = ?1 RETURNING 1;

-- name: schedule_move
UPDATE schedules SET next_slot = ?2, updated_at = ?3 WHERE schedule_id = ?1;

-- name: schedule_fired
SELECT 1 FROM schedule_fires WHERE schedule_id = ?1 AND slot = ?2;

-- name: schedule_fire
INSERT INTO schedule_fires (schedule_id, slot, work_item_id) VALUES (?1, ?2, ?3);

-- name: schedule_forget
DELETE FROM schedule_fires WHERE schedule_id = ?1 AND slot < ?2;
