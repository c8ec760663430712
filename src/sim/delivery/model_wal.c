/* The WAL on a disk that forgets what was not synced. */
#include "sim/delivery/models.h"

static struct delivery_wal *inner(struct delivery_wal *wal)
{
    return &SIM_OF(wal, wal)->live.base;
}

static pawl_status sync_disk(struct sim_delivery *sim, pawl_error *reterr)
{
    return pawl__delivery_memory_wal_copy(&sim->disk, &sim->live, reterr);
}

static pawl_status read_meta(struct delivery_wal *wal,
                             struct delivery_wal_meta *ret_meta,
                             bool *ret_found,
                             pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);
    const struct delivery_cursor *cursor = &sim->table.cursor;

    TRY(sim_before(sim, 5, PAWL_IO, reterr));
    TRY(inner(wal)->ops->read_meta(inner(wal), ret_meta, ret_found, reterr));
    if (sim->defect == SIM_WAL_REPLACED && sim->table.has_cursor) {
        *ret_found = true;
        ret_meta->wal_id = cursor->wal_id;
        ret_meta->fence = MAX(ret_meta->fence, cursor->fence);
        ret_meta->epoch = cursor->epoch;
        ret_meta->applied = cursor->applied;
    }
    return PAWL_OK;
}

static pawl_status stats(struct delivery_wal *wal,
                         struct delivery_wal_stats *ret_stats,
                         pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);

    TRY(sim_before(sim, 0, PAWL_IO, reterr));
    TRY(inner(wal)->ops->stats(inner(wal), ret_stats, reterr));
    if (sim->defect == SIM_WAL_REPLACED) {
        ret_stats->last = MAX(ret_stats->last, sim->table.cursor.applied);
    }
    return PAWL_OK;
}

static void held_bytes(struct delivery_wal *wal, uint64_t ret_bytes[DELIVERY_STATE_COUNT])
{
    inner(wal)->ops->held_bytes(inner(wal), ret_bytes);
}

static pawl_status write_meta(struct delivery_wal *wal,
                              const struct delivery_wal_meta *meta,
                              pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);

    TRY(sim_before(sim, 5, PAWL_IO, reterr));
    TRY(inner(wal)->ops->write_meta(inner(wal), meta, reterr));
    TRY(sync_disk(sim, reterr));
    return sim_after(sim, 5, PAWL_IO, reterr);
}

static pawl_status append(struct delivery_wal *wal,
                          const struct delivery_entry *entries,
                          size_t count,
                          const struct delivery_wal_meta *meta,
                          pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);

    TRY(sim_before(sim, 10, PAWL_IO, reterr));
    if (sim->defect == SIM_ACK_BEFORE_FSYNC) { /* the one before it gets to the disk by and by */
        TRY(sync_disk(sim, reterr));
    }
    TRY(inner(wal)->ops->append(inner(wal), entries, count, meta, reterr));
    if (sim->defect != SIM_ACK_BEFORE_FSYNC) {
        TRY(sync_disk(sim, reterr));
    }
    for (size_t i = 0; i < count; i++) {
        size_t item = (size_t)(pawl__sim_item_of(sim, entries[i].payload) - sim->items);
        pawl__sim_trace(&sim->world, "WAL appends", entries[i].lsn, item);
    }
    return sim_after(sim, 10, PAWL_IO, reterr);
}

static void believe_any_epoch(const struct sim_delivery *sim,
                              const struct delivery_hash *key,
                              struct delivery_hit *hit)
{
    const struct delivery_slot *slot = pawl__delivery_table_find(&sim->live.index, key);

    if (slot != NULL) {
        *hit = (struct delivery_hit){ true, sim->live.meta.epoch, slot->b, slot->payload_hash };
    }
}

