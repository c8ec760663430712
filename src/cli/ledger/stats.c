/* pawl ledger stats|turns */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/fs.h"
#include "cli/ledger/ledger.h"

/* A table that a callback fills: the first failure ends it. */
struct rows {
    struct pawl__table table;
    const char *what;
    pawl_status status;
    pawl_error *reterr;
};

static void rows_done(struct rows *rows)
{
    pawl__table_done(&rows->table);
}

static pawl_status add_row(struct rows *rows,
                           const char *what,
                           struct pawl__cell name,
                           struct pawl__cell value)
{
    const struct pawl__cell cells[] = { pawl__cell_text(pawl_view_of(what)), name, value };

    rows->status = pawl__table_add(&rows->table, cells, rows->reterr);
    return rows->status;
}

static bool add_count(void *context, const pawl_count *count)
{
    struct rows *rows = context;

    return add_row(rows,
                   rows->what,
                   pawl__cell_text(count->name),
                   pawl__cell_integer((int64_t)count->count))
           == PAWL_OK;
}

static pawl_status add_counts(struct rows *rows,
                              pawl_ledger *ledger,
                              const pawl_event_filter *filter)
{
    static const struct {
        pawl_count_by by;
        const char *what;
    } groups[] = {
        { PAWL_COUNT_BY_RUN, "run" },
        { PAWL_COUNT_BY_KIND, "kind" },
        { PAWL_COUNT_BY_ACTOR, "actor" },
    };

    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        rows->what = groups[i].what;
        TRY(pawl_ledger_counts(ledger, groups[i].by, filter, add_count, rows, rows->reterr));
        TRY(rows->status);
    }
    return PAWL_OK;
}

/* Of a file and what SQLite keeps beside it; 0 when the ledger is elsewhere. */
static uint64_t bytes_of(const char *location)
{
    static const char *const beside[] = { "", "-wal" };
    const char *scheme = "sqlite:";
    const char *path =
        strncmp(location, scheme, strlen(scheme)) == 0 ? location + strlen(scheme) : location;
    uint64_t bytes = 0;

    for (size_t i = 0; i < COUNT_OF(beside); i++) {
        AUTO(pawl__text_free) char *file = strndup(path, strcspn(path, "?"));
        AUTO(pawl__text_free)
        char *name = file == NULL ? NULL : pawl__fs_with_suffix(file, beside[i]);
        struct stat info;
        bytes += name != NULL && stat(name, &info) == 0 ? (uint64_t)info.st_size : 0;
    }
    return bytes;
}

static pawl_status add_facts(const struct pawl__cli_run *run,
                             struct rows *rows,
                             pawl_ledger *ledger)
{
    AUTO(pawl__text_free) char *location = NULL;
    char text[LEDGER_HEAD_SIZE];
    pawl_ledger_head head;

    TRY(pawl_ledger_get_head(ledger, &head, rows->reterr));
    TRY(pawl__cli_ledger_location(run, &location, rows->reterr));
    pawl__cli_ledger_head_text(&head, text);
    TRY(add_row(
        rows, "latest_offset", pawl__cell_none(), pawl__cell_integer((int64_t)head.offset)));
    if (head.offset > 0) {
        TRY(add_row(rows, "head", pawl__cell_text(pawl_view_of(text)), pawl__cell_none()));
    }
    uint64_t bytes = bytes_of(location);
    return bytes == 0
               ? PAWL_OK
               : add_row(rows, "bytes", pawl__cell_none(), pawl__cell_integer((int64_t)bytes));
}

static pawl_status stats_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = { { "what", false },
                                                   { "name", true },
                                                   { "value", false } };
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(rows_done) struct rows rows = { .reterr = reterr };
    struct pawl__table_options options = pawl__cli_out_table(run);
    pawl_event_filter filter;

    TRY(pawl__cli_ledger_filter(run, &filter, reterr));
    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    pawl__table_init(&rows.table, columns, COUNT_OF(columns), &options);
    TRY(add_facts(run, &rows, ledger));
    TRY(add_counts(&rows, ledger, &filter));
    return pawl__table_end(&rows.table, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_stats = {
    .name = "stats",
    .summary = "count events by run, kind and actor",
    .description =
        "Prints the latest offset, the head of the hash chain as OFFSET:HASH, the bytes of the "
        "file, and how many events each run, kind and actor has. The filters are for these "
        "counts. Keep the head somewhere else: 'pawl ledger verify --expect' proves later that it "
        "is still part of the chain.",
    .flags = FLAGS(LEDGER_FILTER_FLAGS),
    .examples = EXAMPLES(TESTED(LEDGER_EXAMPLE_APPEND "pawl ledger stats "
                                                      "--data ./data",
                                "what is in it"),
                         { .line = "pawl ledger stats --data ./data --since 1h --json",
                           .says = "of the last hour, for a program" }),
    .run = stats_run,
    .only_prints = true,
};

/* --- turns --- */

static const char *const state_names[] = {
    [PAWL_TURN_OPEN] = "open",
    [PAWL_TURN_COMMITTED] = "committed",
    [PAWL_TURN_ABANDONED] = "abandoned",
};

static bool add_turn(void *context, const pawl_turn_info *info)
{
    struct rows *rows = context;
    const struct pawl__cell cells[] = {
        pawl__cell_text(info->run_id),
        pawl__cell_integer(info->turn),
        pawl__cell_integer(info->attempt),
        pawl__cell_text(pawl_view_of(state_names[info->state])),
        pawl__cell_integer((int64_t)info->begin_offset),
        info->end_offset == 0 ? pawl__cell_none() : pawl__cell_integer((int64_t)info->end_offset),
    };

    rows->status = pawl__table_add(&rows->table, cells, rows->reterr);
    return rows->status == PAWL_OK;
}

static pawl_status turns_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "run_id", true }, { "turn", false },         { "attempt", false },
        { "state", false }, { "begin_offset", false }, { "end_offset", false },
    };
    AUTO(pawl__cli_ledger_close_p) pawl_ledger *ledger = NULL;
    AUTO(rows_done) struct rows rows = { .reterr = reterr };
    struct pawl__table_options options = pawl__cli_out_table(run);
    pawl_view run_id = pawl_view_of(pawl__cli_args_value(run->args, "run"));

    TRY(pawl__cli_ledger_open(run, LEDGER_TO_READ, &ledger, reterr));
    pawl__table_init(&rows.table, columns, COUNT_OF(columns), &options);
    TRY(pawl_ledger_turns(ledger, run_id, NULL, add_turn, &rows, reterr));
    TRY(rows.status);
    return pawl__table_end(&rows.table, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_ledger_turns = {
    .name = "turns",
    .summary = "list the attempts of every turn",
    .description = "Prints every attempt at every turn, in the order in which they began: open, "
                   "committed or abandoned, and the offsets of its first and last event.",
    .flags = FLAGS(FLAG("run", "RUN", "Only turns of this run.")),
    .examples = EXAMPLES(TESTED("pawl ledger turn begin --data ./data --run village --turn 1 && "
                                "pawl ledger turns --data ./data",
                                "which turns are open?")),
    .run = turns_run,
    .only_prints = true,
};
