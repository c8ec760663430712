/* pawl sql: one statement on the DuckDB file, reading only. */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/core/quantity.h"
#include "base/os/clock.h"
#include "cli/commands.h"
#include "cli/delivery/delivery.h"
#include "cli/frame/input.h"
#include "config/config.h"

enum { SQL_BYTES_MAX = 1 << 20 };

struct printing {
    const struct pawl__cli_run *run;
    struct pawl__table table;
    struct pawl__column columns[PAWL__TABLE_COLUMNS_MAX];
    char *names[PAWL__TABLE_COLUMNS_MAX];
    size_t count; /* 0: no row yet */
    pawl_status status;
    pawl_error *reterr;
};

static pawl_status begin_table(struct printing *printing, const pawl_query_row *row)
{
    const struct pawl__table_options options = pawl__cli_out_table(printing->run);

    if (row->count > PAWL__TABLE_COLUMNS_MAX) {
        return pawl__fail(printing->reterr,
                          PAWL_INVALID,
                          "the result has %zu columns, %d can be printed; name those you want",
                          row->count,
                          PAWL__TABLE_COLUMNS_MAX);
    }
    for (size_t i = 0; i < row->count; i++) {
        printing->names[i] = pawl__view_dup(pawl_view_of(row->names[i]));
        TRY(pawl__check_memory(printing->names[i], "a name", printing->reterr));
        printing->columns[i] = (struct pawl__column){ printing->names[i], false };
    }
    printing->count = row->count;
    pawl__table_init(&printing->table, printing->columns, row->count, &options);
    return PAWL_OK;
}

static struct pawl__cell cell_of(const pawl_query_cell *cell)
{
    switch (cell->kind) {
    case PAWL_QUERY_NULL:
        return pawl__cell_none();
    case PAWL_QUERY_NUMBER:
    case PAWL_QUERY_BOOLEAN:
        return pawl__cell_json(cell->text);
    case PAWL_QUERY_TEXT:
        break;
    }
    return pawl__cell_text(cell->text);
}

static bool print_row(void *context, const pawl_query_row *row)
{
    struct printing *printing = context;
    struct pawl__cell cells[PAWL__TABLE_COLUMNS_MAX];

    printing->status = printing->count == 0 ? begin_table(printing, row) : PAWL_OK;
    for (size_t i = 0; i < printing->count; i++) {
        cells[i] = cell_of(&row->cells[i]);
    }
    if (printing->status == PAWL_OK) {
        printing->status = pawl__table_add(&printing->table, cells, printing->reterr);
    }
    if (printing->status == PAWL_OK) {
        printing->status = pawl__cli_out_check(printing->reterr);
    }
    return printing->status == PAWL_OK;
}

static void printing_done(struct printing *printing)
{
    if (printing->count > 0) {
        pawl__table_done(&printing->table);
    }
    for (size_t i = 0; i < COUNT_OF(printing->names); i++) {
        pawl__text_free(&printing->names[i]);
    }
}

static pawl_status parse_limits(const struct pawl__cli_run *run,
                                pawl_query_options *options,
                                pawl_error *reterr)
{
    int64_t timeout_ns = 0;
    uint64_t memory = 0;
    pawl_status status = pawl__duration_parse(
        pawl_view_of(pawl__cli_args_value(run->args, "timeout")), &timeout_ns, reterr);

    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "'--timeout'");
    }
    status =
        pawl__size_parse(pawl_view_of(pawl__cli_args_value(run->args, "memory")), &memory, reterr);
    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "'--memory'");
    }
    options->timeout_ms = (uint32_t)MIN(timeout_ns / NS_PER_MS, (int64_t)UINT32_MAX);
    options->memory_max = memory;
    return PAWL_OK;
}

/* A file that nobody has open is opened here, which needs no pipeline. */
static pawl_status run_statement(const struct pawl__cli_run *run,
                                 const char *sql,
                                 const pawl_query_options *options,
                                 struct printing *printing,
                                 pawl_error *reterr)
{
    struct pawl__cli_delivery delivery;
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = pawl__cli_delivery_find_process(run, &delivery, &error);

    if (status == PAWL_OK) {
        status = pawl__cli_delivery_select(&delivery, sql, options, print_row, printing, &error);
        if (status != PAWL_NOT_FOUND) {
            status = pawl__cli_delivery_leave(&delivery, status, &error);
            return status == PAWL_OK ? PAWL_OK : pawl__fail_with(reterr, status, &error);
        }
        (void)!pawl__cli_delivery_leave(&delivery, status, NULL); /* it has no such file open */
    }
    return pawl_delivery_query(
        pawl__config_text(run->config, PAWL__DATA), sql, options, print_row, printing, reterr);
}

static pawl_status sql_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *sql = NULL;
    AUTO(printing_done) struct printing printing = { .run = run, .reterr = reterr };
    pawl_query_options options = PAWL_QUERY_OPTIONS_INIT;

    TRY(parse_limits(run, &options, reterr));
    TRY(pawl__cli_input_read(
        "statement", pawl__cli_args_operand(run->args, 0), SQL_BYTES_MAX, &sql, reterr));
    TRY(run_statement(run, sql, &options, &printing, reterr));
    TRY(printing.status);
    return printing.count > 0 ? pawl__table_end(&printing.table, reterr) : PAWL_OK;
}

const struct pawl__cli_command pawl__cli_cmd_sql = {
    .name = "sql",
    .summary = "ask the tables of delivered events",
    .description =
        "Runs one statement of DuckDB's SQL on analytics.duckdb of the data directory, in a "
        "transaction that only reads, and prints its rows. Tables: those of pipelines, "
        "failed_events, delivery_losses. SQL sees no other files and no network. What would write "
        "is exit code 1, what DuckDB does not understand exit code 2, a query over its time or "
        "memory exit code 5 or 1. While a node or a 'pawl deliver' has the file, that process runs "
        "the statement; while any other process has it, it is exit code 5.",
    .flags = FLAGS(FLAG("timeout", "DURATION", "How long it may take.", .fallback = "30s"),
                   FLAG("memory", "SIZE", "How much memory it may use.", .fallback = "256MiB")),
    .operands =
        OPERANDS({ .name = "SQL", .help = "The statement; @FILE reads a file, - standard input." }),
    .examples = EXAMPLES(
        TESTED("echo '{\"order\":17}' > orders.jsonl && pawl deliver --data ./data --from "
               "orders.jsonl --into orders --drain && pawl sql --data ./data 'SELECT payload FROM "
               "orders'",
               "what was delivered"),
        { .line = "pawl sql --json 'SELECT failure_reason, count(*) AS events FROM failed_events "
                  "GROUP BY ALL'",
          .says = "why events failed" }),
    .run = sql_run,
    .only_prints = true,
};
