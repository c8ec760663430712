/* The difference of two sets in bounded memory: an invertible Bloom lookup table. Items of one set are added,
 * those of the other removed, in any order; when few differ, each of them can be listed. Pure. */
#ifndef PAWL_APP_VERIFY_SKETCH_H
#define PAWL_APP_VERIFY_SKETCH_H

#include "base/core/hash.h"
#include "base/core/macros.h"

enum { SKETCH_WORDS = 5, SKETCH_NAMED_MAX = 30000 }; /* differences that can be named, about */

struct app_sketch_item {
    uint64_t words[SKETCH_WORDS];
};

struct app_sketch;

PAWL_MUST_USE pawl_status pawl__app_sketch_new(struct app_sketch **ret_sketch, pawl_error *reterr);
void pawl__app_sketch_free(struct app_sketch *sketch);
DEFINE_AUTO(struct app_sketch *, pawl__app_sketch_free)

void pawl__app_sketch_add(struct app_sketch *sketch, const struct app_sketch_item *item);
void pawl__app_sketch_remove(struct app_sketch *sketch, const struct app_sketch_item *item);

/* A hash of bytes for a word of an item; it means nothing elsewhere. */
uint64_t pawl__app_sketch_hash(const struct app_sketch *sketch, pawl_view bytes);

/* Hands on what is left, and whether it was added (or taken away). False: there is more than could be named.
 * Nothing that was named is left in it. */
typedef void (*app_sketch_visitor)(void *context, const struct app_sketch_item *item, bool added);
bool pawl__app_sketch_name(struct app_sketch *sketch, app_sketch_visitor visitor, void *context);

#endif
