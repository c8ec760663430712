#include "base/decide/lease.h"

#include <inttypes.h>

#include "base/core/error.h"
#include "base/os/clock.h"

bool pawl__lease_is_live(const struct pawl__lease *lease, int64_t now_ns)
{
    return lease->owner != 0 && now_ns < lease->deadline_ns;
}

static pawl_status deadline_of(int64_t now_ns,
                               int64_t ttl_ns,
                               int64_t *ret_deadline_ns,
                               pawl_error *reterr)
{
    if (ttl_ns <= 0) {
        return pawl__fail(
            reterr, PAWL_INVALID, "a lease of %" PRId64 " ns; it must be positive", ttl_ns);
    }
    if (__builtin_add_overflow(now_ns, ttl_ns, ret_deadline_ns)) {
        *ret_deadline_ns = INT64_MAX;
    }
    return PAWL_OK;
}

pawl_status pawl__lease_claim(
    struct pawl__lease *lease, uint64_t owner, int64_t now_ns, int64_t ttl_ns, pawl_error *reterr)
{
    int64_t deadline_ns = 0;

    REQUIRE(owner != 0);
    if (pawl__lease_is_live(lease, now_ns)) {
        return pawl__fail(reterr,
                          PAWL_BUSY,
                          "leased under token %" PRIu64 " for another %" PRId64 " ms",
                          lease->token,
                          (lease->deadline_ns - now_ns) / NS_PER_MS);
    }
    if (lease->token >= PAWL__LEASE_TOKEN_MAX) {
        return pawl__fail(
            reterr, PAWL_FAILED, "fencing tokens are used up at %" PRIu64, lease->token);
    }
    TRY(deadline_of(now_ns, ttl_ns, &deadline_ns, reterr));
    *lease = (struct pawl__lease){ owner, lease->token + 1, deadline_ns };
    return PAWL_OK;
}

pawl_status pawl__lease_check(const struct pawl__lease *lease,
                              uint64_t token,
                              int64_t now_ns,
                              pawl_error *reterr)
{
    if (token != lease->token || token == 0) {
        /* Tokens come from outside, so a wrong one is the caller's mistake, never ours. */
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "token %" PRIu64 " does not hold the lease, the newest is %" PRIu64,
                          token,
                          lease->token);
    }
    if (lease->owner == 0) {
        return pawl__fail(reterr,
                          PAWL_LEASE_LOST,
                          "the lease of token %" PRIu64 " was released or has expired",
                          token);
    }
    if (now_ns >= lease->deadline_ns) {
        return pawl__fail(
            reterr, PAWL_LEASE_LOST, "the lease of token %" PRIu64 " has expired", token);
    }
    return PAWL_OK;
}

pawl_status pawl__lease_renew(
    struct pawl__lease *lease, uint64_t token, int64_t now_ns, int64_t ttl_ns, pawl_error *reterr)
{
    int64_t deadline_ns = 0;

    TRY(pawl__lease_check(lease, token, now_ns, reterr));
    TRY(deadline_of(now_ns, ttl_ns, &deadline_ns, reterr));
    lease->deadline_ns = MAX(lease->deadline_ns, deadline_ns);
    return PAWL_OK;
}

pawl_status pawl__lease_release(struct pawl__lease *lease,
                                uint64_t token,
                                int64_t now_ns,
                                pawl_error *reterr)
{
    TRY(pawl__lease_check(lease, token, now_ns, reterr));
    lease->owner = 0;
    return PAWL_OK;
}

bool pawl__lease_expire(struct pawl__lease *lease, int64_t now_ns)
{
    if (lease->owner == 0 || pawl__lease_is_live(lease, now_ns)) {
        return false;
    }
    lease->owner = 0;
    return true;
}
