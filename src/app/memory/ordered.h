/* Keys in order, each with a value: a skip list. Finding, putting and deleting cost the logarithm of what is
 * there. One thread at a time. */
#ifndef PAWL_APP_MEMORY_ORDERED_H
#define PAWL_APP_MEMORY_ORDERED_H

#include <pawl/pawl.h>

#include "base/core/random.h"

enum { ORDERED_HEIGHT_MAX = 16 }; /* enough for 4^16 keys */

struct app_ordered_cell {
    struct app_ordered_cell *before; /* NULL: it is the first one */
    pawl_view key;
    pawl_view value;
    unsigned height;
    struct app_ordered_cell *after[]; /* by level; at 0 the next one. Behind it the bytes */
};

struct app_ordered {
    struct app_ordered_cell *first[ORDERED_HEIGHT_MAX];
    struct app_ordered_cell *last;
    struct pawl__prng random; /* for heights; any seed */
    size_t count;
    uint64_t compared; /* keys, in all calls so far */
};

void pawl__app_ordered_init(struct app_ordered *ordered);
void pawl__app_ordered_done(struct app_ordered *ordered);

/* Below 0, 0 or above it, byte by byte. */
int pawl__app_ordered_compare(pawl_view a, pawl_view b);

/* The cell of a key; NULL: there is none. Cells stay where they are until they are replaced or deleted. */
struct app_ordered_cell *pawl__app_ordered_find(struct app_ordered *ordered, pawl_view key);

/* The first cell whose key is not below this one; NULL: there is none. An empty key is below all others. */
struct app_ordered_cell *pawl__app_ordered_from(struct app_ordered *ordered, pawl_view key);

/* A cell with copies of both, which is nowhere yet; NULL: no memory. Free it with free() or put it. */
struct app_ordered_cell *pawl__app_ordered_cell(struct app_ordered *ordered,
                                                pawl_view key,
                                                pawl_view value);

/* Takes the cell over, in the place of one with the same key. Cannot fail. */
void pawl__app_ordered_put(struct app_ordered *ordered, struct app_ordered_cell *cell);

/* Does nothing when the key is not there. */
void pawl__app_ordered_delete(struct app_ordered *ordered, pawl_view key);

#endif
