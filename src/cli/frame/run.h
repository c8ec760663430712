/* What a command gets when it runs, and how it speaks.
 *
 *   Answers go to standard output: for people, or with --json one object per line.
 *   Errors go to standard error, one line: "pawl: <message>", or with --json
 *   {"error":{"status":"BUSY","message":"...","exit_code":5,"retryable":true}} instead.
 *
 * A command prints with stdio and returns a status; main() checks once, at the end, that everything
 * reached its reader. One that prints without end asks pawl__cli_out_check now and then. A reader that
 * went away (`| head`) has had enough of a command that only prints, which ends quietly with 0; any other
 * one says so and ends with 1, because nobody knows what it answered. */
#ifndef PAWL_CLI_FRAME_RUN_H
#define PAWL_CLI_FRAME_RUN_H

#include <pawl/pawl.h>

#include "base/core/buf.h"
#include "base/core/sink.h"
#include "base/json/json.h"
#include "base/terminal/table.h"
#include "base/terminal/term.h"
#include "cli/frame/args.h"
#include "cli/frame/command.h"

struct pawl__clock;
struct pawl__config;

struct pawl__cli_run {
    const struct pawl__cli_args *args;
    const struct pawl__config *config; /* NULL for a command with no_settings */
    struct pawl__clock *clock;         /* main makes the one real clock of the program */
    bool json;
    struct pawl__term term; /* standard output */
};

/* The whole command line of this program. Made once, by main; static. */
PAWL_MUST_USE pawl_status pawl__cli_init(const struct pawl__cli **ret_cli, pawl_error *reterr);
void pawl__cli_done(void);

/* Log lines go to standard error from here on, as the settings say. */
void pawl__cli_log_start(const struct pawl__config *config);

/* Before anything else: a closed standard stream is opened on nothing, so that no store gets its
 * number and is written over by a message; and SIGPIPE becomes an error of write(). A program that
 * starts others gives them back the default. */
void pawl__cli_out_start(void);

/* Writes the buffer to standard output. NOMEM when it is broken. */
PAWL_MUST_USE pawl_status pawl__cli_out_add(const struct pawl__buf *buf, pawl_error *reterr);

/* Appends a value as a line of JSON, and frees it. NOMEM when it is NULL. */
PAWL_MUST_USE pawl_status pawl__cli_out_add_json(struct pawl__buf *buf,
                                                 json_t *json,
                                                 pawl_error *reterr);

/* Adds JSON that came from a store; on a terminal with what that would act on escaped. */
void pawl__cli_out_add_value(const struct pawl__cli_run *run,
                             struct pawl__buf *buf,
                             pawl_view json);

/* A JSON string of any bytes: those that are no UTF-8 are escaped. NULL without memory. */
json_t *pawl__cli_out_text(const char *text);

/* Standard output for those who write to a sink. */
struct pawl__sink pawl__cli_out_sink(void);

/* A table in the form that fits: JSON with --json, aligned on a terminal, tabs in a pipe. */
struct pawl__table_options pawl__cli_out_table(const struct pawl__cli_run *run);

/* Whether what was printed so far could be written: CLOSED when the reader went away. */
PAWL_MUST_USE pawl_status pawl__cli_out_check(pawl_error *reterr);

/* CLOSED, as a write to a reader that went away is. */
PAWL_MUST_USE pawl_status pawl__cli_out_fail_gone(pawl_error *reterr);

/* Reports the error, if any, flushes both streams and gives the exit code. `only_prints` is that of the
 * command. */
int pawl__cli_out_finish(pawl_status status, const pawl_error *error, bool json, bool only_prints);

#endif
