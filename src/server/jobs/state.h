/* What may become of a job. Pure.
 *
 *               start      cancel       succeed   fail     give up       interrupt
 *   queued      running    cancelled    -         -        -             interrupted
 *   running     -          cancelling   done      failed   interrupted   interrupted
 *   cancelling  -          cancelling   done      failed   cancelled     interrupted
 *
 * The other states are ends. A job gives up when it is told to stop: by a cancel, or because the node stops. */
#ifndef PAWL_SERVER_JOBS_STATE_H
#define PAWL_SERVER_JOBS_STATE_H

#include <stdbool.h>

/* The numbers are stored. */
enum pawl__job_state {
    PAWL__JOB_QUEUED,
    PAWL__JOB_RUNNING,
    PAWL__JOB_CANCELLING,
    PAWL__JOB_DONE,
    PAWL__JOB_FAILED,
    PAWL__JOB_CANCELLED,
    PAWL__JOB_INTERRUPTED,
    PAWL__JOB_STATES
};
extern const char *const pawl__serve_job_states[]; /* their words; NULL after the last */

enum pawl__job_command {
    PAWL__JOB_START,
    PAWL__JOB_CANCEL,
    PAWL__JOB_SUCCEED,
    PAWL__JOB_FAIL,
    PAWL__JOB_GIVE_UP,
    PAWL__JOB_INTERRUPT,
    PAWL__JOB_COMMANDS
};

/* False: the state does not allow it. */
bool pawl__serve_job_next(enum pawl__job_state state,
                          enum pawl__job_command command,
                          enum pawl__job_state *ret_next);
bool pawl__serve_job_has_ended(enum pawl__job_state state);

#endif
