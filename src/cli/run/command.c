/* pawl work run: a durable xargs. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/os/clock.h"
#include "cli/run/guard.h"
#include "cli/run/runner.h"
#include "cli/run/step.h"
#include "cli/run/template.h"
#include "cli/work/work.h"
#include "config/config.h"

#define DAY_MS INT64_C(86400000)

/* The flag, else the setting. *ret_chosen: the user set it, it is not the default. */
static pawl_status parse_pace(const struct pawl__cli_run *run,
                              const char *flag,
                              enum pawl__setting_id id,
                              int64_t *ret_ms,
                              bool *ret_chosen,
                              pawl_error *reterr)
{
    const struct pawl__setting *setting = &pawl__settings[id];

    *ret_ms = pawl__cli_work_setting_ms(run, id);
    *ret_chosen = pawl__cli_args_has(run->args, flag)
                  || pawl__config_origin(run->config, id).kind != PAWL__ORIGIN_DEFAULT;
    return pawl__cli_work_ms(
        run, flag, setting->min / NS_PER_MS, setting->max / NS_PER_MS, ret_ms, reterr);
}

static pawl_status refuse_heartbeat(const struct pawl__cli_run *run,
                                    const struct runner_options *options,
                                    pawl_error *reterr)
{
    char origin_text[PAWL_ERROR_MESSAGE_SIZE / 2] = "'--heartbeat'";
    struct pawl__buf origin = BUF_OVER(origin_text);
    char heartbeat[PAWL__QUANTITY_SIZE];
    char lease[PAWL__QUANTITY_SIZE];

    if (!pawl__cli_args_has(run->args, "heartbeat")) {
        pawl__config_add_origin(run->config, PAWL__WORK_HEARTBEAT, &origin);
        pawl__buf_add_text(&origin, ": work.heartbeat");
    }
    pawl__duration_format(options->heartbeat_ms * NS_PER_MS, heartbeat);
    pawl__duration_format(options->lease_ms * NS_PER_MS, lease);
    return pawl__fail(reterr,
                      PAWL_INVALID,
                      "%s is %s, which is not shorter than the lease ('--lease', work.lease) of %s",
                      origin_text,
                      heartbeat,
                      lease);
}

/* Lease, heartbeat and sweep: what the user set holds, and defaults adapt to it. */
static pawl_status parse_paces(const struct pawl__cli_run *run,
                               struct runner_options *options,
                               pawl_error *reterr)
{
    bool chosen = false;
    bool beat_chosen = false;
    bool sweep_chosen = false;

    TRY(parse_pace(run, "lease", PAWL__WORK_LEASE, &options->lease_ms, &chosen, reterr));
    TRY(parse_pace(
        run, "heartbeat", PAWL__WORK_HEARTBEAT, &options->heartbeat_ms, &beat_chosen, reterr));
    TRY(parse_pace(run, "sweep", PAWL__WORK_SWEEP, &options->sweep_ms, &sweep_chosen, reterr));
    if (!beat_chosen) {
        options->heartbeat_ms = pawl__cli_beat_fitting_ms(options->heartbeat_ms, options->lease_ms);
    }
    if (!sweep_chosen) {
        options->sweep_ms = pawl__cli_sweep_fitting_ms(options->sweep_ms, options->lease_ms);
    }
    return options->heartbeat_ms < options->lease_ms ? PAWL_OK
                                                     : refuse_heartbeat(run, options, reterr);
}

static pawl_status parse_times(const struct pawl__cli_run *run,
                               struct runner_options *options,
                               pawl_error *reterr)
{
    int64_t timeout_ms = -1;
    int64_t grace_ms = 0;

    TRY(parse_paces(run, options, reterr));
    TRY(pawl__cli_work_ms(run, "timeout", 1, 365 * DAY_MS, &timeout_ms, reterr));
    TRY(pawl__cli_work_ms(run, "grace", 0, 3600000, &grace_ms, reterr));
    options->timeout_ns = timeout_ms < 0 ? INT64_MAX : timeout_ms * NS_PER_MS;
    options->grace_ns = grace_ms * NS_PER_MS;
    return PAWL_OK;
}

