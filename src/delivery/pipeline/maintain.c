/* Checkpoints, and what the WAL may forget behind one. */
#include "delivery/pipeline/failed.h"
#include "delivery/pipeline/internal.h"

static bool is_time(struct delivery_pipeline *pipeline)
{
    int64_t age_ns = pawl__delivery_now_ns(pipeline) - pipeline->checkpointed_ns;

    return pipeline->bytes_since_checkpoint >= pipeline->settings.checkpoint_bytes
           || (pipeline->bytes_since_checkpoint > 0
               && age_ns >= pipeline->settings.checkpoint_age_ns);
}

/* A row of another stream says nothing about places of this one. */
static uint64_t covered_sequence(const struct delivery_position *position,
                                 const struct delivery_cursor *in_file)
{
    return in_file->stream.created_ns == position->created_ns ? in_file->stream.sequence : 0;
}

pawl_status pawl__delivery_maintain(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_shared *shared = &pipeline->shared;
    struct delivery_cursor in_file;

    TRY(pawl__delivery_restore_decisions(pipeline, reterr));
    if (!is_time(pipeline)) {
        return PAWL_OK;
    }
    TRY(sink->ops->checkpoint(sink, &in_file, reterr));
    pipeline->checkpointed_ns = pawl__delivery_now_ns(pipeline);
    pipeline->bytes_since_checkpoint = 0;
    pawl__lock(&shared->lock);
    shared->totals.checkpoints++;
    delivery_lsn clean_to = pawl__delivery_position_clean_to(
        &shared->position, in_file.applied, covered_sequence(&shared->position, &in_file));
    pawl__unlock(&shared->lock);
    return clean_to == 0 ? PAWL_OK : wal->ops->clean_up(wal, clean_to, reterr);
}
