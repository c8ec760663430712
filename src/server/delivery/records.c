#include "server/delivery/records.h"

#include "base/core/macros.h"
#include "server/page.h"

static const char *const action_names[] = { "retry", "resolve", "abandon", NULL };

#define NAME_ABOUT "The pipeline's name."
#define TEXT_MAX 200

/* --- addresses --- */

#define PIPELINE_FIELD(type)                                     \
    {                                                            \
        FIELD(type, pipeline, FIELD_TEXT), .about = (NAME_ABOUT) \
    }
#define LSN_FROM_FIELD(type)                                                                  \
    {                                                                                         \
        FIELD(type, from, FIELD_UINT64), .min = 0, .max = INT64_MAX, .about = PAGE_FROM_ABOUT \
    }

static const struct pawl__field pipeline_path_fields[] = { PIPELINE_FIELD(struct pipeline_path) };
const struct pawl__record pawl__serve_pipeline_path_record =
    RECORD("PipelinePath", struct pipeline_path, pipeline_path_fields);

static const struct pawl__field removal_fields[] = {
    PIPELINE_FIELD(struct pipeline_removal),
    { FIELD(struct pipeline_removal, unsafe_drop_pending, FIELD_BOOL),
      .about = "Drop events that are only in the write-ahead log." },
};
const struct pawl__record pawl__serve_pipeline_removal_record =
    RECORD("PipelineRemoval", struct pipeline_removal, removal_fields);

static const struct wal_list wal_list_start = { .limit = PAGE_LIMIT_DEFAULT };
static const struct pawl__field wal_list_fields[] = {
    PIPELINE_FIELD(struct wal_list),
    LSN_FROM_FIELD(struct wal_list),
    PAGE_LIMIT_FIELD(struct wal_list),
    { FIELD(struct wal_list, pending, FIELD_BOOL),
      .about = "Only entries that are in no table yet." },
};
const struct pawl__record pawl__serve_wal_list_record =
    RECORD_FROM("WalList", struct wal_list, wal_list_fields, &wal_list_start);

static const struct pawl__field wal_path_fields[] = {
    PIPELINE_FIELD(struct wal_path),
    { FIELD(struct wal_path, lsn, FIELD_UINT64), .min = 1, .max = INT64_MAX },
};
const struct pawl__record pawl__serve_wal_path_record =
    RECORD("WalPath", struct wal_path, wal_path_fields);

static const struct failed_list failed_list_start = { .limit = PAGE_LIMIT_DEFAULT,
                                                      .status = FIELD_ENUM_NONE,
                                                      .action = FIELD_ENUM_NONE };
#define TIME_ABOUT "When it failed: RFC 3339, as in 2026-02-03T04:05:06Z"
#define FILTER_FIELDS(type)                                                                \
    { FIELD(type, status, FIELD_ENUM), .names = pawl__failed_status_names },               \
        { FIELD(type, reason, FIELD_TEXT), .max = TEXT_MAX },                              \
        { FIELD(type, source, FIELD_TEXT), .max = TEXT_MAX },                              \
        { FIELD(type, transaction_id, FIELD_TEXT), .max = 600 },                           \
        { FIELD(type, since, FIELD_TEXT), .max = 64, .about = TIME_ABOUT ", inclusive." }, \
    {                                                                                      \
        FIELD(type, until, FIELD_TEXT), .max = 64, .about = TIME_ABOUT ", exclusive."      \
    }
static const struct pawl__field failed_list_fields[] = {
    PIPELINE_FIELD(struct failed_list),
    LSN_FROM_FIELD(struct failed_list),
    PAGE_LIMIT_FIELD(struct failed_list),
    FILTER_FIELDS(struct failed_list),
    { FIELD(struct failed_list, newest_first, FIELD_BOOL) },
};
const struct pawl__record pawl__serve_failed_list_record =
    RECORD_FROM("FailedList", struct failed_list, failed_list_fields, &failed_list_start);

static const struct pawl__field export_fields[] = {
    PIPELINE_FIELD(struct failed_list),
    FILTER_FIELDS(struct failed_list),
};
const struct pawl__record pawl__serve_failed_export_record =
    RECORD_FROM("FailedExport", struct failed_list, export_fields, &failed_list_start);

