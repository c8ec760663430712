/* UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then 74 bits that start at random in every
 * millisecond and grow by a random step with every id made within it.
 *
 * One source gives strictly increasing ids, from all threads, also while the wall clock stands
 * still or steps back: it then stays at its last millisecond. Ids in time order keep the ends of
 * b-trees warm, which is worth a factor of two in the stores; nothing may decide by the time in
 * them. */
#ifndef PAWL_BASE_CORE_UUID_H
#define PAWL_BASE_CORE_UUID_H

#include <pawl/pawl.h>

#include "base/core/random.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"

struct pawl__uuid {
    uint8_t bytes[16]; /* in text order: memcmp sorts as strcmp of the lower-case texts does */
};

struct pawl__uuid_source {
    struct pawl__lock lock; /* covers everything below; the clock and the randomness, too */
    struct pawl__clock *clock;
    struct pawl__random *random;
    int64_t ms;      /* of the last id */
    uint64_t rand_a; /* 12 bits */
    uint64_t rand_b; /* 62 bits */
};

void pawl__uuid_source_init(struct pawl__uuid_source *source,
                            struct pawl__clock *clock,
                            struct pawl__random *random);
void pawl__uuid_source_done(struct pawl__uuid_source *source);

/* The one of this process, on the real clock: what everything uses outside tests. Static. */
struct pawl__uuid_source *pawl__uuid_process(void);

/* Any thread. Fails only when the randomness does. */
PAWL_MUST_USE pawl_status pawl__uuid_next(struct pawl__uuid_source *source,
                                          struct pawl__uuid *ret_uuid,
                                          pawl_error *reterr);

/* "019bd1a0-5c2e-7000-8000-000000000000", lower case, and a NUL. */
#define PAWL__UUID_TEXT_SIZE 37
void pawl__uuid_text(const struct pawl__uuid *uuid, char ret_text[PAWL__UUID_TEXT_SIZE]);

#endif
