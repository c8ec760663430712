/* pawl work stats|retention|recover */
#include <stdlib.h>

#include "base/display.h"
#include "base/error.h"
#include "base/macros.h"
#include "cli/work.h"

/* --- stats --- */

static const struct pawl__column stats_columns[] = {
    { "what", true }, { "name", true }, { "status", true }, { "count", true }, { "value", false }
};

static bool stats_row(struct pawl__rows *rows,
                      const char *what,
                      pawl_view name,
                      const char *status,
                      struct pawl__cell count,
                      struct pawl__cell value)
{
    const struct pawl__cell cells[] = { pawl__cell_text(pawl_view_of(what)),
                                        pawl__cell_of(name),
                                        pawl__cell_of(pawl_view_of(status)),
                                        count,
                                        value };

    return pawl__rows_add(rows, cells);
}

static bool type_row(void *context, const pawl_type_stats *stats)
{
    return stats_row(context,
                     "type",
                     stats->work_type,
                     pawl__item_status_name(stats->status),
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
                     pawl__cell_time(growth->last_at_us, time));
}

static void add_counts(struct pawl__rows *rows, const pawl_work_stats *stats)
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
                        pawl__cell_time(stats->oldest_pending_us, time));
    }
}

static pawl_status stats_run(struct pawl__run *run, pawl_error *reterr)
{
    AUTO(pawl__work_close_p) pawl_work *work = NULL;
    AUTO(pawl__rows_done) struct pawl__rows rows;
    pawl_work_stats stats = { 0 };

    pawl__rows_start(&rows, run, stats_columns, COUNT_OF(stats_columns), reterr);
    pawl_status status = pawl__work_open(run, WORK_THAT_EXISTS, &work, reterr);
    if (status == PAWL_OK) {
        status = pawl_work_get_stats(work, &stats, reterr);
    }
    if (status == PAWL_OK) {
        add_counts(&rows, &stats);
        status = pawl_work_type_stats(work, type_row, &rows, reterr);
    }
    if (status == PAWL_OK && rows.status == PAWL_OK) {
        status = pawl_work_checkpoint_growth(work, growth_row, &rows, reterr);
    }
    return pawl__rows_end(&rows, status);
}

const struct pawl__command pawl__cmd_work_stats = {
    .name = "stats",
    .summary = "count what there is, and how well it is",
    .description =
        "Prints how many items are in each state, how many leases are live and how many of them "
        "had no heartbeat for two minutes, keys and checkpoints; then the items of each type with "
        "their average age in hours, and the ten tasks with the most checkpoints.",
    .examples = EXAMPLES({ .line = "pawl work submit --data ./data --type mail && "
                                   "pawl work stats --data ./data",
                           .says = "what is in it",
                           .runs = true }),
    .run = stats_run,
};

/* --- retention --- */

static pawl_status retention_run(struct pawl__run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "items", true },    { "history", true }, { "checkpoints", true },
        { "archived", true }, { "keys", true },    { "bytes_freed", true },
    };
    AUTO(pawl__work_close_p) pawl_work *work = NULL;
    pawl_retention retention = PAWL_RETENTION_INIT;
    pawl_retention_report report = { 0 };

    retention.item_days = (uint32_t)pawl__args_number(run->args, "item-days");
    retention.key_days = (uint32_t)pawl__args_number(run->args, "key-days");
    retention.checkpoints_per_task = (uint32_t)pawl__args_number(run->args, "checkpoints");
    retention.archive = pawl__args_has(run->args, "archive");
    retention.dry_run = pawl__args_has(run->args, "dry-run");
    pawl_status status = pawl__work_open(run, WORK_THAT_EXISTS, &work, reterr);
    if (status == PAWL_OK) {
        status = pawl_work_retention(work, &retention, &report, reterr);
    }
    const struct pawl__cell cells[] = {
        pawl__cell_integer((int64_t)report.items),
        pawl__cell_integer((int64_t)report.history),
        pawl__cell_integer((int64_t)report.checkpoints),
        pawl__cell_integer((int64_t)report.archived),
        pawl__cell_integer((int64_t)report.keys),
        pawl__cell_integer((int64_t)report.bytes_freed),
    };
    return status == PAWL_OK ? pawl__work_answer(run, columns, cells, COUNT_OF(cells), reterr)
                             : status;
}

