#include "delivery/core/position.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/grow.h"

void pawl__delivery_position_done(struct delivery_position *position)
{
    pawl__cursor_done(&position->seen);
    free(position->spans);
    free(position->echoes);
    *position = (struct delivery_position)DELIVERY_POSITION_INIT;
}

/* --- anchors --- */

/* Makes room by dropping every other one of the older half. */
static void thin_out(struct delivery_position *position)
{
    size_t kept = 0;

    for (size_t i = 0; i < position->anchor_count; i++) {
        if (i >= DELIVERY_ANCHORS / 2 || i % 2 == 0) {
            position->anchors[kept++] = position->anchors[i];
        }
    }
    position->anchor_count = kept;
}

static void add_anchor(struct delivery_position *position, const struct delivery_place *place)
{
    size_t count = position->anchor_count;

    if (place->stored_ns == 0
        || (count > 0 && position->anchors[count - 1].sequence >= place->sequence)) {
        return;
    }
    if (count == DELIVERY_ANCHORS) {
        thin_out(position);
    }
    position->anchors[position->anchor_count++] = *place;
}

/* The newest one up to `sequence`; NULL: none. */
static const struct delivery_place *anchor_up_to(const struct delivery_position *position,
                                                 uint64_t sequence)
{
    for (size_t i = position->anchor_count; i > 0; i--) {
        if (position->anchors[i - 1].sequence <= sequence) {
            return &position->anchors[i - 1];
        }
    }
    return NULL;
}

/* --- seen --- */

/* A hole too many is no failure: the place is not seen then, and the floor stays where it is. */
static pawl_status observe(struct delivery_position *position,
                           uint64_t first,
                           uint64_t last,
                           pawl_error *reterr)
{
    pawl_error refused = PAWL_ERROR_INIT;
    pawl_status status = pawl__cursor_observe(&position->seen, first, last, 0, NULL, &refused);

    if (status == PAWL_BUSY) {
        position->crowded = true;
        return PAWL_OK;
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &refused);
}

pawl_status pawl__delivery_position_start(struct delivery_position *position,
                                          const struct delivery_place *place,
                                          pawl_error *reterr)
{
    pawl__delivery_position_done(position);
    position->created_ns = place->created_ns;
    position->settled = *place;
    add_anchor(position, place);
    return place->sequence == 0 ? PAWL_OK : observe(position, 1, place->sequence, reterr);
}

static bool is_of_this_stream(const struct delivery_position *position,
                              const struct delivery_place *place)
{
    return place->created_ns == position->created_ns;
}

/* --- spans --- */

static pawl_status add_to_spans(struct delivery_position *position,
                                delivery_lsn lsn,
                                uint64_t sequence,
                                pawl_error *reterr)
{
    struct delivery_span *newest =
        position->span_count == 0 ? NULL : &position->spans[position->span_count - 1];

    if (newest != NULL && lsn - position->span_first < DELIVERY_SPAN_ENTRIES) {
        newest->last = MAX(newest->last, lsn);
        newest->low = MIN(newest->low, sequence);
        newest->high = MAX(newest->high, sequence);
        return PAWL_OK;
    }
    struct delivery_span *spans =
        pawl__grow(position->spans, position->span_count, &position->span_room, sizeof(*spans));
    TRY(pawl__check_memory(spans, "the position of a pipeline", reterr));
    position->spans = spans;
    spans[position->span_count++] = (struct delivery_span){ lsn, sequence, sequence };
    position->span_first = lsn;
    return PAWL_OK;
}

pawl_status pawl__delivery_position_appended(struct delivery_position *position,
                                             delivery_lsn lsn,
                                             const struct delivery_place *place,
                                             pawl_error *reterr)
{
    if (!is_of_this_stream(position, place)) {
        return PAWL_OK;
    }
    TRY(add_to_spans(position, lsn, place->sequence, reterr));
    add_anchor(position, place);
    return observe(position, place->sequence, place->sequence, reterr);
}

pawl_status pawl__delivery_position_held(struct delivery_position *position,
                                         delivery_lsn lsn,
                                         const struct delivery_place *place,
                                         pawl_error *reterr)
{
    return is_of_this_stream(position, place) ? add_to_spans(position, lsn, place->sequence, reterr)
                                              : PAWL_OK;
}

static pawl_status add_echo(struct delivery_position *position,
                            delivery_lsn lsn,
                            uint64_t sequence,
                            pawl_error *reterr)
{
    struct delivery_echo *echoes =
        pawl__grow(position->echoes, position->echo_count, &position->echo_room, sizeof(*echoes));

    TRY(pawl__check_memory(echoes, "the position of a pipeline", reterr));
    position->echoes = echoes;
    echoes[position->echo_count++] = (struct delivery_echo){ lsn, sequence };
    position->exception_low = MIN(position->exception_low, sequence);
    return PAWL_OK;
}

/* As long as `lsn` is not applied, the cursor row stays below the place, too. An entry may be in no span yet: one that
 * was read before this start, of a stream that the cursor row does not know. */
