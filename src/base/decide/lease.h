/* What a lease decides: who may work on something, until when, and who comes too late.
 *
 * Every grant carries a fencing token one higher than the grant before it. A call that changes leased
 * state passes its token, and a worker that was away too long (paused, partitioned, its clock
 * asleep) is told PAWL_LEASE_LOST at once, also when nobody else has claimed since.
 *
 * Pure: state, event and time in, state out. `now_ns` is the deciding process's own clock: boot
 * time on one machine, the server's clock on PostgreSQL; never a time that somebody else sent.
 * The deadline is the first moment at which the lease is no more: at exactly deadline_ns a renewal
 * is too late and a claim succeeds, so there is no moment with two holders and none with neither
 * answer.
 *
 * What must be stored is this struct, and it must be stored in the transaction that it decides. */
#ifndef PAWL_BASE_DECIDE_LEASE_H
#define PAWL_BASE_DECIDE_LEASE_H

#include <pawl/pawl.h>

/* Stores keep tokens in signed 64-bit columns. After the last one nothing is granted any more. */
#define PAWL__LEASE_TOKEN_MAX ((uint64_t)INT64_MAX)

struct pawl__lease {
    uint64_t owner;      /* 0: nobody */
    uint64_t token;      /* of the newest grant; 0: never granted. Never goes back, never reused */
    int64_t deadline_ns; /* meaningless without an owner */
};

bool pawl__lease_is_live(const struct pawl__lease *lease, int64_t now_ns);

/* Grants the lease to `owner` (not 0) under the next token, which is then in lease->token.
 * BUSY while it is live, also to its own holder: two grants at a time would share a token.
 * INVALID when `ttl_ns` is not positive; FAILED when the tokens are used up. A deadline beyond the
 * clock's range is its last moment. */
PAWL_MUST_USE pawl_status pawl__lease_claim(
    struct pawl__lease *lease, uint64_t owner, int64_t now_ns, int64_t ttl_ns, pawl_error *reterr);

/* PAWL_OK while `token` holds the lease, LEASE_LOST otherwise. */
PAWL_MUST_USE pawl_status pawl__lease_check(const struct pawl__lease *lease,
                                            uint64_t token,
                                            int64_t now_ns,
                                            pawl_error *reterr);

/* Moves the deadline to now + ttl, never back: a late heartbeat with a short ttl takes nothing
 * away. LEASE_LOST as in check, INVALID as in claim. */
PAWL_MUST_USE pawl_status pawl__lease_renew(
    struct pawl__lease *lease, uint64_t token, int64_t now_ns, int64_t ttl_ns, pawl_error *reterr);

/* Gives the lease back; the next claim need not wait. LEASE_LOST as in check. */
PAWL_MUST_USE pawl_status pawl__lease_release(struct pawl__lease *lease,
                                              uint64_t token,
                                              int64_t now_ns,
                                              pawl_error *reterr);

/* True when an owner's time had run out and the lease is now nobody's (what a watchdog counts);
 * false, with nothing changed, while it is live or when nobody had it. */
bool pawl__lease_expire(struct pawl__lease *lease, int64_t now_ns);

#endif
