#include "app/verify/gapless.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"
#include "base/core/macros.h"

void pawl__app_gapless_init(struct app_gapless *gapless, uint64_t initial)
{
    REQUIRE(initial >= 1);
    *gapless = (struct app_gapless){ .initial = initial };
}

void pawl__app_gapless_done(struct app_gapless *gapless)
{
    free(gapless->missing);
    *gapless = (struct app_gapless){ .initial = 1 };
}

static void insert(struct app_gapless *gapless, size_t at, struct app_gapless_range range)
{
    memmove(&gapless->missing[at + 1],
            &gapless->missing[at],
            (gapless->missing_count - at) * sizeof(range));
    gapless->missing[at] = range;
    gapless->missing_count++;
}

/* The range that has the number; missing_count: none has. */
static size_t find(const struct app_gapless *gapless, uint64_t number)
{
    size_t low = 0;
    size_t high = gapless->missing_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gapless->missing[middle].last < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < gapless->missing_count && gapless->missing[low].first <= number
               ? low
               : gapless->missing_count;
}

static void fill_gap(struct app_gapless *gapless, size_t at, uint64_t number)
{
    struct app_gapless_range *range = &gapless->missing[at];

    if (range->first == range->last) {
        gapless->missing_count--;
        memmove(range, range + 1, (gapless->missing_count - at) * sizeof(*range));
    } else if (range->first == number) {
        range->first++;
    } else if (range->last == number) {
        range->last--;
    } else {
        struct app_gapless_range rest = { number + 1, range->last };
        range->last = number - 1;
        insert(gapless, at + 1, rest);
    }
}

pawl_status pawl__app_gapless_use(struct app_gapless *gapless,
                                  uint64_t number,
                                  bool *ret_fresh,
                                  pawl_error *reterr)
{
    uint64_t expected = gapless->last == 0 ? gapless->initial : gapless->last + 1;
    struct app_gapless_range *missing =
        pawl__grow(gapless->missing, gapless->missing_count, &gapless->room, sizeof(*missing));

    if (missing == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu gaps", gapless->missing_count);
    }
    gapless->missing = missing;
    gapless->used++;
    if (gapless->last == 0 ? number >= expected : number > gapless->last) {
        if (number > expected) {
            insert(gapless,
                   gapless->missing_count,
                   (struct app_gapless_range){ expected, number - 1 });
        }
        gapless->last = number;
        *ret_fresh = true;
        return PAWL_OK;
    }
    size_t at = find(gapless, number);
    *ret_fresh = at < gapless->missing_count;
    if (*ret_fresh) {
        fill_gap(gapless, at, number);
    }
    return PAWL_OK;
}