static pawl_status add_to_span_of(struct delivery_position *position,
                                  delivery_lsn lsn,
                                  uint64_t sequence,
                                  pawl_error *reterr)
{
    for (size_t i = 0; i < position->span_count; i++) {
        struct delivery_span *span = &position->spans[i];
        if (lsn <= span->last) {
            span->low = MIN(span->low, sequence);
            span->high = MAX(span->high, sequence);
            return PAWL_OK;
        }
    }
    return add_to_spans(position, lsn, sequence, reterr);
}

pawl_status pawl__delivery_position_duplicate(struct delivery_position *position,
                                              delivery_lsn lsn,
                                              const struct delivery_place *place,
                                              pawl_error *reterr)
{
    if (!is_of_this_stream(position, place)) {
        return PAWL_OK;
    }
    if (lsn != 0) {
        TRY(add_to_span_of(position, lsn, place->sequence, reterr));
    }
    if (lsn != 0 && position->has_exceptions) {
        TRY(add_echo(position, lsn, place->sequence, reterr));
    }
    add_anchor(position, place);
    return observe(position, place->sequence, place->sequence, reterr);
}

void pawl__delivery_position_exception(struct delivery_position *position,
                                       const struct delivery_place *place)
{
    position->has_exceptions = true;
    if (is_of_this_stream(position, place)) {
        position->exception_low = MIN(position->exception_low, place->sequence);
    }
}

static bool is_exception(const struct delivery_exception *exceptions,
                         size_t count,
                         delivery_lsn lsn)
{
    for (size_t i = 0; i < count; i++) {
        if (exceptions[i].lsn == lsn) {
            return true;
        }
    }
    return false;
}

void pawl__delivery_position_exceptions(struct delivery_position *position,
                                        const struct delivery_exception *exceptions,
                                        size_t count)
{
    size_t kept = 0;

    position->has_exceptions = count > 0;
    position->exception_low = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        position->exception_low = MIN(position->exception_low, exceptions[i].sequence);
    }
    for (size_t i = 0; i < position->echo_count; i++) {
        if (is_exception(exceptions, count, position->echoes[i].lsn)) {
            position->exception_low = MIN(position->exception_low, position->echoes[i].sequence);
            position->echoes[kept++] = position->echoes[i];
        }
    }
    position->echo_count = kept;
}

pawl_status pawl__delivery_position_gone(struct delivery_position *position,
                                         uint64_t sequence,
                                         pawl_error *reterr)
{
    struct delivery_place place = { position->created_ns, sequence, DELIVERY_STORED_GONE };

    add_anchor(position, &place);
    return pawl__cursor_observe(&position->seen, 1, sequence, 0, NULL, reterr);
}

bool pawl__delivery_position_may_know(const struct delivery_position *position,
                                      const struct delivery_place *place)
{
    return place->sequence <= MAX(position->seen.watermark, position->doubt_to);
}

uint64_t pawl__delivery_position_floor(const struct delivery_position *position)
{
    return pawl__cursor_complete_to(&position->seen);
}

/* A place whose message is known, so that a stream that lost its tail is recognised by the row alone. Sources whose
 * messages have no time have no anchors either. */
static struct delivery_place known_place(const struct delivery_position *position,
                                         uint64_t sequence)
{
    const struct delivery_place *anchor = anchor_up_to(position, sequence);

    if (anchor != NULL) {
        return *anchor;
    }
    return (struct delivery_place){ position->created_ns,
                                    position->anchor_count == 0 ? sequence : 0,
                                    0 };
}

struct delivery_place pawl__delivery_position_applied(struct delivery_position *position,
                                                      delivery_lsn applied)
{
    uint64_t open = position->exception_low; /* the lowest place that is not settled */

    for (size_t i = position->span_count; i > 0 && position->spans[i - 1].last > applied; i--) {
        open = MIN(open, position->spans[i - 1].low);
    }
    uint64_t floor = pawl__delivery_position_floor(position);
    struct delivery_place place = known_place(position, open <= floor ? open - 1 : floor);
    position->offered = place.sequence <= position->settled.sequence ? position->settled : place;
    position->offered.created_ns = position->created_ns;
    return position->offered;
}

void pawl__delivery_position_committed(struct delivery_position *position)
{
    if (position->offered.sequence > position->settled.sequence) {
        position->settled = position->offered;
    }
}

void pawl__delivery_position_reopened(struct delivery_position *position)
{
    if (position->exception_low <= position->settled.sequence) {
        position->settled =
            (struct delivery_place){ position->created_ns, position->exception_low - 1, 0 };
    }
}

delivery_lsn pawl__delivery_position_clean_to(struct delivery_position *position,
                                              delivery_lsn checkpointed,
                                              uint64_t checkpointed_sequence)
{
    size_t covered = 0;

    while (covered < position->span_count && position->spans[covered].last <= checkpointed
           && position->spans[covered].high <= checkpointed_sequence) {
        covered++;
    }
    if (covered == position->span_count) {
        position->span_count = 0;
        return checkpointed; /* what has no span has no place in this stream either */
    }
    delivery_lsn clean_to = covered == 0 ? 0 : position->spans[covered - 1].last;
    position->span_count -= covered;
    memmove(position->spans,
            &position->spans[covered],
            position->span_count * sizeof(*position->spans));
    return clean_to;
}
