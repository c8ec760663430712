/* How often something may happen: a bucket of tokens that fills with time. Pure. */
#ifndef PAWL_NET_H2_CORE_BUCKET_H
#define PAWL_NET_H2_CORE_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pawl__h2_bucket {
    int64_t burst;      /* tokens of a full one */
    int64_t per_second; /* tokens that come back */
    int64_t spent;      /* tokens that are missing */
    int64_t at_ns;      /* when `spent` was last brought up to date */
};

#define PAWL__H2_BUCKET_INIT(burst_, per_second_)      \
    {                                                  \
        .burst = (burst_), .per_second = (per_second_) \
    }

/* Takes a token; false when none is left. A time before the last one gives nothing back. */
bool pawl__h2_bucket_take(struct pawl__h2_bucket *bucket, int64_t now_ns);

/* Whether somebody takes what we have for them fast enough: each byte that leaves buys time, up to a maximum, so that
 * a byte now and then is no progress. */
enum { PAWL__H2_PACE_BYTES_PER_S = 1024 };
struct pawl__h2_pace {
    int64_t by_ns; /* too slow from then on; INT64_MAX: nothing waits */
};

#define PAWL__H2_PACE_INIT \
    {                      \
        .by_ns = INT64_MAX \
    }

void pawl__h2_pace_begin(struct pawl__h2_pace *pace,
                         int64_t now_ns,
                         int64_t stall_ns); /* unless it has */
void pawl__h2_pace_more(struct pawl__h2_pace *pace, int64_t now_ns, int64_t stall_ns, size_t bytes);
void pawl__h2_pace_end(struct pawl__h2_pace *pace);

#endif
