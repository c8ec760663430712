/* One run: a few minutes in which anything may happen, then quiet, until everything has settled. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "sim/delivery/model.h"

enum happening {
    PUBLISH,
    STEP,
    START,
    CRASH,
    DISASTER,
    LATE_COMMIT,
    PURGE,
    ROLL_BACK,
    RECREATE,
    WALL_STEPS,
    OUTAGE_BEGINS,
    OUTAGE_ENDS,
    COPY,
    QUIET,
};

enum { LIFE_MS = 120000, DRAIN_S_MAX = 6000, BACKOFF_S_MAX = 300 };

static void use_settings(struct delivery_settings *s, const struct sim_settings *given)
{
    s->retry.attempts_max = given->retries_max;
    s->retry.ttl_ns = given->entry_ttl_ns;
    s->retry.backoff =
        (struct pawl__backoff){ given->retry_backoff_ns,
                                MAX(given->retry_backoff_ns, BACKOFF_S_MAX * NS_PER_S) };
    s->outage = s->retry.backoff;
    s->retry_interval_ns = given->retry_interval_ns;
    s->lease_ns = given->lease_ns;
}

static struct delivery_settings settings(const struct sim_settings *given)
{
    struct delivery_settings s = pawl__delivery_settings_default();

    s.identity =
        (struct delivery_identity_rule){ pawl_view_of("sim"), pawl_view_of("S"), { NULL, 0 } };
    s.fetch = (struct delivery_fetch){ .messages_max = 8, .bytes_max = 4096 };
    s.apply_entries_max = 16;
    s.retry.attempts_max = 1000;
    s.retry.ttl_ns = 400 * NS_PER_S;
    s.retry.backoff = (struct pawl__backoff){ NS_PER_S, 20 * NS_PER_S };
    s.outage = (struct pawl__backoff){ NS_PER_S, 8 * NS_PER_S };
    s.retry_interval_ns = 2 * NS_PER_S;
    s.nak_delay_ns = NS_PER_S;
    s.lease_ns = 60 * NS_PER_S;
    s.checkpoint_age_ns = 8 * NS_PER_S;
    s.checkpoint_bytes = 4096;
    s.state_interval_ns = 5 * NS_PER_S;
    if (given != NULL) {
        use_settings(&s, given);
    }
    return s;
}

/* Until the last event is given up that will never be a row. */
static int64_t drain_ns_max(const struct delivery_settings *s)
{
    int64_t each_ns = s->retry.backoff.max_ns + s->retry_interval_ns;
    bool is_endless = s->retry.attempts_max > s->retry.ttl_ns / each_ns;
    int64_t tries_ns = is_endless ? s->retry.ttl_ns : (int64_t)s->retry.attempts_max * each_ns;

    return DRAIN_S_MAX * NS_PER_S + 2 * MIN(tries_ns, s->retry.ttl_ns);
}

bool pawl__sim_strikes(struct sim_delivery *sim, enum sim_fault fault, unsigned per_mille)
{
    return pawl__sim_happens(&sim->world, per_mille) && (sim->allowed & (unsigned)fault) != 0;
}

/* --- the process --- */

static void end_process(struct sim_delivery *sim)
{
    if (sim->is_open) {
        pawl__delivery_pipeline_close(&sim->pipeline);
        sim->is_open = false;
    }
}

static void start_process(struct sim_delivery *sim)
{
    const struct delivery_parts parts = {
        &sim->source, &sim->wal, &sim->sink, &sim->world.clock, &sim->world.random
    };
    pawl_error error = PAWL_ERROR_INIT;

    end_process(sim);
    sim->is_alive = true;
    sim->counter = 0;
    sim->opened++;
    pawl_status status =
        pawl__delivery_pipeline_open(&sim->pipeline, &sim->settings, &parts, &error);
    sim->is_open = status == PAWL_OK;
    pawl__sim_trace(&sim->world, "opened", (uint64_t)status, (uint64_t)sim->pipeline.pairing);
    if (!sim->is_open) {
        pawl__delivery_pipeline_close(&sim->pipeline);
    }
}

static void step(struct sim_delivery *sim)
{
    pawl_error error = PAWL_ERROR_INIT;
    size_t moved = 0;
    uint64_t which = pawl__sim_below(&sim->world, 8);
    pawl_status status = PAWL_OK;

    if (which < 3) {
        status = pawl__delivery_intake(&sim->pipeline, &moved, &error);
    } else if (which < 6) {
        status = pawl__delivery_apply(&sim->pipeline, &moved, &error);
    } else if (which == 6) {
        status = pawl__delivery_retry(&sim->pipeline, &moved, &error);
    } else {
        status = pawl__delivery_maintain(&sim->pipeline, &error);
    }
    if (moved > 0 || status != PAWL_OK) {
        pawl__sim_trace(&sim->world, "step", which, (uint64_t)status);
    }
    if (sim->is_alive && pawl__delivery_must_reopen(&sim->pipeline)) {
        start_process(sim);
    }
}

