/* pawl help [COMMAND...], pawl help settings, and the hidden pawl __man that writes the manual. */
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/man.h"
#include "cli/run.h"
#include "cli/unknown.h"

/* The words of `pawl help work run` as a path. */
static pawl_status find_path(const struct pawl__args *args,
                             struct pawl__path *path,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < args->operand_count; i++) {
        const struct pawl__command *leaf = pawl__path_leaf(path);
        const struct pawl__command *next = pawl__command_find(leaf, args->operands[i]);

        if (next == NULL) {
            return pawl__unknown_command(path, args->operands[i], reterr);
        }
        REQUIRE(path->depth < COMMAND_DEPTH_MAX);
        path->commands[path->depth++] = next;
    }
    return PAWL_OK;
}

static pawl_status help_run(struct pawl__run *run, pawl_error *reterr)
{
    const struct pawl__cli *cli = run->args->cli;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(HELP_BYTES_MAX);
    struct pawl__path path = { .commands = { cli->root }, .depth = 1 };
    const char *first = pawl__args_operand(run->args, 0);

    if (first != NULL && strcmp(first, "settings") == 0) {
        pawl__help_settings(&text, cli, run->width);
        return pawl__out_add(&text, reterr);
    }
    pawl_status status = find_path(run->args, &path, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    pawl__help_full(&text, cli, &path, run->width);
    return pawl__out_add(&text, reterr);
}

const struct pawl__command pawl__cmd_help = {
    .name = "help",
    .summary = "explain a command, or the settings",
    .description = "Explains a command as its --help does. 'pawl help settings' lists every "
                   "setting with its flag, its key in pawl.yaml and its variable.",
    .operands = OPERANDS({ .name = "COMMAND",
                           .help = "The command's words, or 'settings'.",
                           .kind = VALUE_COMMAND,
                           .optional = true,
                           .repeats = true }),
    .examples = EXAMPLES(
        { .line = "pawl help config show", .says = "one command", .runs = true },
        { .line = "pawl help settings", .says = "everything that can be set", .runs = true }),
    .run = help_run,
    .no_settings = true,
};

static pawl_status man_run(struct pawl__run *run, pawl_error *reterr)
{
    return pawl__man_write(run->args->cli, pawl__args_operand(run->args, 0), reterr);
}

const struct pawl__command pawl__cmd_man = {
    .name = "__man",
    .summary = "write the manual pages",
    .operands = OPERANDS({ .name = "DIR", .help = "Where to.", .kind = VALUE_DIR }),
    .run = man_run,
    .hidden = true,
    .no_settings = true,
};
