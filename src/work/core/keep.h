/* Rows kept in an arena: every text of the copy is its own. False without memory. */
#ifndef PAWL_WORK_CORE_KEEP_H
#define PAWL_WORK_CORE_KEEP_H

#include "work/keys/decide.h"

PAWL_MUST_USE bool pawl__keep_checkpoint(struct pawl__arena *arena,
                                         const pawl_checkpoint *from,
                                         pawl_checkpoint *ret_copy);
PAWL_MUST_USE bool pawl__keep_item(struct pawl__arena *arena,
                                   const pawl_item *from,
                                   pawl_item *ret_copy);
PAWL_MUST_USE bool pawl__keep_task(struct pawl__arena *arena,
                                   const pawl_task *from,
                                   pawl_task *ret_copy);
PAWL_MUST_USE bool pawl__keep_schedule(struct pawl__arena *arena,
                                       const pawl_schedule *from,
                                       pawl_schedule *ret_copy);
PAWL_MUST_USE bool pawl__keep_key(struct pawl__arena *arena,
                                  const struct idem_row *from,
                                  struct idem_row *ret_copy);

#endif