static pawl_status lookup(struct delivery_wal *wal,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_hit *ret_hits,
                          pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);

    TRY(sim_before(sim, 2, PAWL_IO, reterr));
    TRY(inner(wal)->ops->lookup(inner(wal), keys, count, ret_hits, reterr));
    for (size_t i = 0; i < count; i++) {
        if (sim->defect == SIM_SAME_EPOCH) {
            believe_any_epoch(sim, &keys[i].key, &ret_hits[i]);
        }
        if (sim->defect == SIM_CONFLICT_AS_DUPLICATE) {
            ret_hits[i].payload_hash = keys[i].payload_hash;
        }
    }
    return PAWL_OK;
}

static pawl_status read_range(struct delivery_wal *wal,
                              const struct delivery_range *range,
                              struct delivery_page *page,
                              pawl_error *reterr)
{
    TRY(sim_before(SIM_OF(wal, wal), 1, PAWL_IO, reterr));
    return inner(wal)->ops->read(inner(wal), range, page, reterr);
}

static pawl_status mark(struct delivery_wal *wal,
                        const delivery_lsn *lsns,
                        const struct delivery_fate *fates,
                        size_t count,
                        pawl_error *reterr)
{
    TRY(sim_before(SIM_OF(wal, wal), 2, PAWL_IO, reterr));
    return inner(wal)->ops->mark(inner(wal), lsns, fates, count, reterr);
}

static pawl_status decide(struct delivery_wal *wal,
                          const struct delivery_decision *decisions,
                          size_t count,
                          pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);

    TRY(sim_before(sim, 5, PAWL_IO, reterr));
    TRY(inner(wal)->ops->decide(inner(wal), decisions, count, reterr));
    TRY(sync_disk(sim, reterr));
    return sim_after(sim, 5, PAWL_IO, reterr);
}

static pawl_status decided(struct delivery_wal *wal,
                           delivery_lsn after,
                           delivery_lsn *ret_lsns,
                           size_t room,
                           size_t *ret_count,
                           pawl_error *reterr)
{
    return inner(wal)->ops->decided(inner(wal), after, ret_lsns, room, ret_count, reterr);
}

static pawl_status read_decision(struct delivery_wal *wal,
                                 delivery_lsn lsn,
                                 struct pawl__arena *arena,
                                 struct delivery_decision *ret_decision,
                                 bool *ret_found,
                                 pawl_error *reterr)
{
    return inner(wal)->ops->read_decision(inner(wal), lsn, arena, ret_decision, ret_found, reterr);
}

static pawl_status put_index(struct delivery_wal *wal,
                             const struct delivery_key *keys,
                             size_t count,
                             uint64_t epoch,
                             pawl_error *reterr)
{
    TRY(sim_before(SIM_OF(wal, wal), 0, PAWL_IO, reterr));
    return inner(wal)->ops->put_index(inner(wal), keys, count, epoch, reterr);
}

static pawl_status reindex(struct delivery_wal *wal, uint64_t epoch, pawl_error *reterr)
{
    TRY(sim_before(SIM_OF(wal, wal), 5, PAWL_IO, reterr));
    return inner(wal)->ops->reindex(inner(wal), epoch, reterr);
}

static pawl_status clean_up(struct delivery_wal *wal, delivery_lsn to, pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(wal, wal);

    TRY(sim_before(sim, 5, PAWL_IO, reterr));
    pawl__sim_trace(&sim->world, "WAL forgets up to", to, 0);
    return inner(wal)->ops->clean_up(inner(wal), to, reterr);
}

static void close_nothing(struct delivery_wal *wal)
{
    (void)wal;
}

struct delivery_wal_ops pawl__sim_wal_ops(void)
{
    return (struct delivery_wal_ops){
        .read_meta = read_meta,
        .write_meta = write_meta,
        .append = append,
        .lookup = lookup,
        .read = read_range,
        .mark = mark,
        .decide = decide,
        .decided = decided,
        .read_decision = read_decision,
        .put_index = put_index,
        .reindex = reindex,
        .clean_up = clean_up,
        .stats = stats,
        .held_bytes = held_bytes,
        .close = close_nothing,
    };
}
