#include "delivery/core/breaker.h"

bool pawl__delivery_breaker_is_open(const struct delivery_breaker *breaker)
{
    return breaker->outages > 0;
}

bool pawl__delivery_breaker_allows(const struct delivery_breaker *breaker, int64_t now_ns)
{
    return breaker->outages == 0 || now_ns >= breaker->until_ns;
}

void pawl__delivery_breaker_outage(struct delivery_breaker *breaker,
                                   const struct pawl__backoff *backoff,
                                   int64_t now_ns,
                                   uint64_t random)
{
    breaker->outages++;
    breaker->until_ns = now_ns + pawl__backoff_ns(backoff, breaker->outages, random);
}

void pawl__delivery_breaker_success(struct delivery_breaker *breaker)
{
    *breaker = (struct delivery_breaker){ .outages = 0 };
}
