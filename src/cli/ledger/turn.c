/* pawl ledger turn begin|commit|abandon */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"
#include "cli/ledger/ledger.h"

#define RUN_FLAG FLAG("run", "RUN", "The run.", .required = true)
#define TURN_FLAG NUMBER_FLAG("turn", "N", 0, INT64_MAX, "The turn of the run.", .required = true)
#define ATTEMPT_FLAG                                            \
    NUMBER_FLAG("attempt",                                      \
                "N",                                            \
                1,                                              \
                UINT32_MAX,                                     \
                "The attempt that 'turn begin' answered with.", \
                .required = true)

static void free_turn(pawl_turn **turn)
{
    pawl_turn_free(*turn);
}

static pawl_status print_turn(const struct pawl__cli_run *run,
                              const pawl_turn *turn,
                              const char *state,
                              pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(1 << 16);

    pawl__buf_add_text(&out, "{\"run_id\":");
    pawl__display_add_json(&out, pawl_view_of(pawl__cli_args_value(run->args, "run")));
    pawl__buf_add_format(&out,
                         ",\"turn\":%lld,\"attempt\":%u,\"state\":\"%s\"}\n",
                         (long long)pawl__cli_args_number(run->args, "turn"),
                         pawl_turn_attempt(turn),
                         state);
    return pawl__cli_out_add(&out, reterr);
}

static pawl_status begin_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(free_turn) pawl_turn *turn = NULL;

    TRY(pawl__cli_ledger_open(run, LEDGER_TO_CREATE, &ledger, reterr));
    TRY(pawl_turn_begin(ledger,
                        pawl_view_of(pawl__cli_args_value(run->args, "run")),
                        pawl__cli_args_number(run->args, "turn"),
                        &turn,
                        reterr));
    return print_turn(run, turn, "open", reterr);
}

static pawl_status open_turn(const struct pawl__cli_run *run,
                             pawl_ledger **ret_ledger,
                             pawl_turn **ret_turn,
                             pawl_error *reterr)
{
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_WRITE, ret_ledger, reterr));
    return pawl_turn_resume(*ret_ledger,
                            pawl_view_of(pawl__cli_args_value(run->args, "run")),
                            pawl__cli_args_number(run->args, "turn"),
                            (uint32_t)pawl__cli_args_number(run->args, "attempt"),
                            0,
                            ret_turn,
                            reterr);
}

static pawl_status commit_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(free_turn) pawl_turn *turn = NULL;

    TRY(open_turn(run, &ledger, &turn, reterr));
    TRY(pawl_turn_commit(turn, reterr));
    return print_turn(run, turn, "committed", reterr);
}

static pawl_status abandon_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(free_turn) pawl_turn *turn = NULL;

    TRY(open_turn(run, &ledger, &turn, reterr));
    TRY(pawl_turn_abandon(turn, pawl_view_of(pawl__cli_args_value(run->args, "reason")), reterr));
    return print_turn(run, turn, "abandoned", reterr);
}

#define BEGIN "pawl ledger turn begin --data ./data --run village --turn 1"
#define WITH " --data ./data --run village --turn 1 --attempt 1"

static const struct pawl__cli_command turn_begin = {
    .name = "begin",
    .summary = "start an attempt at a turn",
    .description =
        "Prints the number of the attempt, which append, commit and abandon take as --attempt. An "
        "attempt that was left open is recorded as abandoned first. A turn that is committed "
        "already is a conflict, exit code 4.",
    .flags = FLAGS(RUN_FLAG, TURN_FLAG),
    .examples = EXAMPLES(TESTED(BEGIN, "begin, or begin anew")),
    .run = begin_run,
};

static const struct pawl__cli_command turn_commit = {
    .name = "commit",
    .summary = "end an attempt: it counts",
    .description = "Exit code 4 when another attempt has begun. Committing again is fine.",
    .flags = FLAGS(RUN_FLAG, TURN_FLAG, ATTEMPT_FLAG),
    .examples = EXAMPLES(TESTED(BEGIN " && pawl ledger turn commit" WITH, "a turn without events")),
    .run = commit_run,
};

static const struct pawl__cli_command turn_abandon = {
    .name = "abandon",
    .summary = "end an attempt: it does not count",
    .description = "Its events stay in the log, and replay leaves them out. Exit code 4 when "
                   "another attempt has begun.",
    .flags = FLAGS(
        RUN_FLAG, TURN_FLAG, ATTEMPT_FLAG, FLAG("reason", "TEXT", "For people who read the log.")),
    .examples = EXAMPLES(
        TESTED(BEGIN " && pawl ledger turn abandon" WITH " --reason 'no quorum'", "give it up")),
    .run = abandon_run,
};

const struct pawl__cli_command pawl__cli_cmd_ledger_turn = {
    .name = "turn",
    .summary = "begin, commit or abandon a turn",
    .description =
        "A turn is a piece of a run that counts as a whole. What is appended to it between begin "
        "and commit ('pawl ledger append --attempt') is there for everybody to see at once, but "
        "replay and 'tail --complete-turns' wait for the commit. A conductor that was killed "
        "begins the turn anew: the half that was written is abandoned.",
    .commands = COMMANDS(&turn_begin, &turn_commit, &turn_abandon),
    .examples =
        EXAMPLES(TESTED(BEGIN " && echo '{\"kind\":\"say\",\"actor\":\"ada\",\"payload\":1}' | "
                              "pawl ledger append" WITH " && pawl ledger turn commit" WITH,
                        "a whole turn")),
};
