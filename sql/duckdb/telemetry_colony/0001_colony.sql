-- version: 0.1.0
-- What a colony keeps of its agents. The seed's indexes on columns that are updated are left out: an index on such a
-- column makes updates fail while an older snapshot is open. Primary keys are kept by the code: the one writer.

CREATE TABLE polling_checkpoints (
    agent_id TEXT NOT NULL,
    data_type TEXT NOT NULL,
    session_id TEXT NOT NULL,
    last_seq_id UBIGINT NOT NULL,
    last_poll_time TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    generation TEXT NOT NULL,
    high_water_seq_id UBIGINT NOT NULL,
    PRIMARY KEY (agent_id, data_type)
);

CREATE TABLE sequence_gaps (
    id UBIGINT NOT NULL,
    agent_id TEXT NOT NULL,
    data_type TEXT NOT NULL,
    start_seq_id UBIGINT NOT NULL,
    end_seq_id UBIGINT NOT NULL,
    detected_at TIMESTAMP NOT NULL,
    recovered_at TIMESTAMP,
    status TEXT NOT NULL,
    recovery_attempts UINTEGER NOT NULL,
    last_recovery_attempt TIMESTAMP,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    reason TEXT NOT NULL,
    closed_at TIMESTAMP,
    seen_run UBIGINT NOT NULL,
    seen_ns BIGINT NOT NULL
);

-- Every generation of every session, the current ones too. last_seq_id and high_water_seq_id of the current one are in
-- polling_checkpoints.
CREATE TABLE polling_sessions (
    agent_id TEXT NOT NULL,
    data_type TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    parent TEXT NOT NULL,
    first_seq_id UBIGINT NOT NULL,
    last_seq_id UBIGINT NOT NULL,
    high_water_seq_id UBIGINT NOT NULL,
    is_current BOOLEAN NOT NULL
);

-- Every epoch that was seen, with the generation that its rows belong to.
CREATE TABLE polling_epochs (
    agent_id TEXT NOT NULL,
    data_type TEXT NOT NULL,
    session_id TEXT NOT NULL,
    position UINTEGER NOT NULL,
    epoch_id TEXT NOT NULL,
    first_seq_id UBIGINT NOT NULL,
    generation TEXT NOT NULL
);

CREATE TABLE rejected_rows (
    agent_id TEXT NOT NULL,
    data_type TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    bytes BLOB NOT NULL,
    reason TEXT NOT NULL,
    rejected_at TIMESTAMP NOT NULL
);

CREATE TABLE otel_spans (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    service_name TEXT NOT NULL,
    span_kind TEXT NOT NULL,
    duration_ms DOUBLE NOT NULL,
    is_error BOOLEAN NOT NULL,
    http_status BIGINT NOT NULL,
    http_method TEXT NOT NULL,
    http_route TEXT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE beyla_http_metrics (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    http_method TEXT NOT NULL,
    http_route TEXT NOT NULL,
    http_status_code BIGINT NOT NULL,
    latency_bucket_ms DOUBLE NOT NULL,
    "count" BIGINT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE beyla_grpc_metrics (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    grpc_method TEXT NOT NULL,
    grpc_status_code BIGINT NOT NULL,
    latency_bucket_ms DOUBLE NOT NULL,
    "count" BIGINT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE beyla_sql_metrics (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    sql_operation TEXT NOT NULL,
    table_name TEXT NOT NULL,
    latency_bucket_ms DOUBLE NOT NULL,
    "count" BIGINT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE beyla_traces (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    parent_span_id TEXT NOT NULL,
    service_name TEXT NOT NULL,
    span_name TEXT NOT NULL,
    span_kind TEXT NOT NULL,
    duration_us BIGINT NOT NULL,
    status_code BIGINT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE system_metrics (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    "name" TEXT NOT NULL,
    "value" DOUBLE NOT NULL,
    unit TEXT NOT NULL,
    metric_type TEXT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE cpu_profile_samples (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    build_id TEXT NOT NULL,
    stack_frames TEXT NOT NULL,
    sample_count BIGINT NOT NULL
);

CREATE TABLE memory_profile_samples (
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    generation TEXT NOT NULL,
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    build_id TEXT NOT NULL,
    stack_frames TEXT NOT NULL,
    alloc_bytes BIGINT NOT NULL,
    alloc_objects BIGINT NOT NULL
);
