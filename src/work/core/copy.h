/* Rows handed to callers: copies in one piece of memory each, ended with one free. */
#ifndef PAWL_WORK_CORE_COPY_H
#define PAWL_WORK_CORE_COPY_H

#include "work/core/backend.h"

PAWL_MUST_USE pawl_status pawl__work_copy_out_rows(struct work_row *const *rows,
                                                   size_t count,
                                                   pawl_claimed **ret_claimed,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_copy_out_items(const pawl_item *items,
                                                    size_t count,
                                                    pawl_claimed **ret_claimed,
                                                    pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_copy_out_item(const pawl_item *item,
                                                   pawl_item **ret_item,
                                                   pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__work_copy_out_task(const pawl_task *task,
                                                   pawl_task **ret_task,
                                                   pawl_error *reterr);

#endif
