/* One run: some minutes in which anything may happen, then quiet, until everything has settled. */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "sim/telemetry/model.h"

enum happening {
    INTAKE,
    POLL,
    RECOVER,
    START,
    KILL,
    AGENT_RESTARTS,
    AGENT_COPIED,
    AGENT_RESTORED,
    AGENT_REPLACED,
    AGENT_DAMAGED,
    AGENT_AWAY,
    AGENT_BACK,
    RETENTION,
    WALL_STEPS,
    RESET,
    QUIET,
};

enum { LIFE_MS = 240000, SETTLE_S_MAX = 6000 };

static int64_t some_time(struct sim_telemetry *sim)
{
    return pawl__sim_ms(&sim->world, 0, LIFE_MS - 1);
}

static void plan_some(struct sim_telemetry *sim, enum happening kind, uint64_t at_most)
{
    uint64_t count = pawl__sim_below(&sim->world, at_most + 1);

    for (uint64_t i = 0; i < count; i++) {
        pawl__sim_plan(&sim->world, some_time(sim), (int)kind, 0);
    }
}

static void plan_life(struct sim_telemetry *sim)
{
    for (size_t i = 0; i < 60; i++) {
        pawl__sim_plan(&sim->world, some_time(sim), INTAKE, 0);
    }
    plan_some(sim, KILL, 4);
    plan_some(sim, AGENT_RESTARTS, 4);
    plan_some(sim, AGENT_COPIED, 8);
    plan_some(sim, AGENT_RESTORED, 3);
    plan_some(sim, AGENT_REPLACED, 2);
    plan_some(sim, AGENT_DAMAGED, 2);
    plan_some(sim, AGENT_AWAY, 5);
    plan_some(sim, RETENTION, 30);
    plan_some(sim, WALL_STEPS, 8);
    if (sim->defect == SIM_RESET_DOUBLES) {
        pawl__sim_plan(&sim->world, some_time(sim), RESET, 0);
    }
    pawl__sim_plan(&sim->world, LIFE_MS * NS_PER_MS, QUIET, 0);
    pawl__sim_plan(&sim->world, 0, START, 0);
    pawl__sim_plan(&sim->world, 0, POLL, 0);
    pawl__sim_plan(&sim->world, 0, RECOVER, 0);
}

/* --- the colony's steps --- */

static void trace_feeds(struct sim_telemetry *sim, const char *what)
{
    for (size_t i = 0; i < SIM_FEEDS; i++) {
        const struct telemetry_feed *feed = &sim->feeds[i];
        if (feed->status != PAWL_OK) {
            pawl__sim_trace(&sim->world, what, i, (uint64_t)feed->status);
        } else if (feed->cursor.generation_count > 0) {
            pawl__sim_trace(&sim->world, what, i, pawl__telemetry_current(&feed->cursor)->last);
        }
    }
}

static void poll(struct sim_telemetry *sim)
{
    if (sim->is_alive) {
        pawl__telemetry_poll(&sim->colony, sim->feeds, SIM_FEEDS);
        trace_feeds(sim, "polled");
    }
    if (sim->is_alive) {
        pawl__telemetry_recover(&sim->colony, sim->feeds, SIM_FEEDS, TELEMETRY_RECHECK);
        trace_feeds(sim, "rechecked");
    }
    if (!sim->is_alive) {
        pawl__sim_colony_end(sim);
        pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 500, 20000), START, 0);
    }
    pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 500, 6000), POLL, 0);
}

static void recover(struct sim_telemetry *sim)
{
    if (sim->is_alive) {
        pawl__telemetry_recover(&sim->colony, sim->feeds, SIM_FEEDS, TELEMETRY_RECOVER);
        trace_feeds(sim, "recovered");
    }
    pawl__sim_plan(&sim->world, 60 * NS_PER_S, RECOVER, 0);
}

static void agent_away(struct sim_telemetry *sim)
{
    uint64_t which = pawl__sim_below(&sim->world, SIM_AGENTS);

    sim->faults++;
    sim->agents[which].is_away = true;
    pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 1000, 120000), AGENT_BACK, which);
}

static void step_wall(struct sim_telemetry *sim)
{
    sim->faults++;
    pawl__sim_step_wall(&sim->world, (pawl__sim_coin(&sim->world, 500) ? 3600 : -3600) * US_PER_S);
}

static void be_quiet(struct sim_telemetry *sim)
{
    sim->world.is_quiet = true;
    for (size_t i = 0; i < SIM_AGENTS; i++) {
        sim->agents[i].is_away = false;
    }
    pawl__sim_trace(&sim->world, "QUIET", 0, 0);
}