static const struct pawl__field count_fields[] = {
    PIPELINE_FIELD(struct failed_list),
    { FIELD(struct failed_list, action, FIELD_ENUM),
      .names = action_names,
      .flags = FIELD_REQUIRED,
      .about = "Events that this could be done to." },
    FILTER_FIELDS(struct failed_list),
};
const struct pawl__record pawl__serve_failed_count_query_record =
    RECORD_FROM("FailedCount", struct failed_list, count_fields, &failed_list_start);

static const struct pawl__field failed_path_fields[] = {
    PIPELINE_FIELD(struct failed_path),
    { FIELD(struct failed_path, event, FIELD_TEXT), .about = "The failed event's id." },
};
const struct pawl__record pawl__serve_failed_path_record =
    RECORD("FailedPath", struct failed_path, failed_path_fields);

static const struct pawl__field action_path_fields[] = {
    PIPELINE_FIELD(struct failed_path),
    { FIELD(struct failed_path, event, FIELD_TEXT), .about = "The failed event's id." },
    { FIELD(struct failed_path, action, FIELD_ENUM), .names = action_names },
};
const struct pawl__record pawl__serve_failed_action_path_record =
    RECORD("FailedActionPath", struct failed_path, action_path_fields);

/* --- bodies --- */

/* What `pawl_pipeline_add` reads: this only describes it. */
struct new_column {
    pawl_view name;
    pawl_view type;
    pawl_view from;
    pawl_view path;
    pawl_view expression;
    bool required;
    bool lenient;
};
struct new_pipeline {
    pawl_view name;
    pawl_view from;
    pawl_view into;
    pawl_view source;
    pawl_view id_field;
    pawl_view generation;
    pawl_view stream;
    pawl_view consumer;
    pawl_view subject;
    bool create_stream;
    pawl_view nkey_file;
    pawl_view creds_file;
    pawl_view tls_ca;
    pawl_view tls_certificate;
    pawl_view tls_key;
    bool complete_turns;
    const struct new_column *columns;
    size_t column_count;
    pawl_view filter;
    bool unique_index;
};
static const struct pawl__field new_column_fields[] = {
    { FIELD(struct new_column, name, FIELD_TEXT), .flags = FIELD_REQUIRED },
    { FIELD(struct new_column, type, FIELD_TEXT),
      .about = "BIGINT, INTEGER, DOUBLE, BOOLEAN, VARCHAR, TIMESTAMP or JSON." },
    { FIELD(struct new_column, from, FIELD_TEXT),
      .about = "transaction_id, source, event_id, subject, headers or received." },
    { FIELD(struct new_column, path, FIELD_TEXT), .about = "Of the payload: $.key" },
    { FIELD(struct new_column, expression, FIELD_TEXT), .about = "Of DuckDB, over `payload`." },
    { FIELD(struct new_column, required, FIELD_BOOL) },
    { FIELD(struct new_column, lenient, FIELD_BOOL) },
};
static const struct pawl__record new_column_record =
    RECORD("PipelineColumn", struct new_column, new_column_fields);
