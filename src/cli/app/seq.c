/* pawl seq status and verify; pawl app seq. All of an application, and rebuild: seq_verify.c */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/app/app.h"
#include "cli/commands.h"

/* --- status --- */

static pawl_status add_row(struct pawl__table *table,
                           uint16_t partition,
                           uint64_t log_end,
                           const pawl_sequencer_status *of,
                           pawl_error *reterr)
{
    const struct pawl__cell cells[] = {
        pawl__cell_integer(partition),
        pawl__cell_integer((int64_t)log_end),
        pawl__cell_integer((int64_t)of->next_offset),
        pawl__cell_integer((int64_t)of->stored_offset),
        pawl__cell_integer((int64_t)of->unflushed),
        pawl__cell_integer((int64_t)of->hits),
        pawl__cell_integer((int64_t)of->misses),
        pawl__cell_bool(of->actualizing),
        pawl__cell_integer((int64_t)of->actualizations),
        pawl__cell_integer((int64_t)of->flushes),
        pawl__cell_integer((int64_t)of->flush_failures),
        of->last_error.status == PAWL_OK ? pawl__cell_none()
                                         : pawl__cell_text(pawl_view_of(of->last_error.message)),
    };
    return pawl__table_add(table, cells, reterr);
}

static pawl_status add_local_rows(struct pawl__table *table, pawl_app *app, pawl_error *reterr)
{
    for (uint16_t i = 0; i < pawl_app_get_descriptor(app)->partitions; i++) {
        pawl_sequencer_status of = PAWL_SEQUENCER_STATUS_INIT;
        uint64_t log_end = 0;

        TRY(pawl_app_get_status(app, i, &of, reterr));
        TRY(pawl_app_get_log_end(app, i, &log_end, reterr));
        TRY(add_row(table, i, log_end, &of, reterr));
    }
    return PAWL_OK;
}

static uint64_t natural_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static pawl_status add_remote_row(struct pawl__table *table, const json_t *row, pawl_error *reterr)
{
    const char *error = json_string_value(json_object_get(row, "last_error"));
    const char *detail = json_string_value(json_object_get(row, "last_error_detail"));
    pawl_sequencer_status of = {
        .size = sizeof(of),
        .next_offset = natural_of(row, "next_offset"),
        .stored_offset = natural_of(row, "stored_offset"),
        .unflushed = natural_of(row, "unflushed"),
        .hits = natural_of(row, "hits"),
        .misses = natural_of(row, "misses"),
        .actualizing = json_is_true(json_object_get(row, "actualizing")),
        .actualizations = natural_of(row, "actualizations"),
        .flushes = natural_of(row, "flushes"),
        .flush_failures = natural_of(row, "flush_failures"),
    };

    if (error != NULL) {
        (void)pawl__fail(&of.last_error, PAWL_FAILED, "%s", detail == NULL ? error : detail);
    }
    return add_row(
        table, (uint16_t)natural_of(row, "partition"), natural_of(row, "log_end"), &of, reterr);
}

static pawl_status add_remote_rows(struct pawl__table *table,
                                   struct pawl__cli_remote *remote,
                                   pawl_error *reterr)
{
    const struct pawl__cli_ask ask = { .method = "GET", .target = "/seq" };
    json_auto_t *page = NULL;

    TRY(pawl__cli_remote_ask(remote, &ask, &page, reterr));
    const json_t *items = json_object_get(page, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        TRY(add_remote_row(table, json_array_get(items, i), reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__cli_seq_print_status(struct pawl__cli_run *run,
                                       struct pawl__cli_app *app,
                                       pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "partition", true },     { "log_end", true },         { "next_offset", true },
        { "stored_offset", true }, { "unflushed", false },      { "hits", false },
        { "misses", false },       { "actualizing", false },    { "actualizations", false },
        { "flushes", false },      { "flush_failures", false }, { "last_error", false },
    };
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__cli_out_table(run);

    pawl__table_init(&table, columns, COUNT_OF(columns), &options);
    TRY(app->remote == NULL ? add_local_rows(&table, app->local, reterr)
                            : add_remote_rows(&table, app->remote, reterr));
    return pawl__table_end(&table, reterr);
}

static pawl_status status_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };

    TRY(pawl__cli_app_open_named(run, &app, reterr));
    /* A partition whose log is damaged is a row that says so, and decides the exit code. */
    pawl_error broken = PAWL_ERROR_INIT;
    pawl_status numbers = pawl__cli_app_await_numbers(&app, &broken);
    TRY(pawl__cli_seq_print_status(run, &app, reterr));
    return numbers != PAWL_OK ? pawl__fail(reterr, numbers, "%s", broken.message) : PAWL_OK;
}

