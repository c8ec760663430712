#include "base/core/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/core/error.h"

static pawl_status real_bytes(struct pawl__random *random,
                              void *ret_bytes,
                              size_t len,
                              pawl_error *reterr)
{
    char *bytes = ret_bytes;

    (void)random;
    /* Up to 256 bytes come whole; more may be cut by a signal. */
    for (size_t done = 0; done < len;) {
        ssize_t got = getrandom(bytes + done, len - done, 0);
        if (got < 0 && errno != EINTR) {
            return pawl__fail_errno(reterr, errno, "read random bytes");
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return PAWL_OK;
}

struct pawl__random *pawl__random_real(void)
{
    static struct pawl__random random = { real_bytes };

    return &random;
}

pawl_status pawl__random_bytes(struct pawl__random *random,
                               void *ret_bytes,
                               size_t len,
                               pawl_error *reterr)
{
    return random->bytes(random, ret_bytes, len, reterr);
}

/* splitmix64: spreads any seed, zero included, over the whole state. */
struct pawl__prng pawl__prng_seeded(uint64_t seed)
{
    struct pawl__prng prng;

    for (size_t i = 0; i < COUNT_OF(prng.state); i++) {
        seed += 0x9E3779B97F4A7C15;
        uint64_t mixed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
        prng.state[i] = mixed ^ mixed >> 31;
    }
    return prng;
}

static uint64_t rotate(uint64_t value, int by)
{
    return value << by | value >> (64 - by);
}

uint64_t pawl__prng_next(struct pawl__prng *prng)
{
    uint64_t *s = prng->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t pawl__prng_below(struct pawl__prng *prng, uint64_t bound)
{
    REQUIRE(bound > 0);
    /* The lowest 2^64 mod bound values would make the first remainders likelier: draw again. */
    uint64_t unfair = -bound % bound;
    uint64_t drawn = pawl__prng_next(prng);

    while (drawn < unfair) {
        drawn = pawl__prng_next(prng);
    }
    return drawn % bound;
}

int64_t pawl__prng_between(struct pawl__prng *prng, int64_t low, int64_t high)
{
    REQUIRE(low <= high);
    uint64_t span = (uint64_t)high - (uint64_t)low;
    uint64_t offset = span == UINT64_MAX ? pawl__prng_next(prng) : pawl__prng_below(prng, span + 1);

    return (int64_t)((uint64_t)low + offset);
}

static pawl_status seeded_bytes(struct pawl__random *random,
                                void *ret_bytes,
                                size_t len,
                                pawl_error *reterr)
{
    struct pawl__random_seeded *seeded = (struct pawl__random_seeded *)random; /* first member */
    char *bytes = ret_bytes;

    (void)reterr;
    for (size_t done = 0; done < len; done += sizeof(uint64_t)) {
        uint64_t drawn = pawl__prng_next(&seeded->prng);
        memcpy(bytes + done, &drawn, MIN(sizeof(drawn), len - done));
    }
    return PAWL_OK;
}

struct pawl__random_seeded pawl__random_seeded_with(uint64_t seed)
{
    return (struct pawl__random_seeded){
        .base = { seeded_bytes },
        .prng = pawl__prng_seeded(seed),
    };
}
