#include <string.h>

#include "base/core/error.h"
#include "sim/telemetry/model.h"

static struct sim_telemetry *sim_of(struct telemetry_colony_store *store)
{
    return (struct sim_telemetry *)(void *)((char *)store - offsetof(struct sim_telemetry, store));
}

static struct telemetry_colony_store *disk_of(struct telemetry_colony_store *store)
{
    return &sim_of(store)->disk.base;
}

/* --- what a commit tells the oracle --- */

static struct sim_agent *find_agent(struct sim_telemetry *sim, const char *name)
{
    for (size_t i = 0; i < SIM_AGENTS; i++) {
        if (strcmp(sim->agents[i].name, name) == 0) {
            return &sim->agents[i];
        }
    }
    REQUIRE(false);
    return NULL;
}

/* Every row of the agent's line up to the high-water mark is known to the colony now. */
static void note_known(struct sim_telemetry *sim, const struct telemetry_commit *commit)
{
    struct sim_agent *agent = find_agent(sim, commit->agent);
    size_t t = commit->type == TELEMETRY_SPANS ? 0 : 1;

    if (commit->cursor == NULL) {
        return;
    }
    struct telemetry_id known = pawl__telemetry_known_epoch(commit->cursor);
    const struct telemetry_epochs *epochs = &agent->live.store.state.epochs;
    if (!pawl__telemetry_id_equal(&known, &epochs->at[epochs->count - 1].id)) {
        return; /* a session that came back: which line it is in, the next page tells */
    }
    uint64_t mark = MIN(pawl__telemetry_current(commit->cursor)->high_water,
                        agent->live.store.state.counters[commit->type]);
    for (uint64_t seq_id = 1; seq_id <= mark; seq_id++) {
        sim->given[agent->live.line[t][seq_id - 1]].is_known = true;
    }
}

/* A row that is late by less than the grace is nobody's business yet. */
static void check_grace(struct sim_telemetry *sim, const struct telemetry_commit *commit)
{
    struct sim_agent *agent = find_agent(sim, commit->agent);
    size_t t = commit->type == TELEMETRY_SPANS ? 0 : 1;

    for (size_t i = 0; i < commit->gap_count; i++) {
        const struct telemetry_gap *gap = &commit->gaps[i];
        if (gap->status != TELEMETRY_GAP_DETECTED || gap->reason != TELEMETRY_GAP_HOLE
            || gap->run != sim->colony.rules.run || gap->attempts > 0) {
            continue;
        }
        for (uint64_t seq_id = gap->start;
             seq_id <= MIN(gap->end, agent->live.store.state.counters[commit->type]);
             seq_id++) {
            const struct sim_given *row = &sim->given[agent->live.line[t][seq_id - 1]];
            if (row->hidden_to_ns > sim->world.now_ns
                && sim->world.now_ns - row->hidden_from_ns < sim->colony.settings.grace_ns) {
                sim->broken = "a gap was detected within its grace";
            }
        }
    }
}

/* --- defects --- */

static void forget_holes(struct telemetry_commit *commit)
{
    size_t kept = 0;

    for (size_t i = 0; i < commit->gap_count; i++) {
        if (commit->gaps[i].id != 0 || commit->gaps[i].status != TELEMETRY_GAP_SUSPECTED) {
            commit->gaps[kept++] = commit->gaps[i];
        }
    }
    commit->gap_count = kept;
}

static struct telemetry_commit spoil(struct sim_telemetry *sim,
                                     const struct telemetry_commit *commit)
{
    struct telemetry_commit spoilt = *commit;

    if (sim->defect == SIM_UNRECORDED_HOLE) {
        forget_holes(&spoilt);
    } else if (sim->defect == SIM_RECOVERED_WITHOUT && commit->cursor == NULL) {
        spoilt.row_count = 0;
    }
    return spoilt;
}

/* --- the store --- */

