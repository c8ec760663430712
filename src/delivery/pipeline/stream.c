/* Asking the stream whether it is still the one that we read. What is decided stands in core/stream.h. */
#include "delivery/pipeline/internal.h"

#include "base/core/error.h"

static const struct delivery_place *anchor_at(const struct delivery_position *position, size_t back)
{
    return back < position->anchor_count ? &position->anchors[position->anchor_count - 1 - back]
                                         : NULL;
}

static pawl_status ask(struct delivery_pipeline *pipeline,
                       uint64_t probe,
                       struct delivery_stream_state *ret_state,
                       pawl_error *reterr)
{
    struct delivery_source *source = pipeline->parts.source;

    return source->ops->state(source, probe, ret_state, reterr);
}

/* The newest anchor that the stream still has; 0: none of them. */
static pawl_status find_common(struct delivery_pipeline *pipeline,
                               uint64_t *ret_common,
                               pawl_error *reterr)
{
    const struct delivery_position *position = &pipeline->shared.position;
    struct delivery_stream_state state;

    *ret_common = 0;
    for (size_t back = 0; *ret_common == 0 && back < position->anchor_count; back++) {
        const struct delivery_place *anchor = anchor_at(position, back);
        TRY(ask(pipeline, anchor->sequence, &state, reterr));
        if (state.probe_found && state.probe_stored_ns == anchor->stored_ns) {
            *ret_common = anchor->sequence;
        }
    }
    return PAWL_OK;
}

static pawl_status follow(struct delivery_pipeline *pipeline,
                          enum delivery_truth truth,
                          uint64_t common,
                          const struct delivery_stream_state *state,
                          pawl_error *reterr)
{
    struct delivery_shared *shared = &pipeline->shared;
    /* Neither WAL nor sink knows a stream, and yet our consumer was here before: both are lost. */
    bool is_second_life =
        shared->position.created_ns == 0 && state->consumer_found && state->delivered > 0;
    bool rebuilding = !pipeline->is_connected && (pipeline->rebuilding || is_second_life);

    pawl__lock(&shared->lock);
    size_t before = shared->losses.count;
    pawl_status status = pawl__delivery_follow(
        &shared->position, truth, common, state, rebuilding, &shared->losses, reterr);
    if (truth == DELIVERY_RECREATED && pipeline->parts.source->is_named) {
        shared->losses.count = before; /* the user left the other one: nothing is lost */
    }
    if (rebuilding || truth == DELIVERY_RECREATED) {
        /* From the start again, and a row of an older sink may not know how far we were in this stream: the sink may
         * have what neither index nor WAL does. */
        shared->position.doubt_to = MAX(shared->position.doubt_to, state->last);
    }
    for (size_t i = before; i < shared->losses.count; i++) {
        shared->losses.items[i].seen_us = pawl__wall_us(pipeline->parts.clock);
    }
    pawl__unlock(&shared->lock);
    return status;
}

/* The position is ahead of the record by now. After a failure nobody knows which of them the disk has, and the next
 * record would not say what this one did: open it again. */
static pawl_status write_meta(struct delivery_pipeline *pipeline,
                              const struct delivery_wal_meta *meta,
                              pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    pawl_status status = wal->ops->write_meta(wal, meta, reterr);

    pawl__delivery_break_if(pipeline, status != PAWL_OK);
    if (status == PAWL_OK) {
        pipeline->meta = *meta;
    }
    return status;
}

/* Durable before anything is read from a new tail, or read again: entries of the old one would be taken for it, and
 * what the sink has for new. */
static pawl_status note_changes(struct delivery_pipeline *pipeline,
                                enum delivery_truth truth,
                                pawl_error *reterr)
{
    struct delivery_wal_meta meta = pipeline->meta;
    const struct delivery_position *position = &pipeline->shared.position;
    bool is_new = meta.stream.created_ns != position->created_ns;

    if (truth != DELIVERY_ROLLED_BACK && position->doubt_to <= meta.doubt_to && !is_new) {
        return PAWL_OK;
    }
    if (is_new) {
        /* A pipeline that was never here begins behind what the stream has already forgotten. */
        bool is_first = meta.stream.created_ns == 0 && pipeline->cursor.stream.created_ns == 0;
        meta.begun_at =
            is_first && position->doubt_to == 0 ? pawl__delivery_position_floor(position) : 0;
        meta.stream = (struct delivery_place){ position->created_ns, meta.begun_at, 0 };
    }
    if (truth == DELIVERY_ROLLED_BACK) {
        meta.rewound = pawl__delivery_rewind(
            &pipeline->shared.position, pipeline->shared.next_lsn, &pipeline->cursor);
        meta.restart_source = true;
    }
    meta.doubt_to = MAX(meta.doubt_to, pipeline->shared.position.doubt_to);
    return write_meta(pipeline, &meta, reterr);
}

static bool must_restart(const struct delivery_pipeline *pipeline,
                         enum delivery_truth truth,
                         const struct delivery_stream_state *state)
{
    if (truth != DELIVERY_SAME || pipeline->meta.restart_source || !state->consumer_found) {
        return true;
    }
    return pipeline->is_connected
               ? state->consumer_created_ns != pipeline->consumer_created_ns
               : !pawl__delivery_consumer_fits(&pipeline->shared.position, state);
}

static pawl_status restart_source(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct delivery_source *source = pipeline->parts.source;
    struct delivery_wal_meta meta = pipeline->meta;

    TRY(source->ops->restart_at(
        source, pawl__delivery_position_floor(&pipeline->shared.position) + 1, reterr));
    if (!meta.restart_source) {
        return PAWL_OK;
    }
    meta.restart_source = false;
    return write_meta(pipeline, &meta, reterr);
}

static pawl_status settle(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct delivery_stream_state state;

    TRY(ask(pipeline, 0, &state, reterr));
    pipeline->consumer_created_ns = state.consumer_created_ns;
    if (!pipeline->parts.source->may_skip) {
        return PAWL_OK;
    }
    pawl__lock(&pipeline->shared.lock);
    pawl_status status = pawl__delivery_settle(&pipeline->shared.position, &state, reterr);
    pawl__unlock(&pipeline->shared.lock);
    return status;
}

pawl_status pawl__delivery_check_stream(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    const struct delivery_place *anchor = anchor_at(&pipeline->shared.position, 0);
    struct delivery_stream_state state;
    uint64_t common = 0;

    pipeline->asked_ns = pawl__delivery_now_ns(pipeline);
    uint64_t floor = pawl__delivery_position_floor(&pipeline->shared.position);
    TRY(ask(pipeline, anchor == NULL ? floor : anchor->sequence, &state, reterr));
    enum delivery_truth truth = pawl__delivery_truth(&pipeline->shared.position, anchor, &state);
    if (truth == DELIVERY_ROLLED_BACK) {
        TRY(find_common(pipeline, &common, reterr));
    }
    TRY(follow(pipeline, truth, common, &state, reterr));
    TRY(note_changes(pipeline, truth, reterr));
    if (must_restart(pipeline, truth, &state)) {
        TRY(restart_source(pipeline, reterr));
    }
    TRY(settle(pipeline, reterr));
    pipeline->is_connected = true;
    pipeline->rebuilding = false;
    pipeline->shared.check_stream = false;
    return PAWL_OK;
}
