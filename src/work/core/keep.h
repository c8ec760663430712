/* Rows kept in an arena: every text of the copy is its own. False without memory. */
#ifndef PAWL_WORK_CORE_KEEP_H
#define PAWL_WORK_CORE_KEEP_H

#include "work/keys/decide.h"

PAWL_MUST_USE bool pawl__work_copy_checkpoint(struct pawl__arena *arena,
                                              const pawl_checkpoint *from,
                                              pawl_checkpoint *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_item(struct pawl__arena *arena,
                                        const pawl_item *from,
                                        pawl_item *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_task(struct pawl__arena *arena,
                                        const pawl_task *from,
                                        pawl_task *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_schedule(struct pawl__arena *arena,
                                            const pawl_schedule *from,
                                            pawl_schedule *ret_copy);
PAWL_MUST_USE bool pawl__work_copy_key(struct pawl__arena *arena,
                                       const struct work_key_row *from,
                                       struct work_key_row *ret_copy);

#endif
