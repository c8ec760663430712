/* pawl pipeline list|show|add|remove|pause|resume; replay.c has the rest */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"

#define PIPELINE_OPERAND                              \
    {                                                 \
        .name = "PIPELINE", .help = "Which pipeline." \
    }
#define PIPELINE_EXAMPLE                                                              \
    "echo '{\"order\":17}' > orders.jsonl && pawl pipeline add --data ./data --from " \
    "orders.jsonl --into orders orders && "

typedef pawl_status act_fn(const struct pawl__cli_run *run,
                           struct pawl__cli_delivery *delivery,
                           const char *name,
                           pawl_error *reterr);

/* Opens the directory, acts on the pipeline of the operand, and closes it. */
static pawl_status with_pipeline(struct pawl__cli_run *run, act_fn *act, pawl_error *reterr)
{
    const char *name = pawl__cli_args_operand(run->args, 0);
    struct pawl__cli_delivery delivery;

    TRY(pawl__cli_delivery_reach(run, &delivery, reterr));
    return pawl__cli_delivery_leave(&delivery, act(run, &delivery, name, reterr), reterr);
}

/* --- list --- */

struct list {
    struct pawl__table table;
    pawl_status status;
    pawl_error *reterr;
};

static bool add_row(void *context, const pawl_pipeline_status *status)
{
    struct list *list = context;
    const struct pawl__cell cells[] = {
        pawl__cell_text(status->name),
        pawl__cell_text(pawl_view_of(pawl_pipeline_state_name(status->state))),
        pawl__cell_text(status->from),
        pawl__cell_text(status->into),
        pawl__cell_integer((int64_t)status->accepted),
        pawl__cell_integer((int64_t)status->delivered),
        pawl__cell_integer((int64_t)status->filtered),
        pawl__cell_integer((int64_t)status->failed),
        pawl__cell_integer((int64_t)status->pending),
        status->last_error.len > 0 ? pawl__cell_text(status->last_error) : pawl__cell_none(),
    };

    list->status = pawl__table_add(&list->table, cells, list->reterr);
    return list->status == PAWL_OK;
}

static pawl_status list_all(const struct pawl__cli_run *run,
                            struct pawl__cli_delivery *delivery,
                            const char *name,
                            pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "name", true },      { "state", false },      { "from", false },     { "into", false },
        { "accepted", false }, { "delivered", false },  { "filtered", false }, { "failed", false },
        { "pending", false },  { "last_error", false },
    };
    const struct pawl__table_options options = pawl__cli_out_table(run);
    struct list list = { .reterr = reterr };

    (void)name;
    pawl__table_init(&list.table, columns, COUNT_OF(columns), &options);
    pawl_status status = pawl__cli_pipeline_visit(delivery, NULL, add_row, &list, reterr);
    status = status == PAWL_OK ? list.status : status;
    status = status == PAWL_OK ? pawl__table_end(&list.table, reterr) : status;
    pawl__table_done(&list.table);
    return status;
}

static pawl_status list_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_pipeline(run, list_all, reterr);
}

static const struct pawl__cli_command list = {
    .name = "list",
    .summary = "list pipelines and how far they are",
    .description = "One row per pipeline. accepted is delivered + filtered + failed + pending.",
    .examples = EXAMPLES(
        TESTED(PIPELINE_EXAMPLE "pawl pipeline list --data ./data --json", "for a program")),
    .run = list_run,
    .only_prints = true,
};

/* --- show --- */

static pawl_status show_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_pipeline(run, pawl__cli_delivery_print, reterr);
}

static const struct pawl__cli_command show = {
    .name = "show",
    .summary = "show one pipeline",
    .description = "Its source, its table, its counters, and the last error.",
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples = EXAMPLES(
        TESTED(PIPELINE_EXAMPLE "pawl pipeline show --data ./data orders", "how far it is")),
    .run = show_run,
    .only_prints = true,
};

/* --- add and remove --- */

static pawl_status add(const struct pawl__cli_run *run,
                       struct pawl__cli_delivery *delivery,
                       const char *name,
                       pawl_error *reterr)
{
    TRY(pawl__cli_delivery_add(run, delivery, name, reterr));
    return pawl__cli_delivery_print(run, delivery, name, reterr);
}

