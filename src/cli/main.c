/* pawl: arguments, settings, command, exit code. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "cli/commands.h"
#include "cli/frame/args.h"
#include "cli/frame/help.h"
#include "cli/frame/run.h"
#include "cli/frame/settings.h"

/* Known before the arguments are understood, because an error in them has to be reported, too. */
static bool wants_json(int argc, const char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

static pawl_status print_help(const struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(HELP_BYTES_MAX);

    pawl__cli_help_full(&text, run->args->cli, &run->args->path, run->term.width);
    return pawl__cli_out_add(&text, reterr);
}

/* A group without one of its commands: what there is, on standard error. */
static pawl_status refuse_group(const struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(HELP_BYTES_MAX);
    char path[COMMAND_PATH_SIZE];

    if (!run->json) {
        pawl__cli_help_short(&text, &run->args->path, run->term.width);
        (void)fwrite(text.data == NULL ? "" : text.data, 1, text.len, stderr);
    }
    return pawl__fail(
        reterr, PAWL_INVALID, "'%s' needs a command", pawl__cli_path_text(&run->args->path, path));
}

/* Every message of exit code 6 ends with what to do next. */
static pawl_status advise(const struct pawl__cli_path *path, pawl_status status, pawl_error *reterr)
{
    const char *advice = NULL;

    for (size_t i = path->depth; i > 0 && advice == NULL; i--) {
        advice = path->commands[i - 1]->when_damaged;
    }
    return status != PAWL_CORRUPT || advice == NULL
               ? status
               : pawl__fail_advise_default(reterr, status, advice);
}

static pawl_status run_args(struct pawl__cli_run *run, pawl_error *reterr)
{
    const struct pawl__cli_command *leaf = pawl__cli_path_leaf(&run->args->path);

    if (run->args->help) {
        return print_help(run, reterr);
    }
    if (pawl__cli_args_has(run->args, "version")) {
        return pawl__cli_cmd_version.run(run, reterr);
    }
    if (leaf->run == NULL) {
        return refuse_group(run, reterr);
    }
    AUTO(pawl__config_free_p) struct pawl__config *config = NULL;
    if (!leaf->no_settings) {
        TRY(pawl__cli_settings_load(
            run->args, (struct pawl__cli_problem_sink){ 0 }, &config, reterr));
    }
    run->config = config;
    if (config != NULL) {
        pawl__cli_log_start(config);
    }
    return advise(&run->args->path, leaf->run(run, reterr), reterr);
}

static bool line_only_prints(const struct pawl__cli_args *args)
{
    return args->help || pawl__cli_args_has(args, "version")
           || pawl__cli_path_leaf(&args->path)->only_prints;
}

static pawl_status run_line(
    int argc, const char *const *argv, bool json, bool *ret_only_prints, pawl_error *reterr)
{
    const struct pawl__cli *cli = NULL;
    AUTO(pawl__cli_args_done) struct pawl__cli_args args = { 0 };
    struct pawl__cli_run run = {
        .args = &args,
        .clock = pawl__clock_real(),
        .json = json,
        .term = pawl__term_detect(STDOUT_FILENO, (const char *const *)environ),
    };

    TRY(pawl__cli_init(&cli, reterr));
    TRY(pawl__cli_args_parse(cli, argc, argv, &args, reterr));
    *ret_only_prints = line_only_prints(&args);
    return run_args(&run, reterr);
}

int main(int argc, char **argv)
{
    const char *const *words = (const char *const *)argv;
    bool json = wants_json(argc, words);
    pawl_error error = PAWL_ERROR_INIT;

    pawl__cli_out_start();
    bool only_prints = false;
    pawl_status status = run_line(argc, words, json, &only_prints, &error);
    int code = pawl__cli_out_finish(status, &error, json, only_prints);
    pawl__cli_done();
    return code;
}
