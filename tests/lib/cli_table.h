/* A command line that has one of everything the model can say, shaped like the real ones:
 *
 *     pawl ledger append|tail, pawl work run, pawl work checkpoint add, pawl sql, pawl help */
#ifndef TESTS_CLI_TABLE_H
#define TESTS_CLI_TABLE_H

#include "cli/frame/command.h"

static pawl_status table_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    (void)run;
    (void)reterr;
    return PAWL_OK;
}

static const struct pawl__cli_command table_append = {
    .name = "append",
    .summary = "append events",
    .description = "Appends one event, or one a line from standard input.\n\nAn event that is "
                   "there already is answered with its first offset.",
    .flags = FLAGS({ .name = "tag",
                     .letter = 't',
                     .value = "TAG",
                     .help = "Mark the event.",
                     .repeats = true },
                   { .name = "format",
                     .value = "FORMAT",
                     .help = "How input is written.",
                     .choices = CHOICES("json", "jsonl", "text"),
                     .fallback = "json" }),
    .operands =
        OPERANDS({ .name = "FILE", .help = "To read.", .kind = VALUE_FILE, .optional = true }),
    .examples = EXAMPLES(
        { .line = "pawl ledger append --tag a -", .says = "one event from standard input" }),
    .run = table_run,
};

static const struct pawl__cli_command table_tail = {
    .name = "tail",
    .summary = "print events from an offset on",
    .flags = FLAGS({ .name = "follow", .letter = 'f', .help = "Wait for more." },
                   { .name = "quiet", .letter = 'q', .help = "Ids only." },
                   { .name = "from",
                     .letter = 'n',
                     .value = "OFFSET",
                     .help = "First offset.",
                     .kind = VALUE_NUMBER,
                     .fallback = "0" }),
    .run = table_run,
};

static const struct pawl__cli_command table_work_run = {
    .name = "run",
    .summary = "run a command for each item",
    .flags = FLAGS({ .name = "type", .value = "TYPE", .help = "Of the items.", .required = true },
                   { .name = "jobs",
                     .letter = 'j',
                     .value = "N",
                     .help = "At the same time.",
                     .kind = VALUE_NUMBER,
                     .min = 1,
                     .max = 64,
                     .fallback = "1" }),
    .operands =
        OPERANDS({ .name = "COMMAND", .help = "What to run." },
                 { .name = "ARGUMENT", .help = "Of it.", .optional = true, .repeats = true }),
    .run = table_run,
};

static const struct pawl__cli_command table_checkpoint_add = {
    .name = "add",
    .summary = "store a checkpoint",
    .operands = OPERANDS({ .name = "ID", .help = "Of the task.", .repeats = true }),
    .run = table_run,
};

static const struct pawl__cli_command table_checkpoint = {
    .name = "checkpoint",
    .summary = "checkpoints of a task",
    .commands = COMMANDS(&table_checkpoint_add),
};

static const struct pawl__cli_command table_work = {
    .name = "work",
    .summary = "leased work items",
    .flags = FLAGS({ .name = "queue", .value = "NAME", .help = "Which queue." }),
    .commands = COMMANDS(&table_work_run, &table_checkpoint),
};

static const struct pawl__cli_command table_ledger = {
    .name = "ledger",
    .summary = "an append-only event log",
    .commands = COMMANDS(&table_append, &table_tail),
};

static const struct pawl__cli_command table_help = {
    .name = "help",
    .summary = "explain a command",
    .operands = OPERANDS({ .name = "COMMAND",
                           .help = "To explain.",
                           .kind = VALUE_COMMAND,
                           .optional = true,
                           .repeats = true }),
    .run = table_run,
};

static const struct pawl__cli_command table_secret = {
    .name = "__secret",
    .summary = "for nobody",
    .run = table_run,
    .hidden = true,
};

static const struct pawl__cli_command table_root = {
    .name = "pawl",
    .summary = "loses nothing and does nothing twice",
    .commands = COMMANDS(&table_ledger, &table_work, &table_help, &table_secret),
};

static const struct pawl__cli table_cli = {
    .root = &table_root,
    .common =
        FLAGS({ .name = "data", .value = "DIR", .help = "Where stores are.", .kind = VALUE_DIR },
              { .name = "json", .help = "Print JSON." },
              { .name = "help", .letter = 'h', .help = "Print this." }),
    .settings =
        FLAGS({ .name = "data", .value = "DIR", .help = "Where stores are.", .kind = VALUE_DIR },
              { .name = "log-level",
                .value = "LEVEL",
                .help = "Least that is logged.",
                .choices = CHOICES("debug", "info", "warning"),
                .fallback = "info" }),
};

#endif
