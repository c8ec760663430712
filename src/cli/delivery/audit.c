/* pawl audit deliver */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/terminal/display.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/interrupt.h"
#include "records/delivery.h"

#define AUDIT_EXAMPLE                                                                         \
    "echo '{\"order\":17}' > orders.jsonl && pawl deliver --data ./data --from orders.jsonl " \
    "--into orders --drain && "

struct printing {
    const struct pawl__cli_run *run;
    pawl_status status;
    pawl_error error;
};

static pawl_status print_line(struct pawl__buf *line, pawl_error *reterr)
{
    pawl__buf_add_char(line, '\n');
    return pawl__cli_out_add(line, reterr);
}

static void add_finding(struct pawl__buf *line, const pawl_audit_finding *finding)
{
    pawl__buf_add_text(line, pawl_audit_fault_name(finding->fault));
    pawl__buf_add_char(line, ' ');
    pawl__display_add(line, finding->pipeline);
    if (finding->transaction_id.len > 0) {
        pawl__buf_add_char(line, ' ');
        pawl__display_add(line, finding->transaction_id);
    }
    if (finding->sequence > 0) {
        pawl__buf_add_format(line, " sequence %llu", (unsigned long long)finding->sequence);
    }
    if (finding->lsn > 0) {
        pawl__buf_add_format(line, " LSN %llu", (unsigned long long)finding->lsn);
    }
    pawl__buf_add_text(line, ": ");
    pawl__display_add_message(line, finding->what);
}

static bool print_finding(void *context, const pawl_audit_finding *finding)
{
    struct printing *printing = context;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(1 << 16);

    if (printing->run->json) {
        pawl__record_write(&pawl__audit_finding_record, finding, &line);
    } else {
        add_finding(&line, finding);
    }
    printing->status = print_line(&line, &printing->error);
    return printing->status == PAWL_OK;
}

static void add_number(struct pawl__buf *text, const char *what, uint64_t number)
{
    pawl__buf_add_format(text, "%-10s %llu\n", what, (unsigned long long)number);
}

static void add_report(struct pawl__buf *text, const pawl_audit_report *report)
{
    add_number(text, "pipelines", report->pipelines);
    add_number(text, "source", report->source_events);
    add_number(text, "waiting", report->waiting);
    add_number(text, "log", report->log_entries);
    add_number(text, "rows", report->rows);
    add_number(text, "filtered", report->filtered);
    add_number(text, "failed", report->failed);
    add_number(text, "pending", report->pending);
    add_number(text, "recorded", report->recorded);
    if (report->unread_sources > 0) {
        pawl__buf_add_format(text,
                             "not read   %llu sources that can be read only once\n",
                             (unsigned long long)report->unread_sources);
    }
    if (report->miscounted > 0) {
        add_number(text, "miscounted", report->miscounted);
    }
    pawl__buf_add_format(text,
                         "lost %llu, duplicated %llu",
                         (unsigned long long)report->lost,
                         (unsigned long long)report->duplicated);
}

static pawl_status print_report(const struct pawl__cli_run *run,
                                const pawl_audit_report *report,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);

    if (run->json) {
        pawl__record_write(&pawl__audit_report_record, report, &text);
    } else {
        add_report(&text, report);
    }
    return print_line(&text, reterr);
}

static bool ignore_status(void *context, const pawl_pipeline_status *status)
{
    (void)context;
    (void)status;
    return true;
}

/* What is no verdict is: it could not be checked. */
static pawl_status could_not(pawl_status status, const pawl_error *error, pawl_error *reterr)
{
    switch (status) {
    case PAWL_CANCELLED:
    case PAWL_BUSY:
    case PAWL_TIMEOUT:
        return pawl__fail_with(reterr, status, error);
    default:
        *reterr = *error;
        return pawl__fail_context(reterr, PAWL_UNAVAILABLE, "could not check");
    }
}

static pawl_status audit(const struct pawl__cli_run *run,
                         pawl_delivery *delivery,
                         pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(run, "audit", false);
    const char *name = pawl__cli_args_operand(run->args, 0);
    struct printing printing = { .run = run, .error = PAWL_ERROR_INIT };
    const pawl_watch watch = pawl__cli_progress_watch(&progress);
    pawl_audit_report report = PAWL_AUDIT_REPORT_INIT;
    pawl_error wrong = PAWL_ERROR_INIT;

    TRY(name == NULL ? PAWL_OK : pawl_pipeline_get(delivery, name, ignore_status, NULL, reterr));
    pawl_status status =
        pawl_delivery_audit(delivery, name, &watch, print_finding, &printing, &report, &wrong);
    pawl__cli_progress_done(&progress);
    if (status != PAWL_OK && status != PAWL_CORRUPT) {
        return could_not(status, &wrong, reterr);
    }
    if (printing.status != PAWL_OK) {
        return pawl__fail_with(reterr, printing.status, &printing.error);
    }
    TRY(print_report(run, &report, reterr));
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &wrong);
}

static pawl_status deliver_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_delivery *delivery = NULL;

    TRY(pawl__cli_delivery_open(run, &delivery, reterr));
    return pawl__cli_delivery_close(delivery, audit(run, delivery, reterr), reterr);
}

static const struct pawl__cli_command deliver = {
    .name = "deliver",
    .summary = "prove that pipelines lost nothing and delivered nothing twice",
    .description =
        "Reads the source, the write-ahead log, the table and failed_events of a pipeline, or of "
        "all, and compares them: every event that source and log hold, up to the place that the "
        "table covers, must be a row, a filtered event or a failed event, exactly once. The last "
        "line says how many were lost and how many are there twice; each of them has a line with "
        "its id before.\n\n"
        "waiting counts what the source has and nobody has read yet; recorded counts rows of "
        "delivery_losses: what a source lost, on record. miscounted: the table has fewer or more "
        "rows than were delivered, as if somebody had changed it by hand; 'pawl pipeline replay' "
        "brings back what the source still has. Standard input cannot be read again: of such a "
        "pipeline only log and table are compared.\n\n"
        "The exit code is 6 when something is wrong, and 5 when it could not be checked: the "
        "source "
        "is away, or another process has the data directory.",
    .operands = OPERANDS(
        { .name = "PIPELINE", .help = "Which pipeline; all if it is left out.", .optional = true }),
    .examples = EXAMPLES(
        TESTED(AUDIT_EXAMPLE "pawl audit deliver --data ./data", "lost 0?"),
        TESTED(AUDIT_EXAMPLE "pawl audit deliver --data ./data --json orders", "for a program")),
    .run = deliver_run,
    .when_damaged = "run 'pawl pipeline replay', which delivers what source and log still hold",
};

const struct pawl__cli_command pawl__cli_cmd_audit = {
    .name = "audit",
    .summary = "compare what is stored with where it came from",
    .description =
        "Reads everything and changes nothing. The exit code is 0 when all is well, 6 when "
        "something is wrong, and 5 when it could not be checked.",
    .commands = COMMANDS(&deliver),
    .examples = EXAMPLES(TESTED(AUDIT_EXAMPLE "pawl audit deliver --data ./data orders",
                                "one pipeline, end to end")),
};
