/* pawl sim: the logic of delivery in a simulated world, with the settings of this node. */
#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "cli/commands.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/run.h"
#include "config/config.h"
#include "sim/sim.h"

enum { TRACE_BYTES_MAX = 8 << 20, OUT_BYTES_MAX = 16 << 20, LISTED_MAX = 20 };

struct sim_run {
    struct sim_settings settings;
    struct sim_options options;
    uint64_t seeds;
    uint64_t first_seed;
    struct sim_report sum;
    uint64_t violated;       /* seeds */
    uint64_t first_bad;      /* of these */
    struct pawl__buf listed; /* a line for each of the first ones */
    json_t *list;            /* the same */
};

static void sim_run_done(struct sim_run *sim)
{
    pawl__buf_done(&sim->listed);
    json_decref(sim->list);
}

/* --- what is asked --- */

static pawl_status add_fault(pawl_view name, unsigned *faults, pawl_error *reterr)
{
    if (pawl__view_is(name, "all")) {
        *faults = SIM_ALL_FAULTS;
        return PAWL_OK;
    }
    if (pawl__view_is(name, "none")) {
        return PAWL_OK;
    }
    for (size_t bit = 0; pawl__sim_fault_name(bit) != NULL; bit++) {
        if (pawl__view_is(name, pawl__sim_fault_name(bit))) {
            *faults |= 1U << bit;
            return PAWL_OK;
        }
    }
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "'--faults': no fault is called '%.*s'; allowed are kill, power, calls, "
                      "connection, outage, clock, stream, stores, all and none",
                      VIEW_ARGS(name));
}

static pawl_status parse_faults(const char *text, unsigned *ret_faults, pawl_error *reterr)
{
    *ret_faults = 0;
    for (const char *at = text; at != NULL;) {
        const char *comma = strchr(at, ',');
        pawl_view name = { at, comma == NULL ? strlen(at) : (size_t)(comma - at) };
        TRY(add_fault(name, ret_faults, reterr));
        at = comma == NULL ? NULL : comma + 1;
    }
    return PAWL_OK;
}

static pawl_status parse_defect(const char *text, enum sim_defect *ret_defect, pawl_error *reterr)
{
    for (int i = 0; i < SIM_DEFECT_COUNT; i++) {
        if (text == NULL || strcmp(text, pawl__sim_defect_name((enum sim_defect)i)) == 0) {
            *ret_defect = (enum sim_defect)i;
            return PAWL_OK;
        }
    }
    return pawl__fail(reterr, PAWL_INVALID, "'--plant': no defect is called '%s'", text);
}

static pawl_status parse(const struct pawl__cli_run *run, struct sim_run *sim, pawl_error *reterr)
{
    const struct pawl__config *config = run->config;

    sim->settings = (struct sim_settings){
        .retries_max = (uint32_t)pawl__config_number(config, PAWL__CONSUMER_WAL_MAX_RETRIES),
        .retry_interval_ns = pawl__config_number(config, PAWL__CONSUMER_WAL_RETRY_INTERVAL),
        .retry_backoff_ns = pawl__config_number(config, PAWL__CONSUMER_WAL_RETRY_BACKOFF),
        .entry_ttl_ns = pawl__config_number(config, PAWL__CONSUMER_WAL_ENTRY_TTL),
        .lease_ns = pawl__config_number(config, PAWL__CONSUMER_WAL_LEASE_DURATION),
        .no_sync = pawl__config_number(config, PAWL__CONSUMER_WAL_SYNC_WRITES) == 0,
    };
    sim->options.settings = &sim->settings;
    sim->seeds = (uint64_t)pawl__cli_args_number(run->args, "seeds");
    sim->first_seed = (uint64_t)pawl__cli_args_number(run->args, "seed");
    TRY(parse_faults(pawl__cli_args_value(run->args, "faults"), &sim->options.faults, reterr));
    return parse_defect(pawl__cli_args_value(run->args, "plant"), &sim->options.defect, reterr);
}