static pawl_status add_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_pipeline(run, add, reterr);
}

static const struct pawl__cli_command add_command = {
    .name = "add",
    .summary = "declare a pipeline, or change one",
    .description =
        "Stores the declaration and makes the table; nothing is read yet. Declared again, columns, "
        "server, file and generation may change. Kind of source, source, id field, stream and "
        "table stay what they were once something was delivered: exit code 4.",
    .flags = FLAGS(PIPELINE_FROM_FLAG(.required = true), PIPELINE_FLAGS),
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples = EXAMPLES(
        TESTED("pawl pipeline add --data ./data --from nats://localhost:4222 --stream ORDERS "
               "--into orders orders",
               "a JetStream stream into the table orders")),
    .run = add_run,
};

static pawl_status remove_one(const struct pawl__cli_run *run,
                              struct pawl__cli_delivery *delivery,
                              const char *name,
                              pawl_error *reterr)
{
    return pawl__cli_pipeline_remove(
        delivery, name, pawl__cli_args_has(run->args, "unsafe-drop-pending"), reterr);
}

static pawl_status remove_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_pipeline(run, remove_one, reterr);
}

static const struct pawl__cli_command remove_command = {
    .name = "remove",
    .summary = "forget a pipeline; its table stays",
    .description =
        "Removes the declaration and the write-ahead log. Events that are only in the log are not "
        "dropped silently: then it is exit code 4, unless --unsafe-drop-pending is given. Added "
        "again under its name, the pipeline knows its rows and delivers nothing twice.",
    .flags = FLAGS({ .name = "unsafe-drop-pending",
                     .help = "Drop events that are only in the write-ahead log." }),
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples =
        EXAMPLES(TESTED(PIPELINE_EXAMPLE "pawl pipeline remove --data ./data orders", "forget it")),
    .run = remove_run,
};

/* --- pause and resume --- */

static pawl_status pause_one(const struct pawl__cli_run *run,
                             struct pawl__cli_delivery *delivery,
                             const char *name,
                             pawl_error *reterr)
{
    (void)run;
    return pawl__cli_pipeline_pause(delivery, name, reterr);
}

static pawl_status pause_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_pipeline(run, pause_one, reterr);
}

static const struct pawl__cli_command pause_command = {
    .name = "pause",
    .summary = "keep a pipeline from running",
    .description = "Until it is resumed, 'pawl deliver' refuses to run it: exit code 4.",
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples =
        EXAMPLES(TESTED(PIPELINE_EXAMPLE "pawl pipeline pause --data ./data orders", "not now")),
    .run = pause_run,
};

static pawl_status resume_one(const struct pawl__cli_run *run,
                              struct pawl__cli_delivery *delivery,
                              const char *name,
                              pawl_error *reterr)
{
    (void)run;
    return pawl__cli_pipeline_resume(delivery, name, reterr);
}

static pawl_status resume_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    return with_pipeline(run, resume_one, reterr);
}

static const struct pawl__cli_command resume = {
    .name = "resume",
    .summary = "let a paused pipeline run again",
    .operands = OPERANDS(PIPELINE_OPERAND),
    .examples =
        EXAMPLES(TESTED(PIPELINE_EXAMPLE "pawl pipeline resume --data ./data orders", "go on")),
    .run = resume_run,
};

const struct pawl__cli_command pawl__cli_cmd_pipeline = {
    .name = "pipeline",
    .summary = "pipelines that deliver events into DuckDB",
    .description =
        "A pipeline has a source, a write-ahead log and a table. 'pawl deliver' makes one and runs "
        "it; these commands show and change those of a data directory. One process at a time has "
        "the pipelines of a directory: while another one does, they are exit code 5.",
    .commands = COMMANDS(&list,
                         &show,
                         &add_command,
                         &remove_command,
                         &pause_command,
                         &resume,
                         &pawl__cli_cmd_pipeline_replay),
    .examples = EXAMPLES(TESTED(PIPELINE_EXAMPLE "pawl pipeline list --data ./data",
                                "what there is and how far it is")),
};
