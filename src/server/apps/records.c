/* What requests of applications say, and what is answered: the records of their routes.
 *
 * Descriptors, commands, responses, records and events are read and written by <pawl/app.h>; their tables here describe
 * them. */
#include "server/apps/records.h"
#include "base/core/macros.h"
#include "server/apps/apps.h"
#include "server/page.h"

/* --- paths --- */

#define APP_FIELD(type)                                                  \
    {                                                                    \
        FIELD(type, app, FIELD_TEXT), .about = "The application's name." \
    }
#define WSID_FIELD(type)                                                          \
    {                                                                             \
        FIELD(type, wsid, FIELD_UINT64), .min = 1, .max = PAWL_APP_WORKSPACE_MAX, \
                                         .about = "The workspace's id."           \
    }
#define FROM_FIELD(type)                                                                      \
    {                                                                                         \
        FIELD(type, from, FIELD_UINT64), .min = 0, .max = INT64_MAX, .about = PAGE_FROM_ABOUT \
    }

static const struct pawl__field app_path_fields[] = { APP_FIELD(struct app_path) };
const struct pawl__record pawl__serve_app_path_record =
    RECORD("AppPath", struct app_path, app_path_fields);

static const struct pawl__field workspace_path_fields[] = {
    APP_FIELD(struct workspace_path),
    WSID_FIELD(struct workspace_path),
};
const struct pawl__record pawl__serve_workspace_path_record =
    RECORD("WorkspacePath", struct workspace_path, workspace_path_fields);

static const struct pawl__field record_path_fields[] = {
    APP_FIELD(struct record_path),
    WSID_FIELD(struct record_path),
    { FIELD(struct record_path, id, FIELD_UINT64),
      .min = 1,
      .max = PAWL_APP_C_ID_MAX,
      .about = "The record's id." },
};
const struct pawl__record pawl__serve_record_path_record =
    RECORD("RecordPath", struct record_path, record_path_fields);

static const struct workspace_page workspace_page = { .limit = PAGE_LIMIT_DEFAULT };
static const struct pawl__field workspace_page_fields[] = {
    APP_FIELD(struct workspace_page),
    WSID_FIELD(struct workspace_page),
    FROM_FIELD(struct workspace_page),
    PAGE_LIMIT_FIELD(struct workspace_page),
};
const struct pawl__record pawl__serve_workspace_page_record =
    RECORD_FROM("WorkspacePage", struct workspace_page, workspace_page_fields, &workspace_page);

static const struct partition_page partition_page = { .limit = PAGE_LIMIT_DEFAULT };
static const struct pawl__field partition_page_fields[] = {
    APP_FIELD(struct partition_page),
    { FIELD(struct partition_page, p, FIELD_UINT64),
      .min = 0,
      .max = PAWL_APP_PARTITIONS_MAX - 1,
      .about = "The partition's number." },
    FROM_FIELD(struct partition_page),
    PAGE_LIMIT_FIELD(struct partition_page),
};
const struct pawl__record pawl__serve_partition_page_record =
    RECORD_FROM("PartitionPage", struct partition_page, partition_page_fields, &partition_page);

/* --- descriptors --- */

struct sequence_shape {
    uint64_t id;
    uint64_t initial;
    pawl_view name;
};
static const struct pawl__field sequence_fields[] = {
    { FIELD(struct sequence_shape, id, FIELD_UINT64),
      .flags = FIELD_REQUIRED,
      .min = PAWL_APP_SEQ_OWN_MIN,
      .max = UINT16_MAX },
    { FIELD(struct sequence_shape, initial, FIELD_UINT64),
      .min = 1,
      .max = PAWL_APP_C_ID_MAX,
      .about = "Its first number." },
    { FIELD(struct sequence_shape, name, FIELD_TEXT),
      .flags = FIELD_REQUIRED | FIELD_SET,
      .max = PAWL_APP_NAME_BYTES_MAX },
};
const struct pawl__record pawl__serve_sequence_record =
    RECORD("Sequence", struct sequence_shape, sequence_fields);

struct kind_shape {
    uint64_t id;
    pawl_view name;
    const struct sequence_shape *sequences;
    size_t sequence_count;
};
static const struct pawl__field kind_fields[] = {
    { FIELD(struct kind_shape, id, FIELD_UINT64),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = UINT16_MAX },
    { FIELD(struct kind_shape, name, FIELD_TEXT),
      .flags = FIELD_REQUIRED | FIELD_SET,
      .max = PAWL_APP_NAME_BYTES_MAX },
    { FIELD(struct kind_shape, sequences, FIELD_RECORDS),
      .record = &pawl__serve_sequence_record,
      .count_offset = offsetof(struct kind_shape, sequence_count),
      .about = "Numbers of the application's own." },
};
const struct pawl__record pawl__serve_kind_record =
    RECORD("WorkspaceKind", struct kind_shape, kind_fields);

