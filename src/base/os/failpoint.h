/* Named points at which a test makes the program fail, wait or die.
 *
 * Only builds with -Dfailpoints=true have them; in the others FAILPOINT is nothing. The environment
 * turns them on:
 *
 *     PAWL_FAILPOINTS='sqlite.commit.before=kill@3,wal.sync=error:NO_SPACE,x=delay:20'
 *
 *   error[:STATUS]   the point returns that status (default IO)
 *   delay:MS         the point waits; a signal that this thread handles ends it
 *   kill             the process dies at once, as with kill -9
 *   @N               only from the N-th pass on; without it, from the first
 *   *N               at most N times
 *
 * A specification that does not parse is loud: every point returns INVALID and names the wrong
 * part. PAWL_FAILPOINTS_LOG=FILE appends each name to FILE when a process passes it for the first
 * time, so that a driver outside the process can list them.
 *
 * A name is `area.step.before|after` around every durable action; `pawl__failpoint_names` lists
 * what a run has passed, so that a torture test can walk them all. */
#ifndef PAWL_BASE_OS_FAILPOINT_H
#define PAWL_BASE_OS_FAILPOINT_H

#include <pawl/pawl.h>

#ifdef PAWL_FAILPOINTS
/* FAILPOINT("wal.sync.before", reterr) leaves the function with the status it was told to return.
 */
#define FAILPOINT(name, reterr)                                     \
    do {                                                            \
        pawl_status failpoint_ = pawl__failpoint_hit(name, reterr); \
        if (failpoint_ != PAWL_OK) {                                \
            return failpoint_;                                      \
        }                                                           \
    } while (0)
#else
#define FAILPOINT(name, reterr) \
    do {                        \
        (void)(reterr);         \
    } while (0)
#endif

/* Counts a pass and does what it was told. Any thread; allocates nothing. Without rules it costs
 * the look-up of the name. In builds without failpoints it returns OK. A name has at most 63 of a-z
 * 0-9 . _ - */
PAWL_MUST_USE pawl_status pawl__failpoint_hit(const char *name, pawl_error *reterr);

/* Replaces what the environment said; for tests inside one process. NULL turns all off. A wrong
 * specification is INVALID and names its part; nothing changes then. @N and *N count from here. In
 * builds without failpoints a specification is UNSUPPORTED. */
PAWL_MUST_USE pawl_status pawl__failpoint_set(const char *specification, pawl_error *reterr);

/* Calls `visit` for every name that was passed so far, with the number of passes. */
void pawl__failpoint_names(void (*visit)(void *context, const char *name, uint64_t passes),
                           void *context);

#endif
