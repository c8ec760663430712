#include "cli/commands.h"

#include <string.h>

#include "base/core/macros.h"
#include "cli/frame/run.h"
#include "cli/frame/settings.h"

static const struct pawl__cli_command root = {
    .name = "pawl",
    .summary = "events that are neither lost nor processed twice",
    .description =
        "pawl stores events, work items and telemetry for programs that must never lose one or "
        "process one twice. Everything lives in one data directory, or in PostgreSQL.\n\n"
        "Standard output has the answers, standard error what went wrong, as one line. With --json "
        "both are JSON, one object per line.\n\n"
        "Exit codes: 0 done; 1 failed; 2 bad usage or input; 3 nothing found; 4 conflict or lease "
        "lost; 5 busy, unavailable or could not check; 6 checked and found wrong.\n\n"
        "A setting is a key of pawl.yaml, a variable of the environment or a flag; 'pawl help "
        "settings' lists them.",
    .commands = COMMANDS(&pawl__cli_cmd_ledger,
                         &pawl__cli_cmd_work,
                         &pawl__cli_cmd_idem,
                         &pawl__cli_cmd_app,
                         &pawl__cli_cmd_seq,
                         &pawl__cli_cmd_deliver,
                         &pawl__cli_cmd_pipeline,
                         &pawl__cli_cmd_wal,
                         &pawl__cli_cmd_sql,
                         &pawl__cli_cmd_failed,
                         &pawl__cli_cmd_rebuild,
                         &pawl__cli_cmd_trace,
                         &pawl__cli_cmd_audit,
                         &pawl__cli_cmd_publish,
                         &pawl__cli_cmd_outbox,
                         &pawl__cli_cmd_sim,
                         &pawl__cli_cmd_serve,
                         &pawl__cli_cmd_token,
                         &pawl__cli_cmd_doctor,
                         &pawl__cli_cmd_config,
                         &pawl__cli_cmd_help,
                         &pawl__cli_cmd_version,
                         &pawl__cli_cmd_completion,
                         &pawl__cli_cmd_complete,
                         &pawl__cli_cmd_man,
                         &pawl__cli_cmd_examples),
    .examples =
        EXAMPLES(TESTED("pawl doctor --data ./data", "is this machine fit, and what works today?"),
                 TESTED("pawl help config show", "everything about one command")),
};

/* Settings that people use so often that every --help shows them; the rest only `pawl help
 * settings` does. */
static const enum pawl__setting_id shown_settings[] = { PAWL__DATA, PAWL__LOG_LEVEL };

static const struct pawl__cli_flag own_flags[] = {
    FLAG("config", "FILE", "Read the settings from this file.", .kind = VALUE_FILE),
    { .name = "json", .help = "Print JSON, one object per line." },
    { .name = "help", .letter = 'h', .help = "Explain the command and do nothing." },
    { .name = "version", .help = "Print the version and that of every part, and do nothing." },
};

static struct pawl__cli_setting_flags settings;
static struct pawl__cli_flag common[COUNT_OF(shown_settings) + COUNT_OF(own_flags) + 1];
static const struct pawl__cli cli = { .root = &root, .common = common, .settings = settings.flags };

pawl_status pawl__cli_init(const struct pawl__cli **ret_cli, pawl_error *reterr)
{
    TRY(pawl__cli_setting_flags_init(&settings, reterr));
    for (size_t i = 0; i < COUNT_OF(shown_settings); i++) {
        common[i] = settings.flags[shown_settings[i]];
    }
    memcpy(common + COUNT_OF(shown_settings), own_flags, sizeof(own_flags));
    *ret_cli = &cli;
    return PAWL_OK;
}

void pawl__cli_done(void)
{
    pawl__cli_setting_flags_done(&settings);
}
