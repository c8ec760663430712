/* pawl completion SHELL, and the hidden pawl __complete that the shells call. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/frame/complete.h"
#include "cli/frame/run.h"

static pawl_status completion_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    const char *script = pawl__cli_completion_script(pawl__cli_args_operand(run->args, 0));

    REQUIRE(script != NULL); /* the table allows no other shell */
    return fputs(script, stdout) < 0 ? pawl__cli_out_check(reterr) : PAWL_OK;
}

const struct pawl__cli_command pawl__cli_cmd_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .description = "Prints what a shell loads to complete commands, flags and their values. 'make "
                   "install' puts the three scripts where the shells look for them; this is for "
                   "everybody else.",
    .operands = OPERANDS(
        { .name = "SHELL", .help = "Whose script.", .choices = CHOICES("bash", "zsh", "fish") }),
    .examples = EXAMPLES(TESTED("source <(pawl completion bash)", "complete in this bash"),
                         { .line = "pawl completion fish > ~/.config/fish/completions/pawl.fish",
                           .says = "complete in every fish" }),
    .run = completion_run,
    .only_prints = true,
    .no_settings = true,
};

static pawl_status complete_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf answers = BUF_INIT(COMPLETE_BYTES_MAX);

    pawl__cli_complete(&answers, run->args->cli, run->args->operand_count, run->args->operands);
    return pawl__cli_out_add(&answers, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_complete = {
    .name = "__complete",
    .summary = "answer a shell's question",
    .operands = OPERANDS({ .name = "WORD", .help = "The words so far.", .repeats = true }),
    .run = complete_run,
    .only_prints = true,
    .hidden = true,
    .no_settings = true,
};
