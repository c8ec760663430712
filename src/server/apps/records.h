/* Records of the routes of applications. */
#ifndef PAWL_SERVER_APPS_RECORDS_H
#define PAWL_SERVER_APPS_RECORDS_H

#include <pawl/sequencer.h>

#include "base/record/record.h"

struct partition_row {
    uint64_t partition;
    uint64_t log_end;
    pawl_sequencer_status of;
    const char *last_error;      /* the word only: the message may name files... */
    pawl_view last_error_detail; /* ...and is for whoever has those: through the socket alone */
};

/* What became of a command of a batch: a response, or why there is none. */
struct command_outcome {
    pawl_view response; /* JSON */
    pawl_view code;
    pawl_view reason;
    pawl_view detail;
    bool advised;
};

struct apps_health {
    uint64_t apps;
};

extern const struct pawl__record pawl__serve_sequence_record;
extern const struct pawl__record pawl__serve_kind_record;
extern const struct pawl__record pawl__serve_descriptor_record;
extern const struct pawl__record pawl__serve_app_list_record;
extern const struct pawl__record pawl__serve_create_record;
extern const struct pawl__record pawl__serve_update_record;
extern const struct pawl__record pawl__serve_command_record;
extern const struct pawl__record pawl__serve_number_record;
extern const struct pawl__record pawl__serve_response_record;
extern const struct pawl__record pawl__serve_record_record;
extern const struct pawl__record pawl__serve_batch_request_record;
extern const struct pawl__record pawl__serve_outcome_record;
extern const struct pawl__record pawl__serve_batch_record;
extern const struct pawl__record pawl__serve_event_record_record;
extern const struct pawl__record pawl__serve_event_record;
extern const struct pawl__record pawl__serve_record_page_record;
extern const struct pawl__record pawl__serve_event_page_record;
extern const struct pawl__record pawl__serve_partition_record;
extern const struct pawl__record pawl__serve_seq_record;
extern const struct pawl__record pawl__serve_apps_health_record;

#endif
