-- The colony's store.

-- name: checkpoint_read
SELECT session_id, generation, last_seq_id, high_water_seq_id FROM polling_checkpoints
WHERE agent_id = $1 AND data_type = $2;

-- name: checkpoint_add
INSERT INTO polling_checkpoints VALUES ($1, $2, $3, $5, $7, $7, $7, $4, $6);

-- name: checkpoint_set
UPDATE polling_checkpoints SET session_id = $3, generation = $4, last_seq_id = $5, high_water_seq_id = $6,
    last_poll_time = $7, updated_at = $7
WHERE agent_id = $1 AND data_type = $2;

-- name: sessions_read
SELECT generation, parent, first_seq_id, last_seq_id, high_water_seq_id, is_current FROM polling_sessions
WHERE agent_id = $1 AND data_type = $2 AND session_id = $3 ORDER BY rowid;

-- name: sessions_delete
DELETE FROM polling_sessions WHERE agent_id = $1 AND data_type = $2 AND session_id = $3;

-- name: epochs_read
SELECT epoch_id, first_seq_id, generation FROM polling_epochs
WHERE agent_id = $1 AND data_type = $2 AND session_id = $3 ORDER BY position;

-- name: epochs_delete
DELETE FROM polling_epochs WHERE agent_id = $1 AND data_type = $2 AND session_id = $3;

-- name: gap_id_max
SELECT coalesce(max(id), 0) FROM sequence_gaps;

-- name: gap_add
INSERT INTO sequence_gaps VALUES ($1, $2, $3, $4, $5, $6,
    CASE WHEN $7 = 'recovered' THEN $6 END, $7, $8, NULL, $9, $10, $11,
    CASE WHEN $7 = 'recovered' OR $7 = 'permanent' THEN $6 END, $12, $13);

-- name: gap_set
UPDATE sequence_gaps SET start_seq_id = $2, end_seq_id = $3, status = $5, reason = $6, recovery_attempts = $7,
    last_recovery_attempt = $4,
    recovered_at = CASE WHEN $5 = 'recovered' THEN $4 END,
    closed_at = CASE WHEN $5 = 'recovered' OR $5 = 'permanent' THEN $4 END
WHERE id = $1;

-- fragment: gap_columns
id, session_id, generation, start_seq_id, end_seq_id, status, reason, recovery_attempts, seen_run, seen_ns

-- name: gaps_read
-- $3 statuses with commas, $4 a session or '' for any; oldest first.
SELECT {gap_columns} FROM sequence_gaps
WHERE agent_id = $1 AND data_type = $2 AND list_contains(string_split($3, ','), status)
    AND ($4 = '' OR session_id = $4) AND id > $5
ORDER BY id LIMIT $6;

-- name: gaps_clean
DELETE FROM sequence_gaps WHERE (status = 'recovered' OR status = 'permanent') AND closed_at < $1;

-- fragment: count(table)
SELECT count(*) FROM {table} WHERE agent_id = $1 AND session_id = $2 AND generation = $3

-- name: count_telemetry
{count: otel_spans};

-- name: count_beyla_http
{count: beyla_http_metrics};

-- name: count_beyla_grpc
{count: beyla_grpc_metrics};

-- name: count_beyla_sql
{count: beyla_sql_metrics};

-- name: count_beyla_traces
{count: beyla_traces};

-- name: count_system_metrics
{count: system_metrics};

-- name: count_cpu_profile
{count: cpu_profile_samples};

-- name: count_memory_profile
{count: memory_profile_samples};

-- name: count_rejected
SELECT count(*) FROM rejected_rows WHERE agent_id = $1 AND session_id = $2 AND generation = $3 AND data_type = $4;