const struct pawl__cli_command pawl__cli_cmd_seq_status = {
    .name = "status",
    .summary = "show the sequences of each partition",
    .description =
        "One row per partition: the last offset of its log, the next offset as far as the log was "
        "read (behind the last one when nothing is left to actualize), the offset up to which "
        "numbers are stored, how many wait to be written, cache hits and misses, and what "
        "happened behind the scenes. Counts are those of the process that has "
        "the application open: this one, or the node.",
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(TESTED(APP_EXAMPLE_CREATE " && pawl seq status --data ./data orders",
                                "where each partition is")),
    .run = status_run,
    .only_prints = true,
};

/* --- the numbers of a workspace --- */

struct numbers {
    const struct pawl__cli_run *run;
    struct pawl__cli_app app;
    const char *wanted; /* the name of a sequence; NULL: all */
    bool found;
    struct pawl__table table;

    uint64_t findings;
    bool told;          /* a sequence has some */
    pawl_status status; /* of rows that were added on the way */
    pawl_error error;
};

static void numbers_done(struct numbers *numbers)
{
    pawl__table_done(&numbers->table);
    pawl__cli_app_done(&numbers->app);
}

static bool add_finding(void *context, const pawl_app_finding *finding)
{
    struct pawl__buf *text = context;

    pawl__buf_add_text(text, text->len == 0 ? "" : ", ");
    switch (finding->fault) {
    case PAWL_APP_MISSING:
        pawl__buf_add_format(text, "missing %" PRIu64 "-%" PRIu64, finding->first, finding->last);
        break;
    case PAWL_APP_DOUBLED:
        pawl__buf_add_format(text,
                             "%" PRIu64 " used again at PLog offset %" PRIu64,
                             finding->first,
                             finding->plog_offset);
        break;
    case PAWL_APP_NO_EVENT:
        pawl__buf_add_format(
            text, "no event at PLog offsets %" PRIu64 "-%" PRIu64, finding->first, finding->last);
        break;
    case PAWL_APP_AHEAD:
    case PAWL_APP_BEHIND:
        pawl__buf_add_format(
            text, "%" PRIu64 " is stored, the log ends at %" PRIu64, finding->first, finding->last);
        break;
    case PAWL_APP_DAMAGED:
        pawl__buf_add_text(text, "what is stored of it is damaged");
        break;
    }
    return true;
}

static pawl_status add_certificate(struct numbers *numbers,
                                   const char *name,
                                   const pawl_app_certificate *certificate,
                                   const struct pawl__buf *findings,
                                   pawl_error *reterr)
{
    numbers->findings += certificate->findings;
    numbers->told = numbers->told || certificate->findings > 0;
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(name)),
        pawl__cell_integer((int64_t)certificate->initial),
        certificate->last == 0 ? pawl__cell_none() : pawl__cell_integer((int64_t)certificate->last),
        pawl__cell_integer((int64_t)certificate->used),
        pawl__cell_bool(certificate->findings == 0),
        findings->len == 0 ? pawl__cell_none() : pawl__cell_text(pawl__buf_view(findings)),
    };
    return pawl__table_add(&numbers->table, cells, reterr);
}

static uint64_t workspace_of(const struct numbers *numbers)
{
    return (uint64_t)pawl__cli_args_number(numbers->run->args, "workspace");
}

static pawl_status put_sequence(struct numbers *numbers,
                                const pawl_app_sequence *sequence,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf findings = BUF_INIT(SIZE_MAX / 2);
    pawl_app_certificate certificate = PAWL_APP_CERTIFICATE_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    if (numbers->wanted != NULL && strcmp(numbers->wanted, sequence->name) != 0) {
        return PAWL_OK;
    }
    numbers->found = true;
    pawl_status status = pawl_app_verify_sequence(numbers->app.local,
                                                  workspace_of(numbers),
                                                  sequence->id,
                                                  add_finding,
                                                  &findings,
                                                  &certificate,
                                                  &error);
    if (status != PAWL_OK && certificate.findings == 0) {
        return pawl__fail_with(reterr, status, &error); /* the log cannot be read */
    }
    return add_certificate(numbers, sequence->name, &certificate, &findings, reterr);
}

