/* `pawl work run`: leases items and runs a command for each, as many at a time as are wanted.
 *
 *   main       claims as many items as may run, hands them out, and decides when to end
 *   slots      one thread for each command that runs, and as many again: the next command runs while the store
 *              records the last one. Their calls share transactions
 *   heart      extends the leases of what runs
 *   watcher    notices Ctrl-C and the guard's end, and draws the progress
 *
 * step.h decides, child.h and guard.h run processes, output.h prints. */
#ifndef PAWL_CLI_RUN_RUNNER_H
#define PAWL_CLI_RUN_RUNNER_H

#include <pawl/work.h>

#include "cli/frame/run.h"

struct runner_options {
    const pawl_view *types;
    size_t type_count;
    pawl_view task_id;
    pawl_view command;
    pawl_view mark;
    uint64_t jobs;
    uint64_t limit; /* UINT64_MAX: none */
    int64_t lease_ms;
    int64_t heartbeat_ms; /* shorter than the lease */
    int64_t sweep_ms;
    int64_t retries;    /* negative: as the item says */
    int64_t timeout_ns; /* INT64_MAX: none */
    int64_t grace_ns;
    const char *logs; /* a directory; NULL: none */
    bool keep_order;
    bool stays;
};

/* Ends when nothing is left, after Ctrl-C, or when it cannot continue. FAILED: some items have failed.
 * CANCELLED: it was interrupted. */
PAWL_MUST_USE pawl_status pawl__cli_runner_run(struct pawl__cli_run *run,
                                               const struct runner_options *options,
                                               pawl_error *reterr);

#endif
