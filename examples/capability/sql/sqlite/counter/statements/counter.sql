-- name: add
INSERT INTO changes (name, value)
VALUES (?1, ?2 + coalesce((SELECT value FROM changes WHERE name = ?1 ORDER BY change_id DESC LIMIT 1), 0))
RETURNING change_id, name, value;

-- name: newest
SELECT change_id, name, value FROM changes WHERE name = ?1 ORDER BY change_id DESC LIMIT 1;

-- name: after
SELECT change_id, name, value FROM changes WHERE change_id > ?1 ORDER BY change_id LIMIT 1;