#define DAYS_FLAG(flag, what, days)                                                   \
    {                                                                                 \
        .name = (flag), .value = "N", .help = (what), .kind = VALUE_NUMBER, .min = 0, \
        .max = 36500, .fallback = (days)                                              \
    }

const struct pawl__command pawl__cmd_work_retention = {
    .name = "retention",
    .summary = "remove what is old",
    .description =
        "Removes ended items with their history, checkpoints beyond the last ones of their task "
        "(the newest of each type and the newest verified one always stay), completed keys, and "
        "expired keys at once. In small transactions, so that workers never wait; SQLite gives the "
        "space back. Prints how many of each, and the bytes.",
    .flags = FLAGS(DAYS_FLAG("item-days", "Keep ended items so many days.", "30"),
                   DAYS_FLAG("key-days", "Keep completed keys so many days.", "7"),
                   { .name = "checkpoints",
                     .value = "N",
                     .help = "Keep so many of each task.",
                     .kind = VALUE_NUMBER,
                     .min = 0,
                     .max = UINT32_MAX,
                     .fallback = "100" },
                   { .name = "archive", .help = "Checkpoints go to checkpoints_archive first." },
                   { .name = "dry-run", .help = "Count, and change nothing." }),
    .examples = EXAMPLES(
        { .line = "pawl work submit --data ./data --type mail && "
                  "pawl work retention --data ./data --dry-run",
          .says = "what would go?",
          .runs = true },
        { .line = "pawl work retention --data ./data --archive", .says = "once a day, from cron" }),
    .run = retention_run,
};

/* --- recover --- */

static void add_checkpoint(struct pawl__object *object,
                           const char *key,
                           const pawl_checkpoint *checkpoint)
{
    pawl__object_key(object, key);
    if (checkpoint == NULL) {
        pawl__buf_add_text(object->buf, "null");
    } else {
        pawl__checkpoint_add_json(object->run, object->buf, checkpoint);
    }
}

static void add_answers(struct pawl__object *object, const pawl_recovery *recovery)
{
    pawl__object_key(object, "answers");
    pawl__buf_add_char(object->buf, '[');
    for (size_t i = 0; i < recovery->key_count; i++) {
        pawl__buf_add_text(object->buf, i == 0 ? "" : ",");
        struct pawl__object answer = pawl__object_start(object->run, object->buf);
        pawl__object_text(&answer, "idempotency_key", recovery->keys[i]);
        pawl__object_json(&answer, "response", recovery->responses[i]);
        pawl__object_end(&answer);
    }
    pawl__buf_add_char(object->buf, ']');
}

static pawl_status recover_json(struct pawl__rows *rows, const pawl_recovery *recovery)
{
    struct pawl__object object = pawl__object_start(rows->run, &rows->line);

    pawl__object_key(&object, "task");
    pawl__task_add_json(rows->run, &rows->line, recovery->task);
    add_checkpoint(&object, "resume", recovery->resume);
    add_checkpoint(&object, "iteration_end", recovery->iteration_end);
    pawl__object_integer(&object, "passed_over", (int64_t)recovery->passed_over);
    pawl__object_key(&object, "items");
    pawl__buf_add_char(&rows->line, '[');
    for (size_t i = 0; i < recovery->item_count; i++) {
        pawl__buf_add_text(&rows->line, i == 0 ? "" : ",");
        pawl__item_add_json(rows->run, &rows->line, &recovery->items[i]);
    }
    pawl__buf_add_char(&rows->line, ']');
    add_answers(&object, recovery);
    pawl__object_end(&object);
    (void)pawl__rows_add_line(rows);
    return pawl__rows_end(rows, PAWL_OK);
}