static pawl_status commit(struct telemetry_colony_store *store,
                          const struct telemetry_commit *commits,
                          size_t count,
                          pawl_error *reterr)
{
    struct sim_telemetry *sim = sim_of(store);
    struct telemetry_commit spoilt[SIM_FEEDS];

    if (pawl__sim_happens(&sim->world, 30)) {
        sim->faults++;
        return pawl__fail(reterr, PAWL_NO_SPACE, "the disk is full");
    }
    for (size_t i = 0; i < count; i++) {
        spoilt[i] = spoil(sim, &commits[i]);
    }
    TRY(sim->disk.base.ops->commit(&sim->disk.base, spoilt, count, reterr));
    for (size_t i = 0; i < count; i++) {
        note_known(sim, &commits[i]);
        check_grace(sim, &commits[i]);
    }
    if (pawl__sim_happens(&sim->world, 30)) {
        sim->faults++;
        sim->is_alive = pawl__sim_coin(&sim->world, 500) && sim->is_alive;
        return pawl__fail(reterr, PAWL_IO, "nobody knows whether it was committed");
    }
    return PAWL_OK;
}

static pawl_status load(struct telemetry_colony_store *store,
                        const char *agent,
                        enum telemetry_type type,
                        const struct telemetry_id *session,
                        struct telemetry_cursor *cursor,
                        pawl_error *reterr)
{
    return disk_of(store)->ops->load(disk_of(store), agent, type, session, cursor, reterr);
}

static pawl_status gaps(struct telemetry_colony_store *store,
                        const struct telemetry_gap_query *query,
                        struct telemetry_gaps *ret_gaps,
                        pawl_error *reterr)
{
    return disk_of(store)->ops->gaps(disk_of(store), query, ret_gaps, reterr);
}

/* --- the process --- */

static int64_t colony_wall(struct pawl__clock *clock)
{
    struct sim_telemetry *sim =
        (struct sim_telemetry *)(void *)((char *)clock
                                         - offsetof(struct sim_telemetry, colony_clock));

    return pawl__wall_us(&sim->world.clock);
}

static int64_t colony_boot(struct pawl__clock *clock)
{
    struct sim_telemetry *sim =
        (struct sim_telemetry *)(void *)((char *)clock
                                         - offsetof(struct sim_telemetry, colony_clock));

    return sim->world.now_ns
           + (sim->defect == SIM_REMOTE_GRACE ? sim->world.wall_offset_us * NS_PER_US : 0);
}

void pawl__sim_colony_init(struct sim_telemetry *sim)
{
    static const struct telemetry_colony_ops ops = { .load = load, .commit = commit, .gaps = gaps };
    static const struct pawl__clock_ops clock_ops = {
        .wall_us = colony_wall,
        .monotonic_ns = colony_boot,
        .boot_ns = colony_boot,
    };

    sim->colony_clock = (struct pawl__clock){ &clock_ops };
    sim->disk = pawl__telemetry_memory_colony(&sim->colony_clock);
    sim->store.ops = &ops;
}

void pawl__sim_colony_start(struct sim_telemetry *sim)
{
    struct telemetry_colony_settings settings = pawl__telemetry_colony_settings_default();

    settings.rows_max = 5;
    settings.pages_max = 1 + (uint32_t)pawl__sim_below(&sim->world, 4);
    settings.ranges_max = 6;
    pawl__sim_colony_end(sim);
    pawl__telemetry_colony_init(&sim->colony,
                                &sim->store,
                                &sim->colony_clock,
                                &settings,
                                pawl__prng_next(&sim->world.prng));
    for (size_t i = 0; i < SIM_FEEDS; i++) {
        sim->feeds[i].agent = sim->agents[i / SIM_TYPES].name;
        sim->feeds[i].type = pawl__sim_telemetry_type(i % SIM_TYPES);
        sim->feeds[i].source = &sim->agents[i / SIM_TYPES].source;
    }
    sim->is_alive = true;
    sim->opened++;
    pawl__sim_trace(&sim->world, "colony starts", sim->opened, 0);
}

void pawl__sim_colony_end(struct sim_telemetry *sim)
{
    for (size_t i = 0; i < SIM_FEEDS; i++) {
        pawl__telemetry_feed_done(&sim->feeds[i]);
        sim->feeds[i] = (struct telemetry_feed){ .agent = NULL };
    }
    sim->is_alive = false;
}
