#include "net/h2/core/bucket.h"

#include "base/core/macros.h"
#include "base/os/clock.h"

bool pawl__h2_bucket_take(struct pawl__h2_bucket *bucket, int64_t now_ns)
{
    int64_t passed_ns = now_ns - bucket->at_ns;
    int64_t token_ns = NS_PER_S / bucket->per_second;

    /* Only whole tokens move the time on, so that many small steps give as much back as one large one. */
    int64_t back = passed_ns <= 0 ? 0 : passed_ns / token_ns;
    if (back >= bucket->spent) {
        bucket->spent = 0;
        bucket->at_ns = MAX(bucket->at_ns, now_ns);
    } else {
        bucket->spent -= back;
        bucket->at_ns += back * token_ns;
    }
    if (bucket->spent >= bucket->burst) {
        return false;
    }
    bucket->spent++;
    return true;
}

void pawl__h2_pace_begin(struct pawl__h2_pace *pace, int64_t now_ns, int64_t stall_ns)
{
    if (pace->by_ns == INT64_MAX) {
        pace->by_ns = now_ns + stall_ns;
    }
}

void pawl__h2_pace_more(struct pawl__h2_pace *pace, int64_t now_ns, int64_t stall_ns, size_t bytes)
{
    if (pace->by_ns != INT64_MAX) {
        int64_t bought_ns = (int64_t)bytes * (NS_PER_S / PAWL__H2_PACE_BYTES_PER_S);
        pace->by_ns = MIN(now_ns + stall_ns, pace->by_ns + bought_ns);
    }
}

void pawl__h2_pace_end(struct pawl__h2_pace *pace)
{
    pace->by_ns = INT64_MAX;
}
