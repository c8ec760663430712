/* Memory for many small things that end together.
 *
 * What is taken stays where it is until the arena is cleared or freed; there is no way to give a
 * single piece back. A cleared arena keeps its largest chunk, so a page that is filled again and
 * again allocates nothing. One thread at a time. */
#ifndef PAWL_BASE_CORE_ARENA_H
#define PAWL_BASE_CORE_ARENA_H

#include <pawl/pawl.h>

struct pawl__arena_chunk;

struct pawl__arena {
    struct pawl__arena_chunk *chunk; /* the one that is being filled, then the full ones */
    size_t used;                     /* bytes of the first chunk */
};

#define ARENA_INIT    \
    {                 \
        .chunk = NULL \
    }

void pawl__arena_done(struct pawl__arena *arena);
void pawl__arena_clear(struct pawl__arena *arena);

/* `size` bytes, aligned for anything, not initialised; NULL without memory. */
void *pawl__arena_take(struct pawl__arena *arena, size_t size);

/* A copy of the bytes with a NUL behind them; false without memory. */
PAWL_MUST_USE bool pawl__arena_copy(struct pawl__arena *arena,
                                    pawl_view bytes,
                                    pawl_view *ret_copy);

#endif
