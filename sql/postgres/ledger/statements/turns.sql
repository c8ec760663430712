-- Turns of runs.

-- fragment: turn_columns
run_id, turn, attempt, state, begin_offset, end_offset

-- name: turn_get (ti) -> (iiii)
SELECT attempt, state, begin_offset, end_offset FROM turns
WHERE run_id = $1 AND turn = $2 ORDER BY attempt DESC LIMIT 1;

-- name: turn_put (tiiiii)
INSERT INTO turns ({turn_columns}) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id, turn, attempt) DO UPDATE SET state = EXCLUDED.state,
    begin_offset = EXCLUDED.begin_offset, end_offset = EXCLUDED.end_offset;

-- name: turns (tiitii) -> (tiiiii)
-- Two rows with one begin are not the ledger's, but verify has to see both of them.
SELECT {turn_columns} FROM turns
WHERE ($1::text IS NULL OR run_id = $1) AND begin_offset >= $2
AND (begin_offset, run_id, turn, attempt) > ($2, $4::text COLLATE "C", $5::bigint, $6::bigint)
ORDER BY begin_offset, run_id, turn, attempt LIMIT $3;

-- name: turns_unfinished (i) -> (tiiiii)
SELECT {turn_columns} FROM turns WHERE state <> 1 AND (end_offset = 0 OR end_offset > $1);

-- name: last_complete (t) -> (i)
SELECT max(turn) FROM turns WHERE run_id = $1 AND state = 1;
