/* A list of rows in memory that a rollback puts back. Rows are replaced, never changed; each is
 * ended by the list's own function. Inside of a transaction, but for `done`. */
#ifndef PAWL_WORK_MEMORY_LIST_H
#define PAWL_WORK_MEMORY_LIST_H

#include "work/memory/backend.h"

/* Takes the row; it is freed when the memory runs out. */
PAWL_MUST_USE pawl_status pawl__memory_add(struct work_memory *backend,
                                           struct work_memory_list *list,
                                           void *row,
                                           pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__memory_replace(struct work_memory *backend,
                                               struct work_memory_list *list,
                                               size_t index,
                                               void *row,
                                               pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__memory_remove(struct work_memory *backend,
                                              struct work_memory_list *list,
                                              size_t index,
                                              pawl_error *reterr);
void pawl__memory_list_done(struct work_memory_list *list);

#endif
