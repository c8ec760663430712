/* How far a reader has got in a numbered sequence, and what it has not seen on the way.
 *
 * Every number up to the watermark has been seen, stands in a hole, or was given up (declared
 * lost). The watermark moves past a missing number only by putting it into a hole, so a cursor that
 * is stored in the transaction of the data it covers forgets nothing.
 *
 *     seen 1-4 and 8-9:     watermark 9, one hole 5-7
 *     then seen 6:          watermark 9, holes 5-5 and 7-7, each as old as the hole it was part of
 *
 * Numbers are 1 .. PAWL__CURSOR_SEQ_MAX. There are at most PAWL__CURSOR_HOLES_MAX holes: what
 * would make one more (a jump ahead, a split) is refused with BUSY and changes nothing, so the
 * watermark stays before the hole that could not be put on record. The reader then fills holes or
 * gives some up before it reads on.
 *
 * `now_us` is the caller's own clock, whichever one it decides by; the cursor only stores it. A
 * clock that does not survive a restart is fine: see pawl__cursor_restamp.
 *
 * Threads: one at a time. No I/O and no clock inside; only the list of holes is allocated, and a
 * call that finds no memory for it (NOMEM) changes nothing. */
#ifndef PAWL_BASE_DECIDE_CURSOR_H
#define PAWL_BASE_DECIDE_CURSOR_H

#include "base/core/buf.h"

#define PAWL__CURSOR_SEQ_MAX ((uint64_t)INT64_MAX)
#define PAWL__CURSOR_HOLES_MAX 4096

struct pawl__hole {
    uint64_t first;
    uint64_t last;    /* inclusive */
    int64_t found_us; /* when it was first seen to be missing */
};

struct pawl__cursor {
    uint64_t watermark; /* 0: nothing yet */
    uint64_t lost;      /* how many numbers were given up */
    size_t hole_count;
    size_t hole_cap;
    struct pawl__hole *holes; /* ascending; at least one number between two, all before watermark */
};

#define CURSOR_INIT \
    {               \
        0           \
    }

void pawl__cursor_done(struct pawl__cursor *cursor); /* empty again, and usable */

/* The numbers first..last are there. Fills holes that they lie in, records what they jump over and
 * moves the watermark. `ret_new` (NULL allowed) is how many were not known before: 0 means that all
 * of it is a repetition. INVALID for a range that is none. */
PAWL_MUST_USE pawl_status pawl__cursor_observe(struct pawl__cursor *cursor,
                                               uint64_t first,
                                               uint64_t last,
                                               int64_t now_us,
                                               uint64_t *ret_new,
                                               pawl_error *reterr);

/* Fills only what lies in holes, and never moves the watermark: the answer to a question about a
 * hole. `ret_filled` as in observe. */
PAWL_MUST_USE pawl_status pawl__cursor_resolve(struct pawl__cursor *cursor,
                                               uint64_t first,
                                               uint64_t last,
                                               uint64_t *ret_filled,
                                               pawl_error *reterr);

/* Gives up what lies in holes: no hole any more, counted in `lost`. A number that turns up later
 * after all counts as a repetition. */
PAWL_MUST_USE pawl_status pawl__cursor_declare_lost(struct pawl__cursor *cursor,
                                                    uint64_t first,
                                                    uint64_t last,
                                                    uint64_t *ret_lost,
                                                    pawl_error *reterr);

/* True when `seq` is decided: at or below the watermark and in no hole. */
bool pawl__cursor_has(const struct pawl__cursor *cursor, uint64_t seq);

/* Everything up to here is decided: the watermark, or just before the first hole. */
uint64_t pawl__cursor_complete_to(const struct pawl__cursor *cursor);

uint64_t pawl__cursor_missing(const struct pawl__cursor *cursor); /* numbers in holes */

/* The first hole behind `after` that was found at least `grace_us` ago; NULL when there is none. It
 * points into the cursor and is good until the next change. Walk them all with after = hole->last.
 */
const struct pawl__hole *pawl__cursor_next_due(const struct pawl__cursor *cursor,
                                               uint64_t after,
                                               int64_t now_us,
                                               int64_t grace_us);

/* Says that every hole was found now. For a reader that decides by a clock which starts anew with
 * the process or the machine: after decoding, each hole gets its whole grace again. */
void pawl__cursor_restamp(struct pawl__cursor *cursor, int64_t now_us);

/* Bytes to store; the format stands in cursor.c. `out` needs room for PAWL__CURSOR_BYTES_MAX. */
#define PAWL__CURSOR_BYTES_MAX (32 + 24 * PAWL__CURSOR_HOLES_MAX)
void pawl__cursor_encode(const struct pawl__cursor *cursor, struct pawl__buf *out);

/* Replaces what `cursor` holds. CORRUPT for bytes that no cursor was encoded to, UNSUPPORTED for a
 * newer version; nothing changes then. */
PAWL_MUST_USE pawl_status pawl__cursor_decode(struct pawl__cursor *cursor,
                                              pawl_view bytes,
                                              pawl_error *reterr);

#endif
