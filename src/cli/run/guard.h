/* A small process that outlives the runner by a moment: when the runner is gone, however it went
 * (kill -9 too), the guard ends every process group that the runner had started and not yet seen the
 * end of. So no command runs on beside its second run.
 *
 * The runner holds the writing end of a pipe, the guard the reading end. A command's process writes
 * its own number to the pipe before it becomes the command, and holds the pipe until then: at end of
 * file the guard knows all of them. The end of a command is written before its number can be used
 * again. What leaves its process group (setsid, a daemon) or runs as another user is out of reach. */
#ifndef PAWL_CLI_RUN_GUARD_H
#define PAWL_CLI_RUN_GUARD_H

#include <sys/types.h>

#include <pawl/pawl.h>

enum { RUNNER_JOBS_MAX = 1000 };

struct runner_guard {
    pid_t pid;
    int fd; /* to tell it; POLLERR: the guard is gone */
};

/* Before any thread is started: the guard is a copy of this process. */
PAWL_MUST_USE pawl_status pawl__cli_guard_start(struct runner_guard *ret_guard, pawl_error *reterr);

/* It ends, and takes what is left with it. For AUTO, too. */
void pawl__cli_guard_done(struct runner_guard *guard);

/* By the new process itself, between fork and exec: safe there. False: there is no guard. */
bool pawl__cli_guard_begins(int fd);

/* The process group `pid` is empty, and its leader not yet waited for. */
void pawl__cli_guard_ends(int fd, pid_t pid);

/* Whether a process of the group is alive. Its leader may have ended and not be waited for, which is
 * why the kernel's answer to a signal does not help: it counts those, too. */
bool pawl__cli_group_runs(pid_t group);

#endif
