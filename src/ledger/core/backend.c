/* What all backends of a ledger say and check in the same way. */
#include "ledger/core/backend.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"

pawl_status pawl__ledger_fail_no_id(pawl_view id, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOT_FOUND, "no event with id '%.*s'", VIEW_ARGS(id));
}

pawl_status pawl__ledger_fail_no_offset(uint64_t offset, pawl_error *reterr)
{
    return pawl__fail(
        reterr, PAWL_NOT_FOUND, "no event at offset %llu", (unsigned long long)offset);
}

pawl_status pawl__ledger_fail_no_turn(pawl_view run_id, pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOT_FOUND, "no turn in run '%.*s'", VIEW_ARGS(run_id));
}

pawl_status pawl__ledger_check_first(int64_t offset, uint64_t *ret_bad, pawl_error *reterr)
{
    if (offset >= 1) {
        return PAWL_OK;
    }
    *ret_bad = 1;
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "inserted: an event stands before the first, at %lld",
                      (long long)offset);
}

pawl_status pawl__ledger_check_dimensions(size_t bytes, size_t stored_bytes, pawl_error *reterr)
{
    return stored_bytes == 0 || stored_bytes == bytes
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_INVALID,
                            "embedding: has %zu dimensions, those of this ledger have %zu",
                            bytes / sizeof(float),
                            stored_bytes / sizeof(float));
}

pawl_status pawl__ledger_set_hash(pawl_view stored, pawl_event *event, pawl_error *reterr)
{
    if (stored.len != sizeof(event->hash)) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "the hash of offset %llu has %zu bytes instead of %zu",
                          (unsigned long long)event->offset,
                          stored.len,
                          sizeof(event->hash));
    }
    memcpy(event->hash, stored.data, sizeof(event->hash));
    return PAWL_OK;
}

enum ledger_narrowing pawl__ledger_narrowing(const pawl_event_filter *filter)
{
    if (filter == NULL) {
        return LEDGER_BY_OFFSET;
    }
    return filter->run_id.len > 0  ? LEDGER_BY_RUN
           : filter->actor.len > 0 ? LEDGER_BY_ACTOR
           : filter->kind.len > 0  ? LEDGER_BY_KIND
                                   : LEDGER_BY_FILTER;
}