/* --- the runs --- */

static void add_report(struct sim_run *sim, uint64_t seed, const struct sim_report *report)
{
    sim->sum.published += report->published;
    sim->sum.delivered += report->delivered;
    sim->sum.failed += report->failed;
    sim->sum.on_record += report->on_record;
    sim->sum.faults += report->faults;
    sim->sum.reopened += report->reopened;
    sim->sum.hash = sim->sum.hash * UINT64_C(1099511628211) ^ report->hash;
    if (report->is_clean) {
        return;
    }
    sim->first_bad = sim->violated == 0 ? seed : sim->first_bad;
    if (sim->violated++ < LISTED_MAX) {
        pawl__buf_add_format(&sim->listed, "seed %" PRIu64 ": %s\n", seed, report->violation);
        json_array_append_new(
            sim->list,
            json_pack("{s:I, s:s}", "seed", (json_int_t)seed, "violation", report->violation));
    }
}

static pawl_status run_seeds(const struct pawl__cli_run *run,
                             struct sim_run *sim,
                             pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(run, "sim", false);

    for (uint64_t i = 0; i < sim->seeds; i++) {
        struct sim_report report;
        sim->options.seed = sim->first_seed + i;
        TRY(pawl__sim_delivery(&sim->options, NULL, &report, reterr));
        add_report(sim, sim->options.seed, &report);
        if (!pawl__cli_progress_step(&progress, i + 1, sim->seeds)) {
            return pawl__fail(reterr,
                              PAWL_CANCELLED,
                              "stopped after %" PRIu64 " of %" PRIu64 " seeds",
                              i + 1,
                              sim->seeds);
        }
    }
    return PAWL_OK;
}

/* --- what is told --- */

static void add_text(struct pawl__buf *out,
                     const struct sim_run *sim,
                     const struct pawl__buf *trace)
{
    const struct sim_report *sum = &sim->sum;

    pawl__buf_add(out, pawl__buf_view(trace));
    pawl__buf_add(out, pawl__buf_view(&sim->listed));
    pawl__buf_add_format(out,
                         "seeds      %" PRIu64 " (from %" PRIu64 ")\n"
                         "faults     %" PRIu64 "\n"
                         "restarts   %" PRIu64 "\n"
                         "published  %" PRIu64 "\n"
                         "delivered  %" PRIu64 "\n"
                         "failed     %" PRIu64 "\n"
                         "on record  %" PRIu64 "\n"
                         "broken     %" PRIu64 "\n"
                         "trace hash %016" PRIx64 "\n",
                         sim->seeds,
                         sim->first_seed,
                         sum->faults,
                         sum->reopened - sim->seeds,
                         sum->published,
                         sum->delivered,
                         sum->failed,
                         sum->on_record,
                         sim->violated,
                         sum->hash);
}

static json_t *summary(const struct sim_run *sim, const struct pawl__buf *trace)
{
    const struct sim_report *sum = &sim->sum;
    char hash[20];

    snprintf(hash, sizeof(hash), "%016" PRIx64, sum->hash);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:O, s:s%}",
                     "seeds",
                     (json_int_t)sim->seeds,
                     "first_seed",
                     (json_int_t)sim->first_seed,
                     "faults",
                     (json_int_t)sum->faults,
                     "restarts",
                     (json_int_t)(sum->reopened - sim->seeds),
                     "published",
                     (json_int_t)sum->published,
                     "delivered",
                     (json_int_t)sum->delivered,
                     "failed",
                     (json_int_t)sum->failed,
                     "on_record",
                     (json_int_t)sum->on_record,
                     "broken",
                     (json_int_t)sim->violated,
                     "trace_hash",
                     hash,
                     "violations",
                     sim->list,
                     "trace",
                     trace->len == 0 ? "" : trace->data,
                     trace->len);
}

