/* "Did you mean": the known names nearest to a mistyped one.
 *
 *     struct pawl__nearest near = pawl__nearest_to(pawl_view_of("leger"));
 *     for (...) { pawl__nearest_offer(&near, commands[i].name); }
 *     pawl__nearest_add_hint(&near, &buf);       -> "; did you mean 'ledger' or 'lease'?"
 *
 * Distance is counted in bytes: insert, delete, replace or swap two neighbours (optimal string
 * alignment), ASCII letters alike in both cases. Pure, no allocation. */
#ifndef PAWL_BASE_CORE_NEAREST_H
#define PAWL_BASE_CORE_NEAREST_H

#include <pawl/pawl.h>

#include "base/core/buf.h"

enum {
    PAWL__NEAREST_BYTES_MAX = 64, /* a longer name is near to nothing */
    PAWL__NEAREST_COUNT_MAX = 3,
};

/* The edits from a to b; max + 1 when it is more than `max` or one is over the limit of bytes. */
size_t pawl__edit_distance(pawl_view a, pawl_view b, size_t max);

struct pawl__nearest {
    pawl_view word;
    size_t count; /* of best: the nearest first, equally near ones as they were offered */
    struct {
        const char *name;
        size_t distance;
    } best[PAWL__NEAREST_COUNT_MAX];
};

struct pawl__nearest pawl__nearest_to(pawl_view word); /* borrows `word` */

/* Keeps `name` (borrowed) when it is near enough: one edit for a word of up to 3 bytes, two up to
 * 7, three above; or when the word, two bytes or more, is how the name begins. */
void pawl__nearest_offer(struct pawl__nearest *nearest, const char *name);

/* Adds "; did you mean 'a', 'b' or 'c'?", or nothing. */
void pawl__nearest_add_hint(const struct pawl__nearest *nearest, struct pawl__buf *buf);

#endif
