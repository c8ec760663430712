-- Turns of runs.

-- fragment: turn_columns
run_id, turn, attempt, state, begin_offset, end_offset

-- name: turn_get
SELECT attempt, state, begin_offset, end_offset FROM turns
WHERE run_id = ?1 AND turn = ?2 ORDER BY attempt DESC LIMIT 1;

-- name: turn_put
INSERT INTO turns ({turn_columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (run_id, turn, attempt) DO UPDATE SET state = ?4, begin_offset = ?5, end_offset = ?6;

-- name: turns
SELECT {turn_columns} FROM turns WHERE (?1 IS NULL OR run_id = ?1) AND begin_offset >= ?2
ORDER BY begin_offset;

-- name: turns_unfinished
SELECT {turn_columns} FROM turns INDEXED BY idx_turns_unfinished
WHERE state <> 1 AND end_offset = 0
UNION ALL
SELECT {turn_columns} FROM turns INDEXED BY idx_turns_unfinished
WHERE state <> 1 AND end_offset > ?1;

-- name: last_complete
SELECT max(turn) FROM turns WHERE run_id = ?1 AND state = 1;
