/* One embedding, found on a walk over all of them: as long as a search, and as rare as one. */
#include <string.h>

#include "base/core/argument.h"
#include "base/core/buf.h"
#include "base/core/error.h"
#include "ledger/core/internal.h"
#include "ledger/recall/recall.h"

struct wanted {
    uint64_t offset;
    float *values;
    size_t room;
    size_t dimensions; /* 0: not found */
    bool over;         /* the walk is ended from here */
};

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static pawl_status copy_values(struct wanted *wanted, pawl_view vector, pawl_error *reterr)
{
    size_t dimensions = vector.len / sizeof(uint32_t);
    uint32_t bits;

    TRY(pawl__ledger_recall_check(wanted->offset, vector, reterr));
    if (dimensions > wanted->room) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "the embedding has %zu dimensions, there is room for %zu",
                          dimensions,
                          wanted->room);
    }
    for (size_t i = 0; pawl__view_take_u32le(&vector, &bits); i++) {
        wanted->values[i] = float_of(bits);
    }
    wanted->dimensions = dimensions;
    return PAWL_OK;
}

static pawl_status visit(void *context, uint64_t offset, pawl_view vector, pawl_error *reterr)
{
    struct wanted *wanted = context;

    if (offset == wanted->offset) {
        TRY(copy_values(wanted, vector, reterr));
    }
    if (offset >= wanted->offset) {
        wanted->over = true;
        return PAWL_CANCELLED; /* nothing more is wanted */
    }
    return PAWL_OK;
}

pawl_status pawl_ledger_get_embedding(pawl_ledger *ledger,
                                      uint64_t offset,
                                      float *ret_values,
                                      size_t room,
                                      size_t *ret_dimensions,
                                      pawl_error *reterr)
{
    struct wanted wanted = { .offset = offset, .room = room };
    pawl_error error = PAWL_ERROR_INIT;

    NEED(ledger, ret_values, ret_dimensions, reterr);
    wanted.values = ret_values;
    pawl_status status =
        ledger->backend->ops->embeddings(ledger->backend, NULL, visit, &wanted, &error);
    if (status != PAWL_OK && !wanted.over) {
        return pawl__fail_with(reterr, status, &error);
    }
    if (wanted.dimensions == 0) {
        return pawl__fail(
            reterr, PAWL_NOT_FOUND, "offset %llu has no embedding", (unsigned long long)offset);
    }
    *ret_dimensions = wanted.dimensions;
    return PAWL_OK;
}
