-- version: 0.1.0
-- An agent's own database. Rows are append-only, in the order of their sequence ids, and leave from the front. No table
-- has an index: a range of ids is found by the statistics of row groups, and an index makes both the range and the
-- removal slower.

-- session_id, and the list of epochs.
CREATE TABLE db_metadata (
    key TEXT NOT NULL,
    value TEXT NOT NULL
);

-- The last id given per counter, updated in the transaction that stores the rows.
CREATE TABLE sequence_counters (
    counter TEXT NOT NULL,
    last_seq_id UBIGINT NOT NULL
);

-- The last id that retention has removed, updated in the transaction that removes the rows. A table of its own: two
-- transactions that update one row conflict.
CREATE TABLE removed_rows (
    counter TEXT NOT NULL,
    last_seq_id UBIGINT NOT NULL
);

CREATE TABLE otel_spans_local (
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

CREATE TABLE beyla_http_metrics_local (
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

CREATE TABLE beyla_grpc_metrics_local (
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    grpc_method TEXT NOT NULL,
    grpc_status_code BIGINT NOT NULL,
    latency_bucket_ms DOUBLE NOT NULL,
    "count" BIGINT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE beyla_sql_metrics_local (
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    sql_operation TEXT NOT NULL,
    table_name TEXT NOT NULL,
    latency_bucket_ms DOUBLE NOT NULL,
    "count" BIGINT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE beyla_traces_local (
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

CREATE TABLE system_metrics_local (
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    "name" TEXT NOT NULL,
    "value" DOUBLE NOT NULL,
    unit TEXT NOT NULL,
    metric_type TEXT NOT NULL,
    attributes TEXT NOT NULL
);

CREATE TABLE cpu_profile_samples_local (
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    build_id TEXT NOT NULL,
    stack_frames TEXT NOT NULL,
    sample_count BIGINT NOT NULL
);

CREATE TABLE memory_profile_samples_local (
    seq_id UBIGINT NOT NULL,
    "timestamp" TIMESTAMP NOT NULL,
    service_name TEXT NOT NULL,
    build_id TEXT NOT NULL,
    stack_frames TEXT NOT NULL,
    alloc_bytes BIGINT NOT NULL,
    alloc_objects BIGINT NOT NULL
);
