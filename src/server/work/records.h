/* What requests of the work store say, and what is answered: the records of its routes. */
#ifndef PAWL_SERVER_WORK_RECORDS_H
#define PAWL_SERVER_WORK_RECORDS_H

#include "records/work.h"

enum {
    WORK_CLAIM_TYPES_MAX = 100,
    WORK_CLAIM_COUNT_MAX = 1000,
};
#define WORK_MS_MAX (INT64_C(7) * 86400000) /* of a lease, and of a wait: a week */
#define WORK_DELAY_MS_MAX (INT64_C(36500) * 86400000)

/* --- addresses --- */

struct item_path {
    pawl_view item;
};
struct task_path {
    pawl_view task;
};
struct task_list {
    pawl_view from;
    uint64_t limit;
    unsigned status; /* FIELD_ENUM_NONE: any */
};
struct item_list {
    pawl_view from;
    uint64_t limit;
    unsigned status; /* FIELD_ENUM_NONE: any */
    pawl_view task;
    pawl_view type;
};
struct change_list {
    pawl_view from;
    pawl_view status;
    pawl_view task;
    pawl_view type;
};
struct checkpoint_list {
    pawl_view task;
    uint64_t from;
    uint64_t limit;
    unsigned type; /* FIELD_ENUM_NONE: any */
};
struct checkpoint_latest {
    pawl_view task;
    unsigned type; /* FIELD_ENUM_NONE: any */
};
extern const struct pawl__record pawl__serve_item_path_record;
extern const struct pawl__record pawl__serve_task_path_record;
extern const struct pawl__record pawl__serve_task_list_record;
extern const struct pawl__record pawl__serve_item_list_record;
extern const struct pawl__record pawl__serve_change_list_record;
extern const struct pawl__record pawl__serve_checkpoint_list_record;
extern const struct pawl__record pawl__serve_checkpoint_latest_record;

/* --- bodies --- */

struct new_task {
    pawl_view task_id;
    pawl_view title;
    pawl_view metadata;
};
struct submission_batch {
    const pawl_submission *items;
    size_t count;
};
struct claim_body {
    pawl_view holder;
    pawl_view task;
    const pawl_view *types;
    size_t type_count;
    int64_t count;
    int64_t lease_ms; /* 0: that of the store */
    int64_t wait_ms;
};
struct heartbeat_body {
    uint64_t token;
    int64_t lease_ms; /* 0: that of the store */
};
struct complete_body {
    uint64_t token;
    pawl_view output_data;
};
struct fail_body {
    uint64_t token;
    pawl_view error_message;
    pawl_view output_data;
    bool permanent;
};
struct release_body {
    uint64_t token;
};
struct new_checkpoint {
    pawl_view checkpoint_id;
    pawl_checkpoint_type type;
    pawl_view snapshot_data;
    pawl_view metadata;
    pawl_view work_item_id;
    uint64_t token; /* 0: no lease is shown */
    pawl_view evidence;
};
extern const struct pawl__record pawl__serve_new_task_record;
extern const struct pawl__record pawl__serve_submission_record;
extern const struct pawl__record pawl__serve_submission_batch_record;
extern const struct pawl__record pawl__serve_claim_record;
extern const struct pawl__record pawl__serve_heartbeat_record;
extern const struct pawl__record pawl__serve_complete_record;
extern const struct pawl__record pawl__serve_fail_record;
extern const struct pawl__record pawl__serve_release_record;
extern const struct pawl__record pawl__serve_new_checkpoint_record;

/* --- answers --- */

struct submit_answer {
    const pawl_submit_result *items;
    size_t count;
};
struct item_status {
    pawl_view work_item_id;
    pawl_item_status status;
};
struct lease_end {
    pawl_view work_item_id;
    int64_t expires_at_us;
};
struct task_cancelled {
    pawl_view task_id;
    uint64_t failed_items;
};
struct checkpoint_added {
    pawl_view checkpoint_id;
    int64_t sequence_number;
};
struct work_stats {
    pawl_work_stats of;
    const pawl_type_stats *types;
    size_t type_count;
    const pawl_checkpoint_growth *tasks;
    size_t task_count;
};
extern const struct pawl__record pawl__serve_submitted_record;
extern const struct pawl__record pawl__serve_submit_record;
extern const struct pawl__record pawl__serve_claimed_record;
extern const struct pawl__record pawl__serve_item_detail_record;
extern const struct pawl__record pawl__serve_item_status_record;
extern const struct pawl__record pawl__serve_lease_record;
extern const struct pawl__record pawl__serve_task_cancelled_record;
extern const struct pawl__record pawl__serve_checkpoint_added_record;
extern const struct pawl__record pawl__serve_cached_answer_record;
extern const struct pawl__record pawl__serve_recovery_record;
extern const struct pawl__record pawl__serve_type_stats_record;
extern const struct pawl__record pawl__serve_growth_record;
extern const struct pawl__record pawl__serve_stats_record;
extern const struct pawl__record pawl__serve_task_page_record;
extern const struct pawl__record pawl__serve_item_page_record;
extern const struct pawl__record pawl__serve_checkpoint_page_record;

#endif
