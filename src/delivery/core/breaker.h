/* The circuit breaker of a pipeline's sink: after an outage nothing is tried until a wait has passed, then one
 * transaction; its success closes the breaker, another outage doubles the wait. No event loses an attempt by it.
 *
 *     closed --outage--> open until T --time--> one try --ok--> closed
 *                          ^                       |
 *                          +--------outage---------+ */
#ifndef PAWL_DELIVERY_CORE_BREAKER_H
#define PAWL_DELIVERY_CORE_BREAKER_H

#include "base/decide/backoff.h"

struct delivery_breaker {
    uint64_t outages; /* one after another; 0: closed */
    int64_t until_ns; /* monotonic: nothing is tried before it */
};

bool pawl__delivery_breaker_is_open(const struct delivery_breaker *breaker);
bool pawl__delivery_breaker_allows(const struct delivery_breaker *breaker, int64_t now_ns);
void pawl__delivery_breaker_outage(struct delivery_breaker *breaker,
                                   const struct pawl__backoff *backoff,
                                   int64_t now_ns,
                                   uint64_t random);
void pawl__delivery_breaker_success(struct delivery_breaker *breaker);

#endif
