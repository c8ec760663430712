/* pawl work list|show|cancel|sweep */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/frame/text.h"
#include "cli/work/work.h"
#include "records/work.h"

static const struct pawl__column item_columns[] = {
    { "work_item_id", true }, { "task_id", true },     { "work_type", false },
    { "status", true },       { "priority", false },   { "attempts", false },
    { "created_at", true },   { "input_data", false }, { "error_message", false },
};

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    pawl_item_filter filter = PAWL_ITEM_FILTER_INIT;
    pawl_page page = PAWL_PAGE_INIT;
    size_t index = 0;
    const char *name;

    pawl__cli_rows_start_records(
        &rows, run, &pawl__item_record, item_columns, COUNT_OF(item_columns), reterr);
    filter.task_id = pawl__cli_work_value(run, "task");
    filter.work_type = pawl__cli_work_value(run, "type");
    filter.lease_holder = pawl__cli_work_value(run, "holder");
    page.limit = pawl__cli_args_has(run->args, "limit")
                     ? (uint64_t)pawl__cli_args_number(run->args, "limit")
                     : 0;
    while ((name = pawl__cli_args_next(run->args, "status", &index)) != NULL) {
        filter.statuses |= 1U << pawl__cli_item_status_named(name);
    }
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl__cli_work_check_task(work, filter.task_id, reterr));
    return pawl__cli_rows_end(
        &rows, pawl_work_list(work, &filter, &page, pawl__cli_item_row, &rows, reterr));
}

const struct pawl__cli_command pawl__cli_cmd_work_list = {
    .name = "list",
    .summary = "list items in order of creation",
    .description =
        "Prints one line per item; with --json the whole item. An item that is waiting "
        "cannot be claimed yet: a delay, a backoff, an item that it comes after. One that is "
        "expired was left so by a statement of SQL, until the next sweep.",
    .flags = FLAGS(FLAG("task", "TASK", "Only items of this task."),
                   FLAG("type", "TYPE", "Only items of this type."),
                   FLAG("status",
                        "STATUS",
                        "Only items in this state.",
                        .choices = ITEM_STATUSES,
                        .repeats = true),
                   FLAG("holder", "NAME", "Only what this worker holds."),
                   NUMBER_FLAG("limit", "N", 1, INT64_MAX, "Up to this many.", .letter = 'n')),
    .examples = EXAMPLES(TESTED("pawl work submit --data ./data --type mail && "
                                "pawl work list --data ./data --status pending",
                                "what is to be done?"),
                         { .line = "pawl work list --data ./data --status failed --json | jq "
                                   ".error_message",
                           .says = "what went wrong?" }),
    .run = list_run,
    .only_prints = true,
};

/* --- show --- */

static bool event_row(void *context, const pawl_item_event *event)
{
    return pawl__cli_rows_add_record(context, event);
}

/* One line per field that the item has: name and value. */
static pawl_status show_item(const struct pawl__cli_run *run,
                             const pawl_item *item,
                             pawl_error *reterr)
{
    static const struct pawl__column columns[] = { { "field", true }, { "value", true } };
    static const char *const names[] = {
        "work_item_id",      "task_id",          "work_type",    "status",      "priority",
        "attempts",          "retry_count",      "max_retries",  "token",       "lease_holder",
        "lease_acquired_at", "lease_expires_at", "heartbeat_at", "due_at",      "created_at",
        "started_at",        "completed_at",     "input_data",   "output_data", "error_message",
    };
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    bool more = true;

    pawl__cli_rows_start(&rows, run, columns, COUNT_OF(columns), reterr);
    for (size_t i = 0; i < COUNT_OF(names) && more; i++) {
        char time[PAWL__TIME_SIZE];
        const struct pawl__cell cells[] = {
            pawl__cell_text(pawl_view_of(names[i])),
            pawl__record_cell(pawl__record_field(&pawl__item_record, names[i]), item, time),
        };
        more = cells[1].kind == PAWL__CELL_NONE || pawl__cli_rows_add(&rows, cells);
    }
    return pawl__cli_rows_end(&rows, PAWL_OK);
}

