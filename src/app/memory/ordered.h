/* Keys in order, each with a value: a skip list. Finding, putting and deleting cost the logarithm of what is
 * there. One thread at a time. */
#ifndef PAWL_APP_MEMORY_ORDERED_H
#define PAWL_APP_MEMORY_ORDERED_H

#include <pawl/pawl.h>

#include "base/core/random.h"

enum { ORDERED_HEIGHT_MAX = 16 }; /* enough for 4^16 keys */

struct ordered_cell {
    struct ordered_cell *before; /* NULL: it is the first one */
    pawl_view key;
    pawl_view value;
    unsigned height;
    struct ordered_cell *after[]; /* by level; at 0 the next one. Behind it the bytes */
};

struct ordered {
    struct ordered_cell *first[ORDERED_HEIGHT_MAX];
    struct ordered_cell *last;
    struct pawl__prng random; /* for heights; any seed */
    size_t count;
    uint64_t compared; /* keys, in all calls so far */
};

void pawl__ordered_init(struct ordered *ordered);
void pawl__ordered_done(struct ordered *ordered);

/* Below 0, 0 or above it, byte by byte. */
int pawl__ordered_compare(pawl_view a, pawl_view b);

/* The cell of a key; NULL: there is none. Cells stay where they are until they are replaced or deleted. */
struct ordered_cell *pawl__ordered_find(struct ordered *ordered, pawl_view key);

/* The first cell whose key is not below this one; NULL: there is none. An empty key is below all others. */
struct ordered_cell *pawl__ordered_from(struct ordered *ordered, pawl_view key);

/* A cell with copies of both, which is nowhere yet; NULL: no memory. Free it with free() or put it. */
struct ordered_cell *pawl__ordered_cell(struct ordered *ordered, pawl_view key, pawl_view value);

/* Takes the cell over, in the place of one with the same key. Cannot fail. */
void pawl__ordered_put(struct ordered *ordered, struct ordered_cell *cell);

/* Does nothing when the key is not there. */
void pawl__ordered_delete(struct ordered *ordered, pawl_view key);

#endif
