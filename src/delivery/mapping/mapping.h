/* What becomes of an event in its table: which columns there are, and the value of each. Pure: no file, no clock.
 *
 * Columns are read from the payload by JSON paths ($.user.id, $.items[0], $."odd key"), straight from its bytes:
 * numbers are never rounded on the way. A value that does not fit its column exactly is the event's fault.
 *
 *   BIGINT, INTEGER   a number without point and exponent, in range
 *   DOUBLE            a number; an integer only when a double holds it exactly
 *   BOOLEAN           true, false
 *   VARCHAR           a string
 *   TIMESTAMP         a string, RFC 3339 or "2026-01-29 10:20:30", years 1 to 9999, up to microseconds
 *   JSON              any value, byte for byte
 *
 * null and a missing path are NULL, unless the column is required. */
#ifndef PAWL_DELIVERY_MAPPING_MAPPING_H
#define PAWL_DELIVERY_MAPPING_MAPPING_H

#include "base/core/arena.h"
#include "delivery/core/encode.h"
#include "delivery/core/sink.h"

enum delivery_type {
    DELIVERY_BIGINT,
    DELIVERY_INTEGER,
    DELIVERY_DOUBLE,
    DELIVERY_BOOLEAN,
    DELIVERY_VARCHAR,
    DELIVERY_TIMESTAMP,
    DELIVERY_JSON,
    DELIVERY_BLOB, /* of our own columns only */
};
const char *pawl__delivery_type_name(enum delivery_type type); /* "BIGINT", as SQL has it */

enum delivery_from {
    DELIVERY_FROM_PATH,
    DELIVERY_FROM_TRANSACTION_ID,
    DELIVERY_FROM_SOURCE,
    DELIVERY_FROM_EVENT_ID,
    DELIVERY_FROM_SUBJECT,
    DELIVERY_FROM_HEADERS,
    DELIVERY_FROM_RECEIVED,
    DELIVERY_FROM_KEY,
    DELIVERY_FROM_PAYLOAD_HASH,
    DELIVERY_FROM_EXPRESSION, /* computed by the sink (duckdb/expressions.h); NULL for map_value */
};

struct delivery_column {
    const char *name;
    enum delivery_type type;
    enum delivery_from from;
    const char *path;       /* FROM_PATH */
    bool is_required;       /* NULL is the event's fault */
    bool is_lenient;        /* what does not fit is NULL */
    const char *expression; /* FROM_EXPRESSION */
};

enum {
    DELIVERY_COLUMNS_MAX = 128,
    DELIVERY_NAME_BYTES_MAX = 63, /* of a table or column */
    DELIVERY_PATH_BYTES_MAX = 256,
    DELIVERY_PATHS_DEPTH_MAX = 16,
    DELIVERY_EXPRESSION_BYTES_MAX = 4096,
    DELIVERY_EXPRESSION_MS_DEFAULT = 5000,
    DELIVERY_EXPRESSION_MS_MAX = 600000,
};
#define DELIVERY_PAYLOAD_BYTES_MAX ((size_t)16 << 20) /* unless the mapping says less */

struct delivery_mapping {
    const char *table;
    const struct delivery_column *columns;
    size_t count;
    size_t payload_bytes_max; /* 0: DELIVERY_PAYLOAD_BYTES_MAX, which is also the most */
    bool has_unique_index;    /* on transaction_id: costs two thirds of the speed */
    const char *
        filter; /* a boolean expression: events for which it is not true get no row. NULL: all do */
    uint32_t
        expression_ms_max; /* for the expressions of one event; 0: DELIVERY_EXPRESSION_MS_DEFAULT */
};

/* transaction_id, source, event_id, subject, session_key, correlation_key, payload, headers, event_time,
 * received_at, and what every table has. */
const struct delivery_mapping *pawl__delivery_default_mapping(void);

/* Every table has these, whatever the mapping: transaction_id, payload_hash, event_key. A mapping names its own
 * columns only; what it does not name of these is added. */
const struct delivery_column *pawl__delivery_own_columns(size_t *ret_count);

/* INVALID: names, paths or types that cannot be. */
PAWL_MUST_USE pawl_status pawl__delivery_mapping_check(const struct delivery_mapping *mapping,
                                                       pawl_error *reterr);

#define DELIVERY_REASON_NOT_JSON "not_json"
#define DELIVERY_REASON_TOO_LARGE "too_large"
#define DELIVERY_REASON_UNMAPPABLE "unmappable"

void pawl__delivery_verdict_refuse(struct delivery_verdict *verdict,
                                   const char *reason, /* static */
                                   const pawl_error *error);

/* True when the sink has to compute something. */
bool pawl__delivery_mapping_computes(const struct delivery_mapping *mapping);

/* The two halves of the verdict: whether the payload can be read at all, and, where it can and the filter wants it,
 * whether it fits the columns. What is computed counts in neither. */
PAWL_MUST_USE pawl_status pawl__delivery_map_readable(const struct delivery_mapping *mapping,
                                                      const struct delivery_entry *entry,
                                                      struct delivery_verdict *ret_verdict,
                                                      pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__delivery_map_columns(const struct delivery_mapping *mapping,
                                                     const struct delivery_entry *entry,
                                                     struct delivery_verdict *ret_verdict,
                                                     pawl_error *reterr);

/* The verdict on an event: a row, or which of the reasons above. */
PAWL_MUST_USE pawl_status pawl__delivery_map_verdict(const struct delivery_mapping *mapping,
                                                     const struct delivery_entry *entry,
                                                     struct delivery_verdict *ret_verdict,
                                                     pawl_error *reterr);

struct delivery_value {
    enum delivery_type type;
    bool is_null;
    union {
        int64_t i64; /* BIGINT, INTEGER; TIMESTAMP: microseconds since 1970 */
        double real;
        bool boolean;
        pawl_view text; /* VARCHAR, JSON, BLOB */
    } as;
};

/* The value of one column. Texts live in the entry or in the arena. INVALID: it does not fit; NOMEM. The payload
 * must be JSON (a verdict of ROW), or the column's path yields NULL. */
PAWL_MUST_USE pawl_status pawl__delivery_map_value(const struct delivery_column *column,
                                                   const struct delivery_entry *entry,
                                                   struct pawl__arena *arena,
                                                   struct delivery_value *ret_value,
                                                   pawl_error *reterr);

#endif
