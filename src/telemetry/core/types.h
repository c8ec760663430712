/* The eight data types: names, tables, counters, limits, columns. One table says it all; stores, the encoding of a row
 * and the proto files follow it (test_telemetry_types compares them). */
#ifndef PAWL_TELEMETRY_CORE_TYPES_H
#define PAWL_TELEMETRY_CORE_TYPES_H

#include <pawl/pawl.h>

enum telemetry_type {
    TELEMETRY_SPANS, /* "telemetry" */
    TELEMETRY_BEYLA_HTTP,
    TELEMETRY_BEYLA_GRPC,
    TELEMETRY_BEYLA_SQL,
    TELEMETRY_BEYLA_TRACES,
    TELEMETRY_SYSTEM_METRICS,
    TELEMETRY_CPU_PROFILE,
    TELEMETRY_MEMORY_PROFILE,
    TELEMETRY_TYPE_COUNT,
};

/* How a value is held, stored and encoded.
 *
 *   z  TIMESTAMP, microseconds since 1970 UTC   int64
 *   t  TEXT                                     string
 *   d  DOUBLE                                   double
 *   b  BOOLEAN                                  bool
 *   i  BIGINT                                   int64 (int32 on the wire is the same bytes)
 *   m  TEXT, a JSON object of strings           map<string, string>
 *   l  TEXT, a JSON array of strings            repeated string */
struct telemetry_column {
    const char *name;
    char kind;
    uint8_t field;  /* its number in the proto file */
    bool names_row; /* part of what an exporter's retry is recognised by */
};

enum { TELEMETRY_COLUMNS_MAX = 12 };

struct telemetry_type_info {
    const char *name;         /* data_type */
    const char *agent_table;  /* otel_spans_local */
    const char *colony_table; /* otel_spans */
    const char *counter;      /* seq_otel_spans */
    uint32_t batch_default;   /* max_records where a query names none */
    uint32_t batch_max;
    uint8_t seq_field;     /* the number of seq_id in the proto file */
    int8_t service_column; /* -1: has none */
    int8_t time_column;
    uint8_t column_count;
    struct telemetry_column columns[TELEMETRY_COLUMNS_MAX];
};

const struct telemetry_type_info *pawl__telemetry_type(enum telemetry_type type);

/* INVALID names the ones there are. */
PAWL_MUST_USE pawl_status pawl__telemetry_type_parse(pawl_view name,
                                                     enum telemetry_type *ret_type,
                                                     pawl_error *reterr);

/* How many rows a query gets that asks for `wanted`; 0 asks for the default, more than the most gets the most.
 * A negative number is INVALID. */
PAWL_MUST_USE pawl_status pawl__telemetry_batch(enum telemetry_type type,
                                                int64_t wanted,
                                                uint32_t *ret_rows,
                                                pawl_error *reterr);

/* One value; which member counts, its column's kind says. Text is borrowed. */
struct telemetry_value {
    union {
        int64_t i64;    /* z, i */
        double real;    /* d */
        bool flag;      /* b */
        pawl_view text; /* t, m, l */
    } as;
};

/* One row before it has a sequence id: a value per column. */
struct telemetry_values {
    struct telemetry_value at[TELEMETRY_COLUMNS_MAX];
};

#endif
