/* Names and limits of tasks and items, and the checks of what callers give. */
#ifndef PAWL_WORK_ITEMS_ITEM_H
#define PAWL_WORK_ITEMS_ITEM_H

#include <pawl/work.h>

#include "work/core/backend.h"

enum { WORK_CLAIM_TYPES_MAX = 1000 };
#define WORK_DELAY_MS_MAX (INT64_C(100) * 366 * 24 * 3600 * 1000) /* a hundred years */

/* "pending", "in_progress", ...; WAITING is "waiting". */
const char *pawl__work_item_status_text(pawl_item_status status);
PAWL_MUST_USE bool pawl__work_item_status_parse(pawl_view text, pawl_item_status *ret_status);
const char *pawl__work_task_status_text(pawl_task_status status);
PAWL_MUST_USE bool pawl__work_task_status_parse(pawl_view text, pawl_task_status *ret_status);
bool pawl__work_item_has_ended(pawl_item_status status);

/* Which of two pending rows is claimed first: by priority, then by submission. */
int pawl__work_claim_order(const struct work_row *a, const struct work_row *b);

/* Numbers the rows that are not stored yet, from `last` + 1 on. Returns the last number given. */
int64_t pawl__work_number_rows(struct work_row *const *rows, size_t count, int64_t last);

/* Whether a filter excludes ended items: then a store need not read them. */
bool pawl__work_filter_is_open(const pawl_item_filter *filter);

/* Whether a filter wants only leased or waiting items, which are usually few: most items of a long list are
 * pending or ended. */
bool pawl__work_filter_is_busy(const pawl_item_filter *filter);

/* Order of ids and of everything that is sorted by id; the second is for qsort and bsearch of views. */
int pawl__work_view_order(pawl_view a, pawl_view b);
int pawl__work_by_view(const void *a, const void *b);

/* Sorts, drops duplicates and returns how many are left. */
size_t pawl__work_views_distinct(pawl_view *views, size_t count);

/* 1 to 200 bytes of UTF-8 without control characters. INVALID names the field. */
PAWL_MUST_USE pawl_status pawl__work_check_name(const char *field,
                                                pawl_view text,
                                                pawl_error *reterr);

/* The same for one that may be empty. */
PAWL_MUST_USE pawl_status pawl__work_check_optional_name(const char *field,
                                                         pawl_view text,
                                                         pawl_error *reterr);

/* A JSON value of at most `bytes_max` bytes, or empty. */
PAWL_MUST_USE pawl_status pawl__work_check_json(const char *field,
                                                pawl_view text,
                                                size_t bytes_max,
                                                pawl_error *reterr);

/* UTF-8 text; cuts a longer one than PAWL_WORK_ERROR_BYTES_MAX between two characters. */
PAWL_MUST_USE pawl_status pawl__work_check_message(const char *field,
                                                   pawl_view text,
                                                   pawl_view *ret_text,
                                                   pawl_error *reterr);

/* Checks every field of a submission; its id must be set. */
PAWL_MUST_USE pawl_status pawl__work_submission_check(const pawl_submission *submission,
                                                      const pawl_work_options *options,
                                                      pawl_error *reterr);

/* A new UUIDv7 as text when `given` is empty, otherwise a copy of it. */
PAWL_MUST_USE pawl_status pawl__work_id(pawl_view given,
                                        char ret_id[PAWL_WORK_NAME_BYTES_MAX + 1],
                                        pawl_error *reterr);

#endif
