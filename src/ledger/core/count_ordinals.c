/* Counts the stored events without ids of an actor and kind in an attempt. Their ids follow from the
 * ordinals 0, 1, 2, ... without a hole: so it is enough to find the first that is not stored. */
#include "base/core/error.h"
#include "ledger/core/event.h"
#include "ledger/core/write.h"

struct asked {
    struct ledger_backend *backend;
    const pawl_event *event;
    uint32_t attempt;
};

static pawl_status note_found(void *context, const pawl_event *event, pawl_error *reterr)
{
    (void)event;
    (void)reterr;
    *(bool *)context = true;
    return PAWL_OK;
}

static pawl_status is_stored(const struct asked *asked,
                             uint64_t ordinal,
                             bool *ret_stored,
                             pawl_error *reterr)
{
    struct ledger_backend *backend = asked->backend;
    char text[PAWL__EVENT_ID_SIZE];

    *ret_stored = false;
    TRY(pawl__ledger_event_derive_id(asked->event, asked->attempt, ordinal, text, reterr));
    pawl_view id = pawl_view_of(text);
    return backend->ops->lookup(backend, &id, 1, note_found, ret_stored, reterr);
}

/* Doubles the ordinal until none is stored, then halves the range. */
static pawl_status count_all(const struct asked *asked, uint64_t *ret_count, pawl_error *reterr)
{
    uint64_t low = 0; /* lower bound of how many are stored */
    uint64_t high = 1;
    bool stored;

    TRY(is_stored(asked, 0, &stored, reterr));
    while (stored && high < UINT64_MAX / 2) {
        low = high;
        high *= 2;
        TRY(is_stored(asked, high - 1, &stored, reterr));
    }
    high--; /* ... and at most so many */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        TRY(is_stored(asked, middle, &stored, reterr));
        if (stored) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_count = low;
    return PAWL_OK;
}

/* Two lookups are enough as a rule: the given ordinal is stored, or it is the next one. */
static pawl_status count_for(const struct asked *asked,
                             struct ledger_ordinal *ordinal,
                             pawl_error *reterr)
{
    uint64_t given = ordinal->given;
    bool stored = false;

    if (given == PAWL_ORDINAL_FIRST) {
        return count_all(asked, &ordinal->stored, reterr);
    }
    TRY(is_stored(asked, given, &stored, reterr));
    if (!stored && given > 0) {
        TRY(is_stored(asked, given - 1, &stored, reterr));
        if (!stored) {
            return count_all(asked, &ordinal->stored, reterr);
        }
    }
    ordinal->stored = given;
    return PAWL_OK;
}

pawl_status pawl__ledger_count_ordinals(struct ledger_backend *backend,
                                        const struct ledger_request *request,
                                        pawl_error *reterr)
{
    for (size_t i = 0; i < request->ordinal_count; i++) {
        struct ledger_ordinal *ordinal = &request->ordinals[i];
        struct asked asked = { backend, &request->events[ordinal->event], request->attempt };

        TRY(count_for(&asked, ordinal, reterr));
    }
    return PAWL_OK;
}
