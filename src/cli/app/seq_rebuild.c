/* pawl seq rebuild: the numbers of an application made anew from its logs. */
#include "base/core/error.h"
#include "cli/app/app.h"

static pawl_status rebuild_remote(struct pawl__cli_remote *remote, pawl_error *reterr)
{
    json_auto_t *result = NULL;

    return pawl__cli_remote_job(remote, "apps.rebuild", json_object(), &result, reterr);
}

static pawl_status rebuild_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };
    pawl_app_options options = pawl__cli_app_options(run);

    options.rebuild = true;
    TRY(pawl__cli_app_open_with(run, &options, &app, reterr));
    TRY(app.remote == NULL ? PAWL_OK : rebuild_remote(app.remote, reterr));
    TRY(pawl__cli_app_await_numbers(&app, reterr));
    return pawl__cli_seq_print_status(run, &app, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_seq_rebuild = {
    .name = "rebuild",
    .summary = "make the stored numbers anew from the log",
    .description =
        "Forgets what is stored of the sequences and makes it anew from the logs, with the keys "
        "of used numbers at trust levels 0 and 1: for rows that 'pawl seq verify --all' has found "
        "to be wrong, or a command that was refused because of them. It first checks the logs "
        "themselves; when events are missing in them, or their anchor says that they were cut, it "
        "is refused with exit code 6 and nothing is changed: numbers made from such a log would "
        "be given out again. If it is interrupted, run it again; opening the application to write "
        "does so, too. It prints the rows of 'pawl seq status'.",
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl seq rebuild --data ./data orders",
                                           "the numbers as the log has them")),
    .run = rebuild_run,
};
