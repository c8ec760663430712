/* What requests of delivery say, and what is answered: the records of its routes. */
#ifndef PAWL_SERVER_DELIVERY_RECORDS_H
#define PAWL_SERVER_DELIVERY_RECORDS_H

#include "records/delivery.h"

enum { SQL_ROWS_DEFAULT = 1000, SQL_ROWS_MAX = 100000, DRAIN_MS_MAX = 30000 };
#define SQL_MS_MAX INT64_C(60000)

/* --- addresses --- */

struct pipeline_path {
    pawl_view pipeline;
};
struct pipeline_removal {
    pawl_view pipeline;
    bool unsafe_drop_pending;
};
struct wal_list {
    pawl_view pipeline;
    uint64_t from;
    uint64_t limit;
    bool pending;
};
struct wal_path {
    pawl_view pipeline;
    uint64_t lsn;
};
struct failed_list {
    pawl_view pipeline;
    uint64_t from;
    uint64_t limit;
    unsigned status; /* FIELD_ENUM_NONE: any */
    pawl_view reason;
    pawl_view source;
    pawl_view transaction_id;
    pawl_view since;
    pawl_view until;
    bool newest_first;
    unsigned action; /* of a count */
};
struct failed_path {
    pawl_view pipeline;
    pawl_view event;
    unsigned action;
};
extern const struct pawl__record pawl__serve_pipeline_path_record;
extern const struct pawl__record pawl__serve_pipeline_removal_record;
extern const struct pawl__record pawl__serve_wal_list_record;
extern const struct pawl__record pawl__serve_wal_path_record;
extern const struct pawl__record pawl__serve_failed_list_record;
extern const struct pawl__record pawl__serve_failed_count_query_record;
extern const struct pawl__record pawl__serve_failed_path_record;
extern const struct pawl__record pawl__serve_failed_action_path_record;
extern const struct pawl__record pawl__serve_failed_export_record;

/* --- bodies --- */

struct posted_event {
    pawl_view event_id;
    uint64_t sequence;
    pawl_view source;
    pawl_view subject;
    pawl_view payload;
};
struct posted_events {
    const struct posted_event *events;
    size_t count;
};
struct drain_body {
    int64_t timeout_ms;
};
struct decision_body {
    pawl_view by;
    pawl_view notes;
    pawl_view payload;
};
struct bulk_body {
    unsigned action;
    uint64_t expected;
    pawl_view by;
    pawl_view notes;
    unsigned status;
    pawl_view reason;
    pawl_view source;
    pawl_view transaction_id;
    pawl_view since;
    pawl_view until;
};
struct sql_body {
    pawl_view sql;
    int64_t timeout_ms;
    uint64_t limit;
};
/* Those of acts.c. */
struct replay_body {
    unsigned by;
    uint64_t from;
    uint64_t to;
    pawl_view since;
    pawl_view until;
};
struct trace_query {
    pawl_view id;
    pawl_view pipeline;
    bool no_source;
};
struct trace_answer {
    const pawl_trace_step *steps;
    size_t count;
    uint64_t skipped;
};
extern const struct pawl__record pawl__serve_replay_record;
extern const struct pawl__record pawl__serve_trace_query_record;
extern const struct pawl__record pawl__serve_trace_record;

extern const struct pawl__record pawl__serve_new_pipeline_record; /* only describes it */
extern const struct pawl__record pawl__serve_posted_events_record;
extern const struct pawl__record pawl__serve_drain_record;
extern const struct pawl__record pawl__serve_decision_record;
extern const struct pawl__record pawl__serve_bulk_record;
extern const struct pawl__record pawl__serve_sql_record;

/* --- answers --- */

struct posted_result {
    unsigned result;
};
struct posted_answer {
    const struct posted_result *results;
    size_t count;
};
struct pipeline_removed {
    pawl_view name;
    bool removed;
};
struct failed_counted {
    uint64_t count;
};
struct pipeline_change {
    bool removed;
    const pawl_pipeline_status *pipeline;
};
struct delivery_health {
    uint64_t pipelines;
    uint64_t pipelines_running;
    uint64_t pipelines_failed;
    uint64_t events_pending;
};
struct sql_answer {
    const pawl_view *columns;
    size_t column_count;
    pawl_view rows;
    bool truncated;
};
extern const struct pawl__record pawl__serve_posted_record;
extern const struct pawl__record pawl__serve_pipeline_page_record;
extern const struct pawl__record pawl__serve_pipeline_removed_record;
extern const struct pawl__record pawl__serve_pipeline_change_record;
extern const struct pawl__record pawl__serve_wal_page_record;
extern const struct pawl__record pawl__serve_failed_page_record;
extern const struct pawl__record pawl__serve_failed_counted_record;
extern const struct pawl__record pawl__serve_delivery_health_record;
extern const struct pawl__record pawl__serve_sql_answer_record;

#endif
