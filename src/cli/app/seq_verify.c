/* pawl seq verify: an application compared with itself. The numbers of one workspace: seq_numbers.c */
#include <inttypes.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/app/app.h"
#include "cli/frame/interrupt.h"

/* --- here, or in the node --- */

static pawl_status verify_local(const struct pawl__cli_run *run,
                                pawl_app *app,
                                uint64_t workspace,
                                pawl_app_damage_visit visit,
                                void *context,
                                pawl_app_report *ret_report,
                                pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(run, "verify", false);
    const pawl_watch watch = pawl__cli_progress_watch(&progress);

    return pawl_app_verify(app, workspace, visit, context, &watch, ret_report, reterr);
}

static pawl_app_part part_of(const char *word)
{
    int i = 0;

    while (i < PAWL_APP_PARTS - 1 && strcmp(pawl_app_part_word((pawl_app_part)i), word) != 0) {
        i++;
    }
    return (pawl_app_part)i;
}

static pawl_app_report report_of(const json_t *result)
{
    const json_t *entries = json_object_get(result, "entries");
    pawl_app_report report = {
        .size = sizeof(report),
        .anchor_missing = json_is_true(json_object_get(result, "anchor_missing")),
    };

    for (size_t i = 0; i < PAWL_APP_PARTS; i++) {
        const char *word = pawl_app_part_word((pawl_app_part)i);

        report.entries[i] = (uint64_t)json_integer_value(json_object_get(entries, word));
    }
    return report;
}

static pawl_status verify_remote(struct pawl__cli_remote *remote,
                                 uint64_t workspace,
                                 pawl_app_damage_visit visit,
                                 void *context,
                                 pawl_app_report *ret_report,
                                 pawl_error *reterr)
{
    json_auto_t *result = NULL;

    TRY(pawl__cli_remote_job(remote,
                             "apps.verify",
                             json_pack("{s:I}", "workspace", (json_int_t)workspace),
                             &result,
                             reterr));
    const json_t *findings = json_object_get(result, "findings");
    bool wanted = true;
    for (size_t i = 0; i < json_array_size(findings) && wanted; i++) {
        const json_t *finding = json_array_get(findings, i);
        const char *part = json_string_value(json_object_get(finding, "part"));
        const char *what = json_string_value(json_object_get(finding, "what"));
        const pawl_app_damage damage = { .size = sizeof(damage),
                                         .part = part_of(part == NULL ? "" : part),
                                         .what = what == NULL ? "" : what };

        wanted = visit(context, &damage);
    }
    *ret_report = report_of(result);
    return json_is_true(json_object_get(result, "whole")) ? PAWL_OK
                                                          : pawl__cli_remote_error(result, reterr);
}

pawl_status pawl__cli_seq_verify_parts(const struct pawl__cli_run *run,
                                       struct pawl__cli_app *app,
                                       uint64_t workspace,
                                       pawl_app_damage_visit visit,
                                       void *context,
                                       pawl_app_report *ret_report,
                                       pawl_error *reterr)
{
    return app->remote == NULL
               ? verify_local(run, app->local, workspace, visit, context, ret_report, reterr)
               : verify_remote(app->remote, workspace, visit, context, ret_report, reterr);
}

/* --- all of it --- */

struct findings {
    struct pawl__table *table;
    bool seen[PAWL_APP_PARTS];
    pawl_status status; /* of the rows */
    pawl_error error;
};

static bool add_finding(void *context, const pawl_app_damage *damage)
{
    struct findings *findings = context;
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(pawl_app_part_word(damage->part))),
        pawl__cell_none(),
        pawl__cell_bool(false),
        pawl__cell_text(pawl_view_of(damage->what)),
    };

    findings->seen[damage->part] = true;
    if (findings->status == PAWL_OK) {
        findings->status = pawl__table_add(findings->table, cells, &findings->error);
    }
    return true;
}

