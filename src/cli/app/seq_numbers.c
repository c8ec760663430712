/* The numbers of a workspace, from its log: pawl app seq, and pawl seq verify --workspace. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/app/app.h"

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
                                                  NULL,
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
        .initial = pawl__cli_remote_number(row, "initial"),
        .last = pawl__cli_remote_number(row, "last"),
        .used = pawl__cli_remote_number(row, "used"),
        .findings = json_array_size(listed),
    };

    for (size_t i = 0; i < json_array_size(listed); i++) {
        const json_t *item = json_array_get(listed, i);
        const char *fault = json_string_value(json_object_get(item, "fault"));

        add_finding(&findings,
                    &(const pawl_app_finding){
                        .size = sizeof(pawl_app_finding),
                        .fault = fault_of(fault == NULL ? "" : fault),
                        .first = pawl__cli_remote_number(item, "first"),
                        .last = pawl__cli_remote_number(item, "last"),
                        .plog_offset = pawl__cli_remote_number(item, "plog_offset"),
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

pawl_status pawl__cli_seq_numbers(struct pawl__cli_run *run, bool prove, pawl_error *reterr)
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
    return pawl__cli_seq_numbers(run, false, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_app_seq = {
    .name = "seq",
    .summary = "show the numbers of a workspace",
    .description =
        "One row per sequence, all from the log: " SEQ_NUMBER_COLUMNS " It shows, and exits with "
        "0 whatever it finds; 'pawl seq verify' is the check.",
    .flags = FLAGS(APP_WORKSPACE_FLAG, SEQ_SEQUENCE_FLAG),
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(APP_EXAMPLE_AFTER("pawl app seq --data ./data orders --workspace 7",
                                           "how far each sequence is")),
    .run = seq_run,
    .only_prints = true,
};
