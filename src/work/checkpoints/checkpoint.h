/* Checkpoints inside of src/work: names of their types, and checks of their evidence. */
#ifndef PAWL_WORK_CHECKPOINTS_CHECKPOINT_H
#define PAWL_WORK_CHECKPOINTS_CHECKPOINT_H

#include "work/checkpoints/backend.h"
#include "work/core/internal.h"

#define CHECKPOINT_WHAT_SIZE 512

const char *pawl__work_checkpoint_type_text(pawl_checkpoint_type type);
PAWL_MUST_USE bool pawl__work_checkpoint_type_parse(pawl_view text, pawl_checkpoint_type *ret_type);

/* Checks a checkpoint's evidence, records the results, and says whether all of it holds;
 * `ret_what` (may be NULL) names the first that does not. */
PAWL_MUST_USE pawl_status pawl__work_checkpoint_verify(pawl_work *work,
                                                       const pawl_checkpoint *checkpoint,
                                                       bool *ret_verified,
                                                       char *ret_what,
                                                       pawl_error *reterr);

/* The same without recording: for one that is not stored yet. `ret_results` has evidence_count
 * entries, their details in the arena. */
PAWL_MUST_USE pawl_status
pawl__work_checkpoint_check_evidence(pawl_work *work,
                                     const pawl_checkpoint *checkpoint,
                                     struct pawl__arena *arena,
                                     struct work_checkpoint_result *ret_results,
                                     char *ret_what,
                                     pawl_error *reterr);

#endif
