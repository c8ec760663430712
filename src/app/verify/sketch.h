/* What is in one of two heaps of items and not in the other, in memory that does not grow with the heaps: an
 * invertible Bloom lookup table. Items of the first are added, those of the second taken away, in any order;
 * what is in both leaves no trace, and what is left is named as long as it is not too much of it. Pure. */
#ifndef PAWL_APP_VERIFY_SKETCH_H
#define PAWL_APP_VERIFY_SKETCH_H

#include "base/core/hash.h"
#include "base/core/macros.h"

enum { SKETCH_WORDS = 5, SKETCH_NAMED_MAX = 30000 }; /* differences that can be named, about */

struct sketch_item {
    uint64_t words[SKETCH_WORDS];
};

struct sketch;

PAWL_MUST_USE pawl_status pawl__sketch_new(struct sketch **ret_sketch, pawl_error *reterr);
void pawl__sketch_free(struct sketch *sketch);
DEFINE_AUTO(struct sketch *, pawl__sketch_free)

void pawl__sketch_add(struct sketch *sketch, const struct sketch_item *item);
void pawl__sketch_remove(struct sketch *sketch, const struct sketch_item *item);

/* A hash of bytes for a word of an item; it means nothing elsewhere. */
uint64_t pawl__sketch_hash(const struct sketch *sketch, pawl_view bytes);

/* Hands on what is left, and whether it was added (or taken away). False: there is more than could be named.
 * Nothing that was named is left in it. */
typedef void (*sketch_visitor)(void *context, const struct sketch_item *item, bool added);
bool pawl__sketch_name(struct sketch *sketch, sketch_visitor visitor, void *context);

#endif