static const struct pawl__field new_pipeline_fields[] = {
    { FIELD(struct new_pipeline, name, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .about = "a-z 0-9 _ -" },
    { FIELD(struct new_pipeline, from, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .about = "nats://HOST:4222, tls://HOST:4222, ledger:LOCATION, file:PATH, or http." },
    { FIELD(struct new_pipeline, into, FIELD_TEXT), .about = "Its table; `events`." },
    { FIELD(struct new_pipeline, source, FIELD_TEXT) },
    { FIELD(struct new_pipeline, id_field, FIELD_TEXT),
      .about = "Key of the payload that has the event's id." },
    { FIELD(struct new_pipeline, generation, FIELD_TEXT) },
    { FIELD(struct new_pipeline, stream, FIELD_TEXT) },
    { FIELD(struct new_pipeline, consumer, FIELD_TEXT) },
    { FIELD(struct new_pipeline, subject, FIELD_TEXT) },
    { FIELD(struct new_pipeline, create_stream, FIELD_BOOL) },
    { FIELD(struct new_pipeline, nkey_file, FIELD_TEXT) },
    { FIELD(struct new_pipeline, creds_file, FIELD_TEXT) },
    { FIELD(struct new_pipeline, tls_ca, FIELD_TEXT) },
    { FIELD(struct new_pipeline, tls_certificate, FIELD_TEXT) },
    { FIELD(struct new_pipeline, tls_key, FIELD_TEXT) },
    { FIELD(struct new_pipeline, complete_turns, FIELD_BOOL) },
    { FIELD(struct new_pipeline, columns, FIELD_RECORDS),
      .record = &new_column_record,
      .count_offset = offsetof(struct new_pipeline, column_count),
      .max = 128 },
    { FIELD(struct new_pipeline, filter, FIELD_TEXT) },
    { FIELD(struct new_pipeline, unique_index, FIELD_BOOL) },
};
const struct pawl__record pawl__serve_new_pipeline_record =
    RECORD("NewPipeline", struct new_pipeline, new_pipeline_fields);

static const struct pawl__field posted_event_fields[] = {
    { FIELD(struct posted_event, event_id, FIELD_TEXT),
      .max = TEXT_MAX,
      .about = "The producer's id. Left out: that of the payload's key that the pipeline names." },
    { FIELD(struct posted_event, sequence, FIELD_UINT64),
      .max = INT64_MAX,
      .about = "Of several events with one id." },
    { FIELD(struct posted_event, source, FIELD_TEXT), .max = TEXT_MAX },
    { FIELD(struct posted_event, subject, FIELD_TEXT), .max = TEXT_MAX },
    { FIELD(struct posted_event, payload, FIELD_JSON), .flags = FIELD_REQUIRED },
};
static const struct pawl__record posted_event_record =
    RECORD("PostedEvent", struct posted_event, posted_event_fields);
static const struct pawl__field posted_events_fields[] = {
    { FIELD(struct posted_events, events, FIELD_RECORDS),
      .record = &posted_event_record,
      .count_offset = offsetof(struct posted_events, count),
      .flags = FIELD_REQUIRED | FIELD_OR_ONE,
      .min = 1,
      .max = PAWL_INCOMING_BATCH_MAX },
};
const struct pawl__record pawl__serve_posted_events_record =
    RECORD("PostedEvents", struct posted_events, posted_events_fields);

static const struct drain_body drain_start = { .timeout_ms = 10000 };
static const struct pawl__field drain_fields[] = {
    { FIELD_AS("timeout", struct drain_body, timeout_ms, FIELD_DURATION),
      .min = 1,
      .max = DRAIN_MS_MAX,
      .about = "How long to wait, as in 10s." },
};
const struct pawl__record pawl__serve_drain_record =
    RECORD_FROM("Drain", struct drain_body, drain_fields, &drain_start);

#define DECISION_FIELDS(type)                       \
    { FIELD(type, by, FIELD_TEXT),                  \
      .flags = FIELD_REQUIRED,                      \
      .min = 1,                                     \
      .max = TEXT_MAX,                              \
      .about = "Who decides." },                    \
    {                                               \
        FIELD(type, notes, FIELD_TEXT), .max = 4096 \
    }
static const struct pawl__field decision_fields[] = {
    DECISION_FIELDS(struct decision_body),
    { FIELD(struct decision_body, payload, FIELD_JSON),
      .about = "To deliver in place of the payload, for a retry." },
};
const struct pawl__record pawl__serve_decision_record =
    RECORD("FailedDecision", struct decision_body, decision_fields);

static const struct bulk_body bulk_start = { .status = FIELD_ENUM_NONE };
static const struct pawl__field bulk_fields[] = {
    { FIELD(struct bulk_body, action, FIELD_ENUM), .names = action_names, .flags = FIELD_REQUIRED },
    { FIELD(struct bulk_body, expected, FIELD_UINT64),
      .flags = FIELD_REQUIRED,
      .max = INT64_MAX,
      .about = "What the count said. If others match by now, nothing is done." },
    DECISION_FIELDS(struct bulk_body),
    FILTER_FIELDS(struct bulk_body),
};
const struct pawl__record pawl__serve_bulk_record =
    RECORD_FROM("FailedBulk", struct bulk_body, bulk_fields, &bulk_start);

static const struct sql_body sql_start = { .timeout_ms = 30000, .limit = SQL_ROWS_DEFAULT };
static const struct pawl__field sql_fields[] = {
    { FIELD(struct sql_body, sql, FIELD_TEXT), .flags = FIELD_REQUIRED, .min = 1, .max = 1 << 20 },
    { FIELD_AS("timeout", struct sql_body, timeout_ms, FIELD_DURATION),
      .min = 1,
      .max = SQL_MS_MAX,
      .about = "How long it may take, as in 30s." },
    { FIELD(struct sql_body, limit, FIELD_UINT64),
      .min = 1,
      .max = SQL_ROWS_MAX,
      .about = "Rows of the answer." },
};
const struct pawl__record pawl__serve_sql_record =
    RECORD_FROM("Sql", struct sql_body, sql_fields, &sql_start);

/* --- answers --- */

static const char *const outcome_names[] = { "accepted", "duplicate", "conflict", NULL };
static const struct pawl__field posted_result_fields[] = {
    { FIELD(struct posted_result, result, FIELD_ENUM), .names = outcome_names },
};
static const struct pawl__record posted_result_record =
    RECORD("PostedResult", struct posted_result, posted_result_fields);
static const struct pawl__field posted_fields[] = {
    { FIELD(struct posted_answer, results, FIELD_RECORDS),
      .record = &posted_result_record,
      .count_offset = offsetof(struct posted_answer, count),
      .about = "One per event, in their order." },
};
const struct pawl__record pawl__serve_posted_record =
    RECORD("Posted", struct posted_answer, posted_fields);

static const struct pawl__field pipeline_page_fields[] = PAGE_FIELDS(&pawl__pipeline_status_record);
const struct pawl__record pawl__serve_pipeline_page_record =
    RECORD("PipelinePage", struct pawl__serve_page_shape, pipeline_page_fields);

static const struct pawl__field removed_fields[] = {
    { FIELD(struct pipeline_removed, name, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct pipeline_removed, removed, FIELD_BOOL) },
};
const struct pawl__record pawl__serve_pipeline_removed_record =
    RECORD("PipelineRemoved", struct pipeline_removed, removed_fields);

static const struct pawl__field change_fields[] = {
    { FIELD(struct pipeline_change, removed, FIELD_BOOL) },
    { FIELD(struct pipeline_change, pipeline, FIELD_RECORD),
      .record = &pawl__pipeline_status_record },
};
const struct pawl__record pawl__serve_pipeline_change_record =
    RECORD("PipelineChange", struct pipeline_change, change_fields);

static const struct pawl__field wal_page_fields[] = PAGE_FIELDS(&pawl__wal_entry_record);
const struct pawl__record pawl__serve_wal_page_record =
    RECORD("WalPage", struct pawl__serve_page_shape, wal_page_fields);

static const struct pawl__field failed_page_fields[] = PAGE_FIELDS(&pawl__failed_event_record);
const struct pawl__record pawl__serve_failed_page_record =
    RECORD("FailedPage", struct pawl__serve_page_shape, failed_page_fields);

static const struct pawl__field counted_fields[] = {
    { FIELD(struct failed_counted, count, FIELD_UINT64) },
};
const struct pawl__record pawl__serve_failed_counted_record =
    RECORD("FailedCounted", struct failed_counted, counted_fields);

static const struct pawl__field health_fields[] = {
    { FIELD(struct delivery_health, pipelines, FIELD_UINT64) },
    { FIELD(struct delivery_health, pipelines_running, FIELD_UINT64) },
    { FIELD(struct delivery_health, pipelines_failed, FIELD_UINT64) },
    { FIELD(struct delivery_health, events_pending, FIELD_UINT64) },
};
const struct pawl__record pawl__serve_delivery_health_record =
    RECORD("DeliveryHealth", struct delivery_health, health_fields);

static const struct pawl__field sql_answer_fields[] = {
    { FIELD(struct sql_answer, columns, FIELD_TEXTS),
      .count_offset = offsetof(struct sql_answer, column_count) },
    { FIELD(struct sql_answer, rows, FIELD_JSON), .about = "A list of lists, in their order." },
    { FIELD(struct sql_answer, truncated, FIELD_BOOL),
      .about = "There are more rows than `limit`." },
};
const struct pawl__record pawl__serve_sql_answer_record =
    RECORD("SqlAnswer", struct sql_answer, sql_answer_fields);
