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

static pawl_status add_partition(struct pawl__table *table,
                                 pawl_app *app,
                                 uint16_t partition,
                                 pawl_error *reterr)
{
    pawl_sequencer_status of;
    uint64_t log_end = 0;

    TRY(pawl_app_get_status(app, partition, &of, reterr));
    TRY(pawl_app_get_log_end(app, partition, &log_end, reterr));
    const struct pawl__cell cells[] = {
        pawl__cell_integer(partition),
        pawl__cell_integer((int64_t)log_end),
        pawl__cell_integer((int64_t)of.next_offset),
        pawl__cell_integer((int64_t)of.stored_offset),
        pawl__cell_integer((int64_t)of.unflushed),
        pawl__cell_integer((int64_t)of.hits),
        pawl__cell_integer((int64_t)of.misses),
        pawl__cell_bool(of.actualizing),
        pawl__cell_integer((int64_t)of.actualizations),
        pawl__cell_integer((int64_t)of.flushes),
        pawl__cell_integer((int64_t)of.flush_failures),
        of.last_error.status == PAWL_OK ? pawl__cell_none()
                                        : pawl__cell_text(pawl_view_of(of.last_error.message)),
    };
    return pawl__table_add(table, cells, reterr);
}

pawl_status pawl__cli_seq_print_status(struct pawl__cli_run *run, pawl_app *app, pawl_error *reterr)
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
    for (uint16_t i = 0; i < pawl_app_get_descriptor(app)->partitions; i++) {
        TRY(add_partition(&table, app, i, reterr));
    }
    return pawl__table_end(&table, reterr);
}

static pawl_status status_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_close_p) pawl_app *app = NULL;

    TRY(pawl__cli_app_open_named(run, &app, reterr));
    /* A partition whose log is damaged is a row that says so, and decides the exit code. */
    pawl_error broken = PAWL_ERROR_INIT;
    pawl_status numbers = pawl__cli_app_await_numbers(app, &broken);
    TRY(pawl__cli_seq_print_status(run, app, reterr));
    return numbers != PAWL_OK ? pawl__fail(reterr, numbers, "%s", broken.message) : PAWL_OK;
}

const struct pawl__cli_command pawl__cli_cmd_seq_status = {
    .name = "status",
    .summary = "show the sequences of each partition",
    .description =
        "One row per partition: the last offset of its log, the next offset as far as the log was "
        "read (behind the last one when nothing is left to actualize), the offset up to which "
        "numbers are stored, how many wait to be written, cache hits and misses, and what "
        "happened behind the scenes. Counts are those of this process: an application that "
        "another process has open is busy.",
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(TESTED(APP_EXAMPLE_CREATE " && pawl seq status --data ./data orders",
                                "where each partition is")),
    .run = status_run,
    .only_prints = true,
};

/* --- the numbers of a workspace --- */

struct numbers {
    const struct pawl__cli_run *run;
    pawl_app *app;
    struct pawl__table table;

    uint64_t findings;
    bool told;          /* a sequence has some */
    pawl_status status; /* of rows that were added on the way */
    pawl_error error;
};

static void numbers_done(struct numbers *numbers)
{
    pawl__table_done(&numbers->table);
    pawl_app_close(numbers->app);
}

static void add_finding(void *context, const pawl_app_finding *finding)
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
}

static pawl_status add_sequence(struct numbers *numbers, uint16_t sequence, pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf findings = BUF_INIT(SIZE_MAX / 2);
    pawl_app_certificate certificate = { 0 };
    pawl_status status =
        pawl_app_verify_sequence(numbers->app,
                                 (uint64_t)pawl__cli_args_number(numbers->run->args, "workspace"),
                                 sequence,
                                 add_finding,
                                 &findings,
                                 &certificate,
                                 reterr);

    if (status != PAWL_OK && certificate.findings == 0) {
        return status; /* the log cannot be read */
    }
    numbers->findings += certificate.findings;
    numbers->told = numbers->told || certificate.findings > 0;
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(pawl_app_sequence_name(numbers->app, sequence))),
        pawl__cell_integer((int64_t)certificate.initial),
        certificate.last == 0 ? pawl__cell_none() : pawl__cell_integer((int64_t)certificate.last),
        pawl__cell_integer((int64_t)certificate.used),
        pawl__cell_bool(certificate.findings == 0),
        findings.len == 0 ? pawl__cell_none() : pawl__cell_text(pawl__buf_view(&findings)),
    };
    return pawl__table_add(&numbers->table, cells, reterr);
}