static bool add_sequence(void *context, const pawl_app_sequence *sequence)
{
    struct numbers *numbers = context;

    numbers->status = put_sequence(numbers, sequence, &numbers->error);
    return numbers->status == PAWL_OK;
}

static pawl_app_fault fault_of(const char *word)
{
    int i = PAWL_APP_MISSING;

    while (i < PAWL_APP_DAMAGED && strcmp(pawl_app_fault_word((pawl_app_fault)i), word) != 0) {
        i++;
    }
    return (pawl_app_fault)i;
}

static pawl_status add_remote_sequence(struct numbers *numbers,
                                       const json_t *row,
                                       pawl_error *reterr)
{
    const json_t *listed = json_object_get(row, "findings");
    AUTO(pawl__buf_done) struct pawl__buf findings = BUF_INIT(SIZE_MAX / 2);
    const pawl_app_certificate certificate = {
        .size = sizeof(certificate),
        .initial = natural_of(row, "initial"),
        .last = natural_of(row, "last"),
        .used = natural_of(row, "used"),
        .findings = json_array_size(listed),
    };

    for (size_t i = 0; i < json_array_size(listed); i++) {
        const json_t *item = json_array_get(listed, i);
        const char *fault = json_string_value(json_object_get(item, "fault"));

        add_finding(&findings,
                    &(const pawl_app_finding){
                        .size = sizeof(pawl_app_finding),
                        .fault = fault_of(fault == NULL ? "" : fault),
                        .first = natural_of(item, "first"),
                        .last = natural_of(item, "last"),
                        .plog_offset = natural_of(item, "plog_offset"),
                    });
    }
    numbers->found = true;
    const char *name = json_string_value(json_object_get(row, "sequence"));
    return add_certificate(numbers, name == NULL ? "" : name, &certificate, &findings, reterr);
}

static pawl_status add_remote_sequences(struct numbers *numbers, pawl_error *reterr)
{
    json_auto_t *result = NULL;

    TRY(pawl__cli_remote_job(numbers->app.remote,
                             "apps.certificate",
                             json_pack("{s:I, s:s*}",
                                       "workspace",
                                       (json_int_t)workspace_of(numbers),
                                       "sequence",
                                       numbers->wanted),
                             &result,
                             reterr));
    const json_t *rows = json_object_get(result, "sequences");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        TRY(add_remote_sequence(numbers, json_array_get(rows, i), reterr));
    }
    return PAWL_OK;
}

static pawl_status add_sequences(struct numbers *numbers, pawl_error *reterr)
{
    numbers->wanted = pawl__cli_args_value(numbers->run->args, "sequence");
    TRY(numbers->app.remote != NULL
            ? add_remote_sequences(numbers, reterr)
            : pawl_app_visit_sequences(numbers->app.local, add_sequence, numbers, reterr));
    if (numbers->status != PAWL_OK) {
        return pawl__fail_with(reterr, numbers->status, &numbers->error);
    }
    return !numbers->found ? pawl__fail_detail(reterr,
                                               PAWL_INVALID,
                                               PAWL_DETAIL_UNKNOWN_SEQUENCE,
                                               "application '%s' has no sequence '%s'",
                                               pawl__cli_args_operand(numbers->run->args, 0),
                                               numbers->wanted)
                           : PAWL_OK;
}

/* What of the workspace is wrong beside its numbers: a row each, in the place of a sequence. */
static bool add_part(void *context, const pawl_app_damage *damage)
{
    struct numbers *numbers = context;
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(pawl_app_part_word(damage->part))),
        pawl__cell_none(),
        pawl__cell_none(),
        pawl__cell_none(),
        pawl__cell_bool(false),
        pawl__cell_text(pawl_view_of(damage->what)),
    };

    numbers->findings++;
    if (numbers->status == PAWL_OK && (damage->part != PAWL_APP_PART_SEQUENCES || !numbers->told)) {
        numbers->status = pawl__table_add(&numbers->table, cells, &numbers->error);
    }
    return true;
}

