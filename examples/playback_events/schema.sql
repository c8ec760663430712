-- The table that pipeline.json makes. pawl creates it by itself; this is for readers, and for programs that query it.
-- payload_hash and event_key are pawl's own: by them it recognises an event that comes again.
CREATE TABLE playback_events (
    transaction_id VARCHAR,
    event_id VARCHAR,
    source VARCHAR,
    event_type VARCHAR,
    session_key VARCHAR,
    correlation_key VARCHAR,
    user_id BIGINT,
    username VARCHAR,
    media_type VARCHAR,
    title VARCHAR,
    series VARCHAR,
    season INTEGER,
    episode INTEGER,
    player VARCHAR,
    platform VARCHAR,
    is_transcoded BOOLEAN,
    bitrate_kbps INTEGER,
    position_ms BIGINT,
    duration_ms BIGINT,
    percent_complete DOUBLE,
    network VARCHAR,
    occurred_at TIMESTAMP,
    received_at TIMESTAMP,
    payload JSON,
    payload_hash BLOB,
    event_key BLOB
);

-- unique_index: true. Nothing depends on it, and it costs two thirds of the speed: leave it out where speed counts.
CREATE UNIQUE INDEX playback_events_transaction_id ON playback_events (transaction_id);