/* Of all kinds; an id that several have comes once. */
static bool came_before(const pawl_app_descriptor *descriptor, size_t kind, uint16_t sequence)
{
    for (size_t i = 0; i < kind; i++) {
        for (size_t k = 0; k < descriptor->kinds[i].sequence_count; k++) {
            if (descriptor->kinds[i].sequences[k].id == sequence) {
                return true;
            }
        }
    }
    return false;
}

static pawl_status add_wanted(struct numbers *numbers,
                              uint16_t sequence,
                              bool *found,
                              pawl_error *reterr)
{
    const char *wanted = pawl__cli_args_value(numbers->run->args, "sequence");

    if (wanted != NULL && strcmp(wanted, pawl_app_sequence_name(numbers->app, sequence)) != 0) {
        return PAWL_OK;
    }
    *found = true;
    return add_sequence(numbers, sequence, reterr);
}

static pawl_status add_sequences(struct numbers *numbers, pawl_error *reterr)
{
    const pawl_app_descriptor *descriptor = pawl_app_get_descriptor(numbers->app);
    bool found = false;

    for (int i = PAWL_APP_SEQ_WLOG_OFFSET; i <= PAWL_APP_SEQ_OW_RECORD; i++) {
        TRY(add_wanted(numbers, (uint16_t)i, &found, reterr));
    }
    for (size_t i = 0; i < descriptor->kind_count; i++) {
        const pawl_app_kind *kind = &descriptor->kinds[i];
        for (size_t k = 0; k < kind->sequence_count; k++) {
            if (!came_before(descriptor, i, kind->sequences[k].id)) {
                TRY(add_wanted(numbers, kind->sequences[k].id, &found, reterr));
            }
        }
    }
    return !found ? pawl__fail_detail(reterr,
                                      PAWL_INVALID,
                                      PAWL_DETAIL_UNKNOWN_SEQUENCE,
                                      "application '%s' has no sequence '%s'",
                                      descriptor->name,
                                      pawl__cli_args_value(numbers->run->args, "sequence"))
                  : PAWL_OK;
}

/* What of the workspace is wrong beside its numbers: a row each, in the place of a sequence. */
static void add_part(void *context, pawl_app_part part, const char *what)
{
    struct numbers *numbers = context;
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(pawl_app_part_word(part))),
        pawl__cell_none(),
        pawl__cell_none(),
        pawl__cell_none(),
        pawl__cell_bool(false),
        pawl__cell_text(pawl_view_of(what)),
    };

    numbers->findings++;
    if (numbers->status == PAWL_OK && (part != PAWL_APP_PART_SEQUENCES || !numbers->told)) {
        numbers->status = pawl__table_add(&numbers->table, cells, &numbers->error);
    }
}

static pawl_status add_parts(struct numbers *numbers, pawl_error *reterr)
{
    uint64_t workspace = (uint64_t)pawl__cli_args_number(numbers->run->args, "workspace");
    pawl_app_report report;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status =
        pawl_app_verify(numbers->app, workspace, add_part, numbers, &report, &error);

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
                   "log; see 'pawl app'.\n\n" APP_WHERE,
    .flags = FLAGS(APP_FLAG),
    .when_damaged = "`pawl seq rebuild` repairs numbers; restore all else from a backup",
    .commands =
        COMMANDS(&pawl__cli_cmd_seq_status, &pawl__cli_cmd_seq_verify, &pawl__cli_cmd_seq_rebuild),
    .examples = EXAMPLES({ .line = "pawl seq verify --data ./data orders --workspace 7",
                           .says = "a certificate for a workspace" }),
};
