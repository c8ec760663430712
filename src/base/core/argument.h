/* The first lines of a public function. A NULL where something is needed, or a view with a length and no
 * bytes, returns INVALID with the name of the argument; the code after them cannot crash on it.
 *
 *     pawl_status pawl_ledger_head(pawl_ledger *ledger, pawl_head *ret_head, pawl_error *reterr)
 *     {
 *         NEED(ledger, ret_head, reterr);
 */
#ifndef PAWL_BASE_CORE_ARGUMENT_H
#define PAWL_BASE_CORE_ARGUMENT_H

#include "base/core/error.h"

/* Of one to three pointers. */
#define NEED(...) NEED_OF_COUNT(__VA_ARGS__, NEED_THREE, NEED_TWO, NEED_ONE, )(__VA_ARGS__)
#define NEED_OF_COUNT(a, b, c, d, macro, ...) macro
#define NEED_ONE(pointer, reterr)                                                            \
    do {                                                                                     \
        if ((pointer) == NULL) {                                                             \
            return pawl__fail_detail(                                                        \
                (reterr), PAWL_INVALID, PAWL_DETAIL_NULL_ARGUMENT, "%s: is NULL", #pointer); \
        }                                                                                    \
    } while (0)
#define NEED_TWO(a, b, reterr) \
    NEED_ONE(a, reterr);       \
    NEED_ONE(b, reterr)
#define NEED_THREE(a, b, c, reterr) \
    NEED_TWO(a, b, reterr);         \
    NEED_ONE(c, reterr)

/* An empty view may have NULL data. */
#define NEED_VIEW(view, reterr)                                               \
    do {                                                                      \
        pawl_status view_status_ = pawl__check_view((view), #view, (reterr)); \
        if (view_status_ != PAWL_OK) {                                        \
            return view_status_;                                              \
        }                                                                     \
    } while (0)

/* A text that must say something: a path, a location. */
#define NEED_TEXT(text, reterr)                                                            \
    do {                                                                                   \
        NEED_ONE(text, reterr);                                                            \
        if ((text)[0] == '\0') {                                                           \
            return pawl__fail_detail(                                                      \
                (reterr), PAWL_INVALID, PAWL_DETAIL_NULL_ARGUMENT, "%s: is empty", #text); \
        }                                                                                  \
    } while (0)

/* So many things at a place. None may be nowhere. */
#define NEED_ARRAY(pointer, count, reterr)                           \
    do {                                                             \
        if ((pointer) == NULL && (count) > 0) {                      \
            return pawl__fail_detail((reterr),                       \
                                     PAWL_INVALID,                   \
                                     PAWL_DETAIL_NULL_ARGUMENT,      \
                                     "%s: is NULL, and %s is not 0", \
                                     #pointer,                       \
                                     #count);                        \
        }                                                            \
    } while (0)

/* INVALID: "priority: is 101, must be -100 to 100". */
PAWL_MUST_USE pawl_status
pawl__check_range(const char *name, int64_t value, int64_t min, int64_t max, pawl_error *reterr);

/* INVALID: "id: has 201 bytes, the limit is 200". */
PAWL_MUST_USE pawl_status pawl__check_bytes(const char *name,
                                            size_t len,
                                            size_t max,
                                            pawl_error *reterr);

/* INVALID: "after: names 1001 items, the limit is 1000", of "after: names" and " items". */
PAWL_MUST_USE pawl_status pawl__check_limit(
    const char *before, uint64_t count, const char *after, uint64_t max, pawl_error *reterr);

/* INVALID: "ret_id: has room for 10 bytes, needs 37". No buffer at all is fine. */
PAWL_MUST_USE pawl_status pawl__check_room(
    const char *name, const void *buffer, size_t room, size_t needed, pawl_error *reterr);

/* For a view whose name is made up at run time ("creates[3].data"). */
pawl_status pawl__check_view(pawl_view view, const char *name, pawl_error *reterr);

#endif
