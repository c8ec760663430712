-- For audits and traces: they look beside the pipeline, and change nothing.

-- name: audit_counts
-- One statement, so all of it is of one moment. An event that was delivered by a retry is a row, and no failed event.
SELECT applied, stream_created_ns, stream_sequence, accepted, delivered, filtered, failed,
    (SELECT count(*) FROM delivery_rows),
    (SELECT count(*) FROM delivery_filtered WHERE pipeline = $1),
    (SELECT count(*) FROM failed_events WHERE pipeline = $1 AND coalesce(resolution, '') NOT IN ('delivered', 'filtered')),
    (SELECT count(*) FROM delivery_exceptions WHERE pipeline = $1),
    (SELECT count(*) FROM delivery_losses WHERE pipeline = $1)
FROM delivery_cursors WHERE pipeline = $1;

-- name: audit_duplicates
-- Two rows of one transaction id; and one event that is more than one of row, filtered and failed.
SELECT transaction_id, count(*) FROM delivery_rows GROUP BY transaction_id HAVING count(*) > 1
UNION ALL
SELECT any_value(transaction_id), count(*)
FROM (
    SELECT event_key, transaction_id, 0 AS kind FROM delivery_rows
    UNION ALL SELECT event_key, transaction_id, 1 FROM delivery_filtered WHERE pipeline = $1
    UNION ALL SELECT event_key, transaction_id, 2 FROM failed_events
        WHERE pipeline = $1 AND coalesce(resolution, '') NOT IN ('delivered', 'filtered')
)
GROUP BY event_key HAVING count(*) > 1 AND max(kind) > 0;

-- fragment: is_traced
-- $2 a transaction id, or the event id in it.
(transaction_id = $2
    OR (contains(transaction_id, $2) AND regexp_extract(transaction_id, '^[^:]*:(.*):[0-9]+$', 1) = $2))

-- name: trace_others
-- What is no row; the numbers are those of enum delivery_outcome_kind.
SELECT 1, transaction_id, event_key, CAST(0 AS UBIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), '', '', ''
FROM delivery_filtered WHERE pipeline = $1 AND {is_traced}
UNION ALL SELECT 2, transaction_id, event_key, lsn, epoch_us(received_at), epoch_us(failed_at), status, failure_reason,
    coalesce(last_error, '')
FROM failed_events WHERE pipeline = $1 AND {is_traced};