static pawl_status run_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_view types[WORK_TYPES_MAX];
    struct runner_options options = {
        .types = types,
        .task_id = pawl__cli_work_value(run, "task"),
        .command = pawl__cli_work_value(run, "exec"),
        .mark = pawl__cli_work_value(run, "replace"),
        .jobs = (uint64_t)pawl__cli_args_number(run->args, "jobs"),
        .limit = pawl__cli_args_has(run->args, "limit")
                     ? (uint64_t)pawl__cli_args_number(run->args, "limit")
                     : UINT64_MAX,
        .retries = pawl__cli_args_has(run->args, "retries")
                       ? pawl__cli_args_number(run->args, "retries")
                       : -1,
        .logs = pawl__cli_args_value(run->args, "logs"),
        .keep_order = pawl__cli_args_has(run->args, "keep-order"),
        .stays = pawl__cli_args_has(run->args, "wait"),
    };

    TRY(pawl__cli_work_types(run, types, &options.type_count, reterr));
    TRY(parse_times(run, &options, reterr));
    if (options.mark.len == 0) {
        return pawl__fail(reterr, PAWL_INVALID, "'--replace' is empty");
    }
    TRY(pawl__cli_template_check(options.command, options.mark, reterr));
    return pawl__cli_runner_run(run, &options, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_run = {
    .name = "run",
    .summary = "run a command for every item: a durable xargs",
    .description =
        "Leases items and runs the command for each with /bin/sh, --jobs of them at a time, until "
        "nothing is left. {} in the command is the item's input as one word: a string as it is, "
        "any other value as JSON. The input is also on standard input, with a line end, and in "
        "PAWL_INPUT; PAWL_WORK_ITEM_ID, PAWL_TASK_ID, PAWL_WORK_TYPE, PAWL_ATTEMPT, PAWL_RETRY and "
        "PAWL_TOKEN say which item it is.\n\n"
        "Exit code 0 completes the item; any other, a signal or --timeout (whatever the exit code "
        "then is) fails it, and it is tried again after a backoff while it has retries left. What "
        "the command left in the background is killed when it ends. Exit code, and the last 64 KiB "
        "of "
        "standard output and error, are stored with the item. What an item that has ended printed "
        "is printed, whole and not mixed with that of others; standard error of every try is.\n\n"
        "Kill it anywhere and start it again: only what is unfinished runs. Ctrl-C asks the "
        "commands, with all that they started, to end, ends them after --grace, and gives their "
        "items back. After kill -9 a "
        "guard ends the commands at once, and the next run on the same machine takes their items "
        "back, which counts as a retry; elsewhere the leases have to run out. So a command may run "
        "a second time for what was running, and only for that. A command whose lease was lost is "
        "ended.\n\n"
        "Exit code 0: all items have succeeded, with --task all of the task; 1: some have failed "
        "for good, or it was interrupted. With --wait, Ctrl-C is how it ends.",
    .flags = FLAGS(
        FLAG("type", "TYPE", "Items of this type.", .required = true, .repeats = true),
        FLAG("exec", "COMMAND", "What to run.", .required = true),
        NUMBER_FLAG(
            "jobs", "N", 1, RUNNER_JOBS_MAX, "Commands at a time.", .letter = 'j', .fallback = "1"),
        FLAG("task", "TASK", "Only items of this task."),
        { .name = "replace",
          .letter = 'I',
          .value = "MARK",
          .help = "What stands for the input in the command.",
          .fallback = "{}" },
        NUMBER_FLAG("limit", "N", 1, INT64_MAX, "End after this many tries.", .letter = 'n'),
        NUMBER_FLAG("retries",
                    "N",
                    0,
                    PAWL_WORK_RETRIES_MAX,
                    "No more retries of an item than this, even if it may have more."),
        FLAG("timeout", "DURATION", "End a command that takes longer."),
        FLAG("grace", "DURATION", "From SIGTERM to SIGKILL.", .fallback = "5s"),
        FLAG("lease",
             "DURATION",
             "How long items stay ours when this process stands still, from 5s to 7d; instead "
             "of work.lease."),
        FLAG("heartbeat",
             "DURATION",
             "How often leases are extended, and a cancelled item is noticed, from 100ms to 7d; "
             "instead of work.heartbeat."),
        FLAG("sweep",
             "DURATION",
             "How often leases that ran out are taken back, from 100ms to 7d; instead of "
             "work.sweep."),
        { .name = "keep-order",
          .letter = 'k',
          .help = "Print in the order in which the items were claimed." },
        FLAG("logs",
             "DIR",
             "Write the output of every try to ID.TRY.out and ID.TRY.err there.",
             .kind = VALUE_DIR),
        { .name = "wait", .help = "Stay when nothing is left, and wait for more." }),
    .examples = EXAMPLES(
        TESTED("seq 1 20 | pawl work submit --data ./data --type count --lines && "
               "pawl work run --data ./data --type count --exec 'echo number {}' -j 4 -k",
               "four at a time, printed in order"),
        { .line = "pawl work run --data ./data --type pack --exec 'gzip -- {}' -j 8 --logs ./logs",
          .says = "with a log of every try" },
        { .line = "pawl work run --data ./data --type mail --exec './send' --wait",
          .says = "a service: the input comes on standard input" }),
    .run = run_run,
};
