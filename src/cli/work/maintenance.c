/* pawl work stats|retention */
#include "base/core/error.h"
#include "base/core/macros.h"
#include "cli/work/work.h"

/* --- stats --- */

static const struct pawl__column stats_columns[] = {
    { "what", true }, { "name", true }, { "status", true }, { "count", true }, { "value", false }
};

static bool stats_row(struct pawl__cli_rows *rows,
                      const char *what,
                      pawl_view name,
                      const char *status,
                      struct pawl__cell count,
                      struct pawl__cell value)
{
    const struct pawl__cell cells[] = { pawl__cell_text(pawl_view_of(what)),
                                        pawl__cli_cell_of(name),
                                        pawl__cli_cell_of(pawl_view_of(status)),
                                        count,
                                        value };

    return pawl__cli_rows_add(rows, cells);
}

static bool type_row(void *context, const pawl_type_stats *stats)
{
    return stats_row(context,
                     "type",
                     stats->work_type,
                     pawl_item_status_name(stats->status),
                     pawl__cell_integer((int64_t)stats->count),
                     pawl__cell_real(stats->avg_age_hours));
}

static bool growth_row(void *context, const pawl_checkpoint_growth *growth)
{
    char time[WORK_TIME_SIZE];

    return stats_row(context,
                     "checkpoints_of_task",
                     growth->task_id,
                     NULL,
                     pawl__cell_integer((int64_t)growth->checkpoint_count),
                     pawl__cli_cell_time(growth->last_at_us, time));
}

static void add_counts(struct pawl__cli_rows *rows, const pawl_work_stats *stats)
{
    char time[WORK_TIME_SIZE];
    const struct {
        const char *what;
        const char *status;
        uint64_t count;
    } counts[] = {
        { "items", "waiting", stats->waiting },
        { "items", "pending", stats->pending },
        { "items", "in_progress", stats->in_progress },
        { "items", "completed", stats->completed },
        { "items", "failed", stats->failed },
        { "leases", "active", stats->active_leases },
        { "leases", "stale", stats->stale_leases },
        { "keys", "pending", stats->keys_pending },
        { "keys", "completed", stats->keys_completed },
        { "keys", "failed", stats->keys_failed },
        { "checkpoints", NULL, stats->checkpoints },
    };
    bool more = true;

    for (size_t i = 0; i < COUNT_OF(counts) && more; i++) {
        more = stats_row(rows,
                         counts[i].what,
                         pawl_view_of(NULL),
                         counts[i].status,
                         pawl__cell_integer((int64_t)counts[i].count),
                         pawl__cell_none());
    }
    if (more && stats->active_leases > 0) {
        more = stats_row(rows,
                         "minutes_since_heartbeat",
                         pawl_view_of(NULL),
                         NULL,
                         pawl__cell_none(),
                         pawl__cell_real(stats->avg_minutes_since_heartbeat));
    }
    if (more && stats->oldest_pending_us != 0) {
        (void)stats_row(rows,
                        "oldest_pending",
                        pawl_view_of(NULL),
                        NULL,
                        pawl__cell_none(),
                        pawl__cli_cell_time(stats->oldest_pending_us, time));
    }
}

static pawl_status open_for_stats(const struct pawl__cli_run *run,
                                  pawl_work **ret_work,
                                  pawl_error *reterr)
{
    pawl_work_options options = pawl__cli_work_options(run);
    int64_t stale_ms = options.stale_ms;

    TRY(pawl__cli_work_ms(run, "stale", 1, WORK_TIME_MS_MAX, &stale_ms, reterr));
    options.stale_ms = (uint32_t)stale_ms;
    return pawl__cli_work_open_with(run, WORK_THAT_EXISTS, &options, ret_work, reterr);
}

static pawl_status print_metrics(pawl_work *work, pawl_error *reterr)
{
    AUTO(pawl__text_free) char *text = NULL;
    AUTO(pawl__buf_done) struct pawl__buf out = BUF_INIT(SIZE_MAX / 2);
    size_t len = 0;

    TRY(pawl_work_get_metrics(work, &text, &len, reterr));
    pawl__buf_add(&out, (pawl_view){ text, len });
    return pawl__cli_out_add(&out, reterr);
}