struct descriptor_shape {
    uint64_t id;
    const struct kind_shape *kinds;
    size_t kind_count;
    pawl_view name;
    uint64_t partitions;
    uint64_t trust;
};
static const struct descriptor_shape descriptor_start = { .partitions = 1 };
static const struct pawl__field descriptor_fields[] = {
    { FIELD(struct descriptor_shape, id, FIELD_UINT64),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = UINT32_MAX },
    { FIELD(struct descriptor_shape, kinds, FIELD_RECORDS),
      .flags = FIELD_REQUIRED,
      .record = &pawl__serve_kind_record,
      .count_offset = offsetof(struct descriptor_shape, kind_count),
      .about = "The kinds of workspaces." },
    { FIELD(struct descriptor_shape, name, FIELD_TEXT),
      .flags = FIELD_REQUIRED | FIELD_SET,
      .max = PAWL_APP_NAME_BYTES_MAX,
      .about = "That of the address: a-z 0-9 - _" },
    { FIELD(struct descriptor_shape, partitions, FIELD_UINT64),
      .min = 1,
      .max = PAWL_APP_PARTITIONS_MAX },
    { FIELD(struct descriptor_shape, trust, FIELD_UINT64),
      .min = PAWL_APP_TRUST_0,
      .max = PAWL_APP_TRUST_2,
      .about = "How much its store is trusted to be alone: 0 checks most." },
};
const struct pawl__record pawl__serve_descriptor_record =
    RECORD_FROM("AppDescriptor", struct descriptor_shape, descriptor_fields, &descriptor_start);

struct app_list_shape {
    struct pawl__serve_page_shape page;
    const struct pawl__serve_trouble *not_open;
    size_t not_open_count;
};
static const struct pawl__field app_list_fields[] = {
    { FIELD_AS("items", struct app_list_shape, page.items, FIELD_RECORDS),
      .record = &pawl__serve_descriptor_record,
      .count_offset = offsetof(struct app_list_shape, page.count) },
    { FIELD_AS("next", struct app_list_shape, page.next, FIELD_TEXT) },
    { FIELD(struct app_list_shape, not_open, FIELD_RECORDS),
      .record = &pawl__serve_trouble_record,
      .count_offset = offsetof(struct app_list_shape, not_open_count),
      .about = "Applications that are not open, and why." },
};
const struct pawl__record pawl__serve_app_list_record =
    RECORD("AppList", struct app_list_shape, app_list_fields);

/* --- commands --- */

static const char *const class_names[] = { "singleton", "c", "o", "w", NULL };

struct create_shape {
    pawl_app_class record_class;
    uint64_t raw_id;
    uint64_t id;
    pawl_view table;
    pawl_view data;
};
static const struct pawl__field create_fields[] = {
    { FIELD_AS("class", struct create_shape, record_class, FIELD_ENUM),
      .flags = FIELD_REQUIRED,
      .names = class_names },
    { FIELD(struct create_shape, raw_id, FIELD_UINT64),
      .min = 1,
      .max = PAWL_APP_RAW_ID_MAX,
      .about = "What this command calls the record." },
    { FIELD(struct create_shape, id, FIELD_UINT64), .about = "Of a singleton." },
    { FIELD(struct create_shape, table, FIELD_TEXT),
      .flags = FIELD_REQUIRED,
      .max = PAWL_APP_NAME_BYTES_MAX },
    { FIELD(struct create_shape, data, FIELD_JSON),
      .flags = FIELD_REQUIRED | FIELD_OBJECT,
      .about = "Of any keys. {\"$raw\": N} stands for the id of the record that the same command "
               "creates as N, {\"$next\": \"NAME\"} for the next number of a sequence." },
};
const struct pawl__record pawl__serve_create_record =
    RECORD("RecordCreate", struct create_shape, create_fields);

struct update_shape {
    uint64_t id;
    pawl_view data;
};
static const struct pawl__field update_fields[] = {
    { FIELD(struct update_shape, id, FIELD_UINT64),
      .flags = FIELD_REQUIRED,
      .min = 1,
      .max = PAWL_APP_C_ID_MAX },
    { FIELD(struct update_shape, data, FIELD_JSON), .flags = FIELD_REQUIRED | FIELD_OBJECT },
};
const struct pawl__record pawl__serve_update_record =
    RECORD("RecordUpdate", struct update_shape, update_fields);

