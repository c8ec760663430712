/* Ctrl-C while something long runs: noticed, so that it ends in order; and the progress that is shown
 * meanwhile. */
#ifndef PAWL_CLI_FRAME_INTERRUPT_H
#define PAWL_CLI_FRAME_INTERRUPT_H

#include "base/terminal/term.h"

struct pawl__cli_run;

/* What waits, and is to be woken by a function that is fit for a signal handler. */
struct pawl__cli_wakeable {
    void (*wake)(void *object);
    void *object;
};

/* From here on Ctrl-C, SIGTERM and SIGHUP are noticed instead of ending the process, once; the second
 * one ends it. `target` is woken then and borrowed until the release; NULL: nothing waits, the command
 * asks pawl__cli_interrupted between its steps. */
void pawl__cli_interrupt_catch(const struct pawl__cli_wakeable *target);
void pawl__cli_interrupt_release(void); /* still noticed, but nothing is woken any more */
bool pawl__cli_interrupted(void);

/* What is woken a second later, when it is still there then: a store that does not answer, whose calls
 * are ended in the middle. */
void pawl__cli_interrupt_escalates(const struct pawl__cli_wakeable *target);

/* Progress of a call that may take long, on standard error. Hand pawl__cli_progress_step to the call, the
 * struct as its context. Ctrl-C stops it. */
struct pawl__cli_progress {
    struct pawl__progress progress;
    struct pawl__progress_options options;
    int fd;
    bool started;
};
struct pawl__cli_progress pawl__cli_progress_start(const struct pawl__cli_run *run,
                                                   const char *label,
                                                   bool bytes);
bool pawl__cli_progress_step(void *context, uint64_t done, uint64_t total);
pawl_watch pawl__cli_progress_watch(struct pawl__cli_progress *work);
void pawl__cli_progress_done(struct pawl__cli_progress *work); /* for AUTO, too */

#endif
