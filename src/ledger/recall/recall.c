/* Recall: embeddings of events, and the events nearest to a question.
 *
 * Embeddings are normalised when they come in, so the cosine is a plain product of two vectors. The
 * search looks at every embedding that the filter lets through and keeps the best few in a heap: it
 * is exact, and its memory does not grow with the ledger. */
#include "ledger/recall/recall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "ledger/core/internal.h"

/* --- the best few --- */

static bool is_worse(const pawl_recalled *a, const pawl_recalled *b)
{
    return a->similarity != b->similarity ? a->similarity < b->similarity : a->offset > b->offset;
}

static void swap(pawl_recalled *a, pawl_recalled *b)
{
    pawl_recalled kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_up(struct recall_top *top, size_t at)
{
    while (at > 0 && is_worse(&top->entries[at], &top->entries[(at - 1) / 2])) {
        swap(&top->entries[at], &top->entries[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct recall_top *top, size_t at)
{
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < top->count; child++) {
            if (is_worse(&top->entries[child], &top->entries[worst])) {
                worst = child;
            }
        }
        if (worst == at) {
            return;
        }
        swap(&top->entries[at], &top->entries[worst]);
        at = worst;
    }
}

void pawl__ledger_recall_offer(struct recall_top *top, pawl_recalled candidate)
{
    if (top->count < top->cap) {
        top->entries[top->count++] = candidate;
        sift_up(top, top->count - 1);
    } else if (is_worse(&top->entries[0], &candidate)) {
        top->entries[0] = candidate;
        sift_down(top, 0);
    }
}

void pawl__ledger_recall_sort(struct recall_top *top)
{
    size_t count = top->count;

    while (top->count > 1) { /* the worst goes to the end, again and again */
        top->count--;
        swap(&top->entries[0], &top->entries[top->count]);
        sift_down(top, 0);
    }
    top->count = count;
}

/* --- vectors --- */

static void free_floats(float **floats)
{
    free(*floats);
}

static void free_recalled(pawl_recalled **recalled)
{
    free(*recalled);
}

static pawl_status check_dimensions(const float *values, size_t dimensions, pawl_error *reterr)
{
    if (values == NULL || dimensions == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "embedding: has no dimensions");
    }
    if (dimensions > PAWL_EMBEDDING_DIMENSIONS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "embedding: has %zu dimensions, the limit is %d",
                          dimensions,
                          PAWL_EMBEDDING_DIMENSIONS_MAX);
    }
    return PAWL_OK;
}

/* A malloc'ed copy of length 1. In double precision neither the largest floats overflow nor the
 * smallest vanish. */
static pawl_status unit_vector(const float *values,
                               size_t dimensions,
                               float **ret_unit,
                               pawl_error *reterr)
{
    double squares = 0;

    TRY(check_dimensions(values, dimensions, reterr));
    for (size_t i = 0; i < dimensions; i++) {
        if (!isfinite(values[i])) {
            return pawl__fail(reterr, PAWL_INVALID, "embedding: value %zu is not finite", i);
        }
        squares += (double)values[i] * (double)values[i];
    }
    if (squares == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "embedding: all values are zero");
    }
    float *unit = malloc(dimensions * sizeof(*unit));
    if (unit == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for an embedding");
    }
    double length = sqrt(squares);
    for (size_t i = 0; i < dimensions; i++) {
        unit[i] = (float)((double)values[i] / length);
    }
    *ret_unit = unit;
    return PAWL_OK;
}

pawl_status pawl_ledger_embed(pawl_ledger *ledger,
                              uint64_t offset,
                              const float *values,
                              size_t dimensions,
                              pawl_error *reterr)
{
    AUTO(free_floats) float *unit = NULL;

    NEED(ledger, reterr);
    TRY(unit_vector(values, dimensions, &unit, reterr));
    struct ledger_request request = {
        .kind = LEDGER_EMBED,
        .offset = offset,
        .vector = { (const char *)unit, dimensions * sizeof(*unit) },
        .item.bytes = dimensions * sizeof(*unit),
    };
    return pawl__ledger_submit(ledger, &request, reterr);
}

