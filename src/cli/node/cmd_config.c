/* pawl config check|show */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"
#include "cli/commands.h"
#include "cli/frame/report.h"
#include "cli/frame/run.h"
#include "cli/frame/settings.h"
#include "config/config.h"

#define SHOWN_BYTES_MAX (1u << 20)

/* Problems as they are found. One alone is the command's own error; several get a line each, and
 * the error counts them. */
struct check {
    bool json;
    size_t count;
    pawl_error first;
};

static void on_problem(void *context, const pawl_error *problem)
{
    struct check *check = context;

    if (check->count == 0) {
        check->first = *problem;
    } else {
        if (check->count == 1) {
            pawl__cli_report(stderr, &check->first, check->json);
        }
        pawl__cli_report(stderr, problem, check->json);
    }
    check->count++;
}

static pawl_status add_checked(struct pawl__buf *out,
                               const struct pawl__config *config,
                               bool json,
                               pawl_error *reterr)
{
    const char *file = pawl__config_file(config);

    if (json) {
        json_t *shown = file == NULL ? json_null() : pawl__cli_out_text(file);
        return pawl__cli_out_add_json(out, json_pack("{s:b, s:o}", "ok", 1, "file", shown), reterr);
    }
    if (file == NULL) {
        pawl__buf_add_text(out, "ok: no file, only defaults, environment and flags\n");
    } else {
        pawl__buf_add_text(out, "ok: ");
        pawl__display_add_message(out, pawl_view_of(file));
        pawl__buf_add_char(out, '\n');
    }
    return PAWL_OK;
}

static pawl_status check_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SHOWN_BYTES_MAX);
    AUTO(pawl__config_free_p) struct pawl__config *config = NULL;
    struct check check = { .json = run->json };
    struct pawl__cli_problem_sink sink = { on_problem, &check };

    pawl_status status = pawl__cli_settings_load(run->args, sink, &config, reterr);
    if (status != PAWL_OK && check.count > 1) {
        return pawl__fail(
            reterr, status, "%zu problems in the settings; nothing was changed", check.count);
    }
    if (status != PAWL_OK) {
        return status;
    }
    TRY(add_checked(&out, config, run->json, reterr));
    return pawl__cli_out_add(&out, reterr);
}

static pawl_status add_setting(struct pawl__table *table,
                               const struct pawl__config *config,
                               enum pawl__setting_id id,
                               pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf value = BUF_INIT(SHOWN_BYTES_MAX);
    AUTO(pawl__buf_done) struct pawl__buf origin = BUF_INIT(SHOWN_BYTES_MAX);
    bool set = pawl__config_text(config, id)[0] != '\0';

    pawl__config_add_shown(config, id, &value);
    pawl__config_add_origin(config, id, &origin);
    if (value.broken || origin.broken) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for the output");
    }
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(pawl__settings[id].key)),
        set ? pawl__cell_text(pawl__buf_view(&value)) : pawl__cell_none(),
        pawl__cell_text(pawl__buf_view(&origin)),
    };
    return pawl__table_add(table, cells, reterr);
}

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = { { "setting", true },
                                                   { "value", false },
                                                   { "origin", false } };
    struct pawl__table_options options = pawl__cli_out_table(run);
    AUTO(pawl__table_done) struct pawl__table table = { 0 };

    pawl__table_init(&table, columns, COUNT_OF(columns), &options);
    for (size_t i = 0; i < PAWL__SETTING_COUNT; i++) {
        TRY(add_setting(&table, run->config, (enum pawl__setting_id)i, reterr));
    }
    return pawl__table_end(&table, reterr);
}

static const struct pawl__cli_command config_check = {
    .name = "check",
    .summary = "say whether the settings can be used",
    .description = "Reads the file, the environment and the flags as every command does, and says "
                   "'ok', or every problem with its file, line, key and what is allowed there. "
                   "Exit code 2 when something is wrong.",
    .examples = EXAMPLES(
        TESTED("pawl config check", "before a restart"),
        { .line = "pawl config check --config new.yaml", .says = "a file that is not in use yet" }),
    .run = check_run,
    .no_settings = true, /* loads them itself, to report every problem */
};

static const struct pawl__cli_command config_show = {
    .name = "show",
    .summary = "print every setting and where it came from",
    .description = "Prints every setting with its value and where the value came from: a line of "
                   "the file, a variable, a flag, or the default. Secrets and passwords are "
                   "hidden.",
    .examples = EXAMPLES(
        TESTED("pawl config show", "what is in force here"),
        TESTED("pawl config show --log-level debug --json", "the same for a program, with a flag")),
    .run = show_run,
    .only_prints = true,
};

const struct pawl__cli_command pawl__cli_cmd_config = {
    .name = "config",
    .summary = "check and show the settings",
    .description = "A setting is a key of pawl.yaml, a variable of the environment or a flag; the "
                   "flag wins over the variable, the variable over the file. The file is the one "
                   "of --config, else of PAWL_CONFIG, else ./pawl.yaml, else /etc/pawl/pawl.yaml.",
    .commands = COMMANDS(&config_check, &config_show),
    .examples = EXAMPLES(TESTED("pawl config show", "what is in force here")),
};
