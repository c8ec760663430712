/* pawl help [COMMAND...], pawl help settings, and the hidden pawl __man, which writes the manual,
 * and pawl __examples, which lists every example for the test that runs them. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/frame/help.h"
#include "cli/frame/man.h"
#include "cli/frame/run.h"
#include "cli/frame/unknown.h"

/* The words of `pawl help work run` as a path. */
static pawl_status find_path(const struct pawl__cli_args *args,
                             struct pawl__cli_path *path,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < args->operand_count; i++) {
        const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);
        const struct pawl__cli_command *next = pawl__cli_command_find(leaf, args->operands[i]);

        if (next == NULL) {
            return pawl__cli_unknown_command(path, args->operands[i], reterr);
        }
        REQUIRE(path->depth < COMMAND_DEPTH_MAX);
        path->commands[path->depth++] = next;
    }
    return PAWL_OK;
}

static pawl_status help_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    const struct pawl__cli *cli = run->args->cli;
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(HELP_BYTES_MAX);
    struct pawl__cli_path path = { .commands = { cli->root }, .depth = 1 };
    const char *first = pawl__cli_args_operand(run->args, 0);

    if (first != NULL && strcmp(first, "settings") == 0) {
        pawl__cli_help_settings(&text, cli, run->term.width);
        return pawl__cli_out_add(&text, reterr);
    }
    TRY(find_path(run->args, &path, reterr));
    pawl__cli_help_full(&text, cli, &path, run->term.width);
    return pawl__cli_out_add(&text, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_help = {
    .name = "help",
    .summary = "explain a command, or the settings",
    .description = "Explains a command as its --help does. 'pawl help settings' lists every "
                   "setting with its flag, its key in pawl.yaml and its variable.",
    .operands = OPERANDS({ .name = "COMMAND",
                           .help = "The command's words, or 'settings'.",
                           .kind = VALUE_COMMAND,
                           .optional = true,
                           .repeats = true }),
    .examples = EXAMPLES(TESTED("pawl help config show", "one command"),
                         TESTED("pawl help settings", "everything that can be set")),
    .run = help_run,
    .only_prints = true,
    .no_settings = true,
};

static pawl_status man_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return pawl__cli_man_write(run->args->cli, pawl__cli_args_operand(run->args, 0), reterr);
}

const struct pawl__cli_command pawl__cli_cmd_man = {
    .name = "__man",
    .summary = "write the manual pages",
    .operands = OPERANDS({ .name = "DIR", .help = "Where to.", .kind = VALUE_DIR }),
    .run = man_run,
    .only_prints = true,
    .hidden = true,
    .no_settings = true,
};

static pawl_status add_examples(struct pawl__buf *out,
                                struct pawl__cli_path *path,
                                pawl_error *reterr)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(path);
    const struct pawl__cli_example *example = leaf->examples;
    char text[COMMAND_PATH_SIZE];

    for (; example != NULL && example->line != NULL; example++) {
        json_t *row = json_pack("{s:s, s:s, s:b}",
                                "command",
                                pawl__cli_path_text(path, text),
                                "line",
                                example->line,
                                "runs",
                                (int)example->runs);
        TRY(pawl__cli_out_add_json(out, row, reterr));
    }
    if (leaf->examples == NULL) { /* the test complains about it */
        json_t *row = json_pack("{s:s, s:n}", "command", pawl__cli_path_text(path, text), "line");
        TRY(pawl__cli_out_add_json(out, row, reterr));
    }
    for (size_t i = 0; leaf->commands != NULL && leaf->commands[i] != NULL; i++) {
        if (!leaf->commands[i]->hidden && path->depth < COMMAND_DEPTH_MAX) {
            path->commands[path->depth++] = leaf->commands[i];
            TRY(add_examples(out, path, reterr));
            path->depth--;
        }
    }
    return PAWL_OK;
}

static pawl_status examples_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(HELP_BYTES_MAX);
    struct pawl__cli_path path = { .commands = { run->args->cli->root }, .depth = 1 };

    TRY(add_examples(&out, &path, reterr));
    return pawl__cli_out_add(&out, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_examples = {
    .name = "__examples",
    .summary = "list every example as JSON",
    .run = examples_run,
    .only_prints = true,
    .hidden = true,
    .no_settings = true,
};
