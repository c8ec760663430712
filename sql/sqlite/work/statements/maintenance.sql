-- Statistics and retention.

-- name: stats_items
SELECT status, count(*) FROM work_items GROUP BY status
UNION ALL SELECT 'waiting', count(*) FROM work_waiting;

-- name: stats_leases
SELECT count(*), count(CASE WHEN heartbeat_at < ?2 THEN 1 END),
    avg(julianday(?1) - julianday(heartbeat_at)) * 24 * 60,
    (SELECT min(created_at) FROM work_items WHERE status = 'pending'),
    (SELECT count(*) FROM checkpoints)
FROM work_items WHERE status = 'in_progress';

-- name: stats_keys
SELECT status, count(*) FROM idempotency_keys GROUP BY status;

-- name: stats_types
SELECT work_type, status, count(*), avg(julianday(?1) - julianday(created_at)) * 24
FROM work_items GROUP BY work_type, status
UNION ALL SELECT work_type, 'waiting', count(*), avg(julianday(?1) - julianday(created_at)) * 24
FROM work_waiting GROUP BY work_type ORDER BY 1, 2;

-- name: stats_growth
SELECT task_id, count(*), max(sequence_number), min(created_at), max(created_at)
FROM checkpoints GROUP BY task_id ORDER BY count(*) DESC, task_id LIMIT 10;

-- name: old_items
SELECT work_item_id, (SELECT count(*) FROM work_history h WHERE h.work_item_id = i.work_item_id)
FROM work_items i NOT INDEXED WHERE work_item_id > ?1 AND status IN ('completed', 'failed')
AND updated_at < ?2 ORDER BY work_item_id LIMIT ?3;

-- fragment: is_old
work_item_id = ?1 AND status IN ('completed', 'failed') AND updated_at < ?2

-- name: old_history_remove
DELETE FROM work_history
WHERE work_item_id = ?1 AND EXISTS (SELECT 1 FROM work_items WHERE {is_old});

-- name: old_items_remove
DELETE FROM work_items WHERE {is_old};