/* A process that was found dead is started again a little later. */
static void run_process(struct sim_delivery *sim)
{
    if (sim->is_alive && sim->is_open) {
        step(sim);
    } else if (sim->is_alive) {
        start_process(sim);
    }
    if (!sim->is_alive) {
        end_process(sim);
        pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 100, 5000), START, 0);
        return;
    }
    int64_t longest_ms = sim->world.is_quiet ? sim->quiet_step_ms : 400;
    pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 20, longest_ms), STEP, 0);
}

/* --- the plan of a life --- */

static int64_t some_time(struct sim_delivery *sim)
{
    return pawl__sim_ms(&sim->world, 0, LIFE_MS - 1);
}

/* A fault that is not allowed is drawn, and does not happen. */
static void plan_fault(struct sim_delivery *sim, enum happening kind, unsigned fault)
{
    int64_t in_ns = some_time(sim);

    if (fault == 0 || (sim->allowed & fault) != 0) {
        pawl__sim_plan(&sim->world, in_ns, (int)kind, 0);
    }
}

static void plan_some(struct sim_delivery *sim,
                      enum happening kind,
                      unsigned fault,
                      uint64_t at_most)
{
    uint64_t count = pawl__sim_below(&sim->world, at_most + 1);

    for (uint64_t i = 0; i < count; i++) {
        plan_fault(sim, kind, fault);
    }
}

static void plan_rarely(struct sim_delivery *sim,
                        enum happening kind,
                        unsigned fault,
                        unsigned per_mille)
{
    if (pawl__sim_coin(&sim->world, per_mille)) {
        plan_fault(sim, kind, fault);
    }
}

static void plan_life(struct sim_delivery *sim)
{
    for (size_t i = 0; i < sim->item_count; i++) {
        pawl__sim_plan(&sim->world, some_time(sim), PUBLISH, i);
        if (sim->items[i].has_id && pawl__sim_coin(&sim->world, 200)) {
            pawl__sim_plan(&sim->world, some_time(sim), PUBLISH, i); /* a producer's retry */
        }
    }
    plan_some(sim, CRASH, SIM_KILL | SIM_POWER, 4);
    plan_some(sim, COPY, 0, 4);
    plan_some(sim, OUTAGE_BEGINS, SIM_OUTAGE, 2);
    plan_some(sim, WALL_STEPS, SIM_CLOCK, 2);
    plan_rarely(sim, DISASTER, SIM_STORES, 300);
    plan_rarely(sim, DISASTER, SIM_STORES, 150);
    plan_rarely(sim, PURGE, SIM_STREAM, 200);
    plan_rarely(sim, ROLL_BACK, SIM_STREAM, 250);
    plan_rarely(sim, RECREATE, SIM_STREAM, 120);
    pawl__sim_plan(&sim->world, LIFE_MS * NS_PER_MS, QUIET, 0);
    pawl__sim_plan(&sim->world, 0, START, 0);
}

static void be_quiet(struct sim_delivery *sim)
{
    sim->world.is_quiet = true;
    sim->sink_is_out = false;
    pawl__sim_trace(&sim->world, "QUIET", 0, 0);
}

static void happen(struct sim_delivery *sim, const struct sim_event *event)
{
    switch ((enum happening)event->kind) {
    case PUBLISH:
        pawl__sim_publish(sim, (size_t)event->number);
        break;
    case START:
        sim->is_alive = true;
        if (sim->parked.is_there) {
            pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 0, 10000), LATE_COMMIT, 0);
        }
        run_process(sim);
        break;
    case STEP:
        run_process(sim);
        break;
    case CRASH:
        pawl__sim_crash(sim);
        break;
    case DISASTER:
        pawl__sim_disaster(sim);
        break;
    case LATE_COMMIT:
        pawl__sim_unpark(sim, true);
        break;
    case PURGE:
        pawl__sim_purge(sim);
        break;
    case ROLL_BACK:
        pawl__sim_roll_back(sim);
        break;
    case RECREATE:
        pawl__sim_recreate(sim);
        break;
    case WALL_STEPS:
        pawl__sim_step_wall(&sim->world,
                            (pawl__sim_coin(&sim->world, 500) ? 3600 : -3600) * US_PER_S);
        break;
    case OUTAGE_BEGINS:
        sim->sink_is_out = true;
        sim->faults++;
        pawl__sim_plan(&sim->world, pawl__sim_ms(&sim->world, 1000, 30000), OUTAGE_ENDS, 0);
        break;
    case OUTAGE_ENDS:
        sim->sink_is_out = false;
        break;
    case COPY:
        pawl__sim_take_copies(sim);
        break;
    case QUIET:
        be_quiet(sim);
        break;
    }
}

