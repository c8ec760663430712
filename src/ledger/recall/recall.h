/* Exact nearest-neighbour search over unit vectors: the arithmetic and the best few, shared by all
 * backends so that the same embeddings give the same answer everywhere. */
#ifndef PAWL_LEDGER_RECALL_RECALL_H
#define PAWL_LEDGER_RECALL_RECALL_H

#include <pawl/ledger.h>

/* CORRUPT when the bytes cannot be an embedding, of whatever dimensions. */
PAWL_MUST_USE pawl_status pawl__ledger_recall_check(uint64_t offset,
                                                    pawl_view vector,
                                                    pawl_error *reterr);

#define RECALL_COSINE_MAX 1.001 /* 1, and what rounding 16,000 floats may add */

/* The cosine of two unit vectors of `dimensions` floats, -1 to 1; beyond RECALL_COSINE_MAX, or not a
 * number, when the stored one is none. `vector` is bytes as they are stored (little-endian, at any
 * address) and has the right length. */
double pawl__ledger_recall_similarity(const float *query, pawl_view vector, size_t dimensions);

/* The best `cap` of what was offered, ties by lower offset. */
struct recall_top {
    pawl_recalled *entries; /* a heap whose root is the worst; `cap` of them, at least one */
    size_t count;
    size_t cap;
};

void pawl__ledger_recall_offer(struct recall_top *top, pawl_recalled candidate);
void pawl__ledger_recall_sort(
    struct recall_top *top); /* best first; nothing may be offered after it */

#endif
