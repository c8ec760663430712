/* The sink: commits whose answers are lost or come late, outages, events that it refuses. */
#include <stdio.h>

#include "sim/delivery/models.h"

static struct delivery_sink *inner(struct delivery_sink *sink)
{
    return &SIM_OF(sink, sink)->table.base;
}

static pawl_status before(struct delivery_sink *sink, unsigned fail_per_mille, pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(sink, sink);

    TRY(sim_before(sim, fail_per_mille, PAWL_UNAVAILABLE, reterr));
    return sim->sink_is_out ? pawl__fail(reterr, PAWL_IO, "the sink is out") : PAWL_OK;
}

/* --- what the table thinks of events --- */

static void judge(void *context,
                  const struct delivery_entry *entry,
                  struct delivery_verdict *verdict)
{
    const struct sim_item *item = pawl__sim_item_of(context, entry->payload);

    if (item->nature == SIM_NOT_JSON) {
        verdict->kind = DELIVERY_TO_FAILED;
        verdict->reason = "not_json";
    } else if (item->nature == SIM_UNWANTED) {
        verdict->kind = DELIVERY_FILTERED;
    }
}

static pawl_status refuse_row(const struct sim_delivery *sim,
                              const struct sim_item *item,
                              pawl_error *reterr)
{
    switch (item->nature) {
    case SIM_POISON:
        return pawl__fail(reterr, PAWL_INVALID, "out of range");
    case SIM_STUBBORN:
        return pawl__fail(reterr, PAWL_FAILED, "some error");
    case SIM_FLAKY:
        return sim->world.now_ns < item->heals_ns ? pawl__fail(reterr, PAWL_FAILED, "some error")
                                                  : PAWL_OK;
    default:
        return PAWL_OK;
    }
}

static pawl_status refuse(void *context,
                          const struct delivery_transaction *transaction,
                          pawl_error *reterr)
{
    const struct sim_delivery *sim = context;

    for (size_t i = 0; i < transaction->count; i++) {
        const struct delivery_outcome *outcome = &transaction->outcomes[i];
        if (outcome->kind == DELIVERY_ROW) {
            TRY(refuse_row(sim, pawl__sim_item_of(sim, outcome->entry->payload), reterr));
        }
    }
    return PAWL_OK;
}

/* --- commits --- */

/* The process stands still in the middle of its commit, and another one is started meanwhile. */
static pawl_status park(struct sim_delivery *sim,
                        const struct delivery_transaction *transaction,
                        pawl_error *reterr)
{
    struct sim_parked *parked = &sim->parked;

    pawl__sim_unpark(sim, false);
    for (size_t i = 0; i < transaction->count; i++) {
        TRY(pawl__delivery_page_add(&parked->page, transaction->outcomes[i].entry, reterr));
        parked->outcomes[i] = transaction->outcomes[i];
        parked->outcomes[i].error = "";
    }
    for (size_t i = 0; i < transaction->count; i++) {
        parked->outcomes[i].entry = &parked->page.entries[i];
    }
    parked->transaction = *transaction;
    parked->transaction.outcomes = parked->outcomes;
    for (size_t i = 0; i < transaction->loss_count; i++) {
        parked->losses[i] = transaction->losses[i];
    }
    parked->transaction.losses = parked->losses;
    parked->is_there = true;
    sim->faults++;
    pawl__sim_trace(&sim->world, "a commit is held back", transaction->cursor.applied, 0);
    pawl__sim_crash(sim);
    return pawl__fail(reterr, PAWL_CANCELLED, "the process is dead");
}

/* What a WAL does that forgets an entry when the sink is asked, instead of when it has answered. */
static pawl_status confirm_too_early(struct sim_delivery *sim,
                                     const struct delivery_transaction *transaction,
                                     pawl_error *reterr)
{
    delivery_lsn cleaned = sim->live.cleaned;

    for (size_t i = 0; i < transaction->count; i++) {
        struct delivery_fate fate = { .state = DELIVERY_CONFIRMED };
        delivery_lsn lsn = transaction->outcomes[i].entry->lsn;
        if (transaction->outcomes[i].kind != DELIVERY_DEFERRED) {
            TRY(sim->live.base.ops->mark(&sim->live.base, &lsn, &fate, 1, reterr));
        }
    }
    TRY(sim->live.base.ops->clean_up(&sim->live.base, transaction->cursor.applied, reterr));
    sim->live.cleaned = cleaned;
    return pawl__delivery_memory_wal_copy(&sim->disk, &sim->live, reterr);
}

static pawl_status run(struct sim_delivery *sim,
                       const struct delivery_transaction *transaction,
                       pawl_error *reterr)
{
    struct delivery_transaction unfenced = *transaction;

    if (sim->defect == SIM_NO_FENCING && sim->table.has_cursor) {
        unfenced.cursor.fence = MAX(unfenced.cursor.fence, sim->table.cursor.fence);
        unfenced.cursor.version = sim->table.cursor.version + 1;
    }
    TRY(sim->table.base.ops->apply(&sim->table.base, &unfenced, reterr));
    for (size_t i = 0; i < transaction->count; i++) {
        pawl__sim_trace(&sim->world,
                        "sink takes",
                        transaction->outcomes[i].entry->lsn,
                        (uint64_t)transaction->outcomes[i].kind);
    }
    pawl__sim_trace(&sim->world,
                    "sink commits up to",
                    unfenced.cursor.applied,
                    unfenced.cursor.stream.sequence);
    return PAWL_OK;
}

