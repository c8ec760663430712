/* Cron expressions: five fields, or a name.
 *
 *     minute hour day-of-month month day-of-week       all in UTC
 *     0-59   0-23 1-31         1-12  0-7 (0 and 7 are Sunday)
 *
 * A field is a list of parts with commas: a star, a number, a range a-b, each with a step if wanted
 * (a star or a range, a slash, a number). Months and weekdays have names, three letters, in either
 * case. @yearly (@annually), @monthly, @weekly, @daily (@midnight) and @hourly are short forms.
 *
 * As in every cron since 1987: when neither of the two day fields starts with a star, a day that
 * matches one of them is enough; otherwise it must match both.
 *
 * Pure: no clock. A slot is the first microsecond of its minute. */
#ifndef PAWL_WORK_SCHEDULES_CRON_H
#define PAWL_WORK_SCHEDULES_CRON_H

#include <pawl/pawl.h>

enum { CRON_BYTES_MAX = 1000 };

struct work_cron {
    uint64_t minutes; /* bit n: at minute n */
    uint32_t hours;
    uint32_t days;     /* bits 1 to 31 */
    uint32_t months;   /* bits 1 to 12 */
    uint32_t weekdays; /* bits 0 to 6, from Sunday */
    bool either_day;   /* one of the two day fields is enough */
};

/* INVALID names the field and the part of it that is wrong; so does an expression that never comes,
 * as the 30th of February. */
PAWL_MUST_USE pawl_status pawl__work_cron_parse(pawl_view text,
                                                struct work_cron *ret_cron,
                                                pawl_error *reterr);

/* The first slot after `after_us`, itself not included. False: none until the year 9999 ends. */
PAWL_MUST_USE bool pawl__work_cron_next(const struct work_cron *cron,
                                        int64_t after_us,
                                        int64_t *ret_slot_us);

/* The newest slot up to `until_us`, itself included, that is not before `from_us`. False: none. */
PAWL_MUST_USE bool pawl__work_cron_newest(const struct work_cron *cron,
                                          int64_t from_us,
                                          int64_t until_us,
                                          int64_t *ret_slot_us);

#endif
