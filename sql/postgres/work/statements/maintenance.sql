-- Statistics and retention.

-- name: stats_items -> (ti)
SELECT status, count(*) FROM work_items GROUP BY status
UNION ALL SELECT 'waiting', count(*) FROM work_waiting;

-- name: stats_leases (zz) -> (iidzi)
SELECT count(*), count(*) FILTER (WHERE heartbeat_at < $2), (avg(extract(epoch
    FROM $1 - heartbeat_at)) / 60)::double precision, (SELECT min(created_at) FROM work_items
    WHERE status = 'pending'), (SELECT count(*) FROM checkpoints) FROM work_items
WHERE status = 'in_progress';

-- name: stats_keys -> (ti)
SELECT status, count(*) FROM idempotency_keys GROUP BY status;

-- name: stats_types (z) -> (ttid)
SELECT work_type, status, count(*), (avg(extract(epoch
    FROM $1 - created_at)) / 3600)::double precision FROM work_items GROUP BY work_type, status
UNION ALL SELECT work_type, 'waiting', count(*), (avg(extract(epoch
    FROM $1 - created_at)) / 3600)::double precision FROM work_waiting GROUP BY work_type
ORDER BY 1, 2;

-- name: stats_growth -> (tiizz)
SELECT task_id, count(*), max(sequence_number), min(created_at), max(created_at)
FROM checkpoints GROUP BY task_id ORDER BY count(*) DESC, task_id LIMIT 10;

-- name: old_items (tzi) -> (ti)
SELECT work_item_id, (SELECT count(*) FROM work_history AS h WHERE h.work_item_id = i.work_item_id)
FROM work_items AS i WHERE work_item_id > $1 AND status IN ('completed', 'failed')
AND updated_at < $2 ORDER BY work_item_id LIMIT $3;

-- fragment: is_old
work_item_id = ANY ($1) AND status IN ('completed', 'failed') AND updated_at < $2

-- name: old_history_remove (Tz)
DELETE FROM work_history
WHERE work_item_id = ANY (ARRAY (SELECT work_item_id FROM work_items WHERE {is_old} FOR UPDATE));

-- name: old_items_remove (Tz)
DELETE FROM work_items WHERE {is_old};
