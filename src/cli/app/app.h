/* What the verbs of `pawl app` and `pawl seq` share: which application, how records and events are
 * shown. */
#ifndef PAWL_CLI_APP_APP_H
#define PAWL_CLI_APP_APP_H

#include <pawl/app.h>

#include "cli/app/remote.h"
#include "cli/frame/command.h"
#include "cli/frame/run.h"

extern const struct pawl__cli_command pawl__cli_cmd_app_create;
extern const struct pawl__cli_command pawl__cli_cmd_app_exec;
extern const struct pawl__cli_command pawl__cli_cmd_app_plog;
extern const struct pawl__cli_command pawl__cli_cmd_app_records;
extern const struct pawl__cli_command pawl__cli_cmd_app_seq;
extern const struct pawl__cli_command pawl__cli_cmd_app_wlog;
extern const struct pawl__cli_command pawl__cli_cmd_seq_rebuild;
extern const struct pawl__cli_command pawl__cli_cmd_seq_status;
extern const struct pawl__cli_command pawl__cli_cmd_seq_verify;

#define APP_OPERAND                                      \
    {                                                    \
        .name = "APP", .help = "The application's name." \
    }
#define APP_FLAG                                                  \
    FLAG("apps",                                                  \
         "LOCATION",                                              \
         "Where applications are: a directory or postgres://...", \
         .kind = VALUE_FILE)
#define APP_WHERE                                                                             \
    "Applications are where --apps says: in a directory, each in one of its own, or in a "    \
    "database, postgres://USER@HOST/DB. Without it, they are in apps/ in the directory of "   \
    "--data; without that, in the PostgreSQL database of DATABASE_URL; and without that, in " \
    "apps/ in the data directory of the settings. One process at a time has an application."
#define APP_BESIDE_NODE                                                                  \
    " While a node ('pawl serve') runs, this command asks the node, through the socket " \
    "pawl.sock in its data directory."
#define APP_WORKSPACE_FLAG \
    NUMBER_FLAG("workspace", "N", 1, INT64_MAX, "The workspace.", .required = true)
#define APP_ONE_WORKSPACE_FLAG NUMBER_FLAG("workspace", "N", 1, INT64_MAX, "Of this workspace.")
#define APP_FROM_FLAG(what) NUMBER_FLAG("from", "N", 0, INT64_MAX, what, .fallback = "0")
#define APP_LIMIT_FLAG \
    NUMBER_FLAG("limit", "N", 0, INT64_MAX, "Up to this many; 0 is all.", .fallback = "0")

/* An application that the examples may use. */
#define APP_EXAMPLE_CREATE                                       \
    "pawl app create --data ./data --descriptor "                \
    "'{\"name\": \"orders\", \"id\": 1, \"kinds\": [{\"name\": " \
    "\"shop\", \"id\": 1}]}'"
#define APP_EXAMPLE_EXEC                                     \
    "pawl app exec --data ./data orders --command "          \
    "'{\"workspace\": 7, \"kind\": \"shop\", \"creates\": [" \
    "{\"class\": \"c\", \"raw_id\": 1, \"table\": \"order\", \"data\": {}}]}'"

/* An example that runs, after the application and a command of it were made. */
#define APP_EXAMPLE_AFTER(command, purpose) \
    TESTED(APP_EXAMPLE_CREATE " && " APP_EXAMPLE_EXEC " && " command, purpose)

/* Where applications are, a directory or postgres://...; malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_apps_location(const struct pawl__cli_run *run,
                                                  char **ret_location,
                                                  pawl_error *reterr);

/* As pawl_app_open takes it. INVALID for a name that no application has. malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_app_location(const struct pawl__cli_run *run,
                                                 const char *name,
                                                 char **ret_location,
                                                 pawl_error *reterr);

/* What the settings say. */
pawl_app_options pawl__cli_app_options(const struct pawl__cli_run *run);

/* An application: open in this process, or in a node that is asked. One of the two. */
struct pawl__cli_app {
    pawl_app *local;
    struct pawl__cli_remote *remote;
    struct pawl__clock *clock;
};
void pawl__cli_app_done(struct pawl__cli_app *app); /* for AUTO, too */

/* Opens the application that the operand APP names, with these options; or finds the node that has it. Either is
 * waited for as long as the settings say: a node may be starting or stopping. */
PAWL_MUST_USE pawl_status pawl__cli_app_open_with(const struct pawl__cli_run *run,
                                                  const pawl_app_options *options,
                                                  struct pawl__cli_app *ret_app,
                                                  pawl_error *reterr);

/* The same with those of the settings. A reader writes nothing, and works on a
 * full disk. */
PAWL_MUST_USE pawl_status pawl__cli_app_open_named(const struct pawl__cli_run *run,
                                                   struct pawl__cli_app *ret_app,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__cli_app_open_to_read(const struct pawl__cli_run *run,
                                                     struct pawl__cli_app *ret_app,
                                                     pawl_error *reterr);
/* Waits until the sequences are actualized; the error of a log that does not allow it. */
PAWL_MUST_USE pawl_status pawl__cli_app_await_numbers(struct pawl__cli_app *app,
                                                      pawl_error *reterr);

void pawl__cli_app_close_p(pawl_app **app); /* for AUTO */

/* One row per partition (seq.c). */
PAWL_MUST_USE pawl_status pawl__cli_seq_print_status(struct pawl__cli_run *run,
                                                     struct pawl__cli_app *app,
                                                     pawl_error *reterr);
/* pawl_app_verify, here or in the node, with a progress bar (seq_verify.c). */
PAWL_MUST_USE pawl_status pawl__cli_seq_verify_parts(const struct pawl__cli_run *run,
                                                     struct pawl__cli_app *app,
                                                     uint64_t workspace,
                                                     pawl_app_damage_visit visit,
                                                     void *context,
                                                     pawl_app_report *ret_report,
                                                     pawl_error *reterr);
/* Shows the numbers of a workspace; `prove`: and fails with CORRUPT when something is wrong (seq_numbers.c). */
PAWL_MUST_USE pawl_status pawl__cli_seq_numbers(struct pawl__cli_run *run,
                                                bool prove,
                                                pawl_error *reterr);

#define SEQ_SEQUENCE_FLAG \
    FLAG("sequence",      \
         "NAME",          \
         "Only this one: wlog_offset, c_record, ow_record or one of the application's own.")

#define SEQ_NUMBER_COLUMNS                                                                     \
    "sequence, initial (the first number), last (the last one that was used), used (how many " \
    "were), whole and findings; --json names them."

#endif
