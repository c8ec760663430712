#include "telemetry/core/types.h"

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/macros.h"

enum { BATCH_MAX = 50000, PROFILE_BATCH_MAX = 5000 };

static const struct telemetry_type_info infos[TELEMETRY_TYPE_COUNT] = {
    [TELEMETRY_SPANS] = {
        .name = "telemetry",
        .agent_table = "otel_spans_local",
        .colony_table = "otel_spans",
        .counter = "seq_otel_spans",
        .batch_default = 10000,
        .batch_max = BATCH_MAX,
        .seq_field = 12,
        .service_column = 3,
        .time_column = 0,
        .column_count = 11,
        .columns = {
            { "timestamp", 'z', 1, false },
            { "trace_id", 't', 2, true },
            { "span_id", 't', 3, true },
            { "service_name", 't', 4, true },
            { "span_kind", 't', 5, true },
            { "duration_ms", 'd', 6, false },
            { "is_error", 'b', 7, false },
            { "http_status", 'i', 8, false },
            { "http_method", 't', 9, false },
            { "http_route", 't', 10, false },
            { "attributes", 'm', 11, false },
        },
    },
    [TELEMETRY_BEYLA_HTTP] = {
        .name = "beyla_http",
        .agent_table = "beyla_http_metrics_local",
        .colony_table = "beyla_http_metrics",
        .counter = "seq_beyla_http_metrics",
        .batch_default = 10000,
        .batch_max = BATCH_MAX,
        .seq_field = 9,
        .service_column = 1,
        .time_column = 0,
        .column_count = 8,
        .columns = {
            { "timestamp", 'z', 1, true },
            { "service_name", 't', 2, true },
            { "http_method", 't', 3, true },
            { "http_route", 't', 4, true },
            { "http_status_code", 'i', 5, true },
            { "latency_bucket_ms", 'd', 6, true },
            { "count", 'i', 7, false },
            { "attributes", 'm', 8, true },
        },
    },
    [TELEMETRY_BEYLA_GRPC] = {
        .name = "beyla_grpc",
        .agent_table = "beyla_grpc_metrics_local",
        .colony_table = "beyla_grpc_metrics",
        .counter = "seq_beyla_grpc_metrics",
        .batch_default = 10000,
        .batch_max = BATCH_MAX,
        .seq_field = 8,
        .service_column = 1,
        .time_column = 0,
        .column_count = 7,
        .columns = {
            { "timestamp", 'z', 1, true },
            { "service_name", 't', 2, true },
            { "grpc_method", 't', 3, true },
            { "grpc_status_code", 'i', 4, true },
            { "latency_bucket_ms", 'd', 5, true },
            { "count", 'i', 6, false },
            { "attributes", 'm', 7, true },
        },
    },
    [TELEMETRY_BEYLA_SQL] = {
        .name = "beyla_sql",
        .agent_table = "beyla_sql_metrics_local",
        .colony_table = "beyla_sql_metrics",
        .counter = "seq_beyla_sql_metrics",
        .batch_default = 5000,
        .batch_max = BATCH_MAX,
        .seq_field = 8,
        .service_column = 1,
        .time_column = 0,
        .column_count = 7,
        .columns = {
            { "timestamp", 'z', 1, true },
            { "service_name", 't', 2, true },
            { "sql_operation", 't', 3, true },
            { "table_name", 't', 4, true },
            { "latency_bucket_ms", 'd', 5, true },
            { "count", 'i', 6, false },
            { "attributes", 'm', 7, true },
        },
    },
    [TELEMETRY_BEYLA_TRACES] = {
        .name = "beyla_traces",
        .agent_table = "beyla_traces_local",
        .colony_table = "beyla_traces",
        .counter = "seq_beyla_traces",
        .batch_default = 1000,
        .batch_max = BATCH_MAX,
        .seq_field = 11,
        .service_column = 4,
        .time_column = 0,
        .column_count = 10,
        .columns = {
            { "timestamp", 'z', 1, false },
            { "trace_id", 't', 2, true },
            { "span_id", 't', 3, true },
            { "parent_span_id", 't', 4, false },
            { "service_name", 't', 5, true },
            { "span_name", 't', 6, false },
            { "span_kind", 't', 7, true },
            { "duration_us", 'i', 8, false },
            { "status_code", 'i', 9, false },
            { "attributes", 'm', 10, false },
        },
    },
    [TELEMETRY_SYSTEM_METRICS] = {
        .name = "system_metrics",
        .agent_table = "system_metrics_local",
        .colony_table = "system_metrics",
        .counter = "seq_system_metrics",
        .batch_default = 10000,
        .batch_max = BATCH_MAX,
        .seq_field = 7,
        .service_column = -1,
        .time_column = 0,
        .column_count = 6,
        .columns = {
            { "timestamp", 'z', 1, true },
            { "name", 't', 2, true },
            { "value", 'd', 3, false },
            { "unit", 't', 4, false },
            { "metric_type", 't', 5, true },
            { "attributes", 'm', 6, true },
        },
    },
    [TELEMETRY_CPU_PROFILE] = {
        .name = "cpu_profile",
        .agent_table = "cpu_profile_samples_local",
        .colony_table = "cpu_profile_samples",
        .counter = "seq_cpu_profile_samples",
        .batch_default = PROFILE_BATCH_MAX,
        .batch_max = PROFILE_BATCH_MAX,
        .seq_field = 6,
        .service_column = 1,
        .time_column = 0,
        .column_count = 5,
        .columns = {
            { "timestamp", 'z', 1, false },
            { "service_name", 't', 2, false },
            { "build_id", 't', 3, false },
            { "stack_frames", 'l', 4, false },
            { "sample_count", 'i', 5, false },
        },
    },
    [TELEMETRY_MEMORY_PROFILE] = {
        .name = "memory_profile",
        .agent_table = "memory_profile_samples_local",
        .colony_table = "memory_profile_samples",
        .counter = "seq_memory_profile_samples",
        .batch_default = PROFILE_BATCH_MAX,
        .batch_max = PROFILE_BATCH_MAX,
        .seq_field = 7,
        .service_column = 1,
        .time_column = 0,
        .column_count = 6,
        .columns = {
            { "timestamp", 'z', 1, false },
            { "service_name", 't', 2, false },
            { "build_id", 't', 3, false },
            { "stack_frames", 'l', 4, false },
            { "alloc_bytes", 'i', 5, false },
            { "alloc_objects", 'i', 6, false },
        },
    },
};

