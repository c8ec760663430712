#include "base/decide/backoff.h"

#include "base/core/macros.h"

int64_t pawl__backoff_ceiling_ns(const struct pawl__backoff *backoff, uint64_t attempt)
{
    REQUIRE(backoff->first_ns >= 1);
    REQUIRE(backoff->max_ns >= backoff->first_ns);
    int64_t ceiling = backoff->first_ns;

    /* Ends after 63 rounds at most: by then any number has passed any maximum. */
    for (uint64_t i = 1; i < attempt && ceiling < backoff->max_ns; i++) {
        ceiling = ceiling > backoff->max_ns / 2 ? backoff->max_ns : ceiling * 2;
    }
    return ceiling;
}

int64_t pawl__backoff_ns(const struct pawl__backoff *backoff, uint64_t attempt, uint64_t random)
{
    int64_t ceiling = pawl__backoff_ceiling_ns(backoff, attempt);
    int64_t half = ceiling - ceiling / 2; /* rounded up: a wait is never 0 */
    uint64_t width = (uint64_t)(ceiling - half) + 1;

    return half + (int64_t)(random % width);
}