static bool recover_row(struct pawl__rows *rows,
                        const char *what,
                        pawl_view id,
                        const char *state,
                        struct pawl__cell data)
{
    const struct pawl__cell cells[] = { pawl__cell_text(pawl_view_of(what)),
                                        pawl__cell_of(id),
                                        pawl__cell_of(pawl_view_of(state)),
                                        data };

    return pawl__rows_add(rows, cells);
}

static pawl_status recover_text(struct pawl__rows *rows, const pawl_recovery *recovery)
{
    const pawl_checkpoint *resume = recovery->resume;
    const pawl_checkpoint *last = recovery->iteration_end;
    bool more = recover_row(rows,
                            "task",
                            recovery->task->task_id,
                            pawl__task_status_name(recovery->task->status),
                            pawl__cell_of(recovery->task->title));

    if (more && resume != NULL) {
        more = recover_row(rows,
                           "resume",
                           resume->checkpoint_id,
                           pawl__checkpoint_type_name(resume->type),
                           pawl__cell_value(resume->snapshot_data));
    }
    if (more && last != NULL) {
        more = recover_row(rows,
                           "iteration_end",
                           last->checkpoint_id,
                           "iteration_end",
                           pawl__cell_value(last->snapshot_data));
    }
    for (size_t i = 0; i < recovery->item_count && more; i++) {
        const pawl_item *item = &recovery->items[i];
        more = recover_row(rows,
                           "item",
                           item->work_item_id,
                           pawl__item_status_name(item->status),
                           pawl__cell_value(item->input_data));
    }
    for (size_t i = 0; i < recovery->key_count && more; i++) {
        more = recover_row(rows,
                           "answer",
                           recovery->keys[i],
                           "completed",
                           pawl__cell_value(recovery->responses[i]));
    }
    return pawl__rows_end(rows, PAWL_OK);
}

static pawl_status recover_run(struct pawl__run *run, pawl_error *reterr)
{
    static const struct pawl__column columns[] = {
        { "what", true }, { "id", true }, { "state", true }, { "data", false }
    };
    AUTO(pawl__work_close_p) pawl_work *work = NULL;
    AUTO(pawl__rows_done) struct pawl__rows rows;
    pawl_recovery *recovery = NULL;

    pawl__rows_start(&rows, run, columns, COUNT_OF(columns), reterr);
    pawl_status status = pawl__work_open(run, WORK_THAT_EXISTS, &work, reterr);
    if (status == PAWL_OK) {
        status = pawl_work_recover(
            work, pawl_view_of(pawl__args_operand(run->args, 0)), &recovery, reterr);
    }
    if (status == PAWL_OK) {
        status = run->json ? recover_json(&rows, recovery) : recover_text(&rows, recovery);
    }
    pawl_recovery_free(recovery);
    return status;
}

const struct pawl__command pawl__cmd_work_recover = {
    .name = "recover",
    .summary = "where a task goes on",
    .description =
        "Looks at the evidence of the task's checkpoints from the newest on until one holds, and "
        "prints it (resume), the last iteration_end, the items that are unfinished, and the cached "
        "answers of the task's idempotency keys. With --json one object. Exit code 3 when there is "
        "no such task.",
    .operands = OPERANDS({ .name = "TASK", .help = "The task's id." }),
    .examples =
        EXAMPLES({ .line = "pawl work task create --data ./data --id t-1 --title 'Read books' && "
                           "pawl work checkpoint add --data ./data --task t-1 --type iteration_end "
                           "--snapshot '{\"page\":1}' && pawl work recover --data ./data t-1",
                   .says = "after a crash",
                   .runs = true }),
    .run = recover_run,
};
