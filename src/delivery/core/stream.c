#include "delivery/core/stream.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/grow.h"

enum delivery_truth pawl__delivery_truth(const struct delivery_position *position,
                                         const struct delivery_place *anchor,
                                         const struct delivery_stream_state *state)
{
    if (position->created_ns != 0 && state->created_ns != position->created_ns) {
        return DELIVERY_RECREATED;
    }
    if (anchor == NULL) {
        return state->last < pawl__delivery_position_floor(position) ? DELIVERY_ROLLED_BACK
                                                                     : DELIVERY_SAME;
    }
    if (state->last < anchor->sequence) {
        return DELIVERY_ROLLED_BACK;
    }
    bool is_another =
        state->probe_found && anchor->stored_ns != 0 && state->probe_stored_ns != anchor->stored_ns;
    return is_another ? DELIVERY_ROLLED_BACK : DELIVERY_SAME;
}

void pawl__delivery_losses_done(struct delivery_losses *losses)
{
    free(losses->items);
    *losses = (struct delivery_losses){ .items = NULL };
}

pawl_status pawl__delivery_losses_add(struct delivery_losses *losses,
                                      const struct delivery_loss *loss,
                                      pawl_error *reterr)
{
    struct delivery_loss *items =
        pawl__grow(losses->items, losses->count, &losses->room, sizeof(*items));

    TRY(pawl__check_memory(items, "a loss", reterr));
    losses->items = items;
    items[losses->count++] = *loss;
    return PAWL_OK;
}

/* What was never seen up to `to`. */
static pawl_status add_unseen(const struct delivery_position *position,
                              uint64_t to,
                              enum delivery_loss_reason reason,
                              struct delivery_losses *losses,
                              pawl_error *reterr)
{
    const struct pawl__cursor *seen = &position->seen;
    struct delivery_loss loss = { .created_ns = position->created_ns, .reason = reason };

    for (size_t i = 0; i < seen->hole_count && seen->holes[i].first <= to; i++) {
        loss.from = seen->holes[i].first;
        loss.to = MIN(seen->holes[i].last, to);
        TRY(pawl__delivery_losses_add(losses, &loss, reterr));
    }
    if (to > seen->watermark) {
        loss.from = seen->watermark + 1;
        loss.to = to;
        TRY(pawl__delivery_losses_add(losses, &loss, reterr));
    }
    return PAWL_OK;
}

/* Everything up to `place` is seen, and nothing behind it. Stretches of LSNs and echoes stay: what is not applied must keep the
 * cursor row's place below it, as long as the stream may still have it. */
static pawl_status begin_at(struct delivery_position *position,
                            const struct delivery_place *place,
                            pawl_error *reterr)
{
    struct delivery_position next = DELIVERY_POSITION_INIT;

    TRY(pawl__delivery_position_start(&next, place, reterr));
    next.has_exceptions = position->has_exceptions;
    if (place->created_ns == position->created_ns) {
        next.spans = STEAL(position->spans);
        next.span_count = position->span_count;
        next.span_room = position->span_room;
        next.span_first = position->span_first;
        next.exception_low = position->exception_low;
        next.echoes = STEAL(position->echoes);
        next.echo_count = position->echo_count;
        next.echo_room = position->echo_room;
        next.doubt_to = MAX(position->doubt_to, position->seen.watermark);
        if (position->settled.sequence < place->sequence) { /* an exception may be below it */
            next.settled = position->settled;
        }
    }
    pawl__delivery_position_done(position);
    *position = next;
    return PAWL_OK;
}

static pawl_status follow_rollback(struct delivery_position *position,
                                   uint64_t common,
                                   struct delivery_losses *losses,
                                   pawl_error *reterr)
{
    uint64_t to = MIN(common, pawl__delivery_position_floor(position));
    struct delivery_place place = { position->created_ns, to, 0 };

    for (size_t i = 0; i < position->anchor_count; i++) {
        if (position->anchors[i].sequence == to) {
            place = position->anchors[i];
        }
    }
    TRY(add_unseen(position, DELIVERY_LOSS_OPEN, DELIVERY_LOSS_ROLLED_BACK, losses, reterr));
    return begin_at(position, &place, reterr);
}

