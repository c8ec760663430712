#include "work/core/retain.h"

bool pawl__work_retain_keeps(struct work_retain *retain, pawl_checkpoint_type type, bool verified)
{
    uint32_t bit = UINT32_C(1) << type;
    /* An error boundary has no evidence, so it is verified; but no task resumes from one. */
    bool resumable = verified && type != PAWL_CHECKPOINT_ERROR_BOUNDARY;
    bool keeps = retain->seen < retain->keep_last || (retain->types_seen & bit) == 0
                 || (resumable && !retain->resume_seen);

    retain->seen++;
    retain->types_seen |= bit;
    retain->resume_seen = retain->resume_seen || resumable;
    return keeps;
}
