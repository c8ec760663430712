#include "work/core/retain.h"

bool pawl__work_retain_keeps(struct work_retain *retain, pawl_checkpoint_type type, bool verified)
{
    uint32_t bit = UINT32_C(1) << type;
    /* An error boundary has no evidence, so it is verified; but no task goes on from one. */
    bool goes_on = verified && type != PAWL_CHECKPOINT_ERROR_BOUNDARY;
    bool keeps = retain->seen < retain->keep_last || (retain->types_seen & bit) == 0
                 || (goes_on && !retain->resume_seen);

    retain->seen++;
    retain->types_seen |= bit;
    retain->resume_seen = retain->resume_seen || goes_on;
    return keeps;
}
