/* Exact nearest-neighbour search over unit vectors: the arithmetic and the best few, shared by all
 * backends so that the same embeddings give the same answer everywhere. */
#ifndef PAWL_LEDGER_RECALL_H
#define PAWL_LEDGER_RECALL_H

#include <pawl/ledger.h>

/* The cosine of two unit vectors of `dimensions` floats, -1 to 1. `vector` is bytes as they are
 * stored (little-endian, at any address) and has the right length. */
double pawl__recall_similarity(const float *query, pawl_view vector, size_t dimensions);

/* The same in plain C, one multiplication after the other: what tests and benches compare with. */
double pawl__recall_similarity_plain(const float *query, pawl_view vector, size_t dimensions);

/* The best `cap` of what was offered, ties by lower offset. */
struct recall_top {
    pawl_recalled *entries; /* a heap whose root is the worst; `cap` of them, at least one */
    size_t count;
    size_t cap;
};

void pawl__recall_offer(struct recall_top *top, pawl_recalled candidate);
void pawl__recall_sort(struct recall_top *top); /* best first; nothing may be offered after it */

#endif
