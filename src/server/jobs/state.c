#include "server/jobs/state.h"

#include <stddef.h>

#include "base/core/macros.h"

const char *const pawl__serve_job_states[] = { "queued", "running",   "cancelling",  "done",
                                               "failed", "cancelled", "interrupted", NULL };

enum { NEVER = PAWL__JOB_STATES };

static const unsigned char table[][PAWL__JOB_COMMANDS] = {
    [PAWL__JOB_QUEUED] = { [PAWL__JOB_START] = PAWL__JOB_RUNNING,
                           [PAWL__JOB_CANCEL] = PAWL__JOB_CANCELLED,
                           [PAWL__JOB_SUCCEED] = NEVER,
                           [PAWL__JOB_FAIL] = NEVER,
                           [PAWL__JOB_GIVE_UP] = NEVER,
                           [PAWL__JOB_INTERRUPT] = PAWL__JOB_INTERRUPTED },
    [PAWL__JOB_RUNNING] = { [PAWL__JOB_START] = NEVER,
                            [PAWL__JOB_CANCEL] = PAWL__JOB_CANCELLING,
                            [PAWL__JOB_SUCCEED] = PAWL__JOB_DONE,
                            [PAWL__JOB_FAIL] = PAWL__JOB_FAILED,
                            [PAWL__JOB_GIVE_UP] = PAWL__JOB_INTERRUPTED,
                            [PAWL__JOB_INTERRUPT] = PAWL__JOB_INTERRUPTED },
    [PAWL__JOB_CANCELLING] = { [PAWL__JOB_START] = NEVER,
                               [PAWL__JOB_CANCEL] = PAWL__JOB_CANCELLING,
                               [PAWL__JOB_SUCCEED] = PAWL__JOB_DONE,
                               [PAWL__JOB_FAIL] = PAWL__JOB_FAILED,
                               [PAWL__JOB_GIVE_UP] = PAWL__JOB_CANCELLED,
                               [PAWL__JOB_INTERRUPT] = PAWL__JOB_INTERRUPTED },
};

bool pawl__serve_job_next(enum pawl__job_state state,
                          enum pawl__job_command command,
                          enum pawl__job_state *ret_next)
{
    REQUIRE(state < PAWL__JOB_STATES && command < PAWL__JOB_COMMANDS);
    if (pawl__serve_job_has_ended(state) || table[state][command] == NEVER) {
        return false;
    }
    *ret_next = (enum pawl__job_state)table[state][command];
    return true;
}

bool pawl__serve_job_has_ended(enum pawl__job_state state)
{
    return state >= PAWL__JOB_DONE;
}
