/* Which checkpoints of a task stay: the last `keep_last`, and always the newest of each type and the
 * newest verified one that is no error boundary. A task must resume after a clean-up as it would have before.
 *
 * Pure. Shown one task's checkpoints, newest first:
 *
 *     struct work_retain retain = { .keep_last = 100 };
 *     ... if (!pawl__work_retain_keeps(&retain, type, verified)) remove it */
#ifndef PAWL_WORK_CORE_RETAIN_H
#define PAWL_WORK_CORE_RETAIN_H

#include <pawl/work.h>

struct work_retain {
    uint64_t keep_last;
    uint64_t seen;
    uint32_t types_seen; /* bits 1 << type */
    bool resume_seen;    /* a verified one that a task can resume from */
};

bool pawl__work_retain_keeps(struct work_retain *retain, pawl_checkpoint_type type, bool verified);

#endif