/* The first seed that failed, once more, with its trace. */
static pawl_status trace_failure(struct sim_run *sim, struct pawl__buf *trace, pawl_error *reterr)
{
    struct sim_report report;

    if (sim->violated == 0) {
        return PAWL_OK;
    }
    sim->options.seed = sim->first_bad;
    TRY(pawl__sim_delivery(&sim->options, trace, &report, reterr));
    return pawl__buf_check(trace, "the trace of a seed", reterr);
}

static pawl_status tell(const struct pawl__cli_run *run, struct sim_run *sim, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(OUT_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf trace = BUF_INIT(TRACE_BYTES_MAX);

    TRY(trace_failure(sim, &trace, reterr));
    if (run->json) {
        TRY(pawl__cli_out_add_json(&out, summary(sim, &trace), reterr));
    } else {
        add_text(&out, sim, &trace);
    }
    return pawl__cli_out_add(&out, reterr);
}

static pawl_status sim_command(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(sim_run_done) struct sim_run sim = { .listed = BUF_INIT(1 << 16), .list = json_array() };

    TRY(parse(run, &sim, reterr));
    pawl__cli_interrupt_catch(NULL);
    TRY(run_seeds(run, &sim, reterr));
    TRY(tell(run, &sim, reterr));
    if (sim.violated == 0) {
        return PAWL_OK;
    }
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "%" PRIu64 " of %" PRIu64
                      " seeds broke a promise; to see the first one again, "
                      "run 'pawl sim --seed %" PRIu64 " --seeds 1' with the same settings",
                      sim.violated,
                      sim.seeds,
                      sim.first_bad);
}

const struct pawl__cli_command pawl__cli_cmd_sim = {
    .name = "sim",
    .summary = "try delivery against simulated faults, with your settings",
    .description =
        "Runs the real logic of a pipeline, with the settings of this node, in a simulated world: "
        "one thread, a clock that jumps, and a broker, a disk and a table that fail as a seed "
        "says. Each seed is two minutes of faults and then quiet, until everything has settled. "
        "Then every event must be a row, or in failed_events, or filtered, exactly once, and what "
        "the stream lost must be on record in delivery_losses. Nothing on this machine is "
        "touched.\n\n"
        "Faults: kill (the process), power (and what was not synced), calls (that fail, or lose "
        "their answer), connection (messages and acknowledgements lost or out of order), outage "
        "(of the table), clock (steps of an hour), stream (purged, recreated, rolled back), stores "
        "(write-ahead log and table lost, or restored from older copies).\n\n"
        "The first seed that breaks a promise prints its trace, and the exit code is 6. The same "
        "seed with the same settings gives the same trace hash. With --plant a known mistake is "
        "built in, to see that it is found.",
    .flags =
        FLAGS(NUMBER_FLAG("seeds", "N", 1, 100000000, "How many.", .fallback = "1000"),
              NUMBER_FLAG("seed", "N", 1, INT64_MAX / 2, "The first of them.", .fallback = "1"),
              FLAG("faults",
                   "LIST",
                   "Which faults happen, with commas between them; all or none.",
                   .fallback = "all"),
              FLAG("plant",
                   "DEFECT",
                   "A mistake to find.",
                   .choices = CHOICES("none",
                                      "ack-before-fsync",
                                      "process-counter-id",
                                      "confirm-before-commit",
                                      "no-fencing",
                                      "ack-all",
                                      "same-epoch",
                                      "wal-replaced",
                                      "ttl-by-wall-clock",
                                      "conflict-as-duplicate"))),
    .examples = EXAMPLES(
        TESTED("pawl sim --seeds 50", "do my settings keep every event?"),
        TESTED("pawl sim --seeds 20 --faults kill,power --json", "only crashes, for a program"),
        { .line = "pawl sim --seeds 100 --consumer-wal-sync-writes false",
          .says = "what a setting would cost: events, in this case" }),
    .run = sim_command,
};
