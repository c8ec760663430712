/* pawl work task create|list|show|cancel|set-status */
#include <string.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/work/work.h"
#include "records/work.h"

#define TASK_OPERAND                             \
    {                                            \
        .name = "TASK", .help = "The task's id." \
    }
#define MAKE_TASK "pawl work task create --data ./data --id t-1 --title 'Process documents' && "

/* --- create --- */

static pawl_status create_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__text_free) char *metadata = NULL;
    char id[PAWL_WORK_NAME_BYTES_MAX + 1];
    pawl_task task = {
        .size = sizeof(pawl_task),
        .task_id = pawl__cli_work_value(run, "id"),
        .title = pawl__cli_work_value(run, "title"),
    };

    TRY(pawl__cli_work_json(run, "metadata", &metadata, reterr));
    TRY(pawl__cli_work_open(run, WORK_TO_CREATE, &work, reterr));
    task.metadata = pawl_view_of(metadata);
    TRY(pawl_task_create(work, &task, id, PAWL_WORK_NAME_BYTES_MAX + 1, reterr));
    return pawl__cli_work_answer(
        run, ANSWER({ "task_id", true, pawl__cell_text(pawl_view_of(id)) }), reterr);
}

static const struct pawl__cli_command create = {
    .name = "create",
    .summary = "make a task",
    .description = "Prints the task's id. The same task again is fine; another title or other "
                   "metadata under its id is a conflict (exit code 4).",
    .flags = FLAGS(FLAG("title", "TEXT", "What it is about.", .required = true),
                   FLAG("id", "ID", "Of the task; a new one if it is left out."),
                   FLAG("metadata", "JSON", "An object; @FILE reads a file.")),
    .examples = EXAMPLES(
        TESTED("pawl work task create --data ./data --title 'Process documents'", "prints its id")),
    .run = create_run,
};

/* --- list and show --- */

static const struct pawl__column task_columns[] = {
    { "task_id", true },    { "title", false },   { "status", true },
    { "waiting", false },   { "pending", false }, { "in_progress", false },
    { "completed", false }, { "failed", false },  { "created_at", true },
};

static bool task_row(void *context, const pawl_task *task)
{
    return pawl__cli_rows_add_record(context, task);
}

static void start_rows(struct pawl__cli_rows *rows,
                       const struct pawl__cli_run *run,
                       pawl_error *reterr)
{
    pawl__cli_rows_start_records(
        rows, run, &pawl__task_record, task_columns, COUNT_OF(task_columns), reterr);
}

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    const char *given = pawl__cli_args_value(run->args, "status");
    pawl_task_status wanted =
        given == NULL ? PAWL_TASK_PENDING : pawl__cli_task_status_named(given);

    start_rows(&rows, run, reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    return pawl__cli_rows_end(
        &rows, pawl_task_list(work, given == NULL ? NULL : &wanted, NULL, task_row, &rows, reterr));
}

static const struct pawl__cli_command list = {
    .name = "list",
    .summary = "list tasks with their items counted",
    .description =
        "Prints the tasks in order of creation, and how many of their items are waiting, "
        "pending, in progress, completed and failed.",
    .flags = FLAGS(FLAG("status", "STATUS", "Only tasks in this state.", .choices = TASK_STATUSES)),
    .examples =
        EXAMPLES(TESTED(MAKE_TASK "pawl work task list --data ./data", "how far are they?")),
    .run = list_run,
    .only_prints = true,
};

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    AUTO(pawl_task_free_p) pawl_task *task = NULL;

    start_rows(&rows, run, reterr);
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_task_get(work, pawl__cli_work_operand(run, 0), &task, reterr));
    (void)task_row(&rows, task);
    return pawl__cli_rows_end(&rows, PAWL_OK);
}

static const struct pawl__cli_command show = {
    .name = "show",
    .summary = "print one task with its items counted",
    .description = "Exit code 3 when no task has this id.",
    .operands = OPERANDS(TASK_OPERAND),
    .examples =
        EXAMPLES(TESTED(MAKE_TASK "pawl work task show --data ./data t-1", "how far is it?")),
    .run = show_run,
    .only_prints = true,
};

/* --- cancel --- */

static pawl_status cancel_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_view id = pawl__cli_work_operand(run, 0);
    uint64_t items = 0;

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_task_cancel(work, id, &items, reterr));
    return pawl__cli_work_answer(
        run,
        ANSWER({ "task_id", true, pawl__cell_text(id) },
               { "failed_items", true, pawl__cell_integer((int64_t)items) }),
        reterr);
}

static const struct pawl__cli_command cancel = {
    .name = "cancel",
    .summary = "end a task for good",
    .description =
        "Items that have not ended fail with 'cancelled', whoever runs one is told at its "
        "next call, and nothing more can be submitted to the task. Prints how many items "
        "it failed. Exit code 4 when the task has ended already.",
    .operands = OPERANDS(TASK_OPERAND),
    .examples = EXAMPLES(TESTED(MAKE_TASK "pawl work task cancel --data ./data t-1", "stop it")),
    .run = cancel_run,
};

/* --- set-status --- */

static pawl_status set_status_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_view id = pawl__cli_work_operand(run, 0);
    const char *name = pawl__cli_args_operand(run->args, 1);

    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_task_set_status(work, id, pawl__cli_task_status_named(name), reterr));
    return pawl__cli_work_answer(run,
                                 ANSWER({ "task_id", true, pawl__cell_text(id) },
                                        { "status", true, pawl__cell_text(pawl_view_of(name)) }),
                                 reterr);
}

static const struct pawl__cli_command set_status = {
    .name = "set-status",
    .summary = "set a task's status by hand",
    .description = "From then on the status does not follow from the task's items any more.",
    .operands = OPERANDS(TASK_OPERAND,
                         { .name = "STATUS",
                           .help = "What it is from now on.",
                           .choices = CHOICES("pending", "running", "succeeded", "failed") }),
    .examples = EXAMPLES(
        TESTED(MAKE_TASK "pawl work task set-status --data ./data t-1 succeeded", "good enough")),
    .run = set_status_run,
};

const struct pawl__cli_command pawl__cli_cmd_work_task = {
    .name = "task",
    .summary = "tasks, which own the items",
    .description =
        "A task's status follows from its items: pending, running from the first claim on, "
        "and when none is unfinished, failed if any has failed, else succeeded.",
    .commands = COMMANDS(&create, &list, &show, &cancel, &set_status),
    .examples = EXAMPLES({ .line = "pawl work task list --data ./data --status running",
                           .says = "what is under way?" }),
};