struct command_shape {
    uint64_t workspace;
    pawl_view kind;
    pawl_view key;
    const struct create_shape *creates;
    size_t create_count;
    const struct update_shape *updates;
    size_t update_count;
};
static const struct pawl__field command_fields[] = {
    { FIELD(struct command_shape, workspace, FIELD_UINT64),
      .min = 1,
      .max = PAWL_APP_WORKSPACE_MAX,
      .about = "The same as in the address, or left out." },
    { FIELD(struct command_shape, kind, FIELD_TEXT), .flags = FIELD_REQUIRED },
    { FIELD(struct command_shape, key, FIELD_TEXT),
      .max = PAWL_APP_KEY_BYTES_MAX,
      .about = "Idempotency key, unique in the workspace; the header does the same." },
    { FIELD(struct command_shape, creates, FIELD_RECORDS),
      .record = &pawl__serve_create_record,
      .count_offset = offsetof(struct command_shape, create_count) },
    { FIELD(struct command_shape, updates, FIELD_RECORDS),
      .record = &pawl__serve_update_record,
      .count_offset = offsetof(struct command_shape, update_count) },
};
const struct pawl__record pawl__serve_command_record =
    RECORD("Command", struct command_shape, command_fields);

struct number_shape {
    pawl_view sequence;
    uint64_t number;
};
static const struct pawl__field number_fields[] = {
    { FIELD(struct number_shape, sequence, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct number_shape, number, FIELD_UINT64) },
};
const struct pawl__record pawl__serve_number_record =
    RECORD("SequenceNumber", struct number_shape, number_fields);

struct response_shape {
    uint64_t partition;
    uint64_t plog_offset;
    uint64_t wlog_offset;
    bool duplicate;
    pawl_view ids;
    const struct number_shape *numbers;
    size_t number_count;
};
static const struct pawl__field response_fields[] = {
    { FIELD(struct response_shape, partition, FIELD_UINT64) },
    { FIELD(struct response_shape, plog_offset, FIELD_UINT64) },
    { FIELD(struct response_shape, wlog_offset, FIELD_UINT64) },
    { FIELD(struct response_shape, duplicate, FIELD_BOOL),
      .about = "The key was used before by the same command: this is its response." },
    { FIELD(struct response_shape, ids, FIELD_JSON),
      .flags = FIELD_OBJECT | FIELD_SET,
      .about = "Ids of the records that were created, by raw id." },
    { FIELD(struct response_shape, numbers, FIELD_RECORDS),
      .record = &pawl__serve_number_record,
      .count_offset = offsetof(struct response_shape, number_count),
      .about = "For each $next, in order." },
};
const struct pawl__record pawl__serve_response_record =
    RECORD("CommandResponse", struct response_shape, response_fields);

struct batch_shape {
    const struct command_shape *commands;
    size_t command_count;
};
static const struct pawl__field batch_request_fields[] = {
    { FIELD(struct batch_shape, commands, FIELD_RECORDS),
      .flags = FIELD_REQUIRED,
      .record = &pawl__serve_command_record,
      .count_offset = offsetof(struct batch_shape, command_count),
      .about = "Up to 256, each with its workspace." },
};
const struct pawl__record pawl__serve_batch_request_record =
    RECORD("CommandBatch", struct batch_shape, batch_request_fields);

static const struct pawl__field outcome_fields[] = {
    { FIELD(struct command_outcome, response, FIELD_JSON),
      .about = "As of a single command; null when it failed." },
    { FIELD(struct command_outcome, code, FIELD_TEXT), .about = "Why it failed." },
    { FIELD(struct command_outcome, reason, FIELD_TEXT),
      .about = "More exactly, where there is more to tell: KEY_REUSED, UNKNOWN_KIND." },
    { FIELD(struct command_outcome, detail, FIELD_TEXT), .about = "The same for people." },
    { FIELD(struct command_outcome, advised, FIELD_BOOL),
      .about = "Whether the detail ends with what to do." },
};
const struct pawl__record pawl__serve_outcome_record =
    RECORD("CommandOutcome", struct command_outcome, outcome_fields);
static const struct pawl__field batch_fields[] = PAGE_FIELDS(&pawl__serve_outcome_record);
const struct pawl__record pawl__serve_batch_record =
    RECORD("CommandOutcomes", struct pawl__serve_page_shape, batch_fields);

/* --- records and events --- */

struct record_shape {
    uint64_t id;
    pawl_app_class record_class;
    pawl_view table;
    bool update;
    pawl_view data;
};
#define RECORD_ID_FIELDS                                                    \
    { FIELD(struct record_shape, id, FIELD_UINT64) },                       \
        { FIELD_AS("class", struct record_shape, record_class, FIELD_ENUM), \
          .names = class_names },                                           \
    {                                                                       \
        FIELD(struct record_shape, table, FIELD_TEXT), .flags = FIELD_SET   \
    }
