/* What a command is given for one item, and what is stored of how it went. */
#ifndef PAWL_CLI_RUN_JOB_H
#define PAWL_CLI_RUN_JOB_H

#include <pawl/work.h>

#include "cli/run/capture.h"
#include "cli/run/step.h"

struct runner_job {
    struct pawl__buf script;
    struct pawl__buf input;     /* for standard input */
    struct pawl__buf variables; /* "NAME=value" and a NUL, one after the other */
    char **environment;         /* ours and those of this process; NULL ends it */
    bool too_long;              /* the command would be too long for the kernel */
};

/* NOMEM, or INVALID when the item's input is no JSON (foreign SQL). */
PAWL_MUST_USE pawl_status pawl__cli_job_make(struct runner_job *job,
                                             pawl_view command,
                                             pawl_view mark,
                                             const pawl_item *item,
                                             pawl_error *reterr);
void pawl__cli_job_done(struct runner_job *job);

/* {"exit_code":0,"signal":null,"stdout":"...","stderr":"...",...} */
void pawl__cli_job_output(struct pawl__buf *json,
                          const struct runner_exit *exit,
                          const struct runner_capture captures[2],
                          int64_t duration_ns);

#endif