/* Those that have no finding; and how many entries there are. */
static pawl_status add_whole(struct pawl__table *table,
                             const struct findings *findings,
                             const pawl_app_report *report,
                             pawl_error *reterr)
{
    for (size_t i = 0; i < PAWL_APP_PARTS; i++) {
        bool no_anchor = i == PAWL_APP_PART_ANCHOR && report->anchor_missing;
        const struct pawl__cell cells[] = {
            pawl__cell_text(pawl_view_of(pawl_app_part_word((pawl_app_part)i))),
            pawl__cell_integer((int64_t)report->entries[i]),
            pawl__cell_bool(true),
            no_anchor ? pawl__cell_text(pawl_view_of("note: there is none, so a cut of everything "
                                                     "would not show"))
                      : pawl__cell_none(),
        };
        if (!findings->seen[i]) {
            TRY(pawl__table_add(table, cells, reterr));
        }
    }
    return PAWL_OK;
}

static pawl_status verify_all(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "part", true },
        { "entries", true },
        { "whole", true },
        { "finding", true },
    };
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__cli_out_table(run);
    struct findings findings = { .table = &table, .error = PAWL_ERROR_INIT };
    pawl_app_report report = { .size = sizeof(pawl_app_report), .unaccounted = 0 };
    pawl_error wrong = PAWL_ERROR_INIT;

    TRY(pawl__cli_app_open_to_read(run, &app, reterr));
    pawl__table_init(&table, columns, COUNT_OF(columns), &options);
    pawl_status verdict =
        pawl__cli_seq_verify_parts(run, &app, 0, add_finding, &findings, &report, &wrong);
    if (verdict != PAWL_OK && verdict != PAWL_CORRUPT) {
        return pawl__fail_with(reterr, verdict, &wrong); /* it could not be checked */
    }
    TRY(findings.status == PAWL_OK
            ? add_whole(&table, &findings, &report, reterr)
            : pawl__fail(reterr, findings.status, "%s", findings.error.message));
    TRY(pawl__table_end(&table, reterr));
    return verdict != PAWL_OK ? pawl__fail_with(reterr, verdict, &wrong) : PAWL_OK;
}

/* --- the command --- */

/* An event of a newer version is neither good nor bad: nobody here can tell. */
static pawl_status verify_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    bool all = pawl__cli_args_has(run->args, "all");
    bool one = pawl__cli_args_has(run->args, "workspace");

    if (all == one || (all && pawl__cli_args_has(run->args, "sequence"))) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          all == one ? "give '--workspace N' or '--all'"
                                     : "'--sequence' is for one workspace");
    }
    pawl_status status = all ? verify_all(run, reterr) : pawl__cli_seq_numbers(run, true, reterr);
    return status == PAWL_UNSUPPORTED
               ? pawl__fail_context(reterr, PAWL_UNAVAILABLE, "could not check")
               : status;
}

const struct pawl__cli_command pawl__cli_cmd_seq_verify = {
    .name = "verify",
    .summary = "prove that numbers have no gap and none was used twice",
    .description =
        "With --workspace it reads the log of the workspace's partition, all of it, and shows for "
        "each sequence whether every number from the first to the last was used exactly once. "
        "What is missing, what was used again and at which offset, and what is stored beyond the "
        "log or "
        "behind it, is listed. A row has " SEQ_NUMBER_COLUMNS " Then WLog, records and keys of the "
        "workspace are compared with that log: what is missing, overwritten or in no event is a "
        "row with the name of the part (wlog, records, keys, number_keys, offsets, plog, anchor, "
        "descriptor).\n\n"
        "With --all it compares the logs of all partitions, the WLogs, records, numbers, keys and "
        "offsets of all workspaces, and the anchor, with each other: each is read once (the logs "
        "and records more often when over 200,000 records were updated), and the memory does not "
        "grow with them. A row has part, entries (how many were read), whole and finding; a part "
        "that is not whole has a row for each finding.\n\n"
        "The exit code is 6 when something is wrong, and 5 when it could not be checked: another "
        "process has the application, or a newer version wrote the log.",
    .flags = FLAGS(APP_ONE_WORKSPACE_FLAG,
                   SEQ_SEQUENCE_FLAG,
                   { .name = "all", .help = "All workspaces, and all that is stored of them." }),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl seq verify --data ./data orders --workspace 7",
                                           "a certificate for a workspace"),
                         APP_EXAMPLE_AFTER("pawl seq verify --data ./data orders --all",
                                           "everything against everything")),
    .run = verify_run,
};