#define RECORD_DATA_FIELD                                                               \
    {                                                                                   \
        FIELD(struct record_shape, data, FIELD_JSON), .flags = FIELD_OBJECT | FIELD_SET \
    }

static const struct pawl__field record_fields[] = { RECORD_ID_FIELDS, RECORD_DATA_FIELD };
const struct pawl__record pawl__serve_record_record =
    RECORD("AppRecord", struct record_shape, record_fields);

static const struct pawl__field event_record_fields[] = {
    RECORD_ID_FIELDS,
    { FIELD(struct record_shape, update, FIELD_BOOL), .about = "It was there before." },
    RECORD_DATA_FIELD,
};
const struct pawl__record pawl__serve_event_record_record =
    RECORD("EventRecord", struct record_shape, event_record_fields);

struct event_shape {
    uint64_t plog_offset;
    uint64_t wlog_offset;
    uint64_t workspace;
    pawl_view kind;
    pawl_view key;
    const struct record_shape *records;
    size_t record_count;
    const struct number_shape *numbers;
    size_t number_count;
};
static const struct pawl__field event_fields[] = {
    { FIELD(struct event_shape, plog_offset, FIELD_UINT64) },
    { FIELD(struct event_shape, wlog_offset, FIELD_UINT64) },
    { FIELD(struct event_shape, workspace, FIELD_UINT64) },
    { FIELD(struct event_shape, kind, FIELD_TEXT), .flags = FIELD_SET },
    { FIELD(struct event_shape, key, FIELD_TEXT), .flags = FIELD_OMITTED },
    { FIELD(struct event_shape, records, FIELD_RECORDS),
      .record = &pawl__serve_event_record_record,
      .count_offset = offsetof(struct event_shape, record_count) },
    { FIELD(struct event_shape, numbers, FIELD_RECORDS),
      .record = &pawl__serve_number_record,
      .count_offset = offsetof(struct event_shape, number_count) },
};
const struct pawl__record pawl__serve_event_record =
    RECORD("AppEvent", struct event_shape, event_fields);

static const struct pawl__field record_page_fields[] = PAGE_FIELDS(&pawl__serve_record_record);
const struct pawl__record pawl__serve_record_page_record =
    RECORD("AppRecordPage", struct pawl__serve_page_shape, record_page_fields);
static const struct pawl__field event_page_fields[] = PAGE_FIELDS(&pawl__serve_event_record);
const struct pawl__record pawl__serve_event_page_record =
    RECORD("AppEventPage", struct pawl__serve_page_shape, event_page_fields);

/* --- sequences --- */

static const struct pawl__field partition_fields[] = {
    { FIELD(struct partition_row, partition, FIELD_UINT64) },
    { FIELD(struct partition_row, log_end, FIELD_UINT64), .about = "Offset after the last event." },
    { FIELD_AS("next_offset", struct partition_row, of.next_offset, FIELD_UINT64) },
    { FIELD_AS("stored_offset", struct partition_row, of.stored_offset, FIELD_UINT64) },
    { FIELD_AS("unflushed", struct partition_row, of.unflushed, FIELD_UINT64),
      .about = "Numbers that wait to be written." },
    { FIELD_AS("hits", struct partition_row, of.hits, FIELD_UINT64) },
    { FIELD_AS("misses", struct partition_row, of.misses, FIELD_UINT64) },
    { FIELD_AS("actualizing", struct partition_row, of.actualizing, FIELD_BOOL) },
    { FIELD_AS("actualizations", struct partition_row, of.actualizations, FIELD_UINT64) },
    { FIELD_AS("flushes", struct partition_row, of.flushes, FIELD_UINT64) },
    { FIELD_AS("flush_failures", struct partition_row, of.flush_failures, FIELD_UINT64) },
    { FIELD(struct partition_row, last_error, FIELD_NAME) },
    { FIELD(struct partition_row, last_error_detail, FIELD_TEXT),
      .flags = FIELD_OMITTED,
      .about = "The same for people; through the socket only." },
};
const struct pawl__record pawl__serve_partition_record =
    RECORD("PartitionStatus", struct partition_row, partition_fields);
static const struct pawl__field seq_fields[] = PAGE_FIELDS(&pawl__serve_partition_record);
const struct pawl__record pawl__serve_seq_record =
    RECORD("PartitionStatusPage", struct pawl__serve_page_shape, seq_fields);

static const struct pawl__field health_fields[] = {
    { FIELD(struct apps_health, apps, FIELD_UINT64),
      .about = "Applications, those too that are not open." },
};
const struct pawl__record pawl__serve_apps_health_record =
    RECORD("AppsHealth", struct apps_health, health_fields);
