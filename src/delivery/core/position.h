/* How far a pipeline has got in its source.
 *
 *     seen      places whose message is in the WAL, was a duplicate, or is on record as lost
 *     floor     up to here all is seen: a new consumer has to start behind it, and no earlier
 *     applied   up to here all is seen and settled in the sink as well: the cursor row's place
 *
 * Too low is always safe: a message that comes again is recognised. Too high loses one. Every rule here errs to the
 * low side.
 *
 * Beside them, for each stretch of LSNs, which places its entries came from: what is not applied keeps `applied`
 * below its places, and the WAL keeps every entry whose place lies above the floor, because a start counts them as
 * seen again. No I/O, no clock. */
#ifndef PAWL_DELIVERY_CORE_POSITION_H
#define PAWL_DELIVERY_CORE_POSITION_H

#include "base/decide/cursor.h"
#include "delivery/core/cursor.h"
#include "delivery/core/sink.h"
#include "delivery/core/source.h"

/* Entries up to LSN `last` (from the span before it on) came from places low..high. */
struct delivery_span {
    delivery_lsn last;
    uint64_t low;
    uint64_t high;
};

/* Something at this place was a duplicate of what is, or may be, an exception: the place is open as long as that is. */
struct delivery_echo {
    delivery_lsn lsn;
    uint64_t sequence;
};

/* Of an anchor, in place of a time: the stream had forgotten this place. A message that is there is of a new tail. */
#define DELIVERY_STORED_GONE INT64_C(-1)

enum {
    DELIVERY_SPAN_ENTRIES = 1024, /* that share a span */
    DELIVERY_ANCHORS = 32,
};

struct delivery_position {
    int64_t created_ns; /* of the stream; 0: not known yet */
    struct pawl__cursor seen;
    uint64_t exception_low; /* the lowest place of an exception or of an echo; UINT64_MAX: none */
    bool has_exceptions;
    struct delivery_echo *echoes;
    size_t echo_count;
    size_t echo_room;
    uint64_t
        doubt_to; /* places up to here may hold what was read before the server lost its tail */
    bool crowded; /* too many holes to note another: settle some, see source.h, may_skip */

    /* The cursor row's place never falls within one life of the stream: the WAL has forgotten entries below it, and a
     * message without an id that came again would be new. A message below it that comes again is settled, whatever
     * shares a span with it. */
    struct delivery_place settled; /* of the row that was committed last */
    struct delivery_place offered; /* of the one that is under way */

    struct delivery_span *spans; /* ascending */
    size_t span_count;
    size_t span_room;
    delivery_lsn span_first; /* the first LSN of the newest span */

    /* Messages that are known to be in the stream, or to be gone, ascending: denser towards the end. */
    struct delivery_place anchors[DELIVERY_ANCHORS];
    size_t anchor_count;
};

#define DELIVERY_POSITION_INIT      \
    {                               \
        .exception_low = UINT64_MAX \
    }

void pawl__delivery_position_done(struct delivery_position *position);

/* Everything up to `place` is applied, as the cursor row says. In place of all that was known. NOMEM. */
PAWL_MUST_USE pawl_status pawl__delivery_position_start(struct delivery_position *position,
                                                        const struct delivery_place *place,
                                                        pawl_error *reterr);

/* An entry is in the WAL, durably. Places of another stream than this one count for nothing. */
PAWL_MUST_USE pawl_status pawl__delivery_position_appended(struct delivery_position *position,
                                                           delivery_lsn lsn,
                                                           const struct delivery_place *place,
                                                           pawl_error *reterr);

/* The same for an entry that was read before the stream lost its tail: its place is somebody else's now and not seen,
 * but as long as it is not applied, the cursor row stays below it. */
PAWL_MUST_USE pawl_status pawl__delivery_position_held(struct delivery_position *position,
                                                       delivery_lsn lsn,
                                                       const struct delivery_place *place,
                                                       pawl_error *reterr);

/* A message turned out to be a duplicate of what is under `lsn` (0: in the sink). Its place is settled when that
 * is. */
PAWL_MUST_USE pawl_status pawl__delivery_position_duplicate(struct delivery_position *position,
                                                            delivery_lsn lsn,
                                                            const struct delivery_place *place,
                                                            pawl_error *reterr);

/* An entry at this place is an exception now. */
void pawl__delivery_position_exception(struct delivery_position *position,
                                       const struct delivery_place *place);

/* These are all the exceptions there are. */
void pawl__delivery_position_exceptions(struct delivery_position *position,
                                        const struct delivery_exception *exceptions,
                                        size_t count);

/* The stream has forgotten everything up to `sequence`: it is seen, in so far as it ever can be. */
PAWL_MUST_USE pawl_status pawl__delivery_position_gone(struct delivery_position *position,
                                                       uint64_t sequence,
                                                       pawl_error *reterr);

/* True when a message at this place may have been seen before, so that the WAL's silence about it is not enough. */
bool pawl__delivery_position_may_know(const struct delivery_position *position,
                                      const struct delivery_place *place);

uint64_t pawl__delivery_position_floor(const struct delivery_position *position);

/* The place for the cursor row when everything up to `applied` is settled but the exceptions. */
struct delivery_place pawl__delivery_position_applied(struct delivery_position *position,
                                                      delivery_lsn applied);
/* ... and the row is in the sink. Nothing to do when the stream lost its tail meanwhile. */
void pawl__delivery_position_committed(struct delivery_position *position);
/* Start and exceptions are known: an older WAL may bring back entries that the row had passed. */
void pawl__delivery_position_reopened(struct delivery_position *position);

/* The highest LSN up to which the WAL may forget: checkpointed, with no place above the floor of the file's cursor
 * row. Forgets the spans that it covers. */
delivery_lsn pawl__delivery_position_clean_to(struct delivery_position *position,
                                              delivery_lsn checkpointed,
                                              uint64_t checkpointed_sequence);

#endif
