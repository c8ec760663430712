/* What the verbs of `pawl ledger` share: which ledger, which events, how they are shown. */
#ifndef PAWL_CLI_LEDGER_LEDGER_H
#define PAWL_CLI_LEDGER_LEDGER_H

#include <pawl/ledger.h>

#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/run.h"

extern const struct pawl__cli_command pawl__cli_cmd_ledger_append;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_embed;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_export;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_import;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_prove;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_prune;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_recall;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_replay;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_restore;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_show;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_snapshot;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_stats;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_tail;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_turn;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_turns;
extern const struct pawl__cli_command pawl__cli_cmd_ledger_verify;

/* --- open.c --- */

enum pawl__cli_ledger_access {
    LEDGER_TO_READ,
    LEDGER_TO_VERIFY, /* to read, also a damaged one */
    LEDGER_TO_WRITE,  /* one that exists */
    LEDGER_TO_CREATE, /* also a new one, with its data directory; memory: is allowed */
};

/* Opens what --ledger, --data or the settings say, in this order. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_open(const struct pawl__cli_run *run,
                                                enum pawl__cli_ledger_access access,
                                                pawl_ledger **ret_ledger,
                                                pawl_error *reterr);

/* Ctrl-C ends the calls on the open ledger with CANCELLED from here on, and what they have half made is
 * removed. For long calls that report no progress; the others stop by that. */
void pawl__cli_ledger_interruptible(void);

/* Whether that is in this process only. */
bool pawl__cli_ledger_is_memory(const struct pawl__cli_run *run);

/* Where that is, as pawl_ledger_open takes it; malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_location(const struct pawl__cli_run *run,
                                                    char **ret_location,
                                                    pawl_error *reterr);

/* --dir, or the snapshots of the data directory; malloc'ed. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_snapshots(const struct pawl__cli_run *run,
                                                     char **ret_directory,
                                                     pawl_error *reterr);

/* For AUTO. */
void pawl__cli_ledger_close_p(pawl_ledger **ledger);
void pawl__cli_reader_close_p(pawl_reader **reader);
void pawl__cli_event_free_p(pawl_event **event);

/* --- filter.c --- */

/* Of the verbs that resume after an offset. */
#define LEDGER_FROM_FLAG                                                 \
    NUMBER_FLAG("from",                                                  \
                "OFFSET",                                                \
                0,                                                       \
                INT64_MAX,                                               \
                "Only offsets greater than this one, which must exist.", \
                .fallback = "0")

/* The flags of every verb that takes some of the events. */
#define LEDGER_FILTER_FLAGS                                                              \
    FLAG("run", "RUN", "Only events of this run."),                                      \
        FLAG("kind", "KIND", "Only events of this kind."),                               \
        FLAG("actor", "ACTOR", "Only events of this actor."),                            \
        FLAG("turn", "N", "Only this turn; N..M for several."),                          \
        FLAG("since", "TIME", "Only from this time on; 1h means ago."),                  \
    {                                                                                    \
        .name = "until", .value = "TIME", .help = "Only before this time; 1h means ago." \
    }

/* What those flags say. The texts are the arguments'. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_filter(const struct pawl__cli_run *run,
                                                  pawl_event_filter *ret_filter,
                                                  pawl_error *reterr);

/* A time as people write it: RFC 3339, or how long ago. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_time(const struct pawl__cli_run *run,
                                                const char *flag,
                                                const char *text,
                                                int64_t *ret_us,
                                                pawl_error *reterr);

/* OFFSET:HASH, as `stats` and `verify` print it. */
#define LEDGER_HEAD_SIZE 96
PAWL_MUST_USE pawl_status pawl__cli_ledger_head_parse(const char *flag,
                                                      const char *text,
                                                      pawl_ledger_head *ret_head,
                                                      pawl_error *reterr);
void pawl__cli_ledger_head_text(const pawl_ledger_head *head, char ret_text[LEDGER_HEAD_SIZE]);

/* How most examples begin. */
#define LEDGER_EXAMPLE_APPEND                                                                  \
    "pawl ledger append --data ./data --id e-1 --run village --turn 1 --kind say --actor ada " \
    "--payload '\"hello\"' && "

/* --- print.c --- */

/* Prints a value as a line of JSON, and frees it. NOMEM when it is NULL. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_print_row(json_t *row, pawl_error *reterr);

/* Prints an event as a line: JSON with --json or into a pipe, otherwise one that fits the terminal.
 */
PAWL_MUST_USE pawl_status pawl__cli_ledger_print(const struct pawl__cli_run *run,
                                                 const pawl_event *event,
                                                 pawl_error *reterr);

/* Adds an event as JSON; on a terminal with what it would act on escaped. */
PAWL_MUST_USE pawl_status pawl__cli_ledger_add_json(const struct pawl__cli_run *run,
                                                    const pawl_event *event,
                                                    struct pawl__buf *buf,
                                                    pawl_error *reterr);

#endif
