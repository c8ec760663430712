-- Reading items. $1 task, $2 type, $3 holder (null: any), $4 bits of statuses, $5 limit.

-- fragment: item_matches
($2::text IS NULL OR work_type = $2)
AND ($3::text IS NULL OR lease_holder = $3)
AND ($4 >> CASE status WHEN 'pending' THEN 0 WHEN 'in_progress' THEN 1 WHEN 'completed' THEN 2
    WHEN 'failed' THEN 3 ELSE 4 END) & 1 = 1

-- fragment: waiting_matches
($2::text IS NULL OR work_type = $2) AND $3::text IS NULL AND ($4 >> 5) & 1 = 1

-- fragment: list_of(of_items, of_waiting)
SELECT {item_columns} FROM work_items WHERE {of_items} AND {item_matches}
UNION ALL
SELECT {waiting_columns} FROM work_waiting WHERE {of_waiting} AND {waiting_matches}
ORDER BY created_at, work_item_id LIMIT $5

-- fragment: page_of(of_items, of_waiting)
-- The same by ids, from $6 on: each of the two tables returns a full page at most.
(SELECT {item_columns} FROM work_items WHERE {of_items} AND work_item_id >= $6 AND {item_matches}
    ORDER BY work_item_id LIMIT $5)
UNION ALL
(SELECT {waiting_columns} FROM work_waiting
    WHERE {of_waiting} AND work_item_id >= $6 AND {waiting_matches}
    ORDER BY work_item_id LIMIT $5)
ORDER BY work_item_id LIMIT $5

-- name: get (t) -> ({item_types})
SELECT {item_columns} FROM work_items WHERE work_item_id = $1
UNION ALL
SELECT {waiting_columns} FROM work_waiting WHERE work_item_id = $1;

-- name: list (tttii) -> ({item_types})
{list_of: $1::text IS NULL; $1::text IS NULL};

-- name: list_open (tttii) -> ({item_types})
{list_of: $1::text IS NULL AND status IN ('pending', 'in_progress', 'expired'); $1::text IS NULL};

-- name: list_task (tttii) -> ({item_types})
{list_of: task_id = $1; task_id = $1};

-- name: page (tttiit) -> ({item_types})
{page_of: $1::text IS NULL; $1::text IS NULL};

-- name: page_busy (tttiit) -> ({item_types})
{page_of: $1::text IS NULL AND status IN ('in_progress', 'expired'); $1::text IS NULL};

-- name: page_task (tttiit) -> ({item_types})
{page_of: task_id = $1; task_id = $1};

-- name: history (t) -> (ittititz)
SELECT seq, from_status, to_status, token, lease_holder, retry_count, message, at
FROM work_history WHERE work_item_id = $1 ORDER BY seq;

-- name: changes_bounds -> (iiii)
-- What was removed, and the newest: the end of all transactions before the oldest one that is open.
SELECT changes_floor_tx, changes_floor_seq, txid_snapshot_xmin(txid_current_snapshot()) - 1,
    9223372036854775807 FROM work_counters;

-- name: changes (iii) -> (iitttttititz)
-- $1 and $2 the position, $3 limit.
SELECT tx, seq, work_item_id, task_id, coalesce(
    (SELECT work_type FROM work_items AS i WHERE i.work_item_id = h.work_item_id),
    (SELECT work_type FROM work_waiting AS w WHERE w.work_item_id = h.work_item_id)),
    from_status, to_status, token, lease_holder, retry_count, message, at
FROM work_history AS h
WHERE (tx, seq) > ($1, $2) AND tx < txid_snapshot_xmin(txid_current_snapshot())
ORDER BY tx, seq LIMIT $3;
