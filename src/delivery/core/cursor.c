#include "delivery/core/cursor.h"

#include <inttypes.h>

#include "base/core/error.h"

static uint64_t settled(const struct delivery_counters *counters)
{
    return counters->delivered + counters->filtered + counters->failed;
}

uint64_t pawl__delivery_pending(const struct delivery_counters *counters)
{
    REQUIRE(pawl__delivery_counters_hold(counters));
    return counters->accepted - settled(counters);
}

bool pawl__delivery_counters_hold(const struct delivery_counters *counters)
{
    return settled(counters) <= counters->accepted;
}

pawl_status pawl__delivery_cursor_check(const struct delivery_cursor *stored,
                                        const struct delivery_cursor *next,
                                        pawl_error *reterr)
{
    if (stored == NULL) {
        return PAWL_OK;
    }
    if (next->fence < stored->fence) {
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "the sink is held under token %" PRIu64 ", this writer has %" PRIu64,
                          stored->fence,
                          next->fence);
    }
    if (next->version != stored->version + 1) {
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "the cursor is at version %" PRIu64 ", this writer expected %" PRIu64,
                          stored->version,
                          next->version - 1);
    }
    return PAWL_OK;
}

const char *pawl__delivery_loss_reason_name(enum delivery_loss_reason reason)
{
    static const char *const names[] = {
        [DELIVERY_LOSS_RECREATED] = "recreated", [DELIVERY_LOSS_ROLLED_BACK] = "rolled_back",
        [DELIVERY_LOSS_PURGED] = "purged",       [DELIVERY_LOSS_RETENTION] = "retention",
        [DELIVERY_LOSS_REBUILD] = "rebuild",
    };
    REQUIRE((size_t)reason < COUNT_OF(names));
    return names[reason];
}