static enum delivery_loss_reason reason_of(const struct delivery_stream_state *state,
                                           bool rebuilding)
{
    if (rebuilding) {
        return DELIVERY_LOSS_REBUILD;
    }
    return state->first > state->last ? DELIVERY_LOSS_PURGED : DELIVERY_LOSS_RETENTION;
}

pawl_status pawl__delivery_follow(struct delivery_position *position,
                                  enum delivery_truth truth,
                                  uint64_t common,
                                  const struct delivery_stream_state *state,
                                  bool rebuilding,
                                  struct delivery_losses *losses,
                                  pawl_error *reterr)
{
    struct delivery_place start = { state->created_ns, 0, 0 };

    if (truth == DELIVERY_RECREATED) {
        TRY(add_unseen(position, DELIVERY_LOSS_OPEN, DELIVERY_LOSS_RECREATED, losses, reterr));
        TRY(begin_at(position, &start, reterr));
    } else if (truth == DELIVERY_ROLLED_BACK) {
        TRY(follow_rollback(position, common, losses, reterr));
    } else if (position->created_ns == 0) {
        position->created_ns = state->created_ns;
        if (!rebuilding && state->first > 1) { /* a new pipeline begins with what there is */
            start.sequence = state->first - 1;
            start.stored_ns = DELIVERY_STORED_GONE;
            return begin_at(position, &start, reterr);
        }
    }
    if (state->first <= pawl__delivery_position_floor(position) + 1) {
        return PAWL_OK;
    }
    uint64_t gone_to = state->first - 1;
    TRY(add_unseen(position, gone_to, reason_of(state, rebuilding), losses, reterr));
    return pawl__delivery_position_gone(position, gone_to, reterr);
}

struct delivery_rewound pawl__delivery_rewind(const struct delivery_position *position,
                                              delivery_lsn next,
                                              const struct delivery_cursor *cursor)
{
    return (struct delivery_rewound){
        .lsn = next - 1,
        .sequence = pawl__delivery_position_floor(position),
        .fence = cursor->fence,
        .version = cursor->version + 1,
    };
}

bool pawl__delivery_is_rewound(const struct delivery_rewound *rewound,
                               const struct delivery_cursor *cursor)
{
    if (cursor->stream.sequence <= rewound->sequence) {
        return false;
    }
    return cursor->fence < rewound->fence
           || (cursor->fence == rewound->fence && cursor->version <= rewound->version);
}

bool pawl__delivery_loss_is_unnoted(const struct delivery_rewound *rewound,
                                    const struct delivery_cursor *cursor)
{
    return cursor->stream.created_ns != 0
           && (cursor->fence < rewound->fence
               || (cursor->fence == rewound->fence && cursor->version < rewound->version));
}

struct delivery_rewound pawl__delivery_rewound_unknown(const struct delivery_rewound *known,
                                                       delivery_lsn applied,
                                                       const struct delivery_cursor *cursor)
{
    if (pawl__delivery_is_rewound(known, cursor)) {
        return (struct delivery_rewound){ applied, known->sequence, known->fence, known->version };
    }
    return (struct delivery_rewound){
        .lsn = applied,
        .sequence = 0,
        .fence = cursor->fence,
        .version = cursor->version == 0 ? 0 : cursor->version - 1,
    };
}

bool pawl__delivery_consumer_fits(const struct delivery_position *position,
                                  const struct delivery_stream_state *state)
{
    uint64_t floor = pawl__delivery_position_floor(position);

    return state->consumer_found && floor == position->seen.watermark && state->delivered <= floor
           && state->acked_to <= floor;
}

pawl_status pawl__delivery_settle(struct delivery_position *position,
                                  const struct delivery_stream_state *state,
                                  pawl_error *reterr)
{
    if (state->acked_to <= pawl__delivery_position_floor(position)) {
        return PAWL_OK;
    }
    TRY(pawl__cursor_observe(&position->seen, 1, state->acked_to, 0, NULL, reterr));
    position->crowded = false;
    return PAWL_OK;
}

unsigned pawl__delivery_retention_left(const struct delivery_stream_state *state, uint64_t floor)
{
    if (state->age_max_ns <= 0 || state->first > state->last || state->last <= floor) {
        return 100;
    }
    int64_t left = state->age_max_ns - MIN(state->oldest_age_ns, state->age_max_ns);
    return (unsigned)(left / (state->age_max_ns / 100 + 1));
}
