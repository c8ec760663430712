/* pawl pipeline replay */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/interrupt.h"
#include "records/delivery.h"

static pawl_status take_time(const struct pawl__cli_run *run,
                             const char *flag,
                             int64_t *ret_us,
                             pawl_error *reterr)
{
    const char *text = pawl__cli_args_value(run->args, flag);

    if (text == NULL) {
        return PAWL_OK;
    }
    pawl_status status = pawl__time_parse(pawl_view_of(text), ret_us, reterr);
    return status == PAWL_OK ? PAWL_OK : pawl__fail_context(reterr, status, "'--%s'", flag);
}

static uint64_t number_or_zero(const struct pawl__cli_run *run, const char *flag)
{
    return pawl__cli_args_has(run->args, flag) ? (uint64_t)pawl__cli_args_number(run->args, flag)
                                               : 0;
}

static pawl_status take_range(const struct pawl__cli_run *run,
                              pawl_replay_range *range,
                              pawl_error *reterr)
{
    const char *by = pawl__cli_args_value(run->args, "by");
    bool has_numbers = pawl__cli_args_has(run->args, "from") || pawl__cli_args_has(run->args, "to");
    bool has_times =
        pawl__cli_args_has(run->args, "since") || pawl__cli_args_has(run->args, "until");

    if (has_times && (has_numbers || pawl__cli_args_has(run->args, "by"))) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "'--since' and '--until' do not go with '--by', '--from' and '--to'");
    }
    range->by = has_times                              ? PAWL_REPLAY_TIME
                : by != NULL && strcmp(by, "lsn") == 0 ? PAWL_REPLAY_LSN
                                                       : PAWL_REPLAY_SEQUENCE;
    range->from = number_or_zero(run, "from");
    range->to = number_or_zero(run, "to");
    TRY(take_time(run, "since", &range->from_us, reterr));
    return take_time(run, "until", &range->to_us, reterr);
}

static void add_number(struct pawl__buf *text, const char *what, uint64_t number)
{
    pawl__buf_add_format(text, "%-10s %llu\n", what, (unsigned long long)number);
}

static pawl_status print_result(const struct pawl__cli_run *run,
                                const pawl_replay_result *result,
                                pawl_error *reterr)
{
    AUTO(pawl__buf_done) struct pawl__buf text = BUF_INIT(1 << 16);

    if (run->json) {
        pawl__record_write(&pawl__replay_result_record, result, &text);
        pawl__buf_add_char(&text, '\n');
        return pawl__cli_out_add(&text, reterr);
    }
    add_number(&text, "from log", result->from_wal);
    add_number(&text, "source", result->from_source);
    add_number(&text, "present", result->present);
    add_number(&text, "delivered", result->delivered);
    add_number(&text, "filtered", result->filtered);
    add_number(&text, "failed", result->failed);
    add_number(&text, "pending", result->pending);
    add_number(&text, "gone", result->gone);
    return pawl__cli_out_add(&text, reterr);
}

static pawl_status replay(const struct pawl__cli_run *run,
                          pawl_delivery *delivery,
                          pawl_error *reterr)
{
    AUTO(pawl__cli_progress_done)
    struct pawl__cli_progress progress = pawl__cli_progress_start(run, "replay", false);
    const pawl_watch watch = pawl__cli_progress_watch(&progress);
    pawl_replay_range range = PAWL_REPLAY_RANGE_INIT;
    pawl_replay_result result = PAWL_REPLAY_RESULT_INIT;

    TRY(take_range(run, &range, reterr));
    TRY(pawl_pipeline_replay(
        delivery, pawl__cli_args_operand(run->args, 0), &range, &watch, &result, reterr));
    pawl__cli_progress_done(&progress);
    return print_result(run, &result, reterr);
}

static pawl_status replay_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    pawl_delivery *delivery = NULL;

    TRY(pawl__cli_delivery_open(run, &delivery, reterr));
    return pawl__cli_delivery_close(delivery, replay(run, delivery, reterr), reterr);
}

static const char *const by_choices[] = { "sequence", "lsn", NULL };

const struct pawl__cli_command pawl__cli_cmd_pipeline_replay = {
    .name = "replay",
    .summary = "read a range again, and deliver what the table lacks",
    .description =
        "Reads events that the pipeline has already read once more, from its write-ahead log and "
        "from its source, and looks each of them up in the table by transaction id and payload. "
        "What is there is left alone; what is missing is delivered. So it can be run at any time, "
        "any number of times.\n\n"
        "The range is a stream sequence, line or ledger offset (--by sequence), an LSN (--by lsn: "
        "what the log still has), or a time (--since, --until: when the stream stored it; of a "
        "file or a ledger, when it arrived here, as far as the log still has it). Without a range "
        "it is everything.\n\n"
        "present counts what was there already, of log and source together; gone counts places "
        "of the range that nobody holds any more.",
    .flags =
        FLAGS(FLAG("by",
                   "WHAT",
                   "What --from and --to count: sequence, if it is left out, or lsn.",
                   .choices = by_choices),
              FLAG("from", "N", "The first one.", .kind = VALUE_NUMBER, .min = 1, .max = INT64_MAX),
              FLAG("to",
                   "N",
                   "The last one; as far as the pipeline has read if it is left out.",
                   .kind = VALUE_NUMBER,
                   .min = 1,
                   .max = INT64_MAX),
              FLAG("since", "TIME", "From this time on, 2026-01-29T10:00:00Z."),
              FLAG("until", "TIME", "Before this time.")),
    .operands = OPERANDS({ .name = "PIPELINE", .help = "Which pipeline." }),
    .examples = EXAMPLES(
        TESTED("echo '{\"order\":17}' > orders.jsonl && pawl deliver --data ./data --from "
               "orders.jsonl --into orders --drain && pawl pipeline replay --data ./data orders",
               "all of it; nothing is there twice"),
        { .line = "pawl pipeline replay --from 1000 --to 2000 orders",
          .says = "a range of stream sequences" },
        { .line = "pawl pipeline replay --since 2026-02-03T10:00:00Z orders",
          .says = "what the stream has stored since then" }),
    .run = replay_run,
};
