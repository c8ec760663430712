/* pawl trace */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/os/clock.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/interrupt.h"
#include "config/config.h"

struct printing {
    struct pawl__table table;
    pawl_status status;
    pawl_error error;
};

static struct pawl__cell number_cell(uint64_t number)
{
    return number == 0 ? pawl__cell_none() : pawl__cell_integer((int64_t)number);
}

static struct pawl__cell text_cell(pawl_view text)
{
    return text.len == 0 ? pawl__cell_none() : pawl__cell_text(text);
}

static bool print_step(void *context, const pawl_trace_step *step)
{
    struct printing *printing = context;
    char time[PAWL__TIME_SIZE] = "";

    if (step->at_us != 0) {
        pawl__time_rfc3339(step->at_us, time);
    }
    const struct pawl__cell cells[] = {
        pawl__cell_text(pawl_view_of(pawl_trace_place_name(step->place))),
        text_cell(pawl_view_of(time)),
        text_cell(step->pipeline),
        text_cell(step->transaction_id),
        text_cell(step->state),
        number_cell(step->number),
        number_cell(step->sequence),
        number_cell(step->lsn),
        text_cell(step->detail),
    };

    printing->status = pawl__table_add(&printing->table, cells, &printing->error);
    return printing->status == PAWL_OK;
}

static pawl_status trace(const struct pawl__cli_run *run,
                         pawl_delivery *delivery,
                         pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "place", true },          { "at", true },    { "pipeline", true },
        { "transaction_id", true }, { "state", true }, { "number", false },
        { "sequence", true },       { "lsn", true },   { "detail", true },
    };
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(run, "trace", false);
    const pawl_watch watch = pawl__cli_progress_watch(&progress);
    const struct pawl__table_options table = pawl__cli_out_table(run);
    const char *outbox = pawl__config_text(run->config, PAWL__PRODUCER_WAL_PATH);
    struct printing printing = { .error = PAWL_ERROR_INIT };
    pawl_trace_options options = PAWL_TRACE_OPTIONS_INIT;
    uint64_t skipped = 0;

    options.pipeline = pawl__cli_args_value(run->args, "pipeline");
    options.outbox_dir = outbox[0] == '\0' ? NULL : outbox;
    options.no_source = pawl__cli_args_has(run->args, "no-source");
    options.watch = &watch;
    pawl__table_init(&printing.table, columns, COUNT_OF(columns), &table);
    pawl_status status = pawl_delivery_trace(delivery,
                                             pawl_view_of(pawl__cli_args_operand(run->args, 0)),
                                             &options,
                                             print_step,
                                             &printing,
                                             &skipped,
                                             reterr);
    pawl__cli_progress_done(&progress);
    if (status == PAWL_OK && printing.status != PAWL_OK) {
        status = pawl__fail_with(reterr, printing.status, &printing.error);
    }
    if (status == PAWL_OK) {
        status = pawl__table_end(&printing.table, reterr);
    }
    pawl__table_done(&printing.table);
    if (skipped > 0) {
        LOG_WARNING("a source or an outbox could not be read", LOG_NATURAL("skipped", skipped));
    }
    return status;
}

static pawl_status trace_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_delivery *delivery = NULL;

    TRY(pawl__cli_delivery_open(run, &delivery, reterr));
    return pawl__cli_delivery_close(delivery, trace(run, delivery, reterr), reterr);
}

const struct pawl__cli_command pawl__cli_cmd_trace = {
    .name = "trace",
    .summary = "follow one event from the outbox to its row",
    .description =
        "Prints a row per step: the outbox that accepted it, its place in the source, its LSN in "
        "the write-ahead log, and the row, the filtered or the failed event that it became, each "
        "with its time as far as somebody keeps it. ID is a transaction id or the producer's event "
        "id.\n\n"
        "An entry that was cleaned up has no place in the log any more: then the source is read to "
        "find it, which takes a while on a long stream, unless --no-source is given. Nobody knows "
        "the id: exit code 3.",
    .flags = FLAGS(FLAG("pipeline", "PIPELINE", "Only this one."),
                   { .name = "no-source", .help = "Do not read sources." }),
    .operands = OPERANDS({ .name = "ID", .help = "A transaction id, or an event id." }),
    .examples = EXAMPLES(TESTED("echo '{\"id\":\"o-17\"}' > orders.jsonl && pawl deliver --data "
                                "./data --from orders.jsonl --id-field id --into orders --drain "
                                "&& pawl trace --data ./data o-17",
                                "where is order 17?")),
    .run = trace_run,
    .only_prints = true,
};
