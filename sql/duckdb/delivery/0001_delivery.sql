-- version: 0.1.0
-- What a sink of delivery keeps beside the tables that mappings name. No table has an index: correctness never depends
-- on one, and an index on a column that is updated fails while an older snapshot is open.

-- One row. The id names this file: a pipeline's WAL remembers it.
CREATE TABLE delivery_sink (
    sink_id BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL
);

-- One row per pipeline, written in the transaction of the rows that it covers.
CREATE TABLE delivery_cursors (
    pipeline TEXT NOT NULL,
    table_name TEXT NOT NULL,
    wal_id BLOB NOT NULL,
    epoch UBIGINT NOT NULL,
    fence UBIGINT NOT NULL,
    version UBIGINT NOT NULL,
    applied UBIGINT NOT NULL,
    stream_created_ns BIGINT NOT NULL,
    stream_sequence UBIGINT NOT NULL,
    stream_stored_ns BIGINT NOT NULL,
    running_ns BIGINT NOT NULL,
    accepted UBIGINT NOT NULL,
    delivered UBIGINT NOT NULL,
    filtered UBIGINT NOT NULL,
    failed UBIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

-- Events that a mapping wants no row of.
CREATE TABLE delivery_filtered (
    pipeline TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    payload_hash BLOB NOT NULL,
    event_key BLOB NOT NULL
);

-- Entries at or below the applied LSN that are in no table yet.
CREATE TABLE delivery_exceptions (
    pipeline TEXT NOT NULL,
    lsn UBIGINT NOT NULL,
    stream_sequence UBIGINT NOT NULL,
    attempts UINTEGER NOT NULL,
    first_failed_running_ns BIGINT NOT NULL,
    due_running_ns BIGINT NOT NULL,
    last_error TEXT
);

-- What the source no longer had. last_sequence NULL: nobody knows how far it reached.
CREATE TABLE delivery_losses (
    pipeline TEXT NOT NULL,
    stream_created_ns BIGINT NOT NULL,
    first_sequence UBIGINT NOT NULL,
    last_sequence UBIGINT,
    reason TEXT NOT NULL,
    seen_at TIMESTAMP NOT NULL
);

-- Events that will not get in by themselves. event_payload is the payload itself with payload_encoding 'json';
-- with 'base64' it is {"base64": "..."}, with 'base64_cut' only the beginning, and {"bytes": ...} how long it was.
-- resolution says how a row became resolved: 'delivered' or 'filtered' by a retry (of edited_payload, if there is one),
-- or 'by_hand'. A row that was delivered stays here.
CREATE TABLE failed_events (
    id UUID NOT NULL,
    transaction_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    session_key TEXT,
    correlation_key TEXT,
    source TEXT NOT NULL,
    event_payload JSON NOT NULL,
    failed_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    failure_reason TEXT NOT NULL,
    failure_layer TEXT NOT NULL,
    last_error TEXT,
    retry_count INTEGER NOT NULL DEFAULT 0,
    last_retry_at TIMESTAMPTZ,
    max_retries_exceeded BOOLEAN DEFAULT false,
    status TEXT NOT NULL DEFAULT 'pending',
    resolved_at TIMESTAMPTZ,
    resolved_by TEXT,
    resolution_notes TEXT,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    pipeline TEXT NOT NULL,
    lsn UBIGINT NOT NULL,
    payload_encoding TEXT NOT NULL,
    payload_hash BLOB NOT NULL,
    event_key BLOB NOT NULL,
    subject TEXT,
    headers JSON,
    received_at TIMESTAMPTZ NOT NULL,
    resolution TEXT,
    edited_payload JSON
);
