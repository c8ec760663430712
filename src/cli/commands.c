#include "cli/commands.h"

#include "base/macros.h"
#include "cli/run.h"

static const struct pawl__command root = {
    .name = "pawl",
    .summary = "events that are neither lost nor processed twice",
    .description =
        "pawl keeps events, work items and telemetry for programs that may not lose one and may "
        "not "
        "process one twice. Everything lives in one data directory, or in PostgreSQL.\n\n"
        "Standard output has the answers, standard error what went wrong, as one line. With --json "
        "both are JSON, one object a line.\n\n"
        "Exit codes: 0 done; 1 failed; 2 bad usage or input; 3 nothing found; 4 conflict or lease "
        "lost; 5 busy, unavailable or could not check; 6 checked and found wrong.\n\n"
        "A setting is a key of pawl.yaml, a variable of the environment or a flag; 'pawl help "
        "settings' lists them.",
    .commands = COMMANDS(&pawl__cmd_help,
                         &pawl__cmd_version,
                         &pawl__cmd_completion,
                         &pawl__cmd_complete,
                         &pawl__cmd_man),
    .examples = EXAMPLES({ .line = "pawl help", .says = "what there is", .runs = true }),
};

static const struct pawl__flag common[] = {
    { .name = "config",
      .value = "FILE",
      .help = "Read the settings from this file.",
      .kind = VALUE_FILE },
    { .name = "json", .help = "Print JSON, one object a line." },
    { .name = "help", .letter = 'h', .help = "Explain the command and do nothing." },
    { .name = "version", .help = "Print the version and that of every part, and do nothing." },
    { .name = NULL },
};

static struct pawl__cli cli = { .root = &root, .common = common };

pawl_status pawl__cli_init(const struct pawl__cli **ret_cli, pawl_error *reterr)
{
    (void)reterr;
    *ret_cli = &cli;
    return PAWL_OK;
}

void pawl__cli_done(void)
{
}
