/* Shared by the verbs of `pawl work` and `pawl idem`: the store, values of flags, and how they print items,
 * checkpoints and tasks. */
#ifndef PAWL_CLI_WORK_WORK_H
#define PAWL_CLI_WORK_WORK_H

#include <pawl/work.h>

#include "base/core/macros.h"
#include "base/json/object.h"
#include "cli/frame/command.h"
#include "cli/frame/run.h"
#include "config/settings.h"

struct pawl__record; /* base/record/record.h */

extern const struct pawl__cli_command pawl__cli_cmd_work_cancel;
extern const struct pawl__cli_command pawl__cli_cmd_work_checkpoint;
extern const struct pawl__cli_command pawl__cli_cmd_work_claim;
extern const struct pawl__cli_command pawl__cli_cmd_work_complete;
extern const struct pawl__cli_command pawl__cli_cmd_work_fail;
extern const struct pawl__cli_command pawl__cli_cmd_work_heartbeat;
extern const struct pawl__cli_command pawl__cli_cmd_work_list;
extern const struct pawl__cli_command pawl__cli_cmd_work_recover;
extern const struct pawl__cli_command pawl__cli_cmd_work_release;
extern const struct pawl__cli_command pawl__cli_cmd_work_retention;
extern const struct pawl__cli_command pawl__cli_cmd_work_run;
extern const struct pawl__cli_command pawl__cli_cmd_work_schedule;
extern const struct pawl__cli_command pawl__cli_cmd_work_show;
extern const struct pawl__cli_command pawl__cli_cmd_work_stats;
extern const struct pawl__cli_command pawl__cli_cmd_work_submit;
extern const struct pawl__cli_command pawl__cli_cmd_work_sweep;
extern const struct pawl__cli_command pawl__cli_cmd_work_task;

DEFINE_AUTO(pawl_item *, pawl_item_free)
DEFINE_AUTO(pawl_task *, pawl_task_free)
DEFINE_AUTO(pawl_checkpoint *, pawl_checkpoint_free)
DEFINE_AUTO(pawl_recovery *, pawl_recovery_free)
DEFINE_AUTO(pawl_claimed *, pawl_claimed_free)
DEFINE_AUTO(pawl_idem *, pawl_idem_free)

/* --- open.c --- */

enum { WORK_DATA_BYTES_MAX = 1 << 20 }; /* of one value; the library's own default */

/* Of `pawl work` and of `pawl idem`. */
#define WORK_FLAG                                                   \
    FLAG("work",                                                    \
         "LOCATION",                                                \
         "Which work store: a path, sqlite:PATH or postgres://...", \
         .kind = VALUE_FILE)
#define WORK_WHERE                                                                              \
    "The store is the one of --work: a path, sqlite:PATH, or postgres://USER@HOST/DB. Without " \
    "it, it is work.sqlite in the directory of --data; without that, the database of "          \
    "DATABASE_URL; and without that, work.sqlite in the data directory of the settings."

enum pawl__cli_work_access {
    WORK_THAT_EXISTS,
    WORK_TO_CREATE, /* also a new one, with its data directory */
};

/* Opens what --work, --data or the settings say, in this order. */
PAWL_MUST_USE pawl_status pawl__cli_work_open(const struct pawl__cli_run *run,
                                              enum pawl__cli_work_access access,
                                              pawl_work **ret_work,
                                              pawl_error *reterr);

/* A setting that is a duration. */
int64_t pawl__cli_work_setting_ms(const struct pawl__cli_run *run, enum pawl__setting_id id);

/* What the settings say of a store. */
pawl_work_options pawl__cli_work_options(const struct pawl__cli_run *run);

/* For a command that waits only so long: a store that does not answer is noticed within half of it,
 * a second at the least. 0: as the settings say. */
void pawl__cli_work_bound_answer(pawl_work_options *options, int64_t wait_ms);

/* The same with options of the caller's, but for must_exist. */
PAWL_MUST_USE pawl_status pawl__cli_work_open_with(const struct pawl__cli_run *run,
                                                   enum pawl__cli_work_access access,
                                                   pawl_work_options *options,
                                                   pawl_work **ret_work,
                                                   pawl_error *reterr);

/* For AUTO. */
void pawl__cli_work_close_p(pawl_work **work);

/* NOT_FOUND when there is no such task: a name that was misspelt is not an empty task. An empty
 * view is no name, and fine. */
PAWL_MUST_USE pawl_status pawl__cli_work_check_task(pawl_work *work,
                                                    pawl_view task_id,
                                                    pawl_error *reterr);

/* The value of a flag and an operand as views; empty when they are not given. */
static inline pawl_view pawl__cli_work_value(const struct pawl__cli_run *run, const char *flag)
{
    return pawl_view_of(pawl__cli_args_value(run->args, flag));
}

static inline pawl_view pawl__cli_work_operand(const struct pawl__cli_run *run, size_t index)
{
    return pawl_view_of(pawl__cli_args_operand(run->args, index));
}

#define WORK_TIME_MS_MAX (INT64_C(7) * 86400000) /* of leases and what belongs to them: a week */

/* A flag with a duration in milliseconds, from `min_ms` to `max_ms`; left alone when it is not
 * given. */
PAWL_MUST_USE pawl_status pawl__cli_work_ms(const struct pawl__cli_run *run,
                                            const char *flag,
                                            int64_t min_ms,
                                            int64_t max_ms,
                                            int64_t *ret_ms,
                                            pawl_error *reterr);

