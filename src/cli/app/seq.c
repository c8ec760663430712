/* pawl seq, and its status. What it checks and repairs: seq_verify.c, seq_rebuild.c */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/app/app.h"
#include "cli/commands.h"

static pawl_status add_row(struct pawl__table *table,
                           uint16_t partition,
                           uint64_t log_end,
                           const pawl_sequencer_status *of,
                           pawl_error *reterr)
{
    const struct pawl__cell cells[] = {
        pawl__cell_integer(partition),
        pawl__cell_integer((int64_t)log_end),
        pawl__cell_integer((int64_t)of->next_offset),
        pawl__cell_integer((int64_t)of->stored_offset),
        pawl__cell_integer((int64_t)of->unflushed),
        pawl__cell_integer((int64_t)of->hits),
        pawl__cell_integer((int64_t)of->misses),
        pawl__cell_bool(of->actualizing),
        pawl__cell_integer((int64_t)of->actualizations),
        pawl__cell_integer((int64_t)of->flushes),
        pawl__cell_integer((int64_t)of->flush_failures),
        of->last_error.status == PAWL_OK ? pawl__cell_none()
                                         : pawl__cell_text(pawl_view_of(of->last_error.message)),
    };
    return pawl__table_add(table, cells, reterr);
}

static pawl_status add_local_rows(struct pawl__table *table, pawl_app *app, pawl_error *reterr)
{
    for (uint16_t i = 0; i < pawl_app_get_descriptor(app)->partitions; i++) {
        pawl_sequencer_status of = PAWL_SEQUENCER_STATUS_INIT;
        uint64_t log_end = 0;

        TRY(pawl_app_get_status(app, i, &of, reterr));
        TRY(pawl_app_get_log_end(app, i, &log_end, reterr));
        TRY(add_row(table, i, log_end, &of, reterr));
    }
    return PAWL_OK;
}

static pawl_status add_remote_row(struct pawl__table *table, const json_t *row, pawl_error *reterr)
{
    const char *error = json_string_value(json_object_get(row, "last_error"));
    const char *detail = json_string_value(json_object_get(row, "last_error_detail"));
    pawl_sequencer_status of = {
        .size = sizeof(of),
        .next_offset = pawl__cli_remote_number(row, "next_offset"),
        .stored_offset = pawl__cli_remote_number(row, "stored_offset"),
        .unflushed = pawl__cli_remote_number(row, "unflushed"),
        .hits = pawl__cli_remote_number(row, "hits"),
        .misses = pawl__cli_remote_number(row, "misses"),
        .actualizing = json_is_true(json_object_get(row, "actualizing")),
        .actualizations = pawl__cli_remote_number(row, "actualizations"),
        .flushes = pawl__cli_remote_number(row, "flushes"),
        .flush_failures = pawl__cli_remote_number(row, "flush_failures"),
    };

    if (error != NULL) {
        (void)pawl__fail(&of.last_error, PAWL_FAILED, "%s", detail == NULL ? error : detail);
    }
    return add_row(table,
                   (uint16_t)pawl__cli_remote_number(row, "partition"),
                   pawl__cli_remote_number(row, "log_end"),
                   &of,
                   reterr);
}

static pawl_status add_remote_rows(struct pawl__table *table,
                                   struct pawl__cli_remote *remote,
                                   pawl_error *reterr)
{
    const struct pawl__cli_ask ask = { .method = "GET", .target = "/seq" };
    json_auto_t *page = NULL;

    TRY(pawl__cli_remote_ask(remote, &ask, &page, reterr));
    const json_t *items = json_object_get(page, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        TRY(add_remote_row(table, json_array_get(items, i), reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__cli_seq_print_status(struct pawl__cli_run *run,
                                       struct pawl__cli_app *app,
                                       pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "partition", true },     { "log_end", true },         { "next_offset", true },
        { "stored_offset", true }, { "unflushed", false },      { "hits", false },
        { "misses", false },       { "actualizing", false },    { "actualizations", false },
        { "flushes", false },      { "flush_failures", false }, { "last_error", false },
    };
    AUTO(pawl__table_done) struct pawl__table table = { 0 };
    struct pawl__table_options options = pawl__cli_out_table(run);

    pawl__table_init(&table, columns, COUNT_OF(columns), &options);
    TRY(app->remote == NULL ? add_local_rows(&table, app->local, reterr)
                            : add_remote_rows(&table, app->remote, reterr));
    return pawl__table_end(&table, reterr);
}

static pawl_status status_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_app_done) struct pawl__cli_app app = { .local = NULL };

    TRY(pawl__cli_app_open_named(run, &app, reterr));
    /* A partition whose log is damaged is a row that says so, and decides the exit code. */
    pawl_error broken = PAWL_ERROR_INIT;
    pawl_status numbers = pawl__cli_app_await_numbers(&app, &broken);
    TRY(pawl__cli_seq_print_status(run, &app, reterr));
    return numbers != PAWL_OK ? pawl__fail(reterr, numbers, "%s", broken.message) : PAWL_OK;
}

const struct pawl__cli_command pawl__cli_cmd_seq_status = {
    .name = "status",
    .summary = "show the sequences of each partition",
    .description =
        "One row per partition: the last offset of its log, the next offset as far as the log was "
        "read (behind the last one when nothing is left to actualize), the offset up to which "
        "numbers are stored, how many wait to be written, cache hits and misses, and what "
        "happened behind the scenes. Counts are those of the process that has "
        "the application open: this one, or the node.",
    .operands = OPERANDS(APP_OPERAND),
    .examples = EXAMPLES(TESTED(APP_EXAMPLE_CREATE " && pawl seq status --data ./data orders",
                                "where each partition is")),
    .run = status_run,
    .only_prints = true,
};

const struct pawl__cli_command pawl__cli_cmd_seq = {
    .name = "seq",
    .summary = "the sequences behind applications",
    .description = "Numbers are served from memory, written behind the scenes and rebuilt from the "
                   "log; see 'pawl app'.\n\n" APP_WHERE APP_BESIDE_NODE,
    .flags = FLAGS(APP_FLAG),
    .when_damaged = "`pawl seq rebuild` repairs numbers; restore all else from a backup",
    .commands =
        COMMANDS(&pawl__cli_cmd_seq_status, &pawl__cli_cmd_seq_verify, &pawl__cli_cmd_seq_rebuild),
    .examples = EXAMPLES({ .line = "pawl seq verify --data ./data orders --workspace 7",
                           .says = "a certificate for a workspace" }),
};
