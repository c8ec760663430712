-- Reading items. ?1 task, ?2 type, ?3 holder (NULL: any), ?4 bits of statuses, ?5 limit.

-- fragment: item_matches
(?2 IS NULL OR work_type = ?2)
AND (?3 IS NULL OR lease_holder = ?3)
AND (?4 >> CASE status WHEN 'pending' THEN 0 WHEN 'in_progress' THEN 1 WHEN 'completed' THEN 2
    WHEN 'failed' THEN 3 ELSE 4 END) & 1

-- fragment: waiting_matches
(?2 IS NULL OR work_type = ?2) AND ?3 IS NULL AND (?4 >> 5) & 1

-- fragment: list_of(of_items, of_waiting)
SELECT {item_columns} FROM work_items WHERE {of_items} AND {item_matches}
UNION ALL
SELECT {waiting_columns} FROM work_waiting WHERE {of_waiting} AND {waiting_matches}
ORDER BY created_at, work_item_id LIMIT ?5

-- fragment: page_of(of_items, of_waiting)
-- The same by ids, from ?6 on. Both tables are walked in that order and merged row by row: SQLite
-- reads no row beyond those shown or refused by the filter, and sorts none.
SELECT {item_columns} FROM work_items {of_items} AND work_item_id >= ?6 AND {item_matches}
UNION ALL
SELECT {waiting_columns} FROM work_waiting {of_waiting} AND work_item_id >= ?6 AND {waiting_matches}
ORDER BY work_item_id LIMIT ?5

-- name: get
SELECT {item_columns} FROM work_items WHERE work_item_id = ?1
UNION ALL
SELECT {waiting_columns} FROM work_waiting WHERE work_item_id = ?1;

-- name: list
{list_of: ?1 IS NULL; ?1 IS NULL};

-- name: list_open
{list_of: ?1 IS NULL AND status IN ('pending', 'in_progress', 'expired'); ?1 IS NULL};

-- name: list_task
{list_of: task_id = ?1; task_id = ?1};

-- name: page
{page_of: NOT INDEXED WHERE ?1 IS NULL; NOT INDEXED WHERE ?1 IS NULL};

-- name: page_busy
{page_of: WHERE ?1 IS NULL AND status IN ('in_progress', 'expired'); NOT INDEXED WHERE ?1 IS NULL};

-- name: page_task
{page_of: INDEXED BY idx_work_items_task_ids WHERE task_id = ?1; INDEXED BY idx_work_waiting_task
    WHERE task_id = ?1};

-- name: history
SELECT seq, from_status, to_status, token, lease_holder, retry_count, message, at
FROM work_history WHERE work_item_id = ?1 ORDER BY seq;

-- name: changes_bounds
-- What was removed, and the newest; here a position has no transaction.
SELECT 0, changes_floor, 0, max(changes_floor, (SELECT coalesce(max(seq), 0) FROM work_history))
FROM work_counters;

-- name: changes
-- ?1 and ?2 the position, ?3 limit.
SELECT 0, seq, work_item_id, task_id, coalesce(
    (SELECT work_type FROM work_items AS i WHERE i.work_item_id = h.work_item_id),
    (SELECT work_type FROM work_waiting AS w WHERE w.work_item_id = h.work_item_id)),
    from_status, to_status, token, lease_holder, retry_count, message, at
FROM work_history AS h WHERE ?1 >= 0 AND seq > ?2 ORDER BY seq LIMIT ?3;