const struct telemetry_type_info *pawl__telemetry_type(enum telemetry_type type)
{
    REQUIRE((unsigned)type < TELEMETRY_TYPE_COUNT);
    return &infos[type];
}

pawl_status pawl__telemetry_type_parse(pawl_view name,
                                       enum telemetry_type *ret_type,
                                       pawl_error *reterr)
{
    for (int i = 0; i < TELEMETRY_TYPE_COUNT; i++) {
        if (pawl__view_is(name, infos[i].name)) {
            *ret_type = (enum telemetry_type)i;
            return PAWL_OK;
        }
    }
    return pawl__fail(
        reterr,
        PAWL_INVALID,
        "no data type '%.*s': use telemetry, beyla_http, beyla_grpc, beyla_sql, beyla_traces, "
        "system_metrics, cpu_profile or memory_profile",
        VIEW_ARGS(name));
}

pawl_status pawl__telemetry_batch(enum telemetry_type type,
                                  int64_t wanted,
                                  uint32_t *ret_rows,
                                  pawl_error *reterr)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);

    if (wanted < 0) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "max_records is %lld: use 1 to %u, or 0 for %u",
                          (long long)wanted,
                          info->batch_max,
                          info->batch_default);
    }
    *ret_rows = wanted == 0 ? info->batch_default : (uint32_t)MIN(wanted, (int64_t)info->batch_max);
    return PAWL_OK;
}
