-- The agent's store. One page, one removal and one look at the newest rows per data type.

-- name: metadata_count
SELECT (SELECT count(*) FROM db_metadata) + (SELECT count(*) FROM sequence_counters);

-- name: metadata_read
SELECT value FROM db_metadata WHERE key = $1;

-- name: metadata_add
INSERT INTO db_metadata VALUES ($1, $2);

-- name: metadata_set
UPDATE db_metadata SET value = $2 WHERE key = $1;

-- name: counters_read
-- One snapshot of both: the last id given and the last id removed.
SELECT c.counter, c.last_seq_id, r.last_seq_id FROM sequence_counters c JOIN removed_rows r ON r.counter = c.counter;

-- name: counter_add
INSERT INTO sequence_counters VALUES ($1, 0);

-- name: removed_add
INSERT INTO removed_rows VALUES ($1, 0);

-- name: counter_set
UPDATE sequence_counters SET last_seq_id = $2 WHERE counter = $1;

-- name: removed_set
UPDATE removed_rows SET last_seq_id = $2 WHERE counter = $1;

-- name: used_bytes
-- Blocks in use, not the size of the file. It falls only after a checkpoint.
SELECT CAST(sum(used_blocks * block_size) AS UBIGINT) FROM pragma_database_size();

-- fragment: page(columns, table)
-- No ORDER BY: rows come in the order in which they were stored, which is that of their ids; the reader checks it.
SELECT seq_id, {columns} FROM {table} WHERE seq_id > $1 AND seq_id <= $2

-- fragment: next(table)
SELECT min(seq_id) FROM {table} WHERE seq_id > $1

-- fragment: remove(table)
DELETE FROM {table} WHERE seq_id <= $1

-- name: page_telemetry
{page: "timestamp", trace_id, span_id, service_name, span_kind, duration_ms, is_error, http_status, http_method, http_route, attributes; otel_spans_local};

-- name: next_telemetry
{next: otel_spans_local};

-- name: remove_telemetry
{remove: otel_spans_local};

-- name: page_beyla_http
{page: "timestamp", service_name, http_method, http_route, http_status_code, latency_bucket_ms, "count", attributes; beyla_http_metrics_local};

-- name: next_beyla_http
{next: beyla_http_metrics_local};

-- name: remove_beyla_http
{remove: beyla_http_metrics_local};

-- name: page_beyla_grpc
{page: "timestamp", service_name, grpc_method, grpc_status_code, latency_bucket_ms, "count", attributes; beyla_grpc_metrics_local};

-- name: next_beyla_grpc
{next: beyla_grpc_metrics_local};

-- name: remove_beyla_grpc
{remove: beyla_grpc_metrics_local};

-- name: page_beyla_sql
{page: "timestamp", service_name, sql_operation, table_name, latency_bucket_ms, "count", attributes; beyla_sql_metrics_local};

-- name: next_beyla_sql
{next: beyla_sql_metrics_local};

-- name: remove_beyla_sql
{remove: beyla_sql_metrics_local};

-- name: page_beyla_traces
{page: "timestamp", trace_id, span_id, parent_span_id, service_name, span_name, span_kind, duration_us, status_code, attributes; beyla_traces_local};

-- name: next_beyla_traces
{next: beyla_traces_local};

-- name: remove_beyla_traces
{remove: beyla_traces_local};

-- name: page_system_metrics
{page: "timestamp", "name", "value", unit, metric_type, attributes; system_metrics_local};

-- name: next_system_metrics
{next: system_metrics_local};

-- name: remove_system_metrics
{remove: system_metrics_local};

-- name: page_cpu_profile
{page: "timestamp", service_name, build_id, stack_frames, sample_count; cpu_profile_samples_local};

-- name: next_cpu_profile
{next: cpu_profile_samples_local};

-- name: remove_cpu_profile
{remove: cpu_profile_samples_local};

-- name: page_memory_profile
{page: "timestamp", service_name, build_id, stack_frames, alloc_bytes, alloc_objects; memory_profile_samples_local};

-- name: next_memory_profile
{next: memory_profile_samples_local};

-- name: remove_memory_profile
{remove: memory_profile_samples_local};
