#include "base/core/uuid.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/hex.h"

#define MS_MAX ((INT64_C(1) << 48) - 1)
#define MS_NONE (-1) /* before the first id: any clock is ahead of it */
#define RAND_A_MAX ((UINT64_C(1) << 12) - 1)
#define RAND_B_MAX ((UINT64_C(1) << 62) - 1)
/* Large, so that two processes that share a start (after a fork, within one millisecond) part at
 * once; small, so that a millisecond has room for 2^25 ids. */
#define STEP_MASK ((UINT64_C(1) << 48) - 1)

void pawl__uuid_source_init(struct pawl__uuid_source *source,
                            struct pawl__clock *clock,
                            struct pawl__random *random)
{
    *source = (struct pawl__uuid_source){ .clock = clock, .random = random, .ms = MS_NONE };
    pawl__lock_init(&source->lock);
}

void pawl__uuid_source_done(struct pawl__uuid_source *source)
{
    pawl__lock_done(&source->lock);
}

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static struct pawl__uuid_source process_source = { .lock = { PTHREAD_MUTEX_INITIALIZER },
                                                   .ms = MS_NONE };

static void process_init(void)
{
    process_source.clock = pawl__clock_or_real(NULL);
    process_source.random = pawl__random_real();
}

struct pawl__uuid_source *pawl__uuid_process(void)
{
    REQUIRE(pthread_once(&process_once, process_init) == 0);
    return &process_source;
}

static int64_t clock_ms(struct pawl__clock *clock)
{
    return MIN(MAX(pawl__wall_us(clock), 0) / 1000, MS_MAX);
}

static pawl_status step_locked(struct pawl__uuid_source *source, pawl_error *reterr)
    REQUIRES_LOCK(source->lock)
{
    uint64_t drawn[2];

    TRY(pawl__random_bytes(source->random, drawn, sizeof(drawn), reterr));
    int64_t now_ms = clock_ms(source->clock);
    if (now_ms > source->ms) {
        source->ms = now_ms;
        source->rand_a = drawn[0] & RAND_A_MAX >> 1; /* the highest bit is room to grow */
        source->rand_b = drawn[1] & RAND_B_MAX;
        return PAWL_OK;
    }
    source->rand_b += 1 + (drawn[0] & STEP_MASK);
    source->rand_a += source->rand_b >> 62;
    source->rand_b &= RAND_B_MAX;
    /* Out of room: borrow from the next millisecond. The clock catches up, or we stay ahead. */
    source->ms += (int64_t)(source->rand_a >> 12);
    source->rand_a &= RAND_A_MAX;
    REQUIRE(source->ms <= MS_MAX);
    return PAWL_OK;
}

static void put_be(uint8_t *bytes, uint64_t value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> (8 * (count - 1 - i)));
    }
}

pawl_status pawl__uuid_next(struct pawl__uuid_source *source,
                            struct pawl__uuid *ret_uuid,
                            pawl_error *reterr)
{
    pawl__lock(&source->lock);
    pawl_status status = step_locked(source, reterr);
    uint64_t ms = (uint64_t)source->ms;
    uint64_t rand_a = source->rand_a;
    uint64_t rand_b = source->rand_b;
    pawl__unlock(&source->lock);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "make an id");
    }
    put_be(&ret_uuid->bytes[0], ms, 6);
    put_be(&ret_uuid->bytes[6], UINT64_C(7) << 12 | rand_a, 2);
    put_be(&ret_uuid->bytes[8], UINT64_C(2) << 62 | rand_b, 8);
    return PAWL_OK;
}

static bool hyphen_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void pawl__uuid_text(const struct pawl__uuid *uuid, char ret_text[PAWL__UUID_TEXT_SIZE])
{
    size_t at = 0;

    for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
        if (hyphen_before(i)) {
            ret_text[at++] = '-';
        }
        pawl__hex_byte(uuid->bytes[i], &ret_text[at]);
        at += 2;
    }
    ret_text[at] = '\0';
}