static pawl_status print_stats(const struct pawl__cli_run *run, pawl_work *work, pawl_error *reterr)
{
    AUTO(pawl__cli_rows_done) struct pawl__cli_rows rows;
    pawl_work_stats stats = { .size = sizeof(pawl_work_stats) };

    pawl__cli_rows_start(&rows, run, stats_columns, COUNT_OF(stats_columns), reterr);
    TRY(pawl_work_get_stats(work, &stats, reterr));
    add_counts(&rows, &stats);
    TRY(pawl_work_type_stats(work, type_row, &rows, reterr));
    return pawl__cli_rows_end(&rows,
                              rows.status == PAWL_OK
                                  ? pawl_work_checkpoint_growth(work, growth_row, &rows, reterr)
                                  : PAWL_OK);
}

static pawl_status stats_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    bool as_metrics = pawl__cli_args_has(run->args, "prometheus");

    if (as_metrics && run->json) {
        return pawl__fail(reterr, PAWL_INVALID, "'--prometheus' and '--json': choose one");
    }
    TRY(open_for_stats(run, &work, reterr));
    return as_metrics ? print_metrics(work, reterr) : print_stats(run, work, reterr);
}

const struct pawl__cli_command pawl__cli_cmd_work_stats = {
    .name = "stats",
    .summary = "show counts and health",
    .description =
        "Prints how many items are in each state, how many leases are live and how many of them "
        "had no heartbeat for longer than --stale, keys and checkpoints; then the items of each "
        "type with their average age in hours, and the ten tasks with the most checkpoints.",
    .flags =
        FLAGS(FLAG("stale",
                   "DURATION",
                   "A lease without a heartbeat for longer is stale; instead of "
                   "work.stale."),
              { .name = "prometheus", .help = "As metrics in the text format of Prometheus." }),
    .examples = EXAMPLES(TESTED("pawl work submit --data ./data --type mail && "
                                "pawl work stats --data ./data",
                                "what is in it"),
                         TESTED("pawl work submit --data ./data --type mail && "
                                "pawl work stats --data ./data --prometheus >work.prom",
                                "for a collector of text files")),
    .run = stats_run,
    .only_prints = true,
};

/* --- retention --- */

static pawl_status retention_run(struct pawl__cli_run *run, pawl_error *reterr)
{
    AUTO(pawl__cli_work_close_p) pawl_work *work = NULL;
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = { .size = sizeof(pawl_retention_report) };

    retention.item_days = (uint32_t)pawl__cli_args_number(run->args, "item-days");
    retention.key_days = (uint32_t)pawl__cli_args_number(run->args, "key-days");
    retention.checkpoints_per_task = (uint32_t)pawl__cli_args_number(run->args, "checkpoints");
    retention.archive = pawl__cli_args_has(run->args, "archive");
    retention.dry_run = pawl__cli_args_has(run->args, "dry-run");
    TRY(pawl__cli_work_open(run, WORK_THAT_EXISTS, &work, reterr));
    TRY(pawl_work_retention(work, &retention, &report, reterr));
    return pawl__cli_work_answer(
        run,
        ANSWER({ "items", true, pawl__cell_integer((int64_t)report.items) },
               { "history", true, pawl__cell_integer((int64_t)report.history) },
               { "checkpoints", true, pawl__cell_integer((int64_t)report.checkpoints) },
               { "archived", true, pawl__cell_integer((int64_t)report.archived) },
               { "keys", true, pawl__cell_integer((int64_t)report.keys) },
               { "bytes_freed", true, pawl__cell_integer((int64_t)report.bytes_freed) }),
        reterr);
}

#define DAYS_FLAG(flag, what, days) NUMBER_FLAG(flag, "N", 0, 36500, (what), .fallback = (days))

const struct pawl__cli_command pawl__cli_cmd_work_retention = {
    .name = "retention",
    .summary = "remove what is old",
    .description =
        "Removes ended items with their history, checkpoints beyond the last ones of their task "
        "(the newest of each type and the newest verified one always stay), completed keys, and "
        "expired keys at once. In small transactions, so that workers never wait; SQLite gives the "
        "space back. Prints how many of each, and the bytes.",
    .flags =
        FLAGS(DAYS_FLAG("item-days", "Keep ended items for this many days.", "30"),
              DAYS_FLAG("key-days", "Keep completed keys for this many days.", "7"),
              NUMBER_FLAG(
                  "checkpoints", "N", 0, UINT32_MAX, "Keep this many per task.", .fallback = "100"),
              { .name = "archive", .help = "Checkpoints go to checkpoints_archive first." },
              { .name = "dry-run", .help = "Count, and change nothing." }),
    .examples = EXAMPLES(
        TESTED("pawl work submit --data ./data --type mail && "
               "pawl work retention --data ./data --dry-run",
               "what would go?"),
        { .line = "pawl work retention --data ./data --archive", .says = "once a day, from cron" }),
    .run = retention_run,
};
