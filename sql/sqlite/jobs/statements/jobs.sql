-- fragment: columns
-- In the order in which the reader expects them.
job_id, kind, state, parameters, done, total, result, code, detail, advised, created_at, started_at, ended_at

-- name: job_add
INSERT INTO jobs (job_id, kind, state, parameters, done, total, advised, created_at, started_at, ended_at)
VALUES (?1, ?2, ?3, ?4, 0, 0, 0, ?5, 0, 0);

-- name: job_start
UPDATE jobs SET state = ?2, started_at = ?3 WHERE job_id = ?1;

-- name: job_end
UPDATE jobs SET state = ?2, done = ?3, total = ?4, result = ?5, code = ?6, detail = ?7, advised = ?8, ended_at = ?9
WHERE job_id = ?1;

-- name: job_interrupt
-- What the process before this one did not end.
UPDATE jobs SET state = ?1, code = ?2, detail = ?3, ended_at = ?4 WHERE ended_at = 0;

-- name: job_get
SELECT {columns} FROM jobs WHERE job_id = ?1;

-- name: job_list
-- The newest first, from ?1 on.
SELECT {columns} FROM jobs WHERE job_id <= ?1 ORDER BY job_id DESC LIMIT ?2;

-- name: job_prune
-- Those that ended, but for the newest ?1.
DELETE FROM jobs WHERE ended_at > 0 AND job_id <= (
    SELECT job_id FROM jobs WHERE ended_at > 0 ORDER BY job_id DESC LIMIT 1 OFFSET ?1);