static pawl_status apply(struct delivery_sink *sink,
                         const struct delivery_transaction *transaction,
                         pawl_error *reterr)
{
    struct sim_delivery *sim = SIM_OF(sink, sink);

    TRY(before(sink, 15, reterr));
    if (sim->defect == SIM_CONFIRM_BEFORE_COMMIT) {
        TRY(confirm_too_early(sim, transaction, reterr));
        TRY(sim_after(sim, 0, PAWL_IO, reterr));
    }
    if (transaction->count > 0 && transaction->count <= SIM_OUTCOMES_MAX
        && transaction->loss_count <= SIM_LOSSES_MAX && pawl__sim_strikes(sim, SIM_KILL, 12)) {
        return park(sim, transaction, reterr);
    }
    TRY(run(sim, transaction, reterr));
    return sim_after(sim, 15, PAWL_IO, reterr);
}

void pawl__sim_unpark(struct sim_delivery *sim, bool is_run)
{
    struct sim_parked *parked = &sim->parked;
    pawl_error error = PAWL_ERROR_INIT;

    if (parked->is_there && is_run) {
        pawl_status status = run(sim, &parked->transaction, &error);
        pawl__sim_trace(&sim->world, "a late commit arrives", (uint64_t)status, 0);
    }
    pawl__delivery_page_clear(&parked->page);
    parked->is_there = false;
}

/* --- the rest --- */

static pawl_status read_cursor(struct delivery_sink *sink,
                               struct delivery_cursor *ret_cursor,
                               bool *ret_found,
                               pawl_error *reterr)
{
    TRY(before(sink, 10, reterr));
    return inner(sink)->ops->read_cursor(inner(sink), ret_cursor, ret_found, reterr);
}

static pawl_status validate(struct delivery_sink *sink,
                            const struct delivery_entry *entries,
                            size_t count,
                            struct delivery_verdict *ret_verdicts,
                            pawl_error *reterr)
{
    return inner(sink)->ops->validate(inner(sink), entries, count, ret_verdicts, reterr);
}

static pawl_status lookup(struct delivery_sink *sink,
                          const struct delivery_key *keys,
                          size_t count,
                          struct delivery_known *ret_known,
                          pawl_error *reterr)
{
    TRY(before(sink, 15, reterr));
    return inner(sink)->ops->lookup(inner(sink), keys, count, ret_known, reterr);
}

static pawl_status each_key(struct delivery_sink *sink,
                            delivery_key_visitor *visitor,
                            void *context,
                            pawl_error *reterr)
{
    TRY(before(sink, 10, reterr));
    return inner(sink)->ops->each_key(inner(sink), visitor, context, reterr);
}

static pawl_status exceptions(struct delivery_sink *sink,
                              delivery_lsn after,
                              struct delivery_exception *ret_exceptions,
                              size_t room,
                              size_t *ret_count,
                              pawl_error *reterr)
{
    TRY(before(sink, 5, reterr));
    return inner(sink)->ops->exceptions(
        inner(sink), after, ret_exceptions, room, ret_count, reterr);
}

static pawl_status read_failed(struct delivery_sink *sink,
                               const struct delivery_failed_query *query,
                               struct delivery_failed_page *page,
                               pawl_error *reterr)
{
    return inner(sink)->ops->read_failed(inner(sink), query, page, reterr);
}

static pawl_status count_failed(struct delivery_sink *sink,
                                const struct delivery_failed_query *query,
                                uint64_t *ret_count,
                                pawl_error *reterr)
{
    return inner(sink)->ops->count_failed(inner(sink), query, ret_count, reterr);
}

static pawl_status checkpoint(struct delivery_sink *sink,
                              struct delivery_cursor *ret_cursor,
                              pawl_error *reterr)
{
    TRY(before(sink, 50, reterr));
    return inner(sink)->ops->checkpoint(inner(sink), ret_cursor, reterr);
}

static void close_nothing(struct delivery_sink *sink)
{
    (void)sink;
}

struct delivery_sink_ops pawl__sim_sink_ops(void)
{
    return (struct delivery_sink_ops){
        .read_cursor = read_cursor,
        .apply = apply,
        .validate = validate,
        .lookup = lookup,
        .each_key = each_key,
        .exceptions = exceptions,
        .read_failed = read_failed,
        .count_failed = count_failed,
        .checkpoint = checkpoint,
        .close = close_nothing,
    };
}

void pawl__sim_models_init(struct sim_delivery *sim)
{
    static struct delivery_source_ops source_ops;
    static struct delivery_wal_ops wal_ops;
    static struct delivery_sink_ops sink_ops;
    const struct delivery_memory_rules rules = { judge, refuse, sim };
    const struct delivery_uuid sink_id = { { 1 } };

    source_ops = pawl__sim_source_ops();
    wal_ops = pawl__sim_wal_ops();
    sink_ops = pawl__sim_sink_ops();
    sim->source = (struct delivery_source){ .ops = &source_ops,
                                            .may_skip = pawl__sim_coin(&sim->world, 300) };
    sim->wal = (struct delivery_wal){ &wal_ops };
    sim->sink = (struct delivery_sink){ &sink_ops };
    sim->broker = pawl__delivery_memory_source(&sim->world.clock, 1, 3 * NS_PER_S);
    sim->live = pawl__delivery_memory_wal();
    sim->disk = pawl__delivery_memory_wal();
    sim->table = pawl__delivery_memory_sink(&sink_id, &rules);
    for (size_t i = 0; i < SIM_COPIES_MAX; i++) {
        sim->wal_copies[i] = pawl__delivery_memory_wal();
        sim->table_copies[i] = pawl__delivery_memory_sink(&sink_id, &rules);
    }
}
