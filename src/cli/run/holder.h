/* The name under which `pawl work run` holds leases. It names the processes of the run, so that another run on
 * this machine sees that they are gone and need not wait until the lease expires.
 *
 *   run:1:<boot id>:<pid namespace>:<pid>.<start>:<guard's pid>.<start>:<a random number>
 *
 * Boot id and pid namespace say where the numbers mean something; elsewhere nothing is known. The
 * start time tells a process from another one that got its number later. */
#ifndef PAWL_CLI_RUN_HOLDER_H
#define PAWL_CLI_RUN_HOLDER_H

#include <sys/types.h>

#include <pawl/pawl.h>

#include "base/os/clock.h"

enum { RUNNER_HOLDER_SIZE = 201 };

struct runner_process {
    int64_t pid;
    uint64_t start; /* clock ticks after boot */
};

struct runner_holder {
    char boot_id[PAWL__BOOT_ID_SIZE];
    uint64_t pid_namespace;
    struct runner_process runner;
    struct runner_process guard; /* ends after every command that the runner had started */
};

/* Who we are. FAILED when /proc does not tell. */
PAWL_MUST_USE pawl_status pawl__cli_holder_inspect(pid_t guard,
                                                   struct runner_holder *ret_holder,
                                                   pawl_error *reterr);

void pawl__cli_holder_text(const struct runner_holder *holder,
                           uint64_t number,
                           char ret_text[RUNNER_HOLDER_SIZE]);

/* False: it is no such name. */
bool pawl__cli_holder_parse(pawl_view text, struct runner_holder *ret_holder);

/* Field 22 of /proc/PID/stat, whatever the program's name holds; `alive` false for a zombie. */
bool pawl__cli_holder_parse_stat(pawl_view stat, uint64_t *ret_start, bool *ret_alive);

/* True when it is known that neither the runner nor anything that it ran is there any more. */
bool pawl__cli_holder_is_gone(const struct runner_holder *holder, const struct runner_holder *we);

#endif