/* The values of --type. */
enum { WORK_TYPES_MAX = 100 };
PAWL_MUST_USE pawl_status pawl__cli_work_types(const struct pawl__cli_run *run,
                                               pawl_view ret_types[WORK_TYPES_MAX],
                                               size_t *ret_count,
                                               pawl_error *reterr);

/* A flag with a JSON value, @FILE or -, checked; NULL when it is not given. malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_work_json(const struct pawl__cli_run *run,
                                              const char *flag,
                                              char **ret_json,
                                              pawl_error *reterr);

/* Of the verbs that make items. */
#define WORK_PRIORITY_FLAG              \
    NUMBER_FLAG("priority",             \
                "N",                    \
                PAWL_WORK_PRIORITY_MIN, \
                PAWL_WORK_PRIORITY_MAX, \
                "Higher ones first.",   \
                .fallback = "0")
#define WORK_RETRIES_FLAG \
    NUMBER_FLAG(          \
        "retries", "N", 0, PAWL_WORK_RETRIES_MAX, "Retries after the first try.", .fallback = "3")

/* The lease that the operand ID and --token name. */
#define WORK_TOKEN_FLAG \
    NUMBER_FLAG("token", "N", 1, INT64_MAX, "The token that the claim gave.", .required = true)
#define WORK_ID_OPERAND                        \
    {                                          \
        .name = "ID", .help = "The item's id." \
    }
pawl_lease pawl__cli_work_lease(const struct pawl__cli_run *run);

/* --- print.c --- */

/* The flags' choices allow no other names. */
pawl_item_status pawl__cli_item_status_named(const char *name);
pawl_task_status pawl__cli_task_status_named(const char *name);
pawl_checkpoint_type pawl__cli_checkpoint_type_named(const char *name);

#define ITEM_STATUSES CHOICES("pending", "in_progress", "completed", "failed", "expired", "waiting")
#define TASK_STATUSES CHOICES("pending", "running", "succeeded", "failed", "cancelled")
#define CHECKPOINT_TYPES         \
    CHOICES("iteration_start",   \
            "iteration_end",     \
            "tool_executed",     \
            "llm_response",      \
            "approval_point",    \
            "state_transition",  \
            "manual_checkpoint", \
            "error_boundary")

/* A line of JSON, made harmless for a terminal. */
PAWL_MUST_USE pawl_status pawl__cli_work_print_line(const struct pawl__cli_run *run,
                                                    const struct pawl__buf *line,
                                                    pawl_error *reterr);

/* Cells for tables. */
struct pawl__cell pawl__cli_cell_of(pawl_view text); /* empty: no value */
/* A stored JSON value as it is; foreign SQL may have stored something else, which is then text. */
struct pawl__cell pawl__cli_cell_value(pawl_view json);
#define WORK_TIME_SIZE PAWL__TIME_SIZE
struct pawl__cell pawl__cli_cell_time(int64_t us, char ret_text[WORK_TIME_SIZE]); /* 0: no value */

/* Rows that callbacks add: a table for people, objects with --json. It ends at the first failure. */
struct pawl__cli_rows {
    const struct pawl__cli_run *run;
    struct pawl__table table;
    const struct pawl__record *record; /* NULL: rows are made of cells */
    struct pawl__buf line;
    char *json;
    size_t json_len;
    pawl_status status;
    pawl_error *reterr;
};
void pawl__cli_rows_start(struct pawl__cli_rows *rows,
                          const struct pawl__cli_run *run,
                          const struct pawl__column *columns,
                          size_t count,
                          pawl_error *reterr);
void pawl__cli_rows_done(struct pawl__cli_rows *rows);
bool pawl__cli_rows_add(struct pawl__cli_rows *rows,
                        const struct pawl__cell *cells);   /* not with --json */
bool pawl__cli_rows_add_line(struct pawl__cli_rows *rows); /* prints and empties rows->line */
/* For a call that returns JSON into rows->json and rows->json_len, and its status. */
bool pawl__cli_rows_add_json(struct pawl__cli_rows *rows, pawl_status status);
/* `status` is the walk's own: the rows' failure comes first. */
PAWL_MUST_USE pawl_status pawl__cli_rows_end(struct pawl__cli_rows *rows, pawl_status status);

/* Rows of records whose fields have the names of the columns, and visits that add one; the context is the
 * rows. */
void pawl__cli_rows_start_records(struct pawl__cli_rows *rows,
                                  const struct pawl__cli_run *run,
                                  const struct pawl__record *record,
                                  const struct pawl__column *columns,
                                  size_t count,
                                  pawl_error *reterr);
bool pawl__cli_rows_add_record(struct pawl__cli_rows *rows, const void *value);
bool pawl__cli_item_row(void *context, const pawl_item *item);
bool pawl__cli_checkpoint_row(void *context, const pawl_checkpoint *checkpoint);

/* Prints one object: JSON with --json, else a table of one row. */
struct pawl__cli_field {
    const char *name;
    bool whole; /* as of a pawl__column */
    struct pawl__cell cell;
};
#define ANSWER(...) ((const struct pawl__cli_field[]){ __VA_ARGS__, { .name = NULL } })
PAWL_MUST_USE pawl_status pawl__cli_work_answer(const struct pawl__cli_run *run,
                                                const struct pawl__cli_field *fields,
                                                pawl_error *reterr);

#endif
