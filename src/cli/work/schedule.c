/* pawl work schedule put|list|remove|fire */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/work/work.h"
#include "records/work.h"

#define PUT                                                                        \
    "pawl work task create --data ./data --id t-1 --title 'Every night' >task && " \
    "pawl work schedule put --data ./data nightly --cron '0 3 * * *' --type backup --task t-1 && "

static pawl_status put_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__text_free) char *input = NULL;
    pawl_schedule schedule = {
        .size = sizeof(pawl_schedule),
        .schedule_id = pawl__cli_work_operand(run, 0),
        .cron = pawl__cli_work_value(run, "cron"),
        .task_id = pawl__cli_work_value(run, "task"),
        .work_type = pawl__cli_work_value(run, "type"),
        .priority = (int32_t)pawl__cli_args_number(run->args, "priority"),
        .max_retries = (int32_t)pawl__cli_args_number(run->args, "retries"),
    };

    TRY(pawl__cli_work_json(run, "input", &input, reterr));
    schedule.input_data = pawl_view_of(input);
    TRY(pawl__cli_work_open(run, WORK_TO_CREATE, &work, reterr));
    TRY(pawl_schedule_put(work, &schedule, reterr));
    return pawl__cli_work_answer(
        run, ANSWER({ "schedule_id", true, pawl__cell_text(schedule.schedule_id) }), reterr);
}

static const struct pawl__cli_command put = {
    .name = "put",
    .summary = "add or replace a schedule",
    .description = "The expression has five fields (minute hour day month weekday) or is @hourly, "
                   "@daily, @weekly, @monthly or @yearly, and is read in UTC.",
    .flags = FLAGS(
        FLAG("cron", "EXPRESSION", "When.", .required = true),
        FLAG("type", "TYPE", "Of the items.", .required = true),
        FLAG("task", "TASK", "They belong to; without it every slot makes a task of its own."),
        FLAG("input", "JSON", "Of the items; @FILE reads a file."),
        WORK_PRIORITY_FLAG,
        WORK_RETRIES_FLAG),
    .operands = OPERANDS({ .name = "ID", .help = "The schedule's id." }),
    .examples = EXAMPLES(TESTED(PUT "true", "every night at three")),
    .run = put_run,
};

/* --- list --- */

static bool schedule_row(void *context, const pawl_schedule *schedule)
{
    return pawl__cli_rows_add_record(context, schedule);
}

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "schedule_id", true }, { "cron", true },      { "work_type", true },
        { "task_id", true },     { "next_slot", true }, { "last_slot", true },
        { "input_data", false },
    };
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;

    pawl__cli_rows_start_records(
        &rows, run, &pawl__schedule_record, columns, COUNT_OF(columns), reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    return pawl__cli_rows_end(&rows, pawl_schedule_list(work, NULL, schedule_row, &rows, reterr));
}

static const struct pawl__cli_command list = {
    .name = "list",
    .summary = "list schedules with their next slot",
    .description = "Prints every schedule, when it is due next and which slot it fired last.",
    .examples = EXAMPLES(TESTED(PUT "pawl work schedule list --data ./data", "what comes when?")),
    .run = list_run,
    .only_prints = true,
};

/* --- remove and fire --- */

static pawl_status remove_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_view id = pawl__cli_work_operand(run, 0);

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_schedule_remove(work, id, reterr));
    return pawl__cli_work_answer(run, ANSWER({ "removed", true, pawl__cell_text(id) }), reterr);
}

static const struct pawl__cli_command remove_command = {
    .name = "remove",
    .summary = "remove a schedule",
    .description = "Items that it has submitted stay. Exit code 3 when no schedule has this id.",
    .operands = OPERANDS({ .name = "ID", .help = "The schedule's id." }),
    .examples =
        EXAMPLES(TESTED(PUT "pawl work schedule remove --data ./data nightly", "never again")),
    .run = remove_run,
};

static pawl_status fire_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    uint64_t fired = 0;

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_schedule_fire(work, &fired, reterr));
    return pawl__cli_work_answer(
        run, ANSWER({ "fired", true, pawl__cell_integer((int64_t)fired) }), reterr);
}

static const struct pawl__cli_command fire = {
    .name = "fire",
    .summary = "submit what is due",
    .description =
        "Submits the item of every slot that is due, each once, however many machines do "
        "this. Of slots that were missed only the newest is submitted. Prints how many.",
    .examples =
        EXAMPLES(TESTED(PUT "pawl work schedule fire --data ./data", "once a minute, from cron")),
    .run = fire_run,
};

const struct pawl__cli_command pawl__cli_cmd_work_schedule = {
    .name = "schedule",
    .summary = "items that come by the clock",
    .description = "A slot of a schedule has one item, whose id follows from both.",
    .commands = COMMANDS(&put, &list, &remove_command, &fire),
    .examples =
        EXAMPLES({ .line = "pawl work schedule list --data ./data", .says = "what comes when?" }),
};