static bool live(struct sim_delivery *sim)
{
    struct sim_event event;

    while (pawl__sim_next(&sim->world, &event)) {
        happen(sim, &event);
        if (sim->world.is_quiet && pawl__sim_is_drained(sim)) {
            return true;
        }
        if (sim->world.now_ns > sim->drain_ns_max) {
            return false;
        }
    }
    return false;
}

/* --- from outside --- */

static void init(struct sim_delivery *sim,
                 const struct sim_options *options,
                 struct pawl__buf *trace)
{
    bool no_sync = options->settings != NULL && options->settings->no_sync;

    pawl__sim_world_init(&sim->world, options->seed, trace);
    sim->defect =
        options->defect == SIM_NO_DEFECT && no_sync ? SIM_ACK_BEFORE_FSYNC : options->defect;
    sim->world.monotonic_steps = sim->defect == SIM_TTL_BY_WALL_CLOCK;
    sim->allowed = options->faults;
    sim->settings = settings(options->settings);
    sim->drain_ns_max = drain_ns_max(&sim->settings);
    sim->quiet_step_ms =
        MAX(2000, MIN(sim->settings.retry_interval_ns, sim->settings.lease_ns / 10) / NS_PER_MS);
    pawl__sim_models_init(sim);
    pawl__sim_make_items(sim);
    plan_life(sim);
}

static void done(struct sim_delivery *sim)
{
    end_process(sim);
    pawl__delivery_memory_source_done(&sim->broker);
    pawl__delivery_memory_wal_done(&sim->live);
    pawl__delivery_memory_wal_done(&sim->disk);
    pawl__delivery_memory_sink_done(&sim->table);
    for (size_t i = 0; i < SIM_COPIES_MAX; i++) {
        pawl__delivery_memory_wal_done(&sim->wal_copies[i]);
        pawl__delivery_memory_sink_done(&sim->table_copies[i]);
    }
    pawl__delivery_page_done(&sim->parked.page);
    free(sim);
}

static struct sim_report report(struct sim_delivery *sim, bool is_drained)
{
    struct sim_report found = {
        .published = sim->message_count,
        .delivered = sim->table.cursor.counters.delivered,
        .failed = sim->table.cursor.counters.failed,
        .on_record = sim->table.loss_count,
        .faults = sim->faults,
        .reopened = sim->opened,
        .is_clean = is_drained && pawl__sim_judge(sim, found.violation, sizeof(found.violation)),
    };

    found.hash = sim->world.hash;
    return found;
}

pawl_status pawl__sim_delivery(const struct sim_options *options,
                               struct pawl__buf *trace,
                               struct sim_report *ret_report,
                               pawl_error *reterr)
{
    struct sim_delivery *sim = calloc(1, sizeof(*sim));

    TRY(pawl__check_memory(sim, "a simulation", reterr));
    init(sim, options, trace);
    bool is_drained = live(sim);
    *ret_report = report(sim, is_drained);
    if (!is_drained) {
        snprintf(ret_report->violation,
                 sizeof(ret_report->violation),
                 "it does not settle: the WAL ends at %" PRIu64 ", applied is %" PRIu64
                 ", %zu exceptions, %s",
                 sim->live.last,
                 sim->table.cursor.applied,
                 sim->table.exception_count,
                 sim->is_open ? "open" : "not open");
    }
    done(sim);
    return PAWL_OK;
}

const char *pawl__sim_defect_name(enum sim_defect defect)
{
    static const char *const names[] = {
        [SIM_NO_DEFECT] = "none",
        [SIM_ACK_BEFORE_FSYNC] = "ack-before-fsync",
        [SIM_PROCESS_COUNTER_ID] = "process-counter-id",
        [SIM_CONFIRM_BEFORE_COMMIT] = "confirm-before-commit",
        [SIM_NO_FENCING] = "no-fencing",
        [SIM_ACK_ALL] = "ack-all",
        [SIM_SAME_EPOCH] = "same-epoch",
        [SIM_WAL_REPLACED] = "wal-replaced",
        [SIM_TTL_BY_WALL_CLOCK] = "ttl-by-wall-clock",
        [SIM_CONFLICT_AS_DUPLICATE] = "conflict-as-duplicate",
    };
    REQUIRE((size_t)defect < COUNT_OF(names));
    return names[defect];
}

const char *pawl__sim_fault_name(size_t bit)
{
    static const char *const names[] = { "kill",   "power", "calls",  "connection",
                                         "outage", "clock", "stream", "stores" };

    return bit < COUNT_OF(names) ? names[bit] : NULL;
}
