/* A shell command with a bound on its time. */
#ifndef PAWL_WORK_CHECKPOINTS_COMMAND_H
#define PAWL_WORK_CHECKPOINTS_COMMAND_H

#include <pawl/pawl.h>

#include "base/os/clock.h"

struct work_command_end {
    bool timed_out; /* it was killed, with everything it started in its process group */
    int signal;     /* that ended it; 0: none */
    int exit_code;
};

/* Runs `/bin/sh -c command` in a process group of its own with nothing to read, nowhere to write and
 * none of our descriptors, and waits for its end, at most `ms_max`. A failure is one of ours, not
 * the command's; IO, too, when the program reaps children by ignoring SIGCHLD. */
PAWL_MUST_USE pawl_status pawl__work_command_run(char *command,
                                                 struct pawl__clock *clock,
                                                 uint32_t ms_max,
                                                 struct work_command_end *ret_end,
                                                 pawl_error *reterr);

#endif
