/* Durations and sizes as people write them: "30s", "1h30m", "16MiB". One place reads and writes
 * them, for the config and the command line alike.
 *
 *   duration  whole numbers with ns, us, ms, s, m, h or d, from the largest unit down: "500ms",
 *             "1h30m". "0" needs no unit, everything else does. Nanoseconds in an int64_t.
 *   size      one whole number, in bytes, or with B, kB, MB, GB, TB, PB, EB (thousands; KB too) or
 *             KiB, MiB, GiB, TiB, PiB, EiB (1,024s). Bytes in a uint64_t.
 *   integer   an optional '-' and decimal digits.
 *
 * Nothing else is taken: no sign on the first two, no spaces, no fractions. What does not fit its
 * type is refused. Formatting is exact: reading it back gives the same number. */
#ifndef PAWL_BASE_CORE_QUANTITY_H
#define PAWL_BASE_CORE_QUANTITY_H

#include <pawl/pawl.h>

#define PAWL__QUANTITY_SIZE 32

/* All three answer INVALID with what is wrong and an example, without the text itself: the caller
 * knows its name and whether it may be shown. */
PAWL_MUST_USE pawl_status pawl__duration_parse(pawl_view text, int64_t *ret_ns, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__size_parse(pawl_view text, uint64_t *ret_bytes, pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__integer_parse(pawl_view text,
                                              int64_t *ret_value,
                                              pawl_error *reterr);

/* The largest unit that divides it: 90 s is "90s", 3,600 s "1h". Not for negative durations. */
void pawl__duration_format(int64_t ns, char ret_text[PAWL__QUANTITY_SIZE]);

/* The shorter of the two ways: 16777216 is "16MiB", 64000000 "64MB", 1536 "1536B". */
void pawl__size_format(uint64_t bytes, char ret_text[PAWL__QUANTITY_SIZE]);

/* For people watching, not exact: "1.5 GiB", "12.3 k", "0:42", "3:05:09". */
void pawl__size_human(double bytes, char ret_text[PAWL__QUANTITY_SIZE]);
void pawl__count_human(double count, char ret_text[PAWL__QUANTITY_SIZE]);
void pawl__duration_human(int64_t ns, char ret_text[PAWL__QUANTITY_SIZE]);

#endif