/* --- search --- */

struct search {
    const float *query;
    size_t dimensions;
    struct recall_top top;
    size_t first_bytes; /* of the first embedding that was read; 0: none was */
};

pawl_status pawl__ledger_recall_check(uint64_t offset, pawl_view vector, pawl_error *reterr)
{
    size_t limit = PAWL_EMBEDDING_DIMENSIONS_MAX * sizeof(float);

    return vector.len > 0 && vector.len % sizeof(float) == 0 && vector.len <= limit
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "the embedding of offset %llu has %zu bytes, which are no vector",
                            (unsigned long long)offset,
                            vector.len);
}

/* All of a ledger have one length; when two differ, one of them was not written by us. */
static pawl_status check_length(struct search *search,
                                uint64_t offset,
                                pawl_view vector,
                                pawl_error *reterr)
{
    TRY(pawl__ledger_recall_check(offset, vector, reterr));
    if (search->first_bytes != 0 && vector.len != search->first_bytes) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "the embedding of offset %llu has %zu dimensions, one before it has %zu",
                          (unsigned long long)offset,
                          vector.len / sizeof(float),
                          search->first_bytes / sizeof(float));
    }
    search->first_bytes = vector.len;
    return PAWL_OK;
}

static pawl_status score(void *context, uint64_t offset, pawl_view vector, pawl_error *reterr)
{
    struct search *search = context;

    TRY(check_length(search, offset, vector, reterr));
    TRY(pawl__ledger_check_dimensions(search->dimensions * sizeof(float), vector.len, reterr));
    double similarity = pawl__ledger_recall_similarity(search->query, vector, search->dimensions);
    if (!(fabs(similarity) <= RECALL_COSINE_MAX)) { /* NaN is not, either */
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "the embedding of offset %llu is no vector of length 1",
                          (unsigned long long)offset);
    }
    pawl__ledger_recall_offer(&search->top, (pawl_recalled){ offset, similarity });
    return PAWL_OK;
}

/* Leaves the answer in search->top, best first. */
static pawl_status find(struct ledger_backend *backend,
                        const pawl_event_filter *filter,
                        struct search *search,
                        pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = PAWL_UNSUPPORTED;

    if (backend->ops->nearest != NULL) {
        status = backend->ops->nearest(
            backend, search->query, search->dimensions, filter, &search->top, &error);
    }
    if (status == PAWL_OK) {
        return PAWL_OK;
    }
    if (status != PAWL_UNSUPPORTED) {
        return pawl__fail_with(reterr, status, &error);
    }
    status = backend->ops->embeddings(backend, filter, score, search, reterr);
    pawl__ledger_recall_sort(&search->top);
    return status;
}

pawl_status pawl_ledger_recall(pawl_ledger *ledger,
                               const float *values,
                               size_t dimensions,
                               const pawl_event_filter *filter,
                               pawl_recalled *ret_found,
                               size_t count,
                               size_t *ret_count,
                               pawl_error *reterr)
{
    AUTO(free_floats) float *query = NULL;
    pawl_event_filter checked;

    NEED(ledger, ret_found, ret_count, reterr);
    if (count == 0 || count > PAWL_RECALL_COUNT_MAX) {
        return pawl__fail(
            reterr, PAWL_INVALID, "count: is %zu, must be 1 to %d", count, PAWL_RECALL_COUNT_MAX);
    }
    TRY(pawl__ledger_check_filter(filter, &checked, reterr));
    TRY(unit_vector(values, dimensions, &query, reterr));
    AUTO(free_recalled) pawl_recalled *entries = calloc(count, sizeof(*entries));
    if (entries == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for %zu events", count);
    }
    struct search search = { query, dimensions, { entries, 0, count }, 0 };
    TRY(find(ledger->backend, filter == NULL ? NULL : &checked, &search, reterr));
    memcpy(ret_found, entries, search.top.count * sizeof(*entries));
    *ret_count = search.top.count;
    return PAWL_OK;
}