/* The defect: the checkpoint goes back, and the rows stay. */
static void reset(struct sim_telemetry *sim)
{
    for (size_t i = 0; i < sim->disk.cursor_count; i++) {
        pawl__telemetry_current(&sim->disk.cursors[i].cursor)->last = 0;
    }
    sim->is_alive = false;
}

static void happen_to_agents(struct sim_telemetry *sim, enum happening kind)
{
    static void (*const doings[])(struct sim_telemetry *) = {
        [INTAKE] = pawl__sim_intake,
        [AGENT_RESTARTS] = pawl__sim_agent_restarts,
        [AGENT_COPIED] = pawl__sim_agent_copied,
        [AGENT_RESTORED] = pawl__sim_agent_restored,
        [AGENT_REPLACED] = pawl__sim_agent_replaced,
        [AGENT_DAMAGED] = pawl__sim_agent_damaged,
        [AGENT_AWAY] = agent_away,
        [RETENTION] = pawl__sim_retention,
    };

    doings[kind](sim);
}

static void happen(struct sim_telemetry *sim, const struct sim_event *event)
{
    switch ((enum happening)event->kind) {
    case POLL:
        poll(sim);
        break;
    case RECOVER:
        recover(sim);
        break;
    case START:
        pawl__sim_colony_start(sim);
        break;
    case KILL:
        sim->faults++;
        sim->is_alive = false;
        break;
    case AGENT_BACK:
        sim->agents[event->number].is_away = false;
        break;
    case WALL_STEPS:
        step_wall(sim);
        break;
    case RESET:
        reset(sim);
        break;
    case QUIET:
        be_quiet(sim);
        break;
    default:
        happen_to_agents(sim, (enum happening)event->kind);
    }
}

static bool live(struct sim_telemetry *sim)
{
    struct sim_event event;

    while (pawl__sim_next(&sim->world, &event)) {
        happen(sim, &event);
        if (sim->broken != NULL || (sim->world.is_quiet && pawl__sim_telemetry_is_settled(sim))) {
            return true;
        }
        if (sim->world.now_ns > SETTLE_S_MAX * NS_PER_S) {
            return false;
        }
    }
    return false;
}

/* --- from outside --- */

static struct sim_report report(struct sim_telemetry *sim, bool is_settled)
{
    struct sim_report found = {
        .hash = sim->world.hash,
        .published = sim->given_count,
        .faults = sim->faults,
        .reopened = sim->opened,
    };

    for (size_t i = 0; i < sim->disk.row_count; i++) {
        found.delivered += !sim->disk.rows[i].is_rejected;
        found.failed += sim->disk.rows[i].is_rejected;
    }
    for (size_t i = 0; i < sim->disk.gap_count; i++) {
        const struct telemetry_gap *gap = &sim->disk.gaps[i].gap;
        found.on_record += gap->status == TELEMETRY_GAP_PERMANENT ? gap->end - gap->start + 1 : 0;
    }
    found.is_clean =
        is_settled && pawl__sim_telemetry_judge(sim, found.violation, sizeof(found.violation));
    if (!is_settled) {
        snprintf(found.violation, sizeof(found.violation), "it does not settle");
    }
    return found;
}

pawl_status pawl__sim_telemetry(uint64_t seed,
                                enum sim_telemetry_defect defect,
                                struct pawl__buf *trace,
                                struct sim_report *ret_report,
                                pawl_error *reterr)
{
    struct sim_telemetry *sim = calloc(1, sizeof(*sim));

    TRY(pawl__check_memory(sim, "a simulation", reterr));
    pawl__sim_world_init(&sim->world, seed, trace);
    sim->defect = defect;
    pawl__sim_agents_init(sim);
    pawl__sim_colony_init(sim);
    plan_life(sim);
    *ret_report = report(sim, live(sim));
    pawl__sim_colony_end(sim);
    pawl__sim_agents_done(sim);
    pawl__telemetry_memory_colony_done(&sim->disk);
    free(sim);
    return PAWL_OK;
}

const char *pawl__sim_telemetry_defect_name(enum sim_telemetry_defect defect)
{
    static const char *const names[] = {
        [SIM_TELEMETRY_NO_DEFECT] = "none",
        [SIM_UNRECORDED_HOLE] = "unrecorded-hole",
        [SIM_REMOTE_GRACE] = "remote-grace",
        [SIM_RECOVERED_WITHOUT] = "recovered-without-rows",
        [SIM_UNBOUNDED_RECOVERY] = "unbounded-recovery",
        [SIM_WALL_RETENTION] = "retention-by-wall-clock",
        [SIM_SAME_SESSION] = "same-session-after-restore",
        [SIM_BAD_ROW_STOPS] = "bad-row-stops-the-type",
        [SIM_RESET_DOUBLES] = "reset-doubles-rows",
    };

    REQUIRE((size_t)defect < COUNT_OF(names));
    return names[defect];
}
