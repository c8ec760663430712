/* pawl rebuild */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/log/log.h"
#include "base/terminal/display.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/interrupt.h"
#include "records/delivery.h"

struct printing {
    const struct pawl__cli_run *run;
    pawl_status status;
    pawl_error error;
};

static void add_rebuilt(struct pawl__buf *line, const pawl_rebuilt *rebuilt)
{
    pawl__display_add(line, rebuilt->pipeline);
    pawl__buf_add_format(line,
                         ": delivered %llu, filtered %llu, failed %llu, pending %llu, losses %llu",
                         (unsigned long long)rebuilt->delivered,
                         (unsigned long long)rebuilt->filtered,
                         (unsigned long long)rebuilt->failed,
                         (unsigned long long)rebuilt->pending,
                         (unsigned long long)rebuilt->losses);
    if (rebuilt->error.len > 0) {
        pawl__buf_add_text(line, "; not complete: ");
        pawl__display_add_message(line, rebuilt->error);
    }
}

static bool print_rebuilt(void *context, const pawl_rebuilt *rebuilt)
{
    struct printing *printing = context;
    AUTO(pawl__buf_done) struct pawl__buf line = BUF_INIT(1 << 16);

    if (printing->run->json) {
        pawl__record_write(&pawl__rebuilt_record, rebuilt, &line);
    } else {
        add_rebuilt(&line, rebuilt);
    }
    pawl__buf_add_char(&line, '\n');
    printing->status = pawl__cli_out_add(&line, &printing->error);
    return printing->status == PAWL_OK;
}

static pawl_status print_result(const struct pawl__cli_run *run,
                                const pawl_rebuild_result *result,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);

    if (result->file_was_damaged) {
        LOG_ERROR("analytics.duckdb did not open: moved aside, and made anew",
                  LOG_TEXT("now", result->quarantined));
    }
    if (run->json) {
        pawl__record_write(&pawl__rebuild_result_record, result, &text);
        pawl__buf_add_char(&text, '\n');
        return pawl__cli_out_add(&text, reterr);
    }
    pawl__buf_add_text(&text,
                       result->file_was_damaged   ? "file       damaged, quarantined as "
                       : result->quarantined[0]   ? "file       replaced, quarantined as "
                       : result->file_was_missing ? "file       missing, made anew"
                                                  : "file       opens, kept");
    pawl__display_add(&text, pawl_view_of(result->quarantined));
    pawl__buf_add_format(&text,
                         "\npipelines  %llu, of which %llu are not complete\n",
                         (unsigned long long)result->pipelines,
                         (unsigned long long)result->incomplete);
    return pawl__cli_out_add(&text, reterr);
}

static pawl_status rebuild(const struct pawl__cli_run *run,
                           pawl_delivery *delivery,
                           pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(run, "rebuild", false);
    struct printing printing = { .run = run, .error = PAWL_ERROR_INIT };
    const pawl_watch watch = pawl__cli_progress_watch(&progress);
    pawl_rebuild_result result = PAWL_REBUILD_RESULT_INIT;
    pawl_error error = PAWL_ERROR_INIT;

    pawl_status status = pawl_delivery_rebuild(delivery,
                                               pawl__cli_args_has(run->args, "replace"),
                                               &watch,
                                               print_rebuilt,
                                               &printing,
                                               &result,
                                               &error);
    pawl__cli_progress_done(&progress);
    if (result.pipelines > 0 || status == PAWL_OK) {
        TRY(print_result(run, &result, reterr));
    }
    if (printing.status != PAWL_OK) {
        return pawl__fail_with(reterr, printing.status, &printing.error);
    }
    return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
}

static pawl_status rebuild_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_delivery *delivery = NULL;

    TRY(pawl__cli_delivery_open(run, &delivery, reterr));
    return pawl__cli_delivery_close(delivery, rebuild(run, delivery, reterr), reterr);
}

const struct pawl__cli_command pawl__cli_cmd_rebuild = {
    .name = "rebuild",
    .summary = "make a lost or damaged analytics.duckdb anew",
    .description =
        "Delivers everything once more into a new DuckDB file: first what the write-ahead logs "
        "hold, failed events and what people decided about them included, then what the sources "
        "still have. What none of them holds becomes a row of delivery_losses.\n\n"
        "A file that does not open is moved aside first, to analytics.duckdb.quarantined-N. A file "
        "that opens is kept and only caught up with, unless --replace is given.\n\n"
        "A pipeline whose source is away, that reads standard input or that is paused gets what "
        "its log has; the rest follows when it runs. Then the exit code is 5.",
    .flags = FLAGS({ .name = "replace",
                     .help = "Move aside a file that opens, too, and start with a new one." }),
    .examples = EXAMPLES(
        TESTED("echo '{\"order\":17}' > orders.jsonl && pawl deliver --data ./data --from "
               "orders.jsonl --into orders --drain && rm ./data/analytics.duckdb && pawl rebuild "
               "--data ./data",
               "the file is lost")),
    .run = rebuild_run,
};
