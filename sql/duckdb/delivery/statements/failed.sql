-- Failed events and what becomes of them. No index: every column that people change is updated.

-- fragment: failed_where
-- $1 the pipeline; $2 id, $3 statuses with commas, $4 reason, $5 source, $6 transaction id, each '' for any; $7 and $8
-- bounds of failed_at in microseconds, 0 for none.
pipeline = $1 AND ($2 = '' OR CAST(id AS VARCHAR) = $2) AND ($3 = '' OR list_contains(string_split($3, ','), status))
    AND ($4 = '' OR failure_reason = $4) AND ($5 = '' OR source = $5) AND ($6 = '' OR transaction_id = $6)
    AND ($7 = 0 OR epoch_us(failed_at) >= $7) AND ($8 = 0 OR epoch_us(failed_at) < $8)

-- fragment: failed_columns
CAST(id AS VARCHAR), lsn, status, coalesce(resolution, ''), coalesce(max_retries_exceeded, false), retry_count, event_key,
    payload_hash, epoch_us(failed_at), epoch_us(received_at), epoch_us(last_retry_at), epoch_us(resolved_at),
    epoch_us(updated_at), transaction_id, event_id, source, subject, session_key, correlation_key, failure_reason,
    failure_layer, last_error, resolved_by, resolution_notes, CAST(headers AS VARCHAR), CAST(event_payload AS VARCHAR),
    payload_encoding, CAST(edited_payload AS VARCHAR)

-- name: failed_read
SELECT {failed_columns} FROM failed_events WHERE {failed_where} AND lsn > $9 ORDER BY lsn LIMIT $10;

-- name: failed_read_back
SELECT {failed_columns} FROM failed_events WHERE {failed_where} AND lsn < $9 ORDER BY lsn DESC LIMIT $10;

-- name: failed_count
SELECT count(*) FROM failed_events WHERE {failed_where} AND lsn > $9;

-- name: failed_count_back
SELECT count(*) FROM failed_events WHERE {failed_where} AND lsn < $9;

-- name: failed_requeue
UPDATE failed_events SET status = 'pending', updated_at = $2 WHERE pipeline = $1 AND status = 'retrying';

-- name: failed_attempt
-- $5 one more retry or none; $6 the error, '' leaves it.
UPDATE failed_events SET status = $3, updated_at = $4, retry_count = retry_count + $5,
    last_retry_at = CASE WHEN $5 > 0 THEN $4 ELSE last_retry_at END,
    last_error = CASE WHEN $6 = '' THEN last_error ELSE $6 END
WHERE pipeline = $1 AND lsn = $2 AND CAST(id AS VARCHAR) = $7;

-- name: failed_decide
UPDATE failed_events SET resolution = $4, resolved_at = $5, resolved_by = $6, resolution_notes = $7, edited_payload = $8
WHERE pipeline = $1 AND lsn = $2 AND CAST(id AS VARCHAR) = $3;

-- name: transaction_known
-- $2 a transaction id: is there a row of it, or was it filtered?
SELECT 1 FROM delivery_rows WHERE transaction_id = $2
UNION ALL SELECT 1 FROM delivery_filtered WHERE pipeline = $1 AND transaction_id = $2 LIMIT 1;