static pawl_status add_parts(struct numbers *numbers, pawl_error *reterr)
{
    pawl_app_report report = PAWL_APP_REPORT_INIT;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__cli_seq_verify_parts(
        numbers->run, &numbers->app, workspace_of(numbers), add_part, numbers, &report, &error);

    if (status != PAWL_OK && status != PAWL_CORRUPT) {
        return pawl__fail_with(reterr, status, &error);
    }
    return numbers->status == PAWL_OK ? PAWL_OK
                                      : pawl__fail_with(reterr, numbers->status, &numbers->error);
}

static pawl_status numbers_run(struct pawl__cli_run *run, bool prove, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "sequence", true }, { "initial", true }, { "last", true },
        { "used", true },     { "whole", false },  { "findings", true },
    };
    AUTO(numbers_done) struct numbers numbers = { .run = run };
    struct pawl__table_options options = pawl__cli_out_table(run);

    TRY(pawl__cli_app_open_to_read(run, &numbers.app, reterr));
    pawl__table_init(&numbers.table, columns, COUNT_OF(columns), &options);
    TRY(add_sequences(&numbers, reterr));
    if (prove && !pawl__cli_args_has(run->args, "sequence")) {
        TRY(add_parts(&numbers, reterr));
    }
    TRY(pawl__table_end(&numbers.table, reterr));
    return prove && numbers.findings > 0
               ? pawl__fail(reterr,
                            PAWL_CORRUPT,
                            "numbers or entries of the workspace are missing, doubled or not what "
                            "its log says, as listed")
               : PAWL_OK;
}

static pawl_status seq_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return numbers_run(run, false, reterr);
}

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
    pawl_status status =
        all ? pawl__cli_seq_verify_all(run, reterr) : numbers_run(run, true, reterr);
    return status == PAWL_UNSUPPORTED
               ? pawl__fail_context(reterr, PAWL_UNAVAILABLE, "could not check")
               : status;
}

#define SEQUENCE_FLAG \
    FLAG("sequence",  \
         "NAME",      \
         "Only this one: wlog_offset, c_record, ow_record or one of the application's own.")

#define NUMBER_COLUMNS                                                                         \
    "sequence, initial (the first number), last (the last one that was used), used (how many " \
    "were), whole and findings; --json names them."

const struct pawl__cli_command pawl__cli_cmd_app_seq = {
    .name = "seq",
    .summary = "show the numbers of a workspace",
    .description =
        "One row per sequence, all from the log: " NUMBER_COLUMNS " It shows, and exits with "
        "0 whatever it finds; 'pawl seq verify' is the check.",
    .flags = FLAGS(APP_WORKSPACE_FLAG, SEQUENCE_FLAG),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl app seq --data ./data orders --workspace 7",
                                           "how far each sequence is")),
    .run = seq_run,
    .only_prints = true,
};

const struct pawl__cli_command pawl__cli_cmd_seq_verify = {
    .name = "verify",
    .summary = "prove that numbers have no gap and none was used twice",
    .description =
        "With --workspace it reads the log of the workspace's partition, all of it, and shows for "
        "each sequence whether every number from the first to the last was used exactly once. "
        "What is missing, what was used again and at which offset, and what is stored beyond the "
        "log or "
        "behind it, is listed. A row has " NUMBER_COLUMNS " Then WLog, records and keys of the "
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
                   SEQUENCE_FLAG,
                   { .name = "all", .help = "All workspaces, and all that is stored of them." }),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl seq verify --data ./data orders --workspace 7",
                                           "a certificate for a workspace"),
                         APP_EXAMPLE_AFTER("pawl seq verify --data ./data orders --all",
                                           "everything against everything")),
    .run = verify_run,
};

const struct pawl__cli_command pawl__cli_cmd_seq = {
    .name = "seq",
    .summary = "the sequences behind applications",
    .description = "Numbers are served from memory, written behind the scenes and rebuilt from the "
                   "log; see 'pawl app'.\n\n" APP_WHERE APP_BESIDE_NODE,
    .flags = FLAGS(APP_FLAG),
    .when_damaged = "`pawl seq rebuild` repairs numbers; restore all else from a backup",
    .commands =
        COMMANDS(&pawl__cli_cmd_seq_status, &pawl__cli_cmd_seq_verify, &pawl__cli_cmd_seq_rebuild),
    .examples = EXAMPLES({ .line = "pawl seq verify --data ./data orders --workspace 7",
                           .says = "a certificate for a workspace" }),
};