static pawl_status show_history(const struct pawl__cli_run *run,
                                pawl_work *work,
                                const pawl_item *item,
                                pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "at", true },       { "from", true },         { "to", true },
        { "token", true },    { "retry_count", false }, { "lease_holder", false },
        { "message", false },
    };
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;

    pawl__cli_rows_start_records(
        &rows, run, &pawl__item_event_record, columns, COUNT_OF(columns), reterr);
    TRY(pawl__cli_out_add(&(struct pawl__buf){ .data = (char[]){ "\n" }, .len = 1 }, reterr));
    return pawl__cli_rows_end(
        &rows, pawl_work_history(work, item->work_item_id, NULL, event_row, &rows, reterr));
}

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    pawl_view id = pawl__cli_work_operand(run, 0);
    AUTO(pawl_item_free_p) pawl_item *item = NULL;

    pawl__cli_rows_start_records(
        &rows, run, &pawl__item_record, item_columns, COUNT_OF(item_columns), reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    if (run->json) {
        (void)pawl__cli_rows_add_json(
            &rows, pawl_work_show_json(work, id, &rows.json, &rows.json_len, reterr));
        return pawl__cli_rows_end(&rows, PAWL_OK);
    }
    TRY(pawl_work_get(work, id, &item, reterr));
    TRY(show_item(run, item, reterr));
    return show_history(run, work, item, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_show = {
    .name = "show",
    .summary = "print one item whole, with its history",
    .description =
        "Prints the item and every change of its state. Exit code 3 when no item has this id.",
    .operands = OPERANDS(WORK_ID_OPERAND),
    .examples = EXAMPLES(TESTED("pawl work submit --data ./data --type mail --id m-1 && "
                                "pawl work show --data ./data m-1",
                                "what happened to it?")),
    .run = show_run,
    .only_prints = true,
};

/* --- cancel --- */

static pawl_status cancel_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_view id = pawl__cli_work_operand(run, 0);

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_cancel(work, id, reterr));
    return pawl__cli_work_answer(
        run,
        ANSWER({ "work_item_id", true, pawl__cell_text(id) },
               { "status", true, pawl__cell_text(pawl_view_of("failed")) }),
        reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_cancel = {
    .name = "cancel",
    .summary = "fail an item that has not ended",
    .description = "The item has failed for good, with the message 'cancelled'; whoever runs it is "
                   "told at its next call. Exit code 4 when it has ended already.",
    .operands = OPERANDS(WORK_ID_OPERAND),
    .examples = EXAMPLES(TESTED("pawl work submit --data ./data --type mail --id m-1 && "
                                "pawl work cancel --data ./data m-1",
                                "it is not needed any more")),
    .run = cancel_run,
};

/* --- sweep --- */

static pawl_status sweep_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_sweep_report report = { .size = sizeof(pawl_sweep_report) };

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_sweep(work, &report, reterr));
    return pawl__cli_work_answer(
        run,
        ANSWER({ "expired", true, pawl__cell_integer((int64_t)report.expired) },
               { "retried", true, pawl__cell_integer((int64_t)report.retried) },
               { "failed", true, pawl__cell_integer((int64_t)report.failed) },
               { "due", true, pawl__cell_integer((int64_t)report.due) },
               { "settled", true, pawl__cell_integer((int64_t)report.settled) }),
        reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_sweep = {
    .name = "sweep",
    .summary = "take back leases that ran out",
    .description =
        "Items whose lease ran out are pending again, or failed when they have no retry left, with "
        "an error_boundary checkpoint each. Moves what has become due. Prints how many leases were "
        "expired, how many of their items are retried and failed, how many waiting items became "
        "due, and how many tasks got the status of their items. 'pawl work run' does this by "
        "itself.",
    .examples = EXAMPLES(TESTED("pawl work submit --data ./data --type mail && "
                                "pawl work sweep --data ./data",
                                "once a minute, from cron")),
    .run = sweep_run,
};
