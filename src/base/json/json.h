/* JSON: jansson's values, with limits on what comes in, errors that name the place, and one way to
 * write each value down.
 *
 * json_t is jansson's: json_auto_t frees, json_incref shares. Build values with its functions. */
#ifndef PAWL_BASE_JSON_JSON_H
#define PAWL_BASE_JSON_JSON_H

#include <jansson.h>

#include <pawl/pawl.h>

#include "base/core/buf.h"

enum { PAWL__JSON_DEPTH_MAX = 64 }; /* arrays and objects inside each other */

/* Reads one value of any type. INVALID, with line and column, for: more than `bytes_max` bytes or
 * PAWL__JSON_DEPTH_MAX levels, anything behind the value, a key twice in one object, bytes that are
 * not UTF-8, U+0000 (escaped, too), half a surrogate pair, an integer outside int64 and a real
 * outside double. */
PAWL_MUST_USE pawl_status pawl__json_parse(pawl_view text,
                                           size_t bytes_max,
                                           json_t **ret_json,
                                           pawl_error *reterr);

/* The same rules and the same errors, without making values: several times as fast. */
PAWL_MUST_USE pawl_status pawl__json_check(pawl_view text, size_t bytes_max, pawl_error *reterr);

/* Appends the value without white space, keys in the order in which they were set. Reals have the
 * fewest digits that read back the same, and a point or an exponent that shows they are reals. */
PAWL_MUST_USE pawl_status pawl__json_dump(json_t *json, struct pawl__buf *buf, pawl_error *reterr);

/* Appends the canonical form: equal values give equal bytes, so it can be hashed. It is RFC 8785
 * but for large numbers:
 *
 *   keys      sorted by their UTF-16 code units
 *   strings   UTF-8 as it is; \" \\ \b \t \n \f \r, and \u00xx for the other control characters
 *   integers  exactly as they are, also beyond 2^53, where RFC 8785 would round
 *   reals     as ECMAScript writes them, -0 as 0; so 1.0, 1e0 and 1 are all 1. From 2^53 on always
 *             with an exponent (1e+20, where RFC 8785 writes the zeros), so that a real is never
 *             taken for an integer that it only approximates
 *
 * Reading the result and writing it again gives the same bytes. Hashes that are stored depend on
 * every byte of this: it may not change. */
PAWL_MUST_USE pawl_status pawl__json_canonical(json_t *json,
                                               struct pawl__buf *buf,
                                               pawl_error *reterr);

/* Whether two texts are the same value, however they are written. What is no JSON is the same as
 * nothing but itself. NOMEM. */
PAWL_MUST_USE pawl_status pawl__json_same(pawl_view a,
                                          pawl_view b,
                                          bool *ret_same,
                                          pawl_error *reterr);

/* A value and where it stands, so that an error can say "payload.items[3].id". A node points to the
 * node it came from, which must stay where it is; all of them borrow the value.
 *
 *     struct pawl__json_node root = pawl__json_root(json, "payload");
 *     status = pawl__json_text(pawl__json_key(&root, "id"), &id, reterr);
 *     status = pawl__json_int(pawl__json_optional(&root, "limit"), 1, 1000, &limit, reterr);
 */
struct pawl__json_node {
    json_t *value; /* NULL: there is none */
    const struct pawl__json_node *parent;
    const char *name; /* the key, or what the root is called; NULL: the item `index` of an array */
    size_t index;
    bool optional;
};

struct pawl__json_node pawl__json_root(json_t *json, const char *name); /* name may be "" */

/* The value of a key of an object that pawl__json_object has checked. Reading it fails when the key
 * is missing. */
struct pawl__json_node pawl__json_key(const struct pawl__json_node *object, const char *key);

/* The same, but where the key is missing or null, reading does nothing and is OK: fill the output
 * with the default before. */
struct pawl__json_node pawl__json_optional(const struct pawl__json_node *object, const char *key);

/* An item of an array that pawl__json_array has checked; index < pawl__json_count. */
struct pawl__json_node pawl__json_item(const struct pawl__json_node *array, size_t index);
size_t pawl__json_count(const struct pawl__json_node *array);

/* Reading. Each is INVALID with "<path>: expected a string, found a number" or "<path>: missing".
 * A text lives as long as its value and has no NUL inside. A number with a point or an
 * exponent is never an integer: it may have been rounded when it was read. */
PAWL_MUST_USE pawl_status pawl__json_text(struct pawl__json_node node,
                                          pawl_view *ret_text,
                                          pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__json_int(
    struct pawl__json_node node, int64_t min, int64_t max, int64_t *ret_value, pawl_error *reterr);
/* A duration, "30s", in milliseconds from `range[0]` to `range[1]`. */
PAWL_MUST_USE pawl_status pawl__json_duration(struct pawl__json_node node,
                                              const int64_t range[2],
                                              int64_t *ret_ms,
                                              pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__json_real(struct pawl__json_node node,
                                          double *ret_value,
                                          pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__json_bool(struct pawl__json_node node,
                                          bool *ret_value,
                                          pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__json_object(struct pawl__json_node node,
                                            struct pawl__json_node *ret_object,
                                            pawl_error *reterr);
PAWL_MUST_USE pawl_status pawl__json_array(struct pawl__json_node node,
                                           struct pawl__json_node *ret_array,
                                           pawl_error *reterr);

/* Refuses the first key of the object that is not among `names`, and says which were meant. */
PAWL_MUST_USE pawl_status pawl__json_only(const struct pawl__json_node *object,
                                          const char *const *names,
                                          size_t count,
                                          pawl_error *reterr);

/* For what a reader finds wrong beyond types: INVALID with "<path>: " before the message. */
PRINTF_LIKE(3, 4)
pawl_status pawl__json_fail(const struct pawl__json_node *node,
                            pawl_error *reterr,
                            const char *format,
                            ...);

#endif
