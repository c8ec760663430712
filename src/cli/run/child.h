/* One command as a process: /bin/sh -c in a process group of its own, with its input as standard
 * input and its output read by us. */
#ifndef PAWL_CLI_RUN_CHILD_H
#define PAWL_CLI_RUN_CHILD_H

#include <sys/types.h>

#include "cli/run/capture.h"
#include "cli/run/step.h"

struct runner_child {
    pid_t pid;
    int pidfd;      /* readable when it has ended */
    int streams[2]; /* its standard output and error; -1: at its end */
    int guard_fd;   /* borrowed */
};

struct runner_command {
    const char *script;
    char *const *environment;
    pawl_view input;
    int guard_fd;
};

/* False: *ret_errno says why not, and nothing runs. */
PAWL_MUST_USE bool pawl__cli_child_start(const struct runner_command *command,
                                         struct runner_child *ret_child,
                                         int *ret_errno);

/* TERM or KILL to everything in its group. */
void pawl__cli_child_signal(const struct runner_child *child, enum runner_action action);

/* Reads what there is of one stream (0: output, 1: error), without waiting. */
void pawl__cli_child_read(struct runner_child *child, int stream, struct runner_capture *capture);

/* After its end: kills what is left in its group, waits for it and closes everything. */
struct runner_exit pawl__cli_child_end(struct runner_child *child,
                                       struct runner_capture captures[2]);

#endif
