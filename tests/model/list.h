/* A list of rows in memory that a rollback puts back. Rows are replaced, never changed; each is
 * ended by the list's own function. Inside of a transaction, but for `done`. */
#ifndef TESTS_MODEL_LIST_H
#define TESTS_MODEL_LIST_H

#include "model/backend.h"

/* Takes the row; it is freed when the memory runs out. */
PAWL_MUST_USE pawl_status work_model_add(struct work_model *backend,
                                         struct work_model_list *list,
                                         void *row,
                                         pawl_error *reterr);
PAWL_MUST_USE pawl_status work_model_replace(struct work_model *backend,
                                             struct work_model_list *list,
                                             size_t index,
                                             void *row,
                                             pawl_error *reterr);
PAWL_MUST_USE pawl_status work_model_remove(struct work_model *backend,
                                            struct work_model_list *list,
                                            size_t index,
                                            pawl_error *reterr);
void work_model_list_done(struct work_model_list *list);

#endif
